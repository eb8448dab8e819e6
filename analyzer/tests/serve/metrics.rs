//! Amounts of all kinds: over time, by ranks, by communicator, and of more calls than are read.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use laggard_engine::AnalyzeOptions;
use laggard_engine::events::Events;
use laggard_generator::{Length, Program, Settings, generate};
use laggard_patterns::PatternId;
use laggard_report::{RootCause, RootRank};
use laggard_serve::Share;
use laggard_trace::calls::number;
use laggard_trace::calls::user::REGION;
use laggard_trace::{Communicator, Definition, Extension, Record, Signature, WORLD, flags};
use serde_json::{Value, json};

use super::{
    LARGEST, RANKS, US, WHOLE, answers, asked, report, same, share, share_with, write, write_rounds,
};
use crate::support::{Calls, collective, finalize, init, ranks, receive, send};

fn of(share: &Share, question: Value) -> Value {
    asked(share, question).unwrap()
}

/// What the map and the course of a metric add up to, and their parts.
fn totals(share: &Share, metric: &str) -> (f64, f64, Vec<f64>) {
    let heat = json!({"ask": "heat", "metric": metric, "width": 31, "height": 2});
    let heat = of(share, heat);
    let course = of(
        share,
        json!({"ask": "course", "metric": metric, "width": 70}),
    );
    for answer in [&heat, &course] {
        assert_eq!(answer["partly_counted"], 0, "{metric}");
    }
    let rates = course["rates"].as_array().unwrap().iter();
    (
        heat["total"].as_f64().unwrap(),
        course["total"].as_f64().unwrap(),
        rates.map(|rate| rate.as_f64().unwrap()).collect(),
    )
}

/// Ranks of two kinds in turns make two rows, whoever they are; what they had is all of it. One that differs late
/// has a row of its own, if there may be more.
#[test]
fn ranks_that_are_alike_share_a_row() {
    let trace = tempfile::tempdir().unwrap();
    let mut all = ranks(7);
    for (rank, calls) in all.iter_mut().enumerate() {
        calls.call(1, init(), 0, 10 * US);
        let write = Signature {
            operation: number::MPI_File_write_at,
            ..Signature::default()
        };
        for round in 0..100 {
            let long = match rank {
                6 if round >= 97 => 80,
                rank => [20, 60][rank % 2],
            };
            let begin = (10 + 100 * round) * US;
            calls.call(2, write, begin, begin + long * US);
        }
        calls.call(3, finalize(), 10_100 * US, 10_110 * US);
        calls.write(trace.path());
    }
    let share = share(trace.path());
    let rows = |height: usize| {
        let question = json!({"ask": "alike", "metric": "io", "width": 50, "height": height});
        let map = of(&share, question);
        let heat = json!({"ask": "heat", "metric": "io", "width": 50, "height": 7});
        assert_eq!(map["total"], of(&share, heat)["total"]);
        let rows = map["rows"].as_array().unwrap().iter();
        rows.map(|row| {
            (
                row["label"].as_str().unwrap().to_owned(),
                row["count"].clone(),
            )
        })
        .collect::<Vec<_>>()
    };
    let row = |label: &str, count: u32| (label.to_owned(), json!(count));
    assert_eq!(
        rows(7),
        [
            row("ranks 0, 2, 4", 3),
            row("ranks 1, 3, 5", 3),
            row("rank 6", 1)
        ]
    );
    assert_eq!(
        rows(2),
        [row("ranks 0, 2, 4, 6", 4), row("ranks 1, 3, 5", 3)]
    );
}

