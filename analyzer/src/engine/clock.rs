//! One global clock for all locations of a run.
//!
//! Every host has measured its clock against the reference a few times: at the start, at
//! the end, and in between on request. Between two measurements its clock is taken to run
//! evenly; a measurement with a large error counts only where the others contradict it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use laggard_trace::ClockPoint;
use serde::{Deserialize, Serialize};

/// Bits behind the binary point of [`ClockMap`]'s rates.
const FRACTION: u32 = 40;
/// Times are within ± this, ns (36 years), so that differences and windows of them fit.
const LONGEST: i128 = 1 << 60;
/// Spans shorter than this say nothing about a rate, ns.
const SHORTEST_SPAN: i64 = 5_000_000;
/// A measurement is poor if its error is so many times the median of its host's.
const POOR: u64 = 4;
/// An error that is never poor, ns.
const FINE: u64 = 1_000;
/// A rate is good enough to go on with, beyond the first and the last measurement, if the
/// errors of the two that it is from are below this part of the time between them.
const GOOD_RATE: i64 = 1_000_000;
/// Kinds of clock points that are measurements of the reference: start, end, periodic.
const LAST_KIND: u32 = 2;

/// Where a clock runs evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    /// Ticks since the map's origin from which on it counts, the first from the beginning.
    since: i64,
    /// A point of it: ticks since the origin, and ns.
    ticks: i64,
    ns: i64,
    /// ns per tick, fixed point.
    rate: u64,
    /// Bound of the error against rank 0's clock, ns.
    error_ns: u64,
}

impl Segment {
    /// Global time, `ticks` after the map's origin, before it is shifted.
    #[inline]
    fn ns(&self, ticks: i64) -> i128 {
        let since = i128::from(ticks) - i128::from(self.ticks);
        i128::from(self.ns) + ((since * i128::from(self.rate)) >> FRACTION)
    }
}

/// Converts ticks of one host's clock to ns of the global clock. Later ticks are never
/// earlier times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockMap {
    /// Ticks that segments count from.
    origin: u64,
    /// What is the time 0, ns.
    zero: i64,
    /// By time; there is one at least.
    segments: Arc<[Segment]>,
}

impl ClockMap {
    /// A map through the point (`ticks`, `ns`).
    fn even(ticks: u64, ns: i64, rate: u64, error_ns: u64) -> Self {
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
        }
    }

    /// The segment in which a moment is, and the end of it; moments are ticks since the origin.
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
        ns.clamp(-LONGEST, LONGEST) as i64
    }

    /// Whether one segment is all there is.
    pub fn is_even(&self) -> bool {
        self.segments.len() == 1
    }

    /// The map from `first` to `last` ticks after a moment of the location's clock, which are
    /// below 2^33; `None` if it is not even there, or out of bounds.
    pub fn near(&self, base: u64, first: u64, last: u64) -> Option<NearMap> {
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

    /// Length of `ticks` ticks, ns, on average.
    pub fn length_ns(&self, ticks: u64) -> f64 {
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

    /// The moment of the location's clock at which it is `ns`.
    pub fn moment(&self, ns: i64) -> u64 {
        self.origin.wrapping_add(self.ticks_at(ns) as u64)
    }

    /// The moment at which it is `ns`, ticks since the origin.
    fn ticks_at(&self, ns: i64) -> i64 {
        let ns = i128::from(ns) + i128::from(self.zero);
        let begins_before = |segment: &Segment| segment.ns(segment.since) <= ns;
        let next = self.segments[1..].partition_point(begins_before);
        let segment = &self.segments[next];
        let since = ((ns - i128::from(segment.ns)) << FRACTION) / i128::from(segment.rate.max(1));
        let ticks = i128::from(segment.ticks) + since;
        ticks.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// A map that is later than this one: by `corrections` at every `width` ns from 0 on, by
    /// the first and last of them before and after, and evenly in between. They change by
    /// less than time does.
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
        // Times out of bounds: there is nothing to be corrected.
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
                // What comes before goes on as it did.
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
        }
    }

    /// Largest error bound, ns.
    pub fn error_ns(&self) -> u64 {
        let errors = self.segments.iter().map(|segment| segment.error_ns);
        errors.max().unwrap_or(0)
    }
}

