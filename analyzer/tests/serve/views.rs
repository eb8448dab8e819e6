//! Views of a selection, of the critical path, of a change, and of grids.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use laggard_engine::events::Events;
use laggard_overlay::{Stop, Work};
use laggard_serve::{Limits, Share};
use laggard_trace::calls::number;
use laggard_trace::calls::user::STEER;
use laggard_trace::{Change, Detail, Signature, flags};
use laggard_whatif::{Scenario, predict};
use serde_json::{Value, json};

use super::{
    RANKS, US, answers, asked, growing, is_under_way, packed, same, share, share_of, write,
};
use crate::support::{Calls, finalize, init, ranks, receive, send};

/// The answer to a question about the critical path, or messages.
fn path(share: &Share, question: &Value) -> Value {
    loop {
        let answer = asked(share, question.clone()).unwrap();
        if !is_under_way(&answer) {
            return answer;
        }
    }
}

/// Calls in a selection of all of the run have the time and the waiting that the report has for them.
#[test]
fn a_selection_of_all_is_the_profile_of_the_report() {
    let trace = tempfile::tempdir().unwrap();
    write(trace.path());
    let share = share(trace.path());
    let all = asked(&share, json!({"ask": "selection"})).unwrap();
    let rows = all["profile"].as_array().unwrap();
    let nodes = &share.report().unwrap().call_tree.as_ref().unwrap().nodes;
    let sum = |name: &str, of: &dyn Fn(&laggard_report::CallNode) -> f64| -> f64 {
        let found = nodes
            .iter()
            .filter(|node| node.kind == "call" && node.name == name);
        found.map(of).sum()
    };
    assert_eq!(all["unknown_waits"], 0);
    assert_eq!(rows.len(), 5);
    // Start-up takes no time, and is no node.
    let rows: Vec<&Value> = rows.iter().filter(|row| row["time_s"] != 0.0).collect();
    for row in &rows {
        let name = row["call"].as_str().unwrap();
        same(
            &row["calls"],
            sum(name, &|node| node.calls.exclusive as f64),
        );
        same(
            &row["waiting_s"],
            sum(name, &|node| node.waiting_s.exclusive),
        );
        same(&row["time_s"], sum(name, &|node| node.time_s.exclusive));
    }
    let waiting: f64 = rows
        .iter()
        .map(|row| row["waiting_s"].as_f64().unwrap())
        .sum();
    assert!(waiting > 0.01);
    same(&all["times_s"]["waiting"], waiting);
    // Parts of it by function, and by time.
    let of = |question: Value| asked(&share, question).unwrap();
    let some = of(json!({"ask": "selection", "functions": "RECV"}));
    let expected = rows.iter().copied().filter(|row| row["call"] == "MPI_Recv");
    assert!(some["profile"].as_array().unwrap().iter().eq(expected));
    assert_eq!(
        some["durations_s"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row[2].as_u64().unwrap())
            .sum::<u64>(),
        2800
    );
    assert_eq!(
        of(json!({"ask": "selection", "functions": "nobody"}))["profile"],
        json!([])
    );
    let early = of(json!({"ask": "selection", "functions": "recv", "until_s": 0.035}));
    let late = of(json!({"ask": "selection", "functions": "recv", "from_s": 0.035}));
    for key in ["waiting_s", "time_s"] {
        let value = |answer: &Value| answer["profile"][0][key].as_f64().unwrap();
        assert!(value(&early) > 0.3 * value(&some) && value(&late) > 0.3 * value(&some));
        assert!((value(&early) + value(&late) - value(&some)).abs() < 1e-7);
    }
}

