//! Moments at which a location meets others in none of its own calls: other threads of its rank met another rank, or
//! a thread was started.
//!
//! Who waited for a rank is compared with it since the two met last, whichever thread that was. So is each thread of
//! the rank.

use std::collections::VecDeque;

use laggard_trace::{Event, calls};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Late, Walker};
use crate::basics::ends::NONE;
use crate::roots::activities::is_call;
use crate::roots::members::Members;
use crate::roots::spent::Sums;
use crate::roots::synced::{Closed, Partner};
use crate::roots::walk::waiting::team;
use crate::stream::rows::{Row, TimeClass};
use crate::wire::links::Link;

/// Who is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum With {
    /// Another world rank.
    Rank(u32),
    /// The members of a group, by its number at the agent.
    Group(u32),
    /// A thread of the rank that is started, by its number.
    Thread(u32),
    /// One that this thread starts, by its position in the rank.
    Heir(usize),
}

/// Who is met, and when, ns.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub at: i64,
    pub with: With,
}

/// Those to come, the next one first.
#[derive(Clone, Default)]
pub struct Moments {
    list: VecDeque<Moment>,
    /// Whether the last ones are in order.
    is_sorted: bool,
}

impl Moments {
    pub fn push(&mut self, moment: Moment) {
        self.list.push_back(moment);
        self.is_sorted = false;
    }

    /// Brings them in order.
    pub fn sort(&mut self) {
        if !std::mem::replace(&mut self.is_sorted, true) {
            let list = self.list.make_contiguous();
            list.sort_by_key(|moment| moment.at);
        }
    }

    /// When the next one is, ns; `i64::MAX` if there is none.
    #[inline]
    pub fn next(&self) -> i64 {
        self.list.front().map_or(i64::MAX, |moment| moment.at)
    }

    /// Drops those before `born`, ns.
    pub fn forget(&mut self, born: i64) {
        let past = self.list.partition_point(|moment| moment.at < born);
        self.list.drain(..past);
    }

    /// Of meetings with the same one before `until`, ns, keeps the last, and the last until the open call was `left`: nothing
    /// happened between them.
    fn keep_last(&mut self, left: i64, until: i64) {
        let mut known = FxHashSet::default();
        let mut kept: VecDeque<Moment> = VecDeque::new();
        while let Some(moment) = self.list.pop_back() {
            let is_meeting = matches!(moment.with, With::Rank(_) | With::Group(_));
            let part = (moment.with, moment.at <= left);
            if !is_meeting || moment.at >= until || known.insert(part) {
                kept.push_front(moment);
            }
        }
        self.list = kept;
    }

    /// Drops heirs but these.
    pub fn keep_heirs(&mut self, wanted: &FxHashSet<usize>) {
        self.list.retain(|moment| match moment.with {
            With::Heir(heir) => wanted.contains(&heir),
            _ => true,
        });
    }

    /// Whether a thread is started until then, ns.
    pub fn has_heirs_until(&self, until: i64) -> bool {
        let mut due = self.list.iter().take_while(|moment| moment.at <= until);
        due.any(|moment| matches!(moment.with, With::Heir(_)))
    }

    fn has_heirs(&self) -> bool {
        let mut list = self.list.iter();
        list.any(|moment| matches!(moment.with, With::Heir(_)))
    }
}

/// Whether threads of a rank meet others of which another one of them has to know.
pub fn has_several(threads: &[Walker<'_>]) -> bool {
    let mut talking = threads.iter().filter(|thread| thread.talks);
    let creates = |thread: &Walker<'_>| !thread.talks && thread.moments.has_heirs();
    talking.next().is_some() && (talking.next().is_some() || threads.iter().any(creates))
}

/// A slab's waits of a location with the leaves of the late calls, and waits for it.
pub type Waits<'w> = (&'w [Link], &'w [i64], &'w [Late]);

/// When a thread waits for other ranks or is waited for, or starts threads, ns, ascending.
#[derive(Default)]
struct Needs {
    of: FxHashMap<u32, Vec<i64>>,
    /// For whichever ranks.
    of_any: Vec<i64>,
    all: Vec<i64>,
}

