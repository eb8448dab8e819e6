//! What samples say of a wait: in which functions the late location was longer than the waiting ones.

use std::collections::BTreeMap;

use crate::roots::activities::Activities;
use crate::roots::excess::Other;
use crate::roots::functions::{Functions, InFunctions, Sampled};
use crate::wire::links::More;

/// Adds what samples say of a wait, given the late location's `own` times: to the stretches in which
/// it did `more`. A function counts for stretches in which this location was in it.
pub fn add(
    activities: &Activities,
    (own, functions): (&[(u32, i64)], &Functions),
    other: &Other,
    more: &[More],
    to: &mut InFunctions,
) {
    let count = functions.keys.len() as u32;
    if count == 0 {
        return;
    }
    let mut times: BTreeMap<u32, Sampled> = BTreeMap::new();
    let shared = |activity: u32| activities.shared[activity as usize];
    let own = own.iter().map(|&(activity, time)| (shared(activity), time));
    let theirs = other.times().map(|(number, time)| (number, -time));
    for (number, time) in own.chain(theirs).filter(|(number, _)| *number < count) {
        times.entry(number).or_default().add(&Sampled {
            more: time,
            all: time.saturating_abs(),
        });
    }
    for (function, times) in times {
        let key = functions.keys[function as usize];
        let here = |more: &&More| activities.has_in(more.activity, key);
        let all: i64 = more.iter().filter(here).map(|more| more.time).sum();
        for more in more.iter().filter(here) {
            let part = |time: i64| {
                let part = i128::from(time) * i128::from(more.time) / i128::from(all.max(1));
                part as i64
            };
            to.entry((more.activity, function))
                .or_default()
                .add(&Sampled {
                    more: part(times.more),
                    all: part(times.all),
                });
        }
    }
}
