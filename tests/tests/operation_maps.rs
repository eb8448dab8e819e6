//! Operation maps: the program's own operations are diagnosed like a library's.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use laggard_tests::attempts::{Off, until_right};
use laggard_tests::mpi::Mpi;
use laggard_tests::product::Bench;
use laggard_tests::recorded::{Recorded, analyze, check, lines, mark, near, record, with_header};
use laggard_tests::report::{Anomaly, Bottleneck, Report};

/// Loops of the program count as waits for a value if an operation map says so.
#[test]
fn home_made_waits() {
    if Mpi::is_left_out(Mpi::Mpich, "it has no OpenSHMEM") {
        return;
    }
    let source = "regions/spin.c";
    until_right("maps-spin", |attempt| {
        let bench = Bench::sharing(&format!("maps-spin-{attempt}"));
        let flags = with_header(&["-finstrument-functions"]);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let program = bench.compile_with("oshcc", source, &flags, &["-loshmem"]);
        let run = record(bench, &program, 3, true);
        let map = run.bench.path("map.toml");
        fs::write(&map, "[operations]\n\"spin_until\" = \"wait_on_value\"\n\"poll_until\" = \"wait_on_value\"\n\"named_until\" = \"wait_on_value\"\n").unwrap();
        let map = map.display().to_string();
        for all in [false, true] {
            let options = ["--operation-map", &map, "--all"];
            let (report, rows) = analyze(&run, &options[..2 + usize::from(all)]);
            assert!(report.errors().is_empty() && report.anomaly("unknown_operation") == 0);
            assert_eq!(rows["spin_until"]["operation_type"], "wait_on_value");
            for (name, at, rank, by, line) in [
                ("spin_until", "spin", 1, 0, "put"),
                ("poll_until", "poll", 0, 2, "again"),
                ("named_until", "named", 2, 1, "write"),
            ] {
                let mut found = report.bottlenecks.iter().filter(|b| b.operation == name);
                let found = found.next().ok_or(format!("no {name}"))?;
                assert_eq!(found.pattern, "wait_on_value");
                assert!(found.location.is("spin.c", mark(source, at)), "{found:#?}");
                assert!((0.5..1.0).contains(&found.confidence), "{found:#?}");
                let [victim] = &found.ranks[..] else {
                    panic!("{found:#?}")
                };
                assert_eq!((victim.rank, found.instances), (rank, 5));
                let cause = &found.causes[0];
                let right = cause.rank == by
                    && cause.operation == "shmem_long_p"
                    && cause.location.is("spin.c", mark(source, line))
                    && cause.because.contains("comput")
                    && near(found.severity_s, 0.3, 0.03);
                check(right && found.causes.len() == 1, found)?;
            }
        }
        // Without a map there is nothing of it.
        let (report, rows) = analyze(&run, &["--all"]);
        assert!(
            report
                .bottlenecks
                .iter()
                .all(|b| b.pattern != "wait_on_value")
        );
        assert!(rows["spin_until"]["operation_type"].is_null());
        wrong_maps(&run);
        Ok(())
    });
}

/// The one finding of this pattern in this operation.
fn only<'r>(report: &'r Report, pattern: &str, operation: &str) -> Result<&'r Bottleneck, String> {
    let found = report.bottlenecks.iter();
    let mut found = found.filter(|b| b.pattern == pattern && b.operation == operation);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (one, other) => Err(format!("{pattern} in {operation}: {one:#?} {other:#?}")),
    }
}

/// Ranks and their losses, within 10 %.
fn check_shares(found: &Bottleneck, expected: &[(u32, f64)]) -> Result<(), Off> {
    let ranks: BTreeMap<u32, f64> = found.ranks.iter().map(|r| (r.rank, r.severity_s)).collect();
    let ranks: Vec<u32> = ranks.into_keys().collect();
    let wanted: Vec<u32> = expected.iter().map(|(rank, _)| *rank).collect();
    check(ranks == wanted, found)?;
    for of in &found.ranks {
        let (_, share) = expected.iter().find(|e| e.0 == of.rank).expect("a rank");
        check(near(of.severity_s, *share, 0.1 * share), found)?;
    }
    Ok(())
}

/// Whether a rank has nearly all of the blame: others come some µs after the first.
fn is_nearly_alone(found: &Bottleneck, rank: u32) -> bool {
    let first = &found.causes[0];
    first.rank == rank && first.share > 0.9
}

