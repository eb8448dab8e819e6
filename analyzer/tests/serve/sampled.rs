//! Samples over time, by function.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use laggard_trace::MOMENT;
use laggard_trace::calls::number;
use serde_json::{Value, json};

use super::{LARGEST, answers, asked, share};
use crate::support::{Calls, finalize, init, ranks, takes_samples};

const MS: u64 = 1_000_000;
const RANKS: u32 = 3;
const ROUNDS: u64 = 20;
/// Functions, and how often each is seen before a barrier: once less than the one before it.
const FUNCTIONS: u32 = 7;
const FIRST: u32 = 10;
/// Functions that are told apart.
const APART: usize = 5;

/// How often a rank is in a function in each round: rank 2 never is in the first one.
fn count(rank: u32, function: u32) -> u32 {
    if rank == 2 && function == 0 {
        0
    } else {
        FIRST - function
    }
}

/// When a round's barrier is entered, ns.
fn barrier(round: u64) -> u64 {
    (1 + 60 * (round + 1)) * MS
}

fn sample(calls: &mut Calls, name: impl Fn(u32) -> String) {
    for function in 0..FUNCTIONS {
        calls.in_function(100 + function, &name(function));
    }
    calls.call(1, init(), 0, MS);
    for round in 0..ROUNDS {
        for function in 0..FUNCTIONS {
            let samples = count(calls.rank, function);
            if samples > 0 {
                calls.samples(100 + function, samples, samples * MS as u32);
            }
        }
        let enter = barrier(round);
        calls.collective(10, number::MPI_Barrier, 0, enter, enter + 1000);
    }
    calls.call(40, finalize(), barrier(ROUNDS), barrier(ROUNDS) + MS);
}

fn write(directory: &Path, name: impl Fn(u32) -> String + Copy) {
    let mut all = ranks(RANKS);
    takes_samples(&mut all);
    for mut calls in all {
        sample(&mut calls, name);
        calls.write(directory);
    }
}

/// The counts of an answer: by row, function and part.
fn curves(answer: &Value) -> Vec<Vec<Vec<u32>>> {
    let bytes = STANDARD.decode(answer["counts"].as_str().unwrap()).unwrap();
    let (bytes, _) = bytes.as_chunks::<4>();
    let counts: Vec<u32> = bytes.iter().map(|one| u32::from_le_bytes(*one)).collect();
    let parts = answer["parts"].as_u64().unwrap() as usize;
    let curves: Vec<Vec<u32>> = counts.chunks(parts).map(<[u32]>::to_vec).collect();
    curves.chunks(APART + 1).map(<[_]>::to_vec).collect()
}

/// Samples of a row by function.
fn sums(row: &[Vec<u32>]) -> Vec<u32> {
    row.iter().map(|curve| curve.iter().sum()).collect()
}

