//! Events within a call: messages, requests, collectives.

use laggard_trace::{Definition, Endpoint, TAG_ANY, flags};

use super::Calls;
use crate::events::{Any, Collective, Message};
use crate::notes::Kind;
use crate::open::{Part, instant};
use crate::output::NOBODY;
use crate::pending::{Found, Outcome};

/// Wildcards of a receive, as flags of its signature.
pub(super) fn wildcards(any: Any) -> u16 {
    let source = if any.source { flags::ANY_SOURCE } else { 0 };
    let tag = if any.tag { flags::ANY_TAG } else { 0 };
    source | tag
}

impl Calls<'_> {
    /// Communicator and peer of a message.
    pub(super) fn half(&mut self, message: Message) -> Option<(u64, Endpoint)> {
        let rank = self.thread.rank;
        let found = self.world.comm_id(message.comm, rank);
        let peer = self.world.peer(message.comm, message.peer, rank);
        let Some((group, peer)) = found.zip(peer) else {
            self.note(Kind::Undefined);
            return None;
        };
        self.define_alone(message.comm);
        let half = Endpoint {
            peer,
            tag: (message.tag as i32).max(TAG_ANY),
            bytes: message.bytes,
        };
        Some((group, half))
    }

    pub(super) fn send(&mut self, time: u64, message: Message, request: Option<u64>) {
        let Some((group, send)) = self.half(message) else {
            self.missing.sends = true;
            return;
        };
        let stand_in = match request {
            Some(_) => instant::MPI_Isend,
            None => instant::MPI_Send,
        };
        self.within(time, stand_in, |open| {
            open.parts.push(Part {
                flags: flags::SENDS,
                send,
                request,
                ..Part::on(group)
            });
        });
    }

    pub(super) fn receive(&mut self, time: u64, message: Message, any: Any) {
        let Some((group, receive)) = self.half(message) else {
            self.missing.receives = true;
            return;
        };
        self.within(time, instant::MPI_Recv, |open| {
            open.parts.push(Part {
                flags: flags::RECEIVES | wildcards(any),
                receive,
                ..Part::on(group)
            });
        });
    }

    /// Posts a request whose completion will tell more.
    pub(super) fn request(&mut self, time: u64, request: u64, stand_in: u16, flags: u16) {
        self.within(time, stand_in, |open| {
            open.parts.push(Part {
                flags,
                request: Some(request),
                waits: true,
                ..Part::on(0)
            });
        });
    }

    pub(super) fn complete(&mut self, time: u64, request: u64, outcome: Outcome) {
        match self.pending.complete(request, outcome) {
            Found::Post(completed) => self.within(time, instant::MPI_Wait, |open| {
                open.completes.push(completed);
            }),
            Found::TooLate => {
                self.missing.receives = true;
                self.note(Kind::LateRequest);
            }
            Found::Unknown if self.completes_at_once(request, outcome) => {}
            Found::Unknown => {
                self.missing.receives |= matches!(outcome, Outcome::Received { .. });
                self.note(Kind::UnknownRequest);
            }
        }
    }

    /// Handles a request that the open call posted, such as a start that completes at once: all
    /// is known of it already. Returns whether it is one.
    fn completes_at_once(&mut self, request: u64, outcome: Outcome) -> bool {
        let parts = self.open.iter_mut().flat_map(|open| &mut open.parts);
        let mut own = parts.filter(|part| part.request == Some(request));
        let Some(part) = own.next() else {
            return false;
        };
        (part.request, part.waits) = (None, false);
        match outcome {
            Outcome::AsPosted => {}
            Outcome::Received { group, receive, .. } => {
                (part.group, part.receive) = (group, receive);
            }
            Outcome::Collective {
                group,
                send,
                receive,
            } => (part.group, part.send, part.receive) = (group, send, receive),
            Outcome::Cancelled => part.flags = 0,
        }
        true
    }

    /// Communicator and halves of a collective.
    pub(super) fn halves(&mut self, collective: Collective) -> Option<(u64, Endpoint, Endpoint)> {
        let rank = self.thread.rank;
        let found = self.world.comm_id(collective.on, rank);
        let root = self.world.root(collective.on, collective.root, rank);
        let Some((group, peer)) = found.zip(root) else {
            self.note(Kind::Undefined);
            return None;
        };
        self.define_alone(collective.on);
        let send = Endpoint {
            peer,
            tag: 0,
            bytes: collective.sent,
        };
        let receive = Endpoint {
            bytes: collective.received,
            ..NOBODY
        };
        Some((group, send, receive))
    }

    pub(super) fn collective(&mut self, collective: Collective) {
        let Some((group, send, receive)) = self.halves(collective) else {
            return;
        };
        match &mut self.open {
            Some(open) => open.parts.push(Part {
                flags: flags::COLLECTIVE,
                send,
                receive,
                ..Part::on(group)
            }),
            None => self.note(Kind::Incomplete),
        }
    }

    /// Only the process itself knows its own communicator.
    fn define_alone(&mut self, comm: u32) {
        if let Some(mut alone) = self.world.alone(comm, self.thread.rank)
            && self.known.insert(alone.id)
        {
            alone.name = self.output.string(alone.name);
            let writer = self.output.writer();
            writer.define(&[Definition::Communicator(alone)]);
        }
    }
}