/// Whatever is shown over time is as much as a selection of all, a matrix or the report has of it.
#[test]
fn amounts_over_time_add_up() {
    let trace = tempfile::tempdir().unwrap();
    write(trace.path());
    let share = share(trace.path());
    let selection = of(&share, json!({"ask": "selection"}));
    let whole = |metric: &str| -> f64 {
        of(&share, json!({"ask": "matrix", "metric": metric}))["whole"]
            .as_f64()
            .unwrap()
    };
    let mut expected = vec![("messages", whole("messages")), ("bytes", whole("bytes"))];
    let times = selection["times_s"].as_object().unwrap();
    expected.extend(
        times
            .iter()
            .map(|(kind, time)| (&kind[..], time.as_f64().unwrap())),
    );
    let metrics = &share.report().unwrap().metrics;
    let lost = metrics.iter().filter(|(id, metric)| {
        let pattern = PatternId::from_id(id);
        metric.total_s > 0.0 && pattern.is_some_and(PatternId::is_waiting)
    });
    expected.extend(lost.map(|(id, metric)| (&id[..], metric.total_s)));
    assert!(
        expected.iter().any(|(name, _)| *name == "late_sender"),
        "{expected:?}"
    );
    let offered = of(&share, json!({"ask": "overview"}))["metrics"].clone();
    let end_s = share.events().end_ns() as f64 / 1e9;
    for (metric, expected) in expected {
        assert!(
            offered
                .as_array()
                .unwrap()
                .iter()
                .any(|one| one[0] == metric),
            "{metric}: {offered}"
        );
        let (heat, course, rates) = totals(&share, metric);
        let error = |found: f64| (found - expected).abs();
        assert!(
            error(heat) < 1e-6 && error(course) < 1e-6,
            "{metric}: {heat} {course} {expected}"
        );
        // All rates together are the whole, as far as three digits tell.
        let sum = rates.iter().sum::<f64>() * end_s / rates.len() as f64;
        assert!(error(sum) <= 1e-3 * expected, "{metric}: {sum} {expected}");
    }
    // The darkest place of what is no time has most of it; there are no more ranks than compute.
    let heat = of(
        &share,
        json!({"ask": "heat", "metric": "messages", "width": 31, "height": RANKS}),
    );
    let cells = STANDARD.decode(heat["cells"].as_str().unwrap()).unwrap();
    assert_eq!(cells.iter().max(), Some(&255));
    // Only rank 0 sends.
    assert!(cells[31..].iter().all(|&cell| cell == 0));
    let (_, _, rates) = totals(&share, "computation");
    assert!(
        rates.iter().all(|&rate| rate <= f64::from(RANKS)),
        "{rates:?}"
    );
    assert!(asked(&share, json!({"ask": "course", "metric": "x", "width": 5})).is_err());
}

/// Sizes of messages are those of the matrix, and a communicator has what was sent in it.
#[test]
fn messages_have_sizes_and_communicators() {
    let trace = tempfile::tempdir().unwrap();
    write(trace.path());
    let share = share(trace.path());
    let sizes = of(&share, json!({"ask": "selection"}))["sizes"].clone();
    let sum = |at: usize| -> f64 {
        let rows = sizes.as_array().unwrap().iter();
        rows.map(|row| row[at].as_f64().unwrap()).sum()
    };
    for (metric, column) in [("messages", 2), ("bytes", 3)] {
        let matrix = of(&share, json!({"ask": "matrix", "metric": metric}));
        same(&matrix["whole"], sum(column));
        let listed = matrix["communicators"].as_array().unwrap();
        let sums = listed.iter().map(|one| {
            let question = json!({"ask": "matrix", "metric": metric, "communicator": one[0]});
            let answer = of(&share, question);
            assert_eq!(answer["exact"], true);
            answer["whole"].as_f64().unwrap()
        });
        same(&matrix["whole"], sums.sum());
        let other = json!({"ask": "matrix", "metric": metric, "communicator": "77777"});
        assert_eq!(of(&share, other)["cells"], json!([]));
    }
    let wrong = json!({"ask": "matrix", "metric": "bytes", "communicator": "name"});
    assert!(asked(&share, wrong).is_err());
    // Some of them: calls of rank 0 in some rounds.
    let some =
        json!({"ask": "selection", "from_s": 0.0102, "until_s": 0.0112, "functions": "send"});
    let some = of(&share, some);
    assert_eq!(some["sizes"][0][2], 40);
}

