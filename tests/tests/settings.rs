//! The collector's settings, and `laggard run`, which passes them on.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use laggard_tests::attempts::{scale, until_right};
use laggard_tests::mpi::Mpi;
use laggard_tests::process::{self, Outcome};
use laggard_tests::product::{Bench, TIMEOUT, mpirun};
use laggard_tests::recorded::check;
use laggard_tests::report::{Bottleneck, Report, in_schedule_s};

/// A run of `attacks/wrapped.c`, in which rank 1 waits 3 × 60 ms in `main`.
fn recorded(test: &str, env: &[(&str, &str)]) -> (Bench, Outcome) {
    let bench = Bench::beside(test);
    let program = bench.compile("attacks/wrapped.c", &[], &[]);
    let words = [program.as_os_str()];
    let run = bench.traced(2, &words, "trace");
    let run = env
        .iter()
        .fold(run, |run, (key, value)| run.env(key, *value));
    let outcome = run.run().expect_orderly().expect_success();
    (bench, outcome)
}

fn parsed(text: &str) -> Report {
    Report::parse(text).expect("a report of the promised shape")
}

fn report(trace: &Path, bench: &Bench) -> Report {
    parsed(&bench.analyze_all(trace))
}

/// Its report, with times as they are written in the program, once `is_right` accepts it.
fn reported(test: &str, env: &[(&str, &str)], is_right: impl Fn(&Report) -> bool) -> Report {
    until_right(test, |attempt| {
        let (bench, _) = recorded(&format!("{test}-{attempt}"), env);
        let text = bench.analyze_all(&bench.path("trace"));
        let report = parsed(&in_schedule_s(&text, scale()));
        check(is_right(&report), &report)?;
        Ok(report)
    })
}

fn late_senders(report: &Report) -> impl Iterator<Item = &Bottleneck> {
    let found = report.bottlenecks.iter();
    found.filter(|b| b.pattern == "late_sender")
}

fn is_late(report: &Report) -> bool {
    let first = late_senders(report).next();
    first.is_some_and(|first| (0.150..0.230).contains(&first.severity_s))
}

#[test]
fn call_path_of_one_frame() {
    let report = reported("depth-1", &[("LAGGARD_CALLPATH_DEPTH", "1")], is_late);
    let found = late_senders(&report).next().expect("a late sender");
    assert!(found.location.is("wrapped.c", 14), "{found:#?}");
    assert!(found.location.callpath.len() <= 1, "{found:#?}");
}

#[test]
fn no_call_path() {
    let report = reported("depth-0", &[("LAGGARD_CALLPATH_DEPTH", "0")], is_late);
    let found = late_senders(&report).next().expect("a late sender");
    assert!(found.location.line.unwrap_or(0) == 0, "{found:#?}");
    assert_eq!(found.operation, "MPI_Recv");
}

/// Without events there are no waits to find, but all calls are counted.
#[test]
fn profile_only() {
    let received = |report: &Report| -> f64 {
        let times = report.locations.iter().map(|l| l.communication_s);
        times.sum()
    };
    let profile = [("LAGGARD_MODE", "profile")];
    let report = reported("profile", &profile, |report| received(report) > 0.150);
    assert!(report.bottlenecks.is_empty(), "{report:#?}");
    assert!(report.run.operations > 10, "{:#?}", report.run);
    assert_eq!(report.anomaly("no_events"), 2, "{:#?}", report.anomalies);
}

/// Beyond the limit a location goes on with its profile, and the report says so.
#[test]
fn trace_size_limit() {
    let bench = Bench::beside("size-limit");
    let program = bench.compile("attacks/tiny.c", &[], &[]);
    let words = [program.as_os_str(), OsStr::new("200000")];
    let run = bench
        .traced(2, &words, "trace")
        .env("LAGGARD_MAX_TRACE_MB", "1");
    run.run().expect_orderly().expect_success();
    for entry in fs::read_dir(bench.path("trace")).expect("a trace") {
        let size = entry.and_then(|e| e.metadata()).expect("a file").len();
        assert!(size <= 1 << 20, "{size} bytes");
    }
    let report = report(&bench.path("trace"), &bench);
    assert!(report.run.operations > 400_000, "{:#?}", report.run);
    assert!(!report.anomalies.is_empty(), "no word of the limit");
    assert_eq!(report.errors(), [""; 0]);
}

#[test]
fn wrong_settings_do_not_stop_the_program() {
    let wrong = [
        ("LAGGARD_CALLPATH_DEPTH", "many"),
        ("LAGGARD_BUFFER_KB", "-1"),
        ("LAGGARD_MAX_TRACE_MB", ""),
        ("LAGGARD_LOG", "loud"),
        ("LAGGARD_OPERATION_MAP", "/nowhere/map.toml"),
    ];
    let (bench, outcome) = recorded("wrong-settings", &wrong);
    assert!(
        outcome.stderr.contains("LAGGARD_CALLPATH_DEPTH"),
        "not said:\n{outcome}"
    );
    let of_map = outcome
        .stderr
        .lines()
        .filter(|line| line.contains("/nowhere/map.toml"));
    assert_eq!(of_map.count(), 1, "once, by one rank:\n{outcome}");
    assert!(
        late_senders(&report(&bench.path("trace"), &bench))
            .next()
            .is_some()
    );
}

