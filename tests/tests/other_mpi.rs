//! One command serves both MPIs, with libraries for each. A library that meets the other MPI says
//! so, once, and does no harm.
//!
//! The test needs the libraries for both, so it belongs to the tests with MPICH
//! (`LAGGARD_TEST_MPI=mpich`).

use std::ffi::OsStr;
use std::fs;
use std::process::Command;

use laggard_baselines::Table;
use laggard_tests::attack::assert_same;
use laggard_tests::mpi::Mpi;
use laggard_tests::process::{self, Outcome};
use laggard_tests::product::{Bench, TIMEOUT, collector};
use laggard_tests::report::Report;

/// Whether there are libraries for MPICH to test.
fn has_both() -> bool {
    let both = Mpi::chosen() == Mpi::Mpich;
    if !both {
        eprintln!("SKIPPED: tests with MPICH have libraries for both (LAGGARD_TEST_MPI=mpich)");
    }
    both
}

#[track_caller]
fn only_line(outcome: &Outcome) -> &str {
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "{outcome}");
    lines[0]
}

/// Runs a program of `mpi` under the library that was built for the other MPI.
fn preloaded(mpi: Mpi, source: &str, ranks: u32) {
    if !has_both() {
        return;
    }
    let theirs = collector(mpi.other());
    let mut bench = Bench::with(
        &format!("preloaded-{}-{}", mpi.name(), source.replace('/', "-")),
        mpi,
    );
    let program = bench.compile(source, &[], &[]);
    let plain = bench.plain(ranks, &[program.as_os_str()]).run();
    let plain = plain.expect_orderly().expect_success();
    bench.library = theirs;
    let traced = bench.traced(ranks, &[program.as_os_str()], "trace").run();
    let traced = traced.expect_orderly().expect_success();
    assert_same(&plain, &traced);
    let line = only_line(&traced);
    let start = "laggard: nothing is recorded: this program uses another MPI library (";
    assert!(line.starts_with(start), "{traced}");
    assert!(!bench.path("trace").exists(), "a trace with another MPI");
}

/// Programs in C, C++ and Fortran, with their numbers of ranks.
const PROGRAMS: [(&str, u32); 7] = [
    ("attacks/handles.c", 4),
    ("late_sender_sendrecv_ring.c", 4),
    ("late_sender_nested_communicator.c", 2),
    ("nonblocking_collectives.c", 4),
    ("cplusplus.cpp", 2),
    ("fortran_use_mpi.f90", 2),
    ("fortran_use_mpi_f08.f90", 2),
];

/// Addresses of handles stay whole: arguments in registers and on the stack, requests,
/// communicators that the program makes, conversions.
#[test]
fn library_for_mpich_and_programs_of_open_mpi() {
    for (source, ranks) in PROGRAMS {
        preloaded(Mpi::OpenMpi, source, ranks);
    }
}

#[test]
fn library_for_open_mpi_and_programs_of_mpich() {
    for (source, ranks) in PROGRAMS {
        preloaded(Mpi::Mpich, source, ranks);
    }
}

/// Files of one run with each MPI in one directory.
#[test]
fn traces_of_both_in_one_directory() {
    if !has_both() {
        return;
    }
    let traces = [Mpi::OpenMpi, Mpi::Mpich].map(|mpi| {
        let bench = Bench::with(&format!("mixed-{}", mpi.name()), mpi);
        let program = bench.compile("attacks/wrapped.c", &[], &[]);
        let run = bench.traced(2, &[program.as_os_str()], "trace").run();
        run.expect_orderly().expect_success();
        let files = fs::read_dir(bench.path("trace")).expect("a trace");
        let files = files.map(|file| file.expect("an entry").path());
        let read = |path: std::path::PathBuf| {
            let name = path.file_name().expect("a name").to_owned();
            (name, fs::read(&path).expect("a file"))
        };
        files.map(read).collect::<Vec<_>>()
    });
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let bench = Bench::with("mixed", mpi);
        let mixed = bench.path("trace");
        fs::create_dir(&mixed).expect("a directory");
        for (rank, files) in traces.iter().enumerate() {
            let own = format!("rank{rank:06}");
            for (name, content) in files {
                if name.to_string_lossy().starts_with(&own) {
                    fs::write(mixed.join(name), content).expect("a file");
                }
            }
        }
        assert_eq!(fs::read_dir(&mixed).expect("it").count(), 2);
        for agents in [1, 2] {
            let report = bench.path("report.json");
            let outcome = bench.analyze(&mixed, agents, &report, &["-q"]);
            let outcome = outcome.expect_orderly();
            assert_eq!(outcome.code, Some(1), "{outcome}");
            let line = outcome.stderr.lines().next().unwrap_or_default();
            assert!(line.contains("files of two runs"), "{outcome}");
            let said = outcome.stderr.matches("laggard: ").count();
            assert_eq!(said, 1, "{outcome}");
            assert!(!report.exists(), "a report of two runs");
        }
    }
}

