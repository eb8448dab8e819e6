//! How an amount is spread over ranks.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::Result;
use laggard_comm::Job;
use laggard_report::Spread;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::findings::fold::{class_of, width_of_class};
use crate::judge::profile::Who;

/// Nodes of an agent that are sent around at a time.
const AT_ONCE: usize = 8;
/// Most values of threads at a node.
const THREADS: usize = 512;

/// An amount over all ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spreading {
    least: u64,
    median: u64,
    /// And the lowest rank with it.
    most: (u64, u32),
    /// Mean of a rank, by class.
    classes: Vec<u64>,
}

/// Values of single ranks or threads.
type Values<K> = Vec<(K, u64)>;

/// What `over` makes of each node's values at all agents, at the head; `values` by node and by this
/// agent's `keys`. Agents share the nodes. Collective.
pub fn spread<K, T>(
    job: &dyn Job,
    keys: &[K],
    values: Vec<Vec<u64>>,
    over: impl Fn(Values<K>) -> Option<T>,
) -> Result<Vec<Option<T>>>
where
    K: Copy + Serialize + DeserializeOwned,
    T: Clone + Serialize + DeserializeOwned,
{
    let agents = job.agents();
    let nodes = values.len();
    let mut own: Vec<Option<T>> = Vec::new();
    // With many ranks, copies of all values would take much memory.
    for part in values.chunks(agents * AT_ONCE) {
        let packed = (0..agents).map(|agent| {
            let of: Vec<&Vec<u64>> = part.iter().skip(agent).step_by(agents).collect();
            postcard::to_stdvec(&(keys, of))
        });
        let packed = packed.collect::<Result<Vec<_>, _>>()?;
        let mut mine: Vec<Values<K>> = Vec::new();
        for bytes in job.exchange(packed) {
            let (keys, of): (Vec<K>, Vec<Vec<u64>>) = postcard::from_bytes(&bytes)?;
            mine.resize_with(of.len(), Vec::new);
            for (sum, values) in mine.iter_mut().zip(of) {
                sum.extend(keys.iter().copied().zip(values));
            }
        }
        own.extend(mine.into_iter().map(&over));
    }
    let mut parcels = vec![Vec::new(); agents];
    parcels[0] = postcard::to_stdvec(&own)?;
    let mut found = vec![None; nodes];
    for (agent, bytes) in job.exchange(parcels).iter().enumerate() {
        if !bytes.is_empty() {
            let spreads: Vec<Option<T>> = postcard::from_bytes(bytes)?;
            let places = found.iter_mut().skip(agent).step_by(agents);
            places.zip(spreads).for_each(|(place, one)| *place = one);
        }
    }
    Ok(found)
}

/// Which ranks, and which of their threads, are told together.
pub struct Classes {
    /// Ranks of the run.
    ranks: usize,
    /// Successive ranks in a class.
    pub ranks_each: usize,
    /// Most threads of a rank.
    threads: u64,
    /// Threads with successive numbers in a class.
    pub threads_each: u32,
}

impl Classes {
    pub fn new(ranks: usize, threads: u64) -> Classes {
        let ranks_each = width_of_class(ranks);
        let parts = (THREADS / ranks.div_ceil(ranks_each).max(1)) as u64;
        Classes {
            ranks,
            ranks_each,
            threads,
            threads_each: threads.div_ceil(parts) as u32,
        }
    }

    pub fn has_threads(&self) -> bool {
        self.threads > 1
    }

    fn count(&self) -> usize {
        self.ranks.div_ceil(self.ranks_each)
    }

