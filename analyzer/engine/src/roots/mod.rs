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
mod along;
pub mod carry;
mod excess;
pub mod impact;
mod lanes;
mod load;
mod members;
mod path;
mod phases;
pub mod sums;
mod synced;
mod walk;

use std::ops::Range;

use anyhow::{Context, Result};
use laggard_comm::{self as comm, Job};
use laggard_trace::calls::Shape;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::basics::ends::NONE;
use crate::basics::intern::Interner;
use crate::basics::spill::{Piece, Spill};
use crate::clock::ClockMap;
use crate::input::open::Opened;
use crate::replay::rank::Rank;
use crate::roots::activities::{Activity, Kind, Shared, Site, site};
use crate::roots::along::Along;
use crate::roots::carry::{Carrier, Several, rank_bit};
use crate::roots::excess::Other;
use crate::roots::impact::CriticalPath;
use crate::roots::load::{Load, Sent};
use crate::roots::members::Members;
use crate::roots::path::{Path, Sets, Span};
use crate::roots::sums::{Loaded, Roots, Victim};
use crate::roots::walk::{Late, Walked, Walker};
use crate::waits::links::Links;
use crate::wire::links::{
    Blame, Jump, Kept, Leaving, Link, More, Passing, SEVERAL, Side, Source, Spending, Spent,
    Telling, Told, Wait,
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
    /// Whether the waits of all members of a collective are compared with the late one as one, and
    /// what the two did as a whole. Else the rules are Scalasca's.
    pub folds: bool,
    /// When the run ended, ns.
    pub end: i64,
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
    /// Kinds of waits for more than are known.
    several: Interner<Several>,
    /// Waits for nobody that is known, by pattern, ns.
    untraced: FxHashMap<u16, u128>,
    load: Load,
    sets: Sets,
    /// Threads that are started later, latest first: when, ns, and their walkers.
    started: Vec<(i64, u32)>,
    /// Numbers of waits that are told together. Empty between slabs.
    folded: FxHashMap<Team, u32>,
}

