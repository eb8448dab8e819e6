//! Collectives. An agent folds its own members. An owner joins the folds of all agents and sends
//! the outcome to the agents that asked. The agents of late members report what those did.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use laggard_patterns::{Interval, PatternId, group, window};
use laggard_trace::PEER_ROOT;
use laggard_trace::calls::{self, NUMBERS, Shape};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::basics::ends::NONE;
use crate::basics::intern::Group;
use crate::collectives::between::Between;
use crate::collectives::own::Collectives;
use crate::collectives::topology::Topology;
use crate::messages::charges::Waiter;
use crate::stream::rows::Row;
use crate::waits::charging::{Loss, Whom};
use crate::wire::parcels::{Detail, Fold, Member, Party, Told};

/// Whether single members matter, not only the first and the last.
fn keeps_members(shape: Shape) -> bool {
    matches!(shape, Shape::Prefix | Shape::Neighbourhood)
}

/// Most late members that are known by name.
const MOST_LATE: usize = 8;

/// Whether all members that are still missing share the blame for a wait.
fn is_shared(shape: Shape) -> bool {
    matches!(
        shape,
        Shape::Barrier
            | Shape::PeBarrier
            | Shape::AllToAll
            | Shape::AllToOne
            | Shape::Management
            | Shape::WindowCreate
            | Shape::WindowFree
            | Shape::CollectiveIo
            | Shape::Finalize
    )
}

/// Adds a member if it is one of the latest.
fn keep_latest(latest: &mut Vec<Member>, member: Member) {
    if latest.len() < MOST_LATE {
        latest.push(member);
        return;
    }
    let by_enter = |m: &&mut Member| (m.party.enter, std::cmp::Reverse(m.party.rank));
    let first = latest.iter_mut().min_by_key(by_enter);
    if let Some(first) = first.filter(|first| member.party.is_later(&first.party)) {
        *first = member;
    }
}

/// The agent that joins the folds of a collective.
pub fn owner(group: u64, n: u64, agents: usize) -> usize {
    let mixed = (group ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    ((mixed >> 32) as usize) % agents
}

/// A member's part in a collective. A member that neither waits nor is awaited moves no data and is
/// only counted, for example beside the root in its group of an intercommunicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// It needs something from others.
    pub waits: bool,
    /// Others need something from it.
    pub is_awaited: bool,
}

impl Part {
    /// The part of a rank. `has_bytes`: it moves data itself. `root` is as in the trace.
    pub fn new(shape: Shape, root: i32, has_bytes: bool, rank: u32) -> Part {
        let is_root = root == PEER_ROOT || root == rank as i32;
        let (waits, is_awaited) = match shape {
            Shape::OneToAll => (!is_root && has_bytes, is_root),
            Shape::AllToOne => (is_root && has_bytes, !is_root && has_bytes),
            _ => (true, true),
        };
        Part { waits, is_awaited }
    }
}

/// What late members did, with the numbers of their calls. At most two, if only the first and the
/// last matter.
type Details = SmallVec<[Detail; 2]>;

/// One collective. Holds this agent's members, and all members once it is settled.
#[derive(Debug, Default)]
pub struct Instance {
    fold: Fold,
    /// Single members, if the shape needs them; by local rank once it is settled. For a fence: the
    /// transfers before it, see [`Epochs::fence`](crate::memory::epochs::Epochs::fence). If the
    /// blame is shared: the latest ones that others wait for, by enter once it is settled.
    members: Vec<Member>,
    details: Details,
    /// Members that may still ask for the outcome: they wait, or have not completed a non-blocking
    /// collective.
    interested: AtomicU32,
    /// Its fold was sent, or it is settled.
    sent: bool,
    /// The outcome is known.
    is_settled: bool,
}

/// The collectives of one group, from the first unfinished one on.
#[derive(Debug, Default)]
struct Line {
    base: u64,
    instances: VecDeque<Instance>,
}

