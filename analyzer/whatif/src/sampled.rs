//! Which part of the time between calls lies in a place, as samples of it tell.

use std::ops::ControlFlow;

use laggard_engine::events::Events;
use laggard_trace::flags;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::reader::Site;

/// Samples that tell of a single stretch: with fewer, chance would, and stretches between the same calls are
/// taken together.
const ENOUGH: usize = 16;

/// Samples of one location.
#[derive(Debug, Default)]
pub struct Sampled {
    /// Of all stretches between two calls.
    kinds: FxHashMap<(Option<Site>, Site), Seen>,
    /// Of stretches that have enough of their own: the end, ascending, and the begin, ns.
    single: Vec<(i64, i64, Seen)>,
}

/// Samples, ns.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    here: i64,
    all: i64,
}

impl Seen {
    fn add(&mut self, other: Seen) {
        self.here = self.here.saturating_add(other.here);
        self.all = self.all.saturating_add(other.all);
    }

    /// The part of some time, ns.
    fn part(self, time: i64) -> i64 {
        (i128::from(time) * i128::from(self.here) / i128::from(self.all.max(1))) as i64
    }
}

impl Sampled {
    /// The samples of each location; `is_here` tells which call paths pass through the place.
    pub fn of_all(events: &Events, is_here: impl Fn(u32) -> bool + Sync) -> Vec<Sampled> {
        let locations = (0..events.locations()).into_par_iter();
        let read = locations.map(|location| Sampled::read(events, location, &is_here));
        read.collect()
    }

    fn read(events: &Events, location: usize, is_here: &impl Fn(u32) -> bool) -> Sampled {
        let mut sampled = Sampled::default();
        if !events.is_sampled(location) {
            return sampled;
        }
        let (mut before, mut since) = (None, i64::MIN);
        let (mut seen, mut count) = (Seen::default(), 0);
        events.operations(location).read(|operation| {
            for (path, time) in events.samples(location, operation) {
                let here = if is_here(path) { time } else { 0 };
                seen.add(Seen { here, all: time });
            }
            count += events.moments(location, operation).count();
            // As a replay reads calls: these are none of their own.
            if operation.has(flags::PART) || operation.is_region {
                return ControlFlow::Continue(());
            }
            let site = (operation.signature.operation, operation.call_path);
            let (seen, count) = (std::mem::take(&mut seen), std::mem::take(&mut count));
            if seen.all > 0 {
                sampled.kinds.entry((before, site)).or_default().add(seen);
                if count >= ENOUGH {
                    sampled.single.push((operation.enter, since, seen));
                }
            }
            (before, since) = (Some(site), operation.leave);
            ControlFlow::Continue(())
        });
        sampled
            .single
            .sort_unstable_by_key(|&(end, begin, _)| (end, begin));
        sampled
    }

    /// How much of the time between two calls lies in the place, ns; `None`: no sample tells.
    pub fn part(&self, sites: (Option<Site>, Site), from: i64, to: i64) -> Option<i64> {
        let kind = self.kinds.get(&sites)?;
        let at = self.single.partition_point(|&(end, ..)| end < to);
        let own = self.single.get(at).filter(|&&(_, begin, _)| begin <= from);
        let seen = own.map_or(kind, |(_, _, seen)| seen);
        Some(seen.part(to - from))
    }

    /// Whether some samples of stretches between two calls are in the place.
    pub fn may_be(&self, sites: (Option<Site>, Site)) -> bool {
        self.kinds.get(&sites).is_some_and(|seen| seen.here > 0)
    }
}
