//! Hosts with more ranks, and threads of OpenMP teams, than processors. There, much of the waiting is for
//! a processor, not for another rank.

use std::collections::{BTreeMap, BTreeSet};

use laggard_report::Crowd;
use laggard_trace::calls::number;
use laggard_trace::{Location, Signature};
use serde::{Deserialize, Serialize};

/// The processors of a host that ranks of the run may use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Room {
    ranks: u32,
    /// Their first threads, and further ones of OpenMP teams. Others may have nothing to do.
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
        let mut cores = BTreeSet::new();
        for range in self.affinities.iter().flat_map(|list| list.split(',')) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            // Bounds invalid numbers of a file.
            cores.extend(first.min(MOST_PROCESSORS)..=last.min(MOST_PROCESSORS));
        }
        let cores = (!cores.is_empty()).then_some(cores.len() as u32)?;
        Some(self.quota.map_or(cores, |quota| quota.min(cores)))
    }
}

/// Most processors of a host.
const MOST_PROCESSORS: u32 = 1 << 16;

/// The host with the most threads per processor, if that is more than one. `told` are the rooms of
/// the agents' ranks.
pub fn most_crowded<'r>(told: impl Iterator<Item = (&'r u64, &'r Room)>) -> Option<Crowd> {
    let mut rooms: BTreeMap<u64, Room> = BTreeMap::new();
    for (host, room) in told {
        rooms.entry(*host).or_default().merge(room);
    }
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

/// Rooms of the ranks of these locations, by host; one agent holds a rank.
pub fn rooms(locations: &[Location]) -> BTreeMap<u64, Room> {
    let mut rooms: BTreeMap<u64, Room> = BTreeMap::new();
    let ranks = locations.chunk_by(|a, b| a.header.rank == b.header.rank);
    for (location, further) in ranks.filter_map(<[Location]>::split_first) {
        let teams = further.iter().filter(|thread| {
            let signatures = thread.definitions.signatures();
            signatures.iter().any(is_in_teams)
        });
        let property = |key| location.definitions.properties(key).into_iter().next();
        let quota = property("processor_quota").and_then(|quota| quota.parse().ok());
        let affinity = property("affinity").filter(|list| !list.is_empty());
        rooms
            .entry(location.header.host_id)
            .or_default()
            .merge(&Room {
                ranks: 1,
                threads: 1 + teams.count() as u32,
                affinities: affinity.into_iter().collect(),
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
            let told: Vec<(u64, Room)> = (0..).zip(rooms.iter().cloned()).collect();
            let crowd = most_crowded(told.iter().map(|(host, room)| (host, room)));
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
    fn one_host_is_told_by_several_agents() {
        let (one, other) = (room(1, &["0"], None), room(2, &["0", "1"], None));
        let crowd = most_crowded([(&7, &one), (&7, &other)].into_iter()).unwrap();
        assert_eq!((crowd.ranks, crowd.cores), (3, 2));
    }
}
