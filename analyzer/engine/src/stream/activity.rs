//! Activity of a late party while others waited for it.

use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};

use smallvec::SmallVec;

use crate::basics::intern::PathKey;
use crate::stream::columns::{Columns, Instance, LOOK_BACK, OffTimes};
use crate::stream::looks::SPOTS;
use crate::stream::rows::{Row, TimeClass};

/// Parts of a waiting interval by activity of the late party. ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Outside of all operations, or in calls that only manage handles.
    pub computation: i64,
    /// Inside communication or synchronisation.
    pub waiting: i64,
    /// Inside file operations.
    pub io: i64,
    /// Outside of operations, off the processor by itself. In a window of more than [`LOOK_BACK`]
    /// calls, only the last ones count, here and below; the others' is part of `computation`.
    pub blocked: i64,
    /// The same, since another one had the processor.
    pub preempted: i64,
    /// Largest part of `waiting`, if it is at least a quarter of all. In a window of more than
    /// [`LOOK_BACK`] calls, only the last ones count.
    pub other: Option<Other>,
}

/// Calls of one operation and call path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    /// A signature of these.
    pub signature: u32,
    /// Time in them, ns.
    pub time: i64,
    /// Part of it off the processor, waiting or not.
    pub off: OffTimes,
}

/// Time inside operations since the start of the trace.
#[derive(Clone, Copy, Debug, Default)]
struct Inside {
    waiting: i64,
    io: i64,
}

impl Inside {
    #[inline]
    fn add(&mut self, class: TimeClass, time: i64) {
        match class {
            TimeClass::Setup => {}
            TimeClass::Io => self.io = self.io.saturating_add(time),
            TimeClass::Communication | TimeClass::Synchronization => {
                self.waiting = self.waiting.saturating_add(time);
            }
        }
    }

    #[inline]
    fn add_calls(&mut self, columns: &Columns, rows: &[Row], calls: Range<usize>) {
        let times = columns.enter[calls.clone()]
            .iter()
            .zip(&columns.leave[calls.clone()]);
        for ((enter, leave), &signature) in times.zip(&columns.signature[calls]) {
            self.add(class(rows, signature), leave - enter);
        }
    }

    fn since(self, earlier: Inside) -> Inside {
        Inside {
            waiting: self.waiting - earlier.waiting,
            io: self.io - earlier.io,
        }
    }
}

/// Calls between samples, by level.
const STRIDES: [u64; 3] = [1 << 5, 1 << 10, 1 << 15];
/// Up to this many calls are added up without samples.
const FEW: usize = STRIDES[0] as usize;
/// Samples kept per level: windows of up to this multiple of the largest stride are known.
const SAMPLES: u64 = 256;

#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Enter of the call at it, ns.
    enter: i64,
    /// Time before that call.
    inside: Inside,
}

/// Samples of one stride.
#[derive(Debug, Default)]
struct Level {
    samples: VecDeque<Sample>,
    /// Number of samples dropped at the front.
    dropped: u64,
}

impl Level {
    fn get(&self, sample: u64) -> Option<&Sample> {
        self.samples
            .get(usize::try_from(sample.checked_sub(self.dropped)?).ok()?)
    }

    /// Number of the first sample after `moment`.
    fn after(&self, moment: i64) -> u64 {
        let (a, b) = self.samples.as_slices();
        let is_before = |sample: &Sample| sample.enter <= moment;
        let after = match b.first() {
            Some(first) if is_before(first) => a.len() + b.partition_point(is_before),
            _ => a.partition_point(is_before),
        };
        self.dropped + after as u64
    }
}

/// Time inside operations before calls of a location. Samples are denser for later calls, so that a
/// window of any length costs little.
#[derive(Debug, Default)]
pub struct History {
    levels: [Level; STRIDES.len()],
    sum: Inside,
}

impl History {
    /// A new slab begins.
    pub fn turn(&mut self, columns: &Columns) {
        for (level, stride) in self.levels.iter_mut().zip(STRIDES) {
            // Keeps the samples that a call in memory may need.
            while level.dropped + SAMPLES < columns.number / stride {
                level.samples.pop_front();
                level.dropped += 1;
            }
        }
    }

