//! Wait states and their sinks.
//!
//! *In.* Wait states with their causes, from the modules that replay; all of them pass through
//! [`charge`](charging::Charged::charge). *Out.* Sums of a location by pattern and signature, and a
//! log of all wait states: each is a [`Sink`](charging::Sink). *Does not know* how a wait was
//! found.

pub mod charging;
pub mod links;
pub mod log;
mod packed;
pub mod spread;
pub mod sums;
pub mod trail;
