//! Completion lists: which requests a Wait or Test completed, each list once.

use crate::hash::FastMap;

/// Entries of a list at most; longer ones go into extension records.
pub const MAX_ENTRIES: usize = 64;
/// Lists of one location at most.
const MAX_LISTS: usize = 8192;

/// The completion lists of one location.
#[derive(Default)]
pub struct Lists {
    /// Lists of one entry, the usual case.
    single: FastMap<(u32, u32), u32>,
    longer: FastMap<Box<[(u32, u32)]>, u32>,
    /// Entries by id, from 1.
    all: Vec<Box<[(u32, u32)]>>,
}

impl Lists {
    /// The id of the list with these (delta, outcome) entries and whether it is new;
    /// `None` if it is too long or there are too many.
    pub fn intern(&mut self, entries: &[(u32, u32)]) -> Option<(u32, bool)> {
        if entries.is_empty() {
            return Some((0, false));
        }
        let next = self.all.len() as u32 + 1;
        let full = next as usize > MAX_LISTS;
        if let [entry] = *entries {
            return match self.single.get(&entry) {
                Some(&id) => Some((id, false)),
                None if full => None,
                None => {
                    self.single.insert(entry, next);
                    self.all.push(entries.into());
                    Some((next, true))
                }
            };
        }
        match self.longer.get(entries) {
            Some(&id) => Some((id, false)),
            None if full || entries.len() > MAX_ENTRIES => None,
            None => {
                self.longer.insert(entries.into(), next);
                self.all.push(entries.into());
                Some((next, true))
            }
        }
    }

    /// The entries of a list; none for 0.
    pub fn entries(&self, id: u32) -> &[(u32, u32)] {
        let at = (id as usize).wrapping_sub(1);
        self.all.get(at).map_or(&[], |entries| entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_interned_up_to_the_limits() {
        let mut lists = Lists::default();
        assert_eq!(lists.intern(&[]), Some((0, false)));
        assert_eq!(lists.intern(&[(1, 0)]), Some((1, true)));
        assert_eq!(lists.intern(&[(2, 0), (1, 0)]), Some((2, true)));
        assert_eq!(lists.intern(&[(1, 0)]), Some((1, false)));
        assert_eq!(lists.intern(&[(2, 0), (1, 0)]), Some((2, false)));
        assert_eq!(lists.intern(&[(1, 0); MAX_ENTRIES + 1]), None);
        for outcome in 1.. {
            if lists.intern(&[(9, outcome)]).is_none() {
                assert_eq!(outcome as usize, MAX_LISTS - 1);
                break;
            }
        }
        assert_eq!(lists.intern(&[(1, 0)]), Some((1, false)));
    }
}