/// In two communicators others wait for rank 0: in calls that name the communicator, and in calls that end requests.
/// Ns that are lost in each: `[A, B]`.
fn in_communicators(directory: &Path) -> [u64; 2] {
    const A: u64 = 0x1_0000_0055;
    const B: u64 = 0x1_0000_0066;
    let mut r = ranks(3);
    for (rank, calls) in (0..).zip(&mut r) {
        calls.call(1, init(), 0, 10 * US);
        for id in [A, B] {
            calls.define(Definition::Communicator(Communicator {
                id,
                parent: WORLD,
                kind: 0,
                size: 3,
                local_rank: rank,
                name: 0,
                members: if rank == 0 { vec![0, 1, 2] } else { Vec::new() },
                remote_members: Vec::new(),
            }));
        }
    }
    let on = |group: u64, signature: Signature| Signature { group, ..signature };
    let posts = |group: u64, signature: Signature| Signature {
        group,
        flags: signature.flags | flags::POSTS,
        ..signature
    };
    let wait = |calls: &mut Calls, line: u32, requests: &[u64], enter: u64, leave: u64| {
        let requests: Vec<(u64, u32)> = requests.iter().map(|&post| (post, 0)).collect();
        let signature = Signature {
            operation: number::MPI_Waitall,
            completes: calls.list(&requests),
            ..Signature::default()
        };
        calls.call(line, signature, enter, leave);
    };
    for round in 0..20 {
        let at = |us: u64| (100 + 1000 * round + us) * US;
        // A receive in A.
        r[1].call(10, on(A, receive(number::MPI_Recv, 0, 5)), at(0), at(21));
        r[0].call(11, on(A, send(number::MPI_Send, 1, 5)), at(20), at(20) + 1);
        // Two requests at once: that in B is the late one.
        let [mut first, mut second] = [0; 2];
        for (group, request) in [(A, &mut first), (B, &mut second)] {
            let receive = posts(group, receive(number::MPI_Irecv, 0, 5));
            *request = r[1].posts();
            r[1].call(20, receive, at(100 + group % 2), at(100 + group % 2) + 1);
        }
        wait(&mut r[1], 21, &[first, second], at(110), at(151));
        r[0].call(
            22,
            on(A, send(number::MPI_Send, 1, 5)),
            at(120),
            at(120) + 1,
        );
        r[0].call(
            23,
            on(B, send(number::MPI_Send, 1, 5)),
            at(150),
            at(150) + 1,
        );
        // A synchronous send in B, whose receive is posted late.
        let post = r[2].posts();
        r[2].call(
            30,
            posts(B, send(number::MPI_Issend, 0, 5)),
            at(200),
            at(200) + 1,
        );
        wait(&mut r[2], 31, &[post], at(210), at(271));
        r[0].call(32, on(B, receive(number::MPI_Recv, 2, 5)), at(270), at(271));
        // All meet in A, and in B without blocking.
        for (rank, calls) in r.iter_mut().enumerate() {
            let enter = if rank == 0 { at(380) } else { at(300) };
            let barrier = collective(number::MPI_Barrier, -1);
            calls.call(40, on(A, barrier), enter, at(381));
            let enter = if rank == 0 { at(500) } else { at(400) };
            let post = calls.posts();
            let barrier = collective(number::MPI_Ibarrier, -1);
            calls.call(50, posts(B, barrier), enter, enter + 1);
            wait(calls, 51, &[post], enter + 2, at(501));
        }
    }
    for calls in &mut r {
        calls.call(60, finalize(), 30_000 * US, 30_010 * US);
        calls.write(directory);
    }
    let each_round = |us: u64| 20 * us * US;
    [
        each_round(20 + 2 * 80),
        each_round(40 + 60 + 2 * 100) - 20 * 2 * 2,
    ]
}

/// Waiting is told by communicator, also in calls that end requests and name none, and adds up to all of it.
#[test]
fn waiting_is_told_by_communicator() {
    let trace = tempfile::tempdir().unwrap();
    let lost = in_communicators(trace.path());
    let matrix = |communicator: Value| json!({"ask": "matrix", "metric": "waiting", "selection": {}, "communicator": communicator});
    let groups = ["0", "1", "100000055", "100000066"];
    let mut questions = vec![matrix(json!(null))];
    questions.extend(groups.map(|group| matrix(json!(group))));
    let told = answers(1, trace.path(), &questions);
    let whole = |answer: &Value| answer["whole"].as_f64().unwrap();
    for (answer, lost) in told[3..].iter().zip(lost) {
        assert_eq!(answer["exact"], true);
        same(&answer["whole"], lost as f64 / 1e9);
        let cells = answer["cells"].as_array().unwrap();
        // All wait for rank 0.
        assert!(
            cells.len() == 2 && cells.iter().all(|cell| cell[1] == 0),
            "{cells:?}"
        );
    }
    let listed = told[0]["communicators"].as_array().unwrap();
    let ids: Vec<&str> = listed.iter().map(|one| one[0].as_str().unwrap()).collect();
    assert_eq!(ids, groups);
    same(&told[0]["whole"], told[1..].iter().map(whole).sum());
    for agents in [2, 3] {
        assert_eq!(answers(agents, trace.path(), &questions), told);
    }
}

