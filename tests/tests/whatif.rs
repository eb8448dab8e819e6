//! Predictions of real programs, against runs of the same programs mended; and what is refused.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use laggard_generator::{Length, Program, Settings, generate};
use laggard_tests::attempts::{Off, scale, until_undisturbed};
use laggard_tests::process::{self, Outcome};
use laggard_tests::product::{Bench, PROCESSOR_TIME, TIMEOUT};
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

/// The report of `experiments/asleep.c`, the same for every number of agents.
fn asleep(what: &str, ranks: u32) -> Value {
    let bench = Bench::sharing(&format!("asleep-{what}"));
    let program = bench.compile("experiments/asleep.c", &["-fopenmp"], &["-lpthread"]);
    let words = [program.as_os_str(), OsStr::new(what)];
    let run = bench
        .traced(ranks, &words, "trace")
        .env(PROCESSOR_TIME, "1");
    run.run().expect_orderly().expect_success();
    serde_json::from_str(&bench.analyze_all(&bench.path("trace"))).expect("JSON")
}

/// Whoever sleeps, and in what: who wakes up at once makes the run as much shorter. Ten times 50 ms, of which the first
/// may be elsewhere.
#[test]
fn sleep_is_what_mending_it_gains() {
    for (what, ranks, rank, threads, most) in [
        ("startall", 2, "0", "", 0.85),
        ("pipe", 2, "1", "", 0.85),
        ("thread", 2, "1", "1-10", 0.85),
        ("team", 2, "1", "", 0.85),
        // What went down the line is over later than who started it.
        ("neighbours", 4, "0", "", 0.75),
    ] {
        until_undisturbed(what, |_| {
            let report = asleep(what, ranks);
            let root = &report["root_causes"][0];
            let [gain, cost] =
                ["gain_s", "severity_s"].map(|key| root[key].as_f64().unwrap_or(0.0));
            let set = root["thread_set"].as_str().unwrap_or_default();
            let waited = report["location_sums"]["wait_s"].as_f64();
            let waited = waited.unwrap_or_else(|| {
                let all = report["locations"].as_array().into_iter().flatten();
                all.filter_map(|one| one["wait_s"].as_f64()).sum()
            });
            let is_right = root["rank_set"] == rank && set == threads && cost > most * waited;
            match is_right && (0.4..0.6).contains(&gain) {
                true => Ok(()),
                false => Err(Off::from(format!(
                    "{what}: {waited} {}",
                    report["root_causes"]
                ))),
            }
        });
    }
}

/// What is told of how long somebody was late is of the times that cost something.
#[test]
fn times_that_cost_nothing_are_not_in_the_mean() {
    until_undisturbed("seldom", |_| {
        let report = asleep("seldom", 2);
        let root = &report["root_causes"][0];
        let told = root["because"].as_str().unwrap_or_default();
        let ms = told.split_whitespace().zip(told.split_whitespace().skip(1));
        let ms = ms
            .filter(|(_, unit)| unit.starts_with("ms"))
            .map(|(number, _)| number);
        let longest = ms.filter_map(|number| number.parse::<f64>().ok()).next();
        match longest.is_some_and(|ms| (45.0..60.0).contains(&ms)) {
            true => Ok(()),
            false => Err(Off::from(format!("{root}"))),
        }
    });
}

