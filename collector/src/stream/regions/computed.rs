//! Computation between two calls, by the regions that it was in: told with the call that ends it, as samples
//! are. Where there are samples, they tell more.
//!
//! Of a region with calls in it their call paths tell; so this is about regions without.

use laggard_trace::{Beside, Extension, Record};

use super::{Kind, Moment, Open, Regions};
use crate::stream::Stream;

/// Regions that are told of one stretch: those with most.
const MOST_TOLD: usize = 32;
/// Nothing is told of a stretch if more than this part of what is told was no computation: nobody knows in
/// which of the regions that was.
const MOST_BESIDE: u64 = 10;

/// What regions took of a stretch: call paths, and ticks.
pub(super) type Computed = Vec<(u32, u64)>;

/// As extension records of a stretch that was this beside work.
fn records(computed: &mut Computed, beside: &Beside, to: &mut Vec<Record>) {
    let told = computed.iter().map(|(_, ticks)| ticks);
    let told: u64 = told.fold(0, |sum, ticks| sum.saturating_add(*ticks));
    if beside.blocked + beside.preempted + beside.kernel > told / MOST_BESIDE {
        computed.clear();
        return;
    }
    computed.sort_unstable();
    for (path, ticks) in computed.drain(..) {
        to.extend(Record::of_ticks(Extension::Sampled, path, ticks));
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
            records(&mut regions.computed_before_looks, beside, to);
        }
    }

    /// What was computed before the call that goes into the trace now.
    pub(in crate::stream) fn add_computed(&mut self, beside: &Beside, to: &mut Vec<Record>) {
        if let Some(regions) = &mut self.regions {
            records(&mut regions.computed, beside, to);
        }
    }
}
