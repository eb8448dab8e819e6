//! How packets get from agent to agent.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

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
    /// This agent cannot go on without another one, and says why.
    fn lost(&self, why: &str) -> ! {
        eprintln!("laggard: {why}: start again");
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

    /// What arrives next; `None` once nothing can.
    pub async fn next(&mut self) -> Option<Arrived> {
        match self.early.pop_front() {
            Some(early) => Some(early),
            None => self.inbox.recv().await,
        }
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
