//! The report: its structure, JSON Schema and text form.
//!
//! *Purpose.* What `laggard analyze` finds, as data ([`Report`]), as a JSON file
//! ([`Report::write`], [`Report::read`]) whose structure
//! `schema/laggard-report-1.schema.json` states, and as text for people
//! ([`render_text`]).
//!
//! *Data flow.* The analysis engine fills a [`Report`]; [`seconds`] and
//! [`percent`] turn its integer sums into the numbers of the file, so that equal
//! sums give equal bytes. Everything that shows a report reads one.
//!
//! *Constraints.* Field names are promises to users; fields are only added, as
//! optional ones. A reader takes files of its own schema version only.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod error;
pub mod file;
pub mod layout;
mod model;
mod numbers;
mod ranks;
mod text;
pub mod units;

pub use error::Error;
pub use model::*;
pub use numbers::{percent, ratio, seconds};
pub use ranks::{list_of_ranks, rank_ranges};
pub use text::words;
pub use text::{RenderOptions, render_text};

/// The schema that this version writes and reads.
pub const SCHEMA: &str = "laggard-report/1";
/// What the schema of every version of the report begins with.
const SCHEMA_FAMILY: &str = "laggard-report/";
/// The JSON Schema of [`SCHEMA`], as text.
pub const JSON_SCHEMA: &str = include_str!("../schema/laggard-report-1.schema.json");
