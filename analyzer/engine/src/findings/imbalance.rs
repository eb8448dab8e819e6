//! How unevenly ranks share the computation of a place, against the mean over all ranks of the run.

use std::collections::BTreeMap;

use anyhow::Result;
use laggard_comm::{self as comm, Filter, Job};
use laggard_report::{FunctionTimes, Imbalance, percent, seconds};
use laggard_trace::calls;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::basics::intern::PathKey;
use crate::findings::places::Places;
use crate::judge::profile::Who;

/// Least share of all time for a row, percent.
const LEAST_PERCENT: f64 = 0.1;
/// Most rows of the report.
const MOST_ROWS: usize = 50;

/// Computation by place, and by thread, ns.
pub type Computed<K> = BTreeMap<K, BTreeMap<Who, u64>>;

/// A place of computation: from the leave of this call on.
pub type After = (u16, PathKey);

/// The computation of all ranks at one place. ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shares {
    /// All ranks of the run, computing there or not.
    all: u64,
    /// Ranks that computed there.
    pub visitors: u64,
    pub total: u64,
    /// What ranks computed beyond the mean, times `all`: a whole number.
    beyond: u128,
    /// Largest time of a rank, and the lowest rank with it.
    pub most: (u64, u32),
}

impl Shares {
    /// Mean over all ranks.
    pub fn mean(&self) -> u64 {
        self.total / self.all.max(1)
    }

    /// What ranks computed beyond the mean; the others were below it by as much.
    pub fn overload(&self) -> u64 {
        (self.beyond / u128::from(self.all.max(1))) as u64
    }

    /// The part of what ranks were below the mean that belongs to ranks that never computed there.
    pub fn non_participation(&self) -> u64 {
        let absent = u128::from(self.all.saturating_sub(self.visitors));
        (u128::from(self.total) * absent / u128::from(self.all.max(1))) as u64
    }

    /// The overload, if a single rank computed there.
    pub fn single_participant(&self) -> u64 {
        match self.visitors {
            1 if self.all > 1 => self.overload(),
            _ => 0,
        }
    }
}

impl Filter for Shares {
    fn merge(&mut self, other: Shares) {
        self.all = self.all.max(other.all);
        self.visitors += other.visitors;
        self.total = self.total.saturating_add(other.total);
        self.beyond = self.beyond.saturating_add(other.beyond);
        let order = |most: (u64, u32)| (most.0, std::cmp::Reverse(most.1));
        if order(other.most) > order(self.most) {
            self.most = other.most;
        }
    }
}

/// The totals over all agents, ns, everywhere. Collective.
pub fn totals<K>(job: &dyn Job, own: &Computed<K>) -> Result<BTreeMap<K, u64>>
where
    K: Clone + Ord + Serialize + DeserializeOwned,
{
    let sum = |threads: &BTreeMap<Who, u64>| threads.values().copied().fold(0, u64::saturating_add);
    let own: BTreeMap<K, u64> = own
        .iter()
        .map(|(k, threads)| (k.clone(), sum(threads)))
        .collect();
    let merged = comm::merge_up(job, own)?;
    comm::from_head(job, merged.unwrap_or_default())
}

/// Keeps the places with a notable part of all time; `walls` is that of this agent's locations, ns.
/// Collective.
pub fn keep_notable(job: &dyn Job, own: &mut Computed<After>, walls: u64) -> Result<()> {
    let totals = totals(job, own)?;
    let mut all = [walls];
    job.reduce_sum(&mut all);
    own.retain(|key, _| {
        let total = totals.get(key).copied().unwrap_or(0);
        percent(total as f64, all[0] as f64) >= LEAST_PERCENT
    });
    Ok(())
}

/// The shares of this agent's ranks, of `all` ranks of the run. Collective.
pub fn shares<K>(job: &dyn Job, own: &Computed<K>, all: u64) -> Result<BTreeMap<K, Shares>>
where
    K: Clone + Ord + Serialize + DeserializeOwned,
{
    let totals = totals(job, own)?;
    let share = |(key, threads): (&K, &BTreeMap<Who, u64>)| {
        let total = u128::from(totals.get(key).copied().unwrap_or(0));
        let mut shares = Shares::default();
        let mut ranks: BTreeMap<u32, u64> = BTreeMap::new();
        for ((rank, _), &time) in threads {
            let sum = ranks.entry(*rank).or_default();
            *sum = sum.saturating_add(time);
        }
        for (rank, time) in ranks {
            shares.merge(Shares {
                all,
                visitors: 1,
                total: time,
                beyond: (u128::from(time) * u128::from(all)).saturating_sub(total),
                most: (time, rank),
            });
        }
        (key.clone(), shares)
    };
    Ok(own.iter().map(share).collect())
}

