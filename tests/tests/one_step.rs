//! `laggard run --report`, and commands that find the trace by themselves.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use laggard_tests::mpi::Mpi;
use laggard_tests::process::{self, Outcome};
use laggard_tests::product::{Bench, TIMEOUT, mpirun};
use laggard_tests::report::Report;

/// `laggard` with these words, in the test's directory.
fn laggard(bench: &Bench, words: &[&str]) -> Command {
    let mut command = Command::new(&bench.command);
    command.args(words).current_dir(&bench.dir);
    command.env_remove("LAGGARD_TRACE_DIR");
    command
}

fn outcome(bench: &Bench, command: &mut Command) -> Outcome {
    let run = || process::run(command, TIMEOUT, &bench.path("command"));
    bench.record(run).expect_orderly()
}

/// The same with `-- mpirun -n 2 program`.
fn run(bench: &Bench, words: &[&str], program: &[&str]) -> Command {
    let mut command = laggard(bench, &[&["run"], words, &["--"]].concat());
    command.arg(Mpi::chosen().launcher());
    command.args(mpirun(2).get_args()).args(program);
    command
}

fn report(trace: &Path) -> Report {
    let text = fs::read_to_string(trace.join("report.json")).expect("a report");
    Report::parse(&text).expect("a report of the promised shape")
}

#[test]
fn one_command_from_program_to_page() {
    let bench = Bench::sharing("one-step");
    let program = bench.compile("attacks/wrapped.c", &[], &[]);
    let program = program.to_str().expect("a path");
    for (name, agents) in [("laggard-trace", 1), ("laggard-trace.1", 2)] {
        let number = agents.to_string();
        let words = ["--report", "--agents", &number];
        let mut command = run(&bench, &words, &[program]);
        let outcome = outcome(&bench, &mut command).expect_success();
        for said in ["rank 1 of 2 checksum", "Late sender", "wrapped.c:14"] {
            assert!(outcome.stdout.contains(said), "no {said:?}:\n{outcome}");
        }
        for file in ["report.json", "report.html"] {
            let line = format!("written to {name}/{file}");
            assert!(outcome.stdout.contains(&line), "no {line:?}:\n{outcome}");
        }
        let page = fs::read_to_string(bench.path(name).join("report.html")).expect("a page");
        assert!(page.contains("wrapped.c:14"), "{page}");
        let made = report(&bench.path(name));
        assert_eq!(made.anomaly("program_failed"), 0);
        assert_eq!(made.agents.count, agents, "{outcome}");
    }
    // Whoever names no trace means the newest one.
    for words in [
        &["analyze", "--all"][..],
        &["show"],
        &["info"],
        &["dump"],
        &["export", "--to", "folded", "-o", "folded"],
        &["what-if", "--network", "latency=0"],
    ] {
        let outcome = outcome(&bench, &mut laggard(&bench, words)).expect_success();
        let told = outcome.stderr.lines().next();
        assert_eq!(told, Some("laggard: trace: laggard-trace.1"), "{outcome}");
    }
    // The newest is the one that began last, whatever its number.
    fs::rename(bench.path("laggard-trace"), bench.path("first")).expect("a trace");
    fs::rename(bench.path("laggard-trace.1"), bench.path("laggard-trace")).expect("a trace");
    fs::rename(bench.path("first"), bench.path("laggard-trace.1")).expect("a trace");
    let newest = outcome(&bench, &mut laggard(&bench, &["info"])).expect_success();
    assert_eq!(newest.stderr, "", "{newest}");

    // A directory stands for the one trace in it, until there are two.
    fs::create_dir(bench.path("runs")).expect("a directory");
    fs::rename(bench.path("laggard-trace"), bench.path("runs/a")).expect("a trace");
    for words in [["info", "runs"], ["show", "runs"], ["dump", "runs"]] {
        let outcome = outcome(&bench, &mut laggard(&bench, &words)).expect_success();
        assert_eq!(outcome.stderr, "laggard: trace: runs/a\n", "{outcome}");
    }
    fs::rename(bench.path("laggard-trace.1"), bench.path("runs/b")).expect("a trace");
    let two = outcome(&bench, &mut laggard(&bench, &["info", "runs"]));
    assert_eq!(two.code, Some(1), "{two}");
    assert!(two.stderr.contains("name one: runs/a, runs/b"), "{two}");
    let none = outcome(&bench, &mut laggard(&bench, &["analyze"]));
    assert_eq!(none.code, Some(1), "{none}");
    assert!(
        none.stderr.contains("laggard-trace: no trace here"),
        "{none}"
    );
    assert_eq!(none.stderr.lines().count(), 1, "{none}");
    let mut set = laggard(&bench, &["info"]);
    let set = outcome(&bench, set.env("LAGGARD_TRACE_DIR", "runs/b"));
    assert_eq!(set.expect_success().stderr, "");
}

