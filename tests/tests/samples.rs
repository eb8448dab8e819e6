//! Samples: root causes name the functions in which a rank was longer, programs behave as ever, and what
//! cannot be sampled is said.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use laggard_tests::attack::assert_same;
use laggard_tests::product::Bench;
use serde_json::Value;

const WAYS: [&str; 2] = ["perf", "signal"];
/// Rounds of the programs that are late.
const ROUNDS: f64 = 40.0;
/// Frequent samples: the programs are short.
const HZ: &str = "1000";

/// What a program says, and its report.
struct Run {
    said: Value,
    report: Value,
}

fn traced(bench: &Bench, way: &str, words: &[&OsStr]) -> (String, PathBuf) {
    let run = bench.traced(2, words, "trace");
    let run = run
        .env("LAGGARD_SAMPLE_HZ", HZ)
        .env("LAGGARD_SAMPLE_BY", way);
    let outcome = run.run().expect_orderly();
    (outcome.expect_success().stdout.clone(), bench.path("trace"))
}

impl Run {
    fn of(source: &str, mode: &str, way: &str) -> Run {
        let name = source.replace('.', "-");
        let bench = Bench::new(&format!("samples-{name}-{mode}-{way}"));
        let program = bench.compile(&format!("processor/{source}"), &[], &[]);
        let words = [program.as_os_str(), OsStr::new(mode)];
        let (said, trace) = traced(&bench, way, &words);
        let dump = bench.dump(&trace);
        assert!(dump.contains(" sampled=path "), "{dump}");
        Run {
            said: serde_json::from_str(&said).expect("what the program says"),
            report: serde_json::from_str(&bench.analyze_all(&trace)).expect("JSON"),
        }
    }

    /// By function: how much longer rank 0 was there, of all rounds, ns, and its line.
    fn functions(&self) -> BTreeMap<String, (f64, u64)> {
        let causes = self.report["root_causes"].as_array().expect("root causes");
        let own = causes.iter().filter(|cause| {
            cause["activity"] == "computation"
                && cause["rank_set"] == "0"
                && cause["until"]["operation"] == "MPI_Barrier"
        });
        let mut found = BTreeMap::new();
        for of in own
            .filter_map(|cause| cause["functions"].as_array())
            .flatten()
        {
            let name = of["function"].as_str().expect("a function").to_owned();
            let more = 1e9 * ROUNDS * of["more_s"].as_f64().expect("a number");
            let old = found.insert(name, (more, of["line"].as_u64().expect("a line")));
            assert_eq!(old, None, "{}", self.report["root_causes"]);
        }
        found
    }
}

/// First and last line of a function in a source: from a line with this text to the first one after it
/// that begins with `end`.
fn lines(source: &str, text: &str, end: &str) -> std::ops::RangeInclusive<u64> {
    let path = laggard_tests::product::programs()
        .join("processor")
        .join(source);
    let all = fs::read_to_string(path).expect("a source");
    let mut lines = (1..).zip(all.lines());
    let first = lines
        .find(|(_, line)| line.contains(text))
        .expect("a function")
        .0;
    let last = lines
        .find(|(_, line)| line.starts_with(end))
        .expect("its end")
        .0;
    first..=last
}

/// The functions that the report names are that one, with the truth's time.
#[track_caller]
fn is_longer_in(run: &Run, function: &str, said: &str, lines: &std::ops::RangeInclusive<u64>) {
    let found = run.functions();
    let truth = run.said[said].as_f64().expect("a number");
    let (more, line) = found[function];
    let error = (more - truth).abs() / truth;
    assert!(error < 0.1, "{more} instead of {truth}: {found:?}");
    assert!(lines.contains(&line), "{found:?}");
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn a_cause_names_the_function_that_took_longer() {
    for way in WAYS {
        let run = Run::of("sampled.c", "late", way);
        // The loop is inlined, so the function is that of the loop, and its line is there.
        let found = run.functions();
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert!(names == ["solve"] || names == ["work"], "{found:?}");
        let inside = lines("sampled.c", "void work(", "}");
        is_longer_in(&run, names[0], "solve", &inside);
    }
}

#[test]
fn functions_of_fortran_are_named() {
    for way in WAYS {
        let run = Run::of("sampled.f90", "late", way);
        let inside = lines("sampled.f90", "subroutine relax", "end subroutine");
        is_longer_in(&run, "relax", "relax", &inside);
    }
}

/// A near miss: all ranks are equally long in both functions.
#[test]
fn functions_in_which_all_are_equally_long_are_no_cause() {
    let run = Run::of("sampled.c", "together", "perf");
    assert_eq!(run.functions(), BTreeMap::new());
}

/// Where a program does odd things, its results are the same as without samples.
#[test]
fn odd_programs_behave_as_ever() {
    let bench = Bench::sharing("samples-odd");
    let program = bench.compile("processor/odd_sampled.c", &["-pthread"], &["-ldl"]);
    let library = bench.library("processor/computing.c");
    for mode in [
        "signals", "blocked", "fork", "exec", "cancel", "threads", "unload",
    ] {
        let words = [program.as_os_str(), OsStr::new(mode), library.as_os_str()];
        let plain = bench.plain(2, &words).run().expect_orderly();
        for way in WAYS {
            let run = bench.traced(2, &words, "trace");
            let run = run
                .env("LAGGARD_SAMPLE_HZ", HZ)
                .env("LAGGARD_SAMPLE_BY", way);
            assert_same(&plain, &run.run().expect_orderly());
            bench.analyze_all(&bench.path("trace"));
            fs::remove_dir_all(bench.path("trace")).expect("the trace goes");
        }
    }
}

/// What the collector says of the way is in the trace; without samples, nothing is.
#[test]
fn the_trace_tells_how_it_was_sampled() {
    let bench = Bench::sharing("samples-ways");
    let program = bench.compile("processor/odd_sampled.c", &["-pthread"], &["-ldl"]);
    let words = [program.as_os_str(), OsStr::new("plain")];
    for way in ["best", "perf", "signal"] {
        let (_, trace) = traced(&bench, way, &words);
        let dump = bench.dump(&trace);
        let told = if way == "best" { "perf" } else { way };
        assert!(dump.contains(told), "{dump}");
        fs::remove_dir_all(trace).expect("the trace goes");
    }
    bench
        .traced(2, &words, "trace")
        .run()
        .expect_orderly()
        .expect_success();
    let dump = bench.dump(&bench.path("trace"));
    assert!(!dump.contains("sampled"), "{dump}");
}
