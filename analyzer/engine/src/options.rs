//! Options and result of an analysis.

use std::path::PathBuf;
use std::sync::Arc;

use laggard_baselines::{Baseline, Empty};
use laggard_patterns::rules::RuleBase;
use laggard_report::{Report, Settings};
use laggard_trace::operations::OperationMap;

use crate::rules::Rules;

/// Result of [`analyze`](crate::analyze).
#[derive(Debug)]
pub struct Analysis {
    /// The report.
    pub report: Report,
    /// Whether the table per rank was written, if requested. An error here does not affect the
    /// report.
    pub per_rank: anyhow::Result<()>,
    /// The rules of its hints.
    pub rules: RuleBase,
}

/// Options of [`analyze`](crate::analyze).
#[derive(Clone)]
pub struct AnalyzeOptions {
    /// Filters and thresholds.
    pub settings: Settings,
    /// Expected costs of operations.
    pub baseline: Arc<dyn Baseline>,
    /// File of the baseline; `None`: there is none.
    pub baseline_file: Option<PathBuf>,
    /// Whether to use the baseline of another machine.
    pub baseline_anyway: bool,
    /// Which regions of the program are operations.
    pub operations: OperationMap,
    /// Rules for hints.
    pub rules: Rules,
    /// Whether the last member of a collective has all the blame for waits; otherwise all that are
    /// still missing share it.
    pub charge_last: bool,
    /// Whether to leave root causes out.
    pub fast: bool,
    /// Threads per agent; `None`: one per available core.
    pub threads: Option<usize>,
    /// Approximate number of records that an agent decodes in one round. Bounds the data in flight.
    /// `None`: what fits into caches for one agent; more where each round costs messages.
    pub round_records: Option<u64>,
    /// File for the table per rank; `None`: no table.
    pub per_rank: Option<PathBuf>,
    /// Whether the report's `agents` get times and memory of the phases.
    pub stats: bool,
    /// Whether the head shows progress (on a terminal, never in a pipe).
    pub progress: bool,
    /// Directories of separate debug files; `None`: `/usr/lib/debug`.
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
            charge_last: false,
            fast: false,
            threads: None,
            round_records: None,
            per_rank: None,
            stats: false,
            progress: false,
            debug_roots: None,
        }
    }
}
