//! Runs of a program that solves the heat equation, made from the example of a report.

#![allow(dead_code)]

use std::path::Path;

use laggard_experiments::Run;
use laggard_report::Report;

const EXAMPLE: &str = include_str!("../../../../formats/report/tests/example.json");

/// The example; it lost 17.9 s in `exchange_halo`, on four ranks.
pub fn example() -> Report {
    let mut report = Report::from_json(EXAMPLE.as_bytes(), Path::new("example.json")).unwrap();
    report.anomalies.clear();
    report
}

pub fn run(source: &str, report: Report) -> Run {
    Run {
        source: source.to_owned(),
        report,
    }
}

/// A revision that sends earlier. The late sender lost a tenth of the time, at a line that moved. A
/// function is renamed, and there is a new finding.
pub fn improved() -> Report {
    let mut report = example();
    report.run.wall_time_s = 8.7;
    report.efficiency.communication = 0.99;
    report.efficiency.parallel = 0.86;
    for location in &mut report.locations {
        location.wall_s = Some(8.1);
        location.communication_s = (location.communication_s - 4.0).max(0.2);
        location.wait_s *= 0.2;
    }
    for operation in report.operations.iter_mut().take(1) {
        (operation.total_s, operation.wait_s) = (1.9, 1.79);
    }
    let late = &mut report.bottlenecks[0];
    late.severity_s = 1.79;
    late.percent = 5.5;
    late.location.line = 151;
    late.location.callpath[2] = "exchange_halo exchange.c:151".to_owned();
    let residual = &mut report.bottlenecks[1];
    residual.location.function = "residual".to_owned();
    residual.location.line = 50;
    residual.location.callpath[2] = "residual step.c:50".to_owned();
    let new = &mut report.bottlenecks[2];
    new.location.function = "main".to_owned();
    new.pattern = "wait_at_nxn".to_owned();
    new.name = "Wait at N x N".to_owned();
    new.severity_s = 1.2;
    report.regions[0].region = "smooth".to_owned();
    let roots = report.root_causes.as_mut().unwrap();
    // The one that the send was late for moved with the receive; the file is written elsewhere.
    roots[0].severity_s = 1.6;
    roots[0].percent = 4.9;
    roots[0].location.line = 151;
    roots[0].location.callpath[2] = "exchange_halo exchange.c:151".to_owned();
    roots[1].operation = "MPI_File_write_all".to_owned();
    report
}

/// Runs like this one, each a little slower than the previous one.
pub fn repeats(name: &str, report: &Report, count: usize) -> Vec<Run> {
    let repeat = |number: usize| {
        let mut report = report.clone();
        let slower = 1.0 + 0.004 * number as f64;
        report.run.wall_time_s *= slower;
        for finding in &mut report.bottlenecks {
            finding.severity_s *= slower;
        }
        for root in report.root_causes.iter_mut().flatten() {
            root.severity_s *= slower;
        }
        run(&format!("{name}-{number}.json"), report)
    };
    (0..count).map(repeat).collect()
}

/// The same problem on two ranks and on one.
pub fn smaller(ranks: u32, wall: f64, waiting: f64) -> Report {
    let mut report = example();
    report.run.ranks = ranks;
    report.run.locations = ranks;
    report.run.wall_time_s = wall;
    report.locations.truncate(ranks as usize);
    for location in &mut report.locations {
        let measured = wall - 0.6;
        location.wall_s = Some(measured);
        location.computation_s = 25.0 / f64::from(ranks);
        location.wait_s = waiting / f64::from(ranks);
        location.communication_s = measured - location.computation_s - 0.1;
        location.synchronization_s = 0.1;
    }
    report.bottlenecks.truncate(1);
    report.bottlenecks[0].severity_s = waiting;
    let roots = report.root_causes.as_mut().unwrap();
    roots.truncate(1);
    roots[0].severity_s = waiting;
    let inside = report.sums().communication_s;
    report.operations.truncate(1);
    (report.operations[0].total_s, report.operations[0].wait_s) = (inside, waiting);
    report.regions[0].exclusive_s = 1.9;
    report.regions[0].inclusive_s = 2.0;
    report
}
