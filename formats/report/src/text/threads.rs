//! Computation that the threads of a rank share unevenly before they meet.

use super::table::{self, Column, Row, column};
use super::{NOTABLE_PERCENT, crowd, finding, paragraph};
use crate::style::{Style, Tone, duration};
use crate::{Report, ThreadImbalance};

/// Most places shown.
const SHOWN: usize = 5;

const COLUMNS: &[Column] = &[
    column("Before", false, Some(9)),
    column("Where", false, Some(9)),
    column("Mean", true, None),
    column("Most", true, None),
    column("by", false, Some(8)),
    column("Uneven", true, None),
    column("%", true, None),
];

/// Appends the table, if it has rows.
pub(super) fn section(out: &mut String, report: &Report, screen: usize, style: Style) {
    let notable = report.thread_imbalance.iter();
    let notable = notable.filter(|row| row.percent >= NOTABLE_PERCENT);
    let rows: Vec<Row> = notable.clone().take(SHOWN).map(row).collect();
    if rows.is_empty() {
        return;
    }
    out.push('\n');
    let title = "Threads that share unevenly (what they compute before they meet)";
    paragraph(out, title, screen, style, Tone::Strong);
    table::table(out, COLUMNS, &rows, screen, style);
    let hidden = notable.count() - rows.len();
    if hidden > 0 {
        let text = format!("and {hidden} more in the report file");
        paragraph(out, &text, screen, style, Tone::Faint);
    }
    if let Some(advice) = advice(report) {
        finding::labelled(out, "What to try", &advice, screen, style);
    }
}

fn row(row: &ThreadImbalance) -> Row {
    let plain = |text: String| (text, Tone::Plain);
    let cells = vec![
        plain(row.before.clone()),
        plain(finding::place(&row.location)),
        plain(duration(row.rank_mean_s)),
        plain(duration(row.max_s)),
        plain(who(row)),
        plain(duration(row.overload_s)),
        plain(format!("{:.1}", row.percent)),
    ];
    Row { cells, note: None }
}

/// `thread 1 of rank 0`, and for how long it was off the processor, if that is why it came last.
pub(crate) fn who(row: &ThreadImbalance) -> String {
    let off = off(row).map(|off| format!(", off the processor for {}", duration(off)));
    format!("{}{}", thread(row), off.unwrap_or_default())
}

fn thread(row: &ThreadImbalance) -> String {
    format!("thread {} of rank {}", row.worst_thread, row.worst_rank)
}

/// How long the thread that came last was off the processor, s, if that is half of what it was longer, or more.
fn off(row: &ThreadImbalance) -> Option<f64> {
    let beyond = row.max_s - row.rank_mean_s;
    row.max_off_s.filter(|off| *off >= beyond / 2.0)
}

/// What to do about the place where threads share most unevenly, and how much earlier its rank goes on
/// then.
pub(crate) fn advice(report: &Report) -> Option<String> {
    let row = report.thread_imbalance.first()?;
    if row.percent < NOTABLE_PERCENT {
        return None;
    }
    if let Some(off) = off(row) {
        return Some(format!(
            "see first why {} is asleep, blocked or without a processor for {}",
            thread(row),
            duration(off)
        ));
    }
    let how = match &*row.before {
        "pthread_barrier_wait" => "divide the work among the threads more equally",
        _ => {
            "schedule(dynamic) or smaller parts for a loop, tasks or sections for what one thread does alone"
        }
    };
    let text = format!(
        "shared equally, rank {} has done this {} earlier: {how}",
        row.worst_rank,
        duration(row.max_s - row.rank_mean_s)
    );
    Some(match crowd(report) {
        None => text,
        Some(crowd) => {
            format!(
                "first give each thread a core, since {crowd}; if it is uneven then, too, {text}"
            )
        }
    })
}
