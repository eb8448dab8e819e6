//! Samples: root causes name the functions in which a rank was longer, programs behave as ever, and what
//! cannot be sampled is said.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use laggard_tests::attack::assert_same;
use laggard_tests::attempts::until_right;
use laggard_tests::mpi::Mpi;
use laggard_tests::process;
use laggard_tests::product::{Bench, PROCESSOR_TIME, TIMEOUT, programs, python};
use laggard_tests::recorded::{check, mark};
use laggard_tests::report::Report;
use laggard_tests::round_trip;
use serde_json::{Value, json};

const WAYS: [&str; 3] = ["perf", "signal", "thread"];
/// Rounds of the programs that are late.
const ROUNDS: f64 = 40.0;
/// Ranks of each run.
const RANKS: f64 = 2.0;
/// Frequent samples: the programs are short.
const HZ: &str = "1000";

/// What a program says, and its report.
struct Run {
    said: Value,
    report: Value,
}

/// Whether time off the processor is `apart` from computation.
fn traced(bench: &Bench, way: &str, words: &[&OsStr], apart: bool) -> (String, PathBuf) {
    let run = bench.traced(2, words, "trace");
    let run = run
        .env(PROCESSOR_TIME, if apart { "1" } else { "0" })
        .env("LAGGARD_SAMPLE_HZ", HZ)
        .env("LAGGARD_SAMPLE_BY", way);
    let outcome = run.run().expect_orderly();
    (outcome.expect_success().stdout.clone(), bench.path("trace"))
}

fn info(bench: &Bench, trace: &Path) -> String {
    let mut command = Command::new(&bench.command);
    command.arg("info").arg(trace);
    let outcome = process::run(&mut command, TIMEOUT, &bench.path("info"));
    outcome.expect_success().stdout
}

impl Run {
    fn of(source: &str, mode: &str, way: &str, apart: bool) -> Run {
        let name = source.replace('.', "-");
        let bench = Bench::sharing(&format!("samples-{name}-{mode}-{way}"));
        let path = format!("processor/{source}");
        let program = match source.ends_with(".py") {
            true => vec![python(), programs().join(path)],
            false => vec![bench.compile(&path, &[], &[])],
        };
        let words = program.iter().map(|word| word.as_os_str());
        let words: Vec<&OsStr> = words.chain([OsStr::new(mode)]).collect();
        let (said, trace) = traced(&bench, way, &words, apart);
        let dump = bench.dump(&trace);
        assert!(dump.contains(" sampled=path "), "{dump}");
        let report = bench.analyze_agreed(&trace);
        in_an_archive(&bench, &trace, &report);
        Run {
            said: serde_json::from_str(&said).expect("what the program says"),
            report: serde_json::from_str(&report).expect("JSON"),
        }
    }

    /// The largest root cause that is computation of rank 0 alone before the barrier.
    fn cause(&self) -> Option<&Value> {
        let mut causes = self.report["root_causes"].as_array()?.iter();
        causes.find(|cause| {
            cause["activity"] == "computation"
                && cause["rank_set"] == "0"
                && cause["until"]["operation"] == "MPI_Barrier"
        })
    }

    /// By function of this cause: how much longer it was there each time, ns, and its line.
    fn functions(&self) -> BTreeMap<String, (f64, u64)> {
        let all = self.cause().and_then(|cause| cause["functions"].as_array());
        let told = all.into_iter().flatten().map(|of| {
            let name = of["function"].as_str().expect("a function").to_owned();
            let more = 1e9 * of["more_s"].as_f64().expect("a number");
            (name, (more, of["line"].as_u64().expect("a line")))
        });
        told.collect()
    }
}

