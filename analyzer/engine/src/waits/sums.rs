//! Sums of findings; the order of adding does not matter.

use std::cmp::Reverse;
use std::hash::{Hash, Hasher};

use laggard_patterns::PatternId;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::basics::ends::NONE;
use crate::basics::intern::PathKey;
use crate::waits::charging::{Sink, WaitState, Whom};
use crate::waits::packed;
use crate::waits::spread::Spread;
use crate::wire::packing::{Mask, Pack, Packer, Unpacker, entries};
use crate::wire::parcels::{Detail, WHOLE};

entries! {
    /// The late party of a finding.
    #[derive(Default, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    CauseKey {
        /// World rank.
        rank: u32,
        /// Number of its thread in the trace.
        thread: u16,
        /// Number of its late call.
        operation: u16,
        /// Its call path.
        path: PathKey,
    }
    /// Activity of a late party while others waited. ns.
    ///
    /// Ordered by severity, then by the rest, so that the largest does not depend on the order of
    /// comparison.
    #[derive(Default, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    Parts {
        /// The waiting time.
        severity: u64,
        /// Part of it in which the late party computed.
        computation: u64,
        /// Part in which it was itself inside communication.
        waiting: u64,
        /// Part in which it was inside file operations.
        io: u64,
        /// Part in which it was off the processor by itself.
        blocked: u64,
        /// Part in which it was off the processor since another one had it.
        preempted: u64,
    }
    /// Calls that a late party was in before. ns.
    #[derive(Default, Serialize, Deserialize)]
    Other {
        /// Number of the call, and call path.
        at: (u16, PathKey),
        /// Time in them.
        time: u64,
        /// Part of it off the processor by itself, waiting or not.
        blocked: u64,
        /// Part of it off the processor since another one had it, waiting or not.
        preempted: u64,
    }
    /// A single instance, for the report's worst one.
    #[derive(Default, Eq, Serialize, Deserialize)]
    Worst {
        /// Time lost, ns.
        severity: u64,
        /// World rank.
        rank: u32,
        /// Number of its thread in the trace; 0 until that is known.
        thread: u32,
        /// World rank of the late party; [`NONE`] if there is none or it is unknown.
        late: u32,
        /// Enter, ns since the run's start.
        enter: i64,
        /// Leave, ns since the run's start.
        leave: i64,
    }
}

impl Hash for CauseKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Half of a path's key is unique enough for a hash.
        state.write_u64(self.path[0] ^ u64::from(self.operation));
        state.write_u32(self.rank ^ u32::from(self.thread) << 16);
    }
}

/// Activity of a late party over several instances. ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// All waiting charged to this party.
    pub sums: Parts,
    pub instances: u64,
    /// The longest instance.
    pub longest: Parts,
    /// Operations that it waited in.
    pub others: Vec<Other>,
}

/// The late parties of a finding: most of the many ranks have few.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Causes {
    few: Vec<(CauseKey, Cause)>,
    /// All, once there are more than `FEW`.
    many: Option<Box<FxHashMap<CauseKey, Cause>>>,
}

impl Causes {
    /// Up to this number they are searched linearly.
    const FEW: usize = 8;

    /// The sums of one party, created on first use.
    #[inline]
    pub fn of(&mut self, key: CauseKey) -> &mut Cause {
        match self.few.iter().position(|(known, _)| *known == key) {
            Some(at) => &mut self.few[at].1,
            None => self.of_further(key),
        }
    }

    /// See `of`.
    fn of_further(&mut self, key: CauseKey) -> &mut Cause {
        if self.few.len() == Self::FEW {
            let few = std::mem::take(&mut self.few);
            self.many = Some(Box::new(few.into_iter().collect()));
        }
        if let Some(many) = &mut self.many {
            return many.entry(key).or_default();
        }
        self.few.reserve_exact(1);
        self.few.push((key, Cause::default()));
        let last = self.few.len() - 1;
        &mut self.few[last].1
    }

    /// All late parties, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&CauseKey, &Cause)> {
        self.few
            .iter()
            .map(|(key, cause)| (key, cause))
            .chain(self.many.iter().flat_map(|many| many.iter()))
    }
}

impl IntoIterator for Causes {
    type Item = (CauseKey, Cause);
    type IntoIter = std::iter::Chain<
        std::vec::IntoIter<(CauseKey, Cause)>,
        std::collections::hash_map::IntoIter<CauseKey, Cause>,
    >;

