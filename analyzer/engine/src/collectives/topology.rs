//! Neighbours in communicators with a topology, known to all agents: the owner of a collective must
//! know whom each member waits for.

use laggard_comm::Job;
use laggard_trace::Location;
use rustc_hash::FxHashMap;

use crate::wire::parcels::{Edges, Parcel};

/// Neighbours in all communicators.
#[derive(Debug, Default)]
pub struct Topology {
    /// By communicator and world rank: the sources of that rank, as ranks of the communicator.
    sources: FxHashMap<(u64, u32), Vec<u32>>,
}

impl Topology {
    /// The topologies in the traces of all agents. Collective.
    pub fn gather(job: &dyn Job, locations: &[Location]) -> Topology {
        let mut own = Edges::default();
        for location in locations {
            for found in &location.definitions.neighbours {
                let rank = u64::from(location.header.rank);
                let count = found.sources.len() as u64;
                own.lists.push([found.communicator, rank, count]);
                own.sources.extend_from_slice(&found.sources);
            }
        }
        let mut topology = Topology::default();
        for bytes in job.all_gather(own.pack()) {
            let edges = Edges::unpack(&bytes);
            let mut sources = &edges.sources[..];
            for &[communicator, rank, count] in &edges.lists {
                let list;
                (list, sources) = sources.split_at(count as usize);
                let key = (communicator, rank as u32);
                topology.sources.insert(key, list.to_vec());
            }
        }
        topology
    }

    /// The ranks of the communicator that send to `rank`, a world rank; `None` = unknown.
    pub fn sources(&self, communicator: u64, rank: u32) -> Option<&[u32]> {
        self.sources.get(&(communicator, rank)).map(Vec::as_slice)
    }
}
