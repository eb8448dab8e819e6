//! Results that go to the head, in one value that agents add up a tree.

use std::collections::BTreeMap;

use anyhow::Result;
use laggard_comm::{self as comm, Filter, Job};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::basics::anomaly::{Anomalies, Level};
use crate::basics::ends::NONE;
use crate::basics::intern::PathKey;
use crate::collectives::between::Between;
use crate::findings::fold::{FoldedFindings, Locations};
use crate::findings::functions::{self, InFunctions};
use crate::findings::hanging::{Hanging, Known};
use crate::findings::imbalance::{After, Computed, Shares};
use crate::findings::left;
use crate::findings::matrix::{Matrix, Waits};
use crate::findings::pairs::{self, Pairs};
use crate::findings::per_rank::Rows;
use crate::findings::regions::Regions;
use crate::findings::{fold, hanging, imbalance, listing, regions, teams, within};
use crate::judge::account;
use crate::judge::profile::{Beside, Counters, LocationTimes, Profile, ProfileSums, Profiled};
use crate::replay::rank::Rank;
use crate::roots::activities::{Kind, OFF_WORK};
use crate::roots::functions::Functions;
use crate::roots::sums::Roots;
use crate::stream::following;
use crate::stream::following::Followers;
use crate::stream::rows::TimeClass;
use crate::waits::sums::{Cause, CauseKey, FindingKey, Findings};

/// Results of one agent.
#[derive(Default)]
pub struct Own {
    /// Waiting times by finding.
    pub findings: Findings,
    /// What patterns charge by call and pattern, of the threads of ranks that have several.
    pub charged: Computed<(After, u8)>,
    pub profile: Profile,
    /// What counts for calls of single ranks beside the locations' profiles.
    pub beside: Vec<Beside>,
    /// Regions of the program.
    pub regions: Regions,
    /// Computation after calls.
    pub computed: Computed<After>,
    /// What of that was no work, by what it was.
    pub off_work: Computed<(After, Kind)>,
    /// Computation of threads before they meet.
    pub in_teams: teams::Computed,
    /// Parallel regions around calls.
    pub within: within::Regions,
    /// Computation in functions, as samples tell.
    pub in_functions: InFunctions,
    /// The same by function alone; empty without samples.
    pub functions: Computed<PathKey>,
    /// What its ranks did after slow calls.
    pub followers: Followers,
    /// Who started the waiting.
    pub roots: Roots,
    /// Computation between the run's meetings.
    pub between: Between,
    /// Messages that its ranks sent.
    pub pairs: pairs::Own,
    /// Whom its ranks waited for.
    pub waits: Waits,
    /// Times of its locations, ascending by rank and thread.
    pub locations: Vec<LocationTimes>,
    pub anomalies: Anomalies,
    /// Calls that never returned.
    pub hanging: Vec<Hanging>,
    /// Answers of its ranks about open calls.
    pub known: Known,
    /// Questions sent.
    pub requests: u64,
    /// The table per rank, if requested.
    pub rows: Option<Rows>,
}

/// Merged results of one or more agents.
#[derive(Default, Serialize, Deserialize)]
pub struct Partial {
    pub findings: FoldedFindings,
    /// Wait states by the late call.
    pub caused: BTreeMap<u16, u64>,
    pub profile: Profile,
    /// Regions of the program.
    pub regions: Regions,
    /// Computation after calls.
    pub computed: BTreeMap<After, Shares>,
    /// Computation in functions, as samples tell.
    pub functions: BTreeMap<PathKey, Shares>,
    /// Computation of threads before they meet.
    pub in_teams: BTreeMap<teams::Before, teams::Shares>,
    /// Parallel regions around calls.
    pub within: within::Regions,
    /// What ranks did after slow calls.
    pub followers: Followers,
    /// Who started the waiting.
    pub roots: Roots,
    /// Computation between the run's meetings.
    pub between: Between,
    /// Who sends whom.
    pub pairs: Pairs,
    /// Who sends whom, and waits for whom.
    pub matrix: Matrix,
    /// Times of the locations.
    pub locations: Locations,
    pub anomalies: Anomalies,
    /// Calls that never returned.
    pub hanging: Vec<Hanging>,
    /// Answers of ranks about open calls.
    pub known: Known,
    /// Questions sent.
    pub requests: u64,
    /// Bytes that agents sent to each other.
    pub bytes_exchanged: u64,
    /// Largest resident memory of an agent, bytes.
    pub peak_memory: u64,
}

