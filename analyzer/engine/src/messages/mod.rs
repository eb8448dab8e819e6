//! Messages between two ranks: channels, questions about the other end, and the charge.
//!
//! *In.* Calls that send, receive and complete. *Out.* Questions, answers, and what a call is charged
//! with. *Does not know* collectives beyond what they charge.

pub mod channel;
pub mod charges;
pub mod ends;
pub mod progress;
pub mod questions;
pub mod wildcard;