impl Line {
    /// The n-th collective, created on first use; `None` if it is forgotten.
    fn instance(&mut self, n: u64) -> Option<&mut Instance> {
        let at = usize::try_from(n.checked_sub(self.base)?).ok()?;
        if at >= self.instances.len() {
            if self.instances.capacity() == 0 {
                // Most communicators have one open collective at a time, and some programs create
                // many.
                self.instances.reserve_exact(at + 1);
            }
            self.instances.resize_with(at + 1, Instance::default);
        }
        self.instances.get_mut(at)
    }
}

/// All groups of an agent.
pub struct Groups {
    /// By the agent's group number.
    pub groups: Vec<Group>,
    /// Members with a trace, in all agents.
    pub expected: Vec<u32>,
    /// Neighbours in communicators with a topology.
    pub topology: Topology,
    lines: Vec<Line>,
    numbers: FxHashMap<u64, u32>,
    /// See [`is_apart`].
    pub tolerance: i64,
    /// Whether late members share the blame; otherwise the last one has it all.
    pub shares: bool,
    /// By group: number of instances that a rank left before all had entered.
    pub apart: FxHashMap<u64, u64>,
    /// See [`Between`].
    pub between: Between,
}

impl Groups {
    /// No member has entered.
    pub fn new(groups: Vec<Group>, expected: Vec<u32>, topology: Topology) -> Self {
        let numbers = groups
            .iter()
            .enumerate()
            .map(|(at, g)| (g.id, at as u32))
            .collect();
        let lines = groups.iter().map(|_| Line::default()).collect();
        Groups {
            groups,
            expected,
            topology,
            lines,
            numbers,
            tolerance: 0,
            shares: true,
            apart: FxHashMap::default(),
            between: Between::default(),
        }
    }

    /// Adds a member's entry. The collective is settled if all members are here and this is the
    /// last one. `detail` says what a late member did.
    #[inline]
    pub fn enter(
        &mut self,
        entry: &GroupEntry,
        (rank, own): (u32, &Collectives),
        row: &Row,
        detail: impl Fn(&Party, &Fold) -> Option<Detail>,
    ) {
        let group = entry.group as usize;
        let (local, is_here) = (self.groups[group].local, self.is_here(entry.group));
        let is_shared = self.shares && entry.part.is_awaited && is_shared(row.shape);
        let Some(instance) = self.lines[group].instance(entry.n) else {
            return;
        };
        instance.fold.add(entry, rank, row.operation);
        if keeps_members(row.shape) {
            instance.members.push(own.member(rank, entry));
        } else if is_shared {
            keep_latest(&mut instance.members, own.member(rank, entry));
        }
        *instance.interested.get_mut() += u32::from(entry.asks);
        if is_here && instance.fold.count == local {
            instance.sent = true;
            self.between.add(&instance.fold);
            if is_apart(&instance.fold, self.tolerance) {
                *self.apart.entry(self.groups[group].id).or_default() += 1;
            }
            if *instance.interested.get_mut() > 0 {
                instance.fold.group = self.groups[group].id;
                instance.settle(&self.topology, detail);
            }
        }
    }

    /// Adds a transfer that precedes a member's entry into a fence.
    pub fn transfer(&mut self, group: u32, n: u64, transfer: Member) {
        if let Some(instance) = self.lines[group as usize].instance(n) {
            instance.members.push(transfer);
        }
    }

    /// Whether all members of a group that have a trace are at this agent.
    fn is_here(&self, group: u32) -> bool {
        self.groups[group as usize].local == self.expected[group as usize]
    }

    /// Whether a member's wait is settled. If the member asks for the outcome and it is known, it
    /// goes to `charge`.
    pub fn charged(&self, waiter: &Waiter, charge: impl FnOnce(&Instance)) -> bool {
        let line = &self.lines[waiter.group as usize];
        let at = waiter.n.checked_sub(line.base);
        let Some(instance) = at.and_then(|at| line.instances.get(at as usize)) else {
            return true;
        };
        if waiter.asks {
            if !instance.is_settled {
                return false;
            }
            charge(instance);
        }
        instance.interested.fetch_sub(1, Relaxed);
        true
    }

