//! Opens the traces: files to agents, headers to everybody.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail};
use laggard_report::AnomalySeverity;
use laggard_trace::{Location, NodeFile, ProfileEntry, calls};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::anomaly::{Anomalies, Level};
use super::clock::{self, ClockEvidence, Clocks};
use super::files::{self, Entry, Failure, Listing};
use super::table::NONE;
use crate::comm::Job;

/// What everybody knows about each location.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LocationInfo {
    /// World rank.
    pub rank: u32,
    /// Thread.
    pub thread: u32,
    /// The agent that holds it.
    pub agent: u32,
    /// Size of the world.
    pub ranks: u32,
    /// Of the run.
    pub run_id: [u8; 16],
    /// File name, for messages.
    pub file: String,
    /// Host name.
    pub host: String,
    /// MPI library and version.
    pub mpi_library: Option<String>,
    /// Program and arguments.
    pub program: Vec<String>,
    /// Clock.
    pub clock: ClockEvidence,
    /// First enter and last leave, ticks.
    pub span: (u64, u64),
    /// Bytes of the file.
    pub size: u64,
    /// Whether the end of the trace is missing.
    pub truncated: bool,
    /// Records in the file, extensions included.
    pub records: u64,
    /// Calls in its profile.
    pub calls: u64,
}

/// The traces of an agent, and what it knows of all.
pub struct Opened {
    /// This agent's locations, by rank and thread.
    pub locations: Vec<Location>,
    /// Of all agents, by rank and thread.
    pub infos: Vec<LocationInfo>,
    /// The agent that holds a rank, by world rank; `NONE` = no trace of it.
    pub agent_of: Vec<u32>,
    /// Host by world rank: position in `host_names`.
    pub hosts: Vec<u32>,
    /// Host names, sorted.
    pub host_names: Vec<String>,
    /// Ranks whose trace is cut off.
    pub truncated: Vec<bool>,
    /// The clocks.
    pub clocks: Clocks,
}

impl Opened {
    /// Name of a rank's host.
    pub fn host_of(&self, rank: u32) -> &str {
        let host = self.hosts.get(rank as usize).copied().unwrap_or(0);
        self.host_names
            .get(host as usize)
            .map_or("", String::as_str)
    }
}

/// Files to agents: those of one rank together, and ranks in order, so that neighbours,
/// who talk most, are mostly at one agent. Cut where the sizes add up to equal shares.
fn assign(entries: &[Entry], agents: usize) -> Vec<u32> {
    // One more byte each: files without any are shared out, too.
    let weight = |entry: &Entry| u128::from(entry.size) + 1;
    let total: u128 = entries.iter().map(weight).sum();
    let mut agent_of = Vec::with_capacity(entries.len());
    let mut before = 0;
    for files in entries.chunk_by(|a, b| files::rank_part(&a.name) == files::rank_part(&b.name)) {
        let size: u128 = files.iter().map(weight).sum();
        // Where the middle of it lies.
        let agent = (2 * before + size) * agents as u128 / (2 * total);
        agent_of.resize(agent_of.len() + files.len(), agent as u32);
        before += size;
    }
    agent_of
}

