//! Root causes of a changed run: those that an analysis finds with the new times of its calls.

use anyhow::Result;
use laggard_engine::events::Events;
use laggard_engine::{AnalyzeOptions, analyze_moved};
use laggard_report::RootCause;

use crate::outcome::LISTED;
use crate::replay::Replayed;

/// The largest root causes with a scenario, whose new times are not needed any more. `None`: there
/// is no room to search them.
pub fn of(
    events: &Events,
    replayed: &mut Replayed,
    scenario: usize,
) -> Result<Option<Vec<RootCause>>> {
    let lanes = replayed.lanes.iter_mut();
    let moves = lanes.map(|lane| std::mem::take(&mut lane.moves[scenario]));
    let options = AnalyzeOptions::default();
    let found = analyze_moved(events, moves.collect(), &options)?;
    let mut causes = found.and_then(|report| report.root_causes);
    if let Some(causes) = &mut causes {
        causes.truncate(LISTED);
        // They are for the program as it is.
        causes.iter_mut().for_each(|cause| cause.hints.clear());
    }
    Ok(causes)
}
