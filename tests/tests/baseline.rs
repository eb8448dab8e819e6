//! Baselines of this machine: measured, written, merged, shown, and used.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use laggard_baselines::{Baseline, Entry, Fingerprint, Point, Span, Table};
use laggard_tests::hosts::{Hosts, Plan, Wires};
use laggard_tests::mpi::Mpi;
use laggard_tests::process::{self, Outcome};
use laggard_tests::product::{Bench, TIMEOUT};
use laggard_tests::report::Report;
use laggard_trace::calls::{self, Call, GenericType};

/// Calls that cannot wait for another rank, or need several programs.
const NOT_MEASURED: &[&str] = &[
    // They test and return.
    "MPI_Iprobe",
    "MPI_Improbe",
    "MPI_Test",
    "MPI_Testall",
    "MPI_Testany",
    "MPI_Testsome",
    "MPI_Win_test",
    "MPI_Request_get_status",
    // They end operations that began elsewhere, or were never to be completed.
    "MPI_Request_free",
    "MPI_Cancel",
    // Like their measured forms, with other arguments.
    "MPI_Imrecv",
    "MPI_Comm_dup_with_info",
    "MPI_Comm_split_type",
    "MPI_Comm_create_group",
    "MPI_Comm_disconnect",
    "MPI_Cart_sub",
    "MPI_Graph_create",
    "MPI_Dist_graph_create",
    "MPI_Dist_graph_create_adjacent",
    "MPI_Win_allocate_shared",
    "MPI_Win_create_dynamic",
    // For two groups, or for other programs.
    "MPI_Intercomm_merge",
    "MPI_Intercomm_create",
    "MPI_Comm_accept",
    "MPI_Comm_connect",
    "MPI_Comm_spawn",
    "MPI_Comm_spawn_multiple",
    // Once in a program.
    "MPI_Finalize",
];

/// Most measurements until one meets the test's conditions.
const ATTEMPTS: u32 = 5;

/// A bench with the command that is built for the measuring MPI.
fn prepared(name: &str) -> Bench {
    let mut bench = Bench::new(name);
    bench.agents = &[1, 2, 3];
    bench
}

/// Runs `laggard baseline` as a job; the table goes to `name`.
fn measured(bench: &Bench, ranks: u32, name: &str, options: &[&str]) -> Outcome {
    let words = command(bench, name, options);
    let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
    let run = bench.plain(ranks, &words);
    let run = run.env("LAGGARD_LIB", bench.library.to_string_lossy());
    run.run().expect_orderly()
}

fn command(bench: &Bench, name: &str, options: &[&str]) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![bench.command.clone().into(), "baseline".into()];
    words.extend(["-o".into(), bench.path(name).into()]);
    words.extend(options.iter().map(OsString::from));
    words
}

/// Runs `laggard` by itself.
fn laggard(bench: &Bench, words: &[&OsStr]) -> Outcome {
    let mut command = Command::new(&bench.command);
    command.args(words).current_dir(&bench.dir);
    process::run(&mut command, TIMEOUT, &bench.path("laggard")).expect_orderly()
}

#[track_caller]
fn read(path: &Path) -> Table {
    Table::read(path).expect("a table")
}

/// The command prints one line, with exit code 1.
#[track_caller]
fn refused(outcome: &Outcome, what: &str) {
    let lines = outcome
        .stderr
        .lines()
        .filter(|line| line.starts_with("laggard: "));
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.len(), 1, "{outcome}");
    assert!(lines[0].contains(what), "{what:?} in\n{outcome}");
    assert_eq!(outcome.code, Some(1), "{outcome}");
}

