//! What every room may use: it imports nothing of the engine.
//!
//! Short names for call paths and groups, and anomalies.

pub mod anomaly;
pub mod ends;
pub mod in_order;
pub mod intern;
pub mod queue;
pub mod room;
pub mod slots;
