//! A profile for the Cube tools: time, waiting, what caused it, calls and bytes, by call path and thread.

mod metrics;
mod together;
mod tree;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use laggard_cube::{Cube, Host, Process};
use laggard_engine::events::{Events, Joined, OUTSIDE, Outside, Wait};
use laggard_patterns::PatternId;
use laggard_report::units::{duration, plural};
use laggard_report::{LocationTimes, OffWork, Report, RootCause};
use laggard_trace::calls::CALLS;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use self::metrics::Metrics;
use self::tree::Tree;
use super::stacks::{Site, Sums};
use super::target::Target;

/// Writes the profile; returns a summary.
///
/// # Errors
/// The file exists, or cannot be written.
pub fn cube(events: &Events, report: &Report, output: &Path) -> Result<String> {
    let mut waits = Waits::default();
    events.join(&mut waits)?;
    let roots = report.root_causes.as_deref().unwrap_or_default();
    // Of these a report has more than single calls tell.
    let together = PatternId::TOGETHER.map(|pattern| pattern as u8);
    waits
        .lost
        .retain(|(pattern, ..), _| !together.contains(pattern));
    let places = events.placed.iter().map(|place| (place.rank, place.thread));
    let places: Vec<(u32, u32)> = places.collect();
    let tree = report.call_tree.iter();
    let lost: Vec<_> = tree
        .flat_map(|tree| together::lost(tree, &places))
        .collect();
    let of_calls = waits.lost.keys().map(|(pattern, ..)| *pattern);
    let patterns = of_calls.chain(lost.iter().map(|lost| lost.pattern as u8));
    let metrics = Metrics::new(patterns, roots);
    let (hosts, threads) = hosts(events);
    let mut filled = Filled {
        events,
        cube: Cube::new(metrics.all(), hosts),
        tree: Tree::new(events),
        metrics,
        threads,
    };
    filled.spent(&report.locations);
    for ((pattern, site, location), lost) in &waits.lost {
        if let Some(metric) = filled.metrics.of_pattern(*pattern) {
            let node = filled.tree.call(*site);
            filled.add(metric, node, *location as usize, *lost);
        }
    }
    for lost in &lost {
        if let Some(metric) = filled.metrics.of_pattern(lost.pattern as u8) {
            let node = filled.at(&lost.call, &lost.frames);
            for (location, ns) in &lost.of {
                filled.add(metric, node, *location, *ns);
            }
        }
    }
    filled.caused(roots);
    let Filled {
        mut cube,
        tree,
        metrics,
        ..
    } = filled;
    cube.call_paths = tree.into_nodes();
    cube.attributes = attributes(events);
    let mut target = Target::create(output)?;
    laggard_cube::write(&cube, &mut target)?;
    target.finish()?;
    let time = |metric| duration(cube.total(metric) as f64 / 1e9);
    Ok(format!(
        "{}: {} in {}, {} lost",
        output.display(),
        time(metrics.time()),
        plural(cube.call_paths.len() as u64, "call path"),
        time(metrics.lost()),
    ))
}

/// A profile that is being filled.
struct Filled<'e> {
    events: &'e Events,
    cube: Cube,
    tree: Tree<'e>,
    metrics: Metrics,
    /// Position of each location among the profile's threads.
    threads: Vec<usize>,
}

impl Filled<'_> {
    fn add(&mut self, metric: usize, node: usize, location: usize, amount: i64) {
        self.cube.add(metric, node, self.threads[location], amount);
    }

    /// Time by class, calls and bytes. Computation after a call is time of the function that made the
    /// call, as in a report; what no record tells is the program's. Where the report's `told` have been off their
    /// processors for longer than records between two calls tell, that is taken from work.
    fn spent(&mut self, told: &[LocationTimes]) {
        let events = self.events;
        let told = told
            .iter()
            .map(|times| ((times.rank, times.thread), &times.off_work));
        let told: FxHashMap<(u32, u32), &OffWork> = told.collect();
        let locations = (0..events.locations()).into_par_iter();
        let between: Vec<Between> = locations.map(|at| Between::new(events, at)).collect();
        let spent = events.spent().into_iter().zip(between);
        for (location, (spent, between)) in spent.enumerate() {
            for row in &spent.calls {
                let node = self.tree.call((row.call, row.call_path));
                let count = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
                self.add(self.metrics.of_class(row.class), node, location, row.ns);
                self.add(self.metrics.visits(), node, location, count(row.count));
                self.add(self.metrics.bytes(), node, location, count(row.bytes));
            }
            let mut left = i64::try_from(spent.computation_ns).unwrap_or(i64::MAX);
            let place = &events.placed[location];
            let told = told.get(&(place.rank, place.thread));
            let mut beyond = told.map_or([0; OUTSIDE.len()], |told| {
                OUTSIDE.map(|part| told_ns(told, part))
            });
            // Work by place, and first that of which no record tells where it was.
            let mut work = vec![(Tree::PROGRAM, 0)];
            for ((path, part), ns) in between.within(left) {
                let node = self.tree.function(path);
                match part {
                    Some(part) => {
                        self.add(self.metrics.outside(part), node, location, ns);
                        beyond[part as usize] -= ns;
                    }
                    None => work.push((node, ns)),
                }
                left -= ns;
            }
            work[0].1 = left;
            work[1..].sort_unstable_by_key(|(node, ns)| (Reverse(*ns), *node));
            for (part, mut beyond) in OUTSIDE.into_iter().zip(beyond) {
                for (node, work) in &mut work {
                    let ns = beyond.clamp(0, (*work).max(0));
                    self.add(self.metrics.outside(part), *node, location, ns);
                    *work -= ns;
                    beyond -= ns;
                }
            }
            for (node, ns) in work {
                self.add(self.metrics.computation(), node, location, ns);
            }
        }
    }

    /// Waiting by the place of its root cause, and by the ranks that the report lists.
    fn caused(&mut self, roots: &[RootCause]) {
        let events = self.events;
        let mut first: FxHashMap<u32, usize> = FxHashMap::default();
        for location in 0..events.locations() {
            first.entry(events.place(location).rank).or_insert(location);
        }
        for (at, root) in roots.iter().enumerate() {
            let node = self.place(root);
            for share in &root.ranks {
                if let Some(&location) = first.get(&share.rank) {
                    let ns = (share.severity_s * 1e9).round() as i64;
                    self.add(self.metrics.of_root(at), node, location, ns);
                }
            }
        }
    }

    /// Where a root cause is in the tree.
    fn place(&mut self, root: &RootCause) -> usize {
        let (operation, location) = match (&*root.activity, &root.until) {
            ("latency", Some(until)) => (&*until.operation, &until.location),
            ("io" | "call", _) => (&*root.operation, &root.location),
            _ => ("", &root.location),
        };
        self.at(operation, &location.callpath)
    }

    /// A call of this name below these frames; without one, the innermost frame.
    fn at(&mut self, name: &str, frames: &[String]) -> usize {
        match CALLS.iter().find(|call| call.name == name) {
            Some(call) => self.tree.call_at(call.number, frames),
            None => self.tree.function_at(frames),
        }
    }
}

