//! What is looked at in an archive's anchor file before the library reads it.

use laggard_otf2::check_anchor;

/// Judges the file, in one way or the other.
pub fn anchor(bytes: &[u8]) {
    let _ = check_anchor(bytes);
}
