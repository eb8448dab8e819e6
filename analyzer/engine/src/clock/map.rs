//! From ticks of a clock to ns of the global clock.

use std::sync::Arc;

use super::Moves;

/// Bits behind the binary point of [`ClockMap`]'s rates.
pub(crate) const FRACTION: u32 = 40;
/// Ticks for which a [`NearMap`] is good.
const NEAR: u64 = 1 << 33;
/// Times stay within ± this, ns (36 years), so that their differences do not overflow.
const LONGEST: i128 = 1 << 60;

/// A stretch of time in which a clock runs evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Its beginning, ticks since the map's origin. The first segment has no beginning.
    pub(crate) since: i64,
    /// A point on it: ticks since the origin, and ns.
    pub(crate) ticks: i64,
    pub(crate) ns: i64,
    /// ns per tick, fixed point.
    pub(crate) rate: u64,
    /// Bound of the error against rank 0's clock, ns.
    pub(crate) error_ns: u64,
}

impl Segment {
    /// Global time of `ticks` since the map's origin, before the shift by `zero`.
    #[inline]
    pub(crate) fn ns(&self, ticks: i64) -> i128 {
        let since = i128::from(ticks) - i128::from(self.ticks);
        i128::from(self.ns) + ((since * i128::from(self.rate)) >> FRACTION)
    }
}

/// Converts ticks of one host's clock to ns of the global clock. The map is monotonic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockMap {
    /// Origin of the segments' ticks.
    pub(crate) origin: u64,
    /// Global time of the map's time 0, ns.
    pub(crate) zero: i64,
    /// Segments by time; at least one.
    pub(crate) segments: Arc<[Segment]>,
    /// Times of a changed run, if it is about one.
    pub(crate) moves: Option<Arc<Moves>>,
}

impl ClockMap {
    /// A map through the point (`ticks`, `ns`).
    pub(crate) fn even(ticks: u64, ns: i64, rate: u64, error_ns: u64) -> Self {
        let segment = Segment {
            since: i64::MIN,
            ticks: 0,
            ns,
            rate,
            error_ns,
        };
        ClockMap {
            origin: ticks,
            zero: 0,
            segments: Arc::new([segment]),
            moves: None,
        }
    }

    /// The segment that contains a moment, and the segment's end. Moments are ticks since the
    /// origin.
    #[inline]
    fn segment(&self, ticks: i64) -> (&Segment, i64) {
        match &*self.segments {
            [only] => (only, i64::MAX),
            all => {
                let next = all.partition_point(|segment| segment.since <= ticks).max(1);
                let end = all.get(next).map_or(i64::MAX, |segment| segment.since);
                (&all[next - 1], end)
            }
        }
    }

    /// Global time of a moment of the location's clock.
    #[inline]
    pub fn ns(&self, ticks: u64) -> i64 {
        let ticks = ticks.wrapping_sub(self.origin) as i64;
        let ns = self.segment(ticks).0.ns(ticks) - i128::from(self.zero);
        let ns = ns.clamp(-LONGEST, LONGEST) as i64;
        self.moves.as_ref().map_or(ns, |moves| moves.ns(ns))
    }

    /// The same clock in a changed run.
    pub fn moved(self, moves: Arc<Moves>) -> Self {
        ClockMap {
            moves: Some(moves),
            ..self
        }
    }

    /// Whether there is only one segment.
    pub fn is_even(&self) -> bool {
        self.segments.len() == 1 && self.moves.is_none()
    }

    /// The map for `first` to `last` ticks (below 2^33) after `base`, a moment of the location's
    /// clock. `None` if it is not even there, or out of bounds.
    pub fn near(&self, base: u64, first: u64, last: u64) -> Option<NearMap> {
        if self.moves.is_some() {
            return None;
        }
        let base = base.wrapping_sub(self.origin) as i64;
        let (segment, end) = self.segment(base.checked_add(first as i64)?);
        if base.checked_add(last as i64)? >= end && end != i64::MAX {
            return None;
        }
        let since = i128::from(base) - i128::from(segment.ticks);
        let product = since * i128::from(segment.rate);
        let ns = i128::from(segment.ns) - i128::from(self.zero);
        let near = NearMap {
            scaled: (i128::from(i64::try_from(ns).ok()?) << FRACTION).wrapping_add(product),
            rate: segment.rate,
        };
        ((ns + (product >> FRACTION)).abs() < LONGEST / 2).then_some(near)
    }

