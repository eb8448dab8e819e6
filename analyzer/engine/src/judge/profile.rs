//! From opened files to ranks that are ready for pass one: profile, verdicts, tables of signatures,
//! groups.

use std::collections::BTreeMap;

use laggard_baselines::{Baseline, Span};
use laggard_report::Settings;
use laggard_trace::calls::{self, Call, GenericType, Shape};
use laggard_trace::{Location, WORLD, flags};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::basics::intern::{PathKey, path_key, size_of};
use crate::clock::ClockMap;
use crate::input::bounds::{Bounds, is_init};
use crate::input::open::Opened;
use crate::input::profile::profile_of;
use crate::input::spans::Spans;
use crate::judge::account::{Account, Settled};
use crate::judge::detect::{Entry, Filter, Kinds, Verdict, hotspot_share, judge};
use crate::stream::rows::TimeClass;
use crate::stream::thread::Usual;
use crate::stream::traffic::Traffic;

/// Times of one location. ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LocationTimes {
    /// World rank.
    pub rank: u32,
    pub thread: u32,
    /// From the first call to the end of the last, start-up and shut-down included.
    pub all: u64,
    /// On its processor while it was recorded; 0 = not known.
    pub processor: u64,
    /// Between calls: off the processor by itself, off it since others had it, and in the kernel.
    pub outside: [u64; 3],
    /// What counters counted while it computed, and for how long.
    pub counted: Counters,
    /// Until its libraries had started.
    pub startup: u64,
    /// Since the last location entered Finalize.
    pub shutdown: u64,
    /// Inside calls in between, by [`TimeClass`].
    pub inside: [u64; 4],
    /// The part of it for other threads of the rank.
    pub among_threads: u64,
    /// Calls, all of them.
    pub calls: u64,
    /// Charged by patterns.
    pub waiting: u64,
    /// The settled part of the time inside, see [`account::settle`].
    pub settled: Settled,
    /// What it moved, and its wait states.
    pub traffic: Traffic,
}

/// World rank, and number of the thread in the trace.
pub type Who = (u32, u32);

/// What counters counted in computation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Time in which they did, ns.
    pub time: u64,
    /// By name.
    pub counts: BTreeMap<String, u64>,
}

impl Counters {
    /// Adds another part.
    pub fn add(&mut self, other: &Counters) {
        self.time = self.time.saturating_add(other.time);
        for (name, count) in &other.counts {
            match self.counts.get_mut(name) {
                Some(sum) => *sum = sum.saturating_add(*count),
                None => {
                    self.counts.insert(name.clone(), *count);
                }
            }
        }
    }
}

impl LocationTimes {
    pub fn who(&self) -> Who {
        (self.rank, self.thread)
    }

    /// The time that shares refer to: between start-up and shut-down, ns.
    pub fn wall(&self) -> u64 {
        let ends = self.startup.saturating_add(self.shutdown);
        self.all.saturating_sub(ends)
    }

    /// Time outside of calls but for those for other threads of the rank, ns.
    pub fn outside_mpi(&self) -> u64 {
        self.computation().saturating_add(self.among_threads)
    }

    /// Time outside of calls, ns.
    pub fn computation(&self) -> u64 {
        let inside = self.inside.iter().copied();
        self.wall()
            .saturating_sub(inside.fold(0, u64::saturating_add))
    }

    /// The same without what is known to be off the processor, ns.
    pub fn worked(&self) -> u64 {
        let [blocked, preempted, _] = self.outside;
        self.computation()
            .saturating_sub(blocked)
            .saturating_sub(preempted)
    }
}

/// Sums of one (operation, call path) over locations. ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProfileSums {
    /// Calls.
    pub count: u64,
    /// Sum of durations.
    pub total: u64,
    /// Of the shortest and the longest call.
    pub range: Option<(u64, u64)>,
    /// Part of `total` in start-up and shut-down.
    pub ends: u64,
    pub bytes: u64,
    /// The strongest filter that flagged it.
    pub filter: Filter,
    /// Locations for which nobody can tell whether it was slow, see [`Filter::Once`], and their
    /// time in it.
    pub once: (u64, u64),
    /// Whether some group that it was called in has a member without a trace.
    pub members_missing: bool,
    /// Most participants of a call.
    pub members: u32,
}

