//! Broken traces and directories. Each gives one clear line and exit code 1, or a report with the
//! trouble. Nothing hangs, panics or overwrites anything.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use laggard_tests::process::Outcome;
use laggard_tests::product::{Bench, difference};
use laggard_tests::report::{Report, without_agents};

/// A test with the good trace of a short run.
struct Spoiled {
    bench: Bench,
    trace: PathBuf,
    good: String,
}

/// Result of an analysis.
enum Verdict {
    /// Exit code 1 and a line of text.
    Refused(String),
    /// A report.
    Reported(String),
}

impl Spoiled {
    fn new(test: &str) -> Spoiled {
        let bench = Bench::beside(test);
        record(&bench, "trace", &[]).expect_success();
        let trace = bench.path("trace");
        let good = bench.analyze_all(&trace);
        Spoiled { bench, trace, good }
    }

    /// The location files, sorted.
    fn locations(&self) -> Vec<PathBuf> {
        locations(&self.trace)
    }

    /// Analyses the spoiled trace with one agent and, if tests have several, with two.
    #[track_caller]
    fn verdict(&self) -> Verdict {
        let one = verdict(&self.bench, &self.trace, 1);
        if !self.bench.agents.contains(&2) {
            return one;
        }
        let two = verdict(&self.bench, &self.trace, 2);
        match (&one, &two) {
            (Verdict::Refused(_), Verdict::Refused(_)) => {}
            (Verdict::Reported(a), Verdict::Reported(b)) => {
                if let Some(difference) = difference(a, b) {
                    panic!("1 and 2 agents write different reports: {difference}");
                }
            }
            _ => panic!("one agent refuses what two analyse, or the other way round"),
        }
        one
    }

    /// The verdict must be a refusal that says `text`.
    #[track_caller]
    fn refused(&self, text: &str) {
        match self.verdict() {
            Verdict::Refused(line) => {
                assert!(line.contains(text), "{line:?} does not say {text:?}")
            }
            Verdict::Reported(report) => panic!("was not refused: {report}"),
        }
    }

    /// The verdict must be a refusal, or a report that names the trouble.
    #[track_caller]
    fn not_hidden(&self) {
        self.not_hidden_in(self.verdict());
    }

    #[track_caller]
    fn not_hidden_in(&self, verdict: Verdict) {
        if let Verdict::Reported(report) = verdict {
            let unchanged = without_agents(&report) == without_agents(&self.good);
            let report = Report::parse(&report).expect("a report of the promised shape");
            assert!(
                unchanged || !report.anomalies.is_empty(),
                "another report, and no anomaly"
            );
        }
    }
}

fn locations(trace: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(trace)
        .expect("a trace")
        .map(|e| e.expect("an entry").path());
    let mut files: Vec<PathBuf> = entries
        .filter(|p| p.extension() == Some(OsStr::new("lgt")))
        .collect();
    files.sort();
    files
}

fn record(bench: &Bench, trace: &str, arguments: &[&str]) -> Outcome {
    let program = bench.compile("attacks/tiny.c", &[], &[]);
    let mut words = vec![program.as_os_str()];
    words.extend(arguments.iter().map(OsStr::new));
    bench.traced(2, &words, trace).run().expect_orderly()
}

#[track_caller]
fn verdict(bench: &Bench, trace: &Path, agents: u32) -> Verdict {
    let report = bench.path("verdict.json");
    let _ = fs::remove_file(&report);
    let outcome = bench
        .analyze(trace, agents, &report, &["--all", "-q"])
        .expect_orderly();
    if outcome.success() {
        return Verdict::Reported(fs::read_to_string(&report).expect("a report"));
    }
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(!report.exists(), "a refusal with a report");
    // mpirun adds lines of its own about a failed job.
    let said = |line: &&str| line.starts_with("laggard");
    let lines: Vec<&str> = outcome.stderr.lines().filter(said).collect();
    let only = agents > 1 || outcome.stderr.trim().lines().count() == 1;
    assert!(lines.len() == 1 && only, "not one line:\n{outcome}");
    Verdict::Refused(lines[0].to_string())
}

fn edit(path: &Path, offset: u64, bytes: &[u8]) {
    let file = fs::OpenOptions::new()
        .write(true)
        .open(path)
        .expect("a file");
    file.write_all_at(bytes, offset).expect("written");
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}

#[test]
fn missing_and_empty_directories() {
    let bench = Bench::beside("no-trace");
    fs::create_dir(bench.path("empty")).expect("a directory");
    fs::write(bench.path("text"), "no trace\n").expect("a file");
    for name in ["missing", "empty", "text"] {
        for &agents in bench.agents.iter().take(2) {
            match verdict(&bench, &bench.path(name), agents) {
                Verdict::Refused(line) => {
                    assert!(line.contains(name), "{line:?} does not name the path")
                }
                Verdict::Reported(report) => panic!("{name}: {report}"),
            }
        }
    }
}

