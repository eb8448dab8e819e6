//! Computation of all ranks between the calls in which they meet.

use std::cmp::Reverse;

use laggard_comm::Filter;
use laggard_trace::calls::Shape;
use serde::{Deserialize, Serialize};

use crate::waits::sums::LISTED;
use crate::wire::parcels::Fold;

/// A lower bound that mending waits cannot shorten: between any two calls in which all ranks meet,
/// the computation of the rank that computes longest. ns
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Between {
    /// Sum over all intervals.
    pub computed: u64,
    /// The ranks that computed most, the largest first: ns and world rank.
    pub most: Vec<(u64, u32)>,
    /// First leave of the library's start-up, ns.
    pub begin: i64,
    /// Last enter of the library's shut-down, ns.
    pub end: i64,
}

impl Default for Between {
    fn default() -> Self {
        Between {
            computed: 0,
            most: Vec::new(),
            begin: i64::MAX,
            end: i64::MIN,
        }
    }
}

impl Between {
    /// Adds a collective that all members have entered.
    #[inline]
    pub fn add(&mut self, fold: &Fold) {
        self.computed = self.computed.saturating_add(fold.computed.max(0) as u64);
        match fold.shape() {
            Shape::Init => self.begin = self.begin.min(fold.first_leave),
            Shape::Finalize => self.end = self.end.max(fold.last.enter),
            _ => {}
        }
    }

    /// Adds the computation of a rank, ns.
    pub fn add_rank(&mut self, rank: u32, computed: u64) {
        self.most.push((computed, rank));
        if self.most.len() >= 2 * MOST {
            self.cut();
        }
    }

    /// Keeps only the ranks that computed most.
    pub fn cut(&mut self) {
        self.most
            .sort_unstable_by_key(|&(computed, rank)| (Reverse(computed), rank));
        self.most.truncate(MOST);
    }

    /// Time from start-up to shut-down, ns. `end` is the end of the run, for runs without a
    /// shut-down.
    pub fn wall(&self, end: i64) -> u64 {
        let begin = if self.begin == i64::MAX {
            0
        } else {
            self.begin
        };
        let end = if self.end == i64::MIN { end } else { self.end };
        end.saturating_sub(begin).max(0) as u64
    }
}

impl Filter for Between {
    fn merge(&mut self, other: Between) {
        self.most.extend(other.most);
        self.cut();
        self.computed = self.computed.saturating_add(other.computed);
        self.begin = self.begin.min(other.begin);
        self.end = self.end.max(other.end);
    }
}

/// Number of ranks kept: more than can be late.
pub const MOST: usize = 2 * LISTED;
