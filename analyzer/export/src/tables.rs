//! Tables in Parquet or Arrow, with all data of a trace.

mod found;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::Result;
use laggard_engine::events::{Events, Operation, Operations, Outcome, RegionKind};
use laggard_patterns::PatternId;
use laggard_report::Report;
use laggard_report::units::plural;
use laggard_tables::trace::{
    CallPathRow, CounterRow, Dictionaries, Encoded, Encoder, Format, GroupRow, Key, LocationRow,
    OperationRow, ProfileRow, RegionRow, Rows, SampleRow, StretchRow, Table, Tables, ThreadRow,
};
use laggard_trace::PEER_ANY;
use laggard_trace::calls::{self, Call, GenericType, user};
use rayon::prelude::*;

use super::joined::JoinedTables;
use super::keys::{call_key, group_key};
use super::roots::Roots;

/// Locations read at the same time. Not the number of threads, so that files are the same for any
/// number of them.
const LANES: usize = 8;

/// Texts, in the order of their keys.
const OUTCOMES: [&str; 3] = ["done", "failed", "nothing"];
const KINDS: [&str; 4] = ["communicator", "intercommunicator", "window", "file"];

/// Writes all tables; returns a summary.
///
/// # Errors
/// The directory exists, or cannot be written.
pub fn tables(events: &Events, report: &Report, format: Format, output: &Path) -> Result<String> {
    let tables = Tables::create(output, format, &metadata(events), dictionaries(events))?;
    definitions(&tables, events)?;
    let roots = Roots::new(events, report);
    found::findings(&tables, report)?;
    found::root_causes(&tables, &roots)?;
    found::critical_path(&tables, report)?;
    profile(&tables, events)?;
    regions(&tables, events)?;
    let join = || {
        let mut joined = JoinedTables::new(&tables, events, &roots)?;
        events.join(&mut joined)?;
        joined.finish()
    };
    let (counts, messages) = rayon::join(|| operations(&tables, events), join);
    let (counts, messages) = (counts?, messages?);
    locations(&tables, events, &counts)?;
    tables.finish()?;
    let sum = |of: fn(&Count) -> u64| counts.iter().map(of).sum::<u64>();
    let (calls, rows) = (sum(|count| count.calls), sum(|count| count.rows));
    // Regions and the requests of a call have rows of their own; several calls may share one.
    let rows = match rows == calls {
        true => String::new(),
        false => format!(" in {}", plural(rows, "row")),
    };
    Ok(format!(
        "{}: {}{rows}, {}",
        output.display(),
        plural(calls, "call"),
        plural(messages, "message")
    ))
}

fn metadata(events: &Events) -> Vec<(&'static str, String)> {
    let hex = |bytes: [u8; 16]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
    let program = events.program();
    vec![
        ("run_id", hex(events.run_id())),
        ("program", program.first().cloned().unwrap_or_default()),
        ("arguments", program.get(1..).unwrap_or_default().join(" ")),
        ("ranks", events.ranks().to_string()),
    ]
}

/// Calls are keys by their position in the table of calls. Then come a key for unknown calls, and
/// the regions of the program.
fn dictionaries(events: &Events) -> Dictionaries {
    let mut texts = Dictionaries::default();
    let names = calls::CALLS.iter().map(|call| call.name);
    texts.add(
        &["call", "send_call", "receive_call", "cause_call"],
        names.chain([calls::name(0)]).chain(user::names()),
    );
    let types = GenericType::ALL.into_iter().map(GenericType::name);
    texts.add(&["type"], types.chain(["unknown"]));
    texts.add(&["outcome"], OUTCOMES);
    texts.add(&["counter"], counters(events));
    texts.add(&["kind"], KINDS);
    texts.add(&["region_kind"], RegionKind::ALL.map(RegionKind::name));
    texts.add(
        &["communicator"],
        events.groups.iter().map(|group| &group.label),
    );
    texts.add(&["pattern"], PatternId::ALL.iter().map(|id| id.id()));
    texts
}

