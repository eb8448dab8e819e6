//! Writes the definitions and markers of an archive.

use rustc_hash::FxHashMap;

use super::{ArchiveWriter, Marker, text};
use crate::Error;
use crate::definitions::{BASE_DECIMAL, Definitions, GENERATOR_TIME, LONG, TEXT, UNDEFINED};

/// `OTF2_LOCATION_GROUP_TYPE_PROCESS`.
const PROCESS: u8 = 1;
/// `OTF2_METRIC_TYPE_OTHER`, `OTF2_METRIC_ACCUMULATED_START`, `OTF2_TYPE_UINT64`, `OTF2_BASE_DECIMAL`.
const COUNTER: (u8, u8, u8, u8) = (0, 0, LONG, 1);
/// `OTF2_METRIC_SYNCHRONOUS`, `OTF2_RECORDER_KIND_CPU`.
const RECORDED: (u8, u8) = (1, 2);
/// `OTF2_MARKER_SCOPE_LOCATION`, `OTF2_SEVERITY_MEDIUM`.
const MARKER: (u8, u8) = (1, 2);

impl ArchiveWriter {
    /// Writes the definitions.
    pub(super) fn define(&self, definitions: &Definitions) -> Result<(), Error> {
        let call = &self.call;
        // SAFETY: an open archive.
        let to = unsafe { (call.global_definitions)(self.handle) };
        // SAFETY: an open writer of definitions, plain numbers, zero-terminated texts, and
        // arrays with their lengths.
        unsafe {
            if let Some(clock) = definitions.clock {
                let (from, length) = (clock.global_offset, clock.length);
                self.check((call.clock)(
                    to,
                    clock.resolution,
                    from,
                    length,
                    clock.realtime_ns,
                ))?;
            }
            for (id, string) in sorted(&definitions.strings) {
                self.check((call.string)(to, id, text(string).as_ptr()))?;
            }
            for (id, &(name, class, parent)) in sorted(&definitions.nodes) {
                self.check((call.node)(to, id, name, class, parent))?;
            }
            for (id, &(name, node)) in sorted(&definitions.processes) {
                self.check((call.process)(to, id, name, PROCESS, node, UNDEFINED))?;
            }
            for location in &definitions.locations {
                let events = self.counts.get(&location.id).copied().unwrap_or(0);
                let (id, kind) = (location.id, location.kind);
                self.check((call.location)(
                    to,
                    id,
                    location.name,
                    kind,
                    events,
                    location.group,
                ))?;
            }
            for &(location, name, value) in &definitions.properties {
                let property = call.location_property;
                self.check(property(to, location, name, TEXT, value.into()))?;
            }
            for (id, r) in sorted(&definitions.regions) {
                let (role, paradigm) = (r.role, r.paradigm);
                let (name, canonical, line) = (r.name, r.canonical, r.line);
                let region = call.region;
                self.check(region(
                    to, id, name, canonical, name, role, paradigm, 0, r.file, line, line,
                ))?;
            }
            for (id, &(file, line)) in sorted(&definitions.places) {
                self.check((call.place)(to, id, file, line))?;
            }
            for (id, context) in sorted(&definitions.contexts) {
                let (region, place) = (context.region, context.place);
                self.check((call.context)(to, id, region, place, context.parent))?;
            }
            for (id, &period) in sorted(&definitions.generators) {
                let (mode, base) = (GENERATOR_TIME, BASE_DECIMAL);
                self.check((call.generator)(to, id, 0, mode, base, -9, period))?;
            }
            for (id, groups) in sorted(&definitions.groups) {
                for group in groups {
                    let (count, members) = (group.members.len() as u32, group.members.as_ptr());
                    let (kind, paradigm) = (group.kind, group.paradigm);
                    self.check((call.group)(to, id, 0, kind, paradigm, 0, count, members))?;
                }
            }
            for (id, a) in sorted(&definitions.attributes) {
                self.check((call.attribute)(to, id, a.name, a.description, a.kind))?;
            }
            for (id, &name) in (0..).zip(&definitions.metrics) {
                let (kind, mode, value, base) = COUNTER;
                self.check((call.metric_member)(
                    to, id, name, 0, kind, mode, value, base, 0, 0,
                ))?;
                let (occurrence, recorder) = RECORDED;
                self.check((call.metric_class)(to, id, 1, &id, occurrence, recorder))?;
            }
            for c in &definitions.comms {
                self.check(match c.other {
                    None => (call.comm)(to, c.id, c.name, c.group, c.parent, 0),
                    Some(other) => (call.inter_comm)(to, c.id, c.name, c.group, other, c.parent, 0),
                })?;
            }
            for (id, &(size, is_periodic)) in sorted(&definitions.dimensions) {
                self.check((call.dimension)(to, id, 0, size, is_periodic.into()))?;
            }
            for (id, (comm, dimensions)) in sorted(&definitions.grids) {
                let (count, first) = (dimensions.len() as u8, dimensions.as_ptr());
                self.check((call.grid)(to, id, 0, *comm, count, first))?;
            }
            for (grid, rank, coordinates) in &definitions.coordinates {
                let (count, first) = (coordinates.len() as u8, coordinates.as_ptr());
                self.check((call.coordinate)(to, *grid, *rank, count, first))?;
            }
            for (id, &(name, comm)) in sorted(&definitions.windows) {
                self.check((call.window)(to, id, name, comm, 0))?;
            }
            self.check((call.close_global_definitions)(self.handle, to))
        }
    }

    /// Writes the markers.
    pub(super) fn mark(&self, markers: &[Marker]) -> Result<(), Error> {
        if markers.is_empty() {
            return Ok(());
        }
        let call = &self.call;
        let (scope, severity) = MARKER;
        let mut categories: Vec<&str> = markers.iter().map(|m| m.category.as_str()).collect();
        categories.sort_unstable();
        categories.dedup();
        let group = text(b"laggard");
        // SAFETY: an open archive and writer, plain numbers and zero-terminated texts.
        unsafe {
            let to = (call.markers)(self.handle);
            for (id, category) in categories.iter().enumerate() {
                let category = text(category.as_bytes());
                let (group, category) = (group.as_ptr(), category.as_ptr());
                self.check((call.marker_definition)(
                    to, id as u32, group, category, severity,
                ))?;
            }
            for marker in markers {
                let category = categories.binary_search(&marker.category.as_str());
                let id = category.unwrap_or(0) as u32;
                let (time, duration, at) = (marker.time, marker.duration, marker.location);
                let words = text(marker.text.as_bytes());
                let words = words.as_ptr();
                self.check((call.marker)(to, time, duration, id, scope, at, words))?;
            }
            self.check((call.close_markers)(self.handle, to))
        }
    }
}

fn sorted<V>(table: &FxHashMap<u32, V>) -> Vec<(u32, &V)> {
    let mut rows: Vec<(u32, &V)> = table.iter().map(|(id, value)| (*id, value)).collect();
    rows.sort_unstable_by_key(|(id, _)| *id);
    rows
}
