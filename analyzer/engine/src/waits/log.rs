//! Notes of a rank for those who need every wait state and every message, not only sums. Kept until
//! they are taken, and only on request.

use laggard_patterns::PatternId;

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

/// Every wait state in short, in the order of the charges.
#[derive(Debug, Default)]
pub struct ShortLog(Vec<ShortWait>);

/// A wait of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortWait {
    /// Which pattern.
    pub pattern: PatternId,
    /// When the call began, ns.
    pub enter: i64,
    /// When it ended, ns.
    pub leave: i64,
    /// When the wait began, ns: before the call, if that found what others had looked for in vain.
    pub since: i64,
    /// When it was over, ns. Of a wait in looks, there may be work before that.
    pub until: i64,
    /// Time lost in between, ns.
    pub lost: i64,
    /// Signature of the call.
    pub signature: u32,
    /// Communicator or window in which it waited; 0 if that is the call's.
    pub group: u64,
    /// The late call, if any; of several late ranks that with the largest share.
    pub late: Option<ShortLate>,
}

/// A call that others waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortLate {
    /// World rank.
    pub rank: u32,
    /// Number of its thread.
    pub thread: u32,
    /// Number of the call in the table of calls.
    pub call: u16,
    /// When it began, ns.
    pub enter: i64,
}

impl Sink for ShortLog {
    fn take(&mut self, wait: &WaitState<'_>) {
        let (waiting, loss) = (&wait.waiting, &wait.loss);
        let lasted = waiting.since.saturating_add(loss.severity);
        let looked = loss.looked.map(|looked| (looked.since, looked.until));
        let (since, until) = looked.unwrap_or((waiting.since, lasted));
        self.0.push(ShortWait {
            pattern: loss.pattern,
            enter: waiting.enter,
            leave: waiting.leave,
            since,
            until: until.max(since.saturating_add(loss.severity)),
            lost: loss.severity,
            signature: waiting.signature,
            group: loss.group,
            late: loss.whom.most().map(|late| ShortLate {
                rank: late.rank,
                thread: late.thread,
                call: late.operation,
                enter: late.time,
            }),
        });
    }
}

impl ShortLog {
    /// The charges since the last call.
    pub fn drain(&mut self) -> std::vec::Drain<'_, ShortWait> {
        self.0.drain(..)
    }
}

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
