//! The metric tree.

use std::collections::BTreeSet;

use laggard_cube::{Metric, Unit};
use laggard_engine::events::{Outside, TimeClass};
use laggard_patterns::{GROUPS, PatternId, Unit as PatternUnit};
use laggard_report::layout::GLUE;
use laggard_report::{RootCause, words};
use rustc_hash::FxHashMap;

/// Metrics that every profile has: id, parent, name, unit, description.
type Row = (&'static str, &'static str, &'static str, Unit, &'static str);
const ROWS: [Row; 13] = [
    (
        "time",
        "",
        "Time",
        Unit::Seconds,
        "Between start-up and shut-down: from a thread's leave of MPI_Init or shmem_init to the latest \
         enter of Finalize of all threads.",
    ),
    (
        "computation",
        "time",
        "Computation",
        Unit::Seconds,
        "Outside of all recorded calls. What follows a call is time of the function that made it.",
    ),
    (
        "blocked",
        "computation",
        "Asleep or blocked",
        Unit::Seconds,
        "Outside of calls, off the processor by itself: asleep, or waiting for a device or a lock.",
    ),
    (
        "preempted",
        "computation",
        "Without a processor",
        Unit::Seconds,
        "Outside of calls, off the processor since others had it.",
    ),
    (
        "kernel",
        "computation",
        "In the kernel",
        Unit::Seconds,
        "Outside of calls, in the kernel.",
    ),
    (
        "communication",
        "time",
        "Communication",
        Unit::Seconds,
        "In calls that move data, waiting included.",
    ),
    (
        "synchronization",
        "time",
        "Synchronization",
        Unit::Seconds,
        "In calls whose purpose is that ranks or threads meet, waiting included.",
    ),
    (
        "io",
        "time",
        "I/O",
        Unit::Seconds,
        "In file operations, waiting included.",
    ),
    (
        "handles",
        "communication",
        "Handles",
        Unit::Seconds,
        "In calls that only manage handles.",
    ),
    (
        "visits",
        "",
        "Calls",
        Unit::Occurrences,
        "Calls of recorded functions.",
    ),
    (
        "bytes",
        "",
        "Bytes",
        Unit::Bytes,
        "Bytes that calls sent and received.",
    ),
    (
        "caused",
        "",
        "Caused waiting",
        Unit::Seconds,
        "Waiting of any rank, at the place and rank of its root cause. Has the root causes and the ranks \
         that the report lists.",
    ),
    (
        "lost",
        "",
        "Time lost",
        Unit::Seconds,
        "Part of the time: waiting for others, and the completion of collectives.",
    ),
];

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
        let mut wanted: BTreeSet<PatternId> = BTreeSet::new();
        for pattern in patterns.filter_map(PatternId::from_number) {
            let mut next = Some(pattern).filter(|one| one.row().unit == PatternUnit::Seconds);
            while let Some(pattern) = next {
                wanted.insert(pattern);
                next = PatternId::from_id(pattern.row().parent);
            }
        }
        let mut metrics = Metrics {
            all: Vec::new(),
            of_patterns: FxHashMap::default(),
            roots: 0,
        };
        for (id, parent, name, unit, description) in ROWS {
            metrics.push((id, parent), name.to_owned(), unit, description.to_owned());
        }
        for group in GROUPS.iter().filter(|group| group.parent == "lost") {
            let is_used = wanted.iter().any(|pattern| pattern.group() == group.id);
            if is_used {
                let name = group.name.to_owned();
                metrics.push((group.id, group.parent), name, Unit::Seconds, String::new());
            }
        }
        // Parents first, whatever their numbers.
        while let Some(next) = wanted
            .iter()
            .copied()
            .find(|pattern| metrics.position(pattern.row().parent).is_some())
        {
            wanted.remove(&next);
            let row = next.row();
            let text = format!("{} {}", row.summary, row.description);
            let key = (row.id, row.parent);
            let at = metrics.push(key, row.name.to_owned(), Unit::Seconds, text);
            metrics.of_patterns.insert(next as u8, at);
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

    fn of(id: &str) -> usize {
        let found = ROWS.iter().position(|row| row.0 == id);
        found.unwrap_or_default()
    }

    /// The tree.
    pub fn all(&self) -> Vec<Metric> {
        self.all.clone()
    }

    pub fn time(&self) -> usize {
        Metrics::of("time")
    }

    pub fn computation(&self) -> usize {
        Metrics::of("computation")
    }

    /// Computation that was no work.
    pub fn outside(&self, part: Outside) -> usize {
        Metrics::of(part.name())
    }

    /// Time in calls of a class.
    pub fn of_class(&self, class: TimeClass) -> usize {
        Metrics::of(match class {
            TimeClass::Communication => "communication",
            TimeClass::Synchronization => "synchronization",
            TimeClass::Io => "io",
            TimeClass::Setup => "handles",
        })
    }

    pub fn visits(&self) -> usize {
        Metrics::of("visits")
    }

    pub fn bytes(&self) -> usize {
        Metrics::of("bytes")
    }

    pub fn lost(&self) -> usize {
        Metrics::of("lost")
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
