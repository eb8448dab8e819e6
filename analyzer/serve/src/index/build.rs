//! Making an index: one sweep over the calls of each location, and one run of the matching for waits.

use std::ops::ControlFlow;

use anyhow::Result;
use laggard_comm::Job;
use laggard_engine::events::{Events, Joined, TimeClass, Wait};
use laggard_patterns::PatternId;
use laggard_trace::calls::Call;
use laggard_trace::flags;
use rayon::prelude::*;

use super::{CALLS, Checkpoint, Index, KeptWait, LocationIndex, MarkAt, kind};

/// One wait of so many records is kept, those that lost most.
const RECORDS: usize = 200;
/// So many are kept of a location whatever the number of records, and of all locations together.
const LEAST: usize = 64;
const OF_ALL: usize = 1 << 14;

/// Makes the index of this agent's share of a trace. Collective.
///
/// # Errors
/// The matching fails, since a temporary file cannot be written.
pub fn build(job: &dyn Job, events: &Events) -> Result<Index> {
    let spent = events.spent_of_share(job);
    let measured: Vec<(i64, i64)> = spent.iter().map(|one| one.measured).collect();
    let locations = measured.into_par_iter().enumerate();
    let locations = locations.map(|(at, measured)| times(events, at, measured));
    let mut waits = Waits {
        locations: locations.collect(),
        most: Vec::new(),
    };
    let least = LEAST.max(OF_ALL / events.placed.len().max(1));
    let most = |at| least.max(events.place(at).records as usize / RECORDS);
    waits.most = (0..events.locations()).map(most).collect();
    events.join_share(job, &mut waits)?;
    Ok(waits.finish())
}

/// Everything but waiting.
fn times(events: &Events, at: usize, measured: (i64, i64)) -> LocationIndex {
    let mut sums = Checkpoint {
        time: measured.0,
        ..Checkpoint::default()
    };
    let mut index = LocationIndex {
        measured,
        checkpoints: vec![sums],
        ..LocationIndex::default()
    };
    let mut operations = events.operations(at);
    let mut passed = 0;
    loop {
        let mark = operations.mark();
        let mut first = None;
        let read = operations.read_chunk(|operation| {
            first.get_or_insert(operation.enter);
            if counts(operation.call, operation.has(flags::PART)) {
                let (enter, leave) = (operation.enter, operation.leave);
                let part = overlap((enter, leave), measured);
                let class =
                    TimeClass::of_call(operation.signature.operation, operation.signature.flags);
                sums.inside[kind(class)] += scaled(operation.inside, part, leave - enter);
                sums.time = sums.time.max(leave.min(measured.1));
                passed += 1;
                if passed % CALLS == 0 {
                    push(&mut index.checkpoints, sums);
                }
            }
            ControlFlow::Continue(())
        });
        if let Some(enter) = first {
            index.marks.push(MarkAt {
                enter,
                number: mark.number,
                chunk: mark.chunk.into(),
            });
        }
        if read.is_none() {
            push(&mut index.checkpoints, sums);
            return index;
        }
    }
}

/// Adds a checkpoint; moments ascend, and one at the same moment replaces the last.
fn push(checkpoints: &mut Vec<Checkpoint>, sums: Checkpoint) {
    match checkpoints.last_mut() {
        Some(last) if last.time >= sums.time => *last = sums,
        _ => checkpoints.push(sums),
    }
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

/// The waits of all locations in the making: `waiting` of a checkpoint is what was lost since the one
/// before.
struct Waits {
    locations: Vec<LocationIndex>,
    /// Most waits that are kept, by location.
    most: Vec<usize>,
}

impl Waits {
    fn finish(mut self) -> Index {
        for (index, most) in self.locations.iter_mut().zip(&self.most) {
            longest(&mut index.waits, *most);
            // By when they began. Those that began at once have an order, too, whoever told them first.
            index.waits.sort_unstable();
            index.waits.shrink_to_fit();
            let mut sum = 0;
            for checkpoint in &mut index.checkpoints {
                sum += checkpoint.waiting;
                checkpoint.waiting = sum;
            }
        }
        Index {
            locations: self.locations,
        }
    }
}

/// Keeps the longest waits; of equal ones the first.
fn longest(waits: &mut Vec<KeptWait>, most: usize) {
    if waits.len() > most {
        waits.select_nth_unstable_by_key(most, |wait| (-wait.lost, *wait));
        waits.truncate(most);
    }
}

impl Joined for Waits {
    fn wants_messages(&self) -> bool {
        false
    }

    fn wait(&mut self, wait: &Wait) -> Result<()> {
        let pattern = PatternId::from_number(wait.pattern);
        if wait.lost <= 0 || !pattern.is_some_and(|one| one.is_waiting() && !one.is_startup()) {
            return Ok(());
        }
        let at = wait.location as usize;
        let index = &mut self.locations[at];
        let checkpoints = &mut index.checkpoints;
        // What ends after the last moment was lost before it, too.
        let next = checkpoints.partition_point(|one| one.time < wait.leave);
        let next = next.min(checkpoints.len() - 1);
        checkpoints[next].waiting += wait.lost;
        let late = wait.cause;
        index.waits.push(KeptWait {
            since: wait.since,
            lost: wait.lost,
            enter: wait.enter,
            late_enter: late.map_or(i64::MIN, |late| late.enter),
            late_location: late.map_or(u32::MAX, |late| late.location),
            late_rank: late.map_or(u32::MAX, |late| late.rank),
            pattern: wait.pattern.into(),
            late_call: late.map_or(0, |late| late.call.into()),
        });
        if index.waits.len() >= 2 * self.most[at] {
            longest(&mut index.waits, self.most[at]);
        }
        Ok(())
    }
}
