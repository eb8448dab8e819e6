//! The data that travels to the head: sums, extremes and sets of ranks. It grows with the number of
//! different findings, not with the ranks.
//!
//! Data of single ranks is exact for every number of agents: one agent holds everything about a
//! rank before anything is left out.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use laggard_comm::{Filter, Job};
use laggard_report::RankSet;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::findings::imbalance::{After, Computed};
use crate::findings::listing::{Walls, listed, whole};
use crate::judge::account::Settled;
use crate::judge::profile::{Counters, LocationTimes};
use crate::stream::rows::TimeClass;
use crate::stream::traffic::Traffic;
use crate::waits::spread::Spread;
use crate::waits::sums::{Cause, CauseKey, FindingKey, Findings, LISTED, Parts, Sums, Worst};

/// Runs of up to this many locations list all of them.
const LISTED_LOCATIONS: u64 = 1024;
/// Larger runs list this many with the most computation, the least, and the most waiting.
const EXTREMES: usize = 64;
/// Locations that compute at least this share of the maximum are the bottleneck.
pub const BOTTLENECK_SHARE: f64 = 0.95;

/// Most classes of successive ranks. In larger runs, ranks share a class.
const CLASSES: usize = 64;

/// Ranks of a class of a run of `ranks`.
pub fn width_of_class(ranks: usize) -> usize {
    ranks.div_ceil(CLASSES).max(1)
}

/// The class of a rank of a run of `ranks`.
pub fn class_of(rank: u32, ranks: usize) -> u16 {
    (rank as usize / width_of_class(ranks)).min(CLASSES - 1) as u16
}

/// First and last rank of a class, see [`class_of`].
pub fn ranks_of_class(class: u16, ranks: usize) -> (u32, u32) {
    let width = width_of_class(ranks);
    let first = usize::from(class) * width;
    let last = (first + width).min(ranks).saturating_sub(1).max(first);
    (first as u32, last as u32)
}

/// Losses of the ranks of one class. ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossClass {
    /// Which ranks: see [`ranks_of_class`].
    pub class: u16,
    /// Number of ranks that lost time.
    pub ranks: u32,
    /// Sum over these.
    pub severity: u64,
    /// Smallest loss of one of them.
    pub least: u64,
    /// Largest loss of one of them.
    pub most: u64,
}

impl LossClass {
    fn add(&mut self, other: &LossClass) {
        self.ranks += other.ranks;
        self.severity = self.severity.saturating_add(other.severity);
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
    }
}

/// Adds up entries of the same class, ascending.
fn joined<C: Copy>(mut all: Vec<C>, class: impl Fn(&C) -> u16, add: impl Fn(&mut C, &C)) -> Vec<C> {
    all.sort_by_key(&class);
    let mut joined: Vec<C> = Vec::new();
    for one in all {
        match joined.last_mut() {
            Some(last) if class(last) == class(&one) => add(last, &one),
            _ => joined.push(one),
        }
    }
    joined
}

/// One finding, over the ranks of some agents. Times are ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Folded {
    /// Time lost.
    pub severity: u64,
    /// Instances with a loss.
    pub instances: u64,
    /// Part of the severity lost to a member on another host.
    pub inter_host: u64,
    /// The instances by time lost.
    pub spread: Spread,
    /// Part of the severity that is in doubt.
    pub doubt: u64,
    /// The ranks that lost time.
    pub rank_set: RankSet,
    /// Numbers of their threads that did.
    pub thread_set: RankSet,
    /// Those of listed ranks, unless the first thread alone did.
    pub threads: Vec<(u32, RankSet)>,
    /// The ranks with the smallest losses, the least first: time and world rank. Two, since one of
    /// them may be the late one.
    pub least: Vec<(u64, u32)>,
    /// Largest loss of a rank as a share of its time, in percent.
    pub rank_percent: f64,
    /// Whether a rank wants it listed.
    pub is_listed: bool,
    /// The ranks that lost most, the worst first: world rank, time, instances.
    pub ranks: Vec<(u32, u64, u64)>,
    /// Losses of all ranks by class; empty if all are listed.
    pub classes: Vec<LossClass>,
    pub late_ranks: u64,
    /// What all late ranks did.
    pub late: Parts,
    /// The late parties, the worst first.
    pub causes: Vec<(CauseKey, Cause)>,
    /// The worst instance.
    pub worst: Option<Worst>,
}