    /// The group and outcome of the collective that a member waits for, if known.
    pub fn outcome_of(&self, waiter: &Waiter) -> Option<(u64, &Fold)> {
        let line = &self.lines[waiter.group as usize];
        let at = usize::try_from(waiter.n.checked_sub(line.base)?).ok()?;
        let instance = line.instances.get(at).filter(|one| one.is_settled)?;
        Some((self.groups[waiter.group as usize].id, &instance.fold))
    }

    /// This agent's number of a group.
    pub fn number(&self, id: u64) -> Option<u32> {
        self.numbers.get(&id).copied()
    }

    /// The folds that are complete for this agent's members; all of them at the `end`.
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

    /// Stores an outcome.
    pub fn outcome(&mut self, fold: &Fold, members: &[Member]) {
        if let Some(instance) = self.known(fold.group, fold.n) {
            instance.fold = *fold;
            instance.members = members.to_vec();
            instance.is_settled = true;
        }
    }

    /// Stores what a late member did.
    pub fn detail(&mut self, told: &Told) {
        if let Some(instance) = self.known(told.group, told.n) {
            instance.details.push(told.detail);
        }
    }

    fn known(&mut self, group: u64, n: u64) -> Option<&mut Instance> {
        let number = *self.numbers.get(&group)?;
        self.lines[number as usize].instance(n)
    }

    /// Drops finished collectives at the front of each line.
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
            if line.instances.is_empty() {
                line.instances = VecDeque::new();
            }
        }
    }
}

impl Default for Fold {
    fn default() -> Self {
        let nobody = |enter| Party {
            enter,
            ..Party::default()
        };
        Fold {
            group: 0,
            n: 0,
            first_enter: i64::MAX,
            first_leave: i64::MAX,
            complete: i64::MIN,
            computed: 0,
            first: nobody(i64::MAX),
            last: nobody(i64::MIN),
            operation: u32::MAX,
            count: 0,
            expected: 0,
            wanted: 0,
            members: 0,
        }
    }
}

impl Fold {
    #[inline]
    fn add(&mut self, entry: &GroupEntry, rank: u32, operation: u16) {
        self.count += 1;
        self.operation = self.operation.min(u32::from(operation));
        // A region of the program is known only at its end.
        let known = match usize::from(operation) >= NUMBERS {
            true => entry.leave,
            false => entry.enter,
        };
        self.complete = self.complete.max(known);
        self.computed = self.computed.max(entry.computed);
        self.first_leave = self.first_leave.min(entry.leave);
        if entry.part.waits {
            self.first_enter = self.first_enter.min(entry.enter);
        }
        if entry.part.is_awaited {
            self.add_awaited(&entry.party(rank));
        }
    }

    fn join(&mut self, other: &Fold) {
        self.count += other.count;
        self.operation = self.operation.min(other.operation);
        self.complete = self.complete.max(other.complete);
        self.computed = self.computed.max(other.computed);
        self.first_leave = self.first_leave.min(other.first_leave);
        self.first_enter = self.first_enter.min(other.first_enter);
        if other.is_anybody_awaited() {
            self.add_awaited(&other.first);
            self.add_awaited(&other.last);
        }
    }

    /// Ties go to the lower rank, so that the order of adding does not matter.
    #[inline]
    fn add_awaited(&mut self, party: &Party) {
        if (party.enter, party.rank) < (self.first.enter, self.first.rank) {
            self.first = *party;
        }
        if party.is_later(&self.last) {
            self.last = *party;
        }
    }

    fn is_anybody_awaited(&self) -> bool {
        self.last.enter != i64::MIN
    }

    /// Who waits for whom.
    pub fn shape(&self) -> Shape {
        let call = u16::try_from(self.operation).ok().and_then(calls::call);
        call.map_or(Shape::Single, |call| call.shape)
    }
}

impl Party {
    /// Whether it entered after another; of two at once the lower rank counts as later.
    #[inline]
    fn is_later(&self, other: &Party) -> bool {
        self.enter > other.enter || (self.enter == other.enter && self.rank < other.rank)
    }
}

