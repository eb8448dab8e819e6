//! Predictions of real programs, against runs of the same programs mended; and what is refused.

use std::fs;
use std::path::Path;
use std::process::Command;

use laggard_tests::attempts::{Off, scale, until_undisturbed};
use laggard_tests::process::{self, Outcome};
use laggard_tests::product::{Bench, TIMEOUT};
use laggard_whatif::JSON_SCHEMA;
use serde_json::Value;

fn what_if(bench: &Bench, trace: &Path, words: &[&str]) -> Outcome {
    let mut command = Command::new(&bench.command);
    command
        .arg("what-if")
        .arg(trace)
        .args(words)
        .current_dir(&bench.dir);
    process::run(&mut command, TIMEOUT, &bench.path("what-if")).expect_orderly()
}

/// The result, which must be of the schema's form and reproduce the recorded run.
fn result(bench: &Bench, trace: &Path, words: &[&str]) -> Value {
    let words: Vec<&str> = words.iter().copied().chain(["--format", "json"]).collect();
    let outcome = what_if(bench, trace, &words).expect_success();
    let value: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let schema: Value = serde_json::from_str(JSON_SCHEMA).expect("a schema");
    let validator = jsonschema::draft202012::new(&schema).expect("a schema");
    let complaints: Vec<String> = validator
        .iter_errors(&value)
        .map(|e| e.to_string())
        .collect();
    assert_eq!(complaints, [""; 0]);
    assert_eq!(value["not_reproduced"], 0);
    value
}

fn seconds(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).expect(path)
}

/// Rank 3 has more work than the others. Balanced, the program takes as long as predicted.
#[test]
fn a_mended_program_takes_as_long_as_predicted() {
    let bench = Bench::new("what-if-mended");
    until_undisturbed("what-if", |attempt| {
        let record = |flag: &str| {
            let program = bench.compile("hints/balance_work.c", &[flag], &[]);
            let name = format!("{}-{attempt}", &flag[1..]);
            let run = bench.traced(4, &[program.as_os_str()], &name).run();
            run.expect_orderly().expect_success();
            bench.path(&name)
        };
        let flawed = record("-UMENDED");
        let words = ["--balance", "main", "--network", "latency=0"];
        let found = result(&bench, &flawed, &words);
        // Compiled anew: the lines of the run before are unknown from now on.
        let mended = record("-DMENDED");
        let other = result(&bench, &mended, &["--network", "latency=0"]);
        let before = seconds(&found, "/recorded/waiting_s");
        let predicted = seconds(&found, "/scenarios/0/gain_s");
        let time = |value: &Value, key: &str| seconds(value, &format!("/recorded/{key}"));
        let gained = time(&found, "time_s") - time(&other, "time_s");
        // 12 ms in each of 10 rounds; start-up takes as long as it likes.
        let is_near = (predicted - gained).abs() < 0.3 * gained;
        match is_near && time(&other, "waiting_s") < before {
            true => Ok(()),
            false => Err(Off::from(format!("predicted {predicted}, gained {gained}"))),
        }
    });
}

/// A rank that looks again and again for a message is done earlier if the message comes earlier, as
/// if it waited in a call.
#[test]
fn who_looks_for_a_message_has_it_as_soon_as_predicted() {
    let bench = Bench::new("what-if-polled");
    until_undisturbed("what-if-polled", |attempt| {
        let record = |flag: &str| {
            let program = bench.compile("experiments/polled_work.c", &[flag], &[]);
            let name = format!("{}-{attempt}", &flag[1..]);
            let run = bench.traced(2, &[program.as_os_str()], &name).run();
            run.expect_orderly().expect_success();
            bench.path(&name)
        };
        let flawed = record("-UMENDED");
        let report: Value = serde_json::from_str(&bench.analyze_all(&flawed)).unwrap();
        let told = seconds(&report, "/root_causes/0/gain_s");
        let found = result(&bench, &flawed, &["--speed-up", "rank:0=6"]);
        let mended = record("-DMENDED");
        let other = result(&bench, &mended, &["--network", "latency=0"]);
        let predicted = seconds(&found, "/scenarios/0/gain_s");
        let time = |value: &Value| seconds(value, "/recorded/waiting_s");
        let gained = (time(&found) - time(&other)).max(0.0);
        // 25 ms in each of 10 rounds; rank 1 waits so much less, and nobody else waits.
        let is_near = |gain: f64| (gain - gained).abs() < 0.2 * gained;
        match is_near(predicted) && is_near(told) {
            true => Ok(()),
            false => Err(Off::from(format!(
                "predicted {predicted}, told {told}, gained {gained}"
            ))),
        }
    });
}

