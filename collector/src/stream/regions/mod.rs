//! Regions of the program: the open ones, and the profile of all.
//!
//! Regions nest, records do not. A region is therefore mainly a profile, kept here and written
//! at the end. An instance also becomes one record, written at its end, if it lasted long
//! enough or if an operation map names it. Without recorded calls inside, the record looks like
//! that of a call. Otherwise it has no duration, stands at the end, and an extension gives the
//! time since the begin.
//!
//! A named region is a frame in the call paths of the calls inside it. The open ones form a
//! chain of numbered *nodes*, so two numbers identify a path within them.

mod computed;
mod functions;
mod stack;
mod within;

use std::time::Duration;

use laggard_callpath::{CallSite, PathId};
use laggard_trace::calls::user::REGION;
use laggard_trace::{
    Definition, Extension, REGION_FUNCTION, REGION_NAMED, REGION_PHASE, REGION_UNTIMED, Record,
    Region as Defined, RegionEntry,
};

use computed::{Computed, InKernel};

use super::Stream;
use crate::clock;
use crate::groups::Group;
use crate::hash::FastMap;
use crate::operations;
use crate::signature::{Lookup, Raw};

/// Shorter instances are in the profile only.
const LEAST_RECORDED: Duration = Duration::from_micros(20);
/// A function with an average duration below this…
const TINY: Duration = Duration::from_nanos(500);
/// …over this number of calls is only counted from then on.
const TRIED: u64 = 1000;
/// Most regions of a location.
const MOST_REGIONS: usize = 65_536;
/// Most regions open at once.
const MOST_OPEN: usize = 1024;
/// Most remembered paths within regions.
const MOST_PATHS: usize = 65_536;
/// Longest name, bytes.
pub const LONGEST_NAME: usize = 255;

/// Kind of region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// Named by the program.
    Named = REGION_NAMED,
    /// A function that the compiler instrumented.
    Function = REGION_FUNCTION,
    /// From one phase marker to the next.
    Phase = REGION_PHASE,
}

/// The profile of a region; ticks.
struct Region {
    kind: Kind,
    entry: RegionEntry,
    /// Sum over all instances, including nested ones of the same region.
    total: u64,
    /// Number of open instances.
    open: u32,
    /// Calls are only counted.
    is_tiny: bool,
    /// An operation map names it: all instances are recorded.
    is_kept: bool,
    /// Call path of a function's entry.
    entry_path: u32,
}

/// A variable that a region waits for, if the program named one.
#[derive(Clone, Copy, Default)]
pub struct Variable {
    /// Address as in the trace; 0 = none.
    pub address: u64,
    /// The window that contains it.
    pub window: Option<&'static Group>,
}

/// An open region.
#[derive(Clone, Copy)]
struct Open {
    /// Index into the list of regions.
    region: u32,
    /// Number of calls of tiny functions directly inside it, which are not on the stack.
    skipped: u32,
    enter: u64,
    /// Ticks in calls at the begin.
    inside: u64,
    /// Ticks outside of calls in nested regions.
    nested: u64,
    /// Ticks outside of calls that the enclosing region already counts as nested.
    told: u64,
    /// Ticks in nested instances of which the next call tells by themselves.
    apart: u64,
    /// Frame of a function on the thread's own stack.
    frame: Option<Frame>,
    /// Number of recorded calls at the begin.
    recorded: u64,
    /// Call path of the begin.
    path: u32,
    /// Whether the program named it.
    is_named: bool,
    /// Node of a named region.
    node: u32,
    /// Variable that it waits for.
    variable: Variable,
    /// Begun while recording was paused.
    is_paused: bool,
    /// Pauses until then.
    pauses: u32,
}

/// A named region in a chain of open ones.
struct Node {
    outer: u32,
    region: u32,
    name: Box<str>,
    /// Call path of the begin, without frames of regions.
    begun: PathId,
}

/// All regions of a location.
#[derive(Default)]
pub struct Regions {
    all: Vec<Region>,
    /// Functions by address, until a library is unloaded.
    functions: FastMap<u64, u32>,
    unloads: u32,
    /// Functions by call path.
    entries: FastMap<u32, u32>,
    named: FastMap<Box<[u8]>, u32>,
    phases: FastMap<Box<[u8]>, u32>,
    open: Vec<Open>,
    /// Numbers of open functions and of open named regions beyond the limit.
    beyond: [u64; 2],
    /// Frame of the first of these functions.
    beyond_frame: Option<Frame>,
    /// Whether any region was beyond the limit or got no number.
    are_left_out: bool,
    phase: Option<Open>,
    nodes: Vec<Node>,
    /// Node by outer node, region and call path of the begin.
    node_of: FastMap<(u32, u32, u32), u32>,
    /// Paths within regions.
    paths: FastMap<(u32, u32), PathId>,
    /// Number of instances that became records.
    recorded: u64,
    /// Of the stretch that lasts, and of the one before the looks that are not in the trace yet.
    computed: Computed,
    computed_before_looks: Computed,
    in_kernel: InKernel,
    least: u64,
    tiny: u64,
}

