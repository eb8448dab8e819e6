//! What hints promise for traces made in memory: what a replay with just their change gains, or a
//! bound. And the changes that hints need.

use crate::support::*;
use laggard_engine::events::Events;
use laggard_engine::{Analysis, AnalyzeOptions};
use laggard_patterns::rules::{RuleBase, read};
use laggard_report::{Bottleneck, Promise, Report};
use laggard_trace::calls::number;
use laggard_trace::{Endpoint, Signature, WORLD, flags};
use laggard_whatif::{Change, MOST_BYTES, Scenario, add_gains, predict};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

fn of_all(operation: u16) -> Signature {
    Signature {
        operation,
        flags: flags::COLLECTIVE,
        group: WORLD,
        ..Signature::default()
    }
}

/// The report with what its hints promise, and what these scenarios gain, us.
fn told(mut calls: Vec<Calls>, rules: &RuleBase, words: &[(&str, &str)]) -> (Report, Vec<i64>) {
    let directory = tempfile::tempdir().unwrap();
    for calls in &mut calls {
        calls.write(directory.path());
    }
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    let analysis = laggard_engine::analyze(directory.path(), &options).unwrap();
    let Analysis { mut report, .. } = analysis.unwrap();
    add_gains(directory.path(), rules, &mut report, 0).unwrap();
    let roots = report.root_causes.iter().flatten();
    assert!(roots.clone().all(|root| root.gain_s.is_none()));
    add_gains(directory.path(), rules, &mut report, MOST_BYTES).unwrap();
    let scenarios: Vec<Scenario> = words
        .iter()
        .map(|(kind, words)| Scenario::of(Change::parse(kind, words).unwrap()))
        .collect();
    let events = Events::open(directory.path()).unwrap();
    let found = predict(&events, Some(&report), &scenarios).unwrap();
    let gains = found.scenarios.iter();
    let gains = gains.map(|outcome| (outcome.gain_s * 1e6).round() as i64);
    (report, gains.collect())
}

fn gains(calls: Vec<Calls>, words: &[(&str, &str)]) -> Vec<i64> {
    told(calls, RuleBase::built_in(), words).1
}

/// What a rule promises, us, if it speaks, and the finding.
fn promise<'r>(report: &'r Report, rule: &str) -> Option<(i64, Promise, &'r Bottleneck)> {
    let all = report.bottlenecks.iter();
    let mut advice = all.flat_map(|found| found.advice.iter().map(move |advice| (found, advice)));
    let (found, advice) = advice.find(|(_, advice)| advice.rule == rule)?;
    assert!(found.hints.contains(&advice.sentence()), "{found:?}");
    let gain = (advice.gain_s? * 1e6).round() as i64;
    Some((gain, advice.promise?, found))
}

/// Rank 1 looks at two places in turn for two messages of rank 0, which both come late.
fn looks_in_turn() -> Vec<Calls> {
    let mut all = ranks(2);
    for rank in &mut all {
        rank.call(1, of_all(number::MPI_Init), 0, MS);
    }
    all[0].send(10, 1, 0, 31 * MS, 31 * MS + US);
    all[0].send(11, 1, 1, 31 * MS + 2 * US, 31 * MS + 3 * US);
    let requests = [0, 1].map(|tag| all[1].irecv(20, 0, tag, (2 + tag as u64) * MS));
    for begin in (4 * MS..31 * MS).step_by(100_000) {
        for (place, at) in [(21, begin), (22, begin + 50 * US)] {
            all[1].looks(place, number::MPI_Test, at, at + 50 * US, 50 * US);
        }
    }
    all[1].test(21, &requests[..1], 31 * MS + 10 * US, 31 * MS + 11 * US);
    all[1].test(22, &requests[1..], 31 * MS + 11 * US, 31 * MS + 12 * US);
    all
}

#[test]
fn looks_in_turn_end_together() {
    // The messages come 15 ms earlier, or before the first look.
    let found = gains(
        looks_in_turn(),
        &[("speed_up", "rank:0=2"), ("speed_up", "rank:0=100")],
    );
    assert!(found[0].abs_diff(15_000) < 20, "{found:?}");
    assert!(found[1].abs_diff(27_000) < 120, "{found:?}");
}

