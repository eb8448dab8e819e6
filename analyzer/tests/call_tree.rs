//! What happens where: the tree of call paths, on traces with known times.

use crate::support::*;
use laggard_engine::AnalyzeOptions;
use laggard_report::{Amount, CallNode, CallTree, LocationTimes, Report};
use laggard_trace::calls::number;
use laggard_trace::{Extension, Record, Signature};

const MS: u64 = 1_000_000;

/// The same of one, two and three agents.
fn analyzed(calls: Vec<Calls>) -> Report {
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    let report = analyze_by_agents(calls, &options, [None, Some(3), Some(5)]);
    let tree = report.call_tree.as_ref().expect("a tree");
    parts_add_up(tree);
    // Of locations, all kinds are known.
    for (id, of) in [
        ("computation", |one| one.computation_s),
        ("communication", |one| one.communication_s),
        ("synchronization", |one| one.synchronization_s),
        ("io", |one| one.io_s),
    ] as [(&str, fn(&LocationTimes) -> f64); 4]
    {
        let times: f64 = report.locations.iter().map(of).sum();
        let found = inclusive(tree, id)[0];
        assert!(near(found, times), "{id}: {found} of {times}");
    }
    // All that a pattern charges is somewhere in the tree.
    for (id, metric) in report
        .metrics
        .iter()
        .filter(|(_, metric)| metric.total_s > 0.0)
    {
        let below = tree
            .metrics
            .iter()
            .filter(|part| part.parent.as_ref() == Some(id));
        let below: f64 = below.map(|part| inclusive(tree, &part.id)[0]).sum();
        let found = inclusive(tree, id)[0] - below;
        assert!(near(found, metric.total_s), "{id}: {found}, {metric:?}");
    }
    report
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 2e-9 * (1.0 + one.abs())
}

/// A part of the time, or of the time lost, by node.
fn inclusive(tree: &CallTree, id: &str) -> Vec<f64> {
    let mut all = vec![0.0; tree.nodes.len()];
    for metric in tree.metrics.iter().filter(|metric| metric.id == id) {
        for of in &metric.nodes {
            all[of.node as usize] = of.time_s.inclusive;
        }
    }
    all
}

/// At each node parts are no more than the whole. All of the time is of some kind, all of the time lost in some
/// group, and each has a parent that comes before it.
fn parts_add_up(tree: &CallTree) {
    let times: Vec<f64> = tree
        .nodes
        .iter()
        .map(|node| node.time_s.inclusive)
        .collect();
    let whole = |id: &str| match id {
        "time" => times.clone(),
        id => inclusive(tree, id),
    };
    let mut ids = vec!["time"];
    for metric in &tree.metrics {
        assert!(metric.parent.as_deref().is_none_or(|id| ids.contains(&id)));
        ids.push(&metric.id);
    }
    for id in ids {
        let parts = tree.metrics.iter();
        let parts = parts.filter(|metric| metric.parent.as_deref() == Some(id));
        let mut sums = vec![0.0; tree.nodes.len()];
        for part in parts {
            let part = inclusive(tree, &part.id);
            sums.iter_mut().zip(part).for_each(|(sum, one)| *sum += one);
        }
        for ((sum, whole), node) in sums.iter().zip(whole(id)).zip(&tree.nodes) {
            let is_right = match id {
                "time" | "lost" => near(*sum, whole) || id == "lost" && *sum < whole,
                _ => *sum < whole || near(*sum, whole),
            };
            assert!(is_right, "{id}: {sum} of {whole} in {node:#?}");
        }
    }
    for of in tree.metrics.iter().flat_map(|metric| &metric.nodes) {
        let spread = of.time_s.ranks.as_ref().expect("a spread");
        assert!(spread.max <= of.time_s.inclusive && spread.max > 0.0);
    }
}

/// The only node of a kind whose name ends so.
fn node<'t>(tree: &'t CallTree, kind: &str, end: &str) -> &'t CallNode {
    let fits = |node: &&CallNode| node.kind == kind && node.name.ends_with(end);
    let mut nodes = tree.nodes.iter().filter(fits);
    let found = nodes
        .next()
        .unwrap_or_else(|| panic!("no {kind} {end}: {tree:#?}"));
    assert!(nodes.next().is_none(), "{kind} {end}");
    found
}

fn ms(seconds: f64) -> u64 {
    (seconds * 1e3).round() as u64
}