#[test]
fn a_table_is_measured_and_used() {
    let bench = prepared("baseline");
    // On a busy machine, a point takes longer than its share of a short time.
    let operations = "MPI_Sendrecv,MPI_Recv,MPI_Allreduce";
    let kinds = ["MPI_Send", "MPI_Recv", "MPI_Sendrecv", "MPI_Allreduce"];
    let is_enough = |table: &Table| {
        let whole = kinds.map(|operation| {
            let entry = entry(table, operation, 2);
            let repetitions = entry.points.get(4).and_then(|point| point.repetitions);
            let has_all = entry.points.len() > 10 && !entry.checks.is_empty();
            has_all && entry.model.is_some() && repetitions >= Some(5)
        });
        whole.into_iter().all(|is_whole| is_whole)
    };
    let mut outcomes = ["3", "12", "48"].into_iter().map(|time| {
        let options = ["--time", time, "--max-bytes", "16384", "--only", operations];
        measured(&bench, 2, "baseline.json", &options).expect_success()
    });
    let outcome = outcomes.find(|_| is_enough(&read(&bench.path("baseline.json"))));
    let outcome = outcome.expect("a whole table in 48 s");
    assert!(
        outcome.stdout.contains("laggard analyze --baseline"),
        "{outcome}"
    );
    let table = read(&bench.path("baseline.json"));
    let machine = table.fingerprint.as_ref().expect("a fingerprint");
    assert_eq!((machine.ranks, machine.hosts.len()), (2, 1), "{machine:?}");
    assert!(!machine.mpi_library.is_empty());
    for operation in kinds {
        let entry = entry(&table, operation, 2);
        assert!(
            entry.points.len() > 10 && !entry.checks.is_empty(),
            "{entry:?}"
        );
        let point = &entry.points[4];
        assert!(point.repetitions.is_some_and(|n| n >= 5), "{point:?}");
        assert!(point.median_s.is_some_and(|median| median >= point.time_s));
        assert!(entry.model.is_some(), "{entry:?}");
    }
    // Its cost grows with the bytes.
    let send = entry(&table, "MPI_Recv", 2);
    let times = [send.points.first(), send.points.last()].map(|p| p.expect("points").time_s);
    assert!(times[0] < times[1], "{times:?}");

    // The same in a report: rank 1 waits 3 × 60 ms for a message.
    let program = bench.compile("attacks/wrapped.c", &[], &[]);
    let run = bench.traced(2, &[program.as_os_str()], "trace");
    run.run().expect_orderly().expect_success();
    let file = bench.path("baseline.json");
    let analyze = |agents, file: &Path, more: &[&str]| {
        let mut options = vec!["-q", "--baseline", file.to_str().expect("a name")];
        options.extend(more);
        let report = bench.path(&format!("report-{agents}.json"));
        let outcome = bench.analyze(&bench.path("trace"), agents, &report, &options);
        (outcome.expect_orderly(), report)
    };
    let report = |agents, file: &Path, more: &[&str]| {
        let (outcome, report) = analyze(agents, file, more);
        outcome.expect_success();
        fs::read_to_string(report).expect("a report")
    };
    let text = report(1, &file, &[]);
    for agents in [2, 3] {
        let other = report(agents, &file, &[]);
        assert_eq!(laggard_tests::product::difference(&text, &other), None);
    }
    let found = Report::parse(&text).expect("a report");
    let late = found
        .bottlenecks
        .iter()
        .find(|b| b.pattern == "late_sender");
    let late = late.expect("a late sender");
    assert_eq!(late.filter, "baseline", "{late:?}");
    let expected = table.lookup("MPI_Recv", 4, 2);
    assert_eq!(late.baseline_s, expected, "{late:?}");
    assert!(late.ratio.is_some_and(|ratio| ratio > 100.0), "{late:?}");
    let odd =
        |report: &Report| ["foreign_baseline", "unknown_baseline"].map(|id| report.anomaly(id));
    assert_eq!(odd(&found), [0, 0], "{:?}", found.anomalies);

    // Tables of another library, of unknown origin, and damaged.
    let mut other = table.clone();
    other.fingerprint = Some(Fingerprint {
        mpi_library: "Some MPI 1.0".into(),
        ..machine.clone()
    });
    let foreign = bench.path("foreign.json");
    other.write(&foreign).expect("a file");
    for agents in [1, 2] {
        let (outcome, _) = analyze(agents, &foreign, &[]);
        refused(&outcome, "foreign.json: the table is not of the machine");
        refused(&outcome, "measured with Some MPI 1.0, the run used");
    }
    let text = report(2, &foreign, &["--baseline-anyway"]);
    let insisted = Report::parse(&text).expect("a report");
    assert_eq!(odd(&insisted), [1, 0]);
    other.fingerprint = None;
    other.write(&foreign).expect("a file");
    let unknown = Report::parse(&report(1, &foreign, &[])).expect("a report");
    assert_eq!(odd(&unknown), [0, 1]);
    fs::write(&foreign, &fs::read(&file).expect("a table")[..1000]).expect("a file");
    refused(
        &analyze(1, &foreign, &[]).0,
        "foreign.json is not a baseline table",
    );

    // Without a table entry, the other filters judge the call.
    let bcast = Entry::new("MPI_Bcast", 2, None, vec![Point::new(8, 1e-6)]);
    Table::new("by hand", vec![bcast])
        .write(&foreign)
        .expect("a file");
    let without = Report::parse(&report(1, &foreign, &[])).expect("a report");
    let late = without
        .bottlenecks
        .iter()
        .find(|b| b.pattern == "late_sender");
    assert!(late.is_some_and(|late| late.filter != "baseline" && late.baseline_s.is_none()));
}

