//! Root causes: who started the waiting that others passed on.
//!
//! *In.* The wait states of the last rounds, with their late parties, and the calls of this agent's
//! locations. *Out.* Costs by late location and activity: the sum of all costs, and of the waiting
//! that cannot be traced, is the sum of all waiting. *Does not know* how a wait was found, or what
//! is printed.
//!
//! A forward sweep over the slabs compares what the two locations of a wait did since they last
//! synchronised: what the late one did longer is the *excess* that the wait is charged to, together
//! with its own waits in that time (Böhme, Geimer, Arnold, Voigtländer, Wolf: Identifying the root
//! causes of wait states in large-scale parallel applications, ACM TOPC 2016). A backward sweep
//! carries costs from waits to those waits, until they end in an excess.

pub mod activities;
pub mod carry;
mod excess;
mod members;
pub mod sums;
mod walk;

use anyhow::{Context, Result};
use laggard_comm::{self as comm, Job};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::basics::ends::NONE;
use crate::basics::intern::Interner;
use crate::basics::spill::{Piece, Spill};
use crate::clock::ClockMap;
use crate::input::open::Opened;
use crate::replay::rank::Rank;
use crate::roots::activities::{Activity, Kind, Shared, Site, site};
use crate::roots::carry::{Carrier, rank_bit};
use crate::roots::excess::Other;
use crate::roots::members::Members;
use crate::roots::sums::{Roots, Victim};
use crate::roots::walk::{Late, Walker};
use crate::waits::links::Links;
use crate::wire::links::{
    Blame, Kept, Leaving, Link, More, Side, Source, Spending, Spent, Telling, Told, Wait,
};
use crate::wire::parcels::{Parcel, exchange};

/// What failed, if a temporary file did.
const NO_ROOM: &str = "root causes are left out: a temporary file cannot be used";

/// Input of the search.
pub struct Search<'s> {
    pub job: &'s dyn Job,
    /// The traces.
    pub opened: &'s Opened,
    /// The clocks of this agent's locations.
    pub clocks: &'s [ClockMap],
    /// The groups' numbers.
    pub numbers: &'s Interner<u64>,
    /// Whether the waits of all members of a collective are compared with the late one as one.
    pub folds: bool,
}

/// The search under way.
struct Sweep<'s> {
    search: &'s Search<'s>,
    walkers: Vec<Walker<'s>>,
    /// World rank and number of the thread of each walker.
    names: Vec<(u32, u32)>,
    /// Walkers by rank and position of the thread.
    waiting: FxHashMap<(u32, u32), u32>,
    /// Walkers by rank and number of the thread.
    late: FxHashMap<(u32, u32), u32>,
    members: Members,
    shared: Shared,
    victims: Interner<Victim>,
    /// All waiting, ns.
    sum: u128,
}

impl Search<'_> {
    /// Finds the root causes of the waits of all agents, of which `links` are this agent's.
    /// Collective.
    ///
    /// # Errors
    /// Temporary files that cannot be written or read. The same on all agents.
    pub fn find(&self, ranks: &[Rank<'_>], mut links: Links) -> Result<Roots> {
        let members = Members::gather(self.job, self.opened, self.numbers)?;
        let mut sweep = Sweep::new(self, ranks, members);
        let borders = links.borders().to_vec();
        let ends = borders.iter().copied().chain([i64::MAX]);
        let mut spill = Spill::default();
        let mut kept: Vec<Piece> = Vec::new();
        for (slab, until) in ends.enumerate() {
            let slab = sweep.forward(until, links.take(slab));
            kept.push(spill.put(&slab.pack()));
        }
        let failed = links.error().or(spill.error.take());
        comm::agree(self.job, failed.map_or(Ok(()), Err).context(NO_ROOM))?;
        let mut carrier = Carrier::new(self.job, sweep.victims);
        for piece in kept.into_iter().rev() {
            carrier.backward(Kept::unpack(&spill.get(piece)), &sweep.names);
        }
        let failed = spill.error.take();
        comm::agree(self.job, failed.map_or(Ok(()), Err).context(NO_ROOM))?;
        let mut roots = Roots {
            waiting: sweep.sum,
            ..Roots::default()
        };
        let lanes = sweep.names.iter().zip(&sweep.walkers);
        carrier.finish(
            lanes.map(|(name, walker)| (*name, &walker.activities)),
            &mut roots,
        );
        Ok(roots)
    }

    fn agent_of(&self, rank: u32) -> Option<usize> {
        let agent = self.opened.agent_of.get(rank as usize).copied();
        agent
            .filter(|&agent| agent != NONE)
            .map(|agent| agent as usize)
    }
}

