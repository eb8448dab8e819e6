//! What all agents know of each other's locations.

use anyhow::{Result, bail};
use laggard_comm::Job;
use laggard_report::Anomaly;
use serde::{Deserialize, Serialize};

use crate::input::directory::merge_anomalies;
use crate::input::open::Opened;

/// A location of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// Rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Thread of the rank.
    pub thread: u32,
    /// The agent that holds it.
    pub agent: u32,
    /// Position of its host among `Events::hosts`.
    pub host: u32,
}

/// All agents' locations, ascending by rank and thread. Those of an agent stand together. Collective.
pub fn of_all(job: &dyn Job, opened: &Opened) -> Result<Vec<Placed>> {
    let own = opened.locations.iter().map(|location| {
        let rank = location.header.rank;
        Placed {
            rank,
            thread: location.header.thread,
            agent: job.agent() as u32,
            host: opened.hosts.get(rank as usize).copied().unwrap_or(0),
        }
    });
    let mut all: Vec<Placed> = Vec::new();
    for bytes in job.all_gather(postcard::to_stdvec(&own.collect::<Vec<_>>())?) {
        all.extend(postcard::from_bytes::<Vec<Placed>>(&bytes)?);
    }
    if !all.is_sorted_by_key(|one| (one.rank, one.thread)) {
        bail!("the ranks of this trace cannot be dealt out: use one agent");
    }
    Ok(all)
}

/// The anomalies of all agents, at the head. Collective.
pub fn anomalies_of_all(job: &dyn Job, own: Vec<Anomaly>) -> Result<Vec<Anomaly>> {
    let mut all = Vec::new();
    for bytes in job.all_gather(serde_json::to_vec(&own)?) {
        all.extend(serde_json::from_slice::<Vec<Anomaly>>(&bytes)?);
    }
    Ok(match job.agent() {
        0 => merge_anomalies(all),
        _ => Vec::new(),
    })
}
