//! Clocks that agree with causality: a controlled logical clock for each host.
//!
//! Ranks of a host share a clock, and its error changes slowly. So the host's clock is corrected,
//! not single events. Corrections are not negative (effects move forward, causes stay) and linear
//! between [`BINS`] moments of the run. They change by at most one part in 2^[`STEEP`] of the time,
//! forward after a violation and backward before it.
//!
//! For two hosts and a bin of time, the smallest time from any cause to its effect counts, in each
//! direction: from the entry of a send to the return of the receive, and from the last entry into a
//! collective to a return. Corrections are the smallest ones that leave none of these below zero:
//! the longest paths in a graph of hosts and moments. So no correction breaks another message. True
//! clocks are a solution, therefore the smallest one is nowhere further from them than the
//! measurements.
//!
//! If a rate was measured wrongly, clocks may drift apart within a bin by more than messages take,
//! and no constant correction of a bin is right. Then clocks first follow each other ([`trend`]),
//! and the times are noted again with these clocks. This repeats, with all times noted so far,
//! until no violation is left.
//!
//! Memory does not grow with the trace. Notes are minima of integers, and all agents process them
//! in the same order: the number of agents does not matter.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use laggard_comm::Job;
use rustc_hash::FxHashMap;

use crate::basics::ends::NONE;
use crate::clock::causality::Violations;
use crate::clock::slacks::{Slacks, Time};
use crate::clock::trend::Seen;
use crate::clock::{ClockMap, Moves, trend};
use crate::input::open::Opened;

/// Parts of the run.
const BINS: i64 = 256;
/// Shortest part, ns.
const SHORTEST_BIN: i64 = 1_000_000;
/// Steepness of corrections: one part in 2^`STEEP` of the time.
const STEEP: u32 = 10;
/// The same for a wrongly measured rate in a short run.
const STEEPEST: u32 = 4;
/// Sweeps, besides those for each clock, after which there is no solution.
const SWEEPS: usize = 64;
/// Times from cause to effect count up to this multiple of the largest violation: corrections add
/// up from host to host.
const REACH: i64 = 16;
/// Margin for rounding of conversions, ns.
const ROUNDING: i64 = 4;

/// The clocks of a run; the first call is at 0.
#[derive(Clone)]
pub struct Timeline {
    /// In the order of [`Opened::spans`].
    maps: Vec<ClockMap>,
    /// By world rank; `NONE` = no trace of it.
    of_rank: Arc<[u32]>,
    /// By location, if it is about a changed run; one process has all locations then.
    moves: Option<Arc<[Arc<Moves>]>>,
}

impl Timeline {
    /// The clocks as measured.
    pub fn new(opened: &Opened) -> Timeline {
        let maps = opened.spans.iter().map(|(key, _)| opened.clocks.of(*key));
        let measured = Timeline {
            maps: Vec::new(),
            of_rank: opened.clock_of.as_slice().into(),
            moves: None,
        };
        measured.with(maps.collect(), opened)
    }

    /// The same with other maps; the first call is at 0 again.
    fn with(&self, maps: Vec<ClockMap>, opened: &Opened) -> Timeline {
        let starts = opened.spans.iter().zip(&maps);
        let starts = starts.map(|((_, span), map)| map.ns(span.0));
        let zero = starts.min().unwrap_or(0);
        Timeline {
            maps: maps.into_iter().map(|map| map.shifted(zero)).collect(),
            of_rank: self.of_rank.clone(),
            moves: None,
        }
    }

    /// The clocks of a changed run. Moves are by location.
    pub fn moved(&self, moves: Vec<Moves>) -> Timeline {
        Timeline {
            moves: Some(moves.into_iter().map(Arc::new).collect()),
            ..self.clone()
        }
    }

    /// End of the run, ns.
    pub fn end(&self, opened: &Opened) -> i64 {
        if self.moves.is_some() {
            let own = self.own(opened).into_iter();
            let ends = own.map(|(clock, span)| clock.ns(span.1));
            return ends.max().unwrap_or(0);
        }
        let ends = opened.spans.iter().zip(&self.maps);
        let ends = ends.map(|((_, span), map)| map.ns(span.1));
        ends.max().unwrap_or(0)
    }

