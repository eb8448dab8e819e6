//! What agents tell each other of their locations, and what all know after that.

use std::collections::{BTreeMap, BTreeSet};

use laggard_trace::{Chunk, Decoder, Location};
use serde::{Deserialize, Serialize};

use crate::clock::{self, ClockEvidence, ClockKey};
use crate::input::bounds::Bounds;
use crate::input::crowd::{self, Room};
use crate::input::files::Failure;
use crate::input::profile::saturating_sum;

/// Facts of a location that are read at once.
pub struct LocationInfo {
    pub rank: u32,
    /// Size of the world.
    pub ranks: u32,
    pub run_id: [u8; 16],
    /// File name, for messages.
    pub file: String,
    /// Host name; empty unless this is a rank's first thread.
    pub host: String,
    pub clock: ClockEvidence,
    pub bounds: Bounds,
    /// Bytes of the file.
    pub size: u64,
    /// Whether the end of the trace is missing.
    pub truncated: bool,
    /// Records in the file, extensions included.
    pub records: u64,
    /// Calls in its profile.
    pub calls: u64,
}

/// The message of an agent to all others. It grows with the different values, not with the ranks.
#[derive(Default, Serialize, Deserialize)]
pub struct Told {
    /// Runs of successive, equal ranks at this agent: the first, their number, position of their
    /// clock in `spans`, whether their traces are cut off.
    pub ranks: Vec<(u32, u32, u32, bool)>,
    /// Clocks, with the first enter and last leave of their locations, ticks.
    pub spans: Vec<(ClockKey, (u64, u64))>,
    /// Clock evidence, in rank order.
    pub evidence: Vec<ClockEvidence>,
    pub hosts: Vec<(u64, String)>,
    /// The first file of each run and world size: there should be one.
    pub runs: Vec<([u8; 16], u32, String)>,
    /// Program and arguments, from the first location.
    pub program: Vec<String>,
    /// MPI library, from the first location that knows it.
    pub mpi_library: Option<String>,
    /// The MPI library's device, and its settings, from the first location.
    pub mpi_device: String,
    pub settings: Vec<String>,
    /// Creation time of the first location's file, ms of Unix time; 0 if unknown.
    pub began_unix_ms: u64,
    /// Models of processors, ascending.
    pub processors: Vec<String>,
    /// Processors of the ranks of each host.
    pub rooms: BTreeMap<u64, Room>,
    pub locations: u64,
    /// Locations with a profile but no events.
    pub silent: u64,
    pub bytes: u64,
    /// Unusable files.
    pub failures: Vec<Failure>,
}

/// The message about this agent's locations.
pub fn tell(locations: &[Location], infos: &[LocationInfo]) -> Told {
    let mut spans: BTreeMap<ClockKey, (u64, u64)> = BTreeMap::new();
    let mut hosts: BTreeMap<u64, String> = BTreeMap::new();
    let mut runs: Vec<([u8; 16], u32, String)> = Vec::new();
    for info in infos {
        let own = info.bounds.span;
        let span = spans.entry(info.clock.key()).or_insert(own);
        *span = (span.0.min(own.0), span.1.max(own.1));
        if !info.host.is_empty() {
            // Only a rank's first thread has it.
            let name = hosts.entry(info.clock.host);
            name.or_insert_with(|| info.host.clone());
        }
        if !runs
            .iter()
            .any(|run| (run.0, run.1) == (info.run_id, info.ranks))
        {
            runs.push((info.run_id, info.ranks, info.file.clone()));
        }
    }
    let spans: Vec<(ClockKey, (u64, u64))> = spans.into_iter().collect();
    let mut ranks: Vec<(u32, u32, u32, bool)> = Vec::new();
    for threads in infos.chunk_by(|a, b| a.rank == b.rank) {
        let (rank, key) = (threads[0].rank, threads[0].clock.key());
        let clock = spans.partition_point(|(other, _)| *other < key) as u32;
        let truncated = threads.iter().any(|info| info.truncated);
        match ranks.last_mut() {
            Some((first, count, of, cut))
                if first.checked_add(*count) == Some(rank) && (*of, *cut) == (clock, truncated) =>
            {
                *count += 1;
            }
            _ => ranks.push((rank, 1, clock, truncated)),
        }
    }
    let property = |location: &Location, key| {
        let values = location.definitions.properties(key);
        values.into_iter()
    };
    let program = locations.first().map(|first| {
        let program = property(first, "program").next().into_iter();
        program.chain(property(first, "argument")).collect()
    });
    let of_first = |name| -> Vec<String> {
        let first = locations.first();
        first.map_or(Vec::new(), |first| property(first, name).collect())
    };
    Told {
        ranks,
        spans,
        evidence: clock::needed(infos.iter().map(|info| &info.clock)),
        hosts: hosts.into_iter().collect(),
        runs,
        program: program.unwrap_or_default(),
        began_unix_ms: locations
            .first()
            .map_or(0, |first| first.header.start_unix_ns / 1_000_000),
        mpi_library: locations
            .iter()
            .find_map(|location| property(location, "mpi_library").next()),
        mpi_device: of_first("mpi_device")
            .into_iter()
            .next()
            .unwrap_or_default(),
        settings: of_first("setting"),
        processors: sorted(
            locations
                .iter()
                .flat_map(|location| property(location, "cpu")),
        ),
        rooms: crowd::rooms(locations),
        locations: infos.len() as u64,
        silent: infos
            .iter()
            .filter(|info| info.records == 0 && info.calls > 0)
            .count() as u64,
        bytes: infos
            .iter()
            .fold(0, |sum: u64, info| sum.saturating_add(info.size)),
        failures: Vec::new(),
    }
}

/// The different names, ascending.
pub fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    let names: BTreeSet<String> = names.filter(|name| !name.is_empty()).collect();
    names.into_iter().collect()
}

pub fn describe(location: &Location) -> LocationInfo {
    let header = &location.header;
    // A block is opened when its first call has returned, which may have taken long, as MPI_Init does.
    let block = |chunk: &Chunk| {
        let mut decoder = Decoder::new(location.records(chunk), chunk.base);
        let left = decoder.next().map_or(chunk.base, |first| first.leave);
        (left, chunk.monotonic_ns as i64)
    };
    let hosts = location.definitions.properties("host");
    LocationInfo {
        rank: header.rank,
        ranks: header.ranks,
        run_id: header.run_id,
        file: location
            .path()
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        host: hosts.into_iter().next().unwrap_or_default(),
        clock: ClockEvidence {
            host: header.host_id,
            clock: header.clock,
            ticks_per_s: header.ticks_per_s,
            points: clock::points(&location.clock),
            span: match &location.chunks[..] {
                // Measurements tell the rate better.
                [first, .., last] if location.clock.len() < 2 => Some((block(first), block(last))),
                _ => None,
            },
            made: (header.start_ticks, header.start_unix_ns as i64),
        },
        bounds: Bounds::of(location),
        size: location.size(),
        truncated: location.end.is_none(),
        records: location
            .chunks
            .iter()
            .map(|chunk| u64::from(chunk.count))
            .sum(),
        calls: saturating_sum(location.profile.iter().map(|entry| entry.count)),
    }
}
