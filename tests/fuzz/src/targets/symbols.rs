//! Names and lines for addresses, from a module that a trace names.

use std::fs;

use laggard_engine::symbols::Symbols;

use super::scratch;

/// Addresses to look up beside those in the file's own tables.
const ADDRESSES: [u64; 6] = [0, 0x1000, 0x1139, 0x40_1136, 1 << 40, u64::MAX];

/// Looks up some addresses in a file: fixed ones, the entry point, and words of the file.
pub fn symbols(bytes: &[u8]) {
    let path = scratch().join("module");
    fs::write(&path, bytes).expect("a file");
    let path = path.to_str().expect("a path that is text");
    // Separate debug files are searched here, and are the same file.
    let mut symbols = Symbols::with_debug_roots(vec![scratch().to_owned()]);
    let word = |at: usize| {
        let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
        word.map_or(0, |word| u64::from_le_bytes(*word))
    };
    let entry = word(24);
    let near = (0..16).map(|step| entry.wrapping_add(step * 32));
    for address in ADDRESSES.into_iter().chain(near) {
        let lines = symbols.resolve(path, &[], address);
        assert!(!lines.is_empty(), "an address without a name");
    }
    let _ = symbols.anomalies();
}