/// Barriers of the program are matched among all ranks that run them, if the recording knew an
/// operation map.
#[test]
fn home_made_barriers() {
    let source = "regions/meet.c";
    until_right("maps-meet", |attempt| {
        let bench = Bench::sharing(&format!("maps-meet-{attempt}"));
        let functions = [
            "-finstrument-functions",
            "-finstrument-functions-exclude-function-list=now,at,at_serving,start,finish",
        ];
        let flags = with_header(&functions);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let program = bench.compile(source, &flags, &[]);
        let map = bench.path("map.toml");
        let names = ["meet", "meet_some", "meet_in_pairs", "meet_together"];
        let text: Vec<String> = names
            .iter()
            .map(|name| format!("\"{name}\" = \"group_sync\"\n"))
            .collect();
        fs::write(&map, text.concat()).unwrap();
        let record = |trace: &str, map: Option<&Path>| {
            let mut run = bench.traced(4, &[program.as_os_str()], trace);
            if let Some(map) = map {
                run = run.env("LAGGARD_OPERATION_MAP", map.to_str().expect("a path"));
            }
            run.run().expect_orderly().expect_success()
        };
        let (with, without) = (record("trace", Some(&map)), record("without", None));
        assert_eq!(lines(&with), lines(&without));
        assert_eq!(with.stderr, without.stderr);
        let map = map.display().to_string();
        let (trace, other) = (bench.path("trace"), bench.path("without"));
        let mut run = Recorded { bench, trace };
        for all in [false, true] {
            let options = ["--operation-map", &map, "--all"];
            let (report, rows) = analyze(&run, &options[..2 + usize::from(all)]);
            assert!(report.errors().is_empty(), "{:#?}", report.anomalies);
            assert_eq!(rows["meet"]["operation_type"], "group_sync");
            let found = only(&report, "wait_at_barrier", "meet")?;
            assert!(
                found.location.is("meet.c", mark(source, "meet")),
                "{found:#?}"
            );
            check_shares(found, &[(0, 0.3), (1, 0.3), (2, 0.3)])?;
            let causes = &found.causes;
            check(is_nearly_alone(found, 3), found)?;
            assert_eq!(causes[0].operation, "meet");
            assert!(
                causes[0].location.is("meet.c", mark(source, "meet")),
                "{found:#?}"
            );
            check(causes[0].because.contains("computed"), found)?;
            // A barrier that only some ranks run.
            let found = only(&report, "wait_at_barrier", "meet_some")?;
            assert!(
                found.location.is("meet.c", mark(source, "region")),
                "{found:#?}"
            );
            check_shares(found, &[(2, 0.2)])?;
            check(is_nearly_alone(found, 1), found)?;
            // For pairs nothing is reported, and the anomaly says why.
            assert!(only(&report, "wait_at_barrier", "meet_in_pairs").is_err());
            let mut odd = report.anomalies.iter();
            let odd = odd
                .find(|a| a.id == "operation_not_diagnosed")
                .expect("an anomaly");
            assert_eq!(
                report.anomaly("operation_not_diagnosed"),
                1,
                "{:#?}",
                report.anomalies
            );
            assert!(odd.detail.contains("\"meet_in_pairs\""), "{odd:?}");
            assert!(odd.detail.contains("not one group"), "{odd:?}");
            let together = only(&report, "wait_at_barrier", "meet_together");
            check(
                together.is_ok_and(|b| b.severity_s < 0.02) || !all,
                &report.bottlenecks,
            )?;
        }
        // Treated as a collective that nobody leaves before all have come.
        let comm = run.bench.path("comm.toml");
        fs::write(&comm, "meet = 'group_comm'\n").unwrap();
        let comm = comm.display().to_string();
        let (report, _) = analyze(&run, &["--operation-map", &comm]);
        let found = only(&report, "wait_at_nxn", "meet")?;
        check_shares(found, &[(0, 0.3), (1, 0.3), (2, 0.3)])?;
        check(is_nearly_alone(found, 3), found)?;
        // Without the map instances are missing, and nothing is guessed.
        run.trace = other;
        let (report, _) = analyze(&run, &["--operation-map", &map]);
        let mut odd = report.anomalies.iter();
        let lacks = |a: &&Anomaly| {
            a.id == "operation_not_diagnosed" && a.detail.contains("the trace lacks")
        };
        assert!(
            odd.any(|a| lacks(&a) && a.detail.contains("\"meet\"")),
            "{report:#?}"
        );
        let mut found = report.bottlenecks.iter();
        assert!(!found.any(|b| b.operation == "meet"));
        Ok(())
    });
}

