//! Threads that others of their rank start: from then on, what the two do is compared.

use std::collections::VecDeque;

use laggard_trace::Event;

use super::Walker;
use crate::basics::ends::NONE;
use crate::roots::spent::Sums;
use crate::roots::synced::{Closed, Partner};

/// Most threads of a rank whose births are noted: each of the others keeps sums for each of them.
const MOST: usize = 64;

/// Threads of its rank that are started later, the next one first: when, ns, and their numbers.
#[derive(Default)]
pub(super) struct Births {
    list: VecDeque<(i64, u32)>,
}

impl Births {
    /// When the next one is, ns; `i64::MAX` if there is none.
    #[inline]
    pub(super) fn next(&self) -> i64 {
        self.list.front().map_or(i64::MAX, |(born, _)| *born)
    }
}

/// Tells the threads of a rank when which of them were started, ns: `births` by position.
pub fn tell(threads: &mut [Walker<'_>], births: &[Option<i64>]) {
    let known = threads.iter().zip(births);
    let known = known.filter_map(|(thread, born)| Some(((*born)?, thread.name.1)));
    let mut known: Vec<(i64, u32)> = known.collect();
    if known.len() > MOST {
        return;
    }
    known.sort_unstable();
    for (thread, born) in threads.iter_mut().zip(births) {
        let here = born.unwrap_or(i64::MIN);
        let later = known.iter().filter(|(born, _)| *born > here);
        thread.births.list = later.copied().collect();
        thread.born = *born;
    }
}

impl Walker<'_> {
    /// It was started at this moment, ns, before its first call. For other ranks, it did until then what all do that
    /// meet nobody: it computed.
    #[cold]
    pub(super) fn live(&mut self, born: i64, first: u32) {
        let Some(open) = self.open.as_mut().filter(|open| open.leave < born) else {
            return;
        };
        let time = born - open.leave;
        (open.enter, open.leave, open.begin) = (born, born, born);
        self.compute((NONE, first), None, (born, time));
        self.spent.order += 2;
        self.synced.start(&self.spent);
    }

    /// Some `time` passed between two calls, ns, until `begin`, in which threads were started.
    #[cold]
    pub(super) fn compute_meanwhile(
        &mut self,
        around: (u32, u32),
        event: Option<&Event>,
        (begin, time): (i64, i64),
    ) {
        self.spent.meet();
        let before = Sums::now(&self.spent);
        self.compute(around, event, (begin, time));
        let mut parts = Vec::new();
        self.spent.since(&before, None, &mut parts);
        let activities = &self.activities.list.values;
        parts.retain(|(number, _)| activities[*number as usize].kind.is_cause());
        self.meet_born(&Closed {
            number: NONE,
            leave: begin,
            parts: parts.into(),
            ..Closed::default()
        });
    }

    /// Meets the threads that were started before a call was left.
    #[inline]
    pub(super) fn meet_born(&mut self, call: &Closed) {
        while self.births.next() <= call.leave
            && let Some((born, thread)) = self.births.list.pop_front()
        {
            self.spent.order += 2;
            let partner = self.synced.number(Partner::Thread(thread));
            let sums = self.synced.pair(partner, &self.spent);
            sums.begin_at(born, call);
        }
    }
}
