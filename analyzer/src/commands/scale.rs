//! `laggard scale`: what is lost on more ranks.

use std::process::ExitCode;

use anyhow::Result;
use laggard_experiments::scale::{self, Options, SCALE_SCHEMA};

use super::{reports, results};
use crate::cli::Scale;

/// Compares the reports of two sizes or more.
pub fn scale(options: &Scale) -> Result<ExitCode> {
    results::check_targets(&options.output, SCALE_SCHEMA)?;
    let sizes = options.reports.iter().map(|words| reports::runs(words));
    let sizes: Result<Vec<_>> = sizes.collect();
    let how = Options {
        any_program: options.any_program,
        growth: options.scaling.map(Into::into),
    };
    let scaling = scale::scale(sizes?, &how)?;
    results::write(
        &options.output,
        &scaling,
        SCALE_SCHEMA,
        |text| scale::render(&scaling, &text),
        || scale::draw(&scaling),
    )?;
    Ok(ExitCode::SUCCESS)
}