/// The rows of the report, the most uneven first; `total` is all time, ns.
pub fn rows(shares: &BTreeMap<After, Shares>, total: f64, places: &mut Places) -> Vec<Imbalance> {
    let lost = |shares: &Shares| percent(shares.overload() as f64, total);
    let mut rows: Vec<(&After, &Shares)> = shares
        .iter()
        .filter(|(_, shares)| lost(shares) >= LEAST_PERCENT)
        .collect();
    rows.sort_by_key(|(key, shares)| (std::cmp::Reverse(shares.overload()), **key));
    rows.truncate(MOST_ROWS);
    let row = |(&(operation, path), shares): (&After, &Shares)| Imbalance {
        after: calls::name(operation).to_owned(),
        location: places.of(path),
        ranks: shares.visitors,
        total_s: seconds(shares.total),
        mean_s: seconds(shares.mean()),
        max_s: seconds(shares.most.0),
        worst_rank: shares.most.1,
        overload_s: seconds(shares.overload()),
        underload_s: seconds(shares.overload()),
        non_participation_s: seconds(shares.non_participation()),
        single_participant_s: seconds(shares.single_participant()),
        percent: lost(shares),
    };
    rows.into_iter().map(row).collect()
}

/// The rows of functions, most computation first; `total` is all time, ns.
pub fn functions(
    shares: &BTreeMap<PathKey, Shares>,
    total: f64,
    places: &mut Places,
) -> Vec<FunctionTimes> {
    let part = |shares: &Shares| percent(shares.total as f64, total);
    let mut rows: Vec<(&PathKey, &Shares)> = shares
        .iter()
        .filter(|(_, shares)| part(shares) >= LEAST_PERCENT)
        .collect();
    rows.sort_by_key(|(key, shares)| (std::cmp::Reverse(shares.total), **key));
    rows.truncate(MOST_ROWS);
    let row = |(&path, shares): (&PathKey, &Shares)| FunctionTimes {
        location: places.of_function(path),
        ranks: shares.visitors,
        total_s: seconds(shares.total),
        mean_s: seconds(shares.mean()),
        max_s: seconds(shares.most.0),
        worst_rank: shares.most.1,
        overload_s: seconds(shares.overload()),
        percent: part(shares),
    };
    rows.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares_of(times: &[(u32, u64)], all: u64) -> [u64; 4] {
        // Half of it by another thread.
        let halves = times
            .iter()
            .flat_map(|&(rank, time)| [((rank, 0), time / 2), ((rank, 1), time - time / 2)]);
        let own = Computed::from([(1u16, halves.collect())]);
        let shares = shares(&laggard_comm::Serial, &own, all).unwrap()[&1];
        [
            shares.mean(),
            shares.overload(),
            shares.non_participation(),
            shares.single_participant(),
        ]
    }

    #[test]
    fn what_is_beyond_the_mean_is_overload() {
        assert_eq!(shares_of(&[(0, 10), (1, 10), (2, 40)], 3), [20, 20, 0, 0]);
        // The near miss: all alike.
        assert_eq!(shares_of(&[(0, 10), (1, 10)], 2), [10, 0, 0, 0]);
    }

    #[test]
    fn ranks_that_do_not_take_part_have_the_mean_as_underload() {
        // The mean is 15 over four; two do not take part.
        assert_eq!(shares_of(&[(0, 20), (1, 40)], 4), [15, 30, 30, 0]);
        assert_eq!(shares_of(&[(2, 40)], 4), [10, 30, 30, 30]);
        assert_eq!(shares_of(&[(0, 40)], 1), [40, 0, 0, 0]);
    }

    #[test]
    fn parts_of_a_nanosecond_add_up_however_ranks_are_dealt_out() {
        let all = [(0, 10), (1, 11), (2, 14), (3, 7), (4, 7)];
        let shares_at = |ranks: &[(u32, u64)], total: u64| {
            let mut sum = Shares::default();
            for &(rank, time) in ranks {
                sum.merge(Shares {
                    all: 5,
                    visitors: 1,
                    total: time,
                    beyond: (u128::from(time) * 5).saturating_sub(total.into()),
                    most: (time, rank),
                });
            }
            sum
        };
        let mut joined = shares_at(&all[3..], 49);
        joined.merge(shares_at(&all[..3], 49));
        assert_eq!(joined, shares_at(&all, 49));
        assert_eq!(
            (joined.overload(), joined.most),
            ((1 + 6 + 21) / 5, (14, 2))
        );
    }
}