impl Search<'_> {
    /// Finds the root causes of the waits of all agents, of which `links` are this agent's.
    /// Collective.
    ///
    /// # Errors
    /// Temporary files that cannot be written or read. The same on all agents.
    pub fn find(&self, ranks: &[Rank<'_>], mut links: Links) -> Result<Roots> {
        let members = Members::gather(self.job, self.opened, self.numbers)?;
        let mut sweep = Sweep::new(self, ranks, members, self.started());
        let borders = links.borders().to_vec();
        let ends = borders.iter().copied().chain([i64::MAX]);
        let mut spill = Spill::default();
        let mut kept: Vec<Piece> = Vec::new();
        let mut next = links.take(0);
        let mut done = None;
        // By slab: whether waits may make a circle.
        let mut circles = vec![0u64; borders.len() + 1];
        for (slab, until) in ends.clone().enumerate() {
            let last = std::mem::take(&mut next);
            // Beside it: the slab before is put away, and the one after it is fetched.
            let mut put = |done: Option<Kept>| done.map(|done| spill.put(&done.pack()));
            let (now, piece, fetched);
            (now, (piece, fetched)) = beside(
                || sweep.forward(until, last),
                || (put(done.take()), links.take(slab + 1)),
            );
            kept.extend(piece);
            (done, next) = (Some(now), fetched);
            let is_ordered = sweep.walkers.iter().all(|walker| walker.is_ordered);
            circles[slab] = u64::from(!is_ordered);
        }
        kept.extend(done.map(|done| spill.put(&done.pack())));
        let failed = links.error().or(spill.error.take());
        comm::agree(self.job, failed.map_or(Ok(()), Err).context(NO_ROOM))?;
        self.job.reduce_sum(&mut circles);
        let Sweep {
            walkers,
            names,
            members,
            victims,
            several,
            untraced,
            mut load,
            sets,
            ..
        } = sweep;
        let walkers = walkers.into_par_iter();
        let mut walked: Vec<Walked> = walkers.map(|walker| walker.finish(&members)).collect();
        let mut path = self.path(&mut walked, (&names, sets), &mut load)?;
        let mut carrier = Carrier::new(self.job, victims, several.values, !self.folds);
        let mut stretches: Vec<Piece> = Vec::new();
        let mut before = kept.into_iter().rev();
        let mut fetch = |spill: &mut Spill| before.next().map(|at| Kept::unpack(&spill.take(at)));
        let mut next = fetch(&mut spill);
        while let Some(mut kept) = next {
            let jumps = std::mem::take(&mut kept.jumps);
            let may_circle = circles.pop().is_some_and(|circles| circles > 0);
            let fetched = beside(
                || carrier.backward(kept, &names, may_circle),
                || fetch(&mut spill),
            );
            next = fetched.1;
            let stretch = path.backward(jumps, next.is_none());
            stretches.push(spill.put(&Passing { stretches: stretch }.pack()));
        }
        let mut roots = Roots::default();
        roots.add_untraced(untraced);
        let lanes = names.iter().zip(&walked);
        carrier.finish(
            lanes.map(|(name, walked)| (*name, &walked.activities, &walked.longer[..])),
            &mut roots,
        );
        let mut lanes: Vec<Along> = walked
            .into_par_iter()
            .zip(self.clocks)
            .map(|(walked, clock)| Along::new(walked, clock.clone()))
            .collect();
        let locations = self.opened.run.locations;
        let span = (path.span.start, path.span.end);
        let (weights, busy) = load.weights(self.job, span, locations);
        let mut sent = load.sent();
        for (until, piece) in ends.zip(stretches.into_iter().rev()) {
            for stretch in Passing::unpack(&spill.take(piece)).stretches.iter().rev() {
                lanes[stretch.lane as usize].push(stretch);
            }
            let lanes = lanes.par_iter_mut();
            let read = lanes.fold(
                || load.sent(),
                |mut sent, lane| {
                    lane.read(until, &weights, &mut sent);
                    sent
                },
            );
            sent = sent.merge(read.reduce(|| load.sent(), Sent::merge));
        }
        lanes.iter_mut().for_each(|lane| lane.finish(&weights));
        let failed = spill.error.take();
        comm::agree(self.job, failed.map_or(Ok(()), Err).context(NO_ROOM))?;
        let Span { start, end } = path.span;
        let length = (end - start).max(0);
        roots.path = CriticalPath::gather(self.job, &lanes, &names, length, !self.folds)?;
        self.job.reduce_sum(&mut sent.bytes);
        roots.load = Loaded {
            span: (start, end),
            width: load.width(),
            busy,
            bytes: sent.bytes,
        };
        Ok(roots)
    }

    /// When the first rank had started the library, ns: its own start-up is where a rank met all
    /// others first. Collective.
    fn started(&self) -> i64 {
        let own = self.opened.bounds.iter().zip(self.clocks);
        let own = own.filter_map(|(bounds, clock)| bounds.started.map(|ticks| clock.ns(ticks)));
        let mut first = [own.min().map_or(u64::MAX, |time| time.max(0) as u64)];
        comm::reduce_min(self.job, &mut first);
        i64::try_from(first[0]).unwrap_or(i64::MAX)
    }

    /// The critical path before it is followed. Locations are busy between their begin and end.
    fn path(
        &self,
        walked: &mut [Walked],
        named: (&[(u32, u32)], Sets),
        load: &mut Load,
    ) -> Result<Path<'_>> {
        // The run begins when the last rank starts the library: the others wait for it.
        let starts = walked.iter().filter(|walked| walked.startup.is_some());
        let start = starts.map(|walked| walked.begin).max();
        let first = walked.iter().map(|walked| walked.begin).min();
        let key = |time: Option<i64>| time.map_or(0, |time| time.max(0) as u64 + 1);
        let mut last = [key(start)];
        self.job.reduce_max(&mut last);
        let mut earliest = [first.map_or(u64::MAX, |time| time.max(0) as u64)];
        comm::reduce_min(self.job, &mut earliest);
        let start = match last[0] {
            0 => earliest[0] as i64,
            start => start as i64 - 1,
        };
        for walked in &mut *walked {
            if walked.begin < walked.end {
                load.add(walked.begin.max(start), walked.end, 1);
            }
            if let Some(startup) = walked.startup {
                let spent = &mut walked.spent[startup as usize];
                *spent -= (start - walked.begin).clamp(0, *spent);
            }
        }
        let ends: Vec<i64> = walked.iter().map(|walked| walked.end).collect();
        Path::new(self.job, named, &ends, start)
    }

    fn agent_of(&self, rank: u32) -> Option<usize> {
        let agent = self.opened.agent_of.get(rank as usize).copied();
        agent
            .filter(|&agent| agent != NONE)
            .map(|agent| agent as usize)
    }
}

