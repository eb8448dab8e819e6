//! Making an index: one sweep over the calls of all locations, in which their waits are found, too.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::Range;
use std::path::Path;

use anyhow::Result;
use laggard_comm::Job;
use laggard_engine::events::{
    self, Events, NONE, Nest, NotedLook, ShortWait, SlabOfCalls, Spent, Sweep, TimeClass,
    begins_region,
};
use laggard_trace::calls::{self, Call, user::STEER};
use laggard_trace::{Record, Signature, flags};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    CALLS, ChangeAt, Checkpoint, Index, KINDS, KeptWait, LocationIndex, LooksAt, LostBy, MarkAt,
    RegionAt, Run, Waits, few_before, fit, kind, kind_of,
};

/// One wait of so many records is kept, those that lost most.
const RECORDS: usize = 200;
/// So many are kept of a location whatever the number of records, and of all locations together.
const LEAST: usize = 64;
const OF_ALL: usize = 1 << 14;
/// Changes of what is recorded that are kept of a location.
const CHANGES: usize = 256;
/// Most regions around a mark that are told; the collector records fewer.
const NESTED: usize = 64;

/// Makes the index of this agent's share of a trace. Collective.
///
/// # Errors
/// As [`Events::sweep`].
pub fn build(job: &dyn Job, events: &Events) -> Result<Index> {
    let mut locations = Vec::new();
    let spent = events.spent_of_share(job);
    prepare(&mut locations, &spent, events, usize::MAX);
    events.sweep(job, &mut locations)?;
    let places = places(events);
    let locations = locations.into_par_iter().map(|one| one.finish(&places));
    Ok(Index {
        locations: locations.collect(),
    })
}

/// The index of a trace that grows: what is new is added to what is there.
pub struct Growing {
    trace: events::Growing,
    locations: Vec<Building>,
    /// So many records are told as finely as in an index of a whole trace.
    most: usize,
}

impl Growing {
    /// Nothing is known yet. The index gets coarser as the trace grows beyond this size, bytes, and not larger.
    pub fn new(most_bytes: u64) -> Growing {
        let most = most_bytes / size_of::<Record>() as u64;
        Growing {
            trace: events::Growing::default(),
            locations: Vec::new(),
            most: usize::try_from(most).unwrap_or(usize::MAX),
        }
    }

    /// Opens this agent's share of the trace, as far as it is complete. Collective.
    ///
    /// # Errors
    /// As [`Events::open_share`].
    pub fn open(&mut self, job: &dyn Job, directory: &Path) -> Result<Events> {
        self.trace.open(job, directory)
    }

    /// Whether the last opening goes on after the one before.
    pub fn has_gone_on(&self) -> bool {
        self.trace.has_gone_on()
    }

    /// Begins with the next opening as with the first: what was read may not have been there.
    pub fn forget(&mut self) {
        self.trace.forget();
    }

    /// The index of what was opened last. Collective.
    ///
    /// # Errors
    /// As [`Events::sweep`].
    pub fn index(&mut self, job: &dyn Job, events: &Events) -> Result<Index> {
        let spent = events.spent_of_share(job);
        // A start-up may have ended since, or a second one.
        let mut known = self.locations.iter().zip(&spent);
        let has_moved = known.any(|(known, now)| known.index.measured.0 != now.measured.0);
        let mut begins = [u64::from(has_moved || !self.has_gone_on())];
        job.reduce_max(&mut begins);
        if begins != [0] {
            self.trace.begin_again();
            self.locations.clear();
        }
        prepare(&mut self.locations, &spent, events, self.most);
        self.trace.sweep(job, events, &mut self.locations)?;
        let most = self.most / CALLS as usize + 2 * self.locations.len();
        let all = |locations: &[Building]| -> usize {
            let of = |one: &Building| one.index.checkpoints.len();
            locations.iter().map(of).sum()
        };
        while all(&self.locations) > most {
            self.locations.par_iter_mut().for_each(Building::thin);
        }
        let places = places(events);
        let locations = self.locations.par_iter();
        let locations = locations.map(|one| one.clone().finish(&places));
        Ok(Index {
            locations: locations.collect(),
        })
    }
}