    /// Takes the next call.
    #[inline(always)]
    pub fn add(&mut self, call: &Instance, row: &Row) {
        if call.number.is_multiple_of(STRIDES[0]) {
            self.sample(call.number, call.enter);
        }
        self.sum.add(row.class, call.leave - call.enter);
    }

    fn sample(&mut self, number: u64, enter: i64) {
        let inside = self.sum;
        for (level, stride) in self.levels.iter_mut().zip(STRIDES) {
            if number.is_multiple_of(stride) {
                level.samples.push_back(Sample { enter, inside });
            }
        }
    }

    /// Time inside operations before the call at `position`. The calls of a stride before it must
    /// be in memory.
    fn before(&self, columns: &Columns, rows: &[Row], position: usize) -> Inside {
        let number = columns.number + position as u64;
        let first = position - (number % STRIDES[0]) as usize;
        let sample = self.levels[0].get(number / STRIDES[0]);
        let mut sum = sample.map_or(Inside::default(), |sample| sample.inside);
        sum.add_calls(columns, rows, first..position);
        sum
    }

    /// Time inside operations before `moment`, which precedes the call with this `number`.
    /// Interpolates between samples. Also returns the moment from which on it is known: `moment`,
    /// or later if that is too long ago.
    fn long_before(&self, number: u64, moment: i64) -> Option<(Inside, i64)> {
        let mut oldest = None;
        for (level, stride) in self.levels.iter().zip(STRIDES) {
            let end = number / stride;
            let first = level.get(end.saturating_sub(SAMPLES))?;
            let after = level.after(moment).min(end);
            if first.enter > moment {
                oldest = Some((first.inside, first.enter));
                continue;
            }
            let (one, two) = (level.get(after.checked_sub(1)?)?, level.get(after)?);
            let whole = two.enter.saturating_sub(one.enter).max(1);
            let part = moment.saturating_sub(one.enter).clamp(0, whole);
            let share =
                |time: i64| (i128::from(time) * i128::from(part) / i128::from(whole)) as i64;
            let between = two.inside.since(one.inside);
            let inside = Inside {
                waiting: one.inside.waiting + share(between.waiting),
                io: one.inside.io + share(between.io),
            };
            return Some((inside, moment));
        }
        oldest
    }
}

#[inline]
fn class(rows: &[Row], signature: u32) -> TimeClass {
    rows.get(signature as usize)
        .map_or(TimeClass::Setup, |row| row.class)
}

/// Activity of a location from `since` until it entered the call at `position`. `paths` are the
/// call paths of its signatures.
#[inline]
pub fn before(
    columns: &Columns,
    rows: &[Row],
    paths: &[PathKey],
    history: &History,
    position: usize,
    since: i64,
) -> Activity {
    let until = columns.enter[position];
    let mut activity = Activity::default();
    if until <= since {
        return activity;
    }
    let oldest = position.saturating_sub(LOOK_BACK);
    let (first, few) = match few_after(columns, rows, oldest..position, since) {
        Some((first, inside)) => (first, Some(inside)),
        None => {
            let leaves = &columns.leave[oldest..position];
            (oldest + leaves.partition_point(|&time| time <= since), None)
        }
    };
    let is_at_hand = first > oldest || columns.number + oldest as u64 == 0;
    let mut begins = since;
    let inside = if is_at_hand {
        let mut inside = few.unwrap_or_else(|| {
            let before = history.before(columns, rows, first);
            history.before(columns, rows, position).since(before)
        });
        // The first call may have begun before the window.
        if first < position && columns.enter[first] < since {
            let class = class(rows, columns.signature[first]);
            inside.add(class, columns.enter[first] - since);
        }
        inside
    } else {
        let number = columns.number + oldest as u64;
        match history.long_before(number, since) {
            Some((before, known_since)) => {
                begins = known_since.max(since);
                history.before(columns, rows, position).since(before)
            }
            None => return activity,
        }
    };
    (activity.waiting, activity.io) = (inside.waiting, inside.io);
    activity.computation = (until - begins - activity.waiting - activity.io).max(0);
    let known = activity.computation + activity.waiting + activity.io;
    if !columns.off.is_empty() {
        // Who sleeps between looks at something waits for it.
        let looking = between_looks((columns, rows, paths), first..=position, since);
        let looking = looking.min(activity.computation);
        activity.waiting += looking;
        activity.computation -= looking;
        let [blocked, preempted] = off(columns, first..=position, since);
        activity.blocked = blocked.min(activity.computation);
        activity.preempted = preempted.min(activity.computation - activity.blocked);
        activity.computation -= activity.blocked + activity.preempted;
    }
    // The report names waiting from a quarter on.
    if activity.waiting > 0 && activity.waiting >= known / 4 {
        activity.other = longest(columns, rows, paths, first..position, since);
    }
    activity
}

