//! The critical path as text.

use super::{paragraph, roots};
use crate::style::{Style, Tone, duration, percent, wrap};
use crate::{PathRow, Report};

/// Activities shown, and the least share of one of them, 0 to 1.
const SHOWN: usize = 5;
const LEAST: f64 = 0.05;

/// `computation between MPI_Barrier at chain.c:7 main and MPI_Send at chain.c:10 main`.
pub(crate) fn what(row: &PathRow) -> String {
    roots::activity(&row.kind, &row.operation, &row.location, row.until.as_ref())
}

/// Appends the critical path.
pub(super) fn section(out: &mut String, report: &Report, screen: usize, style: Style) {
    let Some(path) = &report.critical_path else {
        return;
    };
    // Start-up has a line of its own.
    let rows = path.profile.iter().filter(|row| row.share >= LEAST);
    let rows: Vec<_> = rows.take(SHOWN).collect();
    if rows.is_empty() {
        return;
    }
    out.push('\n');
    let title = format!(
        "Critical path: only what is on it makes the run shorter ({} without start-up)",
        duration(path.length_s - path.startup_s)
    );
    paragraph(out, &title, screen, style, Tone::Strong);
    for row in rows {
        let share = percent(100.0 * row.share);
        let least = 0.01 * row.seconds;
        let more = match row.imbalance_s > least && report.run.locations > 1 {
            true => format!(
                ", {} longer than the mean of all ranks",
                duration(row.imbalance_s)
            ),
            false => String::new(),
        };
        let text = format!("{share} ({}): {}{more}", duration(row.seconds), what(row));
        let mut indent = "  ";
        for line in wrap(&text, screen.saturating_sub(4).max(20)) {
            out.push_str(indent);
            out.push_str(&style.paint(Tone::Plain, &line));
            out.push('\n');
            indent = "    ";
        }
    }
    let phases = path.phases.iter().take(SHOWN);
    let phases = phases.map(|phase| format!("{} {}", phase.phase, percent(100.0 * phase.share)));
    let phases: Vec<_> = phases.collect();
    if !phases.is_empty() {
        let text = format!("By phase: {}", phases.join(", "));
        paragraph(out, &text, screen, style, Tone::Plain);
    }
}
