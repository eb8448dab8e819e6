//! The losses of the simulated program, booked as they happen.
//!
//! The simulation knows both ends of every message and all members of every collective. The
//! formulas follow the catalogue's specification and share no code with the analyzer, so agreement
//! is between two independent derivations.

use rustc_hash::FxHashMap;

use super::site::SiteId;

/// A pattern of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    /// Receive waits for a send.
    LateSender,
    /// … while an older message of the same rank is there.
    WrongOrderSameSource,
    /// … while an older message of another rank is there.
    WrongOrderOtherSource,
    /// Send waits for a receive.
    LateReceiver,
    /// Barrier waits for the last.
    WaitAtBarrier,
    /// Barrier after the last came and the first left.
    BarrierCompletion,
    /// n-to-n operation waits for the last.
    WaitAtNxn,
    /// n-to-n operation after the last came and the first left.
    NxnCompletion,
    /// Members wait for the root.
    LateBroadcast,
    /// Root waits for the first member.
    EarlyReduce,
    /// Root waits for the last member, beyond `EarlyReduce`.
    LateReduceContribution,
    /// Finalize waits for the last.
    WaitAtFinalize,
    /// Init after the last came and the first left.
    InitCompletion,
    /// Making a communicator waits for the last.
    WaitAtCommManagement,
}

const PATTERNS: usize = Pattern::WaitAtCommManagement as usize + 1;

impl Pattern {
    /// All of them.
    pub const ALL: [Pattern; PATTERNS] = [
        Pattern::LateSender,
        Pattern::WrongOrderSameSource,
        Pattern::WrongOrderOtherSource,
        Pattern::LateReceiver,
        Pattern::WaitAtBarrier,
        Pattern::BarrierCompletion,
        Pattern::WaitAtNxn,
        Pattern::NxnCompletion,
        Pattern::LateBroadcast,
        Pattern::EarlyReduce,
        Pattern::LateReduceContribution,
        Pattern::WaitAtFinalize,
        Pattern::InitCompletion,
        Pattern::WaitAtCommManagement,
    ];

    /// As in the catalogue.
    pub fn id(self) -> &'static str {
        match self {
            Pattern::LateSender => "late_sender",
            Pattern::WrongOrderSameSource => "late_sender_wrong_order_same_source",
            Pattern::WrongOrderOtherSource => "late_sender_wrong_order_other_source",
            Pattern::LateReceiver => "late_receiver",
            Pattern::WaitAtBarrier => "wait_at_barrier",
            Pattern::BarrierCompletion => "barrier_completion",
            Pattern::WaitAtNxn => "wait_at_nxn",
            Pattern::NxnCompletion => "nxn_completion",
            Pattern::LateBroadcast => "late_broadcast",
            Pattern::EarlyReduce => "early_reduce",
            Pattern::LateReduceContribution => "late_reduce_contribution",
            Pattern::WaitAtFinalize => "wait_at_finalize",
            Pattern::InitCompletion => "init_completion",
            Pattern::WaitAtCommManagement => "wait_at_comm_management",
        }
    }

    /// Whether the time was spent waiting for another rank, not in the library.
    pub fn is_wait(self) -> bool {
        !matches!(
            self,
            Pattern::BarrierCompletion | Pattern::NxnCompletion | Pattern::InitCompletion
        )
    }
}

/// A late rank and its late call.
pub type Late = (u32, SiteId);

/// A loss of one call.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// What it is.
    pub pattern: Pattern,
    /// ns; zero is not booked.
    pub severity: u64,
    /// The rank that lost it.
    pub rank: u32,
    /// The call.
    pub site: SiteId,
    /// The call's enter and leave, ns.
    pub times: (u64, u64),
    /// The rank it waited for, if any.
    pub late: Option<Late>,
}

