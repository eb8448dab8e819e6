//! `laggard compare` and `laggard scale` from outside: what they take, refuse and write.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const EXAMPLE: &str = include_str!("../../formats/report/tests/example.json");

/// A directory of reports.
struct Reports {
    directory: tempfile::TempDir,
}

impl Reports {
    fn new() -> Reports {
        let reports = Reports {
            directory: tempfile::tempdir().unwrap(),
        };
        for (name, ranks, wall) in [("a", 4, 12.3), ("b", 4, 9.0), ("c", 8, 8.0)] {
            reports.add(&format!("{name}.json"), |report| {
                report["run"]["ranks"] = ranks.into();
                report["run"]["locations"] = ranks.into();
                report["run"]["wall_time_s"] = wall.into();
            });
        }
        reports
    }

    fn add(&self, name: &str, change: impl Fn(&mut Value)) {
        let mut report: Value = serde_json::from_str(EXAMPLE).unwrap();
        report["anomalies"] = Value::Array(Vec::new());
        change(&mut report);
        let path = self.directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, report.to_string()).unwrap();
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_laggard"));
        command.args(words).current_dir(&self.directory);
        for name in ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "COLUMNS"] {
            command.env_remove(name);
        }
        command.output().unwrap()
    }

    fn succeed(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{output:?}"
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// The one line that says why not.
    #[track_caller]
    fn refused(&self, words: &[&str], why: &str) {
        let output = self.run(words);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(
            line.starts_with("laggard: ") && line.contains(why),
            "{line}"
        );
    }
}

#[test]
fn revisions_are_compared() {
    let reports = Reports::new();
    let text = reports.succeed(&["compare", "a.json", "b.json"]);
    assert!(
        words(&text).contains(
            "b takes 28.2 % less time than a, start-up and shut-down apart: 11.7 s became 8.40 s."
        ),
        "{text}"
    );
    // The same number as in the table.
    assert!(
        words(&text).contains("Wall time 11.7 s 8.40 s -28.2 %"),
        "{text}"
    );
    assert!(
        text.contains("unknown, since there are no repeats"),
        "{text}"
    );
    let json = reports.succeed(&["compare", "a.json", "b.json", "--format", "json"]);
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["schema"], "laggard-compare/1");
    // A difference of 28 %, where only more counts.
    let text = reports.succeed(&["compare", "a.json", "b.json", "--threshold", "30"]);
    assert!(text.contains("b is as fast as a"), "{text}");
    let text = reports.succeed(&["compare", "a.json", "c.json", "--top", "1"]);
    assert!(
        text.contains("a ran on 4 ranks, c on 8"),
        "{}",
        words(&text)
    );
    let output = reports.run(&["compare", "a.json", "b.json", "--format", "none"]);
    assert!(output.status.success() && output.stdout.is_empty());
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn repeats_are_joined_by_commas_or_in_a_directory() {
    let reports = Reports::new();
    for number in 0..4 {
        for (name, wall) in [("old", 10.0), ("new", 9.5)] {
            reports.add(&format!("{name}/run-{number}.json"), |report| {
                let wall = wall + 0.01 * f64::from(number);
                report["run"]["wall_time_s"] = wall.into();
            });
        }
    }
    let joined = |name: &str| {
        let files = (0..4).map(|number| format!("{name}/run-{number}.json"));
        files.collect::<Vec<_>>().join(",")
    };
    let result = |old: &str, new: &str| -> Value {
        let words = ["compare", old, new, "--format", "json"];
        serde_json::from_str(&reports.succeed(&words)).unwrap()
    };
    let found = result("old", &joined("new"));
    assert_eq!(found["noise"]["evidence"], "test");
    let change = &found["totals"][0]["changes"][0];
    assert_eq!(change["verdict"], "better");
    assert!(
        (change["p"].as_f64().unwrap() - 2.0 / 70.0).abs() < 1e-6,
        "{change}"
    );
    assert_eq!(
        found["revisions"][0]["reports"].as_array().unwrap().len(),
        4
    );
    assert_eq!(result(&joined("old"), "new")["totals"], found["totals"]);
    // A file's name may have a comma in it.
    reports.add("x,y.json", |_| {});
    reports.succeed(&["compare", "a.json", "x,y.json"]);
    reports.refused(
        &["compare", "a.json", "b.json,"],
        "no report between two commas",
    );
    reports.refused(&["compare", "a.json,a.json", "b.json"], "is given twice");
    reports.refused(
        &["compare", "a.json,c.json", "b.json"],
        "a.json has 4 ranks, c.json has 8 ranks: repeats must be alike",
    );
}

