//! Clocks that agree with causality: a controlled logical clock for each host.
//!
//! Ranks of a host share a clock, and its error changes slowly. So what is corrected is the
//! host's clock, not single events: by an amount that is never negative (effects move forward,
//! causes stay), linear between [`BINS`] moments of the run, and changes by one part in
//! 2^[`STEEP`] of the time at most, forward after a violation and backward before it.
//!
//! What is between two hosts in a bin of time is, in each direction, the smallest time from
//! any cause to its effect: from the entry of a send to the return of the receive, from the
//! last entry into a collective to a return. Corrections are the smallest that leave none
//! of these below zero: the longest paths in a graph of hosts and moments, so that no
//! correction breaks another message. True clocks are a solution, therefore the smallest one
//! is nowhere further from them than measurements were.
//!
//! Memory does not grow with the trace, and everything is a minimum of integers: the same
//! for any number of agents.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use rustc_hash::FxHashMap;

use super::causality::Violations;
use super::clock::ClockMap;
use super::open::Opened;
use super::table::NONE;
use crate::comm::Job;

/// Parts of the run.
const BINS: i64 = 256;
/// A part takes at least so long, ns.
const SHORTEST_BIN: i64 = 1_000_000;
/// See above; and in runs that are short for their violations.
const STEEP: u32 = 10;
const STEEPEST: u32 = 4;
/// Corrections may change by the largest violation in one of so many parts of the run.
const STEEPER: u64 = 4;
/// By how much is relaxed first what cannot be, ns.
const FIRST_RELAXATION: i64 = 64;
/// Sweeps until corrections are taken to have no end, besides those for each clock.
const SWEEPS: usize = 64;
/// Times from cause to effect count up to so many times the largest violation: corrections
/// add up from host to host.
const REACH: i64 = 16;
/// For what conversions cut off, ns.
const ROUNDING: i64 = 2;

/// The clocks of a run, the first call being at 0.
#[derive(Clone)]
pub struct Timeline {
    /// In the order of [`Opened::spans`].
    maps: Vec<ClockMap>,
    /// By world rank; `NONE` = no trace of it.
    of_rank: Arc<[u32]>,
}

impl Timeline {
    /// As measured.
    pub fn new(opened: &Opened) -> Timeline {
        let maps = opened.spans.iter();
        let maps = maps.map(|(key, span)| (opened.clocks.of(*key), span.0));
        let maps: Vec<(ClockMap, u64)> = maps.collect();
        let starts = maps.iter().map(|(map, start)| map.ns(*start));
        let zero = starts.min().unwrap_or(0);
        Timeline {
            maps: maps.into_iter().map(|(map, _)| map.shifted(zero)).collect(),
            of_rank: opened.clock_of.as_slice().into(),
        }
    }

    /// When the run ended, ns.
    pub fn end(&self, opened: &Opened) -> i64 {
        let ends = opened.spans.iter().zip(&self.maps);
        let ends = ends.map(|((_, span), map)| map.ns(span.1));
        ends.max().unwrap_or(0)
    }

    /// The clocks of this agent's locations, and their first and last moments in ticks.
    pub fn own(&self, opened: &Opened) -> Vec<(ClockMap, (u64, u64))> {
        let own = opened.own.iter().map(|(key, span)| {
            let clock = opened.spans.partition_point(|(other, _)| other < key);
            (self.maps[clock].clone(), *span)
        });
        own.collect()
    }

    /// Whether clocks can contradict each other.
    pub fn has_several(&self) -> bool {
        self.maps.len() > 1
    }

    /// What a rank notes in an analysis from which clocks are to be corrected.
    pub fn slacks(&self, rank: u32, end: i64, violations: &Violations) -> Slacks {
        let largest = i64::try_from(violations.all().largest).unwrap_or(i64::MAX);
        Slacks {
            own: self.of_rank.get(rank as usize).copied().unwrap_or(NONE),
            of_rank: self.of_rank.clone(),
            width: width(end),
            limit: largest.saturating_mul(REACH),
            least: FxHashMap::default(),
        }
    }

