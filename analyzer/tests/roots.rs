//! Root causes of traces made in memory, against numbers by hand.

use std::collections::BTreeMap;

use crate::support::*;
use laggard_engine::AnalyzeOptions;
use laggard_report::{PathRow, Report, RootCause};
use laggard_trace::calls::{self, number};
use laggard_trace::{Definition, Extension, REGION_PHASE, Record, Region, Signature};

const MS: u64 = 1_000_000;

/// The last member of a collective has all the blame.
fn last_alone() -> AnalyzeOptions {
    let mut options = AnalyzeOptions {
        charge_last: true,
        ..AnalyzeOptions::default()
    };
    options.settings.all = true;
    options
}

/// Activity, line of the call or of the one before, and line of the call after.
pub type Key = (&'static str, u32, u32);

pub fn key(root: &RootCause) -> Key {
    let activity = ["computation", "io", "call", "latency"];
    let activity = activity.into_iter().find(|name| *name == root.activity);
    let until = root.until.as_ref().map_or(0, |until| until.location.line);
    (activity.unwrap(), root.location.line, until)
}

fn roots(report: &Report) -> BTreeMap<Key, (f64, f64)> {
    let all = report.root_causes.as_ref().unwrap();
    let rows = all
        .iter()
        .map(|root| (key(root), (root.direct_s, root.indirect_s)));
    rows.collect()
}

/// The moment of a root cause is that of its late call that cost most, of all who waited.
#[test]
fn a_root_cause_has_its_worst_moment() {
    let mut all = ranks(3);
    let late = [2, 6, 3];
    for (rank, calls) in all.iter_mut().enumerate() {
        calls.call(1, init(), 0, MS);
        for (round, late) in (0..).zip(late) {
            let begin = (10 + 20 * round) * MS;
            let enter = begin
                + if rank == 2 {
                    late * MS
                } else {
                    rank as u64 * MS
                };
            calls.collective(20, number::MPI_Barrier, -1, enter, begin + 10 * MS);
        }
        calls.call(40, finalize(), 100 * MS, 101 * MS);
    }
    let report = analyze_by_agents(all, &last_alone(), [None, None, Some(8)]);
    let root = &report.root_causes.as_ref().unwrap()[0];
    assert_eq!(root.rank_set, "2");
    let worst = root.worst_wait.unwrap();
    // Ranks 0 and 1 wait 6 and 5 ms.
    let expected = [
        (worst.severity_s, 0.011),
        (worst.end_s, 0.036),
        (worst.start_s, 0.0305),
    ];
    for (found, expected) in expected {
        assert!((found - expected).abs() < 1e-9, "{worst:?}");
    }
    assert_eq!(worst.rank, 2);
}

/// Rank 1 waits for rank 0, and rank 2 for rank 1; rank 2 is the last in Finalize. The times are
/// those of Scalasca's worked example; computation counts as a whole here.
#[test]
fn costs_reach_the_first_of_a_chain() {
    let mut all = ranks(3);
    let ms = |time: u64| time * MS;
    for rank in &mut all {
        rank.call(1, init(), 0, ms(1));
    }
    all[0].send(10, 1, 0, ms(10), ms(11));
    all[1].recv(20, 0, 0, ms(4), ms(11));
    all[1].send(30, 2, 0, ms(13), ms(14));
    all[2].recv(20, 1, 0, ms(3), ms(14));
    for (rank, enter) in all.iter_mut().zip([12, 15, 16]) {
        rank.call(40, finalize(), ms(enter), ms(17));
    }
    let report = analyze_with(all, &last_alone());
    let expected = BTreeMap::from([
        // 6 for rank 1. Rank 2 lost 10, of which each ns of rank 1's 6 takes 1. Rank 0 lost 4 in
        // Finalize, of which rank 2's wait takes 10 of 11 parts, and rank 1's 6 of 10 of these.
        (("computation", 1, 10), (6.0, 6.0 + 4.0 * 6.0 / 11.0)),
        (("computation", 1, 20), (1.0, 4.0 / 11.0)),
        (("computation", 20, 30), (2.0, 8.0 / 11.0)),
        (("call", 20, 0), (1.0 + 4.0 / 11.0, 4.0 / 11.0)),
        (("computation", 20, 40), (1.0, 0.0)),
    ]);
    let found = roots(&report);
    assert_eq!(
        found.keys().collect::<Vec<_>>(),
        expected.keys().collect::<Vec<_>>()
    );
    for (key, (direct, indirect)) in expected {
        let (d, i) = found[&key];
        assert!((d * 1e3 - direct).abs() < 1e-5, "{key:?}: {d} {direct}");
        assert!((i * 1e3 - indirect).abs() < 1e-5, "{key:?}: {i} {indirect}");
    }
    assert!(report.untraced_s.unwrap() < 1e-8);
    let path = report.critical_path.as_ref().unwrap();
    let ranks = path.profile[0].ranks.iter().map(|share| share.rank);
    assert_eq!(ranks.collect::<Vec<_>>(), [0]);
    let messages = report.messages.as_ref().unwrap();
    assert_eq!((messages.pairs, messages.messages), (2, 2));
    let pairs = messages
        .largest
        .iter()
        .map(|pair| (pair.from, pair.to, pair.messages));
    assert_eq!(pairs.collect::<Vec<_>>(), [(0, 1, 1), (1, 2, 1)]);
    let parallelism = report.parallelism.as_ref().unwrap();
    let busy = parallelism.speedup * path.length_s;
    assert!((parallelism.granularity_s.unwrap() * 2.0 - busy).abs() < 1e-6);
    let first = &report.root_causes.as_ref().unwrap()[0];
    assert_eq!(first.rank_set, "0");
    assert_eq!(first.victims[0].rank_set, "1-2");
    // Of rank 2's wait for rank 1, 6 of 10 are that one's own waiting; of Finalize's, 10 of 11.
    let near = |found: f64, expected: f64| assert!((found * 1e3 - expected).abs() < 1e-5);
    let sent = report.wait_classes["late_sender"];
    near(sent.direct_s, 6.0 + 4.0);
    near(sent.indirect_s, 6.0);
    // Whom Finalize made wait does not count, as in Scalasca.
    near(sent.propagating_s, 6.0);
    near(sent.terminal_s, 10.0);
    let costs = report.delay_costs["late_sender"];
    near(costs.short_s, 10.0);
    near(costs.long_s, 6.0);
    let path = report.critical_path.as_ref().unwrap();
    let rows = path.profile.iter().map(|row| {
        let parts = [row.seconds, row.imbalance_s, row.impact_s].map(|time| time * 1e3);
        (row_key(row), parts)
    });
    // The impact of what others do less while the path is longer: 3 of rank 0 (in 3 of computation and
    // 2 of the receive that the path has more), 6 of rank 1 (in 7 and 1), and 9 of rank 2 (in 9 and 1).
    let computed = 3.0 * 3.0 / 5.0 + 6.0 * 7.0 / 8.0 + 9.0 * 9.0 / 10.0;
    let expected = BTreeMap::from([
        (("call", 1, 0), [1.0, 0.0, 0.0]),
        (("computation", 1, 10), [9.0, 6.0, computed * 9.0 / 13.0]),
        (("call", 20, 0), [2.0, 4.0 / 3.0, 18.0 - computed]),
        (
            ("computation", 20, 30),
            [2.0, 4.0 / 3.0, computed * 2.0 / 13.0],
        ),
        (
            ("computation", 20, 40),
            [2.0, 4.0 / 3.0, computed * 2.0 / 13.0],
        ),
    ]);
    let found: BTreeMap<Key, [f64; 3]> = rows.collect();
    assert_eq!(
        found.keys().collect::<Vec<_>>(),
        expected.keys().collect::<Vec<_>>()
    );
    for (key, numbers) in &found {
        for (found, expected) in numbers.iter().zip(expected[key]) {
            assert!((found - expected).abs() < 1e-5, "{key:?}: {numbers:?}");
        }
    }
    near(path.length_s, 16.0);
    near(path.activities_s, 25.0);
    near(path.non_critical_s, 5.0);
    near(path.imbalance_impact_s, 18.0);
    near(path.inter_partition_s, 0.0);
    near(path.intra_partition_s, 18.0);
    let ranks: Vec<_> = path.ranks.iter().map(|part| part.rank).collect();
    assert_eq!(ranks, [0, 1, 2]);
}

/// Scalasca's worked example in its own numbers: calls and functions are compared by call path.
/// Finalize makes others wait here, too: its costs are a class of their own.
#[test]
fn by_call_path_all_numbers_are_those_of_scalasca() {
    let (work, other) = (100, 101);
    let mut all = ranks(3);
    let ms = |time: u64| time * MS;
    for rank in &mut all {
        rank.call(1, init(), 0, ms(1));
    }
    all[0].computes(work, ms(9));
    all[0].send(10, 1, 0, ms(10), ms(11));
    all[1].computes(work, ms(3));
    all[1].recv(20, 0, 0, ms(4), ms(11));
    all[1].computes(work, ms(2));
    all[1].send(10, 2, 0, ms(13), ms(14));
    all[2].computes(other, ms(2));
    all[2].recv(20, 1, 0, ms(3), ms(14));
    let last = [(work, 12), (work, 15), (other, 16)];
    for (rank, (function, enter)) in all.iter_mut().zip(last) {
        rank.computes(function, ms(enter - rank.last() / MS));
        rank.call(40, finalize(), ms(enter), ms(17));
    }
    let report = analyze_with(all, &last_alone());
    let near = |found: f64, expected: f64| {
        assert!(
            (found * 1e3 - expected).abs() < 1e-5,
            "{} {expected}",
            found * 1e3
        );
    };
    let class = report.wait_classes["late_sender"];
    near(class.direct_s, 11.0);
    near(class.indirect_s, 5.0);
    near(class.propagating_s, 5.0);
    near(class.terminal_s, 11.0);
    let costs = report.delay_costs["late_sender"];
    near(costs.short_s, 11.0);
    near(costs.long_s, 5.0);
    // Of the 16 ms, rank 0's function has 6 + 5, and rank 1's 25/6 beside 5/6 in its receive.
    let root = |key: Key| {
        let mut all = report.root_causes.iter().flatten();
        let found = all.find(|root| self::key(root) == key).unwrap();
        let sent = found
            .victims
            .iter()
            .filter(|victim| victim.pattern == "late_sender");
        sent.map(|victim| victim.severity_s).sum::<f64>()
    };
    near(root(("computation", work, 0)), 6.0 + 5.0 + 25.0 / 6.0);
    near(root(("call", 20, 0)), 5.0 / 6.0);
    let path = report.critical_path.as_ref().unwrap();
    near(path.length_s, 16.0);
    near(path.activities_s, 23.0);
    near(path.non_critical_s, 7.0);
    near(path.imbalance_impact_s, 18.0);
    near(path.inter_partition_s, 10.0);
    near(path.intra_partition_s, 8.0);
    let rows = path.profile.iter();
    let found: BTreeMap<Key, [f64; 2]> = rows
        .map(|row| (row_key(row), [row.seconds, row.impact_s]))
        .collect();
    let expected = BTreeMap::from([
        (("call", 1, 0), [1.0, 0.0]),
        (("computation", work, 0), [11.0, 12.6]),
        (("call", 20, 0), [2.0, 2.7]),
        (("computation", other, 0), [2.0, 2.7]),
    ]);
    assert!(found.keys().eq(expected.keys()), "{found:?}");
    for (key, numbers) in expected {
        (0..2).for_each(|at| near(found[&key][at], numbers[at]));
    }
    let text = laggard_report::render_text(&report, &laggard_report::RenderOptions::default());
    assert!(text.contains("computed longer in app.c:100 work"), "{text}");
    assert!(text.contains("computation in app.c:100 work"), "{text}");
}

/// Jiang's example with phases that ranks mark: until 6 ms, until 14 ms, and the tail of rank 0.
#[test]
fn phases_have_shares_of_the_path_and_its_weight() {
    let mark = |rank: &mut Calls, id: u32, from: u64, until: u64| {
        let name = 100 + id;
        rank.define(Definition::String {
            id: name,
            bytes: ["start", "middle", "tail"][id as usize - 1].into(),
        });
        rank.define(Definition::Region(Region {
            id,
            kind: REGION_PHASE,
            name,
            call_path: 0,
        }));
        let phase = Signature {
            operation: calls::user::REGION,
            parameter: id.into(),
            ..Signature::default()
        };
        let lasted = [Record::extension_u64(Extension::Value, (until - from) * MS)];
        rank.extended(90, phase, &lasted, (until * MS, until * MS));
    };
    let mut all = ranks(3);
    all.iter_mut().for_each(|rank| rank.call(1, init(), 0, 0));
    all[0].send(10, 1, 0, 4 * MS, 4 * MS);
    all[0].send(11, 2, 0, 5 * MS, 5 * MS);
    mark(&mut all[0], 1, 0, 6);
    all[0].recv(12, 1, 0, 11 * MS, 12 * MS);
    all[0].recv(13, 2, 0, 13 * MS, 14 * MS);
    mark(&mut all[0], 2, 6, 14);
    mark(&mut all[0], 3, 14, 19);
    all[1].recv(20, 0, 0, MS, 5 * MS);
    mark(&mut all[1], 1, 0, 6);
    all[1].send(21, 0, 0, 11 * MS + 1, 11 * MS + 1);
    mark(&mut all[1], 2, 6, 12);
    all[2].recv(30, 0, 0, MS, 6 * MS);
    mark(&mut all[2], 1, 0, 6);
    all[2].send(31, 0, 0, 13 * MS + 1, 13 * MS + 1);
    mark(&mut all[2], 2, 6, 14);
    for (rank, enter) in all.iter_mut().zip([20, 12, 14]) {
        rank.call(40, finalize(), enter * MS, 20 * MS);
    }
    let report = analyze(all);
    let path = report.critical_path.as_ref().unwrap();
    // Thirds of ms: 24 of the first 4 ms, 5 and 3 of the next two; 23 of 7 ms and 5 of the last; 7 of
    // each ms of the tail, of which one is in no phase.
    let weight = 20.0 * (1.0 + 2.0 * 21.0 / 60.0);
    let expected = [
        ("middle", 8.0, 23.0 + 5.0),
        ("start", 6.0, 24.0 + 5.0 + 3.0),
        ("tail", 5.0, 35.0),
    ];
    for (found, (name, time, thirds)) in path.phases.iter().zip(expected) {
        assert_eq!(found.phase, name);
        assert!((found.seconds * 1e3 - time).abs() < 1e-5, "{found:?}");
        assert!((found.share - time / 20.0).abs() < 1e-6, "{found:?}");
        let share = thirds / 3.0 / weight;
        assert!(
            (found.weight_share - share).abs() < 1e-4,
            "{found:?} {share}"
        );
    }
    assert_eq!(path.phases.len(), 3);
    // Every number of busy ones changes at a bin's end, or nearly.
    assert!(path.weight_error_s < 1e-5, "{}", path.weight_error_s);
    let text = laggard_report::render_text(&report, &laggard_report::RenderOptions::default());
    assert!(
        text.contains("middle 40.0 %, start 30.0 %, tail 25.0 %"),
        "{text}"
    );
    // Without marks, there are none.
    let path = scattered(13).critical_path.unwrap();
    assert_eq!(path.phases, []);
}

fn row_key(row: &PathRow) -> Key {
    let activity = ["computation", "io", "call"];
    let activity = activity.into_iter().find(|name| *name == row.kind);
    let until = row.until.as_ref().map_or(0, |until| until.location.line);
    (activity.unwrap(), row.location.line, until)
}

/// Rank 0 computes for 90 ms in each of ten rounds; 1 waits for it, and 2 for 1. Who waits for 1 is
/// told to mend what 0 does. That is also the root of a wait for rank 0, where nobody is innocent.
#[test]
fn hints_do_not_ask_the_innocent() {
    let rounds = |fast: bool| {
        let mut all = ranks(3);
        for rank in &mut all {
            rank.call(1, init(), 0, MS);
        }
        for round in 0..10 {
            let at = 1 + 100 * round;
            all[0].send(10, 1, 0, (at + 90) * MS, (at + 91) * MS);
            all[1].recv(20, 0, 0, (at + 1) * MS, (at + 91) * MS);
            all[1].send(21, 2, 0, (at + 91) * MS, (at + 92) * MS);
            all[2].recv(30, 1, 0, (at + 1) * MS, (at + 92) * MS);
            for rank in &mut all {
                rank.collective(40, number::MPI_Barrier, 0, (at + 98) * MS, (at + 99) * MS);
            }
        }
        for rank in &mut all {
            rank.call(50, finalize(), 1001 * MS, 1002 * MS);
        }
        let mut options = AnalyzeOptions {
            fast,
            ..AnalyzeOptions::default()
        };
        options.settings.all = true;
        analyze_with(all, &options)
    };
    let report = rounds(false);
    let at = |report: &Report, line: u32| {
        let mut all = report.bottlenecks.iter();
        let found = all.find(|found| found.location.line == line && !found.causes.is_empty());
        found.expect("a finding").clone()
    };
    let root = &report.root_causes.as_ref().unwrap()[0];
    assert_eq!((key(root).0, &*root.rank_set), ("computation", "0"));
    assert!(root.hints[0].starts_with("Give part of what rank 0 computes before MPI_Send"));
    for (line, late) in [(20, 0), (30, 1)] {
        let found = at(&report, line);
        assert_eq!(found.causes[0].rank, late);
        let first = &found.root_causes[0];
        assert_eq!(first.id, "rc1");
        assert!(first.share > 0.8 && first.share <= 1.0, "{first:?}");
    }
    let hints = at(&report, 30).hints;
    let start = "Rank 1 only passes it on. See rc1, which starts ";
    assert!(hints[0].starts_with(start), "{hints:?}");
    assert!(hints[0].contains("rank 0 computed between"), "{hints:?}");
    let says = |hints: &[String], words: &str| hints.iter().any(|hint| hint.contains(words));
    assert!(!says(&hints, "balance the work") && !says(&hints, "less to do"));
    // The same in JSON, read again.
    let again = Report::from_json(report.to_json().as_bytes(), "x".as_ref()).unwrap();
    assert_eq!(again, report);
    // Rank 0 started it itself.
    let hints = at(&report, 20).hints;
    assert!(!says(&hints, "passes it on"), "{hints:?}");
    assert!(says(&hints, "less to do"), "{hints:?}");
    // Where root causes are not searched, the late rank's own wait is all that is known.
    let found = at(&rounds(true), 30);
    assert_eq!(found.root_causes, []);
    let start = "First mend what rank 1 itself waited for, in MPI_Recv";
    assert!(found.hints[0].starts_with(start), "{:?}", found.hints);
}

/// Rank 1 computes for 60 ms while rank 0 does for 20, then for 30 while rank 0 does not; rank 2 reads
/// a file for 5 ms. Each sentence has the means of what was compared.
#[test]
fn root_causes_say_what_the_late_ones_did_more() {
    let mut all = ranks(3);
    for rank in &mut all {
        rank.call(1, init(), 0, MS);
    }
    let enters = [[21, 62], [61, 92], [21, 62]];
    for (rank, [first, second]) in all.iter_mut().zip(enters) {
        rank.collective(10, number::MPI_Barrier, 0, first * MS, 62 * MS);
        rank.collective(20, number::MPI_Barrier, 0, second * MS, 93 * MS);
    }
    let read = Signature {
        operation: number::MPI_File_read,
        ..Signature::default()
    };
    all[2].call(25, read, 93 * MS, 98 * MS);
    for (rank, enter) in all.iter_mut().zip([93, 93, 98]) {
        rank.collective(30, number::MPI_Barrier, 0, enter * MS, 98 * MS);
        rank.call(40, finalize(), 98 * MS, 99 * MS);
    }
    let report = analyze(all);
    let because = |wanted: Key| {
        let mut roots = report.root_causes.iter().flatten();
        let found = roots.find(|root| key(root) == wanted);
        found.map(|root| root.because.as_str()).unwrap_or_default()
    };
    assert_eq!(
        because(("computation", 1, 10)),
        "computed 3.0x as long as those that waited, in the mean 60.0 ms instead of 20.0 ms"
    );
    assert_eq!(
        because(("computation", 10, 20)),
        "computed for 30.0 ms in the mean, which those that waited did not"
    );
    assert_eq!(
        because(("io", 25, 0)),
        "was in MPI_File_read for 5.00 ms in the mean, which those that waited did not"
    );
    let text = laggard_report::render_text(&report, &laggard_report::RenderOptions::default());
    assert!(text.contains("Because: computed 3.0x as long"), "{text}");
}

/// Who has half of a wait or more from its own work is not innocent.
#[test]
fn who_adds_much_is_not_innocent() {
    let mut all = ranks(3);
    for rank in &mut all {
        rank.call(1, init(), 0, MS);
    }
    // Rank 1 waits for 10 ms, and computes for 80 more.
    all[0].send(10, 1, 0, 11 * MS, 12 * MS);
    all[1].recv(20, 0, 0, 2 * MS, 12 * MS);
    all[1].send(21, 2, 0, 92 * MS, 93 * MS);
    all[2].recv(30, 1, 0, 2 * MS, 93 * MS);
    for rank in &mut all {
        rank.call(50, finalize(), 94 * MS, 95 * MS);
    }
    let report = analyze(all);
    let found = report
        .bottlenecks
        .iter()
        .find(|found| found.location.line == 30);
    let found = found.unwrap();
    let hints = &found.hints;
    assert!(
        !hints.iter().any(|hint| hint.contains("passes it on")),
        "{hints:?}"
    );
    let ids: Vec<&str> = found.root_causes.iter().map(|part| &*part.id).collect();
    assert_eq!(ids[0], "rc1");
    let root = &report.root_causes.as_ref().unwrap()[0];
    assert_eq!((key(root), &*root.rank_set), (("computation", 20, 21), "1"));
}

/// Ranks 2 and 3 come late to a barrier by 20 and 22 ms. Each waiting rank shares the blame between
/// them, and the last alone has that of the other's wait.
#[test]
fn late_members_share_the_blame() {
    let mut all = ranks(4);
    for (rank, late) in all.iter_mut().zip([0, 0, 20, 22]) {
        rank.call(1, init(), 0, MS);
        rank.collective(10, number::MPI_Barrier, 0, (2 + late) * MS, 25 * MS);
        rank.call(40, finalize(), 26 * MS, 27 * MS);
    }
    let report = analyze(all);
    let barrier = &report.bottlenecks[0];
    let shares: Vec<_> = barrier
        .causes
        .iter()
        .map(|c| (c.rank, c.severity_s * 1e3))
        .collect();
    // 12 and 2 ms for rank 3, 10 for rank 2.
    assert_eq!(shares, [(3, 26.0), (2, 20.0)]);
    let root = &report.root_causes.as_ref().unwrap()[0];
    let ranks: Vec<_> = root
        .ranks
        .iter()
        .map(|r| (r.rank, r.severity_s * 1e3))
        .collect();
    assert_eq!(key(root), ("computation", 1, 10));
    assert_eq!(ranks, [(3, 26.0), (2, 20.0)]);
    assert_eq!(report.untraced_s, Some(0.0));
}

/// The eight latest members share the time in which more are missing. In findings, they are not
/// charged with it.
#[test]
fn eight_late_members_are_known() {
    let mut all = ranks(12);
    for (rank, calls) in (0..).zip(&mut all) {
        calls.call(1, init(), 0, MS);
        calls.collective(10, number::MPI_Barrier, 0, (2 + rank) * MS, 20 * MS);
        calls.call(40, finalize(), 21 * MS, 22 * MS);
    }
    let report = analyze(all);
    let root = &report.root_causes.as_ref().unwrap()[0];
    let waiting: u64 = (1..12).sum();
    assert_eq!(key(root), ("computation", 1, 10));
    assert!(
        (root.severity_s * 1e3 - waiting as f64).abs() < 1e-6,
        "{root:?}"
    );
    // From 5 ms on, when rank 3 came, eight are missing. Ranks 0 to 2 came 3, 2 and 1 ms before.
    let found = &report.bottlenecks[0];
    let charged: f64 = found
        .causes
        .iter()
        .map(|cause| cause.severity_s * 1e3)
        .sum();
    assert!((charged - (waiting as f64 - 6.0)).abs() < 1e-6, "{charged}");
    let several = found.several_s.unwrap();
    assert!((several * 1e3 - 6.0).abs() < 1e-6, "{several}");
    let quartiles = report.metrics["wait_at_barrier"].quartiles_s.unwrap();
    for (found, ms) in quartiles.iter().zip([3.0, 6.0, 9.0]) {
        assert!((found * 1e3 - ms).abs() <= 0.016 * ms, "{quartiles:?}");
    }
}

/// Of nine members, eight are late: all are known.
#[test]
fn exactly_eight_late_members_have_all_the_blame() {
    let mut all = ranks(9);
    for (rank, calls) in (0..).zip(&mut all) {
        calls.collective(10, number::MPI_Barrier, 0, (2 + 8 * rank) * MS, 80 * MS);
    }
    let report = analyze(all);
    let found = &report.bottlenecks[0];
    let charged: f64 = found.causes.iter().map(|cause| cause.severity_s).sum();
    assert!((charged - found.severity_s).abs() < 1e-9, "{charged}");
    assert_eq!(found.several_s, None);
}

/// Members that give to the root leave early. What the root did since they met is compared from when
/// it had what it waited for: an earlier call of the same kind took long, but that was before.
#[test]
fn what_came_before_a_meeting_does_not_count_after_it() {
    let mut all = ranks(3);
    let calls: [&[(u64, u64)]; 3] = [
        &[(2, 12), (13, 34)],
        &[(2, 3), (13, 14)],
        // Computes for 30 ms.
        &[(2, 3), (33, 34)],
    ];
    for (rank, calls) in all.iter_mut().zip(calls) {
        rank.call(1, init(), 0, MS);
        for (enter, leave) in calls {
            rank.collective(10, number::MPI_Reduce, 0, enter * MS, leave * MS);
        }
    }
    all[0].send(20, 2, 0, 44 * MS, 45 * MS);
    all[2].recv(30, 0, 0, 35 * MS, 45 * MS);
    for rank in &mut all {
        rank.call(40, finalize(), 46 * MS, 47 * MS);
    }
    let found = roots(&analyze(all));
    let direct = |key: &Key| (found[key].0 * 1e6).round() / 1e3;
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(direct(&("computation", 10, 10)), 20.0);
    assert_eq!(direct(&("computation", 10, 20)), 9.0);
}

/// Direct and indirect costs, ms, where rank 0 is late for a broadcast, and rank 2 for rank 3, which is
/// late for rank 1. That one comes to the broadcast at `enter` ms.
fn after_a_broadcast(enter: u64) -> BTreeMap<Key, (f64, f64)> {
    let mut all = ranks(4);
    for (rank, enter) in all.iter_mut().zip([21, enter, 2, 2]) {
        rank.call(1, init(), 0, MS);
        rank.collective(10, number::MPI_Bcast, 0, enter * MS, 22 * MS);
    }
    all[2].send(20, 3, 0, 62 * MS, 63 * MS);
    all[3].recv(30, 2, 0, 23 * MS, 63 * MS);
    all[3].send(20, 1, 0, 64 * MS, 65 * MS);
    all[1].recv(35, 3, 0, 24 * MS, 65 * MS);
    for rank in &mut all {
        rank.call(40, finalize(), 70 * MS, 71 * MS);
    }
    let ms = |seconds: f64| (seconds * 1e6).round() / 1e3;
    let found = roots(&analyze(all)).into_iter();
    found
        .map(|(key, (direct, indirect))| (key, (ms(direct), ms(indirect))))
        .collect()
}

/// Ranks 1 and 3 waited for the same root before rank 1 waits for rank 3: if it had come early, both
/// had been earlier. Only what rank 3 waited besides is behind that wait.
#[test]
fn what_both_waited_for_does_not_count() {
    let expected = BTreeMap::from([
        (("computation", 1, 10), (57.0, 0.0)),
        (("computation", 10, 20), (39.0, 39.0)),
        (("computation", 30, 20), (1.0, 0.0)),
    ]);
    assert_eq!(after_a_broadcast(2), expected);
}

/// Rank 1 did not wait for the root, but rank 3 did: that counts.
#[test]
fn what_the_late_one_alone_waited_for_counts() {
    let part = |time: f64| (40.0 * time / 58.0 * 1e3).round() / 1e3;
    let expected = BTreeMap::from([
        (("computation", 1, 10), (38.0, part(19.0))),
        (("computation", 10, 20), (39.0, part(39.0))),
    ]);
    assert_eq!(after_a_broadcast(21), expected);
}

/// Rank 0 gives the others work 40 ms late. One of them takes 10 ms longer than the others before all
/// meet: these wait for it, not for rank 0, which was as late for all of them and for itself.
#[test]
fn who_had_to_wait_like_all_others_is_late_by_what_it_did_itself() {
    let mut all = ranks(4);
    for rank in &mut all {
        rank.call(1, init(), 0, MS);
    }
    for worker in 1..4 {
        all[0].send(20, worker, 0, 41 * MS, 41 * MS);
        all[worker as usize].recv(30, 0, 0, 2 * MS, 41 * MS);
    }
    for (rank, enter) in all.iter_mut().zip([41, 52, 42, 42]) {
        rank.collective(40, number::MPI_Barrier, 0, enter * MS, 53 * MS);
        rank.call(50, finalize(), 54 * MS, 55 * MS);
    }
    let found = roots(&analyze(all));
    let of = |key: Key| found.get(&key).copied().unwrap_or_default();
    let ms = |(direct, indirect): (f64, f64)| (1e3 * direct, 1e3 * indirect);
    let (direct, indirect) = ms(of(("computation", 1, 20)));
    assert!((direct - 117.0).abs() < 0.1 && indirect < 0.1, "{found:?}");
    let (direct, indirect) = ms(of(("computation", 30, 40)));
    assert!((direct - 31.0).abs() < 1.1 && indirect < 0.1, "{found:?}");
}

/// Rank 0 sends a message all 10 ms; rank 1 has each 2 ms later, and computes for 5 ms. If it `answers`,
/// rank 0 waits for that. Rank 2 computes as much as rank 1, and then all meet. Returns what the
/// receives of rank 1 are charged with, and the computation of rank 0, ms.
fn flow(answers: bool) -> (f64, f64) {
    let mut all = ranks(3);
    for rank in &mut all {
        rank.call(1, init(), 0, MS);
    }
    let (mut sender, mut receiver) = (MS, MS);
    for _ in 0..10 {
        let sent = sender + 10 * MS;
        all[0].send(20, 1, 0, sent, sent);
        all[1].recv(30, 0, 0, receiver, sent + 2 * MS);
        (sender, receiver) = (sent, sent + 7 * MS);
        if answers {
            all[1].send(35, 0, 0, receiver, receiver);
            all[0].recv(25, 1, 0, sender, receiver);
            sender = receiver;
        }
    }
    let end = receiver + MS;
    for (rank, enter) in all.iter_mut().zip([sender, receiver, 51 * MS]) {
        rank.collective(40, number::MPI_Barrier, 0, enter, end);
        rank.call(50, finalize(), end + MS, end + 2 * MS);
    }
    let found = roots(&analyze(all));
    let ms = |key| {
        let (direct, indirect) = found.get(&key).copied().unwrap_or_default();
        1e3 * (direct + indirect)
    };
    let of_sender = [1, 20, 25].map(|line| ms(("computation", line, 20)));
    let round = |ms: f64| (10.0 * ms).round() / 10.0;
    (round(ms(("call", 30, 0))), round(of_sender.iter().sum()))
}

/// A message is under way while its receiver waits. If the sender is behind all along, that is hidden
/// once it is not: it goes with the waiting.
#[test]
fn transfers_go_with_the_waiting_for_who_is_behind() {
    assert_eq!(flow(false), (0.0, 96.6));
}

/// The sender waits for the receiver: each transfer takes time in any case.
#[test]
fn transfers_between_two_that_wait_for_each_other_cost_time() {
    assert_eq!(flow(true), (30.0, 175.0));
}

/// Each of `count` ranks waits for a message that the one before it sends only after such a wait, all
/// at 10 ms, so that nobody is the first.
fn circle(all: &mut [Calls], count: usize) {
    for at in 0..count {
        let (before, next) = ((at + count - 1) % count, (at + 1) % count);
        let enter = [2, 5, 7][at] * MS;
        all[at].recv(20, before as i32, 0, enter, 10 * MS);
        all[at].send(21, next as i32, 0, 10 * MS, 11 * MS);
    }
}

/// All waiting in the report, and the sum of what is known of it. s
fn waiting(report: &Report) -> (f64, f64) {
    let listed = report.root_causes.as_ref().unwrap().iter();
    let listed: f64 = listed.map(|root| root.severity_s).sum();
    let sum = listed + report.unlisted_s.unwrap() + report.untraced_s.unwrap();
    (report.location_sums.as_ref().unwrap().wait_s, sum)
}

/// Two ranks meet in their waits, before they are late. So neither did anything longer since, and there
/// is nothing to go round.
#[test]
fn two_ranks_that_wait_for_each_other_make_no_circle() {
    let mut all = ranks(2);
    all.iter_mut().for_each(|rank| rank.call(1, init(), 0, MS));
    circle(&mut all, 2);
    for rank in &mut all {
        rank.call(40, finalize(), 12 * MS, 13 * MS);
    }
    let report = analyze(all);
    let found = roots(&report);
    let (direct, indirect) = found[&("latency", 21, 20)];
    assert_eq!(found.len(), 1, "{found:?}");
    assert!((direct * 1e3 - 13.0).abs() < 1e-5 && indirect == 0.0);
    assert_eq!(report.untraced_s, Some(0.0));
}

/// Each of three ranks needs the costs that the next one has put on its wait, and the search ends only
/// when nobody needs any. So one goes on without them: they come later, and fall on nobody, although
/// every wait has a late rank. A rank beside the circle has its costs as without it.
#[test]
fn a_circle_of_waits_ends() {
    let mut all = ranks(4);
    all.iter_mut().for_each(|rank| rank.call(1, init(), 0, MS));
    circle(&mut all, 3);
    for (rank, enter) in all.iter_mut().zip([12, 12, 12, 20]) {
        rank.call(40, finalize(), enter * MS, 21 * MS);
    }
    let report = analyze(all);
    let (all, sum) = waiting(&report);
    assert!((all * 1e3 - (8.0 + 5.0 + 3.0 + 24.0)).abs() < 1e-5);
    assert!((all - sum).abs() < 1e-8, "{all} {sum}");
    assert!(report.untraced_s.unwrap() > 1e-3);
    let classes = report.wait_classes.values();
    assert_eq!(classes.map(|class| class.untraced_s).sum::<f64>(), 0.0);
    let beside = roots(&report)[&("computation", 1, 40)];
    assert!((beside.0 * 1e3 - 24.0).abs() < 1e-5, "{beside:?}");
}

/// Jiang's example: processes of 18, 8 and 9 ms of computation, of which the first one sends to both
/// others and gets their results. `until` is when the third one sends, ms. A receive that begins with
/// the send waits for it, by 1 ns here.
fn scattered(until: u64) -> Report {
    let mut all = ranks(3);
    all.iter_mut().for_each(|rank| rank.call(1, init(), 0, 0));
    all[0].send(10, 1, 0, 4 * MS, 4 * MS);
    all[0].send(11, 2, 0, 5 * MS, 5 * MS);
    all[0].recv(12, 1, 0, 11 * MS, 12 * MS);
    all[0].recv(13, 2, 0, 13 * MS, 14 * MS);
    all[1].recv(20, 0, 0, MS, 5 * MS);
    all[1].send(21, 0, 0, 11 * MS + 1, 11 * MS + 1);
    all[2].recv(30, 0, 0, MS, 6 * MS);
    all[2].send(31, 0, 0, until * MS + 1, until * MS + 1);
    for (rank, enter) in all.iter_mut().zip([20, 12, until + 1]) {
        rank.call(40, finalize(), enter * MS, 20 * MS);
    }
    analyze(all)
}

/// Computation of all ranks, by the length of the critical path.
fn speedup(report: &Report) -> f64 {
    let computed: f64 = report.locations.iter().map(|own| own.computation_s).sum();
    computed / report.critical_path.as_ref().unwrap().length_s
}

/// ms of the path, and thirds of ms of its weight, by activity.
fn assert_path(report: &Report, expected: &[(Key, f64, f64)]) {
    let path = report.critical_path.as_ref().unwrap();
    let near = |found: f64, expected: f64| (found - expected).abs() < 1e-4;
    let weight: f64 = expected.iter().map(|(_, _, thirds)| thirds / 3.0).sum();
    assert!(near(path.length_s * 1e3, 20.0), "{}", path.length_s);
    assert!(near(path.weight_s * 1e3, weight), "{}", path.weight_s);
    let found: BTreeMap<Key, &PathRow> = path.profile.iter().map(|r| (row_key(r), r)).collect();
    // Sends take no time.
    let lasting = found.values().filter(|row| row.seconds > 1e-8);
    assert_eq!(lasting.count(), expected.len(), "{found:#?}");
    for (key, time, thirds) in expected {
        let row = found[key];
        assert!(near(row.seconds * 1e3, *time), "{row:?}");
        assert!(near(row.share, time / 20.0), "{row:?}");
        assert!(near(row.weight_share, thirds / 3.0 / weight), "{row:?}");
    }
}

/// Path, shares, S and E are those of the thesis's digest. A transfer is part of the receiving call here,
/// and not idle. So it weighs less than there, and `speedup` in the report counts it.
#[test]
fn the_tail_of_one_rank_weighs_most() {
    let report = scattered(13);
    let expected = [
        (("computation", 1, 10), 4.0, 24.0),
        (("computation", 10, 11), 1.0, 5.0),
        (("call", 30, 0), 1.0, 3.0),
        (("computation", 30, 31), 7.0, 23.0),
        (("call", 13, 0), 1.0, 5.0),
        (("computation", 13, 40), 6.0, 42.0),
    ];
    assert_path(&report, &expected);
    assert!((speedup(&report) - 1.75).abs() < 1e-6);
    assert!((speedup(&report) / 3.0 - 0.583_333).abs() < 1e-5);
    let parallelism = report.parallelism.as_ref().unwrap();
    assert!((parallelism.speedup - 39.0 / 20.0).abs() < 1e-6);
    assert!((parallelism.efficiency - 39.0 / 60.0).abs() < 1e-6);
}

/// The third process sends before the first one looks: the path leads over the second.
#[test]
fn the_path_does_not_lead_to_a_message_that_was_there() {
    let report = scattered(10);
    // From 11 ms on, the third one is done.
    let expected = [
        (("computation", 1, 10), 4.0, 24.0),
        (("call", 20, 0), 1.0, 5.0),
        (("computation", 20, 21), 6.0, 18.0),
        (("call", 12, 0), 1.0, 5.0),
        (("computation", 12, 13), 1.0, 7.0),
        (("call", 13, 0), 1.0, 7.0),
        (("computation", 13, 40), 6.0, 42.0),
    ];
    assert_path(&report, &expected);
    assert!((speedup(&report) - 32.0 / 20.0).abs() < 1e-6);
}

/// Two ranks meet, then rank 0 computes before a call in which rank 1 waits for it, or does not. Rank 0 comes to a reduction
/// at this time, ms.
fn before_a_reduction(operation: u16, waits: bool, reduces: u64) -> BTreeMap<Key, (f64, f64)> {
    const US: u64 = 1_000;
    let mut all = ranks(2);
    let end = (reduces + 1) * MS;
    for (rank, (calls, enter)) in all.iter_mut().zip([50 * MS, 4 * MS]).enumerate() {
        let leave = US + if waits { 50 * MS } else { enter };
        let comes = if rank == 0 { reduces * MS } else { leave + MS };
        calls.call(1, init(), 0, MS);
        calls.collective(5, number::MPI_Barrier, -1, 2 * MS, 3 * MS);
        calls.without_data(10, operation, -1, enter, leave);
        calls.collective(20, number::MPI_Allreduce, -1, comes, end);
        calls.call(40, finalize(), end + MS, end + 2 * MS);
    }
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    let report = analyze_by_agents(all, &options, [None, Some(1), Some(3)]);
    let roots = roots(&report).into_iter();
    let whole = roots.map(|(key, (direct, indirect))| {
        let ms = |seconds: f64| (seconds * 1e3).round();
        (key, (ms(direct), ms(indirect)))
    });
    whole.filter(|(_, cost)| *cost != (0.0, 0.0)).collect()
}

/// Who leaves a collective before others come has not met them there.
#[test]
fn not_all_collectives_are_meetings() {
    use number::{MPI_Allgatherv, MPI_Allreduce, MPI_Alltoallw, MPI_Comm_dup, MPI_Comm_free};
    for operation in [MPI_Comm_free, MPI_Allreduce, MPI_Alltoallw, MPI_Allgatherv] {
        let found = before_a_reduction(operation, false, 51);
        let expected = BTreeMap::from([(("computation", 5, 10), (46.0, 0.0))]);
        assert_eq!(found, expected, "{}", calls::name(operation));
    }
    // Here rank 1 waits in it.
    let found = before_a_reduction(MPI_Comm_dup, true, 80);
    let expected = BTreeMap::from([
        (("computation", 5, 10), (46.0, 0.0)),
        (("computation", 10, 20), (29.0, 0.0)),
    ]);
    assert_eq!(found, expected);
}

/// Two ranks compute before 20 barriers: 10 ms longer rank 1 in the first few of them, and rank 0 in all others. Who
/// causes the waiting, and who waits.
fn late_in_turns(few: u64) -> (String, String) {
    let mut all = ranks(2);
    for (rank, calls) in (0..).zip(&mut all) {
        calls.call(1, init(), 0, MS);
        for round in 0..20 {
            let begin = (10 + 20 * round) * MS;
            let late = if (round < few) == (rank == 1) {
                10 * MS
            } else {
                0
            };
            calls.collective(20, number::MPI_Barrier, -1, begin + late, begin + 15 * MS);
        }
        calls.call(40, finalize(), 500 * MS, 501 * MS);
    }
    let report = analyze(all);
    let roots = report.root_causes.as_ref().unwrap().iter();
    let most = roots.max_by(|a, b| a.severity_s.total_cmp(&b.severity_s));
    let most = most.unwrap();
    (most.rank_set.clone(), most.victims[0].rank_set.clone())
}

#[test]
fn who_causes_nearly_all_of_it_is_not_told_to_wait() {
    let told = |few| {
        let (late, waits) = late_in_turns(few);
        format!("{late} {waits}")
    };
    assert_eq!(told(2), "0 1");
    assert_eq!(told(5), "0-1 0-1");
}