/// The members of a complete collective that can cause another's loss, each once. If single members
/// matter, sorts them and tells each its late member.
pub fn name_late(fold: &Fold, members: &mut [Member], topology: &Topology) -> SmallVec<[Party; 2]> {
    let is_late = |party: &&Party| party.enter > fold.first_enter;
    let ends: &[&Party] = match fold.shape() {
        Shape::Init | Shape::Single => &[],
        Shape::Fence => {
            let transfers = last_transfers(members);
            let all = transfers.chain([fold.last]);
            let mut all: SmallVec<[Party; 2]> = all.filter(|party| is_late(&party)).collect();
            all.sort_unstable_by_key(|party| (party.rank, party.event));
            all.dedup_by_key(|party| (party.rank, party.event));
            return all;
        }
        Shape::Prefix | Shape::Neighbourhood => {
            members.sort_unstable_by_key(|member| (member.local_rank, member.party.rank));
            match fold.shape() {
                Shape::Prefix => pair_with_lower(members),
                _ => pair_with_neighbours(fold.group, members, topology),
            }
            return named(members);
        }
        _ if !fold.is_anybody_awaited() => &[],
        shape if is_shared(shape) && !members.is_empty() => {
            members.sort_unstable_by_key(|m| (m.party.enter, std::cmp::Reverse(m.party.rank)));
            let first = (shape == Shape::AllToOne).then_some(fold.first);
            let latest = members.iter().map(|member| member.party);
            let first = first.filter(|first| latest.clone().all(|m| m.rank != first.rank));
            let all = first.into_iter().chain(latest);
            return all.filter(|party| is_late(&party)).collect();
        }
        Shape::AllToOne if fold.first.rank != fold.last.rank => &[&fold.first, &fold.last],
        _ => &[&fold.last],
    };
    ends.iter().copied().filter(is_late).copied().collect()
}

/// The transfer that left last, for each target, of the transfers before a fence. Ties go to the
/// lower rank. Sorts them by target.
fn last_transfers(transfers: &mut [Member]) -> impl Iterator<Item = Party> {
    let key = |m: &Member| {
        (
            m.local_rank,
            std::cmp::Reverse((m.leave, std::cmp::Reverse(m.party.rank))),
        )
    };
    transfers.sort_unstable_by_key(key);
    let targets = transfers.chunk_by(|a, b| a.local_rank == b.local_rank);
    targets.map(|of_target| of_target[0].party)
}

/// Each member waits for the latest of the lower ranks.
fn pair_with_lower(members: &mut [Member]) {
    let mut latest = NONE;
    for at in 0..members.len() {
        members[at].late = latest;
        let party = &members[at].party;
        if latest == NONE || party.is_later(&members[latest as usize].party) {
            latest = at as u32;
        }
    }
}

/// Each member that asks waits for the latest of its neighbours. If the neighbours are unknown, any
/// member that entered before it left may be one, and nobody knows when they were through.
fn pair_with_neighbours(group: u64, members: &mut [Member], topology: &Topology) {
    for at in 0..members.len() {
        let own = &members[at];
        if own.asks == 0 {
            continue;
        }
        let position = |source: &u32| members.binary_search_by_key(source, |m| m.local_rank).ok();
        let sources = topology.sources(group, own.party.rank);
        let needed: SmallVec<[usize; 8]> = match sources {
            Some(sources) => sources.iter().filter_map(position).collect(),
            None => (0..members.len())
                .filter(|&other| members[other].party.enter <= own.leave)
                .collect(),
        };
        let later = |latest: usize, other: usize| {
            let is_later = members[other].party.is_later(&members[latest].party);
            if is_later { other } else { latest }
        };
        let latest = needed.iter().copied().filter(|&other| other != at);
        let latest = latest.reduce(later);
        let complete = latest.map_or(i64::MIN, |latest| members[latest].party.enter);
        let complete = complete.max(own.party.enter);
        let leaves = needed.iter().map(|&other| members[other].leave);
        let through = leaves.chain([own.leave]).filter(|&leave| leave >= complete);
        let through = through.min().filter(|_| sources.is_some());
        members[at].late = latest.map_or(NONE, |latest| latest as u32);
        members[at].through = through.unwrap_or(i64::MAX);
    }
}