/// A report says what its root causes gain. Rank 3 works 16 ms longer than the others in each of 9
/// rounds between two sums: 432 ms of waiting, 144 ms of the run.
#[test]
fn reports_say_what_root_causes_gain() {
    until_undisturbed("what-if-gain", |attempt| {
        let bench = Bench::sharing(&format!("what-if-gain-{attempt}"));
        let program = bench.compile("hints/balance_work.c", &["-UMENDED"], &[]);
        let run = bench.traced(4, &[program.as_os_str()], "trace").run();
        run.expect_orderly().expect_success();
        let report: Value = serde_json::from_str(&bench.analyze_all(&bench.path("trace"))).unwrap();
        let gain = seconds(&report, "/root_causes/0/gain_s");
        let waiting = seconds(&report, "/root_causes/0/severity_s");
        let wall = seconds(&report, "/run/wall_time_s");
        let percent = seconds(&report, "/root_causes/0/gain_percent");
        assert!(
            (percent - 100.0 * gain / wall).abs() < 0.5,
            "{percent} {gain} {wall}"
        );
        let [serialization, transfer, communication] =
            ["serialization", "transfer", "communication"]
                .map(|part| seconds(&report, &format!("/efficiency/{part}")));
        assert!((serialization * transfer - communication).abs() < 1e-3);
        let is_near =
            |value: f64, wanted: f64| (value - scale() * wanted).abs() < 0.1 * scale() * wanted;
        match is_near(gain, 0.144) && is_near(waiting, 0.432) {
            true => Ok(()),
            false => Err(Off::from(format!("gains {gain}, waiting {waiting}"))),
        }
    });
}

/// Mistakes are one line: which file, where, and what there is instead.
#[test]
fn mistakes_are_told() {
    let bench = Bench::beside("what-if-mistakes");
    let program = bench.compile("root_cause_chain.c", &[], &[]);
    let run = bench.traced(4, &[program.as_os_str()], "trace").run();
    run.expect_orderly().expect_success();
    let trace = bench.path("trace");
    let write = |text: &str| fs::write(bench.path("s.toml"), text).expect("a file");
    let refused = |words: &[&str], code: i32, wanted: &str| {
        let outcome = what_if(&bench, &trace, words);
        assert_eq!(outcome.code, Some(code), "{words:?}");
        let said = &outcome.stderr;
        assert!(said.contains(wanted), "{words:?}: {said}");
        assert!(code == 2 || said.lines().count() == 1, "{words:?}: {said}");
    };
    refused(&["--speed-up", "mian=2"], 1, "main");
    refused(&["--without-cause", "1"], 1, "laggard analyze");
    refused(&["--scenario", "none.toml"], 1, "none.toml");
    refused(&["--baseline", "none.json"], 1, "none.json");
    refused(&["--no-barrier", "main"], 1, "no barrier at main");
    write("[a]\nspeed_up = \"main=2\"\n[b]\nspeed_down = \"x\"\n");
    refused(&["--scenario", "s.toml"], 1, "s.toml:4: b: speed_down");
    refused(&[], 2, "--speed-up");
    refused(&["--network", "latency=x"], 2, "factor");
    bench.analyze_all(&trace);
    write("[both]\nwithout_cause = 1\nnetwork = \"latency=0\"\n");
    let found = result(
        &bench,
        &trace,
        &[
            "--scenario",
            "s.toml",
            "--speed-up",
            "rank:0=1",
            "--report",
            "report-1.json",
        ],
    );
    assert_eq!(found["scenarios"][1]["name"], "both");
    assert_eq!(found["scenarios"][0]["gain_s"], 0.0);
    assert!(
        seconds(&found, "/scenarios/1/gain_percent") > 10.0,
        "{found}"
    );
}
