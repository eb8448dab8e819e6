//! Time lines: the critical path and the flows on them, read back; root causes in archives.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use flate2::read::GzDecoder;

use crate::support::*;
use laggard_engine::AnalyzeOptions;
use laggard_engine::events::Events;
use laggard_export::Choice;
use laggard_perfetto::message::{self, event_type};
use laggard_report::Report;
use laggard_trace::calls::number;
use laggard_trace::{Signature, WORLD, flags};
use prost::Message;

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
        // The report leaves start-up out.
        for share in &known.ranks {
            *ranks.get_mut(&share.rank).expect("on the path") -= ns(share.seconds);
        }
        assert!(ranks.values().all(|&time| time >= 0), "{at}: {path:?}");
        let startup: i64 = ranks.values().sum();
        assert_eq!(startup, ns(known.startup_s), "{at}: {path:?}");
    }
}

/// A slice, or a mark, of a time line.
#[derive(Clone, Debug, Default)]
struct Slice {
    /// Names of its track and the track above.
    track: String,
    above: String,
    category: String,
    name: String,
    begin: u64,
    end: u64,
    from: Vec<u64>,
    to: Vec<u64>,
}

/// The slices of a time line.
fn slices(file: &Path) -> Vec<Slice> {
    let mut bytes = Vec::new();
    let mut file = GzDecoder::new(File::open(file).expect("a time line"));
    file.read_to_end(&mut bytes).expect("a whole file");
    let trace = message::Trace::decode(&bytes[..]).expect("packets");
    let (mut names, mut categories) = (HashMap::new(), HashMap::new());
    let mut tracks: HashMap<u64, (String, u64)> = HashMap::new();
    let mut open: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut slices: Vec<Slice> = Vec::new();
    for packet in trace.packet {
        if let Some(texts) = packet.interned_data {
            let named = |one: message::Interned| (one.iid(), one.text().to_owned());
            names.extend(texts.event_names.into_iter().map(named));
            categories.extend(texts.event_categories.into_iter().map(named));
        }
        if let Some(track) = packet.track_descriptor {
            let name = track.name().to_owned();
            tracks.insert(track.uuid(), (name, track.parent_uuid()));
        }
        let Some(event) = packet.track_event else {
            continue;
        };
        let (time, uuid) = (packet.timestamp.expect("a time"), event.track_uuid());
        match event.r#type() {
            event_type::SLICE_END => {
                let at = open.get_mut(&uuid).and_then(Vec::pop).expect("a begin");
                slices[at].end = time;
                continue;
            }
            event_type::SLICE_BEGIN => open.entry(uuid).or_default().push(slices.len()),
            event_type::INSTANT => {}
            _ => continue,
        }
        let (track, above) = tracks[&uuid].clone();
        let above = tracks.get(&above).map(|(name, _)| name.clone());
        slices.push(Slice {
            track,
            above: above.unwrap_or_default(),
            category: categories[&event.category_iids[0]].clone(),
            name: names[&event.name_iid()].clone(),
            begin: time,
            end: time,
            from: event.flow_ids,
            to: event.terminating_flow_ids,
        });
    }
    slices
}

/// Who starts whose waits, by the arrows: the rank of the root cause, its name and how many waits of
/// which rank, at their begin or as a mark.
fn arrows(slices: &[Slice]) -> BTreeMap<(String, String, String, String), usize> {
    let mut ways = BTreeMap::new();
    for root in slices.iter().filter(|one| one.category == "root cause") {
        assert_eq!(root.track, "root causes");
        for flow in &root.from {
            let mut ends = slices.iter().filter(|one| one.to.contains(flow));
            let (end, more) = (ends.next().expect("an end"), ends.next());
            assert!(more.is_none() && root.begin < end.begin, "{root:?} {end:?}");
            // Nobody waits for itself.
            assert_ne!(root.above, end.track, "{root:?} {end:?}");
            let rank = root.above.clone();
            let way = (
                rank,
                root.name.clone(),
                end.track.clone(),
                end.category.clone(),
            );
            *ways.entry(way).or_default() += 1;
        }
    }
    ways
}

fn time_line(trace: fn() -> Vec<Calls>) -> (Report, Vec<Slice>) {
    let directory = tempfile::tempdir().expect("a directory");
    let report = write(trace(), directory.path());
    let events = Events::open(directory.path()).expect("a trace");
    let file = directory.path().join("line");
    laggard_export::perfetto(&events, &report, &Choice::default(), &file).expect("a time line");
    (report, slices(&file))
}

