//! A host's map from its measurements: which of them count, the rates between them, and error
//! bounds.

use super::evidence::ClockEvidence;
use super::map::{ClockMap, FRACTION, Segment};

/// Shorter spans give no rate, ns.
const SHORTEST_SPAN: i64 = 5_000_000;
/// A measurement is poor if its error is this multiple of its host's median error.
const POOR: u64 = 4;
/// Errors up to this are never poor, ns.
const FINE: u64 = 1_000;
/// A rate may be extended beyond the first and the last measurement if it is good: the errors of
/// its two measurements are below this part of the time between them.
const GOOD_RATE: i64 = 1_000_000;

/// ns per tick, fixed point; `None` if it is not credible for this nominal rate.
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
pub(crate) fn own_rate(items: &[&ClockEvidence]) -> u64 {
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
    /// The rate to a later point.
    fn rate_to(&self, later: &Measured, ticks_per_s: u64) -> Option<u64> {
        let ticks = later.ticks.checked_sub(self.ticks)?;
        rate(ticks, later.ns.saturating_sub(self.ns), ticks_per_s)
    }

    /// Whether the errors hardly affect the rate to a later point.
    fn gives_good_rate(&self, later: &Measured) -> bool {
        let errors = self.error.saturating_add(later.error);
        let span = later.ns.saturating_sub(self.ns) / GOOD_RATE;
        i64::try_from(errors).is_ok_and(|errors| errors <= span)
    }
}

/// A host's map through its measurements; `None` without any.
pub(crate) fn measured(items: &[&ClockEvidence]) -> Option<ClockMap> {
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
    // Several ranks of the host may report the same point.
    points.dedup();
    let good = consistent(&points, per_s, poor_from(&points));
    let points = with_contradictions(good, &points, per_s);
    let [first, .., last] = &points[..] else {
        // Without a rate, the first file in rank order counts.
        let only = points[0];
        let ticks = origin.wrapping_add(only.ticks as u64);
        return Some(ClockMap::even(ticks, only.ns, own_rate(items), only.error));
    };
    let mut rates = Vec::with_capacity(points.len() + 1);
    // Rates before the first measurement and after the last.
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
    // Each segment begins at its first point; the one before the first has no beginning.
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
    // Joins segments that continue each other.
    segments.dedup_by(|next, segment| {
        // Rates are truncated: a point may lie this much above the line.
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
        moves: None,
    })
}

/// The error from which on a measurement is poor, ns.
fn poor_from(points: &[Measured]) -> u64 {
    let mut errors: Vec<u64> = points.iter().map(|point| point.error).collect();
    errors.sort_unstable();
    errors[errors.len() / 2].saturating_mul(POOR).max(FINE)
}

/// The points with an error of at most `most`, so that each two successive ones give a rate. Of two
/// that do not, keeps the one with the smaller error, else the earlier one.
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

/// Adds the points of `all` that contradict the good ones. A contradicting point counts at the time
/// within its error that is nearest to the good ones.
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
        // Beyond the good points, a point is needed only if there is no rate otherwise.
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
    // Good points stay; a poor one too close to them is dropped.
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

/// Error bounds of the segments between points, before the first and after the last. A bound is the
/// measurements' error plus the distance of the clock from a straight line. The changes of the rate
/// between segments give that distance.
fn errors(points: &[Measured], rates: &[u64]) -> Vec<u64> {
    let bend = |at: usize| -> u64 {
        let Some(two) = at
            .checked_sub(1)
            .and_then(|from| points.get(from..=from + 1))
        else {
            return 0;
        };
        // The outer rates are not measured.
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