/// Makes all locations ready for their calls until a moment. No more waits are kept than of `most` records.
fn prepare(locations: &mut Vec<Building>, spent: &[Spent], events: &Events, most: usize) {
    let least = LEAST.max(OF_ALL / events.placed.len().max(1));
    let of_each = most / spent.len().max(1);
    for (at, spent) in spent.iter().enumerate() {
        let records = events.place(at).records as usize;
        let most = least.max(of_each.min(records) / RECORDS);
        match locations.get_mut(at) {
            Some(known) => (known.index.measured, known.most) = (spent.measured, most),
            None => locations.push(Building::new(spent.measured, most)),
        }
        // Nobody knows when these calls were.
        locations[at].profiled = (records == 0 && !spent.calls.is_empty()).then(|| {
            let mut inside = [0; KINDS];
            let calls = spent.calls.iter();
            calls.for_each(|of| inside[kind(of.class)] += of.ns);
            inside
        });
    }
}

/// Positions of the locations by rank and thread.
fn places(events: &Events) -> FxHashMap<(u32, u32), u32> {
    let places = (0..).zip(&events.placed);
    let places = places.map(|(at, placed)| ((placed.rank, placed.thread), at));
    places.collect()
}

/// Whether the time of a call with such a signature counts: parts belong to the call after them.
pub fn counts(call: Option<&Call>, signature: &Signature) -> bool {
    !signature.has(flags::PART) && is_told(call, signature)
}

/// Whether the report knows of such a call: regions have other calls in them, and records of a pause are there for
/// other ranks alone.
pub fn is_told(call: Option<&Call>, signature: &Signature) -> bool {
    let is_left_out = signature.has(flags::PAUSED) && !signature.has(flags::PROFILED);
    !is_left_out && !call.is_some_and(Call::is_user)
}

/// How much of a stretch is in another, ns.
pub fn overlap((from, until): (i64, i64), (begin, end): (i64, i64)) -> i64 {
    (until.min(end) - from.max(begin)).max(0)
}

/// The share of `amount` that a part has of a whole.
pub fn scaled(amount: i64, part: i64, whole: i64) -> i64 {
    match part == whole || whole <= 0 {
        true => amount,
        false => (i128::from(amount) * i128::from(part) / i128::from(whole)) as i64,
    }
}

/// In place of the kind of a call's time: it is a change of the recording, or does not count.
const CHANGE: u8 = KINDS as u8;
const NOTHING: u8 = CHANGE + 1;

/// What the calls of a signature count for.
fn counted(signature: &Signature) -> u8 {
    let call = calls::call(signature.operation);
    let is_defined = signature.operation != 0;
    match is_defined && counts(call, signature) {
        _ if signature.operation == STEER => CHANGE,
        true => kind(TimeClass::of_call(signature.operation, signature.flags)) as u8,
        false => NOTHING,
    }
}

/// Amounts, ns, by the number of the checkpoint after them.
#[derive(Clone, Debug, Default)]
struct Amounts(Vec<(usize, i64)>);

impl Amounts {
    fn add(&mut self, at: usize, amount: i64) {
        match self.0.last_mut().filter(|last| last.0 == at) {
            Some(last) => last.1 += amount,
            None => self.0.push((at, amount)),
        }
    }
}

/// Looks at a place: what counts of the time between them.
#[derive(Clone, Debug, Default)]
struct Looking {
    /// One of their signatures.
    signature: u32,
    kind: usize,
    found: Option<i64>,
    /// What counts already, ns.
    counted: i64,
    /// What counts once one finds something, and the part of it that counts if none ever does.
    open: Amounts,
    vain: Amounts,
    run: Run<(usize, i64)>,
}

/// The index of a location in the making; a clone is finished while the other goes on. In it, `waiting` of a checkpoint is what was lost since the one
/// before.
#[derive(Clone)]
struct Building {
    /// All but the waits.
    index: LocationIndex,
    waits: Vec<KeptWait>,
    /// What waits lost, by signature of the call, ns.
    lost: Vec<i64>,
    /// What the longest wait of each pattern lost, by signature of the call, ns.
    worst: Vec<Vec<(u32, i64)>>,
    /// Kinds of time by signature.
    counted: Vec<u8>,
    /// Signatures that began the regions in which the thread is; none where no call begins any.
    nest: Option<Nest<u32>>,
    /// Numbers of regions that are in the index.
    regions: FxHashMap<RegionAt, u32>,
    /// Calls that count until the next checkpoint, and the sums of those so far.
    left: u64,
    sums: Checkpoint,
    /// The checkpoint after the last wait that was told; as many as there are if it is not there yet.
    next: usize,
    /// Waits that ended after the last checkpoint: when, what they lost, ns, and whether in looks.
    ahead: Vec<(i64, i64, bool)>,
    /// By number of the checkpoint after it: what counts of the time between looks, and what waits in looks lost.
    between: Vec<[i64; KINDS]>,
    looked: Vec<i64>,
    /// By number of the place.
    looking: Vec<Looking>,
    /// The shortest look so far, ns; 0 = none.
    shortest: i64,
    /// Time in calls by kind, if there is a profile of them alone, ns.
    profiled: Option<[i64; KINDS]>,
    /// Most waits that are kept.
    most: usize,
    /// Shorter ones are not, ns.
    least: i64,
}

