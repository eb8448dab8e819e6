//! What every module may use. It imports nothing else of the engine.

pub mod anomaly;
pub mod ends;
pub mod in_order;
pub mod intern;
pub mod queue;
pub mod room;
pub mod slots;
pub mod spill;
