//! How fast `laggard serve` is: making the index, the first picture, and pictures of any part of a run.
//! Servers of all traces are there at the same time, and are asked the same in turns.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::process;
use crate::runs::Outcome;
use crate::table::{Table, median, percentile};
use crate::traces::{Series, Trace};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Sizes of the traces, million calls.
    pub sizes: Vec<u64>,
    /// The traces, and how often their indexes are made.
    pub series: Series,
    /// Agents that answer.
    pub agents: usize,
    /// Questions of each kind.
    pub questions: usize,
    /// Directory of the traces.
    pub directory: PathBuf,
}

/// The views that are asked for, as the page asks.
const VIEWS: [&str; 3] = ["heat", "line", "selection"];
/// Ranks in the time line.
const LANES: usize = 16;
/// The shortest part of a run that is looked at: this power of ten.
const SHORTEST: f64 = -6.0;

/// Measures all sizes.
///
/// # Errors
/// The analyzer or the file system failed.
pub fn measure(options: &Options, outcome: &mut Outcome) -> Result<()> {
    process::with_analyzer(&options.directory, |analyzer| {
        let sizes = options.sizes.iter();
        let traces = sizes.map(|&size| Served::new(analyzer, options, size));
        let mut traces: Vec<Served> = traces.collect::<Result<_>>()?;
        for _ in 0..options.series.rounds {
            traces.iter_mut().try_for_each(Served::make)?;
        }
        for _ in 0..options.series.rounds {
            traces.iter_mut().try_for_each(Served::begin)?;
        }
        let mut stretches = Stretches(1);
        for _ in 0..options.questions {
            let part = stretches.next();
            for view in 0..VIEWS.len() {
                traces.iter_mut().try_for_each(|one| one.zoom(view, part))?;
            }
        }
        let title = format!(
            "{} on {} ranks; pictures by {} agents: median / 99th percentile of {}",
            options.series.program.name(),
            options.series.ranks,
            options.agents,
            options.questions
        );
        let head = [
            "calls",
            "index, s",
            "M calls per CPU s",
            "of the trace, %",
            "first picture, s",
            "map, ms",
            "time line, ms",
            "selection, ms",
        ];
        let mut table = Table::new(&title, &head);
        for one in &traces {
            one.add(&mut table, outcome);
        }
        outcome.table(table);
        let mut ended = traces.into_iter();
        ended.try_for_each(|one| one.trace.done(options.series.keep))
    })
}

/// A trace, and what was measured.
struct Served<'o> {
    analyzer: &'o Path,
    options: &'o Options,
    trace: Trace,
    millions: u64,
    /// The run.
    end_s: f64,
    locations: usize,
    server: Option<Server>,
    index_bytes: u64,
    /// Time to make an index with one thread, of that on a processor, and to the first picture, s.
    made: Vec<f64>,
    worked: Vec<f64>,
    begun: Vec<f64>,
    /// Time of each picture, ms.
    pictures: [Vec<f64>; VIEWS.len()],
}

impl<'o> Served<'o> {
    fn new(analyzer: &'o Path, options: &'o Options, millions: u64) -> Result<Served<'o>> {
        let trace = Trace::get(&options.directory, &options.series, millions)?;
        // Servers look for it there; its root causes are in no picture.
        let mut command = Command::new(analyzer);
        command.arg("analyze").arg(&trace.path).arg("-o");
        command.arg(trace.path.join("report.json"));
        process::run(command.args(["--all", "--fast", "--format", "none", "-q"]))?;
        Ok(Served {
            analyzer,
            options,
            trace,
            millions,
            end_s: 0.0,
            locations: 0,
            server: None,
            index_bytes: 0,
            made: Vec::new(),
            worked: Vec::new(),
            begun: Vec::new(),
            pictures: Default::default(),
        })
    }

    fn start(&self, options: &[&str]) -> Result<Server> {
        let mut command = Command::new(self.analyzer);
        command.arg("serve").arg(&self.trace.path).arg("-q");
        Server::start(command.args(options))
    }

    /// Makes the index with one agent and one thread, and opens it again: what differs is the making.
    fn make(&mut self) -> Result<()> {
        let index = self.trace.path.join("laggard.index");
        process::remove(&index)?;
        let mut took = [[0.0; 2]; 2];
        for took in &mut took {
            let begun = Instant::now();
            let server = self.start(&["--threads", "1"])?;
            let passed = begun.elapsed().as_secs_f64();
            *took = [passed, server.processor_time()?];
        }
        self.index_bytes = process::bytes_below(&index)?;
        ensure!(self.index_bytes > 0, "no index was kept");
        let [anew, again] = took;
        self.made.push(anew[0] - again[0]);
        self.worked.push(anew[1] - again[1]);
        Ok(())
    }

    /// Starts a server that has an index, and waits for all that the page shows first.
    fn begin(&mut self) -> Result<()> {
        self.server = None;
        let begun = Instant::now();
        let agents = self.options.agents.to_string();
        let mut server = self.start(&["--agents", &agents])?;
        let run = server.ask(json!({"ask": "overview"}))?;
        self.end_s = run["end_s"].as_f64().context("no end")?;
        let locations = run["locations"].as_u64().context("no locations")?;
        self.locations = usize::try_from(locations)?;
        for view in VIEWS {
            server.ask(self.question(view, (0.0, 1.0)))?;
        }
        self.begun.push(begun.elapsed().as_secs_f64());
        self.server = Some(server);
        Ok(())
    }

    fn question(&self, view: &str, (from, until): (f64, f64)) -> Value {
        let last = match view {
            "line" => self.locations.min(LANES),
            _ => self.locations,
        };
        let mut question = json!({
            "ask": view, "from_s": from * self.end_s, "until_s": until * self.end_s, "width": 600,
            "first": 0, "last": last - 1,
        });
        if view == "heat" {
            question["metric"] = "waiting".into();
            question["height"] = 64.into();
        }
        question
    }

    fn zoom(&mut self, view: usize, part: (f64, f64)) -> Result<()> {
        let question = self.question(VIEWS[view], part);
        let server = self.server.as_mut().context("no server")?;
        let begun = Instant::now();
        server.ask(question)?;
        self.pictures[view].push(begun.elapsed().as_secs_f64() * 1e3);
        Ok(())
    }

    fn add(&self, table: &mut Table, outcome: &mut Outcome) {
        let bytes = self.trace.bytes as f64;
        let mut row = vec![
            format!("{} M", self.millions),
            format!("{:.2}", median(&self.made)),
            format!("{:.1}", self.millions as f64 / median(&self.worked)),
            format!("{:.2}", 100.0 * self.index_bytes as f64 / bytes),
            format!("{:.2}", median(&self.begun)),
        ];
        let name = |what: &str| format!("{}, {what}", self.options.series.title(self.millions));
        outcome.raw.push((name("index s"), self.made.clone()));
        outcome
            .raw
            .push((name("index, processor s"), self.worked.clone()));
        outcome
            .raw
            .push((name("first picture s"), self.begun.clone()));
        for (view, times) in VIEWS.iter().zip(&self.pictures) {
            let (half, most) = (median(times), percentile(times, 0.99));
            row.push(format!("{half:.1} / {most:.1}"));
            outcome
                .raw
                .push((name(&format!("{view} ms")), times.clone()));
        }
        table.row(row);
    }
}

