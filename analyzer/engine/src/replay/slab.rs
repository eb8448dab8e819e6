//! Slabs of global time, which bound the data in flight.

use laggard_comm::Job;

use crate::clock::ClockMap;
use crate::input::open::Opened;

/// Bins of the histogram that gives the borders.
const BINS: usize = 1 << 14;
/// Weight of a record in it.
const ONE: i64 = 1 << 16;

/// Records of an agent in a slab, so that they fit into a cache.
const RECORDS: u64 = 1 << 15;
/// Least mean number of records of a location in a slab: every slab has a cost for each location,
/// however short it is.
const RECORDS_OF_LOCATION: u64 = 32;
/// So many are better: what a location has is in no cache when its turn comes again. As long as records of
/// all together take little memory.
const BETTER_OF_LOCATION: u64 = 256;
const LITTLE: u64 = 1 << 20;
/// A thread that shares a slab of the search for root causes has so many times as much as one alone, as
/// long as that is little.
const SHARED: u64 = 2;
/// The same in the search for root causes: waits take several times the memory of their records.
const RECORDS_IN_SEARCH: u64 = 8;
const BETTER_IN_SEARCH: u64 = 64;
const LITTLE_IN_SEARCH: u64 = LITTLE / 4;

/// Number of records of an agent in a slab. Collective.
pub fn size(job: &dyn Job, locations: usize) -> u64 {
    let locations = locations as u64;
    let better = (locations * BETTER_OF_LOCATION).min(LITTLE);
    let mut size = [better.max(locations * RECORDS_OF_LOCATION)];
    job.reduce_max(&mut size);
    RECORDS.max(size[0])
}

/// Records of an agent in a slab of the search for root causes, of the `records` in other slabs: it
/// needs more memory for each, but enough that it is worth to share them among threads. Collective.
pub fn part(job: &dyn Job, locations: usize, records: u64) -> u64 {
    let threads = match rayon::current_num_threads() as u64 {
        1 => 1,
        threads => SHARED * threads,
    };
    let locations = locations as u64;
    let better = (locations * BETTER_IN_SEARCH).min(LITTLE_IN_SEARCH);
    let mut least = [better.max(locations * RECORDS_IN_SEARCH), threads];
    job.reduce_max(&mut least);
    let [least, threads] = least;
    let shared = (records / 8 * threads).min(LITTLE_IN_SEARCH);
    records.min(least.max(shared))
}

/// The ends of all slabs but the last, which has none. Collective, the same on all agents. An agent
/// has about `round_records` records in a slab. `clocks` are those of the locations; `end` is the
/// end of the run, ns.
pub fn borders(
    job: &dyn Job,
    opened: &Opened,
    clocks: &[ClockMap],
    end: i64,
    round_records: u64,
) -> Vec<i64> {
    let width = (end.max(0) / BINS as i64).saturating_add(1);
    // Differences between bins, in 1 / ONE records: most locations have less than one record in
    // each.
    let mut changes = vec![0i64; BINS + 1];
    for (location, clock) in opened.locations.iter().zip(clocks) {
        let mut chunks = location.chunks.iter().peekable();
        while let Some(chunk) = chunks.next() {
            let bin = |ns: i64| ((ns.max(0) / width) as usize).min(BINS - 1);
            let first = bin(clock.ns(chunk.base));
            let next = chunks.peek().map_or(end, |next| clock.ns(next.base));
            // A chunk's records lie between its base and the next one's.
            let last = bin(next).max(first);
            let share = i64::from(chunk.count) * ONE / (last - first + 1) as i64;
            changes[first] += share;
            changes[last + 1] -= share;
        }
    }
    let mut sum = 0;
    let mut bins: Vec<u64> = changes[..BINS]
        .iter()
        .map(|change| {
            sum += change;
            sum as u64
        })
        .collect();
    job.reduce_max(&mut bins);
    let mut borders = Vec::new();
    let mut sum = 0;
    for (at, &count) in bins.iter().enumerate() {
        if sum > 0 && sum + count > round_records.saturating_mul(ONE as u64) {
            borders.push(at as i64 * width);
            sum = 0;
        }
        sum += count;
    }
    borders
}