/// Loops that wait for a flag in a window, in their own memory or in another rank's.
#[test]
fn flags_in_windows() {
    let source = "regions/flags.c";
    until_right("maps-flags", |attempt| {
        let bench = Bench::sharing(&format!("maps-flags-{attempt}"));
        let program = bench.compile(source, &["-finstrument-functions"], &[]);
        let run = record(bench, &program, 4, false);
        let map = run.bench.path("map.toml");
        fs::write(
            &map,
            "spin_own = \"wait_on_value\"\nspin_shared = \"wait_on_value\"\n",
        )
        .unwrap();
        let map = map.display().to_string();
        let (report, _) = analyze(&run, &["--operation-map", &map]);
        assert!(report.errors().is_empty(), "{:#?}", report.anomalies);
        for (name, at, shares, by, call, line) in [
            ("spin_own", "own", &[(1, 0.3)][..], 0, "MPI_Put", "put"),
            (
                "spin_shared",
                "shared",
                &[(2, 0.3), (3, 0.3)],
                1,
                "MPI_Accumulate",
                "add",
            ),
        ] {
            let found = only(&report, "wait_on_value", name)?;
            assert!(found.location.is("flags.c", mark(source, at)), "{found:#?}");
            assert!((0.5..1.0).contains(&found.confidence), "{found:#?}");
            check_shares(found, shares)?;
            let cause = &found.causes[0];
            let right = cause.rank == by
                && cause.operation == call
                && cause.location.is("flags.c", mark(source, line))
                && cause.because.contains("comput");
            check(right && found.causes.len() == 1, found)?;
        }
        Ok(())
    });
}

/// Regions that tell which variable in a window they wait for. Other variables do not count, nor do
/// failed attempts to write.
#[test]
fn named_flags_in_windows() {
    let source = "regions/windows.c";
    until_right("maps-windows", |attempt| {
        let bench = Bench::sharing(&format!("maps-windows-{attempt}"));
        let flags = with_header(&[]);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let program = bench.compile(source, &flags, &[]);
        let run = record(bench, &program, 4, false);
        let map = run.bench.path("map.toml");
        let names = ["given", "allocated", "attached", "swapped"];
        let text = names.map(|name| format!("{name} = \"wait_on_value\"\n"));
        fs::write(&map, text.concat()).unwrap();
        let map = map.display().to_string();
        let (report, _) = analyze(&run, &["--operation-map", &map]);
        assert!(report.errors().is_empty(), "{:#?}", report.anomalies);
        for name in names {
            let found = only(&report, "wait_on_value", name)?;
            let at = mark(source, "wait");
            assert!(found.location.is("windows.c", at), "{found:#?}");
            check_shares(found, &[(1, 0.25)])?;
            let (call, line) = match name {
                "swapped" => ("MPI_Compare_and_swap", "swap"),
                _ => ("MPI_Put", "put"),
            };
            let cause = &found.causes[0];
            let right = cause.rank == 0
                && cause.operation == call
                && cause.location.is("windows.c", mark(source, line));
            check(right && found.causes.len() == 1, found)?;
        }
        Ok(())
    });
}

/// A mistake in a map is one line; an unknown name is an anomaly.
fn wrong_maps(run: &Recorded) {
    let map = run.bench.path("wrong.toml");
    let shown = map.display().to_string();
    let report = run.bench.path("wrong.json");
    let options = ["-q", "--operation-map", &*shown];
    for (text, expected) in [
        (
            "# one\n\"a\" = \"wait_on_vlaue\"\n",
            ":2: unknown operation type \"wait_on_vlaue\"",
        ),
        (
            "\"a\" = \"io\"\n\n\"b\" = io\n",
            ":3: expected a line such as",
        ),
        (
            "\"a\" = \"io\"\n\"a\" = \"io\"\n",
            ":2: \"a\" is there twice",
        ),
        ("[other]\n", ":1: unknown table [other]"),
    ] {
        fs::write(&map, text).unwrap();
        for &agents in run.bench.agents.iter().take(2) {
            let outcome = run.bench.analyze(&run.trace, agents, &report, &options);
            assert_eq!(outcome.code, Some(1), "{text}: {outcome:?}");
            let said: Vec<&str> = outcome
                .stderr
                .lines()
                .filter(|l| l.contains("laggard"))
                .collect();
            assert!(
                said.len() == 1 && said[0].contains(expected),
                "{:?}",
                outcome.stderr
            );
        }
        assert!(!report.exists());
    }
    fs::write(&map, "\"nowhere\" = \"wait_on_value\"\n").unwrap();
    let (report, _) = analyze(run, &options[1..]);
    assert_eq!(report.anomaly("unknown_operation"), 1);
    // An anomaly reports operations that are only counted.
    fs::write(&map, "\"named_until\" = \"group_sync\"\n").unwrap();
    let (report, rows) = analyze(run, &options[1..]);
    assert_eq!(report.anomaly("operation_not_diagnosed"), 1);
    assert_eq!(rows["named_until"]["operation_type"], "group_sync");
    let mut found = report.bottlenecks.iter();
    assert!(!found.any(|b| b.operation == "named_until"), "{report:#?}");
}