/// Of many hosts successive ones share rows and columns; all cells together are the whole.
#[test]
fn many_hosts_share_rows() {
    const HOSTS: u32 = 130;
    let trace = tempfile::tempdir().unwrap();
    for rank in 0..HOSTS {
        let name = format!("n{rank:03}");
        let names = ["app.c", "work", "./app", &name];
        let mut calls = Calls::elsewhere(rank, 0, HOSTS, names, (100 + u64::from(rank), 0));
        calls.call(1, init(), 0, 10 * US);
        let (next, before) = ((rank + 1) % HOSTS, (rank + HOSTS - 1) % HOSTS);
        calls.send(10, next as i32, 5, 20 * US, 21 * US);
        calls.recv(20, before as i32, 5, 30 * US, 31 * US);
        calls.call(40, finalize(), 40 * US, 41 * US);
        calls.write(trace.path());
    }
    let share = share(trace.path());
    for selection in [json!(null), json!({})] {
        let matrix = of(
            &share,
            json!({"ask": "matrix", "metric": "messages", "hosts": true, "selection": selection}),
        );
        let hosts = matrix["hosts"].as_array().unwrap();
        assert_eq!((hosts.len(), &matrix["hosts_per_row"]), (44, &json!(3)));
        assert_eq!(
            (&hosts[0], &hosts[43]),
            (&json!("n000–n002"), &json!("n129"))
        );
        let cells = matrix["cells"].as_array().unwrap();
        // Of three hosts two send within their row.
        assert_eq!(cells[..2], [json!([0, 0, 2.0]), json!([0, 1, 1.0])]);
        let sum: f64 = cells.iter().map(|cell| cell[2].as_f64().unwrap()).sum();
        assert_eq!(sum, f64::from(HOSTS));
        assert_eq!(
            (&matrix["whole"], &matrix["exact"]),
            (&json!(sum), &json!(true))
        );
    }
}

/// Of many ranks with few calls each all calls are read, though an index stands for many of each.
#[test]
fn few_calls_of_many_ranks_are_read() {
    let trace = tempfile::tempdir().unwrap();
    let settings = Settings::new(Program::Halo2d, 4096, Length::Calls(100_000));
    generate(&settings, trace.path()).unwrap();
    let share = share(trace.path());
    let sizes = of(&share, json!({"ask": "selection"}))["sizes"].clone();
    let messages = sizes.as_array().unwrap().iter();
    let messages: f64 = messages.map(|row| row[2].as_f64().unwrap()).sum();
    let matrix = of(&share, json!({"ask": "matrix", "metric": "messages"}));
    assert!(messages > 4096.0);
    same(&matrix["whole"], messages);
}

