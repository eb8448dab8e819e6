//! Collectives: an agent folds its own members, an owner joins the folds of all
//! agents, the late member's agent tells what it did, and those who asked get it.

use std::collections::VecDeque;
use std::sync::Arc;

use laggard_patterns::{Interval, PatternId, group};
use laggard_trace::calls::Shape;
use rustc_hash::FxHashMap;

use super::intern::Group;
use super::rank::{GroupEntry, Rank, Waiter};
use super::table::Row;
use super::wire::{Detail, Fold, Member, Whole};

/// Whether single members matter, not only the first and the last.
fn keeps_members(shape: Shape) -> bool {
    matches!(shape, Shape::Prefix | Shape::Neighbourhood)
}

/// The agent that joins the folds of a collective.
pub fn owner(group: u64, n: u64, agents: usize) -> usize {
    let mixed = (group ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    ((mixed >> 32) as usize) % agents
}

/// A collective with its outcome.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// All members.
    pub fold: Fold,
    /// Single members, where they matter, by local rank.
    pub members: Vec<Member>,
    /// What the late member did.
    pub detail: Option<Detail>,
}

/// One collective, as far as this agent's members are concerned.
#[derive(Debug, Default)]
struct Instance {
    fold: Fold,
    members: Vec<Member>,
    /// Members that wait, with their rank's position.
    waiters: Vec<(u32, Waiter)>,
    /// Non-blocking entries whose completion was not seen yet.
    under_way: u32,
    sent: bool,
    outcome: Option<Arc<Outcome>>,
}

/// The collectives of one group, from the first unfinished one on.
#[derive(Debug, Default)]
struct Line {
    base: u64,
    instances: VecDeque<Instance>,
}

/// All groups of an agent.
pub struct Groups {
    /// By the agent's number.
    pub groups: Vec<Group>,
    /// Members with a trace, in all agents.
    pub expected: Vec<u32>,
    lines: Vec<Line>,
    numbers: FxHashMap<u64, u32>,
}

impl Groups {
    /// Nothing entered yet.
    pub fn new(groups: Vec<Group>, expected: Vec<u32>) -> Self {
        let numbers = groups
            .iter()
            .enumerate()
            .map(|(at, g)| (g.id, at as u32))
            .collect();
        let lines = groups.iter().map(|_| Line::default()).collect();
        Groups {
            groups,
            expected,
            lines,
            numbers,
        }
    }

    fn instance(&mut self, group: u32, n: u64) -> Option<&mut Instance> {
        let line = &mut self.lines[group as usize];
        let at = usize::try_from(n.checked_sub(line.base)?).ok()?;
        if at >= line.instances.len() {
            line.instances.resize_with(at + 1, Instance::default);
        }
        line.instances.get_mut(at)
    }

    /// Takes a member's entry in.
    pub fn enter(&mut self, entry: &GroupEntry, rank: &Rank, row: &Row) {
        let keeps = keeps_members(row.shape);
        let member = rank.member(entry);
        let Some(instance) = self.instance(entry.group, entry.n) else {
            return;
        };
        let is_root = row.root >= 0 && row.root as u32 == rank.rank;
        let single = Fold {
            first_enter: entry.enter,
            last_enter: entry.enter,
            first_leave: entry.leave,
            first_other: if is_root { i64::MAX } else { entry.enter },
            root_enter: if is_root { entry.enter } else { i64::MIN },
            last_event: entry.event,
            root_event: if is_root { entry.event } else { 0 },
            last_rank: rank.rank,
            last_thread: entry.thread,
            root_thread: entry.thread,
            root_rank: row.root,
            count: 1,
            root_is_late: u32::from(row.shape == Shape::OneToAll),
            ..Fold::default()
        };
        join(&mut instance.fold, &single);
        if keeps {
            instance.members.push(member);
        }
        if entry.leave == i64::MAX {
            instance.under_way += 1;
        }
    }

    /// Takes a member's wait in; gives the outcome if that is known already.
    pub fn wait(&mut self, rank: u32, waiter: Waiter) -> Option<Arc<Outcome>> {
        let instance = self.instance(waiter.group, waiter.n)?;
        if waiter.posted {
            instance.under_way = instance.under_way.saturating_sub(1);
        }
        let outcome = instance.outcome.clone();
        if waiter.asks && outcome.is_none() {
            instance.waiters.push((rank, waiter));
        }
        self.trim(waiter.group);
        outcome.filter(|_| waiter.asks)
    }

