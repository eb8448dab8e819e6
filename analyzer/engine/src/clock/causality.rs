//! Violated causality: effects that seem to precede their causes, because the clocks of two hosts
//! differ by more than their error bounds.

use laggard_comm::Job;
use serde::{Deserialize, Serialize};

/// Number and size of violations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Number of violations.
    pub count: u64,
    /// The largest violation, ns.
    pub largest: u64,
}

/// Violations of the calls that were asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violations {
    /// Messages received before they were sent.
    pub messages: Count,
    /// Members that left a collective before a member that they need entered it.
    pub collectives: Count,
}

impl Count {
    /// Adds a violation by this time, ns.
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
    /// The violations of all agents. Collective.
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

    /// Adds the violations of `other`.
    pub fn merge(&mut self, other: Violations) {
        self.messages.add(other.messages);
        self.collectives.add(other.collectives);
    }

    /// Whether they weigh less: number times the largest.
    pub fn is_less_than(&self, other: &Violations) -> bool {
        let weight = |all: Count| u128::from(all.count) * u128::from(all.largest);
        weight(self.all()) < weight(other.all())
    }

    /// Violations of both kinds.
    pub fn all(&self) -> Count {
        let mut all = self.messages;
        all.add(self.collectives);
        all
    }
}