/// Two ranks in turn compute 10 us and send: the other one waits. The path changes the rank 4,000 times.
fn to_and_fro(directory: &Path) {
    let mut all = ranks(2);
    for calls in &mut all {
        calls.call(1, init(), 0, 10 * US);
    }
    for half in 0..4000 {
        let begin = (10 + 11 * half) * US;
        let (from, to) = ((half % 2) as usize, ((half + 1) % 2) as usize);
        all[from].send(10, to as i32, 5, begin + 10 * US, begin + 11 * US);
        all[to].recv(20, from as i32, 5, begin + US, begin + 11 * US);
    }
    for calls in &mut all {
        calls.call(40, finalize(), 50_000 * US, 50_010 * US);
        calls.write(directory);
    }
}

/// A list that is cut says how much there is.
#[test]
fn lists_that_are_cut_say_of_how_much() {
    const PLACES: u32 = 60;
    let trace = tempfile::tempdir().unwrap();
    let mut all = ranks(2);
    for calls in &mut all {
        calls.call(1, init(), 0, 10 * US);
    }
    for place in 0..PLACES {
        let begin = (10 + 20 * u64::from(place)) * US;
        all[0].send(100 + place, 1, 5, begin + 10 * US, begin + 11 * US);
        all[1].recv(200 + place, 0, 5, begin + US, begin + 11 * US);
    }
    for calls in &mut all {
        calls.call(40, finalize(), 2000 * US, 2010 * US);
        calls.write(trace.path());
    }
    let questions = [
        json!({"ask": "overview"}),
        json!({"ask": "selection"}),
        json!({"ask": "line", "width": 9, "first": 1}),
        json!({"ask": "selection", "functions": "send"}),
    ];
    let told = answers(1, trace.path(), &questions);
    let rows = |answer: &Value, list: &str| answer[list].as_array().unwrap().len();
    let [overview, selection, line, sends] = &told[..] else {
        panic!("four answers")
    };
    assert_eq!(rows(overview, "findings"), 50);
    assert_eq!(overview["findings_in_report"], PLACES);
    assert_eq!(
        (rows(selection, "profile"), rows(selection, "waits")),
        (40, 40)
    );
    assert!(selection["profile_rows"].as_u64() >= Some(2 * u64::from(PLACES)));
    assert_eq!(selection["waits_in_sight"], PLACES);
    assert_eq!(line["lanes"][0]["waits_in_sight"], PLACES);
    assert_eq!(
        (&sends["profile_rows"], &sends["waits_in_sight"]),
        (&json!(PLACES), &json!(0))
    );
    assert_eq!(answers(2, trace.path(), &questions), told);
}

/// Messages of a time line are those that its calls send and receive.
#[test]
fn messages_lead_from_their_sends_to_their_receives() {
    let trace = tempfile::tempdir().unwrap();
    to_and_fro(trace.path());
    let share = share(trace.path());
    let all = path(&share, &json!({"ask": "messages"}));
    assert_eq!(all["why"], "more than 800 messages: zoom in");
    let (from, until) = (20_000, 22_000);
    let question = json!({"ask": "messages", "from_s": 0.02, "until_s": 0.022});
    let some = path(&share, &question);
    // One is under way at the beginning, and one at the end.
    let sent = (0..4000).map(|half| (half % 2, 20 + 11 * half));
    let seen = sent.filter(|(_, sent)| *sent < until && sent + 1 >= from);
    let expected = seen.map(|(rank, sent)| {
        let ns = |us: i64| 1000 * (us - from);
        json!([rank, ns(sent), 1 - rank, ns(sent + 1), 8])
    });
    assert_eq!(some["messages"], expected.collect::<Value>());
    assert!(some["messages"].as_array().unwrap().len() > 180);
    // Both ends are among those that are asked about.
    let one = path(
        &share,
        &json!({"ask": "messages", "from_s": 0.02, "until_s": 0.022, "last": 0}),
    );
    assert_eq!(one["messages"], json!([]));
}

