//! The clocks of the hosts.
//!
//! Simulated time is ns of the reference clock. Every host has a counter of its own,
//! about [`TICKS_PER_S`] fast, that started at another moment and runs at a slightly
//! other rate. Counters are faster than one tick per ns and their rates are of the form
//! (whole number)/2²² ns per tick, so that a time that is converted to ticks, and back
//! with the rate that the clock points tell, is the same to the ns: expected
//! severities need no tolerance.

use super::random::Random;

/// Nominal rate of the counters, Hz.
pub const TICKS_PER_S: u64 = 2_500_000_000;
/// Wall clock when the runs start: 2025-01-01.
pub const START_UNIX_NS: u64 = 1_735_689_600_000_000_000;

/// A clock's rate is told per 2^SHIFT ticks.
const SHIFT: u32 = 22;
/// ns that 2^SHIFT ticks take at the nominal rate.
const NOMINAL: f64 = (1u64 << SHIFT) as f64 * 1e9 / TICKS_PER_S as f64;
/// Where counters start, but for their offset: far from zero, so that an offset fits.
const START: u64 = 1 << 60;
/// Larger offsets, s, do not fit, and larger drifts, parts per million, nobody believes.
const LARGEST: (f64, f64) = (1e8, 1e5);
/// The reference clock when the run starts, ns: the host has been up for a while.
const REFERENCE_START: i64 = 5_000_000_000_000;
/// Less between two measurements says nothing about a rate, ns.
const SHORTEST_SPAN: u64 = 10_000_000;

/// How far clocks are from each other, and what the measurements say of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Skew {
    /// Largest offset of a host's counter, s.
    pub offset_s: f64,
    /// Largest deviation of a host's rate, parts per million.
    pub drift_ppm: f64,
    /// Largest error of a measurement, ns: half of its round trip.
    pub error_ns: u64,
}

/// The clock of one host.
#[derive(Clone, Debug)]
pub struct HostClock {
    start_ticks: u64,
    /// ns per 2^SHIFT ticks.
    rate: u64,
    /// What is wrong with the measurements at start and end, ns.
    wrong: [i64; 2],
    /// What they say of themselves, ns.
    error_ns: u64,
}

impl HostClock {
    /// The clock of a host; that of the first is the reference and measured exactly.
    pub fn new(skew: &Skew, host: u32, seed: u64) -> HostClock {
        let mut random = Random::part(seed, 0xc10c << 32 | u64::from(host));
        let mut signed = || (random.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        let most = (
            skew.offset_s.clamp(0.0, LARGEST.0),
            skew.drift_ppm.clamp(0.0, LARGEST.1),
        );
        let offset = (signed() * most.0 * TICKS_PER_S as f64) as i64;
        let rate = (NOMINAL / (1.0 + signed() * most.1 * 1e-6)).round() as u64;
        let mut error = || match host {
            0 => 0,
            _ => (signed() * skew.error_ns as f64) as i64,
        };
        HostClock {
            start_ticks: START.wrapping_add_signed(offset),
            // Beyond this a tick would be longer than a ns.
            rate: rate.clamp(1, 1 << SHIFT),
            wrong: [error(), error()],
            error_ns: if host == 0 { 0 } else { skew.error_ns },
        }
    }

    /// The counter at a simulated time: the first tick in that ns.
    #[inline]
    pub fn ticks(&self, ns: u64) -> u64 {
        let (whole, rest) = (ns / self.rate, ns % self.rate);
        self.start_ticks + (whole << SHIFT) + (rest << SHIFT).div_ceil(self.rate)
    }

    /// The host's `CLOCK_MONOTONIC`, ns.
    pub fn monotonic_ns(&self, ns: u64) -> u64 {
        (REFERENCE_START as u64) + ns
    }

    /// The measurement at the start: ticks, reference in ns, error in ns.
    pub fn first_measurement(&self) -> (u64, i64, u64) {
        self.measurement(0, self.wrong[0])
    }

    /// The one at an end about `ns`. It is taken a whole number of 2^SHIFT ticks after the
    /// first, since only then the two tell the rate exactly.
    pub fn last_measurement(&self, ns: u64) -> (u64, i64, u64) {
        let periods = ns.max(SHORTEST_SPAN).div_ceil(self.rate);
        self.measurement(periods * self.rate, self.wrong[1])
    }

    fn measurement(&self, ns: u64, wrong: i64) -> (u64, i64, u64) {
        let reference = REFERENCE_START + ns as i64;
        (self.ticks(ns), reference + wrong, self.error_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the analysis converts: a rate with 40 bits behind the point, from both measurements.
    fn convert(clock: &HostClock, ticks: u64, end: u64) -> i64 {
        let ((t0, n0, _), (t1, n1, _)) = (clock.first_measurement(), clock.last_measurement(end));
        let rate = (((n1 - n0) as u128) << 40) / u128::from(t1 - t0);
        n0 + ((u128::from(ticks - t0) * rate) >> 40) as i64 - REFERENCE_START
    }

    #[test]
    fn times_come_back_to_the_ns() {
        let skew = Skew {
            offset_s: 1000.0,
            drift_ppm: 500.0,
            error_ns: 0,
        };
        for host in 0..50 {
            let clock = HostClock::new(&skew, host, 7);
            for ns in [
                0,
                1,
                2,
                3,
                1_677_721,
                1_677_722,
                123_456_789,
                77_777_777_777,
            ] {
                assert_eq!(convert(&clock, clock.ticks(ns), 80_000_000_000), ns as i64);
            }
        }
    }

    #[test]
    fn clocks_differ_within_their_limits() {
        let skew = Skew {
            offset_s: 1.0,
            drift_ppm: 100.0,
            error_ns: 300,
        };
        let clocks: Vec<_> = (0..20).map(|host| HostClock::new(&skew, host, 1)).collect();
        for clock in &clocks {
            assert!(clock.start_ticks.abs_diff(START) <= TICKS_PER_S);
            assert!((clock.rate as f64 / NOMINAL - 1.0).abs() < 1.01e-4);
            assert!(clock.wrong.iter().all(|wrong| wrong.unsigned_abs() <= 300));
        }
        assert!(
            clocks
                .windows(2)
                .all(|two| two[0].start_ticks != two[1].start_ticks)
        );
        assert!(clocks.windows(2).all(|two| two[0].rate != two[1].rate));
        assert_eq!(clocks[0].wrong, [0, 0]);
    }
}
