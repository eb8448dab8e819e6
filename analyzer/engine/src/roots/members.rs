//! Members of groups: who synchronised with whom in a collective.

use anyhow::Result;
use laggard_comm::Job;
use laggard_trace::ALL_PES;
use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::xxh3_128;

use crate::basics::intern::Interner;
use crate::input::open::Opened;
use crate::judge::profile::sizes;

/// Who is in a group. Duplicates of a communicator, and windows on it, have the same members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set(u32);

impl Set {
    /// Bit of the numbers of groups whose members are not known: each is a set of its own.
    const UNKNOWN: u32 = 1 << 31;
}

/// Members of the groups of this agent's locations.
#[derive(Default)]
pub struct Members {
    /// By the agent's number of a group, if its members are known.
    set_of: FxHashMap<u32, Set>,
    /// World ranks, ascending. The set of all ranks is empty.
    sets: Vec<Vec<u32>>,
    /// See [`hash`](Self::hash).
    hashes: Vec<[u64; 2]>,
    /// Larger sets that have all of a set's members, ascending, but for that of all ranks.
    within: Vec<Vec<u32>>,
}

impl Members {
    /// Gathers the members from the files that name them. Collective.
    ///
    /// # Errors
    /// Messages that cannot be read.
    pub fn gather(job: &dyn Job, opened: &Opened, numbers: &Interner<u64>) -> Result<Members> {
        // By number of the group; those of all ranks are empty.
        let mut of: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        let mut own: Vec<(u64, bool, Vec<u32>)> = Vec::new();
        let mut intercommunicators: FxHashSet<u32> = FxHashSet::default();
        let mut parents: Vec<(u64, u64)> = Vec::new();
        let ranks = opened.agent_of.len();
        for location in &opened.locations {
            let definitions = &location.definitions;
            let between = definitions.communicators.iter().filter(|c| c.kind != 0);
            let between: Vec<u64> = between.map(|communicator| communicator.id).collect();
            for (id, size) in sizes(location) {
                let is_all = size as usize >= ranks && !between.contains(&id) || id == ALL_PES;
                let number = numbers.find(&id).filter(|_| is_all);
                of.extend(number.map(|number| (number, Vec::new())));
            }
            // Only some files name the members, of an intercommunicator each its own group.
            for communicator in &definitions.communicators {
                let both = communicator
                    .members
                    .iter()
                    .chain(&communicator.remote_members);
                let both: Vec<u32> = both.copied().collect();
                if !both.is_empty() && (both.len() < ranks || communicator.kind != 0) {
                    own.push((communicator.id, communicator.kind != 0, both));
                }
            }
            let handles = definitions.group_handles.iter();
            parents.extend(handles.map(|handle| (handle.0, handle.1)));
        }
        for bytes in job.all_gather(postcard::to_stdvec(&own)?) {
            for (id, is_between, ranks) in
                postcard::from_bytes::<Vec<(u64, bool, Vec<u32>)>>(&bytes)?
            {
                let number = numbers.find(&id);
                intercommunicators.extend(number.filter(|_| is_between));
                let known = number.and_then(|number| of.get(&number));
                if let Some(number) = number.filter(|_| known.is_none_or(|all| !all.is_empty())) {
                    of.entry(number).or_default().extend(ranks);
                }
            }
        }
        for ranks in of.values_mut() {
            ranks.sort_unstable();
            ranks.dedup();
        }
        // Windows and files have the members of their communicators.
        for (id, communicator) in parents {
            let (number, parent) = (numbers.find(&id), numbers.find(&communicator));
            if let (Some(number), Some(parent)) = (number, parent)
                && let Some(ranks) = of.get(&parent).cloned()
            {
                of.entry(number).or_insert(ranks);
            }
        }
        Ok(Members::new(of, &intercommunicators))
    }

