//! What a late party did while others waited for it.

use super::columns::{Columns, LOOK_BACK};
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

/// Activity of a location from `since` until it entered the call at `position`,
/// at most [`LOOK_BACK`] calls back.
pub fn before(columns: &Columns, rows: &[Row], position: usize, since: i64) -> Activity {
    let mut activity = Activity::default();
    let mut longest = 0;
    let mut until = columns.enter[position];
    let first = position.saturating_sub(LOOK_BACK);
    for at in (first..position).rev() {
        if until <= since {
            return activity;
        }
        let leave = columns.leave[at].min(until);
        activity.computation += until - leave.max(since);
        if leave <= since {
            return activity;
        }
        let enter = columns.enter[at].max(since).min(leave);
        let inside = leave - enter;
        let signature = columns.signature[at];
        match rows
            .get(signature as usize)
            .map_or(TimeClass::Setup, |row| row.class)
        {
            TimeClass::Setup => activity.computation += inside,
            TimeClass::Io => activity.io += inside,
            TimeClass::Communication | TimeClass::Synchronization => {
                activity.waiting += inside;
                if inside > longest {
                    longest = inside;
                    activity.other = signature;
                }
            }
        }
        until = enter;
    }
    // Before its first call a location computed; before the look-back nobody knows.
    if first == 0 && columns.number == 0 && until > since {
        activity.computation += until - since;
    }
    activity
}

#[cfg(test)]
mod tests {
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
    fn splits_the_window() {
        // 10 computing, 20 in a file, 5 computing, 30 in a barrier, 35 computing, then late.
        let columns = columns(&[(10, 30, 2), (35, 65, 3), (100, 101, 1)]);
        let activity = before(&columns, &rows(), 2, 0);
        assert_eq!(
            activity,
            Activity {
                computation: 50,
                waiting: 30,
                io: 20,
                other: 3
            }
        );
        let activity = before(&columns, &rows(), 2, 60);
        assert_eq!(
            activity,
            Activity {
                computation: 35,
                waiting: 5,
                io: 0,
                other: 3
            }
        );
        let activity = before(&columns, &rows(), 2, 80);
        assert_eq!(
            activity,
            Activity {
                computation: 20,
                ..Activity::default()
            }
        );
        assert_eq!(before(&columns, &rows(), 2, 100), Activity::default());
    }
}