/// Curves have all samples of what is shown, each at its time; what the report says of functions is the same.
#[test]
fn curves_have_the_samples_of_what_is_shown() {
    let trace = tempfile::tempdir().unwrap();
    write(trace.path(), |function| format!("f{function}"));
    let (from, until) = (barrier(3) - 5 * MOMENT, barrier(7) - 3 * MOMENT);
    let some = json!({
        "ask": "sampled", "from_s": from as f64 / 1e9, "until_s": until as f64 / 1e9, "first": 1, "last": 2,
        "apart": 1, "width": 90,
    });
    let questions = [
        json!({"ask": "sampled", "apart": 9, "width": 400}),
        some,
        json!({"ask": "course", "metric": "samples", "width": 400}),
        json!({"ask": "heat", "metric": "samples", "width": 60, "height": 3}),
    ];
    let told = answers(1, trace.path(), &questions);
    for agents in [2, 3] {
        assert_eq!(answers(agents, trace.path(), &questions), told);
    }
    let [all, some, course, heat] = &told[..] else {
        panic!("four answers")
    };
    let of = |function: u32, ranks: std::ops::Range<u32>| -> u32 {
        ranks.map(|rank| count(rank, function)).sum()
    };
    // Most first; the first function of all is second here.
    let order = [1, 2, 3, 0, 4];
    let names: Vec<&Value> = all["functions"].as_array().unwrap().iter().collect();
    for (row, function) in names.iter().zip(order) {
        let samples = ROUNDS as u32 * of(function, 0..RANKS);
        assert_eq!(
            **row,
            json!({"name": format!("app.c f{function}"), "samples": samples})
        );
    }
    let others = ROUNDS as u32 * (of(5, 0..RANKS) + of(6, 0..RANKS));
    assert_eq!(all["others"], json!({"functions": 2, "samples": others}));
    assert_eq!(all["locations"], json!([0, 1, 2]));
    let rows = curves(all);
    assert_eq!(rows.len(), 1 + RANKS as usize);
    for (at, curve) in rows[0].iter().enumerate() {
        for (part, count) in curve.iter().enumerate() {
            assert_eq!(
                *count,
                rows[1..].iter().map(|row| row[at][part]).sum::<u32>()
            );
        }
    }
    for (rank, row) in (0..).zip(&rows[1..]) {
        let expected = order.map(|function| ROUNDS as u32 * of(function, rank..rank + 1));
        assert_eq!(sums(row)[..APART], expected);
    }
    let total: u32 = sums(&rows[0]).iter().sum();
    assert_eq!(
        (&course["total"], &heat["total"]),
        (&json!(total), &json!(total))
    );
    // Of a part of the run: three whole rounds, the last five samples of the one before, and all but the last three
    // of the next one.
    let rows = curves(some);
    assert_eq!((rows.len(), &some["locations"]), (2, &json!([1])));
    let expected = |ranks: std::ops::Range<u32>| -> u32 {
        let counts = ranks.flat_map(|rank| (0..FUNCTIONS).map(move |of| count(rank, of)));
        counts
            .map(|count| 4 * count + count.min(5) - count.min(3))
            .sum()
    };
    assert_eq!(sums(&rows[0]).iter().sum::<u32>(), expected(1..3));
    assert_eq!(sums(&rows[1]).iter().sum::<u32>(), expected(1..2));
    // Shares of functions are those of the report.
    let share = share(trace.path());
    let functions = &share.report().unwrap().functions;
    assert_eq!(functions.len(), FUNCTIONS as usize);
    let computed: f64 = functions.iter().map(|one| one.total_s).sum();
    for row in names {
        let name = row["name"].as_str().unwrap().trim_start_matches("app.c ");
        let of_report = functions
            .iter()
            .find(|one| one.location.function == name)
            .unwrap();
        let part = row["samples"].as_f64().unwrap() / f64::from(total);
        assert!((of_report.total_s / computed - part).abs() < 1e-9, "{row}");
    }
    let overview = asked(&share, json!({"ask": "overview"})).unwrap();
    let metrics = overview["metrics"].as_array().unwrap();
    assert!(
        metrics.contains(&json!(["samples", "samples"])),
        "{metrics:?}"
    );
}

/// However long names are, and however many parts are wanted, an answer fits.
#[test]
fn curves_fit_on_a_screen() {
    let trace = tempfile::tempdir().unwrap();
    write(trace.path(), |function| {
        format!("{function}{}", "ä".repeat(5000))
    });
    let share = share(trace.path());
    for apart in [0, 1, 2, 3] {
        let question = json!({"ask": "sampled", "apart": apart, "width": 1_000_000});
        let answer = asked(&share, question).unwrap();
        assert_eq!(answer["partly_counted"], 0);
        assert_eq!(curves(&answer).len(), 1 + apart);
        assert!(answer["parts"].as_u64() > Some(100));
        assert!(answer.to_string().len() < LARGEST);
    }
    // Nothing is offered of a run without samples.
    let trace = tempfile::tempdir().unwrap();
    super::write(trace.path());
    let share = super::share(trace.path());
    let overview = asked(&share, json!({"ask": "overview"})).unwrap();
    assert!(!overview["metrics"].to_string().contains("samples"));
    let none = asked(&share, json!({"ask": "sampled", "width": 9})).unwrap();
    assert_eq!(none["functions"], json!([]));
}
