//! One global clock for all locations of a run.
//!
//! Every host measures its clock against the reference a few times: at the start, at the end, and
//! in between on request. Between two measurements its clock is assumed to run evenly. A
//! measurement with a large error counts only if it contradicts the others.

pub mod causality;
mod evidence;
mod map;
mod measured;
mod moves;
#[cfg(test)]
mod tests;
pub mod trend;

use std::collections::HashMap;

pub use evidence::{ClockEvidence, ClockKey, needed, points};
pub use map::{ClockMap, NearMap};
use measured::{measured, own_rate};
pub use moves::Moves;

/// The clocks of all hosts, and the number of hosts without a measurement.
pub struct Clocks {
    maps: HashMap<(u64, u32), ClockMap>,
    /// Hosts whose offset is only a guess from their wall clock.
    pub unsynchronised: usize,
}

impl Clocks {
    /// Builds every host's map from the evidence of all files, in rank order.
    pub fn new<'e>(evidence: impl Iterator<Item = &'e ClockEvidence> + Clone) -> Clocks {
        let mut by_host: HashMap<(u64, u32), Vec<&ClockEvidence>> = HashMap::new();
        for item in evidence.clone() {
            by_host.entry(item.key()).or_default().push(item);
        }
        // Any file with both relates wall clocks to the reference. Without one, the first file's creation is
        // the reference: times since 1970 are beyond what a map holds.
        let measured_at = evidence.clone().find_map(|e| {
            let (ticks, ns, _) = e.points.first()?;
            Some(wall_at(e, *ticks) - ns)
        });
        let first_made = || evidence.clone().next().map(|first| first.made.1);
        let bridge = measured_at.or_else(first_made).unwrap_or(0);
        let mut unsynchronised = 0;
        let maps = by_host.into_iter().map(|(host, items)| {
            let map = measured(&items).unwrap_or_else(|| {
                unsynchronised += 1;
                let (ticks, ns) = items[0].made;
                ClockMap::even(ticks, ns - bridge, own_rate(&items), 1_000_000)
            });
            (host, map)
        });
        let maps = maps.collect();
        Clocks {
            maps,
            unsynchronised,
        }
    }

    /// The map of a clock; there must be evidence of it.
    pub fn of(&self, key: ClockKey) -> ClockMap {
        self.maps[&key].clone()
    }

    /// Largest error bound, ns.
    pub fn error_ns(&self) -> u64 {
        let errors = self.maps.values().map(ClockMap::error_ns);
        errors.max().unwrap_or(0)
    }
}
fn wall_at(evidence: &ClockEvidence, ticks: u64) -> i64 {
    let (made, ns) = evidence.made;
    let per_s = i128::from(evidence.ticks_per_s.max(1));
    let since = i128::from(ticks.wrapping_sub(made) as i64) * 1_000_000_000 / per_s;
    ns.saturating_add(since as i64)
}
pub mod slacks;