/// Samples of a time line are where they were taken, also of a stretch that ends after what is shown.
#[test]
fn samples_are_where_they_were_taken() {
    let trace = tempfile::tempdir().unwrap();
    let mut all = ranks(1);
    let calls = &mut all[0];
    calls.call(1, init(), 0, 10 * US);
    calls.call(2, finalize(), 20 * US, 30 * US);
    let before = [(30, 3), (31, 1)];
    for (line, samples) in before {
        calls.samples(line, samples, 10_000);
    }
    calls.call(3, finalize(), 5_000 * US, 5_001 * US);
    calls.write(trace.path());
    let share = share(trace.path());
    let of = |question: Value| {
        let line = asked(&share, question).unwrap();
        let samples = line["lanes"][0]["samples"].as_array().unwrap().clone();
        let places = samples.iter().map(|sample| {
            let text = sample[1].as_u64().unwrap() as usize;
            let place = line["texts"][text].as_str().unwrap().to_owned();
            (sample[0].as_i64().unwrap(), place)
        });
        places.collect::<Vec<_>>()
    };
    let whole = of(json!({"ask": "line", "width": 9}));
    assert_eq!(whole.len(), 4);
    let earliest = whole[0].0;
    let until_s = (earliest + 1) as f64 / 1e9;
    let some = of(json!({"ask": "line", "width": 9, "from_s": 0.0001, "until_s": until_s}));
    assert_eq!(some.len(), 1);
    assert_eq!(some[0], (earliest - 100_000, whole[0].1.clone()));
}

/// The path of a time line is that of the report and of exports, however it is told.
#[test]
fn traces_beyond_the_limits_are_not_read_as_a_whole() {
    let trace = tempfile::tempdir().unwrap();
    to_and_fro(trace.path());
    let limits = Limits {
        whole: 1000,
        replayed: 1000,
    };
    let share = share_of(trace.path(), limits);
    for question in [
        json!({"ask": "messages"}),
        json!({"ask": "path", "width": 700}),
    ] {
        let answer = asked(&share, question).unwrap();
        assert_eq!(answer["is_made"], false);
        let why = answer["why"].as_str().unwrap();
        assert!(
            why.contains("too large") && why.ends_with("--whole-gb"),
            "{why}"
        );
    }
    let why = asked(&share, json!({"ask": "overview"})).unwrap()["no_what_if"].clone();
    assert!(why.as_str().unwrap().ends_with("--what-if-mb"), "{why}");
    let question = json!({"ask": "what_if", "changes": [["without_cause", "1"]]});
    let refused = asked(&share, question).unwrap_err().to_string();
    assert!(refused.ends_with("--what-if-mb"), "{refused}");
}

#[test]
fn the_critical_path_is_that_of_the_report() {
    let trace = tempfile::tempdir().unwrap();
    to_and_fro(trace.path());
    let share = share(trace.path());
    let report = share.report().unwrap().critical_path.as_ref().unwrap();
    let all = path(&share, &json!({"ask": "path", "width": 700}));
    let mut startup = report.startup_s;
    for (at, lane) in all["lanes"].as_array().unwrap().iter().enumerate() {
        // The report leaves start-up out.
        let total = lane["total_s"].as_f64().unwrap();
        let ranks = report.ranks.iter().filter(|one| one.rank == at as u32);
        startup -= total - ranks.map(|one| one.seconds).sum::<f64>();
        let parts = STANDARD.decode(lane["parts"].as_str().unwrap()).unwrap();
        assert_eq!(parts.len(), 700);
        assert_eq!(parts.iter().any(|&part| part > 0), total > 0.0);
    }
    assert!(startup.abs() < 1e-8, "{startup}");
    let (from, until) = (20_000_000, 22_000_000);
    let question = json!({"ask": "path", "from_s": 0.02, "until_s": 0.022, "width": 700});
    let some = path(&share, &question);
    let mut told: Vec<(i64, i64, i64)> = Vec::new();
    for (at, lane) in (0..).zip(some["lanes"].as_array().unwrap()) {
        for stretch in lane["stretches"].as_array().unwrap() {
            let (begin, lasts) = (stretch[0].as_i64().unwrap(), stretch[1].as_i64().unwrap());
            told.push((from + begin, from + begin + lasts, at));
        }
    }
    told.sort_unstable();
    let exported = laggard_export::critical_path(share.events()).unwrap();
    let exported = exported
        .iter()
        .filter(|one| one.from < until && one.until > from);
    let expected: Vec<(i64, i64, i64)> = exported
        .map(|one| {
            (
                one.from.max(from),
                one.until.min(until),
                one.location.into(),
            )
        })
        .collect();
    assert!(expected.len() > 100, "{}", expected.len());
    assert_eq!(told, expected);
}

