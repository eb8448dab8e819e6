//! One global clock for all locations of a run.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// Bits behind the binary point of [`ClockMap`]'s rate.
const FRACTION: u32 = 40;
/// Times are within ± this, ns (36 years), so that differences and windows of them fit.
const LONGEST: i128 = 1 << 60;
/// Spans shorter than this say nothing about a rate, ns.
const SHORTEST_SPAN: i64 = 5_000_000;

/// Converts ticks of one host's clock to ns of the global clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockMap {
    ticks: u64,
    ns: i64,
    /// ns per tick, fixed point.
    rate: u64,
    /// Bound of the error against rank 0's clock, ns.
    pub error_ns: u64,
}

impl ClockMap {
    /// A map through the point (`ticks`, `ns`).
    fn new(ticks: u64, ns: i64, rate: u64, error_ns: u64) -> Self {
        ClockMap {
            ticks,
            ns,
            rate,
            error_ns,
        }
    }

    /// Global time of a moment of the location's clock.
    #[inline]
    pub fn ns(&self, ticks: u64) -> i64 {
        let since = i128::from(ticks.wrapping_sub(self.ticks) as i64);
        let ns = i128::from(self.ns) + ((since * i128::from(self.rate)) >> FRACTION);
        ns.clamp(-LONGEST, LONGEST) as i64
    }

    /// The map near a moment of the location's clock; `None` if that is out of bounds.
    pub fn near(&self, base: u64) -> Option<NearMap> {
        let since = i128::from(base.wrapping_sub(self.ticks) as i64);
        let product = since * i128::from(self.rate);
        let ns = i128::from(self.ns) + (product >> FRACTION);
        let near = NearMap {
            ns: self.ns,
            product,
            rate: self.rate,
        };
        (ns.abs() < LONGEST / 2).then_some(near)
    }

    /// Length of `ticks` ticks, ns.
    pub fn length_ns(&self, ticks: u64) -> f64 {
        ticks as f64 * self.rate as f64 / (1u64 << FRACTION) as f64
    }

    /// The same map with `zero` as the time 0.
    pub fn shifted(mut self, zero: i64) -> Self {
        self.ns -= zero;
        self
    }
}

/// A [`ClockMap`] for moments of up to 2^33 ticks after a base, for many at once.
#[derive(Clone, Copy, Debug)]
pub struct NearMap {
    ns: i64,
    product: i128,
    rate: u64,
}

impl NearMap {
    /// Global time so many ticks after the base, as [`ClockMap::ns`] gives it.
    #[inline(always)]
    pub fn ns(&self, ticks: u64) -> i64 {
        // Below 2^97: what is added to half of the longest time fits.
        let product = self.product + (u128::from(self.rate) * u128::from(ticks)) as i128;
        self.ns + (product >> FRACTION) as i64
    }
}

/// What one file says about its clock.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ClockEvidence {
    /// Locations with equal hosts share one clock.
    pub host: u64,
    /// Kind of clock.
    pub clock: u32,
    /// Nominal rate, Hz.
    pub ticks_per_s: u64,
    /// Measured against the reference: (ticks, ns, error) at start and end.
    pub start: Option<(u64, i64, u64)>,
    /// See `start`.
    pub end: Option<(u64, i64, u64)>,
    /// (ticks, local `CLOCK_MONOTONIC` ns) of the first and the last block.
    pub span: Option<((u64, i64), (u64, i64))>,
    /// (ticks, `CLOCK_REALTIME` ns) of the file's making: the last resort.
    pub made: (u64, i64),
}

/// The clocks of all hosts, and the hosts that had no measurement.
pub struct Clocks {
    maps: HashMap<(u64, u32), ClockMap>,
    /// Hosts whose offset could only be guessed from their wall clock.
    pub unsynchronised: usize,
}

impl Clocks {
    /// Builds every host's map from the evidence of all files, in rank order.
    pub fn new(evidence: &[ClockEvidence]) -> Clocks {
        let mut by_host: HashMap<(u64, u32), Vec<&ClockEvidence>> = HashMap::new();
        for item in evidence {
            by_host
                .entry((item.host, item.clock))
                .or_default()
                .push(item);
        }
        // Wall clocks are comparable with the reference through any file that has both.
        let bridge = evidence
            .iter()
            .find_map(|e| e.start.map(|(ticks, ns, _)| wall_at(e, ticks) - ns))
            .unwrap_or(0);
        let mut unsynchronised = 0;
        let maps = by_host.into_iter().map(|(host, items)| {
            let rate = rate_of(&items);
            let map = match items.iter().find_map(|e| e.start.or(e.end)) {
                Some((ticks, ns, error)) => {
                    let end_error = items.iter().find_map(|e| e.end).map_or(0, |(_, _, e)| e);
                    ClockMap::new(ticks, ns, rate, error.max(end_error))
                }
                None => {
                    unsynchronised += 1;
                    let (ticks, ns) = items[0].made;
                    ClockMap::new(ticks, ns - bridge, rate, 1_000_000)
                }
            };
            (host, map)
        });
        let maps = maps.collect();
        Clocks {
            maps,
            unsynchronised,
        }
    }

