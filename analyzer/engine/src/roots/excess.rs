//! What the late location of a wait did longer than the waiting one since both last synchronised.

use rustc_hash::FxHashMap;

use crate::basics::ends::NONE;
use crate::basics::room;
use crate::roots::activities::{Activities, Compared, Kind};
use crate::wire::links::{Alike, More, Wholes};

/// Times of the waiting location, or their means of several, by the agent's number of the activity.
#[derive(Default)]
pub struct Other {
    times: Vec<i64>,
    /// The activities with a time.
    used: Vec<u32>,
    /// Sums of what is compared as a whole.
    pub wholes: Wholes,
    /// Number of waiting locations.
    pub waits: u32,
}

impl Other {
    /// Forgets the times.
    pub fn clear(&mut self) {
        for &number in &self.used {
            self.times[number as usize] = 0;
        }
        self.used.clear();
        (self.wholes, self.waits) = (Wholes::default(), 0);
    }

    /// Adds those of some locations; `NONE` is an activity that no location of this agent has.
    #[inline]
    pub fn add(&mut self, times: impl Iterator<Item = (u32, i64)>, wholes: &Wholes, waits: u32) {
        for (number, time) in times.filter(|(number, _)| *number != NONE) {
            let sum = room::at(&mut self.times, number as usize);
            if *sum == 0 {
                self.used.push(number);
            }
            *sum = sum.saturating_add(time);
        }
        for (sum, whole) in self.wholes.iter_mut().zip(wholes) {
            *sum = sum.saturating_add(*whole);
        }
        self.waits += waits;
    }

    /// Makes means of sums.
    pub fn divide(&mut self) {
        if self.waits > 1 {
            let waits = i64::from(self.waits);
            for &number in &self.used {
                self.times[number as usize] /= waits;
            }
            self.wholes.iter_mut().for_each(|whole| *whole /= waits);
        }
    }

    /// The sums by activity.
    pub fn times(&self) -> impl Iterator<Item = (u32, i64)> + Clone + '_ {
        let numbers = self.used.iter();
        numbers.map(|&number| (number, self.times[number as usize]))
    }

    /// The sum of one activity.
    #[inline]
    pub fn of(&self, number: u32) -> i64 {
        self.times.get(number as usize).copied().unwrap_or(0)
    }
}

/// What a location did longer, and how long it did that in all.
#[derive(Default)]
pub struct Excess {
    pub more: Vec<More>,
    pub times: Vec<i64>,
    /// What others did of activities that are in the list twice, by the agent's number, ns.
    taken: FxHashMap<u32, i64>,
    /// What it did longer of one wait, before the others' time elsewhere is set against it.
    found: Vec<(More, i64)>,
}

impl Excess {
    /// Of about so many waits.
    pub fn of_waits(count: usize) -> Excess {
        Excess {
            more: Vec::with_capacity(2 * count),
            times: Vec::with_capacity(2 * count),
            found: Vec::new(),
            taken: FxHashMap::default(),
        }
    }

    /// Appends what a location did longer, given its `own` times in the order in which they ended. Returns the
    /// number of entries.
    ///
    /// Computation in no known function is compared as a whole, since the calls around it may differ
    /// between ranks: what the other one computed elsewhere is set against the stretches that ended
    /// first. So is each other kind of stretch. Calls and functions are compared one by one; or with all else, if
    /// everything is compared as a whole. `alike` gets the waits that both had.
    pub fn add(
        &mut self,
        activities: &Activities,
        own: &[(u32, i64)],
        other: &Other,
        alike: &mut Vec<Alike>,
    ) -> u32 {
        let (mut wholes, mut elsewhere) = (Wholes::default(), Wholes::default());
        // Most is of the first of them.
        let (mut whole, mut longer) = (0i64, 0i64);
        if self.found.len() < own.len() {
            self.found.resize(own.len(), Default::default());
        }
        let mut found = 0;
        self.taken.clear();
        let has_twice = !activities.inherited().is_empty();
        for &(activity, time) in own {
            let shared = activities.shared[activity as usize];
            let mut theirs = other.of(shared);
            if has_twice {
                let taken = self.taken.entry(shared).or_default();
                theirs -= *taken;
                *taken += theirs.min(time);
            }
            let more = time - theirs;
            match activities.compared[activity as usize] {
                Compared::InWhole(0) => {
                    whole = whole.saturating_add(time);
                    longer = longer.saturating_add(more.max(0));
                }
                Compared::InWhole(whole) => {
                    let whole = usize::from(whole);
                    wholes[whole] = wholes[whole].saturating_add(time);
                    elsewhere[whole] = elsewhere[whole].saturating_add(more.max(0));
                }
                Compared::Alone => {}
                Compared::Never => {
                    let is_wait = activities.list.values[activity as usize].kind == Kind::Waited;
                    if is_wait && theirs > 0 {
                        alike.push(Alike {
                            activity,
                            all: time,
                            both: theirs.min(time),
                        });
                    }
                    continue;
                }
            }
            let is_more = more > 0;
            let more = More {
                activity,
                time: more,
            };
            // Nobody can foretell which half of them is longer: no branch.
            self.found[found] = (more, time);
            found += usize::from(is_more);
        }
        (wholes[0], elsewhere[0]) = (whole, longer);
        for ((elsewhere, whole), other) in elsewhere.iter_mut().zip(wholes).zip(other.wholes) {
            *elsewhere -= (whole - other).clamp(0, *elsewhere);
        }
        let first = self.more.len();
        for &(mut more, time) in &self.found[..found] {
            if let Compared::InWhole(whole) = activities.compared[more.activity as usize] {
                let elsewhere = &mut elsewhere[usize::from(whole)];
                let set = more.time.min(*elsewhere);
                more.time -= set;
                *elsewhere -= set;
            }
            if more.time > 0 {
                self.more.push(more);
                self.times.push(time);
            }
        }
        (self.more.len() - first) as u32
    }
}
