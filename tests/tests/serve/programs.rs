//! A browser looks at all views of programs of other kinds than the small ones beside.

use std::process::Command;
use std::time::Duration;

use laggard_generator::{Length, Program, Settings, generate};
use laggard_tests::mpi::Mpi;
use laggard_tests::product::Bench;
use laggard_tests::tour::{Seen, tour};
use serde_json::Value;

/// The tour of a recording that is there, and what `laggard what-if` says of its first root cause.
fn recorded(bench: &Bench, name: &str) -> Seen {
    let (trace, report) = (bench.path("trace"), bench.path("report.json"));
    let outcome = bench.analyze(&trace, 1, &report, &["--all", "-q"]);
    outcome.expect_orderly().expect_success();
    let seen = tour(bench, &trace, &report, name);
    let mut command = Command::new(&bench.command);
    command
        .arg("what-if")
        .arg(&trace)
        .arg("--report")
        .arg(&report);
    let out = command
        .args(["--without-cause", "1", "--format", "json"])
        .output();
    let json: Value = serde_json::from_slice(&out.expect("a command").stdout).expect("JSON");
    let gain = json["scenarios"][0]["gain_s"].as_f64().expect("s");
    let shown = seen.gain.clone().expect("a gain");
    assert!(gain > 0.0 && (shown - gain).abs() < 1e-8, "{shown} {gain}");
    seen
}

#[test]
fn a_program_of_openshmem() {
    if Mpi::is_left_out(Mpi::Mpich, "it has no OpenSHMEM") {
        return;
    }
    let bench = Bench::sharing("serve-shmem");
    let source = "root_cause_shmem_chain.c";
    let program = bench.compile_with("oshcc", source, &[], &["-loshmem"]);
    let run = bench.traced(3, &[program.as_os_str()], "trace").shmem();
    run.run().expect_orderly().expect_success();
    let seen = recorded(&bench, "shmem");
    assert!(seen.call.starts_with("shmem_"), "{seen:?}");
}

#[test]
fn threads_of_ranks() {
    let bench = Bench::sharing("serve-hybrid");
    let program = bench.compile("threads/late_thread.c", &["-fopenmp", "-pthread"], &[]);
    let run = bench.traced(2, &[program.as_os_str()], "trace");
    let run = run.env("OMP_NUM_THREADS", "2");
    let run = run.env("OMP_WAIT_POLICY", "passive");
    run.run().expect_orderly().expect_success();
    let seen = recorded(&bench, "hybrid");
    assert!(!seen.call.is_empty(), "{seen:?}");
}

/// Rows of the map and of the matrix stand for many ranks each.
///
/// `LAGGARD_TEST_SERVE_CALLS` sets the number of calls (200,000 if unset). A replay of very many takes too long for a page, which
/// says so.
#[test]
fn thousands_of_ranks() {
    let asked = std::env::var("LAGGARD_TEST_SERVE_CALLS").ok();
    let calls: u64 = asked.and_then(|n| n.parse().ok()).unwrap_or(200_000);
    let mut bench = Bench::beside("serve-4096");
    bench.limit += Duration::from_micros(4 * calls);
    let settings = Settings {
        faults: vec!["slow-rank=1365:50".parse().expect("a fault")],
        ..Settings::new(Program::Halo2d, 4096, Length::Calls(calls))
    };
    let (trace, report) = (bench.path("trace"), bench.path("report.json"));
    generate(&settings, &trace).expect("a trace");
    let outcome = bench.analyze(&trace, 1, &report, &["--all", "-q"]);
    outcome.expect_orderly().expect_success();
    let seen = tour(&bench, &trace, &report, "serve-4096");
    println!("{seen:#?}");
    assert!(seen.call.starts_with("MPI_"), "{seen:?}");
    match seen.gain {
        Ok(gain) => assert!(gain > 0.0),
        Err(why) => {
            assert!(calls > 1_000_000, "{why}");
            assert!(why.contains("too large to replay it for a page"), "{why}");
        }
    }
    for kind in ["computation", "communication", "synchronization", "waiting"] {
        let mut totals = seen.totals.iter();
        assert!(
            totals.any(|(name, total)| name == kind && *total > 0.0),
            "{kind}"
        );
    }
}