impl Partial {
    /// Removes the findings that are not listed and returns them.
    pub fn take_unlisted(&mut self) -> FoldedFindings {
        let (listed, rest) = std::mem::take(&mut self.findings)
            .into_iter()
            .partition(|(_, folded)| folded.is_listed);
        self.findings = listed;
        rest
    }
}

impl Filter for Partial {
    fn merge(&mut self, other: Partial) {
        self.findings.merge(other.findings);
        Filter::merge(&mut self.caused, other.caused);
        self.profile.merge(other.profile);
        Filter::merge(&mut self.regions, other.regions);
        Filter::merge(&mut self.computed, other.computed);
        Filter::merge(&mut self.functions, other.functions);
        Filter::merge(&mut self.in_teams, other.in_teams);
        Filter::merge(&mut self.within, other.within);
        self.followers.merge(other.followers);
        left::keep_listed(&mut self.followers, &self.findings);
        self.roots.merge(other.roots);
        self.between.merge(other.between);
        self.pairs.merge(other.pairs);
        self.matrix.merge(other.matrix);
        self.locations.merge(other.locations);
        self.anomalies.merge(other.anomalies);
        self.hanging.extend(other.hanging);
        self.known.merge(other.known);
        self.requests.merge(other.requests);
        self.bytes_exchanged.merge(other.bytes_exchanged);
        self.peak_memory = self.peak_memory.max(other.peak_memory);
    }
}

impl Own {
    /// Renames call paths. Entries about the same calls are then added up.
    pub fn rename_paths(&mut self, name: impl Fn(PathKey) -> PathKey) {
        for ((pattern, operation, path), mut sums) in std::mem::take(&mut self.findings) {
            let causes = std::mem::take(&mut sums.causes);
            let sum = self.findings.entry((pattern, operation, name(path)));
            let sum = sum.or_default();
            sum.merge(sums);
            for (mut key, mut cause) in causes {
                key.path = name(key.path);
                for other in &mut cause.others {
                    other.at.1 = name(other.at.1);
                }
                sum.causes.of(key).merge(cause);
            }
        }
        for ((operation, path), sums) in std::mem::take(&mut self.profile) {
            let sum = self.profile.entry((operation, name(path))).or_default();
            sum.merge(sums);
        }
        for beside in &mut self.beside {
            beside.site.1 = name(beside.site.1);
        }
        rename(&mut self.computed, |(operation, path)| {
            (operation, name(path))
        });
        rename(&mut self.off_work, |((operation, path), kind)| {
            ((operation, name(path)), kind)
        });
        rename(&mut self.charged, |((operation, path), pattern)| {
            ((operation, name(path)), pattern)
        });
        for ((operation, path), ranks) in std::mem::take(&mut self.in_teams) {
            let sums = self.in_teams.entry((operation, name(path))).or_default();
            for (rank, threads) in ranks {
                let of_rank = sums.entry(rank).or_default();
                for (thread, time) in threads {
                    let sums: &mut [u64; 2] = of_rank.entry(thread).or_default();
                    for (sum, time) in sums.iter_mut().zip(time) {
                        *sum = sum.saturating_add(time);
                    }
                }
            }
        }
        rename(&mut self.in_functions, |((operation, path), function)| {
            ((operation, name(path)), name(function))
        });
        within::rename_paths(&mut self.within, &name);
        following::rename_paths(&mut self.followers, &name);
        self.roots.rename_paths(&name);
        if let Some(rows) = &mut self.rows {
            rows.rename_paths(&name);
        }
        hanging::rename_paths(&mut self.hanging, &name);
        self.anomalies.rename_paths(name);
    }

