//! Programs that are recorded once and analysed with different options, and the regions of their
//! reports.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::attempts::{self, Off};
use crate::process::Outcome;
use crate::product::{Bench, difference, programs};
use crate::report::{Report, in_schedule_s, schema_violations};

/// The directory of `laggard.h` and `laggard.f90`.
pub fn include() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.join("../collector/include")
}

/// Flags with which programs find `laggard.h`.
pub fn with_header(more: &[&str]) -> Vec<String> {
    let header = format!("-I{}", include().display());
    let more = more.iter().map(|flag| (*flag).to_owned());
    std::iter::once(header).chain(more).collect()
}

/// The lines that a program prints, sorted.
pub fn lines(outcome: &Outcome) -> Vec<String> {
    let mut lines: Vec<String> = outcome.stdout.lines().map(String::from).collect();
    lines.sort();
    lines
}

/// The number of the line with this mark.
///
/// # Panics
/// If there is none.
pub fn mark(source: &str, name: &str) -> u32 {
    let text = fs::read_to_string(programs().join(source)).expect("a source");
    let mark = format!("MARK {name}");
    let marked = |line: &str| {
        line.split("*/")
            .next()
            .is_some_and(|l| l.trim_end().ends_with(&mark))
    };
    let at = text.lines().position(marked).expect("a mark");
    at as u32 + 1
}

/// A program's trace.
pub struct Recorded {
    /// The bench for analyses.
    pub bench: Bench,
    /// The trace.
    pub trace: PathBuf,
}

/// Runs a program without and with the collector; it must print the same.
///
/// # Panics
/// If it does not.
pub fn record(bench: Bench, program: &Path, ranks: u32, shmem: bool) -> Recorded {
    record_with(bench, &[program], ranks, shmem)
}

/// The same with arguments.
///
/// # Panics
/// As [`record`].
pub fn record_with(bench: Bench, words: &[&Path], ranks: u32, shmem: bool) -> Recorded {
    let words: Vec<&OsStr> = words.iter().map(|word| word.as_os_str()).collect();
    let run = |traced: bool| {
        let run = match traced {
            true => bench.traced(ranks, &words, "trace"),
            false => bench.plain(ranks, &words),
        };
        let run = if shmem { run.shmem() } else { run };
        run.run().expect_orderly().expect_success()
    };
    let (plain, traced) = (run(false), run(true));
    assert_eq!(lines(&plain), lines(&traced), "results under the collector");
    assert_eq!(plain.stderr, traced.stderr, "messages");
    let trace = bench.path("trace");
    Recorded { bench, trace }
}

/// The report, which one, two and three agents must agree on (see [`Bench::agents`]), and its rows
/// about regions by name. Both have times as they are written in the program.
///
/// # Panics
/// If the agents disagree.
pub fn analyze(run: &Recorded, options: &[&str]) -> (Report, BTreeMap<String, Value>) {
    let report = |agents: u32| {
        let path = run.bench.path(&format!("report-{agents}.json"));
        let options = [&["-q"], options].concat();
        let outcome = run.bench.analyze(&run.trace, agents, &path, &options);
        outcome.expect_orderly().expect_success();
        fs::read_to_string(&path).expect("a report")
    };
    let text = report(run.bench.agents[0]);
    for &agents in &run.bench.agents[1..] {
        let other = difference(&text, &report(agents));
        assert_eq!(other, None, "1 and {agents} agents");
    }
    assert_eq!(schema_violations(&text), [""; 0]);
    let text = in_schedule_s(&text, attempts::scale());
    let value: Value = serde_json::from_str(&text).expect("JSON");
    let rows = value["regions"].as_array().cloned().unwrap_or_default();
    let named = rows
        .into_iter()
        .map(|row| (row["region"].as_str().expect("a name").to_owned(), row));
    let report = Report::parse(&text).expect("a report of the promised shape");
    (report, named.collect())
}

/// A number in a row of the report.
///
/// # Panics
/// If it is missing.
pub fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"))
}

/// Whether two numbers differ by at most `by`.
pub fn near(found: f64, expected: f64, by: f64) -> bool {
    (found - expected).abs() <= by
}

/// Fails with the found value if the condition does not hold.
pub fn check(holds: bool, what: &dyn Debug) -> Result<(), Off> {
    holds
        .then_some(())
        .ok_or_else(|| format!("{what:#?}").into())
}
