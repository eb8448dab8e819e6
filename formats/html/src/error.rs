//! What can go wrong with pages.

use std::io;
use std::path::PathBuf;

/// Why a page could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file to be written exists and is something else.
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
        /// What the system said.
        source: io::Error,
    },
}
