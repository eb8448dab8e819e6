//! Calls on windows.

use laggard_trace::calls::Shape;
use laggard_trace::{Definition, Endpoint, flags};

use crate::calls::{Calls, transfer_request};
use crate::definitions::UNDEFINED;
use crate::events::OneSided;
use crate::notes::Kind;
use crate::open::{Open, Part};
use crate::output::NOBODY;

impl Calls<'_> {
    /// Applies `add` to the open call's part on a window; a call has one such part.
    pub(crate) fn on_window(&mut self, window: u32, add: impl FnOnce(&mut Part)) {
        let Some(&(name, comm)) = self.definitions.windows.get(&window) else {
            return self.note(Kind::Undefined);
        };
        let rank = self.thread.rank;
        let id = self.world.window_id(window, comm, rank);
        let communicator = self.world.comm_id(comm, rank).unwrap_or(0);
        if self.known.insert(id) {
            let name = self.output.string(name);
            self.output.writer().define(&[Definition::GroupHandle {
                id,
                communicator,
                kind: 1,
                name,
            }]);
        }
        let Some(open) = &mut self.open else {
            return self.note(Kind::Unbalanced);
        };
        let shape = open.shape();
        if open.parts.is_empty() {
            open.parts.push(Part::on(id));
        }
        let part = &mut open.parts[0];
        // A window is made on its communicator; later collectives count on the window itself.
        if let Shape::WindowCreate | Shape::WindowFree | Shape::Fence = shape {
            part.flags |= flags::COLLECTIVE;
            part.send.peer = laggard_trace::PEER_ANY;
            if shape == Shape::WindowCreate {
                part.group = communicator;
            }
            if shape != Shape::Fence {
                part.object = id;
            }
        }
        add(part);
    }

    /// The world rank of a target in a window.
    fn target(&mut self, window: u32, target: u32) -> Option<i32> {
        let &(_, comm) = self.definitions.windows.get(&window)?;
        let peer = self.world.peer(comm, target, self.thread.rank);
        if peer.is_none() {
            self.note(Kind::Undefined);
        }
        peer
    }

    pub(crate) fn on_target(&mut self, window: u32, target: u32, parameter: i64) {
        let peer = match target {
            // All targets.
            UNDEFINED => None,
            target => self.target(window, target),
        };
        self.on_window(window, |part| {
            if let Some(peer) = peer {
                part.send.peer = peer;
            }
            if parameter != 0 {
                part.parameter = parameter;
            }
        });
    }

    /// Begins or ends an epoch. Its begin stores the group of the other side.
    pub(crate) fn group_sync(&mut self, window: u32, group: u32) {
        let is_begin = self.open.as_ref().is_some_and(Open::begins_epoch);
        let ranks = match is_begin {
            true => self.world.members(self.definitions, group),
            false => None,
        };
        let peers = ranks.map_or(0, |ranks| self.output.peers(ranks));
        self.on_window(window, |part| part.parameter = i64::from(peers));
    }

    pub(crate) fn transfer(&mut self, transfer: OneSided) {
        let peer = self.target(transfer.window, transfer.target);
        let open = self.open.as_ref();
        let reads = open.is_some_and(|open| open.is_get(&transfer));
        let posts = open.is_some_and(Open::posts_transfer);
        self.on_window(transfer.window, |part| {
            part.request = posts.then(|| transfer_request(transfer.matching));
            let half = |bytes| Endpoint {
                peer: peer.unwrap_or(NOBODY.peer),
                tag: 0,
                bytes,
            };
            match reads {
                true => part.receive = half(transfer.read),
                false => part.send = half(transfer.written.max(transfer.read)),
            }
        });
    }
}
