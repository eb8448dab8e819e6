//! Questions about a trace: answers are those of the report, whoever holds which part of the trace.

mod looks;
mod metrics;
mod regions;
mod sampled;
mod views;

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use crate::support::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use laggard_comm::{Job, Serial};
use laggard_engine::AnalyzeOptions;
use laggard_engine::events::Events;
use laggard_overlay::{Head, LinkJob, Members, Reply, Stop, Stream, Wait, Work, link};
use laggard_report::Report;
use laggard_serve::index::{self, Checkpoint, Growing, LocationIndex};
use laggard_serve::questions::LARGEST;
use laggard_serve::{Limits, Question, Share, Shares, answer, server};
use laggard_trace::calls::number;
use laggard_trace::{
    BLOCK_ALIGN, BLOCK_HEADER, BLOCK_MAGIC, BlockHeader, BlockKind, Definition, Dimension,
    FileHeader, Grid, PAGE, Record, file_name,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use zerocopy::{FromBytes, IntoBytes};

const US: u64 = 1000;
const RANKS: u32 = 5;

/// Rank 0 sends late in every round; all meet in a barrier now and then.
fn write(directory: &Path) {
    write_rounds(directory, 700, true);
}

/// Of a run that may not be over yet.
fn write_rounds(directory: &Path, rounds: u64, is_over: bool) {
    let mut r = ranks(RANKS);
    for rank in &mut r {
        rank.call(1, init(), 0, 100 * US);
    }
    for round in 0..rounds {
        let at = (200 + 100 * round) * US;
        for to in 1..RANKS {
            let sent = at + 20 * US + u64::from(to) * US;
            r[0].send(10, to as i32, 5, sent, sent + US / 2);
            r[to as usize].recv(20, 0, 5, at, sent + US);
        }
        if round % 7 == 3 {
            for (at, rank) in (at..).step_by(300).zip(&mut r) {
                rank.collective(30, number::MPI_Barrier, -1, at + 50 * US, at + 60 * US);
            }
        }
    }
    for rank in r.iter_mut().filter(|_| is_over) {
        let at = (rounds + 10) * 100 * US;
        rank.call(40, finalize(), at, at + 500 * US);
    }
    // Two rows of three places: one of them is empty.
    for (at, calls) in (0..).zip(&mut r) {
        let along = |size, coordinate| Dimension {
            size,
            is_periodic: size == 3,
            coordinate,
        };
        calls.define(Definition::Grid(Grid {
            communicator: 0x77,
            dimensions: vec![along(2, at / 3), along(3, at % 3)],
        }));
    }
    r.iter_mut().for_each(|calls| calls.write(directory));
}

fn report(trace: &Path) -> Report {
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    let analysis = laggard_engine::analyze(trace, &options).unwrap();
    analysis.unwrap().report
}

/// With what the head makes of a whole trace.
const WHOLE: Limits = Limits {
    whole: 1 << 30,
    replayed: 1 << 30,
};

fn share(trace: &Path) -> Share {
    share_of(trace, WHOLE)
}

/// If the trace is no larger than `whole`, bytes, with what the head makes of it.
fn share_of(trace: &Path, limits: Limits) -> Share {
    share_with(trace, report(trace), limits)
}

fn share_with(trace: &Path, report: Report, limits: Limits) -> Share {
    let events = Events::open(trace).unwrap();
    Share::new(&Serial, events, Some(report), (trace, limits)).unwrap()
}

fn packed(question: &Value) -> anyhow::Result<(Question, Vec<u8>)> {
    let question: Question = serde_json::from_value(question.clone())?;
    let packed = question.packed()?;
    Ok((question, packed))
}

fn asked(share: &Share, question: Value) -> anyhow::Result<Value> {
    let (question, packed) = packed(&question)?;
    let part = Some(share.part(&packed, &Stop::default())?);
    let missing = Vec::new();
    answer(share, &question, Reply { part, missing })
}

/// Whether a critical path is still looked for.
fn is_under_way(answer: &Value) -> bool {
    answer["is_made"] == false && answer["why"] == ""
}

/// The answers of so many agents, in a tree in which each asks two.
fn answers(count: usize, trace: &Path, questions: &[Value]) -> Vec<Value> {
    let runtime = &server::runtime().unwrap();
    std::thread::scope(|scope| {
        let work = |linked| {
            let job = LinkJob::new(linked);
            let events = Events::open_share(&job, trace).unwrap();
            let report = (job.agent() == 0).then(|| report(trace));
            let share = Share::new(&job, events, report, (trace, WHOLE)).unwrap();
            let shares = std::sync::Arc::new(Shares::new(share));
            let linked = job.into_linked();
            if linked.link.agent() != 0 {
                server::work(runtime, shares, linked);
                return Vec::new();
            }
            let (number, share) = shares.newest();
            let (head, own) = Head::new(linked, shares);
            runtime.spawn(own);
            let stream = Stream {
                members: Members::all(count),
                fan_out: 2,
                wait: Wait::All,
            };
            let of = |question: &Value| {
                let question: Question = serde_json::from_value(question.clone()).unwrap();
                let packed = Shares::packed(number, &question).unwrap();
                loop {
                    let reply = runtime.block_on(head.ask(&stream, &packed));
                    let answer = answer(&share, &question, reply).unwrap();
                    if !is_under_way(&answer) {
                        break answer;
                    }
                }
            };
            let answers = questions.iter().map(of).collect();
            head.end();
            answers
        };
        let threads = link::threads(count).into_iter();
        let threads: Vec<_> = threads
            .map(|linked| scope.spawn(move || work(linked)))
            .collect();
        let mut ended = threads.into_iter().map(|thread| thread.join().unwrap());
        ended.next().unwrap()
    })
}

fn same(found: &Value, expected: f64) {
    let found = found.as_f64().expect("a number");
    assert!((found - expected).abs() < 1e-8, "{found} {expected}");
}

#[test]
fn sums_are_those_of_the_report() {
    let trace = tempfile::tempdir().unwrap();
    write(trace.path());
    let share = share(trace.path());
    let report = share.report().unwrap();
    for (at, location) in report.locations.iter().enumerate() {
        let answer = asked(&share, json!({"ask": "selection", "first": at, "last": at})).unwrap();
        let times = &answer["times_s"];
        same(&times["computation"], location.computation_s);
        same(&times["communication"], location.communication_s);
        same(&times["synchronization"], location.synchronization_s);
        same(&times["waiting"], location.wait_s);
        assert_eq!(answer["unread_locations"], 0);
    }
    let heat = json!({"ask": "heat", "metric": "waiting", "width": 97, "height": 3});
    let heat = asked(&share, heat).unwrap();
    let waiting: f64 = report.locations.iter().map(|one| one.wait_s).sum();
    assert!(waiting > 0.01);
    same(&heat["total"], waiting);
    // Five ranks in three rows.
    assert_eq!(heat["rows"].as_array().unwrap().len(), 3);
    assert_eq!(heat["rows"][0]["label"], "0–1");
    let cells = STANDARD.decode(heat["cells"].as_str().unwrap()).unwrap();
    assert_eq!(cells.len(), 3 * 97);
    let overview = asked(&share, json!({"ask": "overview"})).unwrap();
    let first = &overview["findings"][0];
    assert_eq!(first["severity_s"], report.bottlenecks[0].severity_s);
    assert_eq!(first["late_rank"], 0);
}

#[test]
fn profile_and_matrix_are_those_of_the_report() {
    let trace = tempfile::tempdir().unwrap();
    write(trace.path());
    let share = share(trace.path());
    let report = share.report().unwrap();
    let nodes = &report.call_tree.as_ref().unwrap().nodes;
    for metric in ["time", "waiting", "caused", "calls", "bytes"] {
        let tree = asked(&share, json!({"ask": "tree", "metric": metric, "node": 0})).unwrap();
        let rows = tree["nodes"].as_array().unwrap();
        assert_eq!(rows.len(), nodes.len());
        let amounts = |node: &laggard_report::CallNode| match metric {
            "time" => (node.time_s.inclusive, node.time_s.exclusive),
            "waiting" => (node.waiting_s.inclusive, node.waiting_s.exclusive),
            "caused" => node
                .caused_s
                .as_ref()
                .map_or((0.0, 0.0), |a| (a.inclusive, a.exclusive)),
            "calls" => (node.calls.inclusive as f64, node.calls.exclusive as f64),
            _ => (node.bytes.inclusive as f64, node.bytes.exclusive as f64),
        };
        for (row, node) in rows.iter().zip(nodes) {
            same(&row[4], amounts(node).0);
            same(&row[5], amounts(node).1);
        }
        // Of single ranks, together the whole run.
        let system = tree["system"].as_array().unwrap();
        if !system.is_empty() {
            assert_eq!(system.len(), RANKS as usize);
            let sum: f64 = system.iter().map(|row| row["mean"].as_f64().unwrap()).sum();
            assert!(
                (sum - amounts(&nodes[0]).0).abs() < 1e-6 * sum,
                "{metric}: {sum}"
            );
        }
    }
    // Parts of the time and of the time lost, and root causes, are metrics, each below another one.
    let tree = report.call_tree.as_ref().unwrap();
    let first = asked(&share, json!({"ask": "tree", "metric": "time"})).unwrap();
    let rows = first["metrics"].as_array().unwrap();
    for (at, row) in rows.iter().enumerate() {
        let is_above = |above: &Value| above["id"] == row["parent"];
        assert!(
            row["parent"].is_null() || rows[..at].iter().any(is_above),
            "{row}"
        );
        let told = asked(
            &share,
            json!({"ask": "tree", "metric": row["id"], "node": 0}),
        )
        .unwrap();
        same(&told["nodes"][0][4], row["whole"].as_f64().unwrap());
        // What is at the nodes together is all of it.
        let own = told["nodes"].as_array().unwrap().iter();
        let own: f64 = own.map(|node| node[5].as_f64().unwrap()).sum();
        let whole = row["whole"].as_f64().unwrap();
        assert!((own - whole).abs() <= 1e-6 * whole, "{row}: {own}");
        let system = told["system"].as_array().unwrap();
        let sum: f64 = system.iter().map(|row| row["mean"].as_f64().unwrap()).sum();
        assert!((sum - whole).abs() <= 1e-6 * whole, "{row}: {sum}");
    }
    let whole = |id: &str| {
        let row = rows.iter().find(|row| row["id"] == id);
        row.unwrap_or_else(|| panic!("no {id}"))["whole"]
            .as_f64()
            .unwrap()
    };
    let times = ["computation", "communication", "synchronization"].map(&whole);
    assert!((times.iter().sum::<f64>() - whole("time")).abs() < 1e-6);
    for metric in &tree.metrics {
        assert_eq!(whole(&metric.id), metric.nodes[0].time_s.inclusive);
    }
    for (id, metric) in report
        .metrics
        .iter()
        .filter(|(_, metric)| metric.total_s > 0.0)
    {
        assert!(whole(id) >= metric.total_s - 1e-9, "{id}");
    }
    for root in report.root_causes.as_ref().unwrap() {
        assert!((whole(&root.id) - root.severity_s).abs() < 1e-9);
        let told = asked(&share, json!({"ask": "tree", "metric": root.id})).unwrap();
        let place = told["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .find(|node| node[5] != 0.0)
            .unwrap();
        // There it is among what is caused.
        let caused = tree.nodes[place[0].as_u64().unwrap() as usize]
            .caused_s
            .as_ref()
            .unwrap();
        assert!(
            caused.exclusive >= root.severity_s - 1e-9,
            "{} at {place}",
            root.id
        );
        assert_eq!(told["spread"][3], root.ranks[0].rank);
    }
    let cells = &report.rank_matrix.as_ref().unwrap().cells;
    let matrix = asked(&share, json!({"ask": "matrix", "metric": "messages"})).unwrap();
    same(
        &matrix["whole"],
        cells.iter().map(|cell| cell.messages as f64).sum(),
    );
    assert_eq!(
        matrix["cells"].as_array().unwrap().len(),
        cells.iter().filter(|c| c.messages > 0).count()
    );
    // Rank 0 sends to all, 700 times; the others wait for it.
    let some =
        json!({"ask": "matrix", "metric": "messages", "from_last": 0, "to": 2, "to_last": 3});
    assert_eq!(
        asked(&share, some).unwrap()["cells"],
        json!([[0, 0, 700.0], [0, 1, 700.0]])
    );
    let hosts = asked(
        &share,
        json!({"ask": "matrix", "metric": "messages", "hosts": true}),
    )
    .unwrap();
    assert_eq!(hosts["cells"], json!([[0, 0, 2800.0]]));
    // Rank 2 waits for rank 0 in each round, which waits for nobody but in barriers.
    let meanwhile =
        json!({"ask": "meanwhile", "location": 2, "from_s": 0.0006, "until_s": 0.000_63});
    let meanwhile = asked(&share, meanwhile).unwrap();
    same(&meanwhile["wait"]["lost_s"], 22e-6);
    assert_eq!(meanwhile["wait"]["late_location"], 0);
    let nobody = json!({"ask": "meanwhile", "location": 0, "from_s": 0.0006, "until_s": 0.000_63});
    assert!(asked(&share, nobody).unwrap()["wait"].is_null());
    // Each call that is listed is in the histogram.
    let selection = asked(&share, json!({"ask": "selection", "first": 1, "last": 2})).unwrap();
    let count = |rows: &Value, key: &dyn Fn(&Value) -> u64| -> u64 {
        rows.as_array().unwrap().iter().map(key).sum()
    };
    let calls = count(&selection["profile"], &|row| row["calls"].as_u64().unwrap());
    assert_eq!(
        count(&selection["durations_s"], &|row| row[2].as_u64().unwrap()),
        calls
    );
}

/// A selection of all of the run is the report's matrix; parts of it add up.
#[test]
fn the_matrix_of_a_selection_is_what_is_in_it() {
    let trace = tempfile::tempdir().unwrap();
    write(trace.path());
    let share = share(trace.path());
    let of = |metric: &str, selection: Value| {
        let question = json!({"ask": "matrix", "metric": metric, "selection": selection});
        let answer = asked(&share, question).unwrap();
        assert_eq!(answer["exact"], true);
        answer
    };
    for metric in ["messages", "bytes", "waiting"] {
        let run = asked(&share, json!({"ask": "matrix", "metric": metric})).unwrap();
        let all = of(metric, json!({}));
        same(&all["whole"], run["whole"].as_f64().unwrap());
        // The report shares a wait among all who were late; here it counts for one of them.
        if metric != "waiting" {
            assert_eq!(all["cells"], run["cells"]);
        }
        let early = of(metric, json!({"until_s": 0.035}));
        let late = of(metric, json!({"from_s": 0.035}));
        let whole = |answer: &Value| answer["whole"].as_f64().unwrap();
        same(&all["whole"], whole(&early) + whole(&late));
        assert!(whole(&early) > 0.3 * whole(&all) && whole(&late) > 0.3 * whole(&all));
    }
    // Ten rounds begin within a millisecond; rank 0 alone sends, rank 2 waits for it.
    let selection = json!({"from_s": 0.0102, "until_s": 0.0112, "first": 0, "last": 0});
    assert_eq!(
        of("messages", selection)["cells"],
        json!([[0, 1, 10.0], [0, 2, 10.0], [0, 3, 10.0], [0, 4, 10.0]])
    );
    let selection = json!({"from_s": 0.0102, "until_s": 0.0112, "first": 2, "last": 2});
    assert_eq!(of("messages", selection.clone())["cells"], json!([]));
    let waits = of("waiting", selection);
    assert_eq!(waits["cells"][0][0], 2);
    assert_eq!(waits["cells"][0][1], 0);
}

#[test]
fn parts_of_the_run_add_up_to_it() {
    let trace = tempfile::tempdir().unwrap();
    write(trace.path());
    let share = share(trace.path());
    let times = |from: f64, until: f64| {
        let question = json!({"ask": "selection", "from_s": from, "until_s": until});
        asked(&share, question).unwrap()["times_s"].clone()
    };
    let end = share.events().end_ns() as f64 / 1e9;
    let cuts = [0.0, 0.000_25, 0.012_345_6, 0.012_345_7, 0.05, end];
    for kind in ["computation", "communication", "synchronization", "waiting"] {
        let parts = cuts
            .windows(2)
            .map(|cut| times(cut[0], cut[1])[kind].as_f64());
        let sum: f64 = parts.map(|part| part.unwrap()).sum();
        let whole = times(0.0, end)[kind].as_f64().unwrap();
        assert!((sum - whole).abs() < 1e-7, "{kind}: {sum} {whole}");
    }
}

#[test]
fn a_time_line_goes_down_to_single_calls() {
    let trace = tempfile::tempdir().unwrap();
    write(trace.path());
    let share = share(trace.path());
    let few = json!({"ask": "line", "from_s": 0.0006, "until_s": 0.0008, "width": 100});
    let few = asked(&share, few).unwrap();
    let lane = &few["lanes"][2];
    let calls = lane["calls"].as_array().unwrap();
    // Two rounds of 100 µs.
    assert_eq!(calls.len(), 2, "{lane}");
    let name = calls[0][4].as_u64().unwrap() as usize;
    assert_eq!(few["texts"][name], "MPI_Recv");
    assert_eq!((&calls[0][1], &calls[0][2]), (&json!(0), &json!(23_000)));
    let waits = lane["waits"].as_array().unwrap();
    assert_eq!((&waits[0][1], &waits[0][3]), (&json!(22_000), &json!(0)));
    let call = json!({
        "ask": "call", "location": 2, "number": calls[0][0], "at_s": 0.000_601,
    });
    let call = asked(&share, call).unwrap();
    assert_eq!(
        (&call["call"], &call["from_rank"]),
        (&json!("MPI_Recv"), &json!(0))
    );
    assert_eq!(call["waits"][0]["late_call"], "MPI_Send");
    same(&call["waits"][0]["lost_s"], 22e-6);
    let all = asked(&share, json!({"ask": "line", "width": 100})).unwrap();
    assert_eq!(all["lanes"].as_array().unwrap().len(), RANKS as usize);
    let parts = all["lanes"][1]["parts"].as_str().unwrap();
    assert_eq!(STANDARD.decode(parts).unwrap().len(), 500);
}

#[test]
fn answers_do_not_depend_on_the_number_of_agents() {
    let trace = tempfile::tempdir().unwrap();
    write(trace.path());
    let questions = [
        json!({"ask": "heat", "metric": "communication", "width": 50, "height": 2}),
        json!({"ask": "heat", "metric": "bytes", "width": 40, "height": 3}),
        json!({"ask": "alike", "metric": "waiting", "width": 40, "height": 3}),
        json!({"ask": "alike", "metric": "messages", "width": 40, "height": 9, "until_s": 0.03}),
        json!({"ask": "course", "metric": "late_sender", "width": 50, "first": 1}),
        json!({"ask": "course", "metric": "messages", "width": 20}),
        json!({"ask": "line", "from_s": 0.02, "until_s": 0.03, "width": 80}),
        json!({"ask": "selection", "from_s": 0.013, "until_s": 0.037, "first": 1}),
        json!({"ask": "call", "location": 3, "number": 1, "at_s": 0.000_21}),
        json!({"ask": "tree", "metric": "waiting", "node": 1}),
        json!({"ask": "matrix", "metric": "bytes", "from": 1}),
        json!({"ask": "matrix", "metric": "waiting", "hosts": true}),
        json!({"ask": "matrix", "metric": "messages", "selection": {"from_s": 0.02, "first": 0}}),
        json!({"ask": "matrix", "metric": "waiting", "selection": {"until_s": 0.03, "last": 3}}),
        json!({"ask": "meanwhile", "location": 2, "from_s": 0.02, "until_s": 0.03}),
        json!({"ask": "overview"}),
        json!({"ask": "selection", "from_s": 0.013, "functions": "recv"}),
        json!({"ask": "path", "width": 300}),
        json!({"ask": "messages", "from_s": 0.02, "until_s": 0.03}),
        json!({"ask": "path", "from_s": 0.02, "until_s": 0.03, "first": 1, "width": 300}),
        json!({"ask": "what_if", "changes": [["without_cause", "1=0.5"], ["network", "latency=0"]]}),
        json!({"ask": "topology", "metric": "waiting"}),
        json!({"ask": "topology", "metric": "waiting", "communicator": "77", "from_s": 0.01}),
    ];
    let index = trace.path().join("laggard.index");
    let of = |count: usize| {
        // Each number of agents makes its own index, and reads it.
        let _ = fs::remove_file(&index);
        let made = answers(count, trace.path(), &questions);
        let bytes = fs::read(&index).unwrap();
        assert_eq!(made, answers(count, trace.path(), &questions));
        assert_eq!(bytes, fs::read(&index).unwrap());
        (made, bytes)
    };
    let alone = of(1);
    for answer in &alone.0 {
        assert!(answer["missing"].is_null(), "{answer}");
    }
    assert!(alone == of(2));
    assert!(alone == of(3));
    // More than there are ranks.
    assert!(alone == of(8));
}

#[test]
fn the_index_is_what_the_calls_add_up_to() {
    let trace = tempfile::tempdir().unwrap();
    write(trace.path());
    let share = share(trace.path());
    for at in 0..share.locations() {
        let index = share.index_of(at);
        assert!(index.checkpoints.len() > 2);
        for checkpoint in &index.checkpoints {
            let mut inside = 0;
            share.events().operations(at).read(|call| {
                if call.leave <= checkpoint.time && call.enter >= index.measured.0 {
                    inside += call.inside;
                }
                ControlFlow::Continue(())
            });
            let cut = (checkpoint.time == index.measured.1) as i64 * 500_000;
            let sum: i64 = checkpoint.inside.iter().sum();
            assert!((inside - sum).abs() <= cut, "{inside} {sum}");
        }
        assert!(index.has_all_waits() || index.waits.all().len() >= 64);
    }
}

/// What is known of a trace that is still written.
fn growing(trace: &Path) -> Share {
    let events = Events::open(trace).unwrap();
    let index = index::build(&Serial, &events).unwrap();
    Share::growing(events, index, None)
}

/// The file as its writer has it after `part` of 16 of its records.
fn so_far(whole: &[u8], part: usize) -> Vec<u8> {
    let header = |at: usize| BlockHeader::read_from_bytes(whole.get(at..at + BLOCK_HEADER)?).ok();
    let mut blocks = Vec::new();
    let mut at = size_of::<FileHeader>();
    while let Some(block) = header(at).filter(|block| block.magic == BLOCK_MAGIC) {
        blocks.push((at + BLOCK_HEADER, block));
        at = (at + BLOCK_HEADER + block.length as usize).next_multiple_of(BLOCK_ALIGN);
    }
    let is_records = |block: &BlockHeader| block.kind == BlockKind::Records as u16;
    let records = blocks.iter().filter(|(_, block)| is_records(block));
    let mut left = records
        .map(|(_, block)| block.count as usize)
        .sum::<usize>()
        * part
        / 16;
    let mut bytes = whole[..size_of::<FileHeader>()].to_vec();
    for (at, mut block) in blocks {
        let kept = match is_records(&block) {
            true => left.min(block.count as usize),
            false => block.count as usize,
        };
        left -= if is_records(&block) { kept } else { 0 };
        let mut payload = whole[at..at + block.length as usize].to_vec();
        let is_open = kept < block.count as usize;
        if is_open {
            (block.flags, block.checksum, block.count) = (0, 0, 0);
            payload[kept * size_of::<Record>()..].fill(0);
        }
        bytes.extend(block.as_bytes());
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(BLOCK_ALIGN), 0);
        if is_open {
            break;
        }
    }
    bytes.resize(bytes.len().next_multiple_of(PAGE) + PAGE, 0);
    bytes
}

/// A trace of some thousand calls, as it is after so many of 16 parts: files are read as they are, so each
/// state has its own.
fn states(parts: &[usize]) -> Vec<tempfile::TempDir> {
    let whole = tempfile::tempdir().unwrap();
    write_rounds(whole.path(), 3000, false);
    let names = (0..RANKS).map(|rank| file_name(rank, 0));
    let files: Vec<_> = names
        .map(|name| (fs::read(whole.path().join(&name)).unwrap(), name))
        .collect();
    let state = |&part: &usize| {
        let trace = tempfile::tempdir().unwrap();
        for (at, (file, name)) in files.iter().enumerate() {
            // One rank is ahead of the others.
            let part = if at == 2 { part + 1 } else { part };
            fs::write(trace.path().join(name), so_far(file, part)).unwrap();
        }
        trace
    };
    parts.iter().map(state).collect()
}

/// The indexes that so many agents have, state by state, of all locations.
fn grown(agents: usize, states: &[tempfile::TempDir], most: u64) -> Vec<Vec<LocationIndex>> {
    let of_agent = |linked| {
        let job = LinkJob::new(linked);
        let mut growing = Growing::new(most);
        let indexes = states.iter().enumerate().map(|(at, state)| {
            let events = growing.open(&job, state.path()).unwrap();
            assert_eq!(growing.has_gone_on(), at > 0);
            growing.index(&job, &events).unwrap().locations
        });
        indexes.collect::<Vec<_>>()
    };
    let parts: Vec<_> = std::thread::scope(|scope| {
        let agents = link::threads(agents).into_iter();
        let agents: Vec<_> = agents
            .map(|linked| scope.spawn(move || of_agent(linked)))
            .collect();
        let joined = agents.into_iter().map(|agent| agent.join().unwrap());
        joined.collect()
    });
    let of_state = |at: usize| parts.iter().flat_map(move |states| states[at].clone());
    (0..states.len()).map(|at| of_state(at).collect()).collect()
}

/// What is known of a trace that grows is what is known of it as a whole, however many agents add to it. Waits of
/// the last calls may be known later.
#[test]
fn an_index_grows() {
    let states = states(&[1, 2, 2, 3, 9, 15, 15]);
    for agents in [1, 2, 3] {
        let grown = grown(agents, &states, u64::MAX);
        for (at, (state, grown)) in states.iter().zip(&grown).enumerate() {
            let events = Events::open(state.path()).unwrap();
            let made = index::build(&Serial, &events).unwrap().locations;
            let ends = made.iter().filter_map(|one| one.checkpoints.last());
            let settled = ends.map(|last| last.time).min().unwrap() / 10 * 9;
            assert_eq!(grown.len(), made.len());
            for (rank, (grown, made)) in grown.iter().zip(&made).enumerate() {
                let of = format!("{agents} agents, state {at}, rank {rank}");
                let times = |of: &LocationIndex| -> Vec<_> {
                    let all = of.checkpoints.iter();
                    all.map(|one| (one.time, one.inside)).collect()
                };
                assert_eq!(times(grown), times(made), "{of}");
                assert_eq!(grown.measured, made.measured, "{of}");
                for (grown, made) in grown.checkpoints.iter().zip(&made.checkpoints) {
                    assert!(grown.waiting <= made.waiting, "{of}");
                    let is_known = grown.waiting == made.waiting;
                    assert!(is_known || made.time > settled, "{of}: {grown:?} {made:?}");
                }
            }
        }
    }
}

/// Memory is bounded, however long a run is followed.
#[test]
fn an_index_of_a_trace_beyond_a_limit_is_coarser() {
    let states = states(&[4, 8, 15]);
    let most = 20;
    let bytes = most as u64 * index::CALLS * size_of::<Record>() as u64;
    let fine = &grown(1, &states, u64::MAX)[2];
    let coarse = &grown(1, &states, bytes)[2];
    let sum = |of: &[LocationIndex]| of.iter().map(|one| one.checkpoints.len()).sum::<usize>();
    let (all, kept) = (sum(fine), sum(coarse));
    let bounded = most + 3 * coarse.len();
    assert!(all > bounded && kept <= bounded, "{kept} of {all}");
    for (coarse, fine) in coarse.iter().zip(fine) {
        assert!(coarse.between() > index::CALLS);
        let last = coarse.checkpoints.last().unwrap();
        assert_eq!(last, fine.checkpoints.last().unwrap());
        let is_fine = |one: &Checkpoint| fine.checkpoints.contains(one);
        assert!(coarse.checkpoints.iter().all(is_fine));
    }
}

#[test]
fn an_index_is_kept_and_made_anew_where_it_must_be() {
    let trace = tempfile::tempdir().unwrap();
    write(trace.path());
    let first = share(trace.path());
    let path = trace.path().join("laggard.index");
    assert_eq!(first.kept.as_ref(), Some(&path));
    let bytes = fs::read(&path).unwrap();
    let index = |share: &Share| -> Vec<_> {
        (0..share.locations())
            .map(|at| share.index_of(at).clone())
            .collect()
    };
    assert_eq!(index(&share(trace.path())), index(&first));
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 4;
    for wrong in [
        &damaged[..],
        &bytes[..bytes.len() - 1],
        b"",
        b"something else",
    ] {
        fs::write(&path, wrong).unwrap();
        assert_eq!(index(&share(trace.path())), index(&first));
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
    // A trace that is cut off underneath is not read on.
    let file = first.events().files().next().unwrap().to_owned();
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let error = asked(&first, json!({"ask": "selection"}))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("has changed") && error.contains("serve again"),
        "{error}"
    );
    assert_ne!(index(&share(trace.path())), index(&first));
}

#[test]
fn an_archive_answers_as_its_trace_does() {
    let trace = tempfile::tempdir().unwrap();
    write(trace.path());
    let own = share(trace.path());
    let events = Events::open(trace.path()).unwrap();
    let output = trace.path().join("archive");
    let anchor = laggard_export::otf2(events, &output, None).unwrap();
    let imported = share(&anchor);
    let question = json!({"ask": "selection", "from_s": 0.013, "until_s": 0.037});
    let times = |share: &Share| asked(share, question.clone()).unwrap()["times_s"].clone();
    assert_eq!(times(&imported), times(&own));
    let kept = anchor.parent().unwrap().join("laggard.index");
    assert_eq!(imported.kept, Some(kept.clone()));
    // Another archive may have the same names and sizes.
    let before = fs::read(&kept).unwrap();
    let file = fs::File::options().append(true).open(&anchor).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    assert!(imported.check().is_err());
    share(&anchor);
    assert_ne!(fs::read(&kept).unwrap(), before);
}

#[test]
fn questions_that_nobody_waits_for_end() {
    let trace = tempfile::tempdir().unwrap();
    write(trace.path());
    let share = share(trace.path());
    let (_, packed) = packed(&json!({"ask": "selection"})).unwrap();
    let stop = Stop::default();
    stop.stop();
    let error = share.part(&packed, &stop).unwrap_err();
    assert!(error.is::<laggard_overlay::Stopped>());
}

fn odd() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        Just(json!(null)),
        (-1.0..1.0f64).prop_map(|part| json!(part)),
        any::<f64>().prop_map(|any| json!(any)),
        any::<i64>().prop_map(|any| json!(any)),
        (0..8usize).prop_map(|at| json!(at)),
        Just(json!("text")),
    ];
    let name = prop_oneof![
        Just("heat"),
        Just("alike"),
        Just("course"),
        Just("line"),
        Just("selection"),
        Just("call"),
        Just("overview"),
        Just("tree"),
        Just("matrix"),
        Just("meanwhile"),
        Just("changes"),
        Just("path"),
        Just("messages"),
        Just("what_if"),
        Just("topology"),
        Just("other"),
    ];
    let metric = prop_oneof![Just("waiting"), Just("bytes"), Just("io"), Just("x")];
    (name, metric, proptest::collection::vec(number, 9)).prop_map(|(ask, metric, n)| {
        json!({
            "ask": ask, "metric": metric, "from_s": n[0], "until_s": n[1], "first": n[2],
            "last": n[3], "width": n[4], "height": n[5], "location": n[6], "number": n[7],
            "at_s": n[8], "node": n[2], "hosts": n[1].is_null(), "from": n[3], "to_last": n[6],
            "selection": {"from_s": n[1], "until_s": n[0], "last": n[2]},
            "communicator": if n[3].is_null() { json!("77") } else { n[3].clone() },
            "functions": if n[4].is_null() { json!("recv") } else { json!("") },
            "changes": [["without_cause", format!("1={}", n[0])], ["speed_up", "rank:0=2"]],
        })
    })
}

#[test]
fn odd_questions_are_answered_or_refused() {
    let trace = tempfile::tempdir().unwrap();
    write(trace.path());
    let share = share(trace.path());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let asks = |question: Value| {
        if let Ok(answer) = asked(&share, question) {
            prop_assert!(answer.to_string().len() <= LARGEST);
        }
        Ok(())
    };
    runner.run(&odd(), asks).unwrap();
    // The largest that one may ask for.
    let wide = u32::MAX;
    for question in [
        json!({"ask": "heat", "metric": "waiting", "width": wide, "height": wide}),
        json!({"ask": "heat", "metric": "bytes", "width": wide, "height": wide}),
        json!({"ask": "alike", "metric": "waiting", "width": wide, "height": wide}),
        json!({"ask": "alike", "metric": "bytes", "width": wide, "height": 1}),
        json!({"ask": "course", "metric": "bytes", "width": wide}),
        json!({"ask": "sampled", "apart": wide, "width": wide}),
        json!({"ask": "line", "width": wide}),
        json!({"ask": "line", "width": wide, "until_s": 0.02}),
        json!({"ask": "selection"}),
    ] {
        let answer = asked(&share, question).unwrap();
        assert!(answer.to_string().len() <= LARGEST);
    }
}
