//! Threads of a rank that do not wait, or for one of them alone, and what else may go on in a process.

use std::fs;
use std::process::Command;

use laggard_report::words;
use laggard_tests::attempts::{Off, until_right};
use laggard_tests::process;
use laggard_tests::product::{Bench, Mpirun, TIMEOUT, reader};
use laggard_tests::recorded::{check, mark, near};
use laggard_tests::threads::{self, DELAY, FLAGS, ROUNDS, Run};
use serde_json::Value;

/// Patterns of threads that wait for each other.
const PATTERNS: [&str; 10] = [
    "idle_threads",
    "wait_at_critical",
    "wait_at_implicit_omp_barrier",
    "wait_at_omp_barrier",
    "wait_at_ordered",
    "wait_at_thread_barrier",
    "wait_for_tasks",
    "wait_for_thread",
    "wait_on_mutex",
    "wait_on_signal",
];
/// Nobody waits longer in all rounds together, s, than a fifteenth of what late ones cost in other programs: threads
/// wake up some 50 us apart, and later where others use the machine.
const SILENT: f64 = ROUNDS * DELAY / 15.0;

/// Near misses of all patterns: who is waited for comes at the same moment, or has come.
#[test]
fn nobody_waits_where_all_come_in_time() {
    let is_silent = |run: &Run| {
        for pattern in PATTERNS {
            let lost = run.lost(pattern);
            check(lost < SILENT, &(pattern, lost, run.finding(pattern)))?;
        }
        let uneven = run.report["thread_imbalance"]
            .as_array()
            .into_iter()
            .flatten();
        let overload: f64 = uneven.filter_map(|row| row["overload_s"].as_f64()).sum();
        check(overload < SILENT, &run.report["thread_imbalance"])?;
        // All of them are used.
        for call in [
            "omp_parallel",
            "omp_barrier",
            "pthread_join",
            "pthread_barrier_wait",
        ] {
            assert!(
                run.dump.contains(&format!(" {call} ")),
                "{call}: {}",
                run.dump
            );
        }
        Ok(())
    };
    until_right("silent", |_| is_silent(&Run::of("silent.c", 1, "2")));
    until_right("silent by clang", |_| {
        is_silent(&Run::by_clang("silent.c", 1, "2"))
    });
}

/// Threads are idle while the first one computes alone: it is to blame, and samples name its function. A time line
/// has both.
#[test]
fn a_serial_part_is_the_first_threads() {
    let source = "threads/serial.c";
    until_right("serial", |_| {
        let bench = Bench::sharing("threads-serial");
        let program = bench.compile(source, FLAGS, &[]);
        let sampled = [("LAGGARD_SAMPLE_HZ", "1000")];
        let run = Run::recorded_with(&bench, &program, (1, "4"), &sampled);
        let idle = 3.0 * ROUNDS * DELAY;
        run.loses("idle_threads", idle)?;
        run.begins_in_main("idle_threads")?;
        let root = run.root();
        let cost = root["severity_s"].as_f64().unwrap_or(0.0);
        check(near(cost, idle, 0.1 * idle), root)?;
        check(
            root["rank_set"] == "0" && root["thread_set"].is_null(),
            root,
        )?;
        check(root["until"]["line"] == mark(source, "region"), root)?;
        let function = &root["functions"][0];
        check(function["function"] == "compute_alone", root)?;
        let lines = mark(source, "serial") - 1..=mark(source, "serial");
        let line = function["line"].as_u64().unwrap_or(0);
        check(lines.contains(&(line as u32)), root)?;
        is_on_a_time_line(&bench, &run)
    });
}

/// What a time line has of threads: every call, their waits, whom for, and samples.
fn is_on_a_time_line(bench: &Bench, run: &Run) -> Result<(), Off> {
    let (trace, output) = (bench.path("trace"), bench.path("line"));
    let mut command = Command::new(&bench.command);
    command
        .arg("export")
        .arg(trace)
        .args(["--to", "perfetto", "-o"]);
    command.arg(&output);
    process::run(&mut command, TIMEOUT, &bench.path("export")).expect_success();
    let mut command = reader("perfetto_trace.py");
    command.arg(&output);
    let read = process::run(&mut command, TIMEOUT, &bench.path("reader")).expect_success();
    let line: Value = serde_json::from_str(&read.stdout).expect("JSON");
    assert_eq!(line["problems"], serde_json::json!([]));
    let regions = run.dump.matches(" omp_parallel ").count() as u64;
    assert_eq!(line["calls"]["omp_parallel"], regions);
    let hops = &line["hops"]["thread 1 > rank 0"];
    assert!(hops.as_u64() >= Some(ROUNDS as u64), "{}", line["hops"]);
    // A sample each millisecond.
    let samples = line["samples"]["rank 0"].as_f64().unwrap_or(0.0);
    check(samples > 500.0 * ROUNDS * DELAY, &line["samples"])
}

