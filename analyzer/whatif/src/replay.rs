//! The replay: new times of all calls, for all scenarios in one sweep over the run.
//!
//! A call begins as long after the one before it as it was recorded, or as a scenario says. It ends
//! when it has begun, when all that it depends on is there, and when the rest of its time is over:
//!
//! ```text
//! enter' = leave' of the call before + gap
//! leave' = max(enter', latest dependency') + rest,  rest = leave - max(enter, latest dependency)
//! ```
//!
//! A dependency that comes after the recorded end of the call, as clocks may have it, is moved to
//! that end.
//!
//! Looks that find nothing wait as well, with the time between them that counts as looking. The look
//! that ends them begins as long after the latest dependency as it did:
//!
//! ```text
//! enter' = max(enter' - looking before the latest dependency, latest dependency' + rest before)
//! ```
//!
//! That is all looking in a row before it: who looks at several things in turn goes on when the first of them
//! comes. What came before the looks began is found as soon as they begin.
//!
//! Locations go on until they need a moment that is not known yet; slab by slab of global
//! time, so that memory does not grow with the trace.

use std::cmp::Reverse;

use anyhow::Result;
use laggard_engine::events::{Events, Moves};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::circles::Circles;
use crate::columns::{Columns, RECORDED, UNCHANGED};
use crate::effects::Effects;
use crate::graph::{Consumer, Graph, JUNCTION, Provider};
use crate::junctions::{Junctions, Waiters};
use crate::lane::{Found, Known, Lane, Times};
use crate::path::{Along, Jumps};
use crate::reader::{Call, Site};

/// A waiting call, and the late one: its location and what it is.
pub type WaitKey = (Site, (u32, Site));

/// The result, by column. ns.
pub struct Replayed {
    pub columns: Columns,
    pub lanes: Vec<Times>,
    /// Only if all is replayed.
    pub waits: FxHashMap<WaitKey, Vec<i64>>,
    /// Enters and leaves that a replay without changes does not reproduce.
    pub wrong: u64,
    /// Calls that had to go on without what they depend on.
    pub given_way: u64,
    /// Looking in vain that stays as it was though it waited, ns.
    pub stuck: i64,
    /// By column: how much of that what was looked for would have shortened, at most, ns.
    pub doubt: Vec<i64>,
    /// Only if all is replayed.
    pub along: Option<Along>,
}

/// Replays a run; `moves` tells whether the times of all calls are asked for.
///
/// # Errors
/// There is no room for temporary files.
pub fn replay(
    events: &Events,
    graph: &mut Graph,
    effects: &Effects,
    is_whole: bool,
    moves: bool,
) -> Result<Replayed> {
    let mut along = None;
    if is_whole {
        let columns = Columns::new(effects.count(), is_whole);
        let jumps = (0..columns.count()).map(|_| Jumps::new(&graph.providers));
        let mut jumps: Vec<Jumps> = jumps.collect();
        let found = sweep(
            events,
            graph,
            effects,
            (is_whole, false),
            (&mut jumps, None),
        )?;
        let mut path = Along::new(columns.count(), found.lanes.len());
        for (column, jumps) in jumps.iter_mut().enumerate().skip(UNCHANGED) {
            if !columns.is_ideal(column) {
                let ends = found.lanes.iter().map(|lane| lane.last[column]);
                let last = (0..).zip(ends).max_by_key(|&(at, end)| (end, Reverse(at)));
                path.set(column, jumps.follow(last.unwrap_or_default())?);
            }
        }
        along = Some(path);
    }
    sweep(events, graph, effects, (is_whole, moves), (&mut [], along))
}

/// One replay, with what is noted for the critical path or along it.
fn sweep(
    events: &Events,
    graph: &mut Graph,
    effects: &Effects,
    (is_whole, moves): (bool, bool),
    (jumps, along): (&mut [Jumps], Option<Along>),
) -> Result<Replayed> {
    let columns = Columns::new(effects.count(), is_whole);
    let count = columns.count();
    let lanes = (0..events.locations()).map(|location| {
        let start = graph.starts[location];
        let mut lane = Lane::new(events, effects, location, start, count);
        if moves {
            lane.moves = vec![Moves::default(); columns.scenarios];
        }
        lane
    });
    let lanes = lanes.collect();
    let sweep = Sweep {
        effects,
        columns,
        ideal: (0..count).map(|column| columns.is_ideal(column)).collect(),
        never_late: (0..count)
            .map(|column| {
                let mut scenarios = 0..columns.scenarios;
                columns.is_ideal(column)
                    || scenarios.any(|scenario| {
                        columns.range(scenario).contains(&column)
                            && effects.has_no_late_receivers(scenario)
                    })
            })
            .collect(),
        chained: FxHashMap::default(),
        junctions: Junctions::new(count),
        sites: Vec::new(),
        number_of: FxHashMap::default(),
        runnable: Vec::new(),
        needed: Vec::new(),
        bound: vec![i64::MIN; count],
        late: vec![0; count],
        shift: 0,
        waits: Waits::default(),
        jumps,
        from: vec![0; count],
        replayed: Replayed {
            columns,
            lanes: Vec::new(),
            waits: FxHashMap::default(),
            wrong: 0,
            given_way: 0,
            stuck: 0,
            doubt: vec![0; count],
            along,
        },
    };
    sweep.run(lanes, graph)
}