#[test]
fn wrong_usage() {
    let bench = Bench::beside("wrong-usage");
    let cases: [&[&str]; 4] = [
        &["compare", "x"],
        &["nonsense"],
        &["analyze", "x", "--no-such-option"],
        &[],
    ];
    for words in cases {
        let mut command = Command::new(&bench.command);
        command.args(words).current_dir(&bench.dir);
        let timeout = std::time::Duration::from_secs(20);
        let outcome = laggard_tests::process::run(&mut command, timeout, &bench.path("usage"));
        assert_eq!(outcome.expect_orderly().code, Some(2), "{words:?}");
    }
}

#[test]
fn report_that_cannot_be_written() {
    let spoiled = Spoiled::new("unwritable-report");
    let report = spoiled.bench.path("no/such/directory/report.json");
    for &agents in spoiled.bench.agents.iter().take(2) {
        let outcome = spoiled
            .bench
            .analyze(&spoiled.trace, agents, &report, &["-q"]);
        let outcome = outcome.expect_orderly();
        assert_eq!(outcome.code, Some(1), "{outcome}");
        assert!(outcome.stderr.contains("report.json"), "{outcome}");
    }
}

#[test]
fn a_location_that_is_no_trace() {
    let spoiled = Spoiled::new("no-location");
    fs::write(
        &spoiled.locations()[1],
        "this is text, not a trace\n".repeat(1000),
    )
    .expect("written");
    spoiled.not_hidden();
}

/// Opening a pipe for reading waits for a writer.
#[test]
fn a_location_that_is_a_pipe() {
    let spoiled = Spoiled::new("pipe");
    for (n, path) in spoiled.locations().iter().enumerate() {
        fs::remove_file(path).expect("removed");
        let made = Command::new("mkfifo").arg(path).status();
        assert!(made.expect("mkfifo").success());
        if n == 0 {
            spoiled.not_hidden();
        }
    }
    spoiled.refused("not a regular file");
    let mut info = Command::new(&spoiled.bench.command);
    info.arg("info").arg(&spoiled.trace);
    let log = spoiled.bench.path("info");
    let outcome = laggard_tests::process::run(&mut info, laggard_tests::product::TIMEOUT, &log);
    assert_eq!(outcome.expect_orderly().code, Some(1));
}

#[test]
fn nothing_but_garbage() {
    let spoiled = Spoiled::new("garbage");
    for (n, path) in spoiled.locations().iter().enumerate() {
        fs::write(path, vec![0xa5; 1000 * n]).expect("written");
    }
    assert!(matches!(spoiled.verdict(), Verdict::Refused(_)));
}

#[test]
fn truncated_files() {
    let spoiled = Spoiled::new("truncated");
    let path = &spoiled.locations()[1];
    let whole = fs::read(path).expect("a location");
    let size = whole.len();
    for (n, left) in [
        0,
        1,
        64,
        127,
        128,
        129,
        167,
        168,
        size / 3,
        size / 2,
        size - 1,
    ]
    .iter()
    .enumerate()
    {
        fs::write(path, &whole[..*left]).expect("written");
        if n % 4 == 0 {
            spoiled.not_hidden();
        } else {
            spoiled.not_hidden_in(verdict(&spoiled.bench, &spoiled.trace, 1));
        }
    }
}

/// Every byte of one beginning and a sample of the rest, one bit at a time.
#[test]
fn flipped_bits() {
    let spoiled = Spoiled::new("flipped");
    for (at, path) in spoiled.locations().iter().enumerate() {
        let whole = fs::read(path).expect("a location");
        let beginning = 0..if at == 0 { whole.len().min(256) } else { 0 };
        let rest = (256..whole.len()).step_by((whole.len() / 50).max(1));
        for (n, offset) in beginning.chain(rest).enumerate() {
            let flipped = whole[offset] ^ (1 << (n % 8));
            edit(path, offset as u64, &[flipped]);
            spoiled.not_hidden_in(verdict(&spoiled.bench, &spoiled.trace, 1));
            edit(path, offset as u64, &[whole[offset]]);
        }
    }
    // Spoiled in a block's length, even with agents that have to agree on it.
    edit(&spoiled.locations()[0], 128 + 8, &[0xff, 0xff, 0xff, 0x7f]);
    spoiled.not_hidden();
}

#[test]
fn newer_version() {
    let spoiled = Spoiled::new("newer-version");
    for path in spoiled.locations() {
        edit(&path, 8, &7u32.to_le_bytes());
    }
    spoiled.refused("version");
}

