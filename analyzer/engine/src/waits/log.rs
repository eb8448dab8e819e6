//! What a rank notes for those who want every wait state and every message, not only sums: kept
//! until it is taken, and only where it is asked for.

use crate::stream::call::CallAt;
use crate::waits::charging::{Lost, Sink, WaitState, Waiting};

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

/// Every wait state, in the order in which they were charged.
#[derive(Debug, Default)]
pub struct Log(Vec<(Waiting, Lost)>);

impl Sink for Log {
    #[cold]
    fn take(&mut self, wait: &WaitState<'_>) {
        self.0.push((wait.waiting, wait.loss.into()));
    }
}

impl Log {
    /// What was charged since the last time.
    pub fn drain(&mut self) -> std::vec::Drain<'_, (Waiting, Lost)> {
        self.0.drain(..)
    }
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
