//! `laggard scale`: what is lost on more ranks.

use std::process::ExitCode;

use anyhow::Result;
use laggard_experiments::scale::{self, Options, SCALE_SCHEMA};
use laggard_experiments::to_json;

use super::results::Shown;
use super::{reports, results};
use crate::cli::{PlainFormat, Scale};

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
    let render = |text| scale::render(&scaling, &text);
    let shown = match options.format {
        PlainFormat::Text => Shown::Text(&render),
        PlainFormat::Json => Shown::Json,
        PlainFormat::None => Shown::Nothing,
    };
    let draw = || scale::draw(&scaling);
    results::write(
        &options.output,
        SCALE_SCHEMA,
        &to_json(&scaling),
        shown,
        draw,
    )?;
    Ok(ExitCode::SUCCESS)
}
