//! The processors that ranks may use, and hosts with more ranks, threads of OpenMP teams, and threads of the program
//! that compute, than processors.
//! There, much of the waiting is for a processor, not for another rank.

use std::collections::{BTreeMap, BTreeSet};

use laggard_report::{Crowd, HostProcessors, rank_ranges};
use laggard_trace::calls::number;
use laggard_trace::{Location, Signature};
use serde::{Deserialize, Serialize};

/// The processors of a host that ranks of the run may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Room {
    ranks: u32,
    /// Their first threads, further ones of OpenMP teams, and those that compute at the same time. Others may have
    /// nothing to do.
    threads: u32,
    /// Lists of processors as recorded, each once; empty if unknown.
    affinities: BTreeSet<String>,
    /// The least number that a quota allows a rank, if there is a quota.
    quota: Option<u32>,
}

impl Room {
    fn merge(&mut self, other: &Room) {
        self.ranks += other.ranks;
        self.threads += other.threads;
        self.affinities.extend(other.affinities.iter().cloned());
        self.quota = self.quota.into_iter().chain(other.quota).min();
    }

    /// Processors of all lists; `None` if unknown.
    fn cores(&self) -> Option<u32> {
        let cores = processors_in(&self.affinities)?;
        let cores = (!cores.is_empty()).then_some(cores.len() as u32)?;
        Some(self.quota.map_or(cores, |quota| quota.min(cores)))
    }
}

/// Processors of some lists; `None` if one is malformed.
fn processors_in(lists: &BTreeSet<String>) -> Option<BTreeSet<u32>> {
    let mut processors = BTreeSet::new();
    for range in lists.iter().flat_map(|list| list.split(',')) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        // Bounds invalid numbers of a file.
        processors.extend(first.min(MOST_PROCESSORS)..=last.min(MOST_PROCESSORS));
    }
    Some(processors)
}

/// Most processors of a host.
const MOST_PROCESSORS: u32 = 1 << 16;

/// The rooms of all hosts. `told` are the rooms of the agents' ranks.
pub fn merged<'r>(told: impl Iterator<Item = (&'r u64, &'r Room)>) -> BTreeMap<u64, Room> {
    let mut rooms: BTreeMap<u64, Room> = BTreeMap::new();
    for (host, room) in told {
        rooms.entry(*host).or_default().merge(room);
    }
    rooms
}

/// The processors of all hosts where they are known, those that are alike together.
pub fn processors(rooms: &BTreeMap<u64, Room>, names: &BTreeMap<u64, &str>) -> Vec<HostProcessors> {
    let mut alike: BTreeMap<(&Room, u32), Vec<String>> = BTreeMap::new();
    for (host, room) in rooms {
        if let Some(cores) = room.cores() {
            let name = names.get(host).copied().unwrap_or_default();
            alike
                .entry((room, cores))
                .or_default()
                .push(name.to_owned());
        }
    }
    let rows = alike.into_iter().map(|((room, cores), mut hosts)| {
        hosts.sort_unstable();
        HostProcessors {
            hosts,
            ranks: room.ranks,
            threads: room.threads,
            cores,
            affinities: room.affinities.iter().cloned().collect(),
            quota: room.quota,
        }
    });
    let mut rows: Vec<HostProcessors> = rows.collect();
    rows.sort_by(|a, b| a.hosts.cmp(&b.hosts));
    rows
}

/// The host with the most threads per processor, if that is more than one.
pub fn most_crowded(rooms: &BTreeMap<u64, Room>) -> Option<Crowd> {
    let known = rooms
        .values()
        .filter_map(|room| Some((room, room.cores()?)));
    let crowded: Vec<(&Room, u32)> = known
        .filter(|(room, cores)| room.threads > *cores)
        .collect();
    let more = |a: &&(&Room, u32), b: &&(&Room, u32)| {
        let of = |one: &(&Room, u32), other: &(&Room, u32)| {
            u64::from(one.0.threads) * u64::from(other.1)
        };
        of(a, b).cmp(&of(b, a)).then(a.0.threads.cmp(&b.0.threads))
    };
    let &(room, cores) = crowded.iter().max_by(more)?;
    Some(Crowd {
        ranks: room.ranks,
        threads: room.threads,
        cores,
        hosts: crowded.len() as u32,
    })
}

/// Whether a thread took part in regions of OpenMP.
fn is_in_teams(signature: &Signature) -> bool {
    (number::omp_parallel..=number::omp_sections_end).contains(&signature.operation)
}

