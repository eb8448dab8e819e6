//! Programs that look again and again whether something has come: what is waiting, where, and what is work.

use std::path::Path;

use laggard_serve::Share;
use laggard_trace::calls::number;
use laggard_trace::{Extension, Record};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use serde_json::json;

use super::{US, asked, share};
use crate::support::{Calls, finalize, init, ranks, vain};

/// Kinds of time in calls, and waiting.
const INSIDE: [&str; 3] = ["communication", "synchronization", "io"];
const KINDS: [&str; 5] = [
    "computation",
    "communication",
    "synchronization",
    "io",
    "waiting",
];

/// What a location spent on each of [`KINDS`] in a part of the run, s.
fn times(share: &Share, at: usize, (from, until): (Option<f64>, Option<f64>)) -> [f64; 5] {
    let question =
        json!({"ask": "selection", "first": at, "last": at, "from_s": from, "until_s": until});
    let answer = asked(share, question).unwrap();
    assert_eq!(answer["unread_locations"], 0);
    KINDS.map(|kind| answer["times_s"][kind].as_f64().unwrap())
}

fn near(found: f64, expected: f64, what: &str) {
    assert!(
        (found - expected).abs() < 2e-8,
        "{what}: {found} {expected}"
    );
}

/// All is what the report says, parts add up to it, and nobody waits longer than the time in calls.
fn check(share: &Share, parts: usize) {
    let report = share.report().unwrap();
    for (at, location) in report.locations.iter().enumerate() {
        let whole = times(share, at, (None, None));
        let expected = [
            location.computation_s,
            location.communication_s,
            location.synchronization_s,
            location.io_s,
            location.wait_s,
        ];
        for ((found, expected), kind) in whole.iter().zip(expected).zip(KINDS) {
            near(*found, expected, &format!("{kind} of {at}"));
        }
        let last = share.index_of(at).checkpoints.last().unwrap();
        let of_index = [0, 1, 2].map(|kind| last.inside[kind] as f64 / 1e9);
        for (kind, found) in of_index.into_iter().enumerate() {
            near(
                found,
                whole[1 + kind],
                &format!("index, {} of {at}", INSIDE[kind]),
            );
        }
        let end = share.events().end_ns() as f64 / 1e9;
        let mut sums = [0.0; 5];
        for part in 0..parts {
            let border = |part: usize| Some((end * part as f64 / parts as f64 * 1e9).round() / 1e9);
            let (from, until) = (border(part), border(part + 1));
            let found = times(share, at, (from, until));
            let inside: f64 = found[1..4].iter().sum();
            let length = until.unwrap() - from.unwrap();
            assert!(found[4] <= inside + 1e-8, "{at}, {part}: {found:?}");
            assert!(inside <= length + 2e-8, "{at}, {part}: {found:?}");
            sums.iter_mut()
                .zip(found)
                .for_each(|(sum, one)| *sum += one);
        }
        for ((sum, whole), kind) in sums.iter().zip(whole).zip(KINDS) {
            // When a wait of looks with work between them was over is known about.
            let about = if kind == "waiting" {
                0.02 * whole + 1e-6
            } else {
                0.0
            };
            let off = 1e-8 * parts as f64 + about;
            assert!((sum - whole).abs() < off, "{kind} of {at}: {sum} {whole}");
        }
        // The map has the same, but for what its cells are rounded by.
        for (kind, whole) in KINDS.iter().zip(whole) {
            let map = json!({
                "ask": "heat", "metric": kind, "width": 50, "height": 1, "first": at, "last": at,
            });
            let total = asked(share, map).unwrap()["total"].as_f64().unwrap();
            assert!((total - whole).abs() < 2e-7, "{kind}: {total} {whole}");
        }
    }
}

/// One of two ranks looks for what the other one sends late.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Looks before it comes, how long each takes, and the work between two of them, ns.
    looks: u64,
    look: u64,
    work: u64,
    /// Part of that in which it sleeps, %.
    asleep: u64,
    /// How many of these looks have come when it is sent, %.
    sent: u64,
    /// What else is called after so many looks; nothing.
    other: Option<u64>,
    /// Looks that are one record, in place of single ones.
    merged: bool,
    /// After each look, there is one for what nobody sends.
    probes: bool,
}

