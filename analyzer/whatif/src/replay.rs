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
//! Locations go on until they need a moment that is not known yet; slab by slab of global
//! time, so that memory does not grow with the trace.

use std::cmp::Reverse;
use std::ops::Range;

use anyhow::Result;
use laggard_engine::events::Events;
use laggard_trace::calls::Shape;
use rustc_hash::FxHashMap;

use crate::effects::{Changed, Effects, Gap, Marks, Rests, mark, on_network};
use crate::graph::{Consumer, Graph, JUNCTION, Provider};
use crate::junctions::Junctions;
use crate::lane::{Deferred, Known, Lane, Times};
use crate::path::{Activity, Along, Jumps};
use crate::reader::{Call, Site};

/// Columns of times: as recorded …
const RECORDED: usize = 0;
/// … replayed with nothing changed …
pub const UNCHANGED: usize = 1;
/// … the same on an ideal network, and then the scenarios.
const SCENARIOS: usize = 3;

/// Which times are replayed.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    scenarios: usize,
    /// Whether all that is needed for efficiencies and waits of the scenarios is replayed as well.
    is_whole: bool,
}

impl Columns {
    pub fn new(scenarios: usize, is_whole: bool) -> Columns {
        Columns {
            scenarios,
            is_whole,
        }
    }

    fn count(self) -> usize {
        self.of(self.scenarios)
    }

    /// The column of a scenario.
    pub fn of(self, scenario: usize) -> usize {
        SCENARIOS + scenario * (1 + usize::from(self.is_whole))
    }

    /// The column of the same on an ideal network.
    pub fn ideal(self, column: usize) -> Option<usize> {
        (column == UNCHANGED || self.is_whole).then_some(column + 1)
    }

    /// All columns of a scenario.
    fn range(self, scenario: usize) -> Range<usize> {
        self.of(scenario)..self.of(scenario + 1)
    }

    /// The scenarios with these marks.
    fn marked(self, marks: Marks) -> impl Iterator<Item = usize> {
        (0..self.scenarios).filter(move |&scenario| marks & mark(scenario) != 0)
    }

    /// Whether transfers take no time in a column, and no sender waits for its receiver.
    fn is_ideal(self, column: usize) -> bool {
        match column.checked_sub(SCENARIOS) {
            None => column > UNCHANGED,
            Some(at) => self.is_whole && at % 2 == 1,
        }
    }
}

/// A waiting call, and the late one: its location and what it is.
pub type WaitKey = (Site, (u32, Site));

/// The result, by column. ns.
pub struct Replayed {
    pub columns: Columns,
    pub lanes: Vec<Times>,
    /// Only if all is replayed.
    pub waits: FxHashMap<WaitKey, Vec<i64>>,
    /// Only if nothing is changed.
    pub rests: Rests,
    /// Enters and leaves that a replay without changes does not reproduce.
    pub wrong: u64,
    /// Calls that had to go on without what they depend on.
    pub given_way: u64,
    /// Looking in vain that stays as it was though it waited, ns.
    pub stuck: i64,
    /// Only if all is replayed.
    pub along: Option<Along>,
}

