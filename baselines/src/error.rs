//! Errors of baseline tables.

use std::io;
use std::path::PathBuf;

/// Why a baseline table could not be read, written or merged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused to open or read the file.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not JSON, or a field is missing or of the wrong type.
    #[error("{path} is not a baseline table: {source}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// What the parser said, with line and column.
        source: serde_json::Error,
    },
    /// The file has another schema.
    #[error(
        "{path} has schema \"{found}\", this program reads \"{}\"",
        crate::SCHEMA
    )]
    OtherSchema {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: String,
    },
    /// A value that no measurement gives.
    #[error("{path}: {operation}, group size {group_size}: {what}")]
    Value {
        /// The file.
        path: PathBuf,
        /// Operation of the entry.
        operation: String,
        /// Group size of the entry.
        group_size: u32,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The system refused to write the file.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The tables are of different machines or libraries.
    #[error("{path} cannot be merged with the tables before it: {what}")]
    Merge {
        /// The file.
        path: PathBuf,
        /// The difference.
        what: String,
    },
}
