//! Files that others wrote, files that others read, and what both say on a terminal.
//!
//! *Purpose.* A trace, a report or a table may come from anybody, and so may the directory it
//! lies in. [`open`] and [`read`] open regular files only, wait for nobody, and take no more
//! memory than the caller allows. [`leaves_directory`] finds links that lead elsewhere. [`Part`]
//! and [`replace`] write files that are there as a whole or not at all, and follow no link.
//! [`printable`] takes from a text what steers a terminal.
//!
//! *Constraints.* Clippy refuses other ways to open files in the crates that read or write for a
//! user (`clippy.toml`).
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod input;
mod output;
mod text;

pub use input::{exists, leaves_directory, open, open_beside, read};
pub use output::{Part, Place, check, replace};
pub use text::{is_steering, printable};
