//! `laggard serve`, as a browser sees it. Pictures stay below `target/tmp/serve`.

mod curves;
mod keys;
mod links;
mod programs;

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use laggard_tests::browser::Browser;
use laggard_tests::served::{PATIENCE, Served, client, reply, start};
use laggard_tests::tour::{WIDTH, keep, key, number, settle};
use serde_json::{Value, json};

#[test]
fn a_browser_looks_around() {
    let mut served = Served::new("serve-page");
    let mut browser = Browser::start(&served.bench.dir);
    browser.visit(&served.address);
    settle(&mut browser);
    // The map has the waiting of the report.
    let locations = served.report["locations"]
        .as_array()
        .expect("locations")
        .iter();
    let waiting: f64 = locations
        .map(|one| one["wait_s"].as_f64().expect("s"))
        .sum();
    let heat = "document.getElementById('heat')";
    let shown = number(&mut browser, &format!("{heat}.dataset.total"));
    assert!((shown - waiting).abs() < 1e-6, "{shown} {waiting}");
    let findings = number(
        &mut browser,
        "document.querySelectorAll('#findings td').length / 7",
    );
    let reported = served.report["bottlenecks"].as_array().expect("findings");
    assert_eq!(findings, reported.len().min(50) as f64);
    for scheme in ["light", "dark"] {
        browser.show_on("screen", scheme);
        keep(&format!("run-{scheme}.png"), &browser.picture(WIDTH));
    }
    // The selection of all has the report's share of waiting.
    let share = "[...document.querySelectorAll('#times tr')].at(-1).cells[2].textContent";
    let share = browser.value(share);
    let share: f64 = share
        .as_str()
        .expect("a text")
        .trim_end_matches(" %")
        .parse()
        .expect("a number");
    let wall: f64 = served.report["locations"]
        .as_array()
        .expect("locations")
        .iter()
        .map(|one| one["wall_s"].as_f64().expect("s"))
        .sum();
    assert!(
        (share - 100.0 * waiting / wall).abs() < 1.0,
        "{share} {waiting} {wall}"
    );
    // The first finding leads to its worst call, and a click to the call.
    browser.value("document.querySelector('#findings tr[tabindex]').click()");
    settle(&mut browser);
    let worst = &reported[0]["worst_instance"];
    let long = worst["end_s"].as_f64().expect("s") - worst["start_s"].as_f64().expect("s");
    let shown = number(
        &mut browser,
        "new URLSearchParams(location.hash.slice(1)).get('until')",
    ) - number(
        &mut browser,
        "new URLSearchParams(location.hash.slice(1)).get('from')",
    );
    assert!(shown < 5.0 * long && shown > long, "{shown} {long}");
    let calls = number(
        &mut browser,
        "document.getElementById('line').dataset.calls",
    );
    assert!(calls > 0.0);
    // Messages are there until they are switched off.
    let messages = "document.getElementById('line').dataset.messages";
    assert!(number(&mut browser, messages) > 0.0);
    key(&mut browser, "m");
    settle(&mut browser);
    assert!(has_hash(&mut browser, "messages=0"));
    assert_eq!(number(&mut browser, messages), 0.0);
    key(&mut browser, "m");
    settle(&mut browser);
    let rank = worst["rank"].as_u64().expect("a rank");
    // The call is in the last third of what is shown, in the rank's lane.
    browser.value(&format!(
        "(() => {{
            const line = document.getElementById('line');
            const box = line.getBoundingClientRect();
            const place = {{
                clientX: box.left + 76 + (box.width - 76) * 0.7,
                clientY: box.top + {rank} * 26 + 8,
                pointerId: 1, bubbles: true,
            }};
            line.setPointerCapture = () => {{}};
            line.dispatchEvent(new PointerEvent('pointerdown', place));
            line.dispatchEvent(new PointerEvent('pointerup', place));
        }})()"
    ));
    settle(&mut browser);
    let call = browser.value("document.querySelector('#call h2')?.textContent ?? ''");
    assert_eq!(call, reported[0]["operation"]);
    let steps = number(
        &mut browser,
        "document.getElementById('call').dataset.steps",
    );
    assert!(steps >= 1.0, "it waits for rank 0");
    let roots = number(
        &mut browser,
        "document.getElementById('call').dataset.roots",
    );
    assert!(roots >= 1.0, "root causes of such waits");
    keep("call.png", &browser.picture(WIDTH));
    // The address leads there again.
    let link = browser.value("location.href");
    let text = "document.getElementById('call').textContent";
    let before = browser.value(text);
    browser.visit("about:blank");
    browser.visit(link.as_str().expect("an address"));
    settle(&mut browser);
    assert_eq!(browser.value(text), before);
    // Keys: the whole run again, then half of it.
    browser.value(
        "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '0', bubbles: true}))",
    );
    settle(&mut browser);
    assert!(
        !browser
            .value("location.hash")
            .as_str()
            .expect("text")
            .contains("from")
    );
    let sums = browser.value("document.getElementById('profile').textContent");
    assert!(sums.as_str().expect("text").contains("MPI_Ssend"));
    browser.value(
        "document.querySelector('#findings tr[tabindex]').dispatchEvent(\
            new KeyboardEvent('keydown', {key: '+', bubbles: true}))",
    );
    settle(&mut browser);
    assert!(
        browser
            .value("location.hash")
            .as_str()
            .expect("text")
            .contains("from")
    );
    // Only this server is asked.
    let own = format!("http://{}/", served.authority());
    let requests = browser.requests();
    let foreign = requests.iter().filter(|url| {
        !url.starts_with(&own) && !url.starts_with("data:") && !url.starts_with("ws://127.0.0.1")
    });
    assert_eq!(foreign.count(), 0, "{requests:?}");
    served.end();
    let begun = Instant::now();
    while browser.value("document.getElementById('problem').textContent") == "" {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What a button saves, as a text.
fn saved(browser: &mut Browser, name: &str) -> String {
    browser.value(&format!(
        "(() => {{
            window.kept = null;
            URL.createObjectURL ??= null;
            window.make ??= URL.createObjectURL;
            URL.createObjectURL = (blob) => {{
                blob.text().then((text) => {{ window.kept = text; }});
                return window.make.call(URL, blob);
            }};
            HTMLAnchorElement.prototype.click = () => {{}};
            document.querySelector('[data-saves=\"{name}\"]').click();
        }})()"
    ));
    let begun = Instant::now();
    loop {
        if let Some(text) = browser.value("window.kept").as_str() {
            return text.to_owned();
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "{name}: {:?}",
            browser.complaints()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn profile_and_matrix_have_the_numbers_of_the_report_and_are_saved() {
    let mut served = Served::new("serve-profile");
    let mut browser = Browser::start(&served.bench.dir);
    browser.visit(&format!(
        "{}#profile=waiting&matrix=waiting",
        served.address
    ));
    settle(&mut browser);
    let nodes = served.report["call_tree"]["nodes"]
        .as_array()
        .expect("nodes");
    let cells = served.report["rank_matrix"]["cells"]
        .as_array()
        .expect("cells");
    let close = |found: f64, expected: f64| {
        assert!(
            (found - expected).abs() <= 1e-9 * expected.abs(),
            "{found} {expected}"
        );
    };
    let whole = number(
        &mut browser,
        "document.getElementById('tree').dataset.whole",
    );
    close(
        whole,
        nodes[0]["waiting_s"]["inclusive"].as_f64().expect("s"),
    );
    let sum = |key: &str| {
        cells
            .iter()
            .map(|cell| cell[key].as_f64().expect("a number"))
            .sum()
    };
    let matrix = "document.getElementById('matrix').dataset.whole";
    close(number(&mut browser, matrix), sum("waiting_s"));
    browser.value(
        "(() => {
            const what = document.getElementById('what');
            what.value = 'bytes';
            what.dispatchEvent(new Event('change'));
        })()",
    );
    settle(&mut browser);
    close(number(&mut browser, matrix), sum("bytes"));
    // The hot path leads to a call that waits; its ranks add up.
    browser.value("document.getElementById('hot').click()");
    settle(&mut browser);
    let chosen = browser.value("new URLSearchParams(location.hash.slice(1)).get('node')");
    let tree = reply(
        &mut client(&served.address),
        json!({"ask": "tree", "metric": "waiting", "place": chosen}),
    );
    let node = &nodes[tree["answer"]["node"].as_u64().expect("a place") as usize];
    assert!(
        node["waiting_s"]["inclusive"].as_f64() > Some(0.0),
        "{node}"
    );
    let name = browser.value("document.querySelector('#tree .chosen td').textContent");
    let name = name.as_str().expect("a text").to_owned();
    assert!(
        name.contains(node["name"].as_str().expect("a name")),
        "{name}"
    );
    let ranks = number(
        &mut browser,
        "document.querySelectorAll('#system tr').length - 1",
    );
    // Their host, and four of them.
    assert_eq!(ranks, 5.0);
    metrics_are_a_tree(&mut browser, &served.report);
    // Searching marks what is found, and opens the way to it.
    browser.value(
        "(() => {
            const find = document.getElementById('find');
            find.value = 'mpi_ssend';
            find.dispatchEvent(new Event('input'));
        })()",
    );
    settle(&mut browser);
    assert!(
        number(
            &mut browser,
            "document.querySelectorAll('#tree .found').length"
        ) >= 1.0
    );
    for scheme in ["light", "dark"] {
        browser.show_on("screen", scheme);
        keep(&format!("profile-{scheme}.png"), &browser.picture(WIDTH));
    }
    // Tables with all digits, pictures as a file of their own.
    let table = saved(&mut browser, "findings.csv");
    let first = served.report["bottlenecks"][0]["severity_s"]
        .as_f64()
        .expect("s");
    let head = table.lines().next().expect("a head");
    assert!(head.split(',').any(|name| name == "severity_s"), "{head}");
    assert!(table.contains(&format!(",{first},")), "{table} {first}");
    let tree = saved(&mut browser, "tree.csv");
    assert_eq!(tree.lines().count(), 1 + nodes.len());
    let profile = saved(&mut browser, "profile.csv");
    assert!(profile.contains("MPI_Ssend"), "{profile}");
    for table in ["profile", "findings", "tree", "matrix"] {
        let file = saved(&mut browser, &format!("{table}.parquet"));
        assert!(
            file.starts_with("PAR1") && file.ends_with("PAR1"),
            "{table}"
        );
    }
    let svg = saved(&mut browser, "matrix.svg");
    assert!(svg.starts_with("<svg") && svg.contains("<rect"), "{svg}");
    keep("matrix.svg", svg.as_bytes());
    for picture in ["heat.svg", "line.svg"] {
        let svg = saved(&mut browser, picture);
        assert!(svg.starts_with("<svg") && svg.contains("<rect"), "{svg}");
        assert!(svg.contains("<text") && !svg.contains("NaN"), "{svg}");
        keep(picture, svg.as_bytes());
    }
    for picture in ["matrix.png", "heat.png", "line.png"] {
        assert!(saved(&mut browser, picture).contains("PNG"), "{picture}");
    }
    assert_eq!(browser.complaints(), [""; 0]);
    served.end();
}

