//! A report as test cases.

use laggard_report::units::{duration, percent};
use laggard_report::{Bottleneck, Report, words};

use crate::junit::{Case, Verdict, render};

/// Most findings that are cases of their own.
const FINDINGS: usize = 100;

/// The report as test cases in JUnit's XML: the waiting of the whole run, and each finding. With a
/// limit, those above this share of all time fail. Waiting that is not known is an error.
pub fn to_junit(report: &Report, limit: Option<f64>) -> String {
    let mut cases = vec![whole(report, limit)];
    let findings = report.bottlenecks.iter().take(FINDINGS);
    cases.extend(findings.map(|found| case(found, limit)));
    render(&words::command(&report.run), &cases)
}

fn whole(report: &Report, limit: Option<f64>) -> Case {
    let (share, unknown) = (report.waiting_percent(), report.unknown_waiting());
    let mut verdict = judged(share, limit);
    if verdict == Verdict::Passed && !unknown.is_empty() && !report.is_sound() {
        verdict = Verdict::Unknown(unknown);
    }
    Case {
        name: "Waiting of the whole run".to_owned(),
        verdict,
        output: words::verdict(report).replace('\u{a0}', " "),
    }
}

fn case(found: &Bottleneck, limit: Option<f64>) -> Case {
    let place = words::place(&found.location);
    let causes = found.causes.iter().take(3);
    let causes = causes.map(|cause| format!("waits for {}\n", words::cause(found, cause)));
    let hints = found.hints.iter().map(|hint| format!("try: {hint}\n"));
    let lost = format!(
        "{} lost, {} of all time\n",
        duration(found.severity_s),
        percent(found.percent)
    );
    let output: String = std::iter::once(lost).chain(causes).chain(hints).collect();
    Case {
        name: format!("{} in {} at {place}", found.name, found.operation),
        verdict: judged(found.percent, limit),
        output: output.replace('\u{a0}', " "),
    }
}

fn judged(share: f64, limit: Option<f64>) -> Verdict {
    match limit.filter(|&limit| share > limit) {
        Some(limit) => Verdict::Failed(format!(
            "{} of all time is lost, more than {limit} %",
            percent(share)
        )),
        None => Verdict::Passed,
    }
}
