//! Both sides of a wait, compared at the agent of the late party.

use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::basics::ends::NONE;
use crate::roots::activities::{Activity, Kind, Shared, site};
use crate::roots::counters::{self, InCounters};
use crate::roots::excess::{self, Other};
use crate::roots::functions::InFunctions;
use crate::roots::samples;
use crate::roots::sweep::Sweep;
use crate::roots::walk::{Late, Walker};
use crate::wire::links::{Alike, Blame, Kept, Link, More, Side, Source, Spending, Wait, Wholes};
use crate::wire::parcels::exchange;

impl Sweep<'_> {
    /// Keeps the waits that were found; those without a late party end what is put on them.
    pub(super) fn keep_waits(&self, links: &[Link], told: &[(u32, u32)], kept: &mut Kept) {
        kept.waits.reserve(links.len());
        for (lane, walker) in (0..).zip(&self.walkers) {
            for wait in walker.waits.iter().filter(|wait| wait.is_known) {
                let (agent, index) = told[wait.index as usize];
                kept.waits.push(Wait {
                    order: wait.order,
                    share: links[wait.index as usize].share,
                    pattern: links[wait.index as usize].pattern,
                    alike: wait.alike,
                    index,
                    lane,
                    agent,
                });
            }
        }
    }

    /// What the waiting locations did, by agent and number of what it told. Those that fold are
    /// added up. `told` is by wait; `waits` are the numbers of waits by agent and number.
    pub(super) fn sides(
        &self,
        told: &[(u32, u32)],
        waits: Vec<Vec<u32>>,
        counts: &[u32],
    ) -> Vec<Sides> {
        let job = self.search.job;
        let me = job.agent();
        let mut out: Vec<Sides> = waits.into_iter().map(Sides::expect).collect();
        for (lane, walker) in (0..).zip(&self.walkers) {
            for (at, wait) in (0..).zip(&walker.waits) {
                let (agent, index) = told[wait.index as usize];
                if agent != NONE && wait.is_known {
                    out[agent as usize].add(index, Place { lane, at });
                }
            }
        }
        out.iter_mut().for_each(|sides| sides.fold(&self.walkers));
        let own = std::mem::take(&mut out[me]);
        let mut spending = out
            .iter()
            .map(|sides| sides.pack(&self.walkers, &self.shared))
            .collect::<Vec<_>>();
        let received = exchange(job, &mut spending);
        let sides = received.iter().zip(counts);
        let mut sides: Vec<Sides> = sides
            .map(|(parcel, &count)| Sides::unpack(parcel, count, &self.shared))
            .collect();
        sides[me] = own;
        sides
    }

    /// Compares the two sides of all waits for locations of this agent. `sources` are by number of
    /// the late call. Returns by this number whether a location is charged.
    pub(super) fn compare(
        &mut self,
        sides: &[Sides],
        sources: &[&[Late]],
        kept: &mut Kept,
    ) -> Vec<bool> {
        let (walkers, as_whole) = (&self.walkers, self.search.folds);
        let functions = self.search.functions;
        let compared = walkers
            .par_iter()
            .map_init(Other::default, |other, walker| {
                let count = walker.blames.len();
                let mut blames: Vec<Blame> = Vec::with_capacity(count);
                let (mut more, mut wholes): (Vec<More>, Vec<i64>) = (Vec::new(), Vec::new());
                let mut alike: Vec<Alike> = Vec::new();
                let mut known: Vec<Source> = Vec::with_capacity(count);
                let mut charged: Vec<u32> = Vec::with_capacity(count);
                let (mut in_functions, mut in_counters) =
                    (InFunctions::default(), InCounters::default());
                for (blame, times) in &walker.blames {
                    other.clear();
                    let first = known.len();
                    for late in sources[blame.sources as usize] {
                        let sides = &sides[late.agent as usize];
                        if let Some((wholes, waits, times)) = sides.of(late.index, walkers) {
                            other.add(times, wholes, waits);
                            let (index, agent) = (late.index, late.agent);
                            known.push(Source { index, agent });
                        }
                    }
                    if known.len() == first {
                        continue;
                    }
                    charged.push(blame.sources);
                    let (begin, both) = (more.len(), alike.len());
                    other.divide();
                    let times = &walker.times[times.start as usize..times.end as usize];
                    let activities = &walker.activities;
                    let sums = (&mut more, &mut wholes);
                    let count = excess::of(activities, times, other, as_whole, sums, &mut alike);
                    let both = &alike[both..];
                    let waited: i64 = both.iter().map(|alike| alike.both).sum();
                    let own = (times, functions);
                    let longer = &more[begin..];
                    samples::add(activities, own, other, longer, &mut in_functions);
                    counters::of_wait(activities, times, other, longer, &mut in_counters);
                    blames.push(Blame {
                        count,
                        alike: both.len() as u32,
                        waited: (blame.waited - waited).max(0),
                        sources: (known.len() - first) as u32,
                        waits: other.waits,
                        ..*blame
                    });
                }
                let beside = (in_functions, in_counters);
                (blames, (more, wholes, alike), (known, charged), beside)
            });
        let compared: Vec<_> = compared.collect();
        let mut is_charged = vec![false; sources.len()];
        for (walker, (blames, (more, wholes, alike), (known, charged), beside)) in
            self.walkers.iter_mut().zip(compared)
        {
            for (more, &time) in more.iter().zip(&wholes) {
                walker.did_longer(more, time);
            }
            for (at, sampled) in beside.0 {
                walker.in_functions.entry(at).or_default().add(&sampled);
            }
            counters::merge(&mut walker.in_counters, beside.1);
            for number in charged {
                is_charged[number as usize] = true;
            }
            kept.blames.reserve(blames.len());
            let mut longer = &more[..];
            for blame in blames {
                let own;
                (own, longer) = longer.split_at(blame.count as usize);
                let all: i64 = own.iter().map(|more| more.time).sum();
                let all = all.saturating_add(blame.waited);
                let is_over = blame.share > all.saturating_mul(blame.waits.into());
                let latency = is_over.then(|| {
                    walker.activities.number(Activity {
                        kind: Kind::Latency,
                        begin: site(walker.thread, blame.latency),
                        until: self.victims.values[blame.victim as usize].call,
                    })
                });
                let latency = latency.unwrap_or(NONE);
                kept.blames.push(Blame { latency, ..blame });
            }
            kept.more.extend(more);
            kept.alike.extend(alike);
            kept.sources.extend(known);
        }
        is_charged
    }
}