/// Waits by numbers of the waiting and of the late call.
#[derive(Default)]
pub struct Waits {
    number_of: FxHashMap<(u32, u32), u32>,
    /// By number and column, ns.
    sums: Vec<i64>,
    last: Option<((u32, u32), u32)>,
}

impl Waits {
    #[inline]
    pub fn add(&mut self, key: (u32, u32), (column, columns): (usize, usize), time: i64) {
        let number = match self.last {
            Some((last, number)) if last == key => number,
            _ => {
                let next = self.number_of.len() as u32;
                *self.number_of.entry(key).or_insert(next)
            }
        } as usize;
        self.last = Some((key, number as u32));
        if self.sums.len() <= number * columns {
            self.sums.resize((number + 1) * columns, 0);
        }
        self.sums[number * columns + column] += time;
    }
}

/// A replay under way.
pub struct Sweep<'s> {
    pub effects: &'s Effects,
    pub columns: Columns,
    /// By column: whether the network is ideal.
    pub ideal: Vec<bool>,
    /// By column: whether no sender waits for its receiver.
    pub never_late: Vec<bool>,
    /// Junctions that need another one, by that.
    pub chained: FxHashMap<u64, Vec<Provider>>,
    pub junctions: Junctions,
    /// Calls of locations, numbered.
    pub sites: Vec<(u32, Site)>,
    pub number_of: FxHashMap<(u32, Site), u32>,
    pub runnable: Vec<u32>,
    /// What the call at hand needs …
    pub needed: Vec<Consumer>,
    /// … when the last of that comes, by column, and what it is.
    pub bound: Vec<i64>,
    pub late: Vec<u32>,
    /// How long after that the call begins, ns.
    pub shift: i64,
    pub waits: Waits,
    /// By column; empty: nobody asks.
    pub jumps: &'s mut [Jumps],
    /// Where the location at hand was before, by column, ns.
    pub from: Vec<i64>,
    pub replayed: Replayed,
}

