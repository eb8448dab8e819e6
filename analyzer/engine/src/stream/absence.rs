//! Times that a rank spent outside of the library.

use laggard_patterns::progress::SHORTEST_NS;
use laggard_trace::calls::Shape;
use laggard_trace::flags;

use crate::basics::ends::End;
use crate::stream::recorded::Recorded;
use crate::stream::roles::Among;
use crate::stream::rows::{Row, TimeClass};

/// Time that a rank spent outside of the library, and the call that ended it.
#[derive(Clone, Copy, Debug)]
pub struct Gap {
    /// ns.
    pub begin: i64,
    pub by: End,
}

impl Row {
    /// Whether calls of this row progress the communication of others. Not so: calls that only
    /// manage handles, regions of the program, waits among threads, and independent file access.
    fn progresses(&self) -> bool {
        match self.class {
            TimeClass::Setup => false,
            TimeClass::Io => self.shape == Shape::CollectiveIo,
            TimeClass::Communication | TimeClass::Synchronization => self.among == Among::Nothing,
        }
    }
}

impl Recorded<'_> {
    /// Whether this rank's part in a communication may have been incomplete when the call of `end`
    /// returned: it began a request, or opened a window (`is_post`). A blocking call returns when
    /// nothing more is needed of the rank.
    pub fn may_be_needed(&self, end: &End, is_post: bool) -> bool {
        let row = self.threads[end.thread as usize]
            .rows
            .get(end.signature as usize);
        is_post || row.is_some_and(|row| row.has(flags::POSTS))
    }

    /// Times outside of the library that ended in this slab, ascending.
    pub fn gaps(&self) -> Vec<Gap> {
        let mut calls: Vec<(End, i64)> = Vec::new();
        let mut inside = i64::MIN;
        for (number, thread) in self.threads.iter().enumerate() {
            let columns = &thread.columns;
            let progresses = |&at: &usize| {
                let row = thread.rows.get(columns.signature[at] as usize);
                row.is_some_and(Row::progresses)
            };
            // Earlier calls are over: calls of a thread do not overlap.
            if let Some(at) = columns.first.checked_sub(1).filter(progresses) {
                inside = inside.max(columns.leave[at]);
            }
            let in_slab = (columns.first..columns.enter.len()).filter(progresses);
            calls.extend(in_slab.map(|at| columns.begin(number, at)));
        }
        if self.threads.len() > 1 {
            calls.sort_unstable_by_key(|(end, _)| (end.time, end.thread, end.event));
        }
        let mut gaps = Vec::new();
        for (by, leave) in calls {
            if by.time.saturating_sub(inside) >= SHORTEST_NS {
                gaps.push(Gap { begin: inside, by });
            }
            inside = inside.max(leave);
        }
        gaps
    }

    /// For the target of a passive access: the rank's next enter of a call after `moment`, if it
    /// was outside of all calls then. `None` if it entered no call in this slab. The flag tells
    /// whether it was inside.
    pub fn next_progress(&self, moment: i64) -> Option<(End, bool)> {
        let mut found: Option<(End, bool)> = None;
        for (number, thread) in self.threads.iter().enumerate() {
            let columns = &thread.columns;
            let progresses = |at: usize| {
                let row = thread.rows.get(columns.signature[at] as usize);
                row.is_some_and(Row::progresses)
            };
            let at = columns.enter.partition_point(|&enter| enter <= moment);
            let is_inside = at > 0 && columns.leave[at - 1] > moment && progresses(at - 1);
            let next = match is_inside {
                true => Some(at - 1),
                false => (at..columns.enter.len()).find(|&at| progresses(at)),
            };
            if let Some(next) = next {
                let (end, _) = columns.begin(number, next);
                if found.is_none_or(|(other, _)| end.time < other.time) {
                    found = Some((end, is_inside));
                }
            }
        }
        found
    }
}