impl Sweep for Building {
    fn calls(&mut self, calls: &SlabOfCalls<'_>) {
        // A program that runs goes on defining.
        let new = calls.signatures().get(self.counted.len()..).unwrap_or(&[]);
        self.counted.extend(new.iter().map(counted));
        if new.iter().any(|new| begins_region(new.operation)) {
            self.nest.get_or_insert_default();
        }
        let (mut at, mut looks) = (0, calls.looks().peekable());
        for (repeated, inside) in calls.repeated() {
            self.add(calls, at..repeated, None, &mut looks);
            at = repeated + 1;
            self.add(calls, repeated..at, Some(inside), &mut looks);
        }
        self.add(calls, at..calls.len(), None, &mut looks);
        let (mut passed, mut looks) = (0, calls.looks().peekable());
        for (number, at, chunk) in calls.chunks() {
            self.pass(calls, passed..at);
            passed = at;
            // Of a chunk that is begun, the first call may be in the next slab.
            let Some((enter, ..)) = calls.some(at..calls.len()).next() else {
                continue;
            };
            while let Some((_, look)) = looks.next_if(|(position, _)| *position < at) {
                self.shortest = look.shortest;
            }
            let (chunk, region, shortest) = (chunk.into(), self.region(), self.shortest);
            self.index.marks.pop_if(|last| last.number == number);
            self.index.marks.push(MarkAt {
                enter,
                number,
                chunk,
                region,
                shortest,
            });
        }
        self.shortest = looks
            .last()
            .map_or(self.shortest, |(_, last)| last.shortest);
        self.pass(calls, passed..calls.len());
    }

    fn wait(&mut self, wait: &ShortWait) {
        if wait.lost <= 0 || !wait.pattern.is_waiting() || wait.pattern.is_startup() {
            return;
        }
        match wait.since < wait.enter || wait.lost < wait.until - wait.since {
            true => self.spread(wait),
            false => {
                let checkpoints = &mut self.index.checkpoints;
                // As a rule it is that of the wait before, or one of the next.
                let before = self.next.checked_sub(1).map(|at| &checkpoints[at]);
                if before.is_some_and(|before| before.time >= wait.leave) {
                    self.next = 0;
                }
                self.next += few_before(&checkpoints[self.next..], |one| one.time < wait.leave);
                match checkpoints.get_mut(self.next) {
                    Some(next) => next.waiting += wait.lost,
                    None => self.ahead.push((wait.leave, wait.lost, false)),
                }
            }
        }
        let signature = wait.signature as usize;
        if self.lost.len() <= signature {
            self.lost.resize(signature + 1, 0);
        }
        self.lost[signature] += wait.lost;
        if !self.is_worst(wait) && wait.lost < self.least {
            return;
        }
        let late = wait.late;
        self.waits.push(KeptWait {
            since: wait.since,
            lost: wait.lost,
            until: wait.until,
            enter: wait.enter,
            late_enter: late.map_or(i64::MIN, |late| late.enter),
            // Its thread until all waits are known.
            late_location: late.map_or(0, |late| late.thread),
            late_rank: late.map_or(u32::MAX, |late| late.rank),
            pattern: wait.pattern as u32,
            late_call: late.map_or(0, |late| late.call.into()),
            signature: wait.signature,
            group: wait.group,
        });
        if self.waits.len() >= 2 * self.most {
            self.keep_longest();
        }
    }
}

impl Building {
    fn new(measured: (i64, i64), most: usize) -> Building {
        let sums = Checkpoint {
            time: measured.0,
            ..Checkpoint::default()
        };
        let index = LocationIndex {
            measured,
            checkpoints: vec![sums],
            ..LocationIndex::default()
        };
        Building {
            index,
            waits: Vec::new(),
            lost: Vec::new(),
            worst: Vec::new(),
            counted: Vec::new(),
            nest: None,
            regions: FxHashMap::default(),
            left: CALLS,
            sums,
            next: 0,
            ahead: Vec::new(),
            between: Vec::new(),
            looked: Vec::new(),
            looking: Vec::new(),
            shortest: 0,
            profiled: None,
            most,
            least: 0,
        }
    }

