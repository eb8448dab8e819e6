//! Collectives: an agent folds its own members, an owner joins the folds of all
//! agents, the late member's agent tells what it did, and those who asked get it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

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
    /// Members that may still ask for the outcome: they wait, or have not completed a
    /// non-blocking one.
    interested: AtomicU32,
    /// Its fold is complete and on its way, or it has its outcome.
    sent: bool,
    outcome: Option<Box<Outcome>>,
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
    /// Collectives whose members are all here and have entered: group, which one.
    complete: Vec<(u32, u64)>,
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
            complete: Vec::new(),
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
    #[inline]
    pub fn enter(&mut self, entry: &GroupEntry, rank: &Rank, row: &Row) {
        let group = entry.group as usize;
        let (local, is_here) = (self.groups[group].local, self.is_here(entry.group));
        let Some(instance) = self.instance(entry.group, entry.n) else {
            return;
        };
        add_entry(&mut instance.fold, entry, rank.rank, row);
        if keeps_members(row.shape) {
            instance.members.push(rank.member(entry));
        }
        *instance.interested.get_mut() += u32::from(entry.asks);
        if is_here && instance.fold.count == local {
            self.complete.push((entry.group, entry.n));
        }
    }

    /// Whether all members of a group that have a trace are at this agent.
    fn is_here(&self, group: u32) -> bool {
        self.groups[group as usize].local == self.expected[group as usize]
    }

    /// Gives the collectives that nobody else takes part in their outcome. `detail`
    /// says what a late member did.
    pub fn settle(&mut self, detail: impl Fn(&Fold) -> Option<Detail>) {
        for (group, n) in std::mem::take(&mut self.complete) {
            let Some(instance) = self.instance(group, n) else {
                continue;
            };
            instance.sent = true;
            if *instance.interested.get_mut() == 0 {
                continue;
            }
            let mut members = std::mem::take(&mut instance.members);
            members.sort_unstable_by_key(|member| member.local_rank);
            instance.outcome = Some(Box::new(Outcome {
                fold: instance.fold,
                members,
                detail: detail(&instance.fold),
            }));
        }
    }

    /// Whether a member's wait is settled. Its outcome, if it asks for one and that is
    /// known, goes to `charge`.
    pub fn charged(&self, waiter: &Waiter, charge: impl FnOnce(&Outcome)) -> bool {
        let line = &self.lines[waiter.group as usize];
        let at = waiter.n.checked_sub(line.base);
        let Some(instance) = at.and_then(|at| line.instances.get(at as usize)) else {
            return true;
        };
        if waiter.asks {
            let Some(outcome) = &instance.outcome else {
                return false;
            };
            charge(outcome);
        }
        instance.interested.fetch_sub(1, Relaxed);
        true
    }

    /// The folds whose members at this agent are complete (at the `end`, all).
    pub fn take_folds(&mut self, end: bool, mut send: impl FnMut(&Fold, &[Member])) {
        for number in 0..self.lines.len() {
            let group = self.groups[number];
            let expected = self.expected[number];
            if self.is_here(number as u32) && !end {
                continue;
            }
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
                let interested = *instance.interested.get_mut();
                instance.fold.wanted = u32::from(interested > 0);
                instance.fold.members = instance.members.len() as u32;
                send(&instance.fold, &instance.members);
                instance.members = Vec::new();
            }
        }
    }

    /// Takes an outcome in.
    pub fn outcome(&mut self, outcome: Outcome) {
        let Some(&group) = self.numbers.get(&outcome.fold.group) else {
            return;
        };
        if let Some(instance) = self.instance(group, outcome.fold.n) {
            instance.outcome = Some(Box::new(outcome));
        }
    }

    /// Forgets the collectives at the front that nobody needs any more.
    pub fn trim(&mut self) {
        for line in &mut self.lines {
            while line
                .instances
                .front_mut()
                .is_some_and(|instance| instance.sent && *instance.interested.get_mut() == 0)
            {
                line.instances.pop_front();
                line.base += 1;
            }
        }
    }
}

