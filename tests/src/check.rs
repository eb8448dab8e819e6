//! The whole procedure for one program of `programs/`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::attempts;
use crate::directives::Directives;
use crate::expectations::{self, Miss};
use crate::mpi::Mpi;
use crate::product::{self, Bench};
use crate::replayed;
use crate::report::{Report, in_schedule_s};
use crate::round_trip;

/// Least share of the first bottleneck's time that the filters must keep.
const LEFT_BY_FILTERS: f64 = 0.9;

/// The factor of delays where only results count.
const PLAIN: &str = "0.1";

/// Waiting from this on, seconds, must come first with and without filters.
const CLEARLY_A_BOTTLENECK: f64 = 0.05;

/// Builds, runs, records and analyses a program. Compares the results with the directives in its
/// source, and with the findings of its trace as an archive.
///
/// # Panics
/// With every difference.
pub fn check_program(source: &str) {
    let path = product::programs().join(source);
    let text = fs::read_to_string(&path).expect("a source");
    let directives = Directives::parse(&text).unwrap_or_else(|e| panic!("{source}: {e}"));
    let mpi = Mpi::chosen().name();
    if let Some((_, because)) = directives.not_with.iter().find(|(name, _)| name == mpi) {
        eprintln!("SKIPPED with {mpi}: {source}: {because}");
        return;
    }
    let bench = Bench::sharing(source);
    let program = Program::build(&bench, &path, &directives);
    let plain = program.run(None);
    attempts::until_right(source, |attempt| {
        let trace = bench.path(&format!("trace-{attempt}"));
        let traced = program.run(Some(&trace));
        assert_eq!(plain, traced, "the collector changes the program's results");
        let text = bench.analyze_agreed(&trace);
        let parse = |text: &str| Report::parse(text).expect("a report of the promised shape");
        let report = parse(&text);
        let in_schedule = parse(&in_schedule_s(&text, attempts::scale()));
        let mut misses = expectations::misses(&directives, source, &in_schedule);
        // Other uses of a trace do not depend on the MPI.
        let is_whole = Mpi::chosen() == Mpi::OpenMpi;
        if is_whole {
            misses.extend(unaccounted(&report));
            misses.extend(filtered(&bench, &trace, &report));
            misses.extend(unsaid(&bench, &trace, &directives));
            let wrong = replayed::differences(&trace, &report);
            assert_eq!(wrong, [""; 0], "{source}");
            let different = round_trip::differences(&bench, &trace, &report);
            let list = different.join("\n  ");
            let about = format!("{source}, as an archive:\n  {list}");
            let mut operations = report.operations.iter();
            let has_neighbours = operations.any(|of| of.operation.starts_with("MPI_Neighbor_"));
            // An archive does not name neighbours: on a busy machine, a rank may seem to wait for another one.
            if has_neighbours && !different.is_empty() {
                return Err(about.into());
            }
            assert!(different.is_empty(), "{about}");
        }
        expectations::verdict(&misses)
    });
}

/// A program that can be started.
struct Program<'a> {
    bench: &'a Bench,
    directives: &'a Directives,
    words: Vec<PathBuf>,
}

impl<'a> Program<'a> {
    fn build(bench: &'a Bench, source: &Path, directives: &'a Directives) -> Program<'a> {
        let run = &directives.run;
        let strs = |list: &'a [String]| list.iter().map(String::as_str).collect::<Vec<_>>();
        let mut words = match source.extension().and_then(OsStr::to_str) {
            Some("py") => vec![product::python(), source.into()],
            _ => {
                let name = source.file_name().and_then(OsStr::to_str).expect("a file");
                let library = run.link.as_ref().map(|source| bench.library(source));
                let library = library.as_deref().and_then(Path::to_str);
                let libs = [library.as_slice(), &strs(&run.libs)].concat();
                vec![bench.compile(name, &strs(&run.cflags), &libs)]
            }
        };
        words.extend(run.args.iter().map(PathBuf::from));
        Program {
            bench,
            directives,
            words,
        }
    }

    /// Runs it, with the collector if there is a trace directory; returns its results.
    fn run(&self, trace: Option<&Path>) -> Vec<String> {
        let words: Vec<&OsStr> = self.words.iter().map(|w| w.as_os_str()).collect();
        let ranks = self.directives.run.ranks;
        let mut run = match trace.and_then(Path::file_name).and_then(OsStr::to_str) {
            Some(trace) => self.bench.traced(ranks, &words, trace),
            None => self.bench.plain(ranks, &words),
        };
        for (key, value) in &self.directives.run.env {
            run = run.env(key, value);
        }
        if trace.is_none() {
            run = run.env(attempts::SCALE, PLAIN);
        }
        let outcome = run.run().expect_orderly().expect_success();
        assert_eq!(outcome.stderr, "", "messages of\n{outcome}");
        let mut lines: Vec<String> = outcome.stdout.lines().map(String::from).collect();
        lines.sort();
        assert!(!lines.is_empty(), "no results of\n{outcome}");
        lines
    }
}

