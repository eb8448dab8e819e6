//! `laggard serve`, as those see it who should not, who are too many or too slow, and whose files are gone.

use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use laggard_tests::browser::Browser;
use laggard_tests::served::{PATIENCE, Served, client, converse, hear, reply, say, start, status};
use serde_json::{Value, json};

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

/// A page that an earlier server sent has another token: no page asks a server of another version.
#[test]
fn pages_of_an_earlier_server_are_not_heard() {
    let mut served = Served::new("serve-again");
    let (authority, token) = (served.authority().to_owned(), served.token().to_owned());
    let host = format!("Host: {authority}\r\n");
    served.end();
    let port = authority.rsplit(':').next().expect("a port");
    (served.server, served.address) = start(&served.bench, &["-q", "--port", port]);
    assert_eq!(served.authority(), authority);
    for file in ["", "main.js", "ask"] {
        let path = format!("/{token}/{file}");
        assert_eq!(served.request(&path, &host).0, 404, "{file}");
    }
    assert_eq!(converse(&authority, &token).1, 404);
    // No browser keeps a module for later.
    let (status, module) = served.request(&format!("/{}/main.js", served.token()), &host);
    assert_eq!(status, 200);
    assert!(module.contains("cache-control: no-store"), "{module}");
    served.end();
}

#[test]
fn a_thousand_clients_and_nonsense_do_not_stop_it() {
    let mut served = Served::new("serve-clients");
    let (authority, token) = (served.authority().to_owned(), served.token().to_owned());
    let mut clients = Vec::new();
    let mut refused = 0;
    // Some say nothing at all: the first of too many have to go.
    let silent: Vec<TcpStream> = (0..300)
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
    let is_closed = |mut client: &TcpStream| {
        let limit = Some(Duration::from_millis(100));
        client.set_read_timeout(limit).expect("a socket");
        let read = client.read(&mut [0]);
        read.map_or_else(
            |e| e.kind() == ErrorKind::ConnectionReset,
            |bytes| bytes == 0,
        )
    };
    let are_closed = silent.iter().map(is_closed);
    let closed = are_closed.take_while(|is_closed| *is_closed).count();
    assert!((100..299).contains(&closed), "{closed}");
    assert!(!is_closed(&silent[299]));
    // A page is told, too.
    let mut browser = Browser::start(&served.bench.dir);
    browser.visit(&served.address);
    let problem = "document.getElementById('problem').textContent";
    let begun = Instant::now();
    while browser.value(problem) == "" {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
    let problem = browser.value(problem);
    let problem = problem.as_str().expect("a text");
    assert!(problem.starts_with("64 pages are open"), "{problem}");
    drop(browser);
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
    // Whatever comes at once, each question is heard of.
    let names = ["overview", "selection", "what_if", "nonsense"];
    for id in 100..500 {
        let mut question = json!({"id": id, "ask": names[id % names.len()]});
        if question["ask"] == "what_if" {
            question["changes"] = json!([["network", "latency=0"]]);
        }
        say(&mut quick, question.to_string().as_bytes());
    }
    let mut unheard: BTreeSet<u64> = (100..500).collect();
    while !unheard.is_empty() {
        let told: Value = serde_json::from_str(&hear(&mut quick)).expect("JSON");
        unheard.remove(&told["id"].as_u64().expect("a number"));
    }
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
