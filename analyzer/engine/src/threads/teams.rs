//! Meetings of OpenMP teams: at the begin of a region, at barriers, and at its end.

use laggard_patterns::PatternId;
use laggard_trace::calls::number;
use rustc_hash::FxHashMap;

use super::Settled;
use super::meetings::Meetings;
use crate::stream::call::CallAt;
use crate::stream::recorded::Recorded;
use crate::stream::rows::Row;
use crate::wire::parcels::Party;

/// The teams of a rank.
#[derive(Debug, Default)]
pub struct Teams {
    meetings: Meetings,
    /// Threads that wait for the begin of a region, by its key.
    idle: FxHashMap<u64, Vec<CallAt>>,
}

impl Teams {
    /// A thread idles until a region begins.
    pub fn idle(&mut self, call: &CallAt, key: u64) {
        self.idle.entry(key).or_default().push(*call);
    }

    /// A region begins, or the shut-down if the key is 0: who idled until now waited for the thread that
    /// forks it. Then the runtime wakes these threads.
    pub fn fork(&mut self, forker: &Party, key: u64, settled: &mut Vec<Settled>) {
        for idle in self.idle.remove(&key).into_iter().flatten() {
            if idle.asks {
                let begun = forker.enter.max(idle.enter);
                settled.push(Settled {
                    pattern: PatternId::IdleThreads,
                    late: vec![*forker],
                    since: idle.enter,
                    managed: if key == 0 { 0 } else { idle.leave - begun },
                    call: idle,
                    is_in_turn: false,
                });
            }
        }
    }

    /// All calls entered before `until` are known, ns: forgets what will never be complete.
    pub fn forget(&mut self, until: i64) {
        self.meetings.forget(until);
        self.idle.retain(|_, idle| {
            idle.retain(|call| call.leave >= until);
            !idle.is_empty()
        });
    }

    /// A thread comes to a barrier of its team of this size.
    pub fn meet(
        &mut self,
        (own, call): (&Recorded<'_>, &CallAt),
        meeting: (u64, u32),
        row: &Row,
        settled: &mut Vec<Settled>,
    ) {
        let Some(here) = self.meetings.come(call, meeting) else {
            return;
        };
        let since = here.iter().map(|call| call.enter).min();
        let last = here.iter().map(|call| call.enter).max();
        let pattern = match row.operation {
            number::omp_barrier => PatternId::WaitAtOmpBarrier,
            number::pthread_barrier_wait => PatternId::WaitAtThreadBarrier,
            _ => PatternId::WaitAtImplicitOmpBarrier,
        };
        let managed = |call: &CallAt| match pattern {
            PatternId::WaitAtThreadBarrier => 0,
            _ => call.leave - last.unwrap_or(call.leave),
        };
        let parties: Vec<Party> = here.iter().map(|call| own.party(call)).collect();
        for call in here.iter().filter(|call| call.asks) {
            let late = parties.partition_point(|party| party.enter <= call.enter);
            settled.push(Settled {
                call: *call,
                pattern,
                late: parties[late..].to_vec(),
                since: since.unwrap_or(call.enter),
                managed: managed(call),
                is_in_turn: false,
            });
        }
    }
}
