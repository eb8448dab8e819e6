//! Comparisons of runs: revisions with a known difference, sizes with a known loss.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use laggard_tests::attempts::until_undisturbed;
use laggard_tests::process::{self, Outcome};
use laggard_tests::product::{Bench, TIMEOUT, difference, programs};
use serde_json::Value;

const SOURCE: &str = "experiments/steps.c";
const STEPS: f64 = 6.0;

/// The number of the line with this mark.
fn mark(name: &str) -> u64 {
    let text = fs::read_to_string(programs().join(SOURCE)).expect("a source");
    let mark = format!("/* MARK {name} */");
    let at = text.lines().position(|line| line.contains(&mark));
    at.expect("a mark") as u64 + 1
}

/// Runs the program, and analyses it with one, two and three agents, whose reports must agree.
fn recorded(bench: &Bench, program: &Path, ranks: u32, words: &[&str], name: &str) -> PathBuf {
    let mut command = vec![program.as_os_str()];
    command.extend(words.iter().map(OsStr::new));
    let run = bench.traced(ranks, &command, name).run();
    run.expect_orderly().expect_success();
    let report = |agents: u32| {
        let path = bench.path(&format!("{name}-{agents}.json"));
        let outcome = bench.analyze(&bench.path(name), agents, &path, &["--all", "-q"]);
        outcome.expect_orderly().expect_success();
        path
    };
    let text = |path: &Path| fs::read_to_string(path).expect("a report");
    let first = report(1);
    for agents in [2, 3] {
        let other = difference(&text(&first), &text(&report(agents)));
        assert_eq!(other, None, "1 and {agents} agents");
    }
    first
}

fn laggard(bench: &Bench, words: &[&str]) -> Outcome {
    let mut command = Command::new(&bench.command);
    command.args(words).current_dir(&bench.dir);
    process::run(&mut command, TIMEOUT, &bench.path("laggard")).expect_orderly()
}

/// The result of a command as data. Checks that its picture and text exist.
fn result(bench: &Bench, command: &str, reports: &[&str]) -> Value {
    let words = |more: &[&'static str]| {
        let mut words = vec![command.to_owned()];
        words.extend(reports.iter().map(|report| report.to_string()));
        words.extend(more.iter().map(|word| word.to_string()));
        words
    };
    let run = |more: &[&'static str]| {
        let words = words(more);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        laggard(bench, &words).expect_success().stdout
    };
    let json = run(&["--format", "json", "--svg", "picture.svg"]);
    let picture = fs::read_to_string(bench.path("picture.svg")).expect("a picture");
    assert!(
        picture.starts_with("<svg") && picture.contains("steps"),
        "{picture}"
    );
    let text = run(&["-o", "result.json"]);
    assert!(text.starts_with("steps"), "{text}");
    let written = fs::read_to_string(bench.path("result.json")).expect("a result");
    assert_eq!(written, json);
    serde_json::from_str(&json).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn check(holds: bool, what: &dyn std::fmt::Debug) -> Result<(), String> {
    holds.then_some(()).ok_or_else(|| format!("{what:#?}"))
}

fn near(found: f64, expected: f64, by: f64) -> bool {
    (found - expected).abs() <= by
}

fn row<'a>(comparison: &'a Value, operation: &str) -> &'a Value {
    let rows = comparison["bottlenecks"].as_array().expect("rows");
    let mut rows = rows.iter().filter(|row| row["operation"] == operation);
    rows.next().unwrap_or_else(|| {
        panic!(
            "no {operation} in {rows:?}",
            rows = comparison["bottlenecks"]
        )
    })
}

/// Root causes of computation that ended with a call.
fn caused<'a>(found: &'a Value, until: &str) -> Vec<&'a Value> {
    let rows = found["root_causes"].as_array().expect("rows").iter();
    let is_one = |row: &&Value| {
        let places = row["places"].as_array().expect("places");
        let mut ends = places.iter().map(|place| &place["until"]["operation"]);
        row["activity"] == "computation" && ends.any(|end| end == until)
    };
    rows.filter(is_one).collect()
}

