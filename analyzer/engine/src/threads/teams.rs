//! Meetings of OpenMP teams: at the begin of a region, at barriers, and at its end.

use laggard_patterns::PatternId;
use laggard_trace::calls::number;
use rustc_hash::FxHashMap;

use super::{Settled, party};
use crate::stream::call::CallAt;
use crate::stream::rows::Row;
use crate::wire::parcels::Party;

/// Threads of a team that have come to a meeting, in order. Of those whose meeting never is
/// complete, others are missing: they were not recorded.
#[derive(Debug, Default)]
pub struct Teams {
    /// By key.
    meetings: FxHashMap<u64, Vec<CallAt>>,
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
    pub fn fork(&mut self, (rank, call): (u32, &CallAt), key: u64, settled: &mut Vec<Settled>) {
        for idle in self.idle.remove(&key).into_iter().flatten() {
            if idle.asks {
                let begun = call.enter.max(idle.enter);
                settled.push(Settled {
                    pattern: PatternId::IdleThreads,
                    late: vec![party(rank, call)],
                    since: idle.enter,
                    managed: if key == 0 { 0 } else { idle.leave - begun },
                    call: idle,
                    is_in_turn: false,
                });
            }
        }
    }

    /// All calls entered before `until` are known, ns: forgets what will never be complete. Nobody
    /// leaves a meeting before all have come.
    pub fn forget(&mut self, until: i64) {
        let may_go_on = |call: &CallAt| call.leave >= until;
        self.meetings.retain(|_, here| here.iter().all(may_go_on));
        self.idle.retain(|_, idle| {
            idle.retain(may_go_on);
            !idle.is_empty()
        });
    }

    /// A thread comes to a barrier of its team of this size.
    pub fn meet(
        &mut self,
        (rank, call): (u32, &CallAt),
        (key, size): (u64, u32),
        row: &Row,
        settled: &mut Vec<Settled>,
    ) {
        let here = self.meetings.entry(key).or_default();
        here.push(*call);
        if here.len() < size as usize {
            return;
        }
        let Some(here) = self.meetings.remove(&key) else {
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
        let parties: Vec<Party> = here.iter().map(|call| party(rank, call)).collect();
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
