//! What a rank notes for those who want every message, not only what was lost: kept from
//! pass one until it is taken, and only where it is asked for.

use crate::basics::intern::PathKey;
use crate::stream::call::CallAt;

/// What a request, or a blocking call that had to wait for its number, was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A message that this rank sent: number of its channel, and of the message on it.
    Sent(u32, u64),
    /// A message that it received, likewise.
    Received(u32, u64),
    /// A collective: the agent's number of the group, and which one on it.
    Collective(u32, u64),
}

/// The call that ended something.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// What.
    pub subject: Subject,
    /// Number of the call in its location.
    pub number: u64,
    /// Its enter, ns.
    pub enter: i64,
    /// Its leave, ns.
    pub leave: i64,
}

/// What one call lost.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// A pattern's number.
    pub pattern: u8,
    /// Signature of the call.
    pub signature: u32,
    /// ns.
    pub severity: i64,
    /// Its enter, ns.
    pub enter: i64,
    /// Its leave, ns.
    pub leave: i64,
    /// The late party, if there is one: world rank, number of its call, call path.
    pub late: Option<(u32, u16, PathKey)>,
}

impl Ended {
    /// By this call.
    pub fn by(call: &CallAt, subject: Subject) -> Ended {
        Ended {
            subject,
            number: call.number,
            enter: call.enter,
            leave: call.leave,
        }
    }
}
