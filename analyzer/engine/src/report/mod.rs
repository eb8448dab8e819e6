//! From folded findings to the report: places, reasons, hints, calls that never returned.

pub mod around;
pub mod build;
pub mod deadlock;
pub mod eager;
mod finding;
pub mod hints;
mod ids;
mod once;
mod path;
pub mod reasons;
mod roots;
mod times;
mod traffic;
