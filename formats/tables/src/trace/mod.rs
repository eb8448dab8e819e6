//! Everything that a trace tells as tables, one file each, in a directory.

mod cell;
mod directory;
mod rows;
#[cfg(test)]
mod tests;

pub use cell::{Dictionaries, Key, Row};
pub use directory::{Encoded, Encoder, Format, Rows, Table, Tables};
pub use rows::*;

/// What the tables of this version are called in their metadata, under `laggard.schema`.
pub const SCHEMA: &str = "laggard-trace-tables/1";