    /// Those of groups by number; of all ranks, they are empty. In intercommunicators, members wait for those of the other group
    /// alone, so these are sets of their own.
    fn new(of: FxHashMap<u32, Vec<u32>>, intercommunicators: &FxHashSet<u32>) -> Members {
        let mut members = Members::default();
        let mut known: FxHashMap<(bool, Vec<u32>), Set> = FxHashMap::default();
        for (group, ranks) in of {
            let next = Set(members.sets.len() as u32);
            let key = (intercommunicators.contains(&group), ranks);
            let set = *known.entry(key).or_insert_with_key(|(is_between, ranks)| {
                let bytes = ranks.iter().flat_map(|rank| rank.to_le_bytes());
                let bytes: Vec<u8> = bytes.chain(is_between.then_some(1)).collect();
                let hash = xxh3_128(&bytes);
                members.hashes.push([hash as u64, (hash >> 64) as u64]);
                members.sets.push(ranks.clone());
                next
            });
            members.set_of.insert(group, set);
        }
        let between = intercommunicators
            .iter()
            .filter_map(|group| members.set_of.get(group));
        let between: FxHashSet<u32> = between.map(|set| set.0).collect();
        // Whoever has all members of a set has its first one.
        let mut by_first: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (number, ranks) in (0..).zip(&members.sets) {
            if let Some(&first) = ranks.first() {
                by_first.entry(first).or_default().push(number);
            }
        }
        members.within = vec![Vec::new(); members.sets.len()];
        for (number, larger) in (0..).zip(&members.sets) {
            if between.contains(&number) {
                continue;
            }
            let smaller = larger
                .iter()
                .filter_map(|rank| by_first.get(rank))
                .flatten();
            for &smaller in smaller {
                let ranks = &members.sets[smaller as usize];
                if ranks.len() < larger.len()
                    && ranks.iter().all(|rank| larger.binary_search(rank).is_ok())
                {
                    members.within[smaller as usize].push(number);
                }
            }
        }
        members
    }

    /// Who is in a group.
    #[inline]
    pub fn set(&self, group: u32) -> Set {
        let known = self.set_of.get(&group).copied();
        known.unwrap_or(Set(group | Set::UNKNOWN))
    }

    /// What stands for a set at all agents; `None` if its members are not known.
    pub fn hash(&self, set: Set) -> Option<[u64; 2]> {
        self.hashes.get(set.0 as usize).copied()
    }

    fn ranks(&self, set: Set) -> Option<&[u32]> {
        self.sets.get(set.0 as usize).map(Vec::as_slice)
    }

    /// Whether a set is known to have all ranks.
    pub fn is_all(&self, set: Set) -> bool {
        self.ranks(set).is_some_and(<[u32]>::is_empty)
    }

    /// Whether a rank is known to be in a set.
    pub fn has(&self, set: Set, rank: u32) -> bool {
        let ranks = self.ranks(set);
        ranks.is_some_and(|ranks| ranks.is_empty() || ranks.binary_search(&rank).is_ok())
    }

    /// Whether a set is known to have all members of another one.
    pub fn has_all(&self, set: Set, of: Set) -> bool {
        let within = self.within.get(of.0 as usize);
        set == of
            || within.is_some_and(|within| within.binary_search(&set.0).is_ok())
            || self.is_all(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_compared_by_their_members() {
        let groups = [
            vec![],
            vec![0, 1],
            vec![0, 1],
            vec![0, 1, 3],
            vec![1, 2],
            vec![3],
            vec![0, 1, 3],
        ];
        let between = [16].into_iter().collect();
        let members = Members::new((10..).zip(groups).collect(), &between);
        let [all, two, dup, three, other, one] = [10, 11, 12, 13, 14, 15].map(|of| members.set(of));
        let unknown = [17, 18].map(|of| members.set(of));
        assert_eq!(two, dup);
        assert!(unknown[0] != unknown[1] && members.set(17) == unknown[0]);
        assert!(members.is_all(all) && !members.is_all(two) && !members.is_all(unknown[0]));
        let has_all = |set| {
            let sets = [all, two, three, other, one, unknown[0]];
            sets.map(|of| members.has_all(set, of))
        };
        assert_eq!(has_all(all), [true; 6]);
        assert_eq!(has_all(two), [false, true, false, false, false, false]);
        assert_eq!(has_all(three), [false, true, true, false, true, false]);
        assert_eq!(
            has_all(unknown[0]),
            [false, false, false, false, false, true]
        );
        // An intercommunicator is a set of its own, in which not all meet.
        let between = members.set(16);
        assert!(between != three && members.hash(between) != members.hash(three));
        assert_eq!(has_all(between), [false; 6]);
        assert!(members.has_all(between, between) && members.has(between, 3));
        let has = |set| [0, 1, 2, 3].map(|rank| members.has(set, rank));
        assert_eq!(
            [all, three].map(has),
            [[true; 4], [true, true, false, true]]
        );
        assert_eq!(has(unknown[0]), [false; 4]);
    }
}