/// Time off the processor before these calls and after `since`, ns: by itself, and since another one
/// had the processor. Of a stretch that began earlier, its share.
fn off(columns: &Columns, calls: RangeInclusive<usize>, since: i64) -> OffTimes {
    let begin = columns.off.partition_point(|(at, _)| at < calls.start());
    let mut sums = [0i64; 2];
    for &(at, times) in &columns.off[begin..] {
        if at > *calls.end() {
            break;
        }
        let left = at.checked_sub(1).map_or(since, |last| columns.leave[last]);
        add_part(&mut sums, times.before, (left, columns.enter[at]), since);
    }
    sums
}

/// The calls of a slab, and the rows and call paths of their signatures.
type Calls<'c> = (&'c Columns, &'c [Row], &'c [PathKey]);

/// Time asleep between looks in vain, before these calls and after `since`, ns.
fn between_looks(all: Calls, calls: RangeInclusive<usize>, since: i64) -> i64 {
    let columns = all.0;
    let first = calls.start().saturating_sub(1);
    let begin = columns.off.partition_point(|(at, _)| *at < first);
    let looks = columns.off[begin..].iter();
    let looks = looks.take_while(|(at, _)| at < calls.end());
    looks
        .map(|(at, times)| slept(all, *at, times.after, since))
        .sum()
}

/// The share after `since` of what a thread slept after a look until it looked there again, ns.
fn slept(all: Calls, at: usize, after: i64, since: i64) -> i64 {
    let columns = all.0;
    let Some(&next) = columns.enter.get(at + 1).filter(|_| after > 0) else {
        return 0;
    };
    if !is_looked_at_again(all, at + 1) {
        return 0;
    }
    let mut slept = [0; 2];
    add_part(&mut slept, [after, 0], (columns.leave[at], next), since);
    slept[0]
}

/// Whether this call is a look where one of the last looks before it was, too. Who sleeps before the first look
/// at something does not sleep between looks at it.
fn is_looked_at_again((columns, rows, paths): Calls, at: usize) -> bool {
    let spot = |at: usize| {
        let signature = columns.signature[at] as usize;
        let row = rows.get(signature).filter(|row| row.looks)?;
        Some((row.operation, *paths.get(signature)?))
    };
    let Some(own) = spot(at) else {
        return false;
    };
    let before = (at.saturating_sub(SPOTS)..at).rev().map(spot);
    let mut looks = before.take_while(Option::is_some);
    looks.any(|other| other == Some(own))
}

/// Adds the share after `since` of times within this interval.
fn add_part(sums: &mut OffTimes, times: OffTimes, (begin, end): (i64, i64), since: i64) {
    let whole = end - begin;
    let part = (end - begin.max(since)).max(0);
    for (sum, time) in sums.iter_mut().zip(times) {
        let time = match part < whole {
            true => (i128::from(time) * i128::from(part) / i128::from(whole)) as i64,
            false => time,
        };
        *sum = sum.saturating_add(time.clamp(0, part));
    }
}

/// Operation and call path, and what is known of them.
type Sum = ((u16, PathKey), Other);