impl Needs {
    /// Adds one that is for a rank; `NONE`: for any.
    fn of_rank(&mut self, rank: u32, at: i64) {
        match rank {
            NONE => self.of_any.push(at),
            rank => self.of.entry(rank).or_default().push(at),
        }
        self.all.push(at);
    }

    /// Whether there is one of these from a meeting on, before the next one.
    fn has(&self, with: With, (met, next): (i64, i64)) -> bool {
        let is_in = |times: &Vec<i64>| {
            let first = times.partition_point(|at| *at < met);
            times.get(first).is_some_and(|at| *at < next)
        };
        match with {
            With::Rank(rank) => self.of.get(&rank).is_some_and(is_in) || is_in(&self.of_any),
            _ => is_in(&self.all),
        }
    }
}

/// Tells the threads of a rank whom others of them meet in a slab, which ends at `until`, ns. Of meetings with the same one,
/// a thread needs the last one before each of its own waits, and before waits for it. Those of later slabs may come between
/// meetings that are known already.
pub fn tell(threads: &mut [Walker<'_>], waits: &[Waits<'_>], until: i64) {
    let meet = |(position, (thread, waits)): (usize, (&Walker<'_>, &Waits<'_>))| {
        let met = thread.met_in(waits).into_iter();
        met.map(move |met| (met.with, met.at, position))
            .collect::<Vec<_>>()
    };
    let all = threads.iter().zip(waits).enumerate().flat_map(meet);
    let mut all: Vec<(With, i64, usize)> = all.collect();
    all.sort_unstable();
    for (position, (thread, waits)) in threads.iter_mut().zip(waits).enumerate() {
        if !thread.talks && !thread.moments.has_heirs() {
            continue;
        }
        let needs = thread.needs(waits);
        for same in all.chunk_by(|a, b| a.0 == b.0) {
            let others = same.iter().filter(|(.., by)| *by != position);
            let mut others = others.map(|(with, at, _)| (*with, *at)).peekable();
            while let Some((with, at)) = others.next() {
                let next = others.peek().map_or(i64::MAX, |(_, at)| *at);
                if next >= until || needs.has(with, (at, next)) {
                    thread.moments.push(Moment { at, with });
                }
            }
        }
        thread.moments.sort();
        if thread.columns.first == thread.columns.enter.len() {
            let left = thread.left_last().unwrap_or(i64::MIN);
            thread.moments.keep_last(left, until);
        }
    }
}

/// Whether a location calls what may meet another rank.
pub fn talks(rows: &[Row]) -> bool {
    let mut rows = rows.iter();
    rows.any(|row| {
        let call = calls::call(row.operation);
        let is_outside = call.is_some_and(|call| !call.is_threads());
        is_outside && row.class != TimeClass::Setup
    })
}

