//! A job whose agents are threads of this process.

use std::cell::{Cell, RefCell};
use std::sync::mpsc::{Receiver, Sender, channel};

use laggard_comm::{Job, Letter, Sent, Talk};

/// What a message is for. Each agent gets those of another one in the order of their sending.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    Parcel,
    Tree,
    Relay,
    /// Successive conversations differ: some agents may have begun the next one.
    Letter(usize),
    /// The sender has failed, and sends no more.
    Failed,
}

struct Mail {
    from: usize,
    tag: Tag,
    bytes: Vec<u8>,
}

/// One agent.
struct Agent {
    agent: usize,
    to: Vec<Sender<Mail>>,
    came: Receiver<Mail>,
    /// What came before it was asked for.
    early: RefCell<Vec<Mail>>,
    conversations: Cell<usize>,
    sent: Cell<Sent>,
}

/// Runs the work of so many agents, each in a thread. The results are in the order of the agents.
///
/// # Panics
/// If one of them does. The others end, too.
pub fn agents<R: Send>(count: usize, work: impl Fn(&dyn Job) -> R + Sync) -> Vec<R> {
    let (to, came): (Vec<_>, Vec<_>) = (0..count).map(|_| channel()).unzip();
    std::thread::scope(|scope| {
        let threads = (0..).zip(came).map(|(agent, came)| {
            let own = Agent {
                agent,
                to: to.clone(),
                came,
                early: RefCell::default(),
                conversations: Cell::default(),
                sent: Cell::default(),
            };
            let work = &work;
            scope.spawn(move || work(&own))
        });
        let threads: Vec<_> = threads.collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended.map(|ended| ended.expect("an agent failed")).collect()
    })
}

impl Drop for Agent {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for to in 0..self.agents() {
                self.send(to, Tag::Failed, Vec::new());
            }
        }
    }
}

impl Agent {
    fn send(&self, to: usize, tag: Tag, bytes: Vec<u8>) {
        let sent = self.sent.get();
        self.sent.set(Sent {
            messages: sent.messages + 1,
            bytes: sent.bytes + bytes.len() as u64,
        });
        let from = self.agent;
        // Who has ended needs no message any more.
        let _ = self.to[to].send(Mail { from, tag, bytes });
    }

    /// The next message for this purpose, of an agent or of any.
    fn receive(&self, from: Option<usize>, tag: Tag) -> Letter {
        let fits = |mail: &Mail| mail.tag == tag && from.is_none_or(|from| from == mail.from);
        let mut early = self.early.borrow_mut();
        if let Some(at) = early.iter().position(fits) {
            let mail = early.remove(at);
            return (mail.from, mail.bytes);
        }
        loop {
            let mail = self.came.recv().expect("this agent could send itself one");
            assert!(mail.tag != Tag::Failed, "agent {} failed", mail.from);
            if fits(&mail) {
                return (mail.from, mail.bytes);
            }
            early.push(mail);
        }
    }

    fn reduce(&self, values: &mut [u64], combine: impl Fn(u64, u64) -> u64) {
        let bytes = values.iter().flat_map(|value| value.to_ne_bytes());
        let all = self.all_gather(bytes.collect());
        for (agent, bytes) in all.iter().enumerate() {
            assert_eq!(bytes.len(), size_of_val(values), "of agent {agent}");
            let others = bytes.chunks_exact(8).map(|bytes| bytes.try_into().unwrap());
            let others = others.map(u64::from_ne_bytes);
            for (value, other) in values.iter_mut().zip(others) {
                *value = if agent == 0 {
                    other
                } else {
                    combine(*value, other)
                };
            }
        }
    }
}

impl Job for Agent {
    fn agent(&self) -> usize {
        self.agent
    }

    fn agents(&self) -> usize {
        self.to.len()
    }

    fn exchange(&self, mut parcels: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let own = std::mem::take(&mut parcels[self.agent]);
        let agents = 0..self.agents();
        let others = agents.clone().filter(|&to| to != self.agent);
        others.for_each(|to| self.send(to, Tag::Parcel, std::mem::take(&mut parcels[to])));
        let mut own = Some(own);
        let received = agents.map(|from| match from == self.agent {
            true => own.take().unwrap_or_default(),
            false => self.receive(Some(from), Tag::Parcel).1,
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
        let of_head = match self.agent {
            0 => bytes.clone(),
            _ => Vec::new(),
        };
        *bytes = self.all_gather(of_head).swap_remove(0);
    }

    fn tree(
        &self,
        mut mine: Vec<u8>,
        combine: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Vec<u8>,
    ) -> Option<Vec<u8>> {
        let mut step = 1;
        while step < self.agents() {
            if self.agent & step != 0 {
                self.send(self.agent - step, Tag::Tree, mine);
                return None;
            }
            let child = self.agent + step;
            if child < self.agents() {
                mine = combine(mine, self.receive(Some(child), Tag::Tree).1);
            }
            step *= 2;
        }
        Some(mine)
    }

    fn relay(&self, next: &mut dyn FnMut() -> Option<Vec<u8>>, take: &mut dyn FnMut(Vec<u8>)) {
        if self.agent != 0 {
            loop {
                // Waits until the head has room for it.
                self.receive(Some(0), Tag::Relay);
                let piece = next().unwrap_or_default();
                let is_end = piece.is_empty();
                self.send(0, Tag::Relay, piece);
                if is_end {
                    return;
                }
            }
        }
        while let Some(piece) = next() {
            take(piece);
        }
        for agent in 1..self.agents() {
            loop {
                self.send(agent, Tag::Relay, Vec::new());
                match self.receive(Some(agent), Tag::Relay).1 {
                    piece if piece.is_empty() => break,
                    piece => take(piece),
                }
            }
        }
    }

    fn converse(&self, work: &mut Talk<'_>) {
        let number = self.conversations.replace(self.conversations.get() + 1);
        let tag = Tag::Letter(number % 2);
        let mut letters: Vec<Letter> = Vec::new();
        let mut needs_more = work(None, &mut letters);
        loop {
            letters
                .drain(..)
                .for_each(|(to, parcel)| self.send(to, tag, parcel));
            if !needs_more {
                return;
            }
            needs_more = work(Some(self.receive(None, tag)), &mut letters);
        }
    }

    fn sent(&self) -> Sent {
        self.sent.get()
    }

    fn abort(&self, code: i32) -> ! {
        panic!("agent {} ends the job with {code}", self.agent)
    }
}
