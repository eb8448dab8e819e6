//! Foreign text on its way to a terminal, a line-based format, or XML.

use std::borrow::Cow;

/// Whether a character does more than appear: control characters, which steer terminals and end
/// lines; those that reverse text; and those that XML cannot hold.
pub fn is_steering(letter: char) -> bool {
    let turns = matches!(
        letter,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    let ends_lines = matches!(letter, '\u{2028}' | '\u{2029}');
    let is_no_letter = matches!(letter, '\u{fffe}' | '\u{ffff}');
    letter.is_control() || turns || ends_lines || is_no_letter
}

/// The text with `\u{fffd}` for each such character.
pub fn printable(text: &str) -> Cow<'_, str> {
    match text.contains(is_steering) {
        true => Cow::Owned(text.replace(is_steering, "\u{fffd}")),
        false => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_steers() {
        let text = "a\u{1b}[31mb\u{9b}c\u{7f}d\ne\u{202e}f\u{2067}g\u{2028}h\u{ffff}";
        let clean = printable(text);
        assert_eq!(
            clean.chars().filter(|&letter| letter == '\u{fffd}').count(),
            8
        );
        assert_eq!(clean.replace('\u{fffd}', ""), "a[31mbcdefgh");
        assert!(matches!(printable("größer als 1 µs"), Cow::Borrowed(_)));
    }
}
