//! Parallel regions of OpenMP around calls, wherever reading begins.

use laggard_trace::{Extension, Signature};

use super::*;

/// Calls in each part of the program; more than a few marks are for.
const CALLS: u64 = 5000;

/// In turns calls outside of regions, in one, in another one in it, and in the first again; the regions go on as the
/// trace ends.
fn write_nested(directory: &Path) {
    let mut calls = Calls::new(0, 0, 1);
    calls.call(1, init(), 0, US);
    let mut at = 2;
    for round in 0..2 {
        let mut begins = |line: u32, operation: u16, team: u64| {
            let signature = Signature {
                operation,
                parameter: team as i64,
                ..Signature::default()
            };
            let key = Record::extension_u64(Extension::Value, team << 24);
            calls.extended(line, signature, &[key], (at * US, (at + 1) * US));
            for _ in 0..CALLS {
                at += 2;
                calls.call(99, send(number::MPI_Send, 0, 99), at * US, (at + 1) * US);
            }
            at += 2;
        };
        begins(10, number::omp_parallel, 3);
        begins(20, number::omp_parallel, 4);
        begins(21, number::omp_parallel_end, 4);
        if round == 0 {
            begins(11, number::omp_parallel_end, 3);
        }
    }
    calls.write(directory);
}

/// A call tells the region around it as reading all calls does, also where reading begins within regions.
#[test]
fn calls_tell_the_region_around_them() {
    let trace = tempfile::tempdir().unwrap();
    write_nested(trace.path());
    let share = share(trace.path());
    let mut all = Vec::new();
    share.events().operations(0).read(|call| {
        let region = call.region.map(|region| region.threads);
        all.push((call.number, call.enter, region));
        ControlFlow::Continue(())
    });
    let (mut inside, mut begun_before) = (0, 0);
    for &(number, enter, threads) in all.iter().step_by(499) {
        let at_s = enter as f64 / 1e9;
        let question = json!({"ask": "call", "location": 0, "number": number, "at_s": at_s});
        let answer = asked(&share, question).unwrap();
        let region = &answer["parallel_region"];
        let told = threads.map(|threads| (threads, 10 * (threads - 2)));
        let found = region["threads"].as_u64().map(|threads| threads as u32);
        let line = region["at"][1].as_u64().map(|line| line as u32);
        assert_eq!(found.zip(line), told, "call {number}");
        inside += usize::from(threads.is_some());
        begun_before += usize::from(!share.index_of(0).within(enter).is_empty());
    }
    assert!(
        inside < all.len() / 499 && begun_before > 10,
        "{inside} {begun_before}"
    );
}
