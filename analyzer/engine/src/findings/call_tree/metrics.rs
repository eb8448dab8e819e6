//! What is measured: amounts of a node, and the parts that its times consist of.

use laggard_patterns::{PatternId, lost_metrics};
use laggard_report::PARTS_OF_TIME;

use crate::roots::activities::{Kind, OFF_WORK};
use crate::stream::rows::TimeClass;

/// Kinds of amounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metric {
    Calls,
    /// In calls, and outside of them after a call. ns.
    Time,
    /// What patterns charge as waiting, ns.
    Waiting,
    /// Waiting that started there, ns.
    Caused,
    Bytes,
    /// The time in calls of some classes, ns.
    InCalls(&'static [TimeClass]),
    /// The time outside of calls, ns.
    Computation,
    /// The part of it that was no work, ns.
    OffWork(Kind),
    /// What these patterns charge, ns.
    Lost(Vec<PatternId>),
}

/// A metric that is part of another one, or the time lost.
pub struct Detail {
    pub id: &'static str,
    pub parent: Option<&'static str>,
    pub name: &'static str,
    pub metric: Metric,
}

/// The parts of the time, and of the time that these patterns charge. Parents come first.
pub fn details(found: &[PatternId]) -> Vec<Detail> {
    let parts = PARTS_OF_TIME.iter().map(|[id, parent, name, _]| Detail {
        id,
        parent: Some(*parent),
        name,
        metric: part_of_time(id),
    });
    let lost = lost_metrics(found.iter().copied()).into_iter();
    let lost = lost.map(|metric| {
        let is_below = |pattern: &PatternId| is_part(*pattern, metric.id());
        Detail {
            id: metric.id(),
            parent: Some(metric.parent()).filter(|id| !id.is_empty()),
            name: metric.name(),
            metric: Metric::Lost(found.iter().copied().filter(is_below).collect()),
        }
    });
    parts.chain(lost).collect()
}

fn part_of_time(id: &str) -> Metric {
    use TimeClass::*;
    match id {
        "communication" => Metric::InCalls(&[Communication, Setup]),
        "handles" => Metric::InCalls(&[Setup]),
        "synchronization" => Metric::InCalls(&[Synchronization]),
        "io" => Metric::InCalls(&[Io]),
        "blocked" => Metric::OffWork(OFF_WORK[0]),
        "preempted" => Metric::OffWork(OFF_WORK[1]),
        "kernel" => Metric::OffWork(OFF_WORK[2]),
        _ => Metric::Computation,
    }
}

/// Whether a pattern is the metric with this id, or part of it.
fn is_part(pattern: PatternId, id: &str) -> bool {
    let parent = pattern.row().parent;
    let is_above = || PatternId::from_id(parent).is_some_and(|above| is_part(above, id));
    id == "lost" || [pattern.id(), parent].contains(&id) || is_above()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_time_is_another_one() {
        let parts = details(PatternId::ALL);
        for (at, part) in parts.iter().enumerate() {
            let same = parts[..at].iter().find(|other| other.metric == part.metric);
            // A group with a single pattern.
            let is_parent = same.is_none_or(|other| Some(other.id) == part.parent);
            assert!(is_parent, "{}", part.id);
            let known = |id| id == "time" || parts[..at].iter().any(|other| other.id == id);
            assert!(part.parent.is_none_or(known), "{}", part.id);
        }
        let timed = PatternId::ALL
            .iter()
            .filter(|pattern| pattern.row().unit == laggard_patterns::Unit::Seconds);
        let Some(Metric::Lost(all)) = parts
            .iter()
            .find(|part| part.id == "lost")
            .map(|part| &part.metric)
        else {
            panic!("no time lost");
        };
        assert!(timed.clone().all(|pattern| all.contains(pattern)));
        // What only counts is no part of any other metric.
        let groups = parts.iter().filter(|part| part.parent == Some("lost"));
        let in_groups = groups.map(|part| match &part.metric {
            Metric::Lost(patterns) => patterns.len(),
            _ => 0,
        });
        assert_eq!(in_groups.sum::<usize>(), timed.count());
    }
}
