//! Lines of the program's sources that a report names, where they are readable.
//!
//! A report may come from anywhere, and a page of it may go anywhere. So only files are read
//! that look like sources: by their names, and those that links lead to, which must not leave the
//! directory of the name; of a bounded size, regular, and text.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use laggard_html::{Excerpt, Sources};
use laggard_report::{Report, SourceLocation};
use rustc_hash::FxHashMap;

/// Lines before and after the one that makes the call.
const AROUND: usize = 4;
/// Larger files are not read, bytes.
const MOST_BYTES: u64 = 4 << 20;
/// So many different files are looked for.
const MOST_FILES: usize = 100;
/// Findings, and causes of each, whose places are looked for.
const FINDINGS: usize = 100;
const CAUSES: usize = 8;
/// What names of sources end in.
const ENDINGS: &[&str] = &[
    "c", "cc", "cpp", "cxx", "c++", "cu", "cuh", "h", "hh", "hpp", "hxx", "inl", "ipp", "tpp", "f",
    "for", "ftn", "f77", "f90", "f95", "f03", "f08", "f18", "fpp", "inc", "jl", "py", "pyx", "rs",
];

/// A source file.
struct Source {
    path: PathBuf,
    lines: Vec<String>,
    changed: Option<SystemTime>,
}

/// What is around the places that the report's findings name.
pub fn of(report: &Report) -> Sources {
    let program = Path::new(&report.run.program).parent();
    let mut files: FxHashMap<&str, Option<Source>> = FxHashMap::default();
    let mut sources = Sources::default();
    for location in places(report) {
        let file = location.file.as_str();
        if !files.contains_key(file) && files.len() == MOST_FILES {
            continue;
        }
        let known = files.entry(file);
        let Some(source) = known.or_insert_with(|| find(file, program)) else {
            continue;
        };
        if let Some(excerpt) = excerpt(source, location.line, began(report)) {
            sources.insert(location, excerpt);
        }
    }
    sources
}

/// The places of findings and of those that were late for them.
fn places(report: &Report) -> impl Iterator<Item = &SourceLocation> {
    let findings = report.bottlenecks.iter().take(FINDINGS);
    let places = findings.flat_map(|found| {
        let causes = found.causes.iter().take(CAUSES);
        std::iter::once(&found.location).chain(causes.map(|cause| &cause.location))
    });
    places.filter(|location| location.line > 0 && !location.file.is_empty())
}

/// When the run began, as far as the report tells.
fn began(report: &Report) -> Option<SystemTime> {
    let began = Duration::try_from_secs_f64(report.run.began_unix_s?).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(began)
}

/// Where the compiler found it, or seen from here, or from where the program is.
fn find(file: &str, program: Option<&Path>) -> Option<Source> {
    let file = Path::new(file);
    if !is_source(file) {
        return None;
    }
    let beside = program.map(|directory| directory.join(file));
    // Of an absolute path both are that path.
    [Some(file.to_owned()), beside]
        .into_iter()
        .flatten()
        .find_map(read)
}

/// Whether a file looks like a source, by its name.
fn is_source(file: &Path) -> bool {
    let ending = file.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.contains(&&*ending.to_ascii_lowercase()))
}

fn read(path: PathBuf) -> Option<Source> {
    let (mut file, size, end) = laggard_files::open_beside(&path).ok()?;
    if size > MOST_BYTES || !is_source(&end) {
        return None;
    }
    let changed = file.metadata().and_then(|found| found.modified()).ok();
    let mut bytes = Vec::new();
    file.by_ref()
        .take(MOST_BYTES)
        .read_to_end(&mut bytes)
        .ok()?;
    if bytes.contains(&0) {
        return None;
    }
    let text = String::from_utf8_lossy(&bytes);
    Some(Source {
        path,
        lines: text.lines().map(str::to_owned).collect(),
        changed,
    })
}

/// The lines around one, if the file has it.
fn excerpt(source: &Source, line: u32, began: Option<SystemTime>) -> Option<Excerpt> {
    let at = usize::try_from(line).ok()?.checked_sub(1)?;
    if at >= source.lines.len() {
        return None;
    }
    let first = at.saturating_sub(AROUND);
    let last = (at + AROUND).min(source.lines.len() - 1);
    // Compilers and file systems keep seconds.
    let second = Duration::from_secs(1);
    let is_after = |changed: SystemTime, began: SystemTime| {
        changed
            .duration_since(began)
            .is_ok_and(|later| later > second)
    };
    Some(Excerpt {
        path: source.path.to_string_lossy().into_owned(),
        first: first as u32 + 1,
        lines: source.lines[first..=last].to_vec(),
        here: line,
        is_newer: source
            .changed
            .zip(began)
            .is_some_and(|(changed, began)| is_after(changed, began)),
    })
}
