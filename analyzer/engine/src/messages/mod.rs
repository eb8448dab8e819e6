//! Messages between two ranks: channels, questions about the other end, and charges.
//!
//! *In.* Calls that send, receive and complete. *Out.* Questions, answers, and charges of calls.
//! *Does not know* collectives beyond their charges.

pub mod channel;
pub mod charges;
pub mod ends;
pub mod progress;
pub mod questions;
pub mod wildcard;
