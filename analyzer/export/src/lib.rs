//! Traces for other tools.
//!
//! The command is in `commands/export.rs`. All formats except OTF2 build on
//! [`laggard_engine::events`].
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod between;
mod critical;
mod cube;
mod groups;
mod joined;
mod keys;
mod location;
mod names;
mod operation;
mod otf2;
mod perfetto;
mod roots;
mod selection;
mod stacks;
mod tables;
mod target;
mod teams;

pub use critical::{Stretch, critical_path};
pub use cube::cube;
pub use laggard_tables::trace::Format as TableFormat;
pub use otf2::otf2;
pub use perfetto::perfetto;
pub use selection::{Choice, finding};
pub use stacks::{StackFormat, stacks};
pub use tables::tables;
pub use target::check;
