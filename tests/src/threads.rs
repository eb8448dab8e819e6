//! Programs with several threads, recorded and analysed: what their tests look at.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use laggard_engine::AnalyzeOptions;
use serde_json::Value;

use crate::agents::assert_agreed;
use crate::attack::assert_same;
use crate::attempts::{self, Off};
use crate::process;
use crate::product::{Bench, Mpirun, programs};
use crate::recorded::{check, near};
use crate::report::{in_schedule_s, schema_violations};

/// Flags of the programs.
pub const FLAGS: &[&str] = &["-fopenmp", "-pthread"];
/// Rounds of the programs.
pub const ROUNDS: f64 = 5.0;
/// How late threads are in each round, s.
pub const DELAY: f64 = 0.060;

/// Compiles a program below `programs/threads` with LLVM's compiler and runtime.
///
/// # Panics
/// If it does not compile.
pub fn by_clang(bench: &Bench, source: &str) -> PathBuf {
    by_clang_with(bench, source, &[])
}

/// The same with more flags.
///
/// # Panics
/// As above.
pub fn by_clang_with(bench: &Bench, source: &str, flags: &[&str]) -> PathBuf {
    let source = programs().join("threads").join(source);
    let program = bench.path("by-clang");
    let mut command = Command::new(bench.mpi.compiler(&source));
    command.env("OMPI_CC", "clang").env("MPICH_CC", "clang");
    command
        .env("OMPI_CXX", "clang++")
        .env("MPICH_CXX", "clang++");
    command.args(["-O1", "-g"]).args(FLAGS).args(flags);
    command.arg(&source);
    command.arg("-o").arg(&program);
    let limit = Duration::from_secs(120);
    process::run(&mut command, limit, &bench.path("clang")).expect_success();
    program
}

/// What is reported of a program with so many threads.
pub struct Run {
    /// The report.
    pub report: Value,
    /// Its calls as text.
    pub dump: String,
}

impl Run {
    /// A program below `programs/threads`.
    ///
    /// # Panics
    /// If it does not compile, or behaves otherwise than without the collector.
    pub fn of(source: &str, ranks: u32, threads: &str) -> Run {
        let name = source.replace('.', "-");
        let bench = Bench::sharing(&format!("threads-{name}"));
        let program = bench.compile(&format!("threads/{source}"), FLAGS, &[]);
        Run::recorded(&bench, &program, ranks, threads)
    }

    /// The same with LLVM's compiler and runtime.
    ///
    /// # Panics
    /// As above.
    pub fn by_clang(source: &str, ranks: u32, threads: &str) -> Run {
        let bench = Bench::sharing(&format!("threads-clang-{}", source.replace('.', "-")));
        let program = by_clang(&bench, source);
        Run::recorded(&bench, &program, ranks, threads)
    }

    /// Of a program that is built; with the reports of several agents.
    ///
    /// # Panics
    /// If it behaves otherwise than without the collector, or agents disagree.
    pub fn recorded(bench: &Bench, program: &Path, ranks: u32, threads: &str) -> Run {
        Run::recorded_with(bench, program, (ranks, threads), &[])
    }

