//! All events of a trace, for exporters: single calls, messages with both ends, collectives with
//! their members, and the losses of each call.
//!
//! *Data flow.* [`Events::open`] opens a trace as an analysis does. [`Events::operations`] reads
//! the calls of one location; locations can be read at the same time. [`Events::join`] goes over
//! all locations once, in slabs of global time, with the matching of the analysis, and gives
//! complete events to a [`Joined`].
//!
//! *Constraints.* Memory does not grow with the length of the trace: calls are read from the mapped
//! files, and only messages under way are kept. Times are ns since the first call of the run, with
//! the corrected clocks of a report.

mod among;
mod course;
mod growing;
mod joined;
mod matching;
mod names;
mod operations;
mod parallel;
mod placed;
mod spent;
mod sweep;
mod trace;
mod window;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use anyhow::Result;
use laggard_report::{Anomaly, Settings};
use laggard_trace::{
    Grid, LIMIT_PAUSED, Location, OpenCall, ProfileEntry, REGION_FUNCTION, REGION_NAMED,
    REGION_PHASE,
};
use rustc_hash::FxHashMap;

use crate::basics::intern::PathKey;
pub use crate::basics::spill::{Piece, Spill};
use crate::clock::ClockMap;
pub use crate::clock::Moves;
use crate::findings::regions;
pub use crate::findings::regions::name as region_name;
use crate::input::open::Opened;
use crate::input::profile::profile_of;
use crate::input::regions::regions_of;
use crate::judge::profile;
use crate::options::AnalyzeOptions;
use crate::phases::Phases;
use crate::replay::preparation::Judged;
use crate::replay::rounds::Rounds;
use crate::replay::slab;
use crate::report::eager;
pub use crate::stream::looks::{Look, LookAt, NotedLook};
pub use crate::stream::polling::IN_A_ROW;
pub use crate::stream::rows::TimeClass;
pub use crate::stream::within::{Nest, begins_region};
use crate::symbols::Symbols;
use crate::timeline::repair::Timeline;
pub use crate::waits::log::{ShortLate, ShortWait};
pub use among::{Among, UNNAMED};
pub use course::Course;
pub use growing::Growing;
pub use joined::{ByCall, Collective, Joined, LateCall, Member, Message, MessageEnd, Party, Wait};
use laggard_comm::{Job, Serial};
pub use names::{CallPath, Group, GroupKind};
pub use operations::{Calls, Item, Mark, OUTSIDE, Operation, Operations, Outcome, Outside};
pub use parallel::{InRegion, Regions};
pub use placed::Placed;
pub use spent::{Spent, SpentIn};
pub use sweep::{SlabOfCalls, Sweep};
pub use trace::{Trace, TracedLocation};

/// No index.
pub const NONE: u32 = u32::MAX;

/// The events of a run: of all its locations, or of those of one agent. Positions of locations are
/// among these, where nothing else is said.
pub struct Events {
    directory: PathBuf,
    opened: Opened,
    /// All locations of the run, by rank and thread.
    pub placed: Vec<Placed>,
    /// Position of the first own one among them.
    pub first: usize,
    timeline: Timeline,
    clocks: Vec<ClockMap>,
    /// Call paths by number; 0 is the unknown one.
    pub call_paths: Vec<CallPath>,
    /// Numbers of call paths, by location and id.
    path_numbers: Vec<Vec<u32>>,
    path_of_key: FxHashMap<PathKey, u32>,
    /// Names of regions of the program, by location and id.
    region_names: Vec<Vec<String>>,
    /// Communicators, windows and files, ascending by id.
    pub groups: Vec<Group>,
    /// Anomalies of the files, the worst first.
    pub anomalies: Vec<Anomaly>,
}

/// One location.
#[derive(Clone, Copy, Debug)]
pub struct Place<'e> {
    /// Rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Thread of the rank.
    pub thread: u32,
    /// Name of its host.
    pub host: &'e str,
    /// Process.
    pub pid: u32,
    /// When its first call began, or another thread started it, ns.
    pub first_ns: i64,
    /// When its last call ended, ns.
    pub last_ns: i64,
    /// The thread of the rank that started it, if the trace tells.
    pub creator: Option<u32>,
    /// Whether its file was closed.
    pub is_complete: bool,
    /// Whether its recording was paused at times, or left calls out.
    pub was_paused: bool,
    /// Records in the file, about as many as calls.
    pub records: u64,
}

impl Place<'_> {
    /// When a further thread of its rank was started, as far as that is known; else when its first call began, ns.
    pub fn born_ns(&self) -> Option<i64> {
        (self.thread > 0).then_some(self.first_ns)
    }
}

