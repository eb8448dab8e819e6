//! The time line: a Perfetto trace.

use std::ffi::OsStr;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::Result;
use laggard::events::{
    Collective, Events, Joined, Member, Message, NONE, Operation, Outcome, Wait,
};
use laggard_patterns::PatternId;
use laggard_perfetto::{Slice, TraceWriter, Track, Value};
use laggard_report::units::count;
use laggard_trace::{PEER_ANY, calls, flags};

use super::report;
use super::selection::{Drawn, Selection};
use super::target::Target;
use crate::cli::Export;

/// Tracks that are no location: their numbers are below those of locations.
const IN_FLIGHT: u64 = 1;
const WAITING: u64 = 2;
/// The track that all others are below: only there they are not sorted by name.
const RUN: u64 = 3;
/// Number of the first rank's track.
const FIRST: u64 = 16;

/// Writes the trace; says how much that is.
pub fn write(options: &Export, events: &Events) -> Result<String> {
    let report = report(options, events)?;
    let selection = Selection::new(options, &report)?;
    let drawn = selection.calls(events, options, &report)?;
    let mut links = Links::new(events, &selection, &drawn);
    events.join(&mut links)?;
    links.sort();
    let target = Target::create(&options.output)?;
    let mut line = TimeLine {
        events,
        selection: &selection,
        links: &links,
        writer: TraceWriter::new(target),
        places: events.call_paths.iter().map(|path| path.short()).collect(),
        paths: events.call_paths.iter().map(|path| path.text()).collect(),
        waits: 0,
    };
    line.tracks(&drawn)?;
    for (at, drawn) in drawn.iter().enumerate() {
        if drawn.count > 0 {
            line.location(at)?;
        }
    }
    line.counters()?;
    let waits = line.waits;
    line.writer.finish()?.finish()?;
    let calls: u64 = drawn.iter().map(|drawn| drawn.count).sum();
    Ok(format!(
        "{}: {} calls, {} waits, {} messages; open it at https://ui.perfetto.dev",
        options.output.display(),
        count(calls),
        count(waits),
        count(links.messages)
    ))
}

/// Where a message is on a time line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FlowEnd {
    /// Sent.
    From,
    /// Received, by a call that began after it was sent.
    To,
    /// Received, by a call that had begun before: a flow to that one would go back.
    Late,
}

/// What is drawn between calls and inside of them.
struct Links<'e> {
    selection: &'e Selection,
    drawn: &'e [Drawn],
    ranks: Vec<u32>,
    messages: u64,
    /// Of each location: number of a call, and the flow that begins or ends there.
    flows: Vec<Vec<(u64, u64, FlowEnd)>>,
    /// Of each location: what its calls lost, in their order.
    waits: Vec<Vec<Wait>>,
    /// Changes of the messages in flight, and of the locations that wait: time, by how many.
    in_flight: Vec<(i64, i64)>,
    waiting: Vec<(i64, i64)>,
}

impl<'e> Links<'e> {
    fn new(events: &Events, selection: &'e Selection, drawn: &'e [Drawn]) -> Links<'e> {
        let ranks = (0..events.locations()).map(|at| events.place(at).rank);
        Links {
            selection,
            drawn,
            ranks: ranks.collect(),
            messages: 0,
            flows: vec![Vec::new(); drawn.len()],
            waits: vec![Vec::new(); drawn.len()],
            in_flight: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// Calls come in the order in which they ended.
    fn sort(&mut self) {
        self.flows
            .iter_mut()
            .for_each(|flows| flows.sort_unstable());
        for waits in &mut self.waits {
            waits.sort_by_key(|wait| (wait.leave, wait.enter, wait.pattern));
        }
        self.in_flight.sort_unstable();
        self.waiting.sort_unstable();
    }

    /// Whether the call of a message's end is drawn.
    fn drawn_at(&self, location: u32, number: u64) -> bool {
        self.drawn[location as usize].has(number)
    }
}

impl Joined for Links<'_> {
    fn message(&mut self, message: &Message) -> Result<()> {
        let (Some(send), Some(receive)) = (&message.send, &message.receive) else {
            return Ok(());
        };
        let Some(done) = receive.done else {
            return Ok(());
        };
        let is_wanted =
            self.selection.has_rank(message.from) && self.selection.has_rank(message.to);
        if !is_wanted || !self.selection.has_time(send.enter, done.leave) {
            return Ok(());
        }
        self.in_flight.push((send.enter, 1));
        self.in_flight.push((done.leave.max(send.enter), -1));
        if self.drawn_at(send.location, send.number) && self.drawn_at(receive.location, done.number)
        {
            self.messages += 1;
            let flow = self.messages;
            self.flows[send.location as usize].push((send.number, flow, FlowEnd::From));
            let end = match done.enter < send.enter {
                true => FlowEnd::Late,
                false => FlowEnd::To,
            };
            self.flows[receive.location as usize].push((done.number, flow, end));
        }
        Ok(())
    }

