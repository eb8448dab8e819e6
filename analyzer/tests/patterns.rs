//! Patterns on traces with known times: severity, cause, and near misses.

mod support;

use laggard_trace::calls::number;
use support::*;

const MS: u64 = 1_000_000;

#[test]
fn late_sender_in_a_blocking_receive() {
    let mut r = ranks(2);
    r[0].send(10, 1, 5, 60 * MS, 61 * MS);
    r[1].recv(20, 0, 5, 10 * MS, 62 * MS);
    let report = analyze(r);
    assert_eq!(total(&report, "late_sender"), 50 * MS as i64);
    let found = &report.bottlenecks[0];
    assert_eq!(
        (found.pattern.as_str(), found.location.line),
        ("late_sender", 20)
    );
    assert_eq!(
        (found.causes[0].rank, found.causes[0].location.line),
        (0, 10)
    );
    assert!(
        found.causes[0].because.contains("computed 50.0 ms"),
        "{}",
        found.causes[0].because
    );
    assert!(report.anomalies.is_empty(), "{:?}", report.anomalies);
}

#[test]
fn reasons_are_said_per_instance() {
    const US: u64 = 1_000;
    let mut r = ranks(2);
    for start in [MS, 2 * MS, 3 * MS] {
        r[0].send(10, 1, 5, start + 50 * US, start + 51 * US);
        r[1].recv(20, 0, 5, start + 10 * US, start + 52 * US);
    }
    let report = analyze(r);
    assert_eq!(
        report.bottlenecks[0].causes[0].because,
        "computed 40.0 µs longer each time before the send"
    );
}

#[test]
fn an_early_sender_is_silent() {
    let mut r = ranks(2);
    r[0].send(10, 1, 5, 5 * MS, 6 * MS);
    r[1].recv(20, 0, 5, 10 * MS, 62 * MS);
    let report = analyze(r);
    assert!(report.bottlenecks.is_empty(), "{:?}", report.bottlenecks);
}

#[test]
fn late_receiver_blocks_the_send() {
    let mut r = ranks(2);
    r[0].send(10, 1, 5, 10 * MS, 62 * MS);
    r[1].recv(20, 0, 5, 60 * MS, 62 * MS);
    let report = analyze(r);
    assert_eq!(total(&report, "late_receiver"), 50 * MS as i64);
    assert_eq!(report.bottlenecks[0].causes[0].location.line, 20);
}

#[test]
fn a_send_that_left_before_the_receive_was_posted_did_not_wait_for_it() {
    let mut r = ranks(2);
    r[0].send(10, 1, 5, 10 * MS, 20 * MS);
    r[1].recv(20, 0, 5, 60 * MS, 62 * MS);
    assert_eq!(total(&analyze(r), "late_receiver"), 0);
}

#[test]
fn waitall_is_charged_once_with_the_largest() {
    let mut r = ranks(3);
    r[1].send(10, 0, 5, 30 * MS, 31 * MS);
    r[2].send(11, 0, 5, 60 * MS, 61 * MS);
    let a = r[0].irecv(20, 1, 5, MS);
    let b = r[0].irecv(21, 2, 5, 2 * MS);
    r[0].waitall(22, &[(a, None), (b, None)], 10 * MS, 62 * MS);
    let report = analyze(r);
    assert_eq!(total(&report, "late_sender"), 50 * MS as i64);
    assert_eq!(report.metrics["late_sender"].instances, 1);
    let found = &report.bottlenecks[0];
    assert_eq!((found.location.line, found.causes[0].rank), (22, 2));
    let says = |text: &str| found.hints.iter().any(|hint| hint.contains(text));
    assert!(says("between posting the receive and waiting for it"));
    assert!(!says("MPI_Irecv"), "{:?}", found.hints);
}

#[test]
fn wildcards_completed_in_another_order_than_posted() {
    let mut r = ranks(3);
    r[1].send(10, 0, 5, 60 * MS, 61 * MS);
    r[2].send(11, 0, 5, 20 * MS, 21 * MS);
    // Posted: any source, then rank 1. The first takes rank 2's message.
    let any = r[0].irecv(20, -1, 5, MS);
    let definite = r[0].irecv(21, 1, 5, 2 * MS);
    r[0].waitall(22, &[(definite, None)], 30 * MS, 62 * MS);
    r[0].waitall(23, &[(any, Some((2, 5)))], 63 * MS, 64 * MS);
    let report = analyze(r);
    let found = &report.bottlenecks[0];
    assert_eq!(found.severity_s, 0.03);
    assert_eq!(
        (found.pattern.as_str(), found.location.line),
        ("late_sender_wrong_order_other_source", 22)
    );
    assert_eq!(report.bottlenecks.len(), 1);
    assert!(report.anomalies.is_empty(), "{:?}", report.anomalies);
}

#[test]
fn wrong_order_of_one_source() {
    let mut r = ranks(2);
    r[0].send(10, 1, 1, 20 * MS, 21 * MS);
    r[0].send(11, 1, 2, 60 * MS, 61 * MS);
    r[1].recv(20, 0, 2, 10 * MS, 62 * MS);
    r[1].recv(21, 0, 1, 63 * MS, 64 * MS);
    let report = analyze(r);
    assert_eq!(
        total(&report, "late_sender_wrong_order_same_source"),
        50 * MS as i64
    );
    assert_eq!(total(&report, "late_sender"), 0);
}

