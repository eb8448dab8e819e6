//! `laggard compare`: revisions side by side.

use std::process::ExitCode;

use anyhow::{Result, bail};
use laggard_experiments::compare::{self, COMPARE_SCHEMA, Options};
use laggard_experiments::to_json;

use super::results::Shown;
use super::{ABOVE, reports, results, screen};
use crate::cli::{Compare, CompareFormat, REGRESSION_PERCENT};

/// Compares the reports of two revisions or more; says what became slower, if it is to fail then.
pub fn compare(options: &Compare) -> Result<ExitCode> {
    results::check_targets(&options.output, COMPARE_SCHEMA)?;
    let revisions = options.reports.iter().map(|words| reports::runs(words));
    let revisions = revisions.collect::<Result<Vec<_>>>()?;
    let broken = revisions
        .iter()
        .flatten()
        .find(|run| !run.report.is_sound());
    let broken = broken.map(|run| run.source.clone());
    let how = Options {
        any_program: options.any_program,
        threshold_percent: options.threshold,
    };
    let comparison = compare::compare(revisions, &how)?;
    let unknown = broken.as_ref().map(|report| {
        format!("{report}: whether it became slower is unknown, since not all was recorded; record it again")
    });
    let render = |text| compare::render(&comparison, &text);
    let limit = options.fail_on_regression.unwrap_or(REGRESSION_PERCENT);
    let shown = match options.format {
        CompareFormat::Text => Shown::Text(&render),
        CompareFormat::Json => Shown::Json,
        CompareFormat::Markdown => Shown::Other(compare::to_markdown(&comparison)),
        CompareFormat::Openmetrics => Shown::Other(compare::to_openmetrics(
            &comparison,
            limit,
            unknown.is_none(),
        )),
        CompareFormat::Junit => {
            Shown::Other(compare::to_junit(&comparison, limit, unknown.as_deref()))
        }
        CompareFormat::None => Shown::Nothing,
    };
    let json = to_json(&comparison);
    let draw = || compare::draw(&comparison);
    results::write(&options.output, COMPARE_SCHEMA, &json, shown, draw)?;
    let Some(percent) = options.fail_on_regression else {
        return Ok(ExitCode::SUCCESS);
    };
    let slower = comparison.regressions(percent);
    for found in &slower {
        let label = &comparison.revisions[found.revision].label;
        screen::say(&format!("{label} is slower: {}", found.what));
    }
    match unknown {
        _ if !slower.is_empty() => Ok(ExitCode::from(ABOVE)),
        // A recording that is broken must not pass for a program that is fast.
        Some(why) => bail!("{why}"),
        None => Ok(ExitCode::SUCCESS),
    }
}
