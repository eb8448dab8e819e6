//! Opens the traces: deals files out to agents, and shares the facts that all agents need.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Result, bail};
use laggard_comm::Job;
use laggard_report::{AnomalySeverity, Crowd};
use laggard_trace::{Location, NodeFile, ProfileEntry, calls};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::basics::anomaly::{Anomalies, Level};
use crate::basics::ends::NONE;
use crate::clock;
use crate::clock::{ClockEvidence, ClockKey, Clocks};
use crate::input::bounds::Bounds;
use crate::input::crowd::Room;
use crate::input::files::{Entry, Failure, Listing};
use crate::input::{crowd, files, import};

/// Facts of a location that are read at once.
struct LocationInfo {
    rank: u32,
    /// Size of the world.
    ranks: u32,
    run_id: [u8; 16],
    /// File name, for messages.
    file: String,
    /// Host name; empty unless this is a rank's first thread.
    host: String,
    clock: ClockEvidence,
    bounds: Bounds,
    /// Bytes of the file.
    size: u64,
    /// Whether the end of the trace is missing.
    truncated: bool,
    /// Records in the file, extensions included.
    records: u64,
    /// Calls in its profile.
    calls: u64,
}

/// The message of an agent to all others. It grows with the different values, not with the ranks.
#[derive(Default, Serialize, Deserialize)]
struct Told {
    /// Runs of successive, equal ranks at this agent: the first, their number, position of their
    /// clock in `spans`, whether their traces are cut off.
    ranks: Vec<(u32, u32, u32, bool)>,
    /// Clocks, with the first enter and last leave of their locations, ticks.
    spans: Vec<(ClockKey, (u64, u64))>,
    /// Clock evidence, in rank order.
    evidence: Vec<ClockEvidence>,
    hosts: Vec<(u64, String)>,
    /// The first file of each run and world size: there should be one.
    runs: Vec<([u8; 16], u32, String)>,
    /// Program and arguments, from the first location.
    program: Vec<String>,
    /// MPI library, from the first location that knows it.
    mpi_library: Option<String>,
    /// The MPI library's device, and its settings, from the first location.
    mpi_device: String,
    settings: Vec<String>,
    /// Creation time of the first location's file, ms of Unix time; 0 if unknown.
    began_unix_ms: u64,
    /// Models of processors, ascending.
    processors: Vec<String>,
    /// Processors of the ranks of each host.
    rooms: BTreeMap<u64, Room>,
    locations: u64,
    /// Locations with a profile but no events.
    silent: u64,
    bytes: u64,
    /// Unusable files.
    failures: Vec<Failure>,
}

/// Facts about the run, from its first location.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Id of the recording.
    pub run_id: [u8; 16],
    /// Program and arguments.
    pub program: Vec<String>,
    /// MPI library and version.
    pub mpi_library: Option<String>,
    /// Device of the MPI library (MPICH only).
    pub mpi_device: String,
    /// MPI settings in the environment: `NAME=value`.
    pub settings: Vec<String>,
    /// When it began, ms of Unix time.
    pub began_unix_ms: Option<u64>,
    /// Models of processors, ascending; empty if unknown.
    pub processors: Vec<String>,
    /// The most crowded host, if there is one.
    pub crowd: Option<Crowd>,
    /// Number of locations.
    pub locations: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// The traces of an agent, and shared facts about all.
