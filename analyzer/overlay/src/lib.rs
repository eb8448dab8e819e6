//! A tree of agents: questions go down from the head, answers are merged on their way up.
//!
//! *Purpose.* The head of many agents can neither talk to each of them nor merge what all of them say.
//! In a tree it talks to a few, which talk to a few others.
//!
//! *Data flow.* A [`Link`] takes packets from agent to agent: over TCP ([`tcp`]), MPI ([`mpi`]), or
//! between threads of a process ([`link::threads`]). [`node`] runs at each agent: it hands questions
//! down the [`Tree`], works on them ([`Work`]), and merges what comes up. [`Head`] asks. [`filters`] are
//! ways to merge. The tree and these are also those of [`merge_up`](laggard_comm::merge_up), where nothing is asked.
//! [`LinkJob`] is a [`Job`](laggard_comm::Job) over a link, for what all agents do together.
//!
//! *Constraints.* A question goes to any subset of the agents. Several are under way at a time. Who is
//! gone or late is named in the reply; the others answer. An answer does not depend on the shape of the tree.
//!
//! *Not supported.* Agents that come later; encryption. Agents over TCP prove to each other that they
//! know a key, and must be able to reach each other.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod head;
mod job;
pub mod link;
mod message;
pub mod mpi;
pub mod node;
mod split;
mod stop;
pub mod tcp;

pub use head::Head;
pub use job::LinkJob;
pub use laggard_comm::{Filter, Members, Tree, filters};
pub use link::{Arrived, Link, Linked};
pub use message::{Missing, Reply, Stream, Wait, Why};
pub use node::Work;
pub use split::Lost;
pub use stop::{Stop, Stopped};