/// Positions of the entries of each walker in a list that is sorted by walker.
fn ranges<T>(list: &[T], walkers: usize, of: impl Fn(&T) -> u32) -> Vec<(usize, usize)> {
    let mut ranges = Vec::with_capacity(walkers);
    let mut at = 0;
    for walker in 0..walkers as u32 {
        let begin = at;
        while list.get(at).is_some_and(|entry| of(entry) == walker) {
            at += 1;
        }
        ranges.push((begin, at));
    }
    ranges
}

impl<'s> Sweep<'s> {
    fn new(search: &'s Search<'s>, ranks: &'s [Rank<'_>], members: Members) -> Self {
        let (mut walkers, mut names) = (Vec::new(), Vec::new());
        let (mut waiting, mut late) = (FxHashMap::default(), FxHashMap::default());
        let threads = ranks.iter().flat_map(|rank| {
            let threads = (0..).zip(&rank.recorded.threads);
            threads.map(|at| (rank.recorded.rank, at))
        });
        // Further threads begin when their rank's start-up is over.
        let mut started: FxHashMap<u32, i64> = FxHashMap::default();
        let bounds = search.opened.bounds.iter().zip(search.clocks);
        for ((rank, (position, thread)), (bounds, clock)) in threads.zip(bounds) {
            let lane = walkers.len() as u32;
            waiting.insert((rank, position), lane);
            late.insert((rank, thread.number), lane);
            names.push((rank, thread.number));
            let start = match bounds.started {
                Some(ticks) => {
                    started.entry(rank).or_insert(clock.ns(ticks));
                    None
                }
                None => Some(started.get(&rank).copied().unwrap_or(0)),
            };
            walkers.push(Walker::new(thread, clock.clone(), search.folds, start));
        }
        Sweep {
            search,
            walkers,
            names,
            waiting,
            late,
            members,
            shared: Shared::default(),
            victims: Interner::default(),
            sum: 0,
        }
    }

    /// One slab: all waits, and what the late locations did longer.
    fn forward(&mut self, until: i64, links: Vec<Link>) -> Kept {
        self.walkers
            .par_iter_mut()
            .for_each(|walker| walker.read(until));
        // Links are large: their places are sorted.
        let mut places: Vec<(u32, i64, i64, u32)> = (0u32..)
            .zip(&links)
            .map(|(at, link)| {
                let lane = self.waiting[&(link.rank, link.thread)];
                (lane, link.enter, link.time, at)
            })
            .collect();
        places.sort_unstable();
        let own = ranges(&places, self.walkers.len(), |(lane, ..)| *lane);
        let lane_of: Vec<u32> = places.iter().map(|(lane, ..)| *lane).collect();
        let sorted = places.iter().map(|(.., at)| links[*at as usize]);
        let links: Vec<Link> = sorted.collect();
        self.sum += links
            .iter()
            .map(|link| link.share.max(0) as u128)
            .sum::<u128>();

        let mut kept = Kept::default();
        let (told, lates, leaves) = self.tell(&links, &lane_of, &mut kept.counts);
        let teams = teams(&lates);
        let late = ranges(&teams, self.walkers.len(), |(late, _)| late.lane);
        let whole: Vec<Late> = teams.iter().map(|(late, _)| *late).collect();
        let members = &self.members;
        let parts = own.par_iter().zip(&late);
        self.walkers
            .par_iter_mut()
            .zip(parts)
            .for_each(|(walker, (own, late))| {
                let leaves = &leaves[own.0..own.1];
                let own = (&links[own.0..own.1], own.0);
                walker.walk(own, leaves, (&whole[late.0..late.1], late.0), members);
            });
        for walker in &mut self.walkers {
            self.shared.add(&mut walker.activities);
        }
        self.keep_waits(&links, &told, &mut kept);
        let sides = self.sides(&told, &kept.counts);
        let sources: Vec<&[Late]> = teams.iter().map(|(_, from)| &lates[from.clone()]).collect();
        self.compare(&sides, &sources, &mut kept);
        kept
    }

    /// Tells waits to the agents of the late parties. Returns by wait the agent and the wait's
    /// number there; what the other agents told, by location and event; and by wait, when the late
    /// call was left, ns. `counts` gets the numbers of waits that the agents told.
    fn tell(
        &mut self,
        links: &[Link],
        lane_of: &[u32],
        counts: &mut Vec<u32>,
    ) -> (Vec<(u32, u32)>, Vec<Late>, Vec<i64>) {
        let (job, agents) = (self.search.job, self.search.job.agents());
        let ranks = self.search.opened.agent_of.len();
        let mut telling: Vec<Telling> = (0..agents).map(|_| Telling::default()).collect();
        let mut folded: FxHashMap<Team, u32> = FxHashMap::default();
        let told = links.iter().zip(lane_of).map(|(link, &lane)| {
            let agent = match link.late_rank {
                NONE => None,
                rank => self.search.agent_of(rank),
            };
            let Some(agent) = agent else {
                return (NONE, 0);
            };
            let thread = self.walkers[lane as usize].thread;
            let (operation, path) = site(thread, link.signature);
            let row = thread.rows.get(link.signature as usize);
            let is_team = self.search.folds && link.left != i64::MAX;
            let group = row.filter(|_| is_team).and_then(walk::team);
            let mut told = Told {
                event: link.event,
                share: link.share,
                leave: link.leave,
                left: link.left,
                late_rank: link.late_rank,
                rank: link.rank,
                ranks: rank_bit(link.rank, ranks),
                path,
                operation,
                pattern: link.pattern,
                late_thread: link.late_thread,
                group: 0,
            };
            let list = &mut telling[agent].told;
            let next = list.len() as u32;
            if let Some(group) = group {
                told.group = self.search.numbers.values[group as usize];
                told.rank = NONE;
                told.leave = i64::MAX;
                let at = *folded.entry(Team::of(&told)).or_insert(next);
                if at != next {
                    let team = &mut list[at as usize];
                    team.share = team.share.saturating_add(told.share);
                    team.ranks |= told.ranks;
                    team.left = team.left.min(told.left);
                    return (agent as u32, at);
                }
            }
            list.push(told);
            (agent as u32, next)
        });
        let told: Vec<_> = told.collect();
        let mut lates: Vec<Late> = Vec::new();
        let mut leaving: Vec<Leaving> = (0..agents).map(|_| Leaving::default()).collect();
        let received = exchange(job, &mut telling);
        for ((agent, parcel), leaving) in (0..).zip(&received).zip(&mut leaving) {
            counts.push(parcel.told.len() as u32);
            for (index, told) in (0..).zip(&parcel.told) {
                let lane = self.late.get(&(told.late_rank, told.late_thread)).copied();
                let leave = lane.map(|lane| self.walkers[lane as usize].leave_of(told.event));
                leaving.leaves.push(leave.unwrap_or(i64::MAX));
                let group = match told.group {
                    0 => None,
                    id => self.search.numbers.find(&id),
                };
                lates.extend(lane.map(|lane| Late {
                    event: told.event,
                    lane,
                    agent,
                    index,
                    rank: told.rank,
                    ranks: told.ranks,
                    group: group.unwrap_or(NONE),
                    victim: self.victims.number(Victim {
                        pattern: told.pattern,
                        call: (told.operation, told.path),
                    }),
                    share: told.share,
                    left: told.left.min(told.leave),
                    is_met: told.left != i64::MAX,
                }));
            }
        }
        lates.sort_unstable_by_key(|late| {
            let team = (late.group, late.victim);
            (late.lane, late.event, team, late.agent, late.index)
        });
        let answers = exchange(job, &mut leaving);
        let leaves = told.iter().map(|&(agent, index)| {
            let answer = answers.get(agent as usize);
            let leave = answer.and_then(|answer| answer.leaves.get(index as usize));
            leave.copied().unwrap_or(i64::MAX)
        });
        let leaves = leaves.collect();
        (told, lates, leaves)
    }

    /// Keeps the waits that have a late party.
    fn keep_waits(&self, links: &[Link], told: &[(u32, u32)], kept: &mut Kept) {
        for (lane, walker) in (0..).zip(&self.walkers) {
            for (order, side, _) in &walker.waits {
                let (agent, index) = told[side.index as usize];
                if agent != NONE && side.count != NONE {
                    kept.waits.push(Wait {
                        order: *order,
                        share: links[side.index as usize].share,
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
    fn sides(&self, told: &[(u32, u32)], counts: &[u32]) -> Vec<Sides> {
        let job = self.search.job;
        let me = job.agent();
        let mut out: Vec<Sides> = (0..job.agents()).map(|_| Sides::default()).collect();
        for &(agent, index) in told.iter().filter(|(agent, _)| *agent != NONE) {
            out[agent as usize].expect(index);
        }
        for walker in &self.walkers {
            for (_, side, times) in &walker.waits {
                let (agent, index) = told[side.index as usize];
                if agent == NONE || side.count == NONE {
                    continue;
                }
                let times = &walker.times[times.start as usize..times.end as usize];
                let numbers = &walker.activities.shared;
                let times = times.iter().map(|&(at, time)| (numbers[at as usize], time));
                out[agent as usize].add(Side { index, ..*side }, times);
            }
        }
        out.iter_mut().for_each(Sides::fold);
        let own = std::mem::take(&mut out[me]);
        let mut spending = out
            .iter()
            .map(|sides| sides.pack(&self.shared))
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
    /// the late call.
    fn compare(&mut self, sides: &[Sides], sources: &[&[Late]], kept: &mut Kept) {
        let (walkers, as_whole) = (&self.walkers, self.search.folds);
        let compared = walkers
            .par_iter()
            .map_init(Other::default, |other, walker| {
                let (mut blames, mut more): (Vec<Blame>, Vec<More>) = (Vec::new(), Vec::new());
                let mut known: Vec<Source> = Vec::new();
                for (blame, times) in &walker.blames {
                    other.clear();
                    let first = known.len();
                    for late in sources[blame.sources as usize] {
                        if let Some((side, times)) = sides[late.agent as usize].of(late.index) {
                            other.add(times, side.computation, side.waits);
                            let (index, agent) = (late.index, late.agent);
                            known.push(Source { index, agent });
                        }
                    }
                    if known.len() == first {
                        continue;
                    }
                    other.divide();
                    let times = &walker.times[times.start as usize..times.end as usize];
                    blames.push(Blame {
                        count: excess::of(&walker.activities, times, other, as_whole, &mut more),
                        sources: (known.len() - first) as u32,
                        waits: other.waits,
                        ..*blame
                    });
                }
                (blames, more, known)
            });
        let compared: Vec<_> = compared.collect();
        for (walker, (blames, more, known)) in self.walkers.iter_mut().zip(compared) {
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
    }
}

/// What waiting locations did, by number of what was told about their waits.
#[derive(Default)]
struct Sides {
    /// By number: what is told, and where its times begin; and of how many waits.
    of: Vec<(Option<(Side, usize)>, u32)>,
    /// The agent's numbers of activities, and ns.
    times: Vec<(u32, i64)>,
    /// Sums of those that fold, by number.
    folded: FxHashMap<u32, (Side, FxHashMap<u32, i64>)>,
}

impl Sides {
    /// One more wait has this number.
    fn expect(&mut self, index: u32) {
        let at = index as usize;
        if self.of.len() <= at {
            self.of.resize(at + 1, (None, 0));
        }
        self.of[at].1 += 1;
    }

    /// Adds the side of a wait.
    fn add(&mut self, side: Side, times: impl Iterator<Item = (u32, i64)>) {
        let (of, waits) = &mut self.of[side.index as usize];
        if *waits == 1 {
            *of = Some((side, self.times.len()));
            self.times.extend(times);
            return;
        }
        let (sum, sums) = self.folded.entry(side.index).or_insert_with(|| {
            let none = Side {
                index: side.index,
                ..Side::default()
            };
            (none, FxHashMap::default())
        });
        sum.waits += 1;
        sum.computation = sum.computation.saturating_add(side.computation);
        for (number, time) in times {
            let sum = sums.entry(number).or_default();
            *sum = sum.saturating_add(time);
        }
    }

    /// All waits are there.
    fn fold(&mut self) {
        for (index, (side, sums)) in std::mem::take(&mut self.folded) {
            let count = sums.len() as u32;
            self.of[index as usize].0 = Some((Side { count, ..side }, self.times.len()));
            self.times.extend(sums);
        }
    }

    fn pack(&self, shared: &Shared) -> Spending {
        let mut parcel = Spending::default();
        for (side, at) in self.of.iter().filter_map(|(of, _)| of.as_ref()) {
            parcel.sides.push(*side);
            let times = &self.times[*at..*at + side.count as usize];
            parcel
                .spent
                .extend(times.iter().map(|&(number, time)| Spent {
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
                *of = Some((*side, at));
            }
            at += side.count as usize;
        }
        let times = parcel.spent.iter();
        // Activities that no location of this agent has are in the sum of the computation only.
        let times = times.map(|spent| (shared.find(spent.key).unwrap_or(NONE), spent.time));
        Sides {
            of,
            times: times.collect(),
            folded: FxHashMap::default(),
        }
    }

    fn of(&self, index: u32) -> Option<(&Side, &[(u32, i64)])> {
        let (side, at) = self.of.get(index as usize)?.0.as_ref()?;
        Some((side, self.times.get(*at..*at + side.count as usize)?))
    }
}

/// What waits have in common that are told together.
#[derive(PartialEq, Eq, Hash)]
struct Team {
    late: (u32, u32),
    event: u64,
    group: u64,
    pattern: u16,
    call: Site,
}

impl Team {
    fn of(told: &Told) -> Team {
        Team {
            late: (told.late_rank, told.late_thread),
            event: told.event,
            group: told.group,
            pattern: told.pattern,
            call: (told.operation, told.path),
        }
    }
}

/// Late calls, with the positions of those who told of them; `lates` is sorted.
fn teams(lates: &[Late]) -> Vec<(Late, std::ops::Range<usize>)> {
    let mut teams: Vec<(Late, std::ops::Range<usize>)> = Vec::new();
    for (at, late) in lates.iter().enumerate() {
        let key = |late: &Late| (late.lane, late.event, late.group, late.victim);
        match teams.last_mut() {
            Some((team, from)) if late.group != NONE && key(team) == key(late) => {
                team.share = team.share.saturating_add(late.share);
                team.ranks |= late.ranks;
                team.left = team.left.min(late.left);
                from.end = at + 1;
            }
            _ => teams.push((*late, at..at + 1)),
        }
    }
    teams
}
