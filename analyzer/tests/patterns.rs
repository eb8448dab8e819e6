//! Patterns on traces with known times: severity, cause, and near misses.

use crate::support::*;
use laggard_engine::AnalyzeOptions;
use laggard_patterns::{Part, PatternId};
use laggard_report::{Bottleneck, Report};
use laggard_trace::calls::number;
use laggard_trace::{PEER_NONE, PEER_ROOT, Signature};

const MS: u64 = 1_000_000;

#[test]
fn the_page_draws_what_the_catalogue_says() {
    let from_start = PatternId::ALL.iter().map(|pattern| pattern.row());
    let mut from_start: Vec<&str> = from_start
        .filter(|row| row.part == Part::Begin)
        .map(|row| row.id)
        .collect();
    let mut drawn = laggard_html::FROM_START.to_vec();
    from_start.sort_unstable();
    drawn.sort_unstable();
    assert_eq!(drawn, from_start);
}

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
fn reasons_of_many_waits_are_shares_of_them() {
    const US: u64 = 1_000;
    let mut r = ranks(2);
    for start in [MS, 2 * MS, 3 * MS] {
        r[0].send(10, 1, 5, start + 50 * US, start + 51 * US);
        r[1].recv(20, 0, 5, start + 10 * US, start + 52 * US);
    }
    let report = analyze(r);
    let cause = &report.bottlenecks[0].causes[0];
    assert_eq!(
        cause.because,
        "computed 100 % of that time before the send, mostly between calls of MPI_Send at app.c:10 work"
    );
    assert_eq!(cause.computation_s, Some(0.000_12));
    assert_eq!((cause.wait_s, cause.io_s), (Some(0.0), Some(0.0)));
}

/// Rank 1 comes last, from computing and from a wait of its own; the others wait for it in
/// the same collective, each from another moment on.
fn held_up(operation: u16, computes: u64, waits: u64) -> Report {
    let mut r = ranks(4);
    let late = 10 + computes + waits;
    r[1].recv(19, 0, 5, 10 * MS, (10 + waits) * MS);
    r[0].send(18, 1, 5, 9 * MS + waits * MS, (10 + waits) * MS);
    for (rank, enter) in [(1, late), (2, 10), (3, 20)] {
        r[rank].collective(20 + rank as u32, operation, 1, enter * MS, (late + 1) * MS);
    }
    r[0].collective(20, operation, 1, (late - 2) * MS, (late + 1) * MS);
    let mut options = AnalyzeOptions {
        charge_last: true,
        ..AnalyzeOptions::default()
    };
    options.settings.all = true;
    analyze_with(r, &options)
}

#[test]
fn what_one_occasion_took_is_said_in_full_and_in_both_parts() {
    for operation in [number::MPI_Bcast, number::MPI_Finalize] {
        let report = held_up(operation, 14, 18);
        let waits = report.bottlenecks.iter().filter(|b| b.location.line >= 20);
        let mut said = 0;
        for found in waits {
            said += 1;
            // Rank 3 saw but the last 22 ms of it, and rank 0 the last 2.
            let because = &found.causes[0].because;
            if found.ranks.iter().any(|share| share.rank == 2) {
                assert!(because.starts_with(
                    "computed 14.0 ms and itself waited 18.0 ms in MPI_Recv (app.c:19) before it \
                     came, computing mostly between MPI_Recv at app.c:19 work and MPI_"
                ));
            }
            assert!(!because.contains("each time"), "{because}");
        }
        assert!(said > 0, "{:?}", report.bottlenecks);
    }
}

