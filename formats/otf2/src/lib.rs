//! OTF2 archives (of Score-P, EZTrace and others) as locations of this project's own traces.
//!
//! *Purpose.* An analysis needs each location several times and at any place, and its calls
//! as calls; an archive is a stream of events for each location, written for reading once.
//! So each location is read once and written anew, in the format of `laggard-trace`, into a
//! file without a name in `TMPDIR`: some 12 bytes a call. From there on it is a location as
//! any other.
//!
//! *Data flow.* [`Archive`] reads the definitions; [`World`](world::World) says which locations
//! are which ranks, what communicators are, and which regions are calls of MPI.
//! [`Transcoder::location`] reads the events of one location, one thread of the reading program
//! each: regions entered and left become calls with call paths, in which messages, requests,
//! collectives and one-sided transfers are what happened meanwhile; calls wait in a queue of
//! bounded length until their requests have completed, which is when an archive tells whom
//! they were about.
//!
//! *Constraints.* The OTF2 library (C) is looked for when the first archive is opened; nothing
//! of it is needed before. What it refuses is an error with its words; what the archive has
//! wrong, or lacks, is a [`note`](notes) and the rest is used. Memory does not grow with the
//! length of the archive, only with what is different in it.
//!
//! [`ArchiveWriter`] goes the other way: it takes the same definitions and events, and
//! writes an archive as Score-P would, with the [`profile`] of regions as properties of locations.
//!
//! *Not here.* Metrics, threads and tasks, files, calls that are not of MPI: counted and
//! skipped. Requests that one thread posts and another one completes are not tied.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod anchor;
mod archive;
mod calls;
mod clock;
pub mod definitions;
mod error;
pub mod events;
mod file;
mod library;
mod names;
pub mod notes;
mod open;
mod output;
mod paths;
mod pending;
pub mod profile;
pub mod source;
mod transcode;
mod windows;
pub mod world;
mod write;

pub use anchor::check_content as check_anchor;
pub use archive::Archive;
pub use calls::Missing;
pub use error::Error;
pub use library::LIBRARY_NAMES;
pub use transcode::{Channel, Transcoded, Transcoder};
pub use write::{ANY_NUMBER, ArchiveWriter, EventWriter, Marker, TOLD_NUMBERS};