impl ProfileSums {
    /// Takes the shortest and the longest call of others.
    pub fn extend(&mut self, (shortest, longest): (u64, u64)) {
        self.range = Some(self.range.map_or((shortest, longest), |(least, most)| {
            (least.min(shortest), most.max(longest))
        }));
    }
}

/// The profile of all locations of one or more agents.
pub type Profile = FxHashMap<(u16, PathKey), ProfileSums>;

/// Calls of a location with one call path. ns.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    pub operation: u16,
    /// Id of the call path.
    pub path: u32,
    pub count: u64,
    pub total: u64,
    /// The part of it for files.
    pub on_files: u64,
    pub bytes: u64,
}

/// Time that counts for calls of a thread beside what its profile says: what is not measured is
/// taken away. ns.
#[derive(Clone, Copy, Debug)]
pub struct Beside {
    pub who: Who,
    /// Number and call path.
    pub site: (u16, PathKey),
    pub time: i64,
}

/// Results of the global phase for one location.
pub struct Profiled {
    /// Key of each call path, by id.
    pub paths: Vec<PathKey>,
    /// Entries with their call path's id.
    pub entries: Vec<(u32, Entry)>,
    /// What is kept of the entries to the end.
    pub calls: Box<[Calls]>,
    /// Expected costs of these calls, set once all locations are known.
    pub accounts: Vec<Account>,
    /// Times of the location. All of Finalize and of calls beside the measured time is inside; see
    /// [`Profiled::settled`].
    pub times: LocationTimes,
    bounds: Bounds,
    /// Time in calls that start a library, ticks.
    starting: u64,
    /// Its one-sided transfers.
    pub transfers: Vec<Transfer>,
}

/// A signature of one-sided transfers.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    signature: u32,
    operation: u16,
    bytes: u64,
    /// Span of both ends, if known.
    span: Option<Span>,
    /// The shortest call of the call path, ns, if all of them have this many bytes.
    shortest: Option<u64>,
}

impl Profiled {
    /// The location's times by the final clocks. The last of all locations entered Finalize at
    /// `stopped`, ns. Adds the unmeasured part of Finalize and of other calls to the profile's
    /// `ends`, and takes it away `beside`.
    pub fn settled(
        &self,
        clock: &ClockMap,
        stopped: Option<i64>,
        (profile, beside): (&mut Profile, &mut Vec<Beside>),
    ) -> LocationTimes {
        let ends = self.bounds.ends(clock, self.starting, stopped);
        let mut times = LocationTimes {
            startup: ends.startup,
            shutdown: ends.shutdown,
            ..self.times.clone()
        };
        let finalize = self.bounds.finalize.iter();
        let finalize = finalize.map(|call| ((call.operation, call.call_path), ends.finalizing));
        for ((operation, path), time) in finalize.chain(self.bounds.aside(clock)) {
            let inside = &mut times.inside[TimeClass::of(operation) as usize];
            *inside = inside.saturating_sub(time);
            if is_among_threads(operation) {
                times.among_threads = times.among_threads.saturating_sub(time);
            }
            let path = self.paths.get(path as usize).copied().unwrap_or_default();
            if let Some(sums) = profile.get_mut(&(operation, path)) {
                sums.ends = sums.ends.saturating_add(time);
            }
            beside.push(Beside {
                who: times.who(),
                site: (operation, path),
                time: 0i64.saturating_sub_unsigned(time),
            });
        }
        times
    }

    /// Functions, bytes and least times of transfers.
    pub fn fastest(&self) -> impl Iterator<Item = (u16, u64, u64)> {
        let transfers = self.transfers.iter();
        transfers.filter_map(|t| Some((t.operation, t.bytes, t.shortest?)))
    }
}

