//! The rounds over slabs of global time: pass one, questions, pass two, answers.
//!
//! *In.* Locations and verdicts. *Out.* Ranks with their findings. Knows all modules that replay;
//! only the analysis and the events know it.

pub mod agent;
pub mod completion;
pub mod interests;
pub mod meetings;
pub mod preparation;
pub mod rank;
pub mod rounds;
pub mod searches;
pub mod slab;
