//! What a rank does between two calls, and in calls, beside work: asleep, without a processor, in the kernel.
//! The program itself says how much there was.

use std::ffi::OsStr;
use std::fs;
use std::panic::Location;
use std::path::Path;
use std::process::Command;

use laggard_tests::attempts::{Off, until_right, until_undisturbed};
use laggard_tests::process;
use laggard_tests::product::{Bench, PROCESSOR_TIME, TIMEOUT, reader};
use laggard_tests::recorded::{check, mark};
use laggard_tests::threads::{FLAGS, ROUNDS as REGIONS, Run as Threads};
use serde_json::Value;

/// Rounds of the program, and what it does in each, ns.
const ROUNDS: f64 = 20.0;
const PART: f64 = 20e6;

/// The same program in all languages.
const SOURCES: [&str; 3] = ["off_processor.c", "off_processor.cpp", "off_processor.f90"];

/// What the program says, what its trace says of some calls and the time before them, and the report.
struct Run {
    said: Value,
    calls: Vec<String>,
    report: Value,
    /// The metrics of the profile for Cube.
    profile: Value,
}

/// The metrics of a trace's profile for Cube.
fn profile(bench: &Bench, trace: &Path) -> Value {
    let profile = bench.path("profile.cubex");
    let mut command = Command::new(&bench.command);
    command.arg("export").arg(trace);
    command.args(["--to", "cubex", "-o"]).arg(&profile);
    process::run(&mut command, TIMEOUT, &bench.path("export")).expect_success();
    let mut command = reader("cubex.py");
    command.arg(&profile);
    let outcome = process::run(&mut command, TIMEOUT, &bench.path("reader"));
    let mut read: Value = serde_json::from_str(&outcome.expect_success().stdout).expect("JSON");
    read["metrics"].take()
}

impl Run {
    fn of(what: &str) -> Run {
        Run::of_source("off_processor.c", what)
    }

    fn of_source(source: &str, what: &str) -> Run {
        Run::recorded((source, &[]), what, "MPI_Send")
    }

    /// The same in regions of one thread.
    fn in_region(what: &str) -> Run {
        Run::recorded(("off_processor.c", &["-fopenmp"]), what, "MPI_Send")
    }

    /// A program with this argument, and its calls with this name.
    fn recorded((source, flags): (&str, &[&str]), what: &str, call: &str) -> Run {
        let name = source.replace('.', "-");
        let bench = Bench::sharing(&format!("{name}{}-{what}", flags.concat()));
        let program = bench.compile(&format!("processor/{source}"), flags, &["-lpthread"]);
        let words = [program.as_os_str(), OsStr::new(what)];
        let run = bench.traced(2, &words, "trace");
        let run = run.env(PROCESSOR_TIME, "1").run();
        let said = serde_json::from_str(&run.expect_orderly().expect_success().stdout);
        let trace = bench.path("trace");
        let mut first: Option<Value> = None;
        for agents in [1, 2, 3] {
            let report = bench.path("report.json");
            let outcome = bench.analyze(&trace, agents, &report, &["--all", "-q"]);
            outcome.expect_orderly().expect_success();
            let mut report: Value =
                serde_json::from_slice(&fs::read(&report).expect("a report")).expect("JSON");
            report["agents"].take();
            assert_eq!(
                *first.get_or_insert(report.clone()),
                report,
                "{agents} agents"
            );
        }
        let dump = bench.dump(&trace);
        let calls = dump.lines().filter(|line| line.contains(call));
        Run {
            said: said.expect("what the program says"),
            calls: calls.map(str::to_owned).collect(),
            report: first.expect("a report"),
            profile: profile(&bench, &trace),
        }
    }

    /// What the tree of call paths and the profile for Cube have of this, ns.
    fn in_profiles(&self, activity: &str) -> [f64; 2] {
        let nodes = self.report["call_tree"]["nodes"].as_array().expect("nodes");
        let own = nodes.iter().filter(|node| node["kind"] == activity);
        let own = own.map(|node| node["time_s"]["inclusive"].as_f64().expect("s"));
        let metric = &self.profile[activity];
        assert_eq!(metric["parent"], "computation");
        [own.sum(), metric["sum"].as_f64().expect("s")].map(|time| 1e9 * time)
    }

    fn said(&self, what: &str) -> f64 {
        self.said[what].as_f64().expect("a number")
    }

    /// The same over all these calls.
    fn sum(&self, name: &str) -> f64 {
        sum(&self.calls, name)
    }

    /// The same, ns.
    fn ns(&self, name: &str) -> f64 {
        1e3 * self.sum(&format!("{name}_us"))
    }

    /// Waiting that rank 0 starts by this, ns.
    fn started(&self, activity: &str) -> f64 {
        self.sum_of(activity, "severity_s", |cause| {
            cause["until"]["operation"] == "MPI_Send"
        })
    }