    /// Begins and ends the regions that successive calls begin and end.
    fn pass(&mut self, calls: &SlabOfCalls<'_>, positions: Range<usize>) {
        let Some(nest) = &mut self.nest else {
            return;
        };
        for (.., signature) in calls.some(positions) {
            if let Some(of) = calls.signatures().get(signature as usize) {
                nest.around(of.operation, || signature);
            }
        }
    }

    /// Number of the region in which the thread is; 0 = none, or too many.
    fn region(&mut self) -> u32 {
        let nest = self.nest.iter().map(|nest| nest.0.as_slice());
        let nest = nest.filter(|nest| nest.len() <= NESTED).flatten();
        nest.fold(0, |around, &signature| {
            let regions = &mut self.index.regions;
            let region = RegionAt { around, signature };
            *self.regions.entry(region).or_insert_with(|| {
                regions.push(region);
                regions.len() as u32
            })
        })
    }

    /// Adds successive calls. `inside` is the time in them, if it is not all of that.
    fn add<'l>(
        &mut self,
        calls: &SlabOfCalls<'_>,
        positions: Range<usize>,
        inside: Option<i64>,
        looks: &mut Peekable<impl Iterator<Item = (usize, &'l NotedLook)>>,
    ) {
        let measured = self.index.measured;
        for (at, (enter, leave, signature)) in positions.clone().zip(calls.some(positions)) {
            while let Some((_, noted)) = looks.next_if(|(position, _)| *position == at) {
                let operation = calls.signatures()[signature as usize].operation;
                self.look(noted, (signature, operation), (enter, leave));
            }
            let kind = self.counted.get(signature as usize).copied();
            let kind = kind.unwrap_or(NOTHING);
            if kind >= CHANGE {
                if kind == CHANGE && self.index.changes.len() < CHANGES {
                    let parameter = calls.signatures()[signature as usize].parameter;
                    let time = enter;
                    self.index.changes.push(ChangeAt { time, parameter });
                }
                continue;
            }
            let lasted = leave - enter;
            let mut inside = inside.unwrap_or(lasted);
            if enter < measured.0 || leave > measured.1 {
                inside = scaled(inside, overlap((enter, leave), measured), lasted);
            }
            self.sums.inside[usize::from(kind)] += inside;
            self.sums.time = self.sums.time.max(leave.min(measured.1));
            self.left -= 1;
            if self.left == 0 {
                self.left = self.index.between();
                self.check();
            }
        }
    }

    /// Takes looks of which the checkpoint is still to come.
    fn look(
        &mut self,
        NotedLook { look, at, .. }: &NotedLook,
        (signature, operation): (u32, u16),
        (enter, leave): (i64, i64),
    ) {
        if at.place == NONE || !(look.is_vain || at.ends) {
            return;
        }
        let place = at.place as usize;
        if self.looking.len() <= place {
            self.looking.resize_with(place + 1, Looking::default);
        }
        let looking = &mut self.looking[place];
        if look.calls > 0 {
            (looking.signature, looking.kind) = (signature, kind_of(operation));
        }
        let next = self.index.checkpoints.len();
        looking.open.add(next, look.between);
        if look.is_vain {
            let between = |before| (next, look.between - look.before + before);
            let (run, vain) = (&mut looking.run, &mut looking.vain);
            run.take((look, at.row, leave - enter), between, |(next, between)| {
                vain.add(next, between);
            });
            return;
        }
        looking.found = Some(enter);
        looking.run = Run::default();
        looking.vain.0.clear();
        let open = std::mem::take(&mut looking.open);
        looking.counted += count(&mut self.between, looking.kind, &open);
    }

    /// Adds a wait in looks to the checkpoints that it reaches to.
    fn spread(&mut self, wait: &ShortWait) {
        let up_to = |time: i64| scaled(wait.lost, time - wait.since, wait.until - wait.since);
        let checkpoints = &self.index.checkpoints;
        let mut at = checkpoints.partition_point(|one| one.time <= wait.since);
        let mut begin = wait.since;
        while let Some(next) = checkpoints.get(at).filter(|_| begin < wait.until) {
            let end = next.time.min(wait.until);
            let most = self.looked.len().max(at + 1);
            self.looked.resize(most, 0);
            self.looked[at] += up_to(end) - up_to(begin);
            (begin, at) = (end, at + 1);
        }
        let rest = wait.lost - up_to(begin);
        if begin < wait.until && rest > 0 {
            self.ahead.push((wait.until, rest, true));
        }
    }

