//! What shares are of: the time between start-up and shut-down.

use crate::support::*;
use laggard_report::{LocationTimes, OperationTimes, Report};
use laggard_trace::calls::number;
use laggard_trace::{Signature, WORLD, flags};

const MS: u64 = 1_000_000;
/// `shmem_init` and `shmem_finalize`.
const SHMEM: [u16; 2] = [1024, 1027];

fn ms(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e3
}

/// All that is measured is computation or inside of a call, at each location and in all.
fn adds_up(report: &Report) {
    let parts =
        |l: &LocationTimes| l.computation_s + l.communication_s + l.synchronization_s + l.io_s;
    for location in &report.locations {
        assert_eq!(
            ms(parts(location)),
            ms(location.wall_s.unwrap()),
            "{location:?}"
        );
    }
    let sums = report.sums();
    let inside = sums.communication_s + sums.synchronization_s + sums.io_s;
    assert_eq!(ms(inside + sums.computation_s), ms(sums.wall_s));
    let functions: f64 = report.operations.iter().map(|row| row.total_s).sum();
    assert_eq!(ms(functions), ms(inside));
    let phases = report.phases_of_run.as_ref().unwrap();
    let all = phases.startup_s + phases.measured_s + phases.shutdown_s;
    assert_eq!(ms(all), ms(report.run.wall_time_s));
    for finding in &report.bottlenecks {
        assert!(
            finding.percent <= 100.0 && finding.rank_percent.unwrap() <= 100.0,
            "{finding:?}"
        );
    }
    assert!(report.waiting_percent() <= 100.0);
}

fn function<'r>(report: &'r Report, name: &str) -> Option<&'r OperationTimes> {
    report.operations.iter().find(|row| row.operation == name)
}

/// How long each location started, was measured, and shut down, ms.
fn parts(report: &Report) -> Vec<[f64; 3]> {
    let locations = report.locations.iter();
    let parts = locations.map(|l| {
        [
            l.startup_s.unwrap(),
            l.wall_s.unwrap(),
            l.shutdown_s.unwrap(),
        ]
    });
    parts.map(|parts| parts.map(ms)).collect()
}

/// Two ranks that start for 300 ms, work, meet once, and end.
fn works_and_meets(finalizes: [u64; 2]) -> Vec<Calls> {
    let mut r = ranks(2);
    for (rank, enter) in finalizes.into_iter().enumerate() {
        r[rank].collective(1, number::MPI_Init, -1, 0, 300 * MS);
        r[rank].collective(2, number::MPI_Barrier, -1, 400 * MS, 401 * MS);
        r[rank].collective(3, number::MPI_Finalize, -1, enter * MS, 600 * MS);
    }
    r
}

#[test]
fn a_program_that_only_works_is_efficient() {
    for all in [true, false] {
        let mut options = laggard_engine::AnalyzeOptions::default();
        options.settings.all = all;
        let report = analyze_with(works_and_meets([501, 501]), &options);
        adds_up(&report);
        let efficiency = &report.efficiency;
        assert!(efficiency.parallel > 0.99, "{efficiency:?}");
        assert_eq!(parts(&report), [[300.0, 201.0, 99.0]; 2]);
        assert_eq!(function(&report, "MPI_Init"), None);
        assert_eq!(function(&report, "MPI_Finalize").unwrap().total_s, 0.0);
        assert!(report.called_once.is_empty(), "{:?}", report.called_once);
        let phases = report.phases_of_run.unwrap();
        let times = [phases.startup_s, phases.measured_s, phases.shutdown_s];
        assert_eq!(times.map(ms), [300.0, 201.0, 99.0]);
        let ends = phases.operations.iter();
        let ends: Vec<_> = ends
            .map(|o| (&*o.operation, o.calls, ms(o.total_s), o.share))
            .collect();
        assert_eq!(
            ends,
            [
                ("MPI_Init", 2, 600.0, 0.5),
                ("MPI_Finalize", 2, 198.0, 0.165)
            ]
        );
    }
}

#[test]
fn waiting_for_who_comes_late_to_the_end_counts() {
    let report = analyze(works_and_meets([501, 521]));
    adds_up(&report);
    assert_eq!(total(&report, "wait_at_finalize"), 20 * MS as i64);
    assert_eq!(parts(&report), [[300.0, 221.0, 79.0]; 2]);
    assert_eq!(ms(function(&report, "MPI_Finalize").unwrap().total_s), 20.0);
    assert_eq!(report.metrics["wait_at_finalize"].percent, 4.5249);
    assert_eq!(ms(report.sums().wait_s), 20.0);
    assert_eq!(report.efficiency.communication, 0.995475);
}

#[test]
fn what_start_up_lost_is_no_waiting() {
    let mut r = works_and_meets([501, 501]);
    r[0] = Calls::new(0, 0, 2);
    r[0].collective(1, number::MPI_Init, -1, 0, 100 * MS);
    r[0].collective(2, number::MPI_Barrier, -1, 400 * MS, 401 * MS);
    r[0].collective(3, number::MPI_Finalize, -1, 501 * MS, 600 * MS);
    let report = analyze(r);
    adds_up(&report);
    assert_eq!(total(&report, "init_completion"), 200 * MS as i64);
    // Of all time, as it is none of the time that is measured.
    assert_eq!(report.metrics["init_completion"].percent, 16.6667);
    assert_eq!(report.sums().wait_s, 0.0);
    assert_eq!(parts(&report)[0], [100.0, 401.0, 99.0]);
    let phases = report.phases_of_run.unwrap();
    assert_eq!(
        (ms(phases.startup_s), ms(phases.measured_s)),
        (100.0, 401.0)
    );
}

