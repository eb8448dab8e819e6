//! Results over several reports: what is printed, and the files that hold them.

use std::path::Path;

use anyhow::Result;
use laggard_experiments::PlotError;
use laggard_experiments::compare::TextOptions;
use laggard_report::file;

use super::screen;
use crate::cli::Output;

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
    schema: &str,
    json: &str,
    shown: Shown<'_>,
    draw: impl Fn() -> Result<String, PlotError>,
) -> Result<()> {
    if let Some(path) = &output.output {
        let is_ours = |content: &[u8]| file::is_of(content, family(schema));
        file::write(path, json.as_bytes(), RESULT, is_ours)?;
    }
    if let Some(path) = &output.svg {
        write_picture(path, &draw()?)?;
    }
    match shown {
        Shown::Text(render) => {
            screen::print(&render(TextOptions {
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
        Shown::Json => screen::print_json(json)?,
        Shown::Other(text) => screen::print(&text)?,
        Shown::Nothing => {}
    }
    Ok(())
}

/// What is printed of a result.
pub enum Shown<'s> {
    /// A text for people, and the files that were written.
    Text(&'s dyn Fn(TextOptions) -> String),
    /// The result.
    Json,
    /// A text for other programs.
    Other(String),
    /// Nothing.
    Nothing,
}

fn written(what: &str, path: &Path) -> Result<()> {
    screen::print(&format!("\n{what} written to {}\n", path.display()))?;
    Ok(())
}
