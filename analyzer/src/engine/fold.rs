//! What travels to the head: sums, extremes and sets of ranks, so that it grows with the
//! number of different findings, not with the ranks.
//!
//! What is kept of single ranks is exact for every number of agents: all that is known of
//! one rank is at one agent before anything is left out.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::finding::{Cause, CauseKey, FindingKey, Findings, Sums, Worst};
use super::prepare::LocationTimes;
use super::table::TimeClass;
use crate::comm::Job;

/// Ranks and causes of a finding that are listed; the sums are over all.
pub const LISTED: usize = 32;
/// Runs of up to so many locations have all of them listed.
const LISTED_LOCATIONS: usize = 1024;
/// Of larger ones, so many with the most computation, the least, and the most waiting.
const EXTREMES: usize = 64;
/// Locations computing at least this share of the most are those that others wait for.
pub const BOTTLENECK_SHARE: f64 = 0.95;

/// A set of ranks, as ascending ranges that do not touch: first and last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankSet(Vec<(u32, u32)>);

impl RankSet {
    /// The set of `ranks`, in any order.
    pub fn new(ranks: impl IntoIterator<Item = u32>) -> RankSet {
        let single = ranks.into_iter().map(|rank| (rank, rank));
        RankSet::of_ranges(single.collect())
    }

    fn of_ranges(mut ranges: Vec<(u32, u32)>) -> RankSet {
        ranges.sort_unstable();
        let mut set: Vec<(u32, u32)> = Vec::new();
        for (first, last) in ranges {
            match set.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => set.push((first, last)),
            }
        }
        RankSet(set)
    }

    /// Adds another set.
    pub fn merge(&mut self, other: RankSet) {
        let mut ranges = std::mem::take(&mut self.0);
        ranges.extend(other.0);
        *self = RankSet::of_ranges(ranges);
    }

    /// How many ranks these are.
    pub fn len(&self) -> u64 {
        let sizes = self
            .0
            .iter()
            .map(|&(first, last)| u64::from(last - first) + 1);
        sizes.sum()
    }

    /// All ranks, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().flat_map(|&(first, last)| first..=last)
    }
}

/// One finding, of some agents' ranks. Times are ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Folded {
    /// Time lost.
    pub severity: u64,
    /// Instances with a loss.
    pub instances: u64,
    /// The part lost to a member on another host.
    pub inter_host: u64,
    /// Who lost.
    pub rank_set: RankSet,
    /// Of these, who lost most, the worst first: world rank, time, instances.
    pub ranks: Vec<(u32, u64, u64)>,
    /// Who was late, the worst first.
    pub causes: Vec<(CauseKey, Cause)>,
    /// The worst instance.
    pub worst: Option<Worst>,
}

/// The findings of agents.
pub type FoldedFindings = FxHashMap<FindingKey, Folded>;

impl Folded {
    fn new(sums: Sums) -> Folded {
        let mut folded = Folded {
            severity: sums.severity,
            instances: sums.instances,
            inter_host: sums.inter_host,
            rank_set: RankSet::new(sums.ranks.iter().map(|rank| rank.0)),
            ranks: sums.ranks.into_vec(),
            causes: sums.causes.into_iter().collect(),
            worst: sums.worst,
        };
        folded.cut();
        folded
    }

    /// Adds what another agent's ranks lost, and to whom of that agent others did.
    pub fn merge(&mut self, other: Folded) {
        self.severity = self.severity.saturating_add(other.severity);
        self.instances = self.instances.saturating_add(other.instances);
        self.inter_host = self.inter_host.saturating_add(other.inter_host);
        self.rank_set.merge(other.rank_set);
        self.ranks.extend(other.ranks);
        self.causes.extend(other.causes);
        self.worst = Worst::worse(self.worst, other.worst);
        self.cut();
    }

    fn cut(&mut self) {
        self.ranks.sort_by_key(|rank| (Reverse(rank.1), rank.0));
        self.ranks.truncate(LISTED);
        self.causes
            .sort_by_key(|(key, cause)| (Reverse(cause.sums.severity), *key));
        self.causes.truncate(LISTED);
    }
}

/// Folds an agent's findings; `causes` are those that are ranks of this agent.
pub fn findings(mut own: Findings, causes: Vec<(FindingKey, CauseKey, Cause)>) -> FoldedFindings {
    for (finding, key, cause) in causes {
        let sums = own.entry(finding).or_default();
        sums.causes.of(key).merge(cause);
    }
    own.into_iter()
        .map(|(key, sums)| (key, Folded::new(sums)))
        .collect()
}

