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

use anyhow::Result;
use laggard_engine::events::Events;
use laggard_trace::calls::Shape;
use rustc_hash::FxHashMap;

use crate::effects::{Ahead, Effects, Gap, Rests, on_network};
use crate::graph::{BY_ENTER, Consumer, Graph, JUNCTION, Provider};
use crate::reader::{Call, Reader, Site};

/// Columns of times: as recorded …
const RECORDED: usize = 0;
/// … replayed with nothing changed …
pub const UNCHANGED: usize = 1;
/// … and on an ideal network. Each scenario has two more, in the same order.
const PER_SCENARIO: usize = 2;

/// The column of a scenario; the one after it is the same on an ideal network.
pub fn column(scenario: usize) -> usize {
    UNCHANGED + PER_SCENARIO * (scenario + 1)
}

/// A waiting call, and the late one: its location and what it is.
pub type WaitKey = (Site, (u32, Site));

/// The result, by column. ns.
pub struct Replayed {
    pub lanes: Vec<Times>,
    pub waits: FxHashMap<WaitKey, Vec<i64>>,
    /// Only if nothing is changed.
    pub rests: Rests,
    /// Enters and leaves that a replay without changes does not reproduce.
    pub wrong: u64,
    /// Calls that had to go on without what they depend on.
    pub given_way: u64,
    /// Looking in vain that stays as it was though it waited, ns.
    pub stuck: i64,
}

/// Sums of a location, by column. ns.
#[derive(Clone, Default)]
pub struct Times {
    /// When it was first left the start of the library.
    pub begin: Vec<i64>,
    /// When it entered the end of the library.
    pub end: Vec<i64>,
    /// When its last call ended.
    pub last: Vec<i64>,
    pub computed: Vec<i64>,
    pub waited: Vec<i64>,
}

/// Replays a run.
///
/// # Errors
/// There is no room for temporary files.
pub fn replay(events: &Events, effects: &Effects) -> Result<Replayed> {
    let mut graph = Graph::new(events)?;
    let lanes = lanes(events, effects, &mut graph);
    let columns = column(effects.count());
    let sweep = Sweep {
        effects,
        columns,
        providers: FxHashMap::default(),
        consumers: FxHashMap::default(),
        found: FxHashMap::default(),
        junctions: FxHashMap::default(),
        sites: Vec::new(),
        number_of: FxHashMap::default(),
        runnable: Vec::new(),
        replayed: Replayed {
            lanes: Vec::new(),
            waits: FxHashMap::default(),
            rests: Rests::default(),
            wrong: 0,
            given_way: 0,
            stuck: 0,
        },
    };
    sweep.run(lanes, &mut graph)
}

/// A location on its way through the run.
struct Lane<'e> {
    location: u32,
    reader: Reader<'e>,
    next: Option<Call>,
    has_entered: bool,
    is_done: bool,
    is_blocked: bool,
    gives_way: bool,
    /// A thread begins when its rank has come so far.
    start: Option<u64>,
    /// The call before, with its recorded end.
    before: Option<Site>,
    since: i64,
    /// Where it is, by column.
    now: Vec<i64>,
    ahead: Vec<Ahead<'e>>,
    /// Looking in vain since others last depended on it, by column, ns; empty before the first.
    looked: Vec<i64>,
    /// The same before that.
    settled: i64,
    is_measured: bool,
    times: Times,
}

/// Something that calls depend on. Times are by column.
#[derive(Default)]
struct Junction {
    arrived: u32,
    providers: u32,
    /// Calls that have not used it yet.
    left: u32,
    times: Vec<i64>,
    /// Numbers of the providers that came last.
    late: Vec<u32>,
    waiters: Vec<u32>,
}

struct Sweep<'s> {
    effects: &'s Effects,
    columns: usize,
    /// By location, or `JUNCTION`, and number.
    providers: FxHashMap<(u32, u64), Vec<Provider>>,
    consumers: FxHashMap<(u32, u64), Vec<Consumer>>,
    /// Looking in vain before looks that waited so, ns; by location and enter.
    found: FxHashMap<(u32, u64), i64>,
    junctions: FxHashMap<u64, Junction>,
    /// Calls of locations that others depend on, numbered.
    sites: Vec<(u32, Site)>,
    number_of: FxHashMap<(u32, Site), u32>,
    runnable: Vec<u32>,
    replayed: Replayed,
}

