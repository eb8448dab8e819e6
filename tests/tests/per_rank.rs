//! The table per rank of real programs: the same for any number of agents, and consistent with the
//! report's folded numbers.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;

use laggard_tests::product::{Bench, PROCESSOR_TIME};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;

/// Positions of columns.
const KIND: usize = 3;
const METRIC: usize = 4;
const TIME: usize = 5;
const INSTANCES: usize = 6;

/// What a counter counted, all rows together, and the time in which it did, ns.
fn counted(table: &Path, counter: &str) -> (i64, i64) {
    let reader = SerializedFileReader::new(File::open(table).expect("a table")).expect("Parquet");
    let rows = reader.get_row_iter(None).expect("rows");
    let rows = rows.map(|row| row.expect("a row")).filter(|row| {
        row.get_string(KIND).expect("a kind") == "counted"
            && row.get_string(METRIC).expect("a metric") == counter
    });
    rows.fold((0, 0), |(count, time), row| {
        let ns = (row.get_double(TIME).expect("a time") * 1e9).round() as i64;
        (count + row.get_long(INSTANCES).expect("a count"), time + ns)
    })
}

/// ns and rows by metric of one kind of rows.
fn sums(table: &Path, kind: &str) -> BTreeMap<String, (i64, u64)> {
    let reader = SerializedFileReader::new(File::open(table).expect("a table")).expect("Parquet");
    let mut sums: BTreeMap<String, (i64, u64)> = BTreeMap::new();
    for row in reader.get_row_iter(None).expect("rows") {
        let row = row.expect("a row");
        if row.get_string(KIND).expect("a kind") == kind {
            let metric = row.get_string(METRIC).expect("a metric").clone();
            let ns = (row.get_double(TIME).expect("a time") * 1e9).round() as i64;
            let sum = sums.entry(metric).or_default();
            *sum = (sum.0 + ns, sum.1 + 1);
        }
    }
    sums
}

fn ns(seconds: &serde_json::Value) -> i64 {
    (seconds.as_f64().expect("seconds") * 1e9).round() as i64
}

#[test]
fn tables_of_all_numbers_of_agents_are_the_report() {
    let bench = Bench::beside("per-rank");
    let program = bench.compile("attacks/tiny.c", &[], &[]);
    let run = bench.traced(4, &[program.as_os_str()], "trace");
    let run = run.env(PROCESSOR_TIME, "1");
    let run = run.env("LAGGARD_COUNTERS", "page-faults");
    run.run().expect_orderly().expect_success();
    let trace = bench.path("trace");
    for options in [&["--all", "-q"][..], &["-q"]] {
        let mut first: Option<Vec<u8>> = None;
        for agents in [1, 2, 3] {
            let (report, table) = (bench.path("report.json"), bench.path("ranks.parquet"));
            let options = [options, &["--per-rank", "ranks.parquet"]].concat();
            let outcome = bench.analyze(&trace, agents, &report, &options);
            outcome.expect_orderly().expect_success();
            let bytes = fs::read(&table).expect("a table");
            assert!(
                *first.get_or_insert(bytes.clone()) == bytes,
                "{agents} agents"
            );
            let report = fs::read_to_string(&report).expect("a report");
            let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
            let lost = sums(&table, "lost");
            let metrics = report["metrics"].as_object().expect("metrics");
            assert!(!options.contains(&"--all") || !lost.is_empty());
            assert_eq!(lost.len(), metrics.len());
            for (pattern, metric) in metrics {
                assert_eq!(lost[pattern].0, ns(&metric["total_s"]), "{pattern}");
            }
            let times = sums(&table, "time");
            for time in [
                "wall",
                "computation",
                "communication",
                "synchronization",
                "io",
                "wait",
                "processor",
            ] {
                let expected = ns(&report["location_sums"][format!("{time}_s")]);
                assert_eq!(times[time], (expected, 4), "{time}");
            }
            let sums = &report["location_sums"];
            let faults = sums["counters"]["page-faults"].as_i64().expect("a count");
            let expected = (faults, ns(&sums["counted_s"]));
            assert_eq!(counted(&table, "page-faults"), expected);
        }
    }
}

#[test]
fn tables_that_cannot_be_written_are_refused_before_the_work() {
    let bench = Bench::beside("per-rank-refused");
    let program = bench.compile("attacks/tiny.c", &[], &[]);
    let run = bench.traced(2, &[program.as_os_str()], "trace");
    run.run().expect_orderly().expect_success();
    let (trace, report) = (bench.path("trace"), bench.path("report.json"));
    fs::write(bench.path("thesis.parquet"), "my thesis").expect("written");
    for (table, why) in [
        ("no/such/directory/t.parquet", "No such file"),
        ("trace", "directory"),
        ("thesis.parquet", "is not a laggard table"),
        ("report.json", "the report goes there"),
        ("/proc/t.parquet", "cannot write /proc/t.parquet"),
    ] {
        for agents in [1, 2] {
            let outcome = bench.analyze(&trace, agents, &report, &["-q", "--per-rank", table]);
            let outcome = outcome.expect_orderly();
            assert_eq!(outcome.code, Some(1), "{outcome}");
            let complaints: Vec<&str> = outcome
                .stderr
                .lines()
                .filter(|line| line.starts_with("laggard:"))
                .collect();
            assert!(
                complaints.len() == 1 && complaints[0].contains(why),
                "{outcome}"
            );
            assert!(!report.exists(), "{table}");
        }
    }
    assert_eq!(
        fs::read(bench.path("thesis.parquet")).expect("kept"),
        b"my thesis"
    );
    // Even if the disk is full in the end, the report is written.
    let outcome = bench.analyze(&trace, 2, &report, &["-q", "--per-rank", "/dev/full"]);
    assert_eq!(outcome.expect_orderly().code, Some(1));
    assert!(report.exists());
    let entries = fs::read_dir(&bench.dir).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let left = |name: &OsStr| name.to_string_lossy().ends_with(".tmp");
    assert!(
        !names.into_iter().any(|name| left(&name)),
        "temporary files are left"
    );
}
