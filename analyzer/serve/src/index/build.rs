//! Making an index: one sweep over the calls of all locations, in which their waits are found, too.

use std::ops::Range;
use std::path::Path;

use anyhow::Result;
use laggard_comm::Job;
use laggard_engine::events::{
    self, Events, Nest, ShortWait, SlabOfCalls, Sweep, TimeClass, begins_region,
};
use laggard_trace::calls::{self, Call, user::STEER};
use laggard_trace::{Record, Signature, flags};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::{
    CALLS, ChangeAt, Checkpoint, Index, KINDS, KeptWait, LocationIndex, LostBy, MarkAt, RegionAt,
    Waits, few_before, kind,
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
    prepare(&mut locations, &measured(job, events), events, usize::MAX);
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
        let measured = measured(job, events);
        // A start-up may have ended since, or a second one.
        let mut known = self.locations.iter().zip(&measured);
        let has_moved = known.any(|(known, now)| known.index.measured.0 != now.0);
        let mut begins = [u64::from(has_moved || !self.has_gone_on())];
        job.reduce_max(&mut begins);
        if begins != [0] {
            self.trace.begin_again();
            self.locations.clear();
        }
        prepare(&mut self.locations, &measured, events, self.most);
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

/// From when to when each location is measured, ns. Collective.
fn measured(job: &dyn Job, events: &Events) -> Vec<(i64, i64)> {
    let spent = events.spent_of_share(job).into_iter();
    spent.map(|spent| spent.measured).collect()
}

/// Makes all locations ready for their calls until a moment. No more waits are kept than of `most` records.
fn prepare(locations: &mut Vec<Building>, measured: &[(i64, i64)], events: &Events, most: usize) {
    let least = LEAST.max(OF_ALL / events.placed.len().max(1));
    let of_each = most / measured.len().max(1);
    for (at, &measured) in measured.iter().enumerate() {
        let records = of_each.min(events.place(at).records as usize);
        let most = least.max(records / RECORDS);
        match locations.get_mut(at) {
            Some(known) => (known.index.measured, known.most) = (measured, most),
            None => locations.push(Building::new(measured, most)),
        }
    }
}

/// Positions of the locations by rank and thread.
fn places(events: &Events) -> FxHashMap<(u32, u32), u32> {
    let places = (0..).zip(&events.placed);
    let places = places.map(|(at, placed)| ((placed.rank, placed.thread), at));
    places.collect()
}

/// Whether the time of a call counts: regions have other calls in them, and parts belong to the call
/// after them.
pub fn counts(call: Option<&Call>, is_part: bool) -> bool {
    !is_part && !call.is_some_and(Call::is_user)
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
    match is_defined && counts(call, signature.has(flags::PART)) {
        _ if signature.operation == STEER => CHANGE,
        true => kind(TimeClass::of_call(signature.operation, signature.flags)) as u8,
        false => NOTHING,
    }
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
    /// Waits that ended after the last checkpoint: when, and what they lost, ns.
    ahead: Vec<(i64, i64)>,
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
        let mut at = 0;
        for (repeated, inside) in calls.repeated() {
            self.add(calls, at..repeated, None);
            at = repeated + 1;
            self.add(calls, repeated..at, Some(inside));
        }
        self.add(calls, at..calls.len(), None);
        let mut passed = 0;
        for (number, at, chunk) in calls.chunks() {
            self.pass(calls, passed..at);
            passed = at;
            // Of a chunk that is begun, the first call may be in the next slab.
            let Some((enter, ..)) = calls.some(at..calls.len()).next() else {
                continue;
            };
            let (chunk, region) = (chunk.into(), self.region());
            self.index.marks.pop_if(|last| last.number == number);
            self.index.marks.push(MarkAt {
                enter,
                number,
                chunk,
                region,
            });
        }
        self.pass(calls, passed..calls.len());
    }

    fn wait(&mut self, wait: &ShortWait) {
        if wait.lost <= 0 || !wait.pattern.is_waiting() || wait.pattern.is_startup() {
            return;
        }
        let checkpoints = &mut self.index.checkpoints;
        // As a rule it is that of the wait before, or one of the next.
        let before = self.next.checked_sub(1).map(|at| &checkpoints[at]);
        if before.is_some_and(|before| before.time >= wait.leave) {
            self.next = 0;
        }
        self.next += few_before(&checkpoints[self.next..], |one| one.time < wait.leave);
        match checkpoints.get_mut(self.next) {
            Some(next) => next.waiting += wait.lost,
            None => self.ahead.push((wait.leave, wait.lost)),
        }
        let signature = wait.signature as usize;
        if self.lost.len() <= signature {
            self.lost.resize(signature + 1, 0);
        }
        self.lost[signature] += wait.lost;
        if wait.lost < self.least {
            return;
        }
        let late = wait.late;
        self.waits.push(KeptWait {
            since: wait.since,
            lost: wait.lost,
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
            counted: Vec::new(),
            nest: None,
            regions: FxHashMap::default(),
            left: CALLS,
            sums,
            next: 0,
            ahead: Vec::new(),
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
    fn add(&mut self, calls: &SlabOfCalls<'_>, positions: Range<usize>, inside: Option<i64>) {
        let measured = self.index.measured;
        for (enter, leave, signature) in calls.some(positions) {
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

    /// Adds a checkpoint; moments ascend, and one at the same moment replaces the last.
    fn check(&mut self) {
        let mut sums = self.sums;
        let checkpoints = &mut self.index.checkpoints;
        if let Some(last) = checkpoints.pop_if(|last| last.time >= sums.time) {
            sums.waiting = last.waiting;
        }
        self.ahead.retain(|&(leave, lost)| {
            let is_ahead = leave > sums.time;
            sums.waiting += if is_ahead { 0 } else { lost };
            is_ahead
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
        self.index.coarser += 1;
        self.next = 0;
    }

    /// `places` are the positions of ranks' threads.
    fn finish(mut self, places: &FxHashMap<(u32, u32), u32>) -> LocationIndex {
        self.check();
        self.keep_longest();
        let (mut index, mut waits) = (self.index, self.waits);
        // What ends after the last moment was lost before it, too.
        if let Some(last) = index.checkpoints.last_mut() {
            last.waiting += self.ahead.iter().map(|(_, lost)| lost).sum::<i64>();
        }
        for wait in &mut waits {
            let late = places.get(&(wait.late_rank, wait.late_location));
            wait.late_location = late.copied().unwrap_or(u32::MAX);
        }
        // By when they began. Those that began at once have an order, too, whoever told them first.
        waits.sort_unstable();
        waits.shrink_to_fit();
        index.waits = Waits::new(waits);
        let lost = (0..).zip(self.lost).filter(|(_, lost)| *lost > 0);
        let lost = lost.map(|(signature, lost)| LostBy { signature, lost });
        index.lost = lost.collect();
        let mut sum = 0;
        for checkpoint in &mut index.checkpoints {
            sum += checkpoint.waiting;
            checkpoint.waiting = sum;
        }
        index
    }

    /// Keeps the longest waits; of equal ones the first.
    fn keep_longest(&mut self) {
        let (waits, most) = (&mut self.waits, self.most);
        if waits.len() > most {
            let (_, next, _) = waits.select_nth_unstable_by_key(most, |wait| (-wait.lost, *wait));
            self.least = next.lost;
            waits.truncate(most);
        }
    }
}