#[track_caller]
fn entry<'t>(table: &'t Table, operation: &str, group_size: u32) -> &'t Entry {
    let mut entries = table.entries.iter();
    let found = entries.find(|e| e.operation == operation && e.group_size == group_size);
    found.unwrap_or_else(|| panic!("no {operation} of {group_size}"))
}

fn names(table: &Table) -> BTreeSet<&str> {
    table.entries.iter().map(|e| e.operation.as_str()).collect()
}

/// Every MPI call that can wait has an entry; calls of groups have entries for all sizes.
#[test]
fn every_call_that_waits_is_measured() {
    let bench = prepared("baseline-all");
    let options = ["--sizes", "0,64", "--time", "8", "-q"];
    // Ranks of these tests leave their cores when they wait. If they seem not to, or times are not
    // found again, other work is the reason: the measurement is repeated.
    let left_out = "of 3 ranks groups of 3 are left out: they have more members than a host";
    let measure = |attempt: u32| {
        let file = format!("baseline-{attempt}.json");
        measured(&bench, 3, &file, &options).expect_success();
        let table = read(&bench.path(&file));
        let note = table.notes.iter().find(|note| note.starts_with(left_out));
        let keeps = note.is_some_and(|note| note.contains("keeps its core"));
        (table, keeps)
    };
    let mut tables = (1..=4).map(measure);
    let (table, _) = tables
        .find(|(_, keeps)| !keeps)
        .expect("ranks that leave their cores");
    let names = names(&table);
    let waits = |call: &&Call| {
        use GenericType::*;
        let kind = !matches!(call.generic, Setup | Io | User);
        let is_standard = call.number < 200 || call.name == "MPI_Finalize";
        kind && is_standard && !NOT_MEASURED.contains(&call.name)
    };
    let missing: Vec<&str> = calls::CALLS
        .iter()
        .filter(waits)
        .map(|call| call.name)
        .filter(|name| !names.contains(name))
        .collect();
    assert_eq!(missing, [""; 0], "have no entry");
    for operation in [
        "MPI_Barrier",
        "MPI_Alltoallw",
        "MPI_Ineighbor_alltoall",
        "MPI_Win_fence",
    ] {
        entry(&table, operation, 2);
    }
    let machine = table.fingerprint.as_ref().expect("a fingerprint");
    assert_eq!(machine.oversubscribed, machine.cores < 3, "{machine:?}");
    let of_three = table.entries.iter().filter(|e| e.group_size == 3).count();
    match table.notes.iter().find(|note| note.starts_with(left_out)) {
        None => assert!(of_three >= 10, "{of_three} calls"),
        Some(_) => assert_eq!(of_three, 0),
    }
}

