//! Merges many sorted lists.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// Lists ordered by their next entry. One entry costs the logarithm of the number of lists.
#[derive(Debug)]
pub struct InOrder<K: Ord>(BinaryHeap<Reverse<(K, usize)>>);

impl<K: Ord> InOrder<K> {
    /// Lists with these first keys, `None` for an empty list.
    pub fn new(first: impl Iterator<Item = Option<K>>) -> InOrder<K> {
        let lists = first.enumerate();
        let heads = lists.filter_map(|(list, key)| Some(Reverse((key?, list))));
        InOrder(heads.collect())
    }

    /// The list with the least entry; the first of equal ones.
    pub fn least(&self) -> Option<usize> {
        self.0.peek().map(|head| head.0.1)
    }

    /// The next key of that list; `None` at its end.
    pub fn advance(&mut self, next: Option<K>) {
        if let Some(mut head) = self.0.peek_mut() {
            match next {
                Some(key) => head.0.0 = key,
                None => drop(PeekMut::pop(head)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;

    use super::*;

    thread_local!(static COMPARED: Cell<usize> = const { Cell::new(0) });

    /// A time that counts how often it is compared.
    #[derive(Debug, PartialEq, Eq)]
    struct Time(u64);

    impl Ord for Time {
        fn cmp(&self, other: &Self) -> Ordering {
            COMPARED.set(COMPARED.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Time {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    /// Comparisons per entry when merging `lists` lists of `entries` entries each.
    fn compared(lists: u64, entries: u64) -> f64 {
        let key = |list: u64, entry: u64| Time(entry * 1000 + list * 7919 % 997);
        let mut next = vec![0; lists as usize];
        COMPARED.set(0);
        let mut merged = InOrder::new((0..lists).map(|list| Some(key(list, 0))));
        let mut last = (0, 0);
        let mut seen = 0;
        while let Some(list) = merged.least() {
            let at = next[list];
            let here = (key(list as u64, at).0, list);
            assert!(here >= last, "{here:?} after {last:?}");
            (last, seen) = (here, seen + 1);
            next[list] += 1;
            let goes_on = next[list] < entries;
            merged.advance(goes_on.then(|| key(list as u64, at + 1)));
        }
        assert_eq!(seen, lists * entries);
        COMPARED.get() as f64 / seen as f64
    }

    #[test]
    fn many_lists_cost_little_more_than_few() {
        let (few, many) = (compared(16, 64), compared(16 << 10, 64));
        // The cost grows with the logarithms of the numbers (4 and 14).
        assert!(
            many < few * 5.0,
            "{few} and {many} comparisons for an entry"
        );
    }

    #[test]
    fn empty_lists_are_no_trouble() {
        let mut lists = InOrder::new([None, Some(3), None, Some(3)].into_iter());
        assert_eq!(lists.least(), Some(1));
        lists.advance(None);
        assert_eq!(lists.least(), Some(3));
        lists.advance(None);
        assert_eq!(lists.least(), None);
        lists.advance(Some(1));
        assert_eq!(lists.least(), None);
    }
}