    /// The same of what it does in calls with this name: by this key, ns.
    fn started_in(&self, activity: &str, call: &str, key: &str) -> f64 {
        self.sum_of(activity, key, |cause| {
            cause["operation"] == call && cause["until"].is_null()
        })
    }

    /// Whether the largest cause with this activity is rank 0's between the calls that the program marks.
    #[track_caller]
    fn is_between_marks(&self, activity: &str, source: &str) -> Result<(), Off> {
        let line = |name: &str| mark(&format!("processor/{source}"), name);
        let mut causes = self.report["root_causes"].as_array().into_iter().flatten();
        let cause = causes.find(|cause| cause["activity"] == activity);
        let cause = cause.unwrap_or(&Value::Null);
        let ends = [&cause["operation"], &cause["until"]["operation"]];
        let lines = [&cause["location"]["line"], &cause["until"]["line"]];
        let is_right = ends == ["MPI_Barrier", "MPI_Send"] && lines == [line("begin"), line("end")];
        check(is_right && cause["rank_set"] == "0", cause)
    }

    fn sum_of(&self, activity: &str, key: &str, is_such: impl Fn(&Value) -> bool) -> f64 {
        let causes = self.report["root_causes"].as_array().expect("root causes");
        let found = causes.iter().filter(|cause| {
            cause["activity"] == activity && cause["rank_set"] == "0" && is_such(cause)
        });
        let seconds = found.map(|cause| cause[key].as_f64().expect("a number"));
        1e9 * seconds.sum::<f64>()
    }

    /// What the report says of rank 0 beside work between calls, ns; that of all ranks is no less, and is the sum of
    /// what it says of each.
    fn of_location(&self, name: &str) -> f64 {
        let of = |times: &Value| times[name].as_f64().unwrap_or(0.0);
        let locations = self.report["locations"].as_array().expect("locations");
        let first = locations
            .iter()
            .find(|of| of["rank"] == 0 && of["thread"] == 0);
        let all: f64 = locations.iter().map(of).sum();
        let sum = of(&self.report["location_sums"]);
        assert!((all - sum).abs() < 1e-6, "{name}: {all} {sum}");
        1e9 * of(first.expect("rank 0"))
    }

    /// Time lost in a pattern, ns.
    fn lost(&self, pattern: &str) -> f64 {
        1e9 * self.report["metrics"][pattern]["total_s"]
            .as_f64()
            .unwrap_or(0.0)
    }

    /// The same, in one operation.
    fn lost_in(&self, pattern: &str, operation: &str) -> f64 {
        let found = self.report["bottlenecks"].as_array().into_iter().flatten();
        let found =
            found.filter(|found| found["pattern"] == pattern && found["operation"] == operation);
        1e9 * found
            .filter_map(|found| found["severity_s"].as_f64())
            .sum::<f64>()
    }
}

/// Sum over these calls, µs or a number.
fn sum(calls: &[String], name: &str) -> f64 {
    let words = calls.iter().flat_map(|line| line.split_whitespace());
    let values = words.filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    values
        .map(|value| value.parse::<f64>().expect("a number"))
        .sum()
}

/// Within 10 %.
#[track_caller]
fn near(found: f64, truth: f64) -> Result<(), Off> {
    let (error, at) = ((found - truth).abs() / truth, Location::caller());
    let text = || format!("{found} instead of {truth} at {at}").into();
    (error < 0.1).then_some(()).ok_or_else(text)
}

#[track_caller]
fn holds(condition: bool) -> Result<(), Off> {
    let at = Location::caller();
    let text = || format!("not so at {at}").into();
    condition.then_some(()).ok_or_else(text)
}

#[test]
fn sleep_is_no_computation() {
    SOURCES.into_iter().for_each(sleeps);
}

fn sleeps(source: &str) {
    until_undisturbed(&format!("sleep is no computation: {source}"), |_| {
        let run = Run::of_source(source, "sleep");
        let blocked = run.ns("blocked");
        // After its sleep, a thread may wait for a processor.
        check(blocked > 0.9 * ROUNDS * PART, &blocked)?;
        check(blocked < 1.1 * run.said("slept"), &blocked)?;
        near(blocked + run.ns("preempted"), run.said("off"))?;
        near(run.of_location("blocked_s"), blocked)?;
        for told in run.in_profiles("blocked") {
            near(told, blocked)?;
        }
        holds(run.of_location("kernel_s") < 0.1 * blocked)?;
        near(run.started("blocked"), blocked)?;
        run.is_between_marks("blocked", source)?;
        Ok(())
    });
}

/// Others are a thread of the rank, or another process.
#[test]
fn a_processor_that_others_have_is_no_computation() {
    ["shared", "process"].into_iter().for_each(has_no_processor);
}

