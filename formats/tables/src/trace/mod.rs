//! The whole content of a trace as tables, one file each, in a directory.

mod cell;
mod directory;
mod rows;
#[cfg(test)]
mod tests;

pub use cell::{Dictionaries, Key, Row};
pub use directory::{Encoded, Encoder, Format, Rows, Table, Tables};
pub use rows::*;

/// Value of `laggard.schema` in the metadata of these tables.
pub const SCHEMA: &str = "laggard-trace-tables/1";