/// The moment of a begin or end.
#[derive(Clone, Copy)]
pub struct Moment {
    /// Ticks.
    pub now: u64,
    /// Ticks in calls so far.
    pub inside: u64,
    /// Whether recording is paused.
    pub is_paused: bool,
    /// How often it was paused so far.
    pub pauses: u32,
    /// Frame of a function on the thread's own stack.
    pub frame: Option<Frame>,
}

/// The place of a function on the stack.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Stack pointer.
    pub sp: u64,
    /// Return address. A function and those inlined into it share this and `sp`.
    pub caller: u64,
    /// Address in the function that reported the event.
    pub told: u64,
}

impl Moment {
    /// Ticks that an instance spent outside of calls.
    fn outside(&self, open: &Open) -> u64 {
        let inclusive = self.now.saturating_sub(open.enter);
        inclusive.saturating_sub(self.inside.wrapping_sub(open.inside))
    }
}

impl Stream {
    fn regions(&mut self) -> &mut Regions {
        self.regions.get_or_insert_with(|| Box::new(Regions::new()))
    }

    /// Begins a region with this name, with or without a variable to wait for.
    pub fn begin_region(
        &mut self,
        name: &[u8],
        variable: Variable,
        site: CallSite,
        mut at: Moment,
    ) {
        let Some(region) = self.named(name, Kind::Named, site) else {
            return;
        };
        // SAFETY: the call site of the caller that runs now on this thread.
        let begun = unsafe { self.tracer.capture(&site, self.depth) };
        let path = self.path(&site);
        let outer = self.within;
        let regions = self.regions();
        let next = regions.nodes.len() as u32 + 1;
        let key = (outer, region, begun.0);
        let node = match regions.node_of.get(&key) {
            Some(&node) => node,
            // A nested instance of the same region shares its frame.
            None if regions.is_node_of(outer, region) => outer,
            // Beyond the limit a region is no frame in call paths.
            None if regions.nodes.len() >= MOST_REGIONS => outer,
            None => {
                let name = String::from_utf8_lossy(cut(name)).into_owned().into();
                regions.nodes.push(Node {
                    outer,
                    region,
                    name,
                    begun,
                });
                regions.node_of.insert(key, next);
                next
            }
        };
        // The region's time excludes the work above.
        at.now = clock::now();
        if self.push_open(region, path, Some(node), variable, at) {
            self.within = node;
        }
    }

    /// Ends the region with this name. Returns whether it was never begun. `early`: it may have
    /// begun before the recording.
    pub fn end_region(&mut self, name: &[u8], site: CallSite, at: Moment, early: bool) -> bool {
        let Some(region) = self.named(name, Kind::Named, site) else {
            return false;
        };
        let regions = self.regions();
        if regions.beyond[1] > 0 {
            regions.beyond[1] -= 1;
            return false;
        }
        let Some(position) = regions.find(region) else {
            regions.all[region as usize].entry.unbegun += u64::from(!early);
            return true;
        };
        // Functions entered since stay open; named regions should have ended before.
        let mut open = regions.remove(position);
        let mut at_stack = position;
        while let Some(inner) = regions.open.get(at_stack).copied() {
            if !inner.is_named {
                at_stack += 1;
                continue;
            }
            regions.remove(at_stack);
            open.apart += inner.apart;
            regions.all[inner.region as usize].entry.unended += 1;
        }
        let computed = regions.end(open, position, at);
        self.within = regions.node();
        self.record_region(&open, open.path, at);
        if computed > 0 {
            self.computed_in(&open, computed);
        }
        false
    }

    /// Begins a phase. It ends when the next one begins.
    pub fn phase(&mut self, name: &[u8], site: CallSite, at: Moment) {
        let Some(region) = self.named(name, Kind::Phase, site) else {
            return;
        };
        let path = self.path(&site);
        let recorded = self.recorded + u64::from(self.polling.count);
        let next = Open {
            region,
            skipped: 0,
            enter: at.now,
            inside: at.inside,
            nested: 0,
            told: 0,
            apart: 0,
            frame: None,
            recorded,
            path,
            is_named: false,
            node: 0,
            variable: Variable::default(),
            is_paused: at.is_paused,
            pauses: at.pauses,
        };
        self.end_phase(at);
        self.regions().phase = Some(next);
    }

    /// Ends the phase that is under way.
    pub fn end_phase(&mut self, at: Moment) {
        let regions = self.regions.as_mut();
        if let Some((regions, last)) = regions.and_then(|all| {
            let last = all.phase.take()?;
            Some((all, last))
        }) {
            // Phases enclose regions and are not on their stack.
            regions.count(&last, at);
            self.record_region(&last, last.path, at);
        }
    }

