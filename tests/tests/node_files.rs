//! One file for all ranks of a host (`LAGGARD_FILE_PER=node`): real programs, and analyses of such
//! a file, whole or spoiled.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use laggard_tests::attack::{Attack, assert_no_anomalies, only_directories};
use laggard_tests::attempts::{Off, until_undisturbed};
use laggard_tests::mpi::Mpi;
use laggard_tests::process;
use laggard_tests::product::{Bench, TIMEOUT, difference};
use laggard_tests::report::{Report, without_agents};
use laggard_trace::{Location, NodeFile, NodeSpace, Space};

/// A program of `programs/attacks/` that records into node files.
fn attack(test: &str, source: &str, arguments: &[&str]) -> Attack {
    let mut attack = Attack::new(&format!("node-{test}"), source, arguments);
    attack.env.push(("LAGGARD_FILE_PER", "node".into()));
    attack
}

/// The trace files in a directory, by name.
fn files(trace: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(trace).expect("a trace");
    let mut files: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "lgt"));
    files.sort();
    files
}

/// The only file of a trace, which must be a node file.
#[track_caller]
fn node_file(trace: &Path) -> PathBuf {
    let files = files(trace);
    assert_eq!(files.len(), 1, "{files:?}");
    let name = files[0].file_name().unwrap_or_default().to_string_lossy();
    assert!(name.starts_with("node-"), "{name}");
    files[0].clone()
}

fn parsed(text: &str) -> Report {
    Report::parse(text).expect("a report of the promised shape")
}

#[test]
fn ranks_share_a_file() {
    let attack = attack("shared", "wrapped.c", &[]);
    let report = attack.three_rounds("main");
    assert_no_anomalies(&report);
    let file = node_file(&attack.trace());
    let mode = fs::metadata(file).expect("it").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let all = fs::read_dir(attack.trace()).expect("a trace").count();
    // The run's, the ranks', and the one for steering.
    assert_eq!(all, 3, "drafts of the files");
}

#[test]
fn short_lived_threads_share_it_too() {
    let attack = attack("threads", "threads.c", &[]);
    let report = attack.report();
    assert_no_anomalies(&report);
    let file = NodeFile::open(&node_file(&attack.trace())).expect("a node file");
    assert_eq!(file.unusable, 0);
    assert_eq!(file.locations().count(), report.locations.len());
    assert!(report.locations.len() > 4, "{report:#?}");
}

/// A killed rank's records are there, and all of the others'.
#[test]
fn a_killed_rank_leaves_what_it_wrote() {
    let attack = attack("killed", "ending.c", &["kill"]);
    let report = attack.three_rounds("main");
    assert!(report.anomaly("truncated_trace") >= 1, "{report:#?}");
    assert_eq!(report.errors(), [""; 0]);
    node_file(&attack.trace());
}

#[test]
fn forked_children_do_not_write_into_it() {
    let attack = attack("fork", "fork.c", &["exit"]);
    let report = attack.three_rounds("main");
    assert_no_anomalies(&report);
    node_file(&attack.trace());
}

#[test]
fn spawned_processes_have_their_own() {
    if Mpi::is_left_out(
        Mpi::Mpich,
        "MPI_Comm_spawn, which fails with Debian's 4.0.2",
    ) {
        return;
    }
    let attack = attack("spawn", "spawn.c", &[]);
    attack.run();
    let mut traces = only_directories(&attack.bench.dir);
    traces.sort();
    assert_eq!(traces, ["trace", "trace.1"]);
    for trace in traces {
        let trace = attack.bench.path(&trace);
        node_file(&trace);
        assert_eq!(
            parsed(&attack.bench.analyze_agreed(&trace)).errors(),
            [""; 0]
        );
    }
}

#[test]
fn descriptors_are_the_programs() {
    let attack = attack("descriptors", "descriptors.c", &[]);
    // Threads wait only for a while until others have made their files.
    until_undisturbed("descriptors", |_| {
        attack.forget_trace();
        let report = attack.report();
        match report.anomaly("unrecorded_threads") {
            2 => Ok(()),
            count => Err(Off::from(format!("{count} threads are not recorded"))),
        }
    });
    node_file(&attack.trace());
}

#[test]
fn interrupted_by_signals() {
    let mut attack = attack("interrupted", "wrapped.c", &[]);
    let cflags = ["-shared", "-fPIC", "-D_GNU_SOURCE"];
    let library = attack.bench.compile("attacks/interrupted.c", &cflags, &[]);
    let library = library.to_string_lossy().into_owned();
    attack.env.push(("LD_PRELOAD", library));
    let report = attack.three_rounds("main");
    assert_no_anomalies(&report);
    node_file(&attack.trace());
}