#[test]
fn advice_is_for_what_the_late_party_did() {
    let hints = |computes, waits| {
        let report = held_up(number::MPI_Barrier, computes, waits);
        let found = found(&report, "wait_at_barrier", 22);
        found.hints.clone()
    };
    let hints_of_wait = hints(1, 31);
    assert_eq!(
        hints_of_wait[0],
        "Rank 1 only passes it on. See rc1, which starts 93.8 % of this: rank 0 computed \
         until MPI_Send at app.c:18 work."
    );
    assert!(!hints_of_wait.iter().any(|hint| hint.contains("Balance")));
    assert!(hints(31, 1)[0].starts_with("Balance the work"));
    // Some of both.
    let hints_of_both = hints(14, 18);
    let start = "Rank 1 mostly passes it on. See rc1, which starts 53.1 %";
    assert!(hints_of_both[0].starts_with(start), "{hints_of_both:?}");
    assert!(hints_of_both[1].starts_with("Balance the work"));
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
fn wrong_order_is_searched_for_among_the_next_128_receives() {
    // Other messages are received in the order of their sends between the late one and the one that
    // had been there before it.
    let run = |between: u64, source: usize| {
        let mut r = ranks(3);
        r[source].send(10, 1, 1, 20 * MS, 21 * MS);
        r[0].send(11, 1, 2, 60 * MS, 61 * MS);
        r[1].recv(20, 0, 2, 10 * MS, 62 * MS);
        for n in 0..between {
            r[0].send(12, 1, 3, (70 + n) * MS, (70 + n) * MS + 1);
            r[1].recv(21, 0, 3, (300 + n) * MS, (300 + n) * MS + 1);
        }
        r[1].recv(22, source as i32, 1, 600 * MS, 600 * MS + 1);
        let report = analyze(r);
        let other = "late_sender_wrong_order_other_source";
        let ids = ["late_sender", "late_sender_wrong_order_same_source", other];
        let skipped = report.anomalies.iter();
        let skipped = skipped.filter(|a| a.id == "order_not_searched");
        (
            ids.map(|id| total(&report, id) / MS as i64),
            skipped.map(|a| a.count).sum::<u64>(),
        )
    };
    for between in [0, 31, 32, 127] {
        assert_eq!(run(between, 0), ([0, 50, 0], 0), "{between}");
        assert_eq!(run(between, 2), ([0, 0, 50], 0), "{between}");
    }
    assert_eq!(run(128, 0), ([50, 0, 0], 1));
    assert_eq!(run(128, 2), ([50, 0, 0], 1));
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
    let ms = |report: &Report, id: &str| total(report, id) / MS as i64;
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

/// The finding of a pattern at a line.
fn found<'r>(report: &'r Report, pattern: &str, line: u32) -> &'r Bottleneck {
    let mut found = report.bottlenecks.iter();
    found
        .find(|b| b.pattern == pattern && b.location.line == line)
        .unwrap_or_else(|| panic!("no {pattern} at {line}: {:?}", report.bottlenecks))
}

/// Rank, line and ms of the causes.
fn causes(found: &Bottleneck) -> Vec<(u32, u32, f64)> {
    let causes = found.causes.iter();
    causes
        .map(|c| (c.rank, c.location.line, (c.severity_s * 1e3).round()))
        .collect()
}

#[test]
fn every_late_member_of_a_scan_is_named_with_its_place() {
    let mut r = ranks(4);
    for (rank, enter) in [(0, 10), (1, 40), (2, 10), (3, 70)] {
        let line = 20 + rank as u32;
        r[rank].collective(line, number::MPI_Scan, -1, enter * MS, 71 * MS);
    }
    let report = analyze(r);
    assert_eq!(total(&report, "early_scan"), 30 * MS as i64);
    let found = found(&report, "early_scan", 22);
    assert_eq!(causes(found), [(1, 21, 30.0)]);
    let because = &found.causes[0].because;
    assert!(because.contains("computed 30.0 ms"), "{because}");
}