    /// Sends each cause to the agent that holds its rank, so that one agent has all causes of a
    /// rank. Returns the causes of this agent's ranks that are not among its findings. Collective.
    fn deal_causes(
        &mut self,
        job: &dyn Job,
        agent_of: &[u32],
    ) -> Result<Vec<(FindingKey, CauseKey, Cause)>> {
        if job.agents() == 1 {
            return Ok(Vec::new());
        }
        let mut parcels: Vec<Vec<(FindingKey, CauseKey, Cause)>> = vec![Vec::new(); job.agents()];
        for (finding, sums) in &mut self.findings {
            for (key, cause) in std::mem::take(&mut sums.causes) {
                // Ranks without a trace belong to the head.
                let agent = agent_of.get(key.rank as usize).copied();
                let agent = agent.filter(|&agent| agent != NONE).unwrap_or(0);
                parcels[agent as usize].push((*finding, key, cause));
            }
        }
        let mut here = std::mem::take(&mut parcels[job.agent()]);
        let packed = parcels.iter().map(|parcel| match parcel.is_empty() {
            true => Ok(Vec::new()),
            false => postcard::to_stdvec(parcel),
        });
        let packed = packed.collect::<Result<Vec<_>, _>>()?;
        for bytes in job.exchange(packed).iter().filter(|b| !b.is_empty()) {
            here.extend(postcard::from_bytes::<Vec<_>>(bytes)?);
        }
        Ok(here)
    }

    /// Counts the wait states that this agent's ranks caused, by the late call: its findings have no
    /// other causes now, and `causes` are those that other agents found. Adds them to the first
    /// thread of each rank.
    fn count_caused(&mut self, causes: &[(FindingKey, CauseKey, Cause)]) -> BTreeMap<u16, u64> {
        let mut by_operation: BTreeMap<u16, u64> = BTreeMap::new();
        let findings = self.findings.values();
        let own = findings.flat_map(|sums| sums.causes.iter());
        let others = causes.iter().map(|(_, key, cause)| (key, cause));
        for (key, cause) in own.chain(others) {
            *by_operation.entry(key.operation).or_default() += cause.instances;
            let at = self.locations.partition_point(|one| one.rank < key.rank);
            let first = self
                .locations
                .get_mut(at)
                .filter(|one| one.rank == key.rank);
            if let Some(first) = first {
                first.traffic.caused += cause.instances;
            }
        }
        by_operation
    }

    /// Folds the results for the head; `locations` is the number in all agents. Findings that cost
    /// no rank `percent` of its time will not be listed. Collective.
    pub fn fold(
        mut self,
        job: &dyn Job,
        agent_of: &[u32],
        locations: usize,
        percent: f64,
    ) -> Result<Partial> {
        let causes = self.deal_causes(job, agent_of)?;
        let caused = self.count_caused(&causes);
        let received = pairs::received(&self.pairs, job, agent_of)?;
        pairs::know_better(&mut self.locations, &received);
        let ranks = agent_of.iter().filter(|&&agent| agent != NONE).count();
        let computed = imbalance::shares(job, &self.computed, ranks as u64)?;
        let functions = imbalance::shares(job, &self.functions, ranks as u64)?;
        let walls = listing::walls(&self.locations);
        let findings = fold::findings(
            (self.findings, &self.charged),
            causes,
            &walls,
            percent,
            agent_of.len(),
        );
        left::keep_listed(&mut self.followers, &findings);
        Ok(Partial {
            findings,
            caused,
            profile: self.profile,
            regions: self.regions,
            computed,
            functions,
            in_teams: teams::shares(&self.in_teams),
            within: self.within,
            followers: self.followers,
            roots: self.roots,
            between: self.between,
            matrix: Matrix::new(&self.pairs, &self.waits),
            pairs: Pairs::new(self.pairs),
            locations: Locations::new(job, self.locations, locations, agent_of.len()),
            anomalies: self.anomalies,
            hanging: self.hanging,
            known: self.known,
            requests: self.requests,
            bytes_exchanged: job.sent().bytes,
            peak_memory: comm::peak_memory(),
        })
    }
}

/// Gives places of computation other names.
fn rename<K: Ord>(computed: &mut Computed<K>, name: impl Fn(K) -> K) {
    for (key, threads) in std::mem::take(computed) {
        let sums = computed.entry(name(key)).or_default();
        for (thread, time) in threads {
            let sum = sums.entry(thread).or_default();
            *sum = sum.saturating_add(time);
        }
    }
}