#[test]
fn amounts_are_where_they_belong() {
    let mut r = ranks(3);
    for calls in &mut r {
        calls.call(1, init(), 0, MS);
    }
    // Rank 0 computes for 59 ms before it sends; rank 1 waits for 50 ms of it.
    r[0].wrapped(10, &[10, 100]);
    r[1].wrapped(20, &[20, 100]);
    r[0].send(10, 1, 5, 60 * MS, 61 * MS);
    r[1].recv(20, 0, 5, 10 * MS, 62 * MS);
    for calls in &mut r {
        calls.call(2, finalize(), 70 * MS, 71 * MS);
    }
    let report = analyzed(r);
    let tree = report.call_tree.as_ref().expect("a tree");
    assert_eq!(tree.ranks_per_class, 1);
    let run = &tree.nodes[0];
    assert_eq!((run.kind.as_str(), run.parent), ("run", None));
    assert_eq!(run.calls.inclusive, report.run.operations);
    // From 1 to 70 ms, on three ranks.
    assert_eq!(ms(run.time_s.inclusive), 3 * 69);
    assert_eq!(ms(run.waiting_s.inclusive), 50);
    let caused = |node: &CallNode| ms(node.caused_s.as_ref().expect("causes").inclusive);
    assert_eq!(caused(run), 50);

    let receive = node(tree, "call", "MPI_Recv");
    assert_eq!(
        (
            ms(receive.time_s.inclusive),
            ms(receive.waiting_s.inclusive)
        ),
        (52, 50)
    );
    assert_eq!(receive.calls.exclusive, 1);
    let line = node(tree, "frame", ":20");
    assert_eq!(
        &tree.nodes[receive.parent.expect("a parent") as usize],
        line
    );
    // After the receive it computes from 62 to 70 ms.
    assert_eq!(
        (ms(line.time_s.exclusive), ms(line.time_s.inclusive)),
        (8, 60)
    );
    // Both call from one line.
    let outer = node(tree, "frame", ":100");
    assert_eq!(outer.calls.inclusive, 2);
    assert_eq!(
        (ms(outer.time_s.exclusive), ms(outer.time_s.inclusive)),
        (0, 60 + 1 + 9)
    );
    let ranks = outer.time_s.ranks.as_ref().expect("a spread");
    assert_eq!(
        ranks
            .classes
            .iter()
            .map(|time| ms(*time))
            .collect::<Vec<_>>(),
        [10, 60, 0]
    );
    assert_eq!(
        (
            ms(ranks.min),
            ms(ranks.median),
            ms(ranks.max),
            ranks.max_rank
        ),
        (0, 10, 60, 1)
    );
    // Rank 0 computed for too long after its start.
    let start = node(tree, "frame", ":1");
    assert_eq!(
        (ms(start.time_s.inclusive), caused(start)),
        (59 + 9 + 69, 50)
    );
    let late = start
        .caused_s
        .as_ref()
        .and_then(|caused| caused.ranks.as_ref());
    assert_eq!(
        late.map(|ranks| (ms(ranks.max), ranks.max_rank)),
        Some((50, 0))
    );
    assert_eq!(
        receive
            .caused_s
            .as_ref()
            .and_then(|caused| caused.ranks.clone()),
        None
    );

    let matrix = report.rank_matrix.expect("a matrix");
    let cells: Vec<_> = matrix.cells.iter().collect();
    assert_eq!(
        (
            cells[0].from,
            cells[0].to,
            cells[0].messages,
            cells[0].bytes
        ),
        (0, 1, 1, 8)
    );
    let waits = cells.iter().filter(|cell| ms(cell.waiting_s) > 0);
    let waits = waits.map(|cell| (cell.from, cell.to, ms(cell.waiting_s)));
    assert_eq!(waits.collect::<Vec<_>>(), [(1, 0, 50)]);
}

/// Time between looks that counts as looking is that of the looks alone, not of the lines that they are on: of two in a
/// loop, and of a run of looks that never finds anything.
#[test]
fn looking_is_no_computation() {
    let mut r = ranks(2);
    for calls in &mut r {
        calls.call(1, init(), 0, MS);
    }
    let request = r[1].irecv(20, 0, 5, MS);
    let lonely = r[1].irecv(20, 0, 9, 2 * MS);
    let mut now = 3 * MS;
    for _ in 0..1_000 {
        for (line, operation) in [(21, number::MPI_Test), (22, number::MPI_Testall)] {
            r[1].call(line, vain(operation), now, now + 1_000);
            now += 1_000 + 2_000 * u64::from(line - 20);
        }
    }
    r[0].send(10, 1, 5, now, now + 1_000);
    r[1].test(21, &[request], now, now + 1_000);
    r[1].cancel(24, lonely, now + 1_000, now + 2_000);
    for calls in &mut r {
        calls.call(2, finalize(), now + 2 * MS, now + 3 * MS);
    }
    let report = analyzed(r);
    let tree = report.call_tree.as_ref().expect("a tree");
    for line in [21, 22] {
        let frame = node(tree, "frame", &format!(":{line}"));
        let of = &frame.time_s;
        assert!(of.exclusive < 1e-5 && of.inclusive > 2.9e-3, "{frame:#?}");
    }
}