/// An archive of the trace has the same samples: its largest cause names the same functions.
fn in_an_archive(bench: &Bench, trace: &Path, text: &str) {
    let report = Report::parse(text).expect("a report");
    let different = round_trip::differences(bench, trace, &report);
    assert_eq!(different, [""; 0]);
    let functions = |text: &str| {
        let report: Value = serde_json::from_str(text).expect("JSON");
        let mut causes = report["root_causes"].as_array().into_iter().flatten();
        let largest = causes.find_map(|cause| cause["functions"].as_array().cloned());
        let named = largest.unwrap_or_default().into_iter();
        let named = named.map(|of| (of["function"].clone(), of["line"].clone()));
        named.map(|of| format!("{of:?}")).collect::<Vec<_>>()
    };
    let again = fs::read_to_string(bench.path("report-archive.json")).expect("a report");
    assert_eq!(functions(&again), functions(text));
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

/// Runs until the report names that function alone, with the time that the program says.
fn longer_in(program: &str, way: &str, (function, said): (&str, &str)) -> Run {
    until_right(&format!("{program} by {way}"), |_| {
        let run = Run::of(program, "late", way, true);
        let found = run.functions();
        let truth = run.said[said].as_f64().expect("a number") / ROUNDS;
        let error = found
            .get(function)
            .map_or(1.0, |(more, _)| (more - truth).abs() / truth);
        match found.len() == 1 && error < 0.1 {
            true => Ok(run),
            false => Err(format!(
                "{found:?} instead of {truth}: {}",
                run.report["root_causes"]
            )
            .into()),
        }
    })
}

#[test]
fn a_cause_names_the_function_that_took_longer() {
    for way in WAYS {
        // The loop is inlined into both functions, so its caller is told.
        let run = longer_in("sampled.c", way, ("work", "solve"));
        assert!(lines("sampled.c", "void work(", "}").contains(&run.functions()["work"].1));
        let cause = run.cause().expect("a cause");
        let caller = &cause["functions"][0]["callers"][0];
        assert_eq!(caller["function"], "solve", "{cause}");
        let share = caller["share"].as_f64();
        assert!(share.is_some_and(|share| share > 0.9), "{cause}");
        let because = cause["because"].as_str().unwrap_or_default();
        let told = because.rsplit_once(" from sampled.c:");
        assert!(
            told.is_some_and(|(_, caller)| caller.ends_with(" solve)")),
            "{cause}"
        );
        // Whoever called it, the function has all that both ranks computed.
        let ranks = run.said["ranks"].as_array().expect("times");
        let ranks: Vec<f64> = ranks.iter().filter_map(Value::as_f64).collect();
        let work = &run.report["functions"][0];
        for (key, truth) in [("total_s", ranks.iter().sum()), ("max_s", ranks[0])] {
            let found = 1e9 * work[key].as_f64().expect("a time");
            assert!((found - truth).abs() < 0.1 * truth, "{work} {ranks:?}");
        }
        assert_eq!(
            (
                &work["location"]["function"],
                &work["worst_rank"],
                &work["ranks"]
            ),
            (&json!("work"), &json!(0), &json!(2))
        );
    }
}

/// How long all threads were in a function, ns, as samples tell.
fn total_ns(report: &Value, name: &str) -> f64 {
    let mut functions = report["functions"].as_array().into_iter().flatten();
    let row = functions.find(|row| row["location"]["function"] == *name);
    1e9 * row.and_then(|row| row["total_s"].as_f64()).unwrap_or(0.0)
}

/// A thread that calls nothing is sampled from when it begins, and has the place where it is started.
fn births_are_sampled(start: &str, ways: &[&str]) {
    const THREADS: f64 = 8.0;
    let source = "processor/births.cpp";
    for way in ways {
        until_right(&format!("births of {start} by {way}"), |_| {
            let bench = Bench::sharing(&format!("samples-births-{start}-{way}"));
            let program = bench.compile(source, &["-pthread"], &[]);
            let (said, trace) =
                traced(&bench, way, &[program.as_os_str(), OsStr::new(start)], true);
            let said: Value = serde_json::from_str(&said).expect("what the program says");
            let report: Value = serde_json::from_str(&bench.analyze_agreed(&trace)).expect("JSON");
            for name in ["assemble", "solve"] {
                let found = 1e-9 * total_ns(&report, name);
                let truth = 1e-9 * said[name].as_f64().expect("a number");
                check((found - truth).abs() < 0.1 * truth, &(name, found, truth))?;
            }
            let mut causes = report["root_causes"].as_array().into_iter().flatten();
            let cause = causes.find(|cause| {
                cause["activity"] == "computation" && cause["until"]["operation"] == "pthread_exit"
            });
            let cause = cause.ok_or_else(|| report["root_causes"].to_string())?;
            let until = &cause["until"];
            check(until["line"] == mark(source, start), until)?;
            let more = |name: &str| {
                let mut all = cause["functions"].as_array().into_iter().flatten();
                let row = all.find(|row| row["function"] == *name)?;
                row["more_s"].as_f64()
            };
            let truth = 1e-9 * said["solve"].as_f64().expect("a number") / THREADS;
            let found = more("solve").unwrap_or(0.0);
            check((found - truth).abs() < 0.1 * truth, &(found, truth, cause))
        });
    }
}

#[test]
fn threads_are_sampled_from_when_they_begin() {
    births_are_sampled("posix", &WAYS);
    births_are_sampled("cpp", &["best"]);
    births_are_sampled("c11", &["best"]);
}

#[test]
fn functions_of_fortran_are_named() {
    let run = longer_in("sampled.f90", "best", ("relax", "relax"));
    let inside = lines("sampled.f90", "subroutine relax", "end subroutine");
    assert!(inside.contains(&run.functions()["relax"].1));
}

/// Methods of a class template are told apart.
#[test]
fn functions_of_cpp_are_named() {
    let run = longer_in("sampled.cpp", "best", ("Solver<double>::relax", "relax"));
    let inside = lines("sampled.cpp", "void relax(", "    }");
    assert!(inside.contains(&run.functions()["Solver<double>::relax"].1));
}

/// Samples in a library are unwound before it is unloaded.
#[test]
fn functions_of_a_library_that_is_unloaded_are_named() {
    for way in WAYS {
        until_right(&format!("an unloaded library by {way}"), |_| {
            let bench = Bench::sharing(&format!("samples-unloaded-{way}"));
            let program = bench.compile("processor/unloaded.c", &[], &[]);
            let library = bench.library("processor/unloaded_library.c");
            let (said, trace) = traced(
                &bench,
                way,
                &[program.as_os_str(), library.as_os_str()],
                true,
            );
            let run = Run {
                said: serde_json::from_str(&said).expect("what the program says"),
                report: serde_json::from_str(&bench.analyze_agreed(&trace)).expect("JSON"),
            };
            let nowhere = count(&run.report.to_string(), "samples_nowhere");
            check(nowhere == 0, &nowhere)?;
            let truth = run.said["compute"].as_f64().expect("a number") / ROUNDS;
            let (found, line) = run.functions().get("compute").copied().unwrap_or_default();
            check((found - truth).abs() < 0.1 * truth, &(found, truth))?;
            let inside = lines("unloaded_library.c", "double compute(", "}");
            check(inside.contains(&line), &line)
        });
    }
}

/// Time of the interpreter is that of the Python function that it executes.
#[test]
fn functions_of_python_are_named() {
    if Mpi::chosen() != Mpi::OpenMpi {
        eprintln!("SKIPPED: Debian builds mpi4py for Open MPI alone");
        return;
    }
    let run = longer_in("sampled.py", "best", ("relax", "relax"));
    let cause = run.cause().expect("a cause");
    let function = &cause["functions"][0];
    assert!(
        function["file"]
            .as_str()
            .is_some_and(|file| file.ends_with("sampled.py")),
        "{cause}"
    );
    assert!(lines("sampled.py", "def relax(", "    return").contains(&run.functions()["relax"].1));
}

/// A near miss: all ranks are equally long in both functions, and rank 0 sleeps, which counts as
/// computation here.
#[test]
fn functions_in_which_all_are_equally_long_are_no_cause() {
    until_right("equally long in both functions", |_| {
        let run = Run::of("sampled.c", "together", "perf", false);
        let found = run.functions();
        match run.cause().is_some() && found.is_empty() {
            true => Ok(()),
            false => Err(format!("{found:?}: {}", run.report["root_causes"]).into()),
        }
    });
}

/// Stretches of some µs between two calls have their samples, too.
#[test]
fn short_stretches_are_sampled() {
    for way in WAYS {
        until_right(&format!("short stretches by {way}"), |_| {
            let bench = Bench::sharing(&format!("samples-short-{way}"));
            let program = bench.compile("processor/sampled_short.c", &[], &[]);
            let (said, trace) = traced(&bench, way, &[program.as_os_str()], true);
            let all: f64 = said.trim().parse().expect("a number");
            let report: Value = serde_json::from_str(&bench.analyze_agreed(&trace)).expect("JSON");
            let shares = ["assemble", "solve"].map(|name| total_ns(&report, name) / all);
            let sum = shares[0] + shares[1];
            let near = |share: f64, truth: f64| (share / truth - 1.0).abs() < 0.1;
            match near(sum, 1.0) && near(shares[0] / sum, 2.0 / 3.0) {
                true => Ok(()),
                false => Err(format!("{shares:?} of {all} ns by {way}").into()),
            }
        });
    }
}

/// What recording a call takes is no time of the function that makes it.
#[test]
fn samples_in_the_collector_are_nobodys() {
    // By signals and by a thread there are hardly any.
    const WAY: &str = "perf";
    until_right("own code", |_| {
        let bench = Bench::sharing("samples-own");
        let program = bench.compile("processor/own_code.c", &[], &[]);
        let (said, trace) = traced(&bench, WAY, &[program.as_os_str()], true);
        let said: Value = serde_json::from_str(&said).expect("what the program says");
        let report: Value = serde_json::from_str(&bench.analyze_agreed(&trace)).expect("JSON");
        let share =
            |name: &str| total_ns(&report, name) / (RANKS * said[name].as_f64().expect("a number"));
        let (called, computed) = (share("call"), share("compute"));
        // Its own code takes a fiftieth of the time, and recording it some tenths.
        check(called < 0.1, &called)?;
        check((computed - 1.0).abs() < 0.1, &computed)
    });
}

/// Samples of stretches before calls that are left out are nobody's: they are not those of the next call that
/// is recorded.
#[test]
fn samples_of_a_pause_are_dropped() {
    for way in WAYS {
        let bench = Bench::beside(&format!("samples-paused-{way}"));
        let program = bench.compile("processor/sampled.c", &[], &[]);
        let words = [program.as_os_str(), OsStr::new("paused")];
        let (_, trace) = traced(&bench, way, &words, true);
        let output = bench.path("stacks.txt");
        let mut command = Command::new(&bench.command);
        command.arg("export").arg(&trace).args(["--to", "folded"]);
        command.arg("-o").arg(&output);
        process::run(&mut command, TIMEOUT, &bench.path("export")).expect_success();
        let stacks = fs::read_to_string(output).expect("stacks");
        assert!(stacks.contains("solve"), "{stacks}");
        assert!(!stacks.contains("unseen"), "{stacks}");
    }
}

/// A child of `vfork` that has handlers of its own does not end the sampling of its parent.
#[test]
fn children_of_vfork_leave_samples_alone() {
    let mut bench = Bench::beside("samples-vfork");
    bench.agents = &[1];
    let program = bench.compile("processor/odd_sampled.c", &["-pthread"], &["-ldl"]);
    let words = [program.as_os_str(), OsStr::new("vfork")];
    let plain = bench.plain(2, &words).run().expect_orderly();
    for way in WAYS {
        let run = bench.traced(2, &words, "trace");
        let run = run
            .env("LAGGARD_SAMPLE_HZ", HZ)
            .env("LAGGARD_SAMPLE_BY", way);
        assert_same(&plain, &run.run().expect_orderly());
        // The barriers after 20 ms, 200 ms and 20 ms of computation.
        let dump = bench.dump(&bench.path("trace"));
        let barriers = dump
            .lines()
            .filter(|line| line.starts_with("0/0") && line.contains("MPI_Barrier"));
        let sampled: Vec<usize> = barriers
            .map(|line| line.matches(" sampled=").count())
            .collect();
        assert!(sampled[1] > 0, "{way}: {dump}");
        fs::remove_dir_all(bench.path("trace")).expect("the trace goes");
    }
}

/// A handler of the program's own interrupts it everywhere, also where call paths are unwound and samples taken, and
/// jumps away from there: results are the same, and no call is missing.
#[test]
fn interrupted_programs_behave_as_ever() {
    const CALLS: usize = 60;
    let mut bench = Bench::beside("samples-interrupted");
    bench.agents = &[1];
    let program = bench.compile("processor/interrupted.c", &["-pthread"], &["-lrt"]);
    let words = [program.as_os_str()];
    let plain = bench.plain(2, &words).run().expect_orderly();
    let plain = plain.expect_success();
    for way in WAYS {
        let run = bench.traced(2, &words, "trace");
        let run = run
            .env("LAGGARD_SAMPLE_HZ", HZ)
            .env("LAGGARD_SAMPLE_BY", way);
        assert_same(&plain, &run.run().expect_orderly());
        let dump = bench.dump(&bench.path("trace"));
        for call in ["MPI_Sendrecv", "MPI_Allreduce", "MPI_Barrier"] {
            let of_first = |line: &&str| {
                let is_it = line.contains(&format!(" {call} ")) && line.contains("comm=world");
                line.starts_with("0/0 ") && is_it
            };
            let found = dump.lines().filter(of_first).count();
            assert_eq!(found, CALLS, "{way}, {call}");
        }
        assert!(dump.contains(" sampled="), "{way}");
        fs::remove_dir_all(bench.path("trace")).expect("the trace goes");
    }
}

/// Where a program does odd things, its results are the same as without samples.
#[test]
fn odd_programs_behave_as_ever() {
    let mut bench = Bench::beside("samples-odd");
    // What is odd is the recording.
    bench.agents = &[1];
    let program = bench.compile("processor/odd_sampled.c", &["-pthread"], &["-ldl"]);
    let library = bench.library("processor/computing.c");
    for mode in [
        "signals", "handlers", "blocked", "jumps", "taken", "read", "fork", "exec", "cancel",
        "threads", "unload", "made", "alone",
    ] {
        let words = [program.as_os_str(), OsStr::new(mode), library.as_os_str()];
        let plain = bench.plain(2, &words).run().expect_orderly();
        for way in WAYS {
            let run = bench.traced(2, &words, "trace");
            let run = run
                .env("LAGGARD_SAMPLE_HZ", HZ)
                .env("LAGGARD_SAMPLE_BY", way);
            assert_same(&plain, &run.run().expect_orderly());
            let report = bench.analyze_all(&bench.path("trace"));
            // Code that belongs to no file.
            if mode == "made" && cfg!(target_arch = "x86_64") {
                assert!(count(&report, "samples_nowhere") > 0, "{way}: {report}");
            }
            fs::remove_dir_all(bench.path("trace")).expect("the trace goes");
        }
    }
}

#[test]
fn ten_thousand_short_threads_are_recorded() {
    let mut bench = Bench::beside("samples-crowd");
    bench.agents = &[1];
    let program = bench.compile("processor/odd_sampled.c", &["-pthread"], &["-ldl"]);
    let words = [program.as_os_str(), OsStr::new("crowd")];
    let plain = bench.plain(2, &words).run().expect_orderly();
    let run = bench.traced(2, &words, "trace");
    let run = run.env(PROCESSOR_TIME, "1").env("LAGGARD_SAMPLE_HZ", HZ);
    assert_same(&plain, &run.run().expect_orderly());
    let report: Value =
        serde_json::from_str(&bench.analyze_all(&bench.path("trace"))).expect("JSON");
    assert_eq!(
        report["run"]["locations"], 10_002,
        "{}",
        report["anomalies"]
    );
}

/// How often the report says something odd.
fn count(report: &str, id: &str) -> u64 {
    let report: Value = serde_json::from_str(report).expect("JSON");
    let rows = report["anomalies"].as_array().into_iter().flatten();
    let rows = rows.filter(|row| row["id"] == id);
    rows.filter_map(|row| row["count"].as_u64()).sum()
}

/// Nobody empties the kernel's rings in time.
#[test]
fn samples_that_find_no_room_are_counted() {
    until_right("samples without room", |_| {
        let bench = Bench::sharing("samples-starved");
        let program = bench.compile("processor/odd_sampled.c", &["-pthread"], &["-ldl"]);
        let words = [program.as_os_str(), OsStr::new("starved")];
        let run = bench
            .traced(1, &words, "trace")
            .env("LAGGARD_SAMPLE_HZ", "10000");
        let run = run.env("LAGGARD_SAMPLE_BY", "perf").run();
        run.expect_orderly().expect_success();
        let report = bench.analyze_all(&bench.path("trace"));
        match count(&report, "samples_lost") > 0 {
            true => Ok(()),
            false => Err(report.into()),
        }
    });
}

/// Containers forbid the kernel's rings, and may forbid timers. Where that ends a program, nothing is tried.
#[test]
fn what_is_forbidden_is_said() {
    let bench = Bench::beside("samples-forbidden");
    let forbidding = bench.compile("processor/forbidding.c", &[], &[]);
    let program = bench.compile("processor/odd_sampled.c", &["-pthread"], &["-ldl"]);
    for (what, told) in [
        ("perf", "by signal"),
        ("timers", "by thread"),
        ("all", "not sampled"),
        ("death", "by signal"),
    ] {
        let words = [&forbidding, Path::new(what), &program].map(AsRef::as_ref);
        let (_, trace) = traced(&bench, "best", &words, true);
        let info = info(&bench, &trace);
        assert!(info.contains(told), "{info}");
        fs::remove_dir_all(trace).expect("the trace goes");
    }
}

/// A file that gets this content again, whatever happens.
struct Restored<'t>(&'t str, &'t str);

impl Drop for Restored<'_> {
    fn drop(&mut self) {
        let _ = fs::write(self.0, self.1);
    }
}