/// Nobody waits for what a cancelled thread waited for, whether it was known or not.
#[test]
fn cancelled_threads_do_not_wait() {
    let run = Run::of("cancelled.c", 1, "1");
    let posts = run.dump.lines().filter(|line| line.contains(" sem_post "));
    // For the one thread that was not cancelled.
    assert_eq!(posts.count(), 1, "{}", run.dump);
}

/// Four threads want a mutex at the same time.
#[test]
fn contention_is_charged_to_those_who_hold() {
    let source = "threads/contended.c";
    until_right("contended", |_| {
        let run = Run::of("contended.c", 1, "1");
        // Each comes a millisecond after the one before.
        let held = [19.0 + 18.0 + 17.0, 2.0 * 20.0, 20.0].map(|ms| 1e-3 * ms * ROUNDS);
        let waited = held.iter().sum();
        run.loses("wait_on_mutex", waited)?;
        let found = run.finding("wait_on_mutex");
        check(found["location"]["line"] == mark(source, "lock"), found)?;
        let severity = found["severity_s"].as_f64().unwrap_or(0.0);
        check(near(severity, waited, 0.1 * waited), found)?;
        run.is_due_to_each("wait_on_mutex", mark(source, "unlock"), &held)?;
        let locks = run.dump.matches("pthread_mutex_lock").count();
        check(locks == 3 * ROUNDS as usize, &run.dump)
    });
}

/// Iterations that depend on others, and regions with reductions of tasks, with both runtimes of OpenMP.
#[test]
fn iterations_wait_for_those_that_they_depend_on() {
    let source = "threads/depends.c";
    let check_run = |run: &Run| {
        run.loses("wait_at_ordered", ROUNDS * DELAY)?;
        run.loses("wait_at_implicit_omp_barrier", ROUNDS * (DELAY + 0.005))?;
        let found = run.finding("wait_at_ordered");
        check(found["location"]["line"] == mark(source, "sink"), found)?;
        let cause = &found["causes"][0];
        check(cause["operation"] == "omp_ordered_end", cause)?;
        check(cause["location"]["line"] == mark(source, "source"), cause)
    };
    until_right("depends", |_| check_run(&Run::of("depends.c", 1, "2")));
    until_right("depends by clang", |_| {
        check_run(&Run::by_clang("depends.c", 1, "2"))
    });
}

/// A process with two OpenMP runtimes: the waits of both are told.
#[test]
fn two_runtimes_are_both_seen() {
    let (source, library) = ("threads/two_runtimes.c", "threads/other_runtime.c");
    until_right("two runtimes", |_| {
        let bench = Bench::sharing("threads-two-runtimes");
        let flags = ["-fopenmp=libomp", "-shared", "-fPIC"];
        let other = bench.compile_with("clang", library, &flags, &[]);
        let other = other.to_str().expect("a path");
        let run = bench.compile(source, FLAGS, &[other]);
        let run = Run::recorded(&bench, &run, 1, "2");
        for (pattern, line) in [
            ("wait_at_omp_barrier", mark(source, "barrier")),
            ("wait_at_implicit_omp_barrier", mark(library, "region")),
        ] {
            run.loses(pattern, ROUNDS * DELAY)?;
            let found = run.finding(pattern);
            check(found["location"]["line"] == line, found)?;
        }
        Ok(())
    });
}

/// A tool that the user names is the runtime's, as without the collector; that ours is not is said.
#[test]
fn a_tool_of_the_user_goes_first() {
    let bench = Bench::beside("threads-other-tool");
    let tool = bench.library("threads/other_tool.c");
    let program = bench.compile_with(
        "clang",
        "threads/other_runtime.c",
        &["-fopenmp=libomp", "-shared", "-fPIC"],
        &[],
    );
    let program = bench.compile(
        "threads/two_runtimes.c",
        FLAGS,
        &[program.to_str().expect("a path")],
    );
    let tool = format!("/nowhere.so:{}", tool.display());
    let with = |run: Mpirun<'_>| {
        let run = run
            .env("OMP_NUM_THREADS", "2")
            .env("OMP_TOOL_LIBRARIES", &*tool);
        run.run().expect_orderly().expect_success()
    };
    let plain = with(bench.plain(1, &[program.as_os_str()]));
    let traced = with(bench.traced(1, &[program.as_os_str()], "trace"));
    assert!(
        plain.stdout.contains("the user's tool is there"),
        "{plain:?}"
    );
    assert_eq!(plain.stdout, traced.stdout);
    let said = traced
        .stderr
        .matches("an OpenMP runtime has another tool")
        .count();
    assert_eq!(said, 1, "{}", traced.stderr);
}

