//! Traces written as OTF2 archives, and read again.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::*;
use laggard_engine::AnalyzeOptions;
use laggard_engine::events::{Calls, Events, Item, Trace};
use laggard_report::Report;
use laggard_trace::calls::number;
use laggard_trace::{Definition, PEER_ANY, Signature, TAG_ANY, WORLD, flags};

const MS: u64 = 1_000_000;

fn report(trace: &Path) -> Report {
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    laggard_engine::analyze(trace, &options)
        .unwrap()
        .unwrap()
        .report
}

/// Three ranks with all kinds of requests and collectives.
fn write_trace(directory: &Path) {
    let mut r = ranks(3);
    for rank in &mut r {
        let init = Signature {
            operation: number::MPI_Init,
            flags: flags::COLLECTIVE,
            group: WORLD,
            ..Signature::default()
        };
        rank.call(1, init, 0, MS);
    }
    // Blocking, late by 50 ms; then with requests, one of them a wildcard.
    r[0].send(10, 1, 5, 60 * MS, 61 * MS);
    r[1].recv(20, 0, 5, 10 * MS, 62 * MS);
    let any = r[1].irecv(21, PEER_ANY, TAG_ANY, 70 * MS);
    let known = r[1].irecv(22, 2, 7, 71 * MS);
    let sent = r[2].isend(30, 1, 7, 90 * MS);
    r[0].send(11, 1, 6, 80 * MS, 81 * MS);
    r[1].waitall(23, &[(any, Some((0, 6))), (known, None)], 72 * MS, 95 * MS);
    r[2].waitall(31, &[(sent, None)], 91 * MS, 96 * MS);
    // A persistent receive.
    let mut start = receive(number::MPI_Start, 0, 9);
    start.flags |= flags::POSTS | flags::PERSISTENT;
    r[1].call(24, start, 100 * MS, 100 * MS + 1);
    let started = r[1].posts() - 1;
    r[1].waitall(25, &[(started, None)], 101 * MS, 131 * MS);
    r[0].send(12, 1, 9, 130 * MS, 131 * MS);
    for (rank, enter) in [(0, 140), (1, 150), (2, 170)] {
        r[rank].collective(40, number::MPI_Barrier, -1, enter * MS, 171 * MS);
        r[rank].collective(41, number::MPI_Bcast, 2, (40 + enter) * MS, 215 * MS);
        r[rank].collective(42, number::MPI_Finalize, -1, 220 * MS, 221 * MS);
    }
    r.iter_mut().for_each(|calls| calls.write(directory));
}

/// Pattern, operation, line, calls, instances, ns, ranks of each finding.
fn findings(report: &Report) -> Vec<String> {
    let rows = report.bottlenecks.iter().map(|b| {
        let ns = (b.severity_s * 1e9).round();
        let (place, causes) = (&b.location, b.causes.iter().map(|cause| cause.rank));
        format!(
            "{} {} {}:{} {} {} {ns} {:?} {:?}",
            b.pattern,
            b.operation,
            place.file,
            place.line,
            b.calls,
            b.instances,
            b.ranks.iter().map(|share| share.rank).collect::<Vec<_>>(),
            causes.collect::<Vec<_>>()
        )
    });
    let mut rows: Vec<String> = rows.collect();
    rows.sort();
    rows
}

fn otf2(trace: &Path, output: &Path, report: Option<&Report>) -> anyhow::Result<PathBuf> {
    laggard_export::otf2(Events::open(trace)?, output, report)
}

/// Enter and leave of all calls of a rank, ns.
fn times(trace: &Path, rank: usize) -> Vec<(i64, i64)> {
    let opened = Trace::open(trace).unwrap();
    let traced = &opened.locations[rank];
    let mut times = Vec::new();
    Calls::new(&traced.location).read(|item| {
        if let Item::Call(_, event, _) = item {
            times.push((traced.ns(event.enter), traced.ns(event.leave)));
        }
        ControlFlow::Continue(())
    });
    times
}

/// A message seems to arrive before it was sent, by the clocks of the two hosts as measured: the
/// records as they are, an archive of them and the report have the same times.
#[test]
fn an_archive_has_the_corrected_clocks() {
    let directory = tempfile::tempdir().unwrap();
    let (trace, output) = (
        directory.path().join("trace"),
        directory.path().join("otf2"),
    );
    std::fs::create_dir(&trace).unwrap();
    let names = |host| ["app.c", "work", "./app", host];
    let behind = -(5 * MS as i64);
    let mut r = [
        crate::support::Calls::named(0, 0, 2, names("n1")),
        crate::support::Calls::elsewhere(1, 0, 2, names("n2"), (2, behind)),
    ];
    for at in [10, 100, 200] {
        r[0].send(10, 1, 5, (at + 50) * MS, (at + 51) * MS);
        r[1].recv(20, 0, 5, at * MS, (at + 52) * MS);
    }
    r.iter_mut().for_each(|calls| calls.write(&trace));
    let before = report(&trace);
    let violations = before.run.clock_violations.as_ref().expect("violations");
    assert_eq!(
        (violations.before.messages, violations.after.messages),
        (3, 0)
    );
    let sent_before_received = |trace: &Path| {
        let (sent, received) = (times(trace, 0), times(trace, 1));
        let both = sent.iter().zip(&received);
        both.filter(|(sent, received)| sent.0 <= received.1).count()
    };
    assert_eq!(sent_before_received(&trace), 3);
    let anchor = otf2(&trace, &output, Some(&before)).unwrap();
    assert_eq!(sent_before_received(&anchor), 3);
    let after = report(&anchor);
    assert!(!findings(&before).is_empty());
    assert_eq!(findings(&explained(after)), findings(&explained(before)));
}

