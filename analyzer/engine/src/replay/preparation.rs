//! Preparation of the rounds: ranks with their tables of signatures, and the groups of this agent.

use anyhow::Result;
use laggard_baselines::Baseline;
use laggard_comm::Job;
use laggard_report::Settings;
use laggard_trace::calls::number::MPI_Cancel;
use laggard_trace::{ALL_PES, Location, Signature, flags};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::basics::ends::NONE;
use crate::basics::intern::{Group, Interner, PathKey};
use crate::clock::ClockMap;
use crate::collectives::group::{Groups, owner};
use crate::collectives::topology::Topology;
use crate::input::open::Opened;
use crate::judge::detect::Kinds;
use crate::judge::profile::{self, Profile, Profiled, Verdicts, sizes};
use crate::replay::rank::Rank;
use crate::stream::columns::Stream;
use crate::stream::rows::Row;
use crate::stream::thread::Thread;
use crate::wire::parcels::{Counting, exchange};

/// Input of the rounds.
pub struct Judged {
    /// Verdicts of each location.
    pub verdicts: Vec<Verdicts>,
    /// The profile of this agent's locations.
    pub profile: Profile,
    /// Durations of calls by kind.
    pub kinds: Kinds,
    /// Numbers of groups.
    pub numbers: Interner<u64>,
    /// Groups of this agent.
    pub groups: Groups,
}

impl Judged {
    /// Judges the profiles of all agents. Groups that are `known` keep their numbers. Collective.
    pub fn new(
        job: &dyn Job,
        opened: &Opened,
        profiled: &[Profiled],
        settings: &Settings,
        baseline: &dyn Baseline,
        known: &[u64],
    ) -> Result<Judged> {
        let entries = profiled.iter().flat_map(|location| &location.entries);
        let transfers = profiled.iter().flat_map(Profiled::fastest);
        let kinds = Kinds::new(job, entries.map(|(_, entry)| entry), transfers)?;
        let (verdicts, profile) = profile::detect(profiled, settings, baseline, &kinds);
        let (numbers, groups) = groups(job, &opened.locations, known);
        Ok(Judged {
            verdicts,
            profile,
            kinds,
            numbers,
            groups,
        })
    }

    /// Notes in the profile the calls in groups with a member without a trace.
    pub fn note_missing_members(&mut self, opened: &Opened, profiled: &[Profiled]) {
        let (numbers, groups) = (&self.numbers, &self.groups);
        note_missing_members(
            &opened.locations,
            profiled,
            numbers,
            groups,
            &mut self.profile,
        );
    }
}

/// Builds the ranks of this agent. `clocks` are those of the locations, shifted to
/// the start of the run. Ranks that were `known` before the trace was opened again go on.
pub fn ranks<'a>(
    opened: &'a Opened,
    profiled: &[Profiled],
    verdicts: &[Verdicts],
    clocks: &[ClockMap],
    all: (bool, bool),
    keeps_writes: bool,
    (groups, known): (&Interner<u64>, Vec<Rank<'static>>),
) -> Vec<Rank<'a>> {
    let locations = &opened.locations;
    let mut bounds: Vec<(usize, usize)> = Vec::new();
    for (at, location) in locations.iter().enumerate() {
        match bounds.last_mut() {
            Some((first, end)) if locations[*first].header.rank == location.header.rank => {
                *end = at + 1;
            }
            _ => bounds.push((at, at + 1)),
        }
    }
    let mut known: Vec<Option<Rank>> = known.into_iter().map(Some).collect();
    known.resize_with(bounds.len(), || None);
    bounds
        .par_iter()
        .zip(known)
        .map(|(&(first, end), known)| {
            let threads = (first..end).map(|at| {
                let (rows, paths) = rows(&locations[at], &profiled[at], &verdicts[at], all, groups);
                let lists = lists(&locations[at]);
                let stream = Stream::new(&locations[at], clocks[at].clone());
                let number = locations[at].header.thread;
                let mut usual = verdicts[at].transfers.clone();
                let signatures = (0..).zip(locations[at].definitions.signatures());
                let rooted = signatures.filter_map(|(id, signature)| {
                    let key = (signature.operation, signature.call_path);
                    Some((id, *verdicts[at].rooted.get(&key)?))
                });
                usual.extend(rooted);
                Thread::new(number, stream, rows, lists, paths, usual)
            });
            let rank = locations[first].header.rank;
            let rank = Rank::new(rank, threads.collect(), &opened.agent_of);
            let mut rank = match known {
                Some(known) => known.onto(rank),
                None => rank,
            };
            rank.memory.keeps_writes = keeps_writes;
            for (number, at) in (first..end).enumerate() {
                let signatures = locations[at].definitions.signatures();
                rank.messages.cancels |= signatures.iter().any(|s| s.operation == MPI_Cancel);
                for (id, signature) in signatures.iter().enumerate() {
                    let send = rank.messages.sends.of_send(signature, &opened.agent_of);
                    let receive = rank
                        .messages
                        .receives
                        .of_receive(signature, &opened.agent_of);
                    let row = &mut rank.recorded.threads[number].rows[id];
                    row.send_channel = send;
                    row.receive_channel = receive;
                    row.choose_step();
                    row.own_group = rank.collectives.number(row.group);
                }
            }
            for location in &locations[first..end] {
                for communicator in &location.definitions.communicators {
                    if let Some(group) = groups.find(&communicator.id) {
                        rank.collectives
                            .local_ranks
                            .insert(group, communicator.local_rank);
                    }
                }
            }
            rank
        })
        .collect()
}

