//! Long recordings: the collector's memory does not grow, and no call is lost.
//!
//! `LAGGARD_TEST_SOAK_CALLS` says how many calls are made (5 million if unset). The trace, 12
//! bytes a call, is written into the test's directory, or below `LAGGARD_TEST_SOAK_DIR`.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use laggard_tests::product::Bench;
use laggard_tests::report::Report;

/// What memory may vary by for other reasons, kB.
const SLACK_KB: i64 = 256;
/// Bytes of the trace for each call at most; some kB more are definitions.
const BYTES_PER_CALL: u64 = 13;

#[test]
fn memory_stays_and_nothing_is_lost() {
    let asked = std::env::var("LAGGARD_TEST_SOAK_CALLS").ok();
    let calls: u64 = asked.and_then(|n| n.parse().ok()).unwrap_or(5_000_000);
    let bench = Bench::new("soak");
    let program = bench.compile("attacks/soak.c", &[], &[]);
    let above = std::env::var_os("LAGGARD_TEST_SOAK_DIR");
    let trace = above.map_or(bench.path("trace"), |above| {
        PathBuf::from(above).join(format!("laggard-soak-{}", std::process::id()))
    });
    let wanted = calls.to_string();
    let words = [program.as_os_str(), OsStr::new(&wanted)];
    let name = trace.to_str().expect("a path that is text");
    let outcome = bench.traced(1, &words, name).timeout(600).run();
    let outcome = outcome.expect_orderly().expect_success();
    assert_eq!(outcome.stderr, "", "{outcome}");
    let said: Vec<&str> = outcome.stdout.split_whitespace().collect();
    let number = |key: &str| {
        let at = said.iter().position(|word| *word == key).expect(key);
        said[at + 1].parse::<i64>().expect("a number")
    };
    let (made, early, late) = (number("calls"), number("early_kb"), number("late_kb"));
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
