//! The clocks of the hosts.
//!
//! Simulated time is ns of the reference clock. Every host has a counter of its own, about
//! [`TICKS_PER_S`] fast. It started at another moment and runs at a slightly different rate.
//! Counters are faster than one tick per ns. Their rates have the form (whole number)/2²² ns per
//! tick. So a time that is converted to ticks, and back with the rate of the clock points, is the
//! same to the ns: expected severities need no tolerance.
//!
//! A rate may wander: it then changes every so often, after a whole number of 2²² ticks. With
//! measurements at all these moments times still come back exactly. With fewer, or none,
//! [`HostClock::bend`] bounds the error.

use std::cell::{Cell, Ref, RefCell};

use super::random::Random;

/// Nominal rate of the counters, Hz.
pub const TICKS_PER_S: u64 = 2_500_000_000;
/// Wall clock when the runs start: 2025-01-01.
pub const START_UNIX_NS: u64 = 1_735_689_600_000_000_000;

/// Rates are in ns per 2^SHIFT ticks.
const SHIFT: u32 = 22;
/// ns that 2^SHIFT ticks take at the nominal rate.
const NOMINAL: f64 = (1u64 << SHIFT) as f64 * 1e9 / TICKS_PER_S as f64;
/// Where counters start, before their offset: far from zero, so that any offset fits.
const START: u64 = 1 << 60;
/// Largest offset that fits, s, and largest plausible drift, parts per million.
const LARGEST: (f64, f64) = (1e8, 1e5);
/// The reference clock when the run starts, ns: the host has been up for a while.
const REFERENCE_START: i64 = 5_000_000_000_000;
/// A shorter span between two measurements says nothing about a rate, ns.
const SHORTEST_SPAN: u64 = 10_000_000;

/// Default interval between changes of a wandering rate, ns.
const CHANGES: u64 = 50_000_000;

/// How far clocks differ, and how well they are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Skew {
    /// Largest offset of a host's counter, s.
    pub offset_s: f64,
    /// Largest deviation of a host's rate, parts per million.
    pub drift_ppm: f64,
    /// Largest error of a measurement, ns: half of its round trip.
    pub error_ns: u64,
    /// Largest change of a rate from its average, parts per million.
    pub wander_ppm: f64,
    /// About how often it changes, ns; 0 = the default.
    pub wander_ns: u64,
    /// About how often clocks are measured during the run, ns; 0 = at start and end only.
    pub sync_ns: u64,
}

/// A stretch of time in which a clock runs evenly.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// Simulated time at which it begins, ns.
    ns: u64,
    /// The counter at that time.
    ticks: u64,
    /// ns per 2^SHIFT ticks.
    rate: u64,
}

impl Stretch {
    /// The first tick in a ns.
    #[inline]
    fn ticks(&self, ns: u64) -> u64 {
        let since = ns - self.ns;
        let (whole, rest) = (since / self.rate, since % self.rate);
        self.ticks + (whole << SHIFT) + (rest << SHIFT).div_ceil(self.rate)
    }
}

/// A measurement: ticks, reference in ns, error in ns.
pub type Measurement = (u64, i64, u64);

/// The clock of one host.
#[derive(Clone, Debug)]
pub struct HostClock {
    skew: Skew,
    host: u32,
    seed: u64,
    drift_ppm: f64,
    /// Those needed so far.
    stretches: RefCell<Vec<Stretch>>,
    /// The one used last.
    latest: Cell<Stretch>,
    /// Its end, ns.
    latest_end: Cell<u64>,
    /// Approximate length of the stretches, ns; 0 = only one.
    length: u64,
    /// Every n-th stretch begins with a measurement; 0 = none does.
    every: u64,
    /// Errors of the measurements at start and end, ns.
    wrong: [i64; 2],
    /// The error that measurements report, ns.
    error_ns: u64,
}

