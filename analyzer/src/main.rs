//! The `laggard` command.
fn main() {}
