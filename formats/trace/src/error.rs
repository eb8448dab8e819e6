//! Errors and damage of traces.

use std::io;
use std::path::PathBuf;

/// Reason why a file could not be opened as a location of a trace.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused to open or map the file.
    #[error("{path}: {source}")]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file does not begin with a trace header.
    #[error("{path}: not a laggard trace ({why})")]
    NotATrace {
        /// The file.
        path: PathBuf,
        /// Fault of the header.
        why: &'static str,
    },
    /// A newer version wrote the file.
    #[error(
        "{path}: trace format version {found}, this program reads up to {supported}: use a newer laggard"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The file's version.
        found: u32,
        /// The newest version supported.
        supported: u32,
    },
}

/// Damage inside a file whose other parts are usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Kind of damage.
    pub what: DamageKind,
}

/// Kinds of [`Damage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DamageKind {
    /// A block's checksum does not match; its content was not used.
    Checksum,
    /// A block reaches beyond the end of the file, or its sizes contradict each other.
    Structure,
    /// Bytes that are not a block; the rest of the file was searched for the next one.
    NoBlock,
    /// A definition that cannot be decoded.
    Definition,
    /// A record names a signature that was never defined.
    UnknownSignature,
    /// A block was open when the process ended; its complete records were used.
    OpenBlock,
    /// An extent of a node file is missing, truncated or claimed twice; nothing from there on
    /// was used.
    Extent,
}

impl DamageKind {
    /// One line for users.
    pub fn describe(self) -> &'static str {
        match self {
            DamageKind::Checksum => "checksum mismatch, block skipped",
            DamageKind::Structure => "block sizes contradict each other",
            DamageKind::NoBlock => "no block where one was expected",
            DamageKind::Definition => "definition cannot be decoded",
            DamageKind::UnknownSignature => "record with an undefined signature",
            DamageKind::Extent => {
                "an extent in the node file is missing or damaged; the rest was not used"
            }
            DamageKind::OpenBlock => "last block was still open",
        }
    }
}