/// Too few cores for ranks that keep them while they wait: times contain the system's slices.
/// Groups with unstable times are not in the table, and a note on it says why.
#[test]
fn groups_that_are_left_out_are_named() {
    if Mpi::is_left_out(Mpi::OpenMpi, "its ranks yield where cores are too few") {
        return;
    }
    let bench = prepared("baseline-kept");
    let cores = std::thread::available_parallelism().expect("cores").get();
    let ranks = 2 * cores as u32;
    let only = ["--sizes", "0,64", "--time", "4", "-q", "--only"];
    let only: Vec<&str> = only
        .into_iter()
        .chain(["MPI_Barrier,MPI_Allreduce"])
        .collect();
    let file = bench.path("baseline.json");
    let beginning = format!("of {ranks} ranks groups of ");
    // It is a matter of chance which times are found again.
    let found = (0..ATTEMPTS).find_map(|_| {
        let _ = fs::remove_file(&file);
        let mut job = bench.mpi.mpirun(ranks);
        // The library that makes ranks yield in other tests.
        job.env_remove("LD_PRELOAD");
        job.env("LAGGARD_LIB", &bench.library);
        job.args(command(&bench, "baseline.json", &only));
        let outcome = process::run(&mut job, TIMEOUT, &bench.path("measured"));
        outcome.expect_orderly().expect_success();
        let table = read(&file);
        let is_there = table.notes.iter().any(|note| note.starts_with(&beginning));
        is_there.then_some(table)
    });
    let table = found.expect("groups whose times are not found again");
    assert!(names(&table).contains("MPI_Barrier"));
    let words = ["baseline".as_ref(), "--show".as_ref(), file.as_os_str()];
    let shown = laggard(&bench, &words).expect_success();
    let notes = table.notes.iter();
    for note in notes.filter(|note| note.starts_with(&beginning)) {
        let sizes = note[beginning.len()..].split(" are left out").next();
        for size in sizes.expect("sizes").split(", ") {
            let size: u32 = size.parse().expect("a size");
            assert!(table.entries.iter().all(|e| e.group_size != size), "{note}");
            // A larger group may have been found again: then they are between two.
            let is_between = table.entries.iter().any(|e| e.group_size > size);
            let found = table.lookup("MPI_Barrier", 0, size);
            assert!(is_between || found.is_none(), "{note}: {found:?}");
        }
        assert!(shown.stdout.contains(note.as_str()), "{shown}");
    }
}

#[test]
fn openshmem_is_measured() {
    if Mpi::is_left_out(Mpi::Mpich, "it has no OpenSHMEM") {
        return;
    }
    let bench = prepared("baseline-shmem");
    let options = ["--shmem", "--sizes", "8,64", "--time", "5", "-q"];
    let only = "shmem_putmem,shmem_getmem,shmem_long_p,shmem_long_atomic_fetch_add,shmem_set_lock,\
                shmem_long_wait_until,shmem_barrier_all,shmem_barrier,shmem_broadcast64,\
                shmem_fcollect64,shmem_long_sum_to_all,shmem_malloc";
    let options: Vec<&str> = options.into_iter().chain(["--only", only]).collect();
    let words = command(&bench, "baseline.json", &options);
    let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
    let run = bench.plain(2, &words).shmem();
    let run = run.env("LAGGARD_LIB", bench.library.to_string_lossy());
    run.run().expect_orderly().expect_success();
    let table = read(&bench.path("baseline.json"));
    let names = names(&table);
    let missing = only.split(',').filter(|name| !names.contains(name));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0], "have no entry");
    for beside in ["shmem_quiet", "shmem_clear_lock", "shmem_free"] {
        assert!(names.contains(beside), "{beside}");
    }
    // Other types of a family take the same time.
    let put = table.lookup("shmem_putmem", 64, 2);
    assert!(put.is_some() && table.lookup("shmem_double_put", 64, 2) == put);
    assert_eq!(table.lookup("shmem_quiet_all", 0, 2), None);
}

/// Network latency in each direction: more than a busy machine adds to a message's median.
const LATENCY: Duration = Duration::from_millis(1);

/// Pairs on one host and on two have separate entries; the network between hosts is slower.
#[test]
fn hosts_are_told_apart() {
    if Mpi::is_left_out(Mpi::Mpich, "its launcher knows no such hosts") {
        return;
    }
    let bench = prepared("baseline-hosts");
    let plans = [Plan::new("node1"), Plan::new("node2").ahead(1000)];
    let Some(hosts) = Hosts::new(&bench.dir, &plans, Wires::Delayed) else {
        return;
    };
    hosts.delay("node2", LATENCY, LATENCY);
    let options = [
        "--sizes",
        "8,4096",
        "--time",
        "4",
        "-q",
        "--only",
        "MPI_Sendrecv,MPI_Barrier",
    ];
    let words = command(&bench, "baseline.json", &options);
    let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
    let run = bench.plain(3, &words).on(&hosts);
    let run = run.env("LAGGARD_LIB", bench.library.to_string_lossy());
    run.run().expect_orderly().expect_success();
    let table = read(&bench.path("baseline.json"));
    let time = |span| table.lookup_within("MPI_Sendrecv", 8192, 2, Some(span));
    let near = time(Span::IntraNode).expect("near");
    let far = time(Span::InterNode).expect("far");
    assert!(near < far, "{near} {far}");
    let latency = LATENCY.as_secs_f64();
    assert!((0.9 * latency..2.0 * latency).contains(&far), "{far}");
    assert_eq!(table.lookup("MPI_Sendrecv", 8192, 2), Some(near));
    let barrier = |size| table.lookup_within("MPI_Barrier", 0, size, Some(Span::InterNode));
    assert!(barrier(2).is_some() && barrier(3).is_some());
    let machine = table.fingerprint.expect("a fingerprint");
    assert_eq!(machine.hosts, ["node1", "node2"]);
}

