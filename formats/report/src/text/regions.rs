//! Regions of the program whose ranks, or instances, differ.

use super::table::{self, Column, Row, column};
use super::{finding, paragraph};
use crate::style::{Style, Tone, count, duration};
use crate::{Region, Report};

/// Most regions shown.
const SHOWN: usize = 10;

const COLUMNS: &[Column] = &[
    column("Region", false, Some(12)),
    column("Calls", true, None),
    column("Mean", true, None),
    column("Most", true, None),
    column("by", false, None),
    column("Where", false, Some(16)),
    column("What", false, Some(16)),
];

/// Appends the table, if it has rows.
pub(super) fn regions(out: &mut String, report: &Report, screen: usize, style: Style) {
    let marked = report.regions.iter().filter(|r| r.filter != "none");
    let marked: Vec<&Region> = marked.collect();
    if marked.is_empty() {
        return;
    }
    out.push('\n');
    let title = "Regions that differ (time outside of calls and nested regions, per rank)";
    paragraph(out, title, screen, style, Tone::Strong);
    let rows: Vec<Row> = marked
        .iter()
        .take(SHOWN)
        .map(|region| row(region))
        .collect();
    table::table(out, COLUMNS, &rows, screen, style);
    if marked.len() > SHOWN {
        let text = format!("and {} more in the report file", marked.len() - SHOWN);
        paragraph(out, &text, screen, style, Tone::Faint);
    }
}

fn row(region: &Region) -> Row {
    let plain = |text: String| (text, Tone::Plain);
    let what = match &*region.filter {
        "imbalance" => format!(
            "{:.2} times the mean; others may wait {}",
            region.imbalance,
            duration(region.imbalance_s)
        ),
        _ => format!(
            "a call takes {} on average, up to {}",
            duration(region.instance_mean_s),
            duration(region.instance_max_s)
        ),
    };
    let cells = vec![
        plain(region.region.clone()),
        plain(count(region.calls)),
        plain(duration(region.mean_s)),
        plain(duration(region.max_s)),
        plain(format!("rank {}", region.worst_rank)),
        plain(finding::place(&region.location)),
        plain(what),
    ];
    Row { cells, note: None }
}
