//! A profile: three trees, and amounts.

use std::collections::BTreeMap;

/// Unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Time, added up in ns.
    Seconds,
    /// How often.
    Occurrences,
    /// Data.
    Bytes,
}

/// A metric.
#[derive(Clone, Debug)]
pub struct Metric {
    /// Position of the metric that contains it, which comes before it.
    pub parent: Option<usize>,
    /// Unique name, for programs.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// What it measures.
    pub description: String,
}

/// A node of the call tree.
#[derive(Clone, Debug, Default)]
pub struct CallPath {
    /// Position of its caller, which comes before it; `None` for the program.
    pub parent: Option<usize>,
    /// Function or call.
    pub function: String,
    /// File of the function, may be empty.
    pub file: String,
    /// Programming model: `mpi`, `shmem`, `compiler`, …
    pub paradigm: &'static str,
    /// File of the line from which it is called, may be empty.
    pub called_in: String,
    /// That line, from 1; 0 = unknown.
    pub line: u32,
}

/// A host with its processes.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Its processes.
    pub processes: Vec<Process>,
}

/// A process with its threads.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Its rank.
    pub rank: u32,
    /// Name for people.
    pub name: String,
    /// Numbers of its threads.
    pub threads: Vec<u32>,
}

/// A profile.
#[derive(Clone, Debug)]
pub struct Cube {
    /// What is known of the run: key and value.
    pub attributes: Vec<(String, String)>,
    /// The metric trees.
    pub(crate) metrics: Vec<Metric>,
    /// The call tree. The first node is the program, and the only one without a caller.
    pub call_paths: Vec<CallPath>,
    /// The hosts. Amounts have their threads in this order.
    pub(crate) hosts: Vec<Host>,
    /// How many these are.
    threads: usize,
    /// Amounts of threads, by metric and call path.
    rows: BTreeMap<(usize, usize), Vec<i64>>,
}

impl Cube {
    /// A profile of nothing yet.
    pub fn new(metrics: Vec<Metric>, hosts: Vec<Host>) -> Cube {
        let processes = hosts.iter().flat_map(|host| &host.processes);
        Cube {
            threads: processes.map(|process| process.threads.len()).sum(),
            attributes: Vec::new(),
            metrics,
            call_paths: Vec::new(),
            hosts,
            rows: BTreeMap::new(),
        }
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Adds an amount of a metric and of all metrics that contain it, at a call path, of a thread by its
    /// position over all hosts. Times in ns. An amount may be taken away again; sums below 0 count as 0.
    pub fn add(&mut self, metric: usize, call_path: usize, thread: usize, amount: i64) {
        if amount == 0 {
            return;
        }
        let threads = self.threads;
        let mut next = Some(metric);
        while let Some(metric) = next {
            let row = self.rows.entry((metric, call_path));
            let row = row.or_insert_with(|| vec![0; threads]);
            row[thread] = row[thread].saturating_add(amount);
            next = self.metrics[metric].parent;
        }
    }

    /// Sum of a metric over all call paths and threads, times in ns.
    pub fn total(&self, metric: usize) -> i64 {
        let rows = self.rows.range((metric, 0)..(metric + 1, 0));
        let amounts = rows.flat_map(|(_, row)| row).map(|&amount| amount.max(0));
        amounts.fold(0, i64::saturating_add)
    }

    /// Call paths at which a metric has amounts, with these.
    pub(crate) fn rows(&self, metric: usize) -> impl Iterator<Item = (usize, &[i64])> {
        let rows = self.rows.range((metric, 0)..(metric + 1, 0));
        let rows = rows.filter(|(_, row)| row.iter().any(|&amount| amount > 0));
        rows.map(|((_, call_path), row)| (*call_path, row.as_slice()))
    }

    /// Positions by parent, in their order: the children of each, and those without a parent.
    pub(crate) fn below(
        parents: impl Iterator<Item = Option<usize>>,
    ) -> BTreeMap<Option<usize>, Vec<usize>> {
        let mut below: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
        for (at, parent) in parents.enumerate() {
            below.entry(parent).or_default().push(at);
        }
        below
    }
}
