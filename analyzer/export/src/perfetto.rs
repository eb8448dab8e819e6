//! The time line: a Perfetto trace.

mod between;
mod chains;
mod links;
mod path;
mod waiting;

use std::ffi::OsStr;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::Result;
use between::Between;
use chains::Cause;
use laggard_engine::events::{Among, Events, InRegion, NONE, Operation, Outcome, UNNAMED};
use laggard_perfetto::{Kind, Prepared, Slice, TraceWriter, Track, Value, ValueName};
use laggard_report::Report;
use laggard_report::units::{count, plural};
use laggard_trace::calls::Call;
use laggard_trace::{Endpoint, PEER_ANY, flags};
use links::{Cursor, Links};
use path::DrawnPath;
use rustc_hash::FxHashMap;
use waiting::LossKind;

use super::roots::Roots;
use super::selection::{Choice, Drawn, Selection};
use super::target::Target;

/// Most kinds of slices that are kept.
const MOST_KINDS: usize = 1 << 16;
/// Tracks other than locations: their numbers are below those of locations.
const IN_FLIGHT: u64 = 1;
const WAITING: u64 = 2;
/// The parent of all other tracks: only below a parent are they not sorted by name.
const RUN: u64 = 3;
const PATH: u64 = 4;
/// Number of the first rank's track.
const FIRST: u64 = 16;

/// Writes the trace; returns a summary.
///
/// # Errors
/// The selection is empty, or too much for a browser; or the file exists, or cannot be written.
pub fn perfetto(
    events: &Events,
    report: &Report,
    choice: &Choice,
    output: &Path,
) -> Result<String> {
    let selection = Selection::new(choice, report)?;
    let drawn = selection.calls(events, choice, report)?;
    let mut links = Links::new(events, &selection, &drawn);
    events.join(&mut links)?;
    links.sort();
    let path = std::mem::take(&mut links.critical).path(events)?;
    let path = DrawnPath::new(path, events, &selection, || links.flow());
    let roots = Roots::new(events, report);
    let mut causes = chains::causes(events, &roots, &selection, &drawn);
    links.find_roots(&mut causes);
    let mut writer = TraceWriter::new(Target::create(output)?)?;
    let received = Kind {
        name: "received",
        category: "message",
        values: &[],
        colour: None,
    };
    let started = Kind {
        name: "started",
        category: "start",
        values: &[],
        colour: None,
    };
    let mut line = TimeLine {
        kinds: vec![None; roots.all.len()],
        causes: &causes,
        roots: &roots,
        events,
        selection: &selection,
        links: &links,
        path,
        names: (0..events.locations()).map(|at| name(events, at)).collect(),
        received: writer.prepare(&received)?,
        started: writer.prepare(&started)?,
        lost: writer.value_name("lost (ns)")?,
        writer,
        calls: FxHashMap::default(),
        losses: FxHashMap::default(),
        places: events.call_paths.iter().map(|path| path.short()).collect(),
        paths: events.call_paths.iter().map(|path| path.text()).collect(),
        waits: 0,
        between: Between::default(),
    };
    line.tracks(&drawn)?;
    for (at, drawn) in drawn.iter().enumerate() {
        if drawn.count > 0 {
            line.location(at)?;
        }
    }
    line.critical_path()?;
    line.counters()?;
    let waits = line.waits;
    line.writer.finish()?.finish()?;
    let calls: u64 = drawn.iter().map(|drawn| drawn.calls).sum();
    Ok(format!(
        "{}: {}, {}, {}; open it at https://ui.perfetto.dev",
        output.display(),
        plural(calls, "call"),
        plural(waits, "wait"),
        plural(links.messages, "message")
    ))
}

fn track_of(location: usize) -> u64 {
    FIRST + location as u64
}

/// `rank 3`; of further threads `rank 3, thread 1`.
fn name(events: &Events, location: usize) -> String {
    let place = events.place(location);
    match place.thread {
        0 => format!("rank {}", place.rank),
        thread => format!("rank {}, thread {thread}", place.rank),
    }
}