    /// The clocks of this agent's locations, and their first and last moments in ticks.
    pub fn own(&self, opened: &Opened) -> Vec<(ClockMap, (u64, u64))> {
        let own = opened.own.iter().enumerate().map(|(at, (key, span))| {
            let clock = opened.spans.partition_point(|(other, _)| other < key);
            let map = self.maps[clock].clone();
            let moves = self.moves.as_ref().and_then(|moves| moves.get(at));
            match moves {
                Some(moves) => (map.moved(moves.clone()), *span),
                None => (map, *span),
            }
        });
        own.collect()
    }

    /// Whether clocks can contradict each other.
    pub fn has_several(&self) -> bool {
        self.maps.len() > 1
    }

    /// Whether clocks that contradict causality are corrected: those of a recorded run.
    pub fn is_correctable(&self) -> bool {
        self.has_several() && self.moves.is_none()
    }

    /// The notes of a rank in an analysis that will correct the clocks.
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

    /// The clocks corrected by the notes of all ranks. Collective, the same on all agents.
    pub fn corrected(
        &self,
        job: &dyn Job,
        opened: &Opened,
        noted: Noted,
        known: &mut Known,
    ) -> Result<Timeline> {
        let mut all = Least::new();
        for bytes in job.all_gather(postcard::to_stdvec(&noted.0)?) {
            let others: Least = postcard::from_bytes(&bytes)?;
            for (key, time) in others {
                let least = all.entry(key).or_insert(time);
                *least = time.min(*least);
            }
        }
        known
            .0
            .extend(all.iter().map(|(&(cause, effect, _), time)| {
                let began = time.ended.saturating_sub(time.slack);
                let moment = |clock: u32, ns: i64| self.maps[clock as usize].moment(ns);
                (
                    (cause, effect),
                    moment(cause, began),
                    moment(effect, time.ended),
                )
            }));
        let seen = known.0.iter().map(|&(clocks, cause, effect)| {
            let ended = self.maps[clocks.1 as usize].ns(effect);
            let began = self.maps[clocks.0 as usize].ns(cause);
            Seen {
                clocks,
                ended,
                slack: ended.saturating_sub(began),
            }
        });
        let seen: Vec<Seen> = seen.collect();
        let end = self.end(opened);
        let width = width(end);
        let borders = usize::try_from(end.max(0) / width).unwrap_or(0) + 2;
        let corrections = solve(self.maps.len(), borders, width, &seen);
        let maps = self.maps.iter().zip(&corrections);
        let maps = maps.map(|(map, by)| map.corrected(width, by));
        Ok(self.with(maps.collect(), opened))
    }
}

/// Corrections of each clock at each border of bins, ns, so that no time from cause to effect is
/// below zero. They are the smallest that change slowly. If there are none, they follow the clocks
/// closely, so that times noted with them show the rest.
fn solve(clocks: usize, borders: usize, width: i64, seen: &[Seen]) -> Vec<Vec<i64>> {
    let slow = smallest(clocks, borders, width >> STEEP, &needs(seen, width));
    slow.unwrap_or_else(|| trend::follow(clocks, borders, width, width >> STEEPEST, ROUNDING, seen))
}

fn width(end: i64) -> i64 {
    (end.max(0) / BINS).max(SHORTEST_BIN)
}

/// The smallest times by clock of the cause, clock of the effect, and bin.
type Least = BTreeMap<(u32, u32, u32), Time>;

/// The smallest times of an agent's ranks.
#[derive(Debug, Default)]
pub struct Noted(Least);

impl Noted {
    /// Adds a rank's notes.
    pub fn add(&mut self, slacks: &Slacks) {
        for (&(clock, bin), &time) in &slacks.least {
            let least = self.0.entry((clock, slacks.own, bin)).or_insert(time);
            *least = time.min(*least);
        }
    }
}

/// All notes so far: clocks, and the ticks of cause and effect. Only the last members to enter a
/// collective are noted, and corrections may make others the last.
#[derive(Debug, Default)]
pub struct Known(Vec<((u32, u32), u64, u64)>);

