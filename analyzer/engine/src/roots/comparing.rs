//! Both sides of a wait, compared at the agent of the late party.

use rayon::prelude::*;

use crate::basics::ends::NONE;
use crate::roots::activities::{Activity, Kind, site};
use crate::roots::carry::scale;
use crate::roots::counters::{self, InCounters};
use crate::roots::excess::{Excess, Other};
use crate::roots::functions::InFunctions;
use crate::roots::samples;
use crate::roots::sides::Sides;
use crate::roots::sums::Worst;
use crate::roots::sweep::Sweep;
use crate::roots::walk::{Late, Walker};
use crate::wire::links::{Alike, Blame, Kept, Link, Source, Wait};

/// Waits that one thread compares at a time.
const TOGETHER: usize = 256;

/// The waits that were found; those without a late party end what is put on them.
pub(super) fn waits(walkers: &[Walker<'_>], links: &[Link], told: &[(u32, u32)]) -> Vec<Wait> {
    let mut waits = Vec::with_capacity(links.len());
    for (lane, walker) in (0..).zip(walkers) {
        for wait in walker.waits.iter().filter(|wait| wait.is_known) {
            let link = &links[wait.index as usize];
            let (agent, index) = told[wait.index as usize];
            waits.push(Wait {
                order: wait.order,
                share: link.share,
                pattern: link.pattern,
                alike: wait.alike,
                transfer: wait.transfer,
                index,
                lane,
                agent,
            });
        }
    }
    waits
}

impl Sweep<'_> {
    /// Compares the two sides of all waits for locations of this agent. `sources` are by number of
    /// the late call. Returns by this number whether a location is charged.
    pub(super) fn compare(
        &mut self,
        sides: &[Sides],
        sources: &[&[Late]],
        kept: &mut Kept,
    ) -> Vec<bool> {
        let walkers = &self.walkers;
        let functions = self.search.functions;
        // Mostly few locations are late: their waits are shared among threads.
        let parts = walkers.iter().enumerate().flat_map(|(lane, walker)| {
            let parts = walker.blames.chunks(TOGETHER);
            parts.map(move |blames| (lane, blames))
        });
        let parts: Vec<_> = parts.collect();
        let compared = parts
            .into_par_iter()
            .map_init(Other::default, |other, (lane, part)| {
                let walker = &walkers[lane];
                let count = part.len();
                let mut blames: Vec<(Blame, i64)> = Vec::with_capacity(count);
                let mut excess = Excess::of_waits(count);
                let mut alike: Vec<Alike> = Vec::with_capacity(count);
                let mut known: Vec<Source> = Vec::with_capacity(count);
                let mut charged: Vec<u32> = Vec::with_capacity(count);
                let (mut in_functions, mut in_counters) =
                    (InFunctions::default(), InCounters::default());
                for (blame, enter, times, alone) in part {
                    other.clear();
                    let first = known.len();
                    for late in sources[blame.sources as usize] {
                        let sides = &sides[late.agent as usize];
                        if let Some(side) = sides.of(late.index, walkers) {
                            side.add_to(other);
                            let (index, agent) = (late.index, late.agent);
                            known.push(Source { index, agent });
                        }
                    }
                    if known.len() == first {
                        continue;
                    }
                    charged.push(blame.sources);
                    let (begin, both) = (excess.more.len(), alike.len());
                    let activities = &walker.activities;
                    for alone in &walker.alone[alone.start as usize..alone.end as usize] {
                        // So many of those that wait.
                        let count = other.of(alone.number);
                        if count > 0 {
                            let shared = |&(number, time): &(u32, i64)| {
                                (activities.shared[number as usize], time * count)
                            };
                            let times = walker.listed(&alone.times).iter().map(shared);
                            other.add(times, &alone.wholes.map(|whole| whole * count), 0);
                        }
                    }
                    other.divide();
                    let times = walker.listed(times);
                    let count = excess.add(activities, times, other, &mut alike);
                    let both = &alike[both..];
                    let waited: i64 = both.iter().map(|alike| alike.both).sum();
                    let own = (times, functions);
                    let longer = &excess.more[begin..];
                    samples::add(activities, own, other, longer, &mut in_functions);
                    counters::of_wait(activities, times, other, longer, &mut in_counters);
                    let blame = Blame {
                        count,
                        alike: both.len() as u32,
                        waited: (blame.waited - waited).max(0),
                        sources: (known.len() - first) as u32,
                        waits: other.waits,
                        ..*blame
                    };
                    blames.push((blame, *enter));
                }
                let beside = (in_functions, in_counters);
                let found = (excess, alike);
                (lane, (blames, found, (known, charged), beside))
            });
        let compared: Vec<_> = compared.collect();
        let count = |of: fn(&Excess, &[Alike], &[Source]) -> usize| {
            let parts = compared.iter();
            parts
                .map(|(_, (_, (excess, alike), (known, _), _))| of(excess, alike, known))
                .sum()
        };
        kept.more.reserve(count(|excess, _, _| excess.more.len()));
        kept.alike.reserve(count(|_, alike, _| alike.len()));
        kept.sources.reserve(count(|_, _, sources| sources.len()));
        let mut is_charged = vec![false; sources.len()];
        for (lane, (blames, (excess, alike), (known, charged), beside)) in compared {
            let walker = &mut self.walkers[lane];
            let more = excess.more;
            for (at, sampled) in beside.0 {
                walker.in_functions.entry(at).or_default().add(&sampled);
            }
            counters::merge(&mut walker.in_counters, beside.1);
            for number in charged {
                is_charged[number as usize] = true;
            }
            kept.blames.reserve(blames.len());
            let (mut longer, mut times) = (&more[..], &excess.times[..]);
            for (blame, enter) in blames {
                let (own, in_all);
                (own, longer) = longer.split_at(blame.count as usize);
                (in_all, times) = times.split_at(own.len());
                let each = blame.share / i64::from(blame.waits.max(1));
                for (more, &time) in own.iter().zip(in_all) {
                    walker.did_longer(more, time, each);
                }
                let all: i64 = own.iter().map(|more| more.time).sum();
                let all = all.saturating_add(blame.waited);
                let most = all.saturating_mul(blame.waits.into()).max(0);
                let is_over = blame.share > most;
                let cost = |cost| Worst {
                    cost,
                    until: enter,
                    waited: blame.share,
                    waits: blame.waits.max(1),
                    rank: 0,
                };
                for more in own.iter().filter(|_| all > 0) {
                    let part = scale(blame.share.min(most), more.time, all);
                    walker.worst.add(more.activity, &cost(part));
                }
                let latency = is_over.then(|| {
                    walker.activities.number(Activity {
                        kind: Kind::Latency,
                        begin: site(walker.thread, blame.latency),
                        until: self.victims.values[blame.victim as usize].call,
                    })
                });
                if let Some(latency) = latency {
                    walker.worst.add(latency, &cost(blame.share - most));
                }
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