/// The members that the asking ones waited for.
fn named(members: &[Member]) -> SmallVec<[Party; 2]> {
    let late = members.iter().filter(|member| member.asks != 0);
    let late = late.filter_map(|member| {
        let late = members.get(member.late as usize)?;
        (late.party.enter > member.party.enter).then_some(member.late)
    });
    let mut late: Vec<u32> = late.collect();
    late.sort_unstable();
    late.dedup();
    late.iter().map(|&at| members[at as usize].party).collect()
}

/// Joins the folds that agents send to the owner.
#[derive(Default)]
pub struct Owned {
    open: FxHashMap<(u64, u64), Joined>,
    /// Complete collectives that some agent wants.
    pub complete: Vec<Joined>,
    /// By group: number of instances that a rank left before all had entered.
    pub apart: FxHashMap<u64, u64>,
    /// See [`Between`].
    pub between: Between,
}

/// Joined folds of one collective.
#[derive(Default)]
pub struct Joined {
    /// The fold so far.
    pub fold: Fold,
    /// Single members.
    pub members: Vec<Member>,
    /// Agents that want the outcome.
    pub wanters: Vec<u32>,
}

impl Owned {
    /// Adds an agent's fold.
    pub fn add(
        &mut self,
        agent: u32,
        fold: Fold,
        members: impl Iterator<Item = Member>,
        tolerance: i64,
    ) {
        let key = (fold.group, fold.n);
        let joined = self.open.entry(key).or_default();
        (joined.fold.group, joined.fold.n) = key;
        joined.fold.join(&fold);
        match is_shared(fold.shape()) {
            true => members.for_each(|member| keep_latest(&mut joined.members, member)),
            false => joined.members.extend(members),
        }
        if fold.wanted != 0 {
            joined.wanters.push(agent);
        }
        if joined.fold.count >= fold.expected
            && let Some(joined) = self.open.remove(&key)
        {
            self.between.add(&joined.fold);
            if is_apart(&joined.fold, tolerance) {
                *self.apart.entry(fold.group).or_default() += 1;
            }
            if !joined.wanters.is_empty() {
                self.complete.push(joined);
            }
        }
    }

    /// Collectives that some member never entered, according to the traces.
    pub fn incomplete(&self) -> impl Iterator<Item = &Fold> {
        self.open.values().map(|joined| &joined.fold)
    }
}

impl Instance {
    /// Settles a collective that all members have entered.
    fn settle(&mut self, topology: &Topology, detail: impl Fn(&Party, &Fold) -> Option<Detail>) {
        let late = name_late(&self.fold, &mut self.members, topology);
        let details = late.iter().filter_map(|party| detail(party, &self.fold));
        self.details.extend(details);
        self.is_settled = true;
    }

    /// The last member to enter that provides something to others, if there is one.
    pub fn last_awaited(&self) -> Option<&Party> {
        let is_there = self.fold.is_anybody_awaited();
        is_there.then_some(&self.fold.last)
    }

    /// The shares of the late members in a wait from one moment until another, ns: the time between
    /// two successive enters is divided equally among all that are missing (the Shapley value of
    /// "until all are there"). Time in which more are missing than are known is left out.
    fn shares(&self, from: i64, until: i64) -> SmallVec<[(i64, Party); MOST_LATE]> {
        let late = self.members.partition_point(|m| m.party.enter <= from);
        let late = &self.members[late..];
        let mut shares: SmallVec<[(i64, Party); MOST_LATE]> =
            late.iter().map(|member| (0, member.party)).collect();
        let is_whole = late.len() < MOST_LATE || self.fold.count as usize <= MOST_LATE;
        let mut since = match late.first() {
            Some(first) if !is_whole => first.party.enter,
            _ => from,
        };
        for at in 0..shares.len() {
            let until = shares[at].1.enter.min(until);
            let missing = (shares.len() - at) as i64;
            let time = (until - since).max(0);
            for (share, _) in &mut shares[at..] {
                *share += time / missing;
            }
            if let Some((share, _)) = shares.last_mut() {
                *share += time % missing;
            }
            since = since.max(until);
        }
        shares.retain(|(share, _)| *share > 0);
        shares
    }

