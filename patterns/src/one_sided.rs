//! One-sided communication: which access to its memory a process waited for.

use crate::Interval;
use crate::pattern::{Part, Pattern, Unit};

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
    unit: Unit::Seconds,
    part: Part::Begin,
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
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static COMPETING_PUT: Pattern = Pattern {
    id: "competing_put",
    parent: "one_sided",
    name: "Competing put",
    summary: "A put took longer because others transferred to or from the same process meanwhile.",
    description: "Puts to one process share its memory and its link. This one took much longer \
        than a put of that size should: what the baseline table says, or else the fastest of the \
        same function and size in this run. Transfers of others to or from the same process were \
        under way meanwhile. Each of these competitors has a share by how long they overlapped.",
    condition: "the put is slower than expected by the ratio of the filter, and others' \
        transfers to or from its target overlap it",
    severity: "(leave - enter) - expected, less what it lost to locks or progress, at most the \
        time in which competitors' transfers overlap; of these, the 32 that overlap most",
    unit: Unit::Seconds,
    part: Part::Within,
};

pub(crate) static COMPETING_GET: Pattern = Pattern {
    id: "competing_get",
    parent: "one_sided",
    name: "Competing get",
    summary: "A get took longer because others transferred to or from the same process meanwhile.",
    description: "Gets from one process share its memory and its link. This one took much longer \
        than a get of that size should: what the baseline table says, or else the fastest of the \
        same function and size in this run. Transfers of others to or from the same process were \
        under way meanwhile. Each of these competitors has a share by how long they overlapped.",
    condition: "the get is slower than expected by the ratio of the filter, and others' \
        transfers to or from its target overlap it",
    severity: "(leave - enter) - expected, less what it lost to locks or progress, at most the \
        time in which competitors' transfers overlap; of these, the 32 that overlap most",
    unit: Unit::Seconds,
    part: Part::Within,
};

/// Wait for a written value: `enter(write) - enter`, ns, within the wait.
#[inline]
pub fn wait_on_value(own: Interval, write_enter: i64) -> i64 {
    own.before(write_enter)
}

/// Transfer that met others at its target, ns: its duration beyond `expected`, without time lost
/// `otherwise`, at most the `overlap`.
#[inline]
pub fn competing(own: Interval, expected: i64, otherwise: i64, overlap: i64) -> i64 {
    let excess = own.duration().saturating_sub(expected.max(0));
    excess.saturating_sub(otherwise).min(overlap).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_lasts_until_the_write() {
        assert_eq!(wait_on_value(Interval::new(10, 50), 40), 30);
    }

    #[test]
    fn competitors_cost_what_overlaps_at_most() {
        let own = Interval::new(10, 110);
        assert_eq!(competing(own, 40, 0, 80), 60);
        assert_eq!(competing(own, 40, 0, 50), 50);
        assert_eq!(competing(own, 40, 20, 80), 40);
        assert_eq!(competing(own, 120, 0, 80), 0);
        assert_eq!(competing(own, 40, 90, 80), 0);
    }

    #[test]
    fn what_was_written_before_is_not_waited_for() {
        assert_eq!(wait_on_value(Interval::new(10, 50), 9), 0);
        assert_eq!(wait_on_value(Interval::new(10, 50), 60), 40);
    }
}
