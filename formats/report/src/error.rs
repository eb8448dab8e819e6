//! Errors of report files.

use std::io;
use std::path::PathBuf;

/// Reason why a report could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused to open or read the file.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not JSON.
    #[error("{path} is not a report: not JSON ({source})")]
    NotJson {
        /// The file.
        path: PathBuf,
        /// The parser's error, with line and column.
        source: serde_json::Error,
    },
    /// The file is JSON, but not a report.
    #[error(
        "{path} is not a report: its \"schema\" is not \"{}…\"",
        crate::SCHEMA_FAMILY
    )]
    NotAReport {
        /// The file.
        path: PathBuf,
    },
    /// The file is a report of another version.
    #[error(
        "{path} has schema \"{found}\", this program reads \"{}\": use the laggard that wrote it, \
         or analyze the trace again",
        crate::SCHEMA
    )]
    OtherSchema {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: String,
    },
    /// The file says that it is a report, but its content is not.
    #[error("{path} is a damaged report: {source}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The missing or mistyped part, with line and column.
        source: serde_json::Error,
    },
    /// The file exists and may not be overwritten.
    #[error("{path} exists and is not {what}: choose another file, or remove it")]
    WouldOverwrite {
        /// The file.
        path: PathBuf,
        /// The kind of file that may be overwritten.
        what: &'static str,
    },
    /// The system refused to write the file.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}