    /// The same as [`ns`](Self::ns), fast for moments soon after a `base`.
    pub fn after(&self, base: u64) -> impl Fn(u64) -> i64 + '_ {
        let near = self.is_even().then(|| self.near(base, 0, 0)).flatten();
        move |ticks| match near {
            Some(near) if ticks.wrapping_sub(base) < NEAR => near.ns(ticks.wrapping_sub(base)),
            _ => self.ns(ticks),
        }
    }

    /// Mean length of `ticks` ticks, ns.
    #[inline]
    pub fn length_ns(&self, ticks: u64) -> f64 {
        // Most records tell nothing of what is asked.
        if ticks == 0 {
            return 0.0;
        }
        let rate = match &*self.segments {
            [only] => only.rate as f64 / (1u64 << FRACTION) as f64,
            [first, .., last] => {
                let ns = last.ns.saturating_sub(first.ns) as f64;
                ns / last.ticks.saturating_sub(first.ticks).max(1) as f64
            }
            [] => 0.0,
        };
        ticks as f64 * rate
    }

    /// The same map with `zero` as the time 0.
    pub fn shifted(mut self, zero: i64) -> Self {
        self.zero = self.zero.saturating_add(zero);
        self
    }

    /// The moment of the location's clock at the global time `ns` of the recorded run.
    pub fn moment(&self, ns: i64) -> u64 {
        self.origin.wrapping_add(self.ticks_at(ns) as u64)
    }

    /// The moment at the global time `ns`, ticks since the origin.
    fn ticks_at(&self, ns: i64) -> i64 {
        let ns = i128::from(ns) + i128::from(self.zero);
        let begins_before = |segment: &Segment| segment.ns(segment.since) <= ns;
        let next = self.segments[1..].partition_point(begins_before);
        let segment = &self.segments[next];
        let since = ((ns - i128::from(segment.ns)) << FRACTION) / i128::from(segment.rate.max(1));
        let ticks = i128::from(segment.ticks) + since;
        ticks.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// This map plus corrections (ns later): one every `width` ns from 0 on, linear in between, and
    /// the first and last one outside. Corrections change by less than time does.
    pub fn corrected(&self, width: i64, corrections: &[i64]) -> ClockMap {
        let (Some(&first), Some(&last)) = (corrections.first(), corrections.last()) else {
            return self.clone();
        };
        if corrections.iter().all(|&by| by == 0) {
            return self.clone();
        }
        let bends = (0..corrections.len()).filter(|&at| {
            let around = at
                .checked_sub(1)
                .and_then(|from| corrections.get(from..from + 3));
            around.is_none_or(|c| c[1] - c[0] != c[2] - c[1])
        });
        let mut moments: Vec<i64> = bends.map(|at| self.ticks_at(at as i64 * width)).collect();
        moments.extend(self.segments[1..].iter().map(|segment| segment.since));
        moments.sort_unstable();
        moments.dedup();
        let time = |ticks: i64| -> Option<i64> {
            let ns = self.segment(ticks).0.ns(ticks) - i128::from(self.zero);
            let ns = i64::try_from(ns).ok()?;
            let at = usize::try_from(ns.div_euclid(width)).ok();
            let by = match at {
                None => first,
                Some(at) => match corrections.get(at..at + 2) {
                    None => last,
                    Some(two) => {
                        let part = i128::from(two[1] - two[0]) * i128::from(ns % width);
                        two[0] + part.div_euclid(width.into()) as i64
                    }
                },
            };
            ns.checked_add(by)
        };
        let points = moments.iter().map(|&ticks| Some((ticks, time(ticks)?)));
        // Times are out of bounds: no correction.
        let Some(points) = points.collect::<Option<Vec<(i64, i64)>>>() else {
            return self.clone();
        };
        let mut segments = Vec::with_capacity(points.len() + 1);
        for (at, &(ticks, ns)) in points.iter().enumerate() {
            let own = self.segment(ticks).0;
            let mut segment = Segment {
                since: ticks,
                ticks,
                ns,
                ..*own
            };
            if at == 0 {
                // Times before the first correction keep their rate.
                let before = self.segment(ticks.saturating_sub(1)).0;
                segments.push(Segment {
                    since: i64::MIN,
                    rate: before.rate,
                    error_ns: before.error_ns,
                    ..segment
                });
            }
            if let Some(&(next, then)) = points.get(at + 1) {
                let lasts = (i128::from(then) - i128::from(ns)) << FRACTION;
                let rate = lasts / (i128::from(next) - i128::from(ticks));
                segment.rate = u64::try_from(rate).unwrap_or(own.rate);
            }
            segments.push(segment);
        }
        ClockMap {
            origin: self.origin,
            zero: 0,
            segments: segments.into(),
            moves: None,
        }
    }

    /// Largest error bound, ns.
    pub fn error_ns(&self) -> u64 {
        let errors = self.segments.iter().map(|segment| segment.error_ns);
        errors.max().unwrap_or(0)
    }
}

/// An even part of a [`ClockMap`], for moments up to 2^33 ticks after a base. Fast, for many
/// moments.
#[derive(Clone, Copy, Debug)]
pub struct NearMap {
    /// Global time at the base, fixed point.
    scaled: i128,
    rate: u64,
}

impl NearMap {
    /// Global time of `ticks` after the base, equal to [`ClockMap::ns`].
    #[inline(always)]
    pub fn ns(&self, ticks: u64) -> i64 {
        // Below 2^97: the sum with half of the longest time fits.
        let scaled = self.scaled + (u128::from(self.rate) * u128::from(ticks)) as i128;
        (scaled >> FRACTION) as i64
    }
}