impl Filter for ProfileSums {
    fn merge(&mut self, other: ProfileSums) {
        self.count = self.count.saturating_add(other.count);
        self.total = self.total.saturating_add(other.total);
        other.range.into_iter().for_each(|range| self.extend(range));
        self.ends = self.ends.saturating_add(other.ends);
        self.bytes = self.bytes.saturating_add(other.bytes);
        if other.filter > self.filter {
            self.filter = other.filter;
        }
        self.once.0 += other.once.0;
        self.once.1 = self.once.1.saturating_add(other.once.1);
        self.members_missing |= other.members_missing;
        self.members = self.members.max(other.members);
    }
}

/// Collects the findings of a rank's threads, and its time lost per thread. `profiled` are the
/// locations of `partial`.
pub fn collect(rank: &mut Rank, profiled: &[Profiled], named: &Functions, partial: &mut Own) {
    let number = rank.recorded.rank;
    let first_thread = rank
        .recorded
        .threads
        .first()
        .map_or(0, |first| first.number);
    let has_threads = rank.recorded.threads.len() > 1;
    let threads = rank.recorded.threads.iter_mut();
    for (thread, charged) in threads.zip(&mut rank.messages.asker.charged) {
        let who = (number, thread.number);
        let findings = &mut charged.findings;
        let following = std::mem::take(&mut thread.following);
        if thread.number == 0 {
            partial.between.add_rank(number, following.computed());
        }
        let (rows, paths) = (&thread.rows, &thread.paths);
        let name = |signature: u32| {
            let at = signature as usize;
            (rows[at].operation, paths[at])
        };
        let signatures = thread.stream.location().definitions.signatures();
        following.drain_into(&mut partial.followers, number, signatures, name);
        let place = partial
            .locations
            .binary_search_by_key(&who, LocationTimes::who);
        let mut between: FxHashMap<(u16, PathKey), i64> = FxHashMap::default();
        for (signature, looked, preempted) in thread.polling.between_after() {
            thread.counted.looked_after(signature, looked, preempted);
        }
        let looked = thread.polling.between();
        for (signature, looked) in looked.filter(|(_, looked)| *looked != 0) {
            let (operation, path) = name(signature);
            let sum = between.entry((operation, path)).or_default();
            *sum = sum.saturating_add(looked);
            if let Some(times) = place.ok().map(|at| &mut partial.locations[at]) {
                let inside = &mut times.inside[TimeClass::of(operation) as usize];
                *inside = inside.saturating_add_signed(looked);
            }
            let sums = partial.profile.entry((operation, path)).or_default();
            sums.total = sums.total.saturating_add_signed(looked);
            partial.beside.push(Beside {
                who,
                site: (operation, path),
                time: looked,
            });
        }
        if let Ok(at) = place {
            let Profiled {
                accounts, paths, ..
            } = &profiled[at];
            let signatures = (&thread.rows[..], &thread.paths[..]);
            let beside = (&between, &thread.counted.beyond[..]);
            partial.locations[at].settled =
                account::settle(accounts, findings, signatures, paths, beside);
        }
        if let (Some(rows), Ok(at)) = (&mut partial.rows, place) {
            rows.take(at, findings, name);
        }
        if let Ok(at) = place {
            let mut traffic = thread.counted.traffic(signatures);
            if thread.number == first_thread {
                (traffic.pairs, traffic.unneeded_pairs) = rank.memory.epochs.pairs;
            }
            traffic.waits = findings.waits();
            partial.locations[at].traffic = traffic;
            let beside = &thread.counted.beside;
            let counts = &beside.counted;
            let ns = |ticks| thread.stream.length_ns(ticks).max(0) as u64;
            partial.locations[at].outside =
                [beside.blocked, beside.preempted, beside.kernel].map(ns);
            let names = thread.stream.location().definitions.properties("counter");
            let names = names.into_iter().enumerate();
            partial.locations[at].counted = Counters {
                time: ns(counts.time),
                counts: names
                    .filter_map(|(at, name)| Some((name, counts.get(at)?)))
                    .collect(),
            };
        }
        for (peer, sent) in thread.counted.sent(signatures) {
            pairs::add(partial.pairs.entry((number, peer)).or_default(), sent);
        }
        for (signature, time) in thread.counted.computed() {
            let threads = partial.computed.entry(name(signature)).or_default();
            let sum = threads.entry(who).or_default();
            *sum = sum.saturating_add(time);
        }
        for (before, ticks) in thread.counted.off_work() {
            // Time that is told elsewhere as well cannot be more than there is.
            let mut left = thread.counted.computed_after(before);
            for (kind, ticks) in OFF_WORK.into_iter().zip(ticks) {
                let time = thread.stream.length_ns(ticks).max(0) as u64;
                let time = time.min(left);
                left -= time;
                if time > 0 {
                    let threads = partial.off_work.entry((name(before), kind)).or_default();
                    let sum = threads.entry(who).or_default();
                    *sum = sum.saturating_add(time);
                }
            }
        }
        for (signature, met) in thread.counted.met() {
            let off = thread.stream.length_ns(met.off).max(0) as u64;
            let ranks = partial.in_teams.entry(name(signature)).or_default();
            let threads = ranks.entry(number).or_default();
            let sums = threads.entry(thread.number).or_default();
            for (sum, time) in sums.iter_mut().zip([met.time, off.min(met.time)]) {
                *sum = sum.saturating_add(time);
            }
        }
        within::add(&mut partial.within, &thread.within, signatures, name);
        functions::add(&mut partial.in_functions, (number, thread), named);
        for (late, time) in findings.waits_for() {
            let sum = partial.waits.entry((number, late)).or_default();
            *sum = sum.saturating_add(time);
        }
        if has_threads {
            for (signature, pattern, sums) in findings.iter() {
                let key = (name(signature), pattern);
                let threads = partial.charged.entry(key).or_default();
                let sum = threads.entry(who).or_default();
                *sum = sum.saturating_add(sums.severity);
            }
        }
        findings.drain_into(&mut partial.findings, who, name);
        if let Ok(at) = place {
            partial.locations[at].waiting = findings.waiting;
        }
        let mut odd = |id: &str, count: u64, what: &str| {
            if count > 0 {
                let detail = format!("rank {number}, thread {}: {what}", thread.number);
                partial.anomalies.add(id, Level::Error, count, detail);
            }
        };
        odd(
            "undefined_signature",
            thread.undefined,
            "records of calls that are not defined",
        );
        odd(
            "damaged_block",
            thread.stream.damaged_chunks,
            "blocks of records with a wrong checksum, skipped",
        );
    }
    partial.requests += rank.messages.asker.requests;
}

