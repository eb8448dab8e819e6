//! Errors of archives.

use std::io;
use std::path::PathBuf;

/// Reason why an archive, or a location of it, cannot be used.
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
        /// The system's error.
        source: io::Error,
    },
    /// The file is not the anchor of an archive.
    #[error("{path}: not an OTF2 archive ({why})")]
    NotAnArchive {
        /// The file.
        path: PathBuf,
        /// Its fault.
        why: String,
    },
    /// The definitions cannot be read; no event has a meaning without them.
    #[error("{path}: its global definitions cannot be read ({why})")]
    Definitions {
        /// The archive.
        path: PathBuf,
        /// The library's message, or the fault found.
        why: String,
    },
    /// The events of a location cannot be read at all.
    #[error("{path}: the events of location {location} cannot be read ({why})")]
    Events {
        /// The archive.
        path: PathBuf,
        /// The location's number.
        location: u64,
        /// The library's message.
        why: String,
    },
    /// No room for the working copy.
    #[error(
        "{directory}: cannot write the working copy of {path}: {source}; set TMPDIR to where there is room"
    )]
    Copy {
        /// The archive.
        path: PathBuf,
        /// Directory of the working copy.
        directory: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// An archive cannot be written.
    #[error("{path}: cannot write the archive ({why})")]
    Write {
        /// The archive to be written.
        path: PathBuf,
        /// The library's message.
        why: String,
    },
    /// The working copy cannot be read back.
    #[error(transparent)]
    Read(#[from] laggard_trace::Error),
}
