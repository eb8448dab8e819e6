//! What agents send each other in a round: lists of entries.

use laggard_comm::Job;

use crate::basics::ends::End;
use crate::wire::packing::{Pack, Packer, Unpacker, entries, put_mask, take_mask};
use crate::wire::watched::{Held, Rival, Watch, Written};

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
        /// What will be asked about on it.
        side: Side,
    }
    /// Asks when the other ends of successive messages happened.
    #[derive(Default)]
    Question {
        /// Declared number of the channel.
        channel: u32,
        /// How many messages.
        count: u32,
        /// Number of the first one on the channel.
        n: u64,
    }
    /// Says which messages of a channel will not be asked for any more.
    #[derive(Default)]
    Progress {
        /// Declared number of the channel.
        channel: u32,
        /// 1 = `n` is the count at the end of the trace.
        last: u32,
        /// All messages before this.
        n: u64,
    }
    /// The other ends of successive messages happened at times that follow.
    #[derive(Default)]
    Reply {
        /// Declared number of the channel, as asked.
        channel: u32,
        /// How many messages.
        count: u32,
        /// Number of the first one on the channel.
        n: u64,
    }
    /// Asks what the party did that was late for a call.
    #[derive(Default)]
    Request {
        /// Declared number of the channel.
        channel: u32,
        /// Number of the message on the channel.
        n: u64,
        /// So long before it was late is asked for, ns.
        window: i64,
    }
    /// A call that may have gone on only when another rank was inside the library again.
    #[derive(Default)]
    Need {
        /// Number of the call among those of its rank that ask.
        call: u32,
        /// World rank that waits.
        rank: u32,
        /// World rank that was needed; of a collective not known before it is asked.
        peer: u32,
        /// Declared number of the channel on which the two meet; `NONE` if the peer's part is
        /// known to need it.
        channel: u32,
        /// Which end of the message is the peer's.
        side: Side,
        /// Number of the message on the channel, or of the collective on its group.
        n: u64,
        /// Communicator of a non-blocking collective, of which any member may have been needed; 0
        /// of messages.
        group: u64,
        /// When both had come, ns.
        from: i64,
        /// When the call was left, ns.
        leave: i64,
    }
    /// When a rank was outside of the library that a call needed.
    #[derive(Default)]
    Absence {
        /// Of the [`Need`].
        call: u32,
        /// Of the need.
        rank: u32,
        /// Of the need.
        peer: u32,
        /// Of the need, ns.
        from: i64,
        /// Begin and end of so many absences follow in a list of their own, ns.
        count: u32,
        /// What the peer did before the call that ended the last one.
        detail: Detail,
    }
    /// A late party's call and what it did before. What differs most comes first: it
    /// makes for a short mask.
    #[derive(Default)]
    Detail {
        /// ns of the waiting interval in which the late party computed.
        computation: i64,
        /// … was inside communication.
        waiting: i64,
        /// … was inside the operation that it waited in longest.
        other: i64,
        /// Call path.
        path: [u64; 2],
        /// The late call; 0 = it is not known what it did.
        operation: u16,
        /// Call path of the operation that it waited in longest.
        other_path: [u64; 2],
        /// The operation that it waited in longest, 0 = none.
        other_operation: u16,
        /// ns of the waiting interval in which it was inside file operations.
        io: i64,
        /// Enter of the late call, ns.
        time: i64,
        /// Number of the late call in its location.
        event: u64,
        /// World rank.
        rank: u32,
        /// Thread.
        thread: u32,
    }
    /// A member's entry into a collective.
    #[derive(Default)]
    Party {
        /// ns.
        enter: i64,
        /// Call number in its location.
        event: u64,
        /// World rank.
        rank: u32,
        /// Position of the thread in the rank.
        thread: u32,
        /// Its signature.
        signature: u32,
    }
    /// One agent's members of one collective, or all.
    Fold {
        /// Communicator, window or file.
        group: u64,
        /// Which collective on it.
        n: u64,
        /// First enter of a member that waits for others, ns.
        first_enter: i64,
        /// First leave of the members, ns; `i64::MAX` if none is known.
        first_leave: i64,
        /// Last enter of the members, ns.
        complete: i64,
        /// Where all ranks of the run meet: the most that a member computed since they did before,
        /// ns.
        computed: i64,
        /// The first of those that others wait for; entered at `i64::MAX` if there is none.
        first: Party,
        /// The last of them; entered at `i64::MIN` if there is none.
        last: Party,
        /// Number of the call.
        operation: u32,
        /// Members folded.
        count: u32,
        /// Members in all, 0 = unknown to this agent.
        expected: u32,
        /// Whether this agent wants the result.
        wanted: u32,
        /// [`Member`] entries of this fold that follow.
        members: u32,
    }
    /// One member of a collective in which single members matter (scans, neighbourhoods).
    #[derive(Default)]
    Member {
        /// Its entry.
        party: Party,
        /// ns; `i64::MAX` for a non-blocking one.
        leave: i64,
        /// Rank in the communicator.
        local_rank: u32,
        /// Whether it wants the result.
        asks: u32,
        /// Position of the member that it waits for, once all are together.
        late: u32,
    }
    /// Asks a late member's agent what that did.
    #[derive(Default)]
    Inquiry {
        /// Communicator, window or file.
        group: u64,
        /// Which collective on it.
        n: u64,
        /// What happened since then is asked for, ns.
        since: i64,
        /// When the last member entered, ns.
        complete: i64,
        /// The late member.
        party: Party,
        /// Agents (u32) that want to know, in the list that follows.
        wanters: u32,
    }
    /// What a late member of a collective did.
    #[derive(Default)]
    Told {
        /// Communicator, window or file.
        group: u64,
        /// Which collective on it.
        n: u64,
        /// Of the late member.
        detail: Detail,
    }
}

