//! OpenSHMEM programs, built by `oshcc` and started by `oshrun`: their records, and that they do
//! not notice.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use laggard_tests::attempts::{Off, until_right, until_undisturbed};
use laggard_tests::process::Outcome;
use laggard_tests::product::{Bench, programs};
use laggard_tests::recorded::{check, near};
use laggard_tests::report::Report;

/// Functions that `shmem_families.c` cannot call: its source says why, and it starts in one way
/// only.
const NOT_CALLED: [&str; 9] = [
    "shmem_ctx_int_atomic_compare_swap",
    "shmem_ctx_uint_atomic_compare_swap",
    "shmem_global_exit",
    "shmem_init",
    "shmem_init_thread",
    "shmem_int_atomic_compare_swap",
    "shmem_int_cswap",
    "shmem_uint_atomic_compare_swap",
    "shmemx_int32_cswap",
];

struct Recorded {
    bench: Bench,
    trace: PathBuf,
    /// Lines of the dump.
    calls: Vec<String>,
}

fn lines(outcome: &Outcome) -> Vec<String> {
    let mut lines: Vec<String> = outcome.stdout.lines().map(String::from).collect();
    lines.sort();
    lines
}

/// Runs a program without and with the collector; it must print the same.
fn record(test: &str, source: &str, arguments: &[&str], pes: u32) -> Recorded {
    record_built(test, ("oshcc", source, &[]), arguments, pes)
}

/// The same with a compiler and libraries.
fn record_built(
    test: &str,
    (compiler, source, libraries): (&str, &str, &[&str]),
    arguments: &[&str],
    pes: u32,
) -> Recorded {
    let bench = Bench::sharing(test);
    let program = bench.compile_with(compiler, source, &[], libraries);
    let mut words: Vec<&OsStr> = vec![program.as_os_str()];
    words.extend(arguments.iter().map(OsStr::new));
    let plain = bench.plain(pes, &words).shmem().run();
    let plain = plain.expect_orderly().expect_success();
    let traced = bench.traced(pes, &words, "trace").shmem().run();
    let traced = traced.expect_orderly().expect_success();
    assert_eq!(lines(&plain), lines(&traced), "results under the collector");
    assert_eq!(traced.stderr, plain.stderr, "messages");
    let trace = bench.path("trace");
    let calls = bench.dump(&trace).lines().map(String::from).collect();
    Recorded {
        bench,
        trace,
        calls,
    }
}

/// The words of a call's line: rank, operation, rest.
fn words(line: &str) -> Option<(&str, &str, BTreeMap<&str, &str>)> {
    let mut words = line.split_whitespace();
    let rank = words.next()?.split('/').next()?;
    let operation = words.nth(2)?;
    let what = words.filter_map(|word| word.split_once('='));
    (!line.starts_with('#')).then(|| (rank, operation, what.collect()))
}

/// The collector's OpenSHMEM symbols.
fn exported(bench: &Bench) -> BTreeSet<String> {
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(&bench.library)
        .output();
    let text = String::from_utf8_lossy(&output.expect("nm").stdout).into_owned();
    let names = text.lines().filter_map(|line| line.rsplit(' ').next());
    let names = names.filter(|name| name.starts_with("shmem_") || name.starts_with("shmemx_"));
    names.map(String::from).collect()
}

#[test]
fn every_function_is_recorded_and_does_what_it_does() {
    let arguments = ["start_pes"];
    let run = record("shmem-families", "attacks/shmem_families.c", &arguments, 2);
    let calls: BTreeSet<&str> = run.calls.iter().filter_map(|c| Some(words(c)?.1)).collect();
    let expected = exported(&run.bench);
    assert!(expected.len() > 850, "only {} exported", expected.len());
    let missing: Vec<&String> = expected
        .iter()
        .filter(|name| !calls.contains(name.as_str()) && !NOT_CALLED.contains(&name.as_str()))
        .collect();
    assert!(missing.is_empty(), "not recorded: {missing:?}");
    assert!(calls.contains("start_pes") && calls.contains("shmalloc"));
    let of_mpi: Vec<&&str> = calls.iter().filter(|c| c.contains("MPI")).collect();
    assert!(of_mpi.is_empty(), "the library's own calls: {of_mpi:?}");
    addresses_compare(&run);
}

