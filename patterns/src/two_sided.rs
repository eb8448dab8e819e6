//! Messages: whether sender or receiver was late.

use crate::Interval;
use crate::pattern::{Part, Pattern, Unit};

pub(crate) static LATE_SENDER: Pattern = Pattern {
    id: "late_sender",
    parent: "two_sided",
    name: "Late sender",
    summary: "A receive waited because the message had not been sent yet.",
    description: "The receiver entered its receive (or the wait for it) before the sender \
        entered the send, and could do nothing but wait. The time between is lost on the \
        receiver; the reason is what the sender did before the send.",
    condition: "the send was entered after the receiving operation: enter(S) > enter(R)",
    severity: "min(enter(S), leave(R)) - enter(R), charged to the receiver. A wait that \
        completes several receives is charged once, with the largest.",
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static WRONG_ORDER_SAME_SOURCE: Pattern = Pattern {
    id: "late_sender_wrong_order_same_source",
    parent: "late_sender",
    name: "Late sender, wrong order of one source",
    summary: "A receive waited although another message from the same sender was already there.",
    description: "The receiver waited for a message while an earlier message of the same sender \
        had arrived, which it received only later. Receiving in the order of sending would have \
        used the time.",
    condition: "a late sender, and a message from the same source that was sent earlier is \
        received later",
    severity: "the late sender's time, moved here",
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static WRONG_ORDER_OTHER_SOURCE: Pattern = Pattern {
    id: "late_sender_wrong_order_other_source",
    parent: "late_sender",
    name: "Late sender, wrong order of sources",
    summary: "A receive waited although another sender's message was already there.",
    description: "The receiver waited for a message of one rank while a message of another rank \
        had arrived, which it received only later. Taking messages as they come would have used \
        the time. Only where the program chose the order: a call that takes what comes first \
        (MPI_ANY_SOURCE, MPI_Waitany, MPI_Waitsome) or a message of both ranks at once (MPI_Waitall) \
        is a plain late sender.",
    condition: "a late sender, and a message from another source that had been sent before is \
        received later; the call neither takes what comes first nor took a message of that source",
    severity: "the late sender's time, moved here",
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static LATE_RECEIVER: Pattern = Pattern {
    id: "late_receiver",
    parent: "two_sided",
    name: "Late receiver",
    summary: "A send waited because the receive had not been posted yet.",
    description: "The send could not complete before the receiver had posted its receive: the \
        message is too large to be buffered, or the send is synchronous. The time is lost on the \
        sender; the reason is what the receiver did before it posted.",
    condition: "the receive was posted while the sender was blocked: enter(B) < post(R) < \
        leave(B)",
    severity: "post(R) - enter(B), charged to the sender. A wait that completes several sends is \
        charged once, with the largest, and not if it is a late sender already.",
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static LATE_SENDER_SYNC: Pattern = Pattern {
    id: "late_sender_sync",
    parent: "late_sender",
    name: "Late sender, empty message",
    summary: "A receive waited for a message without data: the ranks only synchronised.",
    description: "The message had no bytes, so the receiver waited for the sender's being there, \
        and for nothing else. The reason is what the sender did before the send. The question is \
        whether the program needs the two ranks in this order.",
    condition: "a late sender whose message has 0 bytes, in no wrong order",
    severity: "the late sender's time, moved here",
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static LATE_RECEIVER_SYNC: Pattern = Pattern {
    id: "late_receiver_sync",
    parent: "late_receiver",
    name: "Late receiver, empty message",
    summary: "A send without data waited because the receive had not been posted yet.",
    description: "The message had no bytes and blocked nevertheless, as synchronous sends do: the \
        sender waited for the receiver's being there. The reason is what the receiver did before \
        it posted.",
    condition: "a late receiver whose message has 0 bytes",
    severity: "the late receiver's time, moved here",
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static UNMATCHED_SEND: Pattern = Pattern {
    id: "unmatched_send",
    parent: "defects",
    name: "Send without a receive",
    summary: "A message was sent that no rank received by the end of the run.",
    description: "Small messages are buffered, so such a send returns and the program seems \
        right; with a larger message or another library it would block for ever.",
    condition: "no receive on the channel matches the send",
    severity: "none: counted, with peer, tag, bytes and location",
    unit: Unit::Occurrences,
    part: Part::Within,
};

pub(crate) static UNMATCHED_RECEIVE: Pattern = Pattern {
    id: "unmatched_receive",
    parent: "defects",
    name: "Receive without a send",
    summary: "A receive was posted that no message matched by the end of the run.",
    description: "The request was never completed, was cancelled or freed, or the trace of the \
        sender is missing or truncated.",
    condition: "no send on the channel matches the receive",
    severity: "none: counted, with peer, tag, bytes and location",
    unit: Unit::Occurrences,
    part: Part::Within,
};

/// Late sender: ns that `receive` (the blocking receive, the probe, or the Wait*
/// that completed it) waited for a send entered at `send_enter`.
///
/// `min(enter(S), leave(R)) - enter(R)`. A Wait* that completes several receives
/// is charged the largest of them, once.
#[inline]
pub fn late_sender(receive: Interval, send_enter: i64) -> i64 {
    receive.before(send_enter)
}

/// Late receiver: ns that `blocking` (the blocking send, or the Wait* that completed it) waited for
/// a receive posted at `post`.
///
/// `post(R) - enter(B)` if `leave(B) > post(R)`. A send that was over before the receive was posted
/// did not wait for it.
#[inline]
pub fn late_receiver(blocking: Interval, post: i64) -> i64 {
    if blocking.leave > post {
        blocking.before(post)
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn receiver_waits_until_the_send_begins() {
        assert_eq!(late_sender(Interval::new(100, 180), 150), 50);
    }

    #[test]
    fn send_in_time_costs_nothing() {
        assert_eq!(late_sender(Interval::new(100, 180), 100), 0);
        assert_eq!(late_sender(Interval::new(100, 180), 20), 0);
    }

    #[test]
    fn late_sender_ends_with_the_receive() {
        // The clocks disagree: the send seems to begin after the receive returned.
        assert_eq!(late_sender(Interval::new(100, 180), 500), 80);
    }

    #[test]
    fn sender_waits_until_the_receive_is_posted() {
        assert_eq!(late_receiver(Interval::new(100, 180), 170), 70);
    }

    #[test]
    fn buffered_send_does_not_wait() {
        assert_eq!(late_receiver(Interval::new(100, 180), 180), 0);
        assert_eq!(late_receiver(Interval::new(100, 180), 5_000), 0);
    }

    #[test]
    fn receive_posted_before_costs_nothing() {
        assert_eq!(late_receiver(Interval::new(100, 180), 100), 0);
        assert_eq!(late_receiver(Interval::new(100, 180), -7), 0);
    }

    proptest! {
        #[test]
        fn severities_fit_the_operation(enter: i64, leave: i64, other: i64) {
            let own = Interval::new(enter, leave);
            for severity in [late_sender(own, other), late_receiver(own, other)] {
                prop_assert!((0..=own.duration()).contains(&severity));
            }
        }
    }
}
