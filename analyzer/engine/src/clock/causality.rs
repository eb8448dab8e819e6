//! Violated causality: effects that seem to come before their causes, because the clocks of
//! two hosts differ by more than is known.

use laggard_comm::Job;
use serde::{Deserialize, Serialize};

/// Effects before their causes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// How many.
    pub count: u64,
    /// By how much at most, ns.
    pub largest: u64,
}

/// All of them, as far as anything was asked about the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violations {
    /// Messages that were received before they were sent.
    pub messages: Count,
    /// Members that left a collective before another one entered it whom they need.
    pub collectives: Count,
}

impl Count {
    /// One more, by so many ns.
    #[cold]
    pub fn note(&mut self, by: i64) {
        self.add(Count {
            count: 1,
            largest: by.unsigned_abs(),
        });
    }

    fn add(&mut self, other: Count) {
        self.count += other.count;
        self.largest = self.largest.max(other.largest);
    }
}

impl Violations {
    /// Of all agents. Collective.
    pub fn of_all(&self, job: &dyn Job) -> Violations {
        let mut counts = [self.messages.count, self.collectives.count];
        let mut largest = [self.messages.largest, self.collectives.largest];
        job.reduce_sum(&mut counts);
        job.reduce_max(&mut largest);
        let all = |at: usize| Count {
            count: counts[at],
            largest: largest[at],
        };
        Violations {
            messages: all(0),
            collectives: all(1),
        }
    }

    /// Adds others.
    pub fn merge(&mut self, other: Violations) {
        self.messages.add(other.messages);
        self.collectives.add(other.collectives);
    }

    /// Whether there are fewer, or smaller ones.
    pub fn is_less_than(&self, other: &Violations) -> bool {
        let weight = |all: Count| u128::from(all.count) * u128::from(all.largest);
        weight(self.all()) < weight(other.all())
    }

    /// Of both kinds together.
    pub fn all(&self) -> Count {
        let mut all = self.messages;
        all.add(self.collectives);
        all
    }
}
