//! Makes texts of a report safe to show.

use laggard_report::{Cause, SourceLocation, words};

/// Most characters of a name or other word.
pub const NAME: usize = 160;
/// Most characters of a sentence.
pub const SENTENCE: usize = 600;

/// A text cut to `most` characters, without control characters and characters that reverse
/// text.
pub fn clean(text: &str, most: usize) -> String {
    let is_odd = |letter| letter != '\t' && laggard_files::is_steering(letter);
    let mut letters = text.chars();
    let kept = letters.by_ref().take(most);
    let mut clean: String = kept
        .map(|letter| if is_odd(letter) { '\u{fffd}' } else { letter })
        .collect();
    if letters.next().is_some() {
        clean.push('…');
    }
    clean
}

/// A name.
pub fn name(text: &str) -> String {
    clean(text, NAME)
}

/// A sentence.
pub fn sentence(text: &str) -> String {
    clean(text, SENTENCE)
}

/// Place of a call.
pub fn place(location: &SourceLocation) -> String {
    name(&words::place(location))
}

/// The late call and its place.
pub fn late_call(cause: &Cause) -> String {
    match cause.operation.as_str() {
        "" => "an unknown call".to_owned(),
        operation => format!(
            "{} at {}{}",
            name(operation),
            place(&cause.location),
            sentence(&words::within(cause))
        ),
    }
}

/// A number that can be drawn: finite, not negative.
pub fn amount(value: f64) -> f64 {
    if value.is_finite() {
        value.clamp(0.0, 1e15)
    } else {
        0.0
    }
}

/// `part / whole`, between 0 and 1.
pub fn share(part: f64, whole: f64) -> f64 {
    let (part, whole) = (amount(part), amount(whole));
    if whole > 0.0 {
        (part / whole).min(1.0)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_short_and_do_not_turn() {
        assert_eq!(
            clean("a\u{202e}b\u{1b}c\n", 9),
            "a\u{fffd}b\u{fffd}c\u{fffd}"
        );
        assert_eq!(clean("abcdef", 3), "abc…");
        assert_eq!(clean("äöü", 3), "äöü");
    }

    #[test]
    fn numbers_can_be_drawn() {
        assert_eq!(amount(f64::NAN), 0.0);
        assert_eq!(amount(-1.0), 0.0);
        assert_eq!(share(1.0, 0.0), 0.0);
        assert_eq!(share(f64::INFINITY, 2.0), 0.0);
        assert_eq!(share(3.0, 2.0), 1.0);
    }
}