    /// The clocks corrected after what all ranks noted. Collective, the same on all agents.
    pub fn corrected(
        &self,
        job: &dyn Job,
        end: i64,
        violations: &Violations,
        noted: Noted,
    ) -> Result<Timeline> {
        let mut all: BTreeMap<(u32, u32, u32), i64> = BTreeMap::new();
        for bytes in job.all_gather(postcard::to_stdvec(&noted.0)?) {
            let others: BTreeMap<(u32, u32, u32), i64> = postcard::from_bytes(&bytes)?;
            for (key, slack) in others {
                let least = all.entry(key).or_insert(slack);
                *least = slack.min(*least);
            }
        }
        let width = width(end);
        let borders = usize::try_from(end.max(0) / width).unwrap_or(0) + 2;
        let steep = steep(end, violations);
        let needs = needs(&all, steep);
        let corrections = solve(self.maps.len(), borders, width >> steep, &needs);
        let maps = self.maps.iter().zip(&corrections);
        Ok(Timeline {
            maps: maps.map(|(map, by)| map.corrected(width, by)).collect(),
            ..self.clone()
        })
    }
}

fn width(end: i64) -> i64 {
    (end.max(0) / BINS).max(SHORTEST_BIN)
}

/// How much corrections change, as one part in 2^`steep` of the time: as little as possible, but
/// enough for a rate that was measured wrongly in a short run.
fn steep(end: i64, violations: &Violations) -> u32 {
    let largest = violations.all().largest.max(1);
    let parts = end.max(0).unsigned_abs() / largest.saturating_mul(STEEPER);
    parts.max(1).ilog2().clamp(STEEPEST, STEEP)
}

/// The smallest times from causes on other hosts to effects on a rank's.
#[derive(Clone, Debug)]
pub struct Slacks {
    own: u32,
    of_rank: Arc<[u32]>,
    width: i64,
    limit: i64,
    /// By clock of the cause and bin.
    least: FxHashMap<(u32, u32), i64>,
}

impl Slacks {
    /// Something that a rank began was needed for what ended here. ns.
    #[inline]
    pub fn note(&mut self, rank: i32, began: i64, ended: i64) {
        let clock = self.of_rank.get(rank as usize).copied().unwrap_or(NONE);
        let slack = ended.saturating_sub(began);
        if clock == self.own || clock == NONE || slack > self.limit {
            return;
        }
        let bin = (ended.max(0) / self.width) as u32;
        let least = self.least.entry((clock, bin)).or_insert(slack);
        *least = slack.min(*least);
    }
}

/// The smallest times of an agent's ranks: by clock of the cause, of the effect, and bin.
#[derive(Debug, Default)]
pub struct Noted(BTreeMap<(u32, u32, u32), i64>);

impl Noted {
    /// Adds a rank's.
    pub fn add(&mut self, slacks: &Slacks) {
        for (&(clock, bin), &slack) in &slacks.least {
            let least = self.0.entry((clock, slacks.own, bin)).or_insert(slack);
            *least = slack.min(*least);
        }
    }
}

/// By how much more clocks must be corrected, ns, at a border of bins: by clock of the cause, of
/// the effect, and border.
type Needs = BTreeMap<(u32, u32, u32), i64>;

/// What follows from the smallest times from cause to effect, by clocks and bin. If all that is
/// needed holds at both borders of a bin, it holds in between. `steep`: corrections change by
/// one part in 2^`steep` of the time at most.
fn needs(slacks: &BTreeMap<(u32, u32, u32), i64>, steep: u32) -> Needs {
    let mut needs = Needs::new();
    for (&(cause, effect, bin), &slack) in slacks {
        // Cause and effect are not at the same time.
        let late = ROUNDING + (slack.saturating_abs() >> steep);
        let needed = late.saturating_sub(slack);
        for border in [bin, bin + 1] {
            let most = needs.entry((cause, effect, border)).or_insert(needed);
            *most = needed.max(*most);
        }
    }
    needs
}

