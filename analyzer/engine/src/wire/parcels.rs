//! Messages between agents in a round: lists of entries.

use laggard_comm::Job;

use crate::wire::packing::{Mask, Pack, Packer, Unpacker, entries};
use crate::wire::watched::{Held, Rival, Watch, Written};

/// A time as a whole, where parts of it are told.
pub const WHOLE: u8 = u8::MAX;

entries! {
    /// Gives a channel of one of the receiver's ranks the next number between the two agents.
    #[derive(Default)]
    Declaration {
        /// Communicator.
        group: u64,
        /// The receiver's rank, world number.
        rank: u32,
        /// The sender's rank, world number.
        peer: i32,
        /// Message tag.
        tag: i32,
        /// The side that will be asked about.
        side: Side,
    }
    /// Asks when the other ends of successive messages happened.
    #[derive(Default)]
    Question {
        /// Declared number of the channel.
        channel: u32,
        /// Number of messages.
        count: u32,
        /// Number of the first one on the channel.
        n: u64,
    }
    /// Reports which messages of a channel will not be asked about any more.
    #[derive(Default)]
    Progress {
        /// Declared number of the channel.
        channel: u32,
        /// 1 = `n` is the count at the end of the trace.
        last: u32,
        /// All messages before this.
        n: u64,
    }
    /// The times when the other ends of successive messages happened follow.
    #[derive(Default)]
    Reply {
        /// Declared number of the channel, as asked.
        channel: u32,
        /// Number of messages.
        count: u32,
        /// Number of the first one on the channel.
        n: u64,
    }
    /// Asks for the activity of a late party of a call.
    #[derive(Default)]
    Request {
        /// Declared number of the channel.
        channel: u32,
        /// Number of the message on the channel.
        n: u64,
        /// Length of the requested time before it was late, ns.
        window: i64,
        /// When an episode of looks was over that the party was late for, ns; 0 = it is none.
        by: i64,
    }
    /// A call that may have gone on only when another rank was inside the library again.
    #[derive(Default)]
    Need {
        /// Number of the call among the calls of its rank with questions.
        call: u32,
        /// Waiting world rank.
        rank: u32,
        /// World rank that was needed; unknown for a collective before it is asked.
        peer: u32,
        /// Declared number of the channel on which the two meet; `NONE` if the peer's part is known
        /// to need it.
        channel: u32,
        /// Which end of the message is the peer's.
        side: Side,
        /// Number of the message on the channel, or of the collective on its group.
        n: u64,
        /// Communicator of the message, or of a non-blocking collective, of which any member may have been needed.
        group: u64,
        /// When both had come, ns.
        from: i64,
        /// When the call was left, ns.
        leave: i64,
    }
    /// Times that a needed rank spent outside of the library.
    #[derive(Default)]
    Absence {
        /// Call of the [`Need`].
        call: u32,
        /// Rank of the need.
        rank: u32,
        /// Peer of the need.
        peer: u32,
        /// `from` of the need, ns.
        from: i64,
        /// Number of absences; their begins and ends follow in a list of their own, ns.
        count: u32,
        /// `group` of the need.
        group: u64,
        /// Activity of the peer before the call that ended the last absence.
        detail: Detail,
    }
    /// A late party's call and its activity before. The fields that differ most come first: that
    /// makes masks short.
    #[derive(Default)]
    Detail {
        /// Time of the waiting interval in which the late party computed, ns.
        computation: i64,
        /// Number of the late call in its location.
        event: u64,
        /// Time in which it was inside communication, ns.
        waiting: i64,
        /// Time in which it was inside the operation that it waited in longest, ns.
        other: i64,
        /// Call path.
        path: [u64; 2],
        /// The late call; 0 = its activity is unknown.
        operation: u16,
        /// Call path of the operation that it waited in longest.
        other_path: [u64; 2],
        /// The operation that it waited in longest, 0 = none.
        other_operation: u16,
        /// Time in which it was inside file operations, ns.
        io: i64,
        /// Time outside of operations off the processor by itself, ns.
        blocked: i64,
        /// The same, since another one had the processor, ns.
        preempted: i64,
        /// Part of the time in the operation that it waited in longest in which it was off the processor by
        /// itself, in [`WHOLE`]ths.
        other_blocked: u8,
        /// The same, since another one had the processor.
        other_preempted: u8,
        /// Enter of the late call, ns.
        time: i64,
        /// World rank.
        rank: u32,
        /// Number of the thread in the trace.
        thread: u32,
        /// 1 = the late call sent a message without data.
        empty: u8,
    }
    /// A member's entry into a collective.
    #[derive(Default)]
    Party {
        /// Enter, ns.
        enter: i64,
        /// Call number in its location.
        event: u64,
        /// World rank.
        rank: u32,
        /// Number of the thread in the trace, as in a [`Detail`].
        thread: u32,
        signature: u32,
    }
    /// One agent's members of one collective, or all.
    Fold {
        /// Communicator, window or file.
        group: u64,
        /// Index of the collective on it.
        n: u64,
        /// First enter of a member that waits for others, or may have done so, ns.
        first_enter: i64,
        /// First leave of the members, ns; `i64::MAX` if none is known.
        first_leave: i64,
        /// Last enter of the members, ns.
        complete: i64,
        /// If all ranks of the run meet: the largest computation of a member since the previous
        /// meeting, ns.
        computed: i64,
        /// The first member that others wait for; entered at `i64::MAX` if there is none.
        first: Party,
        /// The last such member; entered at `i64::MIN` if there is none.
        last: Party,
        /// Number of the call.
        operation: u32,
        /// Members folded.
        count: u32,
        /// Members in all, 0 = unknown to this agent.
        expected: u32,
        /// Whether this agent wants the result.
        wanted: u32,
        /// Number of [`Member`] entries of this fold that follow.
        members: u32,
        /// Members that need nothing of others, and ask what held them up.
        held: u32,
    }
    /// One member of a collective in which single members matter (scans, neighbourhoods), one of
    /// the latest, a transfer before a fence, or a root.
    #[derive(Default)]
    Member {
        /// Its entry.
        party: Party,
        /// Leave, ns; `i64::MAX` for a non-blocking one.
        leave: i64,
        /// Rank in the communicator.
        local_rank: u32,
        /// Whether it wants the result.
        asks: u32,
        /// Position of the member that it waits for, once all members are known.
        late: u32,
        /// Of a neighbourhood, once all members are known: the first leave of itself and its
        /// neighbours after all of them had entered, ns; `i64::MAX` if unknown.
        through: i64,
        /// Whether it is none of the latest: the root that members have data for, or the last transfer of
        /// a rank before a fence: to the world rank `local_rank`, ended at `leave`.
        is_apart: u32,
    }
    /// Asks a late member's agent for its activity.
    #[derive(Default)]
    Inquiry {
        /// Communicator, window or file.
        group: u64,
        /// Index of the collective on it.
        n: u64,
        /// Begin of the requested time, ns.
        since: i64,
        /// When the last member entered, ns.
        complete: i64,
        /// The late member.
        party: Party,
        /// Number of agents (u32) that want to know, in the list that follows.
        wanters: u32,
    }
    /// Activity of a late member of a collective.
    #[derive(Default)]
    Told {
        /// Communicator, window or file.
        group: u64,
        /// Index of the collective on it.
        n: u64,
        /// The late member's activity.
        detail: Detail,
    }
}