/// Opens a directory's traces, this agent's share of them. Collective; the error is
/// the same on all agents.
pub fn open(job: &dyn Job, directory: &Path, anomalies: &mut Anomalies) -> Result<Opened> {
    let mut listing = Vec::new();
    if job.agent() == 0 {
        let listed = files::list(directory).map_err(|error| format!("{error:#}"));
        listing = postcard::to_stdvec(&listed)?;
    }
    job.broadcast(&mut listing);
    let listing = match postcard::from_bytes::<Result<Listing, String>>(&listing)? {
        Ok(listing) => listing,
        Err(message) => bail!(message),
    };
    let entries = listing.entries;
    let agents = assign(&entries, job.agents());
    let me = job.agent() as u32;
    let own: Vec<&Entry> = entries
        .iter()
        .zip(&agents)
        .filter(|(_, agent)| **agent == me)
        .map(|(e, _)| e)
        .collect();
    let mut locations = Vec::new();
    let mut failures = match job.agent() {
        0 => listing.failures,
        _ => Vec::new(),
    };
    for (entry, result) in own.iter().zip(open_locations(directory, &own)) {
        match result {
            Ok(location) => match files::misplaced(&entry.name, &location) {
                None => locations.push(location),
                Some(why) => failures.push(Failure {
                    file: entry.name.clone(),
                    why,
                    is_newer: false,
                }),
            },
            Err(error) => failures.push(Failure::new(&entry.name, &error)),
        }
    }
    locations.sort_by_key(|location| (location.header.rank, location.header.thread));
    let mine: Vec<LocationInfo> = locations
        .iter()
        .map(|location| describe(location, me))
        .collect();
    let (mut infos, failures) = gather(job, (mine, failures))?;
    name_hosts(&mut infos);
    if let Some(newer) = failures.iter().find(|failure| failure.is_newer) {
        bail!("{}", newer.why);
    }
    if infos.is_empty() {
        let why = failures
            .first()
            .map_or_else(String::new, |failure| format!(": {}", failure.why));
        bail!(
            "{}: no usable trace in this directory{why}",
            directory.display()
        );
    }
    files::check_one_run(
        directory,
        infos.iter().map(|i| (i.run_id, i.ranks, i.file.as_str())),
    )?;
    if job.agent() == 0 {
        for failure in failures {
            anomalies
                .add("unreadable_file", Level::Error, 1, failure.why)
                .origin(failure.file);
        }
        for (file, count) in listing.damaged {
            let detail = "index entries that were not finished, contradict others or are missing: \
                what they tell of is not in the report";
            let row = anomalies.add("damaged_index", Level::Error, count, detail.into());
            row.origin(file);
        }
    }
    for location in &locations {
        note_damage(location, anomalies);
    }
    Ok(share(infos, locations, job, anomalies))
}

/// Opens locations, those in node files through one look at each file's index.
fn open_locations(
    directory: &Path,
    entries: &[&Entry],
) -> Vec<Result<Location, laggard_trace::Error>> {
    let mut nodes: BTreeMap<&str, Option<NodeFile>> = BTreeMap::new();
    for node in entries.iter().filter_map(|entry| entry.node.as_ref()) {
        let open = || NodeFile::open(&directory.join(&node.file)).ok();
        nodes.entry(&node.file).or_insert_with(open);
    }
    let open = |entry: &&Entry| match &entry.node {
        None => Location::open(&directory.join(&entry.name)),
        Some(node) => match nodes.get(&*node.file) {
            Some(Some(file)) => file.location(node.rank, node.thread),
            // Once more, for the error.
            _ => NodeFile::open(&directory.join(&node.file))
                .and_then(|file| file.location(node.rank, node.thread)),
        },
    };
    entries.par_iter().map(open).collect()
}

type Gathered = (Vec<LocationInfo>, Vec<Failure>);

fn gather(job: &dyn Job, mine: Gathered) -> Result<Gathered> {
    let mut all: Gathered = Default::default();
    for bytes in job.all_gather(postcard::to_stdvec(&mine)?) {
        let (infos, failures): Gathered = postcard::from_bytes(&bytes)?;
        all.0.extend(infos);
        all.1.extend(failures);
    }
    all.0.sort_by_key(|info| (info.rank, info.thread));
    all.1.sort();
    Ok(all)
}

/// Gives every location its host's name: a rank's first thread alone writes it.
fn name_hosts(infos: &mut [LocationInfo]) {
    let mut names: BTreeMap<u64, String> = BTreeMap::new();
    for info in infos.iter().filter(|info| !info.host.is_empty()) {
        let name = names.entry(info.clock.host);
        name.or_insert_with(|| info.host.clone());
    }
    for info in infos.iter_mut() {
        if let Some(name) = names.get(&info.clock.host) {
            info.host.clone_from(name);
        }
    }
}