/// `tiny.c` with these arguments, recorded into files of one kind.
fn record(bench: &Bench, trace: &str, per: &str, arguments: &[&str], env: &[(&str, &str)]) {
    let program = bench.compile("attacks/tiny.c", &[], &[]);
    let mut words = vec![program.as_os_str()];
    words.extend(arguments.iter().map(std::ffi::OsStr::new));
    let run = bench.traced(2, &words, trace).env("LAGGARD_FILE_PER", per);
    let run = env
        .iter()
        .fold(run, |run, (key, value)| run.env(key, *value));
    run.run().expect_orderly().expect_success();
}

/// Each location has a limit of its own, even in a shared file.
#[test]
fn limits_are_those_of_a_location() {
    let bench = Bench::beside("node-limits");
    let env = [("LAGGARD_MAX_TRACE_MB", "1"), ("LAGGARD_BUFFER_KB", "64")];
    record(&bench, "trace", "node", &["200000"], &env);
    let file = NodeFile::open(&node_file(&bench.path("trace"))).expect("a node file");
    for (rank, thread, size) in file.locations() {
        assert!(
            (900_000..=1 << 20).contains(&size),
            "{rank} {thread}: {size}"
        );
    }
    let report = parsed(&bench.analyze_agreed(&bench.path("trace")));
    assert!(report.run.operations > 400_000, "{:#?}", report.run);
    assert_eq!(report.anomaly("size_limit"), 2, "{:#?}", report.anomalies);
    assert_eq!(report.errors(), [""; 0]);
}

/// If the file cannot grow, the recording ends, the program does not.
#[test]
fn a_full_disk_is_said() {
    let bench = Bench::beside("node-full");
    record(&bench, "trace", "node", &["300000", "700000"], &[]);
    let report = parsed(&bench.analyze_agreed(&bench.path("trace")));
    assert_eq!(report.anomaly("write_error"), 2, "{:#?}", report.anomalies);
    assert!(report.run.operations > 600_000, "{:#?}", report.run);
}

/// Copies a trace: locations from `from` on go into a node file, others stay as they are.
fn converted(trace: &Path, to: &Path, from: usize) {
    fs::create_dir(to).expect("a directory");
    for (n, path) in files(trace).iter().enumerate() {
        if n < from {
            fs::copy(path, to.join(path.file_name().expect("a name"))).expect("copied");
            continue;
        }
        let header = Location::open(path).expect("a location").header;
        let bytes = fs::read(path).expect("a location");
        let mut space = NodeSpace::create(to, &header, 1 << 16).expect("a place");
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (window, size) = space.advance(0).expect("a window");
            let (now, later) = rest.split_at(size.min(rest.len()));
            // SAFETY: a window has this size.
            unsafe { std::ptr::copy_nonoverlapping(now.as_ptr(), window, now.len()) };
            rest = later;
        }
        space.finish(bytes.len() as u64).expect("closed");
    }
}

fn info(bench: &Bench, trace: &Path) -> String {
    let mut command = Command::new(&bench.command);
    command.arg("info").arg(trace);
    let outcome = process::run(&mut command, TIMEOUT, &bench.path("info"));
    outcome.expect_orderly().expect_success().stdout
}

/// The same locations in files of their own, in one of their host, or mixed give the same report,
/// byte for byte, and the same other output.
#[test]
fn where_locations_lie_makes_no_difference() {
    let attack = Attack::new("node-converted", "threads.c", &[]);
    attack.run();
    let bench = &attack.bench;
    record(bench, "long", "location", &["100000"], &[]);
    for name in ["trace", "long"] {
        let trace = bench.path(name);
        let whole = bench.analyze_agreed(&trace);
        for from in [0, 1] {
            let other = bench.path(&format!("{name}-{from}"));
            converted(&trace, &other, from);
            assert_eq!(files(&other).len(), from + 1);
            let report = bench.analyze_agreed(&other);
            if let Some(difference) = difference(&whole, &report) {
                panic!("{name}, {from} locations in files of their own: {difference}");
            }
            assert_eq!(info(bench, &trace), info(bench, &other));
            assert_eq!(bench.dump(&trace), bench.dump(&other));
        }
    }
}

/// Analyses with one agent and with two, which must agree; a refusal is one line.
#[track_caller]
fn verdict(bench: &Bench, trace: &Path) -> Result<String, String> {
    let [one, two] = [1, 2].map(|agents| {
        let report = bench.path("verdict.json");
        let _ = fs::remove_file(&report);
        let outcome = bench.analyze(trace, agents, &report, &["--all", "-q"]);
        let outcome = outcome.expect_orderly();
        if outcome.success() {
            return Ok(fs::read_to_string(&report).expect("a report"));
        }
        assert_eq!(outcome.code, Some(1), "{outcome}");
        let lines = outcome.stderr.lines();
        let said: Vec<_> = lines.filter(|line| line.starts_with("laggard")).collect();
        assert_eq!(said.len(), 1, "{outcome}");
        Err(said[0].to_owned())
    });
    match (&one, &two) {
        (Ok(one), Ok(two)) => assert_eq!(difference(one, two), None),
        (one, two) => assert!(one.is_err() && two.is_err(), "{one:?} {two:?}"),
    }
    one
}