/// Another run is told beside: here, one of half as many rounds.
#[test]
fn a_run_is_shown_against_another_one() {
    let trace = tempfile::tempdir().unwrap();
    write(trace.path());
    let other = tempfile::tempdir().unwrap();
    write_rounds(other.path(), 350, true);
    let mut share = share(trace.path());
    let alone = of(&share, json!({"ask": "tree", "metric": "calls"}));
    assert!(alone["against"].is_null() && alone["metrics"][0]["before"].is_null());
    let before = report(other.path());
    let tree = before.call_tree.clone().unwrap();
    let nodes = tree.nodes;
    let of_calls = tree
        .metrics
        .iter()
        .find(|metric| metric.id == "communication");
    let communication = &of_calls.unwrap().nodes;
    share.compare(before);
    for metric in ["calls", "waiting", "communication"] {
        let tree = of(&share, json!({"ask": "tree", "metric": metric}));
        assert!(tree["against"].is_string());
        let rows = tree["nodes"].as_array().unwrap();
        assert!(rows.iter().filter(|row| row[2] == "call").count() > 3);
        for row in rows {
            let is_it =
                |node: &&laggard_report::CallNode| row[2] == node.kind && row[3] == node.name;
            let node = nodes.iter().find(is_it).unwrap();
            let at = nodes.iter().position(|other| other == node).unwrap() as u32;
            let expected = match metric {
                "calls" => node.calls.inclusive as f64,
                "waiting" => node.waiting_s.inclusive,
                _ => communication
                    .iter()
                    .find(|of| of.node == at)
                    .map_or(0.0, |of| of.time_s.inclusive),
            };
            same(&row[7][0], expected);
        }
        assert!(rows[0][7][0].as_f64() < rows[0][4].as_f64());
    }
}

/// Ranks with threads, each of which computes a while longer than the one before it between its two calls.
fn with_threads(directory: &Path, ranks: u32, threads: u32) {
    for rank in 0..ranks {
        for thread in 0..threads {
            let mut calls = Calls::new(rank, thread, ranks);
            let end = 1000 + u64::from(rank * threads + thread);
            if thread == 0 {
                calls.call(1, init(), 0, 10 * US);
            }
            let probe = || Signature {
                operation: number::MPI_Iprobe,
                ..Signature::default()
            };
            calls.call(10, probe(), 200 * US, 201 * US);
            calls.call(20, probe(), end * US, (end + 2) * US);
            if thread == 0 {
                calls.call(2, finalize(), 9000 * US, 9001 * US);
            }
            calls.write(directory);
        }
    }
}

/// Below each rank are its threads, with the times that the report lists for them; all ranks together are the run.
#[test]
fn threads_are_below_their_ranks() {
    let trace = tempfile::tempdir().unwrap();
    with_threads(trace.path(), 2, 3);
    let share = share(trace.path());
    let tree = of(&share, json!({"ask": "tree", "metric": "time", "node": 0}));
    let system = tree["system"].as_array().unwrap();
    let mut locations = share.report().unwrap().locations.iter();
    for (rank, row) in system.iter().enumerate() {
        let threads = row["threads"].as_array().unwrap();
        let sum = threads.iter().map(|row| row[4].as_f64().unwrap()).sum();
        same(&row["mean"], sum);
        for (at, (thread, location)) in threads.iter().zip(&mut locations).enumerate() {
            let here = 3 * rank + at;
            assert_eq!(thread.as_array().unwrap()[..4], [at, at, here, here]);
            let time = location.computation_s + location.communication_s;
            same(&thread[4], time + location.synchronization_s);
            assert!(time > 0.0007 && location.thread as usize == at);
        }
    }
    assert_eq!((system.len(), locations.next()), (2, None));
    // Nobody computes there but one thread.
    let nodes = tree["nodes"].as_array().unwrap();
    let start = nodes
        .iter()
        .find(|row| row[3].as_str().unwrap().ends_with(":1"))
        .unwrap();
    let tree = of(
        &share,
        json!({"ask": "tree", "metric": "time", "node": start[0]}),
    );
    let rows = &tree["system"][1]["threads"];
    assert!(rows[0][4].as_f64() > Some(0.0) && rows[1][4] == 0.0 && rows[2][4] == 0.0);
    assert_eq!(tree["system"][1]["locations"], json!([3, 5]));

    // Many ranks with many threads share rows, and fit.
    let trace = tempfile::tempdir().unwrap();
    with_threads(trace.path(), 66, 17);
    let share = self::share(trace.path());
    let tree = of(&share, json!({"ask": "tree", "metric": "time", "node": 0}));
    let system = tree["system"].as_array().unwrap();
    assert_eq!((system.len(), &system[1]["first"]), (33, &json!(2)));
    // Extremes are of single ranks: the last one has most, more than the mean of it and the one before.
    let spread = &tree["spread"];
    let means = system.iter().map(|row| row["mean"].as_f64().unwrap());
    assert_eq!(
        (&tree["ranks_per_class"], &spread[3]),
        (&json!(2), &json!(65))
    );
    assert!(spread[2].as_f64() > means.clone().reduce(f64::max));
    assert!(spread[0].as_f64() < means.reduce(f64::min));
    let threads = system[1]["threads"].as_array().unwrap();
    assert_eq!(threads.len(), 9);
    // The last row has one thread of either rank.
    assert_eq!(threads[8].as_array().unwrap()[..4], [16, 16, 34, 67]);
    assert!(tree.to_string().len() < LARGEST / 2);
    // Without threads there are none.
    let trace = tempfile::tempdir().unwrap();
    write(trace.path());
    let tree = of(
        &self::share(trace.path()),
        json!({"ask": "tree", "metric": "time", "node": 0}),
    );
    assert_eq!(tree["system"][0]["threads"], json!([]));
}

