//! What a late party did while others waited for it.

use super::columns::Columns;
use super::table::{Row, TimeClass};

/// Parts of a waiting interval, by what the late party did in it. ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Outside of all operations, or only managing handles.
    pub computation: i64,
    /// Inside communication or synchronisation.
    pub waiting: i64,
    /// Inside file operations.
    pub io: i64,
    /// Signature of the operation in which most of `waiting` went by, 0 = none.
    pub other: u32,
}

impl Activity {
    /// Adds time inside an operation.
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
}

/// Windows of so many calls are added up without [`Inside`].
const FEW: usize = 24;

/// Time inside operations before each call of a slab, so that a window of calls costs
/// two look-ups. ns.
#[derive(Debug, Default)]
pub struct Inside {
    waiting: Vec<i64>,
    io: Vec<i64>,
}

impl Inside {
    /// Sums over the calls of `columns`.
    pub fn new(columns: &Columns, rows: &[Row]) -> Inside {
        let mut inside = Inside::default();
        let mut sum = Activity::default();
        for at in 0..=columns.enter.len() {
            inside.waiting.push(sum.waiting);
            inside.io.push(sum.io);
            if at < columns.enter.len() {
                let time = columns.leave[at] - columns.enter[at];
                sum.add(class(columns, rows, at), time);
            }
        }
        inside
    }
}

fn class(columns: &Columns, rows: &[Row], at: usize) -> TimeClass {
    rows.get(columns.signature[at] as usize)
        .map_or(TimeClass::Setup, |row| row.class)
}

/// Activity of a location from `since` until it entered the call at `position`, as far
/// as the calls from the one at `oldest` on tell. `sums` are those over all of `columns`.
pub fn before<'s>(
    columns: &Columns,
    rows: &[Row],
    sums: impl FnOnce() -> &'s Inside,
    oldest: usize,
    position: usize,
    since: i64,
) -> Activity {
    let until = columns.enter[position];
    let mut activity = Activity::default();
    if until <= since {
        return activity;
    }
    let first = oldest + first_after(&columns.leave[oldest..position], since);
    if position - first <= FEW {
        for at in first..position {
            activity.add(
                class(columns, rows, at),
                columns.leave[at] - columns.enter[at],
            );
        }
    } else {
        let inside = sums();
        activity.waiting = inside.waiting[position] - inside.waiting[first];
        activity.io = inside.io[position] - inside.io[first];
    }
    // The first call may have begun before the window.
    if first < position && columns.enter[first] < since {
        activity.add(class(columns, rows, first), columns.enter[first] - since);
    }
    // Before its first call a location computed; before the look-back nobody knows.
    let begins = if first > oldest || (oldest == 0 && columns.number == 0) {
        since
    } else {
        columns
            .enter
            .get(first)
            .map_or(since, |&enter| enter.max(since))
    };
    activity.computation = (until - begins - activity.waiting - activity.io).max(0);
    if activity.waiting > activity.computation.max(activity.io) {
        let waits = (first..position).filter(|&at| {
            matches!(
                class(columns, rows, at),
                TimeClass::Communication | TimeClass::Synchronization
            )
        });
        let length = |at: usize| columns.leave[at] - columns.enter[at].max(since);
        let longest = waits.max_by_key(|&at| (length(at), std::cmp::Reverse(at)));
        activity.other = longest.map_or(0, |at| columns.signature[at]);
    }
    activity
}

/// Position of the first of these ascending times that is after `since`. Most windows
/// hold a few calls, so the search begins at the end.
fn first_after(times: &[i64], since: i64) -> usize {
    let mut step = 1;
    let mut end = times.len();
    while step <= end && times[end - step] > since {
        end -= step;
        step *= 2;
    }
    let begin = end.saturating_sub(step);
    begin + times[begin..end].partition_point(|&time| time <= since)
}

#[cfg(test)]
mod tests {
    use super::super::columns::LOOK_BACK;
    use super::*;

    fn columns(calls: &[(i64, i64, u32)]) -> Columns {
        Columns {
            enter: calls.iter().map(|c| c.0).collect(),
            leave: calls.iter().map(|c| c.1).collect(),
            signature: calls.iter().map(|c| c.2).collect(),
            ..Columns::default()
        }
    }

    fn rows() -> Vec<Row> {
        let class = |class| Row {
            class,
            ..Row::UNDEFINED
        };
        vec![
            Row::UNDEFINED,
            class(TimeClass::Communication),
            class(TimeClass::Io),
            class(TimeClass::Synchronization),
        ]
    }

    #[test]
    fn search_from_the_end_finds_what_a_search_from_the_start_does() {
        let times: Vec<i64> = (0..100).map(|n| n * n / 7).collect();
        for length in 0..times.len() {
            for since in -1..1500 {
                let times = &times[..length];
                let expected = times.partition_point(|&time| time <= since);
                assert_eq!(first_after(times, since), expected);
            }
        }
    }

    #[test]
    fn splits_the_window() {
        // 10 computing, 20 in a file, 5 computing, 30 in a barrier, 35 computing, then late.
        let columns = columns(&[(10, 30, 2), (35, 65, 3), (100, 101, 1)]);
        let inside = Inside::new(&columns, &rows());
        let since = |since| before(&columns, &rows(), || &inside, 0, 2, since);
        let parts = |computation, waiting, io| Activity {
            computation,
            waiting,
            io,
            other: 0,
        };
        assert_eq!(since(0), parts(50, 30, 20));
        assert_eq!(since(60), parts(35, 5, 0));
        assert_eq!(since(80), parts(20, 0, 0));
        assert_eq!(since(100), parts(0, 0, 0));
    }

    #[test]
    fn names_the_operation_that_held_the_late_party_up() {
        let columns = columns(&[(0, 5, 1), (10, 65, 3), (70, 71, 1)]);
        let inside = Inside::new(&columns, &rows());
        assert_eq!(before(&columns, &rows(), || &inside, 0, 2, 8).other, 3);
    }

    #[test]
    fn what_is_older_than_the_look_back_is_unknown() {
        let calls: Vec<_> = (0..LOOK_BACK as i64 + 50)
            .map(|n| (n * 10, n * 10 + 4, 1))
            .collect();
        let columns = columns(&calls);
        let inside = Inside::new(&columns, &rows());
        let last = calls.len() - 1;
        let oldest = last - LOOK_BACK;
        let activity = before(&columns, &rows(), || &inside, oldest, last, -1000);
        let calls = LOOK_BACK as i64;
        assert_eq!(
            (activity.waiting, activity.computation),
            (calls * 4, calls * 6)
        );
    }
}
