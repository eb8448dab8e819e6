//! Programs that people use: their results do not change, their traces are in order, and any
//! number of agents reports the same.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use laggard_tests::product::{Bench, programs, python};
use laggard_tests::report::Report;

/// A program of the system with an input of its own.
struct Real {
    bench: Bench,
    words: Vec<PathBuf>,
    /// The file that holds the results, if it is not the standard output.
    file: Option<&'static str>,
    /// Tells results from times in a line of the output.
    is_result: fn(&str) -> bool,
}

impl Real {
    fn new(test: &str, words: &[&Path], is_result: fn(&str) -> bool) -> Real {
        Real {
            bench: Bench::new(test),
            words: words.iter().map(|w| w.to_path_buf()).collect(),
            file: None,
            is_result,
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
        let results = text.lines().filter(|line| (self.is_result)(line));
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
        assert_eq!(report.errors(), [""; 0]);
        for id in ["unmatched_send", "unmatched_receive"] {
            assert_eq!(report.anomaly(id), 0, "{:#?}", report.anomalies);
        }
        report
    }
}

/// The HPC Challenge benchmarks on a problem of a second, on a grid of p times q ranks.
fn hpcc(p: u32, q: u32) {
    let is_result = |line: &str| {
        let words = [
            "||Ax-b||",
            "Found 0 errors",
            "tests completed",
            "Success",
            "with error",
        ];
        words.iter().any(|word| line.contains(word))
    };
    let mut real = Real::new(&format!("hpcc-{}", p * q), &[Path::new("hpcc")], is_result);
    real.file = Some("hpccoutf.txt");
    let text = fs::read_to_string(programs().join("real/hpccinf.txt")).expect("an input");
    real.input(
        "hpccinf.txt",
        &text
            .replace("@P", &p.to_string())
            .replace("@Q", &q.to_string()),
    );
    let report = real.check(p * q, 10, 1000);
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
    let input = programs().join("real/melt.in");
    let words = [Path::new("lmp"), Path::new("-in"), &input];
    // The table of steps: a number of the step, then energies and the like.
    let is_result = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        words.len() == 6 && words.iter().all(|word| word.parse::<f64>().is_ok())
    };
    let real = Real::new(&format!("lammps-{ranks}"), &words, is_result);
    real.check(ranks, 6, 1000);
}

#[test]
fn lammps_4() {
    lammps(4);
}

#[test]
fn lammps_8() {
    lammps(8);
}

/// A test program of ScaLAPACK (Fortran over the C of the BLACS), with its own input.
fn scalapack(name: &str, input: &str) {
    let directory = find_scalapack().expect("ScaLAPACK's tests: run `make deps`");
    let is_result = |line: &str| line.contains("tests completed");
    let real = Real::new(name, &[&directory.join(name)], is_result);
    let text = fs::read_to_string(directory.join(input)).expect("an input");
    real.input(input, &text);
    real.check(4, 2, 1000);
}

/// Below /usr/lib, in the directory of the architecture.
fn find_scalapack() -> Option<PathBuf> {
    let libraries = fs::read_dir("/usr/lib").ok()?.flatten();
    let mut places = libraries.map(|l| l.path().join("scalapack/openmpi-tests"));
    places.find(|directory| directory.is_dir())
}

#[test]
fn scalapack_lu() {
    scalapack("xdlu", "LU.dat");
}

#[test]
fn scalapack_qr() {
    scalapack("xdqr", "QR.dat");
}

#[test]
fn mpi4py_stencil() {
    let script = programs().join("real/stencil.py");
    let real = Real::new("stencil", &[&python(), &script], |_| true);
    real.check(4, 4, 500);
}