/// The life of a thread.
#[derive(Clone, Copy, Debug)]
struct Life {
    /// Its begin and end, ns of the location's clock.
    times: (u64, u64),
    /// How long it was on a processor, and waited for one that others had, ns.
    had: u64,
    lacked: u64,
}

impl Life {
    /// `None` if that is not known.
    fn of(location: &Location) -> Option<Life> {
        let end = location.end.filter(|end| end.processor_ns > 0)?;
        let number = |key| {
            location
                .definitions
                .properties(key)
                .into_iter()
                .next()?
                .parse()
                .ok()
        };
        let born = number("born_ticks").unwrap_or(location.header.start_ticks);
        let ns = |ticks: u64| {
            let ns =
                u128::from(ticks) * 1_000_000_000 / u128::from(location.header.ticks_per_s.max(1));
            u64::try_from(ns).unwrap_or(u64::MAX)
        };
        Some(Life {
            times: (ns(born), ns(end.end_ticks)),
            had: end.processor_ns,
            lacked: number("delay_ns").unwrap_or(0),
        })
    }

    fn length(&self) -> u64 {
        self.times.1.saturating_sub(self.times.0)
    }

    fn wanted(&self) -> u64 {
        self.had.saturating_add(self.lacked)
    }

    /// Whether it was on a processor, or waited for one, for half of its life.
    fn computes(&self) -> bool {
        self.wanted() >= self.length() / 2
    }
}

/// Threads that compute lack processors if they waited for one during this part of that time, and of the first
/// thread's life.
const LACKING: u64 = 20;
const NOTABLE: u64 = 100;

/// How many threads of a rank compute at the same time, beside OpenMP teams; 1 if they have the processors for
/// that. The first thread may sleep meanwhile.
fn computing(first: Option<Life>, further: &[Life]) -> u32 {
    let all: Vec<&Life> = further.iter().filter(|life| life.computes()).collect();
    let sum = |of: fn(&Life) -> u64| {
        all.iter()
            .fold(0, |sum: u64, life| sum.saturating_add(of(life)))
    };
    let (had, lacked) = (sum(|life| life.had), sum(|life| life.lacked));
    let life = first.map_or(0, |first| first.length());
    if lacked < had.saturating_add(lacked) / LACKING || lacked < life / NOTABLE {
        return 1;
    }
    let mut changes: Vec<(u64, i64)> = Vec::new();
    for life in &all {
        changes.extend([(life.times.0, 1), (life.times.1, -1)]);
    }
    // Who ends makes room for who begins then.
    changes.sort_unstable();
    let (mut now, mut most, mut since, mut together) = (0, 0, 0, 0);
    for (time, change) in changes {
        together += if now > 0 { time - since } else { 0 };
        since = time;
        now += change;
        most = most.max(now);
    }
    // What the first thread cannot have done before and after them.
    let meanwhile = first.map_or(0, |first| {
        first.wanted().saturating_sub(life.saturating_sub(together))
    });
    let own = i64::from(together > 0 && meanwhile >= together / 2);
    (most + own).max(1) as u32
}

/// Processors that threads of a rank may run on, each where it was in the end; `None` if unknown. With some
/// bindings each thread has its own.
fn affinity(first: &Location, further: &[Location]) -> Option<String> {
    let of = |location: &Location| location.definitions.properties("affinity").pop();
    let all = further.iter().chain([first]).filter_map(of);
    let mut lists: BTreeSet<String> = all.filter(|list| !list.is_empty()).collect();
    let first = lists.pop_first()?;
    if lists.is_empty() {
        return Some(first);
    }
    lists.insert(first);
    processors_in(&lists).map(rank_ranges)
}