#[test]
fn who_never_came_to_the_end_is_measured_to_its_last_call() {
    let mut r = ranks(2);
    for calls in &mut r {
        calls.collective(1, number::MPI_Init, -1, 0, 300 * MS);
    }
    r[0].collective(3, number::MPI_Finalize, -1, 400 * MS, 450 * MS);
    r[1].send(4, 0, 1, 440 * MS, 500 * MS);
    let report = analyze(r);
    adds_up(&report);
    assert_eq!(parts(&report), [[300.0, 100.0, 50.0], [300.0, 200.0, 0.0]]);
    let mut r = ranks(1);
    r[0].send(4, 0, 1, 440 * MS, 500 * MS);
    r[0].recv(5, 0, 1, 510 * MS, 540 * MS);
    let report = analyze(r);
    adds_up(&report);
    assert_eq!(parts(&report), [[0.0, 100.0, 0.0]]);
    assert!(report.phases_of_run.unwrap().operations.is_empty());
}

#[test]
fn other_threads_have_neither() {
    let mut r = works_and_meets([501, 501]);
    let mut thread = Calls::new(1, 1, 2);
    thread.send(7, 0, 3, 350 * MS, 351 * MS);
    thread.send(8, 0, 3, 450 * MS, 451 * MS);
    r.push(thread);
    let report = analyze(r);
    adds_up(&report);
    assert_eq!(parts(&report)[2], [0.0, 101.0, 0.0]);
}

/// The first is started at once with the second, or much later.
#[test]
fn both_of_two_libraries_start_and_end_apart() {
    let [init, finalize] = SHMEM;
    for work in [false, true] {
        let mut r = ranks(2);
        for calls in &mut r {
            calls.collective(1, number::MPI_Init, -1, 0, 100 * MS);
            if work {
                calls.collective(2, number::MPI_Barrier, -1, 150 * MS, 152 * MS);
            }
            calls.collective(3, init, -1, 200 * MS, 300 * MS);
            calls.collective(2, number::MPI_Barrier, -1, 400 * MS, 401 * MS);
            calls.collective(4, finalize, -1, 450 * MS, 460 * MS);
            calls.collective(5, number::MPI_Finalize, -1, 470 * MS, 480 * MS);
        }
        let report = analyze(r);
        adds_up(&report);
        // Work between the two counts.
        let expected = if work {
            [200.0, 250.0, 30.0]
        } else {
            [300.0, 150.0, 30.0]
        };
        assert_eq!(parts(&report), [expected; 2]);
        assert_eq!(report.metrics.get("init_completion"), None);
        let ends = report.phases_of_run.unwrap().operations;
        let names: Vec<&str> = ends.iter().map(|row| &*row.operation).collect();
        let names_ = ["MPI_Init", "shmem_init", "MPI_Finalize", "shmem_finalize"];
        assert_eq!(names, names_);
        assert_eq!(ms(ends[1].total_s), 200.0);
    }
}

/// As in archives: what a recorder saw before and after.
#[test]
fn calls_beside_the_library_are_in_no_share() {
    let setup = Signature {
        operation: number::MPI_Initialized,
        group: WORLD,
        ..Signature::default()
    };
    let mut r = ranks(1);
    r[0].call(1, setup, 0, 10 * MS);
    r[0].collective(2, number::MPI_Init, -1, 50 * MS, 100 * MS);
    r[0].call(3, setup, 120 * MS, 130 * MS);
    r[0].collective(4, number::MPI_Barrier, -1, 150 * MS, 160 * MS);
    r[0].collective(5, number::MPI_Finalize, -1, 200 * MS, 210 * MS);
    r[0].call(6, setup, 220 * MS, 230 * MS);
    let report = analyze(r);
    adds_up(&report);
    assert_eq!(parts(&report), [[100.0, 100.0, 30.0]]);
    let location = &report.locations[0];
    assert_eq!(ms(location.communication_s), 10.0);
    assert_eq!(ms(location.computation_s), 80.0);
}

/// Nothing of Finalize is in the profile then, and what is paused is computation.
#[test]
fn a_recording_that_is_paused_at_the_end() {
    let mut r = works_and_meets([501, 521]);
    r[0] = Calls::new(0, 0, 2);
    r[0].collective(1, number::MPI_Init, -1, 0, 300 * MS);
    r[0].collective(2, number::MPI_Barrier, -1, 400 * MS, 401 * MS);
    let mut paused = collective(number::MPI_Finalize, -1);
    paused.flags |= flags::PAUSED;
    r[0].unprofiled(3, paused, 501 * MS, 600 * MS);
    let report = analyze(r);
    adds_up(&report);
    assert_eq!(parts(&report), [[300.0, 221.0, 79.0]; 2]);
    assert_eq!(ms(report.locations[0].computation_s), 220.0);
}