    /// The last transfer before a fence into the memory of this world rank.
    fn last_transfer(&self, rank: u32) -> Option<&Member> {
        let at = self.members.partition_point(|m| m.local_rank < rank);
        self.members.get(at).filter(|m| m.local_rank == rank)
    }

    /// The member `local_rank`, and the one that it waited for, if single members matter.
    fn awaited_by(&self, local_rank: u32) -> Option<(&Member, &Party)> {
        let at = self
            .members
            .binary_search_by_key(&local_rank, |m| m.local_rank);
        let own = &self.members[at.ok()?];
        Some((own, &self.members.get(own.late as usize)?.party))
    }
}

/// Names a waiting member's losses in a collective. `rank` and `local_rank` are the member's, `row`
/// is the collective's. A loss without cause was due to the library, not to a member.
pub fn losses(
    waiter: &Waiter,
    instance: &Instance,
    (rank, local_rank): (u32, impl FnOnce() -> u32),
    row: &Row,
    found: impl FnMut(Loss),
) {
    let own = Interval::new(waiter.enter, waiter.leave);
    let fold = &instance.fold;
    let operation = row.operation;
    let mut member = Losing {
        instance,
        operation,
        found,
    };
    let last = fold.last.enter;
    let waited = group::wait_before_last(own, last);
    let completed = |pattern| (pattern, group::completion(own, fold.first_leave, last));
    let is_known = !waiter.posted && fold.first_leave != i64::MAX;
    let mut lose_completion = |(pattern, severity): (PatternId, i64)| {
        if is_known {
            member.lose(pattern, severity, None);
        }
    };
    let for_last = match row.shape {
        Shape::Barrier => {
            lose_completion(completed(PatternId::BarrierCompletion));
            PatternId::WaitAtBarrier
        }
        Shape::PeBarrier => {
            lose_completion(completed(PatternId::BarrierCompletion));
            PatternId::WaitAtShmemBarrier
        }
        Shape::AllToAll => {
            lose_completion(completed(PatternId::NxnCompletion));
            PatternId::WaitAtNxn
        }
        Shape::Init => return lose_completion(completed(PatternId::InitCompletion)),
        Shape::Neighbourhood => {
            // Data that came after this member left was not needed.
            if let Some((known, late)) = instance.awaited_by(local_rank())
                && late.enter <= own.leave
            {
                let completion = group::completion(own, known.through, late.enter);
                lose_completion((PatternId::NxnCompletion, completion));
                let severity = group::wait_before_last(own, late.enter);
                member.lose(PatternId::WaitAtNxn, severity, Some(late));
            }
            return;
        }
        Shape::Prefix => {
            if let Some((_, late)) = instance.awaited_by(local_rank()) {
                let severity = group::early_scan(own, late.enter);
                member.lose(PatternId::EarlyScan, severity, Some(late));
            }
            return;
        }
        Shape::AllToOne if fold.is_anybody_awaited() => {
            let early = group::early_reduce(own, fold.first.enter);
            let rest = group::late_reduce_contribution(own, last, early);
            member.lose(PatternId::EarlyReduce, early, Some(&fold.first));
            let from = own.enter + early;
            return member.lose_shared(PatternId::LateReduceContribution, rest, from);
        }
        Shape::OneToAll => {
            // Only the root is awaited.
            let severity = group::late_broadcast(own, last);
            return member.lose(PatternId::LateBroadcast, severity, Some(&fold.last));
        }
        Shape::Management => PatternId::WaitAtCommManagement,
        Shape::WindowCreate => PatternId::WaitAtWindowCreate,
        Shape::WindowFree => PatternId::WaitAtWindowFree,
        Shape::CollectiveIo => PatternId::WaitAtCollectiveIo,
        Shape::Finalize => PatternId::WaitAtFinalize,
        Shape::Fence => {
            // A member that need not wait did not, if it left before the last one entered.
            if row.lifted && own.leave < last {
                return;
            }
            let transfer = instance.last_transfer(rank);
            let early = transfer.map_or(0, |t| window::early_fence(own, t.leave).min(waited));
            member.lose(PatternId::EarlyFence, early, transfer.map(|t| &t.party));
            let pattern = match instance.members.is_empty() {
                true => PatternId::WaitAtFenceSync,
                false => PatternId::WaitAtFence,
            };
            return member.lose(pattern, waited - early, Some(&fold.last));
        }
        Shape::AllToOne | Shape::Single => return,
    };
    member.lose_shared(for_last, waited, own.enter);
}

