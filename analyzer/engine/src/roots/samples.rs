//! What samples say of a wait: in which functions the late location was longer than the waiting ones.

use std::collections::BTreeMap;

use crate::roots::activities::Activities;
use crate::roots::excess::Other;
use crate::roots::functions::{Functions, InFunctions, Sampled};
use crate::wire::links::More;

/// Adds what samples say of a wait, given the late location's `own` times: to the stretches in which
/// it did `more`. A function counts for stretches in which this location was in it, whoever called it there.
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
    let shared = |activity: u32| activities.shared[activity as usize];
    let own = own.iter().map(|&(activity, time)| (shared(activity), time));
    let (Some(own), Some(theirs)) = (told(own, functions), told(other.times(), functions)) else {
        return;
    };
    let mut times: BTreeMap<u32, Sampled> = BTreeMap::new();
    let theirs = theirs.map(|(number, time)| (number, -time));
    for (number, time) in own.chain(theirs) {
        times.entry(number).or_default().add(&Sampled {
            more: time,
            all: time.saturating_abs(),
        });
    }
    for (function, times) in times {
        let uncalled = functions.uncalled[function as usize];
        let here = |more: &&More| activities.has_in(more.activity, uncalled);
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

/// Times in functions. Where regions of some stretches could not be told, the others stand for them too;
/// `None` if those are fewer.
fn told(
    times: impl Iterator<Item = (u32, i64)> + Clone,
    functions: &Functions,
) -> Option<impl Iterator<Item = (u32, i64)>> {
    let count = functions.keys.len() as u32;
    let is_untold = |number: u32| Some(number) == functions.untold;
    let times = times.filter(move |(number, _)| *number < count);
    let sum = |is_of: bool| -> i64 {
        let of = times
            .clone()
            .filter(|(number, _)| is_untold(*number) == is_of);
        of.fold(0, |sum, (_, time)| sum.saturating_add(time))
    };
    let (untold, told) = match functions.untold {
        Some(_) => (sum(true), sum(false)),
        None => (0, 0),
    };
    let scale = move |time: i64| match untold {
        0 => time,
        _ => {
            (i128::from(time) * (i128::from(told) + i128::from(untold)) / i128::from(told.max(1)))
                as i64
        }
    };
    let known = times.filter(move |(number, _)| Some(*number) != functions.untold);
    (untold <= told).then(|| known.map(move |(number, time)| (number, scale(time))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basics::intern::no_path;

    #[test]
    fn regions_that_are_told_stand_for_as_many_that_are_not() {
        let of = |times: &[(u32, i64)], last| {
            let keys = [[1, 1], [2, 2], last];
            let functions = Functions::new(&keys.map(|key| (key, [key; 2])), 0);
            let told = told(times.iter().copied(), &functions);
            told.map(Iterator::collect::<Vec<_>>)
        };
        let untold = no_path();
        let times = [(0, 30), (1, 10), (2, 20), (9, 5)];
        assert_eq!(of(&times, [3, 3]), Some(vec![(0, 30), (1, 10), (2, 20)]));
        assert_eq!(of(&times, untold), Some(vec![(0, 45), (1, 15)]));
        assert_eq!(of(&[(0, 20), (2, 20)], untold), Some(vec![(0, 40)]));
        assert_eq!(of(&[(0, 20), (2, 21)], untold), None);
        assert_eq!(of(&[], untold), Some(vec![]));
    }
}
