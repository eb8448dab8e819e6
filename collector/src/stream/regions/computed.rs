//! Computation between two calls, by the regions that it was in: told with the call that ends it, as samples
//! are. Where there are samples, they tell more.
//!
//! Of a region with calls in it their call paths tell; so this is about regions without.

use std::time::Duration;

use laggard_trace::{Beside, Extension, Record};

use super::{Kind, Moment, Open, Regions};
use crate::clock;
use crate::stream::Stream;

/// Regions that are told of one stretch: those with most.
const MOST_TOLD: usize = 32;
/// No region is told of a stretch if more than this part of them all was asleep or in the kernel: nobody
/// knows in which of them that was.
const MOST_BESIDE: u64 = 10;
/// Nor if this part or more was without a processor. Less of it hits each region by its length.
const MOST_PREEMPTED: u64 = 2;

/// What regions took of a stretch: call paths, and ticks.
pub(super) type Computed = Vec<(u32, u64)>;

/// Time in the kernel beyond what may be in stretches, summed up. Systems attribute the time between two of
/// their ticks as a whole, so that a single short stretch may seem to have been in the kernel.
#[derive(Default)]
pub(super) struct InKernel {
    beyond: u64,
    /// The length of a system's tick.
    doubt: u64,
}

impl InKernel {
    pub(super) fn new() -> InKernel {
        InKernel {
            beyond: 0,
            doubt: clock::ticks(Duration::from_nanos(clock::tick_ns())),
        }
    }

    /// Whether a stretch was in the kernel for more than it `may`, beyond doubt.
    fn is_too_long(&mut self, kernel: u64, may: u64) -> bool {
        let beyond = self.beyond.saturating_add(kernel).saturating_sub(may);
        // After a long time in the kernel, short ones count again soon.
        self.beyond = beyond.min(2 * self.doubt);
        beyond > self.doubt
    }
}

/// As extension records of a stretch that was this beside work. Of regions that cannot be told there is the
/// sum, as that of an unknown call path.
fn records(
    computed: &mut Computed,
    (beside, in_kernel): (&Beside, &mut InKernel),
    to: &mut Vec<Record>,
) {
    let told = computed.iter().map(|(_, ticks)| ticks);
    let told: u64 = told.fold(0, |sum, ticks| sum.saturating_add(*ticks));
    if told == 0 {
        return;
    }
    let most = told / MOST_BESIDE;
    let is_long = in_kernel.is_too_long(beside.kernel, most);
    if is_long || beside.blocked > most || beside.preempted >= told / MOST_PREEMPTED {
        computed.clear();
        computed.push((0, told));
    }
    computed.sort_unstable();
    let on = u128::from(told.saturating_sub(beside.preempted));
    for (path, ticks) in computed.drain(..) {
        let ticks = u128::from(ticks) * on / u128::from(told);
        to.extend(Record::of_ticks(Extension::Sampled, path, ticks as u64));
    }
}

impl Regions {
    /// An instance ended at a position of the stack. Returns its time without that of nested ones,
    /// ticks; 0 if nothing is told of it.
    pub(super) fn tell(&mut self, open: &Open, position: usize, at: Moment) -> u64 {
        let outside = at.outside(open);
        // Time in calls means that there was one.
        let is_told = outside >= self.least
            && at.inside == open.inside
            && at.pauses == open.pauses
            && !(open.is_paused || at.is_paused)
            // Of regions that overlap, the inner one goes on.
            && position == self.open.len();
        let around = position.checked_sub(1);
        if let Some(around) = around.and_then(|around| self.open.get_mut(around)) {
            around.apart += if is_told { outside } else { open.apart };
        }
        match is_told {
            true => outside.saturating_sub(open.apart),
            false => 0,
        }
    }
}

impl Stream {
    /// An instance ended that took so many ticks of the stretch by itself, at least one.
    #[cold]
    #[inline(never)]
    pub(super) fn computed_in(&mut self, open: &Open, ticks: u64) {
        if self.samples.is_some() || !self.is_writing() {
            return;
        }
        let Some(path) = self.path_of(open) else {
            return;
        };
        let Some(regions) = &mut self.regions else {
            return;
        };
        let parts = &mut regions.computed;
        match parts.iter_mut().find(|(known, _)| *known == path) {
            Some((_, sum)) => *sum = sum.saturating_add(ticks),
            None => parts.push((path, ticks)),
        }
        if parts.len() > MOST_TOLD {
            let least = (0..parts.len()).min_by_key(|&at| parts[at].1);
            least.map(|at| parts.swap_remove(at));
        }
        self.stretches.pending = 1;
    }

