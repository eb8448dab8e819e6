//! What the run is, and what the report found: where every view begins.

use anyhow::Result;
use laggard_overlay::Stop;
use laggard_patterns::PatternId;
use laggard_report::layout::GLUE;
use laggard_report::{Report, RootCause, words};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::metric::Metric;
use super::{Asked, cut, names, seconds, short, tree, what_if};
use crate::share::Share;
use crate::spending::NAMES;

/// Rows of each table.
const ROWS: usize = 50;
/// Root causes that are named for a finding.
const ROOTS: usize = 3;
/// Rows of what is wrong with the trace, and characters of each.
const ANOMALIES: usize = 20;
const DETAIL: usize = 400;
/// What a trace has as long as it is written, whatever the program does.
const SO_FAR: [&str; 7] = [
    "truncated_trace",
    "cut_off_in",
    "cut_off_after",
    "incomplete_collective",
    "unmatched_send",
    "unmatched_receive",
    "lock_not_released",
];

/// Asks for it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Overview {}

impl Asked for Overview {
    /// The head's report tells all.
    type Part = ();

    fn part(&self, _: &Share, _: &Stop) -> Result<()> {
        Ok(())
    }

    fn answer(&self, share: &Share, (): ()) -> Result<Value> {
        let report = share.report()?;
        let nodes = report.call_tree.as_ref().map(names::of_nodes);
        let name = |at: usize| nodes.as_ref()?.get(at).filter(|_| at > 0);
        let findings = report.bottlenecks.iter().take(ROWS).map(|found| {
            let worst = found.worst_instance.as_ref();
            let cause = found.causes.first();
            let location = match worst {
                Some(one) => Some(share.of_thread(one.rank, one.thread.unwrap_or(0))),
                None => found.ranks.first().map(|one| share.of_thread(one.rank, 0)),
            };
            let started_by = found.root_causes.iter().map(|one| one.id.clone());
            let mut started_by: Vec<String> = started_by.take(ROOTS).collect();
            if found.root_causes.len() > ROOTS {
                started_by.push(format!("{} more", found.root_causes.len() - ROOTS));
            }
            json!({
                "id": found.id,
                "pattern": found.pattern,
                "name": found.name,
                "operation": found.operation,
                "place": short(&words::place(&found.location)),
                "node": node(report, &found.location.callpath, &found.operation).and_then(name),
                "severity_s": found.severity_s,
                "percent": found.percent,
                "ranks": short(found.rank_set.as_deref().unwrap_or_default()),
                "threads": short(&found.thread_set),
                "location": location,
                "late_rank": cause.map(|cause| cause.rank),
                "late_thread": cause.and_then(|cause| cause.thread),
                "late_location": cause.map(|cause| share.of_thread(cause.rank, cause.thread.unwrap_or(0))),
                "because": cause.map(|cause| short(&cause.because)),
                "worst": worst.map(|one| json!({"start_s": one.start_s, "end_s": one.end_s})),
                "root_causes": started_by,
            })
        });
        let roots = report.root_causes.iter().flatten().take(ROWS).map(|root| {
            let worst = root.worst_wait.as_ref();
            let rank = worst.map(|one| one.rank);
            let rank = rank.or_else(|| root.ranks.first().map(|one| one.rank));
            let thread = threads(root).map_or(0, |(first, _)| first);
            json!({
                "id": root.id,
                "what": short(&words::root_cause(root).replace(GLUE, " ")),
                "ranks": short(&root.rank_set),
                "location": rank.map(|rank| share.of_thread(rank, thread)),
                "key": names::of_cause(root),
                "node": name(place_of_cause(report, root)),
                "severity_s": root.severity_s,
                "percent": root.percent,
                "worst": worst.map(|one| json!({"start_s": one.start_s, "end_s": one.end_s})),
                "can_go": laggard_whatif::can_be_told(root),
                "gain_s": root.gain_s,
            })
        });
        let all_roots = report.root_causes.as_deref().unwrap_or_default();
        let can_go = all_roots
            .iter()
            .filter(|root| laggard_whatif::can_be_told(root));
        // A program that goes on has not ended in any way.
        let is_growing = share.whole().is_err();
        let ended = match is_growing {
            true => String::new(),
            false => words::how_it_ended(report),
        };
        let mut anomalies = words::alike(&report.anomalies);
        anomalies.retain(|(first, ..)| !(is_growing && SO_FAR.contains(&&first.id[..])));
        anomalies.sort_by_key(|(first, ..)| std::cmp::Reverse(first.severity));
        let told = anomalies.iter().take(ANOMALIES).map(|row| {
            json!({"severity": row.0.severity.name(), "what": cut(&words::anomaly(row), DETAIL)})
        });
        let run = &report.run;
        let patterns = report
            .metrics
            .iter()
            .filter(|(_, metric)| metric.total_s > 0.0);
        let patterns = patterns.filter_map(|(id, _)| PatternId::from_id(id));
        let patterns = patterns.filter(|pattern| pattern.is_waiting());
        Ok(json!({
            "version": env!("CARGO_PKG_VERSION"),
            "command": short(&words::command(run)),
            "size": short(&words::size_of_run(run)),
            "ranks": run.ranks,
            "locations": share.locations(),
            "places": names::of_locations(&share.events().placed),
            "end_s": seconds(share.events().end_ns()),
            "waiting_percent": report.waiting_percent(),
            "unknown_waiting": report.unknown_waiting(),
            "efficiency": report.efficiency,
            "kinds": NAMES,
            "metrics": Metric::all(share, patterns),
            "profile": tree::offered(report),
            "ended": cut(&ended, DETAIL),
            "anomalies": told.collect::<Vec<_>>(),
            "anomalies_in_report": anomalies.len(),
            "findings": findings.collect::<Vec<_>>(),
            "findings_in_report": report.bottlenecks.len(),
            "root_causes": roots.collect::<Vec<_>>(),
            "no_what_if": what_if::refused(share),
            "root_causes_in_report": all_roots.len(),
            "root_causes_that_can_go": can_go.count(),
        }))
    }
}

