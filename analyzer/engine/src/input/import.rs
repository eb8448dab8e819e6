//! Archives of other recorders. Each agent rewrites its own locations once, in this project's
//! format; the analysis then treats them as recorded.

use std::path::Path;

use anyhow::Result;
use laggard_comm::{self as comm, Job};
use laggard_otf2::notes::{self, Notes};
use laggard_otf2::world::Thread;
use laggard_otf2::{Archive, Channel, Error, Transcoded, Transcoder};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use crate::basics::anomaly::{Anomalies, Level};
use crate::input::files::{Entry, Failure};
use crate::input::open::{Found, assign};

/// Extension of the anchor file of an OTF2 archive.
const ANCHOR: &str = "otf2";

/// Whether a trace is an archive of another recorder, by its name.
pub fn is_archive(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == ANCHOR)
}

/// Rewrites this agent's locations of an archive, if it `tells_functions` with the functions that
/// the program computed in. Collective; errors are the same on all agents.
pub fn open(
    job: &dyn Job,
    path: &Path,
    tells_functions: bool,
    anomalies: &mut Anomalies,
) -> Result<Found> {
    let transcoder = Archive::open(path).and_then(Transcoder::new);
    let mut transcoder = comm::agree(job, transcoder.map_err(anyhow::Error::msg))?;
    transcoder.tells_functions = tells_functions;
    let threads = &transcoder.world.threads;
    let agents = assign(&entries(threads), job.agents());
    let is_own = |agent: u32| agent as usize == job.agent();
    let own = threads.iter().zip(&agents);
    let own: Vec<Thread> = own
        .filter(|(_, agent)| is_own(**agent))
        .map(|(thread, _)| *thread)
        .collect();
    let memberships = transcoder
        .world
        .memberships(own.iter().map(|thread| thread.rank));
    let results: Vec<_> = own
        .par_iter()
        .map(|thread| (*thread, transcoder.location(*thread, &memberships)))
        .collect();
    let mut transcoded = Vec::with_capacity(own.len());
    let mut failures = Vec::new();
    let mut fatal = Ok(());
    for (thread, result) in results {
        match result {
            Ok(found) => transcoded.extend(found),
            Err(error @ Error::Events { .. }) => failures.push(Failure {
                file: format!("location {}", thread.location),
                why: error.to_string(),
                is_newer: false,
            }),
            Err(error) => fatal = Err(anyhow::Error::msg(error)),
        }
    }
    comm::agree(job, fatal)?;
    if job.agent() == 0 {
        add_notes(&transcoder.world.notes, anomalies);
    }
    for one in &transcoded {
        add_notes(&one.notes, anomalies);
    }
    let agent_of = agents_of_ranks(threads, &agents, transcoder.world.ranks);
    forget_uncertain(job, &mut transcoded, &agent_of, anomalies)?;
    settle_beginning(job, &mut transcoded);
    let locations = transcoded.into_iter().map(|one| one.location);
    Ok((locations.collect(), failures, Vec::new()))
}

/// Keeps the beginning of MPI as a collective only if each rank has exactly one. Collective.
fn settle_beginning(job: &dyn Job, transcoded: &mut [Transcoded]) {
    let is_once = |one: &Transcoded| {
        let expected = u64::from(one.location.header.thread == 0);
        one.begins() == expected
    };
    let all = u8::from(transcoded.iter().all(is_once));
    if job.all_gather(vec![all]).concat().contains(&0) {
        transcoded.iter_mut().for_each(Transcoded::begin_alone);
    }
}

/// Locations as files, for the distribution to agents.
fn entries(threads: &[Thread]) -> Vec<Entry> {
    let entries = threads.iter().map(|thread| Entry {
        name: laggard_trace::file_name(thread.rank, thread.thread),
        node: None,
        size: thread.events,
    });
    entries.collect()
}

/// The agent that holds each rank.
fn agents_of_ranks(threads: &[Thread], agents: &[u32], ranks: u32) -> Vec<u32> {
    let mut agent_of = vec![0; ranks as usize];
    for (thread, agent) in threads.iter().zip(agents) {
        agent_of[thread.rank as usize] = *agent;
    }
    agent_of
}

fn add_notes(notes: &Notes, anomalies: &mut Anomalies) {
    for (kind, count, first) in notes.iter() {
        let level = match kind.level() {
            notes::Level::Info => Level::Info,
            notes::Level::Warning => Level::Warning,
            notes::Level::Error => Level::Error,
        };
        let row = anomalies.add(kind.id(), level, count, kind.text().to_owned());
        if !first.is_empty() {
            row.origin(first.to_owned());
        }
    }
}

