//! Messages to the user: on stderr, one line each, with the rank.

use std::io::Write;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};

use crate::call::uncancelled;

/// Severity of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// The recording is damaged.
    Error,
    /// A request of the user could not be met.
    Warn,
    /// The choices made.
    Info,
    /// For developers.
    Debug,
}

static LEVEL: AtomicU8 = AtomicU8::new(Level::Warn as u8);
static RANK: AtomicI32 = AtomicI32::new(-1);

/// Shows messages up to this level.
pub fn set_level(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// States the rank that messages begin with.
pub fn set_rank(rank: i32) {
    RANK.store(rank, Ordering::Relaxed);
}

/// Writes a message; see the macros.
pub fn write(level: Level, text: std::fmt::Arguments<'_>) {
    if level as u8 > LEVEL.load(Ordering::Relaxed) {
        return;
    }
    let line = match RANK.load(Ordering::Relaxed) {
        rank if rank < 0 => format!("laggard: {text}\n"),
        rank => format!("laggard[{rank}]: {text}\n"),
    };
    // One write, so that lines of several ranks do not mix. A failure cannot be reported.
    let _ = uncancelled(|| std::io::stderr().write_all(line.as_bytes()));
}

macro_rules! error { ($($text:tt)*) => { $crate::log::write($crate::log::Level::Error, format_args!($($text)*)) } }
macro_rules! warning { ($($text:tt)*) => { $crate::log::write($crate::log::Level::Warn, format_args!($($text)*)) } }
macro_rules! info { ($($text:tt)*) => { $crate::log::write($crate::log::Level::Info, format_args!($($text)*)) } }
macro_rules! debug { ($($text:tt)*) => { $crate::log::write($crate::log::Level::Debug, format_args!($($text)*)) } }
pub(crate) use {debug, error, info, warning};