/// Both PEs do the same to each other: same calls, same symmetric addresses.
fn addresses_compare(run: &Recorded) {
    let of = |pe: &str| -> Vec<String> {
        let calls = run.calls.iter().filter_map(|line| words(line));
        let calls =
            calls.filter(|(rank, operation, _)| *rank == pe && *operation == "shmem_long_p");
        calls
            .map(|(_, _, what)| what["address"].to_owned())
            .collect()
    };
    let (first, second) = (of("0"), of("1"));
    assert_eq!(first, second);
    for segment in ["data+", "heap+"] {
        assert!(
            first.iter().any(|address| address.starts_with(segment)),
            "{first:?}"
        );
    }
}

#[test]
fn calls_say_peer_bytes_and_values() {
    let run = record("shmem-calls", "attacks/shmem_end.c", &[], 3);
    let find = |pe: &str, name: &str| {
        let mut calls = run.calls.iter().filter_map(|line| words(line));
        let found = calls.find(|(rank, operation, _)| *rank == pe && *operation == name);
        found.unwrap_or_else(|| panic!("no {name} of {pe}")).2
    };
    let put = find("2", "shmem_long_p");
    assert_eq!([put["to"], put["bytes"], put["value"]], ["0", "8", "7"]);
    let wait = find("0", "shmem_long_wait_until");
    assert_eq!([wait["until"], wait["value"]], ["eq", "7"]);
    assert_eq!(wait["address"], put["address"]);
    assert_eq!(find("1", "shmem_barrier_all")["comm"], "all_PEs");
    let report = run.bench.analyze_all(&run.trace);
    let parsed: serde_json::Value = serde_json::from_str(&report).expect("a report");
    assert_eq!(parsed["run"]["models"], serde_json::json!(["shmem"]));
    assert!(!report.contains("MPI_"), "{report}");
}

/// A program that loads OpenSHMEM and looks its functions up is recorded like one that is linked.
#[test]
fn functions_that_are_looked_up() {
    let built = ("gcc", "attacks/shmem_dlopen.c", &["-rdynamic", "-ldl"][..]);
    until_undisturbed("looked-up functions", |attempt| {
        let run = record_built(&format!("shmem-dlopen-{attempt}"), built, &[], 2);
        for (name, times) in [
            ("shmem_init", 2),
            ("shmem_calloc", 2),
            ("shmem_barrier_all", 4),
            ("shmem_long_p", 3),
            ("shmem_long_wait_until", 3),
            ("shmem_finalize", 2),
        ] {
            let calls = run.calls.iter().filter_map(|line| words(line));
            assert_eq!(calls.filter(|call| call.1 == name).count(), times, "{name}");
        }
        let report = Report::parse(&run.bench.analyze_all(&run.trace));
        let report = report.expect("a report of the promised shape");
        let found = report.bottlenecks.iter();
        let found = found
            .filter(|b| b.pattern == "wait_on_value")
            .collect::<Vec<_>>();
        check(found.len() == 1 && found[0].instances == 3, &report)?;
        assert_eq!(found[0].location.function.as_deref(), Some("wait_for"));
        assert_eq!(found[0].causes[0].rank, 0);
        assert_eq!(found[0].causes[0].operation, "shmem_long_p");
        Ok(())
    });
}

/// The program ends in any of these ways, and its records are there.
#[test]
fn all_ways_to_end() {
    for way in ["0", "1", "2"] {
        let test = format!("shmem-end-{way}");
        let run = record(&test, "attacks/shmem_end.c", &[way], 3);
        let barriers = run.calls.iter().filter_map(|line| words(line));
        let barriers = barriers
            .filter(|call| call.1 == "shmem_barrier_all")
            .count();
        assert_eq!(barriers, 6, "{way}");
        let report = run.bench.analyze_all(&run.trace);
        assert!(!report.contains("truncated"), "{way}: {report}");
    }
}

#[test]
fn a_global_exit_leaves_what_was_done() {
    let bench = Bench::sharing("shmem-global-exit");
    let program = bench.compile_with("oshcc", "attacks/shmem_end.c", &[], &[]);
    let words_ = [program.as_os_str(), OsStr::new("3")];
    let outcome = bench.traced(2, &words_, "trace").shmem().run();
    outcome.expect_orderly();
    let dump = bench.dump(&bench.path("trace"));
    let barriers = dump.lines().filter_map(words);
    assert_eq!(barriers.filter(|c| c.1 == "shmem_barrier_all").count(), 4);
    assert!(dump.contains("shmem_global_exit"));
}

