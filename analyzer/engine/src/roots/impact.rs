//! What the critical path means for the run: the time of all locations in its activities, and what
//! is lost because others idle while one of them is on it (the performance impact of Böhme, de
//! Supinski, Geimer, Schulz, Wolf: IPDPS 2012).

use std::collections::BTreeMap;

use anyhow::Result;
use laggard_comm::{Filter, Job};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::basics::intern::PathKey;
use crate::roots::activities::{Activity, Site};
use crate::roots::along::{Along, Spent};
use crate::roots::carry::UNIT;

/// Time on the path in one activity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OnPath {
    /// ns
    pub time: i64,
    /// The same by world rank.
    pub ranks: FxHashMap<u32, i64>,
    /// Weighted, see [`crate::roots::load`], ns; and by how much that may be wrong.
    pub weight: i128,
    pub error: i128,
    /// Of all locations, on the path or not, without waiting, ns.
    pub all: i64,
    /// What imbalance on the path costs all locations, in [`UNIT`]s; and the part of it between
    /// locations that do different things. Where activities are told apart by call paths, that of all
    /// computation in no known function stands at [`Activity::by_call_path`].
    pub impact: i128,
    pub inter: i128,
}

/// The critical path.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CriticalPath {
    pub of: FxHashMap<Activity, OnPath>,
    /// By world rank, ns.
    pub ranks: FxHashMap<u32, i64>,
    /// Time of all locations in activities of the path, at most as long each as it is on the path,
    /// ns.
    pub activities: i64,
    /// The rest of the time of all locations without waiting, ns.
    pub others: i64,
    /// By phase of the program.
    pub phases: BTreeMap<String, Spent>,
}

/// What an agent tells of the path: activities by key, with the time on the path, ns.
type Told = Vec<(Activity, i64)>;

impl CriticalPath {
    /// The path of all agents, of which this one's locations are `lanes` of these world ranks. It
    /// is `length` ns long. Locations do different things if they are in other activities, or
    /// `by_call_path` alone. Sums of each agent are of its locations alone. Collective.
    ///
    /// # Errors
    /// Messages that cannot be read.
    pub fn gather(
        job: &dyn Job,
        lanes: &[Along<'_>],
        names: &[(u32, u32)],
        length: i64,
        by_call_path: bool,
    ) -> Result<CriticalPath> {
        let compared = |activity: &Activity| match by_call_path {
            true => activity.by_call_path(),
            false => *activity,
        };
        let mut path = CriticalPath::default();
        for (along, (rank, _)) in lanes.iter().zip(names) {
            for (activity, spent) in along.walked.activities.all().zip(&along.on_path) {
                if spent.time > 0 {
                    let of = path.of.entry(*activity).or_default();
                    of.time += spent.time;
                    of.weight += spent.weight;
                    of.error += spent.error;
                    *of.ranks.entry(*rank).or_default() += spent.time;
                    *path.ranks.entry(*rank).or_default() += spent.time;
                }
            }
        }
        let own: Told = path.of.iter().map(|(of, sums)| (*of, sums.time)).collect();
        let mut whole: FxHashMap<Activity, i64> = FxHashMap::default();
        for bytes in job.all_gather(postcard::to_stdvec(&own)?) {
            for (activity, time) in postcard::from_bytes::<Told>(&bytes)? {
                *whole.entry(compared(&activity)).or_default() += time;
            }
        }
        for along in lanes {
            path.add(along, compared, &whole, length);
            for (name, spent) in &along.phases.spent {
                path.phases.entry(name.clone()).or_default().add(spent);
            }
        }
        Ok(path)
    }

    /// Adds a location's part.
    fn add(
        &mut self,
        along: &Along<'_>,
        compared: impl Fn(&Activity) -> Activity,
        whole: &FxHashMap<Activity, i64>,
        length: i64,
    ) {
        let list = along.walked.activities.all().zip(&along.walked.spent);
        let mut own: FxHashMap<Activity, i64> = FxHashMap::default();
        let mut all = 0i64;
        for (activity, &time) in list.filter(|(_, time)| **time > 0) {
            all = all.saturating_add(time);
            add(own.entry(compared(activity)).or_default(), time);
            if whole.contains_key(&compared(activity)) {
                add(&mut self.of.entry(*activity).or_default().all, time);
            }
        }
        for (activity, &time) in &own {
            let on_path = whole.get(activity).copied().unwrap_or(0);
            add(&mut self.activities, time.min(on_path));
            add(&mut self.others, (time - on_path).max(0));
        }
        let room = |(activity, &time): (&Activity, &i64)| {
            let own = own.get(activity).copied().unwrap_or(0);
            (*activity, (time - own).max(0), own > 0)
        };
        let rooms: Vec<(Activity, i64, bool)> = whole.iter().map(room).collect();
        let all_rooms = rooms.iter().map(|(_, room, _)| *room);
        let sum = all_rooms.fold(0, i64::saturating_add);
        let elsewhere = rooms.iter().filter(|(.., takes_part)| !takes_part);
        let elsewhere = elsewhere.fold(0i64, |sum, (_, room, _)| sum.saturating_add(*room));
        // If it were on the path as far as it takes part in it.
        let here = all.saturating_add(sum - elsewhere);
        for (activity, room, takes_part) in rooms {
            let of = self.of.entry(activity).or_default();
            of.impact += scale(length - all, room, sum);
            if !takes_part {
                of.inter += scale(length - here, room, elsewhere);
            }
        }
    }

    /// Renames call paths.
    pub fn rename_paths(&mut self, name: impl Fn(PathKey) -> PathKey) {
        let site = |(operation, path): Site| (operation, name(path));
        for (activity, sums) in std::mem::take(&mut self.of) {
            let activity = Activity {
                begin: site(activity.begin),
                until: site(activity.until),
                ..activity
            };
            self.of.entry(activity).or_default().add(sums);
        }
    }
}

impl Filter for CriticalPath {
    /// Another part of the same path.
    fn merge(&mut self, other: CriticalPath) {
        for (activity, sums) in other.of {
            self.of.entry(activity).or_default().add(sums);
        }
        for (rank, time) in other.ranks {
            *self.ranks.entry(rank).or_default() += time;
        }
        add(&mut self.activities, other.activities);
        add(&mut self.others, other.others);
        for (name, spent) in other.phases {
            self.phases.entry(name).or_default().add(&spent);
        }
    }
}

impl OnPath {
    fn add(&mut self, other: OnPath) {
        self.time += other.time;
        for (rank, time) in other.ranks {
            *self.ranks.entry(rank).or_default() += time;
        }
        self.weight += other.weight;
        self.error += other.error;
        add(&mut self.all, other.all);
        self.impact += other.impact;
        self.inter += other.inter;
    }
}

/// `amount * part / all` in [`UNIT`]s; nothing of nothing.
fn scale(amount: i64, part: i64, all: i64) -> i128 {
    match all {
        0 => 0,
        _ => {
            let (product, all) = (i128::from(amount) * i128::from(part), i128::from(all));
            product / all * i128::from(UNIT) + product % all * i128::from(UNIT) / all
        }
    }
}

/// Traces may be contradictory: times add up without overflow.
fn add(sum: &mut i64, time: i64) {
    *sum = sum.saturating_add(time);
}