/// Details of a call.
fn values<'e>(events: &'e Events, operation: &Operation) -> Vec<(&'static str, Value<'e>)> {
    let mut values = Vec::with_capacity(12);
    let mut number = |name, value: i64| values.push((name, Value::Number(value)));
    let is_collective = operation.has(flags::COLLECTIVE);
    for (end, peer, tag, bytes) in [
        (operation.send(), "to rank", "to tag", "bytes sent"),
        (
            operation.receive(),
            "from rank",
            "from tag",
            "bytes received",
        ),
    ] {
        if end.peer >= PEER_ANY && !is_collective {
            number(peer, i64::from(end.peer));
            number(tag, i64::from(end.tag));
        }
        if end.bytes > 0 {
            number(bytes, i64::try_from(end.bytes).unwrap_or(i64::MAX));
        }
    }
    if let Some(root) = operation.root() {
        number("root", i64::from(root));
    }
    if operation.calls > 1 {
        number("calls", i64::from(operation.calls));
    }
    if operation.group != NONE {
        let label = &events.groups[operation.group as usize].label;
        values.push(("communicator", Value::Text(label)));
    }
    if let Some(among) = operation.among() {
        for (name, number) in [
            ("team", among.team.and_then(|team| i64::try_from(team).ok())),
            ("threads", among.threads.map(i64::from)),
            ("member", among.member.map(i64::from)),
            ("meeting", among.meeting.map(i64::from)),
        ] {
            values.extend(number.map(|number| (name, Value::Number(number))));
        }
        if among.timed_out {
            values.push(("outcome", Value::Text("timed out")));
        }
    }
    match operation.outcome {
        Outcome::Done => {}
        Outcome::Failed => values.push(("outcome", Value::Text("failed"))),
        Outcome::FoundNothing => values.push(("outcome", Value::Text("found nothing"))),
    }
    values
}

/// Identifies calls of one location that differ in times and messages only. All calls with the same
/// signature are alike, unless one has more recorded.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Alike {
    signature: u32,
    ends: [Endpoint; 2],
    root: Option<u32>,
    calls: u32,
    among: Option<Among>,
    /// The parallel region around it, whichever team has it.
    region: Option<InRegion>,
}

impl Alike {
    fn new(operation: &Operation) -> Alike {
        Alike {
            signature: operation.signature.id,
            ends: [operation.send(), operation.receive()],
            root: operation.root(),
            calls: operation.calls,
            among: operation.among(),
            region: operation
                .region
                .map(|region| InRegion { team: 0, ..region }),
        }
    }
}

/// The trace in the making.
struct TimeLine<'e, W> {
    events: &'e Events,
    selection: &'e Selection,
    links: &'e Links<'e>,
    path: DrawnPath,
    /// Names of locations.
    names: Vec<String>,
    writer: TraceWriter<W>,
    /// Messages received too late for an arrow.
    received: Prepared,
    /// Waits that began before their root cause.
    started: Prepared,
    /// Name of a loss's value.
    lost: ValueName,
    /// Kinds of calls of the current location.
    calls: FxHashMap<Alike, Prepared>,
    /// Kinds of losses, by pattern and cause.
    losses: FxHashMap<LossKind, Prepared>,
    /// The report's root causes.
    roots: &'e Roots<'e>,
    /// Kinds of slices by root cause.
    kinds: Vec<Option<Prepared>>,
    /// By location: root causes.
    causes: &'e [Vec<Cause>],
    /// Lines of the program by call path, and whole call paths.
    places: Vec<String>,
    paths: Vec<String>,
    waits: u64,
    between: Between,
}

impl<W: Write + Send + 'static> TimeLine<'_, W> {
    /// Defines all tracks, ranks in order.
    fn tracks(&mut self, drawn: &[Drawn]) -> Result<()> {
        let counters = [
            (IN_FLIGHT, "messages in flight", "sent and not received"),
            (WAITING, "threads waiting", "in calls that wait for others"),
        ];
        let program = self.events.program().first();
        let program = program.and_then(|path| Path::new(path).file_name());
        let program = program.unwrap_or(OsStr::new("run")).to_string_lossy();
        let ranks = count(u64::from(self.events.ranks()));
        self.writer.track(&Track {
            uuid: RUN,
            parent: None,
            name: &format!("{program} on {ranks} ranks"),
            description: "",
            order: 0,
        })?;
        for (uuid, name, description) in counters {
            self.writer.counter_track(&Track {
                uuid,
                parent: Some(RUN),
                name,
                description,
                order: uuid as i32,
            })?;
        }
        // The first thread of a rank that has something to draw is on the rank's own track, the
        // others below it.
        let mut of_rank: Option<(u32, u64)> = None;
        for (at, _) in drawn
            .iter()
            .enumerate()
            .filter(|(_, drawn)| drawn.count > 0)
        {
            let place = self.events.place(at);
            let above = of_rank.filter(|(rank, _)| *rank == place.rank);
            let (name, order) = match (above, place.thread) {
                (Some(_), thread) => (format!("thread {thread}"), thread),
                (None, _) => (self.names[at].clone(), place.rank),
            };
            self.writer.track(&Track {
                uuid: track_of(at),
                parent: Some(above.map_or(RUN, |(_, uuid)| uuid)),
                name: &name,
                description: &format!("{}, process {}", place.host, place.pid),
                order: (FIRST as i32).saturating_add(order as i32),
            })?;
            of_rank = above.or(Some((place.rank, track_of(at))));
        }
        Ok(())
    }

