//! A server of `laggard serve`, and clients that talk to it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::product::Bench;

/// Longest wait for an answer, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A server of the trace of a program on 4 ranks, with its report.
pub struct Served {
    /// Its files.
    pub bench: Bench,
    /// The server.
    pub server: Child,
    /// `http://127.0.0.1:PORT/TOKEN/`.
    pub address: String,
    /// The report.
    pub report: Value,
}

impl Served {
    /// Of `programs/attacks/traffic.c`, with one agent.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn new(test: &str) -> Served {
        Served::by(test, |bench| start(bench, &["-q"]))
    }

    /// The same, of a server that is started so.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn by(test: &str, start: impl FnOnce(&Bench) -> (Child, String)) -> Served {
        Served::of(test, "attacks/traffic.c", start)
    }

    /// Of a program, and of a server that is started so.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn of(test: &str, program: &str, start: impl FnOnce(&Bench) -> (Child, String)) -> Served {
        let bench = Bench::sharing(test);
        let program = bench.compile(program, &[], &[]);
        let run = bench.traced(4, &[program.as_os_str()], "trace");
        run.run().expect_orderly().expect_success();
        let trace = bench.path("trace");
        let path = trace.join("report.json");
        let outcome = bench.analyze(&trace, 1, &path, &["--all", "-q"]);
        outcome.expect_orderly().expect_success();
        let report = fs::read_to_string(&path).expect("a report");
        let (server, address) = start(&bench);
        Served {
            bench,
            server,
            address,
            report: serde_json::from_str(&report).expect("JSON"),
        }
    }

    /// Host and port.
    pub fn authority(&self) -> &str {
        let rest = self.address.strip_prefix("http://").expect("an address");
        rest.split('/').next().expect("a port")
    }

    /// The token in its address.
    pub fn token(&self) -> &str {
        self.address.rsplit('/').nth(1).expect("a token")
    }

    /// The status of a request with these lines, and the rest of the answer.
    pub fn request(&self, path: &str, lines: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.authority()).expect("a server");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let text = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{lines}\r\n");
        stream.write_all(text.as_bytes()).expect("it listens");
        let mut bytes = Vec::new();
        // A server may close at once what it does not want.
        let _ = stream.read_to_end(&mut bytes);
        let answer = String::from_utf8_lossy(&bytes).into_owned();
        (status(&answer), answer)
    }

    /// Ends the server as Ctrl-C does.
    pub fn end(&mut self) {
        // SAFETY: sends a signal to a child that has not been waited for.
        unsafe { libc::kill(self.server.id() as i32, libc::SIGINT) };
        let ended = self.server.wait().expect("a child");
        assert_eq!(ended.code(), Some(0));
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Best effort: a test that failed before its end.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Starts a server of the bench's trace; returns it and its first line.
pub fn start(bench: &Bench, options: &[&str]) -> (Child, String) {
    let mut command = Command::new(&bench.command);
    command.arg("serve").arg(bench.path("trace")).args(options);
    first_line(command)
}

/// Starts a command; returns it and its first line.
pub fn first_line(mut command: Command) -> (Child, String) {
    command.stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut server = command.spawn().expect("the command");
    let mut line = String::new();
    let out = server.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut line).expect("a line");
    (server, line.trim_end().to_owned())
}

/// The status of an answer.
pub fn status(answer: &str) -> u16 {
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    status.unwrap_or(0)
}

/// Begins a conversation; returns the connection and the status.
///
/// # Panics
/// If nothing listens there.
pub fn converse(authority: &str, token: &str) -> (TcpStream, u16) {
    let stream = TcpStream::connect(authority).expect("a server");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    begin(stream, authority, token)
}

/// Begins a conversation over a connection.
///
/// # Panics
/// If it is closed at once.
pub fn begin<S: Read + Write>(mut stream: S, authority: &str, token: &str) -> (S, u16) {
    let text = format!(
        "GET /{token}/ask HTTP/1.1\r\nHost: {authority}\r\nOrigin: http://{authority}\r\nUpgrade: websocket\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(text.as_bytes()).expect("it listens");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => break,
        }
    }
    (stream, status(&String::from_utf8_lossy(&head)))
}

/// Sends a text as a client does: masked, with a mask of zeros.
///
/// # Panics
/// If nobody listens.
pub fn say(stream: &mut impl Write, text: &[u8]) {
    let length = text.len() as u16;
    let mut frame = vec![0x81, 0x80 | 126];
    frame.extend(length.to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(text);
    stream.write_all(&frame).expect("it listens");
}

/// The next text of the server, or what it sent before it closed.
///
/// # Panics
/// If it is no text of the promised length.
pub fn hear(stream: &mut impl Read) -> String {
    let mut head = [0; 2];
    if stream.read_exact(&mut head).is_err() || head[0] & 15 != 1 {
        return "closed".to_owned();
    }
    let length = match head[1] {
        126 => {
            let mut long = [0; 2];
            stream.read_exact(&mut long).expect("a length");
            u64::from(u16::from_be_bytes(long))
        }
        127 => {
            let mut long = [0; 8];
            stream.read_exact(&mut long).expect("a length");
            u64::from_be_bytes(long)
        }
        short => short.into(),
    };
    assert!(length <= 100_100, "{length} bytes");
    let mut text = vec![0; length as usize];
    stream.read_exact(&mut text).expect("a text");
    String::from_utf8(text).expect("UTF-8")
}

/// A conversation that has begun.
///
/// # Panics
/// If the server refuses it.
pub fn client(address: &str) -> TcpStream {
    let mut parts = address
        .strip_prefix("http://")
        .expect("an address")
        .split('/');
    let (authority, token) = (
        parts.next().expect("a port"),
        parts.next().expect("a token"),
    );
    let (stream, status) = converse(authority, token);
    assert_eq!(status, 101);
    stream
}

/// The whole reply to a question, with the number 1.
///
/// # Panics
/// If it is no JSON.
pub fn reply(stream: &mut (impl Read + Write), mut question: Value) -> Value {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    question["id"] = id.into();
    say(stream, question.to_string().as_bytes());
    loop {
        let mut heard: Value = serde_json::from_str(&hear(stream)).expect("JSON");
        // Servers also tell what nobody asked, and that a former question was given up.
        if heard["id"] == id {
            heard["id"] = 1.into();
            return heard;
        }
    }
}