pub struct Opened {
    /// This agent's locations, by rank and thread.
    pub locations: Vec<Location>,
    /// Their clocks, and their first enter and last leave, ticks.
    pub own: Vec<(ClockKey, (u64, u64))>,
    /// Bounds of their parts.
    pub bounds: Vec<Bounds>,
    /// Facts about the run.
    pub run: Recorded,
    /// All clocks, ascending, and the first enter and last leave measured with each, ticks.
    pub spans: Vec<(ClockKey, (u64, u64))>,
    /// Clock by world rank: position in `spans`; `NONE` = no trace of it.
    pub clock_of: Vec<u32>,
    /// The agent that holds a rank, by world rank; `NONE` = no trace of it.
    pub agent_of: Vec<u32>,
    /// Host by world rank: position in `host_names`.
    pub hosts: Vec<u32>,
    /// Host names, sorted.
    pub host_names: Vec<String>,
    /// Ranks whose trace is cut off.
    pub truncated: Vec<bool>,
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

/// The agent of each file. Files of one rank stay together, and ranks in order, so that neighbours,
/// which communicate most, are mostly at one agent. Cuts at equal shares of the sizes.
pub(crate) fn assign(entries: &[Entry], agents: usize) -> Vec<u32> {
    // One more byte each, so that empty files are shared out, too.
    let weight = |entry: &Entry| u128::from(entry.size) + 1;
    let total: u128 = entries.iter().map(weight).sum();
    let mut agent_of = Vec::with_capacity(entries.len());
    let mut before = 0;
    for files in entries.chunk_by(|a, b| files::rank_part(&a.name) == files::rank_part(&b.name)) {
        let size: u128 = files.iter().map(weight).sum();
        // The agent whose share contains the middle of the rank's files.
        let agent = (2 * before + size) * agents as u128 / (2 * total);
        agent_of.resize(agent_of.len() + files.len(), agent as u32);
        before += size;
    }
    agent_of
}

/// The locations of this agent. The head lists the directory, keeps its failures, and deals the
/// locations out. Collective; errors are the same on all agents.
fn deal(job: &dyn Job, directory: &Path) -> Result<Listing> {
    let mut parcels = vec![Vec::new(); job.agents()];
    if job.agent() == 0 {
        let mut shares: Vec<Result<Listing, String>> = Vec::new();
        match files::list(directory) {
            Ok(mut listed) => {
                let entries = std::mem::take(&mut listed.entries);
                let agents = assign(&entries, job.agents());
                let mut dealt = vec![Vec::new(); job.agents()];
                for (entry, agent) in entries.into_iter().zip(agents) {
                    dealt[agent as usize].push(entry);
                }
                shares.extend(dealt.into_iter().map(|entries| {
                    let rest = std::mem::take(&mut listed);
                    Ok(Listing { entries, ..rest })
                }));
            }
            Err(error) => shares.resize_with(job.agents(), || Err(format!("{error:#}"))),
        }
        for (parcel, share) in parcels.iter_mut().zip(&shares) {
            *parcel = postcard::to_stdvec(share)?;
        }
    }
    let received = job.exchange(parcels);
    let own = received.first().map_or(&[][..], Vec::as_slice);
    match postcard::from_bytes::<Result<Listing, String>>(own)? {
        Ok(listing) => Ok(listing),
        Err(message) => bail!(message),
    }
}

/// Opens locations; reads the index of each node file once.
fn open_locations(
    directory: &Path,
    entries: &[Entry],
) -> Vec<Result<Location, laggard_trace::Error>> {
    let mut nodes: BTreeMap<&str, Option<NodeFile>> = BTreeMap::new();
    for node in entries.iter().filter_map(|entry| entry.node.as_ref()) {
        let open = || NodeFile::open(&directory.join(&node.file)).ok();
        nodes.entry(&node.file).or_insert_with(open);
    }
    let open = |entry: &Entry| match &entry.node {
        None => Location::open(&directory.join(&entry.name)),
        Some(node) => match nodes.get(&*node.file) {
            Some(Some(file)) => file.location(node.rank, node.thread),
            // Opened again to get the error.
            _ => NodeFile::open(&directory.join(&node.file))
                .and_then(|file| file.location(node.rank, node.thread)),
        },
    };
    entries.par_iter().map(open).collect()
}

/// Locations, failures, and node files with the number of unusable index entries.
pub type Found = (Vec<Location>, Vec<Failure>, Vec<(String, u64)>);

/// Opens this agent's files of a directory. Collective.
fn open_own(job: &dyn Job, directory: &Path) -> Result<Found> {
    let listing = deal(job, directory)?;
    let own = listing.entries;
    let mut locations = Vec::with_capacity(own.len());
    let mut failures = listing.failures;
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
    Ok((locations, failures, listing.damaged))
}

/// Opens this agent's share of the traces of a directory or archive. Collective; errors are the
/// same on all agents.
pub fn open(job: &dyn Job, directory: &Path, anomalies: &mut Anomalies) -> Result<Opened> {
    let (mut locations, failures, damaged) = match import::is_archive(directory) {
        true => import::open(job, directory, anomalies)?,
        false => open_own(job, directory)?,
    };
    locations.sort_by_key(|location| (location.header.rank, location.header.thread));
    let infos: Vec<LocationInfo> = locations.iter().map(describe).collect();
    let mut told = tell(&locations, &infos);
    told.failures = failures;
    let bounds: Vec<Bounds> = infos.iter().map(|info| info.bounds.clone()).collect();
    let own = infos
        .into_iter()
        .map(|info| (info.clock.key(), info.bounds.span))
        .collect();
    let mut all: Vec<Told> = Vec::new();
    for bytes in job.all_gather(postcard::to_stdvec(&told)?) {
        all.push(postcard::from_bytes(&bytes)?);
    }
    let failures = all
        .iter_mut()
        .map(|told| std::mem::take(&mut told.failures));
    let mut failures: Vec<_> = failures.flatten().collect();
    failures.sort();
    if let Some(newer) = failures.iter().find(|failure| failure.is_newer) {
        bail!("{}", newer.why);
    }
    if all.iter().all(|told| told.locations == 0) {
        let why = failures
            .first()
            .map_or_else(String::new, |failure| format!(": {}", failure.why));
        bail!(
            "{}: no usable trace in this {}{why}",
            directory.display(),
            match import::is_archive(directory) {
                true => "archive",
                false => "directory",
            }
        );
    }
    let runs = all.iter().flat_map(|told| &told.runs);
    files::check_one_run(
        directory,
        runs.map(|(run, ranks, file)| (*run, *ranks, file.as_str())),
    )?;
    if job.agent() == 0 {
        for failure in failures {
            anomalies
                .add("unreadable_file", Level::Error, 1, failure.why)
                .origin(failure.file);
        }
        for (file, count) in damaged {
            let detail = "index entries that were not finished, contradict others or are missing: \
                what they tell of is not in the report";
            let row = anomalies.add("damaged_index", Level::Error, count, detail.into());
            row.origin(file);
        }
    }
    for location in &locations {
        note_damage(location, anomalies);
    }
    Ok(Opened {
        bounds,
        ..share(all, own, locations, job, anomalies)
    })
}

/// The message about this agent's locations.
fn tell(locations: &[Location], infos: &[LocationInfo]) -> Told {
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
fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    let names: BTreeSet<String> = names.filter(|name| !name.is_empty()).collect();
    names.into_iter().collect()
}

fn describe(location: &Location) -> LocationInfo {
    let header = &location.header;
    let block = |chunk: &laggard_trace::Chunk| (chunk.base, chunk.monotonic_ns as i64);
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
            span: location
                .chunks
                .first()
                .zip(location.chunks.last())
                .map(|(a, b)| (block(a), block(b))),
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

fn note_damage(location: &Location, anomalies: &mut Anomalies) {
    for found in crate::input::directory::of_location(location) {
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
    all: Vec<Told>,
    own: Vec<(ClockKey, (u64, u64))>,
    locations: Vec<Location>,
    job: &dyn Job,
    anomalies: &mut Anomalies,
) -> Opened {
    let runs = || all.iter().flat_map(|told| &told.runs);
    let ranks = runs().map(|run| run.1).max().unwrap_or(0) as usize;
    let mut spans: BTreeMap<ClockKey, (u64, u64)> = BTreeMap::new();
    let mut names: BTreeMap<u64, &str> = BTreeMap::new();
    for told in &all {
        for &(key, span) in &told.spans {
            let sum = spans.entry(key).or_insert(span);
            *sum = (sum.0.min(span.0), sum.1.max(span.1));
        }
        for (host, name) in &told.hosts {
            names.entry(*host).or_insert(name);
        }
    }
    let spans: Vec<(ClockKey, (u64, u64))> = spans.into_iter().collect();
    let name_of = |clock: usize| names.get(&spans[clock].0.0).copied().unwrap_or("");
    // Hosts may share a name: containers, virtual machines.
    let host = |clock: usize| (name_of(clock), spans[clock].0.0);
    let mut known: Vec<(&str, u64)> = (0..spans.len()).map(host).collect();
    known.sort_unstable();
    known.dedup();
    let host_of_clock: Vec<u32> = (0..spans.len())
        .map(|clock| known.partition_point(|&other| other < host(clock)) as u32)
        .collect();
    let host_names = known.into_iter().map(|(name, _)| name.to_owned()).collect();
    let mut agent_of = vec![NONE; ranks];
    let mut clock_of = vec![NONE; ranks];
    let mut hosts = vec![0; ranks];
    let mut truncated = vec![false; ranks];
    for (agent, told) in all.iter().enumerate() {
        let numbers = told.spans.iter();
        let numbers = numbers.map(|(key, _)| spans.partition_point(|(other, _)| other < key));
        let numbers: Vec<usize> = numbers.collect();
        for &(first, count, clock, cut) in &told.ranks {
            let alike = first as usize..first as usize + count as usize;
            let clock = numbers[clock as usize];
            agent_of[alike.clone()].fill(agent as u32);
            clock_of[alike.clone()].fill(clock as u32);
            hosts[alike.clone()].fill(host_of_clock[clock]);
            truncated[alike].fill(cut);
        }
    }
    let first = all.iter().find(|told| told.locations > 0);
    let run = Recorded {
        run_id: runs().next().map(|run| run.0).unwrap_or_default(),
        program: first.map_or(Vec::new(), |told| told.program.clone()),
        mpi_library: all.iter().find_map(|told| told.mpi_library.clone()),
        mpi_device: first.map_or(String::new(), |told| told.mpi_device.clone()),
        settings: first.map_or(Vec::new(), |told| told.settings.clone()),
        began_unix_ms: first.map(|told| told.began_unix_ms).filter(|&ms| ms > 0),
        processors: sorted(all.iter().flat_map(|told| told.processors.clone())),
        crowd: crowd::most_crowded(all.iter().flat_map(|told| &told.rooms)),
        locations: all.iter().map(|told| told.locations).sum(),
        bytes: all
            .iter()
            .fold(0, |sum, told| sum.saturating_add(told.bytes)),
    };
    let silent: u64 = all.iter().map(|told| told.silent).sum();
    let missing: Vec<u32> = (0..ranks as u32)
        .filter(|&rank| agent_of[rank as usize] == NONE)
        .collect();
    let clocks = Clocks::new(all.iter().flat_map(|told| &told.evidence));
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
        own,
        bounds: Vec::new(),
        run,
        spans,
        clock_of,
        agent_of,
        hosts,
        host_names,
        truncated,
        clocks,
    }
}

/// The runtime profile of a location: from its file, or the sums of its events if the file was not
/// closed.
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
            // Memory must not grow with the file.
            location.release(chunk);
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
        let is_user = calls::call(signature.operation).is_some_and(|call| call.is_user());
        if signature.flags & unprofiled != 0 || signature.operation == 0 || is_user {
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

/// Saturating sum of untrusted numbers from a file.
pub fn saturating_sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, size: u64) -> Entry {
        Entry {
            name: name.into(),
            node: None,
            size,
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
