//! A queue in contiguous memory.

use std::ops::{Deref, DerefMut};

/// Entries are pushed at the end and dropped at the front. Derefs to the slice of entries.
///
/// Searching is faster than in a ring buffer, and every call searches.
#[derive(Debug)]
pub struct Queue<T> {
    list: Vec<T>,
    /// Dropped entries at the front of `list`; at most half of it.
    gone: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue {
            list: Vec::new(),
            gone: 0,
        }
    }
}

impl<T> Queue<T> {
    /// Adds an entry at the end.
    #[inline(always)]
    pub fn push(&mut self, entry: T) {
        if self.list.len() == self.list.capacity() {
            self.grow();
        }
        self.list.push(entry);
    }

    /// Grows by less than `Vec`, which doubles: each of many ranks has such queues.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.list.reserve_exact(self.list.len() / 4 + 4);
    }

    /// Removes `count` entries at the front, or all.
    #[inline]
    pub fn drop_first(&mut self, count: usize) {
        self.gone += count.min(self.len());
        if self.gone == self.list.len() {
            self.list.clear();
            self.gone = 0;
        } else if self.gone > self.list.len() / 2 {
            self.close_up();
        }
    }

    /// Frees the memory that its entries do not need.
    pub fn shrink(&mut self) {
        self.close_up();
        self.list.shrink_to_fit();
    }

    /// Removes one entry.
    pub fn remove(&mut self, at: usize) -> T {
        self.list.remove(self.gone + at)
    }

    /// Moves the entries to the front of `list`: fewer than were dropped.
    #[inline(never)]
    fn close_up(&mut self) {
        self.list.drain(..self.gone);
        self.gone = 0;
    }
}

impl<T> Deref for Queue<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        &self.list[self.gone..]
    }
}

impl<T> DerefMut for Queue<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.list[self.gone..]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Random pushes, drops and removals.
        #[test]
        fn it_is_what_a_ring_is(steps in prop::collection::vec((0..9usize, 0..9usize), 0..60)) {
            let (mut queue, mut ring) = (Queue::default(), VecDeque::new());
            for (number, (come, go)) in (0..).zip(steps) {
                for _ in 0..come {
                    queue.push(number);
                    ring.push_back(number);
                }
                queue.drop_first(go);
                ring.drain(..go.min(ring.len()));
                if go < ring.len() {
                    prop_assert_eq!(Some(queue.remove(go)), ring.remove(go));
                }
                prop_assert_eq!(&*queue, &*ring.make_contiguous());
                prop_assert!(queue.gone <= queue.len() + 1);
            }
        }
    }
}