    /// Adds a checkpoint; moments ascend, and one at the same moment replaces the last.
    fn check(&mut self) {
        let mut sums = self.sums;
        let checkpoints = &mut self.index.checkpoints;
        if let Some(last) = checkpoints.pop_if(|last| last.time >= sums.time) {
            sums.waiting = last.waiting;
        }
        let (at, looked) = (checkpoints.len(), &mut self.looked);
        self.ahead.retain(|&(leave, lost, is_looked)| {
            if leave > sums.time {
                return true;
            }
            if is_looked {
                let most = looked.len().max(at + 1);
                looked.resize(most, 0);
                looked[at] += lost;
            } else {
                sums.waiting += lost;
            }
            false
        });
        checkpoints.push(sums);
    }

    /// Keeps every other checkpoint, and the last one.
    fn thin(&mut self) {
        let checkpoints = &mut self.index.checkpoints;
        let last = checkpoints.len().saturating_sub(1);
        let (mut at, mut waiting) = (0, 0);
        checkpoints.retain_mut(|one| {
            waiting += one.waiting;
            let is_kept = at % 2 == 0 || at == last;
            if is_kept {
                one.waiting = std::mem::take(&mut waiting);
            }
            at += 1;
            is_kept
        });
        let (before, kept) = (last + 1, checkpoints.len());
        let now = |at: usize| match at {
            _ if at >= before => kept + at - before,
            _ if at == last => kept - 1,
            _ => at.div_ceil(2),
        };
        let (mut between, mut looked) = (Vec::new(), Vec::new());
        for (at, times) in self.between.iter().enumerate() {
            between.resize(now(at) + 1, [0; KINDS]);
            let sums = between[now(at)].iter_mut();
            sums.zip(times).for_each(|(sum, time)| *sum += time);
        }
        for (at, time) in self.looked.iter().enumerate() {
            looked.resize(now(at) + 1, 0);
            looked[now(at)] += time;
        }
        (self.between, self.looked) = (between, looked);
        for one in &mut self.looking {
            for amounts in [&mut one.open.0, &mut one.vain.0, &mut one.run.kept] {
                amounts.iter_mut().for_each(|(at, _)| *at = now(*at));
            }
        }
        self.index.coarser += 1;
        self.next = 0;
    }

    /// `places` are the positions of ranks' threads.
    fn finish(mut self, places: &FxHashMap<(u32, u32), u32>) -> LocationIndex {
        self.check();
        let (begin, end) = self.index.measured;
        if let Some(inside) = self.profiled.filter(|_| begin < end) {
            let end = Checkpoint {
                time: end,
                inside,
                waiting: 0,
            };
            self.index.checkpoints.push(end);
        }
        self.keep_longest();
        for looking in &mut self.looking {
            looking.counted += count(&mut self.between, looking.kind, &looking.vain);
        }
        let (mut index, mut waits) = (self.index, self.waits);
        add_between(&mut index.checkpoints, &self.between);
        // What ends after the last moment was lost before it, too.
        let ahead = |of: bool| {
            let ahead = self.ahead.iter().filter(|ahead| ahead.2 == of);
            ahead.map(|(_, lost, _)| lost).sum::<i64>()
        };
        if let Some(last) = index.checkpoints.last_mut() {
            last.waiting += ahead(false);
            let most = self.looked.len().max(1);
            self.looked.resize(most, 0);
            self.looked[most - 1] += ahead(true);
        }
        add_looked(&mut index.checkpoints, self.looked);
        for wait in &mut waits {
            let late = places.get(&(wait.late_rank, wait.late_location));
            wait.late_location = late.copied().unwrap_or(u32::MAX);
        }
        // By when they began. Those that began at once have an order, too, whoever told them first.
        waits.sort_unstable();
        waits.shrink_to_fit();
        index.waits = Waits::new(waits);
        let mut sums: BTreeMap<u32, (i64, i64)> = BTreeMap::new();
        for (signature, lost) in (0..).zip(self.lost).filter(|(_, lost)| *lost > 0) {
            sums.entry(signature).or_default().0 = lost;
        }
        for looking in self.looking.iter().filter(|looking| looking.counted > 0) {
            sums.entry(looking.signature).or_default().1 += looking.counted;
        }
        let lost = sums.into_iter().map(|(signature, (lost, between))| LostBy {
            signature,
            lost,
            between,
        });
        index.lost = lost.collect();
        let places = (0..).zip(&self.looking);
        let places = places.map(|(place, looking)| LooksAt {
            place,
            found: looking.found.unwrap_or(i64::MIN),
        });
        index.looks = places.collect();
        let mut sum = 0;
        for checkpoint in &mut index.checkpoints {
            sum += checkpoint.waiting;
            checkpoint.waiting = sum;
        }
        index
    }

