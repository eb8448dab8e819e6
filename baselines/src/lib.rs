//! What an operation should cost on a machine.
//!
//! *Purpose.* Tells slow from usual: a [`Baseline`] gives the time of an operation with a number of
//! bytes and of members when nobody is late.
//!
//! *Data flow.* A [`Table`] is read from the JSON file of a measurement. The analysis engine asks
//! it through the trait, once per profile entry. [`Empty`] covers nothing and sends the engine to
//! its other filters.
//!
//! *Constraints.* A look-up never guesses. Only a fitted [`Model`] covers sizes that were not
//! measured, and only if it was close to the measured ones.
//!
//! *Not here.* The measurement.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod curve;
mod entry;
mod error;
mod fingerprint;
mod measured;
mod merge;
mod model;
mod table;

pub use curve::Point;
pub use entry::{Entry, Span};
pub use error::Error;
pub use fingerprint::{Fingerprint, Used};
pub use measured::{MeasureOptions, Measured};
pub use model::{Growth, Model, Piece, Shape};
pub use table::{SCHEMA, Table};

/// What an operation should cost.
pub trait Baseline: Send + Sync {
    /// Seconds that `operation` (the call's name, `MPI_Allreduce`) takes with `bytes` per call and
    /// member, in a group of `group_size` members (2 for a message); `None` if not covered.
    fn lookup(&self, operation: &str, bytes: u64, group_size: u32) -> Option<f64>;

    /// The same if the members are known to be on one host, or on several. If that is unknown, or
    /// differs from call to call, the faster one counts.
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

    /// The machine that it was measured on, if known.
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
