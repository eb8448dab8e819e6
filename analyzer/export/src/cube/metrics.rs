//! The metric tree.

use laggard_cube::{Metric, Unit};
use laggard_engine::events::{Outside, TimeClass};
use laggard_patterns::{LostMetric, PatternId, lost_metrics};
use laggard_report::layout::GLUE;
use laggard_report::{PARTS_OF_TIME, RootCause, words};
use rustc_hash::FxHashMap;

/// Metrics that every profile has beside parts of the time: id, name, unit, description.
type Row = (&'static str, &'static str, Unit, &'static str);
const TIME: Row = (
    "time",
    "Time",
    Unit::Seconds,
    "Between start-up and shut-down: from a thread's leave of MPI_Init or shmem_init to the latest \
     enter of Finalize of all threads.",
);
const OTHERS: [Row; 3] = [
    (
        "visits",
        "Calls",
        Unit::Occurrences,
        "Calls of recorded functions.",
    ),
    (
        "bytes",
        "Bytes",
        Unit::Bytes,
        "Bytes that calls sent and received.",
    ),
    (
        "caused",
        "Caused waiting",
        Unit::Seconds,
        "Waiting of any rank, at the place and rank of its root cause. Has the root causes and the ranks \
         that the report lists.",
    ),
];
/// What the time lost is.
const LOST: &str = "Part of the time: waiting for others, the completion of collectives, and what calls took longer \
     than they cost.";

/// The metric tree, and where its metrics are.
pub struct Metrics {
    all: Vec<Metric>,
    of_patterns: FxHashMap<u8, usize>,
    /// Position of the first root cause's metric.
    roots: usize,
}

impl Metrics {
    /// With these patterns, by number, and these root causes.
    pub fn new(patterns: impl Iterator<Item = u8>, roots: &[RootCause]) -> Metrics {
        let mut metrics = Metrics {
            all: Vec::new(),
            of_patterns: FxHashMap::default(),
            roots: 0,
        };
        let mut push = |key, name: &str, unit, text: &str| {
            metrics.push(key, name.to_owned(), unit, text.to_owned())
        };
        let (id, name, unit, text) = TIME;
        push((id, ""), name, unit, text);
        for [id, parent, name, text] in PARTS_OF_TIME {
            push((id, parent), name, Unit::Seconds, text);
        }
        for (id, name, unit, text) in OTHERS {
            push((id, ""), name, unit, text);
        }
        for metric in lost_metrics(patterns.filter_map(PatternId::from_number)) {
            let (text, pattern) = match metric {
                LostMetric::Group(group) if group.parent.is_empty() => (LOST.to_owned(), None),
                LostMetric::Group(_) => (String::new(), None),
                LostMetric::Pattern(pattern) => {
                    let row = pattern.row();
                    (
                        format!("{} {}", row.summary, row.description),
                        Some(pattern),
                    )
                }
            };
            let key = (metric.id(), metric.parent());
            let at = metrics.push(key, metric.name().to_owned(), Unit::Seconds, text);
            if let Some(pattern) = pattern {
                metrics.of_patterns.insert(pattern as u8, at);
            }
        }
        metrics.roots = metrics.all.len();
        for root in roots {
            let text = words::root_cause(root).replace(GLUE, " ");
            let name = format!("{}: {text}", root.id);
            metrics.push(
                (&root.id, "caused"),
                name,
                Unit::Seconds,
                root.because.clone(),
            );
        }
        metrics
    }

    fn push(
        &mut self,
        (id, parent): (&str, &str),
        name: String,
        unit: Unit,
        description: String,
    ) -> usize {
        self.all.push(Metric {
            parent: self.position(parent),
            id: id.to_owned(),
            name,
            unit,
            description,
        });
        self.all.len() - 1
    }

    fn position(&self, id: &str) -> Option<usize> {
        self.all.iter().position(|metric| metric.id == id)
    }

    /// The position of one that every profile has.
    fn of(&self, id: &str) -> usize {
        self.position(id).unwrap_or_default()
    }

    /// The tree.
    pub fn all(&self) -> Vec<Metric> {
        self.all.clone()
    }

    pub fn time(&self) -> usize {
        self.of("time")
    }

    pub fn computation(&self) -> usize {
        self.of("computation")
    }

    /// Computation that was no work.
    pub fn outside(&self, part: Outside) -> usize {
        self.of(part.name())
    }

    /// Time in calls of a class.
    pub fn of_class(&self, class: TimeClass) -> usize {
        self.of(match class {
            TimeClass::Communication => "communication",
            TimeClass::Synchronization => "synchronization",
            TimeClass::Io => "io",
            TimeClass::Setup => "handles",
        })
    }

    pub fn visits(&self) -> usize {
        self.of("visits")
    }

    pub fn bytes(&self) -> usize {
        self.of("bytes")
    }

    pub fn lost(&self) -> usize {
        self.of("lost")
    }

    /// The metric of a pattern, by its number; `None` if it costs no time.
    pub fn of_pattern(&self, number: u8) -> Option<usize> {
        self.of_patterns.get(&number).copied()
    }

    /// The metric of a root cause, by its position.
    pub fn of_root(&self, at: usize) -> usize {
        self.roots + at
    }
}

#[cfg(test)]
mod tests {
    use laggard_patterns::Unit as PatternUnit;

    use super::*;

    #[test]
    fn patterns_are_below_their_parents() {
        let child = PatternId::from_id("late_sender_wrong_order_same_source").unwrap();
        let metrics = Metrics::new([child as u8].into_iter(), &[]);
        let mut at = metrics.of_pattern(child as u8);
        let mut ids = Vec::new();
        while let Some(metric) = at {
            ids.push(metrics.all[metric].id.as_str());
            at = metrics.all[metric].parent;
            assert!(at.is_none_or(|parent| parent < metric));
        }
        assert_eq!(ids[1..], ["late_sender", "two_sided", "lost"]);
        assert!(metrics.position("group_sync").is_none());
    }

    #[test]
    fn all_patterns_have_a_place() {
        let all = PatternId::ALL.iter();
        let timed = all.filter(|pattern| pattern.row().unit == PatternUnit::Seconds);
        let metrics = Metrics::new(PatternId::ALL.iter().map(|&pattern| pattern as u8), &[]);
        for pattern in timed {
            let at = metrics.of_pattern(*pattern as u8);
            assert!(
                at.is_some_and(|at| metrics.all[at].parent.is_some()),
                "{pattern:?}"
            );
        }
    }
}
