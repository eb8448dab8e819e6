//! The Python package, installed as users do, on a recorded run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use laggard_tests::process::{self, Outcome};
use laggard_tests::product::{Bench, TIMEOUT, reader};
use serde_json::Value;

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/python")
}

/// `python -m TOOL` with these words, in the test's directory.
fn tool(bench: &Bench, words: &[&str]) -> Outcome {
    let python = reader("package.py").get_program().to_owned();
    let mut command = Command::new(python);
    command.arg("-m").args(words).current_dir(&bench.dir);
    process::run(&mut command, TIMEOUT, &bench.path(words[0]))
}

/// Installs the package from a directory or a tarball, and returns where.
fn installed(bench: &Bench, from: &Path, name: &str) -> PathBuf {
    let home = bench.path(name);
    let words = [
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "--no-deps",
    ];
    // What builds it is in the environment.
    let words = [
        &words[..],
        &["--no-build-isolation", "--no-index", "--target"],
    ]
    .concat();
    let paths = [&home, from].map(|path| path.to_str().expect("a path"));
    tool(bench, &[&words[..], &paths].concat()).expect_success();
    home
}

fn copy_to(bench: &Bench, from: &Path, copy: &Path) {
    let mut command = Command::new("cp");
    command.arg("-r").arg(from).arg(copy);
    process::run(&mut command, TIMEOUT, &bench.path("cp")).expect_success();
}

/// A copy: building leaves files behind.
fn copied(bench: &Bench) -> PathBuf {
    let copy = bench.path("python");
    copy_to(bench, &package(), &copy);
    for left in ["build", "src/laggard.egg-info"] {
        let _ = fs::remove_dir_all(copy.join(left));
    }
    copy
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9 * other.abs().max(1.0)
}