/// What waiting locations did, by number of what was told about their waits.
#[derive(Default)]
pub(super) struct Sides {
    /// By number: where it is, and of how many waits.
    of: Vec<(Place, u32)>,
    /// What no walker has.
    sides: Vec<Elsewhere>,
    /// Its times: the agent's numbers of activities, and ns.
    times: Vec<(u32, i64)>,
    /// Waits that fold, with their numbers.
    folding: Vec<(u32, Place)>,
}

impl Sides {
    /// How many are known.
    pub(super) fn count(&self) -> u32 {
        self.of.iter().filter(|(of, _)| of.at != NONE).count() as u32
    }

    /// So many waits have each number.
    fn expect(waits: Vec<u32>) -> Sides {
        let of = waits.into_iter().map(|waits| (Place::NOWHERE, waits));
        Sides {
            of: of.collect(),
            ..Sides::default()
        }
    }

    /// Adds the side of a wait.
    fn add(&mut self, index: u32, place: Place) {
        match &mut self.of[index as usize] {
            (known, 1) => *known = place,
            _ => self.folding.push((index, place)),
        }
    }

    /// All waits are there.
    fn fold(&mut self, walkers: &[Walker<'_>]) {
        let mut folding = std::mem::take(&mut self.folding);
        folding.sort_by_key(|(index, _)| *index);
        let mut sum = Other::default();
        for same in folding.chunk_by(|a, b| a.0 == b.0) {
            sum.clear();
            for (_, place) in same {
                if let Some((wholes, waits, times)) = self.at(*place, walkers) {
                    sum.add(times, wholes, waits);
                }
            }
            let (index, begin) = (same[0].0, self.times.len());
            self.times.extend(sum.times());
            self.of[index as usize].0 = Place::here(self.sides.len());
            self.sides.push(Elsewhere {
                wholes: sum.wholes,
                waits: sum.waits,
                times: begin..self.times.len(),
            });
        }
    }

    /// Most waits have one of few sets of activities. Times go column by column.
    fn pack(&self, walkers: &[Walker<'_>], shared: &Shared) -> Spending {
        let mut parcel = Spending::default();
        let mut sets: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
        let (mut numbers, mut times) = (Vec::new(), Vec::new());
        // By set: where the times of its waits begin.
        let mut begins: Vec<Vec<usize>> = Vec::new();
        for index in 0..self.of.len() as u32 {
            let Some((_, waits, own)) = self.of(index, walkers) else {
                continue;
            };
            let begin = times.len();
            numbers.clear();
            for (number, time) in own {
                numbers.push(number);
                times.push(time);
            }
            let set = sets.get(&numbers).copied().unwrap_or_else(|| {
                let next = begins.len() as u32;
                sets.insert(numbers.clone(), next);
                for &number in &numbers {
                    parcel.keys.push(shared.keys[number as usize]);
                    let whole = shared.wholes[number as usize];
                    parcel
                        .wholes
                        .push(whole.map_or(0, |whole| whole as u32 + 1));
                }
                parcel.lengths.push(numbers.len() as u32);
                begins.push(Vec::new());
                next
            });
            begins[set as usize].push(begin);
            let count = numbers.len() as u32;
            parcel.sides.push(Side {
                index,
                waits,
                count,
            });
            parcel.sets.push(set);
        }
        for (begins, &length) in begins.iter().zip(&parcel.lengths) {
            for at in 0..length as usize {
                let column = begins.iter().map(|begin| times[begin + at]);
                parcel.times.extend(column);
            }
        }
        parcel
    }

    fn unpack(parcel: &Spending, count: u32, shared: &Shared) -> Sides {
        let mut of = vec![(Place::NOWHERE, 0); count as usize];
        let mut sides = Vec::with_capacity(parcel.sides.len());
        // By set: its waits.
        let mut sets: Vec<Vec<usize>> = vec![Vec::new(); parcel.lengths.len()];
        let mut end = 0;
        for (side, &set) in parcel.sides.iter().zip(&parcel.sets) {
            let (Some(set), Some((of, _))) =
                (sets.get_mut(set as usize), of.get_mut(side.index as usize))
            else {
                continue;
            };
            *of = Place::here(sides.len());
            set.push(sides.len());
            let begin = end;
            end += side.count as usize;
            sides.push(Elsewhere {
                wholes: Wholes::default(),
                waits: side.waits,
                times: begin..end,
            });
        }
        let mut times = vec![(NONE, 0); end];
        let mut keys = parcel.keys.iter().zip(&parcel.wholes);
        let mut columns = &parcel.times[..];
        for (set, &length) in sets.iter().zip(&parcel.lengths) {
            for at in 0..length as usize {
                let column;
                (column, columns) = columns.split_at(set.len().min(columns.len()));
                let Some((&key, &whole)) = keys.next() else {
                    break;
                };
                // Activities that no location of this agent has are in the sums of wholes only.
                let number = shared.find(key).unwrap_or(NONE);
                for (&side, &time) in set.iter().zip(column) {
                    let side: &mut Elsewhere = &mut sides[side];
                    if let Some(of) = times[side.times.clone()].get_mut(at) {
                        *of = (number, time);
                    }
                    let whole = (whole as usize).checked_sub(1);
                    if let Some(sum) = whole.and_then(|whole| side.wholes.get_mut(whole)) {
                        *sum = sum.saturating_add(time);
                    }
                }
            }
        }
        Sides {
            of,
            sides,
            times,
            folding: Vec::new(),
        }
    }

    /// Sums, of how many waits, and the times by the agent's number of the activity.
    fn of<'w>(
        &'w self,
        index: u32,
        walkers: &'w [Walker<'_>],
    ) -> Option<(&'w Wholes, u32, impl Iterator<Item = (u32, i64)> + 'w)> {
        self.at(self.of.get(index as usize)?.0, walkers)
    }

