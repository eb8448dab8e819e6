//! Locks, turns and signals that threads of a rank wait for.
//!
//! Locks and turns that nobody waited for have no records. Of others, those who gave them back during a wait
//! do, one after another: each has the time since the one before did. Of signals, the last one during
//! the wait ended it.

use laggard_patterns::PatternId;
use laggard_trace::calls::number;
use rustc_hash::FxHashMap;

use super::{Settled, party};
use crate::stream::call::CallAt;
use crate::stream::rows::Row;
use crate::wire::parcels::Party;

/// A wait, and who gave the lock back during it.
#[derive(Debug)]
struct Open {
    call: CallAt,
    operation: u16,
    holders: Vec<Party>,
}

/// The waits for locks that are not over.
#[derive(Debug, Default)]
pub struct Locks {
    /// By lock.
    open: FxHashMap<u64, Vec<Open>>,
}

impl Locks {
    /// A thread begins to wait.
    pub fn wait(&mut self, call: &CallAt, row: &Row, lock: u64) {
        if call.asks {
            self.open.entry(lock).or_default().push(Open {
                call: *call,
                operation: row.operation,
                holders: Vec::new(),
            });
        }
    }

    /// A thread gives a lock back.
    pub fn give_back(&mut self, (rank, call): (u32, &CallAt), lock: u64) {
        for open in self.open.get_mut(&lock).into_iter().flatten() {
            if open.call.thread != call.thread && call.enter <= open.call.leave {
                open.holders.push(party(rank, call));
            }
        }
    }

    /// All calls entered before `until` are known, ns: hands over the waits that were over before.
    pub fn settle(&mut self, until: i64, settled: &mut Vec<Settled>) {
        self.open.retain(|_, of_lock| {
            for mut open in of_lock.extract_if(.., |open| open.call.leave < until) {
                let pattern = match open.operation {
                    number::omp_critical => PatternId::WaitAtCritical,
                    number::omp_ordered => PatternId::WaitAtOrdered,
                    number::pthread_join => PatternId::WaitForThread,
                    number::omp_taskwait | number::omp_taskgroup_end => PatternId::WaitForTasks,
                    number::pthread_cond_wait | number::sem_wait => PatternId::WaitOnSignal,
                    _ => PatternId::WaitOnMutex,
                };
                if matches!(pattern, PatternId::WaitOnSignal | PatternId::WaitForTasks) {
                    let before = open.holders.len().saturating_sub(1);
                    open.holders.drain(..before);
                }
                settled.push(Settled {
                    since: open.call.enter,
                    call: open.call,
                    pattern,
                    late: open.holders,
                    managed: 0,
                    is_in_turn: true,
                });
            }
            !of_lock.is_empty()
        });
    }
}
