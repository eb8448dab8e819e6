//! `laggard serve`, as a browser sees it, and as those see it who should not. Pictures stay below
//! `target/tmp/serve`.

mod programs;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use laggard_tests::browser::Browser;
use laggard_tests::served::{PATIENCE, Served, client, converse, hear, reply, say, start, status};
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
    let chosen = number(
        &mut browser,
        "new URLSearchParams(location.hash.slice(1)).get('node')",
    );
    let node = &nodes[chosen as usize];
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
    assert_eq!(ranks, 4.0);
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
    assert!(has_hash(&mut browser, "first=1&last=1"));
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

#[test]
fn strangers_learn_nothing() {
    let mut served = Served::new("serve-strangers");
    let (authority, token) = (served.authority().to_owned(), served.token().to_owned());
    let host = format!("Host: {authority}\r\n");
    let path = format!("/{token}/");
    assert_eq!(served.request(&path, &host).0, 200);
    let wrong: String = token.chars().rev().collect();
    for other in [
        "/",
        "/ask",
        "/main.js",
        &format!("/{wrong}/"),
        &format!("/{wrong}/main.js"),
    ] {
        let (status, answer) = served.request(other, &host);
        assert_eq!(status, 404, "{other}");
        assert!(
            !answer.contains("traffic") && !answer.contains("laggard"),
            "{answer}"
        );
    }
    let files = [
        "../Cargo.toml",
        "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "..",
        "report.json",
        "/etc/passwd",
    ];
    for file in files {
        let (status, answer) = served.request(&format!("{path}{file}"), &host);
        assert_eq!(status, 404, "{file}: {answer}");
    }
    let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let ask = format!("{path}ask");
    for foreign in [
        "Host: example.org\r\n".to_owned(),
        format!("{host}Origin: https://example.org\r\n"),
        format!("{host}Origin: null\r\n"),
        format!("{host}Origin: http://localhost:1\r\n"),
        String::new(),
    ] {
        for path in [&path, &ask] {
            let (status, _) = served.request(path, &format!("{foreign}{upgrade}"));
            assert!(status == 403 || status == 400, "{foreign}: {status}");
        }
    }
    // Nothing but reading.
    for method in ["POST", "PUT", "DELETE"] {
        let mut stream = TcpStream::connect(&authority).expect("a server");
        let text = format!(
            "{method} {path} HTTP/1.1\r\nConnection: close\r\n{host}Content-Length: 0\r\n\r\n"
        );
        stream.write_all(text.as_bytes()).expect("it listens");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert_eq!(status(&answer), 405, "{method}");
    }
    served.end();
}

#[test]
fn a_thousand_clients_and_nonsense_do_not_stop_it() {
    let mut served = Served::new("serve-clients");
    let (authority, token) = (served.authority().to_owned(), served.token().to_owned());
    let mut clients = Vec::new();
    let mut refused = 0;
    // Some say nothing at all.
    let silent: Vec<TcpStream> = (0..100)
        .map(|_| TcpStream::connect(&authority).expect("a server"))
        .collect();
    for _ in 0..1000 {
        let (client, status) = converse(&authority, &token);
        match status {
            101 => clients.push(client),
            _ => {
                assert_eq!(status, 503);
                refused += 1;
            }
        }
    }
    assert_eq!((clients.len(), refused), (64, 936));
    let question = br#"{"id": 7, "ask": "selection"}"#;
    for client in &mut clients {
        say(client, question);
    }
    for client in &mut clients {
        let answer: Value = serde_json::from_str(&hear(client)).expect("JSON");
        assert_eq!(answer["id"], 7);
        assert!(answer["answer"]["times_s"]["waiting"].as_f64() > Some(0.0));
    }
    for nonsense in [
        &b"{"[..],
        b"[]",
        br#"{"id": -1}"#,
        br#"{"id": 3, "ask": "file", "path": "/etc/passwd"}"#,
    ] {
        say(&mut clients[0], nonsense);
        let answer: Value = serde_json::from_str(&hear(&mut clients[0])).expect("JSON");
        assert!(answer["error"].is_string(), "{answer}");
    }
    // Too long, and no text.
    say(&mut clients[0], &[b' '; 20_000]);
    assert_eq!(hear(&mut clients[0]), "closed");
    say(&mut clients[1], &[0xff; 9]);
    assert_eq!(hear(&mut clients[1]), "closed");
    // They vanish in the middle of questions, and others come.
    for client in &mut clients[2..] {
        say(client, question);
    }
    drop((clients, silent));
    let begun = Instant::now();
    let mut next = loop {
        let (client, status) = converse(&authority, &token);
        if status == 101 {
            break client;
        }
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    };
    // A trace that is cut off underneath is said, and the server stays.
    let trace = served.bench.path("trace");
    let file = fs::read_dir(&trace).expect("a trace").find_map(|file| {
        let path: PathBuf = file.expect("a file").path();
        path.extension()
            .is_some_and(|ending| ending == "lgt")
            .then_some(path)
    });
    let file = fs::OpenOptions::new()
        .write(true)
        .open(file.expect("a location"));
    file.expect("a file").set_len(100).expect("it is cut off");
    for _ in 0..2 {
        let answer = reply(&mut next, json!({"ask": "selection"}));
        let error = answer["error"].as_str().expect("an error");
        assert!(error.contains("has changed since it was opened"), "{error}");
    }
    served.end();
}

