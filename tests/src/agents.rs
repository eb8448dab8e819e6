//! Agents that are threads of a test. Several of them need no launcher.

use std::path::Path;

use laggard_comm::Job;
use laggard_engine::AnalyzeOptions;
use laggard_overlay::{LinkJob, link};
use laggard_report::Agents;

use crate::report::difference;

/// Analyses a trace by one, two and three agents.
///
/// # Panics
/// If their reports differ, but for what they say of themselves, or the trace cannot be analysed.
pub fn assert_agreed(trace: &Path, options: &AnalyzeOptions) {
    let reports = [1, 2, 3].map(|agents| {
        let analyze = |job: &dyn Job| {
            laggard_engine::analyze_as(job, trace, options).expect("a trace that can be analysed")
        };
        let analyses = LinkJob::run_all(link::threads(agents), analyze);
        let head = analyses.into_iter().flatten().next();
        let mut report = head.expect("the head's report").report;
        report.agents = Agents::default();
        report.to_json()
    });
    for (agents, other) in (2..).zip(&reports[1..]) {
        if let Some(difference) = difference(&reports[0], other) {
            panic!("1 and {agents} agents write different reports: {difference}");
        }
    }
}