#[test]
fn an_archive_says_what_the_trace_said() {
    let directory = tempfile::tempdir().unwrap();
    let (trace, output) = (
        directory.path().join("trace"),
        directory.path().join("otf2"),
    );
    std::fs::create_dir(&trace).unwrap();
    write_trace(&trace);
    let before = report(&trace);
    before.write(&trace.join("report.json")).unwrap();
    let anchor = otf2(&trace, &output, Some(&before)).unwrap();
    let after = report(&anchor);
    // The archive's times are those of its clock: what calls cost differs by the rounding.
    let (explained, archived) = (explained(before.clone()), explained(after.clone()));
    assert!(
        findings(&explained).len() >= 5,
        "{:?}",
        findings(&explained)
    );
    assert_eq!(findings(&archived), findings(&explained));
    assert_eq!(after.anomalies, before.anomalies);
    assert_eq!(after.run.program, before.run.program);
    assert_eq!(after.run.operations, before.run.operations);
    // Not written over.
    let error = otf2(&trace, &output, None).unwrap_err().to_string();
    assert!(error.contains("exists"), "{error}");
    // The library's own tool reads it, too, and has nothing to complain of.
    for options in [&["-G", "-Werror"][..], &["-A", "-Werror"], &["-Werror"]] {
        let mut print = Command::new("otf2-print");
        let printed = print
            .args(options)
            .arg(&anchor)
            .output()
            .expect("otf2-print");
        let (said, complaints) = (&printed.stdout, &printed.stderr);
        assert!(
            printed.status.success() && complaints.is_empty(),
            "{options:?} {printed:?}"
        );
        assert!(!said.is_empty());
        if options[0] == "-G" {
            // SCOUT looks for it, and ends if it is not there.
            let said = String::from_utf8_lossy(said);
            let is_program = |line: &&str| line.contains("Role: ARTIFICIAL");
            let region = said.lines().find(is_program).expect("the program's region");
            assert!(region.contains("Name: \"app\""), "{region}");
            assert!(region.contains("Aka. \"./app\""), "{region}");
        }
    }
    let marked = Command::new("otf2-marker").arg(&anchor).output();
    let marked = String::from_utf8(marked.expect("otf2-marker").stdout).unwrap();
    assert!(
        marked.contains("Late sender in MPI_Recv: 0.050000000 s lost"),
        "{marked}"
    );
    // All of them, whether a finding lists them first or not.
    for root in before.root_causes.as_ref().unwrap() {
        let said = marked
            .lines()
            .find(|line| line.contains(&format!("{}: ", root.id)));
        assert!(said.is_some(), "{} {marked}", root.id);
    }
    let root = &before.root_causes.as_ref().unwrap()[0];
    let rank = root.ranks[0].rank;
    assert!(marked.contains("Root cause"), "{marked}");
    let said = marked.lines().find(|line| line.contains("rc1: rank"));
    assert!(
        said.is_some_and(
            |line| line.contains(&format!("rank {rank} ")) && line.contains("s of waiting")
        ),
        "{marked}"
    );
}

/// A sample stands for as many of an archive, but not for any number: a trace may claim what it wants.
#[test]
fn samples_of_an_archive_are_bounded() {
    const US: u32 = 1_000;
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    std::fs::create_dir(&trace).unwrap();
    let mut r = ranks(2);
    for (id, text) in [
        (90, "sample_hz"),
        (91, "1000000"),
        (92, "sampled_by"),
        (93, "perf"),
    ] {
        let bytes = text.as_bytes().to_vec();
        r[0].define(Definition::String { id, bytes });
    }
    r[0].define(Definition::Property { key: 90, value: 91 });
    r[0].define(Definition::Property { key: 92, value: 93 });
    r[0].samples(7, 3, 5 * US);
    r[0].send(10, 1, 5, 10 * MS, 11 * MS);
    r[1].recv(20, 0, 5, 10 * MS, 11 * MS);
    r[0].samples(8, 3, u32::MAX);
    r[0].send(10, 1, 5, 20 * MS, 21 * MS);
    r[1].recv(20, 0, 5, 20 * MS, 21 * MS);
    r.iter_mut().for_each(|calls| calls.write(&trace));
    let anchor = otf2(&trace, &directory.path().join("otf2"), None).unwrap();
    let printed = Command::new("otf2-print").arg(&anchor).output();
    let printed = String::from_utf8(printed.expect("otf2-print").stdout).unwrap();
    let samples = printed.lines();
    let samples = samples.filter(|line| line.starts_with("CALLING_CONTEXT_SAMPLE"));
    // Five periods, and a thousand for each of the others.
    assert_eq!(samples.count(), 5 + 3 * 1_000);
}