/// Whatever a user without privileges may ask of the kernel, the program goes on, and what is asked of it is said.
#[test]
fn every_level_of_the_kernels_caution_is_met() {
    const LEVEL: &str = "/proc/sys/kernel/perf_event_paranoid";
    let before = fs::read_to_string(LEVEL).unwrap_or_default();
    if fs::write(LEVEL, before.trim()).is_err() {
        eprintln!("SKIPPED: {LEVEL} cannot be changed here");
        return;
    }
    let bench = Bench::sharing("samples-levels");
    let program = bench.compile("processor/odd_sampled.c", &["-pthread"], &["-ldl"]);
    // Somebody without privileges writes the trace. One rank needs no launcher.
    let trace = bench.path("trace");
    let words = [
        "--bounding-set=-all",
        "--inh-caps=-all",
        "--reuid=65534",
        "--clear-groups",
    ];
    let mut reads = Command::new("setpriv");
    reads.args(words).args(["test", "-x"]).arg(&program);
    if !reads.status().is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: others than root cannot reach the tests' directory");
        return;
    }
    let mut told = Vec::new();
    for level in [-1, 0, 1, 2, 3, 4] {
        fs::create_dir_all(&trace).expect("a directory");
        fs::set_permissions(&trace, Permissions::from_mode(0o777)).expect("for all");
        let mut command = Command::new("setpriv");
        command.args(words).arg(&program).arg("plain");
        command.env("LD_PRELOAD", &bench.library);
        command.env("LAGGARD_TRACE_DIR", &trace);
        command.env("LAGGARD_SAMPLE_HZ", HZ);
        let outcome = bench.record(|| {
            let _restored = Restored(LEVEL, before.trim());
            fs::write(LEVEL, level.to_string()).expect("a level");
            process::run(&mut command, TIMEOUT, &bench.path("run"))
        });
        assert_eq!(outcome.expect_success().stdout, "0: done\n");
        let info = info(&bench, &trace);
        let mut ways = WAYS.into_iter();
        told.push((
            level,
            ways.find(|way| info.contains(&format!(", by {way}"))),
        ));
        fs::remove_dir_all(&trace).expect("the trace goes");
    }
    for (level, way) in &told {
        // What more than 2 means is up to the distribution.
        let is_right = match level {
            ..=2 => *way == Some("perf"),
            _ => way.is_some(),
        };
        assert!(is_right, "{told:?}");
    }
}

/// What the collector says of the way is in the trace; without samples, nothing is.
#[test]
fn the_trace_tells_how_it_was_sampled() {
    let bench = Bench::beside("samples-ways");
    let program = bench.compile("processor/odd_sampled.c", &["-pthread"], &["-ldl"]);
    let words = [program.as_os_str(), OsStr::new("plain")];
    for way in ["best", "perf", "signal", "thread"] {
        let (_, trace) = traced(&bench, way, &words, true);
        let told = if way == "best" { "perf" } else { way };
        let info = info(&bench, &trace);
        assert!(info.contains(&format!(", by {told}")), "{info}");
        fs::remove_dir_all(trace).expect("the trace goes");
    }
    bench
        .traced(2, &words, "trace")
        .run()
        .expect_orderly()
        .expect_success();
    let dump = bench.dump(&bench.path("trace"));
    assert!(!dump.contains(" sampled="), "{dump}");
}