/// What is open has what is left without its parts, and each part is shown by place and rank.
fn metrics_are_a_tree(browser: &mut Browser, report: &Value) {
    let click = |browser: &mut Browser, table: &str, words: &str| {
        let rows = format!("[...document.querySelectorAll('#{table} tr')]");
        let found = format!("{rows}.find((row) => row.cells[0]?.textContent.includes('{words}'))");
        browser.value(&format!("{found}.click()"));
        settle(browser);
    };
    let parts = report["call_tree"]["metrics"].as_array().expect("metrics");
    let whole = |id: &str| {
        let part = parts.iter().find(|part| part["id"] == id);
        let part = part.unwrap_or_else(|| panic!("no {id}"));
        part["nodes"][0]["time_s"]["inclusive"].as_f64()
    };
    for (words, id) in [("In messages", "two_sided"), ("Computation", "computation")] {
        click(browser, "metrics", words);
        let shown = browser.value("document.getElementById('tree').dataset.metric");
        assert_eq!(shown, id);
        let shown = number(browser, "document.getElementById('tree').dataset.whole");
        assert_eq!(Some(shown), whole(id));
    }
    // A group was opened by the first click; when it is looked at, another one closes it.
    let rows = "document.querySelectorAll('#metrics tr').length";
    click(browser, "metrics", "In messages");
    let opened = number(browser, rows);
    click(browser, "metrics", "In messages");
    let closed = number(browser, rows);
    assert!(opened > closed, "{opened} {closed}");
    click(browser, "metrics", "In messages");
    assert_eq!(number(browser, rows), opened);
    // A host without its ranks.
    let ranks = "document.querySelectorAll('#system tr').length - 2";
    for expected in [0.0, 4.0] {
        click(
            browser,
            "system",
            report["run"]["hosts"][0].as_str().expect("a host"),
        );
        assert_eq!(number(browser, ranks), expected);
    }
    // Findings and root causes lead to their metrics.
    browser.value("document.querySelector('#findings tr[tabindex]').click()");
    settle(browser);
    let shown = browser.value("document.getElementById('tree').dataset.metric");
    assert_eq!(shown, report["bottlenecks"][0]["pattern"]);
    browser.value("document.querySelector('#roots tr[tabindex]').click()");
    settle(browser);
    let shown = browser.value("document.getElementById('tree').dataset.metric");
    assert_eq!(shown, report["root_causes"][0]["id"]);
    // It is looked at when it cost most.
    let worst = &report["root_causes"][0]["worst_wait"];
    let [start, end] = ["start_s", "end_s"].map(|name| worst[name].as_f64().expect("s"));
    let [from, until] = ["from", "until"].map(|name| {
        let text = format!("Number(new URLSearchParams(location.hash.slice(1)).get('{name}'))");
        number(browser, &text)
    });
    let shown = format!("{from} to {until}: {worst}");
    assert!(from <= start && end <= until, "{shown}");
    assert!(until - from <= 5.0 * (end - start).max(1e-6), "{shown}");
    keep("metrics.png", &browser.picture(WIDTH));
    let metrics = saved(browser, "metrics.csv");
    assert!(
        metrics.contains("two_sided") && metrics.contains("io"),
        "{metrics}"
    );
    key(browser, "0");
    settle(browser);
}

