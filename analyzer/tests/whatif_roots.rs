//! Root causes of changed runs, of traces made in memory.

use crate::support::*;
use laggard_engine::AnalyzeOptions;
use laggard_engine::events::Events;
use laggard_report::RootCause;
use laggard_trace::Signature;
use laggard_trace::calls::number;
use laggard_whatif::{Change, Prediction, Scenario, predict};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// The first root causes as recorded, and what a replay says of each change.
fn predicted(calls: Vec<Calls>, words: &[(&str, &str)]) -> (Vec<RootCause>, Prediction) {
    predicted_with(calls, words, false)
}

fn predicted_with(
    mut calls: Vec<Calls>,
    words: &[(&str, &str)],
    charge_last: bool,
) -> (Vec<RootCause>, Prediction) {
    let directory = tempfile::tempdir().unwrap();
    let written = calls.iter_mut();
    written.for_each(|calls| calls.write(directory.path()));
    let mut options = AnalyzeOptions {
        charge_last,
        ..AnalyzeOptions::default()
    };
    options.settings.all = true;
    let analysis = laggard_engine::analyze(directory.path(), &options).unwrap();
    let report = analysis.unwrap().report;
    let events = Events::open(directory.path()).unwrap();
    let changes = words
        .iter()
        .map(|(kind, words)| Change::parse(kind, words).unwrap());
    let scenarios: Vec<Scenario> = changes.map(Scenario::of).collect();
    let prediction = predict(&events, Some(&report), &scenarios).unwrap();
    assert_eq!((prediction.not_reproduced, prediction.circles), (0, 0));
    (first_causes(report), prediction)
}

/// Ranks, activity, lines before and after, and rank time in us.
type Told<'c> = (&'c str, &'c str, u32, u32, u64);

fn told(causes: &[RootCause]) -> Vec<Told<'_>> {
    let told = causes.iter().map(|cause| {
        let until = cause.until.as_ref().map_or(0, |until| until.location.line);
        let us = (cause.severity_s * 1e6).round() as u64;
        let ranks = cause.rank_set.as_str();
        (
            ranks,
            cause.activity.as_str(),
            cause.location.line,
            until,
            us,
        )
    });
    told.collect()
}

fn of(prediction: &Prediction, scenario: usize) -> Vec<Told<'_>> {
    told(prediction.scenarios[scenario].root_causes.as_ref().unwrap())
}

/// Rank 0 computes for 30 ms and sends to rank 1, which then computes so long and sends to rank 2.
/// The receives take so long by themselves.
fn chain(second: u64, own: u64) -> Vec<Calls> {
    let mut all = ranks(3);
    for rank in &mut all {
        rank.call(1, init(), 0, MS);
    }
    all[0].send(10, 1, 0, 31 * MS, 31 * MS);
    all[1].recv(20, 0, 0, 2 * MS, 31 * MS + own);
    let sent = 31 * MS + own + second;
    all[1].send(11, 2, 0, sent, sent);
    all[2].recv(21, 1, 0, 2 * MS, sent + own);
    all
}

#[test]
fn the_second_cause_of_a_chain_is_left() {
    let words = [
        ("without_cause", "1"),
        ("speed_up", "rank:0=2"),
        ("speed_up", "rank:1=1000000"),
    ];
    let (recorded, prediction) = predicted(chain(20 * MS, MS), &words);
    // Rank 1 waits from 2 to 31 ms, and rank 2 until 52 ms: for that, too, for 20 ms of
    // computation, and for the receive.
    let first = |us| ("0", "computation", 1, 10, us);
    let second = ("1", "computation", 20, 11, 20_000);
    let receive = ("1", "call", 20, 0, 1_000);
    assert_eq!(told(&recorded), [first(58_000), second, receive]);
    // Rank 2 waits until 23 ms.
    assert_eq!(of(&prediction, 0), [second, receive]);
    // Rank 0 sends at 16 ms.
    assert_eq!(of(&prediction, 1), [first(28_000), second, receive]);
    // Rank 1 waits from 1 to 31 ms, and rank 2 from 2 to 32 ms.
    assert_eq!(of(&prediction, 2), [first(60_000)]);
    // After MPI_Init the ranks have 0, 22 and 23 ms.
    let causes = prediction.scenarios[0].root_causes.as_ref();
    let percent = causes.map(|causes| causes[0].percent.round());
    assert_eq!(percent, Some((100.0f64 * 20.0 / 45.0).round()));
    let text = laggard_whatif::render(&prediction, 140);
    let wanted = "(20.0 ms): rank 1 computed between MPI_Recv at app.c:20 work and MPI_Send at app.c:11 work\n";
    assert_eq!(text.matches(wanted).count(), 2, "{text}");
}

#[test]
fn without_its_only_cause_a_chain_has_none() {
    let (recorded, prediction) = predicted(chain(0, 0), &[("without_cause", "1")]);
    assert_eq!(told(&recorded), [("0", "computation", 1, 10, 58_000)]);
    assert_eq!(of(&prediction, 0), []);
    let text = laggard_whatif::render(&prediction, 140);
    assert!(!text.contains("root causes of waiting"), "{text}");
}