#[test]
fn late_members_of_a_scan_share_the_blame_of_those_above() {
    let mut r = ranks(4);
    for (rank, enter) in [(0, 50), (1, 70), (2, 30), (3, 10)] {
        let line = 20 + rank as u32;
        r[rank].collective(line, number::MPI_Scan, -1, enter * MS, 71 * MS);
    }
    let report = analyze(r);
    // Rank 1 needs rank 0, which came before. Rank 2 misses both, and then rank 1.
    assert_eq!(
        causes(found(&report, "early_scan", 22)),
        [(1, 21, 30.0), (0, 20, 10.0)]
    );
    // Rank 3 misses three for 20 ms, two for 20, and one for 20.
    let shares = causes(found(&report, "early_scan", 23));
    assert_eq!(shares, [(1, 21, 37.0), (0, 20, 17.0), (2, 22, 7.0)]);
}

#[test]
fn late_members_of_a_fence_share_the_blame() {
    let mut r = ranks(3);
    for (rank, enter) in [(0, 10), (1, 30), (2, 32)] {
        let line = 20 + rank as u32;
        r[rank].collective(line, number::MPI_Win_fence, -1, enter * MS, 33 * MS);
    }
    let report = analyze(r);
    assert_eq!(
        causes(found(&report, "wait_at_fence_sync", 20)),
        [(2, 22, 12.0), (1, 21, 10.0)]
    );
}

/// The trace of the rank in the middle is missing: who came late there is not known.
#[test]
fn partners_without_a_trace_end_the_search() {
    let chain = |missing: Option<usize>| {
        let mut r = ranks(3);
        r[0].send(10, 1, 5, 50 * MS, 51 * MS);
        r[1].recv(20, 0, 5, 5 * MS, 52 * MS);
        r[1].send(21, 2, 5, 53 * MS, 54 * MS);
        r[2].recv(20, 1, 5, 5 * MS, 55 * MS);
        for (rank, enter) in [(0, 51), (1, 54), (2, 56)] {
            r[rank].collective(30, number::MPI_Barrier, -1, enter * MS, 57 * MS);
        }
        if let Some(missing) = missing {
            r.remove(missing);
        }
        analyze(r)
    };
    let whole = chain(None);
    assert_eq!(total(&whole, "partner_without_trace"), 0);
    let report = chain(Some(1));
    let lost = found(&report, "partner_without_trace", 20);
    assert_eq!((lost.severity_s, lost.confidence), (0.05, 0.5));
    assert!(lost.causes.is_empty(), "{:?}", lost.causes);
    // Rank 0 waits for rank 2 in the barrier, which came late because of the missing one.
    let untraced = report.untraced_s.unwrap();
    assert!((0.056..0.0572).contains(&untraced), "{untraced}");
    let computed = report.root_causes.unwrap().into_iter();
    let computed = computed.filter(|root| root.activity == "computation");
    let most = computed.map(|root| root.severity_s).fold(0.0, f64::max);
    assert!(most < 0.002, "{most}");
}

#[test]
fn beside_the_root_in_its_group_nobody_is_waited_for() {
    // Rank 0 is the root, rank 1 beside it, ranks 2 and 3 are the other group.
    let mut r = ranks(4);
    let (bcast, reduce) = (number::MPI_Bcast, number::MPI_Reduce);
    r[0].collective(20, bcast, PEER_ROOT, 60 * MS, 61 * MS);
    r[1].without_data(21, bcast, PEER_NONE, 80 * MS, 81 * MS);
    r[2].collective(22, bcast, 0, 10 * MS, 62 * MS);
    r[3].collective(22, bcast, 0, 70 * MS, 71 * MS);
    r[0].collective(30, reduce, PEER_ROOT, 100 * MS, 180 * MS);
    r[1].without_data(31, reduce, PEER_NONE, 190 * MS, 191 * MS);
    r[2].collective(32, reduce, 0, 120 * MS, 121 * MS);
    r[3].collective(33, reduce, 0, 150 * MS, 151 * MS);
    let report = analyze(r);
    assert_eq!(report.bottlenecks.len(), 3, "{:?}", report.bottlenecks);
    let late = found(&report, "late_broadcast", 22);
    assert_eq!(causes(late), [(0, 20, 50.0)]);
    let early = found(&report, "early_reduce", 30);
    // Until the first one came, both were missing.
    assert_eq!(causes(early), [(2, 32, 10.0), (3, 33, 10.0)]);
    let rest = found(&report, "late_reduce_contribution", 30);
    assert_eq!(causes(rest), [(3, 33, 30.0)]);
}