#[test]
fn a_pe_that_dies_with_a_lock_is_named() {
    let bench = Bench::sharing("shmem-dies-with-lock");
    let program = bench.compile_with("oshcc", "attacks/shmem_dies_with_lock.c", &[], &[]);
    let outcome = bench
        .traced(2, &[program.as_os_str()], "trace")
        .shmem()
        .run();
    assert!(outcome.expect_orderly().stderr.contains("signal 9"));
    let report = bench.path("report.json");
    for agents in [1, 2, 3] {
        let outcome = bench.analyze(&bench.path("trace"), agents, &report, &["--all"]);
        let text = outcome.expect_orderly().expect_success().stdout.clone();
        let held = "rank 0 held it when its trace ended, which is cut off";
        assert!(text.contains(held), "{agents} agents: {text}");
        let words = std::fs::read_to_string(&report).expect("a report");
        assert!(words.contains("lock_not_released"), "{words}");
    }
}

/// The hanging call is named, with the value that it waits for.
#[test]
fn a_pe_that_waits_forever_is_named() {
    let bench = Bench::sharing("shmem-waits-forever");
    let source = "attacks/shmem_hangs.c";
    let program = bench.compile_with("oshcc", source, &[], &[]);
    let outcome = bench
        .traced(3, &[program.as_os_str()], "trace")
        .shmem()
        .run();
    outcome.expect_orderly();
    let trace = bench.path("trace");
    let json = bench.analyze_all(&trace);
    let report = Report::parse(&json).expect("a report of the promised shape");
    // The others may have been ended in shmem_finalize.
    let mut cut_off = report.anomalies.iter().filter(|a| a.id == "cut_off_in");
    let hang = cut_off.find(|a| a.detail.starts_with("rank 1 "));
    let detail = &hang.expect("an anomaly").detail;
    let source = std::fs::read_to_string(programs().join(source)).expect("a source");
    let line = source
        .lines()
        .position(|line| line.contains("shmem_long_wait_until("));
    let place = format!("shmem_hangs.c:{}", line.expect("a line") + 1);
    let begin = format!("rank 1 was in shmem_long_wait_until at {place} when its trace ended");
    assert!(detail.starts_with(&begin), "{detail}");
    // Others went on for some time.
    assert!(detail.contains(", so for at least "), "{detail}");
    let waits = ", waiting until the variable at data+0x";
    assert!(
        detail.contains(waits) && detail.ends_with(" is != 0"),
        "{detail}"
    );
    let mut after = report.anomalies.iter().filter(|a| a.id == "cut_off_after");
    assert!(after.all(|a| !a.detail.starts_with("rank 1 ")));
    // It is no wait for a late write, since nobody wrote.
    let mut found = report.bottlenecks.iter();
    assert!(
        found.all(|b| b.operation != "shmem_long_wait_until"),
        "{report:#?}"
    );
    for agents in [1, 2, 3] {
        let path = bench.path("said.json");
        let outcome = bench.analyze(&trace, agents, &path, &[]);
        let said = outcome.expect_orderly().expect_success().stdout.clone();
        let said: Vec<&str> = said.split_whitespace().collect();
        let said = said.join(" ");
        assert!(said.contains("It did not end by itself: "), "{said}");
        assert!(
            said.contains("cut off in: rank 1 was in shmem_long_wait_until"),
            "{agents} agents: {said}"
        );
    }
}

