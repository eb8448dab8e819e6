//! The table per rank, against the report of the same analysis.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use crate::support::*;
use laggard_engine::{Analysis, AnalyzeOptions};
use laggard_report::Report;
use laggard_trace::calls::number;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

const MS: u64 = 1_000_000;

pub type Cells = BTreeMap<String, Field>;

pub fn read(path: &Path) -> Vec<Cells> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    let cells = rows.map(|row| row.unwrap().into_columns().into_iter().collect());
    cells.collect()
}

fn text(row: &Cells, column: &str) -> String {
    match &row[column] {
        Field::Str(text) => text.clone(),
        Field::Null => String::new(),
        other => panic!("{column}: {other:?}"),
    }
}

fn number_of(row: &Cells, column: &str) -> Option<u32> {
    match row[column] {
        Field::UInt(number) => Some(number),
        Field::Null => None,
        ref other => panic!("{column}: {other:?}"),
    }
}

/// Seconds of a cell as ns, 0 if there are none.
fn ns(row: &Cells, column: &str) -> i64 {
    match row[column] {
        Field::Double(seconds) => (seconds * 1e9).round() as i64,
        Field::Null => 0,
        ref other => panic!("{column}: {other:?}"),
    }
}

/// The report and the table of an analysis with everything measured.
fn both(mut calls: Vec<Calls>) -> (Report, Vec<Cells>) {
    let directory = tempfile::tempdir().unwrap();
    for calls in &mut calls {
        calls.write(directory.path());
    }
    let table = directory.path().join("ranks.parquet");
    let mut options = AnalyzeOptions {
        per_rank: Some(table.clone()),
        // An instance with several late ranks has a row for each.
        charge_last: true,
        ..AnalyzeOptions::default()
    };
    options.settings.all = true;
    let analysis = laggard_engine::analyze(directory.path(), &options).unwrap();
    let Analysis {
        report, per_rank, ..
    } = analysis.unwrap();
    per_rank.unwrap();
    (report, read(&table))
}

/// Ranks 1 and 2 wait for rank 0: in a receive from two lines each, in a barrier, and
/// rank 2 has a second thread.
fn waiting() -> Vec<Calls> {
    let mut r = ranks(3);
    r.push(Calls::new(2, 1, 3));
    for (to, tag, at) in [(1, 5, 60), (2, 5, 70), (1, 6, 80)] {
        r[0].send(10, to, tag, at * MS, (at + 1) * MS);
    }
    r[1].recv(20, 0, 5, 10 * MS, 62 * MS);
    r[1].recv(21, 0, 6, 65 * MS, 82 * MS);
    r[2].recv(20, 0, 5, 20 * MS, 72 * MS);
    r[3].recv(22, 0, 7, 21 * MS, 95 * MS);
    r[0].send(11, 2, 7, 90 * MS, 91 * MS);
    for (rank, enter) in [(0, 190), (1, 100), (2, 150)] {
        r[rank].collective(30, number::MPI_Barrier, -1, enter * MS, 200 * MS);
    }
    r
}

#[test]
fn rows_say_who_lost_what_because_of_whom() {
    let (_, rows) = both(waiting());
    let lost = rows.iter().filter(|row| text(row, "kind") == "lost");
    let of_messages = lost.filter(|row| text(row, "metric").starts_with("late_sender"));
    let found: Vec<_> = of_messages
        .map(|row| {
            assert_eq!(text(row, "operation"), "MPI_Recv");
            assert_eq!(text(row, "cause_operation"), "MPI_Send");
            assert_eq!(
                (text(row, "file"), text(row, "host")),
                ("app.c".into(), "n1".into())
            );
            assert!(text(row, "callpath").contains("app.c:"));
            assert_eq!(number_of(row, "cause_rank"), Some(0));
            let place = |column| number_of(row, column).unwrap();
            let time = ns(row, "time_s") as u64 / MS;
            (
                (place("rank"), place("thread"), place("line")),
                (place("cause_line"), time),
            )
        })
        .collect();
    let expected = [
        ((1, 0, 20), (10, 50)),
        ((1, 0, 21), (10, 15)),
        ((2, 0, 20), (10, 50)),
        ((2, 1, 22), (11, 69)),
    ];
    assert_eq!(found, expected);
}