/// Before rank 0 sends, it sleeps and works; in its send it has no processor. What is between calls and no work
/// is below the frame, and what is in a call is the call's.
#[test]
fn what_is_no_work_is_no_time_of_a_frame() {
    let mut r = ranks(2);
    for calls in &mut r {
        calls.call(1, init(), 0, MS);
    }
    r[0].is_off([40 * MS, 0, 5 * MS]);
    r[0].is_off_inside([0, 9 * MS, 0], 0);
    r[0].send(10, 1, 5, 60 * MS, 70 * MS);
    r[1].recv(20, 0, 5, 10 * MS, 70 * MS);
    for calls in &mut r {
        calls.call(2, finalize(), 70 * MS, 71 * MS);
    }
    let report = analyzed(r);
    let tree = report.call_tree.as_ref().expect("a tree");
    let start = node(tree, "frame", ":1");
    let asleep = node(tree, "blocked", "asleep or blocked");
    let kernel = node(tree, "kernel", "in the kernel");
    for below in [asleep, kernel] {
        assert_eq!(&tree.nodes[below.parent.expect("a parent") as usize], start);
        assert_eq!(below.calls.inclusive, 0);
    }
    // Rank 0 from 1 to 60 ms, rank 1 from 1 to 10 ms.
    let times = [start, asleep, kernel].map(|node| ms(node.time_s.exclusive));
    assert_eq!(times, [14 + 9, 40, 5]);
    let whole = |id| ms(inclusive(tree, id)[0]);
    // After the calls rank 1 computes as long as before them.
    assert_eq!((whole("computation"), whole("communication")), (59 + 9, 70));
    assert_eq!(
        (whole("blocked"), whole("kernel"), whole("preempted")),
        (40, 5, 0)
    );
    assert_eq!(ms(start.time_s.inclusive), 59 + 9);
    let caused = |node: &CallNode| ms(node.caused_s.as_ref().expect("causes").exclusive);
    // It is late by 50 ms: 40 asleep, 5 in the kernel, and 5 of work.
    assert_eq!([start, asleep, kernel].map(caused), [5, 40, 5]);
    assert!(!tree.nodes.iter().any(|node| node.kind == "preempted"));
    let spread = asleep.time_s.ranks.as_ref().expect("a spread");
    assert_eq!((ms(spread.max), spread.max_rank), (40, 0));
}

