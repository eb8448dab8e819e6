//! Ways to merge what agents say. All are independent of the order, so that every tree of agents has
//! the answer of a flat one. They combine: maps, pairs and lists of filters are filters.

pub mod aligned;

use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::hash_map::{self, HashMap};
use std::hash::{BuildHasher, Hash};

use laggard_report::RankSet;
use serde::{Deserialize, Serialize};

/// What is merged on its way up.
pub trait Filter {
    /// Takes in the same of another agent, or group of agents. The order does not matter.
    fn merge(&mut self, other: Self);
}

/// The sum, which wraps around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum(pub i64);

impl Filter for Sum {
    fn merge(&mut self, other: Sum) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

/// An amount: the sum, as far as there are numbers for it.
impl Filter for u64 {
    fn merge(&mut self, other: u64) {
        *self = self.saturating_add(other);
    }
}

/// The least and the largest of values, and who has them: of equal ones the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extremes<W> {
    /// The least value, and whose it is.
    pub least: (i64, W),
    /// The largest value, and whose it is.
    pub largest: (i64, W),
}

impl<W: Copy> Extremes<W> {
    /// Of one value.
    pub fn of(value: i64, whose: W) -> Extremes<W> {
        Extremes {
            least: (value, whose),
            largest: (value, whose),
        }
    }
}

impl<W: Ord> Filter for Extremes<W> {
    fn merge(&mut self, other: Extremes<W>) {
        if other.least < self.least {
            self.least = other.least;
        }
        let (one, new) = (&self.largest, &other.largest);
        if (new.0, std::cmp::Reverse(&new.1)) > (one.0, std::cmp::Reverse(&one.1)) {
            self.largest = other.largest;
        }
    }
}

/// How many values are in which range. Ranges grow by a quarter of their power of two, so that the
/// values of one differ by at most a quarter, and any agent's fit to those of another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// By range: how many, and their sum.
    pub counts: BTreeMap<u16, (u64, u64)>,
}

impl Histogram {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        let row = self.counts.entry(Histogram::range_of(value)).or_default();
        row.0 += 1;
        row.1 = row.1.wrapping_add(value);
    }

    /// The range of a value: those below 4 have ranges of their own.
    fn range_of(value: u64) -> u16 {
        match value.checked_ilog2() {
            Some(power @ 2..) => (4 * (power - 1)) as u16 + (value >> (power - 2) & 3) as u16,
            _ => value as u16,
        }
    }

    /// The least value of a range.
    pub fn least(range: u16) -> u64 {
        match range {
            0..4 => range.into(),
            _ => {
                let power = u32::from(range / 4) + 1;
                let quarter = u64::from(range % 4);
                (4 + quarter)
                    .checked_shl(power - 2)
                    .filter(|_| power < 64)
                    .unwrap_or(u64::MAX)
            }
        }
    }
}

impl Filter for Histogram {
    fn merge(&mut self, other: Histogram) {
        for (range, (count, sum)) in other.counts {
            let row = self.counts.entry(range).or_default();
            row.0 += count;
            row.1 = row.1.wrapping_add(sum);
        }
    }
}

/// Ranks, folded to ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranks(pub RankSet);

impl Ranks {
    /// Of one rank.
    pub fn of(rank: u32) -> Ranks {
        Ranks(RankSet::new([rank]))
    }
}

impl Filter for Ranks {
    fn merge(&mut self, other: Ranks) {
        self.0.merge(other.0);
    }
}

/// Of texts and the like that should be the same, the first in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct First<T>(pub T);

impl<T: Ord> Filter for First<T> {
    fn merge(&mut self, other: First<T>) {
        if other < *self {
            *self = other;
        }
    }
}

/// What is the same at many ranks, by its checksum: told once, with all its ranks.
pub type Classes<T> = BTreeMap<u64, (Ranks, First<T>)>;

/// A call tree: sums by the calls on the way to a place, and the ranks that were there.
pub type CallTree<S> = BTreeMap<Vec<String>, (S, Ranks)>;

/// Everything under its key; with keys of single agents, a concatenation.
impl<K: Ord, F: Filter> Filter for BTreeMap<K, F> {
    fn merge(&mut self, other: Self) {
        for (key, value) in other {
            match self.entry(key) {
                Entry::Vacant(free) => drop(free.insert(value)),
                Entry::Occupied(mut taken) => taken.get_mut().merge(value),
            }
        }
    }
}

impl<K: Hash + Eq, F: Filter, S: BuildHasher> Filter for HashMap<K, F, S> {
    fn merge(&mut self, other: Self) {
        for (key, value) in other {
            match self.entry(key) {
                hash_map::Entry::Vacant(free) => drop(free.insert(value)),
                hash_map::Entry::Occupied(mut taken) => taken.get_mut().merge(value),
            }
        }
    }
}

/// Element by element; the longer one goes on alone.
impl<F: Filter> Filter for Vec<F> {
    fn merge(&mut self, mut other: Self) {
        if other.len() > self.len() {
            std::mem::swap(self, &mut other);
        }
        for (one, other) in self.iter_mut().zip(other) {
            one.merge(other);
        }
    }
}

impl<F: Filter> Filter for Option<F> {
    fn merge(&mut self, other: Self) {
        match (self.as_mut(), other) {
            (Some(one), Some(other)) => one.merge(other),
            (None, other) => *self = other,
            (_, None) => {}
        }
    }
}

impl<A: Filter, B: Filter> Filter for (A, B) {
    fn merge(&mut self, other: Self) {
        self.0.merge(other.0);
        self.1.merge(other.1);
    }
}

impl Filter for () {
    fn merge(&mut self, (): ()) {}
}
