//! The analysis that stays: answers questions about a trace, to pages in browsers.
//!
//! *Purpose.* `laggard serve`. Who looks around in a run asks for a picture or a table after the other.
//! Each answer is as large as a screen, whatever the trace.
//!
//! *Data flow.* Each agent has a [`Share`]: its part of the trace, mapped, and of the [`index`]. A
//! [`Question`] goes down a tree of agents, each has a part for its own locations, and parts are merged
//! on their way up ([`questions`]). [`server`], at the head, speaks HTTP and WebSocket with the page in
//! `client`.
//!
//! A program that still runs is followed ([`follow`]): each agent has a new share from time to time, and
//! questions are about the newest ([`Shares`]).
//!
//! *Constraints.* Read only: nothing but the index is ever written, and no question names a file; where
//! the user allows it, a page writes what it wants of the program's recording ([`steer`]). Sums
//! are of integers (ns), so that answers do not depend on how many shares there are.
//!
//! *The next question* is a file in `questions` with a type that is [`Asked`](questions::Asked), and a
//! variant of [`Question`]. *The next view* is a file in `client`, named in `server/page.rs`.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod against;
pub mod follow;
pub mod index;
mod looks;
mod messages;
mod news;
pub mod questions;
pub mod server;
mod share;
mod shares;
mod spending;
pub mod steer;
mod whole;

pub use questions::{Question, answer};
pub use share::Share;
pub use shares::Shares;
pub use whole::Limits;
