//! Reports as the user names them: a file, or the trace directory in which it is.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use laggard_experiments::Run;
use laggard_report::Report;

use super::traces;

/// The name that `analyze` gives its report.
pub const REPORT: &str = "report.json";

/// The report file that somebody means: the named one, or that of the trace that is meant.
///
/// # Errors
/// If there is no such trace, or it has no report.
pub fn meant(named: Option<&Path>) -> Result<PathBuf> {
    match named {
        Some(named) => file(named),
        None => of_trace(&traces::meant(None)?),
    }
}

/// The report file that a path stands for.
///
/// # Errors
/// If it is a directory without a report, of its own or of the only trace in it.
pub fn file(path: &Path) -> Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    if path.join(REPORT).exists() {
        return inside(path.join(REPORT));
    }
    of_trace(&traces::meant(Some(path))?)
}

/// The report that `analyze` left beside a trace.
fn of_trace(trace: &Path) -> Result<PathBuf> {
    let report = laggard_engine::directory::of(trace).join(REPORT);
    if !report.exists() {
        let trace = trace.display();
        bail!("{trace}: no report in it: run laggard analyze {trace} first");
    }
    inside(report)
}

/// A file that was found in a directory, not named: a link must not lead out of there.
fn inside(file: PathBuf) -> Result<PathBuf> {
    if laggard_files::leaves_directory(&file)? {
        bail!(
            "{}: a link out of its directory; name the report itself",
            file.display()
        );
    }
    Ok(file)
}

/// The runs of one revision or size: reports joined by commas, or a directory of reports or of traces.
///
/// # Errors
/// If one of them is no report.
pub fn runs(words: &str) -> Result<Vec<Run>> {
    // A name may have a comma in it.
    let whole = Path::new(words);
    let files = match whole.exists() {
        true => vec![whole],
        false => words.split(',').map(Path::new).collect(),
    };
    let mut runs = Vec::new();
    for path in files {
        if path.as_os_str().is_empty() {
            bail!("\"{words}\": no report between two commas");
        }
        for file in repeats(path)? {
            runs.push(Run {
                report: Report::read(&file)?,
                source: file.display().to_string(),
            });
        }
    }
    Ok(runs)
}

/// What a path stands for: itself, the report of a trace, or all reports in a directory, else those of
/// all traces in it.
fn repeats(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() || path.join(REPORT).exists() || traces::holds_locations(path) {
        return Ok(vec![file(path)?]);
    }
    let mut files: Vec<PathBuf> = traces::files(path, "json").collect();
    files.sort();
    if !files.is_empty() {
        return files.into_iter().map(inside).collect();
    }
    match &traces::below(path)[..] {
        // Says what is missing, or which trace it takes.
        [] | [_] => Ok(vec![file(path)?]),
        several => several.iter().map(|trace| of_trace(trace)).collect(),
    }
}