fn lanes<'e>(events: &'e Events, effects: &Effects, graph: &mut Graph) -> Vec<Lane<'e>> {
    let columns = column(effects.count());
    let mut main: Option<(u32, usize)> = None;
    let lanes = (0..events.locations()).map(|location| {
        let place = events.place(location);
        let mut start = None;
        match main {
            Some((rank, first)) if rank == place.rank => {
                start = begin(events, graph, first, place.first_ns);
            }
            _ => main = Some((place.rank, location)),
        }
        Lane {
            location: location as u32,
            reader: Reader::new(events, location),
            next: None,
            has_entered: false,
            is_done: false,
            is_blocked: false,
            gives_way: false,
            start,
            before: None,
            since: place.first_ns,
            now: vec![place.first_ns; columns],
            ahead: effects.ahead(events, location),
            looked: Vec::new(),
            settled: 0,
            is_measured: false,
            times: Times {
                begin: vec![place.first_ns; columns],
                end: Vec::new(),
                last: Vec::new(),
                computed: vec![0; columns],
                waited: vec![0; columns],
            },
        }
    });
    lanes.collect()
}

/// A junction for the start of a thread: the last call that its rank's first thread had left.
fn begin(events: &Events, graph: &mut Graph, first: usize, time: i64) -> Option<u64> {
    let mut reader = Reader::new(events, first);
    let mut last = None;
    while let Some(call) = reader.next().filter(|call| call.leave <= time) {
        last = Some(call);
    }
    let last = last?;
    let junction = graph.junction();
    graph.provide(Provider {
        junction,
        number: last.number,
        time: last.leave,
        location: first as u32,
        consumers: 1,
        providers: 1,
        is_by_time: true,
    });
    Some(junction)
}

