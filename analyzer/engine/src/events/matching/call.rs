//! The call of one end of a message.

use laggard_trace::{Endpoint, Signature, flags};

use crate::basics::ends::End;
use crate::events::ByCall;
use crate::replay::rank::Rank;

/// The call of a message's end, or of a member.
pub struct CallOf<'r> {
    /// As recorded.
    pub signature: &'r Signature,
    event: Option<&'r laggard_trace::Event>,
    number: u64,
    enter: i64,
    leave: Option<i64>,
}

impl<'r> CallOf<'r> {
    /// The call of a rank whose slab is in memory.
    pub fn new(rank: &'r Rank, end: &End) -> CallOf<'r> {
        let thread = &rank.recorded.threads[end.thread as usize];
        let definitions = &thread.stream.location().definitions;
        let columns = &thread.columns;
        let position = columns.position(end.event);
        let extended = &columns.extended;
        let event = position.and_then(|position| {
            let found = extended.binary_search_by_key(&position, |(at, _)| *at);
            Some(&extended[found.ok()?].1)
        });
        CallOf {
            signature: &definitions.signatures()[end.signature as usize],
            event,
            number: end.event,
            enter: end.time,
            leave: position.map(|position| columns.leave[position]),
        }
    }

    /// The call itself, if it is blocking and so completes its own message.
    pub fn by_itself(&self) -> Option<ByCall> {
        let leave = self.leave.filter(|_| !self.signature.has(flags::POSTS))?;
        Some(ByCall {
            number: self.number,
            enter: self.enter,
            leave,
        })
    }

    /// Its send half.
    pub fn send(&self) -> Endpoint {
        let event = self.event;
        event.map_or(self.signature.send, |event| event.send(self.signature))
    }

    /// Its receive half.
    pub fn receive(&self) -> Endpoint {
        let event = self.event;
        event.map_or(self.signature.receive, |event| {
            event.receive(self.signature)
        })
    }
}