/// Adds a member's entry to a fold.
#[inline]
fn add_entry(fold: &mut Fold, entry: &GroupEntry, rank: u32, row: &Row) {
    let is_root = row.root >= 0 && row.root as u32 == rank;
    if fold.count == 0 {
        *fold = Fold {
            first_enter: i64::MAX,
            last_enter: i64::MIN,
            first_leave: i64::MAX,
            first_other: i64::MAX,
            root_enter: i64::MIN,
            root_rank: row.root,
            root_is_late: u32::from(row.shape == Shape::OneToAll),
            ..*fold
        };
    }
    fold.count += 1;
    fold.first_enter = fold.first_enter.min(entry.enter);
    fold.first_leave = fold.first_leave.min(entry.leave);
    if is_later((entry.enter, rank), fold) {
        fold.last_enter = entry.enter;
        fold.last_event = entry.event;
        fold.last_rank = rank;
        fold.last_thread = entry.thread;
    }
    if is_root {
        fold.root_enter = entry.enter;
        fold.root_event = entry.event;
        fold.root_thread = entry.thread;
        fold.root_rank = row.root;
    } else {
        fold.first_other = fold.first_other.min(entry.enter);
        if fold.root_rank < 0 {
            fold.root_rank = row.root;
        }
    }
}

/// Whether a member, (enter, world rank), entered after the last one of a fold. Ties go
/// to the lower rank, so that the order of joining does not matter.
#[inline]
fn is_later((enter, rank): (i64, u32), fold: &Fold) -> bool {
    enter > fold.last_enter || (enter == fold.last_enter && rank < fold.last_rank)
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
    if is_later((other.last_enter, other.last_rank), into) {
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

/// Names what a member lost in a collective. `rank` and `local_rank` are the
/// member's, `row` is the collective's. What is `found`: pattern, severity in ns, and
/// the late member, `None` where the library, not a member, was slow.
pub fn losses(
    waiter: &Waiter,
    outcome: &Outcome,
    rank: u32,
    local_rank: impl FnOnce() -> u32,
    row: &Row,
    mut found: impl FnMut(PatternId, i64, Option<&Detail>),
) {
    let own = Interval::new(waiter.enter, waiter.leave);
    let fold = &outcome.fold;
    let mut lose = |pattern, severity, late: Option<u32>| {
        if severity <= 0 {
            return;
        }
        match (late, &outcome.detail) {
            (None, _) => found(pattern, severity, None),
            (Some(late), Some(detail)) if detail.rank == late => {
                found(pattern, severity, Some(detail));
            }
            (Some(late), _) => {
                let detail = Detail {
                    rank: late,
                    operation: row.operation,
                    ..Detail::default()
                };
                found(pattern, severity, Some(&detail));
            }
        }
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
            lose(PatternId::WaitAtBarrier, waited, Some(fold.last_rank));
        }
        Shape::AllToAll => {
            lose_completion(completed(PatternId::NxnCompletion), None);
            lose(PatternId::WaitAtNxn, waited, Some(fold.last_rank));
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
                lose(PatternId::WaitAtNxn, severity, Some(late.rank));
            }
        }
        Shape::OneToAll => {
            let is_root = fold.root_rank == rank as i32;
            if !is_root && row.has_bytes && fold.root_enter != i64::MIN {
                let severity = group::late_broadcast(own, fold.root_enter);
                lose(
                    PatternId::LateBroadcast,
                    severity,
                    Some(fold.root_rank as u32),
                );
            }
        }
        Shape::AllToOne => {
            if fold.root_rank == rank as i32 && row.has_bytes && fold.first_other != i64::MAX {
                let early = group::early_reduce(own, fold.first_other);
                let rest = group::late_reduce_contribution(own, last, early);
                lose(PatternId::EarlyReduce, early, Some(fold.last_rank));
                lose(
                    PatternId::LateReduceContribution,
                    rest,
                    Some(fold.last_rank),
                );
            }
        }
        Shape::Prefix => {
            let local_rank = local_rank();
            let lower = outcome.members.iter().filter(|m| m.local_rank < local_rank);
            if let Some(late) = lower.max_by_key(|m| (m.enter, std::cmp::Reverse(m.rank))) {
                lose(
                    PatternId::EarlyScan,
                    group::early_scan(own, late.enter),
                    Some(late.rank),
                );
            }
        }
        Shape::Management => lose(
            PatternId::WaitAtCommManagement,
            waited,
            Some(fold.last_rank),
        ),
        Shape::WindowCreate => lose(PatternId::WaitAtWindowCreate, waited, Some(fold.last_rank)),
        Shape::WindowFree => lose(PatternId::WaitAtWindowFree, waited, Some(fold.last_rank)),
        Shape::CollectiveIo => lose(PatternId::WaitAtCollectiveIo, waited, Some(fold.last_rank)),
        Shape::Finalize => lose(PatternId::WaitAtFinalize, waited, Some(fold.last_rank)),
        Shape::Fence | Shape::Single => {}
    }
}