/// Sums of one call on one call path at one location. ns.
#[derive(Clone, Copy, Debug)]
pub struct ProfileRow {
    /// Number of the call.
    pub call: u16,
    /// Number of the call path.
    pub call_path: u32,
    /// Calls.
    pub count: u64,
    /// Time in them.
    pub total_ns: u64,
    /// The shortest.
    pub minimum_ns: u64,
    /// The longest.
    pub maximum_ns: u64,
    /// Bytes that they moved.
    pub bytes: u64,
}

/// Source of a region of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionKind {
    /// The program names it.
    Region,
    /// The compiler instruments it: a function.
    Function,
    /// A marker; lasts until the next one.
    Phase,
}

impl RegionKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [RegionKind; 3] = [RegionKind::Region, RegionKind::Function, RegionKind::Phase];

    fn of(kind: u32) -> Option<RegionKind> {
        match kind {
            REGION_NAMED => Some(RegionKind::Region),
            REGION_FUNCTION => Some(RegionKind::Function),
            REGION_PHASE => Some(RegionKind::Phase),
            _ => None,
        }
    }

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            RegionKind::Region => "region",
            RegionKind::Function => "function",
            RegionKind::Phase => "phase",
        }
    }
}

/// Sums of one region at one location.
#[derive(Clone, Copy, Debug)]
pub struct RegionSums<'e> {
    /// Its name.
    pub name: &'e str,
    /// Its source.
    pub kind: RegionKind,
    /// Call path of its first instance; for a function, its entry.
    pub call_path: u32,
    /// Instances with a known time.
    pub count: u64,
    /// Further instances, without a known time.
    pub untimed: u64,
    /// Inclusive time, ns.
    pub inclusive_ns: u64,
    /// Exclusive time, ns: without recorded calls and nested regions.
    pub exclusive_ns: u64,
    /// Least exclusive time of an instance, ns.
    pub minimum_ns: u64,
    /// Most exclusive time of an instance, ns.
    pub maximum_ns: u64,
    /// Instances without an end.
    pub unended: u64,
    /// Ends without a begin.
    pub unbegun: u64,
}

impl Events {
    /// Opens a directory or an archive. Unusable files are anomalies if others are usable.
    ///
    /// # Errors
    /// There is no usable file, or files are of two runs.
    pub fn open(directory: &Path) -> Result<Events> {
        Events::open_share(&Serial, directory)
    }

    /// Opens this agent's share of a directory or an archive. The head has the anomalies of all.
    /// Collective.
    ///
    /// # Errors
    /// As [`open`](Self::open); the same on all agents.
    pub fn open_share(job: &dyn Job, directory: &Path) -> Result<Events> {
        let (opened, anomalies) = trace::open_share(job, directory)?;
        let timeline = timeline(job, &opened)?;
        Events::of(job, directory, (opened, anomalies), timeline)
    }

    /// The events of an opened trace. Collective.
    fn of(
        job: &dyn Job,
        directory: &Path,
        (mut opened, mut anomalies): (Opened, Vec<Anomaly>),
        timeline: Timeline,
    ) -> Result<Events> {
        let mut symbols = Symbols::new();
        for location in &mut opened.locations {
            regions::name_instances(location, &mut symbols);
        }
        let paths = names::call_paths(&opened.locations, &mut symbols);
        let named = opened.locations.iter();
        let region_names = named.map(|location| regions::labels(location, &mut symbols));
        let region_names = region_names.collect();
        anomalies.extend(symbols.anomalies());
        let anomalies = placed::anomalies_of_all(job, anomalies)?;
        let placed = placed::of_all(job, &opened)?;
        let first = opened.locations.first().map_or(0, |own| {
            let own = (own.header.rank, own.header.thread);
            placed.partition_point(|one| (one.rank, one.thread) < own)
        });
        Ok(Events {
            placed,
            first,
            directory: directory.to_owned(),
            groups: names::groups(&opened.locations),
            clocks: own_clocks(&timeline, &opened),
            timeline,
            call_paths: paths.all,
            path_numbers: paths.numbers,
            path_of_key: paths.of_key,
            region_names,
            anomalies,
            opened,
        })
    }

    /// The same trace as files, for users of the raw records.
    pub fn into_trace(self) -> Trace {
        Trace::new(self.opened, &self.timeline, self.anomalies)
    }

    /// Program and arguments.
    pub fn program(&self) -> &[String] {
        &self.opened.run.program
    }

    /// Id of the recording.
    pub fn run_id(&self) -> [u8; 16] {
        self.opened.run.run_id
    }

    /// Size of `MPI_COMM_WORLD`.
    pub fn ranks(&self) -> u32 {
        self.opened.agent_of.len() as u32
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.opened.run.bytes
    }

