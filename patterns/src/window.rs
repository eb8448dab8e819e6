//! Windows, active target: which side was late for an epoch.
//!
//! With post, start, complete and wait, the n-th MPI_Win_post of a target for an origin meets the
//! n-th MPI_Win_start of that origin for the target. The calls that end the epoch match in the same
//! way. A fence synchronises all ranks of the window.

use crate::Interval;
use crate::pattern::{Part, Pattern, Unit};

pub(crate) static LATE_POST: Pattern = Pattern {
    id: "late_post",
    parent: "one_sided",
    name: "Late post",
    summary: "An origin waited because a target had not opened its window yet.",
    description: "An access epoch (MPI_Win_start to MPI_Win_complete) needs the exposure epochs \
        of its targets. The library may wait for them in MPI_Win_start, in the transfer or in \
        MPI_Win_complete; whichever call was entered before the target's MPI_Win_post lost the \
        time until then. The reason is what the target did before it posted.",
    condition: "a target entered its MPI_Win_post later than the origin the call",
    severity: "min(enter of the last matching MPI_Win_post, leave) - enter, in MPI_Win_start, \
        MPI_Win_complete and the transfers to that target",
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static LATE_POST_SYNC: Pattern = Pattern {
    id: "late_post_sync",
    parent: "late_post",
    name: "Late post without transfers",
    summary: "An origin waited for a target's window and then transferred nothing.",
    description: "The origin made no transfer to that target in the whole epoch: it waited for \
        an access that it did not need. The two ranks only synchronised.",
    condition: "a late post in an access epoch without a transfer to that target",
    severity: "the late post's time, moved here",
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static EARLY_WAIT: Pattern = Pattern {
    id: "early_wait",
    parent: "one_sided",
    name: "Early wait",
    summary: "A target waited in MPI_Win_wait for an origin that was still accessing its window.",
    description: "MPI_Win_wait lasts until all origins have ended their access epochs with \
        MPI_Win_complete. What the origins did after their last transfer counts as late \
        complete instead; the two add up to the whole wait.",
    condition: "an origin entered its MPI_Win_complete later than the target MPI_Win_wait",
    severity: "min(enter of the last matching MPI_Win_complete, leave) - enter, without late \
        complete",
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static EARLY_WAIT_SYNC: Pattern = Pattern {
    id: "early_wait_sync",
    parent: "early_wait",
    name: "Early wait without transfers",
    summary: "A target waited in MPI_Win_wait for an origin that transferred nothing.",
    description: "The origin that came last to MPI_Win_complete had made no transfer to this \
        target in its epoch. The two ranks only synchronised.",
    condition: "an early wait for an origin without a transfer in the epoch",
    severity: "the whole wait, moved here; late complete has no part in it",
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static LATE_COMPLETE: Pattern = Pattern {
    id: "late_complete",
    parent: "early_wait",
    name: "Late complete",
    summary: "A target waited for an origin that had done its transfers and not ended its epoch.",
    description: "The origin made its last transfer, and did something else \
        before it called MPI_Win_complete. Nothing but that call was missing.",
    condition: "a target in MPI_Win_wait after the origin's last transfer and before its \
        MPI_Win_complete",
    severity: "min(whole wait, enter of the last MPI_Win_complete - leave of that origin's last \
        transfer), moved here from early wait",
    unit: Unit::Seconds,
    part: Part::Within,
};

pub(crate) static WAIT_AT_FENCE: Pattern = Pattern {
    id: "wait_at_fence",
    parent: "group_sync",
    name: "Wait at fence",
    summary: "Ranks waited in MPI_Win_fence for the last one to arrive.",
    description: "A fence that ends an epoch lasts until all ranks of the window have entered. \
        Transfers into the waiting rank's own memory count as early fence instead. One with \
        MPI_MODE_NOPRECEDE need not wait: it counts only where the rank left after the last had \
        entered.",
    condition: "another rank entered later: enter < last",
    severity: "min(last, leave) - enter, at each rank, without early fence",
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static WAIT_AT_FENCE_SYNC: Pattern = Pattern {
    id: "wait_at_fence_sync",
    parent: "wait_at_fence",
    name: "Wait at fence without transfers",
    summary: "Ranks waited in MPI_Win_fence, which no transfer had come before.",
    description: "No rank of the window had made a transfer since the fence before. The fence \
        was a barrier: it had nothing to complete. It may begin an epoch; then it stands for the \
        posts of all targets.",
    condition: "a wait at a fence, and no transfer on the window since the fence before",
    severity: "the wait at the fence, moved here",
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static EARLY_FENCE: Pattern = Pattern {
    id: "early_fence",
    parent: "wait_at_fence",
    name: "Early fence",
    summary: "A rank waited in MPI_Win_fence while others still accessed its memory.",
    description: "The rank entered the fence before the last transfer to or from its memory was \
        through. Until then it waited for that transfer, and for what its origin did before.",
    condition: "a transfer to or from this rank's memory left after the rank entered the fence",
    severity: "min(leave of the last such transfer, leave) - enter, moved here from wait at fence",
    unit: Unit::Seconds,
    part: Part::Within,
};

pub(crate) static LOCK_CONTENTION: Pattern = Pattern {
    id: "lock_contention",
    parent: "one_sided",
    name: "Lock contention",
    summary: "An origin waited for a lock on a window that others held.",
    description: "Another origin had a lock on the same window at the same target, and one of the         two was exclusive. The library may wait for it in MPI_Win_lock, in the first transfer or         in MPI_Win_unlock. Each holder has its share: the time until it gave the lock back, since         the holder before did, or since the wait began. The reason is what a holder did while it         had the lock.",
    condition: "another origin gave a conflicting lock back during the call",
    severity: "enter of the last such MPI_Win_unlock - enter, or since the lock was taken, where         it was free when the call began",
    unit: Unit::Seconds,
    part: Part::Within,
};

/// Late post: ns that `own`, a call of the origin's epoch, waited for a post entered at
/// `post`. `min(post, leave) - enter`.
#[inline]
pub fn late_post(own: Interval, post: i64) -> i64 {
    own.before(post)
}

/// Early wait as a whole: ns that `wait` lasted before the last MPI_Win_complete was entered.
/// `min(complete, leave) - enter`.
#[inline]
pub fn early_wait(wait: Interval, complete: i64) -> i64 {
    wait.before(complete)
}

/// Late complete: the part of the wait after the origin's last transfer. `min(early_wait, complete
/// - transfer)`, ns, where `transfer` is when that transfer left.
#[inline]
pub fn late_complete(wait: Interval, complete: i64, transfer: i64) -> i64 {
    let after = complete.saturating_sub(transfer).max(0);
    early_wait(wait, complete).min(after)
}

/// Early fence: ns that `fence` lasted before the last `transfer` into this location left.
/// `min(transfer, leave) - enter`.
#[inline]
pub fn early_fence(fence: Interval, transfer: i64) -> i64 {
    fence.before(transfer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_call_waits_for_a_later_post() {
        assert_eq!(late_post(Interval::new(100, 180), 150), 50);
        assert_eq!(late_post(Interval::new(100, 180), 90), 0);
        // It returned before the post: another call of the epoch waits for the rest.
        assert_eq!(late_post(Interval::new(100, 105), 150), 5);
    }

    #[test]
    fn a_wait_has_two_parts() {
        let wait = Interval::new(100, 180);
        assert_eq!(early_wait(wait, 170), 70);
        assert_eq!(late_complete(wait, 170, 150), 20);
        // The last transfer was before the wait began: the whole wait counts.
        assert_eq!(late_complete(wait, 170, 60), 70);
        assert_eq!(late_complete(wait, 170, 170), 0);
        assert_eq!(late_complete(wait, 90, 50), 0);
    }

    #[test]
    fn a_fence_waits_for_transfers() {
        assert_eq!(early_fence(Interval::new(100, 180), 130), 30);
        assert_eq!(early_fence(Interval::new(100, 180), 90), 0);
    }

    proptest! {
        #[test]
        fn severities_fit_the_operation(enter: i64, leave: i64, other: i64, third: i64) {
            let own = Interval::new(enter, leave);
            let parts = [
                late_post(own, other),
                early_wait(own, other),
                late_complete(own, other, third),
                early_fence(own, other),
            ];
            for severity in parts {
                prop_assert!((0..=own.duration()).contains(&severity));
            }
            prop_assert!(late_complete(own, other, third) <= early_wait(own, other));
        }
    }
}
