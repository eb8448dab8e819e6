//! Opens the traces: deals files out to agents, and shares the facts that all agents need.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail};
use laggard_comm::Job;
use laggard_report::{AnomalySeverity, Crowd, HostProcessors, list_of_ranks};
use laggard_trace::{Location, NodeFile};
use rayon::prelude::*;

use crate::basics::anomaly::{Anomalies, Level};
use crate::basics::ends::NONE;
use crate::clock::{ClockKey, Clocks};
use crate::input::bounds::Bounds;
use crate::input::files::{Entry, Failure, Listing};
use crate::input::told::{LocationInfo, Told, describe, sorted, tell};
use crate::input::{crowd, ended, files, import};

/// Bytes of an agent's traces that may stay in memory after they were read, and the most of one of them.
const KEPT: usize = 4 << 20;
const MOST_KEPT: usize = 1 << 20;

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
    /// What ranks may use of their hosts.
    pub rooms: Vec<HostProcessors>,
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

/// The agent of each file, if all are of ranks that have one already.
fn keep(entries: &[Entry], held: &[u32]) -> Option<Vec<u32>> {
    let agent = |entry: &Entry| {
        let rank = files::rank_part(&entry.name).strip_prefix("rank")?;
        let agent = *held.get(rank.parse::<usize>().ok()?)?;
        (agent != NONE).then_some(agent)
    };
    entries.iter().map(agent).collect()
}

/// The locations of this agent. The head lists the directory, keeps its failures, and deals the
/// locations out, as they were `held` if that is known. Collective; errors are the same on all agents.
fn deal(job: &dyn Job, directory: &Path, held: &[u32]) -> Result<Listing> {
    let mut parcels = vec![Vec::new(); job.agents()];
    if job.agent() == 0 {
        let mut shares: Vec<Result<Listing, String>> = Vec::new();
        match files::list(directory) {
            Ok(mut listed) => {
                let entries = std::mem::take(&mut listed.entries);
                let agents = keep(&entries, held);
                let agents = agents.unwrap_or_else(|| assign(&entries, job.agents()));
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
fn open_own(job: &dyn Job, directory: &Path, held: &[u32]) -> Result<Found> {
    let listing = deal(job, directory, held)?;
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
/// same on all agents. Computation in an archive `tells_functions` if somebody needs them: that
/// makes its records more.
pub fn open(
    job: &dyn Job,
    directory: &Path,
    tells_functions: bool,
    anomalies: &mut Anomalies,
) -> Result<Opened> {
    open_as(job, directory, tells_functions, &[], anomalies)
}

/// The same; `held` says which agent holds a rank, by world rank, if it was opened before. Each agent
/// keeps its ranks as long as no others come.
pub fn open_as(
    job: &dyn Job,
    directory: &Path,
    tells_functions: bool,
    held: &[u32],
    anomalies: &mut Anomalies,
) -> Result<Opened> {
    let (mut locations, failures, damaged) = match import::is_archive(directory) {
        true => import::open(job, directory, tells_functions, anomalies)?,
        false => open_own(job, directory, held)?,
    };
    locations.sort_by_key(|location| (location.header.rank, location.header.thread));
    let kept = KEPT / locations.len().max(1);
    for location in &mut locations {
        location.keep(kept.min(MOST_KEPT));
    }
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
        ended::note(directory, anomalies);
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
    let rooms = crowd::merged(all.iter().flat_map(|told| &told.rooms));
    let run = Recorded {
        run_id: runs().next().map(|run| run.0).unwrap_or_default(),
        program: first.map_or(Vec::new(), |told| told.program.clone()),
        mpi_library: all.iter().find_map(|told| told.mpi_library.clone()),
        mpi_device: first.map_or(String::new(), |told| told.mpi_device.clone()),
        settings: first.map_or(Vec::new(), |told| told.settings.clone()),
        began_unix_ms: first.map(|told| told.began_unix_ms).filter(|&ms| ms > 0),
        processors: sorted(all.iter().flat_map(|told| told.processors.clone())),
        rooms: crowd::processors(&rooms, &names),
        crowd: crowd::most_crowded(&rooms),
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
            let ranks = list_of_ranks(missing.iter().copied(), usize::MAX);
            let (level, count) = (Level::Error, missing.len() as u64);
            anomalies.add(
                "missing_ranks",
                level,
                count,
                format!("no trace of {ranks}"),
            );
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
