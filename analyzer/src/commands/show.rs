//! `laggard show`: the text of a report again.

use std::process::ExitCode;

use anyhow::Result;
use laggard_report::Report;

use super::screen;
use crate::cli::Show;

/// Prints a report file as text.
pub fn show(options: &Show) -> Result<ExitCode> {
    let report = Report::read(&options.report)?;
    screen::print_report(&report, options.top)?;
    Ok(ExitCode::SUCCESS)
}
