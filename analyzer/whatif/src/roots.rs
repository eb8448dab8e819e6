//! Root causes of a changed run: those that an analysis finds with the new times of its calls.

use anyhow::Result;
use laggard_engine::events::Events;
use laggard_engine::{AnalyzeOptions, analyze_moved};
use laggard_report::RootCause;

use crate::lane::Lane;
use crate::outcome::LISTED;
use crate::reader::Call;
use crate::replay::{Replayed, Sweep};

/// The largest root causes with a scenario, whose new times are not needed any more. As in the
/// report, `charge_last` charges the last member of a collective alone. `None`: there is no room to
/// search them.
pub fn of(
    events: &Events,
    replayed: &mut Replayed,
    scenario: usize,
    charge_last: bool,
) -> Result<Option<Vec<RootCause>>> {
    let lanes = replayed.lanes.iter_mut();
    let moves = lanes.map(|lane| std::mem::take(&mut lane.moves[scenario]));
    let options = AnalyzeOptions {
        charge_last,
        ..AnalyzeOptions::default()
    };
    let found = analyze_moved(events, moves.collect(), &options)?;
    let mut causes = found.and_then(|report| report.root_causes);
    if let Some(causes) = &mut causes {
        causes.truncate(LISTED);
        // They are for the program as it is.
        causes.iter_mut().for_each(|cause| cause.hints.clear());
    }
    Ok(causes)
}

impl Sweep<'_> {
    /// Where a location is, by scenario whose new times are asked for, ns.
    pub(crate) fn scenarios(&self, lane: &Lane) -> Vec<i64> {
        let columns = (0..lane.moves.len()).map(|scenario| self.columns.of(scenario));
        columns.map(|column| lane.now[column]).collect()
    }

    /// A location has come to this recorded moment.
    #[inline]
    pub(crate) fn moves(&self, lane: &mut Lane, recorded: i64) {
        for (scenario, moves) in lane.moves.iter_mut().enumerate() {
            moves.push(recorded, lane.now[self.columns.of(scenario)]);
        }
    }

    /// A look that found something begins earlier than it did, or those before it looked for longer.
    #[cold]
    pub(crate) fn moves_looks(&self, lane: &mut Lane, call: &Call) {
        let vain = lane.before.filter(|before| before.is_vain);
        for (scenario, moves) in lane.moves.iter_mut().enumerate() {
            let now = lane.now[self.columns.of(scenario)];
            let by = now - moves.ns(call.enter);
            match vain {
                Some(last) if by > 0 => moves.longer((last.enter, last.leave), by),
                // It is the look itself that waits.
                None if by > 0 => {}
                _ => moves.push(call.enter, now),
            }
        }
    }

    /// The call before was waited for now: from these times on.
    pub(crate) fn moves_postponed(&self, lane: &mut Lane, begins: Vec<i64>) {
        let times = begins.into_iter().zip(self.scenarios(lane));
        for (moves, times) in lane.moves.iter_mut().zip(times) {
            if let Some(before) = lane.before.filter(|_| times.0 != times.1) {
                moves.postpone(before.enter, times);
            }
        }
    }
}