pub fn rows(
    location: &Location,
    profiled: &Profiled,
    verdicts: &Verdicts,
    (all, asks_all): (bool, bool),
    groups: &Interner<u64>,
) -> (Vec<Row>, Vec<PathKey>) {
    let signatures = location.definitions.signatures();
    // A rank of an intercommunicator waits only for the other group.
    let communicators = location.definitions.communicators.iter();
    let between: Vec<u64> = communicators
        .filter(|c| c.kind != 0)
        .map(|c| c.id)
        .collect();
    let sizes = sizes(location);
    let is_of_all = |signature: &Signature| {
        let size = sizes.get(&signature.group).copied().unwrap_or(0);
        let is_all = signature.group == ALL_PES || size >= location.header.ranks;
        is_all && !between.contains(&signature.group) && signature.has(flags::COLLECTIVE)
    };
    let of_signature = signatures.iter().map(|signature| {
        let key = profiled
            .paths
            .get(signature.call_path as usize)
            .copied()
            .unwrap_or_default();
        let mut row = Row::new(signature);
        row.meets &= !between.contains(&signature.group);
        row.of_all = is_of_all(signature) && row.is_meeting();
        row.group = groups.find(&signature.group).unwrap_or(NONE);
        row.threshold = if signature.has(flags::PAUSED) {
            i64::MAX
        } else if all {
            0
        } else {
            verdicts
                .entries
                .get(&(signature.operation, signature.call_path))
                .map_or(i64::MAX, |verdict| verdict.threshold)
        };
        row.asks_from = match asks_all && !signature.has(flags::PAUSED) {
            true => 0,
            false => row.threshold,
        };
        (row, key)
    });
    of_signature.unzip()
}

/// Completion lists by id. A signature may name an id that does not exist.
pub fn lists(location: &Location) -> Vec<Vec<(u32, u32)>> {
    location.definitions.completion_lists().to_vec()
}

/// Numbers the groups of this agent, those that are `known` first, and gets the number of members with
/// a trace of each from the others. Collective.
pub fn groups(job: &dyn Job, locations: &[Location], known: &[u64]) -> (Interner<u64>, Groups) {
    let mut numbers = Interner::default();
    let mut list: Vec<Group> = Vec::new();
    let mut members: Vec<(u32, u32)> = Vec::new();
    for &id in known {
        numbers.number(id);
        list.push(Group {
            id,
            size: 0,
            local: 0,
        });
    }
    for location in locations {
        let mut sizes: Vec<_> = sizes(location).into_iter().collect();
        sizes.sort_unstable();
        for (id, size) in sizes {
            let number = numbers.number(id);
            if number as usize == list.len() {
                list.push(Group {
                    id,
                    size: 0,
                    local: 0,
                });
            }
            list[number as usize].size = size.max(list[number as usize].size);
            members.push((number, location.header.rank));
        }
    }
    members.sort_unstable();
    members.dedup();
    members
        .iter()
        .for_each(|&(number, _)| list[number as usize].local += 1);
    let expected = expected(job, &mut list);
    let topology = Topology::gather(job, locations);
    (numbers, Groups::new(list, expected, topology))
}

/// Notes in the profile the calls in groups with a member without a trace.
fn note_missing_members(
    locations: &[Location],
    profiled: &[Profiled],
    numbers: &Interner<u64>,
    groups: &Groups,
    profile: &mut Profile,
) {
    for (location, profiled) in locations.iter().zip(profiled) {
        for signature in location.definitions.signatures() {
            let Some(number) = numbers.find(&signature.group) else {
                continue;
            };
            if !signature.has(flags::COLLECTIVE) || !groups.is_missed(number) {
                continue;
            }
            let path = profiled.paths.get(signature.call_path as usize);
            if let Some(sums) = path.and_then(|path| profile.get_mut(&(signature.operation, *path)))
            {
                sums.members_missing = true;
            }
        }
    }
}

/// Number of members of each group with a trace, in all agents. Sizes of groups become what any of
/// them knows.
pub fn expected(job: &dyn Job, list: &mut [Group]) -> Vec<u32> {
    let agents = job.agents();
    let mut asking: Vec<Counting> = (0..agents).map(|_| Counting::default()).collect();
    let mut order: Vec<(usize, usize)> = Vec::new();
    for group in &*list {
        let agent = owner(group.id, 0, agents);
        order.push((agent, asking[agent].counts.len()));
        let (local, size) = (u64::from(group.local), u64::from(group.size));
        asking[agent].counts.push([group.id, local, size]);
    }
    let mut received = exchange(job, &mut asking);
    let mut sums: FxHashMap<u64, (u64, u64)> = FxHashMap::default();
    for [id, local, size] in received.iter().flat_map(|parcel| &parcel.counts) {
        let sum = sums.entry(*id).or_default();
        *sum = (sum.0 + local, sum.1.max(*size));
    }
    for [id, local, size] in received.iter_mut().flat_map(|parcel| &mut parcel.counts) {
        (*local, *size) = sums[id];
    }
    let answers = exchange(job, &mut received);
    let answers = order
        .iter()
        .map(|&(agent, at)| answers[agent].counts.get(at));
    let known = answers.zip(list).map(|(answer, group)| {
        let [_, local, size] = answer.copied().unwrap_or_default();
        group.size = group.size.max(size as u32);
        local as u32
    });
    known.collect()
}