/// Sums of one pattern in the calls at one place.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// ns.
    pub severity: u64,
    /// Calls that lost time.
    pub instances: u64,
    /// ns lost to ranks on other hosts.
    pub inter_host: u64,
    /// By rank: ns and instances.
    pub ranks: Vec<(u64, u64)>,
    /// By late rank and call: ns.
    pub causes: FxHashMap<Late, u64>,
    /// The worst loss.
    pub worst: Option<Loss>,
}

/// All losses of a run.
pub struct Ledger {
    sites: usize,
    ranks: usize,
    /// Ranks with consecutive numbers on one host.
    ranks_per_host: u32,
    /// By pattern and place.
    sums: Vec<Option<Box<Sums>>>,
    /// By rank: ns spent waiting.
    pub waiting: Vec<u64>,
}

impl Ledger {
    /// Nothing lost yet.
    pub fn new(ranks: u32, ranks_per_host: u32, sites: usize) -> Ledger {
        Ledger {
            sites,
            ranks: ranks as usize,
            ranks_per_host,
            sums: vec![None; PATTERNS * sites],
            waiting: vec![0; ranks as usize],
        }
    }

    /// Books a loss.
    pub fn book(&mut self, loss: Loss) {
        if loss.severity == 0 {
            return;
        }
        if loss.pattern.is_wait() {
            self.waiting[loss.rank as usize] += loss.severity;
        }
        let at = loss.pattern as usize * self.sites + loss.site as usize;
        let sums = self.sums[at].get_or_insert_default();
        if sums.ranks.is_empty() {
            sums.ranks.resize(self.ranks, (0, 0));
        }
        sums.severity += loss.severity;
        sums.instances += 1;
        let rank = &mut sums.ranks[loss.rank as usize];
        *rank = (rank.0 + loss.severity, rank.1 + 1);
        if let Some(late) = loss.late {
            *sums.causes.entry(late).or_default() += loss.severity;
            if late.0 / self.ranks_per_host != loss.rank / self.ranks_per_host {
                sums.inter_host += loss.severity;
            }
        }
        if sums.worst.is_none_or(|worst| loss.is_worse(&worst)) {
            sums.worst = Some(loss);
        }
    }

    /// All sums, with pattern and place.
    pub fn sums(&self) -> impl Iterator<Item = (Pattern, SiteId, &Sums)> {
        let sums = self.sums.iter().enumerate();
        sums.filter_map(|(at, sums)| {
            let pattern = Pattern::ALL[at / self.sites];
            Some((pattern, (at % self.sites) as SiteId, sums.as_deref()?))
        })
    }
}

impl Loss {
    /// Whether this loss is worse. The earlier of equal ones counts, then the lower rank's.
    fn is_worse(&self, other: &Loss) -> bool {
        let key = |loss: &Loss| {
            let first = std::cmp::Reverse((loss.times.0, loss.rank));
            (loss.severity, first)
        };
        key(self) > key(other)
    }
}

/// A member of a collective that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// World rank.
    pub rank: u32,
    /// ns.
    pub enter: u64,
    /// ns.
    pub leave: u64,
}

/// Time from `enter` until another rank's `event`, at most until `leave`.
fn until(event: u64, enter: u64, leave: u64) -> u64 {
    event.min(leave).saturating_sub(enter)
}

/// The member that entered last; of ties the one with the lowest rank.
fn last(members: impl Iterator<Item = Member>) -> Option<Member> {
    members.max_by_key(|member| (member.enter, std::cmp::Reverse(member.rank)))
}

impl Ledger {
    /// Time that a receive lost. It entered at `times.0`; its message's send was entered at `sent`.
    pub fn late_sender(times: (u64, u64), sent: u64) -> u64 {
        until(sent, times.0, times.1)
    }

    /// Time that a blocked send lost. Its receive was posted at `posted`.
    pub fn late_receiver(times: (u64, u64), posted: u64) -> u64 {
        match posted < times.1 {
            true => posted.saturating_sub(times.0),
            false => 0,
        }
    }

