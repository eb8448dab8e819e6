//! What it gains to be without the root causes of a report.

use std::path::Path;

use anyhow::Result;
use laggard_engine::events::Events;
use laggard_report::{Report, ratio};

use crate::{Change, Scenario, predicted};

/// Root causes that are answered, the largest first.
const FIRST: usize = 10;
/// Size of the largest trace for which that is done: a call takes some 12 bytes, and 0.5 us for all
/// root causes together.
const MOST_BYTES: u64 = 64 << 20;
/// Of a cause's waiting: if more looking than that stays as recorded, its gain is unknown.
const MOST_LOOKING: f64 = 0.1;

/// Adds to the report of a trace what its first root causes gain, and what the network costs;
/// nothing if the trace is large, some of it lies elsewhere, or there was no search for root causes.
///
/// # Errors
/// The trace cannot be read, or there is no room for temporary files.
pub fn add_gains(trace: &Path, report: &mut Report) -> Result<()> {
    if report.root_causes.is_none() || report.run.trace_bytes > MOST_BYTES {
        return Ok(());
    }
    let events = &Events::open(trace)?;
    if events.locations() != report.run.locations as usize {
        return Ok(());
    }
    let causes = report.root_causes.as_deref().unwrap_or_default();
    let known = (1..=causes.len().min(FIRST)).filter(|&number| causes[number - 1].can_go());
    let known: Vec<usize> = known.collect();
    let scenarios: Vec<_> = known
        .iter()
        .map(|&number| Scenario::of(Change::WithoutCause(number)))
        .collect();
    let prediction = predicted(events, Some(report), &scenarios, false)?;
    let causes = report.root_causes.as_deref_mut().unwrap_or_default();
    for (number, outcome) in known.into_iter().zip(prediction.scenarios) {
        let cause = &mut causes[number - 1];
        if prediction.looking_as_recorded_s > MOST_LOOKING * cause.severity_s {
            continue;
        }
        cause.gain_s = Some(outcome.gain_s.max(0.0));
        cause.gain_percent = Some(outcome.gain_percent.max(0.0));
    }
    let (found, transfer) = (
        &mut report.efficiency,
        prediction.recorded.efficiency.transfer,
    );
    if transfer > 0.0 {
        found.transfer = Some(transfer);
        found.serialization = Some(ratio(found.communication, transfer).min(1.0));
    }
    Ok(())
}
