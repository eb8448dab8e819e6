//! Threads that are started in the run, and ranks of which several threads call MPI: what counts since when.

use std::collections::BTreeMap;

use crate::support::*;
use laggard_engine::AnalyzeOptions;
use laggard_trace::Signature;
use laggard_trace::calls::number;

const MS: u64 = 1_000_000;

/// Lines of the call before and of the call after: cost, ms.
type Costs = BTreeMap<(u32, u32), f64>;

/// Root causes, by one, two and three agents.
fn costs(mut main: Calls, thread: Calls, mut others: Vec<Calls>) -> Costs {
    for rank in others.iter_mut().chain([&mut main]) {
        rank.call(99, finalize(), 199 * MS, 200 * MS);
    }
    others.extend([main, thread]);
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    let report = analyze_by_agents(others, &options, [None, Some(2), Some(3)]);
    let roots = report.root_causes.unwrap().into_iter();
    let costs = roots.map(|root| {
        let until = root.until.as_ref().map_or(0, |until| until.location.line);
        let cost = (root.severity_s * 1e6).round() / 1e3;
        ((root.location.line, until), cost)
    });
    costs.filter(|(_, cost)| *cost > 0.0).collect()
}

/// Further ranks, and rank 0 with a second thread that was started at some ms.
fn ranks_and_thread(ranks: u32, started: u64) -> (Calls, Calls, Vec<Calls>) {
    let mut main = Calls::new(0, 0, ranks);
    let mut thread = Calls::new(0, 1, ranks);
    thread.was_started(started * MS);
    let mut others: Vec<Calls> = (1..ranks).map(|rank| Calls::new(rank, 0, ranks)).collect();
    main.call(1, init(), 0, MS);
    others
        .iter_mut()
        .for_each(|rank| rank.call(1, init(), 0, MS));
    (main, thread, others)
}

/// Rank 1 meets the first thread, which then computes before it starts another one. That one sends late: both are
/// behind it, each with its part. What was before the two ranks met is not.
#[test]
fn what_the_creator_did_is_part_of_it() {
    let (mut main, mut thread, mut others) = ranks_and_thread(2, 40);
    main.recv(10, 1, 0, 2 * MS, 11 * MS);
    others[0].send(20, 0, 0, 10 * MS, 11 * MS);
    others[0].recv(21, 0, 0, 12 * MS, 61 * MS);
    thread.send(30, 1, 0, 60 * MS, 61 * MS);
    main.send(15, 1, 9, 100 * MS, 101 * MS);
    others[0].recv(22, 0, 9, 100 * MS, 101 * MS);
    let found = costs(main, thread, others);
    // Rank 1 waits from 12 to 60 ms. Its own ms of computation is set against what was first.
    assert_eq!(found.get(&(10, 15)), Some(&28.0), "{found:?}");
    assert_eq!(found.get(&(0, 30)), Some(&20.0), "{found:?}");
}

/// The creator waited before it started the thread: for whom it waited is behind it.
#[test]
fn waits_of_the_creator_are_charged_to_whom_they_were_for() {
    let (mut main, mut thread, mut others) = ranks_and_thread(3, 40);
    others[0].recv(20, 0, 0, 2 * MS, 51 * MS);
    main.recv(10, 2, 0, 2 * MS, 39 * MS);
    others[1].send(25, 0, 0, 38 * MS, 39 * MS);
    thread.send(30, 1, 0, 50 * MS, 51 * MS);
    main.send(15, 1, 9, 100 * MS, 101 * MS);
    others[0].recv(22, 0, 9, 100 * MS, 101 * MS);
    let found = costs(main, thread, others);
    // Rank 0 waits for 36 ms, for which rank 1 waits then.
    assert_eq!(found.get(&(1, 25)), Some(&(36.0 + 36.0)), "{found:?}");
    assert_eq!(found.get(&(0, 30)), Some(&10.0), "{found:?}");
}

/// One thread after the other meets rank 1: of the second one counts what it did since the first one did.
#[test]
fn meetings_of_other_threads_count() {
    let (mut main, mut thread, mut others) = ranks_and_thread(2, 2);
    others[0].recv(20, 0, 0, 2 * MS, 61 * MS);
    main.send(10, 1, 0, 60 * MS, 61 * MS);
    others[0].recv(21, 0, 1, 62 * MS, 81 * MS);
    let commits = Signature {
        operation: number::MPI_Type_commit,
        ..Signature::default()
    };
    thread.call(35, commits, 40 * MS, 41 * MS);
    thread.send(30, 1, 1, 80 * MS, 81 * MS);
    let found = costs(main, thread, others);
    assert_eq!(found.get(&(1, 10)), Some(&58.0), "{found:?}");
    // Rank 1 waits from 62 to 80 ms.
    assert_eq!(found.get(&(35, 30)), Some(&18.0), "{found:?}");
    assert_eq!(found.get(&(0, 35)), None, "{found:?}");
}
