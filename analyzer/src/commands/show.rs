//! `laggard show`: a report again, as text or as a page.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use laggard_html::{Page, Picture};
use laggard_report::Report;

use super::{analyze, drawn, reports, screen, sources};
use crate::cli::{Format, Show};

/// Larger pictures are refused, bytes.
const MOST_BYTES: u64 = 8 << 20;
/// So far into a file its first element is looked for.
const START: usize = 4096;

/// Prints a report file as text, or makes a page of it.
pub fn show(options: &Show) -> Result<ExitCode> {
    let file = reports::meant(options.report.as_deref())?;
    let report = Report::read(&file)?;
    match &options.html {
        Some(page) => write_page(&report, &file, page, options)?,
        None if options.format == Format::Text => {
            let named = options.report.as_deref().unwrap_or(&file);
            screen::print_report(&report, options.top, named)?;
        }
        None => analyze::print_as(&report, options.format, options.top, options.fail_above)?,
    }
    analyze::judge(&report, options.fail_above, &file)
}

/// Writes the page of a report file, without other runs.
///
/// # Errors
/// If there is no such report, or something else is where the page goes.
pub fn write_page_of(file: &Path, page: &Path) -> Result<()> {
    write(&Report::read(file)?, &[], page)
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
    write(report, &pictures, path)?;
    // A page that goes to a pipe is not followed by other things.
    if path.is_file() {
        screen::print(&format!("Page written to {}\n", path.display()))?;
    }
    Ok(())
}

fn write(report: &Report, pictures: &[Picture], path: &Path) -> Result<()> {
    let page = Page {
        report,
        sources: &sources::of(report),
        pictures,
    };
    laggard_html::write(&page, path)?;
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
