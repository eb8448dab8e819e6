//! Errors of tables.

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

/// Reason why a table could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file exists and is not a table.
    #[error("{path} exists and is not a laggard table: choose another file, or remove it")]
    WouldOverwrite {
        /// The file.
        path: PathBuf,
    },
    /// The directory to be written exists.
    #[error("{path} exists: choose another name, or remove it")]
    Exists {
        /// The directory.
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
    /// The rows could not be encoded.
    #[error("cannot write {path}: {source}")]
    Encode {
        /// The file.
        path: PathBuf,
        /// The encoder's error.
        source: ParquetError,
    },
}

impl Error {
    /// An error of writing to the system.
    pub(crate) fn write(path: &Path, source: io::Error) -> Error {
        Error::Write {
            path: path.to_owned(),
            source,
        }
    }

    /// An error of the encoder, or of the system below it.
    pub(crate) fn encode(path: &Path, source: ParquetError) -> Error {
        let path = path.to_owned();
        match source {
            ParquetError::External(cause) => match cause.downcast::<io::Error>() {
                Ok(source) => Error::Write {
                    path,
                    source: *source,
                },
                Err(cause) => Error::Encode {
                    path,
                    source: ParquetError::External(cause),
                },
            },
            source => Error::Encode { path, source },
        }
    }
}
