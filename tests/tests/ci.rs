//! Reports for scripts, read by parsers that are not ours: Markdown, OpenMetrics, JUnit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use laggard_tests::process::{self, Outcome};
use laggard_tests::product::{Bench, TIMEOUT, programs, reader};
use serde_json::Value;

/// Not seen, and keeps sites from making links.
const JOINER: char = '\u{2060}';
/// What a name of a function should not be able to do.
const HOSTILE: &str = "f<b>|`x`\n\n# h\r\n- [l](javascript:alert(1)) ![i](j) <img src=x onerror=y> \
    @everyone #1 !2 user@e.org https://evil.example www.evil.example :smile: ftp://a mailto:b@c.de \
    **s** __t__ ~~u~~ $1$ &lt; \\ \" ' ]]> --> {} \u{1b}[2J\u{7}\u{0}\u{202e}\u{85}\u{2028} ä";
const FORMATS: [&str; 3] = ["markdown", "openmetrics", "junit"];

fn laggard(bench: &Bench, words: &[&str]) -> Outcome {
    let mut command = Command::new(&bench.command);
    command.args(words).current_dir(&bench.dir);
    process::run(&mut command, TIMEOUT, &bench.path("laggard")).expect_orderly()
}

/// What a foreign parser reads in a text.
fn parsed(bench: &Bench, format: &str, text: &str) -> Value {
    let file = bench.path(&format!("parsed.{format}"));
    fs::write(&file, text).expect("a file");
    let mut command = reader("formats.py");
    command.arg(format).arg(file);
    let outcome = process::run(&mut command, TIMEOUT, &bench.path("parser"));
    let text = outcome.expect_success().stdout;
    serde_json::from_str(&text).expect("JSON")
}

/// A report in one of the formats, as a foreign parser reads it.
fn shown(bench: &Bench, report: &str, format: &str, options: &[&str]) -> Value {
    let words = [&["show", report, "--format", format], options].concat();
    parsed(bench, format, &laggard(bench, &words).stdout)
}

fn example() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/report/tests/example.json");
    serde_json::from_str(&fs::read_to_string(path).expect("a report")).expect("JSON")
}

fn write(bench: &Bench, name: &str, report: &Value) -> PathBuf {
    let path = bench.path(name);
    fs::write(&path, report.to_string()).expect("a file");
    path
}

fn list(value: &Value) -> &Vec<Value> {
    value
        .as_array()
        .unwrap_or_else(|| panic!("{value} is no list"))
}

