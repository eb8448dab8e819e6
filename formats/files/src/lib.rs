//! Safe input, output and display of files that others write or read.
//!
//! *Purpose.* A trace, a report or a table may come from anybody, and so may its directory.
//! [`open`] and [`read`] open regular files only, never block, and take no more memory than the
//! caller allows. [`leaves_directory`] finds links that lead elsewhere. [`Part`] and
//! [`replace`] write a file completely or not at all, and follow no link. [`printable`] removes
//! characters that steer a terminal.
//!
//! *Constraints.* Clippy refuses other ways to open files in the crates that read or write for
//! a user (`clippy.toml`).
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod input;
mod output;
mod text;

pub use input::{exists, leaves_directory, open, open_beside, read};
pub use output::{Part, Place, check, replace};
pub use text::{is_steering, printable};