/// Rank 0 prepares for 20 ms less in each step: two others waited that much longer for its
/// broadcast.
#[test]
fn revisions() {
    until_undisturbed("revisions", |attempt| {
        let bench = Bench::new(&format!("revisions-{attempt}"));
        let mut lists: Vec<String> = Vec::new();
        for (name, flags) in [("before", &[][..]), ("after", &["-DREVISED"])] {
            let program = bench.compile(SOURCE, flags, &[]);
            let reports = ["1", "2"].map(|number| {
                let trace = format!("{name}-{number}");
                let report = recorded(&bench, &program, 3, &["0", "10"], &trace);
                report.display().to_string()
            });
            lists.push(reports.join(","));
        }
        let found = result(&bench, "compare", &[&lists[0], &lists[1]]);
        assert_eq!(found["schema"], "laggard-compare/1");
        assert_eq!(found["noise"]["evidence"], "spread");
        assert_eq!(found["revisions"][0]["label"], "before");
        let broadcast = row(&found, "MPI_Bcast");
        assert_eq!(broadcast["pattern"], "late_broadcast");
        assert_eq!(broadcast["matched"][0], "moved");
        let lines = [0, 1].map(|at| broadcast["places"][at]["location"]["line"].as_u64());
        assert_eq!(lines, [Some(mark("broadcast")), Some(100)]);
        assert_eq!(broadcast["places"][1]["cause_rank"], 0);
        let reduction = row(&found, "MPI_Allreduce");
        assert_eq!(reduction["matched"][0], "renamed");
        let functions = [0, 1].map(|at| &reduction["places"][at]["location"]["function"]);
        assert_eq!(functions, ["reduce", "sum_up"]);
        let saved = STEPS * 2.0 * 0.020;
        let change = &broadcast["changes"][0];
        check(
            near(number(&change["difference"]), -saved, 0.05) && change["verdict"] == "better",
            broadcast,
        )?;
        let same = &reduction["changes"][0];
        check(near(number(&same["difference"]), 0.0, 0.04), reduction)?;
        // So is the root cause of the one, begun in the renamed function, and that of the other.
        let prepared = caused(&found, "MPI_Bcast");
        check(
            prepared.iter().any(|row| row["matched"][0] == "renamed"),
            &prepared,
        )?;
        let by = |rows: &[&Value]| -> f64 {
            let differences = rows.iter().map(|row| &row["changes"][0]["difference"]);
            differences.map(number).sum()
        };
        check(by(&prepared) < 0.05 - saved, &prepared)?;
        // Part of the wait for the reduction is passed on to who prepares, so that both change.
        let late = caused(&found, "MPI_Allreduce");
        check(
            near(by(&prepared) + by(&late), -saved, 0.05),
            &(&prepared, late),
        )?;
        let wall = &found["totals"][0];
        assert_eq!(wall["id"], "wall_time_s");
        let change = &wall["changes"][0];
        check(number(&change["difference"]) < 0.0, wall)?;
        // A gate for tests lists the regressions.
        let gate = |words: &[&str]| {
            let words = [&["compare"], words, &["--format", "none"]].concat();
            laggard(&bench, &words)
        };
        let faster = gate(&[&lists[0], &lists[1], "--fail-on-regression"]);
        check(
            faster.code == Some(0) && faster.stderr.is_empty(),
            &faster.stderr,
        )?;
        assert_eq!(gate(&[&lists[1], &lists[0]]).code, Some(0));
        let slower = gate(&[&lists[1], &lists[0], "--fail-on-regression=80"]);
        let told = "laggard: before is slower: Late broadcast in MPI_Bcast at steps.c:";
        check(
            slower.code == Some(3) && slower.stderr.contains(told) && slower.stdout.is_empty(),
            &slower.stderr,
        )?;
        // Trace directories stand for the reports in them. The same run twice is no repeat.
        let report = fs::read(bench.path("before-1-1.json")).expect("a report");
        fs::write(bench.path("before-1/report.json"), report).expect("a copy");
        let same = result(&bench, "compare", &["before-1", "before-1-1.json"]);
        assert_eq!(same["noise"]["evidence"], "threshold");
        assert_eq!(same["totals"][0]["changes"][0]["verdict"], "same");
        // So does a directory of such directories.
        fs::create_dir(bench.path("both")).expect("a directory");
        for number in ["1", "2"] {
            let (trace, to) = (format!("before-{number}"), format!("both/{number}"));
            fs::create_dir(bench.path(&to)).expect("a directory");
            for file in fs::read_dir(bench.path(&trace)).expect("a trace") {
                let file = file.expect("a file").path();
                let name = file.file_name().expect("a name");
                fs::copy(&file, bench.path(&to).join(name)).expect("a copy");
            }
            let report = bench.path(&format!("before-{number}-1.json"));
            fs::copy(report, bench.path(&to).join("report.json")).expect("a copy");
        }
        let both = result(&bench, "compare", &["both", &lists[1]]);
        assert_eq!(both["totals"], found["totals"]);
        let refused = laggard(&bench, &["compare", "before-1,before-1", "after-1-1.json"]);
        assert_eq!(refused.code, Some(1));
        assert!(refused.stderr.contains("is given twice"), "{refused}");
        Ok(())
    });
}

