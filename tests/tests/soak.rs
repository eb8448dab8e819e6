//! Long recordings: the collector's memory does not grow, and no call is lost.
//!
//! `LAGGARD_TEST_SOAK_CALLS` sets the number of calls (5 million if unset). The trace, 12 bytes a
//! call, goes into the test's directory, or below `LAGGARD_TEST_SOAK_DIR`.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use laggard_tests::process::Outcome;
use laggard_tests::product::Bench;
use laggard_tests::report::Report;

/// Variation of memory for other reasons, kB.
const SLACK_KB: i64 = 256;
/// Whether POSIX I/O is recorded.
const FILES: &str = "LAGGARD_POSIX_IO";
/// Most bytes of the trace per call; definitions take some kB more.
const BYTES_PER_CALL: u64 = 13;

/// The program's output: calls, and its memory after a tenth of them and at the end, kB.
fn numbers(outcome: &Outcome) -> [i64; 3] {
    let said: Vec<&str> = outcome.stdout.split_whitespace().collect();
    ["calls", "early_kb", "late_kb"].map(|key| {
        let at = said.iter().position(|word| *word == key).expect(key);
        said[at + 1].parse().expect("a number")
    })
}

/// Freed communicators leave nothing in memory.
#[test]
fn communicators_are_given_back() {
    let bench = Bench::beside("soak-communicators");
    let program = bench.compile("attacks/soak.c", &[], &[]);
    let words = [
        program.as_os_str(),
        "200000".as_ref(),
        "communicators".as_ref(),
    ];
    // The programs read files to learn how much memory they have.
    let traced = bench.traced(1, &words, "trace").env(FILES, "0");
    let [plain, recorded] = [bench.plain(1, &words), traced].map(|run| {
        let outcome = run.run().expect_orderly().expect_success();
        let [_, early, late] = numbers(&outcome);
        late - early
    });
    eprintln!("memory grows by {plain} kB, with the collector by {recorded} kB");
    assert!(recorded <= plain + SLACK_KB, "of {plain} kB, {recorded} kB");
    // Each leaves a definition, and is a collective of its own.
    let report = bench.path("report.json");
    let outcome = bench.analyze(&bench.path("trace"), 1, &report, &["-q"]);
    outcome.expect_orderly().expect_success();
    let report = fs::read_to_string(&report).expect("a report");
    let report = Report::parse(&report).expect("a report of the promised shape");
    assert_eq!(report.run.operations, 200_000 + 3, "calls are missing");
}

#[test]
fn memory_stays_and_nothing_is_lost() {
    let asked = std::env::var("LAGGARD_TEST_SOAK_CALLS").ok();
    let calls: u64 = asked.and_then(|n| n.parse().ok()).unwrap_or(5_000_000);
    let bench = Bench::beside("soak");
    let program = bench.compile("attacks/soak.c", &[], &[]);
    let above = std::env::var_os("LAGGARD_TEST_SOAK_DIR");
    let trace = above.map_or(bench.path("trace"), |above| {
        PathBuf::from(above).join(format!("laggard-soak-{}", std::process::id()))
    });
    let wanted = calls.to_string();
    let words = [program.as_os_str(), OsStr::new(&wanted)];
    let name = trace.to_str().expect("a path that is text");
    let run = bench.traced(1, &words, name).env(FILES, "0");
    let outcome = run.timeout(600).run();
    let outcome = outcome.expect_orderly().expect_success();
    assert_eq!(outcome.stderr, "", "{outcome}");
    let [made, early, late] = numbers(&outcome);
    eprintln!("{made} calls, anonymous memory {early} kB after a tenth of them, {late} kB");
    assert!(late <= early + SLACK_KB, "memory grows: {outcome}");

    let report = bench.path("report.json");
    bench
        .analyze(&trace, 1, &report, &["-q"])
        .expect_orderly()
        .expect_success();
    let report = fs::read_to_string(&report).expect("a report");
    let report = Report::parse(&report).expect("a report of the promised shape");
    // Beside the loop: Init, Allreduce to agree on a clock, Finalize.
    assert_eq!(report.run.operations, made as u64 + 3, "calls are missing");
    let odd = report.anomalies.iter().filter(|a| a.severity != "info");
    assert_eq!(odd.count(), 0, "{:#?}", report.anomalies);
    let files = fs::read_dir(&trace).expect("a trace");
    let bytes = files.map(|file| file.expect("an entry").metadata().expect("a size").len());
    let bytes: u64 = bytes.sum();
    assert!(
        bytes <= made as u64 * BYTES_PER_CALL + (1 << 20),
        "{bytes} bytes"
    );
    fs::remove_dir_all(&trace).expect("the trace removed");
}
