//! From a directory, or an archive, to the locations that an agent holds.
//!
//! *In.* A path. *Out.* Mapped files dealt out to agents, their definitions and clocks, and what is
//! wrong with them. *Does not know* calls.

pub mod bounds;
pub mod crowd;
pub mod directory;
pub mod files;
pub mod import;
pub mod open;
pub mod spans;
