//! Both sides of a wait, compared at the agent of the late party.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::basics::ends::NONE;
use crate::roots::activities::{Activity, Kind, Shared, site};
use crate::roots::excess::{self, Other};
use crate::roots::sweep::Sweep;
use crate::roots::walk::{Late, Times, Walker};
use crate::wire::links::{Blame, Kept, Link, More, Side, Source, Spending, Spent, Wait};
use crate::wire::parcels::exchange;

impl Sweep<'_> {
    /// Keeps the waits that were found; those without a late party end what is put on them.
    pub(super) fn keep_waits(&self, links: &[Link], told: &[(u32, u32)], kept: &mut Kept) {
        for (lane, walker) in (0..).zip(&self.walkers) {
            for (order, side, _) in &walker.waits {
                let (agent, index) = told[side.index as usize];
                if side.count != NONE {
                    kept.waits.push(Wait {
                        order: *order,
                        share: links[side.index as usize].share,
                        pattern: links[side.index as usize].pattern,
                        index,
                        lane,
                        agent,
                    });
                }
            }
        }
    }

    /// What the waiting locations did, by agent and number of what it told. Those that fold are
    /// added up. `told` is by wait.
    pub(super) fn sides(&self, told: &[(u32, u32)], counts: &[u32]) -> Vec<Sides> {
        let job = self.search.job;
        let me = job.agent();
        let mut out: Vec<Sides> = (0..job.agents()).map(|_| Sides::default()).collect();
        for &(agent, index) in told.iter().filter(|(agent, _)| *agent != NONE) {
            out[agent as usize].expect(index);
        }
        for (lane, walker) in (0..).zip(&self.walkers) {
            for (_, side, times) in &walker.waits {
                let (agent, index) = told[side.index as usize];
                if agent == NONE || side.count == NONE {
                    continue;
                }
                out[agent as usize].add(Side { index, ..*side }, (lane, times), walker);
            }
        }
        out.iter_mut().for_each(Sides::fold);
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
        let compared = walkers
            .par_iter()
            .map_init(Other::default, |other, walker| {
                let (mut blames, mut more): (Vec<Blame>, Vec<More>) = (Vec::new(), Vec::new());
                let mut wholes: Vec<i64> = Vec::new();
                let mut known: Vec<Source> = Vec::new();
                let mut charged: Vec<u32> = Vec::new();
                for (blame, times) in &walker.blames {
                    other.clear();
                    let first = known.len();
                    for late in sources[blame.sources as usize] {
                        let sides = &sides[late.agent as usize];
                        if let Some((side, times)) = sides.of(late.index, walkers) {
                            other.add(times, side.wholes(), side.waits);
                            let (index, agent) = (late.index, late.agent);
                            known.push(Source { index, agent });
                        }
                    }
                    if known.len() == first {
                        continue;
                    }
                    charged.push(blame.sources);
                    other.divide();
                    let times = &walker.times[times.start as usize..times.end as usize];
                    blames.push(Blame {
                        count: excess::of(
                            &walker.activities,
                            times,
                            other,
                            as_whole,
                            (&mut more, &mut wholes),
                        ),
                        sources: (known.len() - first) as u32,
                        waits: other.waits,
                        ..*blame
                    });
                }
                (blames, (more, wholes), known, charged)
            });
        let compared: Vec<_> = compared.collect();
        let mut is_charged = vec![false; sources.len()];
        for (walker, (blames, (more, wholes), known, charged)) in
            self.walkers.iter_mut().zip(compared)
        {
            for (more, &time) in more.iter().zip(&wholes) {
                walker.did_longer(more, time);
            }
            for number in charged {
                is_charged[number as usize] = true;
            }
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
            kept.sources.extend(known);
        }
        is_charged
    }
}

/// What waiting locations did, by number of what was told about their waits.
#[derive(Default)]
pub(super) struct Sides {
    /// By number: what is told, and where its times begin; and of how many waits.
    of: Vec<(Option<(Side, Place)>, u32)>,
    /// Times that no walker has: the agent's numbers of activities, and ns.
    times: Vec<(u32, i64)>,
    /// Sums of those that fold, by number.
    folded: FxHashMap<u32, (Side, FxHashMap<u32, i64>)>,
}

