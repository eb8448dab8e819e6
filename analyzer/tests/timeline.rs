//! Time lines: the critical path and the flows on them, read back.

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use laggard_engine::AnalyzeOptions;
use laggard_engine::events::Events;
use laggard_report::Report;
use laggard_trace::calls::number;
use laggard_trace::{Signature, WORLD, flags};
use support::*;

const US: u64 = 1000;
const MS: u64 = 1_000_000;

fn init() -> Signature {
    Signature {
        operation: number::MPI_Init,
        flags: flags::COLLECTIVE,
        group: WORLD,
        ..Signature::default()
    }
}

/// `n` ranks after their start-up, which the last one begins at 3 ms.
fn begun(n: u32) -> Vec<Calls> {
    let mut all = ranks(n);
    for (at, rank) in (1..).zip(&mut all) {
        rank.call(1, init(), at * 3 * MS / u64::from(n), 4 * MS);
    }
    all
}

fn end(all: &mut [Calls], enters: &[u64]) {
    let last = enters.iter().max().expect("an end") + 1;
    for (rank, enter) in all.iter_mut().zip(enters) {
        rank.collective(90, number::MPI_Finalize, -1, enter * MS, last * MS);
    }
}

fn write(mut all: Vec<Calls>, directory: &Path) -> Report {
    all.iter_mut().for_each(|calls| calls.write(directory));
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    let analysis = laggard_engine::analyze(directory, &options);
    analysis.expect("an analysis").expect("a report").report
}

/// Rank 0 computes, each other rank waits for the one before it.
fn chain() -> Vec<Calls> {
    let mut all = begun(4);
    for at in 0..3u64 {
        let time = 100 + 2 * at;
        all[at as usize].send(10, at as i32 + 1, 5, time * MS, (time + 1) * MS);
        all[at as usize + 1].recv(20, at as i32, 5, 6 * MS, (time + 1) * MS);
    }
    end(&mut all, &[110, 120, 130, 140]);
    all
}

/// Requests, collectives with several late members, and a rooted one.
fn mixed() -> Vec<Calls> {
    let mut all = begun(3);
    let first = all[1].irecv(21, 0, 6, 70 * MS);
    let second = all[1].irecv(22, 2, 7, 71 * MS);
    let sent = all[2].isend(30, 1, 7, 90 * MS);
    all[0].send(11, 1, 6, 80 * MS, 81 * MS);
    all[1].waitall(23, &[(first, None), (second, None)], 72 * MS, 95 * MS);
    all[2].waitall(31, &[(sent, None)], 91 * MS, 96 * MS);
    for (rank, enter) in [(0, 140), (1, 150), (2, 170)] {
        all[rank].collective(40, number::MPI_Barrier, -1, enter * MS, 171 * MS);
        all[rank].collective(41, number::MPI_Bcast, 2, (40 + enter) * MS, 215 * MS);
    }
    end(&mut all, &[230, 225, 220]);
    all
}

/// A rank that looks in vain.
fn looking() -> Vec<Calls> {
    let mut all = begun(2);
    all[0].send(10, 1, 5, 60 * MS, 61 * MS);
    let request = all[1].irecv(20, 0, 5, 5 * MS);
    all[1].looks(21, number::MPI_Test, 10 * MS, 61 * MS, 100 * US);
    all[1].test(21, &[request], 61 * MS, 61 * MS + US);
    end(&mut all, &[70, 80]);
    all
}

/// The last call is of a second thread, which waited for another rank.
fn threads() -> Vec<Calls> {
    let mut all = begun(2);
    let mut second = Calls::new(1, 1, 2);
    all[0].send(10, 1, 5, 60 * MS, 61 * MS);
    second.recv(20, 0, 5, 50 * MS, 61 * MS);
    second.send(30, 0, 8, 110 * MS, 111 * MS);
    all[0].recv(31, 1, 8, 65 * MS, 111 * MS);
    end(&mut all, &[112, 90]);
    all.push(second);
    all
}

#[test]
fn the_critical_path_is_that_of_the_report() {
    let traces = [chain, mixed, looking, threads];
    for (at, trace) in traces.into_iter().enumerate() {
        let directory = tempfile::tempdir().expect("a directory");
        let report = write(trace(), directory.path());
        let known = report.critical_path.expect("a critical path");
        let events = Events::open(directory.path()).expect("a trace");
        let path = laggard_export::critical_path(&events).expect("a path");
        let ns = |seconds: f64| (seconds * 1e9).round() as i64;
        assert!(path.len() > 1, "{at}: {path:?}");
        assert!(path.windows(2).all(|two| two[0].until == two[1].from));
        let length: i64 = path.iter().map(|one| one.until - one.from).sum();
        assert_eq!(length, ns(known.length_s), "{at}: {path:?}");
        let mut ranks: BTreeMap<u32, i64> = BTreeMap::new();
        for stretch in &path {
            let rank = events.place(stretch.location as usize).rank;
            *ranks.entry(rank).or_default() += stretch.until - stretch.from;
        }
        let shares = known.ranks.iter();
        let shares = shares.map(|share| (share.rank, ns(share.seconds)));
        assert_eq!(ranks, shares.collect(), "{at}: {path:?}");
    }
}
