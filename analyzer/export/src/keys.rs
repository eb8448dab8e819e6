//! Keys of rows in dictionaries of tables.

use laggard_engine::events::NONE;
use laggard_patterns::PatternId;
use laggard_tables::trace::Key;
use laggard_trace::calls::{self, user};

/// The key of a call by its number in the table of calls.
pub fn call_key(number: u16) -> Key {
    let region = || Some(calls::CALLS.len() + 1 + user::position(number)?);
    let at = calls::position(number).or_else(region);
    Key(at.unwrap_or(calls::CALLS.len()) as u32)
}

/// The key of a communicator, window or file by its position.
pub fn group_key(group: u32) -> Option<Key> {
    (group != NONE).then_some(Key(group))
}

/// The key of a pattern by its number.
pub fn pattern_key(number: u8) -> Key {
    let id = PatternId::from_number(number);
    let at = PatternId::ALL.iter().position(|&known| Some(known) == id);
    Key(at.unwrap_or(0) as u32)
}
