//! OTF2 archives by EZTrace, and archives such as Score-P writes, with times known to the ns.

mod damaged;
mod grids;
mod scalasca;
mod threads;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use laggard_tests::archive::Archive;
use laggard_tests::attempts::until_undisturbed;
use laggard_tests::mpi::Mpi;
use laggard_tests::process;
use laggard_tests::product::{Bench, TIMEOUT, difference, programs, python};
use laggard_tests::recorded::check;
use laggard_tests::report::Report;
use serde_json::{Value, json};

/// ns between the beginnings of two functions.
const PERIOD: u64 = 100_000_000;

/// An expected finding: pattern, operation, function, µs, ranks.
type Expected = (
    &'static str,
    &'static str,
    &'static str,
    u64,
    &'static [u32],
);

/// Three ranks that wait for each other in one function after another.
fn patterns() -> (Archive, Vec<Expected>) {
    let mut archive = Archive::new(3);
    archive
        .line("region main app.c 3")
        .line("comm pair 1,2 world")
        .line("self alone")
        .line("group origin 1")
        .line("group target 0")
        .line("window w world");
    for rank in 0..3 {
        archive.event(rank, 0, "program_begin ./app -n 3");
        archive.call((rank, "MPI_Init", (0, 1_000), &[]));
        archive.event(rank, 1_000, "enter main");
    }
    let mut begin = 0;
    let mut function = |archive: &mut Archive, name: &str, calls: &[_]| {
        begin += PERIOD;
        let line = 10 * (begin / PERIOD) as u32;
        archive.function(name, line, begin, begin + PERIOD - 1_000, calls);
    };
    let a = &mut archive;
    function(
        a,
        "late_sender",
        &[
            (0, "MPI_Send", (50_000, 50_005), &["send 1 world 7 64"]),
            (1, "mpi_recv_", (0, 50_010), &["recv 0 world 7 64"]),
        ],
    );
    function(
        a,
        "late_receiver",
        &[
            (0, "MPI_Ssend", (0, 30_010), &["send 1 world 7 64"]),
            (1, "MPI_Recv", (30_000, 30_010), &["recv 0 world 7 64"]),
        ],
    );
    let all = |name, enters: [u64; 3], leaves: [u64; 3], inside| {
        [0, 1, 2].map(|rank| (rank as u32, name, (enters[rank], leaves[rank]), inside))
    };
    let barrier: &[&str] = &["begin", "end 0 world none 0 0"];
    let enters = [0, 10_000, 40_000];
    function(
        a,
        "barrier",
        &all("MPI_Barrier", enters, [40_010; 3], barrier),
    );
    let n_to_n: &[&str] = &["begin", "end 11 world none 8 8"];
    let enters = [0, 5_000, 20_000];
    function(
        a,
        "n_to_n",
        &all("MPI_Allreduce", enters, [20_010; 3], n_to_n),
    );
    let broadcast: &[&str] = &["begin", "end 1 world 0 8 8"];
    let (enters, leaves) = ([20_000, 0, 5_000], [20_005, 20_010, 20_010]);
    function(a, "broadcast", &all("MPI_Bcast", enters, leaves, broadcast));
    let reduce: &[&str] = &["begin", "end 12 world 0 8 8"];
    let (enters, leaves) = ([0, 10_000, 25_000], [25_010, 10_005, 25_005]);
    function(a, "reduce", &all("MPI_Reduce", enters, leaves, reduce));
    let scan: &[&str] = &["begin", "end 14 world none 8 8"];
    let (enters, leaves) = ([15_000, 0, 3_000], [15_005, 15_010, 15_010]);
    function(a, "scan", &all("MPI_Scan", enters, leaves, scan));
    function(
        a,
        "wrong_order",
        &[
            (0, "MPI_Send", (20_000, 20_005), &["send 1 world 2 64"]),
            (0, "MPI_Send", (60_000, 60_005), &["send 1 world 1 64"]),
            (1, "MPI_Recv", (0, 60_010), &["recv 0 world 1 64"]),
            (1, "MPI_Recv", (60_020, 60_030), &["recv 0 world 2 64"]),
        ],
    );
    let both = ["irecv 0 world 4 64 1", "irecv 2 world 4 64 2"];
    function(
        a,
        "waitall",
        &[
            (0, "MPI_Isend", (30_000, 30_005), &["isend 1 world 4 64 9"]),
            (0, "MPI_Wait", (30_010, 30_015), &["isend_complete 9"]),
            (1, "MPI_Irecv", (0, 5), &["irecv_request 1"]),
            (1, "MPI_Irecv", (5, 10), &["irecv_request 2"]),
            (1, "MPI_Waitall", (10, 45_010), &both),
            (2, "MPI_Send", (45_000, 45_005), &["send 1 world 4 64"]),
        ],
    );
    let posted: &[&str] = &["icollective_request 5"];
    let over: &[&str] = &["icollective_complete 0 world none 0 0 5"];
    function(
        a,
        "non_blocking",
        &[
            (0, "MPI_Ibarrier", (0, 5), posted),
            (0, "MPI_Wait", (10, 22_010), over),
            (1, "MPI_Ibarrier", (22_000, 22_005), posted),
            (1, "MPI_Wait", (22_006, 22_010), over),
            (2, "MPI_Ibarrier", (0, 5), posted),
            (2, "MPI_Wait", (10, 22_010), over),
        ],
    );
    let pair: &[&str] = &["begin", "end 0 pair none 0 0"];
    function(
        a,
        "two_of_three",
        &[
            (0, "MPI_Barrier", (0, 9_000), &["end 0 alone none 0 0"]),
            (1, "MPI_Barrier", (0, 7_010), pair),
            (2, "MPI_Barrier", (7_000, 7_010), pair),
            (1, "MPI_Recv", (8_000, 11_010), &["recv 1 pair 3 8"]),
            (2, "MPI_Send", (11_000, 11_005), &["send 0 pair 3 8"]),
        ],
    );
    let made: &[&str] = &[
        "window_begin",
        "window_create w",
        "window_end 17 3 w none 0 0",
    ];
    let (enters, leaves) = ([0, 12_000, 12_000], [12_010; 3]);
    function(a, "window", &all("MPI_Win_create", enters, leaves, made));
    let (posts, starts): (&[&str], &[&str]) =
        (&["group_sync 3 w origin"], &["group_sync 3 w target"]);
    function(
        a,
        "epoch",
        &[
            (0, "MPI_Win_post", (20_000, 20_005), posts),
            (0, "MPI_Win_wait", (30_000, 50_010), posts),
            (1, "MPI_Win_start", (0, 20_010), starts),
            (1, "MPI_Put", (40_000, 40_005), &["put w 0 8 1"]),
            (1, "MPI_Win_complete", (50_000, 50_005), starts),
        ],
    );
    let fence: &[&str] = &["window_begin", "window_end 0 3 w none 0 0"];
    function(
        a,
        "fence",
        &[
            (0, "MPI_Win_fence", (0, 30_010), fence),
            (1, "MPI_Put", (25_000, 25_005), &["put w 0 8 2"]),
            (1, "MPI_Win_fence", (30_000, 30_010), fence),
            (2, "MPI_Win_fence", (10_000, 30_010), fence),
        ],
    );
    let (locks, unlocks): (&[&str], &[&str]) =
        (&["request_lock w 0 1 0", "lock w 0 1 0"], &["unlock w 0 1"]);
    function(
        a,
        "locks",
        &[
            (1, "MPI_Win_lock", (0, 5), locks),
            (1, "MPI_Win_unlock", (20_000, 20_005), unlocks),
            (2, "MPI_Win_lock", (5_000, 20_006), locks),
            (2, "MPI_Win_unlock", (20_010, 20_015), unlocks),
        ],
    );
    let ring = |from, to| {
        [
            format!("send {to} world 6 8"),
            format!("recv {from} world 6 8"),
        ]
    };
    let rings = [ring(2, 1), ring(0, 2), ring(1, 0)];
    let rings = rings
        .each_ref()
        .map(|ring| [ring[0].as_str(), ring[1].as_str()]);
    function(
        a,
        "ring",
        &[
            (0, "MPI_Sendrecv", (0, 17_010), &rings[0]),
            (1, "MPI_Sendrecv", (0, 10), &rings[1]),
            (2, "MPI_Sendrecv", (17_000, 17_020), &rings[2]),
        ],
    );
    // With calling contexts, which hold the line of each call.
    let begin = begin + PERIOD;
    a.line("region solve app.c 70")
        .line("context in_main main app.c 5")
        .line("context in_solve solve app.c 77 in_main")
        .line("context in_recv MPI_Recv app.c 0 in_solve")
        .event(1, begin, "context_enter in_solve 1")
        .event(1, begin, "context_enter in_recv 1")
        .event(1, begin + 9_010_000, "recv 0 world 7 8")
        .event(1, begin + 9_010_000, "context_leave in_recv")
        .event(1, begin + 9_010_000, "context_leave in_solve");
    let sent = (begin + 9_000_000, begin + 9_005_000);
    a.call((0, "MPI_Send", sent, &["send 1 world 7 8"]));
    // Another thread of rank 1.
    let begin = begin + PERIOD;
    a.line("thread 10 1").event(10, begin, "enter main");
    let received = (begin, begin + 4_010_000);
    a.call((10, "MPI_Recv", received, &["recv 0 world 11 8"]));
    a.event(10, begin + PERIOD, "leave main");
    let sent = (begin + 4_000_000, begin + 4_005_000);
    a.call((0, "MPI_Send", sent, &["send 1 world 11 8"]));
    let end = begin + PERIOD;
    for rank in 0..3 {
        archive.event(rank, end, "leave main");
        archive.call((rank, "MPI_Finalize", (end, end + 1_000), &[]));
    }
    let expected: Vec<Expected> = vec![
        ("late_sender", "MPI_Recv", "late_sender", 50_000, &[1]),
        ("late_receiver", "MPI_Ssend", "late_receiver", 30_000, &[0]),
        ("wait_at_barrier", "MPI_Barrier", "barrier", 70_000, &[0, 1]),
        ("wait_at_nxn", "MPI_Allreduce", "n_to_n", 35_000, &[0, 1]),
        ("late_broadcast", "MPI_Bcast", "broadcast", 35_000, &[1, 2]),
        ("early_reduce", "MPI_Reduce", "reduce", 10_000, &[0]),
        (
            "late_reduce_contribution",
            "MPI_Reduce",
            "reduce",
            15_000,
            &[0],
        ),
        ("early_scan", "MPI_Scan", "scan", 27_000, &[1, 2]),
        (
            "late_sender_wrong_order_same_source",
            "MPI_Recv",
            "wrong_order",
            60_000,
            &[1],
        ),
        ("late_sender", "MPI_Waitall", "waitall", 44_990, &[1]),
        (
            "wait_at_barrier",
            "MPI_Wait",
            "non_blocking",
            43_980,
            &[0, 2],
        ),
        (
            "wait_at_barrier",
            "MPI_Barrier",
            "two_of_three",
            7_000,
            &[1],
        ),
        ("late_sender", "MPI_Recv", "two_of_three", 3_000, &[1]),
        (
            "wait_at_window_create",
            "MPI_Win_create",
            "window",
            12_000,
            &[0],
        ),
        ("late_post", "MPI_Win_start", "epoch", 20_000, &[1]),
        ("early_wait", "MPI_Win_wait", "epoch", 10_005, &[0]),
        ("late_complete", "MPI_Win_wait", "epoch", 9_995, &[0]),
        ("early_fence", "MPI_Win_fence", "fence", 25_005, &[0]),
        ("wait_at_fence", "MPI_Win_fence", "fence", 24_995, &[0, 2]),
        ("lock_contention", "MPI_Win_lock", "locks", 15_000, &[2]),
        ("late_sender", "MPI_Sendrecv", "ring", 17_000, &[0]),
        ("late_sender", "MPI_Recv", "solve", 9_000, &[1]),
        ("late_sender", "MPI_Recv", "main", 4_000, &[1]),
    ];
    (archive, expected)
}

