//! Calls that went on only when a partner was inside the library again.
//!
//! A rank whose call lasted longer than others were late for it needs to know where its partners
//! were meanwhile ([`Need`]). The agent that holds the partner looks through its calls, slab by
//! slab, until the waiting call is over, and answers with the partner's absences ([`Absence`]). A
//! need is told in the round in which its beginning is read, so that the partner's calls since
//! then are at hand.

use std::collections::VecDeque;

use laggard_patterns::progress::SHORTEST_NS;
use laggard_trace::calls::Shape;
use laggard_trace::flags;
use rustc_hash::FxHashMap;

use crate::basics::ends::{End, NONE};
use crate::messages::channel::POSTED;
use crate::replay::rank::Rank;
use crate::stream::rows::{Row, TimeClass};
use crate::wire::parcels::{Absence, Detail, Need};

/// Absences of a partner that are kept of one call, the last ones.
const KEPT: usize = 64;

/// Time that a rank spent outside of the library, and the call that ended it.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// ns.
    begin: i64,
    by: End,
}

/// A need that somebody told of, and what is known of it.
#[derive(Debug)]
struct Open {
    /// The agent that told.
    agent: u32,
    need: Need,
    /// Of the partner, among the ranks of this agent; `NONE` if nothing more is needed of it.
    position: u32,
    /// The last absences so far.
    absences: VecDeque<(i64, i64)>,
    /// What the partner did before the call that ended the last one.
    detail: Detail,
}

/// The needs that an agent was told of.
#[derive(Debug, Default)]
pub struct Progress {
    open: Vec<Open>,
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

impl Rank<'_> {
    /// Whether a call that was this rank's part in something may have returned before that was
    /// done: it began a request, or opened a window (`tag` of the channel). A blocking call
    /// returns when nothing more is needed of the rank.
    pub(crate) fn may_be_needed(&self, end: &End, tag: i32) -> bool {
        let row = self.threads[end.thread as usize]
            .rows
            .get(end.signature as usize);
        tag == POSTED || row.is_some_and(|row| row.has(flags::POSTS))
    }

    /// When the rank was outside of the library: what ended in this slab, ascending.
    fn gaps(&self) -> Vec<Gap> {
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
    pub(crate) fn next_progress(&self, moment: i64) -> Option<(End, bool)> {
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

impl Progress {
    /// Takes a need in that an agent told of; `position` is the partner's among the ranks of this
    /// agent, none if its part was done when its call returned.
    pub fn hear(&mut self, agent: usize, need: &Need, position: Option<u32>) {
        self.open.push(Open {
            agent: agent as u32,
            need: *need,
            position: position.unwrap_or(NONE),
            absences: VecDeque::new(),
            detail: Detail::default(),
        });
    }

    /// Looks through what these ranks did in this slab, which ends at `until`, and answers what
    /// is over: to which agent, and the absences.
    pub fn look(
        &mut self,
        ranks: &[Rank],
        until: i64,
        mut answer: impl FnMut(u32, Absence, &mut dyn Iterator<Item = i64>),
    ) {
        let mut gaps: FxHashMap<u32, Vec<Gap>> = FxHashMap::default();
        for open in &mut self.open {
            if let Some(rank) = ranks.get(open.position as usize) {
                let gaps = gaps.entry(open.position).or_insert_with(|| rank.gaps());
                open.look(rank, gaps);
            }
        }
        self.open.retain_mut(|open| {
            let need = &open.need;
            if need.leave >= until && open.position != NONE {
                return true;
            }
            let absence = Absence {
                call: need.call,
                rank: need.rank,
                peer: need.peer,
                from: need.from,
                count: open.absences.len() as u32,
                detail: open.detail,
            };
            let mut times = open.absences.iter().flat_map(|&(begin, end)| [begin, end]);
            answer(open.agent, absence, &mut times);
            false
        });
    }
}

impl Open {
    fn look(&mut self, rank: &Rank, gaps: &[Gap]) {
        let Need { from, leave, .. } = self.need;
        let first = gaps.partition_point(|gap| gap.by.time <= from);
        let within = gaps[first..].iter().take_while(|gap| gap.by.time <= leave);
        let mut last = None;
        for gap in within {
            if self.absences.len() == KEPT {
                self.absences.pop_front();
            }
            self.absences.push_back((gap.begin.max(from), gap.by.time));
            last = Some(gap.by);
        }
        if let Some(end) = last {
            self.detail = rank.late(&end, from);
        }
    }
}
