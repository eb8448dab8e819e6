//! The forward sweep: what late locations did longer since they last met those who waited, slab by
//! slab.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::basics::ends::NONE;
use crate::basics::intern::Interner;
use crate::clock::ClockMap;
use crate::replay::rank::Rank;
use crate::roots::activities::Shared;
use crate::roots::idle::Idle;
use crate::roots::load::Sent;
use crate::roots::members::Members;
use crate::roots::sides::Spoken;
use crate::roots::sums::Victim;
use crate::roots::teams::Teams;
use crate::roots::telling::{Exchanged, Team, teams};
use crate::roots::walk::moments::{self, Waits};
use crate::roots::walk::{Late, Walker, births};
use crate::roots::{Search, beside, comparable, comparing, lanes};
use crate::wire::links::{Kept, Link};

/// The search under way.
pub(super) struct Sweep<'s> {
    pub(super) search: &'s Search<'s>,
    pub(super) walkers: Vec<Walker<'s>>,
    /// By rank of this agent.
    teams: Vec<Teams>,
    /// World rank and number of the thread of each walker.
    pub(super) names: Vec<(u32, u32)>,
    /// By world rank: the first of its walkers; `NONE` at another agent.
    first: Vec<u32>,
    pub(super) members: Members,
    pub(super) shared: Shared,
    pub(super) spoken: Spoken,
    pub(super) victims: Interner<Victim>,
    /// Waits for nobody that is known, by pattern, ns.
    pub(super) untraced: FxHashMap<u16, u128>,
    pub(super) idle: Idle<'s>,
    /// Numbers of waits that are told together. Empty between slabs.
    pub(super) folded: FxHashMap<Team, u32>,
}