/// Further corrections of clocks, ns, at borders of bins: by clock of the cause, clock of the
/// effect, and border.
type Needs = BTreeMap<(u32, u32, u32), i64>;

/// Needs that follow from the smallest times, by clocks and bin. A need that holds at both borders
/// of a bin holds in between.
fn needs(seen: &[Seen], width: i64) -> Needs {
    let mut needs = Needs::new();
    for &Seen {
        clocks,
        ended,
        slack,
    } in seen
    {
        let (cause, effect) = clocks;
        let bin = (ended.max(0) / width) as u32;
        // Cause and effect are at different times.
        let late = ROUNDING + (slack.saturating_abs() >> STEEP);
        let needed = late.saturating_sub(slack);
        for border in [bin, bin + 1] {
            let most = needs.entry((cause, effect, border)).or_insert(needed);
            *most = needed.max(*most);
        }
    }
    needs
}

/// The smallest corrections of each clock at each border of bins, ns, so that no time from cause to
/// effect is below zero. They change by at most `step` from border to border. `None` if there are
/// none.
fn smallest(clocks: usize, borders: usize, step: i64, needs: &Needs) -> Option<Vec<Vec<i64>>> {
    // The two directions contradict if clocks drift apart within a bin by more than messages take.
    let is_contradicted = |(&(cause, effect, border), needed): (&(u32, u32, u32), &i64)| {
        let back = needs.get(&(effect, cause, border));
        back.is_some_and(|back| needed.saturating_add(*back) > 0)
    };
    if needs.iter().any(is_contradicted) {
        return None;
    }
    let mut by = vec![vec![0i64; borders]; clocks];
    // Every sweep covers all of time. A path through the clocks takes one sweep per clock, and may
    // return to a clock at another time.
    for _ in 0..4 * clocks + SWEEPS {
        let mut is_changed = false;
        for (&(cause, effect, border), &needed) in needs {
            let border = border as usize;
            let Some(&cause) = by.get(cause as usize).and_then(|by| by.get(border)) else {
                continue;
            };
            let effect = &mut by[effect as usize][border];
            let least = cause.saturating_add(needed);
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

    /// Times in the middle of bins.
    fn times(slacks: &BTreeMap<(u32, u32, u32), i64>, width: i64) -> Vec<Seen> {
        let time = |(&(cause, effect, bin), &slack): (&(u32, u32, u32), &i64)| Seen {
            clocks: (cause, effect),
            ended: width / 2 + width * i64::from(bin),
            slack,
        };
        slacks.iter().map(time).collect()
    }

    #[test]
    fn effects_move_forward_and_nothing_else_breaks() {
        let width = 1 << 20;
        let slacks = BTreeMap::from([
            // Clock 1 is behind clock 0 by 500 in bin 2, and clock 2 follows clock 1.
            ((0, 1, 2), -500),
            ((1, 0, 2), 3000),
            ((1, 2, 2), 100),
            ((2, 1, 2), 900),
            ((0, 2, 7), 50),
        ]);
        let by = solve(3, 10, width, &times(&slacks, width));
        assert!(by[0].iter().all(|&c| c == 0));
        assert!((500..510).contains(&by[1][2]), "{by:?}");
        assert!((400..412).contains(&by[2][3]), "{by:?}");
        for (&(cause, effect, bin), &slack) in &slacks {
            for border in [bin as usize, bin as usize + 1] {
                let (cause, effect) = (by[cause as usize][border], by[effect as usize][border]);
                assert!(effect + slack >= cause);
            }
        }
        // Slow changes, before and after.
        let step = width >> STEEP;
        let is_slow = |two: &[i64]| (two[1] - two[0]).abs() <= step;
        assert!(by.iter().all(|by| by.windows(2).all(is_slow)), "{by:?}");
    }

    #[test]
    fn measurements_that_cannot_be_true_have_an_end() {
        let slacks = BTreeMap::from([((0, 1, 0), -500), ((1, 0, 0), -500)]);
        let by = solve(2, 2, 1 << 20, &times(&slacks, 1 << 20));
        assert!(by.iter().flatten().all(|&c| c.abs() < 10_000), "{by:?}");
    }
}