/// Nobody knows what a process outside of the run did: no rank is blamed for it.
#[test]
fn who_waits_for_a_process_outside_of_the_run_waits_for_nobody_known() {
    until_undisturbed("spawned", |_| {
        let report = asleep("spawned", 2);
        let lost = &report["metrics"]["partner_without_trace"]["total_s"];
        let untraced = report["untraced_s"].as_f64().unwrap_or(0.0);
        let is_right = lost.as_f64().is_some_and(|lost| lost > 0.4) && untraced > 0.4;
        match is_right {
            true => Ok(()),
            false => Err(Off::from(format!(
                "{untraced} {} {}",
                report["metrics"], report["root_causes"]
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
        // The run without start-up and shut-down, as in all shares.
        let measured = seconds(&report, "/phases_of_run/measured_s");
        let percent = seconds(&report, "/root_causes/0/gain_percent");
        assert!(
            (percent - 100.0 * gain / measured).abs() < 0.5,
            "{percent} {gain} {measured}"
        );
        // And so does a replay that is asked for.
        let asked = ["--without-cause", "1", "--report", "report-1.json"];
        let asked = result(&bench, &bench.path("trace"), &asked);
        let asked = seconds(&asked, "/scenarios/0/gain_percent");
        assert!((percent - asked).abs() < 0.01, "{percent} {asked}");
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

/// Where temporary files do not fit, a report has everything but root causes, and says so once. A replay
/// needs them: one line says what to do.
#[test]
fn temporary_files_on_a_full_disk() {
    let bench = Bench::beside("what-if-full-disk");
    let trace = bench.path("trace");
    let settings = Settings {
        faults: vec!["noise=30".parse().expect("a fault")],
        ..Settings::new(Program::Halo2d, 8, Length::Calls(2_000_000))
    };
    generate(&settings, &trace).expect("a trace");
    let disk = bench.path("disk");
    fs::create_dir(&disk).expect("a directory");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "none"])
        .arg(&disk)
        .output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: no small disk can be mounted here");
        return;
    }
    let run = |words: &[&str]| {
        let mut command = Command::new(&bench.command);
        command.args(words).current_dir(&bench.dir);
        command.env("TMPDIR", &disk);
        process::run(&mut command, TIMEOUT, &bench.path(words[0]))
    };
    let analyzed = run(&["analyze", "trace", "-q", "-o", "report.json"]);
    let replayed = run(&["what-if", "trace", "--speed-up", "rank:0=2"]);
    let unmounted = Command::new("umount").arg(&disk).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    let analyzed = analyzed.expect_orderly().expect_success();
    assert!(analyzed.stderr.lines().count() <= 1, "{analyzed}");
    let report = fs::read_to_string(bench.path("report.json")).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert!(report.get("root_causes").is_none());
    let anomalies = report["anomalies"].as_array().expect("a list").iter();
    let said: Vec<_> = anomalies
        .filter(|row| row["id"] == "no_root_causes")
        .collect();
    assert_eq!(said.len(), 1, "{:?}", report["anomalies"]);
    assert!(seconds(&report, "/metrics/late_sender/total_s") > 0.0);
    let replayed = replayed.expect_orderly();
    assert_eq!(replayed.code, Some(1), "{replayed}");
    assert_eq!(replayed.stderr.lines().count(), 1, "{replayed}");
    let words = ["No space left", "set TMPDIR"];
    assert!(
        words.iter().all(|words| replayed.stderr.contains(words)),
        "{replayed}"
    );
}

/// An archive is replayed as its trace is. A trace of which parts are missing is replayed, or one line
/// says why not.
#[test]
fn archives_and_damaged_traces_are_replayed() {
    let bench = Bench::beside("what-if-damaged");
    let program = bench.compile("root_cause_chain.c", &[], &[]);
    let run = bench.traced(4, &[program.as_os_str()], "trace").run();
    run.expect_orderly().expect_success();
    let trace = bench.path("trace");
    let mut export = Command::new(&bench.command);
    export
        .arg("export")
        .arg(&trace)
        .args(["--to", "otf2", "-q"]);
    export.arg("-o").arg(bench.path("archive"));
    let exported = process::run(&mut export, TIMEOUT, &bench.path("export"));
    exported.expect_orderly().expect_success();
    let words = ["--speed-up", "rank:0=2"];
    let own = result(&bench, &trace, &words);
    let archive = result(&bench, &bench.path("archive/traces.otf2"), &words);
    // Each time is rounded to a ns.
    for key in ["/recorded/time_s", "/scenarios/0/gain_s"] {
        let (own, archive) = (seconds(&own, key), seconds(&archive, key));
        assert!((own - archive).abs() < 1e-6, "{key}: {own} {archive}");
    }
    let files = fs::read_dir(&trace).expect("a trace").flatten();
    let mut files: Vec<_> = files.map(|file| file.path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "lgt"));
    files.sort();
    let file = files.get(1).expect("a file per rank");
    let whole = fs::read(file).expect("a file");
    let mut answers = 0;
    for parts in (0..32).rev() {
        fs::write(file, &whole[..whole.len() * parts / 32]).expect("a file");
        let outcome = what_if(
            &bench,
            &trace,
            &[&words[..], &["--format", "json"]].concat(),
        );
        match outcome.code {
            Some(0) => {
                let value: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
                assert_eq!(value["not_reproduced"], 0, "{parts} of 32");
                answers += 1;
            }
            code => {
                assert_eq!(code, Some(1), "{parts} of 32: {outcome}");
                assert_eq!(
                    outcome.stderr.lines().count(),
                    1,
                    "{parts} of 32: {outcome}"
                );
            }
        }
    }
    fs::remove_file(file).expect("a file");
    let outcome = what_if(&bench, &trace, &words);
    assert!(
        outcome.code == Some(0) || outcome.stderr.lines().count() == 1,
        "{outcome}"
    );
    assert!(answers > 0, "only errors");
}
