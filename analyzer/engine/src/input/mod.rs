//! From a directory, or an archive, to the locations of an agent.
//!
//! *In.* A path. *Out.* Mapped files dealt out to agents, their definitions, clocks and anomalies.
//! *Does not know* calls.

pub mod bounds;
pub mod crowd;
pub mod directory;
mod ended;
pub mod files;
pub mod import;
pub mod open;
pub mod profile;
pub mod regions;
pub mod spans;
mod told;