/// Ten rounds in which rank 2 computes 3 ms, and the others 1 ms, before all meet.
fn late(directory: &Path) {
    const MS: u64 = 1_000_000;
    let mut all = ranks(3);
    for (rank, calls) in all.iter_mut().enumerate() {
        calls.call(1, init(), 0, MS);
        for round in 0..10 {
            let begin = (1 + 4 * round) * MS;
            let enter = begin + if rank == 2 { 3 * MS } else { MS };
            calls.collective(10, number::MPI_Barrier, 0, enter, begin + 4 * MS);
        }
        calls.call(40, finalize(), 42 * MS, 43 * MS);
        calls.write(directory);
    }
}

/// What a page is told of a change is what `laggard what-if` says.
#[test]
fn a_change_gains_what_is_predicted() {
    let trace = tempfile::tempdir().unwrap();
    late(trace.path());
    let share = share(trace.path());
    let gain =
        |changes: &[(&str, &str)]| asked(&share, json!({"ask": "what_if", "changes": changes}));
    let events = Events::open(trace.path()).unwrap();
    let mut gains = Vec::new();
    for changes in [
        &[("without_cause", "1")][..],
        &[("without_cause", "1=0.5")],
        &[("without_cause", "1=0")],
        &[("without_cause", "1=0.5"), ("network", "latency=0.2")],
        &[("speed_up", "rank:2=2")],
    ] {
        let found = gain(changes).unwrap();
        let parsed = changes
            .iter()
            .map(|(kind, words)| laggard_whatif::Change::parse(kind, words).unwrap());
        let scenario = Scenario::new(String::new(), parsed.collect());
        let predicted = predict(&events, Some(share.report().unwrap()), &[scenario]).unwrap();
        let outcome = &predicted.scenarios[0];
        same(&found["time_s"], outcome.time_s);
        same(&found["gain_s"], outcome.gain_s);
        same(&found["gain_percent"], outcome.gain_percent);
        same(&found["recorded_s"], predicted.recorded.time_s);
        gains.push(outcome.gain_s);
    }
    // Without all of it, rank 2 computes as long as the others, but before the first meeting: that is another one.
    let ms: Vec<f64> = gains.iter().map(|gain| gain * 1e3).collect();
    for (gain, expected) in ms.iter().zip([18.0, 9.0, 0.0, 17.0]) {
        assert!((gain - expected).abs() < 1e-6, "{ms:?}");
    }
    let first = share.report().unwrap().root_causes.as_ref().unwrap()[0].gain_s;
    assert!(first.is_none_or(|first| (first - gains[0]).abs() < 1e-9));
    // No question names a file, whatever is in it.
    for wrong in [
        &[("baseline", "/etc/passwd")][..],
        &[("without_cause", "99")],
        &[("without_cause", "1=2")],
        &[],
    ] {
        let error = gain(wrong).unwrap_err().to_string();
        assert!(!error.contains("passwd"), "{error}");
    }
    // Nobody waits for it any more.
    let (_, packed) =
        packed(&json!({"ask": "what_if", "changes": [["without_cause", "1"]]})).unwrap();
    let stop = Stop::default();
    stop.stop();
    assert!(share.part(&packed, &stop).is_err());
    // While a program writes its trace, nothing is replayed.
    let grows = growing(trace.path());
    let error = asked(
        &grows,
        json!({"ask": "what_if", "changes": [["without_cause", "1"]]}),
    );
    assert!(error.unwrap_err().to_string().contains("ended"));
    let nothing = path(&grows, &json!({"ask": "path", "width": 9}));
    assert!(
        nothing["why"].as_str().unwrap().contains("ended"),
        "{nothing}"
    );
}

