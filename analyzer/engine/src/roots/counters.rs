//! What counters say of a wait: how much the late location and those that waited counted while they
//! computed, since they last synchronised. And how many page faults they had, which needs no counters.
//!
//! Counts are carried as times are, by activities that are never a cause: what a counter counted, the
//! time in which it did, and all time between calls.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::basics::intern::PathKey;
use crate::roots::activities::{Activities, Activity, Kind, Site};
use crate::roots::excess::Other;
use crate::stream::thread::Thread;
use crate::wire::links::More;

/// By activity of a late location.
pub type InCounters = FxHashMap<u32, Sums>;

/// Counts by number of their activity, of waits for one activity.
#[derive(Clone, Default)]
pub struct Sums {
    more: i64,
    times: u64,
    counts: BTreeMap<u32, [i64; 2]>,
    faults: [i64; 2],
}

/// What late locations counted while they computed, and those that waited for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// How much longer the late ones were in the waits that counters tell of, ns, and how often.
    pub more: i64,
    pub times: u64,
    /// Time in which counters counted, ns.
    pub time: [i64; 2],
    /// By counter.
    pub counts: BTreeMap<String, [i64; 2]>,
    /// Page faults in the waits for time in the kernel.
    pub faults: [i64; 2],
}

impl Counted {
    /// Adds another part.
    pub fn add(&mut self, other: &Counted) {
        add(&mut self.time, other.time);
        add(&mut self.faults, other.faults);
        self.more = self.more.saturating_add(other.more);
        self.times += other.times;
        for (name, counts) in &other.counts {
            add(self.counts.entry(name.clone()).or_default(), *counts);
        }
    }
}

fn add(to: &mut [i64; 2], more: [i64; 2]) {
    for (to, more) in to.iter_mut().zip(more) {
        *to = to.saturating_add(more);
    }
}

/// What an activity of counters is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum About {
    Time,
    Worked,
    Counter(String),
    Faults,
}

/// The counters of a location, as activities.
#[derive(Clone, Default)]
pub struct Numbers {
    /// By number of the activity.
    about: BTreeMap<u32, About>,
    /// `None` if the location has no counters.
    known: Option<Known>,
    /// `None` if it had no page faults so far.
    faults: Option<u32>,
    /// Whether they were looked for.
    is_looked: bool,
}

#[derive(Clone)]
struct Known {
    time: u32,
    worked: u32,
    counters: Vec<u32>,
}

/// Such an activity: no counter is named by an empty text.
fn activity(kind: u16, name: &str) -> Activity {
    let hash = xxh3_128(name.as_bytes());
    let key: PathKey = [hash as u64, (hash >> 64) as u64];
    Activity {
        kind: Kind::Counted,
        begin: (kind, key),
        until: Site::default(),
    }
}

impl Activities {
    /// Whether it is known that the location has none.
    #[inline]
    pub fn has_no_counters(&self) -> bool {
        self.counters.is_looked && self.counters.known.is_none()
    }

    /// What was counted in some work of `time` ns: activities and how much.
    pub fn of_counts(
        &mut self,
        thread: &Thread<'_>,
        counts: &laggard_trace::Counts,
        time: i64,
        mut part: impl FnMut(u32, i64),
    ) {
        if !std::mem::replace(&mut self.counters.is_looked, true) {
            let names = thread.stream.location().definitions.properties("counter");
            if names.is_empty() {
                return;
            }
            let mut number = |kind, about: About, name: &str| {
                let number = self.number(activity(kind, name));
                self.counters.about.insert(number, about);
                number
            };
            let known = Known {
                time: number(0, About::Time, ""),
                worked: number(1, About::Worked, ""),
                counters: names
                    .iter()
                    .map(|name| number(2, About::Counter(name.clone()), name))
                    .collect(),
            };
            self.counters.known = Some(known);
        }
        let Some(known) = &self.counters.known else {
            return;
        };
        part(known.worked, time);
        if !counts.is_empty() {
            part(known.time, thread.stream.length_ns(counts.time));
            for (at, count) in counts.iter() {
                if let Some(&number) = known.counters.get(at) {
                    part(number, i64::try_from(count).unwrap_or(i64::MAX));
                }
            }
        }
    }

