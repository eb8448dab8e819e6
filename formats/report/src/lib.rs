//! The report: its structure, JSON Schema and text form.
//!
//! *Purpose.* The findings of `laggard analyze` in three forms. They are data ([`Report`]), a
//! JSON file ([`Report::write`], [`Report::read`]) with the structure in
//! `schema/laggard-report-1.schema.json`, and text for users ([`render_text`]).
//!
//! *Data flow.* The analysis engine fills a [`Report`]. [`seconds`] and [`percent`] turn its
//! integer sums into the numbers of the file, so that equal sums give equal bytes. Every view
//! of a report reads one.
//!
//! *Constraints.* Field names are promises to users. New fields are optional, and no field is
//! removed. A reader accepts only files of its own schema version.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod advice;
mod calls;
mod error;
pub mod file;
mod findings;
pub mod layout;
mod model;
mod numbers;
pub mod palette;
mod path;
mod ranks;
mod roots;
mod run;
mod style;
mod text;
mod times;
mod traffic;
pub mod units;

pub use advice::{Advice, Promise};
pub use calls::{Amount, CallNode, CallTree, NodeTime, PARTS_OF_TIME, Spread, TreeMetric};
pub use error::Error;
pub use findings::*;
pub use model::Report;
pub use numbers::{percent, ratio, seconds};
pub use path::{CriticalPath, Parallelism, PathPhase, PathRank, PathRow, WaitingRanks};
pub use ranks::{RankSet, has_rank, list_of_ranks, rank_ranges, with_threads};
pub use roots::{
    DelayCosts, Factors, GainAfter, RootCaller, RootCause, RootCounter, RootFunction, RootRank,
    RootShare, RootSite, Victim, WaitClass, WorstWait,
};
pub use run::*;
pub use text::words;
pub use text::{RenderOptions, render_text};
pub use times::*;
pub use traffic::{
    Collectives, FileAccess, MatrixCell, MessagePair, MessagePairs, Messages, OneSided, RankMatrix,
    Traffic,
};

/// The schema that this version writes and reads.
pub const SCHEMA: &str = "laggard-report/1";
/// Prefix of the schema in every version of the report.
const SCHEMA_FAMILY: &str = "laggard-report/";
/// The JSON Schema of [`SCHEMA`], as text.
pub const JSON_SCHEMA: &str = include_str!("../schema/laggard-report-1.schema.json");
