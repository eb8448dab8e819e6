//! `laggard compare`: revisions side by side.

use std::process::ExitCode;

use anyhow::Result;
use laggard_experiments::compare::{self, COMPARE_SCHEMA, Options};

use super::{reports, results};
use crate::cli::Compare;

/// Compares the reports of two revisions or more.
pub fn compare(options: &Compare) -> Result<ExitCode> {
    results::check_targets(&options.output, COMPARE_SCHEMA)?;
    let revisions = options.reports.iter().map(|words| reports::runs(words));
    let revisions: Result<Vec<_>> = revisions.collect();
    let how = Options {
        any_program: options.any_program,
        threshold_percent: options.threshold,
    };
    let comparison = compare::compare(revisions?, &how)?;
    results::write(
        &options.output,
        &comparison,
        COMPARE_SCHEMA,
        |text| compare::render(&comparison, &text),
        || compare::draw(&comparison),
    )?;
    Ok(ExitCode::SUCCESS)
}
