//! Errors of pages.

use std::io;
use std::path::PathBuf;

/// Reason why a page could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file exists and is not a page.
    #[error("{path} exists and is not a page of laggard: choose another file, or remove it")]
    WouldOverwrite {
        /// The file.
        path: PathBuf,
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