#[test]
fn sums_over_the_table_are_the_report() {
    let (report, rows) = both(waiting());
    let mut patterns: BTreeMap<String, (i64, u64)> = BTreeMap::new();
    let mut places: BTreeMap<(String, String, u32), i64> = BTreeMap::new();
    let mut waits: BTreeMap<(u32, u32), i64> = BTreeMap::new();
    for row in rows.iter().filter(|row| text(row, "kind") == "lost") {
        let time = ns(row, "time_s");
        let Field::Long(instances) = row["instances"] else {
            panic!("no instances in {row:?}");
        };
        let metric = text(row, "metric");
        let sum = patterns.entry(metric.clone()).or_default();
        *sum = (sum.0 + time, sum.1 + instances as u64);
        let line = number_of(row, "line").unwrap_or(0);
        let place = (metric.clone(), text(row, "operation"), line);
        *places.entry(place).or_default() += time;
        let rank = number_of(row, "rank")
            .zip(number_of(row, "thread"))
            .unwrap();
        if !metric.ends_with("_completion") && metric != "unexplained" {
            *waits.entry(rank).or_default() += time;
        }
        let known = ["cause_computation_s", "cause_wait_s", "cause_io_s"];
        assert!(known.map(|column| ns(row, column)).iter().sum::<i64>() <= time);
    }
    assert!(patterns.len() >= 2, "{patterns:?}");
    let seconds = |seconds: f64| (seconds * 1e9).round() as i64;
    let metrics = report.metrics.iter();
    let metrics: BTreeMap<_, _> = metrics
        .map(|(id, metric)| (id.clone(), (seconds(metric.total_s), metric.instances)))
        .collect();
    assert_eq!(patterns, metrics);
    let bottlenecks = report.bottlenecks.iter().map(|b| {
        let place = (b.pattern.clone(), b.operation.clone(), b.location.line);
        (place, seconds(b.severity_s))
    });
    assert_eq!(places, bottlenecks.collect());
    // Every location, in order, with its times first.
    let of_times = |row: &&Cells| text(row, "kind") == "time";
    let mut times = rows.iter().filter(of_times);
    for location in &report.locations {
        for (metric, time) in [
            ("wall", location.wall_s.unwrap()),
            ("startup", location.startup_s.unwrap()),
            ("shutdown", location.shutdown_s.unwrap()),
            ("computation", location.computation_s),
            ("communication", location.communication_s),
            ("synchronization", location.synchronization_s),
            ("io", location.io_s),
            ("wait", location.wait_s),
            ("blocked", 0.0),
            ("preempted", 0.0),
            ("kernel", 0.0),
            ("processor", 0.0),
        ] {
            let row = times.next().unwrap();
            let of = number_of(row, "rank").zip(number_of(row, "thread"));
            assert_eq!(of, Some((location.rank, location.thread)));
            assert_eq!(
                (text(row, "metric").as_str(), ns(row, "time_s")),
                (metric, seconds(time))
            );
        }
        let wait = waits.get(&(location.rank, location.thread));
        assert_eq!(wait.copied().unwrap_or(0), seconds(location.wait_s));
    }
    assert!(times.next().is_none() && report.locations.len() == 4);
}

#[test]
fn a_table_that_cannot_be_written_leaves_the_report() {
    let directory = tempfile::tempdir().unwrap();
    for calls in &mut waiting() {
        calls.write(directory.path());
    }
    let options = AnalyzeOptions {
        per_rank: Some("/dev/full".into()),
        ..AnalyzeOptions::default()
    };
    let analysis = laggard_engine::analyze(directory.path(), &options)
        .unwrap()
        .unwrap();
    let error = analysis.per_rank.unwrap_err().to_string();
    assert!(error.contains("/dev/full"), "{error}");
    assert_eq!(analysis.report.run.ranks, 3);
}
