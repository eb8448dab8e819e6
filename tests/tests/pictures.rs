//! The pictures of the book, made from a program in which rank 2 is slow. They stay below `target/tmp/pictures`, or in the
//! directory that `LAGGARD_PICTURES` names: `make pictures` has them in the book so.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use laggard_generator::{Length, Program, Settings, generate};
use laggard_tests::browser::Browser;
use laggard_tests::process;
use laggard_tests::product::{Bench, TIMEOUT, reader};
use laggard_tests::served::start;
use laggard_tests::tour::settle;
use serde_json::Value;

/// Largest picture, bytes: pages with them should load at once, and the repository stay small.
const LARGEST: usize = 150_000;
/// Width in pixels, and that of what is small.
const WIDTH: u32 = 1200;
const NARROW: u32 = 700;
/// The book's pictures, from the root of the repository.
const BOOK: &str = "analyzer/docs/pictures";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Names of the pictures that documents link.
fn linked() -> BTreeSet<String> {
    let docs = fs::read_dir(root().join("analyzer/docs")).expect("a directory");
    let pages = docs.map(|entry| entry.expect("an entry").path());
    let pages = pages.filter(|path| path.extension().is_some_and(|found| found == "md"));
    let mut names = BTreeSet::new();
    for page in pages.chain([root().join("README.md")]) {
        let text = fs::read_to_string(page).expect("a page");
        let links = text.split("pictures/").skip(1);
        let names_of = links.filter_map(|link| Some(link.split_once(".png)")?.0.to_owned()));
        names.extend(names_of.filter(|name| !name.contains(char::is_whitespace)));
    }
    names
}

/// Runs a command of laggard in the test's directory.
fn laggard(bench: &Bench, words: &[&str]) {
    let mut command = Command::new(&bench.command);
    command.args(words).current_dir(&bench.dir);
    let outcome = process::run(&mut command, TIMEOUT, &bench.path("laggard"));
    outcome.expect_orderly().expect_success();
}

/// Draws what a program on more and more ranks loses. Here it would be the cores; traces that are made
/// tell of the program.
fn scaled(bench: &Bench) {
    let mut words = vec!["scale".to_owned()];
    for ranks in [4, 8, 16, 32] {
        let trace = bench.path(&format!("wave-{ranks}"));
        let faults = ["slow-rank=2:60", "noise=30"];
        let settings = Settings {
            faults: faults.map(|fault| fault.parse().expect("a fault")).to_vec(),
            ..Settings::new(Program::Wavefront, ranks, Length::Steps(20))
        };
        generate(&settings, &trace).expect("a trace");
        let report = format!("wave-{ranks}.json");
        let outcome = bench.analyze(&trace, 1, &bench.path(&report), &["--all", "-q"]);
        outcome.expect_orderly().expect_success();
        words.push(report);
    }
    words.extend(["--format", "none", "--svg", "scale.svg"].map(str::to_owned));
    laggard(bench, &words.iter().map(String::as_str).collect::<Vec<_>>());
}

/// Everything that the book shows: by name, as PNG.
fn drawn(bench: &Bench) -> BTreeMap<&'static str, Vec<u8>> {
    let include = root().join("collector/include");
    let include = format!("-I{}", include.display());
    let program = bench.compile("pages/heat.c", &[&include, "-DTEST_REPEATS=20"], &[]);
    let run = bench.traced(8, &[program.as_os_str()], "trace");
    run.run().expect_orderly().expect_success();
    let analyze = ["analyze", "trace", "--all", "-q", "-o", "heat.json"];
    laggard(bench, &analyze);
    laggard(bench, &["show", "heat.json", "--html", "page.html"]);
    let export = ["export", "trace", "--to", "flamegraph", "-o"];
    laggard(bench, &[&export[..], &["flames.svg"]].concat());
    scaled(bench);
    let report = fs::read(bench.path("heat.json")).expect("a report");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    let findings = report["bottlenecks"].as_array().expect("findings").iter();
    let late = (1..)
        .zip(findings)
        .find(|(_, found)| found["pattern"] == "late_sender");
    let (late, _) = late.expect("a rank waits for a message");

    let mut browser = Browser::start(&bench.dir);
    let mut pictures = BTreeMap::new();
    browser.open(&bench.path("page.html"));
    // It stays above what is scrolled to.
    browser.value("document.querySelector('nav').style.position = 'static'");
    let moment = format!("#finding-{late} figure.block:has(svg)");
    for (name, parts, width) in [
        ("page", "header.top, nav, #summary, #waiting", WIDTH),
        ("calls", "#calls", WIDTH),
        ("matrix", "#matrix", NARROW),
        ("moment", &moment, WIDTH),
    ] {
        pictures.insert(name, browser.picture_of(parts, width));
    }
    for (name, file) in [("flames", "flames.svg"), ("scale", "scale.svg")] {
        browser.open(&bench.path(file));
        pictures.insert(name, browser.picture_of("svg", WIDTH));
    }
    pictures.insert("timeline", time_line(bench, &mut browser));
    pictures.insert("browse", browsed(bench, &mut browser));
    pictures
}