    /// The call path that stands for a region: to the place where it began, or the entry of the function.
    fn path_of(&mut self, open: &Open) -> Option<u32> {
        let regions = self.regions.as_deref()?;
        let region = &regions.all[open.region as usize];
        if region.kind == Kind::Function {
            return Some(region.entry_path);
        }
        let node = regions.nodes.get((open.node as usize).checked_sub(1)?)?;
        let begun = node.begun;
        let within = std::mem::replace(&mut self.within, open.node);
        let path = self.path_within(begun);
        self.within = within;
        if self.tracer.has_new() {
            self.define_paths();
        }
        Some(path.0)
    }

    /// Forgets the stretch before a call without a record.
    pub(in crate::stream) fn drop_computed(&mut self) {
        if let Some(regions) = &mut self.regions {
            regions.computed.clear();
        }
    }

    /// Looks that are not in the trace yet begin.
    pub(in crate::stream) fn computed_before_looks(&mut self) {
        if let Some(regions) = &mut self.regions {
            regions.computed_before_looks = std::mem::take(&mut regions.computed);
        }
    }

    /// What was computed before the looks that go into the trace now.
    pub(in crate::stream) fn add_computed_before_looks(
        &mut self,
        beside: &Beside,
        to: &mut Vec<Record>,
    ) {
        if let Some(regions) = &mut self.regions {
            let beside = (beside, &mut regions.in_kernel);
            records(&mut regions.computed_before_looks, beside, to);
        }
    }

    /// What was computed before the call that goes into the trace now.
    pub(in crate::stream) fn add_computed(&mut self, beside: &Beside, to: &mut Vec<Record>) {
        if let Some(regions) = &mut self.regions {
            let beside = (beside, &mut regions.in_kernel);
            records(&mut regions.computed, beside, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tick_in_the_kernel_is_doubtful_and_many_are_not() {
        let new = || InKernel {
            beyond: 0,
            doubt: 40,
        };
        assert!(!new().is_too_long(50, 10));
        let mut kernel = new();
        // Once in five stretches: as much as may be.
        for stretch in 0..1000 {
            let of = if stretch % 5 == 0 { 40 } else { 0 };
            assert!(!kernel.is_too_long(of, 10), "stretch {stretch}");
        }
        // A third of the time.
        let mut kernel = new();
        let long = (0..100).filter(|_| kernel.is_too_long(30, 10));
        assert_eq!(long.count(), 98);
        // Short stretches count again after the 80 ticks at most that are remembered.
        let again = (0..8).find(|_| !kernel.is_too_long(0, 10));
        assert_eq!(again, Some(3));
        assert!(new().is_too_long(60, 10));
    }

    #[test]
    fn regions_of_which_nobody_knows_are_one_sum() {
        let told = |beside: Beside| {
            let mut records = Vec::new();
            let mut kernel = InKernel {
                beyond: 0,
                doubt: 40,
            };
            super::records(
                &mut vec![(7, 60), (5, 40)],
                (&beside, &mut kernel),
                &mut records,
            );
            records
        };
        let expected = |of: &[(u32, u32)]| -> Vec<Record> {
            let of = of.iter();
            of.map(|&(path, ticks)| Record::extension(Extension::Sampled, path, ticks))
                .collect()
        };
        let asleep = |blocked| Beside {
            blocked,
            ..Beside::default()
        };
        let in_kernel = |kernel| Beside {
            kernel,
            ..Beside::default()
        };
        let (known, sum) = (expected(&[(5, 40), (7, 60)]), expected(&[(0, 100)]));
        assert_eq!(told(asleep(10)), known);
        assert_eq!(told(asleep(11)), sum);
        let preempted = |preempted| Beside {
            preempted,
            ..Beside::default()
        };
        assert_eq!(told(preempted(25)), expected(&[(5, 30), (7, 45)]));
        assert_eq!(told(preempted(50)), expected(&[(0, 50)]));
        assert_eq!(told(in_kernel(50)), known);
        assert_eq!(told(in_kernel(51)), sum);
    }
}