/// The current directory can be the trace directory, and is the one requested.
#[test]
fn here_is_a_directory() {
    let bench = Bench::beside("here");
    let program = bench.compile("attacks/wrapped.c", &[], &[]);
    let library = bench.library.to_string_lossy().into_owned();
    let run = bench.plain(2, &[program.as_os_str()]);
    let run = run.env("LD_PRELOAD", library).env("LAGGARD_TRACE_DIR", ".");
    let outcome = run.run().expect_orderly().expect_success();
    assert_eq!(outcome.stderr, "", "{outcome}");
    assert!(late_senders(&report(&bench.dir, &bench)).next().is_some());
}

/// If the run's directory has a trace, one line says where the run goes instead, even for a job of
/// several programs.
#[test]
fn another_directory_is_announced() {
    let bench = Bench::beside("announced");
    let program = bench.compile("attacks/wrapped.c", &[], &[]);
    for (directory, lines) in [("trace", 0), ("trace.1", 1)] {
        let run = bench.traced(1, &[program.as_os_str()], "trace");
        let mut command = run.command();
        let second: Vec<_> = command.get_args().map(OsStr::to_owned).collect();
        let at = second.iter().position(|word| word == "-n").expect("-n");
        command.arg(":").args(&second[at..]);
        let outcome = run_in(&bench, &mut command).expect_success();
        assert_eq!(outcome.stderr.lines().count(), lines, "{outcome}");
        assert!(lines == 0 || outcome.stderr.contains("already holds a trace"));
        assert!(bench.path(directory).join("run.json").exists());
    }
}

#[test]
fn quiet_unless_asked() {
    let (_, outcome) = recorded("quiet", &[]);
    assert_eq!(outcome.stderr, "");
    drop(outcome);
    let (_, outcome) = recorded("debug", &[("LAGGARD_LOG", "debug")]);
    let said = outcome
        .stderr
        .lines()
        .filter(|line| line.starts_with("laggard["));
    assert!(said.count() > 0, "{outcome}");
}

fn run_in(bench: &Bench, command: &mut Command) -> Outcome {
    command.current_dir(&bench.dir);
    process::run(command, TIMEOUT, &bench.path("command")).expect_orderly()
}

/// `laggard run … -- mpirun …`, and the commands that read a trace and a report.
#[test]
fn run_and_look() {
    let bench = Bench::beside("run-and-look");
    let program = bench.compile("attacks/wrapped.c", &[], &[]);
    let mut run = Command::new(&bench.command);
    run.args(["run", "-o", "recorded", "--"]);
    run.arg(Mpi::chosen().launcher());
    run.args(mpirun(2).get_args()).arg(&program);
    let outcome = run_in(&bench, &mut run).expect_success();
    assert!(outcome.stdout.contains("rank 1 of 2 checksum"), "{outcome}");

    let looks: [(&[&str], &str); 5] = [
        (
            &["analyze", "recorded", "-o", "report.json", "--all"],
            "Late sender",
        ),
        (&["show", "report.json"], "wrapped.c:14"),
        (&["info", "recorded"], "MPI_Recv"),
        (&["dump", "recorded", "--rank", "1"], "MPI_Recv"),
        (&["patterns", "--explain", "late_sender"], "late_sender"),
    ];
    for (words, text) in looks {
        let outcome = run_in(&bench, Command::new(&bench.command).args(words)).expect_success();
        assert!(outcome.stdout.contains(text), "no {text:?}:\n{outcome}");
        assert_eq!(outcome.stderr, "", "{outcome}");
    }
    let text = fs::read_to_string(bench.path("report.json")).expect("a report");
    assert!(late_senders(&parsed(&text)).next().is_some());
}

/// The command returns the program's exit code. If nothing was recorded, it says so.
#[test]
fn run_passes_exit_codes_on() {
    let bench = Bench::beside("run-exit-code");
    let mut run = Command::new(&bench.command);
    run.args(["run", "--", &*Mpi::chosen().launcher()]);
    run.args(mpirun(2).get_args());
    // All ranks alike: of others, a launcher may tell how it ended them.
    let outcome = run_in(&bench, run.args(["sh", "-c", "exit 5"]));
    assert_eq!(outcome.code, Some(5), "{outcome}");

    let mut run = Command::new(&bench.command);
    let outcome = run_in(&bench, run.args(["run", "-o", "none", "--", "true"]));
    assert!(outcome.stderr.starts_with("laggard: "), "{outcome}");
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome}");
    assert!(!bench.path("none").exists(), "a trace of no MPI program");

    // A bad line in a map is reported before the program runs.
    fs::write(bench.path("map.toml"), "\"a\" = \"io\"\nspin until\n").expect("a map");
    let mut run = Command::new(&bench.command);
    let words = ["run", "--operation-map", "map.toml", "--", "touch", "ran"];
    let outcome = run_in(&bench, run.args(words));
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(
        outcome
            .stderr
            .starts_with("laggard: map.toml:2: expected a line"),
        "{outcome}"
    );
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome}");
    assert!(!bench.path("ran").exists());
}
