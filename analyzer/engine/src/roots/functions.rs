//! In which functions late locations were, as samples tell; or in which regions, which are told as samples
//! without chance.
//!
//! Samples are few beside waits, and each stands for much time. So they say nothing of a single wait:
//! stretches are compared by their times, which are exact. What samples of both sides differ by is added
//! up with its sign over all waits of a root cause. Chance cancels there, and what is left is told.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::basics::intern::{PathKey, no_path};

/// Functions with their callers, numbered. The same on all agents.
#[derive(Default)]
pub struct Functions {
    /// The function of a sampled call path.
    numbers: FxHashMap<PathKey, u32>,
    /// By number: the call path to the line in it with most samples.
    pub keys: Vec<PathKey>,
    /// By number: one of these call paths that stands for the function, whoever calls it.
    pub uncalled: Vec<PathKey>,
    /// Time that a sample stands for, ns; the longest.
    pub period: i64,
    /// Number of what stands for time in regions that could not be told.
    pub untold: Option<u32>,
}

/// Samples of late locations, and what they are beyond those of the locations that waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampled {
    /// Beyond the others, ns; negative if the others were there longer.
    pub more: i64,
    /// Samples of both sides, ns.
    pub all: i64,
}

impl Sampled {
    /// Adds another part.
    pub fn add(&mut self, other: &Sampled) {
        self.more = self.more.saturating_add(other.more);
        self.all = self.all.saturating_add(other.all);
    }

    /// Whether it is more than chance: beyond two standard deviations of the number of samples,
    /// each of which stands for `period` ns. What is rounded to ticks of a clock decides nothing: four samples
    /// are certain, and often there are just four.
    pub fn is_certain(&self, period: i64) -> bool {
        let (more, all) = (i128::from(self.more), i128::from(self.all));
        more > 0 && 1001 * more * more >= 4000 * i128::from(period) * all
    }
}

/// Why samples name no function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unnamed {
    /// There would have to be more to tell even all that was done longer from chance.
    TooFew,
    /// They tell of most that was done longer, and no function has enough of it.
    Spread,
}

impl Unnamed {
    /// Of all samples of what was `longer`, ns, where none of its functions is told. Time that is no sample's is
    /// nobody's, so of a rank that was asleep nothing is known.
    pub fn of(samples: Sampled, longer: i64, period: i64) -> Option<Unnamed> {
        if period == 0 || longer <= 0 {
            return None;
        }
        let whole = Sampled {
            more: longer,
            all: samples.all.max(longer),
        };
        let is_most = samples.more > longer / 2 && samples.is_certain(period);
        match whole.is_certain(period) {
            false => Some(Unnamed::TooFew),
            true => is_most.then_some(Unnamed::Spread),
        }
    }
}

impl Functions {
    /// By sampled call path: that of its function with its callers, and that of the function. A sample stands
    /// for `period` ns.
    pub fn new(of: &[(PathKey, [PathKey; 2])], period: i64) -> Functions {
        let mut functions = Functions {
            period,
            ..Functions::default()
        };
        let mut numbers: FxHashMap<PathKey, u32> = FxHashMap::default();
        for &(path, [key, uncalled]) in of {
            let number = *numbers.entry(key).or_insert_with(|| {
                functions.keys.push(key);
                functions.uncalled.push(uncalled);
                functions.keys.len() as u32 - 1
            });
            functions.numbers.insert(path, number);
        }
        functions.untold = functions.numbers.get(&no_path()).copied();
        functions
    }

    /// The call path that stands for the function of a sampled one, with its callers.
    pub fn key(&self, path: PathKey) -> Option<PathKey> {
        let number = self.numbers.get(&path)?;
        Some(self.keys[*number as usize])
    }

    /// The one that stands for it whoever calls it.
    pub fn uncalled(&self, path: PathKey) -> Option<PathKey> {
        let number = self.numbers.get(&path)?;
        Some(self.uncalled[*number as usize])
    }
}

/// Samples by activity and number of the function.
pub type InFunctions = FxHashMap<(u32, u32), Sampled>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_are_told_from_many_that_are_spread() {
        const PERIOD: i64 = 10;
        let of = |more, all, longer| Unnamed::of(Sampled { more, all }, longer, PERIOD);
        // Three samples more are chance, or that many of a hundred in which both sides were.
        assert_eq!(of(30, 30, 39), Some(Unnamed::TooFew));
        assert_eq!(of(0, 0, 39), Some(Unnamed::TooFew));
        assert_eq!(of(180, 1000, 190), Some(Unnamed::TooFew));
        assert_eq!(of(300, 1000, 300), Some(Unnamed::Spread));
        assert_eq!(of(40, 40, 40), Some(Unnamed::Spread));
        // Four samples, as a clock rounds them.
        let four = |more| {
            Sampled {
                more,
                all: 4_000_000,
            }
            .is_certain(1_000_000)
        };
        assert_eq!(
            [3_990_000, 3_999_999, 4_000_000].map(four),
            [false, true, true]
        );
        // Asleep for most of it, or all of it in no function.
        assert_eq!(of(5, 1000, 300), None);
        assert_eq!(of(200, 200, 500), None);
        assert_eq!(of(0, 0, 300), None);
        // Not sampled, and not longer.
        assert_eq!(Unnamed::of(Sampled::default(), 30, 0), None);
        assert_eq!(of(30, 30, 0), None);
    }
}