#[test]
fn ranks_stand_in_their_grid() {
    let trace = tempfile::tempdir().unwrap();
    write(trace.path());
    let share = share(trace.path());
    let listed = asked(&share, json!({"ask": "topology", "metric": "waiting"})).unwrap();
    assert_eq!(
        listed["communicators"],
        json!([{"id": "77", "name": "", "ranks": 6, "dimensions": [[2, false], [3, true]]}])
    );
    assert_eq!(listed["places"], json!([]));
    let of = |metric: &str| {
        asked(
            &share,
            json!({"ask": "topology", "metric": metric, "communicator": "77"}),
        )
        .unwrap()
    };
    for metric in ["waiting", "communication"] {
        let found = of(metric);
        let locations = &share.report().unwrap().locations;
        let places = found["places"].as_array().unwrap();
        assert_eq!(places.len(), RANKS as usize);
        for (at, (place, location)) in places.iter().zip(locations).enumerate() {
            assert_eq!(
                place.as_array().unwrap()[..4],
                [json!(at), json!(at), json!(at), json!(1)]
            );
            let expected = if metric == "waiting" {
                location.wait_s
            } else {
                location.communication_s
            };
            same(&place[4], expected);
        }
    }
    // What ranks send is what the report says, and kinds of waiting add up to all of it.
    let (messages, bytes) = (of("messages"), of("bytes"));
    for (place, location) in share.report().unwrap().locations.iter().enumerate() {
        let sent = &location.traffic.as_ref().unwrap().two_sided;
        assert_eq!(messages["places"][place][4], sent.sends, "{place}");
        assert_eq!(bytes["places"][place][4], sent.sent_bytes, "{place}");
    }
    assert_eq!(messages["total"], 700 * u64::from(RANKS - 1));
    let all = of("waiting");
    let kinds = all["metrics"].as_array().unwrap()[7..].iter();
    let kinds: Vec<f64> = kinds
        .map(|kind| of(kind[0].as_str().unwrap())["total"].as_f64().unwrap())
        .collect();
    assert!(
        kinds.len() > 1 && kinds.iter().all(|time| *time > 0.0),
        "{all}"
    );
    same(&all["total"], kinds.iter().sum());
    assert_eq!(all["partly_counted"], 0);
    assert_eq!(of("late_post")["total"], 0.0);
    let unknown = json!({"ask": "topology", "metric": "late", "communicator": "77"});
    assert!(
        asked(&share, unknown)
            .unwrap_err()
            .to_string()
            .contains("late_sender")
    );
    let wrong = json!({"ask": "topology", "metric": "waiting", "communicator": "x"});
    assert!(asked(&share, wrong).is_err());
    let nobody = json!({"ask": "topology", "metric": "waiting", "communicator": "78"});
    assert!(asked(&share, nobody).unwrap()["shape"].is_null());
}