fn text(value: &Value) -> String {
    let text = value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no text"));
    text.replace(JOINER, "").replace('\u{a0}', " ")
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// The rows of a Markdown table below its head.
fn rows(table: &Value) -> Vec<Vec<String>> {
    let cells = |row: &Value| list(row).iter().map(text).collect();
    list(table).iter().skip(1).map(cells).collect()
}

/// Sum of all samples of a family.
fn sum(families: &Value, name: &str) -> f64 {
    let samples = list(&families[name]["samples"]).iter();
    samples.map(|sample| number(&sample[1])).sum()
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9 * other.abs().max(1.0)
}

#[test]
fn comments_hold_what_the_report_says() {
    let bench = Bench::beside("ci-markdown");
    write(&bench, "example.json", &example());
    let found = shown(&bench, "example.json", "markdown", &[]);
    assert_eq!(text(&found["headings"][0]), "laggard: heat --size 512");
    let verdict = text(&found["paragraphs"][0]);
    assert!(
        verdict.starts_with("40.1 % of rank time is waiting."),
        "{verdict}"
    );
    let tables = list(&found["tables"]);
    assert_eq!(tables.len(), 2, "{found:#}");
    let roots = rows(&tables[0]);
    assert_eq!(roots[0][..3], ["rc1", "30.9 %", "15.2 s"]);
    assert!(roots[0][3].contains("rank 0 computed between MPI_Recv at exchange.c:142"));
    assert!(roots[0][4].starts_with("Give part of what rank 0 computes"));
    let lost = rows(&tables[1]);
    assert_eq!(lost[0][..4], ["1", "36.4 %", "17.9 s", "Late sender"]);
    assert_eq!(lost[0][4], "MPI_Recv at exchange.c:142 exchange_halo");
    assert!(
        lost[0][5].contains("computed 97 % of that time"),
        "{lost:?}"
    );
    let first = shown(&bench, "example.json", "markdown", &["--top", "1"]);
    assert_eq!(rows(&first["tables"][1]).len(), 1, "{first:#}");
    assert_eq!(found["html"], serde_json::json!(["<!-- laggard -->\n"]));
    for rest in ["links", "other"] {
        assert_eq!(list(&found[rest]).len(), 0, "{found:#}");
    }
}

#[test]
fn metrics_are_those_of_the_report() {
    let bench = Bench::beside("ci-openmetrics");
    let report = example();
    write(&bench, "example.json", &report);
    let found = shown(&bench, "example.json", "openmetrics", &[]);
    let wall = &found["laggard_wall_time_seconds"];
    assert_eq!(
        (&wall["type"], &wall["unit"]),
        (&"gauge".into(), &"seconds".into())
    );
    assert_eq!(wall["samples"][0][0]["program"], "heat");
    let findings = list(&report["bottlenecks"]).iter();
    let lost: f64 = findings.map(|found| number(&found["severity_s"])).sum();
    let roots = list(&report["root_causes"]).iter();
    let caused: f64 = roots.map(|root| number(&root["severity_s"])).sum();
    for (name, value) in [
        ("laggard_wall_time_seconds", 12.9),
        ("laggard_ranks", 4.0),
        ("laggard_waiting_seconds", 19.75),
        ("laggard_finding_seconds", lost),
        ("laggard_root_cause_seconds", caused),
    ] {
        assert!(near(sum(&found, name), value), "{name}: {found:#}");
    }
    let first = &found["laggard_finding_seconds"]["samples"];
    let is_first = |sample: &&Value| sample[0]["line"] == "142" && number(&sample[1]) == 17.9;
    assert!(
        list(first).iter().any(|sample| is_first(&sample)),
        "{first:#}"
    );
}

#[test]
fn findings_above_a_limit_fail() {
    let bench = Bench::beside("ci-junit");
    let report = example();
    write(&bench, "example.json", &report);
    let findings = list(&report["bottlenecks"]).len();
    for (limit, failures) in [
        (None, 0),
        (Some("99"), 0),
        (Some("30"), 2),
        (Some("0"), findings + 1),
    ] {
        let options: Vec<&str> = limit
            .iter()
            .flat_map(|limit| ["--fail-above", limit])
            .collect();
        let words = [&["show", "example.json", "--format", "junit"], &options[..]].concat();
        let outcome = laggard(&bench, &words);
        assert_eq!(
            outcome.code,
            Some(if failures > 0 { 3 } else { 0 }),
            "{outcome}"
        );
        let suite = &parsed(&bench, "junit", &outcome.stdout)[0];
        assert_eq!(suite["name"], "heat --size 512");
        assert_eq!(suite["tests"], findings + 1);
        assert_eq!(suite["failures"], failures, "{suite:#}");
        let first = &suite["cases"][1];
        assert_eq!(
            first["name"],
            "Late sender in MPI_Recv at exchange.c:142 exchange_halo"
        );
        assert!(text(&first["output"]).contains("rank 0, MPI_Send at exchange.c:137"));
        if limit == Some("30") {
            let told = "36.4 % of all time is lost, more than 30 %";
            assert_eq!(first["results"], serde_json::json!([["failure", told]]));
        }
    }
    // What is not known does not pass.
    let mut unknown = report;
    let lost =
        serde_json::json!({"id": "lost_calls", "severity": "warning", "count": 1, "detail": ""});
    unknown["anomalies"]
        .as_array_mut()
        .expect("anomalies")
        .push(lost);
    write(&bench, "unknown.json", &unknown);
    let suite = &shown(&bench, "unknown.json", "junit", &[])[0];
    let told = serde_json::json!([["error", "calls were lost"]]);
    assert_eq!(
        (&suite["errors"], &suite["cases"][0]["results"]),
        (&1.into(), &told)
    );
    let limited = laggard(&bench, &["show", "unknown.json", "--fail-above", "99"]);
    assert_eq!(limited.code, Some(1), "{limited}");
}

/// Replaces every text that comes from the program.
fn replace(value: &mut Value, with: &str) {
    const OURS: [&str; 6] = ["schema", "severity", "activity", "filter", "role", "kind"];
    match value {
        Value::Array(all) => all.iter_mut().for_each(|one| replace(one, with)),
        Value::Object(fields) => {
            for (name, one) in fields {
                match one {
                    Value::String(_) if OURS.contains(&&**name) || name.ends_with("_set") => {}
                    one => replace(one, with),
                }
            }
        }
        Value::String(text) => *text = with.to_owned(),
        _ => {}
    }
}

#[test]
fn hostile_names_stay_names() {
    let bench = Bench::beside("ci-hostile");
    let mut report = example();
    replace(&mut report, HOSTILE);
    write(&bench, "hostile.json", &report);
    for format in FORMATS {
        let outcome = laggard(&bench, &["show", "hostile.json", "--format", format]);
        let odd = outcome
            .stdout
            .chars()
            .find(|c| c.is_control() && *c != '\n' || *c == '\u{202e}');
        assert_eq!(odd, None, "{format}: {outcome}");
        let found = parsed(&bench, format, &outcome.expect_success().stdout);
        match format {
            "markdown" => check_comment(&found, &report),
            "openmetrics" => {
                let program = &found["laggard_ranks"]["samples"][0][0]["program"];
                assert!(text(program).contains("\\ \" ' ]]>"), "{program}");
                let finding = &found["laggard_finding_seconds"]["samples"][0][0]["function"];
                assert!(text(finding).starts_with("f<b>|`x`"), "{finding}");
            }
            _ => {
                let findings = list(&report["bottlenecks"]).len();
                assert_eq!(found[0]["tests"], findings + 1);
                let name = text(&found[0]["cases"][1]["name"]);
                assert!(
                    name.contains("f<b>|`x`") && name.contains("]]> -->"),
                    "{name}"
                );
            }
        }
    }
    // What would begin something at the start of a line.
    for start in [
        "    code", "1. item", "- item", "> quote", "---", "===", "# head", "+ item #",
    ] {
        replace(&mut report, start);
        write(&bench, "start.json", &report);
        let found = shown(&bench, "start.json", "markdown", &[]);
        assert_eq!(found["other"], serde_json::json!([]), "{start}: {found:#}");
        let items = list(&found["items"]);
        assert!(!items.is_empty(), "{found:#}");
        assert_eq!(
            text(&found["headings"][0]).ends_with('#'),
            start.ends_with('#')
        );
        assert!(text(&items[0]).starts_with(start.trim_start()), "{found:#}");
    }
    // Texts have an end.
    replace(&mut report, &"<|@".repeat(100_000));
    write(&bench, "long.json", &report);
    for format in FORMATS {
        let outcome = laggard(&bench, &["show", "long.json", "--format", format]);
        let length = outcome.stdout.chars().count();
        // Longer comments are refused by GitHub.
        assert!(format != "markdown" || length < 65_536, "{length}");
        parsed(&bench, format, &outcome.expect_success().stdout);
    }
}

fn check_comment(found: &Value, report: &Value) {
    assert_eq!(list(&found["links"]).len(), 0, "{found:#}");
    assert_eq!(list(&found["other"]).len(), 0, "{found:#}");
    assert_eq!(found["html"], serde_json::json!(["<!-- laggard -->\n"]));
    assert_eq!(list(&found["headings"]).len(), 1, "{found:#}");
    let tables = list(&found["tables"]);
    let lengths = [("root_causes", 5), ("bottlenecks", 6)];
    for (table, (field, columns)) in tables.iter().zip(lengths) {
        assert_eq!(
            list(table).len(),
            list(&report[field]).len() + 1,
            "{table:#}"
        );
        assert!(
            list(table).iter().all(|row| list(row).len() == columns),
            "{table:#}"
        );
    }
    // As a site sees it, which makes links of what it finds in the text.
    let seen = found.to_string();
    for linked in [
        "@everyone",
        "#1",
        "!2",
        "@e.org",
        "://",
        "www.",
        ":smile:",
        "mailto:b",
    ] {
        assert!(!seen.contains(linked), "{linked}: {found:#}");
    }
    let name = text(&tables[1][1][3]);
    assert!(name.starts_with("f<b>|`x`  # h"), "{name}");
    assert!(
        name.contains("[l](javascript:alert(1)) ![i](j) <img src=x onerror=y>"),
        "{name}"
    );
    assert!(
        name.contains("@everyone #1 !2 user@e.org https://evil.example"),
        "{name}"
    );
}

/// What the examples of the book run. Their program waits for more than they allow.
#[test]
fn examples_of_the_book_work() {
    let bench = Bench::sharing("ci-examples");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../analyzer/docs/ci.md");
    let mut command = reader("workflow.py");
    let outcome = process::run(command.arg(page), TIMEOUT, &bench.path("examples"));
    let examples: Value = serde_json::from_str(&outcome.expect_success().stdout).expect("JSON");
    assert_eq!(list(&examples).len(), 2);
    let tools = bench.command.parent().expect("a directory");
    let path = std::env::var("PATH").expect("a path");
    let path = format!("{}:{path}", tools.display());
    let source = programs().join("attacks/wrapped.c");
    let makefile = format!("app:\n\tmpicc $(CFLAGS) {} -o app\n", source.display());
    for (number, steps) in list(&examples).iter().enumerate() {
        let home = bench.path(&number.to_string());
        fs::create_dir(&home).expect("a directory");
        fs::write(home.join("Makefile"), &makefile).expect("a file");
        let is_here = |step: &&str| !step.contains("make -C laggard") && !step.contains("gh pr");
        let steps = list(steps).iter().filter_map(Value::as_str);
        let mut last = None;
        for step in steps.filter(is_here) {
            let mut shell = Command::new("bash");
            shell.args(["-e", "-c", step]).current_dir(&home);
            shell
                .env("PATH", &path)
                .env("GITHUB_STEP_SUMMARY", home.join("summary"));
            for allowed in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
                shell.env(allowed, "1");
            }
            let run = || process::run(&mut shell, TIMEOUT, &bench.path("step"));
            let outcome = bench.record(run);
            // All but the last one succeed.
            assert_eq!(last, None, "{step}");
            last = (outcome.code != Some(0)).then_some(outcome.code);
            assert!(
                outcome.code == Some(0) || step.contains("--fail-above"),
                "{outcome}"
            );
        }
        assert_eq!(last, Some(Some(3)));
        let read = |name: &str, format| {
            let text = fs::read_to_string(home.join(name)).expect("a file");
            parsed(&bench, format, &text)
        };
        let suite = &read("laggard.xml", "junit")[0];
        assert!(suite["failures"].as_u64() >= Some(2), "{suite:#}");
        let comment = read("comment.md", "markdown").to_string();
        assert!(
            comment.contains("Late sender") && comment.contains("wrapped.c"),
            "{comment}"
        );
        if home.join("metrics.txt").exists() {
            let share = sum(&read("metrics.txt", "openmetrics"), "laggard_waiting_share");
            assert!((0.2..0.6).contains(&share), "{share}");
        }
    }
}

