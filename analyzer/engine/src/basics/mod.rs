//! What every room may use: it imports nothing of the engine.
//!
//! Short names for call paths and groups, and anomalies.

pub mod anomaly;
pub mod in_order;
pub mod intern;
pub mod queue;
