//! Waits in loops that look again and again, instead of waiting in one call.
//!
//! An *episode* is the run of looks that found nothing, with the one that ended it. The program may
//! work between two looks: that is no waiting.

use crate::pattern::{Part, Pattern, Unit};

/// Time between two looks is part of looking if it is shorter than so many looks.
const LOOKS: i64 = 10;
/// It is part of looking in any case if it is shorter than this, ns.
const SHORT_NS: i64 = 2_000;

/// Whether `gap` ns between two looks are part of looking, and not work. A look that is not disturbed
/// takes `look` ns.
#[inline]
pub fn is_looking(gap: i64, look: i64) -> bool {
    gap < look.saturating_mul(LOOKS).max(SHORT_NS)
}

macro_rules! polled {
    ($($name:ident = $id:literal of $parent:literal, $text:literal: $summary:literal, $until:literal;)*) => {$(
        pub(crate) static $name: Pattern = Pattern {
            id: $id,
            parent: $parent,
            name: $text,
            summary: $summary,
            description: concat!(
                "The program looked again and again whether something had come, as with MPI_Test, \
                 MPI_Iprobe or shmem_test, and found nothing for a while. This is waiting as in a \
                 call that blocks, but no call shows it. Counted is the time in looks, and between \
                 two looks if that is shorter than ten looks or 2 us, or if the thread was off the \
                 processor. The shortest look until then counts for this. Other time between looks is work. The reason is what the late party \
                 did before. See ",
                $parent,
                "."
            ),
            condition: concat!("a look found nothing before ", $until),
            severity: concat!("looking before ", $until),
            unit: Unit::Seconds,
            part: Part::Within,
        };
    )*};
}

polled! {
    LATE_SENDER_POLLED = "late_sender_polled" of "late_sender", "Late sender, polled":
        "A rank looked for a message that had not been sent yet.",
        "the send was entered";
    LATE_RECEIVER_POLLED = "late_receiver_polled" of "late_receiver", "Late receiver, polled":
        "A rank looked whether its send was complete; the receive had not been posted yet.",
        "the receive was posted";
    WAIT_AT_BARRIER_POLLED = "wait_at_barrier_polled" of "wait_at_barrier", "Wait at barrier, polled":
        "Ranks looked whether a non-blocking barrier was over; one had not come yet.",
        "the last member entered";
    WAIT_AT_NXN_POLLED = "wait_at_nxn_polled" of "wait_at_nxn", "Wait at N x N, polled":
        "Ranks looked whether an all-to-all operation was over; one had not come yet.",
        "the last member entered";
    LATE_BROADCAST_POLLED = "late_broadcast_polled" of "late_broadcast", "Late broadcast, polled":
        "Ranks looked whether a broadcast or scatter was over; the root had not come yet.",
        "the root entered";
    EARLY_REDUCE_POLLED = "early_reduce_polled" of "early_reduce", "Early reduce, polled":
        "The root of a reduce or gather looked for data before anybody else was there.",
        "the first of the other members entered";
    LATE_REDUCE_CONTRIBUTION_POLLED = "late_reduce_contribution_polled" of "late_reduce_contribution",
        "Late contribution to a reduce, polled":
        "The root of a reduce or gather looked whether the last contribution had come.",
        "the last member entered, and after the first one did";
    EARLY_SCAN_POLLED = "early_scan_polled" of "early_scan", "Early scan, polled":
        "Ranks looked whether a prefix operation was over; a lower rank had not come yet.",
        "the last of the lower ranks entered";
    WAIT_AT_COMM_MANAGEMENT_POLLED = "wait_at_comm_management_polled" of "wait_at_comm_management",
        "Wait at communicator management, polled":
        "Ranks looked whether a communicator was there; a member had not come yet.",
        "the last member entered";
    WAIT_AT_COLLECTIVE_IO_POLLED = "wait_at_collective_io_polled" of "wait_at_collective_io",
        "Wait at collective I/O, polled":
        "Ranks looked whether a collective file operation was over; one had not come yet.",
        "the last member entered";
    EARLY_WAIT_POLLED = "early_wait_polled" of "early_wait", "Early wait, polled":
        "A target looked whether its exposure epoch was over; an origin had not ended its own yet.",
        "the last origin ended its epoch";
    WAIT_ON_VALUE_POLLED = "wait_on_value_polled" of "wait_on_value", "Wait on value, polled":
        "A PE looked at a variable that another PE wrote late.",
        "the write was entered";
    WAIT_ON_LOCK_POLLED = "wait_on_lock_polled" of "wait_on_lock", "Wait on lock, polled":
        "A PE tried to get a lock that other PEs held.",
        "the last of the other PEs gave the lock back";
}

polled! {
    LATE_SENDER_SYNC_POLLED = "late_sender_sync_polled" of "late_sender_sync",
        "Late sender, empty message, polled":
        "A rank looked for a message without data that had not been sent yet.",
        "the send was entered";
    LATE_RECEIVER_SYNC_POLLED = "late_receiver_sync_polled" of "late_receiver_sync",
        "Late receiver, empty message, polled":
        "A rank looked whether its send without data was complete; the receive was not posted yet.",
        "the receive was posted";
    EARLY_WAIT_SYNC_POLLED = "early_wait_sync_polled" of "early_wait_sync",
        "Early wait without transfers, polled":
        "A target looked whether its epoch was over; an origin that transferred nothing had not ended.",
        "the last origin ended its epoch";
}

pub(crate) static LOOKED_IN_VAIN: Pattern = Pattern {
    id: "looked_in_vain",
    parent: "lost",
    name: "Looked in vain",
    summary: "A program looked again and again for something that no later look there found.",
    description: "The program waited for what never came, or it went on in another way: it gave up, \
        cancelled the request, or waited in one call at last. Who was waited for is not known. \
        Looks that lie far apart are no wait: such a program only drives the library.",
    condition: "ten looks or more at one place, with no more between two of them than counts as \
        looking, and no later look there that found what these looked for",
    severity: "time in these looks and between them",
    unit: Unit::Seconds,
    part: Part::Within,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_gaps_are_looking() {
        assert!(is_looking(1_999, 0) && !is_looking(2_000, 0));
        assert!(is_looking(9_999, 1_000) && !is_looking(10_000, 1_000));
        assert!(is_looking(i64::MAX - 1, i64::MAX));
    }
}