/// Whether a call is about other threads of the rank.
fn is_among_threads(operation: u16) -> bool {
    calls::call(operation).is_some_and(Call::is_threads)
}

/// The puts and gets of a location.
fn transfers(location: &Location, entries: &[(u32, Entry)], spans: &Spans) -> Vec<Transfer> {
    let signatures = location.definitions.signatures().iter().enumerate();
    let mut sizes: FxHashMap<(u16, u32), Option<u64>> = FxHashMap::default();
    let mut found = Vec::new();
    for (id, signature) in signatures {
        let half = match calls::call(signature.operation).map(|call| call.generic) {
            Some(GenericType::OneSidedPut) => signature.send,
            Some(GenericType::OneSidedGet) => signature.receive,
            _ => continue,
        };
        let key = (signature.operation, signature.call_path);
        if half.peer < 0 || half.peer as u32 == location.header.rank {
            // To no process or to itself: faster than to any other.
            sizes.insert(key, None);
            continue;
        }
        let bytes = half.bytes;
        let size = sizes.entry(key).or_insert(Some(bytes));
        *size = size.filter(|&size| size == bytes);
        found.push((id as u32, key, bytes, half.peer));
    }
    if found.is_empty() {
        return Vec::new();
    }
    let shortest: FxHashMap<(u16, u32), u64> = entries
        .iter()
        .filter(|(_, entry)| entry.count > 0)
        .map(|(path, entry)| ((entry.operation, *path), entry.minimum))
        .collect();
    let transfer = |(signature, key, bytes, peer): (u32, (u16, u32), u64, i32)| Transfer {
        signature,
        operation: key.0,
        bytes,
        span: spans.of_peer(peer),
        shortest: sizes[&key].and_then(|_| shortest.get(&key).copied()),
    };
    found.into_iter().map(transfer).collect()
}

/// Profiles a location with these bounds. The last location of the run entered Finalize at
/// `stopped`, ns by this clock.
pub fn profile(
    location: &Location,
    clock: &ClockMap,
    bounds: &Bounds,
    stopped: Option<i64>,
    opened: &Opened,
) -> Profiled {
    let span = bounds.span;
    let definitions = &location.definitions;
    let paths = (0..definitions.call_path_count() as u32)
        .map(|id| path_key(definitions, id))
        .collect();
    let ns = |ticks: u64| clock.length_ns(ticks) as u64;
    let mut times = LocationTimes {
        rank: location.header.rank,
        thread: location.header.thread,
        all: (clock.ns(span.1) - clock.ns(span.0)).max(0) as u64,
        processor: location.end.map_or(0, |end| end.processor_ns),
        ..LocationTimes::default()
    };
    let members = members(location);
    let spans = Spans::new(location, opened);
    let mut entries = Vec::new();
    let mut starting: u64 = 0;
    let recorded = profile_of(location);
    // Two entries may then be about one operation and call path.
    let has_on_files = recorded.iter().any(|entry| entry.flags != 0);
    for entry in recorded {
        if is_init(entry.operation) {
            starting = starting.saturating_add(entry.total);
        } else {
            let class = TimeClass::of_call(entry.operation, entry.flags);
            let inside = &mut times.inside[class as usize];
            *inside = inside.saturating_add(ns(entry.total));
            if is_among_threads(entry.operation) {
                times.among_threads = times.among_threads.saturating_add(ns(entry.total));
            }
        }
        times.calls = times.calls.saturating_add(entry.count);
        let is_on_files = entry.flags & flags::ON_FILES != 0;
        let more = Entry {
            operation: entry.operation,
            count: entry.count,
            total: ns(entry.total),
            minimum: ns(entry.minimum),
            maximum: ns(entry.maximum),
            bytes: entry.bytes,
            members: match calls::call(entry.operation).map(|call| call.shape) {
                Some(Shape::Single) | None => 2,
                Some(_) => members
                    .get(&(entry.operation, entry.call_path))
                    .copied()
                    .unwrap_or(location.header.ranks),
            },
            span: spans.of(entry.operation, entry.call_path),
            on_files: match is_on_files {
                true => (entry.count, ns(entry.total)),
                false => (0, 0),
            },
        };
        let same = |(path, known): &&mut (u32, Entry)| {
            *path == entry.call_path && known.operation == entry.operation
        };
        let known = match has_on_files {
            true => entries.iter_mut().find(same),
            false => None,
        };
        match known {
            Some((_, known)) => known.merge(&more),
            None => entries.push((entry.call_path, more)),
        }
    }
    let ends = bounds.ends(clock, starting, stopped);
    (times.startup, times.shutdown) = (ends.startup, ends.shutdown);
    let calls = entries.iter().map(|(path, entry)| Calls {
        operation: entry.operation,
        path: *path,
        count: entry.count,
        total: entry.total,
        on_files: entry.on_files.1,
        bytes: entry.bytes,
    });
    Profiled {
        calls: calls.collect(),
        transfers: transfers(location, &entries, &spans),
        paths,
        entries,
        accounts: Vec::new(),
        times,
        bounds: bounds.clone(),
        starting,
    }
}