/// Processes that the program starts as a run of their own have a trace that is named, too.
#[test]
fn traces_of_runs_that_are_started_are_named() {
    if Mpi::is_left_out(
        Mpi::Mpich,
        "MPI_Comm_spawn, which fails with Debian's 4.0.2",
    ) {
        return;
    }
    let bench = Bench::sharing("one-step-spawn");
    let program = bench.compile("attacks/spawn.c", &[], &[]);
    let program = program.to_str().expect("a path");
    let outcome = outcome(&bench, &mut run(&bench, &[], &[program])).expect_success();
    let said = |what: &str| outcome.stderr.lines().any(|line| line.contains(what));
    assert!(said("trace in laggard-trace (2 files"), "{outcome}");
    let others = "a run of their own: trace in laggard-trace.1 (2 files";
    assert!(said(others), "{outcome}");
    assert!(said("next: laggard analyze laggard-trace"), "{outcome}");
}

/// The report tells how the program ended, and `laggard run` ends so, too.
#[test]
fn programs_that_fail_have_a_report() {
    let bench = Bench::sharing("one-step-failed");
    let program = bench.compile("attacks/ending.c", &["-pthread"], &[]);
    let program = program.to_str().expect("a path");
    for how in ["return", "abort", "kill"] {
        let words = ["-o", how, "--report"];
        let reported = outcome(&bench, &mut run(&bench, &words, &[program, how]));
        let words = ["-o", "plain", "--mode", "off"];
        let plain = outcome(&bench, &mut run(&bench, &words, &[program, how]));
        assert_ne!(reported.code, Some(0), "{reported}");
        // Of a rank that returned early, MPICH's launcher tells one code or another (1, 5 or 9).
        if Mpi::chosen() == Mpi::OpenMpi || how != "return" {
            assert_eq!(reported.code, plain.code, "{reported}{plain}");
        }
        let code = reported.code.unwrap_or_default();
        let told = format!("its command ended with exit code {code}");
        // Lines of the report are wrapped.
        let text = reported.stdout.split_whitespace().collect::<Vec<_>>();
        assert!(text.join(" ").contains(&told), "no {told:?}:\n{reported}");
        assert_eq!(report(&bench.path(how)).anomaly("program_failed"), 1);
        assert!(bench.path(how).join("report.html").exists(), "{reported}");
    }
}

/// A signal to `laggard run` ends the program; the report is still made.
#[test]
fn programs_that_are_ended_have_a_report() {
    let bench = Bench::sharing("one-step-ended");
    let program = bench.compile("attacks/killed.c", &[], &[]);
    let counters = bench.path("counter");
    let words = [&program, &counters].map(|path| path.to_str().expect("a path"));
    let mut command = run(&bench, &["--report"], &[words[0], "60", words[1]]);
    let mut limited = Command::new("timeout");
    limited.args(["-s", "TERM", "--foreground", "5"]);
    limited.arg(command.get_program()).args(command.get_args());
    limited
        .current_dir(&bench.dir)
        .env_remove("LAGGARD_TRACE_DIR");
    command = limited;
    let ended = outcome(&bench, &mut command);
    let made = report(&bench.path("laggard-trace"));
    assert_eq!(made.anomaly("program_failed"), 1, "{ended}");
    assert_eq!(made.anomaly("truncated_trace"), 2, "{ended}");
    assert!(bench.path("laggard-trace/report.html").exists(), "{ended}");
}