    /// Page faults in some time: an activity and how many.
    pub fn of_faults(&mut self, faults: [u32; 2], mut part: impl FnMut(u32, i64)) {
        let all: i64 = faults.map(i64::from).iter().sum();
        if all == 0 {
            return;
        }
        let number = match self.counters.faults {
            Some(number) => number,
            None => {
                let number = self.number(activity(3, ""));
                self.counters.about.insert(number, About::Faults);
                *self.counters.faults.insert(number)
            }
        };
        part(number, all);
    }

    /// By activity: what was counted before waits for it.
    pub fn counted(&self, sums: &Sums) -> Counted {
        let mut counted = Counted {
            more: sums.more,
            times: sums.times,
            faults: sums.faults,
            ..Counted::default()
        };
        for (number, counts) in &sums.counts {
            match self.counters.about.get(number) {
                Some(About::Time) => counted.time = *counts,
                Some(About::Counter(name)) => {
                    counted.counts.insert(name.clone(), *counts);
                }
                Some(About::Worked | About::Faults) | None => {}
            }
        }
        counted
    }
}

/// Smallest part of the work of each side that counters must have seen, as a fraction: what they say of
/// other waits is nothing.
const SEEN: (i64, i64) = (4, 5);
/// Less work than so small a part of the late location's counts as none.
const NONE_OF: i64 = 20;

/// Adds what counters say of a wait, given the late location's `own` times: to the stretches in which it
/// did `more`, of computation and in the kernel, by how much of that is theirs.
pub fn of_wait(
    activities: &Activities,
    own: &[(u32, i64)],
    other: &Other,
    more: &[More],
    to: &mut InCounters,
) {
    let both = |number: u32| {
        let own = own.iter().find(|(activity, _)| *activity == number);
        let own = own.map_or(0, |(_, count)| *count);
        [own, other.of(activities.shared[number as usize])]
    };
    if let Some(faults) = activities.counters.faults {
        let faults = both(faults);
        shared_out(activities, more, Kind::Kernel, |more, part| {
            add(
                &mut to.entry(more.activity).or_default().faults,
                faults.map(part),
            );
        });
    }
    let Some(known) = &activities.counters.known else {
        return;
    };
    let (seen, worked) = (both(known.time), both(known.worked));
    let is_seen = |side: usize| {
        let (part, whole) = SEEN;
        seen[side] > 0 && seen[side].saturating_mul(whole) >= worked[side].saturating_mul(part)
    };
    let did_nothing = worked[1].saturating_mul(NONE_OF) < worked[0];
    if !is_seen(0) || !is_seen(1) && !did_nothing {
        return;
    }
    for kind in [Kind::Computation, Kind::Kernel] {
        shared_out(activities, more, kind, |more, part| {
            let sums = to.entry(more.activity).or_default();
            sums.more = sums.more.saturating_add(more.time);
            sums.times += 1;
            for (&number, about) in &activities.counters.about {
                if *about != About::Faults {
                    add(
                        sums.counts.entry(number).or_default(),
                        both(number).map(part),
                    );
                }
            }
        });
    }
}

/// Calls `each` for what was longer of this kind, with how much of a count is its part by its time.
fn shared_out(
    activities: &Activities,
    more: &[More],
    kind: Kind,
    mut each: impl FnMut(&More, &dyn Fn(i64) -> i64),
) {
    let is_of = |more: &&More| activities.list.values[more.activity as usize].kind == kind;
    let all: i64 = more.iter().filter(is_of).map(|more| more.time).sum();
    for more in more.iter().filter(is_of) {
        each(more, &|count| {
            let part = i128::from(count) * i128::from(more.time) / i128::from(all.max(1));
            part as i64
        });
    }
}

/// Adds other counts.
pub fn merge(to: &mut InCounters, other: InCounters) {
    for (activity, other) in other {
        let sums = to.entry(activity).or_default();
        sums.more = sums.more.saturating_add(other.more);
        sums.times += other.times;
        add(&mut sums.faults, other.faults);
        for (number, counts) in other.counts {
            add(sums.counts.entry(number).or_default(), counts);
        }
    }
}