/// How the run ended, and what is wrong with its trace, in the words of the text report.
#[test]
fn what_is_wrong_with_a_trace_is_said() {
    let served = Served::by("serve-odd", |bench| {
        let report = fs::read(bench.path("trace").join("report.json")).expect("a report");
        let mut report: Value = serde_json::from_slice(&report).expect("JSON");
        let row = |id: &str, severity: &str, detail: &str| json!({"id": id, "severity": severity, "count": 2, "detail": detail, "origin": "rank-3.lgt"});
        let mut rows = vec![
            row("cut_off_in", "warning", "rank 1 was in MPI_Recv"),
            row("damaged_block", "error", "17 records are lost"),
        ];
        rows.extend((0..40).map(|at| row("odd", "info", &format!("{at}{}", "x".repeat(5000)))));
        report["anomalies"] = rows.into();
        let odd = bench.path("odd.json");
        fs::write(&odd, report.to_string()).expect("a file");
        start(bench, &["-q", "--report", odd.to_str().expect("a name")])
    });
    let mut browser = Browser::start(&served.bench.dir);
    browser.visit(&served.address);
    settle(&mut browser);
    let ended = browser.value("document.getElementById('ended').textContent");
    assert_eq!(ended, "It did not end by itself: rank 1 was in MPI_Recv.");
    let rows = browser.value(
        "[...document.querySelectorAll('#anomalies tr')].map((row) => row.textContent.slice(0, 80))",
    );
    assert_eq!(rows.as_array().map(Vec::len), Some(21), "{rows}");
    assert_eq!(
        rows[1],
        "errordamaged block (2 times): 17 records are lost [rank-3.lgt]"
    );
    let caption = browser.value("document.querySelector('#anomalies caption').textContent");
    assert_eq!(
        caption,
        "20 of 42 anomalies, the worst. report.json has all."
    );
    keep("odd.png", &browser.picture(WIDTH));
}