pub fn paths_of_findings(findings: &FoldedFindings) -> Vec<PathKey> {
    let mut paths = Vec::new();
    for ((_, _, path), folded) in findings {
        paths.push(*path);
        for (key, cause) in &folded.causes {
            paths.push(key.path);
            paths.extend(cause.others.iter().map(|other| other.at.1));
        }
    }
    paths
}

/// Operations with a loss.
pub fn lossy(own: &Own) -> Vec<u16> {
    own.findings.keys().map(|key| key.1).collect()
}

/// Every call path that the report names, and all of the `lossy` operations, ascending. Other calls
/// at the same line may be without a loss.
pub fn paths_of(own: &Own, lossy: &[u16]) -> Vec<PathKey> {
    let mut paths: Vec<PathKey> = Vec::new();
    for ((_, _, path), sums) in &own.findings {
        paths.push(*path);
        for (key, cause) in sums.causes.iter() {
            paths.push(key.path);
            paths.extend(cause.others.iter().map(|other| other.at.1));
        }
    }
    paths.extend(regions::paths(&own.regions));
    paths.extend(own.computed.keys().map(|(_, path)| *path));
    paths.extend(own.in_teams.keys().map(|(_, path)| *path));
    paths.extend(within::paths(&own.within));
    paths.extend(own.in_functions.keys().map(|(_, function)| *function));
    paths.extend(following::paths(&own.followers));
    paths.extend(own.roots.paths());
    paths.extend(own.anomalies.places().map(|place| place.1));
    paths.extend(hanging::paths(&own.hanging));
    let named = own.profile.iter().filter(|((operation, _), sums)| {
        let is_lossy = lossy.binary_search(operation).is_ok();
        is_lossy || sums.once.0 > 0
    });
    paths.extend(named.map(|((_, path), _)| *path));
    paths
}
