//! A job over a link: what all agents do together, from messages of one to another.

use std::cell::{Cell, RefCell};

use laggard_comm::{Job, Kind, Letter, Sent, Talk, tree};

use crate::link::{Arrived, Linked};

/// A packet of this kind, which its first byte tells.
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

    /// Runs the work of all agents of links, each in a thread; results in the order of the links.
    ///
    /// # Panics
    /// If one of them does. The others end, too.
    pub fn run_all<R: Send>(linked: Vec<Linked>, work: impl Fn(&dyn Job) -> R + Sync) -> Vec<R> {
        let work = &work;
        std::thread::scope(|scope| {
            let threads = linked.into_iter().map(|linked| {
                scope.spawn(move || {
                    let job = LinkJob::new(linked);
                    let result = work(&job);
                    // Nobody leaves while others need it.
                    job.all_gather(Vec::new());
                    (result, job)
                })
            });
            let threads: Vec<_> = threads.collect();
            let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            let results = ended.into_iter().map(|ended| match ended {
                Ok((result, _)) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            results.collect()
        })
    }

    /// The link again, with all that arrived since.
    pub fn into_linked(self) -> Linked {
        self.linked.into_inner()
    }

    /// The next packet of a kind, of one agent or of any.
    fn next(&self, from: Option<usize>, kind: Kind) -> Letter {
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
                let why = format!("{who} has ended, and the others needed it");
                linked.link.lost(&why);
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
        let count = values.len();
        let numbers = |from: usize, bytes: &[u8]| -> Vec<u64> {
            let (numbers, rest) = bytes.as_chunks::<8>();
            if (numbers.len(), rest.len()) != (count, 0) {
                let (is, should) = (bytes.len(), 8 * count);
                let why = format!("agent {from} said {is} bytes in place of {should}");
                self.linked.borrow().link.lost(&why);
            }
            let numbers = numbers.iter();
            numbers.map(|bytes| u64::from_ne_bytes(*bytes)).collect()
        };
        let bytes = |values: &[u64]| -> Vec<u8> {
            values
                .iter()
                .flat_map(|value| value.to_ne_bytes())
                .collect()
        };
        let (me, tree) = (self.agent(), tree(self));
        for child in tree.children(me) {
            let theirs = numbers(child, &self.receive(child, Kind::Tree));
            for (value, other) in values.iter_mut().zip(theirs) {
                *value = combine(*value, other);
            }
        }
        let mut all = bytes(values);
        if let Some(parent) = tree.parent(me) {
            self.send(parent, Kind::Tree, &all);
        }
        self.broadcast(&mut all);
        values.copy_from_slice(&numbers(tree.parent(me).unwrap_or(me), &all));
    }
}

impl Job for LinkJob {
    fn agent(&self) -> usize {
        self.linked.borrow().link.agent()
    }

    fn agents(&self) -> usize {
        self.linked.borrow().link.agents()
    }

    fn send(&self, to: usize, kind: Kind, bytes: &[u8]) {
        let sent = self.sent.get();
        self.sent.set(Sent {
            messages: sent.messages + 1,
            bytes: sent.bytes + bytes.len() as u64,
        });
        self.linked.borrow().link.send(to, packet(kind, bytes));
    }

    fn receive(&self, from: usize, kind: Kind) -> Vec<u8> {
        self.next(Some(from), kind).1
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
            false => self.receive(from, Kind::Parcel),
        });
        received.collect()
    }

    fn reduce_max(&self, values: &mut [u64]) {
        self.reduce(values, u64::max);
    }

    fn reduce_sum(&self, values: &mut [u64]) {
        self.reduce(values, u64::wrapping_add);
    }

    fn broadcast(&self, bytes: &mut Vec<u8>) {
        let (me, tree) = (self.agent(), tree(self));
        if let Some(parent) = tree.parent(me) {
            *bytes = self.receive(parent, Kind::Tree);
        }
        for child in tree.children(me) {
            self.send(child, Kind::Tree, bytes);
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
            needs_more = work(Some(self.next(None, kind)), &mut letters);
        }
    }

    fn sent(&self) -> Sent {
        self.sent.get()
    }

    fn abort(&self, code: i32) -> ! {
        self.linked.borrow().link.abort(code)
    }
}
