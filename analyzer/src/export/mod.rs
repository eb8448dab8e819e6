//! Traces for other tools.

mod groups;
mod location;
mod operation;
mod otf2;

pub use otf2::otf2;
