//! Sums of samples whose intervals differ from agent to agent, by common intervals.
//!
//! A sample counts in each common interval with its share there: its value times the part of its time
//! that lies in it. Adding the n-th samples of all agents instead would mix different times.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Filter;

/// Sums by common intervals of one width. Times and values are integers, and the shares of a sample
/// always add up to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aligned {
    start: i64,
    width: i64,
    /// By number of the interval.
    sums: BTreeMap<i64, i64>,
    /// All samples until here are in it, of all agents.
    known: i64,
}

impl Aligned {
    /// Nothing yet. One interval begins at `start`; `width` is at least 1.
    pub fn new(start: i64, width: i64) -> Aligned {
        Aligned {
            start,
            width: width.max(1),
            sums: BTreeMap::new(),
            known: i64::MIN,
        }
    }

    fn number(&self, time: i64) -> i64 {
        time.saturating_sub(self.start).div_euclid(self.width)
    }

    fn begin(&self, number: i64) -> i64 {
        self.start.saturating_add(number.saturating_mul(self.width))
    }

    /// Adds a sample of this agent, whose samples come in order of time. An empty interval has its
    /// value at one moment.
    pub fn add(&mut self, (from, until): (i64, i64), value: i64) {
        let length = i128::from(until) - i128::from(from);
        self.known = self.known.max(until);
        if length <= 0 {
            let sum = self.sums.entry(self.number(from)).or_default();
            *sum = sum.wrapping_add(value);
            return;
        }
        // Shares are differences of what lies before a moment: so they add up.
        let before = |moment: i64| {
            let part = i128::from(moment.clamp(from, until)) - i128::from(from);
            (i128::from(value) * part / length) as i64
        };
        for number in self.number(from)..=self.number(until - 1) {
            let share = before(self.begin(number + 1)) - before(self.begin(number));
            let sum = self.sums.entry(number).or_default();
            *sum = sum.wrapping_add(share);
        }
    }

    /// The intervals that have something, and their sums.
    pub fn sums(&self) -> impl Iterator<Item = ((i64, i64), i64)> {
        let interval = |number| (self.begin(number), self.begin(number + 1));
        self.sums
            .iter()
            .map(move |(&number, &sum)| (interval(number), sum))
    }

    /// Until here the sums of all agents are complete.
    pub fn complete_until(&self) -> i64 {
        match self.known {
            i64::MIN => i64::MIN,
            known => self.begin(self.number(known)),
        }
    }

    /// Takes out what is complete: it will not change any more.
    pub fn take_complete(&mut self) -> Vec<((i64, i64), i64)> {
        let until = self.complete_until();
        let complete = self.sums().filter(|((_, end), _)| *end <= until).collect();
        let first = match self.known {
            i64::MIN => i64::MIN,
            known => self.number(known),
        };
        self.sums = self.sums.split_off(&first);
        complete
    }
}

impl Filter for Aligned {
    /// Both must have the same intervals.
    fn merge(&mut self, other: Aligned) {
        debug_assert_eq!((self.start, self.width), (other.start, other.width));
        for (number, sum) in other.sums {
            let own = self.sums.entry(number).or_default();
            *own = own.wrapping_add(sum);
        }
        self.known = self.known.min(other.known);
    }
}
