//! OTF2 archives (of Score-P, EZTrace and others) as locations of laggard traces.
//!
//! *Purpose.* An analysis reads each location several times, at any place, as calls. An archive
//! is a stream of events for each location, made to be read once. So each location is read once
//! and rewritten in the format of `laggard-trace`, into a file without a name in `TMPDIR`, at
//! some 12 bytes per call. From then on it is a location like any other.
//!
//! *Data flow.* [`Archive`] reads the definitions. [`World`](world::World) maps locations to
//! ranks, and identifies communicators and the regions that are MPI calls.
//! [`Transcoder::location`] reads the events of one location; each reading thread takes one.
//! Regions entered and left become calls with call paths. Messages, requests, collectives and
//! one-sided transfers belong to the call around them. Calls wait in a bounded queue until
//! their requests have completed: only then does an archive name their peers.
//!
//! *Constraints.* The OTF2 library (C) is loaded when the first archive is opened, not before.
//! Its refusals become errors with its words. Faults and gaps of the archive become
//! [`note`](notes)s, and the rest is used. Memory grows with the distinct data in an archive,
//! not with its length.
//!
//! [`ArchiveWriter`] goes the other way: it takes the same definitions and events and writes an
//! archive as Score-P would. The [`profile`] of regions becomes properties of locations.
//!
//! Threads that wait for each other are calls, too: barriers, locks and waits for tasks of OpenMP
//! (`constructs`, `teams`). Metrics that count what a thread does are counters (`metrics`).
//!
//! *Not here.* Other metrics, files, and calls of other libraries are counted and skipped. A request that one thread posts and another completes is not matched.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod anchor;
mod archive;
mod calls;
mod clock;
mod computed;
mod constructs;
pub mod definitions;
mod error;
pub mod events;
mod file;
mod library;
mod metrics;
mod names;
pub mod notes;
mod open;
mod output;
mod paths;
mod pending;
pub mod profile;
pub mod source;
mod teams;
mod transcode;
mod windows;
pub mod world;
mod write;

pub use anchor::check_content as check_anchor;
pub use archive::Archive;
pub use calls::Missing;
pub use constructs::role;
pub use error::Error;
pub use library::LIBRARY_NAMES;
pub use transcode::{Channel, Transcoded, Transcoder};
pub use write::{ANY_NUMBER, ArchiveWriter, EventWriter, GENERATOR, Marker, TOLD_NUMBERS};