/// A comparison names what became slower, as a comment and as cases.
#[test]
fn comparisons_are_read_by_others() {
    let bench = Bench::beside("ci-compare");
    let mut before = example();
    let name = serde_json::json!(HOSTILE);
    before["bottlenecks"][1]["location"]["function"] = name;
    write(&bench, "before.json", &before);
    let unchanged = before.clone();
    let mut after = before;
    after["run"]["wall_time_s"] = 20.0.into();
    after["bottlenecks"][0]["severity_s"] = 30.0.into();
    write(&bench, "after.json", &after);
    let compare = |words: &[&str]| {
        let words = [&["compare", "before.json", "after.json", "--format"], words].concat();
        laggard(&bench, &words)
    };
    let comment = parsed(
        &bench,
        "markdown",
        &compare(&["markdown"]).expect_success().stdout,
    );
    assert_eq!(
        comment["html"],
        serde_json::json!(["<!-- laggard compare -->\n"])
    );
    assert_eq!(
        (&comment["links"], &comment["other"]),
        (&serde_json::json!([]), &serde_json::json!([]))
    );
    let said = text(&comment["paragraphs"][0]);
    assert!(
        said.starts_with("after takes 57.7 % more time than before"),
        "{said}"
    );
    let changes = rows(&comment["tables"][0]);
    assert_eq!(changes[0][..3], ["17.9 s", "30.0 s", "+67.6 %"]);
    assert_eq!(
        changes[0][3],
        "Late sender in MPI_Recv at exchange.c:142 exchange_halo"
    );
    let outcome = compare(&["junit", "--fail-on-regression"]);
    assert_eq!(outcome.code, Some(3), "{outcome}");
    let suite = &parsed(&bench, "junit", &outcome.stdout)[0];
    let failed = list(&suite["cases"]).iter();
    let failed = failed.filter(|case| !list(&case["results"]).is_empty());
    let failed: Vec<String> = failed.map(|case| text(&case["name"])).collect();
    assert_eq!(failed[0], "after: the run");
    assert!(
        failed[1].starts_with("after: Late sender in MPI_Recv"),
        "{failed:?}"
    );
    assert_eq!(failed.len(), 2, "{failed:?}");
    let found = parsed(
        &bench,
        "openmetrics",
        &compare(&["openmetrics"]).expect_success().stdout,
    );
    let value = |family: &str, labels: &[(&str, &str)]| {
        let samples = list(&found[family]["samples"]).iter();
        let mut of = samples.filter(|sample| {
            let fits = |(name, text): &(&str, &str)| sample[0][*name] == *text;
            labels.iter().all(fits)
        });
        let value = of.next().map(|sample| number(&sample[1]));
        assert!(of.next().is_none(), "{family} {labels:?}: {found:#}");
        value
    };
    let what = changes[0][3].as_str();
    let result = compare(&["json"]).expect_success().stdout;
    let result: Value = serde_json::from_str(&result).expect("JSON");
    for (at, revision, lost, slower) in [(0, "before", 17.9, None), (1, "after", 30.0, Some(2.0))] {
        let of = ("revision", revision);
        let total = value(
            "laggard_compare_total_seconds",
            &[of, ("kind", "wall_time")],
        );
        let run = number(&result["totals"][0]["values"][at]["median"]);
        assert_eq!(total, Some(run), "{found:#}");
        let time = value("laggard_compare_time_seconds", &[of, ("what", what)]);
        assert_eq!(time, Some(lost), "{found:#}");
        let kind = ("kind", "parallel");
        assert!(
            value("laggard_compare_efficiency", &[of, kind]).is_some(),
            "{found:#}"
        );
        assert_eq!(
            value("laggard_compare_regressions", &[of]),
            slower,
            "{found:#}"
        );
    }
    let name = list(&found["laggard_compare_time_seconds"]["samples"]).iter();
    assert!(
        name.map(|sample| text(&sample[0]["what"]))
            .any(|what| what.contains("]]> -->"))
    );
    // Of what is not known, it is not said that nothing became slower.
    let mut broken = unchanged.clone();
    broken["anomalies"] =
        serde_json::json!([{"id": "lost_calls", "severity": "warning", "count": 1, "detail": ""}]);
    write(&bench, "after.json", &broken);
    let unknown = parsed(
        &bench,
        "openmetrics",
        &compare(&["openmetrics"]).expect_success().stdout,
    );
    assert!(
        unknown["laggard_compare_regressions"].is_null(),
        "{unknown:#}"
    );
    write(&bench, "after.json", &after);
    // A percentage that nothing exceeds.
    let passed = compare(&["junit", "--fail-on-regression=100"]).expect_success();
    assert_eq!(parsed(&bench, "junit", &passed.stdout)[0]["failures"], 0);
}