/// Names of all counters.
fn counters(events: &Events) -> BTreeSet<String> {
    let all = 0..events.locations();
    all.flat_map(|at| events.counters(at)).collect()
}

fn type_key(call: Option<&'static Call>) -> Key {
    Key(call.map_or(GenericType::ALL.len(), |call| call.generic as usize) as u32)
}

fn known(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn known_line(line: u32) -> Option<u32> {
    (line > 0).then_some(line)
}

/// Call paths and communicators.
fn definitions(tables: &Tables, events: &Events) -> Result<()> {
    let (mut table, mut rows) = (tables.table::<CallPathRow>()?, Rows::default());
    for (number, path) in (0..).zip(&events.call_paths) {
        let place = &path.place;
        rows.push(CallPathRow {
            call_path: number,
            file: known(&place.file),
            line: known_line(place.line),
            function: known(&place.function),
            frames: known(&path.text()),
            depth: place.callpath.len() as u32,
        });
        rows.flush(&mut table, false)?;
    }
    rows.flush(&mut table, true)?;
    table.finish()?;
    let (mut table, mut rows) = (tables.table::<GroupRow>()?, Rows::default());
    for (number, group) in (0..).zip(&events.groups) {
        rows.push(GroupRow {
            communicator: Key(number),
            kind: Key(group.kind as u32),
            id: format!("{:x}", group.id),
            size: known_line(group.size),
            parent: (group.parent != 0).then(|| format!("{:x}", group.parent)),
        });
        rows.flush(&mut table, false)?;
    }
    rows.flush(&mut table, true)?;
    table.finish()?;
    Ok(())
}

/// Counts of a location's rows.
#[derive(Clone, Copy, Default)]
struct Count {
    rows: u64,
    calls: u64,
}

/// A location that is being read.
struct Lane<'e> {
    at: usize,
    rank: u32,
    thread: u32,
    operations: Operations<'e>,
    rows: Rows<OperationRow>,
    between: Between,
    count: Count,
    has_more: bool,
}

/// What is told of the times between calls, and of waits among threads.
#[derive(Default)]
struct Between {
    /// Keys of the location's counters.
    keys: Vec<Key>,
    stretches: Rows<StretchRow>,
    counters: Rows<CounterRow>,
    samples: Rows<SampleRow>,
    threads: Rows<ThreadRow>,
}

impl Between {
    fn push(
        &mut self,
        events: &Events,
        (at, rank, thread): (usize, u32, u32),
        operation: &Operation,
    ) {
        let number = operation.number;
        let counted = events.counted(at, operation);
        let [blocked_ns, preempted_ns, kernel_ns] = operation.beside();
        let [minor_faults, major_faults] = operation.faults();
        let [inside_blocked_ns, inside_preempted_ns, inside_kernel_ns] = operation.off();
        let [inside_minor_faults, inside_major_faults] = operation.faults_inside();
        let times = [operation.beside(), operation.off()];
        let faults = [operation.faults(), operation.faults_inside()];
        if counted.is_some() || times != [[0; 3]; 2] || faults != [[0; 2]; 2] {
            self.stretches.push(StretchRow {
                rank,
                thread,
                number,
                blocked_ns,
                preempted_ns,
                kernel_ns,
                minor_faults,
                major_faults,
                counted_ns: counted.map(|(_, time)| time),
                inside_blocked_ns,
                inside_preempted_ns,
                inside_kernel_ns,
                inside_minor_faults,
                inside_major_faults,
            });
        }
        for (at, count) in counted.iter().flat_map(|(counts, _)| counts.iter()) {
            if let Some(&counter) = self.keys.get(at) {
                self.counters.push(CounterRow {
                    rank,
                    thread,
                    number,
                    counter,
                    count,
                });
            }
        }
        if let Some(among) = operation.among() {
            self.threads.push(ThreadRow {
                rank,
                thread,
                number,
                team: among.team,
                threads: among.threads,
                member: among.member,
                meeting: among.meeting,
                object: among.object.map(|object| format!("{object:x}")),
                timed_out: among.timed_out,
            });
        }
        for (call_path, time_ns) in events.moments(at, operation) {
            self.samples.push(SampleRow {
                rank,
                thread,
                number,
                time_ns,
                call_path,
            });
        }
    }
}

