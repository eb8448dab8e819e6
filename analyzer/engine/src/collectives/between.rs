//! What all ranks compute between calls in which they meet.

use std::cmp::Reverse;

use laggard_trace::calls::Shape;
use serde::{Deserialize, Serialize};

use crate::waits::sums::LISTED;
use crate::wire::parcels::Fold;

/// What no wait that is mended makes shorter: between any two calls in which all ranks meet, the
/// computation of the rank that computes longest. ns
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Between {
    /// All of this.
    pub computed: u64,
    /// What ranks computed that did most of it, those first: ns and world rank.
    pub most: Vec<(u64, u32)>,
    /// When the library was there.
    pub begin: i64,
    /// When all had come to its end.
    pub end: i64,
}

impl Default for Between {
    /// No call yet.
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
    /// Takes a collective in that all members have entered.
    #[inline]
    pub fn add(&mut self, fold: &Fold) {
        self.computed = self.computed.saturating_add(fold.computed.max(0) as u64);
        match fold.shape() {
            Shape::Init => self.begin = self.begin.min(fold.first_leave),
            Shape::Finalize => self.end = self.end.max(fold.last.enter),
            _ => {}
        }
    }

    /// Takes in what a rank computed, ns.
    pub fn add_rank(&mut self, rank: u32, computed: u64) {
        self.most.push((computed, rank));
        if self.most.len() >= 2 * MOST {
            self.cut();
        }
    }

    /// Keeps those ranks only that computed most.
    pub fn cut(&mut self) {
        self.most
            .sort_unstable_by_key(|&(computed, rank)| (Reverse(computed), rank));
        self.most.truncate(MOST);
    }

    /// Adds what another agent knows.
    pub fn merge(&mut self, other: &Between) {
        self.most.extend(&other.most);
        self.cut();
        self.computed = self.computed.saturating_add(other.computed);
        self.begin = self.begin.min(other.begin);
        self.end = self.end.max(other.end);
    }

    /// How long the run took from one to the other; it took up to `end` in all. ns
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

/// So many of those that computed most are known: more than can be late.
pub const MOST: usize = 2 * LISTED;