/// What a report tells of a part of computation, ns.
fn told_ns(told: &OffWork, part: Outside) -> i64 {
    let seconds = match part {
        Outside::Blocked => told.blocked_s,
        Outside::Preempted => told.preempted_s,
        Outside::Kernel => told.kernel_s,
    };
    (seconds * 1e9).round() as i64
}

/// A call path, and what was done after it beside work.
type Part = (u32, Option<Outside>);

/// Computation of a location by the call path before it, ns.
struct Between(Vec<(Part, i64)>);

impl Between {
    fn new(events: &Events, location: usize) -> Between {
        let mut sums = Sums::of_location(events, location);
        let mut of: BTreeMap<Part, i64> = BTreeMap::new();
        for (path, ns) in sums.in_functions() {
            *of.entry((path, None)).or_default() += ns;
        }
        for between in sums.between.keys() {
            let (beside, work) = sums.beside(between);
            let path = between.0.1;
            for (part, ns) in OUTSIDE.into_iter().zip(beside) {
                *of.entry((path, Some(part))).or_default() += ns;
            }
            *of.entry((path, None)).or_default() += work;
        }
        let all = of.into_iter().filter(|(_, ns)| *ns > 0).collect();
        Between(all)
    }

    /// No more than `most` in all: the records also have what is before start-up and after shut-down.
    fn within(self, most: i64) -> Vec<(Part, i64)> {
        let all = self.0.iter().map(|(_, ns)| i128::from(*ns)).sum::<i128>();
        let share = |ns: i64| match all > i128::from(most) {
            true => (i128::from(ns) * i128::from(most) / all) as i64,
            false => ns,
        };
        let within = self.0.into_iter().map(|(part, ns)| (part, share(ns)));
        within.collect()
    }
}

/// Sums of time lost.
#[derive(Default)]
struct Waits {
    /// By pattern, call and location, ns.
    lost: FxHashMap<(u8, Site, u32), i64>,
}

impl Joined for Waits {
    fn wants_messages(&self) -> bool {
        false
    }

    fn wait(&mut self, wait: &Wait) -> Result<()> {
        let key = (wait.pattern, (wait.call, wait.call_path), wait.location);
        let sum = self.lost.entry(key).or_default();
        *sum = sum.saturating_add(wait.lost);
        Ok(())
    }
}

/// The hosts in the order of their first ranks, and where each location is among their threads.
fn hosts(events: &Events) -> (Vec<Host>, Vec<usize>) {
    let mut hosts: Vec<Host> = Vec::new();
    let mut at = Vec::new();
    for place in (0..events.locations()).map(|location| events.place(location)) {
        let known = hosts.iter().position(|host| host.name == place.host);
        let host = known.unwrap_or_else(|| {
            hosts.push(Host {
                name: place.host.to_owned(),
                processes: Vec::new(),
            });
            hosts.len() - 1
        });
        let processes = &mut hosts[host].processes;
        if processes.last().is_none_or(|last| last.rank != place.rank) {
            processes.push(Process {
                rank: place.rank,
                name: format!("rank {}", place.rank),
                threads: Vec::new(),
            });
        }
        if let Some(process) = processes.last_mut() {
            process.threads.push(place.thread);
        }
        at.push((host, at.len()));
    }
    // Locations ascend by rank and thread, and so do the threads of a host.
    let mut order = at;
    order.sort_unstable();
    let mut threads = vec![0; order.len()];
    for (thread, (_, location)) in order.into_iter().enumerate() {
        threads[location] = thread;
    }
    (hosts, threads)
}

fn attributes(events: &Events) -> Vec<(String, String)> {
    let writer = format!("laggard {}", env!("CARGO_PKG_VERSION"));
    let attribute = |key: &str, value: String| (key.to_owned(), value);
    vec![
        attribute("Creator", writer),
        attribute("Command", events.program().join(" ")),
        attribute("Ranks", events.ranks().to_string()),
    ]
}