fn has_no_processor(since: &str) {
    until_undisturbed(since, |_| {
        let run = Run::of(since);
        let preempted = run.ns("preempted");
        check(preempted > 0.9 * ROUNDS * PART, &preempted)?;
        near(preempted + run.ns("blocked"), run.said("off"))?;
        holds(run.ns("blocked") < 0.1 * preempted)?;
        near(run.of_location("preempted_s"), run.said("off"))?;
        for told in run.in_profiles("preempted") {
            near(told, run.said("off"))?;
        }
        holds(run.of_location("blocked_s") < 0.1 * preempted)?;
        near(run.started("preempted"), run.said("off"))?;
        run.is_between_marks("preempted", "off_processor.c")?;
        Ok(())
    });
}

/// The kernel takes the processor where a thread asks how long it has had it: at the ends of stretches.
#[test]
fn a_processor_that_is_taken_at_the_end_of_a_stretch_is_no_computation() {
    until_undisturbed(
        "a processor that is taken at the end of a stretch is no computation",
        |_| {
            let run = Run::recorded(("off_processor.c", &[]), "briefly", "0/0 ");
            let (preempted, blocked) = (run.ns("preempted"), run.ns("blocked"));
            near(preempted + blocked, run.said("off"))?;
            check(blocked < 0.1 * preempted, &(blocked, preempted))?;
            Ok(())
        },
    );
}

/// Where a region has no thread to wait for, no record tells of it: the next one has all.
#[test]
fn regions_of_one_thread_are_told_with_the_rest() {
    until_undisturbed("regions of one thread are told with the rest", |_| {
        let run = Run::in_region("shared");
        let preempted = run.ns("preempted");
        near(preempted + run.ns("blocked"), run.said("off"))?;
        holds(run.ns("blocked") < 0.1 * preempted)?;
        near(run.started("preempted"), run.said("off"))?;
        let run = Run::in_region("sleep");
        near(run.ns("blocked") + run.ns("preempted"), run.said("off"))?;
        near(run.started("blocked"), run.ns("blocked"))?;
        let run = Run::in_region("touch");
        near(run.ns("kernel"), run.said("kernel"))?;
        near(run.started("kernel"), run.said("kernel"))?;
        near(run.sum("minor_faults"), run.said("faults"))?;
        Ok(())
    });
}

#[test]
fn new_memory_is_in_the_kernel() {
    SOURCES.into_iter().for_each(touches);
}

fn touches(source: &str) {
    until_undisturbed(&format!("new memory is in the kernel: {source}"), |_| {
        let run = Run::of_source(source, "touch");
        near(run.ns("kernel"), run.said("kernel"))?;
        holds(run.ns("kernel") > 0.3 * ROUNDS * PART)?;
        near(run.of_location("kernel_s"), run.said("kernel"))?;
        for told in run.in_profiles("kernel") {
            near(told, run.said("kernel"))?;
        }
        near(run.sum("minor_faults"), run.said("faults"))?;
        near(run.started("kernel"), run.said("kernel"))?;
        run.is_between_marks("kernel", source)?;
        let mut causes = run.report["root_causes"].as_array().into_iter().flatten();
        let faults = causes.find_map(|cause| cause["page_faults"].as_f64());
        near(faults.unwrap_or(0.0) * ROUNDS, run.said("faults"))?;
        Ok(())
    });
}

/// A near miss: who works is not off its processor, as far as the machine lets it.
#[test]
fn work_is_computation() {
    until_undisturbed("work is computation", |_| {
        let run = Run::of("work");
        holds(run.ns("blocked") < 0.02 * ROUNDS * PART)?;
        let off = run.said("off");
        check(run.ns("preempted") < 1.1 * off + 0.02 * ROUNDS * PART, &off)?;
        holds(run.ns("kernel") < 0.2 * ROUNDS * PART)?;
        near(run.started("computation"), run.said("worked"))?;
        for (activity, truth) in [("blocked", 0.0), ("preempted", off), ("kernel", 0.0)] {
            let started = run.started(activity);
            check(
                started < 1.1 * truth + 0.02 * ROUNDS * PART,
                &(activity, started),
            )?;
        }
        Ok(())
    });
}