/// Rank 1 looks in vain for a message, meets rank 0, and computes 20 ms while a message comes. It finds that with its second
/// look, and answers.
fn found_at_once() -> Vec<Calls> {
    let mut all = ranks(2);
    for rank in &mut all {
        rank.call(1, of_all(number::MPI_Init), 0, MS);
    }
    all[1].looks_at(20, vain(number::MPI_Iprobe), 3 * MS, 3 * MS + 100 * US);
    for rank in &mut all {
        rank.call(2, of_all(number::MPI_Barrier), 4 * MS, 5 * MS);
    }
    all[0].send(10, 1, 0, 6 * MS, 6 * MS + US);
    all[0].recv(11, 1, 1, 7 * MS, 25 * MS + 300 * US);
    all[1].looks_at(20, vain(number::MPI_Iprobe), 25 * MS, 25 * MS + 100 * US);
    let found = Signature {
        operation: number::MPI_Iprobe,
        flags: flags::PEEKS | flags::RECEIVES,
        group: WORLD,
        receive: Endpoint {
            peer: 0,
            tag: 0,
            ..Endpoint::default()
        },
        ..Signature::default()
    };
    all[1].call(20, found, 25 * MS + 100 * US, 25 * MS + 101 * US);
    all[1].recv(21, 0, 0, 25 * MS + 110 * US, 25 * MS + 120 * US);
    all[1].send(22, 0, 1, 25 * MS + 130 * US, 25 * MS + 140 * US);
    all
}

#[test]
fn who_looks_late_finds_at_once_whenever_it_looks() {
    let found = gains(found_at_once(), &[("speed_up", "rank:1=2")]);
    assert!(found[0].abs_diff(10_000) < 50, "{found:?}");
}

/// Rank 1 waits 9 ms for a message of rank 0, computes 10 ms, and meets rank 0, which comes at
/// `other` ms.
fn late_message(other: u64) -> Vec<Calls> {
    let mut all = ranks(2);
    for rank in &mut all {
        rank.call(1, of_all(number::MPI_Init), 0, MS);
    }
    all[0].send(10, 1, 5, 11 * MS, 11 * MS + US);
    all[1].recv(20, 0, 5, 2 * MS, 11 * MS + US);
    for (rank, enter) in all.iter_mut().zip([other, 21]) {
        let last = other.max(21);
        rank.collective(30, number::MPI_Barrier, 0, enter * MS, last * MS + US);
        rank.call(
            40,
            of_all(number::MPI_Finalize),
            last * MS + 2 * US,
            last * MS + 3 * US,
        );
    }
    all
}

/// Rank 1 comes to the barrier at 12 ms then: 9 ms earlier. If rank 0 comes at 19 ms, only 2 ms are
/// gained.
#[test]
fn a_hint_promises_what_its_change_gains() {
    for (other, gain) in [(12, 9_000), (19, 2_000)] {
        let (report, _) = told(late_message(other), RuleBase::built_in(), &[]);
        let (promised, from, found) = promise(&report, "overlap_receive").expect("a hint");
        assert_eq!((promised, from), (gain, Promise::Replay), "{found:?}");
        let said = " Replayed so, the run is ";
        assert!(found.hints.iter().any(|hint| hint.contains(said)));
    }
    // All wait for rank 0 anyway.
    let (report, _) = told(late_message(21), RuleBase::built_in(), &[]);
    assert!(promise(&report, "overlap_receive").is_none());
}

