//! Notes of a rank for those who need every wait state and every message, not only sums. Kept until
//! they are taken, and only on request.

use crate::stream::call::CallAt;
use crate::waits::charging::{Lost, Sink, WaitState, Waiting};

/// Subject of a request, or of a blocking call that waited for its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A message that this rank sent: number of its channel, and of the message on it.
    Sent(u32, u64),
    /// A message that it received: number of its channel, and of the message on it.
    Received(u32, u64),
    /// A collective: the agent's number of the group, and the collective's index on it.
    Collective(u32, u64),
}

/// The call that ended something.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// The subject that ended.
    pub subject: Subject,
    /// Number of the call in its location.
    pub number: u64,
    /// Its enter, ns.
    pub enter: i64,
    /// Its leave, ns.
    pub leave: i64,
}

/// Every wait state, in the order of the charges.
#[derive(Debug, Default)]
pub struct Log(Vec<(Waiting, Lost)>);

impl Sink for Log {
    #[cold]
    fn take(&mut self, wait: &WaitState<'_>) {
        self.0.push((wait.waiting, wait.loss.into()));
    }
}

impl Log {
    /// The charges since the last call.
    pub fn drain(&mut self) -> std::vec::Drain<'_, (Waiting, Lost)> {
        self.0.drain(..)
    }
}

impl Ended {
    /// The end of `subject` by this call.
    pub fn by(call: &CallAt, subject: Subject) -> Ended {
        Ended {
            subject,
            number: call.number,
            enter: call.enter,
            leave: call.leave,
        }
    }
}
