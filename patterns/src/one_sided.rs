//! One-sided communication: who a process waited for in its own memory.

use crate::Interval;
use crate::catalogue::{Pattern, Unit, all, computing};

pub(crate) static WAIT_ON_VALUE: Pattern = Pattern {
    id: "wait_on_value",
    parent: "one_sided",
    name: "Wait on value",
    summary: "A PE waited for a value in its memory that another PE wrote late.",
    description: "The PE waited (shmem_wait_until and the like) until a variable of its own had \
        some value. The writer is the PE whose put or atomic made it so: the first that set the \
        variable to what was waited for, or, where the values that were written are not known, as \
        those of additions, the last one that changed it. The reason is what that PE did before.",
    condition: "the write was entered after the wait, and before the wait was left",
    severity: "enter(write) - enter(wait), charged to the PE that waits",
    advice: &[
        computing(
            "Give the writer less to do before it writes, or let it write as soon as the value is \
         known.",
        ),
        all("Do independent work before the wait, and look with shmem_test in between."),
        computing("If the writer's share of the work is larger, balance the work."),
    ],
    unit: Unit::Seconds,
};

pub(crate) static WAIT_ON_LOCK: Pattern = Pattern {
    id: "wait_on_lock",
    parent: "one_sided",
    name: "Wait on lock",
    summary: "A PE waited for a lock that other PEs held.",
    description: "The PE waited in shmem_set_lock while others had the lock, one after another. \
        Each holder has its share: the time until it gave the lock back, since the holder before \
        did, or since the wait began. The reason is what a holder did while it had the lock.",
    condition: "another PE gave the lock back during the wait",
    severity: "enter of the last shmem_clear_lock of another PE during the wait - enter(wait), \
        or since another PE took the lock, where it was free when the wait began",
    advice: &[
        computing("Hold the lock for less: prepare before taking it what needs no lock."),
        all("Use several locks for data that are independent of each other."),
        all("For a counter or a flag, use an atomic instead of a lock."),
    ],
    unit: Unit::Seconds,
};

pub(crate) static UNEXPLAINED: Pattern = Pattern {
    id: "unexplained",
    parent: "one_sided",
    name: "Unexplained wait",
    summary: "A PE waited for a value that no recorded call wrote, or for a lock that nobody held.",
    description: "No PE's put, atomic or signal touched the variable during the wait, and no PE \
        had the lock. The cause is outside of what is recorded: another thread or process that \
        stored there (shmem_ptr), a PE without a trace, the network, another job. Of calls that \
        found all as they wanted it, it is what a call costs.",
    condition: "a wait for a value without a write, or for a lock without a holder, during it",
    severity: "leave - enter: all of the wait",
    advice: &[
        all("Look whether threads or other processes store to the variable without OpenSHMEM."),
        all("Repeat the run: what other jobs did will not come again like that."),
    ],
    unit: Unit::Seconds,
};

/// Wait for a value that was written: `enter(write) - enter`, ns, within the wait.
#[inline]
pub fn wait_on_value(own: Interval, write_enter: i64) -> i64 {
    own.before(write_enter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_lasts_until_the_write() {
        assert_eq!(wait_on_value(Interval::new(10, 50), 40), 30);
    }

    #[test]
    fn what_was_written_before_is_not_waited_for() {
        assert_eq!(wait_on_value(Interval::new(10, 50), 9), 0);
        assert_eq!(wait_on_value(Interval::new(10, 50), 60), 40);
    }
}
