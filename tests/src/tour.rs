//! All views of `laggard serve`, looked at in a browser: every choice, and what users do most.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::browser::Browser;
use crate::product::Bench;
use crate::served::{PATIENCE, first_line};

/// Width of the page in pictures.
pub const WIDTH: u32 = 1200;
/// Most choices of one kind that are tried.
const CHOICES: usize = 12;
/// Places of the time line that are clicked to find a call.
const CLICKS: usize = 60;

/// Keeps a picture below `target/tmp/serve`.
///
/// # Panics
/// If there is no room.
pub fn keep(name: &str, bytes: &[u8]) {
    let directory = crate::folders::target().join("tmp/serve");
    fs::create_dir_all(&directory).expect("a directory");
    fs::write(directory.join(name), bytes).expect("a picture");
}

/// Waits until all views show what was asked for.
///
/// # Panics
/// If that takes too long, or the page complains.
#[track_caller]
pub fn settle(browser: &mut Browser) {
    settle_within(PATIENCE, browser);
}

/// Waits until a condition of the page holds.
///
/// # Panics
/// If it does not for long.
#[track_caller]
pub fn settle_on(browser: &mut Browser, condition: &str) {
    let begun = Instant::now();
    while browser.value(condition) != true {
        if begun.elapsed() >= PATIENCE {
            let shown = browser.value("location.hash");
            panic!("{condition}: {shown}, {:?}", browser.complaints());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The same as [`settle`], where all messages of a large trace are read first, for its critical path and for arrows.
#[track_caller]
fn settle_within(limit: Duration, browser: &mut Browser) {
    let begun = Instant::now();
    while browser.value("document.body.dataset.state") != "ready" {
        assert!(begun.elapsed() < limit, "{:?}", browser.complaints());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(browser.complaints(), [""; 0]);
    assert_eq!(
        browser.value("document.getElementById('problem').textContent"),
        ""
    );
}

/// The number that an expression is.
///
/// # Panics
/// If it is none.
pub fn number(browser: &mut Browser, expression: &str) -> f64 {
    let value = browser.value(&format!("Number({expression})"));
    value.as_f64().expect("a number")
}

/// Presses a key where the page has the focus.
pub fn key(browser: &mut Browser, key: &str) {
    browser.value(&format!(
        "document.body.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}}))"
    ));
}

/// What a tour has seen.
#[derive(Debug)]
pub struct Seen {
    /// From the request of the page until its map of the run was there.
    pub first: Duration,
    /// The longest time until all views showed something else.
    pub longest: Duration,
    /// By kind of time: the whole of the map, s.
    pub totals: Vec<(String, f64)>,
    /// What a call of the time line is.
    pub call: String,
    /// What it gains to be without the first root cause, s, or why nobody knows.
    pub gain: Result<f64, String>,
    /// Grids that ranks are in.
    pub grids: usize,
}

struct Tour {
    server: Child,
    browser: Browser,
    longest: Duration,
    /// How long views may take.
    limit: Duration,
}

impl Drop for Tour {
    fn drop(&mut self) {
        // Best effort: a test that failed before its end.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Tour {
    /// Does something in the page and waits for all views.
    #[track_caller]
    fn act(&mut self, script: &str) -> Value {
        let begun = Instant::now();
        let value = self.browser.value(&format!("(() => {{ {script} }})()"));
        settle_within(self.limit, &mut self.browser);
        self.longest = self.longest.max(begun.elapsed());
        value
    }

    #[track_caller]
    fn press(&mut self, name: &str) {
        let script = "document.body.dispatchEvent(new KeyboardEvent('keydown',";
        self.act(&format!("{script} {{key: '{name}', bubbles: true}}));"));
    }

    fn count(&mut self, selector: &str) -> usize {
        let all = format!("document.querySelectorAll({selector:?}).length");
        number(&mut self.browser, &all) as usize
    }

    #[track_caller]
    fn click(&mut self, selector: &str) {
        self.act(&format!("document.querySelector({selector:?})?.click();"));
    }

    /// Makes each choice of a list, the first one last; returns what they are called.
    #[track_caller]
    fn choose_each(&mut self, list: &str, mut seen: impl FnMut(&mut Tour, &str)) {
        let count = self.count(&format!("#{list} option"));
        for at in (0..count.min(CHOICES)).rev() {
            let name = self.act(&format!(
                "const list = document.getElementById('{list}');
                 list.selectedIndex = {at};
                 list.dispatchEvent(new Event('change'));
                 return list.value;"
            ));
            seen(self, name.as_str().unwrap_or_default());
        }
    }

    /// The call at some place of the time line, zooming in until there are any.
    fn call(&mut self) -> String {
        let calls = "document.getElementById('line').dataset.calls";
        for _ in 0..40 {
            if number(&mut self.browser, calls) > 0.0 {
                break;
            }
            self.press("+");
        }
        for at in 0..CLICKS {
            let part = (at as f64 * 0.618).fract();
            let lane = at % 4;
            self.act(&format!(
                "const line = document.getElementById('line');
                 const box = line.getBoundingClientRect();
                 const place = {{
                     clientX: box.left + 76 + (box.width - 76) * {part},
                     clientY: box.top + {lane} * 26 + 8,
                     pointerId: 1, bubbles: true,
                 }};
                 line.setPointerCapture = () => {{}};
                 line.dispatchEvent(new PointerEvent('pointerdown', place));
                 line.dispatchEvent(new PointerEvent('pointerup', place));"
            ));
            let found = "document.querySelector('#call h2')?.textContent ?? ''";
            if let Some(name) = self.browser.value(found).as_str()
                && !name.is_empty()
            {
                return name.to_owned();
            }
        }
        String::new()
    }

    /// Moves the slider of the first root cause to its end, and that of the network.
    fn mend(&mut self) -> Result<f64, String> {
        let said = "document.getElementById('gain').textContent";
        if self.count("#mends:not([hidden]) [data-mends='1']") == 0 {
            let why = self.browser.value(said);
            return Err(why.as_str().unwrap_or_default().to_owned());
        }
        let mut gains = Vec::new();
        for of in ["network", "1"] {
            self.click("#unmend");
            self.act(&format!(
                "const slider = document.querySelector(\"[data-mends='{of}']\");
                 slider.value = 100;
                 slider.dispatchEvent(new Event('input'));"
            ));
            let begun = Instant::now();
            let gain = "document.getElementById('gain').dataset.gain || 'none'";
            while self.browser.value(gain) == "none" {
                assert!(begun.elapsed() < PATIENCE, "no gain of {of}");
                std::thread::sleep(Duration::from_millis(20));
            }
            gains.push(number(&mut self.browser, gain));
        }
        self.click("#unmend");
        Ok(gains[1])
    }

    /// Clicks all that saves something; nothing is downloaded. Returns how many of them there are.
    fn save_all(&mut self) -> usize {
        let saves = self.act(
            "HTMLAnchorElement.prototype.click = () => {};
             const all = [...document.querySelectorAll('[data-saves]')].filter((one) => one.offsetParent !== null);
             all.forEach((one) => one.click());
             return all.length;",
        );
        saves.as_u64().unwrap_or(0) as usize
    }

    /// Opens the first rank of the profile: its threads are those of the report, and one of them can be chosen.
    #[track_caller]
    fn threads(&mut self, told: &Value, name: &str) {
        self.click("#metrics tr[tabindex]");
        self.click("#tree tr[tabindex]");
        // Below the head and the first host.
        let first_rank = "#system tr[tabindex]:nth-of-type(3)";
        let before = self.count("#system tr[tabindex]");
        self.click(first_rank);
        let threads = self.count("#system tr[tabindex]") - before;
        let locations = told["locations"].as_array().into_iter().flatten();
        let of_first = locations.filter(|one| one["rank"] == 0).count();
        assert_eq!(threads, if of_first > 1 { of_first } else { 0 });
        if threads > 0 {
            keep(
                &format!("{name}-threads.png"),
                &self.browser.picture_of("#system", WIDTH),
            );
            self.click(&format!(
                "#system tr[tabindex]:nth-of-type({})",
                3 + threads
            ));
            let chosen = "new URLSearchParams(location.hash.slice(1)).get('ranks')";
            assert_eq!(self.browser.value(chosen), format!("0.{}", threads - 1));
        }
        self.click(first_rank);
        assert_eq!(self.count("#system tr[tabindex]"), before);
        self.press("0");
    }
}

/// Looks at all views of the pages of a trace, whose report is at `report`. Pictures are called by `name`.
///
/// # Panics
/// If a page complains, or does not show what the report says.
pub fn tour(bench: &Bench, trace: &Path, report: &Path, name: &str) -> Seen {
    let told = fs::read_to_string(report).expect("a report");
    let told: Value = serde_json::from_str(&told).expect("JSON");
    let mut command = Command::new(&bench.command);
    command.arg("serve").arg(trace).arg("-q");
    command.arg("--report").arg(report);
    let (server, address) = first_line(command);
    let mut tour = Tour {
        server,
        browser: Browser::start(&bench.dir),
        longest: Duration::ZERO,
        limit: bench.limit.max(PATIENCE),
    };
    let begun = Instant::now();
    tour.browser.visit(&address);
    let is_shown = "Number(document.getElementById('heat')?.dataset.total) > 0";
    while tour.browser.value(is_shown) != true {
        assert!(
            begun.elapsed() < PATIENCE,
            "{:?}",
            tour.browser.complaints()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let first = begun.elapsed();
    settle_within(tour.limit, &mut tour.browser);
    let mut totals = Vec::new();
    tour.choose_each("metric", |tour, name| {
        let total = number(
            &mut tour.browser,
            "document.getElementById('heat').dataset.total",
        );
        totals.push((name.to_owned(), total));
    });
    let metric = "document.getElementById('metric')";
    tour.act(&format!(
        "{metric}.value = 'waiting'; {metric}.dispatchEvent(new Event('change'));"
    ));
    for list in ["curve", "what", "of", "group", "by", "order"] {
        tour.choose_each(list, |_, _| {});
    }
    let grids = tour.count("#communicator option");
    if grids > 0 {
        tour.choose_each("communicator", |_, _| {});
        tour.choose_each("placed", |tour, metric| {
            let places = number(
                &mut tour.browser,
                "document.getElementById('topology').dataset.places",
            );
            assert!(places > 0.0, "{metric}");
        });
        tour.act("document.getElementById('topology').focus();");
        tour.browser.press("ArrowRight");
        tour.browser.press("Enter");
        tour.press("0");
    }
    for row in 1..=tour.count("#metrics tr[tabindex]") {
        tour.click(&format!("#metrics tr[tabindex]:nth-of-type({})", row + 1));
    }
    tour.click("#percent");
    tour.click("#hot");
    tour.act(
        "const find = document.getElementById('find');
         find.value = 'shmem_'; find.dispatchEvent(new Event('input'));
         find.value = 'mpi_'; find.dispatchEvent(new Event('input'));",
    );
    for scheme in ["light", "dark"] {
        tour.browser.show_on("screen", scheme);
        keep(
            &format!("{name}-{scheme}.png"),
            &tour.browser.picture(WIDTH),
        );
    }
    let findings = tour.count("#findings tr[tabindex]");
    let reported = told["bottlenecks"].as_array().map_or(0, Vec::len);
    assert_eq!(findings, reported.min(50));
    tour.click("#roots tr[tabindex]");
    tour.click("#findings tr[tabindex]");
    for name in [
        "c",
        "c",
        "-",
        "ArrowRight",
        "ArrowLeft",
        "ArrowDown",
        "PageDown",
        "ArrowUp",
    ] {
        tour.press(name);
    }
    tour.click("#findings tr[tabindex]");
    let call = tour.call();
    // Nobody waits for itself: threads of a rank have their names.
    let itself = "/((?:thread \\d+ of )?rank \\d+) waited for \\1(?!\\d)/.test(document.getElementById('call').textContent)";
    assert_eq!(tour.browser.value(itself), false);
    let itself = "[...document.querySelectorAll('#waits tr')].some(({ cells }) => cells[2]?.textContent === cells[4]?.textContent)";
    assert_eq!(tour.browser.value(itself), false);
    keep(&format!("{name}-call.png"), &tour.browser.picture(WIDTH));
    tour.press("0");
    tour.click("#waits tr[tabindex]");
    tour.press("0");
    if told["call_tree"]["ranks_per_class"] == 1 {
        tour.threads(&told, name);
    }
    // A rank may have many locations.
    let hosts = told["run"]["hosts"].as_array().map_or(0, Vec::len);
    let rows = tour.count("#system tr[tabindex]").saturating_sub(hosts);
    if rows > 1 && told["run"]["ranks"] == rows {
        tour.click("#system tr:last-child");
        let chosen = "new URLSearchParams(location.hash.slice(1)).get('ranks')";
        assert_eq!(tour.browser.value(chosen), (rows - 1).to_string());
        tour.press("0");
    }
    let gain = tour.mend();
    assert!(tour.save_all() > 20);
    // Pictures are made after that.
    std::thread::sleep(Duration::from_millis(200));
    settle(&mut tour.browser);
    let seen = Seen {
        first,
        longest: tour.longest,
        totals,
        call,
        gain,
        grids,
    };
    // SAFETY: sends a signal to a child that has not been waited for.
    unsafe { libc::kill(tour.server.id() as i32, libc::SIGINT) };
    let ended = tour.server.wait().expect("a child");
    assert_eq!(ended.code(), Some(0));
    agrees(&seen, &told);
    seen
}

/// The map of the waiting has that of the report, as far as this lists all locations.
fn agrees(seen: &Seen, told: &Value) {
    let locations = told["locations"].as_array().expect("locations");
    if told["run"]["locations"].as_u64() != Some(locations.len() as u64) {
        return;
    }
    let waiting = locations
        .iter()
        .map(|one| one["wait_s"].as_f64().expect("s"));
    let waiting: f64 = waiting.sum();
    let shown = seen.totals.iter().find(|(name, _)| name == "waiting");
    let shown = shown.expect("waiting").1;
    assert!((shown - waiting).abs() < 1e-6, "{shown} {waiting}");
}