    /// Means of a thread, by class of ranks and of threads, without those at the end that have nothing; none if
    /// nobody has anything.
    pub fn threads(&self, of: Values<Who>) -> Option<Vec<Vec<u64>>> {
        let mut classes: Vec<Vec<(u128, u128)>> = vec![Vec::new(); self.count()];
        for ((rank, thread), value) in of {
            let class = &mut classes[usize::from(class_of(rank, self.ranks))];
            let at = (thread / self.threads_each) as usize;
            if class.len() <= at {
                class.resize(at + 1, (0, 0));
            }
            class[at] = (class[at].0 + u128::from(value), class[at].1 + 1);
        }
        let means = classes.into_iter().map(|class| {
            let means = class.into_iter().map(|(sum, n)| (sum / n.max(1)) as u64);
            let mut means: Vec<u64> = means.collect();
            means.truncate(
                means
                    .iter()
                    .rposition(|&mean| mean > 0)
                    .map_or(0, |at| at + 1),
            );
            means
        });
        let means: Vec<Vec<u64>> = means.collect();
        means.iter().any(|class| !class.is_empty()).then_some(means)
    }
}

impl Spreading {
    /// The spread of these amounts by rank; none if there are none.
    pub fn over(mut of: Values<u32>, by: &Classes) -> Option<Spreading> {
        let most = of
            .iter()
            .copied()
            .max_by_key(|&(rank, value)| (value, Reverse(rank)))?;
        if most.1 == 0 {
            return None;
        }
        let mut classes: BTreeMap<u16, (u128, u128)> = BTreeMap::new();
        for &(rank, value) in &of {
            let class = classes.entry(class_of(rank, by.ranks)).or_default();
            *class = (class.0 + u128::from(value), class.1 + 1);
        }
        let mean = |class: u16| classes.get(&class).map_or(0, |(sum, n)| (sum / n) as u64);
        of.sort_unstable_by_key(|&(_, value)| value);
        let middle = (of[(of.len() - 1) / 2].1, of[of.len() / 2].1);
        Some(Spreading {
            least: of[0].1,
            median: middle.0 + (middle.1 - middle.0) / 2,
            most: (most.1, most.0),
            classes: (0..by.count() as u16).map(mean).collect(),
        })
    }

    /// As the report has it, with what [`Classes::threads`] makes of it.
    pub fn told<T>(self, threads: Vec<Vec<u64>>, unit: impl Fn(u64) -> T) -> Spread<T> {
        let threads = threads.into_iter();
        Spread {
            min: unit(self.least),
            median: unit(self.median),
            max: unit(self.most.0),
            max_rank: self.most.1,
            classes: self.classes.into_iter().map(&unit).collect(),
            threads: threads
                .map(|class| class.into_iter().map(&unit).collect())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_have_nothing_count() {
        let over = |values: &[u64], ranks| {
            let of = (0..).zip(values.iter().copied());
            Spreading::over(of.collect(), &Classes::new(ranks, 1))
        };
        let found = over(&[4, 0, 9, 9], 4).unwrap();
        assert_eq!((found.least, found.median, found.most), (0, 6, (9, 2)));
        assert_eq!(found.classes, [4, 0, 9, 9]);
        assert_eq!(over(&[0, 0], 2), None);
        assert_eq!(over(&[], 2), None);
        // Two ranks share a class; of the last one nothing is known.
        let values: Vec<u64> = (0..127).collect();
        let found = over(&values, 128).unwrap();
        assert_eq!((found.classes[0], found.classes[1]), (0, 2));
        assert_eq!((found.classes.len(), found.classes[63]), (64, 126));
    }

    #[test]
    fn threads_are_told_by_number() {
        let of = vec![
            ((0, 0), 5),
            ((0, 1), 7),
            ((0, 2), 0),
            ((1, 0), 0),
            ((1, 1), 0),
        ];
        let two = Classes::new(2, 3);
        assert_eq!(two.threads(of.clone()), Some(vec![vec![5, 7], vec![]]));
        assert_eq!(
            two.threads(of.into_iter().map(|(who, _)| (who, 0)).collect()),
            None
        );
        // Two ranks share a class, and three threads: of 128 ranks with 17 threads each.
        let many = Classes::new(128, 17);
        assert_eq!((many.ranks_each, many.threads_each), (2, 3));
        let all =
            (0..128).flat_map(|rank| (0..17).map(move |thread| ((rank, thread), 1u64 << thread)));
        let found = many.threads(all.collect()).unwrap();
        assert_eq!(
            (found.len(), &found[63][..]),
            (64, &[2, 18, 149, 1194, 9557, 49152][..])
        );
    }
}
