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
mod comparable;
mod comparing;
pub mod counters;
mod excess;
pub mod functions;
mod idle;
pub mod impact;
mod lanes;
mod load;
pub mod map;
mod members;
mod path;
mod phases;
mod samples;
mod sides;
mod spent;
pub mod sums;
mod sweep;
mod synced;
mod teams;
mod telling;
mod walk;

use anyhow::{Context, Result};
use laggard_comm::{self as comm, Job};
use rayon::prelude::*;

use crate::basics::ends::NONE;
use crate::basics::intern::Interner;
use crate::basics::spill::{Piece, Spill};
use crate::clock::ClockMap;
use crate::input::open::Opened;
use crate::replay::rank::Rank;
use crate::roots::along::Along;
use crate::roots::carry::Carrier;
use crate::roots::functions::Functions;
use crate::roots::idle::Idle;
use crate::roots::impact::CriticalPath;
use crate::roots::load::{Load, Weights};
use crate::roots::members::Members;
use crate::roots::path::{Path, Span};
use crate::roots::sums::{Loaded, Roots};
use crate::roots::sweep::Sweep;
use crate::roots::walk::Walked;
use crate::stream::traffic::Beyond;
use crate::waits::links::Links;
use crate::wire::links::{Kept, Passing};
use crate::wire::parcels::Parcel;

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
    /// In which there were samples.
    pub functions: &'s Functions,
    /// When the run ended, ns.
    pub end: i64,
}

impl Search<'_> {
    /// Finds the root causes of the waits of all agents, of which `links` are this agent's; and by location and
    /// signature what calls were beyond their waiting. Collective.
    ///
    /// # Errors
    /// Temporary files that cannot be written or read. The same on all agents.
    pub fn find(&self, ranks: &[Rank<'_>], mut links: Links) -> Result<(Roots, Vec<Vec<Beyond>>)> {
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
        let failed = failed.or(sweep.idle.jumps.error());
        comm::agree(self.job, failed.map_or(Ok(()), Err).context(NO_ROOM))?;
        self.job.reduce_sum(&mut circles);
        let Sweep {
            walkers,
            names,
            members,
            victims,
            untraced,
            idle,
            ..
        } = sweep;
        let Idle {
            mut load,
            mut sent,
            map,
            mut jumps,
            ..
        } = idle;
        let walkers = walkers.into_par_iter();
        let mut walked: Vec<Walked> = walkers.map(|walker| walker.finish(&members)).collect();
        let beyond = walked.iter_mut();
        let beyond = beyond.map(|walked| std::mem::take(&mut walked.beyond));
        let beyond = beyond.collect();
        let path = self.path(&mut walked, &names, &mut load)?;
        let mut passed = Spill::default();
        let stretches = path.follow(&mut jumps, &mut passed);
        let locations = self.opened.run.locations;
        let span = (path.span.start, path.span.end);
        let (weights, busy) = load.weights(self.job, span, locations);
        let (clocks, folds) = (self.clocks, self.folds);
        let mut carrier = Carrier::new(self.job, victims, !folds, (&mut walked, &names));
        let (_, lanes) = beside(
            || carry(&mut carrier, (kept, &mut spill), &names, circles),
            || {
                let slabs = ends.zip(stretches.into_iter().rev());
                sum_up((walked, clocks), folds, (slabs, &mut passed), &weights)
            },
        );
        let failed = spill.error.take().or(passed.error.take()).or(jumps.error());
        comm::agree(self.job, failed.map_or(Ok(()), Err).context(NO_ROOM))?;
        let mut roots = Roots::default();
        roots.add_untraced(untraced);
        let walked = lanes.iter().map(|lane| &lane.walked);
        carrier.finish((&names, walked.clone()), &mut roots);
        for walked in walked {
            roots.add_functions(&walked.activities, &walked.in_functions, self.functions);
            roots.add_counted(&walked.activities, &walked.in_counters);
        }
        let Span { start, end } = path.span;
        let length = (end - start).max(0);
        roots.path = CriticalPath::gather(self.job, &lanes, &names, length, !self.folds)?;
        self.job.reduce_sum(&mut sent.bytes);
        roots.load = Loaded {
            span: (start, end),
            width: load.width(),
            busy,
            bytes: sent.bytes,
            waiting: map.gather(self.job),
        };
        Ok((roots, beyond))
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
        names: &[(u32, u32)],
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
        Path::new(self.job, names, &ends, start)
    }

    fn agent_of(&self, rank: u32) -> Option<usize> {
        let agent = self.opened.agent_of.get(rank as usize).copied();
        agent
            .filter(|&agent| agent != NONE)
            .map(|agent| agent as usize)
    }
}

/// The backward sweep over what was kept of all slabs, of locations with these ranks and threads.
/// `circles` is by slab, and positive if waits may make a circle.
fn carry(
    carrier: &mut Carrier<'_>,
    (kept, spill): (Vec<Piece>, &mut Spill),
    names: &[(u32, u32)],
    circles: Vec<u64>,
) {
    let mut slabs = kept.into_iter().zip(circles).rev();
    let mut fetch = || {
        let (at, circles) = slabs.next()?;
        Some((Kept::unpack(&spill.take(at)), circles > 0))
    };
    let mut next = fetch();
    while let Some((kept, may_circle)) = next {
        (_, next) = beside(|| carrier.backward(kept, names, may_circle), &mut fetch);
    }
}

/// Sums up the path on the locations, slab by slab. `slabs` are where these end, ns, and stretches
/// of the path.
fn sum_up<'w>(
    (walked, clocks): (Vec<Walked<'w>>, &[ClockMap]),
    folds: bool,
    (slabs, spill): (impl Iterator<Item = (i64, Piece)>, &mut Spill),
    weights: &Weights,
) -> Vec<Along<'w>> {
    let lanes = walked.into_par_iter().zip(clocks);
    let mut lanes: Vec<Along> = lanes
        .map(|(walked, clock)| Along::new(walked, clock.clone(), folds))
        .collect();
    for (until, piece) in slabs {
        for stretch in Passing::unpack(&spill.take(piece)).stretches.iter().rev() {
            lanes[stretch.lane as usize].push(stretch);
        }
        lanes
            .par_iter_mut()
            .for_each(|lane| lane.read(until, weights));
    }
    lanes.iter_mut().for_each(|lane| lane.finish(weights));
    lanes
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
