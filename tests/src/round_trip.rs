//! Exports a trace as an OTF2 archive. An analysis of the archive must find exactly the same as one
//! of the trace.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process;
use crate::product::{Bench, TIMEOUT};
use crate::replayed;
use crate::report::{Bottleneck, Location, Report};

/// Largest error of a loss: it is the difference of two times, each rounded to the ns of the
/// archive's clock. Seconds.
const RESOLUTION_S: f64 = 2e-9;

/// Exports the trace, and lists the differences of the archive's analysis from the trace's
/// `report`, both with `--all`.
///
/// # Panics
/// If the trace cannot be exported, or the archive cannot be analysed.
pub fn differences(bench: &Bench, trace: &Path, report: &Report) -> Vec<String> {
    let archive = bench.path("archive");
    let _ = fs::remove_dir_all(&archive);
    let mut command = Command::new(&bench.command);
    command
        .arg("export")
        .arg(trace)
        .args(["--to", "otf2", "-q"]);
    command.arg("-o").arg(&archive);
    let outcome = process::run(&mut command, TIMEOUT, &bench.path("export"));
    outcome.expect_orderly().expect_success();
    let path = bench.path("report-archive.json");
    let anchor = archive.join("traces.otf2");
    let outcome = bench.analyze(&anchor, 1, &path, &["--all", "-q"]);
    outcome.expect_orderly().expect_success();
    let text = fs::read_to_string(&path).expect("a report");
    let imported = Report::parse(&text).expect("a report of the promised shape");
    let mut differences = Differences::default();
    differences.of_runs(report, &imported);
    differences.of_findings(report, &imported);
    differences.of_anomalies(report, &imported);
    differences
        .0
        .extend(replayed::differences(&anchor, &imported));
    differences.0
}

/// The differences, a line each.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn must<T: Debug>(&mut self, holds: bool, what: &str, (own, imported): (&T, &T)) {
        if !holds {
            let text = format!("{what}: {own:?}, in the archive {imported:?}");
            self.0.push(text);
        }
    }

    fn same<T: Debug + PartialEq>(&mut self, what: &str, (own, imported): (&T, &T)) {
        self.must(own == imported, what, (own, imported));
    }

    fn of_runs(&mut self, own: &Report, imported: &Report) {
        let (a, b) = (&own.run, &imported.run);
        self.same("program", (&a.program, &b.program));
        self.same("hosts", (&a.hosts, &b.hosts));
        self.same("calls", (&a.operations, &b.operations));
        let threads = |r: &Report| -> Vec<(u32, u32, String)> {
            let locations = r.locations.iter();
            locations
                .map(|l| (l.rank, l.thread, l.host.clone()))
                .collect()
        };
        self.same("locations", (&threads(own), &threads(imported)));
        // Each call's length is rounded. An archive does not tell that a test failed, and what it
        // looked for then: some of the time between such tests counts as looking there.
        let tests = own
            .operations
            .iter()
            .filter(|o| o.operation.starts_with("MPI_Test"));
        let looking = if tests.count() > 0 { LOOKING_S } else { 0.0 };
        let resolution = resolution(a.operations) + looking;
        for (own, imported) in own.locations.iter().zip(&imported.locations) {
            let times = |l: &Location| [l.communication_s, l.synchronization_s, l.io_s, l.wait_s];
            let (a, b) = (times(own), times(imported));
            let near = a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= resolution);
            self.must(near, &format!("times of rank {}", own.rank), (&a, &b));
        }
    }

    fn of_findings(&mut self, own: &Report, imported: &Report) {
        let costs = [own, imported].map(|report| {
            report
                .location_sums
                .map_or(0.0, |sums| sums.in_calls.cost_s)
        });
        let cost = (costs[0] - costs[1]).abs();
        let (own, imported) = (by_place(own), by_place(imported));
        let places: BTreeSet<&Key<'_>> = own.keys().chain(imported.keys()).collect();
        for place in places {
            match (own.get(place), imported.get(place)) {
                (Some(own), Some(imported)) => self.of_finding(own, imported, cost),
                (own, imported) => {
                    // A loss may be less than the clock's resolution.
                    let found = own.or(imported).expect("one of both");
                    // Archives do not name neighbours, so they do not tell when these were through.
                    let is_among_neighbours = found.pattern == "nxn_completion"
                        && found.operation.starts_with("MPI_Neighbor_")
                        && imported.is_none();
                    let is_none =
                        is_among_neighbours || found.severity_s <= resolution(found.instances);
                    self.must(is_none, &format!("{place:?}"), (&own, &imported));
                }
            }
        }
    }

    /// `cost` is the difference of what calls cost.
    fn of_finding(&mut self, own: &Bottleneck, imported: &Bottleneck, cost: f64) {
        let about = format!("{} in {} at {:?}", own.pattern, own.operation, own.location);
        let mut resolution = resolution(own.instances);
        if ["without_processor", "storage"].contains(&&*own.pattern) {
            // It is at most what would be unexplained: what calls took beyond their cost.
            resolution += cost + 2.0 * RESOLUTION_S * own.calls as f64;
        }
        let near = |a: f64, b: f64| (a - b).abs() <= resolution;
        self.same(&about, (&own.location, &imported.location));
        self.same(&about, (&own.calls, &imported.calls));
        self.same(&about, (&own.instances, &imported.instances));
        self.same(&about, (&own.confidence, &imported.confidence));
        let severities = (&own.severity_s, &imported.severity_s);
        self.must(
            near(own.severity_s, imported.severity_s),
            &about,
            severities,
        );
        let ranks = |found: &Bottleneck| -> BTreeMap<u32, (u64, f64)> {
            let ranks = found.ranks.iter();
            ranks
                .map(|r| (r.rank, (r.instances, r.severity_s)))
                .collect()
        };
        let (a, b) = (ranks(own), ranks(imported));
        let is_same = a.len() == b.len()
            && a.iter()
                .zip(&b)
                .all(|((rank, a), (other, b))| (rank, a.0) == (other, b.0) && near(a.1, b.1));
        self.must(is_same, &about, (&a, &b));
        // An archive does not name neighbours: of those that may be some, who came last had to be.
        if own.operation.starts_with("MPI_Neighbor_") {
            let last = |found| {
                causes(found)
                    .into_iter()
                    .max_by(|a, b| a.1.0.total_cmp(&b.1.0))
            };
            let (a, b) = (last(own), last(imported));
            let is_same = a.as_ref().map(|a| &a.0) == b.as_ref().map(|b| &b.0);
            return self.must(is_same, &about, (&a, &b));
        }
        let (a, b) = (causes(own), causes(imported));
        let is_same = a.len() == b.len()
            && a.iter()
                .zip(&b)
                .all(|((key, a), (other, b))| key == other && near(a.0, b.0) && a.1 == b.1);
        self.must(is_same, &about, (&a, &b));
    }

    fn of_anomalies(&mut self, own: &Report, imported: &Report) {
        let rows = |report: &Report| -> Vec<(String, String, u64, String)> {
            let row = |a: &crate::report::Anomaly| {
                (a.id.clone(), a.severity.clone(), a.count, words(&a.detail))
            };
            let mut rows: Vec<_> = report.anomalies.iter().map(row).collect();
            rows.sort();
            rows
        };
        self.same("anomalies", (&rows(own), &rows(imported)));
    }
}