/// The operation and call path with the largest time for communication or synchronisation after
/// `since` in these calls.
fn longest(
    columns: &Columns,
    rows: &[Row],
    paths: &[PathKey],
    window: Range<usize>,
    since: i64,
) -> Option<Other> {
    let waits = window.filter_map(|at| {
        let signature = columns.signature[at];
        let row = rows.get(signature as usize)?;
        let path = paths.get(signature as usize)?;
        if matches!(row.class, TimeClass::Setup | TimeClass::Io) {
            return None;
        }
        let (enter, leave) = (columns.enter[at], columns.leave[at]);
        let mut other = Other {
            signature,
            time: leave - enter.max(since),
            off: [0; 2],
        };
        if let Ok(found) = columns.off.binary_search_by_key(&at, |(at, _)| *at) {
            let times = columns.off[found].1;
            add_part(&mut other.off, times.inside, (enter, leave), since);
            other.time += slept((columns, rows, paths), at, times.after, since);
        }
        Some(((row.operation, *path), other))
    });
    // Most windows hold one or two.
    let is_one = waits.clone().nth(1).is_none();
    if is_one {
        return waits.map(|(_, other)| other).next();
    }
    let mut sums: SmallVec<[Sum; 4]> = SmallVec::new();
    for (key, other) in waits {
        match sums.iter_mut().find(|(known, _)| *known == key) {
            Some((_, sum)) => {
                sum.time = sum.time.saturating_add(other.time);
                for (sum, time) in sum.off.iter_mut().zip(other.off) {
                    *sum = sum.saturating_add(time);
                }
            }
            None => sums.push((key, other)),
        }
    }
    let longest = sums
        .into_iter()
        .max_by_key(|(key, other)| (other.time, std::cmp::Reverse(*key)));
    longest.map(|(_, other)| other)
}