/// Members of each group that a location knows, by the group's id; 0 = unknown.
pub fn sizes(location: &Location) -> FxHashMap<u64, u32> {
    let definitions = &location.definitions;
    let mut sizes: FxHashMap<u64, u32> = FxHashMap::default();
    sizes.insert(WORLD, location.header.ranks);
    for communicator in &definitions.communicators {
        let size = sizes.entry(communicator.id).or_default();
        *size = size_of(communicator).max(*size);
    }
    for &(id, communicator, _, _) in &definitions.group_handles {
        let size = sizes.get(&communicator).copied().unwrap_or(0);
        sizes.insert(id, size);
    }
    sizes
}

/// Members of the largest group that each (operation, call path) was called in.
fn members(location: &Location) -> FxHashMap<(u16, u32), u32> {
    let sizes = sizes(location);
    let mut members: FxHashMap<(u16, u32), u32> = FxHashMap::default();
    for signature in location.definitions.signatures() {
        if signature.has(flags::COLLECTIVE)
            && let Some(&size) = sizes.get(&signature.group).filter(|&&size| size > 0)
        {
            let key = (signature.operation, signature.call_path);
            let largest = members.entry(key).or_default();
            *largest = size.max(*largest);
        }
    }
    members
}

/// Verdicts about a location.
#[derive(Debug, Default)]
pub struct Verdicts {
    /// Verdicts of its entries, by operation and call path id.
    pub entries: FxHashMap<(u16, u32), Verdict>,
    /// Usual durations of one-sided transfers, by signature.
    pub transfers: FxHashMap<u32, Usual>,
    /// Usual durations of collectives with a root, by operation and call path id.
    pub rooted: FxHashMap<(u16, u32), Usual>,
}

/// Profiles of all locations of this agent, with their `clocks`; `stopped` is when the run's
/// Finalize began.
pub fn of_all(
    opened: &Opened,
    clocks: &[(ClockMap, (u64, u64))],
    stopped: Option<i64>,
) -> Vec<Profiled> {
    let locations = opened.locations.par_iter().zip(clocks);
    let locations = locations.zip(&opened.bounds);
    locations
        .map(|((location, (clock, _)), bounds)| profile(location, clock, bounds, stopped, opened))
        .collect()
}

