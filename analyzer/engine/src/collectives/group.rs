//! Collectives. An agent folds its own members. An owner joins the folds of all agents and sends
//! the outcome to the agents that asked. The agents of late members report what those did.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use laggard_trace::calls::{self, NUMBERS, Shape};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::basics::intern::Group;
use crate::collectives::between::Between;
use crate::collectives::late::{Whole, arrange, is_shared, keep_latest, keeps_members, order};
use crate::collectives::own::Collectives;
use crate::collectives::topology::Topology;
use crate::messages::charges::Waiter;
use crate::stream::roles::Part;
use crate::stream::rows::Row;
use crate::wire::parcels::{Detail, Fold, Member, Party, Told};

/// The agent that joins the folds of a collective.
pub fn owner(group: u64, n: u64, agents: usize) -> usize {
    let mixed = (group ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    ((mixed >> 32) as usize) % agents
}

/// One collective. Holds this agent's members, and all members once it is settled.
#[derive(Debug, Default)]
pub struct Instance {
    fold: Fold,
    /// See [`arrange`].
    members: Vec<Member>,
    /// Of a scan, once it is settled: their positions, the latest first.
    order: Vec<u32>,
    /// What late members did, with the numbers of their calls.
    details: Vec<Detail>,
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

    /// Ids of all groups by number.
    pub fn ids(&self) -> Vec<u64> {
        self.groups.iter().map(|group| group.id).collect()
    }

    /// Goes on with the groups of the same trace, which was opened again: what was known before has the
    /// same numbers there.
    pub fn onto(mut self, mut groups: Groups) -> Groups {
        self.lines.resize_with(groups.lines.len(), Line::default);
        groups.lines = self.lines;
        groups.apart = self.apart;
        groups.between = self.between;
        groups
    }

    /// Adds a member's entry.
    #[inline]
    pub fn enter(&mut self, entry: &GroupEntry, (rank, own): (u32, &Collectives), row: &Row) {
        let group = entry.group as usize;
        let (local, is_here) = (self.groups[group].local, self.is_here(entry.group));
        let is_kept = match row.shape.is_rooted() {
            true => entry.part.is_held,
            false => entry.part.is_awaited && is_shared(row.shape),
        };
        let Some(instance) = self.lines[group].instance(entry.n) else {
            return;
        };
        instance.fold.add(entry, rank, row.operation);
        if keeps_members(row.shape) {
            instance.members.push(own.member(rank, entry));
        } else if is_kept && self.shares {
            // The root that the others have data for is named, however early it came.
            let is_apart = row.shape == Shape::AllToOne && entry.part.waits;
            let mut member = own.member(rank, entry);
            member.is_apart = u32::from(is_apart);
            keep_latest(&mut instance.members, member);
        }
        *instance.interested.get_mut() += u32::from(entry.asks);
        if is_here && instance.fold.count == local {
            instance.sent = true;
            self.between.add(&instance.fold);
            if is_apart(&instance.fold, self.tolerance) {
                *self.apart.entry(self.groups[group].id).or_default() += 1;
            }
            instance.fold.group = self.groups[group].id;
        }
    }

    /// Settles the collectives whose members are all here and have entered. `detail` says what a late
    /// member did.
    pub fn settle(&mut self, detail: impl Fn(&Party, &Fold) -> Option<Detail> + Sync) {
        let by = (&self.topology, self.shares);
        let lines = self.lines.par_iter_mut().zip(&self.expected);
        lines.for_each(|(line, &expected)| {
            line.instances.par_iter_mut().for_each(|instance| {
                let is_open = instance.sent && !instance.is_settled;
                let is_here = is_open && instance.fold.count == expected;
                if is_here && *instance.interested.get_mut() > 0 {
                    instance.settle(by, &detail);
                }
            });
        });
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
            if fold.shape() == Shape::Prefix {
                instance.order = order(members);
            }
            instance.is_settled = true;
        }
    }

    /// Stores what a late member did.
    pub fn detail(&mut self, told: &Told) {
        if let Some(instance) = self.known(told.group, told.n) {
            instance.details.push(told.detail);
        }
    }

    /// Whether a member of a group has no trace.
    pub fn is_missed(&self, group: u32) -> bool {
        let group = group as usize;
        self.groups[group].size > self.expected[group]
    }

    /// A settled collective.
    pub fn whole<'i>(&'i self, instance: &'i Instance, group: u32) -> Whole<'i> {
        Whole {
            is_missed: self.is_missed(group),
            ..instance.whole(&self.topology, self.shares)
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
            held: 0,
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
        let is_held = entry.asks && !entry.part.waits;
        self.held += u32::from(is_held);
        if entry.part.waits || is_held {
            self.first_enter = self.first_enter.min(entry.enter);
        }
        if entry.part.is_awaited {
            self.add_awaited(&entry.party(rank));
        }
    }

    fn join(&mut self, other: &Fold) {
        self.count += other.count;
        self.held += other.held;
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

    /// Whether a member provides something to others.
    pub fn is_anybody_awaited(&self) -> bool {
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
    pub fn is_later(&self, other: &Party) -> bool {
        self.enter > other.enter || (self.enter == other.enter && self.rank < other.rank)
    }
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
    fn settle(
        &mut self,
        (topology, shares): (&Topology, bool),
        detail: impl Fn(&Party, &Fold) -> Option<Detail>,
    ) {
        self.order = arrange(&self.fold, &mut self.members, topology);
        let late = self.whole(topology, shares).name_late();
        let details = late.iter().filter_map(|party| detail(party, &self.fold));
        self.details = details.collect();
        self.is_settled = true;
    }

    /// All of it, once it is settled.
    fn whole<'i>(&'i self, topology: &'i Topology, shares: bool) -> Whole<'i> {
        Whole {
            fold: &self.fold,
            members: &self.members,
            order: &self.order,
            topology,
            shares,
            is_missed: false,
        }
    }

    /// What late members did.
    pub fn details(&self) -> &[Detail] {
        &self.details
    }

    /// Whom the member needs that enters last. `row` is the collective's.
    pub fn needed(&self, row: &Row) -> Option<&Party> {
        let is_needed = match row.shape {
            // Only the root counts, or only the members that provide data.
            Shape::OneToAll | Shape::AllToOne => true,
            _ => row.meets,
        };
        self.last_awaited().filter(|_| is_needed)
    }

    /// The last member to enter that provides something to others, if there is one.
    pub fn last_awaited(&self) -> Option<&Party> {
        let is_there = self.fold.is_anybody_awaited();
        is_there.then_some(&self.fold.last)
    }
}

impl GroupEntry {
    pub fn party(&self, rank: u32) -> Party {
        Party {
            enter: self.enter,
            event: self.event,
            rank,
            thread: self.thread_number,
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
    /// Its number in the trace.
    pub thread_number: u32,
    pub signature: u32,
    /// Its relation to the other members.
    pub part: Part,
    /// If all ranks of the run meet: its computation since the previous meeting, ns.
    pub computed: i64,
    /// Whether the member will ask for the outcome.
    pub asks: bool,
}

/// Whether ranks did not meet in a region of the program; `fold` is complete. True if a member left
/// more than `tolerance` ns (the clock error) before the last one entered.
pub fn is_apart(fold: &Fold, tolerance: i64) -> bool {
    let is_own = fold.operation >= NUMBERS as u32 && fold.operation != u32::MAX;
    is_own && fold.last.enter.saturating_sub(fold.first_leave) > tolerance
}
