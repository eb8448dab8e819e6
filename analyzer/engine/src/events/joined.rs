//! Events joined from several calls, and the trait of their receiver.

use anyhow::Result;

/// A call, as others refer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByCall {
    /// Number of the call in its location, as [`Operation::number`](super::Operation::number).
    pub number: u64,
    /// When it began, ns.
    pub enter: i64,
    /// When it ended, ns.
    pub leave: i64,
}

/// One end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageEnd {
    /// Position of the location.
    pub location: u32,
    /// Number, in the table of calls, of the call that sent it or posted its receive.
    pub call: u16,
    /// Call path of that call.
    pub call_path: u32,
    /// Number of that call in its location.
    pub number: u64,
    /// When it began, ns.
    pub enter: i64,
    /// The call that completed the message here: the same one if it blocks, else the one that
    /// completed the request, if any did.
    pub done: Option<ByCall>,
    /// Bytes; for a receive, the size of the buffer.
    pub bytes: u64,
}

/// One message. An end is `None` if it is in no trace or never happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// World rank of the sender.
    pub from: u32,
    /// World rank of the receiver.
    pub to: u32,
    /// Position of the communicator in [`Events::groups`](super::Events::groups).
    pub group: u32,
    /// Tag.
    pub tag: i32,
    /// Index of the message from this sender to this receiver with this tag on this communicator.
    pub number: u64,
    /// The sender's end.
    pub send: Option<MessageEnd>,
    /// The receiver's end.
    pub receive: Option<MessageEnd>,
}

/// One member's part in one collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Position of the group.
    pub group: u32,
    /// Index of the collective on the group, from 0.
    pub instance: u64,
    /// Number, in the table of calls, of the call.
    pub call: u16,
    /// Call path of that call.
    pub call_path: u32,
    /// Position of the location.
    pub location: u32,
    /// Its number in the group.
    pub local_rank: u32,
    /// Whether it needs something from others.
    pub waits: bool,
    /// Whether others need something from it.
    pub is_awaited: bool,
    /// Number of the call in its location.
    pub number: u64,
    /// When that call began, ns.
    pub enter: i64,
    /// The call that completed it here: the same one if it blocks.
    pub done: Option<ByCall>,
    /// Bytes that it put in.
    pub bytes_sent: u64,
    /// Bytes that it got.
    pub bytes_received: u64,
}

/// One collective. ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    /// Position of the group.
    pub group: u32,
    /// Index of the collective on the group, from 0.
    pub instance: u64,
    /// Number, in the table of calls, of the call.
    pub call: u16,
    /// Members that entered it.
    pub members: u32,
    /// Members that have a trace.
    pub expected: u32,
    /// When the first member entered.
    pub first_enter: i64,
    /// Its rank.
    pub first_rank: u32,
    /// When the last member entered.
    pub last_enter: i64,
    /// Its rank.
    pub last_rank: u32,
    /// When the first member was done; `None` if unknown for all.
    pub first_leave: Option<i64>,
    /// When the last member was done.
    pub last_leave: Option<i64>,
    /// Bytes that all members put in.
    pub bytes_sent: u64,
}

/// Loss of one call in one pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Position of the location.
    pub location: u32,
    /// The pattern's number.
    pub pattern: u8,
    /// Number, in the table of calls, of the call.
    pub call: u16,
    /// Call path of that call.
    pub call_path: u32,
    /// When it began, ns.
    pub enter: i64,
    /// When it ended, ns.
    pub leave: i64,
    /// When the wait began, ns: before the call, if that found what others had looked for in vain.
    pub since: i64,
    /// Time lost since then, ns.
    pub lost: i64,
    /// The late call, if any; of several late ranks that with the largest share.
    pub cause: Option<LateCall>,
    /// The late call that came last.
    pub last: Option<LateCall>,
}

/// One of the late parties of a wait, as the search for root causes takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    /// Position of the location in the run; [`NONE`](super::NONE) if it has no trace.
    pub location: u32,
    /// Number of the late call in its location.
    pub number: u64,
    /// When it came, ns.
    pub time: i64,
    /// Time lost to it, ns.
    pub share: i64,
    /// When the call that waited began, ns. Of looks in vain the one at `time` waited.
    pub enter: i64,
    /// When the wait began, ns.
    pub since: i64,
}

/// A call that others waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateCall {
    /// World rank.
    pub rank: u32,
    /// Number of the call in the table of calls.
    pub call: u16,
    /// Its call path.
    pub call_path: u32,
    /// Position of the location in the run; [`NONE`](super::NONE) if it has no trace.
    pub location: u32,
    /// Number of the call in its location.
    pub number: u64,
    /// When it began, ns.
    pub enter: i64,
}

/// Receives joined events. Their order does not depend on the number of threads.
pub trait Joined {
    /// The ends of all slabs of time but the last, ns. Events of about one slab are in memory at a
    /// time.
    fn begin(&mut self, _borders: &[i64]) {}
    /// Whether messages, members and collectives are given at all: without them it takes less time.
    fn wants_messages(&self) -> bool {
        true
    }
    /// A message is complete, or never will be.
    fn message(&mut self, _message: &Message) -> Result<()> {
        Ok(())
    }
    /// A member has completed a collective, or never will.
    fn member(&mut self, _member: &Member) -> Result<()> {
        Ok(())
    }
    /// A collective is complete, or never will be.
    fn collective(&mut self, _collective: &Collective) -> Result<()> {
        Ok(())
    }
    /// The loss of a call is known.
    fn wait(&mut self, wait: &Wait) -> Result<()>;
    /// Whether [`party`](Self::party) is called.
    fn wants_parties(&self) -> bool {
        false
    }
    /// One of the late parties of the wait that was given last.
    fn party(&mut self, _wait: &Wait, _party: &Party) -> Result<()> {
        Ok(())
    }
}