/// Replays a run.
///
/// # Errors
/// There is no room for temporary files.
pub fn replay(
    events: &Events,
    graph: &mut Graph,
    effects: &Effects,
    is_whole: bool,
) -> Result<Replayed> {
    let mut along = None;
    if is_whole {
        let columns = Columns::new(effects.count(), is_whole);
        let jumps = (0..columns.count()).map(|_| Jumps::new(&graph.providers));
        let mut jumps: Vec<Jumps> = jumps.collect();
        let found = sweep(events, graph, effects, is_whole, (&mut jumps, None))?;
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
    sweep(events, graph, effects, is_whole, (&mut [], along))
}

/// One replay, with what is noted for the critical path or along it.
fn sweep(
    events: &Events,
    graph: &mut Graph,
    effects: &Effects,
    is_whole: bool,
    (jumps, along): (&mut [Jumps], Option<Along>),
) -> Result<Replayed> {
    let columns = Columns::new(effects.count(), is_whole);
    let count = columns.count();
    let lanes = (0..events.locations()).map(|location| {
        let start = graph.starts[location];
        Lane::new(events, effects, location, start, count)
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
            rests: Rests::default(),
            wrong: 0,
            given_way: 0,
            stuck: 0,
            along,
        },
    };
    sweep.run(lanes, graph)
}

/// Waits by numbers of the waiting and of the late call.
#[derive(Default)]
struct Waits {
    number_of: FxHashMap<(u32, u32), u32>,
    /// By number and column, ns.
    sums: Vec<i64>,
    last: Option<((u32, u32), u32)>,
}

impl Waits {
    #[inline]
    fn add(&mut self, key: (u32, u32), (column, columns): (usize, usize), time: i64) {
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

struct Sweep<'s> {
    effects: &'s Effects,
    columns: Columns,
    /// By column: whether the network is ideal.
    ideal: Vec<bool>,
    /// By column: whether no sender waits for its receiver.
    never_late: Vec<bool>,
    /// Junctions that need another one, by that.
    chained: FxHashMap<u64, Vec<Provider>>,
    junctions: Junctions,
    /// Calls of locations, numbered.
    sites: Vec<(u32, Site)>,
    number_of: FxHashMap<(u32, Site), u32>,
    runnable: Vec<u32>,
    /// What the call at hand needs …
    needed: Vec<Consumer>,
    /// … when the last of that comes, by column, and what it is.
    bound: Vec<i64>,
    late: Vec<u32>,
    /// How long after that the call begins, ns.
    shift: i64,
    waits: Waits,
    /// By column; empty: nobody asks.
    jumps: &'s mut [Jumps],
    /// Where the location at hand was before, by column, ns.
    from: Vec<i64>,
    replayed: Replayed,
}

impl Sweep<'_> {
    fn run(mut self, mut lanes: Vec<Lane>, graph: &mut Graph) -> Result<Replayed> {
        for (slab, end) in graph.providers.ends().into_iter().enumerate() {
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
            graph.found.read(slab, |[location, enter, lost, ..]| {
                lanes[location as usize].found.push((enter, lost as i64));
            })?;
            lanes.iter_mut().for_each(Lane::settle);
            let free = lanes
                .iter()
                .filter(|lane| !lane.is_done && !lane.is_blocked);
            self.runnable.extend(free.map(|lane| lane.location));
            loop {
                while let Some(location) = self.runnable.pop() {
                    self.advance(&mut lanes[location as usize], end);
                }
                // Clocks may make a circle of dependencies: somebody has to go on.
                let mut unfinished = lanes.iter_mut().filter(|lane| !lane.is_done);
                let Some(last) = unfinished.next_back() else {
                    break;
                };
                if !last.is_blocked || unfinished.any(|lane| !lane.is_blocked) {
                    break;
                }
                (last.gives_way, last.is_blocked) = (true, false);
                self.replayed.given_way += 1;
                self.runnable.push(last.location);
            }
        }
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
    fn waits(&mut self, lane: &mut Lane, junction: u64) -> bool {
        if lane.gives_way || self.junctions.complete(junction).is_some() {
            return false;
        }
        self.junctions.wait(junction, lane.location);
        lane.is_blocked = true;
        true
    }

    /// What is known of a call.
    #[inline]
    fn known(&mut self, lane: &mut Lane, call: &Call) -> Known {
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

    fn enter(&mut self, lane: &mut Lane, call: &Call) {
        let looked = call.looked.min(call.enter - lane.since).max(0);
        if (looked > 0 || call.is_vain) && lane.looked.is_empty() {
            lane.looked = vec![0; self.columns.count()];
        }
        let length = call.enter - lane.since - looked;
        let counts = lane.is_measured && length > 0;
        self.begins(lane);
        for now in &mut lane.now {
            *now += length + looked;
        }
        if looked > 0 {
            lane.looked.iter_mut().for_each(|sum| *sum += looked);
        }
        if counts {
            lane.times
                .computed
                .iter_mut()
                .for_each(|sum| *sum += length);
        }
        // Nested calls overlap, and before the first one nothing computes.
        if length > 0
            && let Some(before) = lane.before
        {
            let (first, last) = (before.kind.site, call.kind.site);
            let location = lane.location as usize;
            let pair = (before.signature, call.signature);
            let find = || self.effects.of_gap(location, first, last);
            let marks = lane.pairs.of(pair, find);
            if marks != 0 {
                let gap = Gap {
                    location,
                    before: Some(first),
                    after: last,
                    from: lane.since,
                    to: lane.since + length,
                };
                self.change(lane, &gap, marks, counts);
            }
        }
        if let Some(before) = lane.before {
            let activity = (lane.location, Some(before.kind.site), call.kind.site);
            self.note(lane, activity);
        }
        self.end_deferred(lane);
        self.replayed.wrong += u64::from(lane.now[UNCHANGED] != call.enter);
        if call.kind.shape == Shape::Finalize {
            lane.times.end.clone_from(&lane.now);
            lane.is_measured = false;
        }
        self.publish(lane, call, |provider| {
            !provider.is_by_time || provider.time <= call.enter
        });
        lane.has_entered = true;
    }

    /// Changes computation in the scenarios with these marks.
    fn change(&self, lane: &mut Lane, gap: &Gap, marks: Marks, counts: bool) {
        for scenario in self.columns.marked(marks) {
            let more = self.effects.gap(scenario, gap, &lane.ahead) - (gap.to - gap.from);
            for column in self.columns.range(scenario) {
                lane.now[column] += more;
                if counts {
                    lane.times.computed[column] += more;
                }
            }
        }
    }

    /// Ends a call, if what it depends on is there.
    fn leave(&mut self, lane: &mut Lane, call: &Call) -> bool {
        let mut needed = std::mem::take(&mut self.needed);
        lane.needed(call, &mut needed);
        let is_there = !needed.iter().any(|of| self.waits(lane, of.junction));
        if is_there {
            lane.gives_way = false;
            self.meet(lane, call, &needed);
        }
        self.needed = needed;
        is_there
    }

    /// Ends a call that depends on these junctions.
    fn meet(&mut self, lane: &mut Lane, call: &Call, needed: &[Consumer]) {
        let mut latest: Option<i64> = None;
        self.shift = 0;
        for consumer in needed {
            let Some(slot) = self.junctions.complete(consumer.junction) else {
                continue;
            };
            let (times, lates) = self.junctions.times(slot);
            let over = (times[RECORDED] - call.leave).max(0);
            if latest.is_none() {
                self.bound.fill(i64::MIN);
            }
            latest = latest.max(Some(times[RECORDED] - over));
            let known = self.bound.iter_mut().zip(&mut self.late);
            for (column, (bound, late)) in known.enumerate() {
                let time = times[column] - over;
                if time > *bound && !(consumer.is_late_receiver && self.never_late[column]) {
                    (*bound, *late) = (time, lates[column]);
                }
            }
            self.junctions.used(consumer.junction, slot);
        }
        let recorded = latest.map_or(call.enter, |latest| latest.max(call.enter));
        match (lane.lost(call), latest) {
            (Some(lost), Some(latest)) => {
                // The last look came so long after what it found.
                let late = recorded - latest;
                self.bound.iter_mut().for_each(|time| *time += late);
                self.shift = late;
                self.skip_looks(lane, lost, late);
            }
            (Some(lost), None) => self.replayed.stuck += lost,
            (None, _) => {}
        }
        self.end(lane, call, latest.is_some(), call.leave - recorded);
    }

    /// A look found something after looking in vain, `lost` ns of which were waiting: that is taken
    /// back, as far as nobody depends on it. What was looked for had come `late` ns before.
    fn skip_looks(&mut self, lane: &mut Lane, lost: i64, late: i64) {
        let Some(&looked) = lane.looked.get(UNCHANGED) else {
            return;
        };
        let movable = match std::mem::take(&mut lane.settled) {
            0 => lost,
            settled => {
                let movable = lost.min((looked - late).max(0));
                self.replayed.stuck += (lost - movable).min(settled);
                movable
            }
        };
        for (now, looked) in lane.now.iter_mut().zip(&mut lane.looked) {
            *now -= std::mem::take(looked).min(movable);
        }
    }

    /// Ends a call that takes `rest` by itself, ns, after what it depends on, if it does.
    fn end(&mut self, lane: &mut Lane, call: &Call, depends: bool, rest: i64) {
        let known = self.known(lane, call);
        if self.columns.scenarios == 0 {
            let rests = &mut self.replayed.rests;
            *rests.entry((lane.location, call.kind.site)).or_default() += rest;
        }
        let changed = Changed {
            gone: known.changed.gone | self.repeated(lane, call, known.changed.combined),
            ..known.changed
        };
        let first = lane.deferred.len();
        for scenario in self.columns.marked(changed.deferred | known.changed.gone) {
            for column in self.columns.range(scenario) {
                if changed.deferred & mark(scenario) != 0 {
                    lane.deferred.push(Deferred {
                        column,
                        bound: if depends {
                            self.bound[column]
                        } else {
                            i64::MIN
                        },
                        late: self.late[column],
                        site: known.site,
                        own: lane.now[column],
                    });
                }
                self.bound[column] = i64::MIN;
            }
        }
        if depends {
            self.bind(lane, known.site);
        }
        self.begins(lane);
        let ideal = on_network(0.0, call, rest);
        for (now, &is_ideal) in lane.now.iter_mut().zip(&self.ideal) {
            *now += if is_ideal { ideal } else { rest };
        }
        if call.is_vain {
            for (looked, &is_ideal) in lane.looked.iter_mut().zip(&self.ideal) {
                *looked += if is_ideal { ideal } else { rest };
            }
        }
        if lane.is_measured {
            // A repeated call is left in between.
            let computed = (call.leave - call.enter - call.inside).max(0);
            if computed > 0 {
                lane.times
                    .computed
                    .iter_mut()
                    .for_each(|sum| *sum += computed);
            }
        }
        if changed.rest | changed.gone != 0 {
            self.change_call(lane, call, changed, rest);
        }
        for deferred in &mut lane.deferred[first..] {
            let begin = std::mem::take(&mut deferred.own);
            deferred.own = std::mem::replace(&mut lane.now[deferred.column], begin) - begin;
        }
        if !call.is_vain {
            self.note(lane, (lane.location, None, call.kind.site));
        }
        lane.now[RECORDED] = call.leave;
        self.replayed.wrong += u64::from(lane.now[UNCHANGED] != call.leave);
        if call.kind.shape == Shape::Init && lane.times.end.is_empty() && !lane.is_measured {
            lane.times.begin.clone_from(&lane.now);
            lane.is_measured = true;
        }
        self.publish(lane, call, |_| true);
        self.effects.left(call, &mut lane.ahead);
        (lane.before, lane.since, lane.has_entered) = (Some(*call), call.leave, false);
    }

    /// A location waits, by column, until the last of what its call needs is there.
    #[inline]
    fn bind(&mut self, lane: &mut Lane, site: u32) {
        let count = self.columns.count();
        for column in UNCHANGED..count {
            let (now, time) = (&mut lane.now[column], self.bound[column]);
            if let Some(looked) = lane.looked.get_mut(column) {
                *looked = (*looked).min(now.saturating_sub(time).max(0));
            }
            if time <= *now {
                continue;
            }
            lane.times.waited[column] += time - *now;
            if self.columns.is_whole {
                let key = (site, self.late[column]);
                self.waits.add(key, (column, count), time - *now);
                if let Some(jumps) = self.jumps.get_mut(column) {
                    let late = self.sites[self.late[column] as usize].0;
                    jumps.add(time - self.shift, lane.location, late);
                }
            }
            *now = time;
        }
    }

    /// A location begins to do something, which [`note`](Self::note) ends.
    #[inline]
    fn begins(&mut self, lane: &Lane) {
        if self.replayed.along.is_some() {
            self.from.copy_from_slice(&lane.now);
        }
    }

    /// What a location did until now lies on the critical path, or not.
    #[inline]
    fn note(&mut self, lane: &Lane, activity: Activity) {
        let Some(along) = &mut self.replayed.along else {
            return;
        };
        for (column, times) in self.from.iter().zip(&lane.now).enumerate().skip(UNCHANGED) {
            if !self.ideal[column] {
                along.add(column, activity, (*times.0, *times.1));
            }
        }
    }

    /// Waits for what was not waited for at once.
    fn end_deferred(&mut self, lane: &mut Lane) {
        for deferred in lane.deferred.drain(..) {
            let (column, now) = (deferred.column, &mut lane.now[deferred.column]);
            let wait = deferred.bound.saturating_sub(*now).max(0);
            if wait > 0 {
                lane.times.waited[column] += wait;
                if self.columns.is_whole {
                    let key = (deferred.site, deferred.late);
                    self.waits.add(key, (column, self.columns.count()), wait);
                }
                if let Some(jumps) = self.jumps.get_mut(column) {
                    let late = self.sites[deferred.late as usize].0;
                    jumps.add(deferred.bound, lane.location, late);
                }
            }
            *now += wait + deferred.own;
        }
    }

    /// The scenarios in which a message is one with an earlier one to the same rank.
    fn repeated(&self, lane: &mut Lane, call: &Call, combined: Marks) -> Marks {
        let mut repeated = 0;
        for scenario in self.columns.marked(self.effects.combining) {
            let known = lane.peers.iter().position(|(of, _)| *of == scenario);
            let at = known.unwrap_or_else(|| {
                lane.peers.push((scenario, Vec::new()));
                lane.peers.len() - 1
            });
            let peers = &mut lane.peers[at].1;
            if combined & mark(scenario) == 0 {
                peers.clear();
            } else if peers.contains(&call.peer) {
                repeated |= mark(scenario);
            } else {
                peers.push(call.peer);
            }
        }
        repeated
    }

    /// Changes what a call takes by itself, recorded `rest` ns, in the scenarios that do so.
    fn change_call(&self, lane: &mut Lane, call: &Call, changed: Changed, rest: i64) {
        let ideal = on_network(0.0, call, rest);
        for scenario in self.columns.marked(changed.rest | changed.gone) {
            let own = match changed.gone & mark(scenario) {
                0 => (self.effects).rest(scenario, lane.location as usize, call, rest),
                _ => 0,
            };
            for column in self.columns.range(scenario) {
                let more = match self.ideal[column] {
                    true => on_network(0.0, call, own) - ideal,
                    false => own - rest,
                };
                lane.now[column] += more;
                if call.is_vain {
                    lane.looked[column] += more;
                }
            }
        }
    }

    /// Tells those who depend on a call, at its enter or at its leave.
    #[inline]
    fn publish(&mut self, lane: &mut Lane, call: &Call, is_now: impl Fn(&Provider) -> bool) {
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
    fn completed(&mut self, junction: u64, waiters: Vec<u32>) {
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
