//! Pages of reports in a browser. Pictures of them stay below `target/tmp/html`.

mod hostile;
mod samples;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use laggard_generator::{Length, Program, Settings, generate};
use laggard_tests::browser::Browser;
use laggard_tests::process::{self, Outcome};
use laggard_tests::product::{Bench, PROCESSOR_TIME, TIMEOUT};
use serde_json::Value;

/// Largest page, bytes.
const LARGEST: u64 = 2_000_000;
/// Width in pixels, and that of a telephone.
const WIDTH: u32 = 1200;
const NARROW: u32 = 420;

/// The outcome of `laggard show` for a report.
fn show(bench: &Bench, report: &Path, page: &Path) -> Outcome {
    let mut command = Command::new(&bench.command);
    command.arg("show").arg(report).arg("--html").arg(page);
    command.current_dir(&bench.dir);
    process::run(&mut command, TIMEOUT, &bench.path("show"))
}

/// The page of a report, in the test's directory.
fn page(bench: &Bench, report: &Path) -> PathBuf {
    let page = bench.path("report.html");
    let outcome = show(bench, report, &page).expect_orderly().expect_success();
    assert!(outcome.stdout.contains("report.html"), "{outcome}");
    page
}

/// Keeps a picture for people.
fn keep(name: &str, bytes: &[u8]) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("html");
    fs::create_dir_all(&directory).expect("a directory");
    fs::write(directory.join(name), bytes).expect("a picture");
}

/// Opens a page, which must print nothing and load only itself.
fn open(browser: &mut Browser, page: &Path) {
    browser.open(page);
    silent(browser, page);
}

#[track_caller]
fn silent(browser: &Browser, page: &Path) {
    assert_eq!(browser.complaints(), [""; 0]);
    assert_eq!(browser.requests(), [format!("file://{}", page.display())]);
}

fn count(browser: &mut Browser, selector: &str) -> u64 {
    let count = browser.value(&format!("document.querySelectorAll({selector:?}).length"));
    count.as_u64().expect("a number")
}

/// The texts in a column of the visible findings.
fn column(browser: &mut Browser, number: u32) -> Vec<String> {
    let rows = "[...document.querySelectorAll('#findings tbody tr:not([hidden])')]";
    let texts = browser.value(&format!(
        "{rows}.map((row) => row.cells[{number}].textContent)"
    ));
    serde_json::from_value(texts).expect("texts")
}

/// Takes pictures of the whole page in both colour schemes and on paper; texts must have enough
/// contrast in each.
fn look(browser: &mut Browser, name: &str) {
    browser.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
    for scheme in ["light", "dark"] {
        browser.show_on("screen", scheme);
        assert_eq!(browser.value(FAINT), serde_json::json!([]), "{scheme}");
        let picture = browser.picture(WIDTH);
        assert!(picture.starts_with(b"\x89PNG"));
        keep(&format!("{name}-{scheme}.png"), &picture);
    }
    assert_eq!(browser.value(CLIPPED), serde_json::json!([]));
    keep(&format!("{name}-narrow.png"), &browser.picture(NARROW));
    assert_eq!(browser.value(OUTSIDE), serde_json::json!([]));
    browser.value("document.querySelectorAll('details').forEach((one) => { one.open = false; })");
    browser.show_on("print", "dark");
    assert_eq!(browser.value(FAINT), serde_json::json!([]), "print");
    // On paper everything is open.
    let hidden = "[...document.querySelectorAll('details.finding .body')] \
                  .filter((body) => !body.checkVisibility({ contentVisibilityAuto: true }) \
                      || body.offsetHeight === 0).length";
    assert_eq!(browser.value(hidden), 0);
    let background = browser.value("getComputedStyle(document.body).backgroundColor");
    assert_eq!(background, "rgb(255, 255, 255)");
    keep(&format!("{name}-print.png"), &browser.picture(WIDTH));
    browser.show_on("", "light");
    let paper = browser.paper();
    assert!(paper.starts_with(b"%PDF"));
    keep(&format!("{name}.pdf"), &paper);
}

