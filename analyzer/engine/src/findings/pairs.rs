//! Who sends whom how many messages, and how much.

use std::cmp::Reverse;

use anyhow::Result;
use laggard_comm::{Filter, Job};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::basics::ends::NONE;
use crate::judge::profile::LocationTimes;

/// Pairs that are listed: those with most bytes.
const MOST: usize = 1024;

/// Messages and bytes.
pub type Sent = (u64, u64);

/// Messages by sending and receiving world rank.
pub type Own = FxHashMap<(u32, u32), Sent>;

/// Messages of some agents' ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairs {
    /// The pairs with most bytes, the first of them first: sender, receiver, what was sent.
    pub listed: Vec<(u32, u32, Sent)>,
    /// Number of pairs.
    pub count: u64,
    /// What all sent.
    pub all: Sent,
}

/// Adds messages.
pub fn add(sum: &mut Sent, (messages, bytes): Sent) {
    sum.0 = sum.0.saturating_add(messages);
    sum.1 = sum.1.saturating_add(bytes);
}

/// What all ranks sent to those of this agent, by receiver. Collective.
pub fn received(own: &Own, job: &dyn Job, agent_of: &[u32]) -> Result<FxHashMap<u32, Sent>> {
    let mut parcels: Vec<FxHashMap<u32, Sent>> = vec![FxHashMap::default(); job.agents()];
    for (&(_, to), &sent) in own {
        let agent = agent_of.get(to as usize).filter(|&&agent| agent != NONE);
        if let Some(&agent) = agent {
            add(parcels[agent as usize].entry(to).or_default(), sent);
        }
    }
    let mut here = std::mem::take(&mut parcels[job.agent()]);
    if job.agents() == 1 {
        return Ok(here);
    }
    let packed = parcels.iter().map(|parcel| match parcel.is_empty() {
        true => Ok(Vec::new()),
        false => postcard::to_stdvec(parcel),
    });
    let packed = packed.collect::<Result<Vec<_>, _>>()?;
    for bytes in job.exchange(packed).iter().filter(|b| !b.is_empty()) {
        for (to, sent) in postcard::from_bytes::<FxHashMap<u32, Sent>>(bytes)? {
            add(here.entry(to).or_default(), sent);
        }
    }
    Ok(here)
}

/// A receive only knows its buffer where it was posted before. Where a rank received all that was
/// sent to it, and in one thread, the senders know better. `locations` ascend by rank.
pub fn know_better(locations: &mut [LocationTimes], received: &FxHashMap<u32, Sent>) {
    for threads in locations.chunk_by_mut(|a, b| a.rank == b.rank) {
        let threads = threads.iter_mut().map(|one| (one.rank, &mut one.traffic));
        let mut receiving = threads.filter(|(_, traffic)| traffic.receives > 0);
        let (Some((rank, traffic)), None) = (receiving.next(), receiving.next()) else {
            continue;
        };
        if let Some(&(messages, bytes)) = received.get(&rank)
            && messages == traffic.receives
        {
            traffic.two_sided.received = bytes;
        }
    }
}

impl Pairs {
    /// The messages of an agent's ranks: no other agent has any of them.
    pub fn new(own: Own) -> Pairs {
        let mut pairs = Pairs {
            count: own.len() as u64,
            ..Pairs::default()
        };
        own.values().for_each(|sent| add(&mut pairs.all, *sent));
        let listed = own.into_iter().map(|((from, to), sent)| (from, to, sent));
        pairs.listed = listed.collect();
        pairs.cut();
        pairs
    }

    fn cut(&mut self) {
        let key = |&(from, to, (messages, bytes)): &(u32, u32, Sent)| {
            (Reverse(bytes), Reverse(messages), from, to)
        };
        self.listed.sort_unstable_by_key(key);
        self.listed.truncate(MOST);
    }
}

impl Filter for Pairs {
    fn merge(&mut self, other: Pairs) {
        self.listed.extend(other.listed);
        self.count += other.count;
        add(&mut self.all, other.all);
        self.cut();
    }
}
