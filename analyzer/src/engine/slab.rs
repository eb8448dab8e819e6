//! Slabs of global time, so that what is in flight stays bounded.

use super::clock::ClockMap;
use super::open::Opened;
use crate::comm::Job;

/// Resolution of the histogram that borders are taken from.
const BINS: usize = 1 << 14;

/// The ends of all slabs but the last, which has none. Collective, the same on all
/// agents; an agent has about `round_records` records in one. `clocks` are those of the locations; `end` is when the run ended, ns.
pub fn borders(
    job: &dyn Job,
    opened: &Opened,
    clocks: &[ClockMap],
    end: i64,
    round_records: u64,
) -> Vec<i64> {
    let width = (end.max(0) / BINS as i64).saturating_add(1);
    let mut bins = vec![0u64; BINS];
    for (location, clock) in opened.locations.iter().zip(clocks) {
        let mut chunks = location.chunks.iter().peekable();
        while let Some(chunk) = chunks.next() {
            let bin = |ns: i64| ((ns.max(0) / width) as usize).min(BINS - 1);
            let first = bin(clock.ns(chunk.base));
            let next = chunks.peek().map_or(end, |next| clock.ns(next.base));
            // A chunk's records lie between its base and the next one's.
            let last = bin(next).max(first);
            let share = u64::from(chunk.count).div_ceil((last - first + 1) as u64);
            bins[first..=last].iter_mut().for_each(|bin| *bin += share);
        }
    }
    job.reduce_max(&mut bins);
    let mut borders = Vec::new();
    let mut sum = 0;
    for (at, &count) in bins.iter().enumerate() {
        if sum > 0 && sum + count > round_records {
            borders.push(at as i64 * width);
            sum = 0;
        }
        sum += count;
    }
    borders
}