impl Sides {
    /// How many are known.
    pub(super) fn count(&self) -> u32 {
        self.of.iter().filter(|(of, _)| of.is_some()).count() as u32
    }

    /// One more wait has this number.
    fn expect(&mut self, index: u32) {
        let at = index as usize;
        if self.of.len() <= at {
            self.of.resize(at + 1, (None, 0));
        }
        self.of[at].1 += 1;
    }

    /// Adds the side of a wait, with its times in a walker.
    fn add(&mut self, side: Side, (lane, times): (u32, &Times), walker: &Walker<'_>) {
        let (of, waits) = &mut self.of[side.index as usize];
        let at = times.start as usize;
        if *waits == 1 {
            *of = Some((side, Place { lane, at }));
            return;
        }
        let times = walker.times[at..times.end as usize].iter();
        let numbers = &walker.activities.shared;
        let times = times.map(|&(number, time)| (numbers[number as usize], time));
        let (sum, sums) = self.folded.entry(side.index).or_insert_with(|| {
            let none = Side {
                index: side.index,
                ..Side::default()
            };
            (none, FxHashMap::default())
        });
        sum.waits += 1;
        sum.add_wholes(side.wholes());
        for (number, time) in times {
            let sum = sums.entry(number).or_default();
            *sum = sum.saturating_add(time);
        }
    }

    /// All waits are there.
    fn fold(&mut self) {
        for (index, (side, sums)) in std::mem::take(&mut self.folded) {
            let count = sums.len() as u32;
            let place = Place::here(self.times.len());
            self.of[index as usize].0 = Some((Side { count, ..side }, place));
            self.times.extend(sums);
        }
    }

    fn pack(&self, walkers: &[Walker<'_>], shared: &Shared) -> Spending {
        let mut parcel = Spending::default();
        for (side, times) in (0..self.of.len() as u32).filter_map(|at| self.of(at, walkers)) {
            parcel.sides.push(*side);
            parcel.spent.extend(times.map(|(number, time)| Spent {
                key: shared.keys[number as usize],
                time,
            }));
        }
        parcel
    }

    fn unpack(parcel: &Spending, count: u32, shared: &Shared) -> Sides {
        let mut of = vec![(None, 0); count as usize];
        let mut at = 0;
        for side in &parcel.sides {
            if let Some((of, _)) = of.get_mut(side.index as usize) {
                *of = Some((*side, Place::here(at)));
            }
            at += side.count as usize;
        }
        let times = parcel.spent.iter();
        // Activities that no location of this agent has are in the sums of wholes only.
        let times = times.map(|spent| (shared.find(spent.key).unwrap_or(NONE), spent.time));
        Sides {
            of,
            times: times.collect(),
            folded: FxHashMap::default(),
        }
    }

    /// What is told, and the times by the agent's number of the activity.
    fn of<'w>(
        &'w self,
        index: u32,
        walkers: &'w [Walker<'_>],
    ) -> Option<(&'w Side, impl Iterator<Item = (u32, i64)> + 'w)> {
        let (side, place) = self.of.get(index as usize)?.0.as_ref()?;
        let walker = walkers.get(place.lane as usize);
        let times = walker.map_or(&self.times, |walker| &walker.times);
        let times = times.get(place.at..place.at + side.count as usize)?;
        let numbers = walker.map(|walker| &walker.activities.shared);
        let shared = move |number: u32| numbers.map_or(number, |shared| shared[number as usize]);
        let times = times.iter();
        Some((
            side,
            times.map(move |&(number, time)| (shared(number), time)),
        ))
    }
}

/// Where the times of a wait begin.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The walker that has them; `NONE` if none does.
    lane: u32,
    at: usize,
}

impl Place {
    fn here(at: usize) -> Place {
        Place { lane: NONE, at }
    }
}
