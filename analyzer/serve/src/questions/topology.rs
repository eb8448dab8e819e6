//! What ranks spent their time on, sent, or waited for, where they are in a Cartesian communicator.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::{Context, Result};
use laggard_overlay::filters::Sum;
use laggard_overlay::{Filter, Stop};
use laggard_patterns::PatternId;
use laggard_trace::{Dimension, Grid};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::metric::Metric;
use super::{Asked, short};
use crate::share::Share;

/// Communicators that are listed, the largest first.
const LISTED: usize = 32;
/// Most places that are told: successive ones along a dimension share one in larger grids.
const PLACES: u64 = 1600;
/// Dimensions of a grid that are told.
const DIMENSIONS: usize = 16;

/// An amount, by place in a grid.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Topology {
    /// The communicator, as the answer without one lists it.
    pub communicator: Option<String>,
    /// See [`Metric::of`].
    pub metric: String,
    /// From when on; from the start.
    pub from_s: Option<f64>,
    /// Until when; to the end.
    pub until_s: Option<f64>,
}

/// The communicators that some ranks are in, and what they spent in one of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Grids {
    /// By size and id.
    listed: BTreeMap<(Reverse<u64>, u64), Shape>,
    /// By number of the place.
    places: BTreeMap<u64, Place>,
    /// Numbers of the patterns of their waits.
    patterns: BTreeMap<u8, ()>,
    /// Locations of which not all is counted: they have more calls than are read, or waits that are not kept.
    partly: u64,
}

/// A grid: its name, and size and periodicity of its dimensions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Shape {
    name: String,
    dimensions: Vec<(u32, bool)>,
}

/// The ranks at a place: the first one and its first location, how many, and their amount: ns, messages or bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Place {
    first: u32,
    location: usize,
    ranks: u64,
    amount: i64,
}

impl Filter for Place {
    fn merge(&mut self, other: Place) {
        self.first = self.first.min(other.first);
        self.location = self.location.min(other.location);
        self.ranks += other.ranks;
        self.amount = self.amount.saturating_add(other.amount);
    }
}

impl Filter for Grids {
    fn merge(&mut self, other: Grids) {
        for (key, shape) in other.listed {
            let known = self.listed.entry(key).or_insert_with(|| shape.clone());
            // Whoever had not heard of a name yet.
            if known.name.is_empty() {
                known.name = shape.name;
            }
        }
        // One more says that there are more.
        while self.listed.len() > LISTED + 1 {
            self.listed.pop_last();
        }
        Filter::merge(&mut self.places, other.places);
        Filter::merge(&mut self.patterns, other.patterns);
        self.partly += other.partly;
    }
}

impl Grids {
    /// Takes the names that a location knows of those that are listed.
    fn name(&mut self, share: &Share, at: usize) {
        let events = share.events();
        for (id, name) in events.communicator_names(at - events.first) {
            let of = self
                .listed
                .iter_mut()
                .find(|((_, listed), _)| *listed == id);
            if let Some((_, shape)) = of {
                shape.name = name.into_owned();
            }
        }
    }
}

impl Shape {
    fn of(grid: &Grid) -> Shape {
        let dimensions = grid.dimensions.iter();
        Shape {
            name: String::new(),
            dimensions: dimensions.map(|one| (one.size, one.is_periodic)).collect(),
        }
    }

    fn size(&self) -> u64 {
        let sizes = self.dimensions.iter().map(|one| u64::from(one.0));
        sizes.fold(1, u64::saturating_mul)
    }

    /// How many successive coordinates share one, by dimension.
    fn shared(&self) -> Vec<u32> {
        let mut shared = vec![1; self.dimensions.len()];
        loop {
            let told = self.told(&shared);
            let places = told
                .iter()
                .fold(1u64, |all, &one| all.saturating_mul(one.into()));
            let Some((longest, _)) = told
                .iter()
                .enumerate()
                .max_by_key(|one| (one.1, Reverse(one.0)))
            else {
                return shared;
            };
            if places <= PLACES {
                return shared;
            }
            shared[longest] = u32::saturating_mul(shared[longest], 2);
        }
    }

    /// The size of each dimension then.
    fn told(&self, shared: &[u32]) -> Vec<u32> {
        let pairs = self.dimensions.iter().zip(shared);
        pairs.map(|(one, shared)| one.0.div_ceil(*shared)).collect()
    }
}

/// The number of a place: the last dimension counts first, as MPI numbers ranks of a grid.
fn number(dimensions: &[Dimension], told: &[u32], shared: &[u32]) -> u64 {
    let along = dimensions.iter().zip(told).zip(shared);
    along.fold(0, |number, ((one, size), shared)| {
        number * u64::from(*size) + u64::from(one.coordinate / shared)
    })
}

impl Topology {
    fn chosen(&self) -> Result<Option<u64>> {
        let id = self.communicator.as_deref();
        let id = id.map(|text| u64::from_str_radix(text, 16)).transpose();
        id.context("communicator is one of those in the answer without it")
    }
}

/// What a location knows of itself in grids.
fn grids(share: &Share, at: usize) -> impl Iterator<Item = &Grid> {
    let events = share.events();
    events.grids(at - events.first).iter()
}

