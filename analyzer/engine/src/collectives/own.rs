//! The collectives of one rank.

use rustc_hash::FxHashMap;

use crate::basics::ends::NONE;
use crate::collectives::group::GroupEntry;
use crate::wire::parcels::Member;

/// The collectives of one rank.
#[derive(Debug, Default)]
pub struct Collectives {
    /// How many it has begun, by its own numbers of groups.
    next: Vec<u64>,
    /// These by the agent's numbers.
    own: FxHashMap<u32, u32>,
    /// Its number in communicators, by the agent's group number.
    pub local_ranks: FxHashMap<u32, u32>,
    /// Collectives entered in this slab.
    pub entries: Vec<GroupEntry>,
    /// Transfers before the fences among these: group, which collective on it, transfer.
    pub transfers: Vec<(u32, u64, Member)>,
}

impl Collectives {
    /// The rank's own number of a group of the agent's.
    pub fn number(&mut self, group: u32) -> u32 {
        let next = self.own.len() as u32;
        let own = *self.own.entry(group).or_insert(next);
        self.next.resize(self.own.len(), 0);
        own
    }

    /// Which collective begins now on a group, by the rank's own number.
    #[inline]
    pub fn begin(&mut self, own: u32) -> u64 {
        let next = &mut self.next[own as usize];
        let n = *next;
        *next += 1;
        n
    }

    /// How many it has begun, by the agent's number of their group.
    pub fn begun(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let own = self.own.iter();
        own.filter_map(|(&group, &own)| Some((group, *self.next.get(own as usize)?)))
    }

    /// How many it has begun on a group, by the agent's number.
    pub fn begun_on(&self, group: u32) -> u64 {
        let own = self.own.get(&group);
        let next = own.and_then(|&own| self.next.get(own as usize));
        next.copied().unwrap_or(0)
    }

    /// The world `rank` that has these as a member of a collective.
    pub fn member(&self, rank: u32, entry: &GroupEntry) -> Member {
        Member {
            party: entry.party(rank),
            leave: entry.leave,
            local_rank: self.local_ranks.get(&entry.group).copied().unwrap_or(0),
            asks: u32::from(entry.asks),
            late: NONE,
        }
    }
}
