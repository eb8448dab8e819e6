//! What a repair would gain: a run is replayed with a change.
//!
//! *Data flow.* `Graph` learns from [`Events::join`] which moments of other
//! locations each call depends on. `replay` gives all calls new times, for all
//! scenarios at once, in one sweep, and a second one finds what lies on their critical paths. With
//! the new times, the analysis finds their root causes (`roots`).
//! [`predict`] says what that means for the run.
//!
//! *Constraints.* One process. Memory does not grow with the trace, but for 16 bytes for each
//! instance of a region that a scenario names, and for each time that a critical path goes on with
//! another location. Of traces that are not too large, the times of each scenario are kept for its
//! root causes: 16 bytes whenever a call is moved by more or less than the one before. The order of matching stays as recorded: which
//! message a wildcard got, who had a lock first.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod circles;
mod columns;
mod effects;
mod gains;
mod graph;
mod junctions;
mod lane;
mod marks;
mod outcome;
mod path;
mod place;
mod reader;
mod replay;
mod rests;
mod roots;
mod sampled;
mod scenario;
mod shares;
mod slabs;
mod steps;
mod targets;
mod text;
mod together;

use anyhow::{Context, Result};
use laggard_engine::events::Events;
use laggard_report::Report;

use effects::Effects;
pub use gains::{add_gains, can_be_told};
use graph::Graph;
pub use outcome::{Efficiency, Outcome, Prediction, SCHEMA, Stretch, Wait};
pub use scenario::{Change, Scenario, Spot, Where};
pub use text::render;

/// The JSON Schema of a prediction.
pub const JSON_SCHEMA: &str = include_str!("../schema/laggard-what-if-1.schema.json");

/// Scenarios that are replayed in one sweep.
const AT_ONCE: usize = 63;
/// Size of the largest trace whose reports say what root causes and hints gain, if nobody asks for
/// more. Of larger ones, times the number of scenarios, root causes with a change are not searched.
/// A call takes some 12 bytes.
pub const MOST_BYTES: u64 = 64 << 20;

/// Whether somebody still wants the result. Asked again and again, from one thread at a time.
pub type GoesOn<'g> = &'g (dyn Fn() -> Result<()> + Sync);

/// Replays a run with the changes of each scenario. `report` knows the root causes.
///
/// # Errors
/// A scenario names what is not in the run, or there is no room for temporary files.
pub fn predict(
    events: &Events,
    report: Option<&Report>,
    scenarios: &[Scenario],
) -> Result<Prediction> {
    predicted(events, report, scenarios, true, &|| Ok(()))
}

/// How long the run takes with the changes of a scenario, and what that gains: the figures of [`predict`],
/// which takes some three times as long.
///
/// # Errors
/// As [`predict`], and those of `goes_on`.
pub fn gain(
    events: &Events,
    report: Option<&Report>,
    scenario: Scenario,
    goes_on: GoesOn,
) -> Result<Outcome> {
    let prediction = predicted(events, report, &[scenario], false, goes_on)?;
    prediction
        .scenarios
        .into_iter()
        .next()
        .context("one scenario")
}

/// The same; if not `is_whole`, scenarios have times and gains alone.
fn predicted(
    events: &Events,
    report: Option<&Report>,
    scenarios: &[Scenario],
    is_whole: bool,
    goes_on: GoesOn,
) -> Result<Prediction> {
    // What is not in the run is told before the work.
    let parts = with_effects(events, report, scenarios, goes_on)?;
    let graph = &mut Graph::new(events, goes_on)?;
    replayed_with(events, report, parts, graph, is_whole)
}

/// Scenarios that are replayed in one sweep, with what they do.
type Parts<'s> = Vec<(&'s [Scenario], Effects)>;

fn with_effects<'s>(
    events: &Events,
    report: Option<&Report>,
    scenarios: &'s [Scenario],
    goes_on: GoesOn,
) -> Result<Parts<'s>> {
    let parts = scenarios.chunks(AT_ONCE).map(|part| {
        let effects = Effects::new(events, report, part, goes_on)?;
        Ok((part, effects))
    });
    parts.collect()
}

/// [`predicted`], of a run whose graph is known.
fn replayed_with(
    events: &Events,
    report: Option<&Report>,
    parts: Parts,
    graph: &mut Graph,
    is_whole: bool,
) -> Result<Prediction> {
    let mut all: Option<Prediction> = None;
    for (part, mut effects) in parts {
        if effects.needs_rests() {
            effects.learn(events, &rests::rests(events, graph)?);
        }
        // All new times are in memory.
        let bytes = events.bytes().saturating_mul(part.len() as u64);
        let moves = is_whole && bytes <= MOST_BYTES;
        let mut replayed = replay::replay(events, graph, &effects, is_whole, moves)?;
        let mut found = outcome::prediction(events, part, &replayed);
        if moves {
            let charge_last = report.is_some_and(|report| report.settings.charge_last);
            let searched = found.scenarios.iter_mut().enumerate();
            for (at, outcome) in searched.filter(|(at, _)| part[*at].keeps_calls()) {
                outcome.root_causes = roots::of(events, &mut replayed, at, charge_last)?;
            }
        }
        match &mut all {
            Some(all) => all.scenarios.extend(found.scenarios),
            None => all = Some(found),
        }
    }
    Ok(all.unwrap_or_default())
}
