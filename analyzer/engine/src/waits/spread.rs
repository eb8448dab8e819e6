//! How long the waits of a pattern are: quartiles, from counts by class of length.

use serde::{Deserialize, Serialize};

/// Classes in each doubling of the length, as a power of two.
const DIGITS: u32 = 5;

/// Most classes that are searched.
const FEW: usize = 64;

/// Lengths by class, as in a histogram of high dynamic range: lengths below 32 ns are exact, longer
/// ones are off by 1.6 % at most. Counts are integers, so the order of adding does not matter.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Vec<(u16, u64)>", into = "Vec<(u16, u64)>")]
pub struct Spread {
    /// Few classes, ascending, with their counts.
    few: Vec<(u16, u64)>,
    /// More of them: the first one, and counts from there on.
    many: (u16, Vec<u64>),
}

impl Spread {
    /// Adds a length, ns.
    #[inline]
    pub fn add(&mut self, length: u64) {
        self.count(class(length), 1);
    }

    #[inline]
    fn count(&mut self, class: u16, more: u64) {
        let (first, counts) = &mut self.many;
        match counts.get_mut(usize::from(class.wrapping_sub(*first))) {
            Some(count) => *count += more,
            None => self.count_new(class, more),
        }
    }

    /// Counts a class that is not among the many.
    fn count_new(&mut self, class: u16, more: u64) {
        match self.few.binary_search_by_key(&class, |(class, _)| *class) {
            Ok(at) => self.few[at].1 += more,
            Err(at) => self.few.insert(at, (class, more)),
        }
        if self.few.len() > FEW || !self.many.1.is_empty() {
            self.spread_out();
        }
    }

    /// The few are among the many from now on.
    fn spread_out(&mut self) {
        let (first, counts) = &mut self.many;
        for (class, count) in std::mem::take(&mut self.few) {
            if counts.is_empty() {
                *first = class;
            }
            let before = first.saturating_sub(class);
            counts.splice(0..0, std::iter::repeat_n(0, before.into()));
            *first -= before;
            let at = usize::from(class - *first);
            if counts.len() <= at {
                counts.resize(at + 1, 0);
            }
            counts[at] += count;
        }
    }

    /// Classes with lengths, ascending, and their counts.
    fn classes(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        let (first, counts) = &self.many;
        let many = (*first..).zip(counts.iter().copied());
        let many = many.filter(|(_, count)| *count > 0);
        self.few.iter().copied().chain(many)
    }

    /// Adds other lengths.
    pub fn merge(&mut self, other: &Spread) {
        for (class, count) in other.classes() {
            self.count(class, count);
        }
    }

    /// First quartile, median and third quartile, ns. `None` of fewer than five lengths.
    pub fn quartiles(&self) -> Option<[u64; 3]> {
        let all: u64 = self.classes().map(|(_, count)| count).sum();
        let quartile = |quarters: u64| {
            // As many are shorter, or as long.
            let wanted = (u128::from(all) * u128::from(quarters)).div_ceil(4) as u64;
            let mut seen = 0;
            let mut classes = self.classes();
            let found = classes.find(|(_, count)| {
                seen += count;
                seen >= wanted
            });
            found.map_or(0, |(class, _)| length(class))
        };
        (all >= 5).then(|| [1, 2, 3].map(quartile))
    }
}

impl PartialEq for Spread {
    fn eq(&self, other: &Spread) -> bool {
        self.classes().eq(other.classes())
    }
}

impl From<Vec<(u16, u64)>> for Spread {
    fn from(classes: Vec<(u16, u64)>) -> Spread {
        let mut spread = Spread::default();
        spread.few.reserve_exact(classes.len().min(FEW));
        for (class, count) in classes {
            spread.count(class, count);
        }
        spread
    }
}

impl From<Spread> for Vec<(u16, u64)> {
    fn from(spread: Spread) -> Vec<(u16, u64)> {
        spread.classes().collect()
    }
}

/// The class of a length, ns.
fn class(length: u64) -> u16 {
    let exponent = length.checked_ilog2().unwrap_or(0).saturating_sub(DIGITS);
    ((u64::from(exponent) << DIGITS) + (length >> exponent)) as u16
}

/// The middle of a class, ns.
fn length(class: u16) -> u64 {
    let exponent = (u32::from(class) >> DIGITS).saturating_sub(1);
    let digits = u64::from(class) - (u64::from(exponent) << DIGITS);
    (digits << exponent) + ((1 << exponent) - 1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_narrow_and_ascend() {
        let mut last = 0;
        for bits in 0..64 {
            for length in [1u64 << bits, (1 << bits) + (1 << bits) / 3, (1 << bits) - 1] {
                let middle = super::length(class(length));
                let off = middle.abs_diff(length) as f64 / length.max(1) as f64;
                assert!(off <= 0.0161, "{length}: {middle}");
            }
            assert!(class(1 << bits) > last || bits == 0);
            last = class(1 << bits);
        }
    }

    /// However many classes there are, and in whatever order they come.
    #[test]
    fn all_lengths_are_counted() {
        let lengths = (0..4000u64).map(|n| (n * n * 7919) % 1_000_003 + 40);
        let mut spread = Spread::default();
        lengths.clone().for_each(|length| spread.add(length));
        let mut expected = std::collections::BTreeMap::new();
        for length in lengths.clone() {
            *expected.entry(class(length)).or_insert(0u64) += 1;
        }
        let found: Vec<(u16, u64)> = spread.clone().into();
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        let mut backward = Spread::default();
        let reverse: Vec<u64> = lengths.collect();
        reverse
            .iter()
            .rev()
            .for_each(|&length| backward.add(length));
        assert_eq!(Vec::from(backward), found);
    }

    #[test]
    fn quartiles_are_those_of_the_lengths() {
        let mut spread = Spread::default();
        [7, 3, 9, 1].iter().for_each(|&length| spread.add(length));
        assert_eq!(spread.quartiles(), None);
        let mut other = Spread::default();
        [5, 2, 8, 4].iter().for_each(|&length| other.add(length));
        spread.merge(&other);
        assert_eq!(spread.quartiles(), Some([2, 4, 7]));
    }
}