/// Times of locations. ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Locations {
    /// How many these are.
    pub count: u64,
    /// Sums over all.
    pub sums: Times,
    /// Sums over the ranks' first threads.
    pub first_threads: FirstThreads,
    /// Those that compute most.
    pub busiest: RankSet,
    /// All, or those that stand out.
    pub listed: Vec<LocationTimes>,
}

/// Times of a location, or of several. ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// From first call to last.
    pub wall: u64,
    /// Outside of calls.
    pub computation: u64,
    /// Inside calls that move data or manage handles.
    pub communication: u64,
    /// … whose purpose is that ranks meet.
    pub synchronization: u64,
    /// … on files.
    pub io: u64,
    /// Charged by patterns.
    pub waiting: u64,
    /// Calls.
    pub calls: u64,
}

/// What the efficiencies are made of. ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FirstThreads {
    /// How many.
    pub count: u64,
    /// Sum of their computation.
    pub computation: u64,
    /// The most.
    pub most_computation: u64,
    /// Their longest wall time.
    pub longest_wall: u64,
}

impl Times {
    /// The times of one location.
    pub fn of(location: &LocationTimes) -> Times {
        let inside = |class: TimeClass| location.inside[class as usize];
        let communication =
            inside(TimeClass::Communication).saturating_add(inside(TimeClass::Setup));
        Times {
            wall: location.wall,
            computation: location.computation(),
            communication,
            synchronization: inside(TimeClass::Synchronization),
            io: inside(TimeClass::Io),
            waiting: location.waiting,
            calls: location.calls,
        }
    }

    fn add(&mut self, other: &Times) {
        let pairs = [
            (&mut self.wall, other.wall),
            (&mut self.computation, other.computation),
            (&mut self.communication, other.communication),
            (&mut self.synchronization, other.synchronization),
            (&mut self.io, other.io),
            (&mut self.waiting, other.waiting),
            (&mut self.calls, other.calls),
        ];
        for (sum, part) in pairs {
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
    }
}

impl LocationTimes {
    /// Time outside of calls, ns.
    pub fn computation(&self) -> u64 {
        let inside = self.inside.iter().copied();
        self.wall
            .saturating_sub(inside.fold(0, u64::saturating_add))
    }
}

impl Locations {
    /// Folds an agent's locations, of `total` in all agents. Collective.
    pub fn new(job: &dyn Job, own: Vec<LocationTimes>, total: usize) -> Locations {
        let computed = own.iter().map(LocationTimes::computation);
        let mut extremes = computed.fold([0, 0], |[most, least]: [u64; 2], time| {
            [most.max(time), least.max(!time)]
        });
        job.reduce_max(&mut extremes);
        let [most, least] = [extremes[0] as f64, !extremes[1] as f64];
        let much = most * BOTTLENECK_SHARE;
        // Where all compute alike, nobody holds the others up.
        let is_busy =
            |location: &&LocationTimes| least < much && location.computation() as f64 >= much;
        let mut locations = Locations {
            busiest: RankSet::new(own.iter().filter(is_busy).map(|location| location.rank)),
            count: own.len() as u64,
            ..Locations::default()
        };
        for location in &own {
            locations.sums.add(&Times::of(location));
            if location.thread == 0 {
                locations.first_threads.add(&FirstThreads {
                    count: 1,
                    computation: location.computation(),
                    most_computation: location.computation(),
                    longest_wall: location.wall,
                });
            }
        }
        locations.listed = own;
        locations.cut(total);
        locations
    }

    /// Adds another agent's.
    pub fn merge(&mut self, other: Locations, total: usize) {
        self.count += other.count;
        self.sums.add(&other.sums);
        self.first_threads.add(&other.first_threads);
        self.busiest.merge(other.busiest);
        self.listed.extend(other.listed);
        self.cut(total);
    }

    /// Leaves out those that do not stand out, if there are many; ascending.
    fn cut(&mut self, total: usize) {
        let number = |location: &LocationTimes| (location.rank, location.thread);
        self.listed.sort_by_key(number);
        if total <= LISTED_LOCATIONS || self.listed.len() <= EXTREMES {
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