    /// When the run ended, ns.
    pub fn end_ns(&self) -> i64 {
        self.timeline.end(&self.opened)
    }

    /// The largest message that is sent without waiting for its receive, bytes; `None`: unknown.
    pub fn eager_limit(&self) -> Option<f64> {
        Some(eager::limit_of(&self.opened)?.bytes)
    }

    /// Names of the run's hosts.
    pub fn hosts(&self) -> &[String] {
        &self.opened.host_names
    }

    /// Number of locations.
    pub fn locations(&self) -> usize {
        self.opened.locations.len()
    }

    /// A location by position; positions ascend by rank and thread.
    pub fn place(&self, location: usize) -> Place<'_> {
        let found: &Location = &self.opened.locations[location];
        let header = &found.header;
        let (clock, span) = (&self.clocks[location], self.opened.own[location].1);
        Place {
            rank: header.rank,
            thread: header.thread,
            host: self.opened.host_of(header.rank),
            pid: header.pid,
            first_ns: clock.ns(span.0),
            last_ns: clock.ns(span.1),
            creator: self.opened.bounds[location].creator,
            is_complete: found.end.is_some(),
            was_paused: found.end.is_some_and(|end| end.limits & LIMIT_PAUSED != 0),
            records: found
                .chunks
                .iter()
                .map(|chunk| u64::from(chunk.count))
                .sum(),
        }
    }

    /// The calls of one location, in order of return.
    pub fn operations(&self, location: usize) -> Operations<'_> {
        Operations::from(self, location, Mark::default(), (&[], None))
    }

    /// The calls of one location after a mark that [`Operations::mark`] gave for it. `within` are signatures of the calls that
    /// began the parallel regions around it, the innermost one last. `shortest` is the shortest look before it, ns, see
    /// [`NotedLook::shortest`].
    pub fn operations_from(
        &self,
        location: usize,
        mark: Mark,
        (within, shortest): (&[u32], Option<i64>),
    ) -> Operations<'_> {
        Operations::from(self, location, mark, (within, shortest))
    }

    /// The files of the trace.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let mut files: Vec<&Path> = self.opened.locations.iter().map(|l| l.path()).collect();
        files.sort_unstable();
        files.dedup();
        files.into_iter()
    }

    /// The files of this agent's locations, and how many bytes of each are in use.
    pub fn used(&self) -> impl Iterator<Item = (&Path, u64)> {
        let locations = self.opened.locations.iter();
        locations.map(|location| (location.path(), location.used()))
    }

    /// The call in which a location is now, if it is still written, or was when its file ended.
    pub fn open_call(&self, location: usize) -> Option<OpenCall> {
        let found: &Location = &self.opened.locations[location];
        let may_be = found.end.is_none_or(|end| matches!(end.reason, 1 | 3));
        found.open_call_now().filter(|_| may_be)
    }

    /// The number of the user's wish that a location follows now.
    pub fn steered(&self, location: usize) -> u32 {
        self.opened.locations[location].steered_now()
    }

    /// The Cartesian communicators of a location, and where it is in them.
    pub fn grids(&self, location: usize) -> &[Grid] {
        &self.opened.locations[location].definitions.grids
    }

    /// The communicators that have a name at a location, by id, with those names; the last one of an id counts.
    pub fn communicator_names(&self, location: usize) -> impl Iterator<Item = (u64, Cow<'_, str>)> {
        let definitions = &self.opened.locations[location].definitions;
        let named = definitions.communicators.iter().filter(|one| one.name != 0);
        named.map(|one| (one.id, definitions.string(one.name)))
    }

    /// Name of the place of a call path of a location: the line that made a call.
    pub fn place_of(&self, location: usize, call_path: u32) -> &CallPath {
        &self.call_paths[self.path_number(location, call_path) as usize]
    }

    /// The profile of one location: as recorded, or the sums of the calls if its file was not
    /// closed.
    pub fn profile(&self, location: usize) -> Vec<ProfileRow> {
        let clock = &self.clocks[location];
        let ns = |ticks: u64| clock.length_ns(ticks) as u64;
        let entries = profile_of(&self.opened.locations[location]);
        let row = |entry: ProfileEntry| ProfileRow {
            call: entry.operation,
            call_path: self.path_number(location, entry.call_path),
            count: entry.count,
            total_ns: ns(entry.total),
            minimum_ns: ns(entry.minimum),
            maximum_ns: ns(entry.maximum),
            bytes: entry.bytes,
        };
        entries.into_iter().map(row).collect()
    }

    /// What calls of a location's signature have in common: number of the call, of its call path, and id of its communicator,
    /// window or file; 0 if it has none.
    pub fn site(&self, location: usize, signature: u32) -> Option<(u16, u32, u64)> {
        let signatures = self.opened.locations[location].definitions.signatures();
        let found = signatures.get(signature as usize)?;
        let path = self.path_number(location, found.call_path);
        Some((found.operation, path, found.group))
    }

    /// The profile of the regions of one location.
    pub fn regions(&self, location: usize) -> impl Iterator<Item = RegionSums<'_>> {
        let clock = &self.clocks[location];
        let ns = |ticks: u64| clock.length_ns(ticks) as u64;
        let names = &self.region_names[location];
        let found: &Location = &self.opened.locations[location];
        let entries = regions_of(found).into_owned();
        entries.into_iter().filter_map(move |entry| {
            let region = found.definitions.regions().get(entry.region as usize)?;
            Some(RegionSums {
                name: names.get(entry.region as usize)?,
                kind: RegionKind::of(region.kind)?,
                call_path: self.path_number(location, region.call_path),
                count: entry.count,
                untimed: entry.untimed,
                inclusive_ns: ns(entry.inclusive),
                exclusive_ns: ns(entry.exclusive),
                minimum_ns: ns(entry.minimum),
                maximum_ns: ns(entry.maximum),
                unended: entry.unended,
                unbegun: entry.unbegun,
            })
        })
    }

    /// Goes over all locations once and gives the joined events to `to`. Waits are those of single calls: only
    /// a report has what they lost together ([`PatternId::TOGETHER`](laggard_patterns::PatternId::TOGETHER)).
    ///
    /// # Errors
    /// The errors of `to`.
    pub fn join(&self, to: &mut dyn Joined) -> Result<()> {
        with_rounds(
            &Serial,
            (&self.opened, &self.timeline),
            &[],
            |rounds, groups| matching::join(self, rounds, groups, to),
        )
    }

    /// Goes over this agent's locations once, and gives what each one did to what takes it, by location.
    /// Collective.
    ///
    /// # Errors
    /// The same on all agents.
    pub fn sweep<T: Sweep>(&self, job: &dyn Job, to: &mut [T]) -> Result<()> {
        with_rounds(
            job,
            (&self.opened, &self.timeline),
            &[],
            |rounds, groups| {
                sweep::sweep(self, rounds, groups, to);
                Ok(())
            },
        )
    }

    /// The directory, and the clocks of a run that is as recorded but for its times. `moves` are by
    /// location.
    pub(crate) fn moved(&self, moves: Vec<Moves>) -> (&Path, Timeline) {
        (&self.directory, self.timeline.moved(moves))
    }

    fn path_number(&self, location: usize, id: u32) -> u32 {
        let numbers = &self.path_numbers[location];
        numbers.get(id as usize).copied().unwrap_or(0)
    }

    /// Position of a group in `groups`; [`NONE`] if there is no such group.
    fn group_number(&self, id: u64) -> u32 {
        let found = self.groups.binary_search_by_key(&id, |group| group.id);
        found.map_or(NONE, |at| at as u32)
    }
}

