//! The case study of `CASE_STUDY.md`: a program that filters a radar image patch by patch, its
//! bottleneck, and the effect of two changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use laggard_tests::attempts::until_undisturbed;
use laggard_tests::process;
use laggard_tests::product::{Bench, TIMEOUT, difference, programs};
use laggard_tests::report::{Bottleneck, Report, schema_violations};
use serde_json::Value;

const PES: u32 = 4;
const PATCHES: f64 = 48.0;
/// Time in which the master reads a patch, seconds.
const READ: f64 = 0.005;

fn mark(source: &str, name: &str) -> u32 {
    let text = fs::read_to_string(programs().join("patches").join(source)).expect("a source");
    let mark = format!("/* MARK {name} */");
    let at = text.lines().position(|line| line.contains(&mark));
    at.expect("a mark") as u32 + 1
}

/// Records a version and analyses it, as users do, with one, two and three agents, whose reports
/// must agree. Returns its output, and the report's file.
fn recorded(bench: &Bench, version: &str) -> (String, PathBuf) {
    let program = bench.compile_with("oshcc", &format!("patches/{version}.c"), &[], &["-loshmem"]);
    let trace = format!("{version}-trace");
    let run = bench.traced(PES, &[program.as_os_str()], &trace).shmem();
    let outcome = run.run().expect_orderly().expect_success();
    let report = |agents: u32| {
        let path = bench.path(&format!("{version}-{agents}.json"));
        let outcome = bench.analyze(&bench.path(&trace), agents, &path, &["-q"]);
        outcome.expect_orderly().expect_success();
        fs::read_to_string(&path).expect("a report")
    };
    let first = report(1);
    for agents in [2, 3] {
        let other = difference(&first, &report(agents));
        assert_eq!(other, None, "{version}: 1 and {agents} agents");
    }
    assert_eq!(schema_violations(&first), [""; 0]);
    (outcome.stdout, bench.path(&format!("{version}-1.json")))
}

fn report(file: &Path) -> Report {
    let text = fs::read_to_string(file).expect("a report");
    Report::parse(&text).expect("a report of the promised shape")
}

fn compared(bench: &Bench, before: &Path, after: &Path) -> Value {
    let mut command = Command::new(&bench.command);
    command.arg("compare").args([before, after]);
    command.args(["--any-program", "--format", "json"]);
    let outcome = process::run(&mut command, TIMEOUT, &bench.path("compare"));
    let outcome = outcome.expect_orderly().expect_success();
    serde_json::from_str(&outcome.stdout).expect("JSON")
}

fn check(holds: bool, what: &dyn std::fmt::Debug) -> Result<(), String> {
    holds.then_some(()).ok_or_else(|| format!("{what:#?}"))
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// Losses of all ranks at a line of a revision's source.
fn lost_at<'a>(comparison: &'a Value, file: &str, line: u32) -> Option<&'a Value> {
    let rows = comparison["bottlenecks"].as_array().expect("rows");
    rows.iter().find(|row| {
        let place = &row["places"][0]["location"];
        let is_file = place["file"].as_str().is_some_and(|f| f.ends_with(file));
        is_file && place["line"] == line
    })
}

fn is_wait(found: &Bottleneck, file: &str, line: u32) -> bool {
    found.pattern == "wait_at_shmem_barrier"
        && found.operation == "shmem_barrier_all"
        && found.location.is(file, line)
        && found.causes[0].rank == 0
        && found.causes[0].because.contains("comput")
}

/// The first version. Most is lost where three PEs wait for patches that PE 0 reads. Next comes
/// their wait for PE 0 to filter its own, since it wrote theirs before.
fn bottlenecks_of_the_first(report: &Report) -> Result<(), String> {
    let found = &report.bottlenecks;
    let read = mark("one_master.c", "patches read");
    let filtered = mark("one_master.c", "patches filtered");
    check(is_wait(&found[0], "one_master.c", read), &found[0])?;
    check(is_wait(&found[1], "one_master.c", filtered), &found[1])?;
    // Three of four PEs wait while all patches are read.
    let expected = 3.0 * PATCHES * READ;
    let right = (0.85..1.3).contains(&(found[0].severity_s / expected));
    let victims: Vec<u32> = found[0].ranks.iter().map(|share| share.rank).collect();
    check(
        right && victims.len() == 3 && !victims.contains(&0),
        &found[0],
    )
}

#[test]
fn bottlenecks_vanish_as_the_program_is_improved() {
    until_undisturbed("case study", |attempt| {
        Ok(study(&Bench::new(&format!("case-study-{attempt}")))?)
    });
}

fn study(bench: &Bench) -> Result<(), String> {
    let versions = ["one_master", "dedicated", "flags"];
    let runs = versions.map(|version| recorded(bench, version));
    // The image is the same.
    assert!(runs[0].0.contains("rank 0 of 4 checksum"), "{}", runs[0].0);
    assert!(runs.iter().all(|run| run.0 == runs[0].0), "{runs:?}");
    let reports = [0, 1, 2].map(|at: usize| report(&runs[at].1));
    bottlenecks_of_the_first(&reports[0])?;
    let top = &reports[1].bottlenecks[0];
    let round = mark("dedicated.c", "round");
    let right = top.operation == "shmem_barrier_all" && top.location.is("dedicated.c", round);
    check(right, top)?;
    // Both together: the loss is gone, and the program is faster by as much.
    let found = compared(bench, &runs[0].1, &runs[2].1);
    let mut vanished = 0.0;
    for line in ["patches read", "patches filtered"] {
        let line = mark("one_master.c", line);
        let row = lost_at(&found, "one_master.c", line).ok_or(format!("no line {line}"))?;
        check(
            row["states"][0] == "gone" && row["places"][1].is_null(),
            row,
        )?;
        vanished += number(&row["lost_s"][0]["median"]);
    }
    let rows = found["bottlenecks"].as_array().expect("rows");
    let late = |row: &&Value| row["operation"] == "shmem_long_wait_until";
    let waits = rows
        .iter()
        .filter(late)
        .map(|row| number(&row["lost_s"][1]["median"]));
    let waits: f64 = waits.sum();
    check(waits < 0.3 * vanished, &rows)?;
    let wall = &found["totals"][0];
    assert_eq!(wall["id"], "wall_time_s");
    let faster = -number(&wall["changes"][0]["difference"]) * f64::from(PES);
    let right = (0.7..1.2).contains(&(faster / vanished));
    check(right && wall["changes"][0]["verdict"] == "better", wall)?;
    // Each step made it faster.
    for (before, after) in [(0, 1), (1, 2)] {
        let step = compared(bench, &runs[before].1, &runs[after].1);
        let change = &step["totals"][0]["changes"][0];
        check(change["verdict"] == "better", &step["totals"][0])?;
    }
    Ok(())
}
