//! What members lose in collectives.

use laggard_patterns::{Interval, PatternId, group, window};
use laggard_trace::calls::Shape;
use smallvec::SmallVec;

use crate::collectives::late::{Latest, MOST_LATE, Whole, shares};
use crate::messages::charges::Waiter;
use crate::stream::rows::Row;
use crate::waits::charging::{Loss, Whom};
use crate::wire::parcels::{Detail, Party};

/// Names a waiting member's losses in a collective. `rank` and `local_rank` are the member's, `row`
/// is the collective's. A loss without cause was due to the library, not to a member.
pub fn losses(
    waiter: &Waiter,
    (whole, details): (&Whole, &[Detail]),
    (rank, local_rank): (u32, impl FnOnce() -> u32),
    row: &Row,
    found: impl FnMut(Loss),
) {
    let own = Interval::new(waiter.enter, waiter.leave);
    let fold = whole.fold;
    let operation = row.operation;
    let mut member = Losing {
        whole,
        details,
        operation,
        found,
    };
    let is_known = !waiter.posted && fold.first_leave != i64::MAX;
    if whole.is_missed && is_known {
        let until = group::until_first_out(own, fold.last.enter, fold.first_leave);
        member.lose(PatternId::PartnerWithoutTrace, until, None);
    }
    let last = fold.last.enter;
    let waited = group::wait_before_last(own, last);
    let completed = |pattern| (pattern, group::completion(own, fold.first_leave, last));
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
            if let Some((at, known)) = whole.member(local_rank())
                && let Some(late) = whole.awaited_by(at)
                // Data that came after this member left was not needed.
                && late.enter <= own.leave
            {
                let completion = group::completion(own, known.through, late.enter);
                lose_completion((PatternId::NxnCompletion, completion));
                let severity = group::wait_before_last(own, late.enter);
                member.lose_to_late(PatternId::WaitAtNxn, severity, own.enter, || {
                    whole.latest_for(at)
                });
            }
            return;
        }
        Shape::Prefix => {
            if let Some((at, _)) = whole.member(local_rank())
                && let Some(late) = whole.awaited_by(at)
            {
                let severity = group::early_scan(own, late.enter);
                member.lose_to_late(PatternId::EarlyScan, severity, own.enter, || {
                    whole.latest_for(at)
                });
            }
            return;
        }
        Shape::AllToOne if !waiter.waits => {
            return member.lose_held(waiter, own.enter);
        }
        Shape::AllToOne if fold.is_anybody_awaited() => {
            let early = group::early_reduce(own, fold.first.enter);
            let rest = group::late_reduce_contribution(own, last, early);
            // Until the first one comes, all are missing.
            match whole.shares {
                true => member.lose_shared(PatternId::EarlyReduce, early, own.enter),
                false => member.lose(PatternId::EarlyReduce, early, Some(&fold.first)),
            }
            let from = own.enter + early;
            return member.lose_shared(PatternId::LateReduceContribution, rest, from);
        }
        Shape::OneToAll => {
            // Only the root is awaited.
            let late = match waiter.waits {
                true => group::late_broadcast(own, last),
                false => 0,
            };
            member.lose(PatternId::LateBroadcast, late, Some(&fold.last));
            return member.lose_held(waiter, own.enter.saturating_add(late));
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
            let transfer = whole.last_transfer(rank);
            let early = transfer.map_or(0, |t| window::early_fence(own, t.leave).min(waited));
            member.lose(PatternId::EarlyFence, early, transfer.map(|t| &t.party));
            let pattern = match whole.has_transfers() {
                true => PatternId::WaitAtFence,
                false => PatternId::WaitAtFenceSync,
            };
            return member.lose_shared(pattern, waited - early, own.enter + early);
        }
        Shape::AllToOne | Shape::Single => return,
    };
    member.lose_shared(for_last, waited, own.enter);
}

/// A member that lost time in a collective.
struct Losing<'i, F> {
    whole: &'i Whole<'i>,
    /// What late members did, with the numbers of their calls.
    details: &'i [Detail],
    operation: u16,
    found: F,
}

impl<F: FnMut(Loss)> Losing<'_, F> {
    /// What a late member did, as far as it is known.
    fn detail(&self, late: &Party) -> Detail {
        let mut details = self.details.iter();
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
                group: self.whole.fold.group,
                left: match pattern {
                    // The two of them met, not all.
                    PatternId::WaitForMember => i64::MAX,
                    _ => self.whole.fold.first_leave,
                },
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
        let whole = self.whole;
        self.lose_to_late(pattern, severity, from, || match whole.shares {
            true => whole.latest(from),
            false => Latest::new(),
        });
    }

    /// What others held up of whom it needs nothing, from one moment on, ns: the root first, then the others.
    fn lose_held(&mut self, waiter: &Waiter, from: i64) {
        let own = Interval::new(waiter.enter, waiter.leave);
        let (whole, pattern) = (self.whole, PatternId::WaitForMember);
        if !whole.shares {
            return;
        }
        let mut held = |from: i64, late: Latest| {
            let last = late.last().map_or(i64::MIN, |party| party.enter);
            let severity = match own.leave.saturating_sub(from) >= waiter.usual.slow {
                true => group::wait_for_member(own, from, last, waiter.usual.expected),
                false => 0,
            };
            self.lose_to_late(pattern, severity, from, || late);
            from.max(last)
        };
        let root = whole.root().copied();
        let root = root.filter(|root| (from + 1..=own.leave).contains(&root.enter));
        let from = held(from, root.into_iter().collect());
        held(from, whole.latest_until(from, own.leave));
    }

    /// A wait for late members, from one moment on, ns; if none of them is known, for the last one.
    fn lose_to_late(
        &mut self,
        pattern: PatternId,
        severity: i64,
        from: i64,
        late: impl FnOnce() -> Latest,
    ) {
        if severity <= 0 {
            return;
        }
        let late = late();
        if late.is_empty() {
            return self.lose(pattern, severity, Some(&self.whole.fold.last));
        }
        let shares = shares(&late, from, from.saturating_add(severity));
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