/// Recordings of both MPIs: messages, communicators, collectives, windows and locks.
const ANALYSED: [(Mpi, &str, u32); 4] = [
    (Mpi::OpenMpi, "attacks/wrapped.c", 2),
    (Mpi::Mpich, "late_sender_wildcard.c", 3),
    (Mpi::Mpich, "nonblocking_collectives.c", 4),
    (Mpi::Mpich, "lock_contention.c", 4),
];

/// Launchers of either MPI start agents, which report the same: one, two and three of them.
#[test]
fn agents_of_both() {
    if !has_both() {
        return;
    }
    for (mpi, source, ranks) in ANALYSED {
        let name = format!("read-by-both-{}", source.replace('/', "-"));
        let mut bench = Bench::with(&name, mpi);
        let program = bench.compile(source, &[], &[]);
        let run = bench.traced(ranks, &[program.as_os_str()], "trace").run();
        run.expect_orderly().expect_success();
        let trace = bench.path("trace");
        let [of_open_mpi, of_mpich] = [Mpi::OpenMpi, Mpi::Mpich].map(|mpi| {
            bench.mpi = mpi;
            bench.analyze_all(&trace)
        });
        let difference = laggard_tests::product::difference(&of_mpich, &of_open_mpi);
        assert_eq!(difference, None, "{source}");
        let report = Report::parse(&of_mpich).expect("a report of the promised shape");
        assert!(!report.bottlenecks.is_empty(), "{report:#?}");
    }
}

/// `laggard run` takes the collector for the MPI that the program is linked to, behind a wrapper,
/// too; for a program that loads MPI later, the one for the launcher's.
#[test]
fn recordings_of_both() {
    if !has_both() {
        return;
    }
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let bench = Bench::with(&format!("picked-{}", mpi.name()), mpi);
        let linked = bench.compile("attacks/wrapped.c", &[], &[]);
        let unlinked = ["-Wl,--as-needed"];
        let loading = bench.compile("attacks/dlopen_mpi.c", &unlinked, &["-ldl"]);
        let programs: [&[&OsStr]; 2] = [
            &[linked.as_os_str()],
            &[loading.as_os_str(), "local".as_ref()],
        ];
        for (number, words) in programs.into_iter().enumerate() {
            let launcher = mpi.mpirun(2);
            let mut run = Command::new(&bench.command);
            run.args(["run", "-o", &format!("trace{number}"), "--"]);
            run.arg(launcher.get_program()).args(launcher.get_args());
            run.args(["env", "A=1"]).args(words).current_dir(&bench.dir);
            let log = bench.path(&format!("run{number}"));
            let outcome = process::run(&mut run, TIMEOUT, &log).expect_orderly();
            let outcome = outcome.expect_success();
            assert!(outcome.stderr.contains("(2 files"), "{outcome}");
        }
    }
}

/// Each finds the libraries for its launcher.
#[test]
fn baselines_of_both() {
    if !has_both() {
        return;
    }
    for (mpi, name) in [(Mpi::OpenMpi, "Open MPI"), (Mpi::Mpich, "MPICH")] {
        let bench = Bench::with(&format!("measured-{}", mpi.name()), mpi);
        let words = [
            "baseline",
            "--time",
            "3",
            "--max-bytes",
            "64",
            "--only",
            "MPI_Recv",
        ];
        let mut job = mpi.mpirun(2);
        job.arg(&bench.command).args(words).current_dir(&bench.dir);
        let outcome = process::run(&mut job, TIMEOUT, &bench.path("baseline"));
        outcome.expect_orderly().expect_success();
        let table = Table::read(&bench.path("baseline.json")).expect("a table");
        assert!(table.description.contains(name), "{}", table.description);
    }
}
