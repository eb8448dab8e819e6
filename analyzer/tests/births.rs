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

/// Further ranks, and rank 0 with a second thread that was started at some ms, and maybe a third one: the
/// thread's number, and who started it.
fn ranks_and_threads(
    ranks: u32,
    started: u64,
    by: (u32, Option<u32>),
) -> (Calls, Calls, Vec<Calls>) {
    let mut main = Calls::new(0, 0, ranks);
    let mut thread = Calls::new(0, by.0, ranks);
    thread.was_started(started * MS, by.1);
    let mut others: Vec<Calls> = (1..ranks).map(|rank| Calls::new(rank, 0, ranks)).collect();
    main.call(1, init(), 0, MS);
    others
        .iter_mut()
        .for_each(|rank| rank.call(1, init(), 0, MS));
    (main, thread, others)
}

/// Rank 1 meets the creator, which then computes before it starts another thread. That one sends late: both are
/// behind it, each with its part. What was before the two ranks met is not.
fn assert_creator_is_part_of_it(
    (main, mut thread, mut others): (Calls, Calls, Vec<Calls>),
    mut further: Option<Calls>,
) {
    let mut main = main;
    let creator = further.as_mut().unwrap_or(&mut main);
    creator.recv(10, 1, 0, 2 * MS, 11 * MS);
    others[0].send(20, 0, 0, 10 * MS, 11 * MS);
    others[0].recv(21, 0, 0, 12 * MS, 61 * MS);
    thread.send(30, 1, 0, 60 * MS, 61 * MS);
    creator.send(15, 1, 9, 100 * MS, 101 * MS);
    others[0].recv(22, 0, 9, 100 * MS, 101 * MS);
    others.extend(further);
    let found = costs(main, thread, others);
    // Rank 1 waits from 12 to 60 ms. Its own ms of computation is set against what was first.
    assert_eq!(found.get(&(10, 15)), Some(&28.0), "{found:?}");
    assert_eq!(found.get(&(0, 30)), Some(&20.0), "{found:?}");
}

#[test]
fn what_the_creator_did_is_part_of_it() {
    assert_creator_is_part_of_it(ranks_and_threads(2, 40, (1, None)), None);
}

/// Threads have numbers by their first calls: a creator may have the higher one.
#[test]
fn the_trace_tells_who_the_creator_is() {
    for (creator, thread) in [(1, 2), (2, 1)] {
        let mut further = Calls::new(0, creator, 2);
        further.was_started(2 * MS - 1, Some(0));
        let all = ranks_and_threads(2, 40, (thread, Some(creator)));
        assert_creator_is_part_of_it(all, Some(further));
    }
}

/// Threads of which traces tell that they started each other.
#[test]
fn a_circle_of_creators_has_no_meaning() {
    let mut further = Calls::new(0, 2, 2);
    further.was_started(40 * MS, Some(1));
    let (mut main, mut thread, mut others) = ranks_and_threads(2, 40, (1, Some(2)));
    main.send(10, 1, 0, 10 * MS, 11 * MS);
    others[0].recv(20, 0, 0, 2 * MS, 11 * MS);
    thread.send(30, 1, 1, 60 * MS, 61 * MS);
    further.send(31, 1, 2, 70 * MS, 71 * MS);
    others[0].recv(21, 0, 1, 12 * MS, 61 * MS);
    others[0].recv(22, 0, 2, 62 * MS, 71 * MS);
    others.push(further);
    let found = costs(main, thread, others);
    assert_eq!(found.values().sum::<f64>(), 8.0 + 48.0 + 8.0, "{found:?}");
}

/// The creator waited before it started the thread: for whom it waited is behind it.
#[test]
fn waits_of_the_creator_are_charged_to_whom_they_were_for() {
    let (mut main, mut thread, mut others) = ranks_and_threads(3, 40, (1, None));
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

/// The creator has not begun itself, as far as is known, when its heir is late.
#[test]
fn creators_may_begin_after_their_heirs() {
    let (mut main, mut thread, mut others) = ranks_and_threads(2, 20, (1, Some(2)));
    let mut further = Calls::new(0, 2, 2);
    further.was_started(10 * MS, Some(0));
    others[0].recv(20, 0, 0, 2 * MS, 61 * MS);
    thread.send(30, 1, 0, 60 * MS, 61 * MS);
    main.send(15, 1, 1, 120 * MS, 121 * MS);
    others[0].recv(21, 0, 1, 120 * MS, 121 * MS);
    further.send(16, 1, 2, 150 * MS, 151 * MS);
    others[0].recv(22, 0, 2, 150 * MS, 151 * MS);
    others.push(further);
    let found = costs(main, thread, others);
    let expected = BTreeMap::from([((1, 15), 8.0), ((0, 16), 10.0), ((0, 30), 40.0)]);
    assert_eq!(found, expected);
}

/// A trace says that a thread was started while its creator waited for somebody who waited for that thread.
#[test]
fn who_waits_starts_no_thread() {
    let (mut main, mut thread, mut others) = ranks_and_threads(2, 20, (1, None));
    main.recv(10, 1, 0, 10 * MS, 101 * MS);
    others[0].recv(21, 0, 1, 30 * MS, 51 * MS);
    thread.send(30, 1, 1, 50 * MS, 51 * MS);
    others[0].send(22, 0, 0, 100 * MS, 101 * MS);
    let found = costs(main, thread, others);
    // Rank 0 waits for 90 ms, and rank 1 for 20 ms, which is a part of that.
    let all: f64 = found.values().sum();
    assert!((110.0..=130.0).contains(&all), "{found:?}");
    assert!(
        found.contains_key(&(21, 22)) && found.contains_key(&(0, 30)),
        "{found:?}"
    );
}

/// One thread after the other meets rank 1: of the second one counts what it did since the first one did.
#[test]
fn meetings_of_other_threads_count() {
    let (mut main, mut thread, mut others) = ranks_and_threads(2, 2, (1, None));
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