#[test]
fn arrows_lead_from_the_root_cause_to_all_waits_of_a_chain() {
    let (_, slices) = time_line(chain);
    let ways = arrows(&slices);
    let to = |victim: &str| {
        let of = ways.iter().filter(|((.., track, _), _)| track == victim);
        of.map(|((rank, name, _, category), count)| (&**rank, &**name, &**category, *count))
            .collect::<Vec<_>>()
    };
    for victim in ["rank 1", "rank 2", "rank 3"] {
        let found = to(victim);
        assert!(
            found.contains(&("rank 0", "rc1: computation", "wait", 1)),
            "{victim}: {ways:#?}"
        );
    }
}

/// Rank 1 is late for rank 2: it waited 10 ms for rank 0, and then worked for 80 ms.
fn who_worked() -> Vec<Calls> {
    let mut all = begun(3);
    all[0].send(10, 1, 5, 20 * MS, 21 * MS);
    all[1].recv(20, 0, 5, 10 * MS, 21 * MS);
    all[1].send(30, 2, 5, 100 * MS, 101 * MS);
    all[2].recv(40, 1, 5, 10 * MS, 101 * MS);
    end(&mut all, &[102, 102, 102]);
    all
}

/// A chain ends at whom worked longer than it waited.
#[test]
fn a_chain_ends_at_the_work() {
    let (_, slices) = time_line(who_worked);
    let ways = arrows(&slices);
    let of: Vec<_> = ways.keys().filter(|way| way.2 == "rank 2").collect();
    assert_eq!(of.len(), 1, "{ways:#?}");
    assert_eq!(of[0].0, "rank 1");
    // Rank 2 began to wait before rank 1 began to work.
    assert_eq!(of[0].3, "start");
}

/// What was waited for before a barrier starts nothing after it.
fn two_phases() -> Vec<Calls> {
    let mut all = begun(3);
    all[0].send(10, 1, 5, 90 * MS, 91 * MS);
    all[1].recv(20, 0, 5, 10 * MS, 91 * MS);
    for rank in &mut all {
        rank.collective(50, number::MPI_Barrier, -1, 100 * MS, 101 * MS);
    }
    all[1].send(30, 2, 5, 130 * MS, 131 * MS);
    all[2].recv(40, 1, 5, 102 * MS, 131 * MS);
    end(&mut all, &[140, 140, 140]);
    all
}

#[test]
fn a_chain_ends_where_the_two_met() {
    let (_, slices) = time_line(two_phases);
    let ways = arrows(&slices);
    let of = |victim: &str| -> Vec<String> {
        let of = ways.keys().filter(|way| way.2 == victim);
        of.map(|way| way.0.clone()).collect()
    };
    assert_eq!(of("rank 1"), ["rank 0"], "{ways:#?}");
    assert_eq!(of("rank 2"), ["rank 1"], "{ways:#?}");
}

/// The path is drawn on its own track, and leads to the ranks' calls.
#[test]
fn the_critical_path_is_a_track() {
    let (report, slices) = time_line(chain);
    let path: Vec<&Slice> = slices
        .iter()
        .filter(|one| one.track == "critical path")
        .collect();
    let ranks: Vec<&str> = path.iter().map(|one| &*one.name).collect();
    assert_eq!(ranks, ["rank 0", "rank 1", "rank 2", "rank 3"]);
    let length: u64 = path.iter().map(|one| one.end - one.begin).sum();
    let known = report.critical_path.expect("a critical path").length_s;
    assert_eq!(length, (known * 1e9).round() as u64);
    for stretch in path {
        let [flow] = stretch.from[..] else {
            panic!("{stretch:?}");
        };
        let call = slices.iter().find(|one| one.to.contains(&flow));
        let call = call.expect("a call");
        assert_eq!(call.track, stretch.name);
        assert!(stretch.begin < call.begin && call.begin <= stretch.end);
    }
}

/// An archive marks a root cause where its rank did it longest.
#[test]
fn an_archive_marks_the_longest_stretch() {
    let directory = tempfile::tempdir().expect("a directory");
    let report = write(chain(), directory.path());
    let events = Events::open(directory.path()).expect("a trace");
    let output = directory.path().join("otf2");
    let anchor = laggard_export::otf2(events, &output, Some(&report)).expect("an archive");
    let marked = Command::new("otf2-marker").arg(anchor).output();
    let marked = String::from_utf8(marked.expect("otf2-marker").stdout).expect("text");
    let said = marked.lines().find(|line| line.contains("rc1: "));
    let said = said.expect("a marker");
    // From the end of the start-up at 4 ms to the send at 100 ms; the run begins at 0.75 ms.
    let expected = "Time: 3250000, Duration 96000000, Scope: LOCATION:0,";
    assert!(said.contains(expected), "{marked}");
}
