//! Tables of an analysis as files for data frames and databases.
//!
//! *Purpose.* The report folds what is known of many ranks into sums and extremes. Where
//! that is not enough, [`PerRank`] writes all of it as a Parquet file: a row for each time
//! that a rank spent, and for each that it lost to each party that was late.
//!
//! *Data flow.* The analysis' head gives [`Row`]s, ascending by rank and thread, as they
//! come in; rows are written a group at a time, so that memory does not grow with the
//! ranks. `PER_RANK.md` beside this crate says what the columns mean, and how to ask.
//!
//! [`trace`] has the tables of everything that a trace tells, in Parquet or Arrow, a file each:
//! `TABLES.md` describes them, `QUESTIONS.md` asks them something.
//!
//! [`baseline`] has the table of what operations take on a machine; `BASELINE.md` describes it.
//!
//! *Constraints.* The same rows give the same bytes. A file appears under its name when it
//! is complete, and not before. Names and units of columns are promises to users.
//!
//! *Not supported.* Reading; nested columns. Nothing of this may enter the preloaded
//! library, which is why it is a crate of its own.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod baseline;
mod error;
mod group;
mod per_rank;
mod schema;
mod target;
pub mod trace;

pub use error::Error;
pub use per_rank::{Call, Late, PerRank, Row, Run, Text, Value};

/// What a table of this version is called in its metadata, under `laggard.schema`.
pub const SCHEMA: &str = "laggard-per-rank/1";
/// What that begins with in every version.
const SCHEMA_FAMILY: &str = "laggard-per-rank/";
