//! What is joined of several calls, and who takes it.

use anyhow::Result;

/// A call, as others refer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByCall {
    /// Which call of its location, as [`Operation::number`](super::Operation::number).
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
    /// Number, in the table of calls, of the call that sent it, or posted its receive.
    pub call: u16,
    /// Call path of that call.
    pub call_path: u32,
    /// Which call of the location that was.
    pub number: u64,
    /// When it began, ns.
    pub enter: i64,
    /// The call in which the message was done here: the same one if it blocks, else the one
    /// that completed the request, if any did.
    pub done: Option<ByCall>,
    /// Bytes; of a receive, what there was room for.
    pub bytes: u64,
}

/// One message. An end is missing that is in no trace, or never happened.
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
    /// Which message from this sender to this receiver with this tag on this communicator.
    pub number: u64,
    /// Where it came from.
    pub send: Option<MessageEnd>,
    /// Where it went to.
    pub receive: Option<MessageEnd>,
}

/// One member's part in one collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Position of the group.
    pub group: u32,
    /// Which collective on it, from 0.
    pub instance: u64,
    /// Number, in the table of calls, of the call.
    pub call: u16,
    /// Call path of it.
    pub call_path: u32,
    /// Position of the location.
    pub location: u32,
    /// Which call of the location.
    pub number: u64,
    /// When that call began, ns.
    pub enter: i64,
    /// The call in which it was done here: the same one if it blocks.
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
    /// Which collective on it, from 0.
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
    /// When the first member was done; `None` if it is not known of any.
    pub first_leave: Option<i64>,
    /// When the last member was done.
    pub last_leave: Option<i64>,
    /// Bytes that all members put in.
    pub bytes_sent: u64,
}

/// What one call lost in one pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Position of the location.
    pub location: u32,
    /// The pattern's number.
    pub pattern: u8,
    /// Number, in the table of calls, of the call.
    pub call: u16,
    /// Call path of it.
    pub call_path: u32,
    /// When it began, ns.
    pub enter: i64,
    /// When it ended, ns.
    pub leave: i64,
    /// Of that, what was lost, ns.
    pub lost: i64,
    /// Who was late, if anybody: world rank, number of its call in the table of calls, number
    /// of the call path.
    pub cause: Option<(u32, u16, u32)>,
}

/// Takes what is joined: in an order that does not depend on the number of threads.
pub trait Joined {
    /// A message is complete, or will never be.
    fn message(&mut self, message: &Message) -> Result<()>;
    /// A member is done with a collective, or will never be.
    fn member(&mut self, member: &Member) -> Result<()>;
    /// A collective is complete, or will never be.
    fn collective(&mut self, collective: &Collective) -> Result<()>;
    /// What a call lost is known.
    fn wait(&mut self, wait: &Wait) -> Result<()>;
}
