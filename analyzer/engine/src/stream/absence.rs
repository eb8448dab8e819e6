//! When a rank was outside of the library.

use laggard_patterns::progress::SHORTEST_NS;
use laggard_trace::calls::Shape;
use laggard_trace::flags;

use crate::basics::ends::End;
use crate::stream::recorded::Recorded;
use crate::stream::rows::{Row, TimeClass};

/// Time that a rank spent outside of the library, and the call that ended it.
#[derive(Clone, Copy, Debug)]
pub struct Gap {
    /// ns.
    pub begin: i64,
    pub by: End,
}

impl Row {
    /// Whether calls of this row move on what others wait for: not those that only manage
    /// handles, regions of the program, and what one rank does with a file.
    fn progresses(&self) -> bool {
        match self.class {
            TimeClass::Setup => false,
            TimeClass::Io => self.shape == Shape::CollectiveIo,
            TimeClass::Communication | TimeClass::Synchronization => true,
        }
    }
}

impl Recorded<'_> {
    /// Whether a call that was this rank's part in something may have returned before that was
    /// done: it began a request, or opened a window (`is_post`). A blocking call
    /// returns when nothing more is needed of the rank.
    pub fn may_be_needed(&self, end: &End, is_post: bool) -> bool {
        let row = self.threads[end.thread as usize]
            .rows
            .get(end.signature as usize);
        is_post || row.is_some_and(|row| row.has(flags::POSTS))
    }

    /// When the rank was outside of the library: what ended in this slab, ascending.
    pub fn gaps(&self) -> Vec<Gap> {
        let mut calls: Vec<(End, i64)> = Vec::new();
        let mut inside = i64::MIN;
        for (number, thread) in self.threads.iter().enumerate() {
            let columns = &thread.columns;
            let progresses = |&at: &usize| {
                let row = thread.rows.get(columns.signature[at] as usize);
                row.is_some_and(Row::progresses)
            };
            // What was before the last one is over: calls of a thread follow each other.
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

    /// When this rank, the target of a passive access, next entered a call after `moment`, if it
    /// was outside of all calls then; not known yet if it entered none in this slab. Whether it
    /// was inside.
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
