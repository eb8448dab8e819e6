//! What replays predict, against the same programs mended for real. One table of all is printed
//! (`--nocapture`).

use std::fs;
use std::path::Path;

use laggard_tests::attempts::{Off, until_right};
use laggard_tests::process;
use laggard_tests::product::{Bench, TIMEOUT, programs};
use serde_json::Value;

/// Cases of `experiments/repairs.c`, with the change that each is mended by. The first round comes
/// after another call than the others, which makes it another root cause.
const CASES: [(&str, &str); 14] = [
    ("slow_rank", "without_cause = [1, 2]"),
    ("two_slow_ranks", "speed_up = 'rank:3=4'"),
    ("chain", "speed_up = 'rank:0=2'"),
    ("neighbours", "without_cause = [1, 2]"),
    ("uneven", "balance = 'sum_up'"),
    ("barriers", "no_barrier = 'meet'"),
    ("slow_function", "speed_up = 'solve=2'"),
    ("slow_machine", "speed_up = 'rank:1=2'"),
    ("late_root", "speed_up = 'repairs.c:ROOT=3'"),
    ("blocking_receive", "non_blocking = 'blocking_receive'"),
    ("blocking_send", "non_blocking = 'blocking_send'"),
    ("made_again", "once = 'made_again'"),
    ("small_messages", "combine = 'small_messages'"),
    ("two_flaws", "balance = 'sum_up'\nno_barrier = 'meet'"),
];

/// Largest error of a prediction, as a part of the recorded time.
const MOST: f64 = 0.1;
/// Largest median of these.
const MOST_MEDIAN: f64 = 0.05;
/// Runs of each program, of which the quickest counts: it was disturbed least.
const RUNS: u32 = 3;

/// Times of a program, s.
struct Times {
    flawed: f64,
    predicted: f64,
    mended: f64,
}

impl Times {
    /// Of the prediction, as a part of the recorded time.
    fn error(&self) -> f64 {
        (self.predicted - self.mended).abs() / self.flawed
    }
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// How long the rounds of a case take at least, s, and the name of that trace.
fn quickest(bench: &Bench, program: &Path, case: &str, kind: &str, attempt: u32) -> (f64, String) {
    let runs = (0..RUNS).map(|run| {
        let name = format!("{case}-{kind}-{attempt}-{run}");
        let words = [program.as_os_str(), case.as_ref(), kind.as_ref()];
        let outcome = bench.traced(4, &words, &name).run();
        let outcome = outcome.expect_orderly().expect_success();
        let mut lines = outcome.stdout.lines();
        let text = lines.find_map(|line| line.strip_prefix("elapsed "));
        let time: f64 = text.and_then(|text| text.parse().ok()).expect("a time");
        (time, name)
    });
    let quickest = runs.min_by(|a, b| a.0.total_cmp(&b.0));
    quickest.expect("a run")
}

/// By how much a change makes a recorded run shorter.
fn gain(bench: &Bench, trace: &Path, change: &str) -> f64 {
    fs::write(bench.path("change.toml"), format!("[change]\n{change}\n")).expect("a file");
    let outcome = bench.analyze(trace, 1, &bench.path("report.json"), &["-q"]);
    outcome.expect_orderly().expect_success();
    let mut command = std::process::Command::new(&bench.command);
    command
        .args(["what-if", "--scenario", "change.toml"])
        .args(["--report", "report.json", "--format", "json"])
        .arg(trace)
        .current_dir(&bench.dir);
    let outcome = process::run(&mut command, TIMEOUT, &bench.path("what-if"));
    let outcome = outcome.expect_orderly().expect_success();
    let value: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let gain = value.pointer("/scenarios/0/gain_s");
    gain.and_then(Value::as_f64).expect("a gain")
}

fn times(bench: &Bench, program: &Path, (case, change): (&str, &str)) -> Times {
    until_right(case, |attempt| {
        let (flawed, name) = quickest(bench, program, case, "flawed", attempt);
        let times = Times {
            flawed,
            predicted: flawed - gain(bench, &bench.path(&name), change),
            mended: quickest(bench, program, case, "mended", attempt).0,
        };
        match times.error() <= MOST {
            true => Ok(times),
            false => Err(Off::from(format!(
                "{:.1} ms, predicted {:.1}, mended {:.1}",
                times.flawed * 1e3,
                times.predicted * 1e3,
                times.mended * 1e3
            ))),
        }
    })
}

#[test]
fn mended_programs_take_as_long_as_predicted() {
    let bench = Bench::new("repairs");
    let source = "experiments/repairs.c";
    let text = fs::read_to_string(programs().join(source)).expect("a program");
    let root = text.lines().position(|line| line.contains("MARK root"));
    let root = (root.expect("the broadcast") + 1).to_string();
    let program = bench.compile(source, &[], &[]);
    let mut errors = Vec::new();
    for (case, change) in CASES {
        let times = times(&bench, &program, (case, &change.replace("ROOT", &root)));
        eprintln!(
            "| `{case}` | `{}` | {:.1} ms | {:.1} ms | {:.1} ms | {:.1} % |",
            change.replace('\n', "`, `"),
            times.flawed * 1e3,
            times.predicted * 1e3,
            times.mended * 1e3,
            100.0 * times.error()
        );
        errors.push(times.error());
    }
    let worst = errors.iter().copied().fold(0.0, f64::max);
    let median = median(errors);
    eprintln!(
        "median {:.1} %, worst {:.1} %",
        100.0 * median,
        100.0 * worst
    );
    assert!(median <= MOST_MEDIAN, "median {median}");
}