/// Rank 0 prepares 30 ms while all others wait; the last rank is late by 15 ms.
#[test]
fn sizes() {
    until_undisturbed("sizes", |attempt| {
        let bench = Bench::new(&format!("sizes-{attempt}"));
        let program = bench.compile(SOURCE, &[], &[]);
        let run = |ranks: u32, words: &[&str], kind: &str| {
            let report = recorded(&bench, &program, ranks, words, &format!("{kind}-{ranks}"));
            report.display().to_string()
        };
        let strong = [4, 1, 2].map(|ranks| run(ranks, &["120"], "strong"));
        let words = [&*strong[0], &strong[1], &strong[2]];
        let found = result(&bench, "scale", &words);
        assert_eq!(found["schema"], "laggard-scale/1");
        check(
            found["scaling"] == "strong" && found["assumed"] == true,
            &found,
        )?;
        let sizes = found["sizes"].as_array().expect("sizes");
        let ranks: Vec<u64> = sizes
            .iter()
            .filter_map(|size| size["ranks"].as_u64())
            .collect();
        assert_eq!(ranks, [1, 2, 4]);
        for size in sizes {
            adds_up(size);
            let ideal = number(&sizes[0]["wall_time_s"]) / number(&size["ranks"]);
            let factor = ideal / number(&size["wall_time_s"]);
            assert!(near(number(&size["factor"]), factor, 1e-6), "{size}");
        }
        let four = &sizes[2];
        let cost = |kind: &str, operation: &str| {
            let costs = four["costs"].as_array().expect("costs");
            let mut costs = costs
                .iter()
                .filter(|c| c["kind"] == kind && c["operation"] == operation);
            costs
                .next()
                .cloned()
                .ok_or_else(|| format!("no {operation} in {costs:#?}"))
        };
        let broadcast = cost("bottleneck", "MPI_Bcast")?;
        assert_eq!(broadcast["location"]["line"], mark("broadcast"));
        let right = near(number(&broadcast["lost_s"]), STEPS * 3.0 * 0.030, 0.09)
            && number(&broadcast["to_computation_s"]) > 0.8 * number(&broadcast["lost_s"]);
        check(right, &broadcast)?;
        let reduction = cost("bottleneck", "MPI_Allreduce")?;
        check(
            near(number(&reduction["lost_s"]), STEPS * 3.0 * 0.015, 0.08),
            &reduction,
        )?;
        // What rank 0 prepares grows with the ranks that wait for it.
        let rows = caused(&found, "MPI_Bcast");
        for (at, others) in [0.0, 1.0, 3.0].into_iter().enumerate() {
            // A part of the wait for the last rank is passed on to rank 0.
            let caused: f64 = rows.iter().map(|row| number(&row["severity_s"][at])).sum();
            let direct = STEPS * others * 0.030;
            let most = direct + STEPS * others * 0.015;
            check(caused > direct - 0.05 && caused < most + 0.05, &rows)?;
        }
        // All ranks work equally long, whatever their number.
        let weak = [1, 4].map(|ranks| run(ranks, &["0", "40"], "weak"));
        let found = result(&bench, "scale", &[&weak[0], &weak[1]]);
        check(
            found["scaling"] == "weak" && found["assumed"] == true,
            &found,
        )?;
        adds_up(&found["sizes"][1]);
        let told = laggard(
            &bench,
            &[
                "scale",
                &weak[0],
                &weak[1],
                "--scaling",
                "strong",
                "--format",
                "json",
            ],
        );
        let told: Value = serde_json::from_str(&told.stdout).expect("JSON");
        assert_eq!(
            (&told["scaling"], &told["assumed"]),
            (&"strong".into(), &false.into())
        );
        let refused = laggard(&bench, &["scale", &strong[0], &weak[1]]);
        assert_eq!(refused.code, Some(1));
        assert!(refused.stderr.contains("both have 4 ranks"), "{refused}");
        Ok(())
    });
}

/// Parts and costs of a size each add up to what it lost.
fn adds_up(size: &Value) {
    let sum = |key: &str| -> f64 {
        let rows = size[key].as_array().expect("rows");
        rows.iter().map(|row| number(&row["lost_s"])).sum()
    };
    let lost = number(&size["lost_s"]);
    assert!(near(sum("parts"), lost, 1e-6), "{size:#}");
    assert!(near(sum("costs"), lost, 1e-6), "{size:#}");
}