    /// The map of the clock that a file was written with.
    pub fn of(&self, evidence: &ClockEvidence) -> ClockMap {
        self.maps[&(evidence.host, evidence.clock)]
    }

    /// Largest error bound, ns.
    pub fn error_ns(&self) -> u64 {
        self.maps
            .values()
            .map(|map| map.error_ns)
            .max()
            .unwrap_or(0)
    }
}

fn wall_at(evidence: &ClockEvidence, ticks: u64) -> i64 {
    let (made, ns) = evidence.made;
    let per_s = i128::from(evidence.ticks_per_s.max(1));
    let since = i128::from(ticks.wrapping_sub(made) as i64) * 1_000_000_000 / per_s;
    ns.saturating_add(since as i64)
}

/// ns per tick in fixed point: from the measurements at both ends of the run, else
/// from the longest span against the host's own monotonic clock, else nominal.
fn rate_of(items: &[&ClockEvidence]) -> u64 {
    let quotient = |ns: i64, ticks: u64| ((ns as u128) << FRACTION) / u128::from(ticks.max(1));
    let nominal = quotient(1_000_000_000, items[0].ticks_per_s);
    let believable = |rate: u128| rate > nominal / 2 && rate < nominal.saturating_mul(2);
    let measured = items.iter().find_map(|e| {
        let ((t0, n0, _), (t1, n1, _)) = (e.start?, e.end?);
        (n1.saturating_sub(n0) > SHORTEST_SPAN && t1 > t0).then(|| quotient(n1 - n0, t1 - t0))
    });
    let spans = items.iter().filter_map(|e| e.span);
    let longest = spans.max_by_key(|((_, n0), (_, n1))| n1.saturating_sub(*n0));
    let own = longest.and_then(|((t0, n0), (t1, n1))| {
        (n1.saturating_sub(n0) > SHORTEST_SPAN && t1 > t0).then(|| quotient(n1 - n0, t1 - t0))
    });
    let rate = measured
        .filter(|&r| believable(r))
        .or(own.filter(|&r| believable(r)));
    u64::try_from(rate.unwrap_or(nominal))
        .unwrap_or(1 << FRACTION)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(host: u64) -> ClockEvidence {
        ClockEvidence {
            host,
            clock: 1,
            ticks_per_s: 2_000_000_000,
            ..Default::default()
        }
    }

    #[test]
    fn interpolates_between_start_and_end() {
        let mut e = evidence(1);
        e.start = Some((1_000, 5_000, 3));
        e.end = Some((1_000 + 2_000_200_000, 5_000 + 1_000_000_000, 7));
        let map = Clocks::new(&[e]).of(&e);
        assert_eq!(map.ns(1_000), 5_000);
        let end = map.ns(1_000 + 2_000_200_000);
        assert!((end - 1_000_005_000).abs() <= 1, "{end}");
        assert_eq!(map.error_ns, 7);
        assert!(map.ns(0) < 5_000);
    }

    #[test]
    fn near_a_base_times_are_the_same() {
        let mut e = evidence(1);
        e.ticks_per_s = 2_345_678_901;
        e.start = Some((1_000_000, -77, 0));
        let map = Clocks::new(&[e]).of(&e);
        for base in [0, 999_999, 5_000_000_000, u64::MAX] {
            let near = map.near(base).unwrap();
            for ticks in [0, 1, 7, 1_234_567, 1 << 33] {
                let exact = map.ns(base.wrapping_add(ticks));
                assert_eq!(near.ns(ticks), exact);
            }
        }
        assert!(map.near(1 << 63).is_none());
    }

    #[test]
    fn all_files_of_a_host_share_one_map() {
        let mut measured = evidence(1);
        measured.start = Some((0, 0, 0));
        let bare = evidence(1);
        let clocks = Clocks::new(&[bare, measured]);
        assert_eq!(clocks.of(&bare), clocks.of(&measured));
        assert_eq!(clocks.unsynchronised, 0);
    }

    #[test]
    fn a_killed_run_takes_its_rate_from_the_blocks() {
        let mut e = evidence(1);
        e.start = Some((0, 0, 0));
        e.span = Some(((0, 0), (3_000_000_000, 1_000_000_000)));
        let map = Clocks::new(&[e]).of(&e);
        assert!((map.ns(3_000_000_000) - 1_000_000_000).abs() <= 1);
    }
}
