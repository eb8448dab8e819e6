//! Making an index: one sweep over the calls of each location, and one run of the matching for waits. Of a trace
//! that has grown, the sweep goes on where the one before it ended.

use std::ops::ControlFlow;

use anyhow::Result;
use laggard_comm::Job;
use laggard_engine::events::{Events, Joined, Mark, TimeClass, Wait};
use laggard_patterns::PatternId;
use laggard_trace::calls::Call;
use laggard_trace::calls::user::STEER;
use laggard_trace::flags;
use rayon::prelude::*;

use super::{CALLS, ChangeAt, Checkpoint, Index, KeptWait, LocationIndex, MarkAt, kind};

/// One wait of so many records is kept, those that lost most.
const RECORDS: usize = 200;
/// So many are kept of a location whatever the number of records, and of all locations together.
const LEAST: usize = 64;
const OF_ALL: usize = 1 << 14;
/// Changes of what is recorded that are kept of a location.
const CHANGES: usize = 256;

/// Where the sweep over a location goes on, if its file grows: before its last chunk.
#[derive(Clone, Debug)]
pub struct Swept {
    mark: Mark,
    /// Enter of the first call there.
    enter: i64,
    /// Calls that count before it, and their sums.
    passed: u64,
    sums: Checkpoint,
    /// How many checkpoints and marks there were, and the last of these checkpoints.
    checkpoints: usize,
    last: Checkpoint,
    marks: usize,
    /// Changes before it.
    changes: usize,
}

/// What was known of a location before.
pub type Before<'b> = (&'b LocationIndex, &'b Swept);

/// Makes the index of this agent's share of a trace. `before` is what is known of its locations already.
/// Collective.
///
/// # Errors
/// The matching fails, since a temporary file cannot be written.
pub fn build<'b>(
    job: &dyn Job,
    events: &Events,
    before: impl Fn(usize) -> Option<Before<'b>> + Sync,
) -> Result<(Index, Vec<Option<Swept>>)> {
    let spent = events.spent_of_share(job);
    let measured: Vec<(i64, i64)> = spent.iter().map(|one| one.measured).collect();
    let locations = measured.into_par_iter().enumerate();
    let locations = locations.map(|(at, measured)| {
        let grown = before(at).and_then(|before| grown(events, at, measured, before));
        grown.unwrap_or_else(|| times(events, at, measured))
    });
    let (locations, swept) = locations.unzip();
    let mut waits = Waits {
        locations,
        most: Vec::new(),
    };
    let least = LEAST.max(OF_ALL / events.placed.len().max(1));
    let most = |at| least.max(events.place(at).records as usize / RECORDS);
    waits.most = (0..events.locations()).map(most).collect();
    events.join_share(job, &mut waits)?;
    Ok((waits.finish(), swept))
}

/// Everything but waiting.
fn times(events: &Events, at: usize, measured: (i64, i64)) -> (LocationIndex, Option<Swept>) {
    let sums = Checkpoint {
        time: measured.0,
        ..Checkpoint::default()
    };
    let index = LocationIndex {
        measured,
        checkpoints: vec![sums],
        ..LocationIndex::default()
    };
    // Without a begin that must be the same, it never fails.
    sweep(events, at, index, (Mark::default(), 0, sums), None).unwrap_or_default()
}

/// The same, from where the sweep before had ended; `None` if times have changed since.
fn grown(
    events: &Events,
    at: usize,
    measured: (i64, i64),
    (before, swept): Before,
) -> Option<(LocationIndex, Option<Swept>)> {
    // What was measured is cut off at its end, which may be later now.
    let is_whole = before.measured.0 == measured.0 && swept.sums.time < before.measured.1;
    let mut checkpoints = before.checkpoints.get(..swept.checkpoints)?.to_vec();
    *checkpoints.last_mut()? = swept.last;
    // Waiting is found anew.
    checkpoints.iter_mut().for_each(|one| one.waiting = 0);
    let index = LocationIndex {
        measured,
        checkpoints,
        marks: before.marks.get(..swept.marks)?.to_vec(),
        waits: Vec::new(),
        changes: before.changes.get(..swept.changes)?.to_vec(),
    };
    let begin = (swept.mark, swept.passed, swept.sums);
    match is_whole && begins_alike(events, at, before) {
        true => sweep(events, at, index, begin, Some(swept.enter)),
        false => None,
    }
}

/// Whether the first calls still have the times that they had: clocks may be known better by now.
fn begins_alike(events: &Events, at: usize, before: &LocationIndex) -> bool {
    let mut first = None;
    let _ = events.operations(at).read_chunk(|operation| {
        first = Some(operation.enter);
        ControlFlow::Break(())
    });
    first.is_some() && first == before.marks.first().map(|mark| mark.enter)
}

/// Reads on from a mark, before which so many calls with these sums were. `None` if the first call there
/// does not begin at `enter`.
fn sweep(
    events: &Events,
    at: usize,
    mut index: LocationIndex,
    (mark, mut passed, mut sums): (Mark, u64, Checkpoint),
    enter: Option<i64>,
) -> Option<(LocationIndex, Option<Swept>)> {
    let measured = index.measured;
    let mut operations = events.operations_from(at, mark);
    let mut swept = None;
    loop {
        let mark = operations.mark();
        let mut here = Swept {
            mark,
            enter: 0,
            passed,
            sums,
            checkpoints: index.checkpoints.len(),
            last: *index.checkpoints.last()?,
            marks: index.marks.len(),
            changes: index.changes.len(),
        };
        let mut first = None;
        let read = operations.read_chunk(|operation| {
            first.get_or_insert(operation.enter);
            let signature = operation.signature;
            if signature.operation == STEER && index.changes.len() < CHANGES {
                index.changes.push(ChangeAt {
                    time: operation.enter,
                    parameter: signature.parameter,
                });
            }
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
            here.enter = enter;
        }
        if swept.is_none() && enter.is_some() && enter != first {
            return None;
        }
        if first.is_some() {
            swept = Some(here);
        }
        if read.is_none() {
            push(&mut index.checkpoints, sums);
            return Some((index, swept));
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
