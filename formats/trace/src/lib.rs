//! The trace format: the collector writes it, the analyzer reads it.
//!
//! *Purpose.* One file per location, or one per host for all its locations. The file grows
//! while the program runs. It is readable up to the last record, however the program ended.
//! `FORMAT.md` beside this crate is the byte-level specification.
//!
//! *Data flow.* [`LocationWriter`] takes ticks and signature ids and fills blocks of
//! [`Record`]s in a [`Space`] (a mapped file, a part of one, or memory). [`Location`] maps a
//! file, checks its blocks, and returns the records of a chunk as a slice of the mapping.
//! [`Decoder`] turns records into [`Event`]s.
//!
//! *Constraints.* The writing half does not panic, and allocates only for definitions. The
//! reading half treats every byte as hostile: it lists faults as [`Damage`] and uses the rest.
//!
//! *Not here.* The meaning of calls beyond their [`calls`] row; time conversion; anything that
//! needs more than one location.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod block;
pub mod calls;
mod control;
mod define;
mod definitions;
mod error;
mod files;
mod mapped;
mod open_call;
pub mod operations;
mod record;
mod so_far;
mod space;
mod write;

pub use block::*;
pub use control::{
    CONTROL_FILE, Change, Control, ControlSlot, DEEPEST, Detail, MOST_HZ, MOST_LEFT_OUT, Wish,
    create as create_control,
};
pub use define::*;
pub use definitions::{Definitions, Module};
pub use error::{Damage, DamageKind, Error};
pub use files::node::{
    GRANULE, NODE_MAGIC, NODE_VERSION, NodeFile, NodePlace, NodeSpace, is_node_file_name,
    node_file_name,
};
pub use files::read::{Chunk, Location};
pub use mapped::replace as replace_map;
pub use open_call::{OpenCall, OpenCallSlot, Subject};
pub use record::*;
pub use so_far::ProfileSoFar;
pub use space::{FileSpace, MemorySpace, Space};
pub use write::{CHUNK_BYTES, LocationWriter};

/// Extension of location files.
pub const FILE_EXTENSION: &str = "lgt";
/// Mode of trace files. They hold paths and arguments, so only the user may read them.
pub const PRIVATE_FILE: u32 = 0o600;
/// Mode of a trace directory that the collector makes.
pub const PRIVATE_DIRECTORY: u32 = 0o700;
/// The file that claims a directory for one run.
pub const RUN_FILE: &str = "run.json";
/// The file that tells how the command that ran the program failed.
pub const ENDED_FILE: &str = "ended.json";

/// Name of a location's file.
pub fn file_name(rank: u32, thread: u32) -> String {
    format!("rank{rank:06}.thread{thread:03}.{FILE_EXTENSION}")
}
