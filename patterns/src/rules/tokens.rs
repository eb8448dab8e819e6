//! The words, numbers and signs of expressions.

use super::expression::Wrong;

/// The smallest part of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// Multiplied by its unit.
    Number(f64),
    /// Text in quotes.
    Text(String),
    /// A fact, or a word such as `and`.
    Word(String),
    /// One of [`SIGNS`].
    Sign(&'static str),
    /// Nothing follows.
    End,
}

/// Signs; comparisons come first, and longer signs before their prefixes.
pub(super) const SIGNS: [&str; 13] = [
    "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "(", ")", ",",
];

/// Units after a number, with their factors.
const UNITS: [(&str, f64); 10] = [
    ("s", 1.0),
    ("ms", 1e-3),
    ("us", 1e-6),
    ("ns", 1e-9),
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("%", 0.01),
];

/// The tokens of a text, each with its position in bytes.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, Wrong> {
    let mut tokens = Vec::new();
    let mut at = 0;
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end_of = |from: usize, is_part: &dyn Fn(char) -> bool| {
        let rest = &text[from..];
        from + rest.find(|c| !is_part(c)).unwrap_or(rest.len())
    };
    while let Some(first) = text[at..].chars().next() {
        let begin = at;
        let wrong = |why: String| Err(Wrong { at: begin, why });
        let token = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if first == '"' || first == '\'' {
            let Some(length) = text[at + 1..].find(first) else {
                return wrong("this text does not end".to_owned());
            };
            at += length + 2;
            Token::Text(text[begin + 1..at - 1].to_owned())
        } else if first.is_ascii_digit() {
            at = end_of(at, &|c| c.is_ascii_digit() || c == '.');
            let Ok(number) = text[begin..at].parse::<f64>() else {
                return wrong(format!("{} is not a number", &text[begin..at]));
            };
            let unit = end_of(at, &|c| c == ' ');
            let end = match text[unit..].starts_with('%') {
                true => unit + 1,
                false => end_of(unit, &is_word),
            };
            let word = &text[unit..end];
            let factor = UNITS.iter().find(|(name, _)| *name == word);
            at = factor.map_or(at, |_| end);
            Token::Number(number * factor.map_or(1.0, |(_, factor)| *factor))
        } else if is_word(first) {
            at = end_of(at, &is_word);
            Token::Word(text[begin..at].to_owned())
        } else if let Some(sign) = SIGNS.iter().find(|sign| text[at..].starts_with(**sign)) {
            at += sign.len();
            Token::Sign(sign)
        } else {
            return wrong(format!("{first} means nothing here"));
        };
        tokens.push((begin, token));
    }
    tokens.push((text.len(), Token::End));
    Ok(tokens)
}
