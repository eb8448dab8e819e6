//! Profiles in the format of the Cube tools, version 4: a tar archive with `anchor.xml`, and an index
//! and a data file for each metric that has values.
//!
//! *Purpose.* [`Cube`] has three trees (metrics, call paths, the system) and an amount for a metric, a
//! call path and a thread. [`write()`] makes a `.cubex` file of it.
//!
//! *Data flow.* All is in memory. A metric has a row of one amount per thread for each call path at
//! which some thread has one; other rows take no room, neither in memory nor in the file.
//!
//! *Constraints.* Amounts are integers, times ns: sums do not depend on the order of adding. In the
//! file times are seconds. Amounts of a call path are without those of the call paths below it; amounts
//! of a metric contain those of the metrics below it. The same profile gives the same bytes.
//!
//! *Not supported.* Reading; derived metrics; topologies; compressed rows.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod anchor;
mod profile;
mod write;

pub use profile::{CallPath, Cube, Host, Metric, Process, Unit};
pub use write::write;

/// Reason why a profile could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused to write.
    #[error("cannot write the profile: {0}")]
    Write(#[from] std::io::Error),
    /// Indices and ids of the format have 32 bits.
    #[error("a profile has 2^31 call paths at most, this one has {0}")]
    TooLarge(usize),
}
