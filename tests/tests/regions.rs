//! Regions of the program, marked by `laggard.h`, `laggard.f90` and instrumented functions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use laggard_tests::attempts::{Off, scale, until_right, until_undisturbed};
use laggard_tests::process;
use laggard_tests::product::{Bench, PROCESSOR_TIME, TIMEOUT, reader};
use laggard_tests::recorded::{
    Recorded, analyze, check, include, mark, near, number, record, record_with, with_header,
};
use laggard_tests::report::{Anomaly, Bottleneck, Report};
use serde_json::Value;

fn at_barrier(report: &Report) -> &Bottleneck {
    let found = report.bottlenecks.iter();
    let mut found = found.filter(|b| b.pattern == "wait_at_barrier");
    found.next().expect("a wait at the barrier")
}

/// The largest root cause is computation of one rank in one region or function, 4 × 60 ms longer than the
/// others', between two calls of the barrier. Another call comes before the first of the 5.
fn is_in(report: &Report, name: &str, rank: u32) -> Result<(), Off> {
    let root = report.root_causes.first();
    let root = root.expect("a root cause");
    let right = root.activity == "computation"
        && root.until.is_some()
        && root.ranks.iter().all(|of| of.rank == rank)
        && root
            .functions
            .first()
            .is_some_and(|of| of.function == name && of.share > 0.9)
        && root.gain_s.is_some_and(|gain| near(gain, 0.24, 0.03));
    check(right, root)
}

/// `solve` takes rank `late` 5 × 60 ms longer, `output` takes no rank longer, and time in the
/// barrier is not charged to `step`.
fn imbalance(rows: &BTreeMap<String, Value>, ranks: u64, late: u64) -> Result<(), Off> {
    let (solve, output, step) = (&rows["solve"], &rows["output"], &rows["step"]);
    assert_eq!(solve["calls"], ranks * 5);
    assert_eq!(
        (&solve["kind"], &solve["locations"]),
        (&"region".into(), &ranks.into())
    );
    let mean = 0.1 + 0.3 / ranks as f64;
    let right = solve["worst_rank"] == late
        && near(number(solve, "max_s"), 0.4, 0.02)
        && near(number(solve, "mean_s"), mean, 0.02)
        && near(number(solve, "imbalance_s"), 0.3 * (ranks - 1) as f64, 0.04)
        && near(number(solve, "overload_s"), 0.4 - mean, 0.04)
        && number(solve, "non_participation_s") == 0.0
        && near(number(solve, "instance_max_s"), 0.08, 0.01)
        && solve["filter"] == "imbalance";
    check(right, solve)?;
    check(
        near(number(output, "mean_s"), 0.075, 0.02) && output["filter"] == "none",
        output,
    )?;
    let inclusive = ranks as f64 * 0.4;
    let right = near(number(step, "inclusive_s"), inclusive, 0.06)
        && number(step, "max_s") < 0.01
        && step["filter"] == "none";
    check(right, step)
}

#[test]
fn regions_of_a_c_program() {
    let source = "regions/imbalance.c";
    until_right("regions-c", |attempt| {
        let bench = Bench::sharing(&format!("regions-c-{attempt}"));
        let flags = with_header(&[]);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let program = bench.compile(source, &flags, &[]);
        let run = record(bench, &program, 3, false);
        let (report, rows) = analyze(&run, &[]);
        assert!(report.errors().is_empty() && report.anomaly("region_not_ended") == 0);
        assert_eq!(report.anomaly("region_not_begun"), 0);
        assert!(
            !rows.contains_key("paused") && !rows.contains_key("before MPI"),
            "{rows:?}"
        );
        assert_eq!(rows["MPI_Pcontrol(7)"]["kind"], "phase");
        let place = &rows["solve"]["location"];
        assert_eq!(place["line"], mark(source, "solve"));
        // A region is a frame between functions, not a place.
        let barrier = at_barrier(&report);
        assert!(barrier.location.is("imbalance.c", mark(source, "barrier")));
        let path = &barrier.location.callpath;
        let step = path.iter().position(|frame| frame == "step");
        let around = step.and_then(|at| Some((path.get(at.checked_sub(1)?)?, path.get(at + 1)?)));
        let is_between = |(function, callee): (&String, &String)| {
            function.starts_with("step imbalance.c:") && callee.starts_with("meet ")
        };
        assert!(around.is_some_and(is_between), "{path:?}");
        assert!(!path.contains(&"solve".to_owned()));
        let phase = &rows["time loop"];
        assert_eq!(phase["kind"], "phase");
        // All ranks are in it at the same time: the path has as much as one of them.
        let path = report.critical_path.as_ref().expect("a critical path");
        let on_path = path.phases.iter().find(|on| on.phase == "time loop");
        let on_path = on_path.expect("a phase on the path");
        let one = number(phase, "inclusive_s") / 3.0;
        check(near(on_path.seconds, one, 0.05), on_path)?;
        check(
            near(
                on_path.seconds,
                on_path.share * (path.length_s - path.startup_s),
                1e-6,
            ),
            on_path,
        )?;
        imbalance(&rows, 3, 2)?;
        is_in(&report, "solve", 2)?;
        check(near(barrier.severity_s, 0.6, 0.05), barrier)?;
        let archive = exports(&run);
        same_regions(run, archive, &rows);
        Ok(())
    });
}

