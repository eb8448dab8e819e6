//! What the program computed, by function.

use super::table::{self, Column, Row, column};
use super::{NOTABLE_PERCENT, finding, paragraph};
use crate::style::{Style, Tone, duration};
use crate::{FunctionTimes, Report};

/// Most functions shown.
const SHOWN: usize = 10;

const COLUMNS: &[Column] = &[
    column("%", true, None),
    column("Where most of it", false, Some(16)),
    column("All ranks", true, None),
    column("Mean", true, None),
    column("Most", true, None),
    column("by", false, None),
];

/// Appends the table, if there were samples.
pub(super) fn section(out: &mut String, report: &Report, screen: usize, style: Style) {
    let notable = report.functions.iter();
    let notable = notable.filter(|row| row.percent >= NOTABLE_PERCENT);
    let rows: Vec<Row> = notable.clone().take(SHOWN).map(row).collect();
    if rows.is_empty() {
        return;
    }
    out.push('\n');
    let title = "Computation by function (as samples tell; % of all time)";
    paragraph(out, title, screen, style, Tone::Strong);
    table::table(out, COLUMNS, &rows, screen, style);
    let hidden = notable.count() - rows.len();
    if hidden > 0 {
        let text = format!("and {hidden} more in the report file");
        paragraph(out, &text, screen, style, Tone::Faint);
    }
}

fn row(row: &FunctionTimes) -> Row {
    let plain = |text: String| (text, Tone::Plain);
    let cells = vec![
        plain(format!("{:.1}", row.percent)),
        plain(finding::place(&row.location)),
        plain(duration(row.total_s)),
        plain(duration(row.mean_s)),
        plain(duration(row.max_s)),
        plain(format!("rank {}", row.worst_rank)),
    ];
    Row { cells, note: None }
}