fn write(directory: &Path, rounds: &[Round], ends_in_vain: bool) {
    let mut r = ranks(2);
    r.iter_mut()
        .for_each(|rank| rank.call(1, init(), 0, 100 * US));
    let mut at = 200 * US;
    for round in rounds {
        let [sender, looker] = &mut r[..] else {
            panic!("two ranks")
        };
        let request = looker.irecv(20, 0, 5, at);
        let step = round.look + round.work;
        let until = at + US + round.looks * step;
        let sent = at + US + round.looks * step * round.sent / 100;
        sender.send(10, 1, 5, sent, sent + 10);
        look(looker, round, at + US);
        looker.test(21, &[request], until, until + round.look);
        at = until + 20 * US;
    }
    if ends_in_vain {
        let round = Round {
            looks: 9,
            look: 300,
            work: 200,
            asleep: 0,
            sent: 0,
            other: None,
            merged: false,
            probes: false,
        };
        // One row that is too short to be waiting, and one that is not.
        look(&mut r[1], &round, at);
        r[1].collective(30, number::MPI_Comm_rank, -1, at + 5 * US, at + 6 * US);
        look(&mut r[1], &Round { looks: 40, ..round }, at + 10 * US);
        at += 50 * US;
    }
    r.iter_mut()
        .for_each(|rank| rank.call(40, finalize(), at, at + 10 * US));
    r.iter_mut().for_each(|rank| rank.write(directory));
}

fn look(calls: &mut Calls, round: &Round, from: u64) {
    let step = round.look + round.work;
    if round.looks > 0 {
        let of = (round.looks, round.looks * round.look);
        calls.in_profile(21, number::MPI_Test, of);
    }
    if round.merged && round.looks > 1 {
        let until = from + round.looks * step - round.work;
        let of = (round.looks as u32, round.looks * round.look);
        return calls.merged(21, vain(number::MPI_Test), (from, until), of);
    }
    for look in 0..round.looks {
        let begin = from + look * step;
        let off = round.work * round.asleep / 100;
        let off = Record::extension(Extension::Off, 0, off as u32);
        let slept: &[Record] = if round.asleep > 0 { &[off] } else { &[] };
        calls.extended(
            21,
            vain(number::MPI_Test),
            slept,
            (begin, begin + round.look),
        );
        if round.other == Some(look) && round.work >= 100 {
            let call = begin + round.look + 20;
            calls.collective(31, number::MPI_Comm_size, -1, call, call + 50);
        }
        if round.probes && round.work >= 200 {
            let probe = begin + round.look + 100;
            calls.call(32, vain(number::MPI_Iprobe), probe, probe + 60);
        }
    }
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let round = (
        (0u64..60, 100u64..2000),
        prop_oneof![Just(0u64), 0u64..900, 5_000u64..80_000],
        prop_oneof![Just(0u64), 1u64..100],
        0u64..101,
        proptest::option::of(0u64..60),
        any::<(bool, bool)>(),
    );
    let round = round.prop_map(
        |((looks, look), work, asleep, sent, other, (merged, probes))| Round {
            looks,
            look,
            work,
            asleep,
            sent,
            other,
            merged,
            probes,
        },
    );
    proptest::collection::vec(round, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn times_of_looks_are_those_of_the_report(rounds in rounds(), ends_in_vain in any::<bool>()) {
        let trace = tempfile::tempdir().unwrap();
        write(trace.path(), &rounds, ends_in_vain);
        check(&share(trace.path()), 23);
    }
}

/// A wait of a thousand looks with work between them is where they are, not a block at the first of them.
#[test]
fn waits_are_spread_over_their_looks() {
    let trace = tempfile::tempdir().unwrap();
    let round = Round {
        looks: 1000,
        look: 1000,
        work: 25_000,
        asleep: 0,
        sent: 90,
        other: None,
        merged: false,
        probes: false,
    };
    write(trace.path(), &[round], false);
    let share = share(trace.path());
    check(&share, 300);
    // In each tenth of the time until it is sent there is as much.
    let end = 0.000_201 + 0.9 * 0.026;
    for tenth in 0..9 {
        let border = |tenth: usize| Some(0.000_201 + (end - 0.000_201) * tenth as f64 / 9.0);
        let found = times(&share, 1, (border(tenth), border(tenth + 1)));
        assert!((found[4] - 0.000_1).abs() < 3e-6, "{tenth}: {found:?}");
    }
    let late = times(&share, 1, (Some(end + 1e-6), None));
    assert!(late[4] < 3e-6, "{late:?}");
}
