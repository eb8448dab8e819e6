//! A prediction for people.

use std::fmt::Write;
use std::path::Path;

use laggard_report::layout::{columns, duration, percent, plural, wrap};
use laggard_report::{RootCause, SourceLocation, words};

use crate::outcome::{Outcome, Prediction, Stretch};

/// Of a gain: what it may be more is said from here on.
const LEAST_DOUBT: f64 = 0.01;

/// The text of a prediction, for an output of this width.
pub fn render(prediction: &Prediction, width: usize) -> String {
    let columns = columns(width);
    let lines = text(prediction);
    lines.lines().map(|line| fitted(line, columns)).collect()
}

/// A line, broken where it does not fit. What follows is indented further.
fn fitted(line: &str, columns: usize) -> String {
    let start = line.len() - line.trim_start().len();
    let further = if start > 0 { start + 2 } else { start };
    let lines = wrap(line, columns.saturating_sub(further));
    let indented = lines.iter().enumerate().map(|(at, line)| {
        let indent = if at == 0 { start } else { further };
        format!("{:indent$}{line}\n", "")
    });
    indented.collect()
}

fn text(prediction: &Prediction) -> String {
    let name = Path::new(&prediction.program).file_name();
    let name = name.map_or("run".into(), |name| name.to_string_lossy());
    let recorded = &prediction.recorded;
    let mut text = format!(
        "{name} on {}: {} as recorded, {} of waiting\n   {}\n",
        plural(prediction.ranks.into(), "rank"),
        duration(recorded.time_s),
        duration(recorded.waiting_s),
        efficiency(recorded)
    );
    for scenario in &prediction.scenarios {
        text.push_str(&one(scenario));
    }
    text.push_str(
        "\nPredicted with the order of messages and locks as recorded; \
         a change that gains less than the run varies cannot be measured.\n",
    );
    if prediction.looking_as_recorded_s > 0.0 {
        let _ = writeln!(
            text,
            "Looking in vain stays as recorded where what lies in between does not show how it would go: {}.",
            duration(prediction.looking_as_recorded_s)
        );
    }
    let mut scenarios = prediction.scenarios.iter();
    if scenarios.any(|scenario| scenario.root_causes.is_none()) {
        text.push_str(
            "Root causes of the changed run are left out where calls or their waits are gone, if \
             the trace is large for so many scenarios at once, and if TMPDIR has no room.\n",
        );
    }
    if prediction.circles > 0 {
        let _ = writeln!(
            text,
            "Clocks contradict each other: {} went on without what was to come.",
            plural(prediction.circles, "call")
        );
    }
    text
}

fn one(outcome: &Outcome) -> String {
    let (what, gain) = match outcome.gain_s >= 0.0 {
        true => ("gains", outcome.gain_s),
        false => ("loses", -outcome.gain_s),
    };
    let mut text = format!(
        "\n{}: {what} {} ({}, start-up and shut-down apart), {} instead of {}\n",
        outcome.name,
        duration(gain),
        percent(outcome.gain_percent.abs()),
        duration(outcome.time_s),
        duration(outcome.time_s + outcome.gain_s),
    );
    if outcome.changes.len() > 1 || outcome.changes.iter().any(|change| *change != outcome.name) {
        let _ = writeln!(text, "   {}", outcome.changes.join(" "));
    }
    if outcome.doubt_s > LEAST_DOUBT * outcome.gain_s.abs() {
        let _ = writeln!(
            text,
            "   Perhaps up to {} more: so much looking in vain stays as recorded, though what it found comes earlier.",
            duration(outcome.doubt_s)
        );
    }
    let _ = writeln!(text, "   {}", efficiency(outcome));
    match &outcome.waits[..] {
        [] => text.push_str("   Then nobody waits.\n"),
        [first, ..] => {
            let _ = writeln!(
                text,
                "   Then {} of {} waiting are in {}, for rank {} before {}; rank {} waits least.",
                duration(first.severity_s),
                duration(outcome.waiting_s),
                place(&first.operation, &first.location),
                first.late_rank,
                place(&first.late_operation, &first.late_location),
                outcome.least_waiting_rank,
            );
        }
    }
    let mut path = outcome.critical_path.iter();
    if let Some(first) = path.find(|stretch| !stretch.is_apart) {
        let _ = writeln!(text, "   {}", bottleneck(first));
    }
    text.push_str(&root_causes(
        outcome.root_causes.as_deref().unwrap_or_default(),
    ));
    text
}

/// The largest root causes, a line each.
fn root_causes(all: &[RootCause]) -> String {
    let worth = all
        .iter()
        .filter(|root| root.percent >= words::NEGLIGIBLE_PERCENT);
    let lines = worth.map(|root| {
        let (share, time) = (percent(root.percent), duration(root.severity_s));
        format!("      {share} ({time}): {}\n", words::root_cause(root))
    });
    let lines: String = lines.collect();
    match lines.is_empty() {
        true => lines,
        false => format!("   Then the root causes of waiting are, in rank time:\n{lines}"),
    }
}

/// What the critical path is longest in.
fn bottleneck(of: &Stretch) -> String {
    let call = place(&of.operation, &of.location);
    let what = match &of.after {
        None => format!("is in {call}"),
        Some(after) => format!(
            "is between {} and {call}",
            place(&after.operation, &after.location)
        ),
    };
    format!(
        "Then the next bottleneck is: rank {} {what}, {} of the critical path.",
        of.rank,
        duration(of.time_s)
    )
}

fn place(operation: &str, location: &SourceLocation) -> String {
    format!("{operation} at {}", words::place(location))
}

fn efficiency(outcome: &Outcome) -> String {
    let of = &outcome.efficiency;
    let percent = |share: f64| percent(100.0 * share);
    format!(
        "Efficiency {} = load balance {} x serialization {} x transfer {}",
        percent(of.parallel),
        percent(of.load_balance),
        percent(of.serialization),
        percent(of.transfer)
    )
}
