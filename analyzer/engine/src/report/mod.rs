//! From folded findings to the report: places, reasons, hints, what hangs.

pub mod around;
pub mod build;
pub mod deadlock;
pub mod eager;
pub mod hints;
pub mod reasons;