/// Ranks and threads have what a root cause has, as far as the report names them.
#[test]
fn root_causes_are_of_ranks_and_threads() {
    let trace = tempfile::tempdir().unwrap();
    with_threads(trace.path(), 2, 3);
    let tree_of = |each: u32, severity_s: f64, thread_set: &str| {
        let mut report = report(trace.path());
        report.call_tree.as_mut().unwrap().threads_per_class = Some(each);
        let rank = RootRank {
            rank: 1,
            severity_s: 0.95,
        };
        report.root_causes = Some(vec![RootCause {
            id: "rc1".to_owned(),
            severity_s,
            rank_set: "1".to_owned(),
            ranks: vec![rank],
            thread_set: thread_set.to_owned(),
            ..RootCause::default()
        }]);
        let share = share_with(trace.path(), report, WHOLE);
        of(&share, json!({"ask": "tree", "metric": "rc1"}))
    };
    let tree = |severity_s, thread_set| tree_of(1, severity_s, thread_set);
    let system = |severity_s, thread_set| tree(severity_s, thread_set)["system"].take();
    let rows = tree_of(2, 0.95, "1");
    assert_eq!(rows["system"][1]["threads"], json!([]));
    assert_eq!(
        rows["untold_threads"],
        "Thread 1 of these ranks starts it. The report tells threads in rows of 2."
    );
    let threads = |system: &Value, rank: usize| -> Vec<Value> {
        let rows = system[rank]["threads"].as_array().unwrap();
        rows.iter().map(|row| row[4].clone()).collect()
    };
    // The other 5 % are of ranks that are not named.
    let of_second = system(1.0, "1");
    assert_eq!(of_second[0]["mean"], 0.0);
    assert_eq!(of_second[1]["mean"], 0.95);
    assert_eq!(threads(&of_second, 0), [0.0, 0.0, 0.0]);
    assert_eq!(threads(&of_second, 1), [0.0, 0.95, 0.0]);
    assert_eq!(threads(&system(0.95, ""), 1), [0.95, 0.0, 0.0]);
    // Of several threads nobody knows how much each has: the rank's sum is told, and why that is all.
    let of_two = tree(0.95, "0-1");
    assert_eq!(of_two["system"][1]["mean"], 0.95);
    assert_eq!(of_two["system"][1]["threads"], json!([]));
    assert_eq!(
        of_two["untold_threads"],
        "Threads 0-1 of these ranks start it. How much each does is not known."
    );
    assert_eq!(tree(0.95, "1")["untold_threads"], Value::Null);
    // The list is cut.
    assert_eq!(system(9.0, "1"), json!([]));
}

/// Findings lead to the place of their call in the profile.
#[test]
fn findings_know_their_places_in_the_profile() {
    let trace = tempfile::tempdir().unwrap();
    write(trace.path());
    let share = share(trace.path());
    let nodes = &share.report().unwrap().call_tree.as_ref().unwrap().nodes;
    let overview = of(&share, json!({"ask": "overview"}));
    let findings = overview["findings"].as_array().unwrap();
    assert!(!findings.is_empty());
    for found in findings {
        let place = json!({"ask": "tree", "metric": "time", "place": found["node"]});
        let told = of(&share, place);
        let node = &nodes[told["node"].as_u64().unwrap() as usize];
        let row = told["nodes"].as_array().unwrap().iter();
        let mut row = row.filter(|row| row[8] == found["node"]);
        assert_eq!(row.next().unwrap()[0], told["node"]);
        assert!(row.next().is_none());
        assert_eq!(
            (&node.kind[..], &node.name[..]),
            ("call", found["operation"].as_str().unwrap())
        );
    }
}