impl Asked for Topology {
    type Part = Grids;

    fn part(&self, share: &Share, stop: &Stop) -> Result<Grids> {
        let chosen = self.chosen()?;
        let stretch = share.stretch(self.from_s, self.until_s)?;
        let metric = Metric::of(&self.metric)?;
        let own = share.own(&(0..share.locations()));
        let mut found = Grids::default();
        // By rank: where it is in the chosen one. Threads of a rank are at one agent.
        let mut placed: BTreeMap<u32, u64> = BTreeMap::new();
        for at in own.clone() {
            for grid in grids(share, at).filter(|grid| grid.dimensions.len() <= DIMENSIONS) {
                stop.check()?;
                let shape = Shape::of(grid);
                if chosen == Some(grid.communicator) {
                    let shared = shape.shared();
                    let place = number(&grid.dimensions, &shape.told(&shared), &shared);
                    placed.insert(share.placed(at).rank, place);
                }
                let key = (Reverse(shape.size()), grid.communicator);
                let listed = BTreeMap::from([(key, shape)]);
                found.merge(Grids {
                    listed,
                    ..Grids::default()
                });
            }
        }
        for at in own.clone() {
            stop.check()?;
            found.name(share, at);
            let waits = share.index_of(at).waits(stretch);
            let numbers = waits.filter_map(|wait| u8::try_from(wait.pattern).ok());
            found.patterns.extend(numbers.map(|number| (number, ())));
        }
        let locations = share.locations();
        let own = own.into_par_iter().filter_map(|at| {
            let rank = share.placed(at).rank;
            Some((at, rank, *placed.get(&rank)?))
        });
        let amounts = own.map(|(at, rank, place)| {
            let (mut amount, borders) = ([Sum(0)], [stretch.0, stretch.1]);
            let is_all = metric.add(share, (at, locations), &borders, &mut amount, stop)?;
            let place_of = Place {
                first: rank,
                location: at,
                ranks: u64::from(share.placed(at).thread == 0),
                amount: amount[0].0,
            };
            Ok((place, place_of, is_all))
        });
        for (place, amount, is_all) in amounts.collect::<Result<Vec<_>>>()? {
            Filter::merge(&mut found.places, BTreeMap::from([(place, amount)]));
            found.partly += u64::from(!is_all);
        }
        Ok(found)
    }

    fn answer(&self, share: &Share, found: Grids) -> Result<Value> {
        let (chosen, metric) = (self.chosen()?, Metric::of(&self.metric)?);
        let dimensions = |shape: &Shape| -> Vec<Value> {
            let all = shape.dimensions.iter();
            all.map(|one| json!([one.0, one.1])).collect()
        };
        let listed = found.listed.iter().take(LISTED);
        let listed = listed.map(|((size, id), shape)| {
            json!({
                "id": format!("{id:x}"), "name": short(&shape.name), "ranks": size.0,
                "dimensions": dimensions(shape),
            })
        });
        let shape = found.listed.iter().find(|((_, id), _)| chosen == Some(*id));
        let shape = shape.map(|(_, shape)| {
            let shared = shape.shared();
            json!({"told": shape.told(&shared), "shared": shared})
        });
        let patterns = found.patterns.keys().copied();
        let patterns = patterns.filter_map(PatternId::from_number);
        let total = found.places.values().map(|place| place.amount);
        let total = total.fold(0, i64::saturating_add);
        let places = found.places.iter();
        let places = places.map(|(number, place)| {
            json!([
                number,
                place.location,
                place.first,
                place.ranks,
                metric.told(place.amount)
            ])
        });
        Ok(json!({
            "metric": self.metric,
            "unit": metric.unit(),
            "metrics": Metric::all(share, patterns),
            "communicators": listed.collect::<Vec<_>>(),
            "more_communicators": found.listed.len() > LISTED,
            "shape": shape,
            "places": places.collect::<Vec<_>>(),
            "total": metric.told(total),
            "partly_counted": found.partly,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_grids_share_places() {
        let shape = |sizes: &[u32]| Shape {
            dimensions: sizes.iter().map(|&size| (size, false)).collect(),
            ..Shape::default()
        };
        assert_eq!(shape(&[4, 2]).shared(), [1, 1]);
        assert_eq!(shape(&[]).shared(), [1u32; 0]);
        let large = shape(&[256, 64, 1]);
        assert_eq!(large.shared(), [8, 2, 1]);
        assert_eq!(large.told(&large.shared()), [32, 32, 1]);
        let odd = shape(&[u32::MAX, 3]);
        assert!(odd.told(&odd.shared()).iter().product::<u32>() <= 1600);
        let hostile = shape(&[u32::MAX; DIMENSIONS]);
        assert_eq!(hostile.told(&hostile.shared()).len(), DIMENSIONS);
        let at = |size, coordinate| Dimension {
            size,
            is_periodic: false,
            coordinate,
        };
        assert_eq!(number(&[at(4, 2), at(3, 1)], &[4, 3], &[1, 1]), 7);
        assert_eq!(
            number(&[at(256, 255), at(64, 5)], &[32, 32], &[8, 2]),
            31 * 32 + 2
        );
    }
}
