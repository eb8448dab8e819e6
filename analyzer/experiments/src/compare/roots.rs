//! Root causes over all revisions.

use laggard_report::layout::GLUE;
use laggard_report::{Report, RootCause, RootSite, SourceLocation, words};
use serde::Serialize;

use super::{Judge, State, join, largest_first};
use crate::matching::{self, Identity, Matched};
use crate::noise::{Change, Sample};
use crate::set::Experiment;

/// A root cause in some revision; with repeats, that of the run in which it causes most.
#[derive(Clone, Debug, Serialize)]
pub struct RootPlace {
    /// Who did what, and where, in words.
    pub text: String,
    /// The ranks that cause nearly all of it, as ranges.
    pub rank_set: String,
    /// Where it begins.
    pub location: SourceLocation,
    /// The call that ended it, or that waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<RootSite>,
    /// Share of all time of that run.
    pub percent: f64,
}

impl RootPlace {
    pub(crate) fn new(root: &RootCause) -> RootPlace {
        RootPlace {
            text: words::root_cause(root).replace(GLUE, " "),
            rank_set: root.rank_set.clone(),
            location: root.location.clone(),
            until: root.until.clone(),
            percent: root.percent,
        }
    }
}

/// A root cause over all revisions: the same activity at the same place, whichever ranks it is of.
#[derive(Clone, Debug, Serialize)]
pub struct RootCauseRow {
    /// Its activity.
    pub activity: String,
    /// The call; for computation, the call before it. Empty if there was none.
    pub operation: String,
    /// By revision; null if not found there.
    pub places: Vec<Option<RootPlace>>,
    /// By revision except the first: how it was matched with the previous revision that has it;
    /// null if not found there, or found for the first time.
    pub matched: Vec<Option<Matched>>,
    /// By revision except the first.
    pub states: Vec<State>,
    /// Waiting that it causes, by revision; 0 in runs that lack it.
    pub severity_s: Vec<Sample>,
    /// Against the first.
    pub changes: Vec<Change>,
}

/// The root causes of a report.
pub(crate) fn of(report: &Report) -> Vec<&RootCause> {
    report.root_causes.iter().flatten().collect()
}

/// Root causes, the largest in any revision first; `None` if a report has none searched.
pub(super) fn rows(experiments: &[Experiment], judge: &Judge) -> Option<Vec<RootCauseRow>> {
    if !crate::set::have_roots(experiments) {
        return None;
    }
    let joined = join::join(experiments, of, Identity::of_root_cause, matching::findings);
    let rows = joined.iter().filter_map(|row| {
        let severity_s = row.samples(|root| root.severity_s);
        let any = row.any()?;
        Some(RootCauseRow {
            activity: any.activity.clone(),
            operation: any.operation.clone(),
            places: row.worst(|root| root.severity_s, RootPlace::new),
            matched: row.matched.clone(),
            states: row.states(),
            changes: judge.changes(&severity_s),
            severity_s,
        })
    });
    Some(largest_first(rows.collect(), |row| &row.severity_s))
}