/// A member that lost time in a collective.
struct Losing<'i, F> {
    instance: &'i Instance,
    operation: u16,
    found: F,
}

impl<F: FnMut(Loss)> Losing<'_, F> {
    /// What a late member did, as far as it is known.
    fn detail(&self, late: &Party) -> Detail {
        let mut details = self.instance.details.iter();
        let known = details.find(|known| (known.rank, known.event) == (late.rank, late.event));
        known.copied().unwrap_or(Detail {
            rank: late.rank,
            thread: late.thread,
            operation: self.operation,
            time: late.enter,
            event: late.event,
            ..Detail::default()
        })
    }

    fn lose_to(&mut self, pattern: PatternId, severity: i64, whom: Whom) {
        if severity > 0 {
            (self.found)(Loss {
                whom,
                left: self.instance.fold.first_leave,
                ..Loss::sure(pattern, severity, None)
            });
        }
    }

    fn lose(&mut self, pattern: PatternId, severity: i64, late: Option<&Party>) {
        match late {
            None => self.lose_to(pattern, severity, Whom::Nobody),
            Some(late) => self.lose_to(pattern, severity, Whom::One(&self.detail(late))),
        }
    }

    /// A wait for all members, from one moment on, ns.
    fn lose_shared(&mut self, pattern: PatternId, severity: i64, from: i64) {
        let instance = self.instance;
        if instance.members.is_empty() || !is_shared(instance.fold.shape()) {
            return self.lose(pattern, severity, Some(&instance.fold.last));
        }
        let shares = instance.shares(from, from.saturating_add(severity));
        match &shares[..] {
            [(share, late)] if *share == severity => self.lose(pattern, severity, Some(late)),
            shares => {
                let late = shares
                    .iter()
                    .map(|(share, late)| (*share, self.detail(late)));
                let late: SmallVec<[_; MOST_LATE]> = late.collect();
                self.lose_to(pattern, severity, Whom::Several(&late));
            }
        }
    }
}

impl GroupEntry {
    pub fn party(&self, rank: u32) -> Party {
        Party {
            enter: self.enter,
            event: self.event,
            rank,
            thread: self.thread,
            signature: self.signature,
        }
    }
}

/// One member's entry into a collective.
#[derive(Clone, Copy, Debug)]
pub struct GroupEntry {
    /// The agent's number of the group.
    pub group: u32,
    /// Which collective of the group.
    pub n: u64,
    /// Enter, ns.
    pub enter: i64,
    /// Leave, ns; `i64::MAX` for a non-blocking collective.
    pub leave: i64,
    /// Number of the call in the location.
    pub event: u64,
    /// Position of the thread in the rank.
    pub thread: u32,
    pub signature: u32,
    /// Its relation to the other members.
    pub part: Part,
    /// If all ranks of the run meet: its computation since the previous meeting, ns.
    pub computed: i64,
    /// Whether the member will ask for the outcome.
    pub asks: bool,
}

/// The last member to enter of those that a member needs. `row` is the collective's.
pub fn needed<'i>(instance: &'i Instance, row: &Row) -> Option<&'i Party> {
    let is_needed = match row.shape {
        // Only the root counts, or only the members that provide data.
        Shape::OneToAll | Shape::AllToOne => true,
        _ => row.meets,
    };
    instance.last_awaited().filter(|_| is_needed)
}

/// Whether ranks did not meet in a region of the program; `fold` is complete. True if a member left
/// more than `tolerance` ns (the clock error) before the last one entered.
pub fn is_apart(fold: &Fold, tolerance: i64) -> bool {
    let is_own = fold.operation >= NUMBERS as u32 && fold.operation != u32::MAX;
    is_own && fold.last.enter.saturating_sub(fold.first_leave) > tolerance
}