/// The smallest corrections of each clock at each border of bins, ns, with which no time from
/// cause to effect is below zero.
///
/// There are none if clocks come apart in a bin by more than messages take both ways. Then what
/// is needed is relaxed by about as little as makes corrections possible: with those clocks no
/// longer come apart, and times noted by them say what is still needed.
fn solve(clocks: usize, borders: usize, step: i64, needs: &Needs) -> Vec<Vec<i64>> {
    let mut relaxed = 0;
    for (&(cause, effect, border), needed) in needs {
        if let Some(back) = needs.get(&(effect, cause, border)) {
            relaxed = needed.saturating_add(*back).saturating_add(1).max(relaxed);
        }
    }
    relaxed /= 2;
    let mut more = FIRST_RELAXATION;
    loop {
        if let Some(by) = smallest(clocks, borders, step, needs, relaxed) {
            return by;
        }
        // Comes to where nothing at all is needed.
        relaxed = relaxed.saturating_add(more);
        more = more.saturating_mul(2);
    }
}

/// The smallest corrections that are at least what is needed, less `relaxed` ns; `None` if
/// there are none.
fn smallest(
    clocks: usize,
    borders: usize,
    step: i64,
    needs: &Needs,
    relaxed: i64,
) -> Option<Vec<Vec<i64>>> {
    let mut by = vec![vec![0i64; borders]; clocks];
    // Every sweep goes all the way through time; a way through the clocks takes as many as
    // it has clocks, and may come back to one at another time.
    for _ in 0..4 * clocks + SWEEPS {
        let mut is_changed = false;
        for (&(cause, effect, border), &needed) in needs {
            let border = border as usize;
            let Some(&cause) = by.get(cause as usize).and_then(|by| by.get(border)) else {
                continue;
            };
            let effect = &mut by[effect as usize][border];
            let least = cause.saturating_add(needed).saturating_sub(relaxed);
            if least > *effect {
                *effect = least;
                is_changed = true;
            }
        }
        if !is_changed {
            return Some(by);
        }
        for by in &mut by {
            for at in 1..borders {
                by[at] = by[at].max(by[at - 1] - step);
            }
            for at in (1..borders).rev() {
                by[at - 1] = by[at - 1].max(by[at] - step);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_move_forward_and_nothing_else_breaks() {
        let width = 1 << 20;
        let slacks = BTreeMap::from([
            // Clock 1 is behind clock 0 by 500 in bin 2, and 2 just follows 1.
            ((0, 1, 2), -500),
            ((1, 0, 2), 3000),
            ((1, 2, 2), 100),
            ((2, 1, 2), 900),
            ((0, 2, 7), 50),
        ]);
        let by = solve(3, 10, width >> STEEP, &needs(&slacks, STEEP));
        assert!(by[0].iter().all(|&c| c == 0));
        assert!((500..510).contains(&by[1][2]), "{by:?}");
        assert!((400..412).contains(&by[2][3]), "{by:?}");
        for (&(cause, effect, bin), &slack) in &slacks {
            for border in [bin as usize, bin as usize + 1] {
                let (cause, effect) = (by[cause as usize][border], by[effect as usize][border]);
                assert!(effect + slack >= cause);
            }
        }
        // Slowly, before and after.
        let step = width >> STEEP;
        let is_slow = |two: &[i64]| (two[1] - two[0]).abs() <= step;
        assert!(by.iter().all(|by| by.windows(2).all(is_slow)), "{by:?}");
    }

    #[test]
    fn measurements_that_cannot_be_true_have_an_end() {
        let slacks = BTreeMap::from([((0, 1, 0), -500), ((1, 0, 0), -500)]);
        let by = solve(2, 2, 1 << 10, &needs(&slacks, STEEP));
        assert!(by.iter().flatten().all(|&c| c < 10_000), "{by:?}");
    }
}