/// Ranks 2 and 3 come to the barrier equally late, and after different calls.
#[test]
fn one_of_two_that_are_equally_late_gains_nothing_by_itself() {
    let mut all = ranks(4);
    for (rank, (line, late)) in all.iter_mut().zip([(1, 2), (1, 2), (2, 21), (3, 21)]) {
        rank.call(line, of_all(number::MPI_Init), 0, MS);
        rank.collective(10, number::MPI_Barrier, 0, late * MS, 22 * MS);
        rank.call(40, of_all(number::MPI_Finalize), 23 * MS, 24 * MS);
    }
    let (report, gains) = told(all, RuleBase::built_in(), &[("without_cause", "1")]);
    assert_eq!(gains, [0]);
    let roots = report.root_causes.as_ref().unwrap();
    let sets: Vec<_> = roots.iter().map(|root| root.rank_set.as_str()).collect();
    assert_eq!(sets, ["2", "3"]);
    for (root, other) in roots.iter().zip(["rc2", "rc1"]) {
        let after = root.gain_after.as_ref().unwrap();
        let gain = (after.gain_s * 1e6).round() as i64;
        assert_eq!((&after.mended[..], gain), (&[other.to_owned()][..], 19_000));
        assert!(root.gains_nothing() && !root.hints.is_empty(), "{root:?}");
    }
}

/// The same, but rank 1 sends rank 0 a message instead, which is there for it at 19 ms.
fn late_reply() -> Vec<Calls> {
    let mut all = ranks(2);
    for rank in &mut all {
        rank.call(1, of_all(number::MPI_Init), 0, MS);
    }
    all[0].send(10, 1, 5, 11 * MS, 11 * MS + US);
    all[1].recv(20, 0, 5, 2 * MS, 11 * MS + US);
    all[1].send(30, 0, 6, 21 * MS, 21 * MS + US);
    all[0].recv(31, 1, 6, 19 * MS, 21 * MS + US);
    for rank in &mut all {
        let finalize = of_all(number::MPI_Finalize);
        rank.call(40, finalize, 21 * MS + 2 * US, 21 * MS + 3 * US);
    }
    all
}

/// A rule of the user promises far too much. What cannot be is not promised: without its waits the
/// call ends 9 ms earlier, of which 2 ms are left.
#[test]
fn a_bound_is_no_more_than_without_the_waits() {
    let rule = |more: &str| {
        let text = format!(
            "[overlap_receive]\npatterns = 'late_sender'\nsay = 'x'\nabout = 'y'\ngain = 'severity'\n{more}"
        );
        let (rules, complaints) = read(&text);
        assert_eq!(complaints, []);
        RuleBase::built_in().with(rules)
    };
    let promised = |more: &str| {
        let rules = rule(more);
        [late_reply(), late_message(19)].map(|run| {
            let (report, _) = told(run, &rules, &[]);
            promise(&report, "overlap_receive").map(|(gain, from, _)| (gain, from))
        })
    };
    let bound = "change = 'no_waits'\ninexact = 'some waits stay'\n";
    let least = Some((2_000, Promise::Bound));
    assert_eq!(promised(bound), [least; 2]);
    let [none, meets] = promised("");
    let none = none.expect("a bound");
    assert!(none.0 > 2_000 && none.1 == Promise::Bound, "{none:?}");
    // Where all meet next, it is known without a replay, too: rank 1 comes 2 ms after rank 0.
    assert_eq!(meets, least);
}

/// Rank 0 takes messages in the order of ranks, and computes for 20 ms after each: that of rank 2 is there when it
/// waits for rank 1. Whatever is measured, it could take that first.
#[test]
fn what_is_there_can_be_taken_first() {
    let mut all = ranks(3);
    for rank in &mut all {
        rank.call(1, of_all(number::MPI_Init), 0, MS);
    }
    for round in 0..10 {
        let at = MS + round * 70 * MS;
        all[0].recv(10, 1, 5, at, at + 20 * MS);
        all[0].recv(10, 2, 5, at + 40 * MS, at + 40 * MS + 3 * US);
        all[0].send(11, 1, 6, at + 60 * MS, at + 60 * MS + US);
        all[0].send(12, 2, 6, at + 60 * MS + 2 * US, at + 60 * MS + 3 * US);
        for (rank, sent) in [(1, 20), (2, 10)] {
            let sent = at + sent * MS - US;
            all[rank].send(20, 0, 5, sent, sent + US);
            all[rank].recv(21, 0, 6, sent + 2 * US, at + 60 * MS + 4 * US);
        }
    }
    for rank in &mut all {
        rank.call(40, of_all(number::MPI_Finalize), 800 * MS, 801 * MS);
    }
    let (report, _) = told(all, RuleBase::built_in(), &[]);
    let (gain, from, _) = promise(&report, "receive_as_they_come").expect("a hint");
    // All of the waiting, but for the first: it is not known that somebody else is earlier.
    assert!(
        (180_000..=200_000).contains(&gain) && from == Promise::Bound,
        "{gain}"
    );
}