    /// The folds whose members at this agent are complete (at the `end`, all).
    pub fn take_folds(&mut self, end: bool, mut send: impl FnMut(&Fold, &[Member])) {
        for number in 0..self.lines.len() {
            let group = self.groups[number];
            let expected = self.expected[number];
            let line = &mut self.lines[number];
            let base = line.base;
            for (at, instance) in line.instances.iter_mut().enumerate() {
                if instance.sent || instance.fold.count == 0 {
                    continue;
                }
                if instance.fold.count < group.local && !end {
                    continue;
                }
                instance.sent = true;
                instance.fold.group = group.id;
                instance.fold.n = base + at as u64;
                instance.fold.expected = expected;
                let wanted = !instance.waiters.is_empty() || instance.under_way > 0;
                instance.fold.wanted = u32::from(wanted);
                instance.fold.members = instance.members.len() as u32;
                send(&instance.fold, &instance.members);
                instance.members = Vec::new();
            }
            self.trim(number as u32);
        }
    }

    /// Takes an outcome in and gives the members that waited for it, with their rank's
    /// position.
    pub fn outcome(&mut self, outcome: &Arc<Outcome>, mut ready: impl FnMut(u32, Waiter)) {
        let Some(&group) = self.numbers.get(&outcome.fold.group) else {
            return;
        };
        let Some(instance) = self.instance(group, outcome.fold.n) else {
            return;
        };
        for (rank, waiter) in std::mem::take(&mut instance.waiters) {
            ready(rank, waiter);
        }
        instance.outcome = Some(outcome.clone());
        self.trim(group);
    }

    /// Forgets the collectives at the front that nobody needs any more.
    fn trim(&mut self, group: u32) {
        let line = &mut self.lines[group as usize];
        while line.instances.front().is_some_and(|instance| {
            let wanted = instance.fold.wanted != 0;
            instance.sent && instance.under_way == 0 && (!wanted || instance.outcome.is_some())
        }) {
            line.instances.pop_front();
            line.base += 1;
        }
    }
}

/// Adds one fold to another.
fn join(into: &mut Fold, other: &Fold) {
    if into.count == 0 {
        let kept = (into.group, into.n, into.expected, into.wanted, into.members);
        *into = *other;
        if other.group == 0 {
            (into.group, into.n, into.expected, into.wanted, into.members) = kept;
        }
        return;
    }
    into.first_enter = into.first_enter.min(other.first_enter);
    into.first_leave = into.first_leave.min(other.first_leave);
    into.first_other = into.first_other.min(other.first_other);
    // Ties go to the lower rank, so that the order of joining does not matter.
    let later = (other.last_enter, std::cmp::Reverse(other.last_rank))
        > (into.last_enter, std::cmp::Reverse(into.last_rank));
    if later {
        into.last_enter = other.last_enter;
        into.last_event = other.last_event;
        into.last_rank = other.last_rank;
        into.last_thread = other.last_thread;
    }
    if other.root_enter != i64::MIN {
        into.root_enter = other.root_enter;
        into.root_event = other.root_event;
        into.root_thread = other.root_thread;
        into.root_rank = other.root_rank;
    } else if into.root_rank < 0 {
        into.root_rank = other.root_rank;
    }
    into.count += other.count;
}

/// Joins the folds that agents send to the owner.
#[derive(Default)]
pub struct Owned {
    open: FxHashMap<(u64, u64), Joined>,
    /// Complete ones that somebody wants.
    pub complete: Vec<Joined>,
}

/// Folds of one collective.
#[derive(Default)]
pub struct Joined {
    /// Joined so far.
    pub fold: Fold,
    /// Single members.
    pub members: Vec<Member>,
    /// Agents that want the outcome.
    pub wanters: Vec<u32>,
}

impl Owned {
    /// Takes an agent's fold in.
    pub fn add(&mut self, agent: u32, fold: Fold, members: impl Iterator<Item = Member>) {
        let key = (fold.group, fold.n);
        let joined = self.open.entry(key).or_default();
        join(&mut joined.fold, &fold);
        joined.members.extend(members);
        if fold.wanted != 0 {
            joined.wanters.push(agent);
        }
        if joined.fold.count >= fold.expected
            && let Some(mut joined) = self.open.remove(&key)
            && !joined.wanters.is_empty()
        {
            joined
                .members
                .sort_unstable_by_key(|member| member.local_rank);
            self.complete.push(joined);
        }
    }

    /// Collectives that some member never entered, as far as the traces tell.
    pub fn incomplete(&self) -> impl Iterator<Item = &Fold> {
        self.open.values().map(|joined| &joined.fold)
    }
}