    fn into_iter(self) -> Self::IntoIter {
        let many = self.many.map(|many| *many).unwrap_or_default();
        self.few.into_iter().chain(many)
    }
}

impl Worst {
    /// Ordered by severity; ties go to the earlier, then to the lower ranks.
    fn key(&self) -> (u64, Reverse<(i64, u32, u32, u32)>) {
        let rest = (self.enter, self.rank, self.thread, self.late);
        (self.severity, Reverse(rest))
    }

    /// The worse of two.
    pub fn worse(one: Option<Worst>, other: Option<Worst>) -> Option<Worst> {
        one.into_iter().chain(other).max_by_key(Worst::key)
    }
}

/// Sums of one pattern in one (operation, call path) on some ranks. ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sums {
    /// Time lost.
    pub severity: u64,
    /// Instances with a loss.
    pub instances: u64,
    /// Part of `severity` lost to a member on another host.
    pub inter_host: u64,
    /// Doubtful part of `severity`: calls ended otherwise than the pattern says.
    pub doubt: u64,
    /// The instances by time lost.
    pub spread: Spread,
    /// Least time of an instance's call beyond its loss.
    pub rest: Option<u64>,
    /// Per world rank: time lost and instances, ascending. Empty in a location's own sums: see
    /// [`LocalFindings::drain_into`].
    pub ranks: Vec<(u32, u64, u64)>,
    /// The late parties.
    pub causes: Causes,
    /// The worst instance.
    pub worst: Option<Worst>,
}

impl Sums {
    #[inline(always)]
    fn add(&mut self, wait: &WaitState) {
        let WaitState { waiting, loss, .. } = wait;
        let severity = loss.severity.max(0) as u64;
        self.severity = self.severity.saturating_add(severity);
        self.instances += 1;
        self.spread.add(severity);
        self.doubt = self.doubt.saturating_add(loss.doubt.max(0) as u64);
        let whole = waiting.leave.saturating_sub(waiting.since).max(0) as u64;
        let rest = whole.saturating_sub(severity);
        self.rest = Some(self.rest.map_or(rest, |least| least.min(rest)));
        self.inter_host = self
            .inter_host
            .saturating_add(wait.inter_host.max(0) as u64);
        let late = match loss.whom {
            Whom::Nobody => None,
            Whom::One(late) => {
                self.add_cause(severity, late);
                Some(late)
            }
            Whom::Several(shares) => self.add_shares(shares),
        };
        let worst = Worst {
            severity,
            rank: waiting.rank,
            thread: 0,
            late: late.map_or(NONE, |late| late.rank),
            enter: waiting.since,
            leave: waiting.leave,
        };
        if self.worst.is_none_or(|other| worst.key() > other.key()) {
            self.worst = Some(worst);
        }
    }

    /// Adds the shares of several late parties. Returns the one with the largest share.
    fn add_shares<'a>(&mut self, shares: &'a [(i64, Detail)]) -> Option<&'a Detail> {
        let shares = shares.iter().filter(|(share, _)| *share > 0);
        for (share, late) in shares.clone() {
            self.add_cause(*share as u64, late);
        }
        let largest = shares.max_by_key(|(share, late)| (*share, Reverse(late.rank)));
        largest.map(|(_, late)| late)
    }

    #[inline(always)]
    fn add_cause(&mut self, severity: u64, late: &Detail) {
        let key = CauseKey {
            rank: late.rank,
            thread: u16::try_from(late.thread).unwrap_or(u16::MAX),
            operation: late.operation,
            path: late.path,
        };
        self.causes.of(key).add(severity, late);
    }

    pub fn merge(&mut self, other: Sums) {
        self.severity = self.severity.saturating_add(other.severity);
        self.instances = self.instances.saturating_add(other.instances);
        self.inter_host = self.inter_host.saturating_add(other.inter_host);
        self.spread.merge(&other.spread);
        self.doubt = self.doubt.saturating_add(other.doubt);
        self.rest = self.rest.into_iter().chain(other.rest).min();
        for rank in other.ranks {
            add_rank(&mut self.ranks, rank);
        }
        self.worst = Worst::worse(self.worst, other.worst);
        for (key, cause) in other.causes {
            self.causes.of(key).merge(cause);
        }
    }
}

