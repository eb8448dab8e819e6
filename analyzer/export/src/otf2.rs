//! A trace as an OTF2 archive, for Scalasca, Vampir, `otf2-print` and others.
//!
//! Times are ns of the corrected clock since the start of the run. Functions on call paths are
//! regions around the calls. The trace does not say which of them were left between two calls. So
//! each counts until a call comes from elsewhere, or an enclosing region of the program ends.
//! Regions without calls are written if they lasted long enough to have records.

mod markers;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use laggard_engine::events::{Events, Trace};
use laggard_engine::symbols::Symbols;
use laggard_otf2::definitions::{
    Attribute, BYTE, Clock, Definitions, Group, LONG, Location, PARADIGM_MPI, UNDEFINED, group_kind,
};
use laggard_otf2::events::{ANY, Event, TOLD};
use laggard_otf2::{ANY_NUMBER, ArchiveWriter, GENERATOR, TOLD_NUMBERS};
use laggard_report::Report;
use laggard_trace::Location as TraceLocation;

use super::groups::Groups;
use super::location::Writer;
use super::names::{Names, location_id};
use super::names::{PARADIGMS, ROLES};
use super::teams::Teams;

/// `OTF2_LOCATION_TYPE_CPU_THREAD`.
const THREAD: u8 = 1;
/// Writes the trace as the archive `output/traces.otf2`, in a new directory; returns its anchor
/// file. Findings and
/// root causes of a report are marked.
pub fn otf2(events: Events, output: &Path, report: Option<&Report>) -> Result<PathBuf> {
    if laggard_files::exists(output) {
        bail!(
            "{}: exists; choose another directory for the archive",
            output.display()
        );
    }
    // The library would create it.
    let above = output
        .parent()
        .filter(|above| !above.as_os_str().is_empty());
    if let Some(above) = above.filter(|above| !above.is_dir()) {
        bail!("{}: {} is no directory", output.display(), above.display());
    }
    let markers = report.map_or_else(Vec::new, |report| markers::of(&events, report));
    let opened = events.into_trace();
    let mut symbols = Symbols::new();
    let mut names = Names::default();
    names.string(b"");
    let mut definitions = Definitions::default();
    let locations: Vec<u64> = (0..opened.ranks).map(|rank| location_id(rank, 0)).collect();
    let group = Group {
        kind: group_kind::COMM_LOCATIONS,
        paradigm: PARADIGM_MPI,
        members: locations.clone(),
    };
    definitions.groups.insert(0, vec![group]);
    let all = opened.locations.iter().map(|traced| &traced.location);
    let groups = Groups::gather(all, opened.ranks, &mut names, &mut definitions);
    let all = opened.locations.iter().map(|traced| &traced.location);
    let mut teams = Teams::gather(all, &definitions);
    let creator = concat!("laggard ", env!("CARGO_PKG_VERSION"));
    let mut archive = ArchiveWriter::create(output, "traces", creator)?;
    let mut end = write_locations(
        &opened,
        (&groups, &mut teams),
        &mut archive,
        (&mut names, &mut symbols),
        &definitions,
    )?;
    let traced = opened.locations.iter();
    let headers = traced.map(|traced| (traced.location.header.rank, traced.location.header.thread));
    let headers: BTreeSet<(u32, u32)> = headers.collect();
    for rank in (0..opened.ranks).filter(|&rank| !headers.contains(&(rank, 0))) {
        // Readers want all ranks, even if nothing is known of this one.
        let events = archive.begin(location_id(rank, 0))?;
        archive.end(events)?;
    }
    teams.define(&mut names, &mut definitions);
    describe(&opened, &headers, &mut names, &mut definitions);
    end = end.max(
        markers
            .iter()
            .map(|m| m.time + m.duration)
            .max()
            .unwrap_or(0),
    );
    definitions.clock = Some(Clock {
        resolution: 1_000_000_000,
        global_offset: 0,
        length: end + 1,
        realtime_ns: u64::MAX,
    });
    let any = Attribute {
        name: names.string(ANY.as_bytes()),
        description: names.string(b"posted with any source (1), any tag (2)"),
        kind: BYTE,
    };
    definitions.attributes.insert(ANY_NUMBER, any);
    for (number, name) in TOLD_NUMBERS.into_iter().zip(TOLD) {
        let told = Attribute {
            name: names.string(name.as_bytes()),
            description: names.string(b"of a call, as in a trace of laggard"),
            kind: LONG,
        };
        definitions.attributes.insert(number, told);
    }
    definitions.properties = names.properties;
    definitions.strings = names.defined.strings;
    definitions.regions = names.defined.regions;
    definitions.metrics = names.defined.metrics;
    definitions.places = names.defined.places;
    definitions.contexts = names.defined.contexts;
    definitions.generators = names.defined.generators;
    archive
        .finish(&definitions, &markers)
        .with_context(|| format!("{}: cannot write the archive", output.display()))?;
    Ok(output.join("traces.otf2"))
}

