//! Real programs: their results do not change, their traces are in order, any number of agents
//! reports the same, and reports agree with the calls.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use laggard_tests::check::filtered;
use laggard_tests::dump::Dump;
use laggard_tests::expectations::invariants;
use laggard_tests::mpi::Mpi;
use laggard_tests::product::{Bench, programs, python};
use laggard_tests::replayed;
use laggard_tests::report::Report;
use laggard_tests::tour::tour;

/// Percent of all time from which on a bottleneck must come first with filters, too: far above the
/// share of a rank's time at which the filters keep an operation.
const FIRST_FOR_ALL: f64 = 5.0;

/// An installed program with an input of our own.
struct Real {
    bench: Bench,
    words: Vec<PathBuf>,
    /// The file with the results, if it is not the standard output.
    file: Option<&'static str>,
    /// The part of an output line that is a result, not a time.
    result: fn(&str) -> Option<&str>,
}

impl Real {
    fn new(test: &str, words: &[&Path], result: fn(&str) -> Option<&str>) -> Real {
        Real {
            bench: Bench::sharing(test),
            words: words.iter().map(|w| w.to_path_buf()).collect(),
            file: None,
            result,
        }
    }

    fn input(&self, name: &str, text: &str) {
        fs::write(self.bench.path(name), text).expect("an input");
    }

    /// The results of one run.
    fn results(&self, ranks: u32, trace: Option<&str>) -> Vec<String> {
        if let Some(name) = self.file {
            let _ = fs::remove_file(self.bench.path(name));
        }
        let words: Vec<&OsStr> = self.words.iter().map(|w| w.as_os_str()).collect();
        let run = match trace {
            Some(trace) => self.bench.traced(ranks, &words, trace),
            None => self.bench.plain(ranks, &words),
        };
        let outcome = run.timeout(120).run().expect_orderly().expect_success();
        assert!(!outcome.stderr.contains("laggard"), "complains:\n{outcome}");
        let text = match self.file {
            Some(name) => fs::read_to_string(self.bench.path(name)).expect("results"),
            None => outcome.stdout,
        };
        let results = text.lines().filter_map(self.result);
        results.map(String::from).collect()
    }

    /// Runs with and without the collector, and analyses.
    fn check(&self, ranks: u32, least_results: usize, least_operations: u64) -> Report {
        let trace = format!("trace-{ranks}");
        let plain = self.results(ranks, None);
        assert!(plain.len() >= least_results, "only {plain:#?}");
        let traced = self.results(ranks, Some(&trace));
        assert_eq!(plain, traced, "the collector changes the results");
        let report = self.bench.analyze_all(&self.bench.path(&trace));
        let report = Report::parse(&report).expect("a report of the promised shape");
        assert_eq!(report.run.ranks, ranks);
        let operations = report.run.operations;
        assert!(
            operations >= least_operations,
            "only {operations} operations"
        );
        assert_eq!(invariants(&report), []);
        assert!(report.anomalies.is_empty(), "{:#?}", report.anomalies);
        let trace = self.bench.path(&trace);
        let dump = self.bench.dump(&trace);
        let (wrong, compared) = Dump::parse(&dump).compare(&report);
        assert_eq!(wrong, [""; 0], "not what the calls say");
        assert!(compared > 0, "nothing to compare with the calls");
        assert_eq!(replayed::differences(&trace, &report), [""; 0]);
        let first = report.bottlenecks.first();
        if first.is_some_and(|first| first.percent > FIRST_FOR_ALL) {
            assert_eq!(filtered(&self.bench, &trace, &report), None);
        }
        report
    }

    /// Looks at all views of one of its runs.
    fn look(&self, ranks: u32, name: &str) {
        if ranks == 4 {
            let (trace, report) = (self.bench.path("trace-4"), self.bench.path("report-1.json"));
            let seen = tour(&self.bench, &trace, &report, name);
            assert!(seen.call.starts_with("MPI_"), "{seen:?}");
        }
    }

    /// With filters and without root causes, agents exchange less than for the report with `--all`.
    fn check_filters(&self, ranks: u32) {
        let read = |name: &str| {
            let text = fs::read_to_string(self.bench.path(name)).expect("a report");
            Report::parse(&text).expect("a report of the promised shape")
        };
        let path = self.bench.path("report-filtered-2.json");
        let trace = self.bench.path(&format!("trace-{ranks}"));
        let outcome = self.bench.analyze(&trace, 2, &path, &["-q", "--fast"]);
        outcome.expect_orderly().expect_success();
        let (few, all) = (read("report-filtered-2.json"), read("report-2.json"));
        assert!(few.bottlenecks.len() < all.bottlenecks.len());
        let (few, all) = (few.agents, all.agents);
        assert!(few.requests < all.requests, "{few:?} {all:?}");
        assert!(few.bytes_exchanged < all.bytes_exchanged, "{few:?} {all:?}");
    }
}