/// A list that is cut says how much there is, and where the rest is.
#[test]
fn lists_that_are_cut_say_so() {
    let mut served = Served::by("serve-cut", |bench| {
        let report = fs::read(bench.path("trace").join("report.json")).expect("a report");
        let mut report: Value = serde_json::from_slice(&report).expect("JSON");
        for list in ["bottlenecks", "root_causes"] {
            let rows = report[list].as_array_mut().expect("a list");
            let first = rows[0].clone();
            rows.resize(73, first);
        }
        // Of what patterns do not explain no call is the worst.
        let unexplained = &mut report["bottlenecks"][1];
        unexplained["pattern"] = "two_sided".into();
        unexplained["worst_instance"] = Value::Null;
        unexplained["causes"] = json!([]);
        let many = bench.path("many.json");
        fs::write(&many, report.to_string()).expect("a file");
        start(bench, &["-q", "--report", many.to_str().expect("a name")])
    });
    let mut browser = Browser::start(&served.bench.dir);
    browser.visit(&served.address);
    settle(&mut browser);
    for (list, words) in [
        (
            "#findings caption",
            "50 of 73 findings. laggard show --top 73 and report.json have all.",
        ),
        (
            "#roots caption",
            "50 of 73 root causes. report.json has all.",
        ),
    ] {
        let text = format!("document.querySelector('{list}')?.textContent ?? ''");
        assert_eq!(browser.value(&text), words);
    }
    // Those that can be mended have one: how many these are depends on the run.
    let mends = browser.value("document.querySelector('#mends p')?.textContent ?? ''");
    let mends = mends.as_str().expect("a text");
    let words = "root causes have a slider. laggard what-if --without-cause has the others.";
    assert!(
        mends.starts_with("10 of ") && mends.ends_with(words),
        "{mends}"
    );
    // A list that has all says nothing.
    let all = number(
        &mut browser,
        "document.querySelectorAll('#metrics caption').length",
    );
    assert_eq!(all, 0.0);
    let captions = "[...document.querySelectorAll('caption')].map((one) => one.textContent)";
    let odd = format!("{captions}.filter((text) => !/^[0-9,.\\s]+ of [0-9]/.test(text)).join('|')");
    assert_eq!(browser.value(&odd), "");
    keep("cut.png", &browser.picture(WIDTH));
    // It leads to its place in the profile; the time stays.
    browser.value("document.querySelectorAll('#findings tr[tabindex]')[1].click()");
    settle(&mut browser);
    for words in ["profile=two_sided", "node=", "matrix=waiting"] {
        assert!(has_hash(&mut browser, words), "{words}");
    }
    assert!(!has_hash(&mut browser, "from="));
    // What is empty cannot be saved.
    let profile = "document.querySelector('[data-saves=\"profile.parquet\"]').disabled";
    assert_eq!(browser.value(profile), false);
    browser.value(
        "(() => {
            const functions = document.getElementById('functions');
            functions.value = 'nobody calls this';
            functions.dispatchEvent(new Event('input'));
        })()",
    );
    settle(&mut browser);
    assert_eq!(browser.value(profile), true);
    served.end();
}