/// Positions of the entries of each walker in a list that is sorted by walker.
pub(super) fn ranges<T>(list: &[T], walkers: usize, of: impl Fn(&T) -> u32) -> Vec<(usize, usize)> {
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

/// Tells the threads of each rank whom others of them meet in a slab, which ends at `until`, ns. `waits` are by number of the
/// location.
fn tell_moments<'w>(
    walkers: &mut [Walker<'_>],
    waits: impl Fn(usize) -> Waits<'w> + Sync,
    until: i64,
) {
    let ranks = walkers.chunk_by_mut(|a, b| a.name.0 == b.name.0);
    let ranks = ranks.scan(0, |next, threads| {
        let first = *next;
        *next += threads.len();
        Some((first, threads))
    });
    let ranks: Vec<_> = ranks
        .filter(|(_, threads)| moments::has_several(threads))
        .collect();
    ranks.into_par_iter().for_each(|(first, threads)| {
        let lanes = first..first + threads.len();
        let waits: Vec<Waits<'_>> = lanes.map(&waits).collect();
        moments::tell(threads, &waits, until);
    });
}

impl<'s> Sweep<'s> {
    /// The first rank's start-up was over at `begun`, ns.
    pub(super) fn new(
        search: &'s Search<'s>,
        ranks: &'s [Rank<'_>],
        members: Members,
        begun: i64,
    ) -> Self {
        let (mut walkers, mut names) = (Vec::new(), Vec::new());
        let mut first_of = vec![NONE; search.opened.agent_of.len()];
        let mut idle = Idle::new(search.opened.agent_of.len(), search.end);
        let mut places = search.opened.bounds.iter().zip(search.clocks);
        for rank in ranks {
            let (threads, rank) = (&rank.recorded.threads, rank.recorded.rank);
            let own: Vec<_> = places.by_ref().take(threads.len()).collect();
            // Further threads begin when their rank's start-up is over, if it is not known who started them when.
            let time = |ticks: Option<u64>, clock: &ClockMap| ticks.map(|ticks| clock.ns(ticks));
            let mut started = own.iter();
            let started = started.find_map(|(bounds, clock)| time(bounds.started, clock));
            let births: Vec<Option<i64>> = (0..)
                .zip(&own)
                .map(|(at, (bounds, clock))| {
                    let is_later = |born: &i64| started.is_none_or(|started| started < *born);
                    time(bounds.born, clock).filter(|born| at > 0 && is_later(born))
                })
                .collect();
            let numbers: Vec<u32> = threads.iter().map(|thread| thread.number).collect();
            let creators = own.iter().map(|(bounds, _)| bounds.creator);
            let births = births::creators(&births, creators, &numbers);
            let first = walkers.len();
            first_of[rank as usize] = first as u32;
            for (position, (thread, (bounds, clock))) in threads.iter().zip(&own).enumerate() {
                let lane = walkers.len();
                names.push((rank, thread.number));
                let start = match bounds.started {
                    Some(_) => None,
                    None => Some(started.unwrap_or(0)),
                };
                let (born, creator) = births[position].unwrap_or((start.unwrap_or(0), 0));
                let begin = start.map(|_| (born, (rank, numbers[creator])));
                idle.add(rank, thread, begin);
                walkers.push(Walker::new(
                    (lane, rank, thread),
                    ClockMap::clone(clock),
                    (search.folds, search.functions),
                    (start, begun),
                ));
            }
            births::tell(&mut walkers[first..], &births);
        }
        idle.begin();
        Sweep {
            idle,
            teams: ranks.iter().map(|_| Teams::default()).collect(),
            folded: FxHashMap::default(),
            search,
            walkers,
            names,
            first: first_of,
            members,
            shared: Shared::new(search.functions),
            spoken: Spoken::new(search.job.agents()),
            victims: Interner::default(),
            untraced: FxHashMap::default(),
        }
    }

    /// One slab: all waits, and what the late locations did longer.
    pub(super) fn forward(&mut self, until: i64, mut links: Vec<Link>) -> Kept {
        if !self.search.folds {
            self.keep_comparable(&mut links);
        }
        let load = &self.idle.load;
        let walkers = self.walkers.par_iter_mut();
        let sent = walkers.fold(
            || load.sent(),
            |mut sent, walker| {
                walker.read(until, &mut sent);
                sent
            },
        );
        let sent = sent.reduce(|| load.sent(), Sent::merge);
        self.idle.sent = std::mem::take(&mut self.idle.sent).merge(sent);
        let ranks = self.walkers.chunk_by_mut(|a, b| a.name.0 == b.name.0);
        let ranks = ranks.zip(&mut self.teams);
        let ranks: Vec<_> = ranks.filter(|(threads, _)| threads.len() > 1).collect();
        ranks
            .into_par_iter()
            .for_each(|(threads, teams)| teams.meet(threads, until));
        let lane = |link: &Link| self.waiting(link);
        let key = |link: &Link| (link.enter, link.time);
        let (links, own) = lanes::by_lane(&links, self.walkers.len(), lane, key);

        let mut kept = Kept::default();
        let Exchanged {
            told,
            waits,
            lates,
            leaves,
        } = self.tell(&links, &own, &mut kept.counts);
        let teams = teams(&lates);
        let (whole, from) = teams;
        let late = ranges(&whole, self.walkers.len(), |late| late.lane);
        let (walkers, members, idle) = (&mut self.walkers, &self.members, &mut self.idle);
        let folds = self.search.folds;
        let waits_of = |lane: usize| -> Waits<'_> {
            let (own, late) = (own[lane], late[lane]);
            let (own, late) = (own.0..own.1, late.0..late.1);
            (&links[own.clone()], &leaves[own], &whole[late])
        };
        let walk = || {
            let mut is_done = vec![false; walkers.len()];
            let mut waiting: Vec<bool> = walkers.iter().map(Walker::waits_to_begin).collect();
            if folds {
                tell_moments(walkers, waits_of, until);
            }
            loop {
                let lanes = walkers.par_iter_mut().zip(&mut is_done).zip(&waiting);
                let ready = lanes.enumerate();
                let ready = ready.filter(|(_, ((_, is_done), waits))| !**is_done && !**waits);
                ready.for_each(|(lane, ((walker, is_done), _))| {
                    let (links, leaves, lates) = waits_of(lane);
                    let (first, first_late) = (own[lane].0, late[lane].0);
                    walker.walk((links, first), leaves, (lates, first_late), members);
                    *is_done = true;
                });
                if !waiting.contains(&true) {
                    break;
                }
                let mut waiting = &mut waiting[..];
                for threads in walkers.chunk_by_mut(|a, b| a.name.0 == b.name.0) {
                    let own;
                    (own, waiting) = waiting.split_at_mut(threads.len());
                    if own.contains(&true) {
                        births::hand_over(threads, own, members);
                    }
                }
            }
        };
        beside(walk, || idle.note(&links, &own, until));
        let ranks = self.walkers.chunk_by_mut(|a, b| a.name.0 == b.name.0);
        ranks.for_each(births::leave);
        for walker in &mut self.walkers {
            self.shared.add(&mut walker.activities, self.search.folds);
            for alone in &mut walker.alone {
                alone.number = self.shared.number(&alone.met, self.search.folds);
            }
        }
        let (walkers, spoken) = (&self.walkers[..], &mut self.spoken);
        let agents = (self.search.job, &kept.counts[..]);
        let (sides, own) = beside(
            || spoken.sides(agents, (walkers, &self.shared), &told, waits),
            || comparing::waits(walkers, &links, &told),
        );
        kept.waits = own;
        let me = self.search.job.agent();
        let from_others = sides.iter().enumerate().map(|(agent, sides)| match agent {
            agent if agent == me => 0,
            _ => sides.count(),
        });
        kept.expected = from_others.collect();
        let sources: Vec<&[Late]> = from.into_iter().map(|from| &lates[from]).collect();
        let charged = self.compare(&sides, &sources, &mut kept);
        for (link, _) in links.iter().zip(&told).filter(|(_, told)| told.0 == NONE) {
            self.lose(link.pattern, link.share);
        }
        for (late, _) in whole.iter().zip(charged).filter(|(_, charged)| !charged) {
            let victim = self.victims.values[late.victim as usize];
            self.lose(victim.pattern, late.share);
        }
        kept
    }

    /// The walker of a wait.
    #[inline]
    fn waiting(&self, link: &Link) -> u32 {
        self.first[link.rank as usize] + link.thread
    }

    /// The walker of a world rank's thread with this number; `None` at another agent, or if there is none.
    #[inline]
    pub(super) fn lane(&self, rank: u32, thread: u32) -> Option<u32> {
        let first = *self.first.get(rank as usize)?;
        let own = self.names.get(first as usize..)?;
        let mut own = (first..).zip(own.iter().take_while(|name| name.0 == rank));
        Some(own.find(|(_, name)| name.1 == thread)?.0)
    }

    /// Keeps the waits that Scalasca knows.
    fn keep_comparable(&mut self, links: &mut Vec<Link>) {
        links.retain(|link| {
            let rows = &self.walkers[self.waiting(link) as usize].thread.rows;
            let row = rows.get(link.signature as usize);
            let is_kept = row.is_some_and(|row| comparable::is_wait(link.pattern, row));
            if !is_kept {
                self.lose(link.pattern, link.share);
                self.idle.wait(link);
            }
            is_kept
        });
    }

    /// Nobody is charged with a wait.
    pub(super) fn lose(&mut self, pattern: u16, share: i64) {
        *self.untraced.entry(pattern).or_default() += share.max(0) as u128;
    }
}