fn describe(location: &Location, agent: u32) -> LocationInfo {
    let header = &location.header;
    let definitions = &location.definitions;
    let property = |key| definitions.properties(key).into_iter().next();
    let block = |chunk: &laggard_trace::Chunk| (chunk.base, chunk.monotonic_ns as i64);
    let mut program: Vec<String> = property("program").into_iter().collect();
    program.extend(definitions.properties("argument"));
    LocationInfo {
        rank: header.rank,
        thread: header.thread,
        agent,
        ranks: header.ranks,
        run_id: header.run_id,
        file: location
            .path()
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        host: property("host").unwrap_or_default(),
        mpi_library: property("mpi_library"),
        program,
        clock: ClockEvidence {
            host: header.host_id,
            clock: header.clock,
            ticks_per_s: header.ticks_per_s,
            points: clock::points(&location.clock),
            span: location
                .chunks
                .first()
                .zip(location.chunks.last())
                .map(|(a, b)| (block(a), block(b))),
            made: (header.start_ticks, header.start_unix_ns as i64),
        },
        span: span(location),
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

/// First enter and last leave of a location, ticks.
fn span(location: &Location) -> (u64, u64) {
    let mut first = location.header.start_ticks;
    if location.chunks.is_empty() {
        // A file is made when MPI_Init has returned; only the profile knows how long it took.
        let init = |entry: &&ProfileEntry| {
            calls::call(entry.operation).is_some_and(|call| call.shape == calls::Shape::Init)
        };
        let spent = saturating_sum(
            location
                .profile
                .iter()
                .filter(init)
                .map(|entry| entry.total),
        );
        first = first.saturating_sub(spent);
    }
    if let Some(chunk) = location.chunks.iter().find(|chunk| chunk.count > 0) {
        first = laggard_trace::Decoder::new(location.records(chunk), chunk.base)
            .next()
            .map_or(first, |event| event.enter);
    }
    let mut last = location.end.map_or(first, |end| end.end_ticks);
    if let Some(chunk) = location.chunks.iter().rev().find(|chunk| chunk.count > 0) {
        let mut decoder = laggard_trace::Decoder::new(location.records(chunk), chunk.base);
        let mut leave = 0;
        while let Some(event) = decoder.next() {
            leave = event.leave;
        }
        // The file is closed a little after the last call; the last call is what counts.
        // Where records stopped at a limit, the profile went on to the end.
        let stopped = laggard_trace::LIMIT_SIZE | laggard_trace::LIMIT_WRITE;
        let cut = location.end.is_some_and(|end| end.limits & stopped != 0);
        last = if leave > first && !cut {
            leave
        } else {
            last.max(leave)
        };
    }
    (first, last.max(first))
}

fn note_damage(location: &Location, anomalies: &mut Anomalies) {
    for found in crate::directory::of_location(location) {
        let level = match found.severity {
            AnomalySeverity::Info => Level::Info,
            AnomalySeverity::Warning => Level::Warning,
            AnomalySeverity::Error => Level::Error,
        };
        let row = anomalies.add(&found.id, level, found.count, found.detail);
        row.origin = found.origin;
    }
}

fn share(
    infos: Vec<LocationInfo>,
    locations: Vec<Location>,
    job: &dyn Job,
    anomalies: &mut Anomalies,
) -> Opened {
    let ranks = infos.iter().map(|info| info.ranks).max().unwrap_or(0) as usize;
    let mut agent_of = vec![NONE; ranks];
    let mut hosts = vec![0; ranks];
    let mut truncated = vec![false; ranks];
    // Several hosts may have the same name: containers, virtual machines.
    let host = |info: &LocationInfo| (info.host.clone(), info.clock.host);
    let mut known: Vec<(String, u64)> = infos.iter().map(host).collect();
    known.sort();
    known.dedup();
    for info in &infos {
        let rank = info.rank as usize;
        agent_of[rank] = info.agent;
        hosts[rank] = known.binary_search(&host(info)).unwrap_or(0) as u32;
        truncated[rank] |= info.truncated;
    }
    let silent = infos
        .iter()
        .filter(|info| info.records == 0 && info.calls > 0)
        .count() as u64;
    let missing: Vec<u32> = (0..ranks as u32)
        .filter(|&rank| agent_of[rank as usize] == NONE)
        .collect();
    let clocks = Clocks::new(infos.iter().map(|info| &info.clock));
    if job.agent() == 0 {
        if !missing.is_empty() {
            let detail = format!(
                "no trace of rank {}",
                laggard_report::rank_ranges(missing.iter().copied())
            );
            anomalies.add("missing_ranks", Level::Error, missing.len() as u64, detail);
        }
        if silent > 0 {
            let detail = "locations with a profile but no events (recorded in profile mode): \
                waiting and its causes are unknown there";
            anomalies.add("no_events", Level::Warning, silent, detail.into());
        }
        if clocks.unsynchronised > 0 {
            let detail =
                "no clock measurement of some hosts: their offset is guessed from wall clocks";
            let count = clocks.unsynchronised as u64;
            anomalies.add("clock_unsynchronised", Level::Warning, count, detail.into());
        }
    }
    Opened {
        locations,
        infos,
        agent_of,
        hosts,
        host_names: known.into_iter().map(|host| host.0).collect(),
        truncated,
        clocks,
    }
}

/// The runtime profile of a location: from its file, or summed up from its events
/// where the file was not closed.
pub fn profile_of(location: &Location) -> Vec<ProfileEntry> {
    if !location.profile.is_empty() || location.chunks.is_empty() {
        return location.profile.clone();
    }
    let sums = location
        .chunks
        .par_iter()
        .filter(|chunk| location.verify(chunk))
        .fold(BTreeMap::new, |mut sums, chunk| {
            add_chunk(&mut sums, location, chunk);
            sums
        })
        .reduce(BTreeMap::new, |mut sums, others| {
            for (key, other) in others {
                add_entry(&mut sums, key, &other);
            }
            sums
        });
    sums.into_values().collect()
}

/// Sums by operation and call path.
type ProfileTable = BTreeMap<(u16, u32), ProfileEntry>;

fn add_chunk(sums: &mut ProfileTable, location: &Location, chunk: &laggard_trace::Chunk) {
    let signatures = location.definitions.signatures();
    let mut decoder = laggard_trace::Decoder::new(location.records(chunk), chunk.base);
    while let Some(event) = decoder.next() {
        let Some(signature) = signatures.get(event.signature as usize) else {
            continue;
        };
        let unprofiled = laggard_trace::flags::PART | laggard_trace::flags::PAUSED;
        if signature.flags & unprofiled != 0 || signature.operation == 0 {
            continue;
        }
        let (calls, time) = match event.repeated {
            Some((calls, ticks)) => (u64::from(calls), u64::from(ticks)),
            None => (1, event.leave - event.enter),
        };
        let one = ProfileEntry {
            count: calls,
            total: time,
            minimum: time / calls.max(1),
            maximum: time,
            bytes: signature.send.bytes.saturating_add(signature.receive.bytes),
            ..ProfileEntry::default()
        };
        add_entry(sums, (signature.operation, signature.call_path), &one);
    }
}

fn add_entry(sums: &mut ProfileTable, key: (u16, u32), other: &ProfileEntry) {
    let entry = sums.entry(key).or_insert(ProfileEntry {
        operation: key.0,
        call_path: key.1,
        minimum: u64::MAX,
        ..ProfileEntry::default()
    });
    entry.count = entry.count.saturating_add(other.count);
    entry.total = entry.total.saturating_add(other.total);
    entry.minimum = entry.minimum.min(other.minimum);
    entry.maximum = entry.maximum.max(other.maximum);
    entry.bytes = entry.bytes.saturating_add(other.bytes);
}

/// Sum of numbers from a file, which may be anything.
pub fn saturating_sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, size: u64) -> Entry {
        Entry {
            name: name.into(),
            size,
            ..Entry::default()
        }
    }

    #[test]
    fn files_of_a_rank_stay_together_and_loads_are_even() {
        let entries = [
            entry("rank000000.thread000.lgt", 10),
            entry("rank000000.thread001.lgt", 10),
            entry("rank000001.thread000.lgt", 15),
            entry("rank000002.thread000.lgt", 4),
        ];
        assert_eq!(assign(&entries, 2), [0, 0, 1, 1]);
        assert_eq!(assign(&entries, 1), [0, 0, 0, 0]);
        let equal: Vec<_> = (0..8)
            .map(|rank| entry(&format!("rank{rank:06}.thread000.lgt"), 100))
            .collect();
        assert_eq!(assign(&equal, 3), [0, 0, 0, 1, 1, 2, 2, 2]);
        assert_eq!(assign(&equal, 8), [0, 1, 2, 3, 4, 5, 6, 7]);
        let empty = [entry("rank000000.thread000.lgt", 0)];
        assert_eq!(assign(&empty, 5), [2]);
    }
}