impl Sweep<'_> {
    fn run(mut self, mut lanes: Vec<Lane>, graph: &mut Graph) -> Result<Replayed> {
        for (slab, end) in graph.providers.ends().into_iter().enumerate() {
            for row in graph.providers.take(slab)? {
                let provider = Provider::of(row);
                let key = (provider.location, provider.number);
                self.providers.entry(key).or_default().push(provider);
            }
            for row in graph.consumers.take(slab)? {
                let consumer = Consumer::of(row);
                let key = (consumer.location, consumer.number);
                self.consumers.entry(key).or_default().push(consumer);
            }
            for [location, number, lost, ..] in graph.found.take(slab)? {
                *self.found.entry((location as u32, number)).or_default() += lost as i64;
            }
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
        Ok(self.replayed)
    }

    /// Lets a location go on until it needs something, or until the end of the slab.
    fn advance(&mut self, lane: &mut Lane, end: i64) {
        lane.is_blocked = false;
        loop {
            let Some(call) = lane.next.or_else(|| lane.reader.next()) else {
                lane.is_done = true;
                return;
            };
            lane.next = Some(call);
            if !lane.has_entered {
                if call.enter >= end || !self.start(lane) {
                    return;
                }
                self.enter(lane, &call);
            }
            if call.leave >= end || !self.leave(lane, &call) {
                return;
            }
            lane.next = None;
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
        if let Some(found) = self.use_up(junction) {
            lane.since = found.0[RECORDED];
            lane.now = found.0;
        }
        lane.start = None;
        true
    }

    /// Whether a location has to wait for a junction.
    fn waits(&mut self, lane: &mut Lane, junction: u64) -> bool {
        let found = self.junctions.entry(junction).or_default();
        if found.is_complete() || lane.gives_way {
            return false;
        }
        found.waiters.push(lane.location);
        lane.is_blocked = true;
        true
    }

    /// A call depends on a junction: its times and its last providers, once it is complete.
    fn use_up(&mut self, junction: u64) -> Option<(Vec<i64>, Vec<u32>)> {
        let found = self.junctions.get_mut(&junction)?;
        if !found.is_complete() {
            return None;
        }
        found.left = found.left.saturating_sub(1);
        if found.left > 0 {
            return Some((found.times.clone(), found.late.clone()));
        }
        let found = self.junctions.remove(&junction)?;
        Some((found.times, found.late))
    }

    fn enter(&mut self, lane: &mut Lane, call: &Call) {
        let looked = call.looked.min(call.enter - lane.since).max(0);
        if (looked > 0 || call.is_vain) && lane.looked.is_empty() {
            lane.looked = vec![0; self.columns];
        }
        let gap = Gap {
            location: lane.location as usize,
            before: lane.before,
            after: call.site,
            from: lane.since,
            to: call.enter - looked,
        };
        let length = gap.to - gap.from;
        let counts = lane.is_measured && length > 0;
        for column in 0..self.columns {
            let changed = match scenario(column) {
                // Nested calls overlap, and before the first one nothing computes.
                Some(scenario) if length > 0 && lane.before.is_some() => {
                    self.effects.gap(scenario, &gap, &lane.ahead)
                }
                _ => length,
            };
            lane.now[column] += changed + looked;
            if looked > 0 {
                lane.looked[column] += looked;
            }
            if counts {
                lane.times.computed[column] += changed;
            }
        }
        self.replayed.wrong += u64::from(lane.now[UNCHANGED] != call.enter);
        if call.shape == Shape::Finalize {
            lane.times.end.clone_from(&lane.now);
            lane.is_measured = false;
        }
        self.publish(lane, call, |provider| {
            !provider.is_by_time || provider.time <= call.enter
        });
        lane.has_entered = true;
    }

    /// Ends a call, if what it depends on is there.
    fn leave(&mut self, lane: &mut Lane, call: &Call) -> bool {
        let numbers = (call.first..=call.number).map(|number| (lane.location, number));
        let by_enter = (call.leave > call.enter).then_some(BY_ENTER | call.enter as u64);
        let by_enter = by_enter.map(|number| (lane.location, number));
        let keys: Vec<_> = numbers
            .chain(by_enter)
            .filter(|key| self.consumers.contains_key(key))
            .collect();
        for key in &keys {
            let needed: Vec<u64> = self.consumers[key].iter().map(|c| c.junction).collect();
            if needed.iter().any(|&junction| self.waits(lane, junction)) {
                return false;
            }
        }
        lane.gives_way = false;
        let lost = by_enter.and_then(|number| self.found.remove(&number));
        let mut latest = None;
        let mut bound: Vec<(i64, u32)> = Vec::new();
        for key in keys {
            for consumer in self.consumers.remove(&key).unwrap_or_default() {
                let Some((times, late)) = self.use_up(consumer.junction) else {
                    continue;
                };
                bound.resize(self.columns, (i64::MIN, 0));
                let over = (times[RECORDED] - call.leave).max(0);
                latest = latest.max(Some(times[RECORDED] - over));
                for (column, bound) in bound.iter_mut().enumerate() {
                    if !(consumer.is_late_receiver && is_ideal(column)) {
                        *bound = (*bound).max((times[column] - over, late[column]));
                    }
                }
            }
        }
        let recorded = latest.map_or(call.enter, |latest| latest.max(call.enter));
        if let (Some(lost), Some(latest)) = (lost, latest) {
            // The last look came so long after what it found.
            let late = recorded - latest;
            bound.iter_mut().for_each(|(time, _)| *time += late);
            self.skip_looks(lane, lost, late);
        } else if let Some(lost) = lost {
            self.replayed.stuck += lost;
        }
        self.end(lane, call, &bound, call.leave - recorded);
        true
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

    /// Ends a call that depends on these moments, by column, and that takes `rest` by itself, ns.
    fn end(&mut self, lane: &mut Lane, call: &Call, bound: &[(i64, u32)], rest: i64) {
        lane.now[RECORDED] = call.leave;
        if self.effects.count() == 0 {
            *self
                .replayed
                .rests
                .entry((lane.location, call.site))
                .or_default() += rest;
        }
        for column in UNCHANGED..self.columns {
            let (mut own, mut is_gone) = (rest, false);
            if let Some(scenario) = scenario(column) {
                is_gone = self.effects.is_gone(scenario, call);
                own = self
                    .effects
                    .rest(scenario, lane.location as usize, call, rest);
            }
            if is_gone {
                continue;
            }
            if is_ideal(column) {
                own = on_network(0.0, call, own);
            }
            let now = &mut lane.now[column];
            if let Some(&(time, late)) = bound.get(column)
                && time > *now
            {
                let key = (call.site, self.sites[late as usize]);
                let waits = self.replayed.waits.entry(key);
                waits.or_insert_with(|| vec![0; self.columns])[column] += time - *now;
                lane.times.waited[column] += time - *now;
                *now = time;
            }
            if let Some(looked) = lane.looked.get_mut(column) {
                match bound.get(column) {
                    Some(&(time, _)) => *looked = (*looked).min(now.saturating_sub(time)),
                    None if call.is_vain => *looked += own,
                    None => {}
                }
            }
            *now += own;
            if lane.is_measured {
                // A repeated call is left in between.
                lane.times.computed[column] += (call.leave - call.enter - call.inside).max(0);
            }
        }
        self.replayed.wrong += u64::from(lane.now[UNCHANGED] != call.leave);
        if call.shape == Shape::Init && lane.times.end.is_empty() && !lane.is_measured {
            lane.times.begin.clone_from(&lane.now);
            lane.is_measured = true;
        }
        self.publish(lane, call, |_| true);
        self.effects.left(call, &mut lane.ahead);
        (lane.before, lane.since, lane.has_entered) = (Some(call.site), call.leave, false);
    }

    /// Tells those who depend on a call, at its enter or at its leave.
    fn publish(&mut self, lane: &mut Lane, call: &Call, is_now: impl Fn(&Provider) -> bool) {
        for number in call.first..=call.number {
            let key = (lane.location, number);
            let Some(providers) = self.providers.remove(&key) else {
                continue;
            };
            let site = *self
                .number_of
                .entry((lane.location, call.site))
                .or_insert_with(|| {
                    self.sites.push((lane.location, call.site));
                    self.sites.len() as u32 - 1
                });
            if let Some(&looked) = lane.looked.get(UNCHANGED) {
                lane.settled += looked;
                lane.looked.fill(0);
            }
            let late = vec![site; self.columns];
            let (now, later): (Vec<_>, Vec<_>) = providers.into_iter().partition(&is_now);
            if !later.is_empty() {
                self.providers.insert(key, later);
            }
            for provider in now {
                // A moment within a call is as long before its end as it was.
                let before = match lane.now[RECORDED] {
                    recorded if provider.is_by_time => (recorded - provider.time).max(0),
                    _ => 0,
                };
                let times: Vec<i64> = lane.now.iter().map(|now| now - before).collect();
                self.arrive(&provider, &times, &late);
            }
        }
    }

    /// One of the moments that a junction needs is there.
    fn arrive(&mut self, provider: &Provider, times: &[i64], late: &[u32]) {
        let junction = self.junctions.entry(provider.junction).or_default();
        if junction.arrived == 0 {
            (junction.providers, junction.left) = (provider.providers, provider.consumers);
            (junction.times, junction.late) = (times.to_vec(), late.to_vec());
        } else {
            let known = junction.times.iter_mut().zip(&mut junction.late);
            for ((time, late), (&new, &who)) in known.zip(times.iter().zip(late)) {
                if new > *time {
                    (*time, *late) = (new, who);
                }
            }
        }
        junction.arrived += 1;
        if !junction.is_complete() {
            return;
        }
        let waiters = std::mem::take(&mut junction.waiters);
        self.runnable.extend(waiters);
        for next in self
            .providers
            .remove(&(JUNCTION, provider.junction))
            .unwrap_or_default()
        {
            if let Some((times, late)) = self.use_up(provider.junction) {
                self.arrive(&next, &times, &late);
            }
        }
    }
}

impl Junction {
    fn is_complete(&self) -> bool {
        self.arrived > 0 && self.arrived >= self.providers
    }
}

impl Lane<'_> {
    fn finished(mut self) -> Times {
        if self.times.end.is_empty() {
            self.times.end.clone_from(&self.now);
        }
        self.times.last = self.now;
        self.times
    }
}

/// The scenario of a column, if something is changed in it.
fn scenario(column: usize) -> Option<usize> {
    (column.saturating_sub(UNCHANGED) / PER_SCENARIO).checked_sub(1)
}

/// Whether transfers take no time and no sender waits for its receiver.
fn is_ideal(column: usize) -> bool {
    column > UNCHANGED && (column - UNCHANGED) % PER_SCENARIO == 1
}
