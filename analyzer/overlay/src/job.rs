//! A job over a link: what all agents do together, from messages of one to another.

use std::cell::{Cell, RefCell};

use laggard_comm::{Job, Letter, Sent, Talk};

use crate::link::{Arrived, Linked};

/// What a packet is for: its first byte. Those of one kind from the same agent come in their order.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Of an exchange.
    Parcel,
    /// On its way up or down the tree.
    Tree,
    /// One of many pieces for the head, or a request for one.
    Relay,
    /// Of a conversation. Successive ones differ: some agents may have begun the next one.
    Letter,
    OtherLetter,
    /// Of a tree of questions: [`Message`](crate::message::Message).
    Question,
}

/// A packet of this kind.
pub(crate) fn packet(kind: Kind, bytes: &[u8]) -> Vec<u8> {
    let mut packet = Vec::with_capacity(1 + bytes.len());
    packet.push(kind as u8);
    packet.extend(bytes);
    packet
}

/// Whether a packet belongs to a tree of questions.
pub(crate) fn is_question(packet: &[u8]) -> bool {
    packet.first() == Some(&(Kind::Question as u8))
}

/// The agents of a link as a job. If one of them ends, all do: nobody could go on.
pub struct LinkJob {
    linked: RefCell<Linked>,
    conversations: Cell<usize>,
    sent: Cell<Sent>,
}

impl LinkJob {
    /// Over this link.
    pub fn new(linked: Linked) -> LinkJob {
        LinkJob {
            linked: RefCell::new(linked),
            conversations: Cell::default(),
            sent: Cell::default(),
        }
    }

    /// The link again, with all that arrived since.
    pub fn into_linked(self) -> Linked {
        self.linked.into_inner()
    }

    fn send(&self, to: usize, kind: Kind, bytes: &[u8]) {
        let sent = self.sent.get();
        self.sent.set(Sent {
            messages: sent.messages + 1,
            bytes: sent.bytes + bytes.len() as u64,
        });
        self.linked.borrow().link.send(to, packet(kind, bytes));
    }

    /// The next packet of a kind, of one agent or of any.
    fn receive(&self, from: Option<usize>, kind: Kind) -> Letter {
        let fits = |arrived: &Arrived| match arrived {
            Arrived::Packet(agent, bytes) => {
                from.is_none_or(|from| from == *agent) && bytes.first() == Some(&(kind as u8))
            }
            Arrived::Gone(_) => false,
        };
        let mut linked = self.linked.borrow_mut();
        let mut at = linked.early.iter().position(fits);
        while at.is_none() {
            let waits_for = |agent: &usize| from.is_none_or(|from| from == *agent);
            let mut early = linked.early.iter();
            let gone = early.find_map(|arrived| match arrived {
                Arrived::Gone(agent) => Some(*agent).filter(waits_for),
                Arrived::Packet(..) => None,
            });
            let Some(arrived) = gone
                .is_none()
                .then(|| linked.inbox.blocking_recv())
                .flatten()
            else {
                let who = gone.map_or("another agent".to_owned(), |gone| format!("agent {gone}"));
                linked.link.lost(&who);
            };
            at = fits(&arrived).then_some(linked.early.len());
            linked.early.push_back(arrived);
        }
        match at.and_then(|at| linked.early.remove(at)) {
            Some(Arrived::Packet(agent, mut bytes)) => {
                bytes.remove(0);
                (agent, bytes)
            }
            _ => unreachable!("a packet was found there"),
        }
    }

    /// Everybody's numbers combined, everywhere.
    fn reduce(&self, values: &mut [u64], combine: impl Fn(u64, u64) -> u64) {
        let numbers = |bytes: &[u8]| -> Vec<u64> {
            let numbers = bytes.as_chunks::<8>().0.iter();
            numbers.map(|bytes| u64::from_ne_bytes(*bytes)).collect()
        };
        let bytes = |values: &[u64]| -> Vec<u8> {
            values
                .iter()
                .flat_map(|value| value.to_ne_bytes())
                .collect()
        };
        let mut all = self.tree(bytes(values), &mut |one, other| {
            let pairs = numbers(&one).into_iter().zip(numbers(&other));
            bytes(
                &pairs
                    .map(|(one, other)| combine(one, other))
                    .collect::<Vec<_>>(),
            )
        });
        let mut all = all.take().unwrap_or_default();
        self.broadcast(&mut all);
        values.copy_from_slice(&numbers(&all));
    }
}