#[test]
fn what_is_no_revision_or_size_is_refused() {
    let reports = Reports::new();
    reports.add("other.json", |report| {
        report["run"]["program"] = "./cold".into()
    });
    reports.add("next.json", |report| {
        report["schema"] = "laggard-report/2".into()
    });
    reports.add("damaged.json", |report| report["run"] = Value::Null);
    fs::write(reports.path("thesis.json"), "{}").unwrap();
    fs::create_dir(reports.path("empty")).unwrap();
    for command in ["compare", "scale"] {
        let refused = |other: &str, why: &str| reports.refused(&[command, "a.json", other], why);
        refused("other.json", "reports of different programs");
        refused("next.json", "schema \"laggard-report/2\"");
        refused("damaged.json", "is a damaged report");
        refused("thesis.json", "is not a report");
        refused("missing.json", "cannot read missing.json");
        refused(
            "empty",
            "empty: no report in it: run laggard analyze empty first",
        );
    }
    reports.refused(&["scale", "a.json", "b.json"], "both have 4 ranks");
    reports.succeed(&["compare", "a.json", "other.json", "--any-program"]);
}

#[test]
fn sizes_are_scaled() {
    let reports = Reports::new();
    let text = reports.succeed(&["scale", "c.json", "a.json", "--scaling", "strong"]);
    assert!(
        text.contains("heat: 2 sizes from 4 to 8 ranks, strong scaling"),
        "{text}"
    );
    assert!(text.contains("scaling factor 0.79"), "{text}");
    let json = reports.succeed(&["scale", "a.json", "c.json", "--format", "json"]);
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["schema"], "laggard-scale/1");
    assert_eq!(value["sizes"][1]["ranks"], 8);
}

#[test]
fn results_replace_results_only() {
    let reports = Reports::new();
    for (command, other) in [("compare", "b.json"), ("scale", "c.json")] {
        let words = [command, "a.json", other];
        let files = ["-o", "result.json", "--svg", "result.svg"];
        let text = reports.succeed(&[&words[..], &files].concat());
        assert!(text.ends_with("Picture written to result.svg\n"), "{text}");
        let result = fs::read_to_string(reports.path("result.json")).unwrap();
        assert_eq!(
            result,
            reports.succeed(&[&words[..], &["--format", "json"]].concat())
        );
        let picture = fs::read_to_string(reports.path("result.svg")).unwrap();
        assert!(picture.starts_with("<svg"), "{picture}");
        reports.succeed(&[&words[..], &files].concat());
        // Neither a report nor what else there may be.
        let refused = |more: &[&str], why| reports.refused(&[&words[..], more].concat(), why);
        refused(
            &["-o", "a.json"],
            "a.json exists and is not an older result",
        );
        refused(
            &["--svg", "result.json"],
            "result.json exists and is not a picture",
        );
        refused(&["-o", "nowhere/x.json"], "cannot write nowhere/x.json");
        for file in ["result.json", "result.svg"] {
            fs::remove_file(reports.path(file)).unwrap();
        }
    }
    assert!(Path::new(&reports.path("a.json")).exists());
}

/// Time by function adds up to the time inside of calls.
#[test]
fn functions_add_up() {
    let directory = tempfile::tempdir().unwrap();
    let mut ranks = crate::support::ranks(2);
    for start in (0..5).map(|round| round * 100_000_000) {
        ranks[0].send(15, 1, 7, start + 20_000_000, start + 20_001_000);
        ranks[1].recv(22, 0, 7, start + 10_000_000, start + 20_002_000);
    }
    ranks
        .iter_mut()
        .for_each(|calls| calls.write(directory.path()));
    let reports = Reports::new();
    let trace = directory.path().to_str().unwrap();
    let json = reports.succeed(&["analyze", trace, "--all", "--format", "json"]);
    let report: Value = serde_json::from_str(&json).unwrap();
    let rows = report["operations"].as_array().unwrap();
    let names: Vec<&str> = rows
        .iter()
        .map(|row| row["operation"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["MPI_Recv", "MPI_Send"]);
    let sum = |key: &str| {
        rows.iter()
            .map(|row| row[key].as_f64().unwrap())
            .sum::<f64>()
    };
    let sums = &report["location_sums"];
    let is = |key: &str, of: &str| (sum(key) - sums[of].as_f64().unwrap()).abs() < 1e-9;
    assert!(
        is("total_s", "communication_s") && is("wait_s", "wait_s"),
        "{rows:?} {sums}"
    );
    assert_eq!(
        (&rows[0]["calls"], &rows[0]["time"]),
        (&5.into(), &"communication".into())
    );
}
