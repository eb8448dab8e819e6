//! The collectives of one rank.

use rustc_hash::FxHashMap;

use crate::basics::ends::NONE;
use crate::collectives::group::GroupEntry;
use crate::wire::parcels::Member;

/// The collectives of one rank.
#[derive(Debug, Default)]
pub struct Collectives {
    /// Number of collectives begun, by the rank's own group numbers.
    next: Vec<u64>,
    /// Own group numbers, by the agent's.
    own: FxHashMap<u32, u32>,
    /// The rank's number in communicators, by the agent's group number.
    pub local_ranks: FxHashMap<u32, u32>,
    /// Collectives entered in this slab.
    pub entries: Vec<GroupEntry>,
    /// Transfers before the fences in `entries`: group, index of the collective, transfer.
    pub transfers: Vec<(u32, u64, Member)>,
}

impl Collectives {
    /// The rank's own number of a group; `group` is the agent's number.
    pub fn number(&mut self, group: u32) -> u32 {
        let next = self.own.len() as u32;
        let own = *self.own.entry(group).or_insert(next);
        self.next.resize(self.own.len(), 0);
        own
    }

    /// Index of the collective that begins now. `own` is the rank's own group number.
    #[inline]
    pub fn begin(&mut self, own: u32) -> u64 {
        let next = &mut self.next[own as usize];
        let n = *next;
        *next += 1;
        n
    }

    /// Number of collectives begun, by the agent's group number.
    pub fn begun(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let own = self.own.iter();
        own.filter_map(|(&group, &own)| Some((group, *self.next.get(own as usize)?)))
    }

    /// Number of collectives begun on a group, by the agent's number.
    pub fn begun_on(&self, group: u32) -> u64 {
        let own = self.own.get(&group);
        let next = own.and_then(|&own| self.next.get(own as usize));
        next.copied().unwrap_or(0)
    }

    /// The rank as a member of a collective; `rank` is its world rank.
    pub fn member(&self, rank: u32, entry: &GroupEntry) -> Member {
        Member {
            party: entry.party(rank),
            leave: entry.leave,
            local_rank: self.local_ranks.get(&entry.group).copied().unwrap_or(0),
            asks: u32::from(entry.asks),
            late: NONE,
            through: i64::MAX,
            is_apart: 0,
        }
    }
}