impl Job for LinkJob {
    fn agent(&self) -> usize {
        self.linked.borrow().link.agent()
    }

    fn agents(&self) -> usize {
        self.linked.borrow().link.agents()
    }

    fn exchange(&self, mut parcels: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let (me, agents) = (self.agent(), self.agents());
        let own = std::mem::take(&mut parcels[me]);
        for to in (0..agents).filter(|&to| to != me) {
            self.send(to, Kind::Parcel, &std::mem::take(&mut parcels[to]));
        }
        let mut own = Some(own);
        let received = (0..agents).map(|from| match from == me {
            true => own.take().unwrap_or_default(),
            false => self.receive(Some(from), Kind::Parcel).1,
        });
        received.collect()
    }

    fn reduce_max(&self, values: &mut [u64]) {
        self.reduce(values, u64::max);
    }

    fn reduce_sum(&self, values: &mut [u64]) {
        self.reduce(values, u64::wrapping_add);
    }

    fn all_gather(&self, mine: Vec<u8>) -> Vec<Vec<u8>> {
        self.exchange(vec![mine; self.agents()])
    }

    fn broadcast(&self, bytes: &mut Vec<u8>) {
        let (me, agents) = (self.agent(), self.agents());
        // The way up, backwards.
        let lowest = match me {
            0 => agents.next_power_of_two(),
            _ => me & me.wrapping_neg(),
        };
        if me != 0 {
            *bytes = self.receive(Some(me - lowest), Kind::Tree).1;
        }
        let mut step = lowest / 2;
        while step > 0 {
            if me + step < agents {
                self.send(me + step, Kind::Tree, bytes);
            }
            step /= 2;
        }
    }

    fn tree(
        &self,
        mut mine: Vec<u8>,
        combine: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Vec<u8>,
    ) -> Option<Vec<u8>> {
        let (me, agents) = (self.agent(), self.agents());
        let mut step = 1;
        while step < agents {
            if me & step != 0 {
                self.send(me - step, Kind::Tree, &mine);
                return None;
            }
            if me + step < agents {
                mine = combine(mine, self.receive(Some(me + step), Kind::Tree).1);
            }
            step *= 2;
        }
        Some(mine)
    }

    fn relay(&self, next: &mut dyn FnMut() -> Option<Vec<u8>>, take: &mut dyn FnMut(Vec<u8>)) {
        if self.agent() != 0 {
            loop {
                // Waits until the head has room for it.
                self.receive(Some(0), Kind::Relay);
                let piece = next().unwrap_or_default();
                self.send(0, Kind::Relay, &piece);
                if piece.is_empty() {
                    return;
                }
            }
        }
        while let Some(piece) = next() {
            take(piece);
        }
        for agent in 1..self.agents() {
            loop {
                self.send(agent, Kind::Relay, &[]);
                match self.receive(Some(agent), Kind::Relay).1 {
                    piece if piece.is_empty() => break,
                    piece => take(piece),
                }
            }
        }
    }

    fn converse(&self, work: &mut Talk<'_>) {
        let number = self.conversations.replace(self.conversations.get() + 1);
        let kind = [Kind::Letter, Kind::OtherLetter][number % 2];
        let mut letters: Vec<Letter> = Vec::new();
        let mut needs_more = work(None, &mut letters);
        loop {
            for (to, parcel) in letters.drain(..) {
                self.send(to, kind, &parcel);
            }
            if !needs_more {
                return;
            }
            needs_more = work(Some(self.receive(None, kind)), &mut letters);
        }
    }

    fn sent(&self) -> Sent {
        self.sent.get()
    }

    fn abort(&self, code: i32) -> ! {
        self.linked.borrow().link.abort(code)
    }
}