pub type FoldedFindings = FxHashMap<FindingKey, Folded>;

impl Folded {
    fn new(
        key: &FindingKey,
        sums: Sums,
        (walls, threads): (&Walls, Vec<(u32, RankSet)>),
        ranks: usize,
    ) -> Folded {
        let part = |&(rank, severity, _): &(u32, u64, u64)| {
            let whole = whole(walls, rank, key);
            100.0 * severity as f64 / whole.max(1) as f64
        };
        let rank_percent = sums.ranks.iter().map(part).fold(0.0, f64::max);
        let loss = |&(rank, severity, _): &(u32, u64, u64)| LossClass {
            class: class_of(rank, ranks),
            ranks: 1,
            severity,
            least: severity,
            most: severity,
        };
        // With few ranks, all that lost time are listed.
        let classes = match ranks <= LISTED {
            true => Vec::new(),
            false => sums.ranks.iter().map(loss).collect(),
        };
        let mut late = Parts::default();
        let causes = sums.causes.iter();
        causes.for_each(|(_, cause)| late.add(&cause.sums));
        let late_ranks = sums.causes.iter().map(|(key, _)| key.rank);
        let has_first = threads.len() < sums.ranks.len();
        let further = threads.iter().flat_map(|(_, numbers)| numbers.iter());
        let thread_set = RankSet::new(further.chain(has_first.then_some(0)));
        let mut folded = Folded {
            // One agent has all causes of a rank.
            late_ranks: RankSet::new(late_ranks).len(),
            late,
            least: sums.ranks.iter().map(|rank| (rank.1, rank.0)).collect(),
            rank_percent,
            is_listed: false,
            severity: sums.severity,
            instances: sums.instances,
            inter_host: sums.inter_host,
            spread: sums.spread,
            doubt: sums.doubt,
            rank_set: RankSet::new(sums.ranks.iter().map(|rank| rank.0)),
            thread_set,
            threads,
            ranks: sums.ranks,
            classes: joined(classes, |one| one.class, LossClass::add),
            causes: sums.causes.into_iter().collect(),
            worst: sums.worst,
        };
        folded.cut();
        folded
    }

    fn cut(&mut self) {
        self.ranks.sort_by_key(|rank| (Reverse(rank.1), rank.0));
        self.ranks.truncate(LISTED);
        let is_listed = |of: u32| self.ranks.iter().any(|(rank, ..)| *rank == of);
        self.threads.retain(|(rank, _)| is_listed(*rank));
        self.threads.sort_by_key(|(rank, _)| *rank);
        self.least.sort_unstable();
        self.least.truncate(2);
        self.causes
            .sort_by_key(|(key, cause)| (Reverse(cause.sums.severity), *key));
        self.causes.truncate(LISTED);
    }
}

impl Filter for Folded {
    /// The losses of another agent's ranks, and the causes among them.
    fn merge(&mut self, other: Folded) {
        self.severity = self.severity.saturating_add(other.severity);
        self.instances = self.instances.saturating_add(other.instances);
        self.inter_host = self.inter_host.saturating_add(other.inter_host);
        self.spread.merge(&other.spread);
        self.doubt = self.doubt.saturating_add(other.doubt);
        self.rank_set.merge(other.rank_set);
        self.thread_set.merge(other.thread_set);
        self.threads.extend(other.threads);
        self.ranks.extend(other.ranks);
        self.classes.extend(other.classes);
        let classes = std::mem::take(&mut self.classes);
        self.classes = joined(classes, |one| one.class, LossClass::add);
        self.least.extend(other.least);
        self.rank_percent = self.rank_percent.max(other.rank_percent);
        self.is_listed |= other.is_listed;
        self.late_ranks += other.late_ranks;
        self.late.add(&other.late);
        self.causes.extend(other.causes);
        self.worst = Worst::worse(self.worst, other.worst);
        self.cut();
    }
}

/// The threads that were charged with a finding, of ranks where the first one alone was not.
fn threads_of(charged: Option<&BTreeMap<(u32, u32), u64>>) -> Vec<(u32, RankSet)> {
    let mut all: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for ((rank, thread), _) in charged.into_iter().flatten() {
        all.entry(*rank).or_default().push(*thread);
    }
    all.retain(|_, threads| threads[..] != [0]);
    let sets = all.into_iter();
    sets.map(|(rank, threads)| (rank, RankSet::new(threads)))
        .collect()
}