/// Nobody wrote the sums of these regions: they follow from the records.
#[test]
fn regions_of_a_killed_program() {
    until_right("regions-killed", |attempt| {
        let bench = Bench::sharing(&format!("regions-killed-{attempt}"));
        // A core for each: nothing makes up for a rank that is woken late.
        let flags = with_header(&["-DKILLED", "-DLATE=1"]);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let program = bench.compile("regions/imbalance.c", &flags, &[]);
        let outcome = bench.traced(2, &[program.as_os_str()], "trace").run();
        assert!(!outcome.success(), "{outcome}");
        let trace = bench.path("trace");
        let (report, rows) = analyze(&Recorded { bench, trace }, &[]);
        assert_eq!(report.anomaly("truncated_trace"), 2);
        assert_eq!(report.anomaly("regions_left_out"), 2);
        assert_eq!(rows.keys().collect::<Vec<_>>(), ["output", "solve", "step"]);
        imbalance(&rows, 2, 1)?;
        is_in(&report, "solve", 1)
    });
}

/// An analysis of the archive has the same regions.
fn same_regions(run: Recorded, archive: PathBuf, rows: &BTreeMap<String, Value>) {
    let archive = Recorded {
        trace: archive,
        ..run
    };
    let (_, imported) = analyze(&archive, &[]);
    let names = |rows: &BTreeMap<String, Value>| rows.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(rows), names(&imported));
    for (row, other) in rows.values().zip(imported.values()) {
        for (key, value) in row.as_object().expect("a row") {
            let is_same = match value.as_f64().filter(|_| value.is_f64()) {
                // Times are rounded to ns for each thread; ratios follow from them.
                Some(number) => {
                    let by = if key.ends_with("_s") { 1e-6 } else { 1e-3 };
                    near(other[key].as_f64().unwrap_or(f64::NAN), number, by)
                }
                None => *value == other[key],
            };
            assert!(is_same, "{key}: {row:#}, in the archive {other:#}");
        }
    }
}

