//! Locations in files: in files of their own, and many in one.

mod advice;
pub mod node;
mod now;
pub mod read;
