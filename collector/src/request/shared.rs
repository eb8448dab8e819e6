//! Requests that share one handle.

use std::collections::VecDeque;

use super::table::Entry;
use crate::hash::FastMap;

/// Most requests remembered per handle. A program that drops requests without completing them
/// is not affected by the limit.
const MAX_REMEMBERED: usize = 1 << 22;

/// No slot.
const NONE: u64 = u64::MAX;

/// A request, or the place of a removed one.
struct Slot {
    entry: Entry,
    taken: bool,
    /// Number of the next request in the same variable.
    next: u64,
}

/// The requests with one handle, in posting order. Each operation takes the same average time,
/// whatever the number of requests.
#[derive(Default)]
pub struct Shared {
    /// Starts with the oldest active one.
    slots: VecDeque<Slot>,
    /// Number of the first slot.
    first: u64,
    /// First and last active request of each variable. Filled once the program completes
    /// requests out of posting order; empty when there are no requests.
    of_variable: FastMap<usize, (u64, u64)>,
}

impl Shared {
    /// Adds a request.
    #[inline(always)]
    pub fn push(&mut self, entry: Entry) {
        if self.slots.len() >= MAX_REMEMBERED {
            self.take_at(self.first);
        }
        let number = self.first + self.slots.len() as u64;
        self.slots.push_back(Slot {
            entry,
            taken: false,
            next: NONE,
        });
        if !self.of_variable.is_empty() {
            self.enter(number, entry.variable);
        }
    }

    /// Appends a request to the list of its variable.
    fn enter(&mut self, number: u64, variable: usize) {
        let known = self.of_variable.entry(variable).or_insert((number, number));
        let last = std::mem::replace(&mut known.1, number);
        if last != number
            && let Some(last) = self.slots.get_mut((last - self.first) as usize)
        {
            last.next = number;
        }
    }

    /// The request that `variable` means: the oldest of the variable, else the oldest of all.
    fn meant(&mut self, variable: usize) -> u64 {
        let is_first = |slot: &Slot| slot.entry.variable == variable;
        if self.slots.len() < 2 || self.slots.front().is_some_and(is_first) {
            return self.first;
        }
        if self.of_variable.is_empty() {
            for at in 0..self.slots.len() {
                let slot = &self.slots[at];
                if !slot.taken {
                    self.enter(self.first + at as u64, slot.entry.variable);
                }
            }
        }
        let known = self.of_variable.get(&variable);
        known.map_or(self.first, |&(first, _)| first)
    }

    fn get(&self, number: u64) -> Option<&Entry> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.slots.get(at).map(|slot| &slot.entry)
    }

    /// The request that a variable means.
    pub fn find(&mut self, variable: usize) -> Option<&Entry> {
        let number = self.meant(variable);
        self.get(number)
    }

    /// Removes a completed request as [`take`](Self::take) does; returns the result of `f`.
    #[inline]
    pub fn complete<T>(
        &mut self,
        variable: usize,
        before: Option<&Entry>,
        f: impl FnOnce(&Entry) -> T,
    ) -> Option<T> {
        // Nearly all requests complete in posting order. No place is empty while `of_variable`
        // is empty.
        if before.is_none()
            && self.of_variable.is_empty()
            && let Some(Slot { entry, .. }) = self.slots.front()
            && (entry.variable == variable || self.slots.len() == 1)
        {
            let result = f(entry);
            self.slots.pop_front();
            self.first += 1;
            return Some(result);
        }
        self.take(variable, before).map(|entry| f(&entry))
    }

    /// Removes a request: `before`, found earlier, unless it was removed since; else the one that
    /// `variable` means.
    pub fn take(&mut self, variable: usize, before: Option<&Entry>) -> Option<Entry> {
        // `before` was the oldest of its variable, and stays so until it is removed.
        if let Some(before) = before {
            let number = self.meant(before.variable);
            if self
                .get(number)
                .is_some_and(|entry| entry.is_same_post(before))
            {
                return self.take_at(number);
            }
        }
        let number = self.meant(variable);
        self.take_at(number)
    }

    /// Removes the oldest request of its variable.
    fn take_at(&mut self, number: u64) -> Option<Entry> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let slot = self.slots.get_mut(at)?;
        slot.taken = true;
        let (entry, next) = (slot.entry, slot.next);
        if !self.of_variable.is_empty() {
            if next == NONE {
                self.of_variable.remove(&entry.variable);
            } else if let Some((first, _)) = self.of_variable.get_mut(&entry.variable) {
                *first = next;
            }
        }
        while self.slots.front().is_some_and(|slot| slot.taken) {
            self.slots.pop_front();
            self.first += 1;
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Posted, kind};
    use crate::signature::Raw;

    fn push(shared: &mut Shared, post: u64, variable: usize) {
        let raw = Raw::new(14, 1);
        shared.push(Entry {
            variable,
            ..Entry::new(Posted::new(&raw, true), kind::ACTIVE, 0, post)
        });
    }

    fn take(shared: &mut Shared, variable: usize) -> Option<u32> {
        shared.complete(variable, None, |entry| entry.post)
    }

    #[test]
    fn they_are_told_apart_by_their_variable() {
        let mut shared = Shared::default();
        for (post, variable) in [(0, 0x10), (1, 0x20), (2, 0x30), (3, 0x20)] {
            push(&mut shared, post, variable);
        }
        assert_eq!(take(&mut shared, 0x30), Some(2));
        assert_eq!(take(&mut shared, 0x20), Some(1));
        assert_eq!(take(&mut shared, 0x99), Some(0));
        assert_eq!(take(&mut shared, 0x99), Some(3));
        assert_eq!(take(&mut shared, 0x99), None);
        push(&mut shared, 4, 0x20);
        assert_eq!(take(&mut shared, 0x20), Some(4));
        assert!(shared.slots.is_empty() && shared.of_variable.is_empty());
    }

    #[test]
    fn what_another_thread_took_is_not_taken_again() {
        let mut shared = Shared::default();
        (0..3).for_each(|post| push(&mut shared, post, 0x10));
        let before = shared.find(0x99).copied();
        assert_eq!(before.map(|entry| entry.post), Some(0));
        let post = |entry: Option<Entry>| entry.map(|entry| entry.post);
        assert_eq!(post(shared.take(0x99, before.as_ref())), Some(0));
        assert_eq!(post(shared.take(0x99, before.as_ref())), Some(1));
    }

    /// A million requests in other variables than they were posted in. The result must equal
    /// that of a full scan.
    #[test]
    fn many_are_as_cheap_as_few() {
        let mut shared = Shared::default();
        for round in 0..2u64 {
            (0..1 << 20).for_each(|post| push(&mut shared, post + round, 0x10));
            for post in 0..1 << 20 {
                assert_eq!(
                    take(&mut shared, post as usize * 8 + 0x1000),
                    Some((post + round) as u32)
                );
            }
        }
        assert!(shared.slots.is_empty());
    }
}
