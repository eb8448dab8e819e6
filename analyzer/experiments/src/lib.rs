//! Reports of several runs: revisions compared, scaling over sizes.
//!
//! *Purpose.* Answers that one report cannot give: whether a change of the program made it faster
//! and which bottlenecks came and went ([`compare()`]), and what a program loses as it runs on more
//! ranks ([`scale()`]).
//!
//! *Data flow.* Lists of [`Run`]s, repeats together, become experiments ([`set`]). Findings and
//! regions of different experiments are matched ([`matching`]), and their differences compared with
//! the noise of the repeats ([`noise`]). Results are data. [`to_json`] writes them according to the
//! JSON Schemas in `schema/`. Other functions turn them into text and SVG.
//!
//! *Constraints.* Pure functions over [`laggard_report::Report`]: no files, no MPI. All numbers
//! come from reports, so nothing here depends on how many agents analysed a run.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod compare;
mod error;
mod layout;
pub mod matching;
pub mod noise;
mod plot;
pub mod scale;
pub mod set;
#[cfg(test)]
mod testing;

pub use compare::{COMPARE_SCHEMA, Comparison, compare};
pub use error::Error;
pub use plot::PlotError;
pub use scale::{SCALE_SCHEMA, Scaling, scale};
pub use set::Run;

/// The JSON Schema of a [`Comparison`], as text.
pub const COMPARE_JSON_SCHEMA: &str = include_str!("../schema/laggard-compare-1.schema.json");
/// The JSON Schema of a [`Scaling`], as text.
pub const SCALE_JSON_SCHEMA: &str = include_str!("../schema/laggard-scale-1.schema.json");

/// A result as the content of a file.
pub fn to_json(result: &impl serde::Serialize) -> String {
    // Strings, numbers and vectors only, which always serialise.
    let mut text = serde_json::to_string_pretty(result).unwrap_or_default();
    text.push('\n');
    text
}

/// Rounds seconds to the ns, and other values to as many digits: the last digits of sums are not
/// accurate.
fn rounded(value: f64) -> f64 {
    let rounded = (value * 1e9).round() / 1e9;
    // No negative zero.
    rounded + 0.0
}