impl HostClock {
    /// The clock of a host. The first host's is the reference, and measured exactly.
    pub fn new(skew: &Skew, host: u32, seed: u64) -> HostClock {
        let mut random = Random::part(seed, 0xc10c << 32 | u64::from(host));
        let mut signed = || signed(&mut random);
        let most = (
            skew.offset_s.clamp(0.0, LARGEST.0),
            skew.drift_ppm.clamp(0.0, LARGEST.1),
        );
        let offset = (signed() * most.0 * TICKS_PER_S as f64) as i64;
        let drift_ppm = signed() * most.1;
        let mut error = || match host {
            0 => 0,
            _ => (signed() * skew.error_ns as f64) as i64,
        };
        let wrong = [error(), error()];
        let length = match (skew.wander_ppm > 0.0, skew.wander_ns) {
            (false, _) => skew.sync_ns,
            (true, 0) => CHANGES,
            (true, length) => length,
        };
        let length = if length > 0 {
            length.max(2 * SHORTEST_SPAN)
        } else {
            0
        };
        let every = match skew.sync_ns {
            0 => 0,
            sync => (sync / length.max(1)).max(1),
        };
        let clock = HostClock {
            skew: *skew,
            host,
            seed,
            drift_ppm,
            stretches: RefCell::default(),
            latest: Cell::new(Stretch {
                ns: 0,
                ticks: START.wrapping_add_signed(offset),
                rate: 1,
            }),
            latest_end: Cell::new(u64::MAX),
            length,
            every,
            wrong,
            error_ns: if host == 0 { 0 } else { skew.error_ns },
        };
        let first = Stretch {
            rate: clock.rate(0),
            ..clock.latest.get()
        };
        clock.stretches.borrow_mut().push(first);
        clock.latest.set(first);
        clock.latest_end.set(clock.end_of(&first));
        clock
    }

    /// Random numbers of this clock for a stretch.
    fn random(&self, what: u64, stretch: usize) -> Random {
        let part = Random::part(self.seed, what << 32 | u64::from(self.host)).next();
        Random::part(part, stretch as u64)
    }

    fn rate(&self, stretch: usize) -> u64 {
        let wander = match self.skew.wander_ppm > 0.0 {
            true => signed(&mut self.random(0xa4de, stretch)) * self.skew.wander_ppm,
            false => 0.0,
        };
        let ppm = self.drift_ppm + wander.clamp(-LARGEST.1, LARGEST.1);
        let rate = (NOMINAL / (1.0 + ppm * 1e-6)).round() as u64;
        // Beyond this a tick would be longer than a ns.
        rate.clamp(1, 1 << SHIFT)
    }

    fn end_of(&self, stretch: &Stretch) -> u64 {
        match self.length {
            0 => u64::MAX,
            length => stretch.ns + length.div_ceil(stretch.rate) * stretch.rate,
        }
    }

    /// All stretches that begin up to `ns`, and maybe more.
    fn stretches(&self, ns: u64) -> Ref<'_, Vec<Stretch>> {
        loop {
            let all = self.stretches.borrow();
            let last = all[all.len() - 1];
            let end = self.end_of(&last);
            if end > ns {
                return all;
            }
            let next = Stretch {
                ns: end,
                ticks: last.ticks(end),
                rate: self.rate(all.len()),
            };
            drop(all);
            self.stretches.borrow_mut().push(next);
        }
    }

    /// The stretch that contains a moment.
    #[inline]
    fn stretch(&self, ns: u64) -> Stretch {
        let latest = self.latest.get();
        if latest.ns <= ns && ns < self.latest_end.get() {
            return latest;
        }
        let all = self.stretches(ns);
        let found = all[all.partition_point(|stretch| stretch.ns <= ns) - 1];
        self.latest.set(found);
        self.latest_end.set(self.end_of(&found));
        found
    }

    /// The counter at a simulated time: the first tick in that ns.
    #[inline]
    pub fn ticks(&self, ns: u64) -> u64 {
        self.stretch(ns).ticks(ns)
    }

    /// The host's `CLOCK_MONOTONIC`, ns.
    pub fn monotonic_ns(&self, ns: u64) -> u64 {
        (REFERENCE_START as u64) + ns
    }

    /// The measurement at the start.
    pub fn first_measurement(&self) -> Measurement {
        self.measurement(0, self.wrong[0])
    }

    /// Moments up to `end` at which clocks are measured, and the error of each measurement, ns.
    fn moments(&self, end: u64) -> Vec<(u64, i64)> {
        if self.every == 0 {
            return Vec::new();
        }
        let all = self.stretches(end);
        let moments = all.iter().enumerate().skip(1);
        let measured =
            moments.filter(|(at, s)| (*at as u64).is_multiple_of(self.every) && s.ns <= end);
        let wrong = |at| match self.host {
            0 => 0,
            _ => (signed(&mut self.random(0x3c04, at)) * self.skew.error_ns as f64) as i64,
        };
        measured.map(|(at, s)| (s.ns, wrong(at))).collect()
    }

    /// The measurements during a run that ends at about `ns`.
    pub fn measurements(&self, ns: u64) -> Vec<Measurement> {
        let moments = self.moments(ns).into_iter();
        moments
            .map(|(ns, wrong)| self.measurement(ns, wrong))
            .collect()
    }

    /// The measurement at an end at about `ns`. It is a whole number of 2^SHIFT ticks after the
    /// last change of rate: only then do measurements tell the rate exactly.
    pub fn last_measurement(&self, ns: u64) -> Measurement {
        self.measurement(self.last_moment(ns), self.wrong[1])
    }

    fn last_moment(&self, ns: u64) -> u64 {
        let last = self.moments(ns).last().map_or(0, |moment| moment.0);
        let least = ns.max(last + SHORTEST_SPAN);
        let stretch = self.stretch(least);
        stretch.ns + (least - stretch.ns).div_ceil(stretch.rate) * stretch.rate
    }

    fn measurement(&self, ns: u64, wrong: i64) -> Measurement {
        let reference = REFERENCE_START + ns as i64;
        (self.ticks(ns), reference + wrong, self.error_ns)
    }

    /// Largest error of times from straight lines through exact measurements of a run up to `end`,
    /// ns.
    pub fn bend(&self, end: u64) -> u64 {
        let mut moments = vec![0];
        moments.extend(self.moments(end).iter().map(|moment| moment.0));
        moments.push(self.last_moment(end));
        let all = self.stretches(self.last_moment(end));
        let mut most = 0;
        for two in moments.windows(2) {
            let &[from, to] = two else { continue };
            // A straight line is off most where the rate changes.
            let inside = all
                .iter()
                .filter(|stretch| (from + 1..to).contains(&stretch.ns));
            let (t0, t1) = (self.ticks(from), self.ticks(to));
            for stretch in inside {
                let since = u128::from(stretch.ticks - t0) * u128::from(to - from);
                let told = from + (since / u128::from((t1 - t0).max(1))) as u64;
                most = most.max(told.abs_diff(stretch.ns) + 1);
            }
        }
        most
    }
}