/// Folds an agent's findings, of a run of `ranks` ranks. `charged` are the threads of ranks that have several.
/// `causes` and `walls` are those of this agent's ranks. Findings that cost no rank `percent` of its time are not listed.
pub fn findings(
    (mut own, charged): (Findings, &Computed<(After, u8)>),
    causes: Vec<(FindingKey, CauseKey, Cause)>,
    walls: &Walls,
    percent: f64,
    ranks: usize,
) -> FoldedFindings {
    let listed = listed(&own, walls, percent);
    for (finding, key, cause) in causes {
        let sums = own.entry(finding).or_default();
        sums.causes.of(key).merge(cause);
    }
    own.into_iter()
        .map(|(key, sums)| {
            let (pattern, operation, path) = key;
            let threads = threads_of(charged.get(&((operation, path), pattern)));
            let mut folded = Folded::new(&key, sums, (walls, threads), ranks);
            folded.is_listed = listed.contains(&key);
            (key, folded)
        })
        .collect()
}

/// Times of locations. ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Locations {
    /// Number in all agents.
    pub total: u64,
    /// Number of locations.
    pub count: u64,
    /// Sums over all.
    pub sums: Times,
    /// What counters counted in all of them.
    pub counted: Counters,
    /// Sums over the ranks' first threads.
    pub first_threads: FirstThreads,
    /// Sums over ranks with all their threads.
    pub teams: Teams,
    /// The ranks that compute most.
    pub busiest: RankSet,
    /// All locations, or those that stand out.
    pub listed: Vec<LocationTimes>,
    /// All locations by class of their rank; empty if all are listed.
    pub classes: Vec<TimesClass>,
}

/// Times of the locations of one class of ranks. ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimesClass {
    /// Which ranks: see [`ranks_of_class`].
    pub class: u16,
    /// Number of locations.
    pub locations: u64,
    /// Sums over these.
    pub sums: Times,
    /// Least computation of one of them.
    pub least_computation: u64,
    /// Most computation of one of them.
    pub most_computation: u64,
}

impl TimesClass {
    fn add(&mut self, other: &TimesClass) {
        self.locations += other.locations;
        self.sums.add(&other.sums);
        self.least_computation = self.least_computation.min(other.least_computation);
        self.most_computation = self.most_computation.max(other.most_computation);
    }
}

/// Times of a location, or of several. ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Between start-up and shut-down.
    pub wall: u64,
    /// Explained and unexplained time in calls.
    pub settled: Settled,
    /// Until the libraries had started.
    pub startup: u64,
    /// Since the last location entered Finalize.
    pub shutdown: u64,
    /// On a processor while they were recorded, as far as that is known.
    pub processor: u64,
    /// Outside of calls.
    pub computation: u64,
    /// Parts of that: asleep or blocked, without a processor, and in the kernel.
    pub outside: [u64; 3],
    /// Inside calls that move data or manage handles.
    pub communication: u64,
    /// Inside calls whose purpose is that ranks meet.
    pub synchronization: u64,
    /// Inside calls on files.
    pub io: u64,
    /// Charged by patterns.
    pub waiting: u64,
    pub calls: u64,
    /// What they moved, and their wait states.
    pub traffic: Traffic,
}

/// Terms of the efficiencies. ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FirstThreads {
    /// Number of first threads.
    pub count: u64,
    /// Sum of their computation.
    pub computation: u64,
    /// Largest computation of one.
    pub most_computation: u64,
    /// Longest time between start-up and shut-down of one.
    pub longest_wall: u64,
    /// Sum of their time outside of all calls but those for other threads of their rank.
    pub outside: u64,
    /// Largest of these times.
    pub most_outside: u64,
}

/// Terms of the efficiencies of ranks with several threads. ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Teams {
    /// Number of threads.
    pub threads: u64,
    /// Sum of their computation.
    pub computation: u64,
    /// What it would be if all threads of a rank computed as long as the busiest one.
    pub as_busiest: u64,
}