/// The least and the largest number of the threads that start a root cause; 0 for the first ones of their ranks.
pub fn threads(root: &RootCause) -> Option<(u32, u32)> {
    if root.thread_set.is_empty() {
        return Some((0, 0));
    }
    let numbers = root.thread_set.split([',', '-']);
    let numbers = numbers.filter_map(|number| number.trim().parse().ok());
    Some((numbers.clone().min()?, numbers.max()?))
}

/// Position in the tree of call paths of what a root cause did; 0 if the tree has no part of its path.
pub fn place_of_cause(report: &Report, root: &RootCause) -> usize {
    let (at, call, below) = match (&root.activity[..], &root.until) {
        ("latency", Some(until)) => (&until.location, &until.operation[..], ""),
        ("io" | "call", _) => (&root.location, &root.operation[..], ""),
        (activity, Some(_)) => (&root.location, "", activity),
        (_, None) => (&root.location, &root.operation[..], ""),
    };
    let place = node(report, &at.callpath, call).unwrap_or(0);
    let nodes = report.call_tree.as_ref().map(|tree| &tree.nodes[..]);
    let mut nodes = nodes.unwrap_or_default().iter();
    let is_below =
        |node: &laggard_report::CallNode| node.parent == Some(place as u32) && node.kind == below;
    nodes.position(is_below).unwrap_or(place)
}

/// Position in the tree of call paths of a call there, or of the innermost of its frames that the tree has.
fn node(report: &Report, frames: &[String], call: &str) -> Option<usize> {
    let nodes = &report.call_tree.as_ref()?.nodes;
    let below = |above: usize, kind: &str, name: &str| {
        nodes.iter().position(|node| {
            node.parent == Some(above as u32) && node.kind == kind && node.name == name
        })
    };
    let mut at = 0;
    let path = frames.iter().map(|frame| ("frame", &frame[..]));
    for (kind, name) in path.chain([("call", call)]) {
        let Some(next) = below(at, kind, name) else {
            break;
        };
        at = next;
    }
    (at > 0).then_some(at)
}