/// The end of a message that is asked about.
pub type Side = u32;
/// The send; asked on the channel on which the asking rank receives.
pub const SEND: Side = 0;
/// The post of the receive; asked on the channel on which the asking rank sends.
pub const POST: Side = 1;

/// Messages that consist of lists.
macro_rules! parcels {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $entry:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub struct $name { $($(#[$field_doc])* pub $field: Vec<$entry>,)* }

        impl Parcel for $name {
            fn pack(&self) -> Vec<u8> {
                let mut packer = Packer::default();
                if [$(self.$field.len()),*].iter().any(|&length| length > 0) {
                    $(packer.list(&self.$field);)*
                }
                packer.finish()
            }

            fn unpack(bytes: &[u8]) -> Self {
                let mut unpacker = Unpacker::new(bytes);
                $name { $($field: unpacker.list(),)* }
            }

            fn clear(&mut self) {
                $(self.$field.clear();)*
            }
        }
    )*};
}
pub(crate) use parcels;

parcels! {
    /// First leg of a round.
    Asking {
        /// New channels.
        declarations: Declaration,
        /// Questions on channels.
        questions: Question,
        /// Messages that will not be asked about any more.
        progress: Progress,
        /// Collectives, to their owners.
        folds: Fold,
        /// Their single members, in the folds' order.
        members: Member,
        /// Waits for values.
        watches: Watch,
    }
    /// Second leg of a round.
    Answering {
        /// Replies to the first leg's questions.
        replies: Reply,
        /// Their times, in order, ns.
        times: i64,
        /// Complete collectives, to the agents that want them.
        folds: Fold,
        /// Their single members, in the folds' order.
        members: Member,
        /// Inquiries to the late members' agents.
        inquiries: Inquiry,
        /// Agents that want to know, in order.
        wanters: u32,
        /// Writes that ended waits for values.
        written: Written,
        /// Holders of locks.
        held: Held,
        /// Competitors of transfers.
        rivals: Rival,
    }
    /// Third leg of a round.
    Requesting {
        /// Requests about late parties.
        requests: Request,
        /// Activity of late members of collectives, to the agents that asked.
        told: Told,
        /// Needs of calls for the progress of partners.
        needs: Need,
    }
    /// Fourth leg of a round.
    Describing {
        /// Answers to the third leg's requests, in their order.
        descriptions: Detail,
        /// Absences of ranks whose progress was needed.
        absences: Absence,
        /// Begins and ends of these, in order, ns.
        times: i64,
    }
    /// Lists of neighbours, to all agents.
    Edges {
        /// Communicator, world rank, length of its list.
        lists: [u64; 3],
        /// The lists, in order: ranks in the communicator.
        sources: u32,
    }
    /// Memory and locks used by the ranks of an agent, to all agents.
    Touched {
        /// First and last of ranges of ranks in whose memory they read or write.
        targets: [u64; 2],
        /// Windows on which they acquire locks, and 0.
        windows: [u64; 2],
        /// One entry: whether they use locks of OpenSHMEM, and of all windows, 1 or 0.
        locks: [u64; 2],
    }
    /// Members per group: (group, those with a trace, all).
    Counting {
        /// Groups.
        counts: [u64; 3],
    }
}

/// Message of one agent to another on one leg.
pub trait Parcel: Default {
    /// As bytes; empty without entries.
    fn pack(&self) -> Vec<u8>;
    /// From bytes. Agents run the same program; truncated data is missing.
    fn unpack(bytes: &[u8]) -> Self;
    /// Clears it, keeping its memory.
    fn clear(&mut self);
}

/// Sends `parcels[a]` to agent `a` and returns the parcels sent here. An agent's parcel to itself
/// is moved. The parcels are left empty.
pub fn exchange<P: Parcel>(job: &dyn Job, parcels: &mut [P]) -> Vec<P> {
    let me = job.agent();
    let own = std::mem::take(&mut parcels[me]);
    let packed = parcels.iter_mut().enumerate().map(|(agent, parcel)| {
        let bytes = if agent == me {
            Vec::new()
        } else {
            parcel.pack()
        };
        parcel.clear();
        bytes
    });
    let mut own = Some(own);
    let received = job.exchange(packed.collect());
    let unpacked = received
        .iter()
        .enumerate()
        .map(|(agent, bytes)| match agent == me {
            true => own.take().unwrap_or_default(),
            false => P::unpack(bytes),
        });
    unpacked.collect()
}

/// Reuses the memory of this agent's parcel to itself.
pub fn recycle<P: Parcel>(job: &dyn Job, parcels: &mut [P], received: Vec<P>) {
    if let Some(mut own) = received.into_iter().nth(job.agent()) {
        own.clear();
        parcels[job.agent()] = own;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parcels_come_back_as_they_went() {
        let member = Member {
            party: Party {
                enter: -5,
                rank: 9,
                ..Party::default()
            },
            leave: 7,
            local_rank: 2,
            asks: 1,
            late: 3,
            through: 8,
            is_apart: 0,
        };
        let parcel = Asking {
            progress: vec![Progress {
                channel: 1,
                last: 0,
                n: 7,
            }],
            members: vec![member],
            ..Asking::default()
        };
        let back = Asking::unpack(&parcel.pack());
        assert_eq!((back.progress[0].n, back.members[0]), (7, member));
        assert!(back.questions.is_empty());
        assert!(Asking::default().pack().is_empty());
        assert!(Asking::unpack(&[]).folds.is_empty());
    }

    proptest::proptest! {
        /// A truncated parcel, or one with absurd counts, has the entries that are there.
        #[test]
        fn any_bytes_are_a_parcel(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..600),
        ) {
            // A block of 64 entries takes at least a byte.
            let most = 64 * bytes.len();
            let asking = Asking::unpack(&bytes);
            let entries = [
                asking.declarations.len(),
                asking.questions.len(),
                asking.progress.len(),
                asking.folds.len(),
                asking.members.len(),
            ];
            proptest::prop_assert!(entries.iter().sum::<usize>() <= most);
            let answering = Answering::unpack(&bytes);
            proptest::prop_assert!(answering.times.len() <= most);
            let (requesting, describing) = (Requesting::unpack(&bytes), Describing::unpack(&bytes));
            let told = requesting.told.len() + describing.descriptions.len();
            let listed = Edges::unpack(&bytes).sources.len() + Counting::unpack(&bytes).counts.len();
            proptest::prop_assert!(told + listed <= 2 * most);
        }
    }
}
