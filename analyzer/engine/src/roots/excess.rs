//! What the late location of a wait did longer than the waiting one since both last synchronised.

use crate::basics::ends::NONE;
use crate::roots::activities::Activities;
use crate::wire::links::More;

/// Times of the waiting location, or their means of several, by the agent's number of the activity.
#[derive(Default)]
pub struct Other {
    times: Vec<i64>,
    /// The activities with a time.
    used: Vec<u32>,
    /// All its computation, ns.
    pub computation: i64,
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
        (self.computation, self.waits) = (0, 0);
    }

    /// Adds those of some locations; `NONE` is an activity that no location of this agent has.
    pub fn add(&mut self, times: impl Iterator<Item = (u32, i64)>, computation: i64, waits: u32) {
        for (number, time) in times.filter(|(number, _)| *number != NONE) {
            let at = number as usize;
            if self.times.len() <= at {
                self.times.resize(at + 1, 0);
            }
            if self.times[at] == 0 {
                self.used.push(number);
            }
            self.times[at] = self.times[at].saturating_add(time);
        }
        self.computation = self.computation.saturating_add(computation);
        self.waits += waits;
    }

    /// Makes means of sums.
    pub fn divide(&mut self) {
        if self.waits > 1 {
            let waits = i64::from(self.waits);
            for &number in &self.used {
                self.times[number as usize] /= waits;
            }
            self.computation /= waits;
        }
    }

    /// The sums by activity.
    pub fn times(&self) -> impl Iterator<Item = (u32, i64)> + '_ {
        let numbers = self.used.iter();
        numbers.map(|&number| (number, self.times[number as usize]))
    }

    #[inline]
    fn of(&self, number: u32) -> i64 {
        self.times.get(number as usize).copied().unwrap_or(0)
    }
}

/// Appends what a location did longer, given its `own` times in the order in which they ended, and how
/// long it did that in all. Returns the number of entries.
///
/// Computation in no known function is compared as a whole, since the calls around it may differ
/// between ranks: what the other one computed elsewhere is set against the stretches that ended
/// first. Calls and functions are compared one by one; or with all else, if everything is compared
/// `as_whole`.
pub fn of(
    activities: &Activities,
    own: &[(u32, i64)],
    other: &Other,
    as_whole: bool,
    (excess, times): (&mut Vec<More>, &mut Vec<i64>),
) -> u32 {
    let (begin, first) = (excess.len(), times.len());
    let is_stretch = |number: u32| as_whole || activities.list[number as usize].is_stretch();
    let (mut computation, mut all) = (0i64, 0i64);
    excess.resize(begin + own.len(), More::default());
    times.resize(first + own.len(), 0);
    let mut end = 0;
    for &(activity, time) in own {
        let more = time - other.of(activities.shared[activity as usize]);
        // Without a branch: what took longer is hard to predict.
        excess[begin + end] = More {
            activity,
            time: more,
        };
        times[first + end] = time;
        end += usize::from(more > 0);
        if is_stretch(activity) {
            computation = computation.saturating_add(time);
            all = all.saturating_add(more.max(0));
        }
    }
    let mut elsewhere = all - (computation - other.computation).clamp(0, all);
    let mut kept = begin;
    for at in begin..begin + end {
        let mut more = excess[at];
        if is_stretch(more.activity) {
            let set = elsewhere.min(more.time);
            (more.time, elsewhere) = (more.time - set, elsewhere - set);
        }
        excess[kept] = more;
        times[first + kept - begin] = times[first + at - begin];
        kept += usize::from(more.time > 0);
    }
    excess.truncate(kept);
    times.truncate(first + kept - begin);
    (excess.len() - begin) as u32
}