/// Time in calls that no sum contains. Charges to patterns, unexplained time and the cost of calls
/// must add up to it. The patterns are taken from the findings, which are summed in another way.
fn unaccounted(report: &Report) -> Option<Miss> {
    let calls = report.location_sums?.in_calls;
    let metrics = report.metrics.iter();
    let of_patterns: f64 = metrics
        .filter(|(id, _)| !["init_completion", "unexplained"].contains(&id.as_str()))
        .map(|(_, metric)| metric.total_s)
        .sum();
    let unexplained = report.metrics.get("unexplained").map_or(0.0, |m| m.total_s);
    let costs = report.operations.iter().filter_map(|row| row.cost_s);
    let of_operations: f64 = costs.sum();
    let pairs = [
        (
            calls.total_s,
            calls.explained_s + calls.unexplained_s + calls.cost_s,
        ),
        (calls.explained_s, of_patterns),
        (calls.unexplained_s, unexplained),
        (calls.cost_s, of_operations),
    ];
    // Each number is rounded to a nanosecond.
    let is_off = |(one, other): &(f64, f64)| (one - other).abs() > 1e-7;
    pairs.iter().any(is_off).then(|| Miss {
        timing: false,
        text: format!("{calls:?} of {pairs:?}: does not add up"),
    })
}

/// Expected text that the report lacks; none of it depends on times.
fn unsaid(bench: &Bench, trace: &Path, directives: &Directives) -> Vec<Miss> {
    if directives.says.is_empty() {
        return Vec::new();
    }
    let outcome = bench.analyze(trace, 1, &bench.path("report-said.json"), &["--all"]);
    let said = outcome.expect_orderly().expect_success().stdout;
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let unsaid = directives
        .says
        .iter()
        .filter(|text| !words(&said).contains(&words(text)));
    let miss = |text: &String| Miss {
        timing: false,
        text: format!("the report does not say {text:?}:\n{said}"),
    };
    unsaid.map(miss).collect()
}

/// The filtered analysis must name the same first bottleneck as the one with `--all`, with about
/// the same time.
pub fn filtered(bench: &Bench, trace: &Path, all: &Report) -> Option<Miss> {
    let path = bench.path("report-filtered.json");
    let outcome = bench.analyze(trace, 1, &path, &["-q"]);
    outcome.expect_orderly().expect_success();
    let text = fs::read_to_string(&path).expect("a report");
    let report = Report::parse(&text).expect("a report of the promised shape");
    let top = all.bottlenecks.first()?;
    if top.severity_s < CLEARLY_A_BOTTLENECK {
        return None;
    }
    let first = report.bottlenecks.first();
    let same = all
        .bottlenecks
        .iter()
        .filter(|b| b.severity_s >= 0.8 * top.severity_s)
        .find(|b| first.is_some_and(|f| (&f.pattern, &f.location) == (&b.pattern, &b.location)));
    let is_there = same
        .zip(first)
        .is_some_and(|(all, left)| left.severity_s >= LEFT_BY_FILTERS * all.severity_s);
    (!is_there).then(|| Miss {
        timing: false,
        text: format!(
            "the filters let {:?} come first instead of {:.4} s at {:?}",
            first.map(|b| (&b.pattern, b.severity_s, &b.location)),
            top.severity_s,
            top.location
        ),
    })
}