fn add_rank(ranks: &mut Vec<(u32, u64, u64)>, (rank, severity, instances): (u32, u64, u64)) {
    match ranks.last_mut() {
        Some(last) if last.0 == rank => {
            last.1 = last.1.saturating_add(severity);
            last.2 = last.2.saturating_add(instances);
        }
        _ => match ranks.binary_search_by_key(&rank, |r| r.0) {
            Ok(at) => {
                ranks[at].1 = ranks[at].1.saturating_add(severity);
                ranks[at].2 = ranks[at].2.saturating_add(instances);
            }
            Err(at) => ranks.insert(at, (rank, severity, instances)),
        },
    }
}

impl Parts {
    /// Adds another.
    pub fn add(&mut self, other: &Parts) {
        self.severity = self.severity.saturating_add(other.severity);
        self.computation = self.computation.saturating_add(other.computation);
        self.waiting = self.waiting.saturating_add(other.waiting);
        self.io = self.io.saturating_add(other.io);
        self.blocked = self.blocked.saturating_add(other.blocked);
        self.preempted = self.preempted.saturating_add(other.preempted);
    }

    /// Explained part of the waiting.
    pub fn known(&self) -> u64 {
        let off = self.blocked.saturating_add(self.preempted);
        let inside = self.waiting.saturating_add(self.io);
        self.computation.saturating_add(inside).saturating_add(off)
    }
}

impl Cause {
    #[inline]
    fn add(&mut self, severity: u64, late: &Detail) {
        // The late party's activity may cover more than this instance's wait (a collective's first
        // and last). It is scaled: the shares stay, the sum fits.
        let known = late
            .computation
            .saturating_add(late.waiting)
            .saturating_add(late.io)
            .saturating_add(late.blocked.saturating_add(late.preempted))
            .max(0) as u64;
        let share = |part: i64| {
            let part = part.max(0) as u64;
            if known <= severity || part == 0 {
                return part;
            }
            match part.checked_mul(severity) {
                Some(product) => product / known,
                None => (u128::from(part) * u128::from(severity) / u128::from(known)) as u64,
            }
        };
        let parts = Parts {
            severity,
            computation: share(late.computation),
            waiting: share(late.waiting),
            io: share(late.io),
            blocked: share(late.blocked),
            preempted: share(late.preempted),
        };
        self.sums.add(&parts);
        self.instances += 1;
        if parts > self.longest {
            self.longest = parts;
        }
        if late.other_operation != 0 {
            let time = share(late.other);
            let part =
                |parts: u8| (u128::from(time) * u128::from(parts) / u128::from(WHOLE)) as u64;
            self.add_other(Other {
                at: (late.other_operation, late.other_path),
                time,
                blocked: part(late.other_blocked),
                preempted: part(late.other_preempted),
            });
        }
    }

    fn add_other(&mut self, more: Other) {
        match self.others.iter_mut().find(|other| other.at == more.at) {
            Some(other) => {
                other.time = other.time.saturating_add(more.time);
                other.blocked = other.blocked.saturating_add(more.blocked);
                other.preempted = other.preempted.saturating_add(more.preempted);
            }
            None => {
                if self.others.is_empty() {
                    // Most causes have only one.
                    self.others.reserve_exact(1);
                }
                self.others.push(more);
            }
        }
    }

    /// Adds other instances of the same party.
    pub fn merge(&mut self, other: Cause) {
        self.sums.add(&other.sums);
        self.instances = self.instances.saturating_add(other.instances);
        self.longest = self.longest.max(other.longest);
        for entry in other.others {
            self.add_other(entry);
        }
    }
}

/// Key of a finding: pattern, number of the call, call path.
pub type FindingKey = (PatternNumber, u16, PathKey);
/// A [`PatternId`] as a number.
pub type PatternNumber = u8;

/// Findings of one or more agents.
pub type Findings = FxHashMap<FindingKey, Sums>;

/// By signature: few patterns each.
pub(super) type BySignature = Vec<Vec<(PatternNumber, Sums)>>;

/// Findings of one location, by signature with few patterns each.
#[derive(Debug, Default)]
pub struct LocalFindings {
    by_signature: BySignature,
    /// All of these, while they are [put away](Self::put_away).
    packed: Vec<u8>,
    /// Time lost in waits of all patterns, ns.
    pub waiting: u64,
}

