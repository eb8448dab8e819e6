//! Locks, turns and signals that threads of a rank wait for.
//!
//! Locks and turns that nobody waited for have no records. Of others, those who gave them back during a wait
//! do, one after another: each has the time since the one before did. Of signals, the last one during
//! the wait ended it.
//!
//! Some runtimes tell that a lock was given back only after they did it, when another thread may have it
//! already. So of a lock, who gives it back a moment after a wait, before the one that waited, ended that wait, unless
//! another one did so a moment before.

use laggard_patterns::PatternId;
use laggard_trace::calls::number;
use rustc_hash::FxHashMap;

use super::Settled;
use crate::stream::call::CallAt;
use crate::stream::roles::Among;
use crate::stream::rows::Row;
use crate::wire::parcels::Party;

/// How long after a wait it may be told that a lock was given back, ns.
const MOMENT: i64 = 100_000;

/// A wait, and who gave the lock back during it.
#[derive(Debug)]
struct Open {
    call: CallAt,
    operation: u16,
    holders: Vec<Party>,
    /// Whether the one that waited has given the lock back itself.
    is_over: bool,
}

impl Open {
    /// A thread gives the lock back.
    fn give_back(&mut self, (holder, call): (&Party, &CallAt)) {
        let own = &self.call;
        if own.thread == call.thread {
            self.is_over |= call.enter >= own.leave;
        } else if call.enter <= own.leave {
            self.holders.push(*holder);
        } else if call.enter <= own.leave + MOMENT
            && self
                .holders
                .iter()
                .all(|before| before.enter + MOMENT < own.leave)
            && !self.is_over
            && Among::of(self.operation) == Among::Locks
        {
            let enter = own.leave;
            self.holders.push(Party { enter, ..*holder });
        }
    }
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
                is_over: false,
            });
        }
    }

    /// A thread gives a lock back.
    pub fn give_back(&mut self, given: (&Party, &CallAt), lock: u64) {
        for open in self.open.get_mut(&lock).into_iter().flatten() {
            open.give_back(given);
        }
    }

    /// All calls entered before `until` are known, ns: hands over the waits that were over before.
    pub fn settle(&mut self, until: i64, settled: &mut Vec<Settled>) {
        self.open.retain(|_, of_lock| {
            let is_settled = |open: &mut Open| open.call.leave + MOMENT < until;
            for mut open in of_lock.extract_if(.., is_settled) {
                let pattern = match open.operation {
                    number::omp_critical => PatternId::WaitAtCritical,
                    number::omp_ordered => PatternId::WaitAtOrdered,
                    number::pthread_join | number::thrd_join => PatternId::WaitForThread,
                    number::omp_taskwait | number::omp_taskgroup_end => PatternId::WaitForTasks,
                    number::pthread_cond_wait
                    | number::cnd_wait
                    | number::sem_wait
                    | number::futex_wait => PatternId::WaitOnSignal,
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