#[test]
fn missing_rank() {
    let spoiled = Spoiled::new("missing-rank");
    fs::remove_file(&spoiled.locations()[1]).expect("removed");
    match spoiled.verdict() {
        Verdict::Refused(line) => assert!(line.contains("rank"), "{line}"),
        Verdict::Reported(report) => {
            let report = Report::parse(&report).expect("a report of the promised shape");
            assert!(
                !report.anomalies.is_empty(),
                "a missing rank, and no anomaly"
            );
        }
    }
}

#[test]
fn two_runs_in_one_directory() {
    let spoiled = Spoiled::new("two-runs");
    record(&spoiled.bench, "other", &[]).expect_success();
    let theirs = &locations(&spoiled.bench.path("other"))[1];
    let ours = &spoiled.locations()[1];
    fs::copy(theirs, ours).expect("copied");
    spoiled.refused("run");
}

/// A second run takes the next name; the first trace stays as it is.
#[test]
fn nothing_is_overwritten() {
    let bench = Bench::beside("second-run");
    record(&bench, "trace", &[]).expect_success();
    let before = bench.path("before");
    copy_all(&bench.path("trace"), &before);
    for next in ["trace.1", "trace.2"] {
        let outcome = record(&bench, "trace", &[]).expect_success();
        let said = outcome.stderr.lines().filter(|line| line.contains(next));
        assert_eq!(said.count(), 1, "{next} is not named once:\n{outcome}");
        bench.analyze_all(&bench.path(next));
    }
    for entry in fs::read_dir(&before).expect("a directory") {
        let name = entry.expect("an entry").file_name();
        let [kept, now] =
            [&before, &bench.path("trace")].map(|d| fs::read(d.join(&name)).expect("a file"));
        assert!(kept == now, "{name:?} has changed");
    }
    assert_eq!(
        fs::read_dir(&before).unwrap().count(),
        fs::read_dir(bench.path("trace")).unwrap().count()
    );
}

/// The program goes on with correct results. The collector reports once that it stopped.
#[track_caller]
fn runs_on(outcome: &Outcome, messages: u64) {
    let outcome = format!("{outcome}");
    let checksum = messages * (messages - 1) / 2;
    assert!(
        outcome.contains(&format!("rank 0 of 2 checksum {checksum}\n")),
        "{outcome}"
    );
    assert!(outcome.contains("laggard["), "not said:\n{outcome}");
}

#[test]
fn unwritable_trace_directory() {
    let bench = Bench::beside("unwritable");
    fs::write(bench.path("file"), "").expect("a file");
    let outcome = record(&bench, "file/trace", &[]).expect_success();
    runs_on(&outcome, 100);
    let lines = outcome
        .stderr
        .lines()
        .filter(|line| line.contains("laggard["))
        .count();
    assert!(lines <= 2, "said more than once per rank:\n{outcome}");
}

#[test]
fn file_size_limit() {
    let bench = Bench::beside("file-size-limit");
    let outcome = record(&bench, "trace", &["400000", "65536"]).expect_success();
    runs_on(&outcome, 400_000);
    reports_losses(&bench, &bench.path("trace"));
}

#[test]
fn full_disk() {
    let bench = Bench::beside("full-disk");
    let disk = bench.path("disk");
    fs::create_dir(&disk).expect("a directory");
    let mount = |words: &[&OsStr]| Command::new(words[0]).args(&words[1..]).output();
    let small = ["mount", "-t", "tmpfs", "-o", "size=1m", "none"].map(OsStr::new);
    let mounted = mount(&[&small[..], &[disk.as_os_str()]].concat());
    if !mounted.is_ok_and(|output| output.status.success()) {
        eprintln!("no small disk can be mounted here; file_size_limit tests the same");
        return;
    }
    let kept = bench.path("kept");
    let outcome = record(&bench, "disk/trace", &["60000"]);
    copy_all(&disk.join("trace"), &kept);
    let unmounted = mount(&["umount".as_ref(), disk.as_os_str()]);
    assert!(unmounted.is_ok_and(|output| output.status.success()));
    runs_on(&outcome.expect_success(), 60000);
    reports_losses(&bench, &kept);
}

/// The analysis of an incomplete trace says so, or that there is nothing to analyse.
#[track_caller]
fn reports_losses(bench: &Bench, trace: &Path) {
    if let Verdict::Reported(_) = verdict(bench, trace, 1) {
        let report = Report::parse(&bench.analyze_all(trace));
        let report = report.expect("a report of the promised shape");
        assert!(!report.anomalies.is_empty(), "losses, and no anomaly");
    }
}