/// Number of messages on a channel, counted at one end.
#[derive(Default, Serialize, Deserialize)]
struct Counted {
    channel: Channel,
    messages: u64,
    /// Whether there may be more.
    is_missing_some: bool,
}

/// Excludes uncertain channels from the analysis: if messages may be missing and the two ends count
/// differently, they cannot be matched. Collective.
fn forget_uncertain(
    job: &dyn Job,
    transcoded: &mut [Transcoded],
    agent_of: &[u32],
    anomalies: &mut Anomalies,
) -> Result<()> {
    let is_missing = |one: &Transcoded| one.missing.sends || one.missing.receives;
    let any = u8::from(transcoded.iter().any(is_missing));
    if job
        .all_gather(vec![any])
        .concat()
        .iter()
        .all(|&any| any == 0)
    {
        return Ok(());
    }
    // By rank, not by thread: threads share channels.
    let mut senders: FxHashMap<Channel, (u64, bool)> = FxHashMap::default();
    let mut receivers: FxHashMap<Channel, (u64, bool)> = FxHashMap::default();
    for one in transcoded.iter() {
        for (channel, (sent, received)) in one.channels() {
            let rank = one.location.header.rank;
            if channel.1 == rank {
                let end = senders.entry(channel).or_default();
                *end = (end.0 + sent, end.1 || one.missing.sends);
            }
            if channel.2 == rank {
                let end = receivers.entry(channel).or_default();
                *end = (end.0 + received, end.1 || one.missing.receives);
            }
        }
    }
    let incomplete = transcoded.iter().filter(|one| one.missing.receives);
    let incomplete: FxHashSet<u32> = incomplete.map(|one| one.location.header.rank).collect();
    let agent = |rank: u32| agent_of.get(rank as usize).copied().unwrap_or(0) as usize;
    // Senders report their counts; receivers compare.
    let mut telling: Vec<Vec<Counted>> = (0..job.agents()).map(|_| Vec::new()).collect();
    for (&channel, &(messages, is_missing_some)) in &senders {
        telling[agent(channel.2)].push(Counted {
            channel,
            messages,
            is_missing_some,
        });
    }
    let told: Vec<Counted> = exchange(job, &telling)?.into_iter().flatten().collect();
    let mut uncertain: FxHashSet<Channel> = FxHashSet::default();
    let mut known: FxHashSet<Channel> = FxHashSet::default();
    for sent in &told {
        let (_, _, receiver, _) = sent.channel;
        let (received, is_missing_some) = receivers.get(&sent.channel).copied().unwrap_or_default();
        let missing = is_missing_some || sent.is_missing_some || incomplete.contains(&receiver);
        if missing && received != sent.messages {
            uncertain.insert(sent.channel);
        }
        known.insert(sent.channel);
    }
    // Received but never sent: the sender may have lost the record.
    let unsent = receivers.keys().filter(|channel| !known.contains(*channel));
    uncertain.extend(unsent.copied());
    let mut telling: Vec<Vec<Channel>> = (0..job.agents()).map(|_| Vec::new()).collect();
    for channel in &uncertain {
        telling[agent(channel.1)].push(*channel);
    }
    uncertain.extend(
        exchange::<Vec<Channel>>(job, &telling)?
            .into_iter()
            .flatten(),
    );
    for one in transcoded {
        let forgotten = one.forget(|channel| uncertain.contains(channel));
        let mut found = Notes::default();
        let header = &one.location.header;
        let origin = || format!("rank {}, thread {}", header.rank, header.thread);
        found.add(notes::Kind::Uncertain, forgotten, origin);
        add_notes(&found, anomalies);
    }
    Ok(())
}

/// Sends each agent its parcel. Collective.
fn exchange<T: Serialize + for<'d> Deserialize<'d>>(
    job: &dyn Job,
    parcels: &[T],
) -> Result<Vec<T>> {
    let packed = parcels.iter().map(postcard::to_stdvec);
    let packed: Vec<Vec<u8>> = packed.collect::<Result<_, _>>()?;
    let received = job.exchange(packed).into_iter();
    let unpacked = received.map(|bytes| postcard::from_bytes(&bytes));
    Ok(unpacked.collect::<Result<_, _>>()?)
}