/// Exports with single instances contain their names: `step` has `solve` and a barrier in each of 5
/// rounds on 3 ranks.
fn exports(run: &Recorded) -> PathBuf {
    let dump = run.bench.dump(&run.trace);
    let lasted = |name: &str| -> Vec<f64> {
        let name = format!("name={name}");
        let words = dump
            .lines()
            .map(|l| l.split_whitespace().collect::<Vec<_>>());
        let of = words.filter(|words| words.get(3) == Some(&"region") && words.contains(&&*name));
        of.map(|words| words[2].parse().expect("µs")).collect()
    };
    let (solve, step) = (lasted("solve"), lasted("step"));
    assert_eq!((solve.len(), step.len()), (15, 15), "{dump}");
    assert!(step.iter().all(|&us| us > 60e3), "{dump}");
    let export = |to: &str, output: &str| {
        let mut command = Command::new(&run.bench.command);
        command
            .arg("export")
            .arg(&run.trace)
            .args(["--to", to, "-o"]);
        command.arg(run.bench.path(output));
        let outcome = process::run(&mut command, TIMEOUT, &run.bench.path("export"));
        outcome.expect_orderly().expect_success();
        run.bench.path(output)
    };
    let read = |script: &str, files: &[&Path]| -> Value {
        let mut command = reader(script);
        command.args(files);
        let outcome = process::run(&mut command, TIMEOUT, &run.bench.path("reader"));
        serde_json::from_str(&outcome.expect_success().stdout).expect("JSON")
    };
    let line = read("trace_processor.py", &[&export("perfetto", "line")]);
    assert_eq!(line["problems"], Value::Array(Vec::new()));
    assert_eq!(line["open"][0]["number"], 0);
    let inside = line["inside"].as_array().expect("rows");
    let of = |around: &str, name: &str| {
        let is_it = |row: &&Value| row["around"] == around && row["name"] == name;
        inside.iter().find(is_it).map(|row| row["number"].clone())
    };
    for name in ["solve", "MPI_Barrier"] {
        assert_eq!(of("step", name), Some(15.into()), "{inside:#?}");
    }
    let (parquet, arrow) = (export("parquet", "parquet"), export("arrow", "arrow"));
    let tables = read("tables.py", &[&parquet, &arrow]);
    let calls = &tables["operations"]["by_call"];
    assert_eq!((&calls["solve"], &calls["step"]), (&15.into(), &15.into()));
    let regions = tables["regions"]["listed"].as_array().expect("rows");
    let of = |name: &str| -> Vec<&Value> {
        let named = regions.iter().filter(|row| row["region"] == name);
        named.collect()
    };
    assert_eq!(of("solve").len(), 3, "{regions:#?}");
    for (row, ns) in of("solve").into_iter().zip([100e6, 100e6, 400e6]) {
        assert_eq!(
            (&row["region_kind"], &row["calls"]),
            (&"region".into(), &5.into())
        );
        let exclusive = number(row, "exclusive_ns") / scale();
        assert!(near(exclusive, ns, 0.2 * ns), "{row}");
    }
    assert!(
        of("time loop")
            .iter()
            .all(|row| row["region_kind"] == "phase")
    );
    let folded = fs::read_to_string(export("folded", "folded")).expect("lines");
    // No call is in it: all of it is computation.
    let mut solve = folded.lines().filter(|line| line.contains("solve"));
    let of_solve = solve
        .next()
        .and_then(|line| line.split_once(";step;solve;[computation] "));
    let (_, ns) = of_solve.unwrap_or_else(|| panic!("{folded}"));
    let ns: f64 = ns.parse().expect("ns");
    assert!(
        near(ns / scale(), 600e6, 100e6) && solve.next().is_none(),
        "{folded}"
    );
    let anchor = export("otf2", "archive").join("traces.otf2");
    let mut print = Command::new("otf2-print");
    print.arg(&anchor);
    let events = process::run(&mut print, TIMEOUT, &run.bench.path("print"));
    let events = events.expect_success().stdout;
    // There is also a function `step`.
    let of = |event: &str| {
        let lines = events.lines().filter(|line| line.starts_with(event));
        lines.filter(|line| line.contains("\"solve\"")).count()
    };
    assert_eq!((of("ENTER"), of("LEAVE")), (15, 15));
    anchor
}

/// Regions with an instance that takes much longer than the others, on all ranks: no rank has more
/// work than others.
#[test]
fn regions_with_instances_that_differ() {
    until_right("regions-deviation", |attempt| {
        let bench = Bench::sharing(&format!("regions-deviation-{attempt}"));
        let flags = with_header(&[]);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let program = bench.compile("regions/deviation.c", &flags, &[]);
        let run = record(bench, &program, 2, false);
        let (report, rows) = analyze(&run, &[]);
        assert!(report.errors().is_empty(), "{:?}", report.errors());
        // Longest by mean: 80 ms by 32 ms, and 40 ms by 24 ms.
        for (name, longest, mean, filter) in [
            ("varies", 0.080, 0.032, "deviation"),
            ("hardly", 0.040, 0.024, "none"),
        ] {
            let row = &rows[name];
            assert_eq!((&row["calls"], &row["locations"]), (&10.into(), &2.into()));
            let right = near(number(row, "instance_max_s"), longest, 0.1 * longest)
                && near(number(row, "instance_mean_s"), mean, 0.1 * mean)
                && number(row, "imbalance") < 1.1
                && row["filter"] == filter;
            check(right, row)?;
        }
        Ok(())
    });
}

