//! Sums of root causes; the order of adding does not matter.

use std::cmp::Reverse;

use laggard_comm::Filter;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::basics::intern::PathKey;
use crate::basics::room;
use crate::roots::activities::{Activities, Activity, Site};
use crate::roots::carry::UNIT;
use crate::roots::counters::{Counted, InCounters};
use crate::roots::functions::{Functions, InFunctions, Sampled};
use crate::roots::impact::CriticalPath;
use crate::roots::map;
use crate::waits::sums::FindingKey;
use crate::wire::links::Waiters;

/// Who waits in the end: pattern and call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Victim {
    pub pattern: u16,
    pub call: Site,
}

impl Victim {
    /// The finding that it is.
    pub fn finding(&self) -> Option<FindingKey> {
        let (operation, path) = self.call;
        Some((self.pattern.try_into().ok()?, operation, path))
    }
}

/// Costs that one activity causes. In [`UNIT`]s.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Root {
    /// Of waits for this location.
    pub direct: u128,
    /// Of waits for others that waited for this one.
    pub indirect: u128,
    /// By late location: rank, thread.
    pub ranks: FxHashMap<(u32, u32), u128>,
    /// By waiting call: costs, and who waits.
    pub victims: FxHashMap<Victim, (u128, Waiters)>,
    pub longer: Longer,
    /// When it cost most at once.
    pub worst: Worst,
    /// By function: samples of these locations, and of those that waited.
    pub functions: FxHashMap<PathKey, Sampled>,
    /// What these locations counted, and those that waited.
    pub counted: Counted,
}

/// Waits for one call that came late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worst {
    /// What they cost because of one activity, all who waited, ns; 0: there are none.
    pub cost: i64,
    /// When the call came, ns.
    pub until: i64,
    /// How long they waited for it, all together, ns, and how many.
    pub waited: i64,
    pub waits: u32,
    /// The late rank, once it is known.
    pub rank: u32,
}

impl Worst {
    /// Adds others for the same call.
    fn add(&mut self, other: &Worst) {
        self.cost = self.cost.saturating_add(other.cost);
        self.waited = self.waited.saturating_add(other.waited);
        self.waits = self.waits.saturating_add(other.waits);
    }

    /// Takes other ones that cost more; of equal ones the first.
    pub fn take(&mut self, other: Worst) {
        let key = |one: &Worst| {
            let first = Reverse((one.until, one.rank));
            (one.cost, first, one.waits, one.waited)
        };
        if key(&other) > key(self) {
            *self = other;
        }
    }
}

/// When others waited most for a location, by activity.
#[derive(Clone, Debug, Default)]
pub struct WorstWaits {
    /// Waits for the last call, by activity: that they cost most is known when they are all there.
    last: Vec<(u32, Worst)>,
    worst: Vec<Worst>,
}

impl WorstWaits {
    /// Waits for one call cost so much because of an activity. They are given call by call.
    pub fn add(&mut self, activity: u32, waits: &Worst) {
        if let Some((_, last)) = self.last.first()
            && last.until != waits.until
        {
            self.settle();
        }
        match self.last.iter_mut().find(|(other, _)| *other == activity) {
            Some((_, last)) => last.add(waits),
            None => self.last.push((activity, *waits)),
        }
    }

    fn settle(&mut self) {
        for (activity, waits) in self.last.drain(..) {
            room::at(&mut self.worst, activity as usize).take(waits);
        }
    }

    /// By activity, after the last call.
    pub fn finish(mut self) -> Vec<Worst> {
        self.settle();
        self.worst
    }
}

/// How long late locations did something before waits for them, and how much longer than those that
/// waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Longer {
    /// All of them, ns.
    pub time: i64,
    /// Beyond the others, ns.
    pub more: i64,
    /// Times that somebody was late because of it.
    pub count: u64,
    /// Sums over these times of their weights, ns, and of `weight * time` and `weight * more`, ns^2: see
    /// [`means`](Self::means).
    pub weight: u128,
    pub weighted_time: u128,
    pub weighted_more: u128,
}

