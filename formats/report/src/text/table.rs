//! Tables that fit the screen.

use crate::style::{Style, Tone, width, wrap};

/// Spaces between two columns.
const GAP: usize = 2;

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    /// Title.
    pub title: &'a str,
    /// Whether it is aligned right, as numbers are.
    pub right: bool,
    /// Smallest width for wrapping its text; `None`: never wrapped.
    pub least: Option<usize>,
}

/// A column with these.
pub const fn column(title: &str, right: bool, least: Option<usize>) -> Column<'_> {
    Column {
        title,
        right,
        least,
    }
}

/// One row: cells, and a line below them.
#[derive(Debug, Default)]
pub struct Row {
    /// One cell per column.
    pub cells: Vec<(String, Tone)>,
    /// Indented to the second column.
    pub note: Option<String>,
}

/// Appends the table, at most `screen` columns wide unless the smallest widths need more.
pub fn table(out: &mut String, columns: &[Column], rows: &[Row], screen: usize, style: Style) {
    let widths = widths(columns, rows, screen);
    let titles: Vec<(String, Tone)> = columns
        .iter()
        .map(|c| (c.title.to_owned(), Tone::Strong))
        .collect();
    lines(out, columns, &widths, &titles, style);
    let rule = widths.iter().sum::<usize>() + GAP * (widths.len() - 1);
    out.push_str(&style.paint(Tone::Faint, &"─".repeat(rule)));
    out.push('\n');
    let indent = widths[0] + GAP;
    for row in rows {
        lines(out, columns, &widths, &row.cells, style);
        if let Some(note) = &row.note {
            for line in wrap(note, screen.saturating_sub(indent).max(20)) {
                out.push_str(&" ".repeat(indent));
                out.push_str(&style.paint(Tone::Faint, &line));
                out.push('\n');
            }
        }
    }
}

/// Widths of the columns. Starts with natural widths and shrinks the widest wrappable column
/// until all fit.
fn widths(columns: &[Column], rows: &[Row], screen: usize) -> Vec<usize> {
    let natural = |at: usize| {
        let cells = rows.iter().map(|row| width(&row.cells[at].0));
        cells.max().unwrap_or(0).max(width(columns[at].title))
    };
    let mut widths: Vec<usize> = (0..columns.len()).map(natural).collect();
    let room = screen.saturating_sub(GAP * (columns.len() - 1));
    while widths.iter().sum::<usize>() > room {
        let shrinkable = (0..columns.len())
            .filter(|&at| columns[at].least.is_some_and(|least| widths[at] > least));
        let Some(widest) = shrinkable.max_by_key(|&at| (widths[at], columns.len() - at)) else {
            break;
        };
        widths[widest] -= 1;
    }
    widths
}

/// Appends the lines of one row.
fn lines(
    out: &mut String,
    columns: &[Column],
    widths: &[usize],
    cells: &[(String, Tone)],
    style: Style,
) {
    let wrapped: Vec<Vec<String>> = cells
        .iter()
        .zip(widths)
        .map(|((text, _), &width)| wrap(text, width))
        .collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
    for line in 0..height {
        let mut pending = 0;
        for (at, column) in columns.iter().enumerate() {
            let text = wrapped[at].get(line).map_or("", String::as_str);
            let space = widths[at].saturating_sub(width(text));
            let (before, after) = if column.right { (space, 0) } else { (0, space) };
            pending += before;
            if !text.is_empty() {
                out.push_str(&" ".repeat(pending));
                out.push_str(&style.paint(cells[at].1, text));
                pending = 0;
            }
            pending += after + GAP;
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[
        Column {
            title: "Lost",
            right: true,
            least: None,
        },
        Column {
            title: "Where",
            right: false,
            least: Some(6),
        },
        Column {
            title: "%",
            right: true,
            least: None,
        },
    ];

    fn row(cells: [&str; 3], note: Option<&str>) -> Row {
        Row {
            cells: cells
                .iter()
                .map(|c| ((*c).to_owned(), Tone::Plain))
                .collect(),
            note: note.map(str::to_owned),
        }
    }

    fn text(screen: usize) -> String {
        let rows = [
            row(["1 s", "main.c:7 f", "50"], None),
            row(["12 s", "x", "7"], Some("so")),
        ];
        let mut out = String::new();
        table(&mut out, COLUMNS, &rows, screen, Style { color: false });
        out
    }

    #[test]
    fn wide_screens_show_natural_widths() {
        assert_eq!(
            text(80),
            "Lost  Where        %\n\
             ────────────────────\n \
             1 s  main.c:7 f  50\n\
             12 s  x            7\n      \
             so\n"
        );
    }

    #[test]
    fn narrow_screens_wrap() {
        let text = text(18);
        assert!(text.contains(" 1 s  main.c:7  50\n      f\n"), "{text}");
        assert!(text.lines().all(|line| width(line) <= 18), "{text}");
    }
}