/// Does both at the same time, if there are several threads. Agents talk to each other in the first
/// alone.
fn beside<A, B: Send>(main: impl FnOnce() -> A, other: impl FnOnce() -> B + Send) -> (A, B) {
    if rayon::current_num_threads() == 1 {
        return (main(), other());
    }
    let mut done = None;
    let main = rayon::in_place_scope(|scope| {
        scope.spawn(|_| done = Some(other()));
        main()
    });
    let Some(done) = done else {
        unreachable!("the scope ends after it")
    };
    (main, done)
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
    /// The first rank's start-up was over at `begun`, ns.
    fn new(search: &'s Search<'s>, ranks: &'s [Rank<'_>], members: Members, begun: i64) -> Self {
        let (mut walkers, mut names) = (Vec::new(), Vec::new());
        let (mut waiting, mut late) = (FxHashMap::default(), FxHashMap::default());
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
            let start = match bounds.started {
                Some(ticks) => {
                    started.entry(rank).or_insert(clock.ns(ticks));
                    None
                }
                None => Some(started.get(&rank).copied().unwrap_or(0)),
            };
            later.extend(start.map(|start| (start, lane)));
            walkers.push(Walker::new(
                thread,
                clock.clone(),
                search.folds,
                (start, begun),
            ));
        }
        later.sort_unstable_by(|a, b| b.cmp(a));
        Sweep {
            load: Load::new(search.end),
            sets: Sets::default(),
            started: later,
            folded: FxHashMap::default(),
            search,
            walkers,
            names,
            waiting,
            late,
            members,
            shared: Shared::default(),
            victims: Interner::default(),
            several: Interner::default(),
            untraced: FxHashMap::default(),
        }
    }

    /// One slab: all waits, and what the late locations did longer.
    fn forward(&mut self, until: i64, links: Vec<Link>) -> Kept {
        self.walkers
            .par_iter_mut()
            .for_each(|walker| walker.read(until));
        let mut last = ((NONE, NONE), NONE);
        let lanes: Vec<u32> = links
            .iter()
            .map(|link| {
                let location = (link.rank, link.thread);
                if last.0 != location {
                    last = (location, self.waiting[&location]);
                }
                last.1
            })
            .collect();
        let links: Vec<(u32, Link)> = lanes.into_iter().zip(links).collect();
        let key = |(_, link): &(u32, Link)| (link.enter, link.time);
        let (links, own) = lanes::by_lane(&links, self.walkers.len(), |(lane, _)| *lane, key);
        let (lane_of, links): (Vec<u32>, Vec<Link>) = links.into_iter().unzip();

        let mut kept = Kept::default();
        self.note(&links, &own, until, &mut kept.jumps);
        let (told, lates, leaves) = self.tell(&links, &lane_of, &mut kept.counts);
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
            self.shared.add(&mut walker.activities);
        }
        self.keep_waits(&links, &told, &mut kept);
        let sides = self.sides(&told, &kept.counts);
        let me = self.search.job.agent();
        let from_others = sides.iter().enumerate().map(|(agent, sides)| match agent {
            agent if agent == me => 0,
            _ => sides.of.iter().filter(|(of, _)| of.is_some()).count() as u32,
        });
        kept.expected = from_others.collect();
        let sources: Vec<&[Late]> = from.into_iter().map(|from| &lates[from]).collect();
        let charged = self.compare(&sides, &sources, &mut kept);
        for (link, _) in links.iter().zip(&told).filter(|(_, told)| told.0 == NONE) {
            self.lose(link.pattern, link.share);
        }
        self.lose_unfound(&links, &told);
        for (late, _) in whole.iter().zip(charged).filter(|(_, charged)| !charged) {
            let victim = self.victims.values[late.victim as usize];
            self.lose(victim.pattern, late.share);
        }
        kept
    }

    /// Waits for more than are known, of calls that were not found.
    fn lose_unfound(&mut self, links: &[Link], told: &[(u32, u32)]) {
        let waits = self.walkers.iter().flat_map(|walker| &walker.waits);
        let unfound = waits.filter(|(_, side, _)| side.count == NONE);
        let places = unfound.map(|(_, side, _)| side.index as usize);
        let places: Vec<usize> = places.filter(|&at| told[at].0 == SEVERAL).collect();
        for at in places {
            self.lose(links[at].pattern, links[at].share);
        }
    }

    /// Nobody is charged with a wait.
    fn lose(&mut self, pattern: u16, share: i64) {
        *self.untraced.entry(pattern).or_default() += share.max(0) as u128;
    }

    /// Notes where the critical path may leave locations, and who idles. `own` are the places of
    /// each location's `links`.
    fn note(&mut self, links: &[Link], own: &[(usize, usize)], until: i64, jumps: &mut Vec<Jump>) {
        let mut own_jumps = Vec::new();
        for (lane, &(begin, end)) in (0..).zip(own) {
            let links = &links[begin..end];
            path::jumps(lane, links, &mut own_jumps);
            let rows = &self.walkers[lane as usize].thread.rows;
            // Each by itself: a call's links may be in several slabs. Nobody counts as busy in the
            // shutdown.
            for link in links {
                let row = rows.get(link.signature as usize);
                if row.is_none_or(|row| row.shape != Shape::Finalize) {
                    let begin = link.time.saturating_sub(link.share).max(link.since());
                    self.load.add(begin, link.time, -1);
                }
            }
        }
        // A thread goes on from the first one of its rank.
        while let Some((start, lane)) = self.started.pop_if(|(start, _)| *start < until) {
            let rank = self.names[lane as usize].0;
            let main = self.waiting[&(rank, 0)];
            let jump = Jump {
                time: start,
                rank,
                thread: self.names[main as usize].1,
                set: 0,
            };
            own_jumps.push((lane, jump));
        }
        let late = &self.late;
        let late = |rank, thread| late.get(&(rank, thread)).copied();
        let locations = self.walkers.len() as u32;
        *jumps = self.sets.told(own_jumps, locations, late);
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
        let mut folded = std::mem::take(&mut self.folded);
        let told = links.iter().zip(lane_of).map(|(link, &lane)| {
            let agent = match link.late_rank {
                NONE => None,
                SEVERAL => {
                    let walker = &mut self.walkers[lane as usize];
                    let call = site(walker.thread, link.signature);
                    let kind = Several {
                        activity: walker.activities.number(Activity {
                            kind: Kind::Several,
                            begin: call,
                            until: Site::default(),
                        }),
                        victim: self.victims.number(Victim {
                            pattern: link.pattern,
                            call,
                        }),
                        ranks: rank_bit(link.rank, ranks),
                    };
                    return (SEVERAL, self.several.number(kind));
                }
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
        folded.clear();
        self.folded = folded;
        let mut lates: Vec<Late> = Vec::new();
        let mut leaving: Vec<Leaving> = (0..agents).map(|_| Leaving::default()).collect();
        let received = exchange(job, &mut telling);
        for ((agent, parcel), leaving) in (0..).zip(&received).zip(&mut leaving) {
            counts.push(parcel.told.len() as u32);
            for (index, told) in (0..).zip(&parcel.told) {
                let lane = self.late.get(&(told.late_rank, told.late_thread)).copied();
                if lane.is_none() {
                    self.lose(told.pattern, told.share);
                }
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
        let key = |late: &Late| {
            let team = (late.group, late.victim);
            (late.event, team, late.agent, late.index)
        };
        let (lates, _) = lanes::by_lane(&lates, self.walkers.len(), |late| late.lane, key);
        let answers = exchange(job, &mut leaving);
        let leaves = told.iter().map(|&(agent, index)| {
            let answer = answers.get(agent as usize);
            let leave = answer.and_then(|answer| answer.leaves.get(index as usize));
            leave.copied().unwrap_or(i64::MAX)
        });
        let leaves = leaves.collect();
        (told, lates, leaves)
    }

    /// Keeps the waits that were found; those without a late party end what is put on them.
    fn keep_waits(&self, links: &[Link], told: &[(u32, u32)], kept: &mut Kept) {
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
    fn sides(&self, told: &[(u32, u32)], counts: &[u32]) -> Vec<Sides> {
        let job = self.search.job;
        let me = job.agent();
        let mut out: Vec<Sides> = (0..job.agents()).map(|_| Sides::default()).collect();
        for &(agent, index) in told.iter().filter(|(agent, _)| *agent < SEVERAL) {
            out[agent as usize].expect(index);
        }
        for walker in &self.walkers {
            for (_, side, times) in &walker.waits {
                let (agent, index) = told[side.index as usize];
                if agent >= SEVERAL || side.count == NONE {
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
    /// the late call. Returns by this number whether a location is charged.
    fn compare(&mut self, sides: &[Sides], sources: &[&[Late]], kept: &mut Kept) -> Vec<bool> {
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
                        if let Some((side, times)) = sides[late.agent as usize].of(late.index) {
                            other.add(times, side.computation, side.waits);
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

/// Late calls, and the positions of those who told of them; `lates` is sorted.
fn teams(lates: &[Late]) -> (Vec<Late>, Vec<Range<usize>>) {
    let mut teams: Vec<Late> = Vec::with_capacity(lates.len());
    let mut from: Vec<Range<usize>> = Vec::with_capacity(lates.len());
    for (at, late) in lates.iter().enumerate() {
        let key = |late: &Late| (late.lane, late.event, late.group, late.victim);
        match (teams.last_mut(), from.last_mut()) {
            (Some(team), Some(from)) if late.group != NONE && key(team) == key(late) => {
                team.share = team.share.saturating_add(late.share);
                team.ranks |= late.ranks;
                team.left = team.left.min(late.left);
                from.end = at + 1;
            }
            _ => {
                teams.push(*late);
                from.push(at..at + 1);
            }
        }
    }
    (teams, from)
}
