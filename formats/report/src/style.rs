//! Format of numbers and words.

use unicode_width::UnicodeWidthStr;

/// Stands between a number and its unit: [`wrap`] does not break lines here, and turns it into
/// a space.
pub const GLUE: char = '\u{a0}';

/// Colours words if the output supports it.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Whether it supports colours.
    pub color: bool,
}

/// The role of a word, which decides its looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Normal text.
    Plain,
    /// A title.
    Strong,
    /// Text to skip.
    Faint,
    /// Text to see first.
    Alarm,
    /// Text to see next.
    Caution,
}

impl Style {
    /// The text in this tone.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Strong => "1",
            Tone::Faint => "2",
            Tone::Alarm => "1;31",
            Tone::Caution => "33",
        };
        if self.color && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Tone for a share of the whole time.
pub fn tone_of_percent(percent: f64) -> Tone {
    match percent {
        p if p >= 10.0 => Tone::Alarm,
        p if p >= 1.0 => Tone::Caution,
        _ => Tone::Plain,
    }
}

/// Three digits and a unit: `12.3 s`, `50.0 ms`, `1.20 µs`.
pub fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds.abs() {
        s if s >= 0.999_5 => (seconds, "s"),
        s if s >= 0.000_999_5 => (seconds * 1e3, "ms"),
        s if s >= 0.000_000_999_5 => (seconds * 1e6, "µs"),
        s if s > 0.0 => (seconds * 1e9, "ns"),
        _ => return format!("0{GLUE}s"),
    };
    format!("{}{GLUE}{unit}", three_digits(value))
}

/// `1.23 kB`: powers of 1000.
pub fn size(bytes: u64) -> String {
    let bytes_f = bytes as f64;
    let (value, unit) = match bytes_f {
        b if b >= 999.5e6 => (b / 1e9, "GB"),
        b if b >= 999.5e3 => (b / 1e6, "MB"),
        b if b >= 1e3 => (b / 1e3, "kB"),
        _ => return format!("{bytes}{GLUE}B"),
    };
    format!("{}{GLUE}{unit}", three_digits(value))
}

/// `12 345 678`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(GLUE);
        }
        text.push(digit);
    }
    text
}

/// `41 %`, `3.7 %`, `0.10 %`.
pub fn percent(value: f64) -> String {
    match value {
        v if v >= 99.95 || v == 0.0 => format!("{v:.0}{GLUE}%"),
        v if v >= 0.995 => format!("{v:.1}{GLUE}%"),
        v => format!("{v:.2}{GLUE}%"),
    }
}

/// `123`, `12.3`, `1.23`.
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// The last part of a path.
pub fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Width of a text, columns.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Lines of at most `columns`, broken at spaces, and inside longer words.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text
        .split([' ', '\n', '\t'])
        .filter(|word| !word.is_empty())
    {
        if !line.is_empty() && width(&line) + 1 + width(word) > columns {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        for letter in word.chars() {
            if width(&line) + width(letter.encode_utf8(&mut [0; 4])) > columns && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            line.push(match letter {
                GLUE => ' ',
                // A file's text must not steer the terminal.
                letter if laggard_files::is_steering(letter) => '\u{fffd}',
                letter => letter,
            });
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// `1 rank`, `4 ranks`.
pub fn plural(number: u64, word: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {word}{ending}", count(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_have_three_digits() {
        let duration = |s| wrap(&super::duration(s), 80).concat();
        let size = |b| wrap(&super::size(b), 80).concat();
        let count = |n| wrap(&super::count(n), 80).concat();
        let percent = |p| wrap(&super::percent(p), 80).concat();
        assert_eq!(duration(12.34), "12.3 s");
        assert_eq!(duration(1234.0), "1234 s");
        assert_eq!(duration(0.05), "50.0 ms");
        assert_eq!(duration(0.9996), "1.00 s");
        assert_eq!(duration(0.000_001_2), "1.20 µs");
        assert_eq!(duration(3e-9), "3.00 ns");
        assert_eq!(duration(0.0), "0 s");
        assert_eq!(size(999), "999 B");
        assert_eq!(size(1_234_567), "1.23 MB");
        assert_eq!(count(1234567), "1 234 567");
        assert_eq!(count(123), "123");
        assert_eq!(percent(36.3821), "36.4 %");
        assert_eq!(percent(0.1016), "0.10 %");
        assert_eq!(percent(100.0), "100 %");
        assert_eq!(percent(0.0), "0 %");
    }

    #[test]
    fn words_are_painted_only_if_asked() {
        assert_eq!(Style { color: false }.paint(Tone::Alarm, "x"), "x");
        assert_eq!(
            Style { color: true }.paint(Tone::Alarm, "x"),
            "\x1b[1;31mx\x1b[0m"
        );
        assert_eq!(Style { color: true }.paint(Tone::Plain, "x"), "x");
    }

    #[test]
    fn long_words_are_broken() {
        assert_eq!(wrap("a bc defghij", 4), ["a bc", "defg", "hij"]);
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap("a\u{1b}[2Jb", 9), ["a\u{fffd}[2Jb"]);
        assert_eq!(wrap(&format!("in {}", duration(1.0)), 6), ["in", "1.00 s"]);
    }

    proptest! {
        #[test]
        fn lines_fit_and_lose_nothing(text in "[a-zé ]{0,60}", columns in 1usize..20) {
            let lines = wrap(&text, columns);
            prop_assert!(lines.iter().all(|line| width(line) <= columns));
            let letters = |t: &str| t.split_whitespace().collect::<String>();
            prop_assert_eq!(letters(&lines.join(" ")).replace(' ', ""), letters(&text));
        }
    }
}
