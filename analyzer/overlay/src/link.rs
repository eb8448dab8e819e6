//! How packets get from agent to agent.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::job::is_question;

/// What arrives at an agent.
#[derive(Debug)]
pub enum Arrived {
    /// A packet, and the agent that sent it.
    Packet(usize, Vec<u8>),
    /// An agent that will never send anything again.
    Gone(usize),
}

/// The way to the other agents.
pub trait Link: Send + Sync {
    /// This agent's number; 0 is the head.
    fn agent(&self) -> usize;
    /// Agents in all.
    fn agents(&self) -> usize;
    /// Sends a packet, and does not wait. Packets to the same agent arrive in their order. Those to an
    /// agent that is gone are lost.
    fn send(&self, to: usize, packet: Vec<u8>);
    /// Another agent has ended, and this one cannot go on without it.
    fn lost(&self, who: &str) -> ! {
        eprintln!("laggard: {who} has ended, and the others needed it: start again");
        self.abort(1)
    }
    /// Ends this agent.
    fn abort(&self, code: i32) -> ! {
        std::process::exit(code)
    }
}

/// An agent's two ends: how it sends, and what arrives.
pub struct Linked {
    /// How it sends.
    pub link: Arc<dyn Link>,
    /// What arrives.
    pub inbox: UnboundedReceiver<Arrived>,
    /// What arrived before it was asked for.
    pub early: VecDeque<Arrived>,
}

impl Linked {
    /// Of two ends.
    pub fn new(link: Arc<dyn Link>, inbox: UnboundedReceiver<Arrived>) -> Linked {
        let early = VecDeque::new();
        Linked { link, inbox, early }
    }

    /// Two conversations over one link, at the same time: the questions of a tree, and a job. `carry` takes
    /// to each what is for it, and is to be run as long as they last. Where the job cannot go on, since an
    /// agent has ended, its thread unwinds and the questions go on.
    pub fn split(self) -> (Linked, Linked, impl Future<Output = ()> + Send) {
        let ((questions, asked), (job, told)) = (unbounded_channel(), unbounded_channel());
        let tree = Linked::new(self.link.clone(), asked);
        let beside = Linked::new(Arc::new(Beside(self.link.clone())), told);
        let mut all = self;
        let carry = async move {
            while let Some(arrived) = all.next().await {
                // Who has ended needs nothing any more.
                match arrived {
                    Arrived::Gone(agent) => {
                        let _ = questions.send(Arrived::Gone(agent));
                        let _ = job.send(Arrived::Gone(agent));
                    }
                    Arrived::Packet(from, packet) => {
                        let to = match is_question(&packet) {
                            true => &questions,
                            false => &job,
                        };
                        let _ = to.send(Arrived::Packet(from, packet));
                    }
                }
            }
        };
        (tree, beside, carry)
    }

    /// What arrives next; `None` once nothing can.
    pub async fn next(&mut self) -> Option<Arrived> {
        match self.early.pop_front() {
            Some(early) => Some(early),
            None => self.inbox.recv().await,
        }
    }
}

/// A link that others use, too.
struct Beside(Arc<dyn Link>);

impl Link for Beside {
    fn agent(&self) -> usize {
        self.0.agent()
    }

    fn agents(&self) -> usize {
        self.0.agents()
    }

    fn send(&self, to: usize, packet: Vec<u8>) {
        self.0.send(to, packet);
    }

    fn lost(&self, _: &str) -> ! {
        std::panic::resume_unwind(Box::new("another agent has ended"))
    }
}

/// An agent of this process.
struct Thread {
    agent: usize,
    to: Vec<UnboundedSender<Arrived>>,
}

/// Agents in one process. One of them alone is the serial twin of the others.
pub fn threads(agents: usize) -> Vec<Linked> {
    let (to, inboxes): (Vec<_>, Vec<_>) = (0..agents).map(|_| unbounded_channel()).unzip();
    let linked = inboxes.into_iter().enumerate().map(|(agent, inbox)| {
        let to = to.clone();
        Linked::new(Arc::new(Thread { agent, to }), inbox)
    });
    linked.collect()
}

impl Link for Thread {
    fn agent(&self) -> usize {
        self.agent
    }

    fn agents(&self) -> usize {
        self.to.len()
    }

    fn send(&self, to: usize, packet: Vec<u8>) {
        // Who has ended needs no packet any more.
        let _ = self.to[to].send(Arrived::Packet(self.agent, packet));
    }

    fn abort(&self, code: i32) -> ! {
        panic!("agent {} ends with {code}", self.agent)
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        for to in &self.to {
            let _ = to.send(Arrived::Gone(self.agent));
        }
    }
}