/// Nobody knows who of another process comes to a barrier, or gives a lock back.
#[test]
fn what_processes_share_is_no_meeting_of_threads() {
    let bench = Bench::beside("threads-shared-barrier");
    let program = bench.compile("threads/shared_barrier.c", FLAGS, &[]);
    let run = Run::recorded(&bench, &program, 2, "1");
    assert!(!run.dump.contains(" pthread_barrier_wait "), "{}", run.dump);
    for pattern in PATTERNS {
        assert_eq!(run.finding(pattern), &Value::Null, "{pattern}");
    }
}

/// A wait for a lock that another process has is for nobody known, and no cost of the call.
#[test]
fn waits_for_other_processes_are_unexplained() {
    let source = "threads/shared_lock.c";
    until_right("shared lock", |_| {
        let run = Run::of("shared_lock.c", 2, "1");
        let expected = ROUNDS * DELAY;
        let found = run.finding("unexplained");
        check(found["operation"] == "pthread_mutex_lock", found)?;
        check(found["location"]["line"] == mark(source, "lock"), found)?;
        run.loses("unexplained", expected)?;
        check(run.finding("wait_on_mutex").is_null(), &run.report)?;
        let calls = &run.report["location_sums"]["in_calls"];
        let unexplained = calls["unexplained_s"].as_f64().unwrap_or(0.0);
        let cost = calls["cost_s"].as_f64().unwrap_or(f64::MAX);
        check(near(unexplained, expected, 0.1 * expected), calls)?;
        check(cost < SILENT, calls)?;
        let report = serde_json::from_value(run.report.clone()).expect("a report");
        let said = words::verdict(&report);
        let unknown = "no recorded thread ended these waits";
        check(said.contains(unknown) && !said.contains("cost"), &said)
    });
}

/// Who looks at a variable until the others are done does no work, whomever these waited for before. Its number is
/// the next one's.
#[test]
fn who_looks_until_told_to_end_is_no_location() {
    let run = Run::of("looker.c", 1, "1");
    assert_eq!(run.report["run"]["locations"], 3, "{}", run.dump);
    for thread in ["0/1 ", "0/2 "] {
        assert!(
            run.dump.lines().any(|line| line.starts_with(thread)),
            "{}",
            run.dump
        );
    }
}

/// Regions in too many others and waits of too many threads are counted, and the program goes on.
#[test]
fn what_is_too_much_is_counted() {
    let bench = Bench::beside("threads-many");
    let gcc = bench.compile("threads/many.c", FLAGS, &[]);
    let clang = threads::by_clang(&bench, "many.c");
    // Of eleven regions, each in all others, three are too deep where the runtime tells of itself.
    for (program, deep) in [(gcc, 0), (clang, 3)] {
        let run = bench.traced(1, &[program.as_os_str()], "trace").run();
        let outcome = run.expect_orderly();
        assert_eq!(outcome.expect_success().stdout, "22 entered, 300 taken\n");
        let report: Value =
            serde_json::from_str(&bench.analyze_all(&bench.path("trace"))).expect("JSON");
        let anomalies = report["anomalies"].as_array().expect("anomalies");
        let count = |id: &str| {
            let found = anomalies.iter().find(|one| one["id"] == id);
            found.map_or(0, |one| one["count"].as_u64().expect("a number"))
        };
        assert_eq!(count("regions_too_deep"), deep, "{anomalies:?}");
        // Threads that come at the same time may all have found room.
        let locations = report["run"]["locations"].as_u64().expect("a number");
        assert!(
            (256..=272).contains(&locations),
            "{locations} {anomalies:?}"
        );
        // The first thread and those of regions are locations, too.
        let missed = count("waits_left_out");
        assert!((30..=60).contains(&missed), "{missed}");
        fs::remove_dir_all(bench.path("trace")).expect("the trace goes");
    }
}
