//! Texts and tables in GitHub's and GitLab's Markdown.

/// Most characters of a text.
pub(crate) const MOST: usize = 400;
/// Breaks what sites make links of, and is not seen.
const JOINER: char = '\u{2060}';
/// Marks that, before a word, refer to people, issues and the like.
const REFERENCES: &str = "@#!$%&~^";

/// A text that shows as it is, within a line: no markup, no element of HTML, no link, nobody
/// mentioned. Cut to a length.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    // Blanks at the start of a line would mean something.
    let mut letters = text.trim_start().chars().peekable();
    let mut before = None;
    for _ in 0..MOST {
        let Some(letter) = letters.next() else {
            return escaped;
        };
        let next = letters.peek().copied();
        match letter {
            '\u{a0}' => escaped.push(letter),
            letter if letter.is_whitespace() => escaped.push(' '),
            letter if laggard_files::is_steering(letter) => escaped.push('\u{fffd}'),
            letter => {
                // Behind it, a mark would be taken for a part of a host's name.
                if letter == '@' && before.is_some() {
                    escaped.push(JOINER);
                }
                if is_markup(before, letter, next) {
                    escaped.push('\\');
                }
                escaped.push(letter);
            }
        }
        if is_linked(before, letter, next) {
            escaped.push(JOINER);
        }
        before = Some(letter);
    }
    if letters.next().is_some() {
        escaped.push('…');
    }
    escaped
}

/// Whether a letter means something here.
fn is_markup(before: Option<char>, letter: char, next: Option<char>) -> bool {
    let is_in_word = |beside: Option<char>| beside.is_some_and(char::is_alphanumeric);
    match letter {
        '\\' | '`' | '*' | '[' | ']' | '<' | '&' | '|' | '~' | '$' | '{' | '#' => true,
        '_' => !is_in_word(before) || !is_in_word(next),
        // Items of lists, quotations and rules begin a line.
        '-' | '+' | '=' | '>' => before.is_none(),
        '.' | ')' => {
            before.is_some_and(|digit| digit.is_ascii_digit())
                && next.is_none_or(char::is_whitespace)
        }
        _ => false,
    }
}

/// Whether something that sites link, or replace by a picture, goes on here.
fn is_linked(before: Option<char>, letter: char, next: Option<char>) -> bool {
    let Some(next) = next else {
        return false;
    };
    match letter {
        // `https://`, `:smile:`, `mailto:`.
        ':' => next.is_ascii_alphabetic() || matches!(next, '/' | '+' | '-'),
        // `www.`
        'w' | 'W' => next == '.' && matches!(before, Some('w' | 'W')),
        letter => REFERENCES.contains(letter) && (next.is_alphanumeric() || next == '_'),
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// What stands above it.
    pub title: &'static str,
    /// Whether it holds numbers.
    pub right: bool,
}

/// A column of text.
pub const fn text(title: &'static str) -> Column {
    Column {
        title,
        right: false,
    }
}

/// A column of numbers.
pub const fn number(title: &'static str) -> Column {
    Column { title, right: true }
}

/// Appends a table; nothing without rows. Cells are [escaped](escape) here.
pub fn table(out: &mut String, columns: &[Column], rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    let mut line = |cells: &mut dyn Iterator<Item = String>| {
        out.push('|');
        for cell in cells {
            out.push(' ');
            out.push_str(&cell);
            out.push_str(" |");
        }
        out.push('\n');
    };
    line(&mut columns.iter().map(|column| escape(column.title)));
    let rule = |column: &Column| if column.right { "---:" } else { "---" }.to_owned();
    line(&mut columns.iter().map(rule));
    for row in rows {
        line(&mut row.iter().map(|cell| escape(cell)));
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What remains for the eye.
    fn shown(text: &str) -> String {
        text.replace(['\\', JOINER], "")
    }

    #[test]
    fn texts_stay_texts() {
        for (text, escaped) in [
            ("3.5 %, in all", "3.5 %, in all"),
            ("MPI_Recv at a.c:14 f(int)", "MPI_Recv at a.c:14 f(int)"),
            ("a|b`c`", "a\\|b\\`c\\`"),
            ("<img src=x>", "\\<img src=x>"),
            ("_a_b __c__", "\\_a_b \\_\\_c\\_\\_"),
            ("- a - b", "\\- a - b"),
            ("1. a", "1\\. a"),
            (
                "@all #12 x@y",
                "@\u{2060}all \\#\u{2060}12 x\u{2060}@\u{2060}y",
            ),
            ("https://e.org", "https:\u{2060}//e.org"),
            ("www.e.org", "www\u{2060}.e.org"),
            ("a\n\nb\u{1b}[2J\u{202e}", "a  b\u{fffd}\\[2J\u{fffd}"),
            ("\t     code", "code"),
        ] {
            assert_eq!(escape(text), escaped);
        }
        let lambda = "std::heart::f(lambda()#1)";
        assert_eq!(shown(&escape(lambda)), lambda);
        let long = escape(&"x".repeat(MOST + 1));
        assert_eq!(long.chars().count(), MOST + 1);
        assert!(long.ends_with('…') && !escape(&"x".repeat(MOST)).ends_with('…'));
    }

    #[test]
    fn cells_do_not_leave_their_table() {
        let mut out = String::new();
        let columns = [text("Where"), number("Lost")];
        table(&mut out, &columns, &[vec!["a|b\n|c".into(), "1 s".into()]]);
        assert_eq!(
            out,
            "| Where | Lost |\n| --- | ---: |\n| a\\|b \\|c | 1 s |\n\n"
        );
        out.clear();
        table(&mut out, &columns, &[]);
        assert_eq!(out, "");
    }
}