#[test]
fn members_that_contribute_nothing_are_not_waited_for() {
    let gatherv = number::MPI_Gatherv;
    let mut r = ranks(4);
    r[0].collective(20, gatherv, 0, 10 * MS, 51 * MS);
    r[1].collective(21, gatherv, 0, 30 * MS, 31 * MS);
    r[2].collective(22, gatherv, 0, 50 * MS, 51 * MS);
    r[3].without_data(23, gatherv, 0, 70 * MS, 71 * MS);
    // Nobody contributes anything.
    r[0].collective(24, gatherv, 0, 100 * MS, 190 * MS);
    for rank in &mut r[1..] {
        rank.without_data(24, gatherv, 0, 180 * MS, 190 * MS);
    }
    let report = analyze(r);
    assert_eq!(report.bottlenecks.len(), 2, "{:?}", report.bottlenecks);
    let early = found(&report, "early_reduce", 20);
    assert_eq!(causes(early), [(1, 21, 10.0), (2, 22, 10.0)]);
    let rest = found(&report, "late_reduce_contribution", 20);
    assert_eq!(causes(rest), [(2, 22, 20.0)]);
}

#[test]
fn roots_that_only_records_tell_are_waited_for() {
    let mut r = ranks(3);
    r[0].fallback(20, number::MPI_Bcast, 1, 10 * MS, 61 * MS);
    r[1].fallback(21, number::MPI_Bcast, 1, 60 * MS, 61 * MS);
    r[2].fallback(22, number::MPI_Bcast, 1, 90 * MS, 91 * MS);
    let report = analyze(r);
    assert_eq!(report.bottlenecks.len(), 1, "{:?}", report.bottlenecks);
    let late = found(&report, "late_broadcast", 20);
    assert_eq!(causes(late), [(1, 21, 50.0)]);
}

#[test]
fn neighbours_alone_are_waited_for() {
    let sources: [&[u32]; 4] = [&[1], &[0, 2], &[1, 3], &[2]];
    let run = |is_known: bool| {
        let mut r = ranks(4);
        for (rank, enter) in [(0, 10), (1, 40), (2, 10), (3, 70)] {
            if is_known {
                r[rank].neighbours(sources[rank]);
            }
            let line = 20 + rank as u32;
            let operation = number::MPI_Neighbor_alltoall;
            r[rank].collective(line, operation, -1, enter * MS, 71 * MS);
        }
        analyze(r)
    };
    let report = run(true);
    assert_eq!(total(&report, "wait_at_nxn"), 90 * MS as i64);
    assert_eq!(
        causes(found(&report, "wait_at_nxn", 20)),
        [(1, 21, 30.0)],
        "rank 0 gets data of rank 1 only"
    );
    assert_eq!(
        causes(found(&report, "wait_at_nxn", 22)),
        [(3, 23, 45.0), (1, 21, 15.0)],
        "rank 2 gets data of ranks 1 and 3"
    );
    // A trace without neighbours: anybody may be one.
    assert_eq!(total(&run(false), "wait_at_nxn"), 150 * MS as i64);
}

