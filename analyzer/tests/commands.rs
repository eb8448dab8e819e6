//! The `laggard` command from outside: output, exit codes, what it leaves behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use laggard_trace::file_name;

const EXAMPLE: &str = include_str!("../../formats/report/tests/example.json");

fn laggard(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_laggard"));
    command.args(arguments);
    for name in [
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "PMIX_RANK",
        "PMI_RANK",
        "LAGGARD_TRACE_DIR",
    ] {
        command.env_remove(name);
    }
    command
}

fn run(arguments: &[&str]) -> Output {
    laggard(arguments).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The one line on stderr.
fn complaint(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("laggard: "), "{text}");
    text
}

/// A directory with a trace: five times rank 1 receives 10 ms before rank 0 sends.
struct Trace {
    directory: tempfile::TempDir,
}

impl Trace {
    fn new() -> Trace {
        let directory = tempfile::tempdir().unwrap();
        let mut ranks = crate::support::ranks(2);
        for start in (0..5).map(|round| round * 100_000_000) {
            ranks[0].send(15, 1, 7, start + 20_000_000, start + 20_001_000);
            ranks[1].recv(22, 0, 7, start + 10_000_000, start + 20_002_000);
        }
        ranks
            .iter_mut()
            .for_each(|calls| calls.write(directory.path()));
        Trace { directory }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn path(&self) -> &str {
        self.directory.path().to_str().unwrap()
    }
}

#[test]
fn analysis_writes_and_prints_a_report() {
    let trace = Trace::new();
    let output = run(&["analyze", trace.path(), "--all"]);
    assert_eq!(code(&output), 0, "{output:?}");
    let text = stdout(&output);
    assert!(text.starts_with("app: 2 ranks"), "{text}");
    assert!(
        text.contains("Late sender") && text.contains("50.0 ms"),
        "{text}"
    );
    assert!(text.contains("Report written to"), "{text}");
    let json = fs::read_to_string(trace.file("report.json")).unwrap();
    let again = run(&[
        "analyze",
        trace.path(),
        "--all",
        "--format",
        "json",
        "-o",
        "/dev/null",
    ]);
    let agents = |text: &str| {
        let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
        value.as_object_mut().unwrap().remove("agents");
        value
    };
    assert_eq!(agents(&stdout(&again)), agents(&json));
    let quiet = run(&["analyze", trace.path(), "-q"]);
    assert!(quiet.stdout.is_empty() && quiet.stderr.is_empty() && code(&quiet) == 0);
    for report in [trace.file("report.json").to_str().unwrap(), trace.path()] {
        let shown = run(&["show", report]);
        assert!(stdout(&shown).starts_with("app: 2 ranks"));
    }
}

/// Three ranks lose 20 ms each in line 20, and one of them 40 ms in line 21: which comes first
/// depends on what is listed.
#[test]
fn a_time_line_is_around_the_finding_with_the_number_of_the_report() {
    const MS: u64 = 1_000_000;
    let directory = tempfile::tempdir().unwrap();
    let mut ranks = crate::support::ranks(4);
    for rank in 1..4_i32 {
        let sent = (30 + u64::from(rank.unsigned_abs())) * MS;
        ranks[0].send(10, rank, 5, sent, sent + 1000);
        ranks[rank as usize].recv(20, 0, 5, sent - 20 * MS, sent + 2000);
    }
    ranks[0].send(11, 1, 6, 90 * MS, 90 * MS + 1000);
    ranks[1].recv(21, 0, 6, 50 * MS, 90 * MS + 2000);
    for rank in &mut ranks {
        rank.collective(
            30,
            laggard_trace::calls::number::MPI_Barrier,
            0,
            99 * MS,
            100 * MS,
        );
        rank.write(directory.path());
    }
    let trace = directory.path().to_str().unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let timeline = |name: &str, options: &[&str]| -> (String, Vec<u8>) {
        let output = file(name);
        let mut words = vec!["export", trace, "--to", "perfetto", "-o", &output];
        words.extend(options);
        let outcome = run(&words);
        assert_eq!(code(&outcome), 0, "{outcome:?}");
        let said = String::from_utf8(outcome.stderr).unwrap();
        (said.replace('\u{a0}', " "), fs::read(output).unwrap())
    };
    // Without a report the numbers are those that it would have.
    let (said, _) = timeline("now", &["--around", "1"]);
    assert!(
        said.contains("around Late sender in MPI_Recv at app.c:20"),
        "{said}"
    );
    let options = ["--hotspot-percent", "35"];
    let shown = stdout(&run(&[&["analyze", trace][..], &options].concat()));
    let first = shown.lines().find(|line| line.starts_with("1. ")).unwrap();
    assert!(
        first.starts_with("1. Late sender in MPI_Recv at app.c:21"),
        "{shown}"
    );
    let (said, beside) = timeline("beside", &["--around", "1"]);
    assert!(
        said.contains("around Late sender in MPI_Recv at app.c:21"),
        "{said}"
    );
    let named = ["--around", "1", "--report", &file("report.json")];
    assert_eq!(beside, timeline("named", &named).1);
    // Its id names it in any report about this trace.
    let id = first.split(['[', ']']).nth(1).unwrap();
    assert_eq!(beside, timeline("id", &["--around", id]).1);
    let all = file("all.json");
    assert_eq!(
        code(&run(&["analyze", trace, "--all", "-q", "-o", &all])),
        0
    );
    let (said, _) = timeline("all", &["--around", id, "--report", &all]);
    assert!(
        said.contains("around Late sender in MPI_Recv at app.c:21"),
        "{said}"
    );
    let (said, _) = timeline("first", &["--around", "1", "--report", &all]);
    assert!(
        said.contains("around Late sender in MPI_Recv at app.c:20"),
        "{said}"
    );
    // A report of another recording is none of this one.
    let other = Trace::new();
    assert_eq!(code(&run(&["analyze", other.path(), "-q"])), 0);
    fs::copy(other.file("report.json"), file("report.json")).unwrap();
    let (said, _) = timeline("other", &["--around", "1"]);
    assert!(
        said.contains("about another trace") && said.contains("app.c:20"),
        "{said}"
    );
}

/// A process that was killed leaves its file as long as it had made it.
#[test]
fn what_repairs_of_a_large_trace_gain_is_told_if_asked_for() {
    let trace = Trace::new();
    let file = trace.file(&file_name(0, 0));
    let file = fs::OpenOptions::new().write(true).open(file).unwrap();
    let small = file.metadata().unwrap().len();
    let gain = || {
        let text = fs::read_to_string(trace.file("report.json")).unwrap();
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        report["root_causes"][0]["gain_s"].as_f64()
    };
    let analyze = |more: &[&str]| {
        let arguments = [&["analyze", trace.path(), "--all"], more].concat();
        let output = run(&arguments);
        assert_eq!(code(&output), 0, "{output:?}");
        (String::from_utf8(output.stderr).unwrap(), gain())
    };
    let (said, of_small) = analyze(&[]);
    assert_eq!(said, "");
    assert!(
        of_small.is_some_and(|gain| (0.039..0.051).contains(&gain)),
        "{of_small:?}"
    );
    file.set_len(small + (64 << 20)).unwrap();
    let (said, of_large) = analyze(&[]);
    assert!(
        said.starts_with("laggard: note: what repairs gain") && said.contains("--gains"),
        "{said}"
    );
    assert_eq!(of_large, None);
    assert_eq!(analyze(&["--gains"]), (String::new(), of_small));
}

#[test]
fn limits_on_waiting_fail_the_run() {
    let trace = Trace::new();
    let with = |limit: &str| {
        code(&run(&[
            "analyze",
            trace.path(),
            "-q",
            "--all",
            "--fail-above",
            limit,
        ]))
    };
    assert_eq!(with("1"), 3);
    assert_eq!(with("100"), 0);
    // What is not in the trace may have waited.
    fs::remove_file(trace.file("rank000001.thread000.lgt")).unwrap();
    let output = run(&["analyze", trace.path(), "-q", "--fail-above", "100"]);
    assert_eq!(code(&output), 1);
    assert!(complaint(&output).contains("ranks have no trace"));
}

#[test]
fn stats_are_said_beside_what_is_not_text() {
    let trace = Trace::new();
    for how in [&["--format", "json"][..], &["--format", "none"], &["-q"]] {
        let mut words = vec!["analyze", trace.path(), "--stats"];
        words.extend(how);
        let output = run(&words);
        let said = String::from_utf8(output.stderr.clone()).unwrap();
        assert!(said.starts_with("Analysis by 1 agent: "), "{how:?}: {said}");
        assert!(!stdout(&output).contains("Analysis by"), "{how:?}");
    }
    let output = run(&["analyze", trace.path(), "--stats"]);
    assert!(stdout(&output).contains("Analysis by 1 agent: "));
    assert!(output.stderr.is_empty());
}

#[test]
fn a_directory_without_a_report_is_said() {
    let trace = Trace::new();
    let output = run(&["show", trace.path()]);
    assert_eq!(code(&output), 1);
    let said = complaint(&output);
    let advice = format!("run laggard analyze {} first", trace.path());
    assert!(said.contains(&advice), "{said}");
}

#[test]
fn other_files_are_not_overwritten() {
    let trace = Trace::new();
    let thesis = trace.file("thesis.txt");
    fs::write(&thesis, "all my work").unwrap();
    let output = run(&["analyze", trace.path(), "-o", thesis.to_str().unwrap()]);
    assert_eq!(code(&output), 1);
    assert!(complaint(&output).contains("not a laggard report"));
    assert_eq!(fs::read_to_string(&thesis).unwrap(), "all my work");
}

#[test]
fn unusable_input_is_one_line_and_exit_code_1() {
    let directory = tempfile::tempdir().unwrap();
    let empty = directory.path().to_str().unwrap();
    let trace = Trace::new();
    let file = trace.file(&file_name(0, 0));
    for arguments in [
        &["analyze", empty][..],
        &["info", empty],
        &["dump", "/nonexistent/trace"],
        &["analyze", file.to_str().unwrap()],
        &["dump", trace.path(), "--rank", "99"],
        &["dump", trace.path(), "--thread", "7"],
        &["dump", trace.path(), "--rank", "1", "--thread", "7"],
        &["show", "/nonexistent/report.json"],
        &["show", file.to_str().unwrap()],
        &[
            "analyze",
            trace.path(),
            "--baseline",
            "/nonexistent/baseline.json",
        ],
    ] {
        let output = run(arguments);
        assert_eq!(code(&output), 1, "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        complaint(&output);
    }
    assert_eq!(code(&run(&["export"])), 2);
    assert_eq!(code(&run(&["analyze", empty, "--frobnicate"])), 2);
    assert_eq!(code(&run(&["--help"])), 0);
}

#[test]
fn columns_set_the_width() {
    let home = tempfile::tempdir().unwrap();
    let report = home.path().join("report.json");
    fs::write(&report, EXAMPLE).unwrap();
    let widest = |columns: &str| {
        let mut command = laggard(&["show", report.to_str().unwrap()]);
        let text = stdout(&command.env("COLUMNS", columns).output().unwrap());
        text.lines().map(|l| l.chars().count()).max().unwrap()
    };
    assert!(widest("80") <= 80);
    assert!((101..=120).contains(&widest("120")));
    assert!((81..=100).contains(&widest("many")));
}

#[test]
fn only_the_head_complains() {
    let mut command = laggard(&["show", "/nonexistent/report.json"]);
    let output = command.env("OMPI_COMM_WORLD_RANK", "1").output().unwrap();
    // And only the head fails: a launcher kills the job at the first failure.
    assert_eq!(code(&output), 0);
    assert!(output.stderr.is_empty());
}

#[test]
fn info_and_dump_say_what_is_there() {
    let trace = Trace::new();
    let text = stdout(&run(&["info", trace.path()]));
    assert!(
        text.contains("Program    ./app") && text.contains("MPI_Recv"),
        "{text}"
    );
    assert!(text.contains("10 calls"), "{text}");
    let text = stdout(&run(&["dump", trace.path(), "--rank", "1", "--limit", "2"]));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        lines[1].starts_with("1/0 0.000000000    10002.000 MPI_Recv "),
        "{text}"
    );
    assert!(
        lines[1].contains(" from=0 tag=7 bytes=8 comm=world  app.c:22 work"),
        "{text}"
    );
    let text = stdout(&run(&[
        "dump",
        trace.path(),
        "--from",
        "0.1",
        "--to",
        "0.2",
    ]));
    assert_eq!(text.lines().count(), 3, "{text}");
}

#[test]
fn missing_and_damaged_files_are_said() {
    let trace = Trace::new();
    fs::write(trace.file(&file_name(0, 0)), "rubbish").unwrap();
    let text = stdout(&run(&["info", trace.path()]));
    assert!(text.contains("not a laggard trace"), "{text}");
    assert!(text.contains("missing ranks"), "{text}");
    let output = run(&["analyze", trace.path(), "--format", "none"]);
    assert_eq!((code(&output), output.stdout.len()), (0, 0));
}

#[test]
fn closed_pipes_are_quiet() {
    let trace = Trace::new();
    let report = trace.file("report.json");
    fs::write(&report, EXAMPLE).unwrap();
    for arguments in [
        &["dump", trace.path()][..],
        &["info", trace.path()],
        &["show", report.to_str().unwrap()],
        &["patterns"],
        &["--help"],
    ] {
        let mut child = laggard(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(code(&output), 0, "{arguments:?}");
        assert!(output.stderr.is_empty(), "{arguments:?}: {output:?}");
    }
}

#[test]
fn patterns_are_explained() {
    let text = stdout(&run(&["patterns", "--explain", "late_sender"]));
    assert!(text.starts_with("Late sender (late_sender)"), "{text}");
    for spelling in ["Late sender", "late-sender", "LATE_SENDER"] {
        let other = stdout(&run(&["patterns", "--explain", spelling]));
        assert_eq!(text, other, "{spelling}");
    }
    assert_eq!(code(&run(&["patterns", "--explain", "late_lunch"])), 2);
}

/// A directory with something that passes for the collector's file.
fn collector() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("liblaggard.so"), "").unwrap();
    directory
}