/// Texts that reach beyond their picture.
const CLIPPED: &str = "[...document.querySelectorAll('svg text')].filter((text) => {
    const [own, all] = [text, text.ownerSVGElement].map((one) => one.getBoundingClientRect());
    return own.width > 0 && (own.right > all.right + 1 || own.left < all.left - 1
        || own.bottom > all.bottom + 1 || own.top < all.top - 1);
}).map((text) => text.textContent)";

/// Cells of tables that are not on the screen, as long as nobody scrolls.
const OUTSIDE: &str = "[...document.querySelectorAll('th, td')].filter((cell) => {
    const place = cell.getBoundingClientRect();
    return place.width > 0 && (place.right > innerWidth + 1 || place.left < -1);
}).map((cell) => cell.textContent)";

/// Texts with a contrast below 4.5 to their background (WCAG 2, AA).
const FAINT: &str = r"(() => {
    const numbers = (color) => color.match(/[\d.]+/g).map(Number);
    const light = (color) => numbers(color).slice(0, 3)
        .map((c) => c / 255)
        .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
        .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
    const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const color = getComputedStyle(at).backgroundColor;
            if ((numbers(color)[3] ?? 1) > 0) return color;
        }
        return 'rgb(255, 255, 255)';
    };
    const faint = [];
    const all = document.querySelectorAll('body *:not(script)');
    for (const element of all) {
        const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        if (!own || !element.checkVisibility() || element.closest('title')) continue;
        const isPicture = element.namespaceURI.endsWith('svg');
        let back = behind(isPicture ? element.ownerSVGElement ?? element : element);
        if (element.classList.contains('label')) {
            back = getComputedStyle(element.previousElementSibling).fill;
        }
        const style = getComputedStyle(element);
        const [a, b] = [light(isPicture ? style.fill : style.color), light(back)];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < 4.5) faint.push(element.textContent.slice(0, 40) + ' ' + contrast.toFixed(2));
    }
    return faint;
})()";

#[test]
fn a_real_report_is_a_page_that_sorts_and_filters() {
    let bench = Bench::sharing("html-real");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../collector/include");
    let include = format!("-I{}", include.display());
    let program = bench.compile("pages/heat.c", &[&include], &[]);
    let run = bench.traced(4, &[program.as_os_str()], "trace");
    run.run().expect_orderly().expect_success();
    // The same for any number of agents, and valid according to the schema.
    let text = bench.analyze_all(&bench.path("trace"));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let findings = report["bottlenecks"].as_array().expect("findings");
    let page = page(&bench, &bench.path("report-1.json"));
    let mut browser = Browser::start(&bench.dir);
    open(&mut browser, &page);

    let rows = column(&mut browser, 0);
    assert_eq!(rows.len(), findings.len());
    assert_eq!(
        count(&mut browser, "details.finding"),
        findings.len() as u64
    );
    timelines(&mut browser, findings);
    roots(&mut browser, &report);
    let broken = "[...document.querySelectorAll('#about th')].filter((head) => {
        const words = document.createRange();
        words.selectNodeContents(head);
        return words.getClientRects().length > 1;
    }).map((head) => head.textContent)";
    assert_eq!(browser.value(broken), serde_json::json!([]));
    let source = browser.value("document.querySelector('#finding-1 .here').textContent");
    let line = findings[0]["location"]["line"].to_string();
    let source = source.as_str().expect("a line");
    assert!(
        source.starts_with(&line) && source.contains("MPI_"),
        "{source}"
    );
    // The program was just compiled from it.
    let said = browser.value("document.body.textContent.includes('was changed after')");
    assert_eq!(said, false);

    tables::tree_adds_up(&mut browser, &report);
    let nodes = report["call_tree"]["nodes"].as_array().expect("nodes");
    // Rank 2 is slow after that.
    let input = |node: &&Value| {
        node["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("read_input"))
    };
    let input = nodes.iter().find(input).expect("a function that calls MPI");
    assert_eq!(input["caused_s"]["ranks"]["max_rank"], 2, "{input:#}");
    tables::tree_opens_by_keyboard(&mut browser, &report);
    tables::matrix_is_complete(&mut browser, &report);
    sorts(&mut browser);
    filters(&mut browser, findings);
    look(&mut browser, "real");
    silent(&browser, &page);
    without_script(&mut browser, &page, findings.len());
    let shown = count(&mut browser, "#calls tbody tr:not([hidden])");
    assert_eq!(shown, nodes.len() as u64);
    browser.ask(
        "Emulation.setScriptExecutionDisabled",
        serde_json::json!({"value": false}),
    );
    folds(&bench, &mut browser, report);
}

