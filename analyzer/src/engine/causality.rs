//! Violated causality: effects that seem to come before their causes, because the clocks of
//! two hosts differ by more than is known.

use serde::{Deserialize, Serialize};

use super::group::Instance;
use super::rank::Waiter;
use super::table::Row;
use laggard_trace::calls::Shape;

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
    /// Adds others.
    pub fn merge(&mut self, other: Violations) {
        self.messages.add(other.messages);
        self.collectives.add(other.collectives);
    }

    /// Of both kinds together.
    pub fn all(&self) -> Count {
        let mut all = self.messages;
        all.add(self.collectives);
        all
    }
}

/// By how much a member left a collective before the last of those entered whom it needs, ns;
/// not above 0 if it did not. `row` is the collective's.
pub fn left_before(waiter: &Waiter, instance: &Instance, row: &Row) -> i64 {
    let Some(last) = instance.last_awaited() else {
        return 0;
    };
    let needs_last = match row.shape {
        // Where it is the root alone; where only those count who give something.
        Shape::OneToAll | Shape::AllToOne => true,
        _ => row.meets,
    };
    match needs_last {
        true => last - waiter.leave,
        false => 0,
    }
}
