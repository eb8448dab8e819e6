//! Selects the findings that are worth a line of the report. A call may be a hotspot without much
//! waiting.
//!
//! A finding is listed if a rank lost the hotspot's share of its time in it. Many small findings at
//! many places may add up: the largest of a rank's other losses are listed until the rest is less
//! than [`REST`] such shares.
//!
//! The report also lists findings for which a hint promises the share, see `report::build`.

use std::cmp::Reverse;

use laggard_patterns::PatternId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::judge::detect::REST;
use crate::judge::profile::LocationTimes;
use crate::waits::sums::{FindingKey, Findings};

/// Run time of ranks, ns; for several threads, of the longest one. First between start-up and
/// shut-down, then including these.
pub type Walls = FxHashMap<u32, [u64; 2]>;

/// The time that a rank's loss in a finding refers to, ns.
pub fn whole(walls: &Walls, rank: u32, key: &FindingKey) -> u64 {
    let [wall, all] = walls.get(&rank).copied().unwrap_or_default();
    let is_startup = PatternId::from_number(key.0).is_some_and(PatternId::is_startup);
    if is_startup { all } else { wall }
}

/// The walls of an agent's ranks.
pub fn walls(locations: &[LocationTimes]) -> Walls {
    let mut walls = Walls::default();
    for location in locations {
        let [wall, all] = walls.entry(location.rank).or_default();
        *wall = location.wall().max(*wall);
        *all = location.all.max(*all);
    }
    walls
}

/// The findings that an agent's ranks want listed; one agent has all findings of a rank. `percent`
/// is the hotspot's share; 0 lists everything.
pub fn listed(findings: &Findings, walls: &Walls, percent: f64) -> FxHashSet<FindingKey> {
    let part = |whole: u64| whole as f64 * percent / 100.0;
    let limit = |rank: u32| part(walls.get(&rank).map_or(0, |wall| wall[0]));
    let mut listed = FxHashSet::default();
    let mut rest: FxHashMap<u32, u64> = FxHashMap::default();
    for (key, sums) in findings {
        for &(rank, severity, _) in &sums.ranks {
            if severity as f64 >= part(whole(walls, rank, key)) {
                listed.insert(*key);
            } else if is_waiting(key) {
                let rest = rest.entry(rank).or_default();
                *rest = rest.saturating_add(severity);
            }
        }
    }
    rest.retain(|&rank, lost| *lost as f64 >= REST * limit(rank));
    let mut small: FxHashMap<u32, Vec<(u64, FindingKey)>> = FxHashMap::default();
    for (key, sums) in findings.iter().filter(|(key, _)| is_waiting(key)) {
        for &(rank, severity, _) in &sums.ranks {
            if rest.contains_key(&rank) && (severity as f64) < limit(rank) {
                small.entry(rank).or_default().push((severity, *key));
            }
        }
    }
    for (rank, mut losses) in small {
        let mut rest = rest[&rank];
        losses.sort_by_key(|(severity, key)| (Reverse(*severity), *key));
        for (severity, key) in losses {
            if (rest as f64) < REST * limit(rank) {
                break;
            }
            listed.insert(key);
            rest = rest.saturating_sub(severity);
        }
    }
    listed
}

fn is_waiting(key: &FindingKey) -> bool {
    PatternId::from_number(key.0).is_some_and(PatternId::is_waiting)
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::waits::sums::Sums;

    /// Late senders, one per place; a rank lost these times of 1000 ns.
    fn findings(lost: &[u64], pattern: PatternId) -> Findings {
        let sums = |&severity: &u64| Sums {
            severity,
            ranks: vec![(3, severity, 1)],
            ..Sums::default()
        };
        let findings = (0..).zip(lost);
        let findings = findings.map(|(place, lost)| ((pattern as u8, 1, [place, 0]), sums(lost)));
        findings.collect()
    }

    fn places(lost: &[u64], pattern: PatternId, percent: f64) -> Vec<u64> {
        let walls: Walls = [(3, [1000, 1500])].into_iter().collect();
        let listed = listed(&findings(lost, pattern), &walls, percent);
        let mut places: Vec<u64> = listed.iter().map(|key| key.2[0]).collect();
        places.sort_unstable();
        places
    }

    #[test]
    fn what_costs_a_rank_little_is_not_listed() {
        let pattern = PatternId::LateSender;
        assert_eq!(places(&[9, 10, 400, 10], pattern, 1.0), [1, 2, 3]);
        assert_eq!(places(&[7, 7], pattern, 1.0), [0; 0]);
        assert_eq!(places(&[7, 7], pattern, 0.0), [0, 1]);
        // A share of the whole time, with start-up.
        assert_eq!(places(&[14, 15], PatternId::InitCompletion, 1.0), [1]);
    }

    #[test]
    fn little_at_many_places_is_much() {
        // 29 ns of 1000; a rest of 15 or more is too much.
        let pattern = PatternId::LateSender;
        assert_eq!(places(&[5, 9, 8, 7], pattern, 1.0), [1, 2]);
        assert_eq!(places(&[5, 9, 8, 7, 100], pattern, 1.0), [1, 2, 4]);
        // Completion is time in the library: nobody is waited for.
        assert_eq!(places(&[5, 9, 8, 7], PatternId::NxnCompletion, 1.0), [0; 0]);
    }
}