impl Sink for LocalFindings {
    #[inline]
    fn take(&mut self, wait: &WaitState<'_>) {
        let pattern = wait.loss.pattern;
        self.of(pattern, wait.waiting.signature).add(wait);
        if pattern.is_waiting() {
            self.waiting = self.waiting.saturating_add(wait.loss.severity as u64);
        }
    }
}

impl LocalFindings {
    /// Adds time of all `calls` with a signature together, ns. It belongs to no single call.
    pub fn add_rest(&mut self, pattern: PatternId, signature: u32, (severity, calls): (u64, u64)) {
        if severity == 0 {
            return;
        }
        let sums = self.of(pattern, signature);
        sums.severity = sums.severity.saturating_add(severity);
        if sums.instances == 0 {
            sums.instances = calls;
        }
    }

    /// The sums of a pattern in calls with this signature, created on first use.
    #[inline(always)]
    fn of(&mut self, pattern: PatternId, signature: u32) -> &mut Sums {
        let (number, signature) = (pattern as u8, signature as usize);
        if signature >= self.by_signature.len() {
            self.by_signature.resize_with(signature + 1, Vec::new);
        }
        let patterns = &mut self.by_signature[signature];
        let at = patterns.iter().position(|(other, _)| *other == number);
        let at = at.unwrap_or_else(|| {
            patterns.reserve_exact(1);
            patterns.push((number, Sums::default()));
            patterns.len() - 1
        });
        &mut patterns[at].1
    }

    /// Number of wait states.
    pub fn waits(&self) -> u64 {
        self.waiting().map(|(_, sums)| sums.instances).sum()
    }

    /// Ranks that were waited for, with parts of that time, ns; a rank may come several times.
    pub fn waits_for(&self) -> impl Iterator<Item = (u32, u64)> {
        let causes = self.waiting().flat_map(|(_, sums)| sums.causes.iter());
        causes.map(|(late, cause)| (late.rank, cause.sums.severity))
    }

    /// Signatures and sums of all patterns of waiting.
    fn waiting(&self) -> impl Iterator<Item = (u32, &Sums)> {
        let waiting = self.iter().filter(|(_, pattern, _)| {
            PatternId::from_number(*pattern).is_some_and(PatternId::is_waiting)
        });
        waiting.map(|(signature, _, sums)| (signature, sums))
    }

    /// Packs the findings until they are brought back: with many ranks, they are much of the memory. Until
    /// then there are none.
    pub fn put_away(&mut self) {
        self.packed = packed::pack(std::mem::take(&mut self.by_signature));
    }

    /// The findings are as they were when they were put away.
    pub fn bring_back(&mut self) {
        self.by_signature = packed::unpack(&std::mem::take(&mut self.packed));
    }

    /// Drops the findings of calls with these signatures.
    pub fn forget(&mut self, is_wrong: impl Fn(u32) -> bool) {
        for (signature, patterns) in (0..).zip(&mut self.by_signature) {
            if !is_wrong(signature) {
                continue;
            }
            for (pattern, sums) in patterns.drain(..) {
                if PatternId::from_number(pattern).is_some_and(PatternId::is_waiting) {
                    self.waiting = self.waiting.saturating_sub(sums.severity);
                }
            }
        }
    }

    /// Signature, pattern and sums of all findings.
    pub fn iter(&self) -> impl Iterator<Item = (u32, PatternNumber, &Sums)> {
        let all = self.by_signature.iter().enumerate();
        all.flat_map(|(signature, patterns)| {
            let patterns = patterns.iter();
            patterns.map(move |(pattern, sums)| (signature as u32, *pattern, sums))
        })
    }

    /// Moves the findings of a thread, by rank and number, into `findings`; `name` gives a signature's call
    /// and call path.
    pub fn drain_into(
        &mut self,
        findings: &mut Findings,
        (rank, thread): (u32, u32),
        name: impl Fn(u32) -> (u16, PathKey),
    ) {
        for (signature, patterns) in self.by_signature.drain(..).enumerate() {
            for (pattern, mut sums) in patterns {
                sums.ranks.push((rank, sums.severity, sums.instances));
                if let Some(worst) = &mut sums.worst {
                    worst.thread = thread;
                }
                let (operation, path) = name(signature as u32);
                findings
                    .entry((pattern, operation, path))
                    .or_default()
                    .merge(sums);
            }
        }
    }
}

/// Most ranks and causes of a finding that are listed; the sums are over all.
pub const LISTED: usize = 32;