#[test]
fn regions_of_a_fortran_program() {
    let source = "regions/imbalance.f90";
    until_right("regions-fortran", |attempt| {
        let bench = Bench::sharing(&format!("regions-fortran-{attempt}"));
        let module = include().join("laggard.f90").display().to_string();
        let program = bench.compile(source, &[&module], &[]);
        let run = record(bench, &program, 2, false);
        let (report, rows) = analyze(&run, &[]);
        assert!(report.errors().is_empty(), "{:?}", report.errors());
        let place = &rows["solve"]["location"];
        assert_eq!(place["line"], mark(source, "solve"), "{place}");
        let barrier = at_barrier(&report);
        assert!(
            barrier
                .location
                .is("imbalance.f90", mark(source, "barrier")),
            "{barrier:#?}"
        );
        assert!(
            barrier.location.callpath.contains(&"step".to_owned()),
            "{barrier:#?}"
        );
        // Between pause and resume there is no region, and its late rank is not reported. The rest
        // is as usual.
        assert_eq!(report.anomaly("paused"), 2);
        let mut waits = report.bottlenecks.iter();
        let line = mark(source, "barrier");
        // A rank that got no processor may be waited for elsewhere.
        check(waits.all(|b| b.location.is("imbalance.f90", line)), &report)?;
        assert_eq!(barrier.calls, 10);
        let right = barrier.instances == 5 && near(barrier.severity_s, 0.3, 0.03);
        check(right, barrier)?;
        assert!(!rows.contains_key("paused"), "{rows:?}");
        assert_eq!(rows["resumed"]["calls"], 2);
        assert_eq!(rows["time loop"]["kind"], "phase");
        imbalance(&rows, 2, 1)
    });
}

/// Threads that use the interface for the first time at once all find the collector, and none finds
/// half of it.
#[test]
fn threads_of_a_fortran_program_look_the_collector_up_at_once() {
    let bench = Bench::sharing("regions-lookup");
    let module = include().join("laggard.f90").display().to_string();
    let slow = bench.library("lib/slow_lookup.c");
    let libraries = ["-Wl,--no-as-needed", slow.to_str().expect("a path")];
    let flags = ["-fopenmp", &*module];
    let program = bench.compile("regions/lookup.f90", &flags, &libraries);
    let outcome = process::run(&mut Command::new(program), TIMEOUT, &bench.path("run"));
    assert_eq!(
        outcome.expect_success().stdout,
        "begun 24 ended 24 wrong 0\n"
    );
}

/// A million calls of a function that returns at once do not fill the trace.
#[test]
fn instrumented_functions() {
    until_right("regions-tiny", |attempt| {
        let bench = Bench::sharing(&format!("regions-tiny-{attempt}"));
        let program = bench.compile("regions/tiny.c", &["-finstrument-functions"], &[]);
        let run = record(bench, &program, 2, false);
        let (report, rows) = analyze(&run, &["--all"]);
        let files = fs::read_dir(&run.trace).expect("a trace");
        let bytes: u64 = files
            .map(|file| file.expect("a file").metadata().expect("metadata").len())
            .sum();
        assert!(bytes < 400_000, "{bytes} bytes");
        // Of 5000 nested functions, 1024 are open at once.
        let of_regions = |a: &&Anomaly| a.id.starts_with("region");
        let of_regions: Vec<_> = report.anomalies.iter().filter(of_regions).collect();
        assert!(
            !of_regions.is_empty() && of_regions.iter().all(|a| a.id == "regions_left_out"),
            "{of_regions:#?}"
        );
        let tiny = &rows["tiny"];
        let calls = tiny["calls"].as_u64().unwrap() + tiny["untimed_calls"].as_u64().unwrap_or(0);
        assert_eq!(calls, 2_000_000, "{tiny}");
        assert_eq!(
            (&rows["recurse"]["kind"], &rows["many"]["calls"]),
            (&"function".into(), &2.into())
        );
        assert!(!rows.contains_key("main") || rows["main"]["calls"] == 2);
        check(tiny["untimed_calls"].as_u64() > Some(1_000_000), tiny)?;
        // The function does not sleep itself; one that it calls does.
        let (solve, at) = (&rows["solve"], &rows["at_ms"]);
        let right = near(number(solve, "inclusive_s"), 0.8, 0.06) && number(solve, "max_s") < 0.02;
        check(right && solve["calls"] == 10, solve)?;
        let sleeps = at["worst_rank"] == 1 && at["filter"] == "imbalance";
        check(sleeps, at)?;
        is_in(&report, "at_ms", 1)
    });
}