/// Writes the events of all locations; returns the time of the last one.
fn write_locations(
    opened: &Trace,
    (groups, teams): (&Groups, &mut Teams),
    archive: &mut ArchiveWriter,
    (names, symbols): (&mut Names, &mut Symbols),
    definitions: &Definitions,
) -> Result<u64> {
    let mut end = 0;
    let periods = opened
        .locations
        .iter()
        .filter_map(|traced| sampled(&traced.location));
    let period = periods.min();
    if let Some(period) = period {
        names.defined.generators.insert(GENERATOR, period);
    }
    for traced in &opened.locations {
        let header = &traced.location.header;
        let mut events = archive.begin(location_id(header.rank, header.thread))?;
        let program = (header.thread == 0).then(|| program(opened, names));
        let mut writer = Writer {
            archive,
            events: &mut events,
            traced,
            groups,
            teams,
            names,
            definitions,
            symbols,
            has_contexts: period.is_some(),
            period: period.unwrap_or(0),
        };
        let last = writer.write(program)?;
        writer.profile_regions();
        if header.thread == 0 && last > 0 {
            archive.write(&mut events, last, &Event::ProgramEnd)?;
        }
        end = end.max(last);
        archive.end(events)?;
    }
    Ok(end)
}

/// The time of the processor between two samples of a location, ns; `None` if it has none.
fn sampled(location: &TraceLocation) -> Option<u64> {
    let definitions = &location.definitions;
    let has = |name| !definitions.properties(name).is_empty();
    let is_sampled = has("sampled_by") || !has("not_sampled");
    definitions.sample_period().filter(|_| is_sampled)
}

/// The beginning of the program. SCOUT looks for a region with the name of its file and the whole
/// command as canonical name.
fn program(opened: &Trace, names: &mut Names) -> Event {
    let mut words = opened.program.iter().map(|word| word.as_bytes());
    let name = words.next().unwrap_or(b"program");
    let file = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
    let region = names.region((file, b"", 0), ROLES.1, PARADIGMS.1);
    let canonical = match opened.program.is_empty() {
        true => names.string(name),
        false => names.string(opened.program.join(" ").as_bytes()),
    };
    if let Some(region) = names.defined.regions.get_mut(&region) {
        region.canonical = canonical;
    }
    let name = names.string(name);
    let arguments: Vec<u32> = words.map(|word| names.string(word)).collect();
    Event::Program(name, arguments.into())
}

/// Hosts, processes and locations.
fn describe(
    opened: &Trace,
    headers: &BTreeSet<(u32, u32)>,
    names: &mut Names,
    definitions: &mut Definitions,
) {
    let machine = names.string(b"machine");
    let class = names.string(b"node");
    definitions.nodes.insert(0, (machine, machine, UNDEFINED));
    for (number, host) in opened.hosts.iter().enumerate() {
        let name = names.string(host.as_bytes());
        definitions
            .nodes
            .insert(1 + number as u32, (name, class, 0));
    }
    let mut host_of: Vec<u32> = vec![0; opened.ranks as usize];
    for traced in &opened.locations {
        // They are sorted.
        let host = opened.hosts.binary_search(&traced.host);
        host_of[traced.location.header.rank as usize] = host.map_or(0, |at| 1 + at as u32);
    }
    for (rank, node) in host_of.iter().enumerate() {
        let name = names.string(format!("MPI Rank {rank}").as_bytes());
        definitions.processes.insert(rank as u32, (name, *node));
    }
    let mut all: BTreeSet<(u32, u32)> = (0..opened.ranks).map(|rank| (rank, 0)).collect();
    all.extend(headers);
    for (rank, thread) in all {
        let name = match thread {
            0 => "Master thread".to_owned(),
            thread => format!("Thread {thread}"),
        };
        definitions.locations.push(Location {
            id: location_id(rank, thread),
            name: names.string(name.as_bytes()),
            kind: THREAD,
            events: 0,
            group: rank,
        });
    }
}
