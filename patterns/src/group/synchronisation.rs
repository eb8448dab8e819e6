//! Synchronisation: all members wait for the last one.

use crate::Interval;
use crate::pattern::{Part, Pattern, Unit};

/// Condition and severity shared by all waits for the last member.
const LAST_CONDITION: &str = "another member entered later: enter < last";
const LAST_SEVERITY: &str = "min(last, leave) - enter, at each member";

pub(crate) static WAIT_AT_BARRIER: Pattern = Pattern {
    id: "wait_at_barrier",
    parent: "group_sync",
    name: "Wait at barrier",
    summary: "Ranks waited in a barrier for the last one to arrive.",
    description: "A barrier lasts until its last member has entered. Everybody else waits from \
        its own entry until then. The reason is what the last member did since the ranks were \
        together before.",
    condition: LAST_CONDITION,
    severity: LAST_SEVERITY,
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static WAIT_AT_SHMEM_BARRIER: Pattern = Pattern {
    id: "wait_at_shmem_barrier",
    parent: "group_sync",
    name: "Wait at SHMEM barrier",
    summary: "PEs waited in a barrier of OpenSHMEM for the last one to arrive.",
    description: "A barrier or synchronisation of PEs lasts until the last PE of the set has \
        entered, and so does taking and giving back symmetric memory. Everybody else waits from \
        its own entry until then. The reason is what the last PE did since the PEs were together \
        before.",
    condition: LAST_CONDITION,
    severity: LAST_SEVERITY,
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static BARRIER_COMPLETION: Pattern = Pattern {
    id: "barrier_completion",
    parent: "group_sync",
    name: "Barrier completion",
    summary: "Ranks stayed in a barrier after all had arrived.",
    description: "When the last member has entered and the first has left, the barrier is over \
        in principle; what is spent after that is the library's algorithm, the network or \
        interference on the node.",
    condition: "leave > max(first_out, last)",
    severity: "leave - max(first_out, last), at each member",
    unit: Unit::Seconds,
    part: Part::End,
};

pub(crate) static WAIT_AT_FINALIZE: Pattern = Pattern {
    id: "wait_at_finalize",
    parent: "setup",
    name: "Wait at finalize",
    summary: "Ranks were done and waited for the last one to finish.",
    description: "Finalising is collective: ranks that finish early wait there for the others. \
        It is the imbalance of the last phase of the program.",
    condition: LAST_CONDITION,
    severity: LAST_SEVERITY,
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static INIT_COMPLETION: Pattern = Pattern {
    id: "init_completion",
    parent: "setup",
    name: "Init completion",
    summary: "Ranks stayed in MPI_Init after the first was through.",
    description: "The start of the library takes longer on some ranks than on others: loading \
        from a slow file system, connecting, starting processes.",
    condition: "leave > max(first_out, last)",
    severity: "leave - max(first_out, last), at each member",
    unit: Unit::Seconds,
    part: Part::End,
};

pub(crate) static WAIT_AT_WINDOW_CREATE: Pattern = Pattern {
    id: "wait_at_window_create",
    parent: "setup",
    name: "Wait at window creation",
    summary: "Ranks waited for the last one when a window was made.",
    description: "Making a window is collective: everybody waits for the last member.",
    condition: LAST_CONDITION,
    severity: LAST_SEVERITY,
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static WAIT_AT_WINDOW_FREE: Pattern = Pattern {
    id: "wait_at_window_free",
    parent: "setup",
    name: "Wait at window release",
    summary: "Ranks waited for the last one when a window was freed.",
    description: "Freeing a window is collective and as strong as a barrier: everybody waits for \
        the last member.",
    condition: LAST_CONDITION,
    severity: LAST_SEVERITY,
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static WAIT_AT_COMM_MANAGEMENT: Pattern = Pattern {
    id: "wait_at_comm_management",
    parent: "setup",
    name: "Wait at communicator management",
    summary: "Ranks waited for the last one when a communicator was made or freed.",
    description: "Duplicating, splitting and creating communicators is collective: everybody \
        waits for the last member.",
    condition: LAST_CONDITION,
    severity: LAST_SEVERITY,
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static WAIT_AT_COLLECTIVE_IO: Pattern = Pattern {
    id: "wait_at_collective_io",
    parent: "group_sync",
    name: "Wait at collective I/O",
    summary: "Ranks waited in a collective file operation for the last one to arrive.",
    description: "Collective file operations begin when all members are there. The time before \
        is waiting, not I/O.",
    condition: LAST_CONDITION,
    severity: LAST_SEVERITY,
    unit: Unit::Seconds,
    part: Part::Begin,
};

/// Wait for the last member: `min(last, leave) - enter`, ns.
///
/// Serves barriers, n-to-n collectives, finalize, windows, communicator management
/// and collective I/O; for a non-blocking collective `own` is the Wait*.
#[inline]
pub fn wait_before_last(own: Interval, last_enter: i64) -> i64 {
    own.before(last_enter)
}

/// Until the first member is out, since the last one that is known entered, ns: an unknown one may
/// have come later. `min(first_out, leave) - max(enter, last)`.
#[inline]
pub fn until_first_out(own: Interval, last_enter: i64, first_out: i64) -> i64 {
    own.before(first_out) - own.before(last_enter)
}

/// Completion: `leave - max(first_out, last)`, ns: time in the operation after all were there and
/// the first had left.
#[inline]
pub fn completion(own: Interval, first_out: i64, last_enter: i64) -> i64 {
    own.clip(own.leave.saturating_sub(first_out.max(last_enter)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn everybody_waits_for_the_last() {
        let members = [(0, 105), (40, 103), (100, 102)];
        let waits =
            members.map(|(enter, leave)| wait_before_last(Interval::new(enter, leave), 100));
        assert_eq!(waits, [100, 60, 0]);
    }

    #[test]
    fn all_at_once_is_no_wait() {
        assert_eq!(wait_before_last(Interval::new(100, 105), 100), 0);
    }

    #[test]
    fn member_that_leaves_before_the_last_enters_waits_no_longer_than_it_stays() {
        assert_eq!(wait_before_last(Interval::new(0, 30), 100), 30);
    }

    #[test]
    fn wait_for_a_non_blocking_collective_is_the_part_before_the_last_start() {
        // Started at 0, computed until 80, waited until 120; the last member started at 100.
        assert_eq!(wait_before_last(Interval::new(80, 120), 100), 20);
        // The near miss: the last member started before the Wait was entered.
        assert_eq!(wait_before_last(Interval::new(80, 120), 79), 0);
    }

    #[test]
    fn completion_begins_with_the_first_out() {
        assert_eq!(completion(Interval::new(0, 130), 110, 100), 20);
        // A member left before the last entered: completion begins with the last.
        assert_eq!(completion(Interval::new(0, 130), 60, 100), 30);
        assert_eq!(completion(Interval::new(0, 110), 110, 100), 0);
        assert_eq!(completion(Interval::new(0, 105), 105, 110), 0);
    }

    proptest! {
        #[test]
        fn severities_fit_the_operation(enter: i64, leave: i64, first: i64, last: i64) {
            let own = Interval::new(enter, leave);
            for severity in [wait_before_last(own, last), completion(own, first, last)] {
                prop_assert!((0..=own.duration()).contains(&severity));
            }
        }

        #[test]
        fn wait_and_completion_do_not_overlap(
            enter in 0i64..1000,
            stay in 0i64..1000,
            late in 0i64..1000,
            first in 0i64..3000,
        ) {
            let own = Interval::new(enter, enter + stay);
            let last = enter + late;
            let sum = wait_before_last(own, last) + completion(own, first, last);
            prop_assert!(sum <= own.duration());
        }
    }
}
