//! Counters: a software event end to end against what the program itself knows; programs behave as ever, and
//! what cannot be counted is said.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use laggard_tests::attempts::until_right;
use laggard_tests::process;
use laggard_tests::product::{Bench, PROCESSOR_TIME, TIMEOUT, reader};
use serde_json::Value;

const COUNTERS: &str = "LAGGARD_COUNTERS";
/// Rounds of the program.
const ROUNDS: f64 = 20.0;

/// What a program says on both channels, with counters by name.
fn traced(bench: &Bench, names: &str, words: &[&OsStr]) -> (String, String) {
    let run = bench.traced(2, words, "trace");
    let run = run.env(PROCESSOR_TIME, "1").env(COUNTERS, names);
    let outcome = run.run().expect_success();
    (outcome.stdout, outcome.stderr)
}

fn info(bench: &Bench) -> String {
    let mut command = Command::new(&bench.command);
    command.arg("info").arg(bench.path("trace"));
    let outcome = process::run(&mut command, TIMEOUT, &bench.path("info"));
    outcome.expect_success().stdout
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// Rank 0 touches new memory before its sends, and says how many page faults that took.
#[test]
fn page_faults_are_those_of_touched_memory() {
    until_right("page faults", |_| {
        let bench = Bench::new("counters-faults");
        let program = bench.compile("processor/off_processor.c", &[], &["-lpthread"]);
        let words = [program.as_os_str(), OsStr::new("touch")];
        let (said, _) = traced(&bench, "page-faults,task-clock", &words);
        let said: Value = serde_json::from_str(&said).expect("what the program says");
        let truth = number(&said["faults"]);
        let mut reports = [1, 2, 3].map(|agents| {
            let path = bench.path("report.json");
            let outcome = bench.analyze(&bench.path("trace"), agents, &path, &["--all", "-q"]);
            outcome.expect_orderly().expect_success();
            let text = fs::read_to_string(&path).expect("a report");
            let mut report: Value = serde_json::from_str(&text).expect("JSON");
            report["agents"].take();
            report
        });
        assert_eq!(reports[0], reports[1]);
        assert_eq!(reports[0], reports[2]);
        let report = reports[0].take();
        let counters = &report["locations"][0]["counters"];
        let found = number(&counters["page-faults"]);
        assert!(
            (found - truth).abs() < 0.02 * truth,
            "{found} instead of {truth}"
        );
        // The clock goes on in the kernel, too.
        let (clock, counted) = (
            &counters["task-clock"],
            &report["locations"][0]["counted_s"],
        );
        assert!(
            number(clock) > 1e9 * number(counted),
            "{counters} {counted}"
        );
        let causes = report["root_causes"].as_array().expect("root causes");
        let cause = causes.iter().find(|cause| {
            cause["activity"] == "kernel"
                && cause["rank_set"] == "0"
                && !cause["counters"].is_null()
        });
        let Some(cause) = cause else {
            return Err(format!("no cause in the kernel: {causes:?}").into());
        };
        let counters = cause["counters"].as_array().expect("counters");
        let faults = counters.iter().find(|of| of["name"] == "page-faults");
        let faults = faults.expect("page faults");
        let (late, others) = (number(&faults["late"]), number(&faults["others"]));
        let error = (late - truth / ROUNDS).abs() / (truth / ROUNDS);
        assert!(others < 0.1 * late, "{faults}");
        let because = cause["because"].as_str().expect("a text");
        assert!(because.contains("page-faults "), "{because}");
        match error < 0.1 {
            true => Ok(()),
            false => Err(format!("{faults} instead of {}", truth / ROUNDS).into()),
        }
    });
}

/// A name that is none is one line, and the program goes on with the usual counters.
#[test]
fn wrong_names_are_one_clear_line() {
    let bench = Bench::sharing("counters-names");
    let program = bench.compile("processor/odd_sampled.c", &["-pthread"], &["-ldl"]);
    let words = [program.as_os_str(), OsStr::new("plain")];
    for names in ["page-fault", "cycles,,instructions", "a,b,c,d,e,f,g,h,i"] {
        let (_, said) = traced(&bench, names, &words);
        let told: Vec<_> = said
            .lines()
            .filter(|line| line.contains(COUNTERS))
            .collect();
        let [told] = told[..] else { panic!("{said}") };
        assert!(
            told.contains(names) && told.contains("auto is used"),
            "{told}"
        );
        fs::remove_dir_all(bench.path("trace")).expect("the trace goes");
    }
}

/// Where the kernel forbids counters or the machine has none, that is one line on the terminal and in the
/// report, if the user named them.
#[test]
fn what_is_not_counted_is_said() {
    let bench = Bench::sharing("counters-forbidden");
    let forbidding = bench.compile("processor/forbidding.c", &[], &[]);
    let program = bench.compile("processor/odd_sampled.c", &["-pthread"], &["-ldl"]);
    let words = [&forbidding, Path::new("perf"), &program, Path::new("plain")].map(AsRef::as_ref);
    let (_, said) = traced(&bench, "page-faults,cache-misses", &words);
    let told: Vec<_> = said
        .lines()
        .filter(|line| line.contains("not counted"))
        .collect();
    let [told] = told[..] else { panic!("{said}") };
    for part in [
        "page-faults: the system forbids it",
        "cache-misses: the system forbids it",
    ] {
        assert!(told.contains(part), "{told}");
    }
    let report: Value =
        serde_json::from_str(&bench.analyze_all(&bench.path("trace"))).expect("JSON");
    let anomalies = report["anomalies"].as_array().expect("anomalies");
    assert!(
        anomalies.iter().any(|one| one["id"] == "not_counted"),
        "{anomalies:?}"
    );
    assert!(report["locations"][0]["counters"].is_null());
    fs::remove_dir_all(bench.path("trace")).expect("the trace goes");
    // Nobody asked for these.
    let (_, said) = traced(&bench, "auto", &words);
    assert!(!said.contains("counted"), "{said}");
    let info = info(&bench);
    assert!(
        info.contains("not instructions: system calls are filtered"),
        "{info}"
    );
    let report: Value =
        serde_json::from_str(&bench.analyze_all(&bench.path("trace"))).expect("JSON");
    let anomalies = report["anomalies"].as_array().expect("anomalies");
    assert!(
        anomalies.iter().all(|one| one["id"] != "not_counted"),
        "{anomalies:?}"
    );
}

/// The dump, the tables and time lines have what was counted.
#[test]
fn exports_have_what_was_counted() {
    let bench = Bench::sharing("counters-exports");
    let program = bench.compile("processor/off_processor.c", &[], &["-lpthread"]);
    let words = [program.as_os_str(), OsStr::new("touch")];
    traced(&bench, "page-faults", &words);
    let trace = bench.path("trace");
    let dump = bench.dump(&trace);
    let counted = dump.lines().filter(|line| line.contains(" page-faults="));
    assert!(counted.count() >= ROUNDS as usize, "{dump}");
    assert!(dump.contains(" counted_us="), "{dump}");
    let export = |to: &str, output: &str| {
        let mut command = Command::new(&bench.command);
        command.arg("export").arg(&trace).args(["--to", to, "-o"]);
        command.arg(bench.path(output));
        let outcome = process::run(&mut command, TIMEOUT, &bench.path("export"));
        outcome.expect_orderly().expect_success();
        bench.path(output)
    };
    let read = |script: &str, files: &[&Path]| -> Value {
        let mut command = reader(script);
        command.args(files);
        let outcome = process::run(&mut command, TIMEOUT, &bench.path("reader"));
        serde_json::from_str(&outcome.expect_success().stdout).expect("JSON")
    };
    let (parquet, arrow) = (export("parquet", "parquet"), export("arrow", "arrow"));
    let tables = read("tables.py", &[&parquet, &arrow]);
    let sum = |table: &str, column: &str| number(&tables[table]["duckdb"]["sums"][column]);
    let faults = sum("counters", "count");
    let also = sum("stretches", "minor_faults");
    // Two counts of the kernel, which differ by up to 12 % on a busy machine.
    assert!((faults - also).abs() < 0.2 * also, "{faults} {also}");
    assert!(sum("stretches", "counted_ns") > 0.0 && sum("stretches", "kernel_ns") > 0.0);
    for table in ["counters", "stretches", "samples"] {
        assert_eq!(tables[table]["pyarrow"], tables[table]["duckdb"], "{table}");
    }
    let line = read("perfetto_trace.py", &[&export("perfetto", "line.perfetto")]);
    let line = line.to_string();
    for part in ["page-faults per second", "\"problems\":[]"] {
        assert!(line.contains(part), "{line}");
    }
    let archive = export("otf2", "archive").join("traces.otf2");
    match Command::new("otf2-print").arg(&archive).output() {
        Ok(printed) => {
            let text = String::from_utf8_lossy(&printed.stdout);
            let metrics = text.lines().filter(|line| line.starts_with("METRIC"));
            assert!(metrics.count() >= ROUNDS as usize, "{text}");
        }
        Err(error) => eprintln!("SKIPPED: otf2-print: {error}"),
    }
    // The archive tells of each location what the trace does.
    let locations = |of: &Path| -> Vec<Value> {
        let report: Value = serde_json::from_str(&bench.analyze_all(of)).expect("JSON");
        report["locations"].as_array().expect("locations").clone()
    };
    let (own, imported) = (locations(&trace), locations(&archive));
    assert_eq!(own.len(), imported.len());
    for (own, imported) in own.iter().zip(&imported) {
        assert_eq!(own["counters"], imported["counters"]);
        let (a, b) = (number(&own["counted_s"]), number(&imported["counted_s"]));
        assert!((a - b).abs() < 1e-6, "{own} {imported}");
    }
}
