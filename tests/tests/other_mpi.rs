//! A product built for one MPI meets the other one. It says so, once, and does no harm.
//!
//! The test needs both products, so it belongs to the tests with MPICH (`LAGGARD_TEST_MPI=mpich`).

use std::fs;

use laggard_tests::attack::assert_same;
use laggard_tests::mpi::Mpi;
use laggard_tests::process::{self, Outcome};
use laggard_tests::product::{Bench, TIMEOUT};
use laggard_tests::report::Report;

/// Whether there is a product for MPICH to test.
fn has_both() -> bool {
    let both = Mpi::chosen() == Mpi::Mpich;
    if !both {
        eprintln!("SKIPPED: tests with MPICH have both products (LAGGARD_TEST_MPI=mpich)");
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
    let theirs = Bench::with("other-product", mpi.other()).library.clone();
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

/// Both products read recordings of either, with one, two and three agents of MPICH as with one of
/// Open MPI: messages, communicators, collectives, windows and locks.
const ANALYSED: [(Mpi, &str, u32); 4] = [
    (Mpi::OpenMpi, "attacks/wrapped.c", 2),
    (Mpi::Mpich, "late_sender_wildcard.c", 3),
    (Mpi::Mpich, "nonblocking_collectives.c", 4),
    (Mpi::Mpich, "lock_contention.c", 4),
];

#[test]
fn agents_of_both() {
    if !has_both() {
        return;
    }
    // Before a bench of this test has the machine to itself.
    let of_open_mpi = Bench::with("agents-of-both", Mpi::OpenMpi).command.clone();
    let of_mpich = Bench::with("agents-of-both", Mpi::Mpich).command.clone();
    for (mpi, source, ranks) in ANALYSED {
        let name = format!("read-by-both-{}", source.replace('/', "-"));
        let mut bench = Bench::with(&name, mpi);
        let program = bench.compile(source, &[], &[]);
        let run = bench.traced(ranks, &[program.as_os_str()], "trace").run();
        run.expect_orderly().expect_success();
        let trace = bench.path("trace");
        (bench.mpi, bench.command) = (Mpi::Mpich, of_mpich.clone());
        let of_mpich = bench.analyze_all(&trace);
        (bench.command, bench.agents) = (of_open_mpi.clone(), &[1]);
        let of_open_mpi = bench.analyze_all(&trace);
        let difference = laggard_tests::product::difference(&of_mpich, &of_open_mpi);
        assert_eq!(difference, None, "{source}");
        let report = Report::parse(&of_mpich).expect("a report of the promised shape");
        assert!(!report.bottlenecks.is_empty(), "{report:#?}");
    }
}

/// Each process would consider itself the only agent, and all would write the report.
#[test]
fn agents_that_the_other_s_launcher_starts() {
    if !has_both() {
        return;
    }
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let bench = Bench::with(&format!("agents-{}", mpi.name()), mpi);
        let program = bench.compile("attacks/wrapped.c", &[], &[]);
        let run = bench.traced(2, &[program.as_os_str()], "trace").run();
        run.expect_orderly().expect_success();
        let mut command = mpi.other().mpirun(2);
        command.arg(&bench.command).arg("analyze");
        command.arg(bench.path("trace")).arg("-q");
        let outcome = process::run(&mut command, TIMEOUT, &bench.path("agents"));
        let outcome = outcome.expect_orderly();
        assert_ne!(outcome.code, Some(0), "{outcome}");
        let said = |line: &&str| line.contains("mpirun of another MPI");
        assert_eq!(outcome.stderr.lines().filter(said).count(), 1, "{outcome}");
        assert!(!bench.path("trace/report.json").exists(), "a report");
    }
}