/// A part of a [`ClockMap`] that is even, for moments of up to 2^33 ticks after a base, for
/// many at once.
#[derive(Clone, Copy, Debug)]
pub struct NearMap {
    /// Global time at the base, fixed point.
    scaled: i128,
    rate: u64,
}

impl NearMap {
    /// Global time so many ticks after the base, as [`ClockMap::ns`] gives it.
    #[inline(always)]
    pub fn ns(&self, ticks: u64) -> i64 {
        // Below 2^97: what is added to half of the longest time fits.
        let scaled = self.scaled + (u128::from(self.rate) * u128::from(ticks)) as i128;
        (scaled >> FRACTION) as i64
    }
}

/// A measurement of a clock: ticks, ns of the reference, bound of the error in ns.
pub type Point = (u64, i64, u64);

/// Measurements kept of a file, at most.
const MOST_POINTS: usize = 512;

/// The measurements in a file. There may be many in a long run: of successive ones the best.
pub fn points(points: &[ClockPoint]) -> Vec<Point> {
    let known = points.iter().filter(|point| point.kind <= LAST_KIND);
    let all: Vec<Point> = known
        .map(|point| (point.local, point.reference_ns, point.error_ns))
        .collect();
    if all.len() <= MOST_POINTS {
        return all;
    }
    // The first and the last tell more than others.
    let inner = &all[1..all.len() - 1];
    let groups = inner.chunks(inner.len().div_ceil(MOST_POINTS - 2));
    let best = groups.filter_map(|group| group.iter().min_by_key(|point| point.2));
    let ends = [&all[0], &all[all.len() - 1]];
    let kept = ends[..1]
        .iter()
        .copied()
        .chain(best)
        .chain(ends[1..].iter().copied());
    kept.copied().collect()
}

/// Host and kind of a clock.
pub type ClockKey = (u64, u32);

/// What one file says about its clock.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClockEvidence {
    /// Locations with equal hosts share one clock.
    pub host: u64,
    /// Kind of clock.
    pub clock: u32,
    /// Nominal rate, Hz.
    pub ticks_per_s: u64,
    /// Measured against the reference, by time.
    pub points: Vec<Point>,
    /// (ticks, local `CLOCK_MONOTONIC` ns) of the first and the last block.
    pub span: Option<((u64, i64), (u64, i64))>,
    /// (ticks, `CLOCK_REALTIME` ns) of the file's making: the last resort.
    pub made: (u64, i64),
}

impl ClockEvidence {
    /// What tells its clock from others.
    pub fn key(&self) -> ClockKey {
        (self.host, self.clock)
    }
}

/// What is needed of the evidence of an agent's files, in rank order, for the same
/// [`Clocks`]: of each clock the first file, that with the longest span, and each measurement
/// once, with the first file that has any. Ranks of a host share most of what they say.
pub fn needed<'e>(files: impl Iterator<Item = &'e ClockEvidence> + Clone) -> Vec<ClockEvidence> {
    /// What is needed of one clock. Files are told by their position.
    #[derive(Default)]
    struct Of {
        first: usize,
        measured: Option<usize>,
        longest: Option<(i64, usize)>,
        points: Vec<Point>,
        known: HashSet<Point>,
    }
    let mut clocks: HashMap<ClockKey, Of> = HashMap::new();
    for (at, file) in files.clone().enumerate() {
        let of = clocks.entry(file.key()).or_insert_with(|| Of {
            first: at,
            ..Of::default()
        });
        let known = &mut of.known;
        let points = file.points.iter().copied();
        let before = of.points.len();
        of.points
            .extend(points.filter(|&point| known.insert(point)));
        if of.points.len() > before {
            of.measured.get_or_insert(at);
        }
        // The last one of those that are equally long.
        if let Some(((_, n0), (_, n1))) = file.span {
            let span = n1.saturating_sub(n0);
            if of.longest.is_none_or(|(most, _)| span >= most) {
                of.longest = Some((span, at));
            }
        }
    }
    let needed = files.enumerate().filter_map(|(at, file)| {
        let of = clocks.get_mut(&file.key())?;
        let is_measured = of.measured == Some(at);
        let is_longest = of.longest.is_some_and(|(_, longest)| longest == at);
        (of.first == at || is_longest || is_measured).then(|| ClockEvidence {
            points: match is_measured {
                true => std::mem::take(&mut of.points),
                false => Vec::new(),
            },
            host: file.host,
            clock: file.clock,
            ticks_per_s: file.ticks_per_s,
            span: file.span,
            made: file.made,
        })
    });
    needed.collect()
}