    /// Draws the calls of a location.
    fn location(&mut self, at: usize) -> Result<()> {
        let (events, selection) = (self.events, self.selection);
        let mut cursor = Cursor::new(self.links, at);
        // Signatures have other numbers at each location.
        self.calls.clear();
        let mut result = Ok(());
        // When the call before returned.
        let mut since: Option<i64> = None;
        self.begin_between(at);
        let mut on_path = self.path.follow(at);
        self.root_causes(at)?;
        events.operations(at).read(|operation| {
            let before = since.unwrap_or(operation.enter);
            since = Some(before.max(operation.leave));
            if selection.has_time(before, operation.enter) {
                result = self.stretch(at, operation, before);
            }
            if result.is_err() {
                return ControlFlow::Break(());
            }
            if !selection.has_call(operation) {
                // Calls are in the order of their ends, so none follows.
                return match operation.enter >= selection.until {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                };
            }
            cursor.find_flows(operation.number);
            cursor.to.extend(self.path.arrive(&mut on_path, operation));
            result = self.call(at, operation, &mut cursor);
            match result {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        result
    }

    fn call(&mut self, at: usize, operation: &Operation, cursor: &mut Cursor) -> Result<()> {
        let track = track_of(at);
        let alike = Alike::new(operation);
        if !self.calls.contains_key(&alike) {
            self.prepare_call(alike, operation)?;
        }
        self.writer.begin(&Slice {
            track,
            begin: operation.enter,
            kind: &self.calls[&alike],
            number: None,
            flows_from: &cursor.from,
            flows_to: &cursor.to,
        })?;
        let mut free = operation.enter;
        // Losses of calls in a region are drawn in these calls.
        let is_region = operation.call.is_some_and(Call::is_user);
        let waits = match is_region {
            true => Vec::new(),
            false => cursor.waits(operation.enter, operation.leave),
        };
        for loss in waits {
            free = self.wait(track, loss, free)?;
        }
        if !cursor.late.is_empty() {
            self.writer.instant(&Slice {
                track,
                begin: operation.leave,
                kind: &self.received,
                number: None,
                flows_from: &[],
                flows_to: &cursor.late,
            })?;
        }
        Ok(self.writer.end(track, operation.leave)?)
    }

    /// Prepares the details of calls that are all alike.
    fn prepare_call(&mut self, alike: Alike, operation: &Operation) -> Result<()> {
        let mut values = values(self.events, operation);
        let object = alike.among.and_then(|among| among.object);
        let object = object.map(|object| match object {
            UNNAMED => "unnamed".to_owned(),
            object => format!("{object:#x}"),
        });
        values.extend(object.as_deref().map(|text| ("of", Value::Text(text))));
        let path = operation.call_path as usize;
        if path != 0 {
            values.push(("where", Value::Text(&self.places[path])));
            values.push(("call path", Value::Text(&self.paths[path])));
        }
        let member = alike
            .region
            .map(|region| format!("{} of {}", region.member, region.threads));
        if let (Some(region), Some(member)) = (alike.region, &member) {
            let begin = &self.places[region.call_path as usize];
            values.push(("in parallel region", Value::Text(begin)));
            values.push(("thread of team", Value::Text(member)));
        }
        let kind = self.writer.prepare(&Kind {
            name: operation.name(),
            category: operation.call.map_or("unknown", |call| call.generic.name()),
            values: &values,
            colour: None,
        })?;
        if self.calls.len() >= MOST_KINDS {
            self.calls.clear();
        }
        self.calls.insert(alike, kind);
        Ok(())
    }

    fn counters(&mut self) -> Result<()> {
        let links = self.links;
        for (track, changes) in [(IN_FLIGHT, &links.in_flight), (WAITING, &links.waiting)] {
            let mut value = 0;
            for at_once in changes.chunk_by(|a, b| a.0 == b.0) {
                value += at_once.iter().map(|change| change.1).sum::<i64>();
                self.writer.count(track, at_once[0].0, value)?;
            }
        }
        Ok(())
    }
}
