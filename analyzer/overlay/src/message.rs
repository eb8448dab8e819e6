//! What agents of a tree tell each other.

use laggard_comm::{Members, Tree};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedSender;

/// When a merged answer goes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wait {
    /// When all have answered.
    All,
    /// When all have answered, or after so many ms: then those that are missing are named.
    Until(u64),
    /// Nothing is merged: each agent's answer goes up as soon as it is there.
    None,
}

/// Whom a question goes to, and how their answers come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Who answers.
    pub members: Members,
    /// Children of each agent in the tree; at least as many as agents: a flat tree.
    pub fan_out: usize,
    /// When answers go up.
    pub wait: Wait,
}

/// Why an agent's part is missing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Why {
    /// It has ended.
    Gone,
    /// It stands behind one that has ended.
    Behind,
    /// It did not answer in time.
    Late,
    /// It could not answer.
    Failed(String),
}

/// An agent whose part is missing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Missing {
    /// Which one.
    pub agent: usize,
    /// Why.
    pub why: Why,
}

/// What goes through the tree.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// Down: a question.
    Ask {
        number: u64,
        tree: Tree,
        /// Whether the head itself has a part.
        head: bool,
        wait: Wait,
        question: Vec<u8>,
    },
    /// Up: the part of the sender and all below it, or of one of them if nothing is merged.
    Part {
        number: u64,
        of: Option<usize>,
        part: Option<Vec<u8>>,
        missing: Vec<Missing>,
    },
    /// Down: nobody waits for the answer any more.
    Stop { number: u64 },
    /// Down: it is over.
    End,
}

/// What comes back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The merged part of those who answered; `None`: nobody did.
    pub part: Option<Vec<u8>>,
    /// The others.
    pub missing: Vec<Missing>,
}

/// What the head tells its own node. Without a head the tree ends, too.
pub(crate) enum Command {
    Ask(Message, UnboundedSender<Reply>),
    Stop(u64),
    End,
}
