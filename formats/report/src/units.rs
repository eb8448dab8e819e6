//! Numbers for users, with one format in all output of laggard.

use crate::style::{self, GLUE};

fn spaced(text: &str) -> String {
    text.replace(GLUE, " ")
}

/// Three digits and a unit: `12.3 s`, `50.0 ms`, `1.20 µs`.
pub fn duration(seconds: f64) -> String {
    spaced(&style::duration(seconds))
}

/// Powers of 1000: `1.23 MB`.
pub fn size(bytes: u64) -> String {
    spaced(&style::size(bytes))
}

/// Groups of three digits: `12 345 678`.
pub fn count(number: u64) -> String {
    spaced(&style::count(number))
}

/// `1 rank`, `4 ranks`.
pub fn plural(number: u64, word: &str) -> String {
    spaced(&style::plural(number, word))
}

/// `36.4 %`.
pub fn percent(value: f64) -> String {
    spaced(&style::percent(value))
}

/// Lines of at most `columns`, broken at spaces, and inside longer words.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    style::wrap(text, columns)
}

#[cfg(test)]
mod tests {
    #[test]
    fn gaps_are_spaces() {
        assert_eq!(super::duration(12.34), "12.3 s");
        assert_eq!(super::size(1_234_567), "1.23 MB");
        assert_eq!(super::count(12_345), "12 345");
        assert_eq!(super::percent(36.38), "36.4 %");
        assert_eq!(super::plural(1, "rank"), "1 rank");
        assert_eq!(super::plural(1_000, "call"), "1 000 calls");
    }
}
