//! What an operation should cost on a machine.
//!
//! *Purpose.* Tells slow from usual: a [`Baseline`] gives the time that an
//! operation with so many bytes among so many members takes when nobody is late.
//!
//! *Data flow.* A [`Table`] is read from the JSON file that a measurement wrote;
//! the analysis engine asks it through the trait, once per profile entry.
//! [`Empty`] covers nothing and sends the engine to its other filters.
//!
//! *Constraints.* A look-up never extrapolates: what was not measured is not
//! covered.
//!
//! *Not here.* The measurement.

mod error;
mod table;

pub use error::Error;
pub use table::{Entry, Point, SCHEMA, Table};

/// What an operation should cost.
pub trait Baseline: Send + Sync {
    /// Seconds that `operation` (the call's name, `MPI_Allreduce`) takes with
    /// `bytes` per call and member, in a group of `group_size` members (2 for a
    /// message); `None` if that is not covered.
    fn lookup(&self, operation: &str, bytes: u64, group_size: u32) -> Option<f64>;
}

/// Covers nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Empty;

impl Baseline for Empty {
    fn lookup(&self, _operation: &str, _bytes: u64, _group_size: u32) -> Option<f64> {
        None
    }
}
