//! The functions and regions that samples, or records of regions, tell of, before anything is compared.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::Result;
use laggard_comm::{Job, from_head, merge_up};
use laggard_trace::Location;

use crate::basics::ends::NONE;
use crate::basics::intern::{PathKey, no_path, path_key};
use crate::findings::imbalance::{self, Computed};
use crate::findings::places::{self, Places};
use crate::judge::profile::{Profiled, Who};
use crate::replay::rank::Rank;
use crate::roots::activities::{Site, site};
use crate::roots::functions::Functions;

use crate::stream::thread::Thread;
use crate::symbols::Symbols;

/// Finds the functions of all samples of all agents. Lines of one function are one. Regions without calls
/// are told as samples, and are exact: if there are no others, the period is 0. Collective.
///
/// # Errors
/// Messages of agents cannot be packed or unpacked.
pub fn gather(
    job: &dyn Job,
    ranks: &[Rank<'_>],
    (locations, profiled): (&[Location], &[Profiled]),
    symbols: Symbols,
) -> Result<(Functions, Symbols)> {
    let threads = || ranks.iter().flat_map(|rank| &rank.recorded.threads);
    let is_told = threads().any(|thread| thread.counted.sampled().next().is_some());
    let longest = locations.iter().map(period).max().unwrap_or(0);
    let mut most = [longest, u64::from(is_told)];
    job.reduce_max(&mut most);
    let [longest, is_told] = most;
    if is_told == 0 {
        return Ok((Functions::default(), symbols));
    }
    let mut own: BTreeMap<PathKey, u64> = BTreeMap::new();
    for thread in threads() {
        let definitions = &thread.stream.location().definitions;
        let is_known = |path: u32| !definitions.call_path(path).is_empty();
        let sampled = thread.counted.sampled();
        for (_, path, ticks) in sampled.filter(|(_, path, _)| is_known(*path)) {
            let time = thread.stream.length_ns(ticks).max(0) as u64;
            let sum = own.entry(path_key(definitions, path)).or_default();
            *sum = sum.saturating_add(time);
        }
    }
    let keys = own.keys().copied().collect();
    let all = merge_up(job, own)?;
    let texts = places::paths(job, keys, locations, profiled)?;
    let mut places = Places::new(texts, symbols);
    let named = all.map(|times| places.functions(&times, longest));
    let mut first: BTreeMap<(String, String, u64), PathKey> = BTreeMap::new();
    let mut uncalled: BTreeMap<PathKey, PathKey> = BTreeMap::new();
    let named = named.unwrap_or_default().into_iter().map(|(path, key)| {
        let uncalled = uncalled
            .entry(key)
            .or_insert_with(|| *first.entry(places.which_function(key)).or_insert(key));
        (path, [key, *uncalled])
    });
    let mut named: Vec<_> = named.collect();
    // Samples without a call path may be of any function; regions without one are those of a stretch.
    if longest == 0 {
        named.push((no_path(), [no_path(); 2]));
    }
    let named = from_head(job, named)?;
    let period = i64::try_from(longest).unwrap_or(i64::MAX);
    Ok((Functions::new(&named, period), places.symbols))
}

/// Computation in functions, by the call before and the function.
pub type InFunctions = Computed<(Site, PathKey)>;

/// Adds what a thread of a rank computed in functions. Samples after the calls of one signature are
/// together no more than the work that was done there.
pub fn add(to: &mut InFunctions, (rank, thread): (u32, &Thread<'_>), functions: &Functions) {
    let mut sampled: BTreeMap<u32, Vec<(PathKey, u64)>> = BTreeMap::new();
    let definitions = &thread.stream.location().definitions;
    let known = thread.counted.sampled();
    let known = known.filter(|(_, path, _)| !definitions.call_path(*path).is_empty());
    for (before, path, ticks) in known {
        if let Some(function) = functions.key(path_key(definitions, path)) {
            let time = thread.stream.length_ns(ticks).max(0) as u64;
            sampled.entry(before).or_default().push((function, time));
        }
    }
    for (before, times) in sampled {
        let all = times.iter().map(|(_, time)| u128::from(*time)).sum();
        let computed = thread.counted.computed_after(before);
        let off = thread
            .stream
            .length_ns(thread.counted.off_work_after(before));
        let computed = match before {
            // Of the work since a thread began samples alone tell.
            NONE => all,
            _ => u128::from(computed.saturating_sub(off.max(0) as u64)),
        };
        for (function, time) in times {
            let time = u128::from(time) * computed.min(all) / all.max(1);
            let threads = to.entry((site(thread, before), function)).or_default();
            let sum = threads.entry((rank, thread.number)).or_default();
            *sum = sum.saturating_add(time as u64);
        }
    }
}

/// Computation in functions, whoever called them and whatever lines they were at; each has
/// the call path with most time. Collective.
///
/// # Errors
/// Messages of agents cannot be packed or unpacked.
pub fn by_function(
    job: &dyn Job,
    own: &InFunctions,
    places: &mut Places,
) -> Result<Computed<PathKey>> {
    let mut computed: Computed<PathKey> = Computed::new();
    let mut add = |function: PathKey, threads: &BTreeMap<Who, u64>| {
        let sums = computed.entry(function).or_default();
        for (&thread, &time) in threads {
            let sum = sums.entry(thread).or_default();
            *sum = sum.saturating_add(time);
        }
    };
    let of_paths = imbalance::totals(job, own)?;
    let mut times: BTreeMap<PathKey, u64> = BTreeMap::new();
    for ((_, function), time) in of_paths {
        let sum = times.entry(function).or_default();
        *sum = sum.saturating_add(time);
    }
    let mut same: Vec<(PathKey, PathKey)> = Vec::new();
    if job.agent() == 0 {
        let mut times: Vec<(Reverse<u64>, PathKey)> = times
            .into_iter()
            .map(|(key, time)| (Reverse(time), key))
            .collect();
        times.sort_unstable();
        let mut first: BTreeMap<(String, String, u64), PathKey> = BTreeMap::new();
        same.extend(times.into_iter().map(|(_, key)| {
            let function = places.which_function(key);
            (key, *first.entry(function).or_insert(key))
        }));
    }
    let same: BTreeMap<PathKey, PathKey> = from_head(job, same)?.into_iter().collect();
    for ((_, function), threads) in own {
        add(same.get(function).copied().unwrap_or(*function), threads);
    }
    Ok(computed)
}

/// Time that a sample of a location stands for, ns; 0 if it has none.
fn period(location: &Location) -> u64 {
    location.definitions.sample_period().unwrap_or(0)
}
