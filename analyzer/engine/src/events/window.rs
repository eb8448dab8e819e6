//! Numbered items that finish in about the order of their numbers.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

/// Most numbers between the first unfinished item and the last known one. Items that take longer
/// move to a hash table.
const MOST: usize = 1 << 12;

/// Items under way.
pub struct Window<T> {
    /// Number of the first slot.
    first: u64,
    slots: VecDeque<Slot<T>>,
    /// Unfinished items before `first`.
    late: FxHashMap<u64, T>,
}

enum Slot<T> {
    /// Not begun.
    Free,
    Open(T),
    Done,
}

impl<T> Default for Window<T> {
    fn default() -> Self {
        Window {
            first: 0,
            slots: VecDeque::new(),
            late: FxHashMap::default(),
        }
    }
}

impl<T: Default> Window<T> {
    /// The item with this number, begun if it is new. A finished item begins again.
    pub fn begin(&mut self, n: u64) -> &mut T {
        while n.saturating_sub(self.first) >= MOST as u64 {
            self.advance();
        }
        let Some(at) = n.checked_sub(self.first) else {
            return self.late.entry(n).or_default();
        };
        let at = at as usize;
        if at >= self.slots.len() {
            self.slots.resize_with(at + 1, || Slot::Free);
        }
        let slot = &mut self.slots[at];
        if !matches!(slot, Slot::Open(_)) {
            *slot = Slot::Open(T::default());
        }
        match slot {
            Slot::Open(open) => open,
            _ => unreachable!("it has just been opened"),
        }
    }

    /// Drops the first slot; an unfinished item becomes late.
    fn advance(&mut self) {
        match self.slots.pop_front() {
            Some(Slot::Open(open)) => {
                self.late.insert(self.first, open);
            }
            // A free one that begins after this is late at once.
            Some(Slot::Free | Slot::Done) | None => {}
        }
        self.first += 1;
    }

    /// The item with this number, if it is under way.
    pub fn get_mut(&mut self, n: u64) -> Option<&mut T> {
        let Some(at) = n.checked_sub(self.first) else {
            return self.late.get_mut(&n);
        };
        match self.slots.get_mut(at as usize) {
            Some(Slot::Open(open)) => Some(open),
            _ => None,
        }
    }

    /// Finishes an item and gives it back.
    pub fn finish(&mut self, n: u64) -> Option<T> {
        let Some(at) = n.checked_sub(self.first) else {
            return self.late.remove(&n);
        };
        let slot = self.slots.get_mut(at as usize)?;
        let done = match std::mem::replace(slot, Slot::Done) {
            Slot::Open(open) => Some(open),
            free_or_done => {
                *slot = free_or_done;
                None
            }
        };
        while let Some(Slot::Done) = self.slots.front() {
            self.advance();
        }
        done
    }

    /// The unfinished items, ascending by number.
    pub fn into_rest(self) -> Vec<(u64, T)> {
        let mut rest: Vec<(u64, T)> = self.late.into_iter().collect();
        rest.sort_unstable_by_key(|(n, _)| *n);
        for (n, slot) in (self.first..).zip(self.slots) {
            if let Slot::Open(open) = slot {
                rest.push((n, open));
            }
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_is_forgotten_and_the_rest_is_kept() {
        let mut window: Window<u64> = Window::default();
        let far = 3 * MOST as u64;
        for n in 0..far {
            *window.begin(n) = n;
            // Every thousandth item takes longer than the window.
            if n % 1000 != 7 {
                assert_eq!(window.finish(n), Some(n));
                assert_eq!((window.finish(n), window.get_mut(n)), (None, None));
            }
        }
        assert!(window.slots.len() <= MOST);
        assert_eq!(window.get_mut(7).copied(), Some(7));
        assert_eq!(window.finish(7), Some(7));
        assert_eq!(window.finish(7), None);
        let rest: Vec<(u64, u64)> = (1007..far).step_by(1000).map(|n| (n, n)).collect();
        assert_eq!(window.into_rest(), rest);
    }

    #[test]
    fn numbers_may_come_in_any_order() {
        let mut window: Window<u64> = Window::default();
        let far = 2 * MOST as u64;
        *window.begin(far) = 1;
        *window.begin(3) += 5;
        *window.begin(far - 2) = 2;
        *window.begin(3) += 1;
        assert_eq!(window.get_mut(far - 1), None);
        assert_eq!(window.into_rest(), [(3, 6), (far - 2, 2), (far, 1)]);
    }
}
