//! Root causes over sizes: which of them grow with the ranks.

use serde::Serialize;

use super::{Growth, at_median};
use crate::compare::{RootPlace, join, roots};
use crate::matching::{self, Identity};
use crate::rounded;
use crate::set::{self, Experiment};

/// A root cause over all sizes: the same activity at the same place, whichever ranks it is of. Lists
/// have one entry per size.
#[derive(Clone, Debug, Serialize)]
pub struct RootGrowth {
    /// Its activity.
    pub activity: String,
    /// The call; for computation, the call before it. Empty if there was none.
    pub operation: String,
    /// Null where it is not found.
    pub places: Vec<Option<RootPlace>>,
    /// Waiting that it causes, rank-seconds; 0 where it is not found.
    pub severity_s: Vec<f64>,
    /// The same in percent of all time, as in the report.
    pub percent: Vec<f64>,
    /// Rank-seconds more than with ideal scaling of the smallest run's; negative if it shrank.
    pub lost_s: Vec<f64>,
}

/// Root causes, those that lost most in the largest run first; `None` if a report has none searched.
pub fn rows(experiments: &[Experiment], growth: Growth) -> Option<Vec<RootGrowth>> {
    if !set::have_roots(experiments) {
        return None;
    }
    // One program: what is at another line is something else.
    let joined = join::join(
        experiments,
        roots::of,
        Identity::of_root_cause,
        |before, after, _| matching::findings(before, after, true),
    );
    let rows = joined.iter().filter_map(|row| {
        let any = row.any()?;
        let severity_s = row.samples(|root| root.severity_s);
        let severity_s = severity_s.iter().zip(experiments);
        let severity_s: Vec<f64> = severity_s
            .map(|(sample, experiment)| sample.runs[at_median(experiment)])
            .collect();
        let by_size = || severity_s.iter().zip(experiments);
        let lost_s = by_size().map(|(severity, experiment)| {
            let work = growth.work(experiments[0].ranks(), experiment.ranks());
            rounded(severity - work * severity_s[0])
        });
        let percent = by_size().map(|(severity, experiment)| {
            let report = &experiment.runs[at_median(experiment)].report;
            laggard_report::percent(*severity, report.sums().wall_s)
        });
        Some(RootGrowth {
            activity: any.activity.clone(),
            operation: any.operation.clone(),
            places: row.worst(|root| root.severity_s, RootPlace::new),
            percent: percent.collect(),
            lost_s: lost_s.collect(),
            severity_s,
        })
    });
    let mut rows: Vec<RootGrowth> = rows.collect();
    let lost = |row: &RootGrowth| row.lost_s.last().copied().unwrap_or(0.0);
    rows.sort_by(|a, b| lost(b).total_cmp(&lost(a)));
    Some(rows)
}

impl RootGrowth {
    /// Whether its share of the time grows from the smallest to the largest run.
    pub fn grows(&self) -> bool {
        self.percent.last() > self.percent.first() && self.lost_s.last() > Some(&0.0)
    }

    /// In the largest run that has it, in words.
    pub fn text(&self) -> &str {
        let found = self.places.iter().flatten().next_back();
        found.map_or("", |found| &found.text)
    }
}
