//! Corrections that follow clocks that drift apart within a bin by more than messages take both
//! ways, because a rate was measured wrongly.
//!
//! The smallest times from cause to effect are taken at the moments at which they were seen. Every
//! violated one in turn moves the two clocks, each by half of the missing time (projections on half
//! spaces: every step comes closer to all possible clocks, the true ones among them). Corrections
//! are linear in as few parts of the run as possible: errors of clocks change slowly, and this
//! corrects the time between two moments seen as well.

/// Most steps for a number of parts.
const STEPS: usize = 100_000_000;
/// Rounds through all times for a number of parts.
const ROUNDS: std::ops::RangeInclusive<usize> = 10..=1000;
/// Length of a step. More than 1 goes beyond the border of the possible, so that the steps end.
const BEYOND: f64 = 1.5;

/// The time from a cause to its effect.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Clocks of the cause and of the effect.
    pub clocks: (u32, u32),
    /// When the effect was, ns.
    pub ended: i64,
    /// ns.
    pub slack: i64,
}

/// A [`Seen`] in units of corrections.
struct Point {
    clocks: (usize, usize),
    /// Moments of cause and effect, as fractions of the run, 0 to 1.
    at: (f64, f64),
    /// Correction of the effect minus that of the cause: at least this, ns.
    needed: f64,
}

/// The correction before a moment, and the fraction of the way to the next.
#[inline]
fn place(at: f64, parts: usize) -> (usize, f64) {
    let at = at * parts as f64;
    let from = (at as usize).min(parts - 1);
    (from, at - from as f64)
}

/// Corrections of each clock at each border of bins, ns; bins are `width` ns wide. Corrected slacks
/// should be at least `rounding` ns; some are less if that is impossible or takes too many steps.
/// Corrections change by at most `step` ns from border to border.
pub fn follow(
    clocks: usize,
    borders: usize,
    width: i64,
    step: i64,
    rounding: i64,
    seen: &[Seen],
) -> Vec<Vec<i64>> {
    let bins = borders.saturating_sub(1).max(1);
    let length = bins as f64 * width as f64;
    let part = |ns: i64| (ns as f64 / length).clamp(0.0, 1.0);
    let is_known = |seen: &&Seen| (seen.clocks.0.max(seen.clocks.1) as usize) < clocks;
    let points = seen.iter().filter(is_known).map(|seen| Point {
        clocks: (seen.clocks.0 as usize, seen.clocks.1 as usize),
        at: (
            part(seen.ended.saturating_sub(seen.slack)),
            part(seen.ended),
        ),
        needed: rounding as f64 - seen.slack as f64,
    });
    let points: Vec<Point> = points.collect();
    let rounds = (STEPS / points.len().max(1)).clamp(*ROUNDS.start(), *ROUNDS.end());
    let mut parts = 1;
    let mut by = vec![vec![0.0f64; 2]; clocks];
    while !(0..rounds).any(|_| !improve(&mut by, parts, &points)) && 2 * parts <= bins {
        for by in &mut by {
            let halves = by
                .windows(2)
                .flat_map(|two| [two[0], (two[0] + two[1]) / 2.0]);
            *by = halves.chain(by.last().copied()).collect();
        }
        parts *= 2;
    }
    let at_borders = |by: &Vec<f64>| {
        let mut last = None;
        let border = |border: usize| {
            let (from, part) = place(border as f64 / bins as f64, parts);
            let ns = (by[from] * (1.0 - part) + by[from + 1] * part).round() as i64;
            // Hostile times could turn a clock back.
            let ns = last.map_or(ns, |last: i64| {
                ns.clamp(last.saturating_sub(step), last.saturating_add(step))
            });
            last = Some(ns);
            ns
        };
        (0..borders).map(border).collect()
    };
    by.iter().map(at_borders).collect()
}

