//! What the late location of a wait did longer than the waiting one since both last synchronised.

use crate::basics::ends::NONE;
use crate::roots::activities::{Activities, Kind};
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
    pub fn add(&mut self, times: impl Iterator<Item = (u32, i64)>, wholes: &Wholes, waits: u32) {
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

/// Appends what a location did longer, given its `own` times in the order in which they ended, and how
/// long it did that in all. Returns the number of entries.
///
/// Computation in no known function is compared as a whole, since the calls around it may differ
/// between ranks: what the other one computed elsewhere is set against the stretches that ended
/// first. So is each other kind of stretch. Calls and functions are compared one by one; or with all else, if everything is compared
/// `as_whole`. `alike` gets the waits that both had.
pub fn of(
    activities: &Activities,
    own: &[(u32, i64)],
    other: &Other,
    as_whole: bool,
    (excess, times): (&mut Vec<More>, &mut Vec<i64>),
    alike: &mut Vec<Alike>,
) -> u32 {
    let (begin, first) = (excess.len(), times.len());
    let whole = |number: u32| activities.list[number as usize].whole(as_whole);
    let (mut wholes, mut all) = (Wholes::default(), Wholes::default());
    excess.resize(begin + own.len(), More::default());
    times.resize(first + own.len(), 0);
    let mut end = 0;
    for &(activity, time) in own {
        let theirs = other.of(activities.shared[activity as usize]);
        let of = &activities.list[activity as usize];
        if !of.kind.is_cause() {
            if of.kind == Kind::Waited && theirs > 0 {
                alike.push(Alike {
                    activity,
                    all: time,
                    both: theirs.min(time),
                });
            }
            continue;
        }
        let more = time - theirs;
        // Without a branch: what took longer is hard to predict.
        excess[begin + end] = More {
            activity,
            time: more,
        };
        times[first + end] = time;
        end += usize::from(more > 0);
        if let Some(whole) = whole(activity) {
            wholes[whole] = wholes[whole].saturating_add(time);
            all[whole] = all[whole].saturating_add(more.max(0));
        }
    }
    let mut elsewhere = all;
    for ((elsewhere, whole), other) in elsewhere.iter_mut().zip(wholes).zip(other.wholes) {
        *elsewhere -= (whole - other).clamp(0, *elsewhere);
    }
    let mut kept = begin;
    for at in begin..begin + end {
        let mut more = excess[at];
        if let Some(whole) = whole(more.activity) {
            let set = elsewhere[whole].min(more.time);
            more.time -= set;
            elsewhere[whole] -= set;
        }
        excess[kept] = more;
        times[first + kept - begin] = times[first + at - begin];
        kept += usize::from(more.time > 0);
    }
    excess.truncate(kept);
    times.truncate(first + kept - begin);
    (excess.len() - begin) as u32
}