    #[inline]
    fn at<'w>(
        &'w self,
        place: Place,
        walkers: &'w [Walker<'_>],
    ) -> Option<(&'w Wholes, u32, impl Iterator<Item = (u32, i64)> + 'w)> {
        let at = place.at as usize;
        let (wholes, waits, times, shared) = match walkers.get(place.lane as usize) {
            Some(walker) => {
                let wait = walker.waits.get(at)?;
                let times = wait.times.start as usize..wait.times.end as usize;
                let times = walker.times.get(times)?;
                (&wait.wholes, 1, times, &walker.activities.shared[..])
            }
            None => {
                let side = self.sides.get(at)?;
                let times = self.times.get(side.times.clone())?;
                (&side.wholes, side.waits, times, &[][..])
            }
        };
        // Only walkers number activities on their own.
        let shared = move |number: u32| shared.get(number as usize).copied().unwrap_or(number);
        let times = times.iter();
        Some((
            wholes,
            waits,
            times.map(move |&(number, time)| (shared(number), time)),
        ))
    }
}

/// The side of a wait at another agent, or of several together.
struct Elsewhere {
    /// See [`Wholes`].
    wholes: Wholes,
    /// Number of waits.
    waits: u32,
    /// Place of its times.
    times: Range<usize>,
}

/// Where the side of a wait is.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The walker that has it; `NONE` if none does.
    lane: u32,
    /// Its number there; `NONE` if it is unknown.
    at: u32,
}

impl Place {
    const NOWHERE: Place = Place {
        lane: NONE,
        at: NONE,
    };

    fn here(at: usize) -> Place {
        let at = at as u32;
        Place { lane: NONE, at }
    }
}