    fn member(&mut self, _: &Member) -> Result<()> {
        Ok(())
    }

    fn collective(&mut self, _: &Collective) -> Result<()> {
        Ok(())
    }

    fn wait(&mut self, wait: &Wait) -> Result<()> {
        let rank = self.ranks[wait.location as usize];
        if self.selection.has_rank(rank) && self.selection.has_time(wait.enter, wait.leave) {
            let (begin, end) = span(wait);
            self.waiting.push((begin, 1));
            self.waiting.push((end, -1));
            self.waits[wait.location as usize].push(*wait);
        }
        Ok(())
    }
}

/// When a call waited. What is lost after all have come is at its end.
fn span(wait: &Wait) -> (i64, i64) {
    let lost = wait.lost.clamp(0, wait.leave - wait.enter);
    match PatternId::from_number(wait.pattern) {
        Some(
            PatternId::BarrierCompletion | PatternId::NxnCompletion | PatternId::InitCompletion,
        ) => (wait.leave - lost, wait.leave),
        _ => (wait.enter, wait.enter + lost),
    }
}

/// Number of a location's track.
fn track_of(location: usize) -> u64 {
    FIRST + location as u64
}

/// What is known of a call.
fn values<'e>(events: &'e Events, operation: &Operation) -> Vec<(&'static str, Value<'e>)> {
    let mut values = Vec::with_capacity(12);
    let mut number = |name, value: i64| values.push((name, Value::Number(value)));
    let is_collective = operation.has(flags::COLLECTIVE);
    for (end, peer, tag, bytes) in [
        (operation.send, "to rank", "to tag", "bytes sent"),
        (operation.receive, "from rank", "from tag", "bytes received"),
    ] {
        if end.peer >= PEER_ANY && !is_collective {
            number(peer, i64::from(end.peer));
            number(tag, i64::from(end.tag));
        }
        if end.bytes > 0 {
            number(bytes, i64::try_from(end.bytes).unwrap_or(i64::MAX));
        }
    }
    if let Some(root) = operation.root {
        number("root", i64::from(root));
    }
    if operation.calls > 1 {
        number("calls", i64::from(operation.calls));
    }
    if operation.group != NONE {
        let label = &events.groups[operation.group as usize].label;
        values.push(("communicator", Value::Text(label)));
    }
    match operation.outcome {
        Outcome::Done => {}
        Outcome::Failed => values.push(("outcome", Value::Text("failed"))),
        Outcome::FoundNothing => values.push(("outcome", Value::Text("found nothing"))),
    }
    values
}

/// The trace that is being written.
struct TimeLine<'e, W: Write> {
    events: &'e Events,
    selection: &'e Selection,
    links: &'e Links<'e>,
    writer: TraceWriter<W>,
    /// Lines of the program by call path, and whole call paths.
    places: Vec<String>,
    paths: Vec<String>,
    waits: u64,
}

