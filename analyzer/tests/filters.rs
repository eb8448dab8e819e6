//! What the filters let through, what they say of it, and what becomes of the rest.

use std::sync::Arc;

use crate::support::*;
use laggard_baselines::Table;
use laggard_engine::AnalyzeOptions;
use laggard_report::Report;
use laggard_trace::calls::number;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// A second in which rank 1 waits: 300 ms in a call that it makes once; twice 30 ms where it
/// makes eight more calls that do not wait; and 5 ms in calls that take 55 ms.
fn program() -> Vec<Calls> {
    let mut r = ranks(2);
    r[0].send(10, 1, 5, 310 * MS, 310 * MS + US);
    r[1].recv(20, 0, 5, 10 * MS, 311 * MS);
    for n in 0..10 {
        let start = (400 + 40 * n) * MS;
        let late = if n % 5 == 0 { 30 * MS } else { 0 };
        r[0].send(11, 1, 6, start + late, start + late + US);
        r[1].recv(21, 0, 6, start + US, start + late + 100 * US);
    }
    for (n, late, takes) in [
        (0, 5 * MS, 35 * MS),
        (1, 2 * US, 10 * MS),
        (2, 2 * US, 10 * MS),
    ] {
        let start = (850 + 40 * n) * MS;
        r[0].send(12, 1, 7, start + late, start + late + US);
        r[1].recv(22, 0, 7, start, start + takes);
    }
    for rank in &mut r {
        rank.collective(30, number::MPI_Barrier, 0, 1009 * MS, 1010 * MS);
    }
    r
}

fn with(change: impl Fn(&mut AnalyzeOptions)) -> Report {
    let mut options = AnalyzeOptions::default();
    change(&mut options);
    analyze_with(program(), &options)
}

/// Says that a message of 8 bytes takes 1 ms.
fn table() -> Table {
    let text = r#"{"schema": "laggard-baseline/1", "entries": [{"operation": "MPI_Recv",
        "group_size": 2, "points": [{"bytes": 8, "time_s": 1e-3}]}]}"#;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    Table::read(file.path()).unwrap()
}

fn lines(report: &Report) -> Vec<u32> {
    let found = report.bottlenecks.iter();
    found.map(|found| found.location.line).collect()
}

#[test]
fn findings_tell_their_filter_with_its_numbers() {
    let report = with(|_| ());
    assert_eq!(lines(&report), [20, 21]);
    let [once, mixed] = &report.bottlenecks[..] else {
        panic!("{:?}", report.bottlenecks)
    };
    assert_eq!((once.filter.as_str(), once.ratio), ("hotspot", None));
    // 300 ms of the 1000 from its first call to its last.
    assert_eq!(once.rank_percent, Some(30.0));
    assert_eq!(mixed.filter, "deviation");
    // The mean is 6.099 ms, the least is 99 µs, the most 30.099 ms.
    assert_eq!(mixed.ratio, Some(61.606061));
    let baseline = with(|options| {
        options.baseline = Arc::new(table());
    });
    let found = &baseline.bottlenecks[1];
    assert_eq!(
        (found.filter.as_str(), found.location.line),
        ("baseline", 21)
    );
    assert_eq!((found.baseline_s, found.ratio), (Some(1e-3), Some(6.099)));
    // The table covers what is called once, too.
    assert_eq!(baseline.bottlenecks[0].filter, "baseline");
    assert_eq!(baseline.called_once, []);
    let all = with(|options| options.settings.all = true);
    assert!(all.bottlenecks.iter().all(|found| found.filter == "all"));
    assert_eq!(all.called_once, []);
}

#[test]
fn what_is_called_once_is_said_to_be_beyond_judgement() {
    let report = with(|_| ());
    let [once] = &report.called_once[..] else {
        panic!("{:?}", report.called_once)
    };
    assert_eq!(
        (once.operation.as_str(), once.location.line),
        ("MPI_Recv", 20)
    );
    assert_eq!((once.locations, once.total_s), (1, 0.301));
}

#[test]
fn what_costs_little_is_counted_and_not_listed() {
    let report = with(|_| ());
    let below = report.below_hotspot.as_ref().unwrap();
    assert_eq!((below.findings, below.severity_s), (1, 0.005_004));
    // Sums are those of all that was measured.
    assert_eq!(total(&report, "late_sender"), 365_002_000);
    let lower = with(|options| options.settings.hotspot_percent = 0.1);
    assert_eq!(lines(&lower), [20, 21, 22]);
    assert_eq!(lower.below_hotspot, None);
    assert_eq!(lower.metrics, report.metrics);
    let higher = with(|options| options.settings.hotspot_percent = 10.0);
    assert_eq!(lines(&higher), [20]);
}

#[test]
fn ids_are_the_same_whatever_is_listed() {
    let (few, all) = (with(|_| ()), with(|options| options.settings.all = true));
    let ids = |report: &Report| -> std::collections::BTreeMap<u32, String> {
        let found = report.bottlenecks.iter();
        found.map(|f| (f.location.line, f.id.clone())).collect()
    };
    let (few, all) = (ids(&few), ids(&all));
    assert!(few.len() >= 2 && all.len() > few.len(), "{few:?} {all:?}");
    for (line, id) in few {
        assert_eq!(id, all[&line], "line {line}");
    }
}