impl Times {
    pub fn of(location: &LocationTimes) -> Times {
        let inside = |class: TimeClass| location.inside[class as usize];
        let communication =
            inside(TimeClass::Communication).saturating_add(inside(TimeClass::Setup));
        Times {
            settled: location.settled,
            wall: location.wall(),
            startup: location.startup,
            shutdown: location.shutdown,
            processor: location.processor,
            computation: location.computation(),
            outside: location.outside,
            communication,
            synchronization: inside(TimeClass::Synchronization),
            io: inside(TimeClass::Io),
            waiting: location.waiting,
            calls: location.calls,
            traffic: location.traffic,
        }
    }

    /// Inside calls.
    pub fn in_calls(&self) -> u64 {
        let classes = [self.communication, self.synchronization, self.io];
        classes.into_iter().fold(0, u64::saturating_add)
    }

    /// The whole time, with start-up and shut-down.
    pub fn all(&self) -> u64 {
        let ends = self.startup.saturating_add(self.shutdown);
        self.wall.saturating_add(ends)
    }

    fn add(&mut self, other: &Times) {
        self.traffic.merge(&other.traffic);
        let pairs = [
            (&mut self.wall, other.wall),
            (&mut self.startup, other.startup),
            (&mut self.shutdown, other.shutdown),
            (&mut self.processor, other.processor),
            (&mut self.computation, other.computation),
            (&mut self.settled.explained, other.settled.explained),
            (&mut self.settled.unexplained, other.settled.unexplained),
            (&mut self.communication, other.communication),
            (&mut self.synchronization, other.synchronization),
            (&mut self.io, other.io),
            (&mut self.waiting, other.waiting),
            (&mut self.calls, other.calls),
        ];
        let outside = self.outside.iter_mut().zip(other.outside);
        for (sum, part) in pairs.into_iter().chain(outside) {
            *sum = sum.saturating_add(part);
        }
    }
}

impl FirstThreads {
    fn add(&mut self, other: &FirstThreads) {
        self.count += other.count;
        self.computation = self.computation.saturating_add(other.computation);
        self.most_computation = self.most_computation.max(other.most_computation);
        self.longest_wall = self.longest_wall.max(other.longest_wall);
        self.outside = self.outside.saturating_add(other.outside);
        self.most_outside = self.most_outside.max(other.most_outside);
    }
}

impl Teams {
    /// Those of the threads of one rank.
    fn of(rank: &[LocationTimes]) -> Teams {
        let computation = || rank.iter().map(LocationTimes::computation);
        let threads = rank.len() as u64;
        Teams {
            threads,
            computation: computation().fold(0, u64::saturating_add),
            as_busiest: computation().max().unwrap_or(0).saturating_mul(threads),
        }
    }

    fn add(&mut self, other: &Teams) {
        self.threads += other.threads;
        self.computation = self.computation.saturating_add(other.computation);
        self.as_busiest = self.as_busiest.saturating_add(other.as_busiest);
    }
}

impl Locations {
    /// Folds an agent's locations. `total` is the number in all agents, `ranks` that of the run.
    /// Collective.
    pub fn new(job: &dyn Job, own: Vec<LocationTimes>, total: usize, ranks: usize) -> Locations {
        let computed = own.iter().map(LocationTimes::worked);
        let mut extremes = computed.fold([0, 0], |[most, least]: [u64; 2], time| {
            [most.max(time), least.max(!time)]
        });
        job.reduce_max(&mut extremes);
        let [most, least] = [extremes[0] as f64, !extremes[1] as f64];
        let much = most * BOTTLENECK_SHARE;
        // If all compute alike, no rank is the bottleneck.
        let is_busy = |location: &&LocationTimes| least < much && location.worked() as f64 >= much;
        let mut locations = Locations {
            busiest: RankSet::new(own.iter().filter(is_busy).map(|location| location.rank)),
            total: total as u64,
            count: own.len() as u64,
            ..Locations::default()
        };
        for location in &own {
            locations.sums.add(&Times::of(location));
            locations.counted.add(&location.counted);
            if location.thread == 0 {
                locations.first_threads.add(&FirstThreads {
                    count: 1,
                    computation: location.computation(),
                    most_computation: location.computation(),
                    longest_wall: location.wall(),
                    outside: location.outside_mpi(),
                    most_outside: location.outside_mpi(),
                });
            }
        }
        for rank in own.chunk_by(|a, b| a.rank == b.rank) {
            locations.teams.add(&Teams::of(rank));
        }
        if locations.total > LISTED_LOCATIONS {
            let one = |location: &LocationTimes| TimesClass {
                class: class_of(location.rank, ranks),
                locations: 1,
                sums: Times::of(location),
                least_computation: location.computation(),
                most_computation: location.computation(),
            };
            let classes = own.iter().map(one).collect();
            locations.classes = joined(classes, |one| one.class, TimesClass::add);
        }
        locations.listed = own;
        locations.cut();
        locations
    }

