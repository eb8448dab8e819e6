//! Entries that come and go, by number.

use std::ops::{Index, IndexMut};

use crate::basics::ends::NONE;
use crate::basics::room::make_room;

/// A slab of entries; the number of a dropped entry is used again.
#[derive(Debug)]
pub struct Slots<T> {
    list: Vec<T>,
    free: Vec<u32>,
    /// Length before the last `compact`: about as much will be needed again.
    expected: usize,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots {
            list: Vec::new(),
            free: Vec::new(),
            expected: 0,
        }
    }
}

impl<T> Slots<T> {
    /// Stores an entry and returns its number.
    #[inline(always)]
    pub fn keep(&mut self, entry: T) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.list[slot as usize] = entry;
                slot
            }
            None => {
                make_room(&mut self.list, 1, self.expected);
                self.list.push(entry);
                self.list.len() as u32 - 1
            }
        }
    }

    /// Stores the worse of `entry` and the one in `slot`, if there is one. Returns the slot's
    /// number if `entry` is stored.
    #[inline(always)]
    pub fn keep_worse(
        &mut self,
        slot: &mut u32,
        entry: T,
        worse: impl Fn(&T, &T) -> bool,
    ) -> Option<u32> {
        if *slot == NONE {
            *slot = self.keep(entry);
        } else if worse(&entry, &self[*slot]) {
            self[*slot] = entry;
        } else {
            return None;
        }
        Some(*slot)
    }

    /// Frees an entry's number.
    #[inline]
    pub fn drop(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// The entry with a number; a dropped entry may still be there. `None` for `NONE`.
    #[inline]
    pub fn get(&self, slot: u32) -> Option<&T> {
        self.list.get(slot as usize)
    }

    /// The numbers of all entries, some of them dropped.
    pub fn numbers(&self) -> std::ops::Range<u32> {
        0..self.list.len() as u32
    }

    /// All entries, some of them dropped.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.list.iter_mut()
    }
}

impl<T: Copy> Slots<T> {
    /// Gives memory back if most is free. `used` are the numbers of all entries, which change.
    pub fn compact<'s>(&mut self, used: impl Iterator<Item = &'s mut u32>) {
        let kept = self.list.len() - self.free.len();
        if self.free.len() <= kept {
            return;
        }
        let mut list = Vec::with_capacity(kept);
        for slot in used.filter(|slot| **slot != NONE) {
            list.push(self.list[*slot as usize]);
            *slot = list.len() as u32 - 1;
        }
        *self = Slots {
            // Some spare room, or half of the slabs would have to move theirs.
            expected: self.list.len() + self.list.len() / 16,
            list,
            free: Vec::new(),
        };
    }
}

impl<T> Index<u32> for Slots<T> {
    type Output = T;
    #[inline]
    fn index(&self, slot: u32) -> &T {
        &self.list[slot as usize]
    }
}

impl<T> IndexMut<u32> for Slots<T> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.list[slot as usize]
    }
}