/// In each of four rounds ranks compute so many ms, and all wait for the last.
fn unbalanced(work: [u64; 4]) -> Vec<Calls> {
    let mut all = ranks(4);
    let round = work.iter().max().unwrap() * MS + 10 * US;
    for (rank, work) in all.iter_mut().zip(work) {
        rank.call(1, of_all(number::MPI_Init), 0, MS);
        for at in 0..4 {
            let begin = MS + at * round;
            let enter = begin + work * MS;
            rank.collective(10, number::MPI_Allreduce, 0, enter, begin + round);
        }
        let end = MS + 4 * round;
        rank.call(40, of_all(number::MPI_Finalize), end, end + US);
    }
    all
}

/// 12 of 20 ms in each round, if rank 3 gives of its work to all; 8 ms where rank 2 has 12 ms of its
/// own.
#[test]
fn work_is_shared_by_those_who_wait() {
    for (work, gain) in [([4, 4, 4, 20], 48_000), ([4, 4, 12, 20], 32_000)] {
        let (report, _) = told(unbalanced(work), RuleBase::built_in(), &[]);
        let (promised, from, found) = promise(&report, "balance_work").expect("a hint");
        assert_eq!((promised, from), (gain, Promise::Replay), "{found:?}");
    }
}

#[test]
fn calls_are_made_once() {
    let mut all = ranks(2);
    for rank in &mut all {
        rank.call(1, of_all(number::MPI_Init), 0, MS);
        for at in [2, 4, 6] {
            rank.collective(10, number::MPI_Barrier, 0, at * MS, (at + 1) * MS);
        }
        rank.call(40, of_all(number::MPI_Finalize), 8 * MS, 9 * MS);
    }
    assert_eq!(gains(all, &[("once", "app.c:10")]), [2_000]);
}

/// Without its wait a call takes what it takes by itself, 1 us here.
#[test]
fn calls_do_not_wait() {
    let words = [("no_waits", "app.c:20"), ("no_waits", "app.c:30")];
    assert_eq!(gains(late_message(12), &words), [9_000, 0]);
}

/// Rank 1 looks for a message for 8 ms, receives it, and computes 10 ms, which the message can come
/// in.
#[test]
fn a_message_that_is_looked_for_is_waited_for_later() {
    let mut all = ranks(2);
    for rank in &mut all {
        rank.call(1, of_all(number::MPI_Init), 0, MS);
    }
    all[0].send(10, 1, 5, 10 * MS, 10 * MS + US);
    let mut probe = receive(number::MPI_Probe, 0, 5);
    probe.flags |= flags::PEEKS;
    all[1].call(20, probe, 2 * MS, 10 * MS + US);
    all[1].recv(21, 0, 5, 10 * MS + US, 10 * MS + 2 * US);
    for (rank, enter) in all.iter_mut().zip([11 * MS, 20 * MS + 2 * US]) {
        rank.call(40, of_all(number::MPI_Finalize), enter, 20 * MS + 3 * US);
    }
    // At 2 ms it computes, until 12 ms; the look and the receive take 1 us each.
    assert_eq!(gains(all, &[("non_blocking", "app.c:20")]), [8_000]);
}

