//! Computation between calls compared over ranks, and the most severe instances of patterns.

use crate::support::*;
use laggard_report::{Imbalance, Report};
use laggard_trace::Signature;
use laggard_trace::calls::number;

const MS: u64 = 1_000_000;

fn row(report: &Report, line: u32) -> Option<&Imbalance> {
    report
        .imbalance
        .iter()
        .find(|row| row.location.line == line)
}

/// Mean, largest, overload, underload, part of ranks that never were there, and of a single one; ms.
fn ms(row: &Imbalance) -> [f64; 6] {
    [
        row.mean_s,
        row.max_s,
        row.overload_s,
        row.underload_s,
        row.non_participation_s,
        row.single_participant_s,
    ]
    .map(|seconds| (seconds * 1e3).round())
}

#[test]
fn computation_after_a_call_is_compared_over_all_ranks() {
    let run = |last: u64| {
        let mut r = ranks(4);
        for (rank, calls) in r.iter_mut().enumerate() {
            // Twice in the same place: 10 ms each, of rank 3 as long as said.
            let mut enter = MS;
            for leave in [100, 200] {
                calls.collective(20, number::MPI_Barrier, -1, enter, leave * MS);
                enter = (leave + if rank == 3 { last } else { 10 }) * MS;
            }
            calls.collective(21, number::MPI_Finalize, -1, enter, 300 * MS);
        }
        analyze(r)
    };
    let report = run(50);
    let found = row(&report, 20).unwrap();
    assert_eq!((found.after.as_str(), found.ranks), ("MPI_Barrier", 4));
    assert_eq!(found.worst_rank, 3);
    // 20, 20, 20 and 100.
    assert_eq!(ms(found), [40.0, 100.0, 60.0, 60.0, 0.0, 0.0]);
    // The near miss.
    assert_eq!(row(&run(10), 20), None);
}

#[test]
fn ranks_that_take_no_part_are_told_from_those_that_compute_less() {
    let probe = Signature {
        operation: number::MPI_Iprobe,
        ..Signature::default()
    };
    let mut r = ranks(4);
    for (rank, calls) in r.iter_mut().enumerate() {
        let mut at = MS;
        for (line, computing) in [(30, &[1][..]), (31, &[0, 1])] {
            if computing.contains(&rank) {
                calls.call(line, probe, at, at + 1);
            } else {
                calls.call(32, probe, at + 40 * MS - 1, at + 40 * MS);
            }
            at += 40 * MS;
        }
        calls.collective(40, number::MPI_Finalize, -1, at, at + 1);
    }
    let report = analyze(r);
    assert_eq!(
        ms(row(&report, 30).unwrap()),
        [10.0, 40.0, 30.0, 30.0, 30.0, 30.0]
    );
    assert_eq!(
        ms(row(&report, 31).unwrap()),
        [20.0, 40.0, 40.0, 40.0, 40.0, 0.0]
    );
}

#[test]
fn the_most_severe_instances_of_a_pattern_are_of_distinct_places() {
    let mut r = ranks(2);
    // Place, and time lost in ms; place 21 has the two worst.
    let waits = [
        (20, 5),
        (21, 60),
        (21, 50),
        (22, 30),
        (23, 20),
        (24, 10),
        (25, 40),
    ];
    let mut at = MS;
    for (line, lost) in waits {
        r[0].send(10, 1, 5, at + lost * MS, at + lost * MS + 1);
        r[1].recv(line, 0, 5, at, at + lost * MS + 2);
        at += 100 * MS;
    }
    let report = analyze(r);
    let worst = report.metrics["late_sender"].worst_instances.iter();
    let worst: Vec<_> = worst
        .map(|one| {
            let lost = (one.severity_s * 1e3).round();
            (one.location.line, lost, one.rank, one.late_rank)
        })
        .collect();
    let expected = [(21, 60.0), (25, 40.0), (22, 30.0), (23, 20.0), (24, 10.0)];
    assert_eq!(worst, expected.map(|(line, lost)| (line, lost, 1, Some(0))));
}