fn run_program(home: &Path, script: &str) -> Output {
    let trace = home.join("trace");
    let mut command = laggard(&[
        "run",
        "-o",
        trace.to_str().unwrap(),
        "--mode",
        "trace",
        "--",
    ]);
    command.args(["sh", "-c", script]).env("LAGGARD_LIB", home);
    command.output().unwrap()
}

#[test]
fn programs_run_with_the_collector_and_keep_their_exit_code() {
    let home = collector();
    let record =
        "mkdir -p $LAGGARD_TRACE_DIR$N; touch $LAGGARD_TRACE_DIR$N/rank000000.thread000.lgt";
    let script = format!("{record}; echo $LD_PRELOAD $LAGGARD_MODE; exit 7");
    let output = run_program(home.path(), &script);
    assert_eq!(code(&output), 7);
    assert!(
        stdout(&output).contains("/liblaggard.so trace"),
        "{output:?}"
    );
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    let failed = said.find("laggard: the command failed: exit code 7\n");
    let next = said.find("laggard: next: laggard analyze ");
    assert!(failed.is_some() && failed < next, "{said}");
    // The next run goes to the next name.
    let output = run_program(home.path(), &format!("N=.1; {record}"));
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(said.contains("trace.1 (1 file, 0 B)"), "{said}");
}