/// Messages of 1 us, 500 ns apart, are one; computation of 3 us before one stays.
#[test]
fn the_loop_around_combined_messages_goes() {
    let mut all = ranks(2);
    let begins = [2_000, 3_500, 5_000, 9_000].map(|ns| 2 * MS + ns);
    for rank in &mut all {
        rank.call(1, of_all(number::MPI_Init), 0, MS);
    }
    for begin in begins {
        all[0].send(10, 1, 5, begin, begin + US);
        all[1].recv(10, 0, 5, begin, begin + US);
    }
    for rank in &mut all {
        rank.call(40, of_all(number::MPI_Finalize), 3 * MS, 4 * MS);
    }
    // Twice 1.5 us, and once 1 us.
    assert_eq!(gains(all, &[("combine", "app.c:10")]), [4]);
}

/// Small messages that follow each other: in turn the sender and the receiver wait for the other,
/// in `pairs` of lines.
fn small_messages(pairs: &[(u32, u32)]) -> Vec<Calls> {
    let mut all = ranks(2);
    for rank in &mut all {
        rank.call(1, of_all(number::MPI_Init), 0, MS);
    }
    let mut begin = 2 * MS;
    for &(sender, receiver) in pairs {
        for message in 0..3000 {
            let (sent, posted) = match message % 2 {
                0 => (begin, begin + 400),
                _ => (begin + 400, begin),
            };
            all[0].call(sender, send(number::MPI_Ssend, 1, 5), sent, begin + US);
            all[1].recv(receiver, 0, 5, posted, begin + US);
            begin += US;
        }
    }
    for rank in &mut all {
        rank.call(40, of_all(number::MPI_Finalize), begin, begin + MS);
    }
    all
}

/// Both ends of messages wait, and have a finding. To combine them is one hint for both; for messages
/// at other lines it is one more.
#[test]
fn messages_are_combined_once_for_both_ends() {
    for pairs in [&[(10, 20)][..], &[(10, 20), (11, 21)]] {
        let (report, _) = told(small_messages(pairs), RuleBase::built_in(), &[]);
        let found = report.bottlenecks.iter();
        let ends = found.filter(|found| found.pattern.starts_with("late_"));
        assert_eq!(ends.count(), 2 * pairs.len());
        let all = report.bottlenecks.iter().flat_map(|found| &found.advice);
        let combined = all.filter(|advice| advice.rule == "combine_messages");
        assert_eq!(combined.count(), pairs.len());
        let sentences = report.bottlenecks.iter().flat_map(|found| &found.hints);
        let combined = sentences.filter(|hint| hint.starts_with("Combine messages"));
        assert_eq!(combined.count(), pairs.len());
        assert!(promise(&report, "combine_messages").is_some());
    }
}

/// A replay does not know operations of the program, which an operation map names. It has no figure
/// for them, and not 0.
#[test]
fn what_operations_of_the_program_gain_is_unknown() {
    let mut calls = late_message(19);
    let directory = tempfile::tempdir().unwrap();
    for calls in &mut calls {
        calls.write(directory.path());
    }
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    let analysis = laggard_engine::analyze(directory.path(), &options).unwrap();
    let Analysis {
        mut report, rules, ..
    } = analysis.unwrap();
    let own = "app_exchange";
    for root in report.root_causes.as_mut().unwrap() {
        own.clone_into(&mut root.operation);
    }
    for found in &mut report.bottlenecks {
        own.clone_into(&mut found.operation);
    }
    let before = promise(&report, "overlap_receive").map(|(gain, from, _)| (gain, from));
    add_gains(directory.path(), &rules, &mut report, MOST_BYTES).unwrap();
    let roots = report.root_causes.as_deref().unwrap();
    assert!(roots.iter().all(|root| root.gain_s.is_none()));
    let after = promise(&report, "overlap_receive").map(|(gain, from, _)| (gain, from));
    assert_eq!(after, before);
    assert!(before.is_some_and(|(_, from)| from == Promise::Bound));
    let events = Events::open(directory.path()).unwrap();
    let without = [Scenario::of(Change::WithoutCause(1, 1.0))];
    let error = predict(&events, Some(&report), &without).unwrap_err();
    assert!(
        error.to_string().contains("operations of the program"),
        "{error}"
    );
}
