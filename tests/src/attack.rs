//! Programs that must behave the same with and without the collector.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::attempts;
use crate::mpi::Mpi;
use crate::process::Outcome;
use crate::product::{Bench, PROCESSOR_TIME};
use crate::report::{Bottleneck, Report};

/// The loss in programs with three rounds of 60 ms, give or take scheduling.
const THREE_ROUNDS: std::ops::Range<f64> = 0.150..0.230;

/// Links MPI only into programs that call it by name.
const AS_NEEDED: &str = "-Wl,--as-needed";

/// A program of `programs/attacks/` and its environment.
pub struct Attack {
    /// Its directory and the product.
    pub bench: Bench,
    /// The program and its arguments.
    pub words: Vec<PathBuf>,
    /// Environment of the ranks, with and without the collector.
    pub env: Vec<(&'static str, String)>,
}

/// Whether the launcher's exit code tells how a rank without MPI_Finalize ended. MPICH's launcher
/// kills the other ranks then, and returns the code of whichever it sees first.
fn tells_ends() -> bool {
    Mpi::chosen() == Mpi::OpenMpi
}

impl Attack {
    /// Compiles it.
    pub fn new(test: &str, source: &str, arguments: &[&str]) -> Attack {
        Attack::on(Bench::beside(test), source, arguments)
    }

    /// Compiles it for this test.
    pub fn on(bench: Bench, source: &str, arguments: &[&str]) -> Attack {
        let program = bench.compile(&format!("attacks/{source}"), &["-pthread"], &["-ldl"]);
        let mut words = vec![program];
        words.extend(arguments.iter().map(PathBuf::from));
        Attack {
            bench,
            words,
            env: Vec::new(),
        }
    }

    /// A program that is not linked with MPI.
    pub fn unlinked(test: &str, source: &str, arguments: &[&str]) -> Attack {
        let bench = Bench::beside(test);
        let program = bench.compile(&format!("attacks/{source}"), &[AS_NEEDED], &["-ldl"]);
        let mut words = vec![program];
        words.extend(arguments.iter().map(PathBuf::from));
        Attack {
            bench,
            words,
            env: Vec::new(),
        }
    }

    /// Compiles a library of `programs/attacks/` for the program or its linker to load.
    pub fn library(&self, source: &str) -> PathBuf {
        let cflags = ["-shared", "-fPIC", AS_NEEDED];
        let source = format!("attacks/{source}");
        self.bench.compile(&source, &cflags, &["-ldl"])
    }

    /// Its trace directory.
    pub fn trace(&self) -> PathBuf {
        self.bench.path("trace")
    }

    /// Runs without and with the collector; the program's behaviour must be the same.
    pub fn run(&self) -> Outcome {
        let [plain, traced] = self.outcomes();
        assert_same(&plain, &traced);
        traced
    }

    /// As [`run`](Self::run), of a program with ranks that end without MPI_Finalize.
    #[track_caller]
    pub fn run_to_an_end(&self) -> Outcome {
        let [mut plain, traced] = self.outcomes();
        if !tells_ends() {
            plain.code = traced.code;
        }
        assert_same(&plain, &traced);
        traced
    }

    /// The report of such a program, after a loss of three times 60 ms.
    #[track_caller]
    pub fn three_rounds_to_an_end(&self) -> Report {
        three_rounds("main", || {
            self.forget_trace();
            self.run_to_an_end();
            self.analyzed()
        })
    }

    /// Outcomes of a run without and with the collector.
    fn outcomes(&self) -> [Outcome; 2] {
        let words: Vec<&OsStr> = self.words.iter().map(|w| w.as_os_str()).collect();
        [None, Some("trace")].map(|trace| {
            let mut run = match trace {
                Some(trace) => self.bench.traced(2, &words, trace),
                None => self.bench.plain(2, &words),
            };
            run = run.env(PROCESSOR_TIME, "1");
            for (key, value) in &self.env {
                run = run.env(key, value);
            }
            let outcome = run.run().expect_orderly();
            // Open MPI's launcher, which loads no collector, sometimes crashes while it ends the
            // ranks.
            if outcome.signal != Some(libc::SIGSEGV) {
                return outcome;
            }
            if trace.is_some() {
                self.forget_trace();
            }
            run.run().expect_orderly()
        })
    }

    /// Runs as above and analyses the trace.
    pub fn report(&self) -> Report {
        self.run();
        self.analyzed()
    }

    fn analyzed(&self) -> Report {
        let text = self.bench.analyze_agreed(&self.trace());
        let report = Report::parse(&text).expect("a report of the promised shape");
        assert_eq!(report.run.ranks, 2, "{report:#?}");
        report
    }

    /// The report of a program whose rank 1 loses three times 60 ms in `function`.
    #[track_caller]
    pub fn three_rounds(&self, function: &str) -> Report {
        three_rounds(function, || {
            self.forget_trace();
            self.report()
        })
    }

    /// Removes the trace of an earlier attempt.
    pub fn forget_trace(&self) {
        if self.trace().exists() {
            fs::remove_dir_all(self.trace()).expect("an earlier trace goes");
        }
    }
}

/// Exit code, signal and lines of the output are the same.
#[track_caller]
pub fn assert_same(plain: &Outcome, traced: &Outcome) {
    // MPICH's launcher prints process numbers if processes end in another way.
    const LAUNCHER_S: [&str; 4] = ["=", "YOUR APPLICATION", "This typically", "Please see"];
    let is_launchers = |line: &&str| {
        let begins = LAUNCHER_S.iter().any(|start| line.starts_with(start));
        begins || line.is_empty()
    };
    let facts = |o: &Outcome| {
        let lines = o.stdout.lines().filter(|line| !is_launchers(line));
        let mut lines: Vec<String> = lines.map(String::from).collect();
        lines.sort();
        (o.code, o.signal, lines)
    };
    assert_eq!(
        facts(plain),
        facts(traced),
        "without:\n{plain}\nwith:\n{traced}"
    );
}

/// The late senders in `function`.
pub fn late_senders<'a>(report: &'a Report, function: &str) -> Vec<&'a Bottleneck> {
    let here = |b: &&Bottleneck| {
        let name = b.location.function.as_deref();
        b.pattern == "late_sender" && name.is_some_and(|name| name.contains(function))
    };
    report.bottlenecks.iter().filter(here).collect()
}

/// The report of `attempt`, as soon as rank 1 lost three times 60 ms in `function`.
#[track_caller]
pub fn three_rounds(function: &str, mut attempt: impl FnMut() -> Report) -> Report {
    attempts::until_right(function, |_| {
        let report = attempt();
        let found = late_senders(&report, function);
        let total: f64 = found.iter().map(|b| b.severity_s).sum();
        match THREE_ROUNDS.contains(&(total / attempts::scale())) {
            true => Ok(report),
            false => Err(format!("{total} s in {report:#?}").into()),
        }
    })
}

/// Fails unless all anomalies are information only.
#[track_caller]
pub fn assert_no_anomalies(report: &Report) {
    let odd = report.anomalies.iter().filter(|a| a.severity != "info");
    assert_eq!(odd.count(), 0, "{:#?}", report.anomalies);
}

/// The subdirectories of a directory.
pub fn only_directories(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path)
        .expect("a directory")
        .map(|e| e.expect("an entry"));
    let directories = entries.filter(|e| e.path().is_dir());
    let names = directories.map(|e| e.file_name().to_string_lossy().into_owned());
    names.collect()
}