    /// Whether no wait of its pattern in a call of its signature was longer so far.
    fn is_worst(&mut self, wait: &ShortWait) -> bool {
        let (signature, pattern) = (wait.signature as usize, wait.pattern as u32);
        if self.worst.len() <= signature {
            self.worst.resize(signature + 1, Vec::new());
        }
        let of_call = &mut self.worst[signature];
        match of_call.iter_mut().find(|(other, _)| *other == pattern) {
            Some((_, worst)) => {
                let is_worst = *worst <= wait.lost;
                *worst = wait.lost.max(*worst);
                is_worst
            }
            None => {
                of_call.push((pattern, wait.lost));
                true
            }
        }
    }

    /// Keeps the longest waits; of equal ones the first. The longest of a pattern in calls of a signature are among
    /// these, as many as half of all: reports name them, and waits of other patterns may all be longer.
    fn keep_longest(&mut self) {
        let (waits, most) = (&mut self.waits, self.most);
        if waits.len() <= most {
            return;
        }
        waits.sort_unstable_by_key(|wait| (-wait.lost, *wait));
        let mut seen = FxHashSet::default();
        let is_worst = waits
            .iter()
            .map(|wait| seen.len() < most / 2 && seen.insert((wait.pattern, wait.signature)));
        let mut is_worst = is_worst.collect::<Vec<_>>().into_iter();
        let mut left = most - seen.len();
        let mut least = None;
        waits.retain(|wait| {
            if is_worst.next() == Some(true) {
                return true;
            }
            if left == 0 {
                least.get_or_insert(wait.lost);
                return false;
            }
            left -= 1;
            true
        });
        self.least = least.unwrap_or(self.least);
    }
}

/// Adds amounts of a kind to those by checkpoint. Returns their sum.
fn count(between: &mut Vec<[i64; KINDS]>, kind: usize, amounts: &Amounts) -> i64 {
    let most = amounts.0.last().map_or(0, |last| last.0 + 1);
    between.resize(between.len().max(most), [0; KINDS]);
    let counted = amounts.0.iter().map(|&(at, amount)| {
        between[at][kind] += amount;
        amount
    });
    counted.sum()
}

/// Adds what counts of the time between looks to the time in calls.
fn add_between(checkpoints: &mut [Checkpoint], between: &[[i64; KINDS]]) {
    let mut sums = [0; KINDS];
    let beyond = between.get(checkpoints.len()..).unwrap_or_default();
    let last = checkpoints.len().saturating_sub(1);
    for (at, checkpoint) in checkpoints.iter_mut().enumerate() {
        let beyond = beyond.iter().filter(|_| at == last);
        for times in between.get(at).into_iter().chain(beyond) {
            let times = sums.iter_mut().zip(times);
            times.for_each(|(sum, time)| *sum += time);
        }
        let inside = checkpoint.inside.iter_mut().zip(sums);
        inside.for_each(|(inside, sum)| *inside += sum);
    }
}

/// Adds what waits in looks lost to the waiting, where there is time in calls for it.
fn add_looked(checkpoints: &mut [Checkpoint], mut looked: Vec<i64>) {
    if checkpoints.is_empty() || looked.iter().all(|&lost| lost == 0) {
        return;
    }
    let beyond: i64 = looked.drain(checkpoints.len().min(looked.len())..).sum();
    looked.resize(checkpoints.len(), 0);
    let last = looked.len() - 1;
    looked[last] += beyond;
    let inside = |at: usize| -> i64 { checkpoints[at].inside.iter().sum() };
    let room = |at: usize| {
        let before = at.checked_sub(1).map_or(0, inside);
        inside(at) - before - checkpoints[at].waiting
    };
    looked[last] += fit(&mut looked, room);
    let waits = checkpoints.iter_mut().zip(looked);
    waits.for_each(|(checkpoint, lost)| checkpoint.waiting += lost);
}