#[test]
fn a_notebook_asks_a_run() {
    let bench = Bench::sharing("python-package");
    let program = bench.compile("late_sender_recv.c", &[], &[]);
    let run = bench.traced(2, &[program.as_os_str()], "trace").run();
    run.expect_orderly().expect_success();
    let trace = bench.path("trace");
    let report = trace.join("report.json");
    bench.analyze(&trace, 1, &report, &["-q"]).expect_success();
    let report: Value =
        serde_json::from_str(&fs::read_to_string(report).expect("a report")).expect("JSON");

    // A newer run.
    copy_to(&bench, &trace, &bench.path("trace.1"));

    // From the tree and from a tarball, the same files.
    let copy = copied(&bench);
    let tarball = bench.path("laggard-python.tar.gz");
    let mut tar = Command::new("tar");
    tar.arg("-C")
        .arg(&bench.dir)
        .arg("-czf")
        .arg(&tarball)
        .arg("python");
    process::run(&mut tar, TIMEOUT, &bench.path("tar")).expect_success();
    let of_tarball = installed(&bench, &tarball, "of-tarball");
    let home = installed(&bench, &copy, "installed");
    for file in ["__init__.py", "py.typed", "report.py"] {
        let read = |home: &Path| fs::read(home.join("laggard").join(file)).expect("a file");
        assert!(read(&home) == read(&of_tarball), "{file}");
    }

    let example =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/report/tests/example.json");
    let hostile = fs::read_to_string(example).expect("a report");
    let hostile = hostile.replace(
        "exchange_halo",
        "<script>alert(1)</script><img src=x onerror=y>",
    );
    let hostile = hostile.replace("./heat", "<b onmouseover='x'>\\u001b&lt;");
    let mut hostile: Value = serde_json::from_str(&hostile).expect("JSON");
    let off = [("blocked_s", 0.25), ("kernel_s", 0.5)];
    for (name, time) in off {
        hostile["locations"][0][name] = time.into();
    }
    fs::write(bench.path("hostile.json"), hostile.to_string()).expect("a file");

    let mut command = reader("package.py");
    let python = command.get_program().to_owned();
    let script = command.get_args().last().expect("a script").to_owned();
    command = Command::new(python);
    command.arg(script).arg(&trace);
    command.arg(package().join("examples/first-look.ipynb"));
    command.arg(bench.path("hostile.json"));
    command
        .env("PYTHONPATH", &home)
        .env("LAGGARD_BIN", &bench.command);
    command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("LAGGARD_TRACE_DIR", "trace")
        .current_dir(&bench.dir);
    let outcome = process::run(&mut command, TIMEOUT, &bench.path("package")).expect_success();
    let found: Value = serde_json::from_str(&outcome.stdout).expect("JSON");

    assert!(
        found["file"]
            .as_str()
            .expect("a path")
            .starts_with(home.to_str().expect("a path"))
    );
    assert_eq!(
        found["rows"].as_object().expect("tables").len(),
        18,
        "{found:#}"
    );
    assert!(number(&found["rows"]["messages"]) > 0.0);
    // Mapped and shared: nothing is copied.
    assert_eq!(found["allocated_by_mapping"], 0, "{found:#}");
    for copied in ["copied_by_pandas", "copied_by_polars"] {
        assert_eq!(found[copied], serde_json::json!([]), "{found:#}");
    }
    // Its numbers are the report's.
    let findings = report["bottlenecks"].as_array().expect("findings");
    let lost: f64 = findings.iter().map(|one| number(&one["severity_s"])).sum();
    assert!(near(number(&found["lost_s"]), lost), "{found:#}");
    let of_ranks = report["locations"].as_array().expect("locations");
    let all = |name: &str| of_ranks.iter().map(|one| number(&one[name])).sum::<f64>();
    let share = 100.0 * all("wait_s") / all("wall_s");
    assert!(near(number(&found["waiting_percent"]), share), "{found:#}");
    let answers = &found["answers"];
    for (name, column, rank) in [("who_waits", "first_rank", 1), ("for_whom", "rank", 0)] {
        assert_eq!(
            answers[name]["rows"][0][column], rank,
            "{name}: {answers:#}"
        );
    }
    let place = &answers["where"]["rows"][0];
    assert_eq!(
        (&place["operation"], &place["line"]),
        (&findings[0]["operation"], &findings[0]["location"]["line"])
    );
    let root = &report["root_causes"][0];
    let why = &answers["why"]["rows"][0];
    assert_eq!(why["severity_s"], root["severity_s"], "{answers:#}");
    let told = why["what"].as_str().expect("words");
    // As the command words it.
    let printed = found["text"].as_str().expect("a text");
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(printed.contains(told), "{told}: {printed}");
    for (name, answer) in answers.as_object().expect("answers") {
        let rows = answer["rows"].as_array().expect("rows").len();
        assert_eq!(
            (&answer["pandas"], &answer["polars"]),
            (&rows.into(), &rows.into()),
            "{name}"
        );
    }
    let gain = &answers["what_helps"]["rows"][0]["gain_s"];
    assert!(gain.as_f64() > Some(0.0), "{answers:#}");
    assert_eq!(found["what_if"], "laggard-what-if/1");
    assert_eq!(found["newest"][0], "trace.1", "{found:#}");
    let refused = found["refused"].as_str().expect("a message");
    assert!(
        refused.starts_with("laggard: ") && refused.contains("no trace"),
        "{refused}"
    );
    // What is not in the report is nothing.
    for (row, expected) in [(0, [0.25, 0.0, 0.5]), (1, [0.0; 3])] {
        let row = &found["off_work"][row];
        let told = ["blocked_s", "preempted_s", "kernel_s"].map(|name| number(&row[name]));
        assert_eq!(told, expected, "{found:#}");
    }
    // Names are no HTML.
    let tags = serde_json::json!(["b", "p", "table", "tbody", "td", "th", "thead", "tr"]);
    assert_eq!(
        (&found["tags"], &found["attributes"]),
        (&tags, &serde_json::json!([]))
    );
    // Every cell of the notebook shows something.
    let cells = found["notebook"].as_array().expect("cells");
    assert!(cells.len() >= 8, "{cells:?}");
    for cell in cells {
        assert_eq!(*cell, serde_json::json!(["text/html", "text/plain"]));
    }
}

/// Strictly, and for those who use it.
#[test]
fn types_are_strict() {
    let bench = Bench::beside("python-types");
    let copy = copied(&bench);
    let config = copy.join("pyproject.toml");
    let check = |files: &Path| {
        let words = [
            "mypy",
            "--config-file",
            config.to_str().expect("a path"),
            "--cache-dir",
            "cache",
        ];
        tool(
            &bench,
            &[&words[..], &[files.to_str().expect("a path")]].concat(),
        )
    };
    check(&copy.join("src/laggard")).expect_success();
    let user = bench.path("user.py");
    let uses =
        "import laggard\nreport = laggard.read()\nline: int = report.findings[0].place.line\n";
    fs::write(&user, uses).expect("a file");
    let home = installed(&bench, &copy, "installed");
    let strict = |text: &str| {
        fs::write(&user, text).expect("a file");
        let python = reader("package.py").get_program().to_owned();
        let mut command = Command::new(python);
        let words = ["-m", "mypy", "--strict", "--cache-dir", "cache", "user.py"];
        // As of packages that are installed in Python itself, only their types count.
        let words = [&words[..], &["--follow-imports", "silent"]].concat();
        command.args(words);
        command.env("MYPYPATH", &home).current_dir(&bench.dir);
        process::run(&mut command, TIMEOUT, &bench.path("mypy"))
    };
    strict(uses).expect_success();
    let wrong = strict(&uses.replace("int", "str"));
    assert!(
        wrong.stdout.contains("Incompatible types in assignment"),
        "{wrong}"
    );
}