/// Rooms of the ranks of these locations, by host; one agent holds a rank.
pub fn rooms(locations: &[Location]) -> BTreeMap<u64, Room> {
    let mut rooms: BTreeMap<u64, Room> = BTreeMap::new();
    let ranks = locations.chunk_by(|a, b| a.header.rank == b.header.rank);
    for (location, further) in ranks.filter_map(<[Location]>::split_first) {
        let (teams, others): (Vec<&Location>, Vec<_>) = further.iter().partition(|thread| {
            let signatures = thread.definitions.signatures();
            signatures.iter().any(is_in_teams)
        });
        let others: Vec<Life> = others.into_iter().filter_map(Life::of).collect();
        let property = |key| location.definitions.properties(key).into_iter().next();
        let quota = property("processor_quota").and_then(|quota| quota.parse().ok());
        rooms
            .entry(location.header.host_id)
            .or_default()
            .merge(&Room {
                ranks: 1,
                threads: teams.len() as u32 + computing(Life::of(location), &others),
                affinities: affinity(location, further).into_iter().collect(),
                quota,
            });
    }
    rooms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(ranks: u32, affinities: &[&str], quota: Option<u32>) -> Room {
        Room {
            ranks,
            threads: ranks,
            affinities: affinities.iter().map(|&list| list.to_owned()).collect(),
            quota,
        }
    }

    #[test]
    fn ranks_that_share_processors_are_crowded() {
        let of = |rooms: &[Room]| {
            let crowd = most_crowded(&(0..).zip(rooms.iter().cloned()).collect());
            crowd.map(|crowd| (crowd.ranks, crowd.cores, crowd.hosts))
        };
        assert_eq!(of(&[room(4, &["0-1"], None)]), Some((4, 2, 1)));
        assert_eq!(of(&[room(2, &["0-1"], None)]), None);
        // Each rank has its own processor, or all have the same one.
        assert_eq!(of(&[room(2, &["0", "1"], None)]), None);
        assert_eq!(of(&[room(2, &["1"], None)]), Some((2, 1, 1)));
        // A quota; a recorder without lists.
        assert_eq!(of(&[room(4, &["0-7"], Some(2))]), Some((4, 2, 1)));
        assert_eq!(of(&[room(4, &[], None)]), None);
        assert_eq!(of(&[room(4, &["x"], None)]), None);
        let two = [room(8, &["0-3"], None), room(6, &["0-1"], None)];
        assert_eq!(of(&two), Some((6, 2, 2)));
        let team = Room {
            threads: 4,
            ..room(2, &["0-1"], None)
        };
        assert_eq!(of(&[team]), Some((2, 2, 1)));
    }

    #[test]
    fn threads_that_lack_processors_at_the_same_time_count() {
        let life = |times, had, lacked| Life { times, had, lacked };
        let first = |had| Some(life((0, 1000), had, 0));
        let of = |first, further: &[Life]| computing(first, further);
        let two = [life((0, 400), 180, 200), life((100, 500), 190, 200)];
        // The first thread waits for their end, or computes, too.
        assert_eq!(of(first(100), &two), 2);
        assert_eq!(of(first(900), &two), 3);
        // It computes before them.
        assert_eq!(of(first(500), &two), 2);
        assert_eq!(of(first(100), &[]), 1);
        // Near misses: each has a processor; they sleep; they follow each other; it is little.
        let have = two.map(|of| life(of.times, 380, 10));
        assert_eq!(of(first(900), &have), 1);
        let asleep = two.map(|of| life(of.times, 20, 50));
        assert_eq!(of(first(900), &asleep), 1);
        let apart = [two[0], life((400, 800), 190, 200)];
        assert_eq!(of(first(100), &apart), 1);
        let short = [life((0, 8), 4, 4), life((0, 8), 4, 4)];
        assert_eq!(of(Some(life((0, 1_000_000), 0, 0)), &short), 1);
    }

    #[test]
    fn one_host_is_told_by_several_agents() {
        let (one, other) = (room(1, &["0"], None), room(2, &["0", "1"], None));
        let rooms = merged([(&7, &one), (&7, &other)].into_iter());
        let crowd = most_crowded(&rooms).unwrap();
        assert_eq!((crowd.ranks, crowd.cores), (3, 2));
    }

    #[test]
    fn hosts_that_are_alike_are_told_together() {
        let rooms = [
            room(2, &["2", "0-1"], Some(1)),
            room(2, &["0-3"], None),
            room(2, &["0-1", "2"], Some(1)),
            room(1, &["x"], None),
        ];
        let names = BTreeMap::from([(0, "b"), (1, "c"), (2, "a"), (3, "d")]);
        let rows = processors(&(0..).zip(rooms).collect(), &names);
        let told = rows
            .iter()
            .map(|row| (row.hosts.join(" "), row.cores, row.affinities.join(" ")));
        let expected = [("a b", 1, "0-1 2"), ("c", 4, "0-3")];
        assert!(told.eq(expected.map(|(hosts, cores, lists)| (
            hosts.to_owned(),
            cores,
            lists.to_owned()
        ))));
    }
}