/// From −1 to 1.
fn signed(random: &mut Random) -> f64 {
    (random.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Converts as the analysis does: a rate with 40 fractional bits, from both measurements.
    fn convert(clock: &HostClock, ticks: u64, end: u64) -> i64 {
        let mut points = vec![clock.first_measurement()];
        points.extend(clock.measurements(end));
        points.push(clock.last_measurement(end));
        let next = points.partition_point(|point| point.0 <= ticks);
        let next = next.clamp(1, points.len() - 1);
        let ((t0, n0, _), (t1, n1, _)) = (points[next - 1], points[next]);
        let rate = (((n1 - n0) as u128) << 40) / u128::from(t1 - t0);
        n0 + ((u128::from(ticks - t0) * rate) >> 40) as i64 - REFERENCE_START
    }

    #[test]
    fn times_come_back_to_the_ns() {
        let skew = Skew {
            offset_s: 1000.0,
            drift_ppm: 500.0,
            ..Skew::default()
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
            ..Skew::default()
        };
        let clocks: Vec<_> = (0..20).map(|host| HostClock::new(&skew, host, 1)).collect();
        for clock in &clocks {
            assert!(clock.ticks(0).abs_diff(START) <= TICKS_PER_S);
            let rate = clock.latest.get().rate;
            assert!((rate as f64 / NOMINAL - 1.0).abs() < 1.01e-4);
            assert!(clock.wrong.iter().all(|wrong| wrong.unsigned_abs() <= 300));
        }
        assert!(
            clocks
                .windows(2)
                .all(|two| two[0].ticks(0) != two[1].ticks(0))
        );
        assert!(
            clocks
                .windows(2)
                .all(|two| two[0].rate(0) != two[1].rate(0))
        );
        assert_eq!(clocks[0].wrong, [0, 0]);
    }

    #[test]
    fn rates_that_wander_are_told_by_frequent_measurements() {
        let skew = Skew {
            offset_s: 1.0,
            drift_ppm: 100.0,
            wander_ppm: 50.0,
            wander_ns: 40_000_000,
            sync_ns: 40_000_000,
            ..Skew::default()
        };
        let end = 900_000_000;
        for host in 0..20 {
            let often = HostClock::new(&skew, host, 3);
            let [seldom, never] =
                [200_000_000, 0].map(|sync_ns| HostClock::new(&Skew { sync_ns, ..skew }, host, 3));
            let mut most = [0, 0];
            for ns in (0..end).step_by(1_234_567) {
                let ticks = often.ticks(ns);
                assert_eq!(convert(&often, ticks, end), ns as i64);
                for (most, clock) in most.iter_mut().zip([&seldom, &never]) {
                    assert_eq!(clock.ticks(ns), ticks);
                    let off = convert(clock, ticks, end).abs_diff(ns as i64);
                    *most = off.max(*most);
                    assert!(off <= clock.bend(end), "{off} {}", clock.bend(end));
                }
            }
            assert_eq!(often.bend(end), 0);
            assert!(most[0] > 100, "{most:?}");
        }
    }
}
