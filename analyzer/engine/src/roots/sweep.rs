//! The forward sweep: what late locations did longer since they last met those who waited, slab by
//! slab.

use laggard_trace::calls::Shape;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::basics::ends::NONE;
use crate::basics::intern::Interner;
use crate::replay::rank::Rank;
use crate::roots::activities::{Activity, Shared};
use crate::roots::comparable;
use crate::roots::load::Load;
use crate::roots::map::WaitMap;
use crate::roots::members::Members;
use crate::roots::path::Jumps;
use crate::roots::sides::Spoken;
use crate::roots::sums::Victim;
use crate::roots::teams::Teams;
use crate::roots::telling::{Exchanged, Team, teams};
use crate::roots::walk::{Late, Walker, births};
use crate::roots::{Search, lanes, path};
use crate::wire::links::{Jump, Kept, Link};

/// The search under way.
pub(super) struct Sweep<'s> {
    pub(super) search: &'s Search<'s>,
    pub(super) walkers: Vec<Walker<'s>>,
    /// By rank of this agent.
    teams: Vec<Teams>,
    /// World rank and number of the thread of each walker.
    pub(super) names: Vec<(u32, u32)>,
    /// Walkers by rank and position of the thread.
    pub(super) waiting: FxHashMap<(u32, u32), u32>,
    /// Walkers by rank and number of the thread.
    pub(super) late: FxHashMap<(u32, u32), u32>,
    pub(super) members: Members,
    pub(super) shared: Shared,
    pub(super) spoken: Spoken,
    pub(super) victims: Interner<Victim>,
    /// Waits for nobody that is known, by pattern, ns.
    pub(super) untraced: FxHashMap<u16, u128>,
    pub(super) load: Load,
    pub(super) map: WaitMap,
    pub(super) jumps: Jumps,
    /// Threads that are started later, latest first: when, ns, and their walkers.
    pub(super) started: Vec<(i64, u32)>,
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

/// When a location began to wait, ns.
fn began(link: &Link) -> i64 {
    link.time.saturating_sub(link.share).max(link.since())
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
        let (mut waiting, mut late) = (FxHashMap::default(), FxHashMap::default());
        let mut born = Vec::new();
        let load = Load::new(search.end);
        let of_run = search.opened.agent_of.len();
        let mut map = WaitMap::new(of_run, load.width().saturating_mul(2));
        let threads = ranks.iter().flat_map(|rank| {
            let threads = (0..).zip(&rank.recorded.threads);
            threads.map(|at| (rank.recorded.rank, at))
        });
        // Further threads begin when their rank's start-up is over.
        let mut later: Vec<(i64, u32)> = Vec::new();
        let mut started: FxHashMap<u32, i64> = FxHashMap::default();
        let bounds = search.opened.bounds.iter().zip(search.clocks);
        for ((rank, (position, thread)), (bounds, clock)) in threads.zip(bounds) {
            let lane = walkers.len() as u32;
            waiting.insert((rank, position), lane);
            late.insert((rank, thread.number), lane);
            names.push((rank, thread.number));
            map.count(rank);
            let start = match bounds.started {
                Some(ticks) => {
                    started.entry(rank).or_insert(clock.ns(ticks));
                    None
                }
                None => Some(started.get(&rank).copied().unwrap_or(0)),
            };
            later.extend(start.map(|start| (start, lane)));
            born.push(bounds.born.map(|ticks| clock.ns(ticks)));
            walkers.push(Walker::new(
                (rank, thread),
                clock.clone(),
                (search.folds, search.functions),
                (start, begun),
            ));
        }
        let mut born = &born[..];
        for threads in walkers.chunk_by_mut(|a: &Walker, b| a.name.0 == b.name.0) {
            let own;
            (own, born) = born.split_at(threads.len());
            births::tell(threads, own);
        }
        later.sort_unstable_by(|a, b| b.cmp(a));
        Sweep {
            load,
            map,
            jumps: Jumps::default(),
            started: later,
            teams: ranks.iter().map(|_| Teams::default()).collect(),
            folded: FxHashMap::default(),
            search,
            walkers,
            names,
            waiting,
            late,
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
        self.walkers
            .par_iter_mut()
            .for_each(|walker| walker.read(until));
        let ranks = self.walkers.chunk_by_mut(|a, b| a.name.0 == b.name.0);
        let ranks = ranks.zip(&mut self.teams);
        let ranks: Vec<_> = ranks.filter(|(threads, _)| threads.len() > 1).collect();
        ranks
            .into_par_iter()
            .for_each(|(threads, teams)| teams.meet(threads, until));
        let mut last = ((NONE, NONE), NONE);
        let waiting = &self.waiting;
        let lane = |link: &Link| {
            let location = (link.rank, link.thread);
            if last.0 != location {
                last = (location, waiting[&location]);
            }
            last.1
        };
        let key = |link: &Link| (link.enter, link.time);
        let (links, own) = lanes::by_lane(&links, self.walkers.len(), lane, key);

        let mut kept = Kept::default();
        self.note(&links, &own, until);
        let Exchanged {
            told,
            waits,
            lates,
            leaves,
        } = self.tell(&links, &own, &mut kept.counts);
        let teams = teams(&lates);
        let (whole, from) = teams;
        let late = ranges(&whole, self.walkers.len(), |late| late.lane);
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
            self.shared.add(&mut walker.activities, self.search.folds);
            for alone in &mut walker.alone {
                let met = Activity::met_alone(alone.rank);
                alone.number = self.shared.number(&met, self.search.folds);
            }
        }
        self.keep_waits(&links, &told, &mut kept);
        let sides = self.sides(&told, waits, &kept.counts);
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

    /// Keeps the waits that Scalasca knows.
    fn keep_comparable(&mut self, links: &mut Vec<Link>) {
        links.retain(|link| {
            let lane = self.waiting[&(link.rank, link.thread)];
            let rows = &self.walkers[lane as usize].thread.rows;
            let row = rows.get(link.signature as usize);
            let is_kept = row.is_some_and(|row| comparable::is_wait(link.pattern, row));
            if !is_kept {
                self.lose(link.pattern, link.share);
                self.map.add(link.rank, began(link), link.time);
            }
            is_kept
        });
    }

    /// Nobody is charged with a wait.
    pub(super) fn lose(&mut self, pattern: u16, share: i64) {
        *self.untraced.entry(pattern).or_default() += share.max(0) as u128;
    }

    /// Notes where the critical path may leave locations, and who idles. `own` are the places of
    /// each location's `links`.
    fn note(&mut self, links: &[Link], own: &[(usize, usize)], until: i64) {
        let mut jumps = Vec::with_capacity(links.len());
        for (lane, &(begin, end)) in (0..).zip(own) {
            let links = &links[begin..end];
            path::jumps(lane, links, &mut jumps);
            let rows = &self.walkers[lane as usize].thread.rows;
            // Each by itself: a call's links may be in several slabs. Nobody counts as busy in the
            // shutdown.
            for link in links {
                let begin = began(link);
                let row = rows.get(link.signature as usize);
                if row.is_none_or(|row| row.shape != Shape::Finalize) {
                    self.load.add(begin, link.time, -1);
                }
                self.map.add(link.rank, begin, link.time);
            }
        }
        // A thread goes on from the first one of its rank.
        while let Some((start, lane)) = self.started.pop_if(|(start, _)| *start < until) {
            let rank = self.names[lane as usize].0;
            let main = self.waiting[&(rank, 0)];
            jumps.push(Jump {
                lane,
                time: start,
                rank,
                thread: self.names[main as usize].1,
            });
        }
        self.jumps.put(jumps);
    }
}
