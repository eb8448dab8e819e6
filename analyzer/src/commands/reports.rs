//! Reports as the user names them: a file, or the trace directory in which it is.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use laggard_experiments::Run;
use laggard_report::Report;

/// The report file that somebody means.
///
/// # Errors
/// If it is a directory without a report of its own.
pub fn file(path: &Path) -> Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    // `analyze` leaves its report there.
    let report = path.join("report.json");
    if !report.exists() {
        let directory = path.display();
        bail!("{directory}: no report in it: run laggard analyze {directory} first");
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

/// The runs of one revision or size: reports joined by commas, or a directory of reports.
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

/// What a path stands for: itself, the report of a trace, or all reports in a directory.
fn repeats(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() || path.join("report.json").exists() {
        return Ok(vec![file(path)?]);
    }
    let mut files: Vec<PathBuf> = std::fs::read_dir(path)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|file| {
            file.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    files.sort();
    match files.is_empty() {
        // Says what is missing.
        true => Ok(vec![file(path)?]),
        false => files.into_iter().map(inside).collect(),
    }
}
