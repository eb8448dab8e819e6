//! Replays a run in which nothing changes: every recorded time must come out again.

use std::path::Path;

use laggard_engine::events::Events;
use laggard_whatif::{Change, Scenario, predict};

use crate::report::Report;

/// Traces with more calls are left out, since the tests must not take long.
const MOST_CALLS: u64 = 2_000_000;

/// What a replay of a trace, or of an archive's anchor file, has that the recorded run has not.
/// `report` says how many calls there are.
///
/// # Panics
/// If the trace cannot be replayed.
pub fn differences(trace: &Path, report: &Report) -> Vec<String> {
    if report.run.operations > MOST_CALLS {
        return Vec::new();
    }
    let events = Events::open(trace).expect("a trace");
    let same = Change::parse("speed_up", "rank:0=1").expect("a change");
    let found = predict(&events, None, &[Scenario::of(same)]).expect("a replay");
    let mut differences = Vec::new();
    let mut must = |holds: bool, text: String| {
        if !holds {
            differences.push(format!("replayed with nothing changed: {text}"));
        }
    };
    let wrong = found.not_reproduced;
    must(wrong == 0, format!("{wrong} times are not as recorded"));
    let circles = found.circles;
    must(
        circles == 0,
        format!("{circles} calls go on without what they depend on"),
    );
    let gain = found.scenarios[0].gain_s;
    must(gain == 0.0, format!("the run is {gain} s shorter"));
    differences
}
