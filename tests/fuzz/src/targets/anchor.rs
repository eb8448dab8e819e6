//! Checks of an archive's anchor file before the library reads it.

use laggard_otf2::check_anchor;

/// Accepts or rejects the file.
pub fn anchor(bytes: &[u8]) {
    let _ = check_anchor(bytes);
}