/// Two of three threads wait for the first; the other rank has no threads. What threads have is what their rank has,
/// at each node.
#[test]
fn threads_have_amounts_of_their_own() {
    let mut r = vec![
        Calls::new(0, 0, 2),
        Calls::new(0, 1, 2),
        Calls::new(0, 2, 2),
    ];
    r.push(Calls::new(1, 0, 2));
    for at in [0, 3] {
        r[at].call(1, init(), 0, MS);
    }
    for (calls, enter) in r.iter_mut().zip([30, 10, 20]) {
        let barrier = Signature {
            operation: number::omp_barrier,
            parameter: 3,
            ..Signature::default()
        };
        let key = Record::extension_u64(Extension::Value, 5 << 24 | 1);
        calls.extended(20, barrier, &[key], (enter * MS, 30 * MS));
    }
    r[0].send(10, 1, 5, 40 * MS, 41 * MS);
    r[3].recv(30, 0, 5, 10 * MS, 41 * MS);
    for at in [0, 3] {
        r[at].call(2, finalize(), 50 * MS, 51 * MS);
    }
    let report = analyzed(r);
    let tree = report.call_tree.as_ref().expect("a tree");
    assert_eq!(tree.threads_per_class, Some(1));
    let of = |amount: &Amount<f64>| -> Vec<Vec<u64>> {
        let spread = amount.ranks.as_ref().expect("a spread");
        let classes = spread.threads.iter();
        classes
            .map(|class| class.iter().map(|&time| ms(time)).collect())
            .collect()
    };
    let barrier = node(tree, "call", "omp_barrier");
    assert_eq!(of(&barrier.time_s), [vec![0, 20, 10], vec![]]);
    assert_eq!(of(&barrier.waiting_s), [vec![0, 20, 10], vec![]]);
    assert_eq!(of(&tree.nodes[0].waiting_s), [vec![0, 20, 10], vec![30]]);
    let among = tree.metrics.iter().find(|metric| metric.id == "threads");
    let among = &among.expect("time lost among threads").nodes[0];
    assert_eq!(
        (among.node, of(&among.time_s)),
        (0, vec![vec![0, 20, 10], vec![]])
    );
    let receive = node(tree, "call", "MPI_Recv");
    assert_eq!(of(&receive.waiting_s), [vec![], vec![30]]);
    let caused = |node: &CallNode| of(node.caused_s.as_ref().expect("causes"));
    // The other rank waits for the same thread; the second to come shares in what the last one lets others wait.
    assert_eq!(caused(&tree.nodes[0]), [vec![55, 0, 5], vec![]]);
    for node in &tree.nodes {
        let times = [
            Some(&node.time_s),
            Some(&node.waiting_s),
            node.caused_s.as_ref(),
        ];
        let times = times.into_iter().flatten().cloned();
        for amount in times.chain([node.calls.as_f64(), node.bytes.as_f64()]) {
            let Some(spread) = amount.ranks else { continue };
            for (rank, threads) in spread.classes.iter().zip(&spread.threads) {
                let all: f64 = threads.iter().sum();
                assert!((rank - all).abs() < 5e-9, "{node:#?}");
            }
        }
    }
}

#[test]
fn a_tree_is_bounded_and_the_rest_is_in_one_node() {
    let mut r = ranks(70);
    for (rank, calls) in (0..).zip(&mut r) {
        calls.call(1, init(), 0, MS / 10);
        for line in 10..310 {
            // The later the longer, so that the first ones are left out.
            let enter = u64::from(line * line) * 5_000;
            let time = u64::from(line) * 1000 + rank;
            calls.without_data(line, number::MPI_Barrier, 0, enter, enter + time);
        }
        calls.call(2, finalize(), 600 * MS, 601 * MS);
    }
    let report = analyzed(r);
    let tree = report.call_tree.expect("a tree");
    assert!(
        tree.nodes.len() > 100 && tree.nodes.len() <= 128,
        "{}",
        tree.nodes.len()
    );
    assert_eq!(tree.ranks_per_class, 2);
    let ns = |seconds: f64| (seconds * 1e9).round() as u64;
    let run = &tree.nodes[0];
    let below = tree.nodes.iter().filter(|node| node.parent == Some(0));
    let below: u64 = below.map(|node| ns(node.time_s.inclusive)).sum();
    assert_eq!(
        (ns(run.time_s.inclusive), run.time_s.exclusive),
        (below, 0.0)
    );
    assert_eq!(ns(run.time_s.inclusive), 70 * (600 * MS - MS / 10));
    assert_eq!(run.calls.inclusive, 70 * 302);
    let rest = tree.nodes.last().expect("a node");
    assert_eq!(rest.kind, "rest");
    let listed: u64 = tree.nodes.iter().map(|node| node.calls.exclusive).sum();
    assert!(
        rest.calls.inclusive > 70 * 100 && listed == run.calls.inclusive,
        "{rest:#?}"
    );
    assert!(node(&tree, "frame", ":309").time_s.inclusive > 0.0);
    assert!(!tree.nodes.iter().any(|node| node.name.ends_with(":10")));
    let spread = run.calls.ranks.as_ref().expect("a spread");
    assert_eq!(
        (spread.min, spread.median, spread.max, spread.max_rank),
        (302, 302, 302, 0)
    );
    assert_eq!(spread.classes, [302; 35]);
    assert!(tree.threads_per_class.is_none() && spread.threads.is_empty());
}

#[test]
fn without_root_causes_nothing_is_said_of_them() {
    let mut r = ranks(2);
    r[0].send(10, 1, 5, 60 * MS, 61 * MS);
    r[1].recv(20, 0, 5, 10 * MS, 62 * MS);
    let options = AnalyzeOptions {
        fast: true,
        ..AnalyzeOptions::default()
    };
    let tree = analyze_with(r, &options).call_tree.expect("a tree");
    assert!(tree.nodes.iter().all(|node| node.caused_s.is_none()));
    assert_eq!(ms(tree.nodes[0].waiting_s.inclusive), 50);
}
