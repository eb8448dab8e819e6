//! Tables of an analysis as files for data frames and databases.
//!
//! *Purpose.* The report folds many ranks into sums and extremes. [`PerRank`] writes the full
//! data as a Parquet file. It has one row for each kind of time that a rank spent, and one for
//! each loss to a late party.
//!
//! *Data flow.* The head of the analysis passes [`Row`]s as they arrive, ascending by rank and
//! thread. They are written in row groups, so that memory does not grow with the ranks.
//! `PER_RANK.md` beside this crate documents the columns and shows queries.
//!
//! [`trace`] has tables of a trace's whole content, in Parquet or Arrow, one file each.
//! `TABLES.md` documents them, `QUESTIONS.md` shows queries.
//!
//! [`plain`] makes a file of any columns.
//!
//! [`baseline`] has the table of operation times on a machine; `BASELINE.md` documents it.
//!
//! *Constraints.* The same rows give the same bytes. A file appears under its name only when it
//! is complete. Names and units of columns are promises to users.
//!
//! *Not supported.* Reading; nested columns. This is a crate of its own because none of it may
//! enter the preloaded library.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod baseline;
mod error;
mod group;
mod per_rank;
pub mod plain;
mod schema;
mod target;
pub mod trace;

pub use error::Error;
pub use per_rank::{Call, Late, PerRank, Row, Run, Text, Value};

/// Value of `laggard.schema` in the metadata of this table.
pub const SCHEMA: &str = "laggard-per-rank/1";
/// Prefix of that value in every version.
const SCHEMA_FAMILY: &str = "laggard-per-rank/";
