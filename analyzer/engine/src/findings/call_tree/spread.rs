//! How an amount is spread over ranks.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::Result;
use laggard_comm::Job;
use laggard_report::Spread;
use serde::{Deserialize, Serialize};

use crate::findings::fold::{class_of, width_of_class};

/// Nodes of an agent that are sent around at a time.
const AT_ONCE: usize = 8;

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

/// The spread of each node over all ranks of a run of `all`, at the head; `values` by node and by this
/// agent's `ranks`. Agents share the nodes. Collective.
pub fn spreads(
    job: &dyn Job,
    ranks: &[u32],
    values: Vec<Vec<u64>>,
    all: usize,
) -> Result<Vec<Option<Spreading>>> {
    let agents = job.agents();
    let nodes = values.len();
    let mut own: Vec<Option<Spreading>> = Vec::new();
    // With many ranks, copies of all values would take much memory.
    for part in values.chunks(agents * AT_ONCE) {
        let packed = (0..agents).map(|agent| {
            let of: Vec<&Vec<u64>> = part.iter().skip(agent).step_by(agents).collect();
            postcard::to_stdvec(&(ranks, of))
        });
        let packed = packed.collect::<Result<Vec<_>, _>>()?;
        let mut mine: Vec<Vec<(u32, u64)>> = Vec::new();
        for bytes in job.exchange(packed) {
            let (ranks, of): (Vec<u32>, Vec<Vec<u64>>) = postcard::from_bytes(&bytes)?;
            mine.resize_with(of.len(), Vec::new);
            for (sum, values) in mine.iter_mut().zip(of) {
                sum.extend(ranks.iter().copied().zip(values));
            }
        }
        own.extend(mine.into_iter().map(|of| Spreading::over(of, all)));
    }
    let mut parcels = vec![Vec::new(); agents];
    parcels[0] = postcard::to_stdvec(&own)?;
    let mut found = vec![None; nodes];
    for (agent, bytes) in job.exchange(parcels).iter().enumerate() {
        if !bytes.is_empty() {
            let spreads: Vec<Option<Spreading>> = postcard::from_bytes(bytes)?;
            let places = found.iter_mut().skip(agent).step_by(agents);
            places.zip(spreads).for_each(|(place, one)| *place = one);
        }
    }
    Ok(found)
}

impl Spreading {
    /// The spread of these amounts by rank, of a run of `ranks`; none if there are none.
    fn over(mut of: Vec<(u32, u64)>, ranks: usize) -> Option<Spreading> {
        let most = of
            .iter()
            .copied()
            .max_by_key(|&(rank, value)| (value, Reverse(rank)))?;
        if most.1 == 0 {
            return None;
        }
        let mut classes: BTreeMap<u16, (u128, u128)> = BTreeMap::new();
        for &(rank, value) in &of {
            let class = classes.entry(class_of(rank, ranks)).or_default();
            *class = (class.0 + u128::from(value), class.1 + 1);
        }
        let count = ranks.div_ceil(width_of_class(ranks));
        let mean = |class: u16| classes.get(&class).map_or(0, |(sum, n)| (sum / n) as u64);
        of.sort_unstable_by_key(|&(_, value)| value);
        let middle = (of[(of.len() - 1) / 2].1, of[of.len() / 2].1);
        Some(Spreading {
            least: of[0].1,
            median: middle.0 + (middle.1 - middle.0) / 2,
            most: (most.1, most.0),
            classes: (0..count as u16).map(mean).collect(),
        })
    }

    /// As the report has it.
    pub fn told<T>(self, unit: impl Fn(u64) -> T) -> Spread<T> {
        Spread {
            min: unit(self.least),
            median: unit(self.median),
            max: unit(self.most.0),
            max_rank: self.most.1,
            classes: self.classes.into_iter().map(unit).collect(),
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
            Spreading::over(of.collect(), ranks)
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
}
