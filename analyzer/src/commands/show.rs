//! `laggard show`: a report again, as text or as a page.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use laggard_html::{Page, Picture};
use laggard_report::Report;

use super::{drawn, reports, screen, sources};
use crate::cli::Show;

/// Larger pictures are refused, bytes.
const MOST_BYTES: u64 = 8 << 20;
/// So far into a file its first element is looked for.
const START: usize = 4096;

/// Prints a report file as text, or makes a page of it.
pub fn show(options: &Show) -> Result<ExitCode> {
    let file = reports::file(&options.report)?;
    let report = Report::read(&file)?;
    match &options.html {
        Some(page) => write_page(&report, &file, page, options)?,
        None => screen::print_report(&report, options.top, &options.report)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a page and says where it is.
fn write_page(report: &Report, file: &Path, path: &Path, options: &Show) -> Result<()> {
    laggard_html::check_target(path)?;
    let mut pictures = Vec::new();
    if !options.compare.is_empty() {
        pictures.push(drawn::comparison(report, file, options)?);
    }
    if !options.scale.is_empty() {
        pictures.push(drawn::scaling(report, file, options)?);
    }
    for path in &options.picture {
        pictures.push(picture(path)?);
    }
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
    let svg =
        laggard_files::read(path, MOST_BYTES).with_context(|| format!("cannot read {file}"))?;
    let start = &svg[..svg.len().min(START)];
    if !start.windows(4).any(|tag| tag == b"<svg") {
        bail!("{file}: not a picture (SVG)");
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok(Picture {
        name: name.into_owned(),
        svg,
        text: String::new(),
    })
}