/// Time between tests that fail, s.
const LOOKING_S: f64 = 20e-6;

/// Largest error of a sum over this many instances, seconds.
fn resolution(instances: u64) -> f64 {
    RESOLUTION_S * (instances + 1) as f64
}

/// Pattern, operation and call path.
type Key<'r> = (&'r str, &'r str, &'r [String]);

/// Findings of single calls. Unexplained time of all calls together is left out: it is their excess
/// over the fastest one, each rounded.
fn by_place(report: &Report) -> BTreeMap<Key<'_>, &Bottleneck> {
    let found = report.bottlenecks.iter();
    let of_calls = found.filter(|found| found.pattern != "unexplained");
    let rows = of_calls.map(|found| {
        let path = found.location.callpath.as_slice();
        (
            (found.pattern.as_str(), found.operation.as_str(), path),
            found,
        )
    });
    rows.collect()
}

/// Rank, operation and call path, with the time and the explanation.
type Causes = BTreeMap<(u32, String, Vec<String>), (f64, String)>;

fn causes(found: &Bottleneck) -> Causes {
    let causes = found.causes.iter().map(|cause| {
        let path = cause.location.callpath.clone();
        let key = (cause.rank, cause.operation.clone(), path);
        (key, (cause.severity_s, words(&cause.because)))
    });
    causes.collect()
}

/// A text without numbers, which are rounded times.
fn words(text: &str) -> String {
    // Where a rank was between calls is a matter of root causes, which are compared by themselves.
    let stretch = text.find(" between ").or_else(|| text.find("mostly at "));
    let at = stretch.and_then(|at| text[..at].rfind(", "));
    let text = &text[..at.unwrap_or(text.len())];
    // Whether most of the time or only the end of it was in a call may be close.
    let text = text
        .replace(", at last in ", " in ")
        .replace(", mostly in ", " in ");
    // Of code without names, an archive does not tell where a function begins.
    let mut parts = text.split("+0x");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    let text = rest.fold(first, |text, part| text + part);
    text.chars().filter(|c| !c.is_ascii_digit()).collect()
}
