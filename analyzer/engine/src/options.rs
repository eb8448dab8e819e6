//! What an analysis is told.

use std::path::PathBuf;
use std::sync::Arc;

use laggard_baselines::{Baseline, Empty};
use laggard_report::{Report, Settings};
use laggard_trace::operations::OperationMap;

use crate::rules::Rules;

/// What comes of [`analyze`](crate::analyze).
#[derive(Debug)]
pub struct Analysis {
    /// The report.
    pub report: Report,
    /// Whether the table per rank was written, if it was asked for: that it was not does
    /// not spoil the report.
    pub per_rank: anyhow::Result<()>,
}

/// Options of [`analyze`](crate::analyze).
#[derive(Clone)]
pub struct AnalyzeOptions {
    /// Filters and their limits.
    pub settings: Settings,
    /// What operations should cost.
    pub baseline: Arc<dyn Baseline>,
    /// The file that these come from; `None`: there is none.
    pub baseline_file: Option<PathBuf>,
    /// Whether they are used although they are of another machine.
    pub baseline_anyway: bool,
    /// Which regions of the program are operations.
    pub operations: OperationMap,
    /// What hints come from.
    pub rules: Rules,
    /// Threads per agent; `None`: as many as there are cores for it.
    pub threads: Option<usize>,
    /// Records that an agent decodes in one round, about: bounds what is in flight.
    /// `None`: what fits into caches for one agent; more where each round costs messages.
    pub round_records: Option<u64>,
    /// Where the table of all that is known of each rank goes; `None`: it is not made.
    pub per_rank: Option<PathBuf>,
    /// Whether the phases' times and memory go into the report's `agents`.
    pub stats: bool,
    /// Whether the head shows progress (on a terminal, never in a pipe).
    pub progress: bool,
    /// Where separate debug files are looked for; `None`: `/usr/lib/debug`.
    pub debug_roots: Option<Vec<PathBuf>>,
}

impl Default for AnalyzeOptions {
    fn default() -> Self {
        AnalyzeOptions {
            settings: Settings::default(),
            baseline: Arc::new(Empty),
            baseline_file: None,
            baseline_anyway: false,
            operations: OperationMap::default(),
            rules: Rules::default(),
            threads: None,
            round_records: None,
            per_rank: None,
            stats: false,
            progress: false,
            debug_roots: None,
        }
    }
}
