//! How long the waits of a pattern are: quartiles, from counts by class of length.

use serde::{Deserialize, Serialize};

/// Classes in each doubling of the length, as a power of two.
const DIGITS: u32 = 5;

/// Lengths by class, as in a histogram of high dynamic range: lengths below 32 ns are exact, longer
/// ones are off by 1.6 % at most. Counts are integers, so the order of adding does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread(Vec<(u16, u64)>);

impl Spread {
    /// Adds a length, ns.
    #[inline]
    pub fn add(&mut self, length: u64) {
        self.count(class(length), 1);
    }

    #[inline]
    fn count(&mut self, class: u16, more: u64) {
        match self.0.binary_search_by_key(&class, |(class, _)| *class) {
            Ok(at) => self.0[at].1 += more,
            Err(at) => self.0.insert(at, (class, more)),
        }
    }

    /// Adds other lengths.
    pub fn merge(&mut self, other: &Spread) {
        for &(class, count) in &other.0 {
            self.count(class, count);
        }
    }

    /// First quartile, median and third quartile, ns. `None` of fewer than five lengths.
    pub fn quartiles(&self) -> Option<[u64; 3]> {
        let all: u64 = self.0.iter().map(|(_, count)| count).sum();
        let quartile = |quarters: u64| {
            // As many are shorter, or as long.
            let wanted = (u128::from(all) * u128::from(quarters)).div_ceil(4) as u64;
            let mut seen = 0;
            let mut classes = self.0.iter();
            let found = classes.find(|(_, count)| {
                seen += count;
                seen >= wanted
            });
            found.map_or(0, |(class, _)| length(*class))
        };
        (all >= 5).then(|| [1, 2, 3].map(quartile))
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