    /// Cuts the list to the locations that stand out if there are many; ascending.
    fn cut(&mut self) {
        let number = |location: &LocationTimes| (location.rank, location.thread);
        self.listed.sort_by_key(number);
        if self.total <= LISTED_LOCATIONS || self.listed.len() <= EXTREMES {
            return;
        }
        let mut keeps = vec![false; self.listed.len()];
        let mut order: Vec<usize> = (0..self.listed.len()).collect();
        let orders: [fn(&LocationTimes) -> u64; 3] = [
            |location| !location.computation(),
            |location| location.computation(),
            |location| !location.waiting,
        ];
        for key in orders {
            order.sort_by_key(|&at| (key(&self.listed[at]), number(&self.listed[at])));
            order[..EXTREMES].iter().for_each(|&at| keeps[at] = true);
        }
        let mut keeps = keeps.into_iter();
        self.listed.retain(|_| keeps.next() == Some(true));
    }
}

impl Filter for Locations {
    fn merge(&mut self, other: Locations) {
        self.count += other.count;
        self.sums.add(&other.sums);
        self.counted.add(&other.counted);
        self.first_threads.add(&other.first_threads);
        self.teams.add(&other.teams);
        self.busiest.merge(other.busiest);
        self.listed.extend(other.listed);
        let classes = [std::mem::take(&mut self.classes), other.classes].concat();
        self.classes = joined(classes, |one| one.class, TimesClass::add);
        self.cut();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laggard_patterns::PatternId;

    #[test]
    fn classes_are_few_and_cover_all_ranks() {
        for ranks in [1usize, 33, 64, 65, 127, 4096, 65_535, 65_536] {
            let mut next = 0;
            for class in 0..=class_of(ranks as u32 - 1, ranks) {
                let (first, last) = ranks_of_class(class, ranks);
                assert_eq!(first, next, "{ranks}");
                assert!((first..=last).all(|rank| class_of(rank, ranks) == class));
                next = last + 1;
            }
            assert_eq!(next as usize, ranks);
            assert!(usize::from(class_of(u32::MAX, ranks)) < CLASSES);
        }
    }

    #[test]
    fn sums_of_classes_do_not_depend_on_who_adds_them() {
        let sums = |ranks: std::ops::Range<u32>| Sums {
            ranks: ranks
                .map(|rank| (rank, u64::from(rank) * 7 % 50, 1))
                .collect(),
            ..Sums::default()
        };
        let walls: Walls = (0..200).map(|rank| (rank, [1000, 1000])).collect();
        let key = (PatternId::LateSender as u8, 1, [1, 1]);
        let of = |ranks: std::ops::Range<u32>| {
            // Of two ranks further threads lost time.
            let charged = [(5, 0), (5, 2), (6, 0), (180, 1)].map(|who| (who, 1));
            let charged = charged
                .into_iter()
                .filter(|((rank, _), _)| ranks.contains(rank));
            let threads = threads_of(Some(&charged.collect()));
            Folded::new(&key, sums(ranks), (&walls, threads), 200)
        };
        let whole = of(0..200);
        assert_eq!(whole.thread_set, RankSet::new([0, 1, 2]));
        let all = [(5, RankSet::new([0, 2])), (180, RankSet::new([1]))];
        let listed = |of: &(u32, RankSet)| whole.ranks.iter().any(|(rank, ..)| *rank == of.0);
        assert_eq!(
            whole.threads,
            all.into_iter().filter(listed).collect::<Vec<_>>()
        );
        assert_eq!(whole.rank_percent, 4.9);
        for border in [1, 63, 100, 199] {
            let mut parts = of(border..200);
            parts.merge(of(0..border));
            assert_eq!(parts, whole, "{border}");
        }
        let one = whole.classes[3];
        assert_eq!((one.class, one.ranks, one.least, one.most), (3, 4, 5, 48));
        assert!(
            Folded::new(&key, sums(0..32), (&walls, Vec::new()), 32)
                .classes
                .is_empty()
        );
    }
}
