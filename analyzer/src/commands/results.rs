//! Results over several reports: what is printed, and the files that hold them.

use std::path::Path;

use anyhow::Result;
use laggard_experiments::compare::TextOptions;
use laggard_experiments::{PlotError, to_json};
use laggard_report::file;

use super::screen;
use crate::cli::{Format, Output};

/// What may be replaced by a picture, in words.
const PICTURE: &str = "a picture (SVG)";
/// What may be replaced by a result, in words.
pub const RESULT: &str = "an older result of the same command";

/// Writes a picture, over an older one.
///
/// # Errors
/// If something else is there, or what the system says.
pub fn write_picture(path: &Path, svg: &str) -> Result<()> {
    Ok(file::write(path, svg.as_bytes(), PICTURE, is_picture)?)
}

fn is_picture(content: &[u8]) -> bool {
    content.starts_with(b"<svg")
}

/// Refuses files that hold something else, before any work is done.
///
/// # Errors
/// Says which file.
pub fn check_targets(output: &Output, schema: &str) -> Result<()> {
    if let Some(path) = &output.output {
        file::check_target(path, RESULT, |content| file::is_of(content, family(schema)))?;
    }
    if let Some(path) = &output.svg {
        file::check_target(path, PICTURE, is_picture)?;
    }
    Ok(())
}

/// A schema without its version.
pub fn family(schema: &str) -> &str {
    &schema[..schema.find('/').map_or(schema.len(), |at| at + 1)]
}

/// Prints a result, and writes the files that were asked for.
///
/// # Errors
/// If these cannot be written.
pub fn write(
    output: &Output,
    result: &impl serde::Serialize,
    schema: &str,
    text: impl Fn(TextOptions) -> String,
    draw: impl Fn() -> Result<String, PlotError>,
) -> Result<()> {
    let json = to_json(result);
    if let Some(path) = &output.output {
        let is_ours = |content: &[u8]| file::is_of(content, family(schema));
        file::write(path, json.as_bytes(), RESULT, is_ours)?;
    }
    if let Some(path) = &output.svg {
        write_picture(path, &draw()?)?;
    }
    match output.format {
        Format::Text => {
            screen::print(&text(TextOptions {
                top: output.top,
                color: screen::is_colorful(),
                width: screen::width(),
            }))?;
            let files = [("Result", &output.output), ("Picture", &output.svg)];
            for (what, path) in files {
                if let Some(path) = path {
                    written(what, path)?;
                }
            }
        }
        Format::Json => screen::print_json(&json)?,
        Format::None => {}
    }
    Ok(())
}

fn written(what: &str, path: &Path) -> Result<()> {
    screen::print(&format!("\n{what} written to {}\n", path.display()))?;
    Ok(())
}