#[test]
fn a_program_without_mpi_is_said() {
    let home = collector();
    let output = run_program(home.path(), "true");
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(code(&output), 1);
    assert!(said.contains("no trace was written to -o "), "{said}");
    fs::write(home.path().join("trace"), "").unwrap();
    let output = run_program(home.path(), "true");
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(said.contains("is no directory"), "{said}");
    fs::remove_file(home.path().join("trace")).unwrap();
    // What ends before MPI has started, or is ended, has no trace; nor does it expect one.
    for (script, expected) in [("kill -9 $$", 137), ("exit 3", 3)] {
        let output = run_program(home.path(), script);
        assert_eq!(code(&output), expected);
        let said = String::from_utf8(output.stderr.clone()).unwrap();
        let last = said.lines().last().unwrap();
        assert!(
            last.starts_with("laggard: nothing was recorded: "),
            "{said}"
        );
    }
}

#[test]
fn a_missing_collector_is_said() {
    let mut command = laggard(&["run", "--", "true"]);
    let output = command.env("LAGGARD_LIB", "/nonexistent").output().unwrap();
    assert_eq!(code(&output), 1);
    assert!(complaint(&output).contains("LAGGARD_LIB"));
    let home = collector();
    let mut command = laggard(&["run", "--", "/nonexistent/mpirun", "./a"]);
    let output = command.env("LAGGARD_LIB", home.path()).output().unwrap();
    assert_eq!(code(&output), 1);
    assert!(complaint(&output).contains("/nonexistent/mpirun"));
}