/// The clocks of all hosts, and the hosts that had no measurement.
pub struct Clocks {
    maps: HashMap<(u64, u32), ClockMap>,
    /// Hosts whose offset could only be guessed from their wall clock.
    pub unsynchronised: usize,
}

impl Clocks {
    /// Builds every host's map from the evidence of all files, in rank order.
    pub fn new<'e>(evidence: impl Iterator<Item = &'e ClockEvidence> + Clone) -> Clocks {
        let mut by_host: HashMap<(u64, u32), Vec<&ClockEvidence>> = HashMap::new();
        for item in evidence.clone() {
            by_host.entry(item.key()).or_default().push(item);
        }
        // Wall clocks are comparable with the reference through any file that has both.
        let bridge = evidence
            .clone()
            .find_map(|e| {
                e.points
                    .first()
                    .map(|(ticks, ns, _)| wall_at(e, *ticks) - ns)
            })
            .unwrap_or(0);
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

    /// The map of a clock that there is evidence of.
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

/// ns per tick, fixed point, if a clock of that nominal rate may run so.
fn rate(ticks: i64, ns: i64, ticks_per_s: u64) -> Option<u64> {
    let quotient = |ns: i64, ticks: u64| ((ns as u128) << FRACTION) / u128::from(ticks.max(1));
    let nominal = quotient(1_000_000_000, ticks_per_s);
    if ticks <= 0 || ns <= SHORTEST_SPAN {
        return None;
    }
    let rate = quotient(ns, ticks as u64);
    let believable = rate > nominal / 2 && rate < nominal.saturating_mul(2);
    believable.then(|| u64::try_from(rate).ok()).flatten()
}

/// The rate from the longest span against the host's own monotonic clock, else nominal.
fn own_rate(items: &[&ClockEvidence]) -> u64 {
    let per_s = items[0].ticks_per_s;
    let spans = items.iter().filter_map(|e| e.span);
    let longest = spans.max_by_key(|((_, n0), (_, n1))| n1.saturating_sub(*n0));
    let own = longest.and_then(|((t0, n0), (t1, n1))| {
        rate(t1.wrapping_sub(t0) as i64, n1.saturating_sub(n0), per_s)
    });
    own.unwrap_or_else(|| {
        let nominal = (1_000_000_000u128 << FRACTION) / u128::from(per_s.max(1));
        u64::try_from(nominal).unwrap_or(1 << FRACTION).max(1)
    })
}

/// A measurement with its ticks since the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Measured {
    ticks: i64,
    ns: i64,
    error: u64,
}

impl Measured {
    /// The rate from here to a later point.
    fn rate_to(&self, later: &Measured, ticks_per_s: u64) -> Option<u64> {
        let ticks = later.ticks.checked_sub(self.ticks)?;
        rate(ticks, later.ns.saturating_sub(self.ns), ticks_per_s)
    }

    /// Whether the rate to a later point is hardly spoilt by the errors.
    fn gives_good_rate(&self, later: &Measured) -> bool {
        let errors = self.error.saturating_add(later.error);
        let span = later.ns.saturating_sub(self.ns) / GOOD_RATE;
        i64::try_from(errors).is_ok_and(|errors| errors <= span)
    }
}