impl<'e> Lane<'e> {
    fn new(events: &'e Events, at: usize) -> Lane<'e> {
        let place = events.place(at);
        Lane {
            at,
            rank: place.rank,
            thread: place.thread,
            operations: events.operations(at),
            rows: Rows::default(),
            between: Between {
                keys: keys(events, at),
                ..Between::default()
            },
            count: Count::default(),
            has_more: true,
        }
    }

    /// Reads and encodes the next row group.
    fn next(&mut self, events: &Events, encoder: &Encoder) -> Result<Option<Encoded>> {
        let (at, rank, thread) = (self.at, self.rank, self.thread);
        let (rows, count, between) = (&mut self.rows, &mut self.count, &mut self.between);
        self.has_more = self.operations.read(|operation| {
            between.push(events, (at, rank, thread), operation);
            rows.push(operation_row(rank, thread, operation));
            count.rows += 1;
            count.calls += u64::from(operation.calls);
            match rows.is_full() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        Ok(encoder.encode(rows)?)
    }
}

/// The keys of a location's counters.
fn keys(events: &Events, at: usize) -> Vec<Key> {
    let all: Vec<String> = counters(events).into_iter().collect();
    let names = events.counters(at).into_iter();
    let key = |name: String| Key(all.binary_search(&name).unwrap_or(0) as u32);
    names.map(key).collect()
}

/// The tables of [`Between`].
struct BetweenTables {
    stretches: Table,
    counters: Table,
    samples: Table,
    threads: Table,
}

impl BetweenTables {
    fn new(tables: &Tables) -> Result<BetweenTables> {
        Ok(BetweenTables {
            stretches: tables.table::<StretchRow>()?,
            counters: tables.table::<CounterRow>()?,
            samples: tables.table::<SampleRow>()?,
            threads: tables.table::<ThreadRow>()?,
        })
    }

    /// Writes the rows of a location if there are enough, or at its `end`.
    fn write(&mut self, rows: &mut Between, end: bool) -> Result<()> {
        rows.stretches.flush(&mut self.stretches, end)?;
        rows.counters.flush(&mut self.counters, end)?;
        rows.samples.flush(&mut self.samples, end)?;
        Ok(rows.threads.flush(&mut self.threads, end)?)
    }

    fn finish(self) -> Result<()> {
        for table in [self.stretches, self.counters, self.samples, self.threads] {
            table.finish()?;
        }
        Ok(())
    }
}

/// The calls of all locations, some locations at a time; a row group holds one location.
fn operations(tables: &Tables, events: &Events) -> Result<Vec<Count>> {
    let mut table = tables.table::<OperationRow>()?;
    let mut between = BetweenTables::new(tables)?;
    let encoder = table.encoder();
    let mut counts = vec![Count::default(); events.locations()];
    let mut waiting = 0..events.locations();
    let mut lanes: Vec<Lane> = Vec::new();
    loop {
        let free = LANES - lanes.len();
        lanes.extend(waiting.by_ref().take(free).map(|at| Lane::new(events, at)));
        if lanes.is_empty() {
            break;
        }
        let encoded: Vec<_> = lanes
            .par_iter_mut()
            .map(|lane| lane.next(events, &encoder))
            .collect();
        for encoded in encoded {
            if let Some(encoded) = encoded? {
                table.write(encoded)?;
            }
        }
        for lane in &mut lanes {
            counts[lane.at] = lane.count;
            between.write(&mut lane.between, !lane.has_more)?;
        }
        lanes.retain(|lane| lane.has_more);
    }
    table.finish()?;
    between.finish()?;
    Ok(counts)
}

fn operation_row(rank: u32, thread: u32, operation: &Operation) -> OperationRow {
    // No process is no peer; any process is a value of its own; other ranks are outside the run.
    let peer = |peer: i32| (peer >= PEER_ANY).then_some(peer);
    let tag = |peer: i32, tag: i32| (peer >= PEER_ANY).then_some(tag);
    let (send, receive) = (operation.send(), operation.receive());
    OperationRow {
        rank,
        thread,
        number: operation.number,
        call: call_key(operation.signature.operation),
        type_: type_key(operation.call),
        enter_ns: operation.enter,
        leave_ns: operation.leave,
        inside_ns: operation.inside,
        calls: operation.calls,
        outcome: Key(match operation.outcome {
            Outcome::Done => 0,
            Outcome::Failed => 1,
            Outcome::FoundNothing => 2,
        }),
        communicator: group_key(operation.group),
        to_rank: peer(send.peer),
        to_tag: tag(send.peer, send.tag),
        bytes_sent: send.bytes,
        from_rank: peer(receive.peer),
        from_tag: tag(receive.peer, receive.tag),
        bytes_received: receive.bytes,
        root: operation.root(),
        call_path: operation.call_path,
        team: operation.region.map(|region| region.team),
        team_threads: operation.region.map(|region| region.threads),
        team_member: operation.region.map(|region| region.member),
        region_call_path: operation.region.map(|region| region.call_path),
    }
}

fn locations(tables: &Tables, events: &Events, counts: &[Count]) -> Result<()> {
    let (mut table, mut rows) = (tables.table::<LocationRow>()?, Rows::default());
    for (at, count) in counts.iter().enumerate() {
        let place = events.place(at);
        rows.push(LocationRow {
            rank: place.rank,
            thread: place.thread,
            host: place.host.to_owned(),
            pid: place.pid,
            first_ns: place.first_ns,
            last_ns: place.last_ns,
            operations: count.rows,
            calls: count.calls,
            complete: place.is_complete,
        });
        rows.flush(&mut table, false)?;
    }
    rows.flush(&mut table, true)?;
    table.finish()?;
    Ok(())
}

fn profile(tables: &Tables, events: &Events) -> Result<()> {
    let (mut table, mut rows) = (tables.table::<ProfileRow>()?, Rows::default());
    for at in 0..events.locations() {
        let place = events.place(at);
        for entry in events.profile(at) {
            let call = calls::call(entry.call);
            rows.push(ProfileRow {
                rank: place.rank,
                thread: place.thread,
                call: call_key(entry.call),
                type_: type_key(call),
                call_path: entry.call_path,
                calls: entry.count,
                total_ns: entry.total_ns,
                minimum_ns: entry.minimum_ns,
                maximum_ns: entry.maximum_ns,
                bytes: entry.bytes,
            });
            rows.flush(&mut table, false)?;
        }
    }
    rows.flush(&mut table, true)?;
    table.finish()?;
    Ok(())
}

fn regions(tables: &Tables, events: &Events) -> Result<()> {
    let (mut table, mut rows) = (tables.table::<RegionRow>()?, Rows::default());
    for at in 0..events.locations() {
        let place = events.place(at);
        for region in events.regions(at) {
            rows.push(RegionRow {
                rank: place.rank,
                thread: place.thread,
                region: region.name.to_owned(),
                region_kind: Key(region.kind as u32),
                call_path: region.call_path,
                calls: region.count,
                untimed_calls: region.untimed,
                inclusive_ns: region.inclusive_ns,
                exclusive_ns: region.exclusive_ns,
                minimum_ns: region.minimum_ns,
                maximum_ns: region.maximum_ns,
                unended: region.unended,
                unbegun: region.unbegun,
            });
            rows.flush(&mut table, false)?;
        }
    }
    rows.flush(&mut table, true)?;
    table.finish()?;
    Ok(())
}
