//! `laggard show`: a report again, as text or as a page.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use laggard_html::{Page, Picture};
use laggard_report::Report;

use super::{reports, screen, sources};
use crate::cli::Show;

/// Larger pictures are refused, bytes.
const MOST_BYTES: u64 = 8 << 20;
/// So far into a file its first element is looked for.
const START: usize = 4096;

/// Prints a report file as text, or makes a page of it.
pub fn show(options: &Show) -> Result<ExitCode> {
    let report = Report::read(&reports::file(&options.report)?)?;
    match &options.html {
        Some(page) => write_page(&report, page, &options.picture)?,
        None => screen::print_report(&report, options.top, &options.report)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a page and says where it is.
fn write_page(report: &Report, path: &Path, pictures: &[PathBuf]) -> Result<()> {
    laggard_html::check_target(path)?;
    let pictures = pictures.iter().map(|path| picture(path));
    let pictures: Vec<Picture> = pictures.collect::<Result<_>>()?;
    let sources = sources::of(report);
    let page = Page {
        report,
        sources: &sources,
        pictures: &pictures,
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

/// Reads a picture.
fn picture(path: &Path) -> Result<Picture> {
    let file = path.display();
    let found = fs::metadata(path).with_context(|| format!("cannot read {file}"))?;
    if !found.is_file() || found.len() > MOST_BYTES {
        bail!("{file}: not a picture of at most {} MB", MOST_BYTES >> 20);
    }
    let svg = fs::read(path).with_context(|| format!("cannot read {file}"))?;
    let start = &svg[..svg.len().min(START)];
    if !start.windows(4).any(|tag| tag == b"<svg") {
        bail!("{file}: not a picture (SVG)");
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok(Picture {
        name: name.into_owned(),
        svg,
    })
}