/// The HPC Challenge benchmarks on a problem of a second, on a grid of p times q ranks.
fn hpcc(p: u32, q: u32) {
    if Mpi::is_left_out(Mpi::Mpich, "hpcc, which Debian builds for Open MPI alone") {
        return;
    }
    fn result(line: &str) -> Option<&str> {
        let words = ["||Ax-b||", "tests completed", "Success", "with error"];
        // Ranks update a table at random. The benchmark's rules allow them to lose a few updates.
        let passed = line
            .strip_prefix("Found ")
            .and_then(|l| Some(l.split_once(' ')?.1));
        passed.or(words.iter().any(|word| line.contains(word)).then_some(line))
    }
    let mut real = Real::new(&format!("hpcc-{}", p * q), &[Path::new("hpcc")], result);
    real.file = Some("hpccoutf.txt");
    let text = fs::read_to_string(programs().join("real/hpccinf.txt")).expect("an input");
    real.input(
        "hpccinf.txt",
        &text
            .replace("@P", &p.to_string())
            .replace("@Q", &q.to_string()),
    );
    let report = real.check(p * q, 10, 1000);
    real.check_filters(p * q);
    real.look(p * q, "hpcc");
    assert!(report.run.program.contains("hpcc"), "{:?}", report.run);
}

#[test]
fn hpcc_2() {
    hpcc(1, 2);
}

#[test]
fn hpcc_4() {
    hpcc(2, 2);
}

fn lammps(ranks: u32) {
    if Mpi::is_left_out(Mpi::Mpich, "lmp, which Debian builds for Open MPI alone") {
        return;
    }
    let input = programs().join("real/melt.in");
    let words = [Path::new("lmp"), Path::new("-in"), &input];
    // The table of steps: number of the step, then energies and similar values.
    fn result(line: &str) -> Option<&str> {
        let words: Vec<_> = line.split_whitespace().collect();
        let is_result = words.len() == 6 && words.iter().all(|word| word.parse::<f64>().is_ok());
        is_result.then_some(line)
    }
    let mut real = Real::new(&format!("lammps-{ranks}"), &words, result);
    if ranks == 8 {
        // Shares that are not equal, one of them of two ranks.
        real.bench.agents = &[1, 2, 3, 7];
    }
    real.check(ranks, 6, 1000);
    real.check_filters(ranks);
    real.look(ranks, "lammps");
}

#[test]
fn lammps_2() {
    lammps(2);
}

#[test]
fn lammps_4() {
    lammps(4);
}

#[test]
fn lammps_8() {
    lammps(8);
}

/// A test program of ScaLAPACK (Fortran over the C of the BLACS), with its own input. It skips
/// grids that need more ranks.
fn scalapack(name: &str, input: &str, ranks: u32) {
    let directory = find_scalapack().expect("ScaLAPACK's tests: run `make deps`");
    fn result(line: &str) -> Option<&str> {
        line.contains("tests completed").then_some(line)
    }
    let test = format!("{name}-{ranks}");
    let real = Real::new(&test, &[&directory.join(name)], result);
    let text = fs::read_to_string(directory.join(input)).expect("an input");
    real.input(input, &text);
    real.check(ranks, 2, 1000);
}

/// Below /usr/lib, in the directory of the architecture.
fn find_scalapack() -> Option<PathBuf> {
    let tests = format!("scalapack/{}-tests", Mpi::chosen().name());
    let libraries = fs::read_dir("/usr/lib").ok()?.flatten();
    let mut places = libraries.map(|l| l.path().join(&tests));
    places.find(|directory| directory.is_dir())
}

#[test]
fn scalapack_lu_2() {
    scalapack("xdlu", "LU.dat", 2);
}

#[test]
fn scalapack_qr_4() {
    scalapack("xdqr", "QR.dat", 4);
}

fn stencil(ranks: u32) {
    if Mpi::is_left_out(Mpi::Mpich, "mpi4py, which Debian builds for Open MPI alone") {
        return;
    }
    let script = programs().join("real/stencil.py");
    let test = format!("stencil-{ranks}");
    let real = Real::new(&test, &[&python(), &script], |line| Some(line));
    real.check(ranks, 4, 500);
}

#[test]
fn mpi4py_stencil_2() {
    stencil(2);
}

#[test]
fn mpi4py_stencil_4() {
    stencil(4);
}
