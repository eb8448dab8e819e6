//! `laggard show`: the text of a report again.

use std::process::ExitCode;

use anyhow::{Result, bail};
use laggard_report::Report;

use super::screen;
use crate::cli::Show;

/// Prints a report file as text.
pub fn show(options: &Show) -> Result<ExitCode> {
    // A trace directory is as good: `analyze` leaves its report there.
    let path = match options.report.is_dir() {
        true => options.report.join("report.json"),
        false => options.report.clone(),
    };
    if options.report.is_dir() && !path.exists() {
        let directory = options.report.display();
        bail!("{directory}: no report in it: run laggard analyze {directory} first");
    }
    let report = Report::read(&path)?;
    screen::print_report(&report, options.top, &options.report)?;
    Ok(ExitCode::SUCCESS)
}