/// What to do in Perfetto's interface: unfold all, choose the longest wait for a late sender that has
/// an arrow from its root cause, and show its time and that of the next round.
const TIME_LINE: &str = r#"(async () => {
    const isThere = () => window.app?.trace && app.commands.hasCommand("dev.perfetto.ExpandAllGroups");
    while (!isThere()) await new Promise((later) => setTimeout(later, 100));
    await waitForPerfettoIdle();
    const trace = app.trace;
    if (app.sidebar.visible) app.sidebar.toggleVisibility();
    app.commands.runCommand("dev.perfetto.ExpandAllGroups");
    const found = await trace.engine.query(`select wait.id as id, wait.ts as begin, wait.dur as length
        from slice wait join flow on flow.slice_in = wait.id join slice cause on cause.id = flow.slice_out
        where wait.name like 'Late sender: rank 2 %' and cause.name like 'rc%' order by wait.dur desc limit 1`);
    const { id, begin, length } = found.firstRow({ id: 0, begin: 0n, length: 0n });
    trace.selection.selectSqlEvent("slice", id);
    await waitForPerfettoIdle();
    app.commands.runCommand("dev.perfetto.ToggleDrawer");
    trace.timeline.setViewportTime(begin - length / 2n, begin + 3n * length);
    await waitForPerfettoIdle();
    return [...trace.loadingErrors, trace.traceInfo.importErrors].join();
})()"#;

/// The time line in Perfetto's own interface.
fn time_line(bench: &Bench, browser: &mut Browser) -> Vec<u8> {
    laggard(
        bench,
        &["export", "trace", "--to", "perfetto", "-o", "heat.pftrace"],
    );
    let mut command = reader("perfetto_interface.py");
    command.arg(bench.path("heat.pftrace"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = command.spawn().expect("a server");
    let mut port = String::new();
    let output = server.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut port).expect("a port");
    browser.visit(&format!("http://127.0.0.1:{}/", port.trim()));
    let errors = browser.value(TIME_LINE);
    assert_eq!(errors, "0", "what the interface says of the trace");
    let picture = browser.picture(WIDTH);
    // Its input ends.
    drop(server.stdin.take());
    server.wait().expect("a server");
    picture
}

/// `laggard serve`, where a finding has led to its worst call.
fn browsed(bench: &Bench, browser: &mut Browser) -> Vec<u8> {
    let report = bench.path("heat.json");
    let report = report.to_str().expect("a name");
    let (mut server, address) = start(bench, &["-q", "--report", report]);
    browser.visit(&address);
    settle(browser);
    browser.value("document.querySelector('#findings tr[tabindex]').click()");
    settle(browser);
    browser.value("document.getElementById('out').click()");
    settle(browser);
    let views = ["heat-title", "line-title", "course-title"];
    let views = views.map(|view| format!("section[aria-labelledby={view}]"));
    let picture = browser.picture_of(&format!("header, nav, {}", views.join(", ")), WIDTH);
    server.kill().expect("a child");
    server.wait().expect("a child");
    picture
}

/// Without loss, as small as it gets.
fn small(picture: &[u8]) -> Vec<u8> {
    let mut options = oxipng::Options::from_preset(4);
    options.strip = oxipng::StripChunks::Safe;
    oxipng::optimize_from_memory(picture, &options).expect("a picture")
}

#[test]
fn pictures_of_the_book_are_made_here() {
    let bench = Bench::sharing("pictures");
    let pictures = drawn(&bench);
    let directory = std::env::var_os("LAGGARD_PICTURES").map(PathBuf::from);
    let directory = directory.map_or_else(
        || Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures"),
        |directory| root().join(directory),
    );
    fs::create_dir_all(&directory).expect("a directory");
    for (name, picture) in &pictures {
        let small = small(picture);
        assert!(small.len() < LARGEST, "{name}: {} bytes", small.len());
        fs::write(directory.join(format!("{name}.png")), small).expect("a file");
    }
    let made: BTreeSet<String> = pictures.keys().map(|&name| name.to_owned()).collect();
    assert_eq!(linked(), made, "what the book links, and what is made");
}

#[test]
fn the_book_has_its_pictures_and_no_others() {
    let files = fs::read_dir(root().join(BOOK)).expect("the pictures: run make pictures");
    let mut there = BTreeSet::new();
    for file in files {
        let path = file.expect("an entry").path();
        let picture = fs::read(&path).expect("a picture");
        assert!(picture.starts_with(b"\x89PNG"), "{}", path.display());
        assert!(
            picture.len() < LARGEST,
            "{}: {} bytes",
            path.display(),
            picture.len()
        );
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        there.insert(name.into_owned());
    }
    assert_eq!(there, linked());
}
