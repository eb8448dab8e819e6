//! How unevenly threads share what their rank computes before they meet: in parallel regions, against the
//! mean over the threads of the rank that were there.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use laggard_comm::Filter;
use laggard_report::{ThreadImbalance, percent, ratio, seconds};
use laggard_trace::calls;
use serde::{Deserialize, Serialize};

use crate::basics::intern::PathKey;
use crate::findings::places::Places;

/// Least share of all time for a row, percent.
const LEAST_PERCENT: f64 = 0.1;
/// Most rows of the report.
const MOST_ROWS: usize = 50;

/// A place of computation: before this call, in which threads meet.
pub type Before = (u16, PathKey);

/// Computation by place, world rank and thread, ns: all of it, and asleep, blocked or without a processor.
pub type Computed = BTreeMap<Before, BTreeMap<u32, Threads>>;

type Threads = BTreeMap<u32, [u64; 2]>;

/// The computation of all threads at one place. ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shares {
    ranks: u64,
    threads: u64,
    total: u64,
    /// What threads computed beyond the mean of their rank.
    overload: u64,
    /// The thread with most beyond the mean of its rank.
    worst: Worst,
}

/// A thread, and what the threads of its rank compute. ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Worst {
    time: u64,
    /// Asleep, blocked or without a processor.
    off: u64,
    /// Of its rank's threads.
    mean: u64,
    rank: u32,
    thread: u32,
}

impl Worst {
    /// The one that is farther beyond its mean; of equal ones that of the lower rank and thread.
    fn or(self, other: Worst) -> Worst {
        let order = |one: &Worst| {
            let beyond = one.time.saturating_sub(one.mean);
            (beyond, one.time, Reverse((one.rank, one.thread)))
        };
        if order(&other) > order(&self) {
            other
        } else {
            self
        }
    }
}

impl Shares {
    /// The threads of a rank.
    fn of(rank: u32, threads: &Threads) -> Shares {
        let count = threads.len() as u64;
        let times = || threads.values().map(|[time, _]| *time);
        let total = times().fold(0, u64::saturating_add);
        let mean = total / count.max(1);
        let beyond = times().map(|time| time.saturating_sub(mean));
        let of_thread = |(&thread, &[time, off]): (&u32, &[u64; 2])| Worst {
            time,
            off,
            mean,
            rank,
            thread,
        };
        let worst = threads.iter().map(of_thread).reduce(Worst::or);
        Shares {
            ranks: 1,
            threads: count,
            total,
            overload: beyond.fold(0, u64::saturating_add),
            worst: worst.unwrap_or_default(),
        }
    }
}

impl Filter for Shares {
    fn merge(&mut self, other: Shares) {
        self.worst = match self.ranks {
            0 => other.worst,
            _ => self.worst.or(other.worst),
        };
        self.ranks += other.ranks;
        self.threads += other.threads;
        self.total = self.total.saturating_add(other.total);
        self.overload = self.overload.saturating_add(other.overload);
    }
}

/// The shares of an agent's ranks: all threads of a rank are there.
pub fn shares(own: &Computed) -> BTreeMap<Before, Shares> {
    let share = |(key, ranks): (&Before, &BTreeMap<u32, Threads>)| {
        let mut shares = Shares::default();
        for (&rank, threads) in ranks {
            shares.merge(Shares::of(rank, threads));
        }
        (*key, shares)
    };
    own.iter().map(share).collect()
}

/// The rows of the report, the most uneven first; `total` is all time, ns.
pub fn rows(
    shares: &BTreeMap<Before, Shares>,
    total: f64,
    places: &mut Places,
) -> Vec<ThreadImbalance> {
    let lost = |shares: &Shares| percent(shares.overload as f64, total);
    let mut rows: Vec<(&Before, &Shares)> = shares
        .iter()
        .filter(|(_, shares)| lost(shares) >= LEAST_PERCENT)
        .collect();
    rows.sort_by_key(|(key, shares)| (Reverse(shares.overload), **key));
    rows.truncate(MOST_ROWS);
    let row = |(&(operation, path), shares): (&Before, &Shares)| {
        let worst = shares.worst;
        ThreadImbalance {
            before: calls::name(operation).to_owned(),
            location: places.of(path),
            ranks: shares.ranks,
            threads: shares.threads,
            total_s: seconds(shares.total),
            mean_s: ratio(shares.total as f64 / 1e9, shares.threads as f64),
            max_s: seconds(worst.time),
            max_off_s: (worst.off > 0).then(|| seconds(worst.off)),
            rank_mean_s: seconds(worst.mean),
            worst_rank: worst.rank,
            worst_thread: worst.thread,
            overload_s: seconds(shares.overload),
            percent: lost(shares),
        }
    };
    rows.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_compared_with_those_of_their_rank() {
        let of = |rank, times: &[u64]| {
            let times = times.iter().map(|time| [*time, 0]);
            Shares::of(rank, &(0..).zip(times).collect())
        };
        let mut all = of(0, &[10, 10, 40]);
        let worst = all.worst;
        assert_eq!((all.overload, worst.time, worst.mean), (20, 40, 20));
        // A near miss: another rank computes more, all of its threads alike.
        all.merge(of(1, &[90, 90, 90]));
        assert_eq!((all.overload, all.threads, all.ranks), (20, 6, 2));
        assert_eq!((all.worst, worst.rank, worst.thread), (worst, 0, 2));
        let mut other = of(1, &[90, 90, 90]);
        other.merge(of(0, &[10, 10, 40]));
        assert_eq!(all, other);
    }
}