/// Each holds the lock that the other one wants.
#[test]
fn pes_that_wait_for_each_others_locks_are_named() {
    let bench = Bench::sharing("shmem-locks-hang");
    let source = "attacks/shmem_locks_hang.c";
    let program = bench.compile_with("oshcc", source, &[], &[]);
    let run = bench.traced(3, &[program.as_os_str()], "trace").shmem();
    run.run().expect_orderly();
    let json = bench.analyze_all(&bench.path("trace"));
    let report = Report::parse(&json).expect("a report of the promised shape");
    let details = |id: &str| -> Vec<String> {
        let rows = report.anomalies.iter().filter(|row| row.id == id);
        rows.map(|row| row.detail.clone()).collect()
    };
    let source = std::fs::read_to_string(programs().join(source)).expect("a source");
    let place = |text: &str| {
        let line = source.lines().position(|line| line.contains(text));
        format!("shmem_locks_hang.c:{}", line.expect("a line") + 1)
    };
    let lock = place("shmem_set_lock(&locks[1 - mine])");
    let circle = format!(
        "ranks 0-1 wait for each other, so that none can go on: rank 0 in shmem_set_lock at {lock} \
         for rank 1, rank 1 in shmem_set_lock at {lock} for rank 0"
    );
    assert_eq!(details("deadlock"), [circle]);
    let hangs = details("cut_off_in");
    assert_eq!(hangs.len(), 2, "{hangs:?}");
    let wait = place("shmem_long_wait_until(");
    let begin = format!("rank 2 was in shmem_long_wait_until at {wait} when its trace ended");
    assert!(hangs[0].starts_with(&begin), "{hangs:?}");
    assert!(hangs[0].ends_with(" is >= 3"), "{hangs:?}");
    assert!(
        hangs[1].contains(", waiting for the lock at data+0x"),
        "{hangs:?}"
    );
    assert!(hangs[1].contains(", which rank "), "{hangs:?}");
}

/// Bytes of records per put, definitions included.
#[test]
fn transfers_take_few_bytes() {
    for (arguments, most) in [(&[][..], 16.0), (&["apart"], 25.0)] {
        let test = format!("shmem-bytes-{}", arguments.len());
        let run = record(&test, "attacks/shmem_transfers.c", arguments, 2);
        let addresses: BTreeSet<&str> = run
            .calls
            .iter()
            .filter_map(|line| words(line))
            .filter(|call| call.1 == "shmem_putmem")
            .map(|call| call.2["address"])
            .collect();
        let expected = if arguments.is_empty() { 1 } else { 50_000 };
        assert_eq!(addresses.len(), expected);
        let files = std::fs::read_dir(&run.trace).expect("a trace");
        let sizes = files.map(|file| file.and_then(|f| f.metadata()).expect("a file").len());
        let bytes = sizes.sum::<u64>() as f64 / 100_000.0;
        assert!(bytes < most, "{bytes} bytes per put");
    }
}

/// A lock goes from PE 0, which holds it for 30 ms of the third one's wait, to PE 1, which holds it
/// for 70 ms.
#[test]
fn holders_of_a_lock_have_their_shares() {
    until_right("shares of a lock", |attempt| {
        let test = format!("shmem-lock-shares-{attempt}");
        let run = record(&test, "wait_on_lock.c", &[], 4);
        let report = run.bench.analyze_all(&run.trace);
        shares_of_holders(&serde_json::from_str(&report).expect("a report"))
    });
}

fn shares_of_holders(report: &serde_json::Value) -> Result<(), Off> {
    let bottlenecks = report["bottlenecks"].as_array().expect("bottlenecks");
    let waits = |b: &&serde_json::Value| {
        b["pattern"] == "wait_on_lock" && b["ranks"][0]["rank"] == serde_json::json!(2)
    };
    let found = bottlenecks
        .iter()
        .find(waits)
        .expect("the third one's wait");
    let causes = found["causes"].as_array().expect("causes");
    let holders = causes.iter().map(|cause| cause["rank"].as_u64());
    let holders: Vec<Option<u64>> = holders.collect();
    check(
        found["instances"] == 5 && holders == [Some(1), Some(0)],
        found,
    )?;
    for (cause, expected) in causes.iter().zip([0.7, 0.3]) {
        let share = cause["share"].as_f64().expect("a share");
        check(near(share, expected, 0.15 * expected), causes)?;
        let because = cause["because"].as_str().expect("an explanation");
        assert!(because.contains("while it held the lock"), "{because}");
    }
    Ok(())
}

/// Nothing is written, and the program runs.
#[test]
fn off_is_off() {
    let bench = Bench::sharing("shmem-off");
    let program = bench.compile_with("oshcc", "attacks/shmem_end.c", &[], &[]);
    let run = bench.traced(2, &[program.as_os_str()], "trace").shmem();
    let outcome = run.env("LAGGARD_MODE", "off").run();
    outcome.expect_orderly().expect_success();
    assert!(
        !bench
            .path("trace")
            .join("rank000000.thread000.lgt")
            .exists()
    );
}