#[test]
fn spoiled_files_are_not_hidden() {
    let bench = Bench::beside("node-spoiled");
    record(&bench, "trace", "node", &["20000"], &[]);
    let trace = bench.path("trace");
    let path = node_file(&trace);
    let good = bench.analyze_agreed(&trace);
    let bytes = fs::read(&path).expect("the file");
    // Header, claims, index blocks, entries, the locations' own headers and blocks.
    let places = [
        8,
        20,
        60,
        128,
        256,
        4096,
        4110,
        4120,
        4128 + 28,
        65536 + 3,
        65536 + 40_000,
    ];
    for at in places {
        fs::write(&path, &bytes).expect("written");
        let file = fs::OpenOptions::new().write(true).open(&path).expect("it");
        file.write_all_at(&[bytes[at] ^ 0x15], at as u64)
            .expect("written");
        drop(file);
        match verdict(&bench, &trace) {
            Err(line) => assert!(line.contains("node-") || line.contains("trace"), "{line}"),
            Ok(text) => assert!(
                !parsed(&text).anomalies.is_empty()
                    || without_agents(&text) == without_agents(&good),
                "byte {at}: another report, and no anomaly"
            ),
        }
    }
    for left in [
        0,
        100,
        4096,
        8192,
        65536,
        65536 + 100,
        bytes.len() - 100_000,
    ] {
        fs::write(&path, &bytes[..left]).expect("written");
        if let Ok(text) = verdict(&bench, &trace) {
            assert!(
                !parsed(&text).anomalies.is_empty()
                    || without_agents(&text) == without_agents(&good),
                "{left} bytes, and no anomaly"
            );
        }
    }
}

/// Misplaced files are named; the rest is analysed.
#[test]
fn stray_files_are_named() {
    let bench = Bench::beside("node-stray");
    record(&bench, "own", "location", &["100"], &[]);
    let trace = bench.path("trace");
    converted(&bench.path("own"), &trace, 0);
    let node = node_file(&trace);
    let good = bench.analyze_agreed(&trace);
    let strange = |origin: &str, text: &str| {
        let report = parsed(text);
        assert_eq!(
            report.anomaly("unreadable_file"),
            1,
            "{:#?}",
            report.anomalies
        );
        assert!(
            text.contains(origin),
            "no word of {origin}: {:#?}",
            report.anomalies
        );
        assert_eq!(report.run.operations, parsed(&good).run.operations);
    };
    // The same location twice.
    let own = &files(&bench.path("own"))[1];
    let copy = trace.join(own.file_name().expect("a name"));
    fs::copy(own, &copy).expect("copied");
    strange(
        "the same location as",
        &verdict(&bench, &trace).expect("a report"),
    );
    fs::remove_file(copy).expect("removed");
    // Under wrong names.
    for name in ["node-0000000000000001.lgt", "rank000007.thread000.lgt"] {
        fs::copy(&node, trace.join(name)).expect("copied");
        strange(name, &verdict(&bench, &trace).expect("a report"));
        fs::remove_file(trace.join(name)).expect("removed");
    }
    // A pipe is no file: nobody must wait for it.
    let pipe = trace.join("node-0000000000000002.lgt");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .expect("mkfifo")
            .success()
    );
    strange(
        "not a regular file",
        &verdict(&bench, &trace).expect("a report"),
    );
    fs::remove_file(&node).expect("removed");
    let line = verdict(&bench, &trace).expect_err("refused");
    assert!(line.contains("not a regular file"), "{line}");
}

/// A run never writes into a directory with an entry named like a trace file, nor through a link.
#[test]
fn a_planted_link_is_not_followed() {
    let attack = attack("link", "wrapped.c", &[]);
    let first = attack.report();
    assert_no_anomalies(&first);
    let name = node_file(&attack.trace());
    let target = attack.bench.path("target");
    let planted = attack.bench.path("trace.1");
    fs::write(&target, "mine").expect("written");
    fs::create_dir(&planted).expect("a directory");
    let link = planted.join(name.file_name().expect("a name"));
    symlink(&target, &link).expect("a link");
    attack.run();
    assert_eq!(fs::read(&target).expect("it"), b"mine");
    assert!(
        fs::symlink_metadata(&link)
            .expect("it")
            .file_type()
            .is_symlink()
    );
    assert_no_anomalies(&parsed(
        &attack.bench.analyze_agreed(&attack.bench.path("trace.2")),
    ));
}
