//! What a rank does between two calls beside computation: asleep, without a processor, in the kernel.
//! The program itself says how much there was.

use std::ffi::OsStr;
use std::fs;

use laggard_tests::product::{Bench, PROCESSOR_TIME};
use serde_json::Value;

/// Rounds of the program, and what it does in each, ns.
const ROUNDS: f64 = 20.0;
const PART: f64 = 20e6;

/// What the program says, what its trace says of rank 0 before its sends, and the report.
struct Run {
    said: Value,
    sends: Vec<String>,
    report: Value,
}

impl Run {
    fn of(what: &str) -> Run {
        let bench = Bench::new(&format!("off-processor-{what}"));
        let program = bench.compile("processor/off_processor.c", &[], &["-lpthread"]);
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
            let causes = report["root_causes"].take();
            assert_eq!(
                *first.get_or_insert(causes.clone()),
                causes,
                "{agents} agents"
            );
        }
        let dump = bench.dump(&trace);
        let sends = dump.lines().filter(|line| line.contains("MPI_Send"));
        Run {
            said: said.expect("what the program says"),
            sends: sends.map(str::to_owned).collect(),
            report: first.expect("root causes"),
        }
    }

    fn said(&self, what: &str) -> f64 {
        self.said[what].as_f64().expect("a number")
    }

    /// Sum over all sends, µs or a number.
    fn sum(&self, name: &str) -> f64 {
        let words = self.sends.iter().flat_map(|line| line.split_whitespace());
        let values = words.filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        values
            .map(|value| value.parse::<f64>().expect("a number"))
            .sum()
    }

    /// The same, ns.
    fn ns(&self, name: &str) -> f64 {
        1e3 * self.sum(&format!("{name}_us"))
    }

    /// Waiting that rank 0 starts by this, ns.
    fn started(&self, activity: &str) -> f64 {
        let causes = self.report.as_array().expect("root causes").iter();
        let found = causes.filter(|cause| {
            cause["activity"] == activity
                && cause["rank_set"] == "0"
                && cause["until"]["operation"] == "MPI_Send"
        });
        let seconds = found.map(|cause| cause["severity_s"].as_f64().expect("a number"));
        1e9 * seconds.sum::<f64>()
    }
}

#[track_caller]
fn near(found: f64, truth: f64) {
    let error = (found - truth).abs() / truth;
    assert!(error < 0.1, "{found} instead of {truth}");
}

#[test]
fn sleep_is_no_computation() {
    let run = Run::of("sleep");
    let blocked = run.ns("blocked");
    // After its sleep, a thread may wait for a processor.
    assert!(blocked > 0.9 * ROUNDS * PART, "{blocked}");
    assert!(blocked < 1.1 * run.said("slept"), "{blocked}");
    near(blocked + run.ns("preempted"), run.said("off"));
    let started = run.started("blocked");
    assert!(started > 0.6 * ROUNDS * PART, "{started}");
}

#[test]
fn a_processor_that_others_have_is_no_computation() {
    let run = Run::of("shared");
    let preempted = run.ns("preempted");
    assert!(preempted > 0.9 * ROUNDS * PART, "{preempted}");
    near(preempted + run.ns("blocked"), run.said("off"));
    assert!(run.ns("blocked") < 0.1 * preempted);
    assert!(run.started("preempted") > 0.6 * ROUNDS * PART);
}

#[test]
fn new_memory_is_in_the_kernel() {
    let run = Run::of("touch");
    near(run.ns("kernel"), run.said("kernel"));
    assert!(run.ns("kernel") > 0.3 * ROUNDS * PART);
    near(run.sum("minor_faults"), run.said("faults"));
    assert!(run.started("kernel") > 0.2 * ROUNDS * PART);
}

/// A near miss: who works is not off its processor, as far as the machine lets it.
#[test]
fn work_is_computation() {
    let run = Run::of("work");
    assert!(run.ns("blocked") < 0.02 * ROUNDS * PART);
    let off = run.said("off");
    assert!(
        run.ns("preempted") < 1.1 * off + 0.02 * ROUNDS * PART,
        "{off}"
    );
    assert!(run.ns("kernel") < 0.2 * ROUNDS * PART);
    assert!(run.started("computation") > 0.6 * ROUNDS * PART);
}