/// Two ranks compute for 3 and 1 ms before barriers; instructions are counted in half of that. Then rank 0 computes for
/// 3 ms in a region without calls.
#[test]
fn counters_over_time_are_what_was_counted() {
    const MS: u64 = 1_000_000;
    let trace = tempfile::tempdir().unwrap();
    let mut all = ranks(2);
    for (rank, calls) in all.iter_mut().enumerate() {
        let text = |id, text: &str| Definition::String {
            id,
            bytes: text.as_bytes().to_vec(),
        };
        calls.define(text(7, "counter"));
        calls.define(text(8, "instructions"));
        calls.define(Definition::Property { key: 7, value: 8 });
        calls.call(1, init(), 0, MS);
        let computes = if rank == 0 { 3 * MS } else { MS };
        for round in 0..10 {
            let begin = (1 + 4 * round) * MS;
            calls.counts(computes / 2, &[1000]);
            calls.collective(
                10,
                number::MPI_Barrier,
                -1,
                begin + computes,
                begin + 4 * MS,
            );
        }
        if rank == 0 {
            let region = Signature {
                operation: REGION,
                ..Signature::default()
            };
            let lasted = [Record::extension_u64(Extension::Value, 3 * MS)];
            calls.counts(3 * MS, &[3000]);
            calls.extended(90, region, &lasted, (44 * MS, 44 * MS));
        }
        calls.call(40, finalize(), 45 * MS, 46 * MS);
        calls.write(trace.path());
    }
    let share = share(trace.path());
    let offered = of(&share, json!({"ask": "overview"}))["metrics"].clone();
    let own = offered.as_array().unwrap().last().unwrap().clone();
    assert_eq!(own, json!(["counter:instructions", "instructions"]));
    let course = |from: f64, until: f64, width: u64| {
        let of_it = json!({
            "ask": "course", "metric": "counter:instructions", "width": width, "from_s": from, "until_s": until,
        });
        of(&share, of_it)
    };
    assert_eq!(course(0.0, 0.046, 9)["total"], 23_000);
    assert_eq!(course(0.042, 0.043, 1)["total"], 1000);
    // 1 ms of the third round, whose end comes later: a third of what rank 0 counts in it, all of the other's.
    assert_eq!(course(0.009, 0.010, 1)["total"], 1333);
    assert_eq!(course(0.009, 0.010, 1)["rates"], json!([1.333e6]));
    assert_eq!(course(0.012, 0.013, 3)["total"], 0);
    let heat = json!({
        "ask": "heat", "metric": "counter:instructions", "width": 42, "height": 2, "until_s": 0.042,
    });
    let heat = of(&share, heat);
    assert_eq!(heat["rows"][0]["total"], 11_000);
    assert_eq!(heat["most"], 1000);
    let none = json!({"ask": "course", "metric": "counter:cycles", "width": 4});
    assert_eq!(of(&share, none)["total"], 0);
}