impl<W: Write> TimeLine<'_, W> {
    /// Makes all tracks known, ranks in order.
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
        // Of each rank the first thread that has something to draw is on the rank's own track,
        // the others below it.
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
                (None, 0) => (format!("rank {}", place.rank), place.rank),
                (None, thread) => (format!("rank {}, thread {thread}", place.rank), place.rank),
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
        let (events, selection, links) = (self.events, self.selection, self.links);
        let mut cursor = Cursor {
            flows: &links.flows[at],
            waits: &links.waits[at],
        };
        let mut result = Ok(());
        events.operations(at).read(|operation| {
            if !selection.has_call(operation) {
                // They end in the order of time, so nothing comes any more.
                return match operation.enter >= selection.until {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                };
            }
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
        let flows = cursor.flows(operation.number);
        let mut values = values(self.events, operation);
        let path = operation.call_path as usize;
        if path != 0 {
            values.push(("where", Value::Text(&self.places[path])));
            values.push(("call path", Value::Text(&self.paths[path])));
        }
        self.writer.begin(&Slice {
            track,
            begin: operation.enter,
            name: operation.name(),
            category: operation.call.map_or("unknown", |call| call.generic.name()),
            values: &values,
            flows_from: &flows(FlowEnd::From),
            flows_to: &flows(FlowEnd::To),
            colour: None,
        })?;
        let waits = cursor.waits(operation.enter, operation.leave);
        let mut free = operation.enter;
        for wait in waits {
            free = self.wait(track, wait, free)?;
        }
        let late = flows(FlowEnd::Late);
        if !late.is_empty() {
            self.writer.instant(&Slice {
                track,
                begin: operation.leave,
                name: "received",
                category: "message",
                values: &[],
                flows_from: &[],
                flows_to: &late,
                colour: None,
            })?;
        }
        Ok(self.writer.end(track, operation.leave)?)
    }

    /// Draws what a call lost, after `free`; when that ended.
    fn wait(&mut self, track: u64, wait: &Wait, free: i64) -> Result<i64> {
        let (begin, end) = span(wait);
        let (begin, end) = (begin.max(free), end.max(free));
        let pattern = PatternId::from_number(wait.pattern);
        let pattern = pattern.map_or("waiting", PatternId::name);
        let mut values = vec![("lost (ns)", Value::Number(wait.lost))];
        let mut name = pattern.to_owned();
        if let Some((rank, call, path)) = wait.cause {
            let place = &self.places[path as usize];
            values.push(("late rank", Value::Number(i64::from(rank))));
            values.push(("late call", Value::Text(calls::name(call))));
            values.push(("late where", Value::Text(place)));
            name = format!("{pattern}: rank {rank} in {} {place}", calls::name(call));
        }
        self.writer.begin(&Slice {
            track,
            begin,
            name: name.trim_end(),
            category: "wait",
            values: &values,
            flows_from: &[],
            flows_to: &[],
            colour: Some(colour(wait)),
        })?;
        self.writer.end(track, end)?;
        self.waits += 1;
        Ok(end)
    }

    /// Draws the counters.
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

/// Waits of one pattern because of one call of the program have one colour.
fn colour(wait: &Wait) -> u64 {
    let cause = wait.cause.map_or(0, |(_, _, path)| u64::from(path) + 1);
    u64::from(wait.pattern) << 32 | cause
}

/// What belongs to the calls of a location that are still to come.
struct Cursor<'l> {
    flows: &'l [(u64, u64, FlowEnd)],
    waits: &'l [Wait],
}

impl<'l> Cursor<'l> {
    /// The messages that a call, or the parts that it is made of, sent and received.
    fn flows(&mut self, number: u64) -> impl Fn(FlowEnd) -> Vec<u64> + use<'l> {
        let here = self.flows.partition_point(|flow| flow.0 <= number);
        let (here, rest) = self.flows.split_at(here);
        self.flows = rest;
        move |end| {
            let here = here.iter().filter(|flow| flow.2 == end);
            here.map(|flow| flow.1).collect()
        }
    }

    /// What a call lost, in the order of time.
    fn waits(&mut self, enter: i64, leave: i64) -> Vec<&'l Wait> {
        let key = |wait: &Wait| (wait.leave, wait.enter);
        let skip = self
            .waits
            .partition_point(|wait| key(wait) < (leave, enter));
        self.waits = &self.waits[skip..];
        let here = self
            .waits
            .partition_point(|wait| key(wait) == (leave, enter));
        let (here, rest) = self.waits.split_at(here);
        self.waits = rest;
        let mut here: Vec<&Wait> = here.iter().collect();
        here.sort_by_key(|wait| span(wait).0);
        here
    }
}