/// Worst calls show the activities of the waiting and the late rank.
fn timelines(browser: &mut Browser, findings: &[Value]) {
    let ring = findings
        .iter()
        .position(|found| found["pattern"] == "late_sender");
    let ring = ring.expect("rank 3 waits for rank 2");
    let found = &findings[ring];
    let lanes = found["worst_instance"]["timeline"]["lanes"]
        .as_array()
        .expect("lanes");
    let roles: Vec<(&Value, &Value)> = lanes.iter().map(|l| (&l["rank"], &l["role"])).collect();
    assert_eq!(roles.len(), 2, "{lanes:?}");
    assert_eq!(*roles[0].0, found["worst_instance"]["rank"]);
    assert_eq!(*roles[1].0, found["causes"][0]["rank"]);
    assert_eq!(
        (roles[0].1, roles[1].1),
        (&Value::from("waiting"), &Value::from("late"))
    );
    // The late one computed while the other waited, then sent.
    let kinds = |lane: &Value| -> Vec<String> {
        let segments = lane["segments"].as_array().expect("segments").iter();
        segments
            .map(|s| s["kind"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    assert!(
        kinds(&lanes[0]).contains(&"communication".to_owned()),
        "{lanes:?}"
    );
    assert!(
        kinds(&lanes[1]).contains(&"computation".to_owned()),
        "{lanes:?}"
    );
    let at = format!("#finding-{} svg text", ring + 1);
    let texts = browser.value(&format!(
        "[...document.querySelectorAll({at:?})].map((text) => text.textContent).join('|')"
    ));
    let texts = texts.as_str().expect("texts");
    for text in ["rank 3|waits", "rank 2|is late", "MPI_Recv heat.c:"] {
        assert!(texts.contains(text), "{text}: {texts}");
    }
}

/// Findings link to their root causes, and root causes to their findings.
fn roots(browser: &mut Browser, report: &Value) {
    let findings = report["bottlenecks"].as_array().expect("findings");
    let roots = report["root_causes"].as_array().expect("root causes");
    assert_eq!(
        count(browser, "#roots tbody tr"),
        roots.len().min(50) as u64
    );
    let links = |browser: &mut Browser, within: &str, to: &str| -> Vec<String> {
        let all = format!("{within} a[href^='#{to}']");
        let all = browser.value(&format!(
            "[...document.querySelectorAll({all:?})].map((one) => one.getAttribute('href'))"
        ));
        serde_json::from_value(all).expect("links")
    };
    let mut known = 0;
    for (number, found) in (1..).zip(findings) {
        let shares = found["root_causes"].as_array().map_or(&[][..], |all| all);
        let ids = shares
            .iter()
            .map(|share| share["id"].as_str().expect("an id"));
        let expected: Vec<String> = ids.map(|id| format!("#{id}")).collect();
        let there = links(browser, &format!("#finding-{number}"), "rc");
        assert_eq!(there, expected, "{number}");
        for id in there {
            let back = links(browser, &id, "finding-");
            assert!(
                back.contains(&format!("#finding-{number}")),
                "{id}: {back:?}"
            );
            known += 1;
        }
    }
    assert!(known > 0);
    let first = browser.value("document.querySelector('#rc1').textContent");
    let first = first.as_str().expect("a text");
    let hint = roots[0]["hints"][0].as_str().expect("a hint");
    assert!(first.starts_with("rc1") && first.contains(hint), "{first}");
}

/// Root causes that cause little are shown when they are asked for, or linked to.
fn folds(bench: &Bench, browser: &mut Browser, mut report: Value) {
    let roots = report["root_causes"].as_array_mut().expect("root causes");
    let percent = |root: &Value| root["percent"].as_f64().expect("a share");
    roots.retain(|root| percent(root) >= 1.0);
    let notable = roots.len();
    while roots.len() < notable + 9 {
        let mut small = roots[0].clone();
        small["id"] = format!("rc{}", roots.len() + 1).into();
        small["percent"] = 0.2.into();
        roots.push(small);
    }
    let all = roots.len();
    let path = bench.path("many-roots.json");
    fs::write(&path, report.to_string()).expect("a report");
    let page = page(bench, &path);
    open(browser, &page);
    let shown = "#roots tbody tr:not([hidden])";
    assert_eq!(count(browser, shown), notable.max(5) as u64);
    browser.value(&format!(
        "location.hash = 'rc{all}'; dispatchEvent(new Event('hashchange')); 0"
    ));
    assert_eq!(count(browser, shown), all as u64);
}

/// Columns sort by keyboard.
fn sorts(browser: &mut Browser) {
    let numbers = column(browser, 0);
    let head = "document.querySelectorAll('#findings th')[4]";
    browser.value(&format!("{head}.querySelector('button').focus()"));
    let order = |browser: &mut Browser| browser.value(&format!("{head}.getAttribute('aria-sort')"));
    for expected in ["ascending", "descending"] {
        browser.press("Enter");
        assert_eq!(order(browser), expected);
        let patterns = column(browser, 4).into_iter();
        let mut patterns: Vec<String> = patterns.map(|name| name.to_lowercase()).collect();
        if expected == "descending" {
            patterns.reverse();
        }
        assert!(patterns.is_sorted(), "{patterns:?}");
    }
    let sorted = "[...document.querySelectorAll('#findings th[aria-sort]')] \
                  .filter((head) => head.getAttribute('aria-sort') !== 'none').length";
    assert_eq!(browser.value(sorted), 1);
    // Sorted by number, as at first; Tab leads from column to column.
    browser.value("document.querySelector('#findings th button').focus()");
    browser.press("Enter");
    browser.press("Enter");
    assert_eq!(column(browser, 0), numbers);
    browser.press("Tab");
    browser.press(" ");
    let lost =
        browser.value("document.querySelectorAll('#findings th')[1].getAttribute('aria-sort')");
    assert_eq!(lost, "descending");
    assert_eq!(column(browser, 0), numbers);
}

/// Filtering hides rows without the words, and their details.
fn filters(browser: &mut Browser, findings: &[Value]) {
    let is_sum = |found: &&Value| found["operation"] == "MPI_Allreduce";
    let expected = findings.iter().filter(is_sum).count() as u64;
    assert!(expected > 0 && expected < findings.len() as u64);
    let words = "document.querySelector('form.filter').elements.words";
    browser.value(&format!("{words}.focus()"));
    browser.write("allreduce heat.c");
    let shown = column(browser, 5);
    let in_program = |found: &&Value| {
        found["location"]["file"]
            .as_str()
            .is_some_and(|f| f.ends_with("heat.c"))
    };
    let expected = findings.iter().filter(is_sum).filter(in_program).count();
    assert_eq!(shown, vec!["MPI_Allreduce"; expected]);
    assert_eq!(
        count(browser, "details.finding:not([hidden])"),
        expected as u64
    );
    let said = browser.value("document.querySelector('form.filter output').textContent");
    assert_eq!(said, format!("{expected} of {} shown", findings.len()));
    browser.value(&format!("{words}.value = ''"));
    browser.value(
        "(() => { const form = document.querySelector('form.filter'); \
         form.elements.pattern.value = 'late_sender'; \
         form.dispatchEvent(new Event('input')); })()",
    );
    let late = findings
        .iter()
        .filter(|found| found["pattern"] == "late_sender")
        .count();
    assert_eq!(column(browser, 4).len(), late);
    browser.value(
        "(() => { const form = document.querySelector('form.filter'); form.reset(); \
         form.dispatchEvent(new Event('input')); })()",
    );
    assert_eq!(column(browser, 0).len(), findings.len());
    // A link opens its target.
    let last = findings.len();
    browser.value(&format!(
        "document.querySelector('#findings a[href=\"#finding-{last}\"]').click()"
    ));
    let open = format!(
        "new Promise((done) => setTimeout(() => done(document.getElementById('finding-{last}').open), 50))"
    );
    assert_eq!(browser.value(&open), true);
}

/// Without a script everything works except sorting and filtering.
fn without_script(browser: &mut Browser, page: &Path, findings: usize) {
    browser.ask(
        "Emulation.setScriptExecutionDisabled",
        serde_json::json!({"value": true}),
    );
    open(browser, page);
    assert_eq!(column(browser, 0).len(), findings);
    assert_eq!(count(browser, "button:not([hidden])"), 0);
    let filter = browser.value("document.querySelector('form.filter').offsetHeight");
    assert_eq!(filter, 0);
    browser.value("document.querySelector('#finding-1 summary').click()");
    assert_eq!(
        browser.value("document.querySelector('#finding-1').open"),
        false
    );
}

#[test]
fn pictures_are_in_the_page() {
    let bench = Bench::beside("html-pictures");
    let reported = |name: &str, ranks: u32, faults: &[&str]| {
        let trace = bench.path(name);
        let settings = Settings {
            faults: faults.iter().map(|f| f.parse().expect("a fault")).collect(),
            ..Settings::new(Program::Stencil, ranks, Length::Steps(8))
        };
        generate(&settings, &trace).expect("a trace");
        let report = bench.path(&format!("{name}.json"));
        let outcome = bench.analyze(&trace, 1, &report, &["--all", "-q"]);
        outcome.expect_orderly().expect_success();
        report
    };
    let trace = bench.path("report");
    let report = reported("report", 4, &[]);
    reported("slower", 4, &["slow-rank=2:80"]);
    reported("smaller", 2, &[]);
    let mut export = Command::new(&bench.command);
    export
        .arg("export")
        .arg(&trace)
        .args(["--to", "flamegraph", "-o", "flames.svg"]);
    export.current_dir(&bench.dir);
    process::run(&mut export, TIMEOUT, &bench.path("export")).expect_success();
    let script = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'>\
        <script>parent.broken = 1; window.broken = 1; fetch('http://127.0.0.1:9')</script>\
        <image href='http://127.0.0.1:9/x.png' width='9' height='9'/></svg>";
    fs::write(bench.path("script.svg"), script).expect("a picture");
    let page = bench.path("page.html");
    let show = |words: &[&str]| {
        let mut command = Command::new(&bench.command);
        command.arg("show").arg(&report).arg("--html").arg(&page);
        command.args(words).current_dir(&bench.dir);
        process::run(&mut command, TIMEOUT, &bench.path("show")).expect_orderly()
    };
    for (option, file, why) in [
        ("--picture", "report.json", "not a picture (SVG)"),
        ("--picture", ".", "not a regular file"),
        ("--picture", "no.svg", "cannot read"),
        ("--compare", "no.json", "cannot read"),
        ("--scale", "slower.json", "both have 4 ranks"),
    ] {
        let outcome = show(&[option, file]);
        assert_eq!(
            (outcome.code, outcome.stderr.lines().count()),
            (Some(1), 1),
            "{outcome}"
        );
        assert!(outcome.stderr.contains(why) && !page.exists(), "{outcome}");
    }
    let words =
        "--picture flames.svg --picture script.svg --compare slower.json --scale smaller.json";
    let words: Vec<&str> = words.split(' ').collect();
    show(&words).expect_success();
    let mut browser = Browser::start(&bench.dir);
    browser.open(&page);
    let loaded = "Promise.all([...document.images].map((one) => one.decode().then(() => one.naturalWidth > 1)))";
    assert_eq!(
        browser.value(loaded),
        serde_json::json!([true, true, true, true])
    );
    let titles = "[...document.querySelectorAll('#pictures h3')].map((one) => one.textContent)";
    let expected = [
        "Beside other revisions",
        "Beside runs of other sizes",
        "flames",
        "script",
    ];
    assert_eq!(browser.value(titles), serde_json::json!(expected));
    let told = "[...document.querySelectorAll('#pictures pre')].map((one) => one.textContent)";
    let told = browser.value(told);
    for (text, part) in [(&told[0], "slower"), (&told[1], "4 ranks")] {
        let text = text.as_str().expect("a text");
        assert!(text.lines().count() > 10 && text.contains(part), "{text}");
    }
    assert_eq!(browser.value("typeof window.broken"), "undefined");
    assert_eq!(browser.complaints(), [""; 0]);
    let from_outside = |url: &String| !url.starts_with("data:") && !url.starts_with("file://");
    assert!(!browser.requests().iter().any(from_outside));
    look(&mut browser, "pictures");
}

#[test]
fn many_ranks_are_folded() {
    let bench = Bench::beside("html-many");
    let trace = bench.path("trace");
    let settings = Settings {
        faults: vec![
            "slow-rank=1234:80".parse().expect("a fault"),
            "noise=20".parse().expect("a fault"),
        ],
        expectations: false,
        ..Settings::new(Program::Stencil, 4096, Length::Steps(8))
    };
    generate(&settings, &trace).expect("a trace");
    let text = bench.analyze_all(&trace);
    let report: Value = serde_json::from_str(&text).expect("JSON");
    classes_are_all_ranks(&report);
    let page = page(&bench, &bench.path("report-1.json"));
    assert!(fs::metadata(&page).expect("a page").len() < LARGEST / 4);
    let mut browser = Browser::start(&bench.dir);
    open(&mut browser, &page);
    let columns = browser.value("document.querySelectorAll('#ranks svg g').length");
    assert_eq!(columns, 64);
    let rows = browser.value("document.querySelectorAll('#waiting svg .row').length");
    assert_eq!(rows, 64);
    tables::tree_adds_up(&mut browser, &report);
    tables::matrix_is_complete(&mut browser, &report);
    let cells = report["rank_matrix"]["cells"].as_array().expect("cells");
    for (metric, name) in [("bytes", "bytes"), ("waiting", "waiting_s")] {
        let expected = cells.iter().filter(|cell| cell[name].as_f64() > Some(0.0));
        let points = tables::points_of_canvas(&mut browser, metric);
        assert_eq!(points, expected.count() as u64, "{metric}");
    }
    look(&mut browser, "many");
    silent(&browser, &page);
}

/// Numbers of the classes of ranks add up to those of all ranks.
fn classes_are_all_ranks(report: &Value) {
    let ns = |value: &Value| (value.as_f64().expect("a time") * 1e9).round() as i64;
    let list = |value: &Value| value.as_array().expect("a list").clone();
    let classes = list(&report["location_classes"]);
    assert_eq!(classes.len(), 64);
    let sum = |key: &str| -> i64 { classes.iter().map(|class| ns(&class[key])).sum() };
    for key in [
        "computation_s",
        "communication_s",
        "synchronization_s",
        "io_s",
        "wait_s",
    ] {
        assert_eq!(sum(key), ns(&report["location_sums"][key]), "{key}");
    }
    let locations = classes.iter().map(|class| class["locations"].as_u64());
    assert_eq!(locations.sum::<Option<u64>>(), Some(4096));
    // The rank that computes longest is in the class with the largest maximum.
    let slow = |class: &&Value| {
        class["first_rank"].as_u64() <= Some(1234) && Some(1234) <= class["last_rank"].as_u64()
    };
    let slow = classes.iter().find(slow).expect("a class");
    let most = |class: &Value| ns(&class["most_computation_s"]);
    assert_eq!(classes.iter().map(most).max(), Some(most(slow)));
    let findings = list(&report["bottlenecks"]);
    assert!(!findings.is_empty());
    for found in &findings {
        let classes = list(&found["rank_classes"]);
        let sum: i64 = classes.iter().map(|class| ns(&class["severity_s"])).sum();
        assert_eq!(sum, ns(&found["severity_s"]));
        let worst = classes.iter().map(|class| ns(&class["most_s"])).max();
        assert_eq!(worst, Some(ns(&found["ranks"][0]["severity_s"])));
    }
}
