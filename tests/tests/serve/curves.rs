//! Samples as curves.

use std::fs;

use laggard_tests::browser::Browser;
use laggard_tests::product::Bench;
use laggard_tests::served::{Served, client, reply, start};
use laggard_tests::tour::{WIDTH, keep, key, number, settle};
use serde_json::{Value, json};

use super::has_hash;

/// A program of which samples are taken, on two ranks, with an agent for each.
fn sampled() -> Served {
    let bench = Bench::sharing("serve-samples");
    let program = bench.compile("processor/phases.c", &[], &[]);
    let run = bench.traced(2, &[program.as_os_str()], "trace");
    let run = run.env("LAGGARD_SAMPLE_HZ", "1000");
    run.run().expect_orderly().expect_success();
    let path = bench.path("report.json");
    let outcome = bench.analyze(&bench.path("trace"), 1, &path, &["--all", "-q"]);
    outcome.expect_orderly().expect_success();
    let report = fs::read_to_string(&path).expect("a report");
    let name = path.to_str().expect("a name");
    let (server, address) = start(&bench, &["-q", "--agents", "2", "--report", name]);
    Served {
        bench,
        server,
        address,
        report: serde_json::from_str(&report).expect("JSON"),
    }
}

#[test]
fn samples_are_curves() {
    let mut served = sampled();
    let mut browser = Browser::start(&served.bench.dir);
    browser.visit(&served.address);
    settle(&mut browser);
    let answer = reply(
        &mut client(&served.address),
        json!({"ask": "sampled", "width": 50}),
    )["answer"]
        .take();
    let functions = answer["functions"].as_array().expect("functions");
    let samples = |row: &Value| row["samples"].as_f64().expect("a number");
    let total = functions.iter().map(samples).sum::<f64>() + samples(&answer["others"]);
    // Over time, of both ranks together: functions have the shares that the report has.
    browser.value(
        "(() => {
            const curve = document.getElementById('curve');
            curve.value = 'samples';
            curve.dispatchEvent(new Event('change'));
        })()",
    );
    settle(&mut browser);
    assert!(has_hash(&mut browser, "curve=samples"));
    let course = "document.getElementById('course').dataset.total";
    assert_eq!(number(&mut browser, course), total);
    let names =
        "[...document.querySelectorAll('#course-functions span')].map((one) => one.textContent)";
    let names = browser.value(names);
    let names = names.as_array().expect("names");
    let reported = served.report["functions"].as_array().expect("functions");
    let computed: f64 = reported
        .iter()
        .map(|row| row["total_s"].as_f64().expect("s"))
        .sum();
    for function in ["solve", "assemble"] {
        let begin = format!("phases.c {function}: ");
        let shown = names
            .iter()
            .find_map(|name| name.as_str()?.strip_prefix(&begin));
        let shown = shown.unwrap_or_else(|| panic!("{function}: {names:?}"));
        let shown: f64 = shown.trim_end_matches(" %").parse().expect("a number");
        let row = reported
            .iter()
            .find(|row| row["location"]["function"] == function);
        let row = row.expect("a function")["total_s"].as_f64().expect("s");
        let expected = 100.0 * row / computed;
        assert!((shown - expected).abs() < 2.0, "{shown} {expected}");
    }
    // In the time line, of each rank.
    let curves = "document.getElementById('line').dataset.curves";
    assert_eq!(number(&mut browser, curves), 0.0);
    key(&mut browser, "s");
    settle(&mut browser);
    assert!(has_hash(&mut browser, "sampled=1"));
    assert_eq!(number(&mut browser, curves), total);
    // Between calls it says where the rank was.
    let told = browser.value(
        "(() => {
            const line = document.getElementById('line');
            const box = line.getBoundingClientRect();
            for (let at = 100; at < box.width; at += 3) {
                const place = { clientX: box.left + at, clientY: box.top + 8, bubbles: true };
                line.dispatchEvent(new PointerEvent('pointermove', place));
                if (line.title === 'rank 0, most samples in phases.c solve') return true;
            }
            return false;
        })()",
    );
    assert_eq!(told, true);
    let views = "#line, #line-functions, #course, #course-functions";
    for scheme in ["light", "dark"] {
        browser.show_on("screen", scheme);
        keep(
            &format!("samples-{scheme}.png"),
            &browser.picture_of(views, WIDTH),
        );
    }
    // The address leads there.
    let link = browser.value("location.href");
    browser.visit("about:blank");
    browser.visit(link.as_str().expect("an address"));
    settle(&mut browser);
    assert_eq!(number(&mut browser, curves), total);
    assert_eq!(number(&mut browser, course), total);
    assert_eq!(
        browser.value("document.getElementById('sampled').checked"),
        true
    );
    // Single samples are marks.
    for _ in 0..6 {
        key(&mut browser, "+");
        settle(&mut browser);
    }
    let marks = "document.getElementById('line').dataset.samples";
    let seen = number(&mut browser, marks);
    assert!(seen > 0.0 && seen < total / 20.0, "{seen} of {total}");
    assert_eq!(number(&mut browser, curves), 0.0);
    assert_eq!(number(&mut browser, course), seen);
    keep("samples-marks.png", &browser.picture_of(views, WIDTH));
    key(&mut browser, "0");
    key(&mut browser, "s");
    settle(&mut browser);
    assert!(!has_hash(&mut browser, "sampled="));
    assert_eq!(number(&mut browser, curves), 0.0);
    assert_eq!(browser.complaints(), [""; 0]);
    served.end();
}