/// What was recorded is told however much is in sight, and where the trace grows.
#[test]
fn changes_of_the_recording_are_listed() {
    let write = |directory: &Path, rounds: u64| {
        let mut all = ranks(3);
        for (rank, calls) in (0..).zip(&mut all) {
            calls.call(1, init(), 0, US);
            for round in 1..rounds {
                let at = 100 * round * US + rank;
                calls.collective(10, number::MPI_Barrier, 0, at, 100 * round * US + 5 * US);
                // Each rank hears of it in its next round.
                if round % 1000 == 500 + rank {
                    let detail = [Detail::Paused, Detail::Trace][round as usize / 1000 % 2];
                    let change = Signature {
                        operation: STEER,
                        parameter: Change::Detail(Some(detail)).parameter(),
                        ..Signature::default()
                    };
                    calls.call(50, change, at + 6 * US, at + 6 * US);
                }
            }
            calls.call(40, finalize(), 100 * rounds * US, (100 * rounds + 1) * US);
            calls.write(directory);
        }
    };
    let trace = tempfile::tempdir().unwrap();
    write(trace.path(), 2000);
    let all = json!({"ask": "changes"});
    let some = json!({"ask": "changes", "from_s": 0.1, "first": 1, "last": 1});
    let questions = [all.clone(), some];
    let told = answers(1, trace.path(), &questions);
    assert_eq!(told[0]["count"], 6);
    let first = &told[0]["changes"][0];
    assert_eq!(
        (&first["rank"], &first["thread"], &first["change"]),
        (&json!(0), &Value::Null, &json!("paused"))
    );
    same(&first["at_s"], 0.050_006);
    let row = &told[1]["changes"][0];
    assert_eq!((&row["rank"], &row["change"]), (&json!(1), &json!("trace")));
    assert_eq!(told[1]["count"], 1);
    for agents in [2, 3] {
        assert_eq!(answers(agents, trace.path(), &questions), told);
    }
    // Each rank was paused for 0.1 s.
    let answer = |question| asked(&share(trace.path()), question).unwrap();
    let left_out = |question| answer(question)["left_out_s"].clone();
    same(&left_out(json!({"ask": "selection"})), 0.3);
    let some = json!({"ask": "selection", "first": 1, "last": 1, "from_s": 0.1, "until_s": 0.12});
    same(&left_out(some), 0.02);
    // Those of a trace that grows.
    let short = tempfile::tempdir().unwrap();
    write(short.path(), 1200);
    let before = growing(short.path());
    assert_eq!(asked(&before, all.clone()).unwrap()["count"], 3);
    assert_eq!(asked(&growing(trace.path()), all).unwrap(), told[0]);
}

/// A thread that heard a change is named, if its rank has several.
#[test]
fn changes_that_threads_heard_name_them() {
    let trace = tempfile::tempdir().unwrap();
    for thread in 0..2 {
        let mut calls = Calls::new(0, thread, 1);
        let end = (100 + u64::from(thread)) * US;
        if thread == 0 {
            calls.call(1, init(), 0, US);
        }
        let change = Signature {
            operation: STEER,
            parameter: Change::Detail(Some(Detail::Paused)).parameter(),
            ..Signature::default()
        };
        calls.call(50, change, end, end);
        if thread == 0 {
            calls.call(40, finalize(), 200 * US, 201 * US);
        }
        calls.write(trace.path());
    }
    let told = asked(&share(trace.path()), json!({"ask": "changes"})).unwrap();
    let rows = told["changes"].as_array().unwrap().iter();
    let threads: Vec<&Value> = rows.map(|row| &row["thread"]).collect();
    assert_eq!(threads, [&json!(0), &json!(1)]);
}

/// All of the run is what the report says of each location.
fn check_all(share: &Share) {
    for (at, location) in share.report().unwrap().locations.iter().enumerate() {
        let answer = asked(share, json!({"ask": "selection", "first": at, "last": at})).unwrap();
        let times = &answer["times_s"];
        same(&times["computation"], location.computation_s);
        same(&times["communication"], location.communication_s);
        same(&times["synchronization"], location.synchronization_s);
        same(&times["io"], location.io_s);
        same(&times["waiting"], location.wait_s);
    }
}

/// Threads that wait for work are in the report to their end, also after the first one has ended MPI.
#[test]
fn threads_are_told_to_their_end() {
    let trace = tempfile::tempdir().unwrap();
    for (rank, mut calls) in (0..).zip(ranks(2)) {
        calls.call(1, init(), 0, 100 * US);
        calls.collective(10, number::MPI_Barrier, 0, 200 * US, (300 + 50 * rank) * US);
        calls.call(40, finalize(), (400 + 100 * rank) * US, 900 * US);
        calls.write(trace.path());
        let mut thread = Calls::new(rank as u32, 1, 2);
        let idle = Signature {
            operation: number::omp_idle,
            ..Signature::default()
        };
        thread.call(20, idle, 150 * US, 250 * US);
        thread.call(20, idle, 350 * US, 950 * US);
        thread.write(trace.path());
    }
    let share = share(trace.path());
    check_all(&share);
    let all = asked(&share, json!({"ask": "selection"})).unwrap();
    same(
        &all["times_s"]["synchronization"],
        2.0 * 700e-6 + 250e-6 + 100e-6,
    );
}