/// Position of the first of these calls that was left after `since`, and the time inside operations
/// from it on, if these are few. Most windows hold a few calls, so the search begins at the end.
#[inline(always)]
fn few_after(
    columns: &Columns,
    rows: &[Row],
    calls: Range<usize>,
    since: i64,
) -> Option<(usize, Inside)> {
    let few = calls.start.max(calls.end.saturating_sub(FEW))..calls.end;
    let times = columns.enter[few.clone()]
        .iter()
        .zip(&columns.leave[few.clone()]);
    let last = times.zip(&columns.signature[few.clone()]).zip(few).rev();
    let (mut first, mut inside) = (calls.end, Inside::default());
    for (((enter, &leave), &signature), at) in last {
        if leave <= since {
            return Some((first, inside));
        }
        inside.add(class(rows, signature), leave - enter);
        first = at;
    }
    (first == calls.start).then_some((first, inside))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::columns::Off;

    fn columns(calls: &[(i64, i64, u32)]) -> Columns {
        Columns {
            enter: calls.iter().map(|c| c.0).collect(),
            leave: calls.iter().map(|c| c.1).collect(),
            signature: calls.iter().map(|c| c.2).collect(),
            ..Columns::default()
        }
    }

    fn other(signature: u32, time: i64) -> Other {
        Other {
            signature,
            time,
            off: [0; 2],
        }
    }

    fn rows() -> Vec<Row> {
        let row = |operation, class| Row {
            operation,
            class,
            ..Row::UNDEFINED
        };
        vec![
            Row::UNDEFINED,
            row(1, TimeClass::Communication),
            row(2, TimeClass::Io),
            Row {
                looks: true,
                ..row(3, TimeClass::Synchronization)
            },
            row(1, TimeClass::Communication),
        ]
    }

    fn take(history: &mut History, columns: &Columns, rows: &[Row]) {
        history.turn(columns);
        for call in columns.slab() {
            history.add(&call, &rows[call.signature as usize]);
        }
    }

    fn at(columns: &Columns, position: usize, since: i64) -> Activity {
        let mut history = History::default();
        take(&mut history, columns, &rows());
        let paths = vec![PathKey::default(); 5];
        before(columns, &rows(), &paths, &history, position, since)
    }

    #[test]
    fn a_few_calls_are_found_and_added_up() {
        let calls: Vec<_> = (0..70).map(|n| (20 * n, 20 * n + 7, 1)).collect();
        for length in [0, 1, 2, FEW - 1, FEW, FEW + 1, 70] {
            let columns = columns(&calls[..length]);
            for since in -1..1500 {
                let first = columns.leave.partition_point(|&leave| leave <= since);
                let found = few_after(&columns, &rows(), 0..length, since);
                let found = found.map(|(at, inside)| (at, inside.waiting));
                let expected = (first, 7 * (length - first) as i64);
                let is_few = length - first < FEW || length == FEW;
                assert_eq!(found, is_few.then_some(expected), "{length} {since}");
            }
        }
    }

    #[test]
    fn splits_the_window() {
        // 10 computation, 20 in a file, 5 computation, 30 in a barrier, 35 computation, then late.
        let columns = columns(&[(10, 30, 2), (35, 65, 3), (100, 101, 1)]);
        let parts = |computation, waiting, io| Activity {
            computation,
            waiting,
            io,
            ..Activity::default()
        };
        // A quarter of waiting is named, less is not.
        let named = Activity {
            other: Some(other(3, 30)),
            ..parts(50, 30, 20)
        };
        assert_eq!(at(&columns, 2, 0), named);
        assert_eq!(at(&columns, 2, 60), parts(35, 5, 0));
        assert_eq!(at(&columns, 2, 80), parts(20, 0, 0));
        assert_eq!(at(&columns, 2, 100), parts(0, 0, 0));
    }

    #[test]
    fn time_off_the_processor_has_its_share_of_the_window() {
        let mut columns = columns(&[(10, 20, 1), (20, 30, 1), (80, 90, 1)]);
        // Before the second call there is no time, whatever its record tells.
        let before = |before| Off {
            before,
            ..Off::default()
        };
        columns.off = vec![(1, before([5, 5])), (2, before([20, 10]))];
        for (since, blocked, preempted) in [(15, 20, 10), (25, 20, 10), (55, 10, 5), (80, 0, 0)] {
            let activity = at(&columns, 2, since);
            let off = (activity.blocked, activity.preempted);
            assert_eq!(off, (blocked, preempted), "{since}");
            let sum = activity.computation + activity.waiting + blocked + preempted;
            assert_eq!(sum, 80 - since);
        }
    }

    #[test]
    fn sleep_between_looks_is_waiting() {
        let mut columns = columns(&[(10, 20, 3), (60, 70, 3), (80, 90, 1)]);
        let after = |after| Off {
            after,
            ..Off::default()
        };
        columns.off = vec![(0, after(36)), (1, after(0))];
        for (since, waiting, computation) in [(10, 56, 14), (40, 28, 12), (60, 10, 10)] {
            let activity = at(&columns, 2, since);
            let found = (activity.waiting, activity.computation);
            assert_eq!(found, (waiting, computation), "{since}");
            let named = activity.other.map(|other| other.time);
            assert_eq!(
                named,
                Some(waiting - if since == 40 { 18 } else { 0 }),
                "{since}"
            );
        }
    }

    #[test]
    fn sleep_after_a_look_at_something_else_is_none_between_looks() {
        let after = |after| Off {
            after,
            ..Off::default()
        };
        for (next, computation) in [(3, 10), (1, 50)] {
            let mut columns = columns(&[(10, 20, 3), (60, 70, next), (80, 90, 1)]);
            columns.off = vec![(0, after(40))];
            assert_eq!(at(&columns, 2, 10).computation, computation, "{next}");
        }
    }

    #[test]
    fn names_the_operation_that_held_the_late_party_up() {
        let calls = columns(&[(0, 5, 1), (10, 65, 3), (70, 71, 1)]);
        assert_eq!(at(&calls, 2, 8).other, Some(other(3, 55)));
        // Other messages with the same operation and call path count together.
        let calls = columns(&[(0, 20, 1), (20, 45, 3), (46, 66, 4), (70, 71, 1)]);
        assert_eq!(at(&calls, 3, 0).other, Some(other(1, 40)));
    }

    #[test]
    fn time_off_the_processor_in_a_call_has_its_share_of_the_window() {
        let mut columns = columns(&[(0, 20, 1), (20, 60, 3), (70, 71, 1)]);
        let inside = |inside| Off {
            inside,
            ..Off::default()
        };
        columns.off = vec![(0, inside([0, 20])), (1, inside([8, 90]))];
        for (since, off) in [(0, [8, 40]), (20, [8, 40]), (50, [2, 10])] {
            let found = at(&columns, 2, since).other;
            assert_eq!(found.map(|other| other.off), Some(off), "{since}");
        }
    }

    /// Calls of 4 ns every 10 ns; every fifth is in a file.
    fn many(calls: usize) -> Vec<(i64, i64, u32)> {
        let call = |n: i64| (n * 10, n * 10 + 4, if n % 5 == 0 { 2 } else { 1 });
        (0..calls as i64).map(call).collect()
    }

    #[test]
    fn long_windows_are_added_up_from_samples() {
        let calls = many(LOOK_BACK);
        let columns = columns(&calls);
        for since in (0..calls.len() as i64 * 10 - 20).step_by(7) {
            let position = calls.len() - 1;
            let activity = at(&columns, position, since);
            let part = |kind: u32| -> i64 {
                let calls = calls[..position].iter().filter(|call| call.2 == kind);
                calls.map(|call| (call.1 - call.0.max(since)).max(0)).sum()
            };
            let (waiting, io) = (part(1), part(2));
            let computation = columns.enter[position] - since - waiting - io;
            assert_eq!(
                (activity.computation, activity.waiting, activity.io),
                (computation, waiting, io)
            );
        }
    }

    /// Slabs of any size give the same result, even for windows longer than the calls in memory.
    #[test]
    fn windows_reach_back_over_slabs() {
        let calls = many(20 * LOOK_BACK);
        let rows = rows();
        let paths = vec![PathKey::default(); 5];
        let mut results = Vec::new();
        for slab in [1, 100, 3 * LOOK_BACK, calls.len()] {
            let mut history = History::default();
            let mut columns = Columns::default();
            for slab in calls.chunks(slab) {
                columns.turn();
                for &(enter, leave, signature) in slab {
                    columns.push(enter, leave, signature);
                }
                take(&mut history, &columns, &rows);
            }
            let position = columns.enter.len() - 1;
            let since = |since| before(&columns, &rows, &paths, &history, position, since);
            let end = columns.enter[position];
            results.push([since(0), since(12_345), since(end - 15_000)]);
            let all = since(0);
            assert_eq!(all.computation + all.waiting + all.io, end);
            let expected = end * 4 / 50;
            assert!((all.io - expected).abs() <= 40, "{all:?}, {expected}");
        }
        assert!(results.windows(2).all(|two| two[0] == two[1]));
    }

    #[test]
    fn what_is_older_than_the_samples_is_unknown() {
        let rows = rows();
        let paths = vec![PathKey::default(); 5];
        let known = SAMPLES * STRIDES[STRIDES.len() - 1];
        let length = known as i64 + 100_000;
        let mut history = History::default();
        let mut slab = Columns::default();
        for n in 0..length {
            if n % 10_000 == 0 {
                take(&mut history, &slab, &rows);
                slab.turn();
            }
            slab.push(n * 10, n * 10 + 4, 1);
        }
        take(&mut history, &slab, &rows);
        let position = slab.enter.len() - 1;
        let at = |since| before(&slab, &rows, &paths, &history, position, since);
        let sum = |activity: Activity| activity.computation + activity.waiting + activity.io;
        let end = slab.enter[position];
        let activity = at(0);
        assert!((sum(activity) - known as i64 * 10).abs() <= 10 * (1 << 15));
        assert!((activity.waiting - sum(activity) * 4 / 10).abs() <= 4);
        // Known times are right, however long ago.
        for calls in [10, 1_000, 30_000, 1_000_000, 8_000_000] {
            let activity = at(end - calls * 10);
            assert_eq!(sum(activity), calls * 10);
            assert!((activity.waiting - calls * 4).abs() <= 4, "{activity:?}");
        }
    }
}