/// Of many ranks successive ones are told together: a cell says so, and which amounts are of single ranks.
#[test]
fn what_ranks_share_is_said() {
    let mut served = Served::by("serve-shared", |bench| {
        let report = fs::read(bench.path("trace").join("report.json")).expect("a report");
        let mut report: Value = serde_json::from_slice(&report).expect("JSON");
        let cell = json!({"from": 0, "to": 0, "messages": 5, "bytes": 40, "waiting_s": 0.5});
        report["rank_matrix"] = json!({"ranks_per_cell": 2, "cells": [cell]});
        report["call_tree"]["ranks_per_class"] = json!(2);
        let classes = &mut report["call_tree"]["nodes"][0]["time_s"]["ranks"]["classes"];
        classes.as_array_mut().expect("classes").truncate(2);
        let shared = bench.path("shared.json");
        fs::write(&shared, report.to_string()).expect("a file");
        start(bench, &["-q", "--report", shared.to_str().expect("a name")])
    });
    let mut browser = Browser::start(&served.bench.dir);
    browser.visit(&served.address);
    settle(&mut browser);
    let spread = &served.report["call_tree"]["nodes"][0]["time_s"]["ranks"];
    for (extreme, key) in [("least", "min"), ("most", "max")] {
        let shown = format!("document.getElementById('spread').dataset.{extreme}");
        assert_eq!(Some(number(&mut browser, &shown)), spread[key].as_f64());
    }
    let title = browser.value("document.querySelector('#spread title').textContent");
    let title = title.as_str().expect("a text");
    assert!(title.contains("means of 2 successive ranks"), "{title}");
    let mut note = |script: &str| {
        browser.value(&format!("(() => {{ {script} }})()"));
        settle(&mut browser);
        let cell = "document.querySelector('#matrix .sends')";
        browser.value(&format!("{cell}.dispatchEvent(new MouseEvent('click'))"));
        settle(&mut browser);
        let note = browser.value("document.getElementById('matrix-note').textContent");
        note.as_str().expect("a text").to_owned()
    };
    let pairs = "Pairs of ranks 0–1 and 0–1 share a cell of the report. They are told apart of the selection.";
    assert_eq!(note(""), pairs);
    let by = "const by = document.getElementById('by'); by.value = 'hosts'; by.dispatchEvent(new Event('change'));";
    assert_eq!(
        note(by),
        "Cells of hosts have no parts: choose them by ranks."
    );
    assert!(has_hash(&mut browser, "ranks=0-1"));
    served.end();
}

