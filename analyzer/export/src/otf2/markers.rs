//! Markers for the findings and root causes of a report.

use laggard_engine::events::Events;
use laggard_otf2::Marker;
use laggard_report::layout::GLUE;
use laggard_report::{Bottleneck, Instance, Report, RootCause, words};

use crate::names::location_id;
use crate::roots::{Longest, Roots};

/// The worst instance of each finding; and each root cause, where the rank that causes most of it
/// did it longest.
pub fn of(events: &Events, report: &Report) -> Vec<Marker> {
    let roots = Roots::new(events, report);
    let longest = roots.longest(events);
    let findings = report.bottlenecks.iter().filter_map(finding);
    let roots = roots.all.iter().zip(longest);
    let roots = roots.filter_map(|(root, longest)| match longest {
        Some(longest) => Some(did(root, longest)),
        None => started(root, report),
    });
    findings.chain(roots).collect()
}

fn finding(found: &Bottleneck) -> Option<Marker> {
    let worst = found.worst_instance.as_ref()?;
    let (time, duration) = time_of(worst);
    let root = found.root_causes.first();
    let root = root.map_or(String::new(), |root| format!("; root cause {}", root.id));
    Some(Marker {
        time,
        duration,
        location: location_id(worst.rank, 0),
        category: found.name.clone(),
        text: format!(
            "{} in {}: {:.9} s lost here, {:.9} s in all{root}",
            found.name, found.operation, worst.severity_s, found.severity_s
        ),
    })
}

/// What a rank did.
fn did(root: &RootCause, longest: Longest) -> Marker {
    Marker {
        time: longest.begin.max(0) as u64,
        duration: (longest.end - longest.begin).max(0) as u64,
        location: location_id(longest.rank, longest.thread),
        category: CATEGORY.to_owned(),
        text: text(root),
    }
}

/// A root cause that is no activity of a rank is marked at the worst instance of what it starts.
fn started(root: &RootCause, report: &Report) -> Option<Marker> {
    let is_first = |found: &&Bottleneck| {
        let first = found.root_causes.first();
        first.is_some_and(|first| first.id == root.id)
    };
    let mut worst = report.bottlenecks.iter().filter(is_first);
    let worst = worst.find_map(|found| found.worst_instance.as_ref())?;
    let (time, duration) = time_of(worst);
    Some(Marker {
        time,
        duration,
        location: location_id(root.ranks.first()?.rank, 0),
        category: CATEGORY.to_owned(),
        text: text(root),
    })
}

const CATEGORY: &str = "Root cause";

fn text(root: &RootCause) -> String {
    format!(
        "{}: {}; {:.9} s of waiting",
        root.id,
        words::root_cause(root).replace(GLUE, " "),
        root.severity_s
    )
}

/// Begin and length, ns.
fn time_of(worst: &Instance) -> (u64, u64) {
    let ns = |seconds: f64| (seconds * 1e9).round().max(0.0) as u64;
    let (time, end) = (ns(worst.start_s), ns(worst.end_s));
    (time, end.saturating_sub(time))
}
