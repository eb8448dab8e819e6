//! Why an archive cannot be used.

use std::io;
use std::path::PathBuf;

/// Why an archive, or a location of it, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no OTF2 library.
    #[error(
        "{path}: this takes the OTF2 library, which is not installed here: \
         install libopen-trace-format2-10 (Debian), or otf2 elsewhere"
    )]
    NoLibrary {
        /// The archive.
        path: PathBuf,
    },
    /// The library lacks a function.
    #[error("the OTF2 library is too old: it has no {function}")]
    OldLibrary {
        /// Name of the function.
        function: &'static str,
    },
    /// The system refused to read the anchor file.
    #[error("{path}: {source}")]
    Open {
        /// The anchor file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is no anchor of an archive.
    #[error("{path}: not an OTF2 archive ({why})")]
    NotAnArchive {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The definitions, without which no event means anything, cannot be read.
    #[error("{path}: its global definitions cannot be read ({why})")]
    Definitions {
        /// The archive.
        path: PathBuf,
        /// What the library said, or what is wrong with them.
        why: String,
    },
    /// The events of a location cannot be read at all.
    #[error("{path}: the events of location {location} cannot be read ({why})")]
    Events {
        /// The archive.
        path: PathBuf,
        /// The location's number.
        location: u64,
        /// What the library said.
        why: String,
    },
    /// No room for the working copy.
    #[error(
        "{directory}: cannot write the working copy of {path}: {source}; set TMPDIR to where there is room"
    )]
    Copy {
        /// The archive.
        path: PathBuf,
        /// Where the working copy was to be.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An archive cannot be written.
    #[error("{path}: cannot write the archive ({why})")]
    Write {
        /// Where it was to be.
        path: PathBuf,
        /// What the library said.
        why: String,
    },
    /// The working copy cannot be read back.
    #[error(transparent)]
    Read(#[from] laggard_trace::Error),
}
