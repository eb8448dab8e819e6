//! Says who a parallel program is waiting for: the parts of the `laggard` command.

pub mod directory;
mod options;
pub mod symbols;

use std::path::Path;

pub use options::AnalyzeOptions;

/// Analyses a trace directory; the report is given on the head agent only.
pub fn analyze(
    _directory: &Path,
    _options: &AnalyzeOptions,
) -> anyhow::Result<Option<laggard_report::Report>> {
    anyhow::bail!("not there yet")
}