impl Longer {
    /// One of these times, before a wait of `share`, ns.
    pub fn once(time: i64, more: i64, share: i64) -> Longer {
        let of = |time: i64| time.max(0) as u128;
        let weight = match share < more {
            true => of(share) * of(share) / of(more).max(1),
            false => of(more),
        };
        Longer {
            time,
            more,
            count: 1,
            weight,
            weighted_time: weight * of(time),
            weighted_more: weight * of(more),
        }
    }

    /// How long it was in the mean, and how much longer than with those that waited, ns. Each time counts by what it
    /// cost, and by how much of it that was: many that cost next to nothing say nothing of those that did, nor does one
    /// for somebody who was not met for long.
    pub fn means(&self) -> (f64, f64) {
        let all = self.weight.max(1) as f64;
        (
            self.weighted_time as f64 / all,
            self.weighted_more as f64 / all,
        )
    }

    /// Adds another part.
    pub fn add(&mut self, other: &Longer) {
        self.time = self.time.saturating_add(other.time);
        self.more = self.more.saturating_add(other.more);
        self.count += other.count;
        self.weight = self.weight.saturating_add(other.weight);
        self.weighted_time = self.weighted_time.saturating_add(other.weighted_time);
        self.weighted_more = self.weighted_more.saturating_add(other.weighted_more);
    }
}

/// All root causes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Roots {
    /// Whether they were not searched, or not all found.
    pub is_unknown: bool,
    /// Waiting that no activity is charged with: nobody knows the late party, or what it did. In
    /// [`UNIT`]s.
    pub untraced: u128,
    pub of: FxHashMap<Activity, Root>,
    /// Time that a sample stands for, ns.
    pub period: i64,
    /// By pattern.
    pub classes: FxHashMap<u16, WaitClass>,
    pub path: CriticalPath,
    pub load: Loaded,
}

/// Waits of one pattern, by what they come from and what comes of them. In [`UNIT`]s.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct WaitClass {
    /// Waits for what others did longer, or for nothing that they did.
    pub direct: u128,
    /// Waits for others that waited themselves.
    pub indirect: u128,
    /// Waits for nobody that is known.
    pub untraced: u128,
    /// Waits that made others wait.
    pub propagating: u128,
    /// Costs of what others did longer, of the waits for them.
    pub short: u128,
    /// The same, of waits that these waits made.
    pub long: u128,
}

/// How much the run did at a time. The same on all agents.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Loaded {
    /// Begin and end of the critical path, ns.
    pub span: (i64, i64),
    /// Length of a bin, ns.
    pub width: i64,
    /// By bin: time of all locations without waiting, ns.
    pub busy: Vec<i64>,
    /// By bin: bytes sent.
    pub bytes: Vec<u64>,
    pub waiting: map::Folded,
}

impl Roots {
    /// Adds costs of an activity of a late location: whose waits, how much, and who
    /// waits.
    pub fn add(
        &mut self,
        (location, activity): ((u32, u32), Activity),
        (victim, amount, who): (Victim, u128, Waiters),
        is_direct: bool,
    ) {
        if amount == 0 {
            return;
        }
        let root = self.of.entry(activity).or_default();
        match is_direct {
            true => root.direct += amount,
            false => root.indirect += amount,
        }
        *root.ranks.entry(location).or_default() += amount;
        let of_victim = root.victims.entry(victim).or_default();
        of_victim.0 += amount;
        of_victim.1.add(who);
    }

    /// Adds what samples of a location say about what it did longer.
    pub fn add_functions(
        &mut self,
        activities: &Activities,
        samples: &InFunctions,
        functions: &Functions,
    ) {
        self.period = functions.period;
        for (&(activity, function), sampled) in samples {
            let root = self.of.get_mut(&activities.list.values[activity as usize]);
            if let Some(root) = root {
                let key = functions.keys[function as usize];
                root.functions.entry(key).or_default().add(sampled);
            }
        }
    }

    /// Adds what a location counted before others waited for what it did longer.
    pub fn add_counted(&mut self, activities: &Activities, counters: &InCounters) {
        for (activity, counts) in counters {
            let root = self.of.get_mut(&activities.list.values[*activity as usize]);
            if let Some(root) = root {
                root.counted.add(&activities.counted(counts));
            }
        }
    }