/// A host's map through its measurements, if it has any.
fn measured(items: &[&ClockEvidence]) -> Option<ClockMap> {
    let &(origin, ..) = items.iter().flat_map(|e| &e.points).next()?;
    let per_s = items[0].ticks_per_s;
    let points = items.iter().flat_map(|e| &e.points);
    let mut points: Vec<Measured> = points
        .map(|&(ticks, ns, error)| Measured {
            ticks: ticks.wrapping_sub(origin) as i64,
            ns,
            error,
        })
        .collect();
    points.sort_unstable();
    // However many ranks of the host tell it.
    points.dedup();
    let good = consistent(&points, per_s, poor_from(&points));
    let points = with_contradictions(good, &points, per_s);
    let [first, .., last] = &points[..] else {
        // The first of the files in rank order counts, as long as no rate is to be had.
        let only = points[0];
        let ticks = origin.wrapping_add(only.ticks as u64);
        return Some(ClockMap::even(ticks, only.ns, own_rate(items), only.error));
    };
    let mut rates = Vec::with_capacity(points.len() + 1);
    // Before the first measurement and after the last.
    let reach = |from_start: bool| {
        let ends = match from_start {
            true => points[1..]
                .iter()
                .find(|p| first.gives_good_rate(p))
                .map(|p| (first, p)),
            false => points
                .iter()
                .rev()
                .skip(1)
                .find(|p| p.gives_good_rate(last))
                .map(|p| (p, last)),
        };
        let (a, b) = ends.unwrap_or((first, last));
        a.rate_to(b, per_s)
    };
    let between = points.windows(2).map(|two| two[0].rate_to(&two[1], per_s));
    rates.push(reach(true)?);
    rates.extend(between.collect::<Option<Vec<_>>>()?);
    rates.push(reach(false)?);
    let errors = errors(&points, &rates);
    // Each segment counts from its first point on; the one before the first, up to that.
    let starts = std::iter::once((i64::MIN, first)).chain(points.iter().map(|p| (p.ticks, p)));
    let segments = starts.zip(&rates).zip(errors);
    let segments = segments.map(|(((since, point), &rate), error_ns)| Segment {
        since,
        ticks: point.ticks,
        ns: point.ns,
        rate,
        error_ns,
    });
    let mut segments: Vec<Segment> = segments.collect();
    // What goes on in the same way is one.
    segments.dedup_by(|next, segment| {
        // Rates are cut off: so much less than measured is the same.
        let cut = i128::from(next.ticks.saturating_sub(segment.ticks) >> FRACTION) + 1;
        let less = i128::from(next.ns) - segment.ns(next.ticks);
        let is_same = next.rate == segment.rate && (0..=cut).contains(&less);
        if is_same {
            segment.error_ns = segment.error_ns.max(next.error_ns);
        }
        is_same
    });
    Some(ClockMap {
        origin,
        zero: 0,
        segments: segments.into(),
    })
}

/// The error from which on a measurement is poor, ns.
fn poor_from(points: &[Measured]) -> u64 {
    let mut errors: Vec<u64> = points.iter().map(|point| point.error).collect();
    errors.sort_unstable();
    errors[errors.len() / 2].saturating_mul(POOR).max(FINE)
}

/// The points with an error up to `most` of which each two successive ones give a rate; of
/// two that do not, that with the smaller error, else the earlier one.
fn consistent(points: &[Measured], ticks_per_s: u64, most: u64) -> Vec<Measured> {
    let mut kept: Vec<Measured> = Vec::new();
    for point in points.iter().filter(|point| point.error <= most) {
        while let Some(last) = kept.last() {
            if last.rate_to(point, ticks_per_s).is_some() || last.error <= point.error {
                break;
            }
            kept.pop();
        }
        if kept
            .last()
            .is_none_or(|last| last.rate_to(point, ticks_per_s).is_some())
        {
            kept.push(*point);
        }
    }
    kept
}