/// Nobody knows when the calls of a profile were: the page says so, and each part of the run has the mean.
#[test]
fn a_profile_alone_has_no_moments() {
    let trace = tempfile::tempdir().unwrap();
    for mut calls in ranks(2) {
        calls.in_profile(1, init().operation, (1, 100 * US));
        calls.in_profile(10, number::MPI_Send, (100, 500 * US));
        calls.in_profile(20, number::MPI_Barrier, (10, 100 * US));
        calls.ends(1000 * US);
        calls.write(trace.path());
    }
    let share = share(trace.path());
    check_all(&share);
    let overview = asked(&share, json!({"ask": "overview"})).unwrap();
    assert_eq!(overview["unknown_waiting"], "only a profile was recorded");
    let all = asked(&share, json!({"ask": "selection"})).unwrap();
    same(&all["times_s"]["communication"], 2.0 * 500e-6);
    assert_eq!(all["unrecorded_locations"], 2);
    assert_eq!(
        (&all["unread_locations"], &all["profiled_locations"]),
        (&json!(0), &json!(0))
    );
    let (begin, end) = share.index_of(0).measured;
    let middle = (begin + end) as f64 / 2e9;
    let half = asked(&share, json!({"ask": "selection", "until_s": middle})).unwrap();
    let found = half["times_s"]["communication"].as_f64().unwrap();
    assert!((found - 500e-6).abs() < 1e-8, "{half}");
    assert_eq!(
        (&half["unrecorded_locations"], &half["unread_locations"]),
        (&json!(2), &json!(0))
    );
    let line = asked(&share, json!({"ask": "line", "width": 10})).unwrap();
    assert!(line["lanes"][0]["calls"].is_null() && line["lanes"][0]["parts"].is_string());
}

/// Records of a pause are there for other ranks: no view tells of them.
#[test]
fn calls_of_a_pause_do_not_count() {
    const ROUNDS: u64 = 900;
    let trace = tempfile::tempdir().unwrap();
    let mut both = ranks(2);
    for (rank, calls) in both.iter_mut().enumerate() {
        calls.call(1, init(), 0, 50 * US);
        for round in 1..=ROUNDS {
            let at = 100 * round * US;
            let mut signature = match rank {
                0 => send(number::MPI_Send, 1, 5),
                _ => receive(number::MPI_Recv, 0, 5),
            };
            let enter = at + 20 * US * (1 - rank as u64);
            if round % 3 == 1 {
                signature.flags |= flags::PAUSED;
                calls.unprofiled(10, signature, enter, at + 30 * US);
            } else {
                calls.call(10, signature, enter, at + 30 * US);
            }
        }
        let end = 100 * (ROUNDS + 1) * US;
        calls.call(40, finalize(), end, end + US);
        calls.write(trace.path());
    }
    let share = share(trace.path());
    check_all(&share);
    for at in [0, 1] {
        let of = json!({"ask": "selection", "first": at, "last": at});
        let of = asked(&share, of).unwrap();
        assert_eq!(of["profile"][0]["calls"], ROUNDS * 2 / 3, "{of}");
    }
    // Two rounds, one of them in the pause.
    let line = json!({"ask": "line", "width": 10, "from_s": 0.001, "until_s": 0.0012});
    let line = asked(&share, line).unwrap();
    let lanes = line["lanes"].as_array().unwrap();
    let calls = lanes
        .iter()
        .map(|lane| lane["calls"].as_array().unwrap().len());
    assert_eq!(calls.collect::<Vec<_>>(), [1, 1]);
}