/// Parts of a run, from all of it to a millionth, each length as likely as ten times as much. The same
/// ones each time.
struct Stretches(u64);

impl Stretches {
    /// A number from 0 to 1.
    fn number(&mut self) -> f64 {
        // SplitMix64 (Steele et al. 2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn next(&mut self) -> (f64, f64) {
        let length = 10f64.powf(SHORTEST * self.number());
        let from = (1.0 - length) * self.number();
        (from, from + length)
    }
}

/// A server, which ends with this, and a conversation with it.
struct Server {
    child: Child,
    talk: TcpStream,
    asked: u64,
}

impl Drop for Server {
    fn drop(&mut self) {
        // Best effort: as Ctrl-C does.
        // SAFETY: sends a signal to a child that has not been waited for.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGINT) };
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(command: &mut Command) -> Result<Server> {
        command.stdout(Stdio::piped());
        let mut child = command.spawn().context("laggard serve")?;
        let mut line = String::new();
        let out = child.stdout.take().context("no output")?;
        BufReader::new(out).read_line(&mut line)?;
        let address = line.trim_end().strip_prefix("http://");
        let parts = address.and_then(|rest| rest.split_once('/'));
        let (authority, path) = parts.context("the server has no address")?;
        let mut talk = TcpStream::connect(authority)?;
        talk.set_nodelay(true)?;
        let request = format!(
            "GET /{path}ask HTTP/1.1\r\nHost: {authority}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        talk.write_all(request.as_bytes())?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            talk.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        ensure!(
            head.starts_with(b"HTTP/1.1 101"),
            "the server does not talk"
        );
        let asked = 0;
        Ok(Server { child, talk, asked })
    }

    /// Time that it was on a processor, s.
    fn processor_time(&self) -> Result<f64> {
        let told = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name may have blanks; user and system time are the 14th and 15th field of all.
        let fields = told
            .rsplit_once(')')
            .map(|(_, rest)| rest.split_whitespace());
        let times = fields
            .into_iter()
            .flat_map(|fields| fields.skip(11).take(2));
        let ticks: f64 = times.filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
        // SAFETY: no preconditions.
        let per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        Ok(ticks / per_s as f64)
    }

    /// The answer to a question.
    fn ask(&mut self, mut question: Value) -> Result<Value> {
        self.asked += 1;
        question["id"] = self.asked.into();
        let text = question.to_string();
        // Masked, as clients must, with zeros.
        let mut frame = vec![0x81, 0x80 | 126];
        frame.extend(u16::try_from(text.len())?.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.talk.write_all(&frame)?;
        let mut heard: Value = serde_json::from_slice(&self.hear()?)?;
        if heard["id"] != self.asked || heard["answer"].is_null() {
            bail!("{text}: {heard}");
        }
        Ok(heard["answer"].take())
    }

    /// The next text.
    fn hear(&mut self) -> Result<Vec<u8>> {
        let mut number = |bytes: usize| -> Result<u64> {
            let mut number = [0; 8];
            self.talk.read_exact(&mut number[8 - bytes..])?;
            Ok(u64::from_be_bytes(number))
        };
        ensure!(number(1)? == 0x81, "no text");
        let length = match number(1)? {
            126 => number(2)?,
            127 => number(8)?,
            short => short,
        };
        let mut text = vec![0; usize::try_from(length)?];
        self.talk.read_exact(&mut text)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_of_all_lengths() {
        let mut stretches = Stretches(1);
        let all: Vec<(f64, f64)> = (0..1000).map(|_| stretches.next()).collect();
        let shorter = |than: f64| all.iter().filter(|(a, b)| b - a < than).count();
        assert!(all.iter().all(|&(a, b)| 0.0 <= a && a < b && b <= 1.0));
        assert!((400..600).contains(&shorter(1e-3)));
        assert!((100..250).contains(&shorter(1e-5)));
    }
}