impl Sweep<'_> {
    fn run(mut self, mut lanes: Vec<Lane>, graph: &mut Graph) -> Result<Replayed> {
        for (slab, end) in graph.providers.ends().into_iter().enumerate() {
            (graph.goes_on)()?;
            graph.providers.read(slab, |row| {
                let provider = Provider::of(row);
                match provider.location {
                    JUNCTION => {
                        let chained = self.chained.entry(provider.number);
                        chained.or_default().push(provider);
                    }
                    location => lanes[location as usize].providers.push(provider),
                }
            })?;
            graph.consumers.read(slab, |row| {
                let consumer = Consumer::of(row);
                lanes[consumer.location as usize].needs(consumer);
            })?;
            graph
                .found
                .read(slab, |[location, enter, lost, since, _]| {
                    let found = Found {
                        number: enter,
                        lost: lost as i64,
                        since: since as i64,
                    };
                    lanes[location as usize].found.push(found);
                })?;
            lanes.par_iter_mut().for_each(|lane| lane.prepare(end));
            let free = lanes
                .iter()
                .filter(|lane| !lane.is_done && !lane.is_blocked);
            self.runnable.extend(free.map(|lane| lane.location));
            let mut circles = None;
            loop {
                while let Some(location) = self.runnable.pop() {
                    self.advance(&mut lanes[location as usize], end);
                }
                // Clocks may make a circle of dependencies: somebody in it has to go on.
                let mut unfinished = lanes.iter().filter(|lane| !lane.is_done);
                let Some(first) = unfinished.next() else {
                    break;
                };
                if !first.is_blocked || unfinished.any(|lane| !lane.is_blocked) {
                    break;
                }
                let circles = circles.get_or_insert_with(|| Circles::new(&lanes, &self.chained));
                let at = circles.member(&lanes);
                let last = &mut lanes[at];
                (last.gives_way, last.is_blocked) = (true, false);
                self.replayed.given_way += 1;
                self.runnable.push(last.location);
            }
        }
        // What was never found is waited for as long as it was.
        let vain = lanes.iter().map(|lane| lane.vain).sum();
        self.stay(vain);
        self.replayed.lanes = lanes.into_iter().map(Lane::finished).collect();
        let count = self.columns.count();
        for ((waiting, late), number) in self.waits.number_of {
            let (key, at) = (
                (self.sites[waiting as usize].1, self.sites[late as usize]),
                number as usize * count,
            );
            let sums = &self.waits.sums[at..at + count];
            let known = self.replayed.waits.entry(key);
            let known = known.or_insert_with(|| vec![0; count]);
            known
                .iter_mut()
                .zip(sums)
                .for_each(|(sum, more)| *sum += more);
        }
        Ok(self.replayed)
    }

    /// Lets a location go on until it needs something, or until the end of the slab.
    fn advance(&mut self, lane: &mut Lane, end: i64) {
        lane.is_blocked = false;
        loop {
            let Some(call) = lane.next.take().or_else(|| lane.reader.next()) else {
                self.end_deferred(lane);
                lane.is_done = true;
                return;
            };
            let goes_on = (lane.has_entered || call.enter < end && self.start(lane)) && {
                if !lane.has_entered {
                    self.enter(lane, &call);
                }
                call.leave < end && self.leave(lane, &call)
            };
            if !goes_on {
                lane.next = Some(call);
                return;
            }
        }
    }

    /// Whether a location has begun.
    fn start(&mut self, lane: &mut Lane) -> bool {
        let Some(junction) = lane.start else {
            return true;
        };
        if self.waits(lane, junction) {
            return false;
        }
        if let Some(slot) = self.junctions.complete(junction) {
            let (times, lates) = self.junctions.times(slot);
            lane.now.copy_from_slice(times);
            for (column, jumps) in self.jumps.iter_mut().enumerate() {
                let late = self.sites[lates[column] as usize].0;
                jumps.add(times[column], lane.location, late);
            }
            lane.since = lane.now[RECORDED];
            self.junctions.used(junction, slot);
        }
        lane.start = None;
        true
    }

    /// Whether a location has to wait for a junction.
    #[inline]
    pub fn waits(&mut self, lane: &mut Lane, junction: u64) -> bool {
        if lane.gives_way || self.junctions.complete(junction).is_some() {
            return false;
        }
        self.junctions.wait(junction, lane.location);
        lane.needs = junction;
        lane.is_blocked = true;
        true
    }

    /// What is known of a call.
    #[inline]
    pub fn known(&mut self, lane: &mut Lane, call: &Call) -> Known {
        let at = call.signature as usize;
        if let Some(Some(known)) = lane.known.get(at) {
            return *known;
        }
        if lane.known.len() <= at {
            lane.known.resize(at + 1, None);
        }
        let site = (lane.location, call.kind.site);
        let known = Known {
            changed: self.effects.of_call(lane.location as usize, call),
            site: *self.number_of.entry(site).or_insert_with(|| {
                self.sites.push(site);
                self.sites.len() as u32 - 1
            }),
        };
        lane.known[at] = Some(known);
        known
    }

    /// Tells those who depend on a call, at its enter or at its leave.
    #[inline]
    pub fn publish(&mut self, lane: &mut Lane, call: &Call, is_now: impl Fn(&Provider) -> bool) {
        while let Some(provider) = lane.provider(call, &is_now) {
            if let Some(&looked) = lane.looked.get(UNCHANGED) {
                lane.settled += looked;
                lane.looked.fill(0);
            }
            let site = self.known(lane, call).site;
            // A moment within a call is as long before its end as it was.
            let before = match lane.now[RECORDED] {
                recorded if provider.is_by_time => (recorded - provider.time).max(0),
                _ => 0,
            };
            let waiters = (self.junctions).arrive(&provider, &lane.now, before, |_| site);
            if let Some(waiters) = waiters {
                self.completed(provider.junction, waiters);
            }
        }
    }

    /// All that a junction needs is there.
    #[inline]
    fn completed(&mut self, junction: u64, waiters: Waiters) {
        self.runnable.extend(waiters);
        if self.chained.is_empty() {
            return;
        }
        for next in self.chained.remove(&junction).unwrap_or_default() {
            let Some(slot) = self.junctions.complete(junction) else {
                continue;
            };
            let (times, lates) = self.junctions.times(slot);
            let (times, lates) = (times.to_vec(), lates.to_vec());
            self.junctions.used(junction, slot);
            let waiters = (self.junctions).arrive(&next, &times, 0, |column| lates[column]);
            if let Some(waiters) = waiters {
                self.completed(next.junction, waiters);
            }
        }
    }
}