/// `--open` hands the page to what the desktop opens files with.
#[test]
fn the_page_is_opened() {
    let bench = Bench::sharing("one-step-open");
    let program = bench.compile("attacks/wrapped.c", &[], &[]);
    let tools = bench.path("tools");
    fs::create_dir(&tools).expect("a directory");
    let opener = tools.join("xdg-open");
    let script = format!(
        "#!/bin/sh\necho \"$@\" >{}\n",
        bench.path("opened").display()
    );
    fs::write(&opener, script).expect("a script");
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).expect("a program");
    let path = std::env::var("PATH").expect("a path");
    let mut command = run(&bench, &["--open"], &[program.to_str().expect("a path")]);
    command.env("PATH", format!("{}:{path}", tools.display()));
    let outcome = outcome(&bench, &mut command).expect_success();
    let begun = Instant::now();
    while !bench.path("opened").exists() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(100));
    let opened = fs::read_to_string(bench.path("opened")).expect("something was opened");
    assert_eq!(opened.trim(), "laggard-trace/report.html", "{outcome}");
}

/// Where nothing opens files, the page is written all the same.
#[test]
fn without_a_browser_the_page_is_named() {
    let bench = Bench::sharing("one-step-no-browser");
    let program = bench.compile("attacks/wrapped.c", &[], &[]);
    let tools = bench.path("tools");
    fs::create_dir(&tools).expect("a directory");
    let path = std::env::var_os("PATH").expect("a path");
    let folders = std::env::split_paths(&path).filter_map(|folder| fs::read_dir(folder).ok());
    for tool in folders.flatten().flatten() {
        let name = tool.file_name();
        let opens = ["xdg-open", "gio", "gnome-open", "kde-open", "wslview"];
        if !opens.iter().any(|opens| name == *opens) {
            // The first one of a name counts.
            let _ = symlink(tool.path(), tools.join(name));
        }
    }
    let mut command = run(&bench, &["--open"], &[program.to_str().expect("a path")]);
    let outcome = outcome(&bench, command.env("PATH", &tools)).expect_success();
    let told = "open laggard-trace/report.html yourself";
    assert!(
        outcome.stderr.contains("no browser could be started"),
        "{outcome}"
    );
    assert!(outcome.stderr.contains(told), "{outcome}");
    assert!(bench.path("laggard-trace/report.html").exists());
}

/// Options have one name in all commands; former names still work, and say so.
#[test]
fn former_names_of_options_still_work() {
    let bench = Bench::beside("one-step-names");
    let program = bench.compile("attacks/wrapped.c", &[], &[]);
    outcome(
        &bench,
        &mut run(&bench, &[], &[program.to_str().expect("a path")]),
    )
    .expect_success();
    let dump = |words: &[&str]| {
        let words = [&["dump"], words].concat();
        outcome(&bench, &mut laggard(&bench, &words)).expect_success()
    };
    let all = dump(&[]).stdout;
    let until = dump(&["--until", "0.1"]);
    assert!(until.stderr.is_empty() && until.stdout.lines().count() < all.lines().count());
    let to = dump(&["--to", "0.1"]);
    assert_eq!(
        (to.stdout, &*to.stderr),
        (until.stdout, "laggard: --to is called --until now\n")
    );
    let of_rank_1 = dump(&["--ranks", "1-3"]);
    assert!(
        of_rank_1
            .stdout
            .lines()
            .skip(1)
            .all(|line| line.starts_with("1/"))
    );
    assert_eq!(dump(&["--rank", "1"]).stdout, of_rank_1.stdout);
    let mut none = laggard(&bench, &["dump", "--ranks", "7"]);
    let none = outcome(&bench, &mut none);
    assert!(
        none.stderr.contains("no trace of such a rank, only of 0-1"),
        "{none}"
    );
}
