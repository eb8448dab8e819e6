//! What agents send each other in a round: sections of fixed-size entries.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

macro_rules! entries {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
        #[repr(C)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }
    )*};
}

entries! {
    /// Gives a channel of one of the receiver's ranks the next number between the two agents.
    Declaration {
        /// Communicator.
        group: u64,
        /// The receiver's rank, world number.
        rank: u32,
        /// The sender's rank, world number.
        peer: i32,
        /// Message tag.
        tag: i32,
        /// 0: the channel on which `rank` sends; 1: on which it receives.
        side: u32,
    }
    /// Asks when the other end of a message happened.
    Question {
        /// Declared number of the channel.
        channel: u32,
        /// The asking rank, its agent's number.
        rank: u32,
        /// What the answer is for.
        token: u64,
        /// Number of the message on the channel.
        n: u64,
        /// The waiting interval, ns.
        enter: i64,
        /// See `enter`.
        leave: i64,
        /// Messages from that peer received before.
        received: u64,
        /// See [`QUESTION_BARE`].
        flags: u64,
    }
    /// Says which messages of a channel will not be asked for any more.
    Progress {
        /// Declared number of the channel.
        channel: u32,
        /// 1 = `n` is the count at the end of the trace.
        last: u32,
        /// All messages before this.
        n: u64,
    }
    /// The other end of a message.
    Reply {
        /// As asked.
        rank: u32,
        /// 0 = about a send, 1 = about the posting of a receive.
        side: u32,
        /// As asked.
        token: u64,
        /// Enter of the send or the posting, ns.
        time: i64,
        /// Position + 1 of its [`Detail`], 0 = it was not late.
        detail: u32,
        /// 1 = a message sent earlier from there was still not received.
        overtook: u32,
    }
    /// A late party's call and what it did before.
    Detail {
        /// Call path.
        path: [u64; 2],
        /// Call path of the operation that it waited in longest.
        other_path: [u64; 2],
        /// ns of the waiting interval in which the late party computed.
        computation: i64,
        /// … was inside communication.
        waiting: i64,
        /// … was inside file operations.
        io: i64,
        /// World rank.
        rank: u32,
        /// Thread.
        thread: u32,
        /// The late call.
        operation: u16,
        /// The operation that it waited in longest, 0 = none.
        other_operation: u16,
        /// Zero.
        reserved: u32,
    }
    /// One agent's members of one collective.
    Fold {
        /// Communicator, window or file.
        group: u64,
        /// Which collective on it.
        n: u64,
        /// First and last enter, ns.
        first_enter: i64,
        /// See `first_enter`.
        last_enter: i64,
        /// First leave of the members, ns; `i64::MAX` if none is known.
        first_leave: i64,
        /// First enter of a member that is not the root.
        first_other: i64,
        /// Enter of the root; `i64::MIN` if it is not here.
        root_enter: i64,
        /// Call number of the last to enter, in its location.
        last_event: u64,
        /// Call number of the root's call.
        root_event: u64,
        /// World rank of the last to enter.
        last_rank: u32,
        /// Its thread.
        last_thread: u32,
        /// Thread of the root.
        root_thread: u32,
        /// World rank of the root.
        root_rank: i32,
        /// Members folded.
        count: u32,
        /// Members in all, 0 = unknown to this agent.
        expected: u32,
        /// Whether this agent wants the result.
        wanted: u32,
        /// [`Member`] entries of this fold that follow.
        members: u32,
        /// Whether the others wait for the root and not for the last.
        root_is_late: u32,
        /// Zero.
        reserved: u32,
    }
    /// One member of a collective in which single members matter (scans, neighbourhoods).
    Member {
        /// ns.
        enter: i64,
        /// Rank in the communicator.
        local_rank: u32,
        /// World rank.
        rank: u32,
    }
    /// The whole of a collective: goes to the agent of the late member, and from
    /// there, with its [`Detail`], to those who want it.
    Whole {
        /// All members.
        fold: Fold,
        /// `Member` entries that follow.
        members: u32,
        /// Agents (u32) that want it, in the list that follows; 0 on the second leg.
        wanters: u32,
        /// Position + 1 of the late member's detail on the second leg.
        detail: u32,
        /// Zero.
        reserved: u32,
    }
}

/// [`Question::flags`]: only the time is wanted, not what the late party did.
pub const QUESTION_BARE: u64 = 1;

/// Writes sections one after another.
#[derive(Default)]
pub struct Parcel(Vec<u8>);

impl Parcel {
    /// Appends a section.
    pub fn section<T: IntoBytes + Immutable>(&mut self, entries: &[T]) {
        self.0
            .extend_from_slice(&(entries.len() as u64).to_le_bytes());
        self.0.extend_from_slice(entries.as_bytes());
    }

    /// The bytes; none if all sections are empty, which readers take as such.
    pub fn finish(self) -> Vec<u8> {
        if self.0.iter().all(|&byte| byte == 0) {
            Vec::new()
        } else {
            self.0
        }
    }
}

/// Reads sections in the order in which they were written. Agents run the same
/// program, so a parcel that ends early is an empty one.
pub struct Unpack<'a>(&'a [u8]);

impl<'a> Unpack<'a> {
    /// Starts at the first section.
    pub fn new(bytes: &'a [u8]) -> Self {
        Unpack(bytes)
    }

    /// The entries of the next section.
    pub fn section<T: FromBytes + Copy + 'a>(
        &mut self,
    ) -> impl ExactSizeIterator<Item = T> + use<'a, T> {
        let count = match self.0.split_first_chunk::<8>() {
            Some((count, rest)) => {
                self.0 = rest;
                u64::from_le_bytes(*count) as usize
            }
            None => 0,
        };
        let size = count.saturating_mul(size_of::<T>()).min(self.0.len());
        let (entries, rest) = self.0.split_at(size);
        self.0 = rest;
        entries
            .chunks_exact(size_of::<T>())
            .map(|bytes| T::read_from_bytes(bytes).unwrap_or_else(|_| unreachable!("exact chunks")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_come_back_in_order() {
        let mut parcel = Parcel::default();
        parcel.section(&[Progress {
            channel: 1,
            last: 0,
            n: 7,
        }]);
        parcel.section::<Reply>(&[]);
        parcel.section(&[Member {
            enter: -5,
            local_rank: 2,
            rank: 9,
        }]);
        let bytes = parcel.finish();
        let mut unpack = Unpack::new(&bytes);
        assert_eq!(
            unpack
                .section::<Progress>()
                .map(|p| p.n)
                .collect::<Vec<_>>(),
            [7]
        );
        assert_eq!(unpack.section::<Reply>().len(), 0);
        assert_eq!(unpack.section::<Member>().next().unwrap().enter, -5);
        assert_eq!(unpack.section::<Member>().len(), 0);
    }
}