/// Findings in the form of expected ones, sorted. Losses are exact to the ns.
fn found(report: &Report) -> Vec<(String, String, String, u64, Vec<u32>)> {
    let named = report.bottlenecks.iter();
    let named = named.filter(|found| found.pattern != "unexplained");
    let rows = named.map(|found| {
        let ranks = found.ranks.iter().map(|share| share.rank);
        let mut ranks: Vec<u32> = ranks.collect();
        ranks.sort_unstable();
        let function = found.location.function.clone().unwrap_or_default();
        let ns = (found.severity_s * 1e9).round() as u64;
        (
            found.pattern.clone(),
            found.operation.clone(),
            function,
            ns,
            ranks,
        )
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort();
    rows
}

#[test]
fn patterns_are_found_to_the_nanosecond() {
    let bench = Bench::sharing("otf2-patterns");
    let (archive, expected) = patterns();
    let report = bench.analyze_all(&archive.write(&bench, "archive"));
    let report = Report::parse(&report).expect("a report");
    let own = expected
        .iter()
        .map(|&(pattern, operation, function, us, ranks)| {
            let [pattern, operation, function] = [pattern, operation, function].map(str::to_owned);
            (pattern, operation, function, us * 1_000, ranks.to_vec())
        });
    let mut own: Vec<_> = own.collect();
    own.sort();
    assert_eq!(found(&report), own);
    assert!(report.anomalies.is_empty(), "{:?}", report.anomalies);
    assert_eq!(
        (report.run.program.as_str(), report.run.locations),
        ("./app", 4)
    );
    let solve = report
        .bottlenecks
        .iter()
        .find(|b| b.location.is("app.c", 77));
    assert!(solve.is_some_and(|b| b.location.leads_over("app.c", 5)));
    let barrier = report
        .bottlenecks
        .iter()
        .find(|b| b.pattern == "wait_at_barrier");
    let place = &barrier.expect("just found").location;
    assert!(
        place.is("app.c", 30) && place.leads_over("app.c", 3),
        "{place:?}"
    );
}

/// An archive is a trace like any other: `info` and `dump` work, and it is exported as an archive
/// with the same findings, and as tables.
#[test]
fn archives_are_exported() {
    let bench = Bench::sharing("otf2-export");
    let (mut archive, _) = patterns();
    // Records without use for the analysis.
    for rank in [0, 1] {
        archive.event(rank, 100 * PERIOD, "thread_create 4294967295 0");
    }
    let anchor = archive.write(&bench, "archive");
    let report = Report::parse(&bench.analyze_all(&anchor)).expect("a report");
    assert_eq!(report.anomaly("skipped_records"), 2);
    let run = |words: &[&str]| {
        let mut command = Command::new(&bench.command);
        command.arg(words[0]).arg(&anchor).args(&words[1..]);
        command.current_dir(&bench.dir);
        let outcome = process::run(&mut command, TIMEOUT, &bench.path(words[0]));
        outcome.expect_orderly().expect_success()
    };
    let told = run(&["info"]).stdout;
    assert!(
        told.contains("MPI_Win_fence") && told.contains("MPI_Sendrecv"),
        "{told}"
    );
    let dump = run(&["dump"]).stdout;
    let calls = dump.lines().filter(|line| line.contains("MPI_")).count();
    assert_eq!(calls as u64, report.run.operations, "{dump}");
    run(&["export", "--to", "otf2", "-o", "again"]);
    let written = bench.path("again").join("traces.otf2");
    let again = Report::parse(&bench.analyze_all(&written)).expect("a report");
    assert_eq!(found(&again), found(&report));
    let events = |anchor: &Path| -> Vec<String> {
        let mut command = Command::new(python());
        command.arg(programs().join("../otf2/read.py")).arg(anchor);
        let read = process::run(&mut command, TIMEOUT, &bench.path("read")).expect_success();
        // Data that an archive may have in several ways, or not at all, like the start of threads.
        let free = [
            "Enter",
            "Leave",
            "CallingContext",
            "ThreadCreate",
            "MpiCollectiveBegin",
            "ProgramEnd",
            "RmaRequestLock",
        ];
        let matters = |line: &&str| !free.iter().any(|kind| line.starts_with(kind));
        read.stdout
            .lines()
            .filter(matters)
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(events(&written), events(&anchor));
    assert!(events(&anchor).contains(&"RmaGroupSync 4".to_owned()));
    run(&["export", "--to", "parquet", "-o", "tables"]);
    assert!(bench.path("tables").join("messages.parquet").exists());
}

/// The same times in ticks of other clocks, each corrected by the archive.
#[test]
fn clocks_are_corrected_as_the_archive_says() {
    let bench = Bench::sharing("otf2-clocks");
    let losses = [1_000_000_000u64, 10].map(|resolution| {
        let mut archive = Archive::new(2);
        archive.line(&format!("resolution {resolution}"));
        // Rank 1's clock is 3 s late at first, and 1 s after 100 s.
        archive.line(&format!("clock 1 0 {}", 3 * resolution));
        archive.line(&format!("clock 1 {} {}", 100 * resolution, resolution));
        archive.line("clock 0 0 0");
        archive.line("region main app.c 3");
        let at = |rank: u32, seconds: u64| match rank {
            0 => seconds * resolution,
            // t + 3 - t / 50 = seconds
            _ => (seconds - 3) * resolution * 50 / 49,
        };
        for (rank, what) in [(0, "send 1 world 7 64"), (1, "recv 0 world 7 64")] {
            let name = ["MPI_Send", "MPI_Recv"][rank as usize];
            let enter = [62, 52][rank as usize];
            archive.event(rank, at(rank, 3), "enter main");
            archive.call((rank, name, (at(rank, enter), at(rank, 101)), &[what]));
            archive.event(rank, at(rank, 101), "leave main");
        }
        let anchor = archive.write(&bench, &format!("archive-{resolution}"));
        let report = Report::parse(&bench.analyze_all(&anchor)).expect("a report");
        assert_eq!(report.anomaly("clock_unsynchronised"), 0);
        report.metrics["late_sender"].total_s
    });
    for loss in losses {
        assert!((loss - 10.0).abs() < 1e-8, "{loss} s are not 10 s");
    }
}

/// Records the program with EZTrace, in a directory; returns the anchor file and the program's
/// output.
fn eztrace(bench: &Bench, directory: &str) -> (PathBuf, [f64; 2]) {
    let program = bench.compile("../otf2/late_sender.c", &[], &[]);
    let output = bench.path(directory);
    let words = ["eztrace", "-t", "openmpi", "-o"].map(std::ffi::OsStr::new);
    let mut words = words.to_vec();
    words.extend([output.as_os_str(), program.as_os_str()]);
    let outcome = bench.plain(2, &words).run().expect_success();
    let printed = outcome.stdout.lines().find_map(|line| {
        let (first, second) = line.trim().split_once(' ')?;
        Some([first.parse().ok()?, second.parse().ok()?])
    });
    let recorded = fs::read_dir(&output).expect("a directory").flatten().next();
    let recorded = recorded.expect("the program's archive").path();
    let anchor = recorded.join("eztrace_log.otf2");
    (anchor, printed.expect("the program's own measurement"))
}

/// EZTrace counts time in each process from its own start. It does not record how requests complete
/// that MPI_Wait sets to null: non-persistent ones in C programs.
#[test]
fn archives_of_eztrace() {
    if Mpi::is_left_out(
        Mpi::Mpich,
        "EZTrace, which Debian builds for Open MPI alone",
    ) {
        return;
    }
    let bench = Bench::new("otf2-eztrace");
    until_undisturbed("EZTrace", |attempt| {
        let (anchor, waited) = eztrace(&bench, &format!("eztrace-{attempt}"));
        let report = Report::parse(&bench.analyze_all(&anchor)).expect("a report");
        let mut late: Vec<_> = report
            .bottlenecks
            .iter()
            .filter(|b| b.pattern == "late_sender")
            .collect();
        late.sort_by_key(|late| late.operation.clone());
        let found: Vec<_> = late
            .iter()
            .map(|late| (late.operation.as_str(), late.instances))
            .collect();
        check(found == [("MPI_Recv", 3), ("MPI_Wait", 2)], &found)?;
        assert_eq!(report.anomaly("unfinished_requests"), 1);
        assert_eq!(report.anomaly("repeated_definitions"), 0);
        let dump = bench.dump(&anchor);
        assert!(dump.contains("MPI_Irecv"), "{dump}");
        for (late, waited) in late.iter().zip(waited) {
            assert_eq!((late.ranks[0].rank, late.causes[0].rank), (1, 0));
            let found = late.severity_s;
            let text = format!("{found} s in the report, {waited} s by the program");
            check((found - waited).abs() < 0.1 * waited, &text)?;
        }
        Ok(())
    });
}

/// Results for an archive with one agent and with two.
enum Verdict {
    Refused(String),
    Reported(Box<Report>),
}

#[track_caller]
fn verdict(bench: &Bench, anchor: &Path) -> Verdict {
    let path = bench.path("verdict.json");
    let verdicts = [1, 2].map(|agents| {
        let _ = fs::remove_file(&path);
        let outcome = bench
            .analyze(anchor, agents, &path, &["--all", "-q"])
            .expect_orderly();
        if outcome.success() {
            return Ok(fs::read_to_string(&path).expect("a report"));
        }
        assert_eq!(outcome.code, Some(1), "{outcome}");
        let lines = outcome
            .stderr
            .lines()
            .filter(|line| line.starts_with("laggard"));
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        assert_eq!(lines.len(), 1, "not one line:\n{outcome}");
        Err(lines[0].clone())
    });
    match verdicts {
        [Ok(one), Ok(two)] => {
            assert_eq!(difference(&one, &two), None, "1 and 2 agents");
            Verdict::Reported(Box::new(Report::parse(&one).expect("a report")))
        }
        [Err(one), Err(two)] if one == two => Verdict::Refused(one),
        [one, two] => panic!("one agent: {one:?}; two: {two:?}"),
    }
}

#[track_caller]
fn refused(bench: &Bench, anchor: &Path, texts: &[&str]) {
    match verdict(bench, anchor) {
        Verdict::Refused(line) => {
            for text in texts {
                assert!(line.contains(text), "{line:?} does not say {text:?}");
            }
        }
        Verdict::Reported(report) => panic!("was not refused: {report:?}"),
    }
}

#[track_caller]
fn reported(bench: &Bench, anchor: &Path) -> Report {
    match verdict(bench, anchor) {
        Verdict::Reported(report) => *report,
        Verdict::Refused(line) => panic!("was refused: {line}"),
    }
}

#[test]
fn what_is_no_archive_is_refused() {
    let bench = Bench::sharing("otf2-no-archive");
    let text = bench.path("text.otf2");
    fs::write(&text, "no archive\n").expect("a file");
    refused(&bench, &text, &["text.otf2", "not an OTF2 archive"]);
    refused(&bench, &bench.path("missing.otf2"), &["missing.otf2"]);
    refused(
        &bench,
        &bench.dir.join("directory.otf2"),
        &["directory.otf2"],
    );
    let (archive, _) = patterns();
    let anchor = archive.write(&bench, "archive");
    let mut command = Command::new(&bench.command);
    command
        .arg("info")
        .arg(&anchor)
        .env("TMPDIR", "/no/such/directory");
    let outcome = process::run(&mut command, TIMEOUT, &bench.path("info"));
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(outcome.stderr.contains("set TMPDIR"), "{outcome}");
    let definitions = anchor.with_extension("def");
    fs::write(&definitions, "").expect("a file");
    refused(&bench, &anchor, &["traces.otf2", "definitions"]);
    fs::remove_file(&definitions).expect("removed");
    refused(&bench, &anchor, &["traces.otf2", "definitions"]);
}

#[test]
fn files_that_are_missing_or_cut_are_told() {
    let bench = Bench::sharing("otf2-spoiled");
    let (archive, _) = patterns();
    let anchor = archive.write(&bench, "archive");
    let of = |name: &str| anchor.with_file_name("traces").join(name);
    fs::remove_file(of("2.def")).expect("removed");
    let report = reported(&bench, &anchor);
    assert_eq!(report.anomaly("missing_definitions"), 1);
    assert!(report.metrics.contains_key("late_sender"));
    let events = fs::read(of("1.evt")).expect("events");
    fs::write(of("1.evt"), &events[..events.len() / 2]).expect("written");
    for _ in 0..2 {
        let report = reported(&bench, &anchor);
        assert_eq!(report.anomaly("unreadable_file"), 1);
        let errors = report.errors();
        let told = errors
            .iter()
            .any(|error| error.contains("1.evt is cut off"));
        assert!(
            told || errors.iter().any(|e| e.contains("location 1")),
            "{errors:?}"
        );
        let _ = fs::remove_file(of("1.evt"));
    }
    // Any wrong bytes are reported or do not matter.
    let mut whole = events.clone();
    for at in (40..events.len()).step_by(events.len() / 24) {
        whole[at] ^= 0xff;
        fs::write(of("1.evt"), &whole).expect("written");
        let path = bench.path("verdict.json");
        let outcome = bench.analyze(&anchor, 1, &path, &["--all", "-q"]);
        let code = outcome.expect_orderly().code;
        assert!(matches!(code, Some(0 | 1)), "byte {at}: {code:?}");
        whole[at] ^= 0xff;
    }
}

#[test]
fn archives_that_contradict_themselves() {
    let bench = Bench::sharing("otf2-contradictions");
    let mut archive = Archive::new(4);
    archive
        .line("twice")
        .line("again 2")
        .line("lost 3")
        .line("metrics 9 0")
        .line("region main app.c 3")
        // Left without enter; entered without leave.
        .event(0, 10, "leave main")
        .event(0, 20, "enter main")
        // The world has no rank 7.
        .call((0, "MPI_Send", (100, 200), &["send 7 world 1 8"]))
        // Nobody posted request 77.
        .call((0, "MPI_Wait", (300, 400), &["irecv 1 world 1 8 77"]))
        // Outside of any call, and on an unknown communicator.
        .event(2, 100, "begin")
        .event(2, 200, "send 0 world 2 8");
    // One of two messages is received with a request that never completes. Nobody knows which one
    // the known receive got.
    archive
        .call((0, "MPI_Send", (1_000_000, 1_000_010), &["send 1 world 5 8"]))
        .call((0, "MPI_Send", (9_000_000, 9_000_010), &["send 1 world 5 8"]))
        .call((1, "MPI_Irecv", (100, 200), &["irecv_request 1"]))
        .call((1, "MPI_Wait", (300, 1_000_020), &[]))
        .call((1, "MPI_Recv", (1_000_030, 9_000_020), &["recv 0 world 5 8"]));
    let report = reported(&bench, &archive.write(&bench, "archive"));
    for (id, count) in [
        ("repeated_locations", 1),
        ("missing_ranks", 1),
        ("other_locations", 1),
        ("unmatched_regions", 2),
        ("unknown_requests", 1),
        ("unfinished_requests", 1),
        ("uncertain_channels", 4),
    ] {
        assert_eq!(report.anomaly(id), count, "{id}: {:?}", report.anomalies);
    }
    assert!(
        report.anomaly("undefined_references") > 0,
        "{:?}",
        report.anomalies
    );
    let mut found = report.bottlenecks.iter();
    let waits = found.find(|found| found.pattern != "unexplained");
    assert!(waits.is_none(), "{waits:?}");
}

/// Metrics that are sums of what a thread did are counters: what they say of the time between calls counts, and not
/// what they say of calls. Others are left out, and that is said.
#[test]
fn metrics_are_counters() {
    let bench = Bench::sharing("otf2-metrics");
    let mut archive = Archive::new(2);
    archive
        .line("metric papi strict PAPI_TOT_INS,PAPI_TOT_CYC,PAPI_FP_OPS/sum/d")
        .line("metric usage some ru_utime/sum/i/-6/s,ru_maxrss/level")
        .line("metric power any energy")
        .line("about 0 other papi 1")
        .line("region main app.c 3");
    // Time, and million instructions, cycles and operations and ms in user mode so far.
    let mut at = |rank: u32, time: u64, sums: [u64; 4], what: &[&str]| {
        let [instructions, cycles, operations, user] = sums.map(|sum| sum * 1_000_000);
        let papi = format!("metric papi {instructions} {cycles} {operations}.4");
        archive.event(rank, time, &papi);
        let usage = format!("metric usage {} 4096", user / 1000);
        archive.event(rank, time, &usage);
        archive.event(rank, time, &format!("metric power {time}"));
        archive.event(rank, time, "metric other 1 2 3");
        for what in what {
            archive.event(rank, time, what);
        }
    };
    const MS: u64 = 1_000_000;
    let (send, receive) = ("send 1 world 7 64", "recv 0 world 7 64");
    for rank in 0..2 {
        at(rank, 0, [7, 7, 7, 7], &["enter main"]);
        at(rank, MS, [9, 9, 9, 9], &["enter MPI_Init"]);
        at(rank, 2 * MS, [20, 20, 20, 20], &["leave MPI_Init"]);
    }
    // Three times as many instructions, twice as many cycles for each.
    at(0, 62 * MS, [110, 140, 50, 70], &["enter MPI_Send"]);
    at(0, 63 * MS, [115, 145, 55, 71], &[send, "leave MPI_Send"]);
    at(1, 12 * MS, [50, 40, 20, 30], &["enter MPI_Recv"]);
    at(1, 63 * MS, [900, 900, 20, 80], &[receive, "leave MPI_Recv"]);
    for (rank, before, after) in [
        (0, [116, 147, 55, 72], [120; 4]),
        (1, [901, 902, 20, 81], [990; 4]),
    ] {
        at(rank, 64 * MS, before, &["enter MPI_Finalize"]);
        at(rank, 65 * MS, after, &["leave MPI_Finalize"]);
        at(rank, 65 * MS, after, &["leave main"]);
    }
    let anchor = archive.write(&bench, "archive");
    let path = bench.path("report.json");
    let outcome = bench.analyze(&anchor, 1, &path, &["--all", "-q"]);
    outcome.expect_orderly().expect_success();
    let report = fs::read_to_string(&path).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let locations = &report["locations"];
    assert_eq!(
        locations[0]["counters"],
        json!({
            "instructions": 91 * MS, "cycles": 122 * MS, "PAPI_FP_OPS": 30 * MS,
            "ru_utime (10^-6 s)": 51_000,
        })
    );
    assert_eq!(
        locations[1]["counters"],
        json!({
            "instructions": 31 * MS, "cycles": 22 * MS, "PAPI_FP_OPS": 0,
            "ru_utime (10^-6 s)": 11_000,
        })
    );
    let counted = |at: usize| locations[at]["counted_s"].as_f64().unwrap_or(0.0);
    assert!(
        (counted(0) - 0.061).abs() < 1e-9 && (counted(1) - 0.011).abs() < 1e-9,
        "{locations}"
    );
    let factors = &report["root_causes"][0]["factors"];
    let of = |name: &str| factors[name].as_f64().unwrap_or(f64::NAN);
    // Times 60 and 10 ms, instructions 90 and 30 million, cycles 120 and 20 million.
    let whole = 6f64.ln();
    for (name, ratio) in [
        ("instructions_s", 3.0f64),
        ("cycles_per_instruction_s", 2.0),
        ("frequency_s", 1.0),
    ] {
        let expected = of("excess_s") * ratio.ln() / whole;
        assert!((of(name) - expected).abs() < 1e-6, "{name}: {factors}");
    }
    let anomalies = report["anomalies"].as_array().into_iter().flatten();
    let mut others = anomalies.filter(|row| row["id"] == "other_metrics");
    // A level, one that comes at any time, and one about another location.
    assert_eq!(others.next().map(|row| &row["count"]), Some(&json!(3)));
}

/// A rank whose location the archive does not tell.
#[test]
fn archives_without_a_group_of_locations() {
    let bench = Bench::sharing("otf2-no-group");
    let (archive, _) = patterns();
    let mut archive = archive.clone();
    archive.line("no_locations");
    let report = reported(&bench, &archive.write(&bench, "archive"));
    assert_eq!(report.anomaly("guessed_ranks"), 1);
    assert!(report.metrics.contains_key("late_sender"));
}