    /// A collective in which all wait for the last member, and some then for the library.
    pub fn all_to_all(
        &mut self,
        site: SiteId,
        members: &[Member],
        wait: Option<Pattern>,
        completion: Option<Pattern>,
    ) {
        let Some(last) = last(members.iter().copied()) else {
            return;
        };
        let first_out = members.iter().map(|member| member.leave).min().unwrap_or(0);
        for member in members {
            let loss = |pattern, severity, late| Loss {
                pattern,
                severity,
                rank: member.rank,
                site,
                times: (member.enter, member.leave),
                late,
            };
            if let Some(pattern) = wait {
                let severity = until(last.enter, member.enter, member.leave);
                self.book(loss(pattern, severity, Some((last.rank, site))));
            }
            if let Some(pattern) = completion {
                let severity = member.leave.saturating_sub(first_out.max(last.enter));
                self.book(loss(pattern, severity, None));
            }
        }
    }

    /// A member that needs the root's data.
    pub fn one_to_all(&mut self, site: SiteId, member: &Member, root: &Member) {
        self.book(Loss {
            pattern: Pattern::LateBroadcast,
            severity: until(root.enter, member.enter, member.leave),
            rank: member.rank,
            site,
            times: (member.enter, member.leave),
            late: Some((root.rank, site)),
        });
    }

    /// A root that needs the data of all others.
    pub fn all_to_one(&mut self, site: SiteId, root: &Member, others: &[Member]) {
        let first = others
            .iter()
            .min_by_key(|member| (member.enter, member.rank));
        let (Some(first), Some(last)) = (first, last(others.iter().copied())) else {
            return;
        };
        let early = until(first.enter, root.enter, root.leave);
        let rest = until(last.enter, root.enter, root.leave) - early;
        for (pattern, severity, late) in [
            (Pattern::EarlyReduce, early, first.rank),
            (Pattern::LateReduceContribution, rest, last.rank),
        ] {
            self.book(Loss {
                pattern,
                severity,
                rank: root.rank,
                site,
                times: (root.enter, root.leave),
                late: Some((late, site)),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(times: &[(u64, u64)]) -> Vec<Member> {
        let members = times.iter().zip(0..);
        let member = |(&(enter, leave), rank)| Member { rank, enter, leave };
        members.map(member).collect()
    }

    fn booked(ledger: &Ledger) -> Vec<(&'static str, u64, u64)> {
        let sums = ledger.sums();
        sums.map(|(pattern, _, sums)| (pattern.id(), sums.severity, sums.instances))
            .collect()
    }

    #[test]
    fn losses_of_messages() {
        assert_eq!(Ledger::late_sender((10, 50), 30), 20);
        assert_eq!(Ledger::late_sender((10, 50), 5), 0);
        assert_eq!(Ledger::late_receiver((10, 50), 30), 20);
        assert_eq!(Ledger::late_receiver((10, 50), 50), 0);
        assert_eq!(Ledger::late_receiver((10, 50), 60), 0);
    }

    #[test]
    fn losses_of_collectives() {
        let mut ledger = Ledger::new(3, 2, 1);
        let met = members(&[(10, 105), (60, 101), (100, 102)]);
        let (wait, completion) = (Pattern::WaitAtNxn, Pattern::NxnCompletion);
        ledger.all_to_all(0, &met, Some(wait), Some(completion));
        assert_eq!(
            booked(&ledger),
            [("wait_at_nxn", 130, 2), ("nxn_completion", 5, 2)]
        );
        let (_, _, sums) = ledger.sums().next().unwrap();
        assert_eq!((sums.causes[&(2, 0)], sums.inter_host), (130, 130));
        assert_eq!(ledger.waiting, [90, 40, 0]);

        let mut ledger = Ledger::new(3, 3, 1);
        ledger.all_to_one(0, &met[0], &met[1..]);
        assert_eq!(
            booked(&ledger),
            [("early_reduce", 50, 1), ("late_reduce_contribution", 40, 1)]
        );
    }
}