/// Runs the filters on all entries of this agent, and sums its profile.
pub fn detect(
    profiled: &[Profiled],
    settings: &Settings,
    baseline: &dyn Baseline,
    kinds: &Kinds,
) -> (Vec<Verdicts>, Profile) {
    let mut profile = Profile::default();
    let verdicts = profiled.iter().map(|location| {
        let entries = location.entries.iter().map(|(_, entry)| entry);
        let measured = entries.filter(|entry| !is_init(entry.operation));
        let totals = measured.map(|entry| entry.total);
        let wall = location.times.wall() as f64;
        let share = hotspot_share(totals, wall, settings.hotspot_percent);
        let mut verdicts = Verdicts::default();
        for (path, entry) in &location.entries {
            let verdict = judge(entry, share, settings, baseline, kinds);
            let key = (entry.operation, *path);
            verdicts.entries.insert(key, verdict);
            if calls::call(entry.operation).is_some_and(|call| call.shape.is_rooted()) {
                let usual = kinds.usual(entry, baseline, settings);
                verdicts.rooted.insert(key, usual);
            }
            let key = location
                .paths
                .get(*path as usize)
                .copied()
                .unwrap_or_default();
            let sums = profile.entry((entry.operation, key)).or_default();
            sums.count = sums.count.saturating_add(entry.count);
            sums.total = sums.total.saturating_add(entry.total);
            sums.extend((entry.minimum, entry.maximum));
            if is_init(entry.operation) {
                sums.ends = sums.ends.saturating_add(entry.total);
            }
            sums.bytes = sums.bytes.saturating_add(entry.bytes);
            sums.members = sums.members.max(entry.members);
            if verdict.filter > sums.filter {
                sums.filter = verdict.filter;
            }
            if verdict.filter == Filter::Once {
                sums.once.0 += 1;
                sums.once.1 = sums.once.1.saturating_add(entry.total);
            }
        }
        let transfers = location.transfers.iter().map(|t| {
            let usual = Usual::of(t.operation, (t.bytes, t.span), settings, baseline, kinds);
            (t.signature, usual)
        });
        verdicts.transfers = transfers.collect();
        verdicts
    });
    (verdicts.collect(), profile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use laggard_trace::calls::number;
    use laggard_trace::*;

    #[test]
    fn members_are_those_of_the_largest_group_of_a_call() {
        let mut header = FileHeader::new();
        header.ranks = 8;
        let mut writer = LocationWriter::new(MemorySpace::new(), header, None).unwrap();
        let communicator = |id, size| {
            Definition::Communicator(Communicator {
                id,
                size,
                ..Communicator::default()
            })
        };
        let signature = |id, call_path, group| {
            Definition::Signature(Signature {
                id,
                operation: number::MPI_Allreduce,
                flags: flags::COLLECTIVE,
                group,
                call_path,
                ..Signature::default()
            })
        };
        writer.define(&[
            communicator(5, 2),
            communicator(6, 4),
            signature(1, 1, WORLD),
            signature(2, 2, 5),
            signature(3, 2, 6),
            signature(4, 3, 7),
        ]);
        let bytes = writer.finish(End::default()).into_bytes();
        let location = Location::from_bytes(std::path::Path::new("test.lgt"), &bytes).unwrap();
        let members = members(&location);
        let of = |path| members.get(&(number::MPI_Allreduce, path)).copied();
        assert_eq!([of(1), of(2), of(3)], [Some(8), Some(4), None]);
    }

    #[test]
    fn lists_that_nobody_defined_take_no_memory() {
        let mut header = FileHeader::new();
        header.ranks = 1;
        let mut writer = LocationWriter::new(MemorySpace::new(), header, None).unwrap();
        let signature = |id, completes| {
            Definition::Signature(Signature {
                id,
                completes,
                ..Signature::default()
            })
        };
        let entries = vec![(1, 0), (2, 0)];
        writer.define(&[
            signature(1, 1),
            signature(2, u32::MAX),
            Definition::CompletionList { id: 1, entries },
        ]);
        let bytes = writer.finish(End::default()).into_bytes();
        let location = Location::from_bytes(std::path::Path::new("test.lgt"), &bytes).unwrap();
        assert_eq!(
            crate::replay::preparation::lists(&location),
            [vec![], vec![(1, 0), (2, 0)]]
        );
    }
}