    /// Adds waits, by pattern, for nobody that is known; ns.
    pub fn add_untraced(&mut self, waits: FxHashMap<u16, u128>) {
        for (pattern, time) in waits {
            let amount = time * UNIT as u128;
            self.untraced += amount;
            self.classes.entry(pattern).or_default().untraced += amount;
        }
    }

    /// Those of a search that did not take place.
    pub fn unknown() -> Roots {
        Roots {
            is_unknown: true,
            ..Roots::default()
        }
    }

    /// Renames call paths.
    pub fn rename_paths(&mut self, name: impl Fn(PathKey) -> PathKey) {
        self.path.rename_paths(&name);
        let site = |(operation, path): Site| (operation, name(path));
        for (activity, root) in std::mem::take(&mut self.of) {
            let activity = Activity {
                begin: site(activity.begin),
                until: site(activity.until),
                ..activity
            };
            let victims = root.victims.into_iter().map(|(victim, sums)| {
                let call = site(victim.call);
                (Victim { call, ..victim }, sums)
            });
            let functions = root.functions.into_iter();
            let functions: Vec<_> = functions.map(|(path, sums)| (name(path), sums)).collect();
            let mut renamed = Root {
                victims: FxHashMap::default(),
                functions: FxHashMap::default(),
                ..root
            };
            for (victim, (amount, who)) in victims {
                let sums = renamed.victims.entry(victim).or_default();
                sums.0 += amount;
                sums.1.add(who);
            }
            for (path, sampled) in functions {
                renamed.functions.entry(path).or_default().add(&sampled);
            }
            self.of.entry(activity).or_default().merge(renamed);
        }
    }

    /// The call paths that it names.
    pub fn paths(&self) -> impl Iterator<Item = PathKey> {
        self.of
            .iter()
            .flat_map(|(activity, root)| {
                let victims = root.victims.keys().map(|victim| victim.call.1);
                let functions = root.functions.keys().copied();
                victims
                    .chain(functions)
                    .chain([activity.begin.1, activity.until.1])
            })
            .chain(
                self.path
                    .of
                    .keys()
                    .flat_map(|activity| [activity.begin.1, activity.until.1]),
            )
    }
}

impl Filter for Roots {
    fn merge(&mut self, other: Roots) {
        self.is_unknown |= other.is_unknown;
        self.untraced += other.untraced;
        self.period = self.period.max(other.period);
        self.of.merge(other.of);
        for (pattern, other) in other.classes {
            self.classes.entry(pattern).or_default().add(&other);
        }
        self.path.merge(other.path);
        if self.load.busy.is_empty() {
            self.load = other.load;
        }
    }
}

impl WaitClass {
    /// Adds another part.
    pub fn add(&mut self, other: &WaitClass) {
        self.direct += other.direct;
        self.indirect += other.indirect;
        self.untraced += other.untraced;
        self.propagating += other.propagating;
        self.short += other.short;
        self.long += other.long;
    }
}

impl Root {
    /// All its costs.
    pub fn all(&self) -> u128 {
        self.direct + self.indirect
    }
}

impl Filter for Root {
    fn merge(&mut self, other: Root) {
        self.direct += other.direct;
        self.indirect += other.indirect;
        self.longer.add(&other.longer);
        self.worst.take(other.worst);
        self.counted.add(&other.counted);
        for (path, sampled) in other.functions {
            self.functions.entry(path).or_default().add(&sampled);
        }
        for (location, amount) in other.ranks {
            *self.ranks.entry(location).or_default() += amount;
        }
        for (victim, (amount, who)) in other.victims {
            let sums = self.victims.entry(victim).or_default();
            sums.0 += amount;
            sums.1.add(who);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of the waits for a call comes first depends on the agents: one of them may cost nothing.
    #[test]
    fn the_worst_wait_has_all_that_waited_for_its_call() {
        let wait = |cost, waited| Worst {
            cost,
            until: 10,
            waited,
            waits: 1,
            rank: 0,
        };
        let of = |waits: [Worst; 2]| {
            let mut all = WorstWaits::default();
            waits.iter().for_each(|one| all.add(0, one));
            all.finish()[0]
        };
        let (dear, free) = (wait(2, 7), wait(0, 3));
        assert_eq!(of([dear, free]), of([free, dear]));
        assert_eq!(of([dear, free]).waited, 10);
    }
}
