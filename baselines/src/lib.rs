//! What an operation should cost on a machine.
//!
//! *Purpose.* Tells slow from usual: a [`Baseline`] gives the time that an
//! operation with so many bytes among so many members takes when nobody is late.
//!
//! *Data flow.* A [`Table`] is read from the JSON file that a measurement wrote;
//! the analysis engine asks it through the trait, once per profile entry.
//! [`Empty`] covers nothing and sends the engine to its other filters.
//!
//! *Constraints.* A look-up never guesses: what was not measured is covered by a fitted
//! [`Model`] only, and only where that was close to what was measured.
//!
//! *Not here.* The measurement.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod curve;
mod entry;
mod error;
mod fingerprint;
mod merge;
mod model;
mod table;

pub use curve::Point;
pub use entry::{Entry, Span};
pub use error::Error;
pub use fingerprint::{Fingerprint, Used};
pub use model::{Growth, Model, Piece, Shape};
pub use table::{SCHEMA, Table};

/// What an operation should cost.
pub trait Baseline: Send + Sync {
    /// Seconds that `operation` (the call's name, `MPI_Allreduce`) takes with
    /// `bytes` per call and member, in a group of `group_size` members (2 for a
    /// message); `None` if that is not covered.
    fn lookup(&self, operation: &str, bytes: u64, group_size: u32) -> Option<f64>;

    /// The same where the members are known to be on one host, or on several. Where that is not
    /// known, or differs from call to call, the faster one counts.
    fn lookup_within(
        &self,
        operation: &str,
        bytes: u64,
        group_size: u32,
        span: Option<Span>,
    ) -> Option<f64> {
        let _ = span;
        self.lookup(operation, bytes, group_size)
    }

    /// The machine that it was measured on, if that is known.
    fn fingerprint(&self) -> Option<&Fingerprint> {
        None
    }
}

/// Covers nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Empty;

impl Baseline for Empty {
    fn lookup(&self, _operation: &str, _bytes: u64, _group_size: u32) -> Option<f64> {
        None
    }
}