impl Joined {
    /// As an entry of a parcel; its lists follow in sections of their own.
    pub fn whole(&self) -> Whole {
        Whole {
            fold: self.fold,
            members: self.members.len() as u32,
            wanters: self.wanters.len() as u32,
            detail: 0,
            reserved: 0,
        }
    }
}

/// One loss in a collective.
pub struct Loss {
    /// Which pattern.
    pub pattern: PatternId,
    /// ns.
    pub severity: i64,
    /// The late member; `None` where the library, not a member, was slow.
    pub late: Option<Detail>,
}

/// Names what a member lost in a collective. `rank` and `local_rank` are the
/// member's, `row` is the collective's.
pub fn losses(
    waiter: &Waiter,
    outcome: &Outcome,
    rank: u32,
    local_rank: u32,
    row: &Row,
    mut found: impl FnMut(Loss),
) {
    let own = Interval::new(waiter.enter, waiter.leave);
    let fold = &outcome.fold;
    let mut lose = |pattern, severity, late| {
        if severity > 0 {
            found(Loss {
                pattern,
                severity,
                late,
            });
        }
    };
    let by = |late: u32| match &outcome.detail {
        Some(detail) if detail.rank == late => Some(*detail),
        _ => Some(Detail {
            rank: late,
            operation: row.operation,
            ..Detail::default()
        }),
    };
    let last = fold.last_enter;
    let waited = group::wait_before_last(own, last);
    let completed = |pattern| (pattern, group::completion(own, fold.first_leave, last));
    let mut lose_completion = |(pattern, severity): (PatternId, i64), late| {
        if !waiter.posted && fold.first_leave != i64::MAX {
            lose(pattern, severity, late);
        }
    };
    match row.shape {
        Shape::Barrier => {
            lose_completion(completed(PatternId::BarrierCompletion), None);
            lose(PatternId::WaitAtBarrier, waited, by(fold.last_rank));
        }
        Shape::AllToAll => {
            lose_completion(completed(PatternId::NxnCompletion), None);
            lose(PatternId::WaitAtNxn, waited, by(fold.last_rank));
        }
        Shape::Init => lose_completion(completed(PatternId::InitCompletion), None),
        Shape::Neighbourhood => {
            // A neighbour's data came before this member left: later ones are none.
            let others = outcome
                .members
                .iter()
                .filter(|m| m.rank != rank && m.enter <= own.leave);
            if let Some(late) = others.max_by_key(|m| (m.enter, std::cmp::Reverse(m.rank))) {
                let severity = group::wait_before_last(own, late.enter);
                lose(PatternId::WaitAtNxn, severity, by(late.rank));
            }
        }
        Shape::OneToAll => {
            let is_root = fold.root_rank == rank as i32;
            if !is_root && row.has_bytes && fold.root_enter != i64::MIN {
                let severity = group::late_broadcast(own, fold.root_enter);
                lose(
                    PatternId::LateBroadcast,
                    severity,
                    by(fold.root_rank as u32),
                );
            }
        }
        Shape::AllToOne => {
            if fold.root_rank == rank as i32 && row.has_bytes && fold.first_other != i64::MAX {
                let early = group::early_reduce(own, fold.first_other);
                let rest = group::late_reduce_contribution(own, last, early);
                lose(PatternId::EarlyReduce, early, by(fold.last_rank));
                lose(PatternId::LateReduceContribution, rest, by(fold.last_rank));
            }
        }
        Shape::Prefix => {
            let lower = outcome.members.iter().filter(|m| m.local_rank < local_rank);
            if let Some(late) = lower.max_by_key(|m| (m.enter, std::cmp::Reverse(m.rank))) {
                lose(
                    PatternId::EarlyScan,
                    group::early_scan(own, late.enter),
                    by(late.rank),
                );
            }
        }
        Shape::Management => lose(PatternId::WaitAtCommManagement, waited, by(fold.last_rank)),
        Shape::WindowCreate => lose(PatternId::WaitAtWindowCreate, waited, by(fold.last_rank)),
        Shape::WindowFree => lose(PatternId::WaitAtWindowFree, waited, by(fold.last_rank)),
        Shape::CollectiveIo => lose(PatternId::WaitAtCollectiveIo, waited, by(fold.last_rank)),
        Shape::Finalize => lose(PatternId::WaitAtFinalize, waited, by(fold.last_rank)),
        Shape::Fence | Shape::Single => {}
    }
}