/// Who asks anew wants the old answer no more. Who takes no answers keeps nobody else waiting, and is left in the end.
#[test]
fn old_questions_are_stopped_and_slow_clients_left() {
    let mut served = Served::new("serve-slow");
    let mut quick = client(&served.address);
    let question =
        |id: u32| json!({"id": id, "ask": "what_if", "changes": [["network", "latency=0"]]});
    for id in 0..20 {
        say(&mut quick, question(id).to_string().as_bytes());
    }
    let mut stopped = 0;
    loop {
        let told: Value = serde_json::from_str(&hear(&mut quick)).expect("JSON");
        stopped += u32::from(told["stopped"] == true);
        if told["id"] == 19 {
            assert!(told["answer"].is_object(), "{told}");
            break;
        }
    }
    assert!(stopped > 0);
    let mut slow = client(&served.address);
    let wait = Some(Duration::from_millis(500));
    slow.set_write_timeout(wait).expect("a timeout");
    let mut many = Vec::new();
    for id in 0..1000 {
        let text = json!({"id": id, "ask": "selection"}).to_string();
        say(&mut many, text.as_bytes());
    }
    let begun = Instant::now();
    while slow.write_all(&many).is_ok() {
        assert!(begun.elapsed() < PATIENCE, "it takes whatever comes");
    }
    let answer = reply(&mut quick, json!({"ask": "selection"}));
    assert!(answer["answer"]["times_s"]["waiting"].as_f64() > Some(0.0));
    // Longer than it waits for a client.
    std::thread::sleep(Duration::from_secs(25));
    let closed = slow.read_to_end(&mut Vec::new());
    let is_reset = |error: &std::io::Error| error.kind() == ErrorKind::ConnectionReset;
    assert!(closed.as_ref().err().is_none_or(is_reset), "{closed:?}");
    let answer = reply(&mut quick, json!({"ask": "selection"}));
    assert!(answer["answer"]["times_s"]["waiting"].as_f64() > Some(0.0));
    served.end();
}

#[test]
fn a_socket_is_for_its_owner_and_goes_with_the_server() {
    use std::os::unix::fs::PermissionsExt;
    let served = Served::new("serve-socket");
    let socket = served.bench.path("s");
    let name = socket.to_str().expect("text");
    let (mut server, address) = start(&served.bench, &["-q", "--socket", name]);
    let token = address.rsplit('/').nth(1).expect("a token");
    let mode = fs::metadata(&socket)
        .expect("a socket")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut stream = std::os::unix::net::UnixStream::connect(&socket).expect("a server");
    let text =
        format!("GET /{token}/ HTTP/1.1\r\nHost: hub.example.org\r\nConnection: close\r\n\r\n");
    stream.write_all(text.as_bytes()).expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert_eq!(status(&answer), 200);
    // SAFETY: sends a signal to a child that has not been waited for.
    unsafe { libc::kill(server.id() as i32, libc::SIGTERM) };
    assert_eq!(server.wait().expect("a child").code(), Some(0));
    assert!(!socket.exists());
    fs::write(&socket, "").expect("a file");
    let mut command = Command::new(&served.bench.command);
    command
        .arg("serve")
        .arg(served.bench.path("trace"))
        .args(["--socket", name]);
    let refused = command.output().expect("the command");
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("choose another name"));
}