#[test]
fn regions_that_are_not_ended_or_not_begun() {
    let source = "regions/odd.c";
    let bench = Bench::sharing("regions-odd");
    let flags = with_header(&["-finstrument-functions"]);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let program = bench.compile(source, &flags, &[]);
    let run = record(bench, &program, 2, false);
    let (report, rows) = analyze(&run, &[]);
    let odd = |id: &str, name: &str| -> u64 {
        let name = format!("\"{name}\"");
        let of = report.anomalies.iter();
        let of = of.filter(|a| a.id == id && a.detail.contains(&name));
        of.map(|a| a.count).sum()
    };
    assert_eq!(
        odd("region_not_ended", "unended"),
        2,
        "{:#?}",
        report.anomalies
    );
    assert_eq!(odd("region_not_begun", "twice"), 2);
    assert_eq!(odd("region_not_begun", "unbegun"), 2);
    assert_eq!(odd("region_not_ended", "inner"), 2);
    assert_eq!(odd("region_not_begun", "inner"), 2);
    // "before" and "around" began before the recording; regions beyond a thousand are ignored.
    assert_eq!(report.anomaly("region_not_ended"), 4);
    assert_eq!(report.anomaly("region_not_begun"), 6);
    assert_eq!(
        (&rows["twice"]["calls"], &rows["one"]["calls"]),
        (&2.into(), &4.into())
    );
    assert!(rows.contains_key(&"x".repeat(255)) && rows.contains_key(""));
    let unended = report
        .anomalies
        .iter()
        .find(|a| a.detail.contains("\"unended\""));
    assert!(unended.unwrap().detail.contains("odd.c:"), "{unended:?}");
    assert!(at_or_nowhere(&report, mark(source, "barrier")));
}

/// Of many regions those with most are told, and a region in which a rank sleeps computes nothing.
#[test]
fn regions_that_compute_are_told() {
    for (name, flag, told) in [("many", "-DAWAKE", true), ("asleep", "-DASLEEP", false)] {
        until_undisturbed(&format!("regions-{name}"), |attempt| {
            let bench = Bench::sharing(&format!("regions-{name}-{attempt}"));
            let flags = with_header(&[flag]);
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            let program = bench.compile("regions/told.c", &flags, &[]);
            let run = bench.traced(2, &[program.as_os_str()], "trace");
            run.env(PROCESSOR_TIME, "1").run().expect_success();
            let trace = bench.path("trace");
            let (report, _) = analyze(&Recorded { bench, trace }, &["--all"]);
            let causes = &report.root_causes;
            let functions = || causes.iter().flat_map(|root| &root.functions);
            assert!(
                functions().all(|of| of.function != "sleeper"),
                "{:#?}",
                report.root_causes
            );
            let first = functions().next();
            let is_heavy = first.is_some_and(|of| of.function == "heavy" && of.share > 0.8);
            check(is_heavy || !told, causes)?;
            let slept = report
                .root_causes
                .iter()
                .any(|root| root.activity == "blocked");
            check(slept || told, causes)
        });
    }
}

/// Functions left without a return, overlapping regions, unloaded libraries.
#[test]
fn regions_that_are_left_in_odd_ways() {
    until_undisturbed("regions-left", |attempt| {
        let bench = Bench::sharing(&format!("regions-left-{attempt}"));
        // The sleep is not in a function of its own.
        let functions = [
            "-finstrument-functions",
            "-finstrument-functions-exclude-function-list=at_ms",
        ];
        let flags = with_header(&functions);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let program = bench.compile("regions/left.c", &flags, &["-ldl"]);
        let libraries = ["first_of_two", "other_of_two"].map(|own| {
            let named = format!("-DOWN={own}");
            let flags = ["-shared", "-fPIC", "-finstrument-functions", &*named];
            let library = bench.compile("regions/plugin.c", &flags, &[]);
            let own = library.with_extension(own);
            fs::rename(library, &own).expect("a library");
            own
        });
        let run = record_with(bench, &[&program, &libraries[0], &libraries[1]], 2, false);
        let (report, rows) = analyze(&run, &["--all"]);
        assert!(report.errors().is_empty(), "{:#?}", report.anomalies);
        assert_eq!(report.anomaly("regions_left_out"), 2);
        assert_eq!(
            report.anomaly("region_not_ended") + report.anomaly("region_not_begun"),
            0
        );
        for (name, calls, mean, by) in [
            // From the agreement on the clock on: 50 ms later, less the time of the jumps.
            ("after", 4, 0.065, 0.03),
            ("all", 2, 0.030, 0.006),
            ("outer", 2, 0.030, 0.006),
            ("inner", 2, 0.100, 0.006),
            ("first_of_two", 2, 0.020, 0.006),
            ("other_of_two", 2, 0.020, 0.006),
        ] {
            let row = rows.get(name);
            let row = row.unwrap_or_else(|| panic!("no {name}: {rows:#?}"));
            assert_eq!(row["calls"], calls, "{row}");
            check(near(number(row, "mean_s"), mean, by), row)?;
        }
        Ok(())
    });
}

fn at_or_nowhere(report: &Report, line: u32) -> bool {
    let mut found = report.bottlenecks.iter();
    found.all(|b| b.operation != "MPI_Barrier" || b.location.is("odd.c", line))
}