/// The clocks of a trace, corrected as in an analysis. Collective.
fn timeline(job: &dyn Job, opened: &Opened) -> Result<Timeline> {
    let measured = Timeline::new(opened);
    if !measured.has_several() {
        return Ok(measured);
    }
    with_rounds(job, (opened, &measured), &[], |rounds, groups| {
        let phases = Phases::new(job, &AnalyzeOptions::default());
        let settled = rounds.settle(measured.clone(), groups, &phases)?;
        Ok(settled.timeline)
    })
}

/// Prepares an analysis that asks about every instance. Groups that are `known` keep their numbers.
fn with_rounds<T>(
    job: &dyn Job,
    (opened, timeline): (&Opened, &Timeline),
    known: &[u64],
    run: impl FnOnce(&Rounds, crate::collectives::group::Groups) -> Result<T>,
) -> Result<T> {
    let profiled = profile::of_all(opened, &timeline.own(opened), None);
    let settings = Settings {
        all: true,
        ..Settings::default()
    };
    let baseline = AnalyzeOptions::default().baseline;
    let judged = Judged::new(job, opened, &profiled, &settings, baseline.as_ref(), known)?;
    let rounds = Rounds {
        job,
        opened,
        profiled: &profiled,
        verdicts: &judged.verdicts,
        numbers: &judged.numbers,
        all: true,
        keeps_writes: false,
        shares: true,
        roots: false,
        is_bare: true,
        records: slab::size(job, opened.locations.len()),
    };
    run(&rounds, judged.groups)
}

fn own_clocks(timeline: &Timeline, opened: &Opened) -> Vec<ClockMap> {
    let own = timeline.own(opened).into_iter();
    own.map(|(clock, _)| clock).collect()
}