/// One round through all points; whether any was violated.
fn improve(by: &mut [Vec<f64>], parts: usize, points: &[Point]) -> bool {
    let mut is_changed = false;
    for point in points {
        let (cause, effect) = point.clocks;
        let ((c, cp), (e, ep)) = (place(point.at.0, parts), place(point.at.1, parts));
        let of_cause = by[cause][c] * (1.0 - cp) + by[cause][c + 1] * cp;
        let of_effect = by[effect][e] * (1.0 - ep) + by[effect][e + 1] * ep;
        let missing = of_cause + point.needed - of_effect;
        // Times are whole ns: less is no violation.
        if missing <= 0.5 {
            continue;
        }
        is_changed = true;
        let square = |part: f64| (1.0 - part) * (1.0 - part) + part * part;
        let step = BEYOND * missing / (square(cp) + square(ep));
        by[cause][c] -= step * (1.0 - cp);
        by[cause][c + 1] -= step * cp;
        by[effect][e] += step * (1.0 - ep);
        by[effect][e + 1] += step * ep;
    }
    is_changed
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: i64 = 1_000_000;
    const BORDERS: usize = 101;
    const LATENCY: i64 = 300;

    /// Slacks seen if clocks are off by `wrong` at a time: the smallest of each bin of messages in
    /// both directions.
    fn seen(clocks: u32, wrong: &dyn Fn(u32, i64) -> i64) -> Vec<Seen> {
        let mut all = Vec::new();
        for bin in 1..BORDERS as i64 - 2 {
            for clock in 0..clocks {
                for other in [
                    clock.checked_sub(1),
                    Some(clock + 1).filter(|&c| c < clocks),
                ] {
                    let Some(other) = other else { continue };
                    let messages = (0..50).map(|n| {
                        let sent = bin * WIDTH + n * 20_000 + i64::from(clock) * 777;
                        let ended = sent + LATENCY + wrong(other, sent + LATENCY);
                        let slack = LATENCY + wrong(other, sent + LATENCY) - wrong(clock, sent);
                        Seen {
                            clocks: (clock, other),
                            ended,
                            slack,
                        }
                    });
                    all.extend(messages.min_by_key(|seen| (seen.slack, seen.ended)));
                }
            }
        }
        all
    }

    fn at(by: &[i64], ns: i64) -> f64 {
        let ns = ns.clamp(0, (BORDERS as i64 - 1) * WIDTH);
        let from = ((ns / WIDTH) as usize).min(BORDERS - 2);
        let part = (ns - from as i64 * WIDTH) as f64 / WIDTH as f64;
        by[from] as f64 * (1.0 - part) + by[from + 1] as f64 * part
    }

    #[track_caller]
    fn assert_followed(clocks: u32, wrong: &dyn Fn(u32, i64) -> i64) {
        let seen = seen(clocks, wrong);
        let by = follow(clocks as usize, BORDERS, WIDTH, WIDTH >> 4, 2, &seen);
        for seen in &seen {
            let (cause, effect) = seen.clocks;
            let cause = at(&by[cause as usize], seen.ended - seen.slack);
            let left = seen.slack as f64 + at(&by[effect as usize], seen.ended) - cause;
            assert!(left >= 0.0, "{left} {seen:?}");
        }
    }

    #[test]
    fn a_wrong_rate_is_followed() {
        for clocks in [2, 3, 8] {
            assert_followed(clocks, &|clock, ns| {
                let most = [0, 400_000, -350_000, 123_000][clock as usize % 4];
                most - ns * 2 * most / (BORDERS as i64 * WIDTH)
            });
        }
    }

    #[test]
    fn several_wrong_rates_are_followed() {
        assert_followed(4, &|clock, ns| {
            let s = ns as f64 / (BORDERS as f64 * WIDTH as f64);
            (f64::from(clock) * 20_000.0 * (s * 7.0 + f64::from(clock)).sin()) as i64
        });
    }

    #[test]
    fn what_cannot_be_has_an_end() {
        let both = |slack| {
            [(0, 1), (1, 0), (7, 0)].map(|clocks| Seen {
                clocks,
                ended: 1000,
                slack,
            })
        };
        for slack in [-500, i64::MIN, i64::MAX] {
            let by = follow(2, BORDERS, WIDTH, WIDTH >> 4, 2, &both(slack));
            let steps = by.iter().flat_map(|by| by.windows(2));
            let most = steps.map(|two| two[0].abs_diff(two[1])).max();
            assert!(most <= Some((WIDTH >> 4) as u64), "{most:?}");
        }
        assert_eq!(follow(1, 2, WIDTH, 1, 2, &[]), [[0, 0]]);
    }
}