impl Party {
    /// Its call.
    pub fn call(&self) -> End {
        End {
            time: self.enter,
            event: self.event,
            signature: self.signature,
            thread: self.thread,
        }
    }
}

/// Which end of a message is asked about.
pub type Side = u32;
/// When and where it was sent; asked on the channel on which the asking rank receives.
pub const SEND: Side = 0;
/// When and where its receive was posted; asked on the channel on which it sends.
pub const POST: Side = 1;

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

parcels! {
    /// First leg of a round.
    Asking {
        /// New channels.
        declarations: Declaration,
        /// What is asked on channels.
        questions: Question,
        /// What will not be asked any more.
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
        /// To the first leg's questions.
        replies: Reply,
        /// Their times, in order, ns.
        times: i64,
        /// Complete collectives, to those who want them.
        folds: Fold,
        /// Their single members, in the folds' order.
        members: Member,
        /// To the late members' agents.
        inquiries: Inquiry,
        /// Agents that want to know, in order.
        wanters: u32,
        /// What ended waits for values.
        written: Written,
        /// Who held locks.
        held: Held,
        /// Who competed with transfers.
        rivals: Rival,
    }
    /// Third leg of a round.
    Requesting {
        /// About those who turned out to be late.
        requests: Request,
        /// About late members of collectives, to those who want to know.
        told: Told,
        /// Whose progress calls needed.
        needs: Need,
    }
    /// Fourth leg of a round.
    Describing {
        /// To the third leg's requests, in their order.
        descriptions: Detail,
        /// When those were absent whose progress was needed.
        absences: Absence,
        /// Begins and ends, ns, of each in order.
        times: i64,
    }
    /// Lists of neighbours, to everybody.
    Edges {
        /// Communicator, world rank, length of its list.
        lists: [u64; 3],
        /// The lists, in order: ranks in the communicator.
        sources: u32,
    }
    /// What the ranks of an agent touch, to everybody.
    Touched {
        /// First and last of successive ranks in whose memory they read or write.
        targets: [u64; 2],
        /// Windows on which they take locks, and 0.
        windows: [u64; 2],
        /// One entry: whether they use locks of OpenSHMEM, and of all windows, 1 or 0.
        locks: [u64; 2],
    }
    /// Members per group: (group, count).
    Counting {
        /// Pairs.
        counts: [u64; 2],
    }
}

/// What one agent sends another on one leg.
pub trait Parcel: Default {
    /// As bytes; none if there is nothing in it.
    fn pack(&self) -> Vec<u8>;
    /// From bytes. Agents run the same program; what is cut off is missing.
    fn unpack(bytes: &[u8]) -> Self;
    /// Empties it, keeping its memory.
    fn clear(&mut self);
}

/// Sends `parcels[a]` to agent `a` and gives what each sent here. What an agent sends
/// to itself is moved. The parcels are left empty.
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

/// Gives the memory of what this agent sent itself back to its parcels.
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
        /// Cut off or with absurd counts, a parcel is what of it is there.
        #[test]
        fn any_bytes_are_a_parcel(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..600),
        ) {
            // An entry takes a byte at least.
            let asking = Asking::unpack(&bytes);
            let entries = [
                asking.declarations.len(),
                asking.questions.len(),
                asking.progress.len(),
                asking.folds.len(),
                asking.members.len(),
            ];
            proptest::prop_assert!(entries.iter().sum::<usize>() <= bytes.len());
            let answering = Answering::unpack(&bytes);
            proptest::prop_assert!(answering.times.len() <= bytes.len());
            let (requesting, describing) = (Requesting::unpack(&bytes), Describing::unpack(&bytes));
            let told = requesting.told.len() + describing.descriptions.len();
            let listed = Edges::unpack(&bytes).sources.len() + Counting::unpack(&bytes).counts.len();
            proptest::prop_assert!(told + listed <= 2 * bytes.len());
        }
    }
}