fn by_hand(path: &Path, group_size: u32, library: &str) -> PathBuf {
    let time = |bytes: u64| Point::new(bytes, 1e-6 * f64::from(group_size) + bytes as f64 / 1e9);
    let points = (0..=20).map(|power| time((1 << power) - 1)).collect();
    let mut entry = Entry::new("MPI_Allreduce", group_size, Some(Span::IntraNode), points);
    entry.checks = vec![time(100), time(100_000)];
    let mut table = Table::new(&format!("{group_size} ranks"), vec![entry]);
    table.fingerprint = Some(Fingerprint {
        mpi_library: library.into(),
        ..Fingerprint::default()
    });
    table.fit();
    table.write(path).expect("a file");
    path.to_owned()
}

#[test]
fn tables_are_merged_and_shown() {
    let bench = prepared("baseline-show");
    let two = by_hand(&bench.path("two.json"), 2, "A");
    let four = by_hand(&bench.path("four.json"), 4, "A");
    let other = by_hand(&bench.path("other.json"), 8, "B");
    let run = |words: &[&str], files: &[&Path]| {
        let mut all: Vec<&OsStr> = vec!["baseline".as_ref()];
        all.extend(words.iter().map(OsStr::new));
        all.extend(files.iter().map(|file| file.as_os_str()));
        laggard(&bench, &all)
    };
    run(&["-o", "merged.json", "--merge"], &[&two, &four]).expect_success();
    let merged = bench.path("merged.json");
    let table = read(&merged);
    assert_eq!(table.entries.len(), 2);
    assert!(table.lookup("MPI_Allreduce", 1000, 3).is_some());
    let outcome = run(&["-o", "none.json", "--merge"], &[&two, &other]);
    refused(&outcome, "other.json cannot be merged");
    assert!(!bench.path("none.json").exists());

    let outcome = run(
        &["--svg", "out.svg", "--parquet", "out.parquet", "--show"],
        &[&merged],
    );
    let outcome = outcome.expect_success();
    for expected in [
        "MPI_Allreduce",
        "intra_node",
        "1.05 MB",
        "time over bytes",
        "⠀",
    ] {
        assert!(
            outcome.stdout.contains(expected),
            "{expected} in\n{outcome}"
        );
    }
    let picture = fs::read_to_string(bench.path("out.svg")).expect("a picture");
    assert!(picture.starts_with("<svg") && picture.contains("MPI_Allreduce, 4 members"));
    let parquet = fs::read(bench.path("out.parquet")).expect("a table");
    assert_eq!(&parquet[..4], b"PAR1");
    let outcome = run(&["--only", "MPI_Bcast", "--show"], &[&merged]);
    refused(&outcome, "the table has no MPI_Bcast");
    refused(
        &run(&["--show"], &[&bench.path("out.svg")]),
        "out.svg is not a baseline table",
    );
    refused(
        &run(&["--show"], &[&bench.path("gone.json")]),
        "cannot read",
    );
}

#[test]
fn what_cannot_be_measured_is_said() {
    let bench = prepared("baseline-bad");
    let outcome = measured(&bench, 1, "b.json", &["--time", "1"]);
    refused(&outcome, "two ranks or more");
    let outcome = measured(&bench, 2, "b.json", &["--only", "MPI_Sent"]);
    refused(
        &outcome,
        "MPI_Sent: no benchmark measures a call of this name",
    );
    fs::write(bench.path("notes"), "mine").expect("a file");
    let outcome = measured(&bench, 2, "notes", &["--time", "1"]);
    refused(&outcome, "no baseline table; name another one with -o");
    assert_eq!(fs::read(bench.path("notes")).expect("a file"), b"mine");
    assert!(!bench.path("b.json").exists());
}
