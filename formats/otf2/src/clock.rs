//! Converts the times of an archive to clocks of a trace.
//!
//! Times stay as measured. The archive's clock offsets of each location become points of a
//! clock, so that nothing is rounded before two clocks are compared.

use laggard_trace::ClockPoint;

use crate::definitions::Clock;

/// Lower resolutions are multiplied, ticks per second: rates have a limited size.
const LOWEST_RESOLUTION: u64 = 1_000_000;
/// Resolution without a definition, ticks per second.
const NANOSECONDS: u64 = 1_000_000_000;

/// The clock of an archive's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// Ticks of a trace per tick of the archive.
    factor: u64,
    /// Ticks of a trace per second.
    pub ticks_per_s: u64,
    /// Zero of the common clock, ticks of a trace.
    zero: u64,
    /// Time from there to the last event, ticks of a trace.
    length: u64,
    /// The same in s, rounded up; at least one.
    seconds: u64,
    /// `CLOCK_REALTIME` at `zero`, ns; 0 = unknown.
    realtime_ns: u64,
}

impl Timer {
    /// The timer of an archive's clock, if its definition makes sense.
    pub fn new(clock: Option<&Clock>) -> Option<Timer> {
        let clock = clock.filter(|clock| clock.resolution > 0)?;
        let factor = match clock.resolution < LOWEST_RESOLUTION {
            true => NANOSECONDS / clock.resolution,
            false => 1,
        };
        Some(Timer {
            factor,
            ticks_per_s: clock.resolution * factor,
            zero: clock.global_offset.saturating_mul(factor),
            length: clock.length.saturating_mul(factor),
            seconds: clock.length / clock.resolution + 1,
            realtime_ns: match clock.realtime_ns {
                u64::MAX => 0,
                ns => ns,
            },
        })
    }

    /// A timer in nanoseconds.
    pub fn guessed() -> Timer {
        Timer {
            factor: 1,
            ticks_per_s: NANOSECONDS,
            zero: 0,
            length: 0,
            seconds: 1,
            realtime_ns: 0,
        }
    }

    /// Converts a time to ticks of a trace.
    pub fn ticks(&self, time: u64) -> u64 {
        time.saturating_mul(self.factor)
    }

    /// When the first event of the archive is, and the last one, as a location's clock shows it that has
    /// these offsets.
    pub fn span(&self, offsets: Option<&[(u64, i64)]>) -> (u64, u64) {
        let offset = |found: Option<&(u64, i64)>| found.map_or(0, |(_, offset)| *offset);
        let offsets = offsets.unwrap_or(&[]);
        let shown = |time: u64, offset: i64| {
            time.saturating_add_signed(offset.saturating_mul(self.factor as i64).saturating_neg())
        };
        let begin = shown(self.zero, offset(offsets.first()));
        let end = shown(
            self.zero.saturating_add(self.length),
            offset(offsets.last()),
        );
        (begin, end)
    }

    /// `CLOCK_REALTIME` at a moment, ns; 0 = unknown.
    pub fn unix_ns(&self, ticks: u64) -> u64 {
        match self.realtime_ns {
            0 => 0,
            ns => ns.saturating_add_signed(self.ns(ticks, 0)),
        }
    }

    /// The common clock, ns since its zero, when a clock shows `ticks` with an offset of
    /// `correction` ticks.
    fn ns(&self, ticks: u64, correction: i128) -> i64 {
        let since = i128::from(ticks) - i128::from(self.zero) + correction;
        let ns = since * i128::from(NANOSECONDS);
        let rounded = (ns + i128::from(self.ticks_per_s / 2)).div_euclid(self.ticks_per_s.into());
        rounded.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// A location's clock. Offsets are interpolated linearly between their measurements. Before
    /// the first and after the last, the nearest slope continues.
    pub fn points(&self, offsets: &[(u64, i64)]) -> Vec<ClockPoint> {
        let mut offsets: Vec<(u64, i128)> = offsets
            .iter()
            .map(|&(time, offset)| {
                let offset = i128::from(offset) * i128::from(self.factor);
                (self.ticks(time), offset)
            })
            .collect();
        offsets.sort_unstable();
        offsets.dedup_by_key(|(time, _)| *time);
        let covered = u128::from(self.seconds) * u128::from(self.ticks_per_s);
        let covered = u64::try_from(covered).unwrap_or(u64::MAX);
        let moments = match offsets[..] {
            [(first, _), .., (last, _)] if last - first >= self.ticks_per_s => offsets,
            // Too close to give a rate: extended along a straight line, in whole multiples.
            [(first, a), .., (last, b)] => {
                let times = covered / (last - first) + 1;
                let far = first.saturating_add((last - first).saturating_mul(times));
                vec![(first, a), (far, a + (b - a) * i128::from(times))]
            }
            [(_, offset)] => vec![
                (self.zero, offset),
                (self.zero.saturating_add(covered), offset),
            ],
            [] => vec![(self.zero, 0), (self.zero.saturating_add(covered), 0)],
        };
        let last = moments.len() - 1;
        let point = |(at, &(local, offset)): (usize, &(u64, i128))| ClockPoint {
            local,
            reference_ns: self.ns(local, offset),
            error_ns: 0,
            kind: match at {
                0 => 0,
                at if at == last => 1,
                _ => 2,
            },
            reserved: 0,
        };
        moments.iter().enumerate().map(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timer(resolution: u64) -> Timer {
        let clock = Clock {
            resolution,
            global_offset: 1_000,
            length: 5 * resolution,
            realtime_ns: u64::MAX,
        };
        Timer::new(Some(&clock)).unwrap()
    }

    fn pairs(timer: Timer, offsets: &[(u64, i64)]) -> Vec<(u64, i64)> {
        let points = timer.points(offsets);
        points.iter().map(|p| (p.local, p.reference_ns)).collect()
    }

    #[test]
    fn nanoseconds_without_offsets_are_as_they_are() {
        let timer = timer(1_000_000_000);
        let all = pairs(timer, &[]);
        assert_eq!(all, [(1_000, 0), (6_000_001_000, 6_000_000_000)]);
        assert_eq!(timer.ticks(7), 7);
    }

    #[test]
    fn coarse_times_become_nanoseconds() {
        let timer = timer(10);
        assert_eq!(
            (timer.ticks_per_s, timer.ticks(3)),
            (1_000_000_000, 300_000_000)
        );
        // 910 s (9,100 tenths) later, with an offset larger by 5 tenths.
        let second = (1_010_000_000_000, 910_500_000_000);
        let offsets = [(1_000, 0), (10_100, 5)];
        assert_eq!(pairs(timer, &offsets), [(100_000_000_000, 0), second]);
    }

    #[test]
    fn offsets_that_are_close_keep_their_slope() {
        // 1 ms apart, and 1 µs more: 6 s of it are 6,001 times that.
        let offsets = [(1_000, 500), (1_001_000, 1_500)];
        let far = 1_000 + 6_001 * 1_000_000;
        let expected = [
            (1_000, 500),
            (far, (far as i64 - 1_000) + 500 + 6_001 * 1_000),
        ];
        assert_eq!(pairs(timer(1_000_000_000), &offsets), expected);
    }

    #[test]
    fn nonsense_is_no_timer() {
        assert_eq!(Timer::new(None), None);
        let clock = Clock {
            resolution: 0,
            global_offset: 0,
            length: 0,
            realtime_ns: 0,
        };
        assert_eq!(Timer::new(Some(&clock)), None);
    }
}