/// Adds, to good points, those of `all` that contradict them: at the time that is nearest to
/// the good ones and within the error.
fn with_contradictions(good: Vec<Measured>, all: &[Measured], ticks_per_s: u64) -> Vec<Measured> {
    let mut added = Vec::new();
    for point in all {
        let next = good.partition_point(|known| known.ticks < point.ticks);
        let around = next
            .checked_sub(1)
            .and_then(|at| good.get(at))
            .zip(good.get(next));
        let expected = around.and_then(|(before, after)| {
            let rate = before.rate_to(after, ticks_per_s)?;
            let since = i128::from(point.ticks - before.ticks) * i128::from(rate);
            i64::try_from(i128::from(before.ns) + (since >> FRACTION)).ok()
        });
        // Beyond the good ones it is needed only if there is no rate otherwise.
        let expected = match expected {
            Some(expected) => expected,
            None if good.len() < 2 => point.ns,
            None => continue,
        };
        let error = i64::try_from(point.error).unwrap_or(i64::MAX);
        let within = (
            point.ns.saturating_sub(error),
            point.ns.saturating_add(error),
        );
        let ns = expected.clamp(within.0, within.1);
        if ns != expected || good.len() < 2 {
            added.push(Measured { ns, ..*point });
        }
    }
    if added.is_empty() {
        return good;
    }
    // Good ones first: they stay where a poor one is too close.
    let mut points = good;
    for point in added {
        let at = points.partition_point(|known| known.ticks < point.ticks);
        let fits = |a: &Measured, b: &Measured| a.rate_to(b, ticks_per_s).is_some();
        let before = at.checked_sub(1).is_none_or(|at| fits(&points[at], &point));
        let after = points.get(at).is_none_or(|next| fits(&point, next));
        if before && after {
            points.insert(at, point);
        }
    }
    points
}

