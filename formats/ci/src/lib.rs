//! Reports for scripts and for continuous integration.
//!
//! *Purpose.* [`to_markdown`] makes a comment for a merge request, [`to_junit`] test cases, and
//! [`to_openmetrics`] numbers for a monitoring system. [`markdown`], [`junit`] and [`metrics`] are also
//! used for results over several reports.
//!
//! *Constraints.* Names in a report are hostile input: in each format they stay text, and their
//! length is bounded. The same report gives the same bytes.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod comment;
pub mod junit;
pub mod markdown;
pub mod metrics;
mod verdicts;

pub use comment::to_markdown;
pub use metrics::to_openmetrics;
pub use verdicts::to_junit;
