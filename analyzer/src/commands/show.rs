//! `laggard show`: a report again, as text or as a page.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use laggard_html::Page;
use laggard_report::Report;

use super::{reports, screen, sources};
use crate::cli::Show;

/// Prints a report file as text, or makes a page of it.
pub fn show(options: &Show) -> Result<ExitCode> {
    let report = Report::read(&reports::file(&options.report)?)?;
    match &options.html {
        Some(page) => write_page(&report, page)?,
        None => screen::print_report(&report, options.top, &options.report)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a page and says where it is.
fn write_page(report: &Report, path: &Path) -> Result<()> {
    laggard_html::check_target(path)?;
    let sources = sources::of(report);
    let page = Page {
        report,
        sources: &sources,
    };
    laggard_html::write(&page, path)?;
    // A page that goes to a pipe is not followed by other things.
    if path.is_file() {
        let mut out = screen::output();
        writeln!(out, "Page written to {}", path.display())?;
        out.flush()?;
    }
    Ok(())
}
