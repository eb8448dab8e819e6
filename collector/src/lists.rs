//! Completion lists: the requests that a Wait or Test completed; each distinct list is stored
//! once.

use std::hash::BuildHasher;

use crate::hash::{BuildFast, FastMap};

/// Most entries of a list; longer ones go into extension records.
pub const MAX_ENTRIES: usize = 4096;
/// Most lists of one location.
const MAX_LISTS: usize = 8192;
/// Most entries of all lists of one location.
const MAX_ALL_ENTRIES: usize = 1 << 18;
/// A list of at least this many entries takes less room than extension records, even if it
/// occurs only once. Shorter ones become lists at their second occurrence.
const WORTH_IT: usize = 32;
/// Number of places for short lists that occurred once.
const REMEMBERED: usize = 1024;

/// Number of places for recently used lists.
const RECENT: usize = 256;

/// The completion lists of one location.
pub struct Lists {
    /// Ids of recently used lists, by hash; 0 = none.
    recent: Box<[u32; RECENT]>,
    /// Hashes of short lists that occurred once.
    once: Box<[u64; REMEMBERED]>,
    /// Number of entries in all lists.
    entries: usize,
    /// Lists of one entry, the usual case.
    single: FastMap<(u32, u32), u32>,
    longer: FastMap<Box<[(u32, u32)]>, u32>,
    /// Entries by id, from 1.
    all: Vec<Box<[(u32, u32)]>>,
}

impl Default for Lists {
    fn default() -> Self {
        Lists {
            recent: Box::new([0; RECENT]),
            once: Box::new([0; REMEMBERED]),
            entries: 0,
            single: FastMap::default(),
            longer: FastMap::default(),
            all: Vec::new(),
        }
    }
}

impl Lists {
    /// The id of the list with these (delta, outcome) entries, and whether it is new. `None` if
    /// extension records take less room, or if there are too many lists.
    #[inline]
    pub fn intern(&mut self, entries: &[(u32, u32)]) -> Option<(u32, bool)> {
        if entries.is_empty() {
            return Some((0, false));
        }
        let place = place(entries);
        let recent = self.recent[place];
        if recent != 0 && self.entries(recent) == entries {
            return Some((recent, false));
        }
        let found = self.find_or_add(entries);
        if let Some((id, _)) = found {
            self.recent[place] = id;
        }
        found
    }

    #[inline(never)]
    fn find_or_add(&mut self, entries: &[(u32, u32)]) -> Option<(u32, bool)> {
        let known = match entries {
            [entry] => self.single.get(entry),
            _ => self.longer.get(entries),
        };
        match known {
            Some(&id) => Some((id, false)),
            None => self.add(entries).map(|id| (id, true)),
        }
    }

    #[cold]
    fn add(&mut self, entries: &[(u32, u32)]) -> Option<u32> {
        let all = self.entries + entries.len();
        let full = self.all.len() >= MAX_LISTS || all > MAX_ALL_ENTRIES;
        if full || entries.len() > MAX_ENTRIES || !self.comes_again(entries) {
            return None;
        }
        self.entries = all;
        self.all.push(entries.into());
        let id = self.all.len() as u32;
        match entries {
            [entry] => self.single.insert(*entry, id),
            _ => self.longer.insert(entries.into(), id),
        };
        Some(id)
    }

    /// Whether a list occurred before, or deserves a definition at its first occurrence.
    fn comes_again(&mut self, entries: &[(u32, u32)]) -> bool {
        if entries.len() >= WORTH_IT {
            return true;
        }
        let hash = BuildFast::default().hash_one(entries);
        let place = &mut self.once[hash as usize % REMEMBERED];
        std::mem::replace(place, hash) == hash
    }

    /// The entries of a list; empty for 0.
    #[inline]
    pub fn entries(&self, id: u32) -> &[(u32, u32)] {
        let at = (id as usize).wrapping_sub(1);
        self.all.get(at).map_or(&[], |entries| entries)
    }
}

/// Place of a list in the table of recently used ones.
#[inline]
fn place(entries: &[(u32, u32)]) -> usize {
    let hash = entries.iter().fold(0u64, |hash, &(delta, outcome)| {
        let entry = u64::from(delta) | u64::from(outcome) << 32;
        (hash.rotate_left(26) ^ entry).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    (hash >> 32) as usize % RECENT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_interned_when_they_come_again() {
        let mut lists = Lists::default();
        assert_eq!(lists.intern(&[]), Some((0, false)));
        for (list, id) in [(&[(1, 0)][..], 1), (&[(2, 0), (1, 0)], 2)] {
            assert_eq!(lists.intern(list), None);
            assert_eq!(lists.intern(list), Some((id, true)));
            assert_eq!(lists.intern(list), Some((id, false)));
            assert_eq!(lists.entries(id), list);
        }
        assert_eq!(lists.intern(&[(1, 0); WORTH_IT]), Some((3, true)));
        assert_eq!(lists.intern(&[(1, 0); WORTH_IT]), Some((3, false)));
    }

    #[test]
    fn lists_that_come_once_leave_room_for_others() {
        let mut lists = Lists::default();
        for delta in 1..100_000 {
            assert_eq!(lists.intern(&[(delta, 0)]), None);
        }
        lists.intern(&[(7, 0)]);
        assert_eq!(lists.intern(&[(7, 0)]), Some((1, true)));
    }

    #[test]
    fn lists_are_bounded() {
        let mut lists = Lists::default();
        assert_eq!(lists.intern(&[(1, 0); MAX_ENTRIES + 1]), None);
        for outcome in 0..MAX_ALL_ENTRIES / MAX_ENTRIES {
            let list = [(9, outcome as u32); MAX_ENTRIES];
            assert_eq!(lists.intern(&list), Some((outcome as u32 + 1, true)));
        }
        assert_eq!(lists.intern(&[(8, 1); MAX_ENTRIES]), None);
        assert_eq!(lists.intern(&[(9, 0); MAX_ENTRIES]), Some((1, false)));
    }
}