    /// The same, with more variables.
    ///
    /// # Panics
    /// As above.
    pub fn recorded_with(
        bench: &Bench,
        program: &Path,
        (ranks, threads): (u32, &str),
        more: &[(&str, &str)],
    ) -> Run {
        let words: [&OsStr; 1] = [program.as_os_str()];
        let teams = [("OMP_NUM_THREADS", threads), ("OMP_WAIT_POLICY", "passive")];
        let with = |run| {
            let all = teams.iter().chain(more);
            all.fold(run, |run: Mpirun<'_>, (key, value)| run.env(key, *value))
        };
        let plain = with(bench.plain(ranks, &words)).run().expect_success();
        let traced = with(bench.traced(ranks, &words, "trace")).run();
        assert_same(&plain, &traced.expect_orderly());
        let trace = bench.path("trace");
        let path = bench.path("report.json");
        let outcome = bench.analyze(&trace, 1, &path, &["-q"]);
        outcome.expect_orderly().expect_success();
        let report = fs::read_to_string(&path).expect("a report");
        assert_agreed(&trace, &AnalyzeOptions::default());
        assert_eq!(schema_violations(&report), [""; 0]);
        let report = in_schedule_s(&report, attempts::scale());
        Run {
            report: serde_json::from_str(&report).expect("JSON"),
            dump: bench.dump(&trace),
        }
    }

    /// Time lost in a pattern, s.
    pub fn lost(&self, pattern: &str) -> f64 {
        self.report["metrics"][pattern]["total_s"]
            .as_f64()
            .unwrap_or(0.0)
    }

    /// The first finding of a pattern.
    pub fn finding(&self, pattern: &str) -> &Value {
        let mut found = self.report["bottlenecks"].as_array().into_iter().flatten();
        found
            .find(|found| found["pattern"] == pattern)
            .unwrap_or(&Value::Null)
    }

    /// Whether the call paths of a pattern's findings begin in the main program.
    ///
    /// # Errors
    /// They do not.
    pub fn begins_in_main(&self, pattern: &str) -> Result<(), Off> {
        let found = self.report["bottlenecks"].as_array().into_iter().flatten();
        let paths = found.filter(|found| found["pattern"] == pattern);
        let paths = paths.map(|found| &found["location"]["callpath"]);
        let paths: Vec<&Value> = paths.collect();
        let is_whole = |path: &&Value| path[0].as_str().is_some_and(|of| of.starts_with("main "));
        check(!paths.is_empty() && paths.iter().all(is_whole), &paths)
    }

    /// Whether a metric has this value, but for a tenth.
    ///
    /// # Errors
    /// It has not.
    pub fn loses(&self, pattern: &str, expected: f64) -> Result<(), Off> {
        let lost = self.lost(pattern);
        check(
            near(lost, expected, 0.1 * expected),
            &(pattern, lost, expected),
        )
    }

    /// Whether the parts of MPI and of threads multiply, and first threads are so long in MPI, s.
    ///
    /// # Errors
    /// They are not, which may be the machine's fault.
    ///
    /// # Panics
    /// If parts do not multiply.
    pub fn is_hybrid(&self, in_mpi: f64) -> Result<(), Off> {
        let hybrid = &self.report["efficiency"]["hybrid"];
        let of = |part: &str, name: &str| hybrid[part][name].as_f64().unwrap_or(f64::NAN);
        let all = hybrid["parallel"].as_f64().unwrap_or(f64::NAN);
        assert!(near(
            of("mpi", "parallel") * of("threads", "parallel"),
            all,
            1e-5
        ));
        for part in ["mpi", "threads"] {
            let product = of(part, "load_balance") * of(part, "communication");
            assert!(near(product, of(part, "parallel"), 1e-5), "{hybrid}");
        }
        let locations = self.report["locations"].as_array().into_iter().flatten();
        let first = locations.filter(|location| location["thread"] == 0);
        let walls: Vec<f64> = first.filter_map(|one| one["wall_s"].as_f64()).collect();
        let wall = walls.iter().copied().fold(0.0, f64::max);
        let found = (1.0 - of("mpi", "parallel")) * wall * walls.len() as f64;
        check(near(found, in_mpi, 0.15 * in_mpi), &(found, hybrid))
    }

    /// Whether this finding at a line is due to that thread of rank 0 alone, which let go on at the other line, and took
    /// so long, s.
    ///
    /// # Errors
    /// It is not.
    pub fn is_due_to(
        &self,
        found: &Value,
        (line, (thread, let_go_on)): (u32, (u32, u32)),
        expected: f64,
    ) -> Result<(), Off> {
        let [cause] = &found["causes"].as_array().map_or(&[][..], Vec::as_slice) else {
            return check(false, &(expected, found));
        };
        check(found["location"]["line"] == line, found)?;
        check(cause["rank"] == 0 && cause["thread"] == thread, found)?;
        check(cause["location"]["line"] == let_go_on, found)?;
        for of in [found, cause] {
            let severity = of["severity_s"].as_f64().unwrap_or(0.0);
            check(near(severity, expected, 0.1 * expected), &(expected, of))?;
        }
        Ok(())
    }

    /// Whether that thread of rank 0, or its first one, starts so much waiting, s, by what it does between calls at these lines, but for the
    /// first time.
    ///
    /// # Errors
    /// It does not.
    pub fn starts(
        &self,
        thread: &str,
        (begin, until): (u32, u32),
        expected: f64,
    ) -> Result<(), Off> {
        let roots = self.report["root_causes"].as_array().into_iter().flatten();
        let such: Vec<&Value> = roots
            .filter(|root| {
                let threads = root["thread_set"].as_str().unwrap_or_default();
                let is_it = root["rank_set"] == "0" && threads == thread;
                is_it && root["until"]["line"] == until && root["activity"] == "computation"
            })
            .collect();
        let first = such.first().map(|root| &root["location"]["line"]);
        check(first.is_some_and(|line| *line == begin), &(begin, &such))?;
        let severity = such.iter().filter_map(|root| root["severity_s"].as_f64());
        let severity: f64 = severity.sum();
        check(near(severity, expected, 0.1 * expected), &(expected, such))
    }

    /// Whether a pattern is due to threads of rank 0 that let go on at this line: the first thread, and the others by the
    /// time, s.
    ///
    /// # Errors
    /// It is not.
    pub fn is_due_to_each(
        &self,
        pattern: &str,
        let_go_on: u32,
        expected: &[f64],
    ) -> Result<(), Off> {
        let mut sums = BTreeMap::new();
        let found = self.report["bottlenecks"].as_array().into_iter().flatten();
        let found = found.filter(|found| found["pattern"] == pattern);
        for cause in found.flat_map(|found| found["causes"].as_array().into_iter().flatten()) {
            let is_right = cause["rank"] == 0 && cause["location"]["line"] == let_go_on;
            check(is_right, cause)?;
            *sums.entry(cause["thread"].as_u64()).or_insert(0.0) +=
                cause["severity_s"].as_f64().unwrap_or(0.0);
        }
        let first = sums.remove(&Some(0));
        let mut others: Vec<f64> = sums.into_values().collect();
        others.sort_by(|one, other| other.total_cmp(one));
        let each: Vec<f64> = first.into_iter().chain(others).collect();
        let mut pairs = each.iter().zip(expected);
        let are_near = pairs.all(|(found, expected)| near(*found, *expected, 0.1 * expected));
        check(
            are_near && each.len() == expected.len(),
            &(pattern, each, expected),
        )
    }

    /// The first root cause.
    pub fn root(&self) -> &Value {
        &self.report["root_causes"][0]
    }
}
