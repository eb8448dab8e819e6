//! Calls that went on only when a partner was inside the library again.
//!
//! If a call lasted longer than others were late for it, its rank needs to know where its partners
//! were meanwhile ([`Need`]). The agent of the partner reads the partner's calls, slab by slab,
//! until the waiting call is over, and answers with the partner's absences ([`Absence`]). A need is
//! sent in the round that reads its beginning, so that the partner's calls since then are still in
//! memory.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::basics::ends::NONE;
use crate::stream::absence::Gap;
use crate::stream::recorded::Recorded;
use crate::wire::parcels::{Absence, Detail, Need};

/// Absences of a partner kept per call, the last ones.
const KEPT: usize = 64;

/// A need of a rank, and the absences so far.
#[derive(Debug)]
struct Open {
    /// The agent that sent it.
    agent: u32,
    need: Need,
    /// Position of the partner among the ranks of this agent; `NONE` if nothing more is needed of
    /// it.
    position: u32,
    /// The last absences so far.
    absences: VecDeque<(i64, i64)>,
    /// The partner's activity before the call that ended the last absence.
    detail: Detail,
}

/// The needs sent to an agent.
#[derive(Debug, Default)]
pub struct Progress {
    open: Vec<Open>,
}

impl Progress {
    /// Takes a need from an agent. `position` is the partner's among the ranks of this agent; none
    /// if its part was done when its call returned.
    pub fn hear(&mut self, agent: usize, need: &Need, position: Option<u32>) {
        self.open.push(Open {
            agent: agent as u32,
            need: *need,
            position: position.unwrap_or(NONE),
            absences: VecDeque::new(),
            detail: Detail::default(),
        });
    }

    /// Reads the ranks' calls of this slab, which ends at `until`. Answers the needs that are over:
    /// to which agent, and the absences.
    pub fn look<'r, 'a: 'r>(
        &mut self,
        recorded: impl Fn(u32) -> Option<&'r Recorded<'a>>,
        until: i64,
        mut answer: impl FnMut(u32, Absence, &mut dyn Iterator<Item = i64>),
    ) {
        let mut gaps: FxHashMap<u32, Vec<Gap>> = FxHashMap::default();
        for open in &mut self.open {
            if let Some(rank) = recorded(open.position) {
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
                group: need.group,
                detail: open.detail,
            };
            let mut times = open.absences.iter().flat_map(|&(begin, end)| [begin, end]);
            answer(open.agent, absence, &mut times);
            false
        });
    }
}

impl Open {
    fn look(&mut self, rank: &Recorded, gaps: &[Gap]) {
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
            self.detail = rank.late(&end, from, None);
        }
    }
}