/// Waits until an expression is a number that is not 0, and returns it.
#[track_caller]
fn awaited(browser: &mut Browser, expression: &str) -> f64 {
    let begun = Instant::now();
    loop {
        let value = number(browser, &format!("{expression} || 0"));
        if value != 0.0 {
            return value;
        }
        assert!(begun.elapsed() < PATIENCE, "{expression}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn has_hash(browser: &mut Browser, words: &str) -> bool {
    let hash = browser.value("location.hash");
    hash.as_str().expect("a text").contains(words)
}

#[test]
fn sliders_the_critical_path_and_a_selection() {
    let served = Served::new("serve-mend");
    let mut browser = Browser::start(&served.bench.dir);
    browser.visit(&served.address);
    settle(&mut browser);
    let close = |found: f64, expected: f64| {
        assert!((found - expected).abs() < 1e-8, "{found} {expected}");
    };
    // The path has the report's length, on the ranks together.
    let path = "document.getElementById('line').dataset.path";
    let length = served.report["critical_path"]["length_s"].as_f64();
    let shown = number(&mut browser, path);
    close(shown, length.expect("s"));
    key(&mut browser, "c");
    settle(&mut browser);
    assert!(has_hash(&mut browser, "path=0"));
    close(number(&mut browser, path), 0.0);
    key(&mut browser, "c");
    settle(&mut browser);
    close(number(&mut browser, path), shown);
    // Calls in a selection of all of the run are those of the report.
    let selection = reply(&mut client(&served.address), json!({"ask": "selection"}));
    let rows = selection["answer"]["profile"].as_array().expect("rows");
    let nodes = served.report["call_tree"]["nodes"]
        .as_array()
        .expect("nodes");
    let mut names: Vec<&Value> = rows.iter().map(|row| &row["call"]).collect();
    names.sort_by_key(|name| name.to_string());
    names.dedup();
    assert!(names.len() > 8, "{names:?}");
    for name in names {
        for key in ["calls", "time_s", "waiting_s", "bytes"] {
            let of = rows.iter().filter(|row| row["call"] == *name);
            let found: f64 = of.map(|row| row[key].as_f64().expect("a number")).sum();
            let of = nodes
                .iter()
                .filter(|node| node["kind"] == "call" && node["name"] == *name);
            let told: f64 = of
                .map(|node| node[key]["exclusive"].as_f64().expect("a number"))
                .sum();
            assert!((found - told).abs() < 1e-6, "{name} {key}: {found} {told}");
        }
    }
    // A slider by keyboard says what `what-if` says.
    let gain = "document.getElementById('gain').dataset.gain";
    let slider = "document.querySelector('[data-mends=\"1\"]')";
    browser.value(&format!("{slider}.focus()"));
    for _ in 0..2 {
        browser.press("ArrowRight");
    }
    settle(&mut browser);
    let by_key = awaited(&mut browser, gain);
    assert!(has_hash(&mut browser, "mend=1_10"));
    let predicted = |change: &str| -> f64 {
        let mut command = Command::new(&served.bench.command);
        command.arg("what-if").arg(served.bench.path("trace"));
        let out = command
            .args(["--without-cause", change, "--format", "json"])
            .output();
        let json: Value = serde_json::from_slice(&out.expect("a command").stdout).expect("JSON");
        json["scenarios"][0]["gain_s"].as_f64().expect("s")
    };
    close(by_key, predicted("1=0.1"));
    browser.press("End");
    settle(&mut browser);
    assert!(has_hash(&mut browser, "mend=1_100"));
    let all = awaited(&mut browser, gain);
    close(all, predicted("1"));
    assert!(all > by_key);
    // The address leads there again.
    let link = browser.value("location.href");
    let text = browser.value("document.getElementById('gain').textContent");
    browser.visit("about:blank");
    browser.visit(link.as_str().expect("an address"));
    settle(&mut browser);
    awaited(&mut browser, gain);
    assert_eq!(
        browser.value("document.getElementById('gain').textContent"),
        text
    );
    // Some calls alone.
    browser.value(
        "(() => {
            const functions = document.getElementById('functions');
            functions.value = 'waitall';
            functions.dispatchEvent(new Event('input'));
        })()",
    );
    settle(&mut browser);
    assert!(has_hash(&mut browser, "functions=waitall"));
    let names = "[...document.querySelectorAll('#profile tr td:first-child')].map((one) => one.textContent)";
    let names = browser.value(names);
    let names = names.as_array().expect("names");
    assert!(
        !names.is_empty() && names.iter().all(|name| name == "MPI_Waitall"),
        "{names:?}"
    );
    for scheme in ["light", "dark"] {
        browser.show_on("screen", scheme);
        keep(&format!("mend-{scheme}.png"), &browser.picture(WIDTH));
    }
    browser.value("document.getElementById('unmend').click()");
    settle(&mut browser);
    assert!(!has_hash(&mut browser, "mend"));
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn ranks_stand_in_their_grid() {
    let start = |bench: &_| start(bench, &["-q", "--agents", "2"]);
    let served = Served::of("serve-grid", "attacks/grid.c", start);
    let dump = served.bench.dump(&served.bench.path("trace"));
    for place in [
        "grid=2x2x1 at=0,0,0",
        "grid=2x2x1 at=1,0,0",
        "grid=2x2x1 at=1,1,0",
        "grid=2 at=1",
        "grid=3 at=2",
    ] {
        assert!(dump.contains(place), "{place} in\n{dump}");
    }
    let mut browser = Browser::start(&served.bench.dir);
    browser.visit(&served.address);
    settle(&mut browser);
    let topology = "document.getElementById('topology')";
    let names = browser.value("document.getElementById('communicator').textContent");
    let names = names.as_str().expect("names").to_owned();
    assert!(
        names.contains("blocks 2° × 2 × 1") && names.contains("3°"),
        "{names}"
    );
    assert_eq!(
        number(&mut browser, &format!("{topology}.dataset.places")),
        4.0
    );
    let waiting = served.report["locations"]
        .as_array()
        .expect("locations")
        .iter();
    let waiting: f64 = waiting.map(|one| one["wait_s"].as_f64().expect("s")).sum();
    let shown = number(&mut browser, &format!("{topology}.dataset.total"));
    assert!((shown - waiting).abs() < 1e-8, "{shown} {waiting}");
    for scheme in ["light", "dark"] {
        browser.show_on("screen", scheme);
        keep(&format!("grid-{scheme}.png"), &browser.picture(WIDTH));
    }
    // One kind of waiting, and what ranks send: no messages at all.
    let mut placed = |metric: &str, words: &str| {
        browser.value(&format!(
            "(() => {{
                const placed = document.getElementById('placed');
                placed.value = '{metric}';
                placed.dispatchEvent(new Event('change'));
            }})()"
        ));
        settle(&mut browser);
        assert!(has_hash(&mut browser, &format!("placed={metric}")));
        let note = browser.value("document.getElementById('topology-note').textContent");
        assert!(note.as_str().expect("a text").contains(words), "{note}");
        number(&mut browser, &format!("{topology}.dataset.total"))
    };
    let at_allreduce = placed("wait_at_nxn", "Wait at N x N");
    assert!(at_allreduce > 0.0 && at_allreduce < shown, "{at_allreduce}");
    assert_eq!(placed("messages", "0 messages"), 0.0);
    assert_eq!(placed("bytes", "0 B"), 0.0);
    browser.value("document.getElementById('placed').value = ''");
    browser.value("document.getElementById('placed').dispatchEvent(new Event('change'))");
    settle(&mut browser);
    // By keyboard to the next rank: each plane is a row of one place.
    browser.value(&format!("{topology}.focus()"));
    browser.press("ArrowDown");
    browser.press("Enter");
    settle(&mut browser);
    assert!(has_hash(&mut browser, "ranks=1"));
    // The grid of three ranks; the address leads there.
    browser.value(
        "(() => {
            const select = document.getElementById('communicator');
            select.value = [...select.options].find((one) => one.textContent.includes('3°')).value;
            select.dispatchEvent(new Event('change'));
        })()",
    );
    settle(&mut browser);
    assert!(has_hash(&mut browser, "topology="));
    assert_eq!(
        number(&mut browser, &format!("{topology}.dataset.places")),
        3.0
    );
    let link = browser.value("location.href");
    browser.visit("about:blank");
    browser.visit(link.as_str().expect("an address"));
    settle(&mut browser);
    assert_eq!(
        number(&mut browser, &format!("{topology}.dataset.places")),
        3.0
    );
    let svg = saved(&mut browser, "topology.svg");
    assert!(svg.starts_with("<svg") && svg.contains("<rect"), "{svg}");
}