/// More calls than are read for an answer are told as the profile of the run has them.
#[test]
fn a_run_that_is_too_large_to_be_read_has_a_profile() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    let settings = Settings::new(Program::Stencil, 4, Length::Calls(2_600_000));
    generate(&settings, &trace).unwrap();
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    let report = laggard_engine::analyze(&trace, &options)
        .unwrap()
        .unwrap()
        .report;
    let nodes = report.call_tree.as_ref().unwrap().nodes.clone();
    let events = Events::open(&trace).unwrap();
    let share = Share::new(
        &laggard_comm::Serial,
        events,
        Some(report),
        (&trace, super::WHOLE),
    )
    .unwrap();
    let all = of(&share, json!({"ask": "selection"}));
    assert_eq!(
        (&all["profiled_locations"], &all["unread_locations"]),
        (&json!(4), &json!(0))
    );
    let rows = all["profile"].as_array().unwrap();
    let waiting = |rows: &[Value]| -> f64 {
        let waiting = rows.iter().map(|row| row["waiting_s"].as_f64().unwrap());
        waiting.sum()
    };
    // Of each wait, also of those that the index does not keep.
    same(&all["times_s"]["waiting"], waiting(rows));
    assert_eq!(all["unknown_waits"], 0);
    let mut calls = 0.0;
    for name in ["MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Allreduce"] {
        let own = rows.iter().filter(|row| row["call"] == name);
        let own = own.fold((0.0, 0.0), |(count, time), row| {
            let value = |key: &str| row[key].as_f64().unwrap();
            (count + value("calls"), time + value("time_s"))
        });
        let of_it = nodes
            .iter()
            .filter(|node| node.kind == "call" && node.name == name);
        let waited = of_it.clone().map(|node| node.waiting_s.exclusive);
        let own_waits: Vec<Value> = rows
            .iter()
            .filter(|row| row["call"] == name)
            .cloned()
            .collect();
        assert!(
            (waiting(&own_waits) - waited.sum::<f64>()).abs() < 1e-6,
            "{name}"
        );
        let (count, time) = of_it.fold((0.0, 0.0), |(count, time), node| {
            (
                count + node.calls.exclusive as f64,
                time + node.time_s.exclusive,
            )
        });
        assert_eq!(own.0, count, "{name}");
        assert!(
            (own.1 - time).abs() < 1e-5 * time,
            "{name}: {} {time}",
            own.1
        );
        calls += count;
    }
    assert!(calls > 2_500_000.0, "{calls}");
    // Part of it is not told by profiles.
    let end_s = all["until_s"].as_f64().unwrap();
    let most = of(&share, json!({"ask": "selection", "until_s": 0.97 * end_s}));
    assert_eq!(
        (&most["profiled_locations"], &most["unread_locations"]),
        (&json!(0), &json!(4))
    );
    let rest = of(
        &share,
        json!({"ask": "selection", "from_s": 0.97 * end_s, "functions": "mpi_"}),
    );
    let [most_rows, rest_rows] = [&most, &rest].map(|answer| answer["profile"].as_array().unwrap());
    assert!(
        most_rows
            .iter()
            .all(|row| row["calls"].is_null() && row["time_s"].is_null())
    );
    assert!(rest_rows.iter().all(|row| row["calls"].as_u64() > Some(0)));
    // Of each wait that the index keeps.
    let kept = (0..4).flat_map(|at| share.index_of(at).waits.all());
    let kept: i64 = kept.map(|wait| wait.lost).sum();
    let both = waiting(most_rows) + waiting(rest_rows);
    assert!((both - kept as f64 / 1e9).abs() < 1e-6, "{both}");
    assert!(waiting(most_rows) > 0.9 * both && both < waiting(rows));
    assert_eq!(most["unknown_waits"], 4);
    let line = of(
        &share,
        json!({"ask": "line", "first": 0, "last": 0, "width": 10}),
    );
    assert_eq!(line["lanes"][0]["unknown_waits"], true);
    // Of each kind of wait, those that the report names are kept, however short.
    let report = share.report().unwrap();
    let is_waiting = |name: &str| PatternId::from_id(name).is_some_and(PatternId::is_waiting);
    let mut named = 0;
    for found in report
        .bottlenecks
        .iter()
        .filter(|found| is_waiting(&found.pattern))
    {
        let worst = found.worst_instance.as_ref().unwrap();
        let kept = share.index_of(worst.rank as usize).waits.all();
        let mut lost = kept.iter().map(|wait| wait.lost as f64 / 1e9);
        assert!(
            lost.any(|lost| (lost - worst.severity_s).abs() < 2e-9),
            "{found:?}"
        );
        named += 1;
    }
    assert!(named > 2, "{named}");
    let messages = json!({"ask": "course", "metric": "messages", "width": 10});
    assert_eq!(of(&share, messages)["partly_counted"], 4);
    let some = json!({"ask": "course", "metric": "messages", "width": 10, "until_s": 0.1 * end_s});
    let some = of(&share, some);
    assert_eq!(some["partly_counted"], 0);
    assert!(some["total"].as_u64() > Some(100_000));
}
