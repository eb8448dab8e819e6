//! Report files, and the replacement of older files.

use std::path::Path;

use laggard_files::Place;
use serde::Deserialize;

use crate::{Error, Report, SCHEMA, SCHEMA_FAMILY};

/// The field that identifies a file.
#[derive(Deserialize)]
struct Head {
    schema: Option<String>,
}

/// Largest report, bytes; a million locations take some 300 MB.
pub const LARGEST: u64 = 1 << 30;
/// The kind of file that a report may replace, in words.
const REPORT: &str = "a laggard report";

impl Report {
    /// The report as JSON.
    pub fn to_json(&self) -> String {
        // Never fails: a report holds only strings, numbers and vectors.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Reads a report file.
    pub fn read(path: &Path) -> Result<Report, Error> {
        let bytes = laggard_files::read(path, LARGEST).map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })?;
        Report::from_json(&bytes, path)
    }

    /// Reads a report from a file's content; `path` is for messages.
    pub fn from_json(bytes: &[u8], path: &Path) -> Result<Report, Error> {
        let path = path.to_owned();
        match schema_of(bytes) {
            Err(source) => Err(Error::NotJson { path, source }),
            Ok(Some(found)) if found == SCHEMA => {
                serde_json::from_slice(bytes).map_err(|source| Error::Damaged { path, source })
            }
            Ok(Some(found)) if found.starts_with(SCHEMA_FAMILY) => {
                Err(Error::OtherSchema { path, found })
            }
            Ok(_) => Err(Error::NotAReport { path }),
        }
    }

    /// Whether [`write`](Self::write) may write this file: it is missing, an older report,
    /// empty, or a stream.
    pub fn check_target(path: &Path) -> Result<(), Error> {
        check_target(path, REPORT, is_report)
    }

    /// Writes a report file under a temporary name and renames it, so that nobody reads half of
    /// it. Replaces any file that [`check_target`](Self::check_target) allows.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        write(path, self.to_json().as_bytes(), REPORT, is_report)
    }
}

/// Whether [`write()`] may write this file: it is missing, empty, a stream, or `is_ours`
/// accepts it (`what` names the kind in words).
///
/// # Errors
/// [`Error::WouldOverwrite`], or as [`laggard_files::check`].
pub fn check_target(
    path: &Path,
    what: &'static str,
    is_ours: impl Fn(&[u8]) -> bool,
) -> Result<(), Error> {
    let failed = |source| Error::Write {
        path: path.to_owned(),
        source,
    };
    let is_other = || !laggard_files::read(path, LARGEST).is_ok_and(|content| is_ours(&content));
    match laggard_files::check(path).map_err(failed)? {
        Place::File if is_other() => Err(Error::WouldOverwrite {
            path: path.to_owned(),
            what,
        }),
        Place::Free | Place::File | Place::Stream => Ok(()),
    }
}

/// Writes a file under a temporary name and renames it. Replaces any file that [`check_target`]
/// allows.
///
/// # Errors
/// As [`check_target`], and the system's errors of writing.
pub fn write(
    path: &Path,
    content: &[u8],
    what: &'static str,
    is_ours: impl Fn(&[u8]) -> bool,
) -> Result<(), Error> {
    let failed = |source| Error::Write {
        path: path.to_owned(),
        source,
    };
    check_target(path, what, is_ours)?;
    laggard_files::replace(path, content).map_err(failed)
}

/// The `schema` of a JSON object; `None` for another JSON value or without a schema.
fn schema_of(bytes: &[u8]) -> Result<Option<String>, serde_json::Error> {
    match serde_json::from_slice::<Head>(bytes) {
        Ok(head) => Ok(head.schema),
        Err(error) if error.is_data() => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_report(content: &[u8]) -> bool {
    is_of(content, SCHEMA_FAMILY)
}

/// Whether a file is JSON whose `schema` begins with `family`.
pub fn is_of(content: &[u8], family: &str) -> bool {
    let schema = schema_of(content).ok().flatten();
    schema.is_some_and(|schema| schema.starts_with(family))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn example() -> Report {
        Report::from_json(
            include_bytes!("../tests/example.json"),
            Path::new("example.json"),
        )
        .unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.json");
        let mut report = example();
        report.write(&path).unwrap();
        assert_eq!(Report::read(&path).unwrap(), report);
        report.anomalies.clear();
        report.write(&path).unwrap();
        assert_eq!(Report::read(&path).unwrap(), report);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    }

    #[test]
    fn nothing_else_is_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.json");
        fs::write(&path, "{\"schema\": \"something/1\"}").unwrap();
        let error = example().write(&path).unwrap_err();
        assert!(matches!(error, Error::WouldOverwrite { .. }), "{error}");
        fs::write(&path, "my thesis").unwrap();
        assert!(example().write(&path).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "my thesis");
        fs::write(&path, "").unwrap();
        assert!(example().write(&path).is_ok());
        assert!(example().write(directory.path()).is_err());
        let nowhere = directory.path().join("missing/report.json");
        assert!(Report::check_target(&nowhere).is_err());
        let error = example().write(&nowhere).unwrap_err().to_string();
        assert!(error.contains("missing/report.json"), "{error}");
    }

    #[test]
    fn links_and_pipes_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let (link, file) = (directory.path().join("link"), directory.path().join("file"));
        example().write(&file).unwrap();
        let before = fs::read(&file).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut other = example();
        other.anomalies.clear();
        assert!(Report::check_target(&link).is_err());
        let error = other.write(&link).unwrap_err().to_string();
        assert!(error.contains("a symbolic link"), "{error}");
        assert_eq!(fs::read(&file).unwrap(), before);
        let error = Report::read(Path::new("/dev/zero")).unwrap_err();
        assert!(error.to_string().contains("not a regular file"), "{error}");
    }

    #[test]
    fn errors_say_what_the_file_is() {
        let read = |text: &str| {
            Report::from_json(text.as_bytes(), Path::new("r.json"))
                .unwrap_err()
                .to_string()
        };
        assert!(read("nonsense").contains("r.json is not a report: not JSON"));
        assert!(read("").contains("not JSON"));
        assert!(read("[1]").contains("is not a report"));
        assert!(read("{\"schema\": 7}").contains("is not a report"));
        assert!(read("{\"schema\": \"laggard-report/2\"}").contains("laggard-report/2"));
        let damaged = read("{\"schema\": \"laggard-report/1\"}");
        assert!(
            damaged.contains("damaged report: missing field `run`"),
            "{damaged}"
        );
        let missing = Report::read(Path::new("/nonexistent/r.json")).unwrap_err();
        assert!(
            missing
                .to_string()
                .contains("cannot read /nonexistent/r.json")
        );
    }
}