#[test]
fn messages_without_a_partner_are_anomalies() {
    let mut r = ranks(2);
    r[0].send(10, 1, 5, MS, 2 * MS);
    r[0].send(10, 1, 5, 3 * MS, 4 * MS);
    r[1].recv(20, 0, 5, 5 * MS, 6 * MS);
    r[1].irecv(21, 0, 9, 7 * MS);
    let report = analyze(r);
    let ids: Vec<_> = report
        .anomalies
        .iter()
        .map(|a| (a.id.as_str(), a.count, a.detail.as_str()))
        .collect();
    assert_eq!(
        ids,
        [
            (
                "unmatched_receive",
                1,
                "rank 0 -> 1, tag 9, 8 bytes, MPI_Irecv at app.c:21"
            ),
            (
                "unmatched_send",
                1,
                "rank 0 -> 1, tag 5, 8 bytes, MPI_Send at app.c:10"
            ),
        ]
    );
}

#[test]
fn barrier_waits_for_the_last() {
    let mut r = ranks(3);
    for (rank, enter) in [(0, 10), (1, 30), (2, 60)] {
        r[rank].collective(
            20 + rank as u32,
            number::MPI_Barrier,
            -1,
            enter * MS,
            61 * MS,
        );
    }
    let report = analyze(r);
    assert_eq!(total(&report, "wait_at_barrier"), 80 * MS as i64);
    let found = &report.bottlenecks[0];
    assert_eq!(
        (
            found.location.line,
            found.causes[0].rank,
            found.causes[0].location.line
        ),
        (20, 2, 22)
    );
}

#[test]
fn collectives_have_their_own_formulas() {
    let enters = [10, 30, 60];
    let run = |operation, root: i32| {
        let mut r = ranks(3);
        for (rank, enter) in enters.iter().enumerate() {
            r[rank].collective(20, operation, root, enter * MS, 61 * MS);
        }
        analyze(r)
    };
    let ms = |report: &laggard_report::Report, id: &str| total(report, id) / MS as i64;
    assert_eq!(ms(&run(number::MPI_Allreduce, -1), "wait_at_nxn"), 80);
    assert_eq!(ms(&run(number::MPI_Bcast, 2), "late_broadcast"), 80);
    assert_eq!(ms(&run(number::MPI_Bcast, 0), "late_broadcast"), 0);
    let reduce = run(number::MPI_Reduce, 0);
    assert_eq!(
        (
            ms(&reduce, "early_reduce"),
            ms(&reduce, "late_reduce_contribution")
        ),
        (20, 30)
    );
    assert_eq!(ms(&run(number::MPI_Reduce, 2), "early_reduce"), 0);
    // Rank 0 has no lower rank, rank 1 waits for nobody, rank 2 comes last.
    assert_eq!(ms(&run(number::MPI_Scan, -1), "early_scan"), 0);
    assert_eq!(
        ms(&run(number::MPI_Comm_dup, -1), "wait_at_comm_management"),
        80
    );
    assert_eq!(ms(&run(number::MPI_Finalize, -1), "wait_at_finalize"), 80);
}

#[test]
fn scan_waits_for_lower_ranks_only() {
    let mut r = ranks(3);
    for (rank, enter) in [(0, 60), (1, 10), (2, 30)] {
        r[rank].collective(20, number::MPI_Scan, -1, enter * MS, 61 * MS);
    }
    let report = analyze(r);
    assert_eq!(total(&report, "early_scan"), 80 * MS as i64);
    assert_eq!(report.bottlenecks[0].causes[0].rank, 0);
}

#[test]
fn threads_are_on_the_host_of_their_rank() {
    let mut r = ranks(2);
    r.push(Calls::new(1, 1, 2));
    r[0].send(10, 1, 5, 60 * MS, 61 * MS);
    r[1].recv(20, 0, 5, 10 * MS, 62 * MS);
    r[2].send(30, 1, 9, 10 * MS, 11 * MS);
    r[2].recv(31, 1, 9, 12 * MS, 13 * MS);
    let report = analyze(r);
    assert_eq!(report.run.hosts, ["n1"]);
    assert!(report.locations.iter().all(|l| l.host == "n1"));
    assert_eq!(report.bottlenecks[0].inter_node_s, None);
}

#[test]
fn groups_with_untraced_members_are_less_certain() {
    let mut r = ranks(3);
    r[0].collective(20, number::MPI_Barrier, -1, 10 * MS, 91 * MS);
    r[1].collective(20, number::MPI_Barrier, -1, 60 * MS, 91 * MS);
    r[0].recv(22, 1, 5, 100 * MS, 162 * MS);
    r[1].send(23, 0, 5, 160 * MS, 161 * MS);
    for (rank, enter) in [(0, 200), (1, 260)] {
        let post = r[rank].posts();
        let mut start = collective(number::MPI_Iallreduce, -1);
        start.flags |= laggard_trace::flags::POSTS;
        r[rank].call(24, start, enter * MS, enter * MS + 1);
        r[rank].waitall(25, &[(post, None)], (enter + 1) * MS, 291 * MS);
    }
    r.truncate(2);
    let report = analyze(r);
    let confidence = |pattern: &str| {
        let found = report.bottlenecks.iter().find(|b| b.pattern == pattern);
        found.unwrap().confidence
    };
    // Whom the barrier really waited for may be the rank without a trace.
    assert_eq!(confidence("wait_at_barrier"), 0.5);
    assert_eq!(confidence("wait_at_nxn"), 0.5);
    assert_eq!(confidence("late_sender"), 1.0);
}