impl Walker<'_> {
    /// The other ranks that it meets in waits.
    fn met_in(&self, (own, leaves, lates): &Waits<'_>) -> Vec<Moment> {
        let mut met = Vec::new();
        if !self.talks {
            return met;
        }
        let others = |rank: u32| rank != NONE && rank != self.name.0;
        for (link, leave) in own
            .iter()
            .zip(*leaves)
            .filter(|(link, _)| others(link.late_rank))
        {
            let is_met = link.left != i64::MAX;
            let row = self.thread.rows.get(link.signature as usize);
            let group = row.filter(|row| is_met && row.is_meeting()).and_then(team);
            met.push(Moment {
                at: if is_met { link.left } else { *leave },
                with: group.map_or(With::Rank(link.late_rank), With::Group),
            });
        }
        let lates = lates.iter().filter(|late| others(late.rank));
        met.extend(lates.map(|late| Moment {
            at: late.left,
            with: match late.group {
                NONE => With::Rank(late.rank),
                group => With::Group(group),
            },
        }));
        met
    }

    /// Of the call that is open at a moment, and was entered in this slab: moments at which it has to know whom others met, ns.
    /// That is its enter, and the end of the call before, where looking may have begun.
    fn before(&self, is_call: impl Fn(u32) -> bool, moment: i64) -> [Option<i64>; 2] {
        let columns = &self.columns;
        let entered = columns.enter.partition_point(|enter| *enter <= moment);
        let new = columns.first..entered.max(columns.first);
        let mut calls = new.rev().filter(|at| is_call(columns.signature[*at]));
        let enter = calls.next().map(|at| columns.enter[at]);
        let last = calls.next().map(|at| columns.leave[at]);
        [enter, last.or(self.left_last()).filter(|_| enter.is_some())]
    }

    /// When the last call was left that was read in an earlier slab, ns.
    fn left_last(&self) -> Option<i64> {
        self.open.as_ref().map(|open| open.leave)
    }

    /// When it has to know whom others met.
    fn needs(&self, (own, _, lates): &Waits<'_>) -> Needs {
        let mut needs = Needs::default();
        let is_call = is_call(&self.thread.rows);
        let before = |moment| self.before(&is_call, moment).into_iter().flatten();
        for link in *own {
            before(link.enter).for_each(|at| needs.of_rank(link.late_rank, at));
        }
        for late in *lates {
            if let Some(at) = self.columns.position(late.event) {
                let rank = if late.group == NONE { late.rank } else { NONE };
                before(self.columns.enter[at]).for_each(|at| needs.of_rank(rank, at));
            }
        }
        // What the last call waits for may be known in the next slab.
        needs.of_any.extend(before(i64::MAX));
        let mut calls = self.columns.signature[self.columns.first..].iter();
        let last = calls.rposition(|signature| is_call(*signature));
        let last = last.map(|at| self.columns.leave[self.columns.first + at]);
        needs.of_any.extend(last.or(self.left_last()));
        let births = self.moments.list.iter().map(|moment| moment.at - 1);
        needs.of_any.extend(births);
        let ranks = needs.of.values_mut();
        ranks.for_each(|times| times.sort_unstable());
        needs.of_any.sort_unstable();
        needs.all.extend(&needs.of_any);
        needs.all.sort_unstable();
        needs
    }

    /// Some `time` passed between two calls, ns, until `begin`, in which others were met.
    #[cold]
    pub(super) fn compute_meanwhile(
        &mut self,
        around: (u32, u32),
        event: Option<&Event>,
        (begin, time): (i64, i64),
        members: &Members,
    ) {
        self.spent.meet();
        let before = Sums::now(&self.spent);
        self.compute(around, event, (begin, time));
        let mut parts = self.spent.since(&before).to_vec();
        let activities = &self.activities.list.values;
        parts.retain(|(number, _)| activities[*number as usize].kind.is_cause());
        self.meet_meanwhile(
            &Closed {
                number: NONE,
                leave: begin,
                parts,
                ..Closed::default()
            },
            members,
        );
    }

    /// Meets those that were met before a call was left.
    #[inline]
    pub(super) fn meet_meanwhile(&mut self, call: &Closed, members: &Members) {
        if self.moments.next() <= call.leave {
            self.meet_until(call, members);
        }
    }

    #[cold]
    fn meet_until(&mut self, call: &Closed, members: &Members) {
        self.spent.order += 2;
        while self.moments.next() <= call.leave
            && let Some(Moment { at, with }) = self.moments.list.pop_front()
        {
            let sums = match with {
                With::Rank(rank) => {
                    let partner = self.synced.number(Partner::Rank(rank));
                    self.synced.pair(partner, &self.spent, None)
                }
                With::Thread(thread) => {
                    let partner = self.synced.number(Partner::Thread(thread));
                    self.synced.pair(partner, &self.spent, None)
                }
                With::Group(group) => match members.set(group) {
                    set if members.is_all(set) => self.synced.all(&self.spent),
                    set => self.synced.set((set, false), &self.spent),
                },
                With::Heir(heir) => {
                    let mut then = Sums::now(&self.spent);
                    match call.number {
                        NONE => then.begin_at(at, call),
                        // Who waits starts no thread: what is known of the call's waits comes after it.
                        _ => then.begin_before(call),
                    }
                    let heritage = self.leave_to(heir, Some((then, at)));
                    self.heirs.push(heritage);
                    continue;
                }
            };
            // A wait counts as a whole.
            let after = call.until.saturating_sub(at).clamp(0, call.waited);
            match after > call.waited / 2 {
                true => sums.begin_before_wait(at, after, call),
                false => sums.begin_at(at, call),
            }
        }
    }
}
