//! A report as a comment for a merge request.

use std::fmt::Write;

use laggard_report::units::{duration, percent};
use laggard_report::{Bottleneck, Report, RootCause, words};

use crate::markdown::{Column, escape, number, table, text};

/// Root causes in the table.
const ROOTS: usize = 5;
/// Anomalies listed.
const ANOMALIES: usize = 5;

const ROOT_CAUSES: [Column; 5] = [
    text(""),
    number("Share"),
    number("Time"),
    text("Root cause"),
    text("Try"),
];
const LOST: [Column; 6] = [
    number("#"),
    number("Share"),
    number("Lost"),
    text("Pattern"),
    text("Where"),
    text("Waits for"),
];

/// The report as Markdown, with at most `top` findings. It begins with a line by which a script finds an older comment.
pub fn to_markdown(report: &Report, top: usize) -> String {
    let mut out = String::from("<!-- laggard -->\n");
    let command = escape(&words::command(&report.run));
    let _ = writeln!(out, "### laggard: {command}\n");
    let _ = writeln!(out, "{}\n", escape(&words::verdict(report)));
    let efficiency = &report.efficiency;
    let _ = writeln!(
        out,
        "{}; parallel efficiency {} = {} load balance × {} communication\n",
        escape(&words::size_of_run(&report.run)),
        percent(100.0 * efficiency.parallel),
        percent(100.0 * efficiency.load_balance),
        percent(100.0 * efficiency.communication),
    );
    let worth = |share: f64| share >= words::NEGLIGIBLE_PERCENT;
    let roots = report.root_causes.iter().flatten();
    let roots = roots.take_while(|root| worth(root.percent)).take(ROOTS);
    table(&mut out, &ROOT_CAUSES, &roots.map(root).collect::<Vec<_>>());
    let found = report
        .bottlenecks
        .iter()
        .take_while(|found| worth(found.percent));
    let listed = found.clone().count();
    let rows = found.take(top).enumerate();
    let rows: Vec<_> = rows.map(|(at, found)| finding(at + 1, found)).collect();
    table(&mut out, &LOST, &rows);
    if listed > rows.len() {
        let _ = writeln!(out, "and {} smaller findings\n", listed - rows.len());
    }
    let alike = words::alike(&report.anomalies);
    let odd = alike
        .iter()
        .filter(|(row, ..)| row.severity.name() != "info");
    for (anomaly, count, _) in odd.take(ANOMALIES) {
        let times = if *count > 1 {
            format!(" ({count} times)")
        } else {
            String::new()
        };
        let text = format!("{}: {}{times}", anomaly.id, anomaly.detail);
        let _ = writeln!(out, "- {}", escape(&text));
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn root(root: &RootCause) -> Vec<String> {
    vec![
        root.id.clone(),
        percent(root.percent),
        duration(root.severity_s),
        words::root_cause(root),
        root.hints.first().cloned().unwrap_or_default(),
    ]
}

fn finding(number: usize, found: &Bottleneck) -> Vec<String> {
    let cause = found.causes.first();
    vec![
        number.to_string(),
        percent(found.percent),
        duration(found.severity_s),
        found.name.clone(),
        format!("{} at {}", found.operation, words::place(&found.location)),
        cause.map_or_else(String::new, |cause| words::cause(found, cause)),
    ]
}