/// A thread that waits passively for the end of a region, then for another one, is off its processor in both waits,
/// which are known at the end of the second one.
#[test]
fn threads_of_a_team_that_wait_asleep_are_off_their_processors() {
    until_right("asleep", |_| {
        let bench = Bench::sharing("off-processor-asleep");
        let program = bench.compile("threads/asleep.c", FLAGS, &[]);
        let run = Threads::recorded_with(&bench, &program, (1, "2"), &[(PROCESSOR_TIME, "1")]);
        for (name, least) in [("omp_parallel_end", 0.030), ("omp_idle", 0.040)] {
            let lines = run.dump.lines().filter(|line| {
                let mut words = line.split_whitespace();
                // The last one lasts until another thread ends the recording, which cannot know how it slept.
                let is_last = name == "omp_idle" && !line.contains(" team=");
                words.next() == Some("0/1") && words.nth(2) == Some(name) && !is_last
            });
            let calls: Vec<String> = lines.map(str::to_owned).collect();
            let lasted = calls.iter().map(|line| {
                let us = line.split_whitespace().nth(2).map(str::parse::<f64>);
                1e-6 * us.expect("a time").expect("a number")
            });
            let lasted: f64 = lasted.sum();
            assert!(lasted > REGIONS * least, "{calls:?}");
            let asleep = 1e-6 * sum(&calls, "inside_blocked_us");
            check(asleep > 0.8 * lasted, &(name, asleep, lasted, &calls))?;
            assert!(asleep < 1.001 * lasted, "{calls:?}");
        }
        Ok(())
    });
}

/// What rank 0 does in calls, of which these have the name.
fn in_calls(what: &str, call: &str) -> Run {
    Run::recorded(("in_calls.c", &[]), what, call)
}

#[test]
fn a_processor_that_others_have_makes_a_call_longer() {
    until_undisturbed("a processor that others have makes a call longer", |_| {
        let run = in_calls("shared", "MPI_Reduce");
        let off = run.said("off");
        near(run.ns("inside_preempted"), off)?;
        holds(run.ns("inside_blocked") < 0.1 * off)?;
        near(run.lost("without_processor"), off)?;
        // Others may have the processor of rank 1, too: causes are what rank 0 does more.
        for key in ["severity_s", "gain_s"] {
            let started = run.started_in("preempted", "MPI_Reduce", key);
            near(started, off)?;
        }
        Ok(())
    });
}

/// Each look is too short to be looked at by itself. Whom looks in vain wait for nobody knows; of the rest, as much is
/// without a processor.
#[test]
fn looks_that_give_the_processor_away_are_without_it() {
    until_undisturbed("looks that give the processor away are without it", |_| {
        let run = in_calls("looks", "MPI_Iprobe");
        let (off, looked) = (run.said("off"), run.said("looked"));
        near(run.ns("inside_preempted"), off)?;
        holds(run.ns("inside_blocked") < 0.1 * off)?;
        let [without, with] =
            ["preempted", "call"].map(|what| run.started_in(what, "MPI_Iprobe", "severity_s"));
        near(without / (without + with), off / looked)?;
        Ok(())
    });
}

/// Rank 0 is off its processor in waits, too: that is not what makes its calls longer.
#[test]
fn a_wait_without_a_processor_is_a_wait() {
    until_undisturbed("a wait without a processor is a wait", |_| {
        for what in ["waited", "waits"] {
            let run = in_calls(what, "MPI_Reduce");
            let off = run.said("off");
            // Of the barriers before, nobody knows when the other rank came.
            let lost = run.lost_in("without_processor", "MPI_Reduce");
            let inside = run.ns("inside_preempted");
            check(inside - off > 0.05 * ROUNDS * PART, &(inside, off))?;
            // Of short ones, part is what such calls cost.
            let part = if what == "waited" { 0.1 } else { 0.25 };
            let error = (lost - off).abs();
            check(error < part * off + 0.02 * inside, &(what, lost, off))?;
        }
        Ok(())
    });
}

#[test]
fn sleep_in_a_call_is_no_work() {
    until_undisturbed("sleep in a call is no work", |_| {
        let run = in_calls("sleep", "MPI_Reduce");
        let off = run.said("off");
        near(run.ns("inside_blocked") + run.ns("inside_preempted"), off)?;
        let started = run.started_in("blocked", "MPI_Reduce", "severity_s");
        near(started, run.ns("inside_blocked"))?;
        Ok(())
    });
}

#[test]
fn new_memory_in_a_call_is_in_the_kernel() {
    until_undisturbed("new memory in a call is in the kernel", |_| {
        let run = in_calls("touch", "MPI_Reduce");
        near(run.ns("inside_kernel"), run.said("kernel"))?;
        let started = run.started_in("kernel", "MPI_Reduce", "severity_s");
        near(started, run.ns("inside_kernel"))?;
        Ok(())
    });
}

/// A near miss: the library computes.
#[test]
fn work_in_a_call_is_work() {
    until_undisturbed("work in a call is work", |_| {
        let run = in_calls("work", "MPI_Reduce");
        let off = run.said("off");
        let preempted = run.started_in("preempted", "MPI_Reduce", "severity_s");
        check(preempted < 1.1 * off + 0.02 * ROUNDS * PART, &off)?;
        holds(run.started_in("call", "MPI_Reduce", "severity_s") > 0.8 * ROUNDS * PART)?;
        holds(run.lost("without_processor") < 1.1 * off + 0.02 * ROUNDS * PART)?;
        Ok(())
    });
}