/// Bounds of the errors of the segments between points, and before and after them: that of
/// the measurements, and by how much the clock may be off a straight line in between, as
/// far as the change of its rate from segment to segment tells.
fn errors(points: &[Measured], rates: &[u64]) -> Vec<u64> {
    let bend = |at: usize| -> u64 {
        let Some(two) = at
            .checked_sub(1)
            .and_then(|from| points.get(from..=from + 1))
        else {
            return 0;
        };
        // The outer rates are no measurements of their own.
        let neighbours = [at - 1, at + 1]
            .into_iter()
            .filter(|&n| (1..points.len()).contains(&n));
        let change = neighbours
            .map(|n| rates[n].abs_diff(rates[at]))
            .max()
            .unwrap_or(0);
        let span = two[1].ticks.abs_diff(two[0].ticks);
        // An arc is off its chord by an eighth of its length times the change of its slope.
        let off = (u128::from(change) * u128::from(span)) >> (FRACTION + 3);
        u64::try_from(off).unwrap_or(u64::MAX)
    };
    let bounds = (0..rates.len()).map(|at| {
        let before = at.checked_sub(1).map_or(0, |before| points[before].error);
        let after = points.get(at).map_or(0, |after| after.error);
        before.max(after).saturating_add(bend(at))
    });
    bounds.collect()
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

    fn with_points(points: &[Point]) -> ClockEvidence {
        ClockEvidence {
            points: points.to_vec(),
            ..evidence(1)
        }
    }

    fn map(evidence: &ClockEvidence) -> ClockMap {
        Clocks::new([evidence].into_iter()).of(evidence.key())
    }

    #[test]
    fn interpolates_between_start_and_end() {
        let e = with_points(&[
            (1_000, 5_000, 3),
            (1_000 + 2_000_200_000, 5_000 + 1_000_000_000, 7),
        ]);
        let map = map(&e);
        assert_eq!(map.ns(1_000), 5_000);
        let end = map.ns(1_000 + 2_000_200_000);
        assert!((end - 1_000_005_000).abs() <= 1, "{end}");
        assert_eq!(map.error_ns(), 7);
        assert!(map.ns(0) < 5_000);
        assert!(map.is_even());
    }

    /// Ticks of a clock of about 2 GHz that runs 0 to 200 ppm slow, as in a day of changing
    /// temperature, at a time in ns.
    fn wandering(ns: i64) -> u64 {
        let s = ns as f64 / 1e9;
        let slow = 1e-4 * (s + (s / 10.0).sin() * 10.0);
        (1 << 40) + ((s - slow) * 2e9).round() as u64
    }

    #[test]
    fn follows_a_rate_that_changes() {
        let points = |step: i64| -> Vec<Point> {
            let times = (0..=100 / step).map(|n| n * step * 1_000_000_000);
            times.map(|ns| (wandering(ns), ns, 50)).collect()
        };
        let worst = |map: &ClockMap| {
            let times = (0..1000).map(|n| n * 100_000_000 + 12_345);
            let off = times.map(|ns| (map.ns(wandering(ns)) - ns).unsigned_abs());
            off.max().unwrap()
        };
        let often = map(&with_points(&points(1)));
        let seldom = map(&with_points(&points(100)));
        assert!(worst(&seldom) > 500_000, "{}", worst(&seldom));
        assert!(worst(&often) < 2_000, "{}", worst(&often));
        // The bound covers what a straight line misses.
        assert!(often.error_ns() >= worst(&often), "{}", often.error_ns());
        assert!(often.error_ns() < 4_000, "{}", often.error_ns());
    }

    #[test]
    fn time_never_goes_back() {
        let mut points = Vec::new();
        for n in 0..40i64 {
            let wrong = (n * 7919 % 13 - 6) * 400_000;
            points.push((
                wandering(n * 100_000_000),
                n * 100_000_000 + wrong,
                3_000_000,
            ));
        }
        let map = map(&with_points(&points));
        let mut last = i64::MIN;
        for ticks in (0..10_000_000_000u64).step_by(999_983) {
            let ns = map.ns((1 << 40) - 1_000_000_000 + ticks);
            assert!(ns >= last, "{ticks}");
            last = ns;
        }
        for segment in &map.segments[1..] {
            let at = map.origin.wrapping_add(segment.since as u64);
            assert!(map.ns(at) >= map.ns(at - 1));
        }
    }

    #[test]
    fn a_bad_measurement_does_not_spoil_good_ones() {
        let at = |s: i64, wrong: i64, error: u64| -> Point {
            (2_000_000_000 * s as u64, s * 1_000_000_000 + wrong, error)
        };
        // One took long, but what it says is right within its error.
        let clean = map(&with_points(&[
            at(0, 0, 900),
            at(1, 0, 900),
            at(2, 0, 900),
            at(4, 0, 900),
        ]));
        let bad = [
            at(0, 0, 900),
            at(1, 0, 900),
            at(2, 0, 900),
            at(3, 300_000, 400_000),
            at(4, 0, 900),
        ];
        let with_bad = map(&with_points(&bad));
        for ticks in (0..9_000_000_000).step_by(123_456_789) {
            assert_eq!(clean.ns(ticks), with_bad.ns(ticks));
        }
        assert_eq!(with_bad.error_ns(), 900);
        // If it contradicts them, it counts as far as it must.
        let bad = [
            at(0, 0, 900),
            at(1, 0, 900),
            at(2, 0, 900),
            at(3, 700_000, 400_000),
            at(4, 0, 900),
        ];
        let with_bad = map(&with_points(&bad));
        assert_eq!(with_bad.ns(6_000_000_000), 3_000_300_000);
        assert!(with_bad.error_ns() >= 400_000);
    }

    #[test]
    fn of_many_measurements_the_best_are_kept() {
        let point = |n: u64| ClockPoint {
            local: n,
            reference_ns: n as i64,
            error_ns: if n % 10 == 3 { 1 } else { 100 },
            kind: if n == 0 { 0 } else { 2 },
            reserved: 0,
        };
        let all: Vec<_> = (0..10_000).map(point).collect();
        let kept = points(&all);
        assert!(kept.len() <= MOST_POINTS, "{}", kept.len());
        assert_eq!((kept[0].0, kept[kept.len() - 1].0), (0, 9_999));
        assert!(kept[1..kept.len() - 1].iter().filter(|p| p.2 == 1).count() > 490);
        assert!(kept.windows(2).all(|two| two[0].0 < two[1].0));
    }

    #[test]
    fn near_a_base_times_are_the_same() {
        let e = ClockEvidence {
            ticks_per_s: 2_345_678_901,
            points: vec![(1_000_000, -77, 0)],
            ..evidence(1)
        };
        let map = map(&e);
        for base in [0, 999_999, 5_000_000_000, u64::MAX] {
            let near = map.near(base, 0, 1 << 33).unwrap();
            for ticks in [0, 1, 7, 1_234_567, 1 << 33] {
                let exact = map.ns(base.wrapping_add(ticks));
                assert_eq!(near.ns(ticks), exact);
            }
        }
        assert!(map.near(1 << 63, 0, 0).is_none());
    }

    #[test]
    fn near_a_border_each_side_has_its_map() {
        let s = 2_000_000_000;
        let e = with_points(&[
            (s, 0, 0),
            (2 * s, 1_000_000_100, 0),
            (3 * s, 2_000_000_000, 0),
        ]);
        let map = map(&e).shifted(17);
        let base = 2 * s - 1000;
        assert!(map.near(base, 0, 999).is_some());
        assert!(map.near(base, 0, 1000).is_none());
        assert!(map.near(base, 1000, 2000).is_some());
        for (first, last) in [(0, 999), (1000, 50_000)] {
            let near = map.near(base, first, last).unwrap();
            for ticks in [first, first + 1, (first + last) / 2, last] {
                assert_eq!(near.ns(ticks), map.ns(base + ticks));
            }
        }
    }

    #[test]
    fn all_files_of_a_host_share_one_map() {
        let measured = with_points(&[(0, 0, 0)]);
        let bare = evidence(1);
        let clocks = Clocks::new([&bare, &measured].into_iter());
        assert_eq!(clocks.of(bare.key()), clocks.of(measured.key()));
        assert_eq!(clocks.unsynchronised, 0);
    }

    #[test]
    fn a_killed_run_takes_its_rate_from_the_blocks() {
        let mut e = with_points(&[(0, 0, 0)]);
        e.span = Some(((0, 0), (3_000_000_000, 1_000_000_000)));
        let map = map(&e);
        assert!((map.ns(3_000_000_000) - 1_000_000_000).abs() <= 1);
    }

    #[test]
    fn corrections_are_added_evenly() {
        let s = 2_000_000_000;
        let e = with_points(&[
            (s, 0, 5),
            (2 * s, 1_000_000_100, 0),
            (3 * s, 2_000_000_000, 0),
        ]);
        let map = map(&e).shifted(1_000);
        let width = 250_000_000;
        let corrections = [0, 0, 700, 1_400, 900, 900, 900, 30_000, 30_000];
        let corrected = map.corrected(width, &corrections);
        assert_eq!(corrected.error_ns(), map.error_ns());
        let mut last = i64::MIN;
        for ticks in (0..4 * s).step_by(7_654_321) {
            let (before, after) = (map.ns(ticks), corrected.ns(ticks));
            let at = (before as f64 / width as f64).clamp(0.0, 7.999_999);
            let (from, part) = (at as usize, at.fract());
            let by = corrections[from] as f64 * (1.0 - part) + corrections[from + 1] as f64 * part;
            assert!(
                (after - before - by as i64).abs() <= 3,
                "{ticks} {by} {}",
                after - before
            );
            assert!(after > last);
            last = after;
        }
        assert_eq!(map.corrected(width, &[0; 9]), map);
    }

    #[test]
    fn what_is_needed_gives_the_same_clocks() {
        let point = |n: u64| (n * 2_000_200_000, n as i64 * 1_000_000_000, 50 + n % 3);
        let file = |rank: u64| ClockEvidence {
            // Ranks of two hosts; a third one was never measured.
            host: if rank == 11 { 3 } else { 1 + rank % 2 },
            points: match rank {
                0 | 11 => Vec::new(),
                // A rank's last measurement is its own.
                _ => vec![point(0), point(rank % 2 + 1), point(rank + 4)],
            },
            span: (rank != 4).then_some(((7, 9), (rank * 1000, (rank as i64 % 5) << 30))),
            made: (rank * 77, rank as i64 * 1_000_003),
            ..evidence(1)
        };
        let files: Vec<ClockEvidence> = (0..12).map(file).collect();
        let whole = Clocks::new(files.iter());
        for agents in 1..=4 {
            let parts = files.chunks(files.len().div_ceil(agents));
            let needed: Vec<ClockEvidence> = parts.flat_map(|part| needed(part.iter())).collect();
            let clocks = Clocks::new(needed.iter());
            assert_eq!(clocks.maps, whole.maps, "{agents}");
            assert_eq!(clocks.unsynchronised, 1);
            assert!(agents > 1 || needed.len() < files.len());
        }
    }
}