    /// Pushes an instance onto the stack; `false` if the stack is full.
    fn push_open(
        &mut self,
        region: u32,
        path: u32,
        node: Option<u32>,
        variable: Variable,
        at: Moment,
    ) -> bool {
        let recorded = self.recorded + u64::from(self.polling.count);
        let regions = self.regions();
        if regions.open.len() >= MOST_OPEN {
            let beyond = &mut regions.beyond[usize::from(node.is_some())];
            *beyond += 1;
            if node.is_none() && *beyond == 1 {
                regions.beyond_frame = at.frame;
            }
            regions.are_left_out = true;
            return false;
        }
        regions.all[region as usize].open += 1;
        regions.open.push(Open {
            region,
            skipped: 0,
            enter: at.now,
            inside: at.inside,
            nested: 0,
            told: 0,
            apart: 0,
            frame: at.frame,
            recorded,
            path,
            is_named: node.is_some(),
            node: node.unwrap_or(0),
            variable,
            is_paused: at.is_paused,
            pauses: at.pauses,
        });
        true
    }

    /// Writes an ended instance as a record, if it lasted long enough.
    fn record_region(&mut self, open: &Open, path: u32, at: Moment) {
        let duration = at.now.saturating_sub(open.enter);
        let regions = self.regions();
        let is_recorded = regions.is_recorded(open, duration);
        if !is_recorded || open.is_paused || at.is_paused || !self.is_writing() {
            return;
        }
        let is_bare = self.recorded + u64::from(self.polling.count) == open.recorded;
        let mut raw = Raw::new(REGION, path);
        raw.extra = u64::from(open.region) + 1;
        let Variable { address, window } = open.variable;
        if let Some(window) = window {
            self.define_group(window);
            raw.group = window;
        }
        let (Lookup::Known(found) | Lookup::New(found)) = self.find_or_make(&raw) else {
            return;
        };
        let mut extensions = Vec::new();
        if address != 0 {
            extensions.push(Record::extension_u64(Extension::Address, address));
        }
        let enter = match is_bare {
            true => open.enter,
            false => {
                extensions.push(Record::extension_u64(Extension::Value, duration));
                at.now
            }
        };
        // What is told of the stretch that lasts is told with the call that ends it.
        let pending = std::mem::take(&mut self.stretches.pending);
        if self.polling.count == 0 {
            self.write_changes(0, enter);
        }
        self.push_extended(&extensions, enter, at.now, found.id);
        self.write_changes(at.now, at.now);
        self.stretches.pending |= pending;
        self.regions().recorded += 1;
    }

    /// The region or phase with this name.
    fn named(&mut self, name: &[u8], kind: Kind, site: CallSite) -> Option<u32> {
        let name = cut(name);
        let regions = self.regions();
        let known = match kind {
            Kind::Phase => &regions.phases,
            _ => &regions.named,
        };
        if let Some(&region) = known.get(name) {
            return Some(region);
        }
        let is_kept = kind == Kind::Named && operations::is_named(name);
        let region = regions.add(kind, is_kept, 0)?;
        match kind {
            Kind::Phase => regions.phases.insert(name.into(), region),
            _ => regions.named.insert(name.into(), region),
        };
        let path = self.path(&site);
        let mut definitions = Vec::new();
        let name = self.string(name, &mut definitions);
        self.define_region(region, kind, name, path, definitions);
        Some(region)
    }

    fn define_region(
        &mut self,
        region: u32,
        kind: Kind,
        name: u32,
        call_path: u32,
        mut definitions: Vec<Definition>,
    ) {
        if self.tracer.has_new() {
            self.define_paths();
        }
        definitions.push(Definition::Region(Defined {
            id: region + 1,
            kind: kind as u32,
            name,
            call_path,
        }));
        self.writer.define(&definitions);
    }

    /// Ends the open regions and writes the profile of all. Returns the number of records, and
    /// whether any region was left out.
    pub(super) fn close_regions(&mut self, inside: u64) -> (u64, bool) {
        let Some(mut regions) = self.regions.take() else {
            return (0, false);
        };
        let at = Moment {
            now: clock::now(),
            inside,
            is_paused: false,
            pauses: 0,
            frame: None,
        };
        while let Some(last) = regions.open.len().checked_sub(1) {
            let open = regions.remove(last);
            regions.end(open, last, at);
            // `main` never returns before the end.
            let region = &mut regions.all[open.region as usize];
            region.entry.unended += u64::from(region.kind == Kind::Named);
        }
        if let Some(last) = regions.phase.take() {
            regions.count(&last, at);
        }
        let entries = regions.all.iter().map(|region| {
            let mut entry = region.entry;
            if entry.count == 0 {
                entry.minimum = 0;
            }
            if region.is_tiny {
                entry.flags |= REGION_UNTIMED;
            }
            entry
        });
        let used = |e: &RegionEntry| (e.count, e.unended, e.unbegun, e.untimed) != (0, 0, 0, 0);
        let entries: Vec<RegionEntry> = entries.filter(used).collect();
        for entries in entries.chunks(128) {
            self.writer.regions(entries);
        }
        (regions.recorded, regions.are_left_out)
    }
}

/// A name cut to the longest length.
fn cut(name: &[u8]) -> &[u8] {
    &name[..name.len().min(LONGEST_NAME)]
}