/// Rank 1 looks from 10 to 60 ms for what rank 0 sends at 59 ms, one look after the other.
fn looking() -> Vec<Calls> {
    let mut all = ranks(2);
    for rank in &mut all {
        rank.call(1, init(), 0, MS);
    }
    all[0].send(10, 1, 5, 59 * MS, 59 * MS + US);
    let request = all[1].irecv(20, 0, 5, 2 * MS);
    all[1].looks(21, number::MPI_Test, 10 * MS, 60 * MS, 100 * US);
    all[1].test(21, &[request], 60 * MS, 60 * MS + US);
    all
}

/// All come to a barrier after so many ms, and then to another one at once.
fn barriers(late: &[u64]) -> Vec<Calls> {
    let mut all = ranks(late.len() as u32);
    let last = late.iter().max().unwrap();
    for (rank, late) in all.iter_mut().zip(late) {
        rank.call(1, init(), 0, MS);
        rank.collective(10, number::MPI_Barrier, 0, (1 + late) * MS, (1 + last) * MS);
        rank.collective(20, number::MPI_Barrier, 0, (2 + last) * MS, (3 + last) * MS);
    }
    all
}

#[test]
fn with_nothing_changed_they_are_those_of_the_report() {
    for calls in [
        chain(20 * MS, MS),
        looking(),
        barriers(&[1, 1, 20, 22]),
        barriers(&[9, 3, 3]),
    ] {
        let (recorded, prediction) = predicted(calls, &[("speed_up", "rank:0=1")]);
        assert_ne!(recorded, []);
        let found = prediction.scenarios[0].root_causes.as_deref();
        assert_eq!(found, Some(&recorded[..]));
    }
    // Two are late; by 2 ms the last one alone.
    let late = || barriers(&[1, 1, 20, 22]);
    let same = [("speed_up", "rank:0=1")];
    let (shared, _) = predicted(late(), &same);
    let (last, prediction) = predicted_with(late(), &same, true);
    assert_ne!(told(&last), told(&shared));
    assert_eq!(of(&prediction, 0), told(&last));
}

#[test]
fn looks_wait_for_as_long_as_the_late_rank_takes() {
    let words = ["2", "0.5", "1000000"].map(|factor| format!("rank:0={factor}"));
    let words = words.each_ref().map(|words| ("speed_up", words.as_str()));
    let (recorded, prediction) = predicted(looking(), &words);
    let cause = |us| [("0", "computation", 1, 10, us)];
    assert_eq!(told(&recorded), cause(49_000));
    // It sends at 30 ms, at 117 ms, and before the first look.
    assert_eq!(of(&prediction, 0), cause(20_000));
    assert_eq!(of(&prediction, 1), cause(107_000));
    assert_eq!(of(&prediction, 2), []);
}

#[test]
fn what_is_waited_for_later_waits_less() {
    let mut all = ranks(2);
    for rank in &mut all {
        rank.call(1, init(), 0, MS);
    }
    all[0].send(10, 1, 0, 31 * MS, 31 * MS);
    all[1].recv(20, 0, 0, 2 * MS, 31 * MS);
    all[1].call(30, write(), 41 * MS, 42 * MS);
    let (recorded, prediction) = predicted(all, &[("non_blocking", "app.c:20")]);
    let cause = |us| [("0", "computation", 1, 10, us)];
    assert_eq!(told(&recorded), cause(29_000));
    // The 10 ms until the next call are computed meanwhile.
    assert_eq!(of(&prediction, 0), cause(19_000));
}

/// A file operation.
fn write() -> Signature {
    Signature {
        operation: number::MPI_File_write,
        ..Signature::default()
    }
}

#[test]
fn where_calls_are_gone_nobody_knows_when_ranks_met() {
    let words = [("no_barrier", "app.c:10"), ("without_cause", "1")];
    let (recorded, prediction) = predicted(barriers(&[1, 1, 21]), &words);
    assert_eq!(told(&recorded), [("2", "computation", 1, 10, 40_000)]);
    assert_eq!(prediction.scenarios[0].root_causes, None);
    assert_eq!(of(&prediction, 1), []);
    let text = laggard_whatif::render(&prediction, 140);
    assert!(text.contains("left out where calls"), "{text}");
}

/// The schema of predictions promises what a report's does, of each field that both have.
#[test]
fn root_causes_are_promised_alike() {
    let fields = |schema: &str| {
        let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
        let of = &schema["$defs"]["root_cause"]["properties"];
        of.as_object().expect("fields").clone()
    };
    let own = fields(laggard_whatif::JSON_SCHEMA);
    let reported = fields(laggard_report::JSON_SCHEMA);
    assert!(own.len() > 8, "{own:?}");
    for (name, field) in own {
        for part in ["type", "enum", "description", "minimum"] {
            assert_eq!(field[part], reported[&name][part], "{name}, {part}");
        }
    }
}
