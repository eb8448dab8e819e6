//! The head's side: asking.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use laggard_comm::{Members, Tree};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::link::Linked;
use crate::message::{Command, Message, Missing, Reply, Stream, Wait, Why};
use crate::node::{self, Work};

/// What is known of the agents.
#[derive(Default)]
struct Known {
    /// They have ended.
    gone: BTreeSet<usize>,
    /// They did not answer the last question in time: nobody should depend on them.
    late: BTreeSet<usize>,
}

/// Asks the agents of a tree. The tree ends with the last copy of this, if not before.
#[derive(Clone)]
pub struct Head {
    to: UnboundedSender<Command>,
    agents: usize,
    number: Arc<AtomicU64>,
    known: Arc<Mutex<Known>>,
}

/// A question under way. Who drops it wants no answer any more.
struct Asking<'h> {
    head: &'h Head,
    number: u64,
    replies: UnboundedReceiver<Reply>,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        // The node forgets what it has answered.
        let _ = self.head.to.send(Command::Stop(self.number));
    }
}

impl Head {
    /// Begins: the second is the head's own part of the work, to be run until it ends.
    pub fn new(linked: Linked, work: Arc<dyn Work>) -> (Head, impl Future<Output = ()> + Send) {
        let (to, commands) = unbounded_channel();
        let head = Head {
            to,
            agents: linked.link.agents(),
            number: Arc::default(),
            known: Arc::default(),
        };
        (head, node::run_with(linked, work, commands))
    }

    /// Agents in all.
    pub fn agents(&self) -> usize {
        self.agents
    }

    /// Ends the tree: its agents, and what is asked.
    pub fn end(&self) {
        let _ = self.to.send(Command::End);
    }

    /// Asks some agents, and gives every reply: one that is merged, or as many as there are.
    async fn each(&self, stream: &Stream, question: &[u8], mut take: impl FnMut(Reply)) {
        let number = self.number.fetch_add(1, Relaxed);
        let (reply, replies) = unbounded_channel();
        let message = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let living = stream.members.iter();
            let living: Members = living.filter(|agent| !known.gone.contains(agent)).collect();
            Message::Ask {
                number,
                tree: Tree::new(&living, stream.fan_out, |agent| known.late.contains(&agent)),
                head: living.contains(0),
                wait: stream.wait,
                question: question.to_vec(),
            }
        };
        // If the tree has ended, there is no reply.
        let _ = self.to.send(Command::Ask(message, reply));
        let mut asking = Asking {
            head: self,
            number,
            replies,
        };
        while let Some(reply) = asking.replies.recv().await {
            take(reply);
        }
    }

    /// Asks some agents. Whoever stands behind an agent that has ended is asked again.
    pub async fn ask(&self, stream: &Stream, question: &[u8]) -> Reply {
        loop {
            let mut reply = Reply::default();
            self.each(stream, question, |one| reply = one).await;
            if !self.note(stream, &mut reply) {
                return reply;
            }
        }
    }

    /// Asks some agents, and gives each one's part as soon as it is there. Nobody is asked again.
    pub async fn ask_each(
        &self,
        members: &Members,
        fan_out: usize,
        question: &[u8],
        take: impl FnMut(Reply),
    ) {
        let stream = Stream {
            members: members.clone(),
            fan_out,
            wait: Wait::None,
        };
        self.each(&stream, question, take).await;
    }

    /// Learns from a reply who is gone or late, and adds who was gone before. Returns whether others
    /// are missing only because of one that has ended meanwhile.
    fn note(&self, stream: &Stream, reply: &mut Reply) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before: Vec<usize> = known.gone.iter().copied().collect();
        let is = |why: Why| move |one: &&Missing| one.why == why;
        let agents = |why| reply.missing.iter().filter(is(why)).map(|one| one.agent);
        let has_new = agents(Why::Gone).any(|agent| known.gone.insert(agent));
        if has_new && agents(Why::Behind).next().is_some() {
            return true;
        }
        let late: BTreeSet<usize> = agents(Why::Late).collect();
        known.late.retain(|agent| !stream.members.contains(*agent));
        known.late.extend(late);
        let gone = before
            .into_iter()
            .filter(|&agent| stream.members.contains(agent));
        reply.missing.extend(gone.map(|agent| Missing {
            agent,
            why: Why::Gone,
        }));
        reply.missing.sort();
        reply.missing.dedup();
        false
    }
}