#[test]
fn completion_among_neighbours_is_of_these_alone() {
    let sources: [&[u32]; 4] = [&[1], &[0, 2], &[1, 3], &[2]];
    let run = |times: [(u64, u64); 4], is_known: bool| {
        let mut r = ranks(4);
        for (rank, (enter, leave)) in times.into_iter().enumerate() {
            if is_known {
                r[rank].neighbours(sources[rank]);
            }
            let operation = number::MPI_Neighbor_alltoall;
            r[rank].collective(20, operation, -1, enter * MS, leave * MS);
        }
        let report = analyze(r);
        (
            total(&report, "nxn_completion") / MS as i64,
            total(&report, "wait_at_nxn") / MS as i64,
        )
    };
    // Rank 0 has the data of rank 1 at 40, and rank 1 leaves at 41: rank 0 stays 50 ms longer. That
    // rank 3 comes at 80 is nothing to it. Rank 2 waits for rank 3 and leaves with it.
    let stays = [(10, 91), (40, 41), (30, 85), (80, 85)];
    assert_eq!(run(stays, true), (50, 30 + 50));
    // The near misses: everybody leaves with the neighbours.
    assert_eq!(run([(10, 41), (40, 41), (30, 81), (80, 81)], true).0, 0);
    // Rank 1 left before rank 0 came. Nobody shows that rank 0 could have left earlier.
    assert_eq!(run([(50, 91), (10, 31), (20, 31), (10, 31)], true).0, 0);
    // It is unknown who the neighbours are.
    assert_eq!(run(stays, false).0, 0);
}

#[test]
fn a_rank_that_stays_in_init() {
    let init = |leaves: [u64; 3]| {
        let mut r = ranks(3);
        for (rank, leave) in leaves.iter().enumerate() {
            r[rank].collective(20, number::MPI_Init, -1, rank as u64 * MS, leave * MS);
        }
        analyze(r)
    };
    let report = init([10, 12, 60]);
    assert_eq!(total(&report, "init_completion"), 52 * MS as i64);
    let found = found(&report, "init_completion", 20);
    assert_eq!((found.ranks.len(), found.causes.len()), (2, 0));
    assert_eq!(total(&init([60, 60, 60]), "init_completion"), 0);
}

#[test]
fn completion_is_not_the_wait_for_the_last() {
    let cases = [
        (number::MPI_Barrier, "barrier_completion", "wait_at_barrier"),
        (number::MPI_Allreduce, "nxn_completion", "wait_at_nxn"),
    ];
    for (operation, completion, wait) in cases {
        let run = |leaves: [u64; 3]| {
            let mut r = ranks(3);
            for (rank, enter) in [(0, 10), (1, 30), (2, 60)] {
                r[rank].collective(20, operation, -1, enter * MS, leaves[rank] * MS);
            }
            let report = analyze(r);
            (total(&report, completion), total(&report, wait))
        };
        let ms = MS as i64;
        assert_eq!(run([61, 61, 91]), (30 * ms, 80 * ms), "{completion}");
        assert_eq!(run([61, 61, 61]), (0, 80 * ms), "{completion}");
    }
}

/// What a late member did is looked up where slabs end anywhere between it and the
/// collective's last member.
#[test]
fn a_late_member_is_explained_alike_however_the_trace_is_cut() {
    let run = |polls: u64, round_records| {
        let mut r = ranks(3);
        let poll = Signature {
            operation: number::MPI_Iprobe,
            ..Signature::default()
        };
        for at in 0..2000 {
            r[0].call(10, poll, 1000 + at * 10, 1005 + at * 10);
        }
        r[1].collective(21, number::MPI_Bcast, 0, 100, 100_002);
        r[0].collective(20, number::MPI_Bcast, 0, 100_000, 100_001);
        for at in 0..polls {
            r[0].call(11, poll, 200_000 + at * 10, 200_005 + at * 10);
        }
        r[2].collective(22, number::MPI_Bcast, 0, 1_000_000, 1_000_001);
        let mut options = AnalyzeOptions {
            round_records,
            ..AnalyzeOptions::default()
        };
        options.settings.all = true;
        let mut report = analyze_with(r, &options);
        report.agents = Default::default();
        report
    };
    for polls in [0, 700, 5000] {
        let whole = run(polls, None);
        let found = found(&whole, "late_broadcast", 21);
        assert_eq!((causes(found)[0].0, causes(found)[0].1), (0, 20));
        for records in [3, 500, 1500] {
            let in_rounds = run(polls, Some(records));
            assert_eq!(
                in_rounds.to_json(),
                whole.to_json(),
                "{polls} calls after the root's, rounds of {records}"
            );
        }
    }
}
