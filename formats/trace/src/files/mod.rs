//! Locations in files: in files of their own, and many in one.

pub mod node;
pub mod read;
