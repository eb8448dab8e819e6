//! Root causes as text.

use super::style::{Style, Tone, duration, percent, wrap};
use super::{NEGLIGIBLE_PERCENT, finding, paragraph};
use crate::ranks::list_of_ranges;
use crate::{Report, RootCause, Victim};

/// Root causes shown.
const SHOWN: usize = 5;
/// Waiting calls shown for each, and the least share of one of them.
const VICTIMS: usize = 2;
const LEAST_SHARE: f64 = 0.05;
/// Ranges of ranks shown for each.
const RANGES: usize = 8;
/// Width of the number before a root cause, columns.
const NUMBER: usize = 4;

/// The root causes to be listed.
pub(crate) fn listed(report: &Report) -> &[RootCause] {
    let all = report.root_causes.as_deref().unwrap_or_default();
    &all[..all.partition_point(|root| root.percent >= NEGLIGIBLE_PERCENT)]
}

/// `rank 0 computed between MPI_Barrier at chain.c:7 main and MPI_Send at chain.c:10 main`.
pub(crate) fn what(root: &RootCause) -> String {
    let ranks = list_of_ranges(&root.rank_set, RANGES);
    let call = |operation: &str, location| format!("{operation} at {}", finding::place(location));
    let begin = call(&root.operation, &root.location);
    let until = root
        .until
        .as_ref()
        .map(|until| call(&until.operation, &until.location));
    match (root.activity.as_str(), until) {
        ("computation", Some(until)) if root.operation.is_empty() => {
            format!("{ranks} computed until {until}")
        }
        ("computation", Some(until)) if until == begin => {
            format!("{ranks} computed between calls of {until}")
        }
        ("computation", Some(until)) => format!("{ranks} computed between {begin} and {until}"),
        ("latency", Some(until)) => {
            format!("{until} took longer than {ranks} came late with {begin}")
        }
        _ => format!("{ranks} took longer in {begin}"),
    }
}

/// Who waits because of it.
pub(crate) fn victim(victim: &Victim) -> String {
    format!(
        "{} waited {} in {} at {}",
        list_of_ranges(&victim.rank_set, RANGES),
        duration(victim.severity_s),
        victim.operation,
        finding::place(&victim.location)
    )
}

/// How the waiting came about.
fn way(root: &RootCause) -> String {
    let share = percent(crate::percent(root.indirect_s, root.severity_s));
    let ranks = list_of_ranges(&root.rank_set, RANGES);
    match root.indirect_s > 0.005 * root.severity_s && !root.rank_set.is_empty() {
        true => format!("; {share} of it for others who waited for {ranks}"),
        false => String::new(),
    }
}

/// Appends the root causes.
pub(super) fn section(out: &mut String, report: &Report, screen: usize, style: Style) {
    let Some(all) = &report.root_causes else {
        return;
    };
    let listed = listed(report);
    if listed.is_empty() {
        return;
    }
    out.push('\n');
    paragraph(
        out,
        "Root causes: who started the waiting",
        screen,
        style,
        Tone::Strong,
    );
    for (at, root) in listed.iter().take(SHOWN).enumerate() {
        let tone = super::style::tone_of_percent(root.percent);
        let share = percent(root.percent);
        let title = format!("{share} ({}): {}", duration(root.severity_s), what(root));
        let is_much = |victim: &&Victim| victim.severity_s >= LEAST_SHARE * root.severity_s;
        let victims = root.victims.iter().take(VICTIMS).take_while(is_much);
        let victims: Vec<_> = victims.map(victim).collect();
        let hidden = root.victims.len() - victims.len();
        let victims = victims.join(", ");
        let more = match hidden {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let lines = [
            (title, tone),
            (format!("{victims}{more}{}", way(root)), Tone::Plain),
        ];
        let mut number = format!("{:<NUMBER$}", format!("{}.", at + 1));
        for (text, tone) in lines {
            for line in wrap(&text, screen.saturating_sub(NUMBER).max(20)) {
                out.push_str(&number);
                out.push_str(&style.paint(tone, &line));
                out.push('\n');
                number = " ".repeat(NUMBER);
            }
        }
    }
    let hidden = listed.len().saturating_sub(SHOWN);
    let untraced = report.untraced_s.unwrap_or(0.0);
    let untraced = match crate::percent(untraced, report.sums().wall_s) >= NEGLIGIBLE_PERCENT {
        true => format!(
            "; of {} waiting nobody knows who started it",
            duration(untraced)
        ),
        false => String::new(),
    };
    let more = match all.len() - listed.len().min(SHOWN) {
        0 => "these are all".to_owned(),
        more => format!("and {more} smaller ones in the report file"),
    };
    if hidden > 0 || !untraced.is_empty() {
        let text = format!("{more}{untraced}");
        paragraph(out, &text, screen, style, Tone::Faint);
    }
}
