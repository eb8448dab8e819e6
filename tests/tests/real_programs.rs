//! Programs that people use: their results do not change, their traces are in order, and any
//! number of agents reports the same.

use std::collections::BTreeMap;
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
    results: Option<&'static str>,
}

impl Real {
    fn new(test: &str, words: &[&Path]) -> Real {
        Real {
            bench: Bench::new(test),
            words: words.iter().map(|w| w.to_path_buf()).collect(),
            results: None,
        }
    }

    fn input(&self, name: &str, text: &str) {
        fs::write(self.bench.path(name), text).expect("an input");
    }

    /// One run; how often each line stands in its results.
    fn lines(&self, ranks: u32, trace: Option<&str>) -> BTreeMap<String, usize> {
        if let Some(name) = self.results {
            let _ = fs::remove_file(self.bench.path(name));
        }
        let words: Vec<&OsStr> = self.words.iter().map(|w| w.as_os_str()).collect();
        let run = match trace {
            Some(trace) => self.bench.traced(ranks, &words, trace),
            None => self.bench.plain(ranks, &words),
        };
        let outcome = run.timeout(120).run().expect_orderly().expect_success();
        assert!(!outcome.stderr.contains("laggard"), "complains:\n{outcome}");
        let text = match self.results {
            Some(name) => fs::read_to_string(self.bench.path(name)).expect("results"),
            None => outcome.stdout,
        };
        let mut lines = BTreeMap::new();
        for line in text.lines() {
            *lines.entry(line.to_string()).or_insert(0) += 1;
        }
        lines
    }

    /// Runs, records and analyses. Lines that two runs without the collector have in common
    /// tell no times: a run with the collector must have them, too, `marker` among them.
    fn check(&self, ranks: u32, marker: &str, least_operations: u64) -> Report {
        let trace = format!("trace-{ranks}");
        let [mut expected, again] = [self.lines(ranks, None), self.lines(ranks, None)];
        expected.retain(|line, count| again.get(line) == Some(count));
        let marked = expected.keys().any(|line| line.contains(marker));
        assert!(marked, "no {marker:?} in {expected:#?}");
        let traced = self.lines(ranks, Some(&trace));
        for (line, count) in &expected {
            assert_eq!(
                traced.get(line),
                Some(count),
                "changed by the collector: {line:?}"
            );
        }
        let report = self.bench.analyze_all(&self.bench.path(&trace));
        let report = Report::parse(&report).expect("a report of the promised shape");
        assert_eq!(report.run.ranks, ranks);
        assert!(
            report.run.operations >= least_operations,
            "only {}",
            report.run.operations
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
    let mut real = Real::new(&format!("hpcc-{}", p * q), &[Path::new("hpcc")]);
    real.results = Some("hpccoutf.txt");
    let text = fs::read_to_string(programs().join("real/hpccinf.txt")).expect("an input");
    real.input(
        "hpccinf.txt",
        &text
            .replace("@P", &p.to_string())
            .replace("@Q", &q.to_string()),
    );
    let report = real.check(p * q, "PASSED", 1000);
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
    let real = Real::new(&format!("lammps-{ranks}"), &words);
    real.check(ranks, "Created 2048 atoms", 1000);
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
    let real = Real::new(name, &[&directory.join(name)]);
    let text = fs::read_to_string(directory.join(input)).expect("an input");
    real.input(input, &text);
    real.check(4, "tests completed and passed residual checks", 1000);
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
    let real = Real::new("stencil", &[&python(), &script]);
    real.check(4, "residual", 500);
}
