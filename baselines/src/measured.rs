//! What a measurement is asked for, and what it gives.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Table;

/// What to measure, and for how long.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MeasureOptions {
    /// Approximate duration.
    pub time: Duration,
    /// Largest message; with several blocks, their sum.
    pub max_bytes: u64,
    /// Only these sizes; empty: powers of two, and some between them for a check.
    pub sizes: Vec<u64>,
    /// Whether to measure fewer sizes.
    pub quick: bool,
    /// Benchmarks must contain one of these calls; empty: all.
    pub only: Vec<String>,
    /// Whether OpenSHMEM is measured.
    pub shmem: bool,
}

/// The results, at rank 0.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// The table.
    pub table: Table,
    /// Cells for which there was no time.
    pub left_out: usize,
    /// Cells in all.
    pub cells: usize,
}
