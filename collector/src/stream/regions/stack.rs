//! The open regions, and the profile of the ended ones.

use laggard_trace::RegionEntry;

use super::computed::InKernel;
use super::{
    Frame, Kind, LEAST_RECORDED, MOST_REGIONS, Moment, Open, Region, Regions, TINY, TRIED,
};
use crate::clock;

impl Frame {
    /// Whether this function was left without a return if `other` is entered now. Its part of
    /// the stack is then free, or another function occupies it.
    fn is_left(&self, other: &Frame) -> bool {
        let is_other = self.caller != other.caller || self.told == other.told;
        self.sp < other.sp || self.sp == other.sp && is_other
    }
}

impl Regions {
    /// No regions.
    pub(super) fn new() -> Self {
        Regions {
            least: clock::ticks(LEAST_RECORDED),
            tiny: clock::ticks(TINY).max(1),
            in_kernel: InKernel::new(),
            ..Regions::default()
        }
    }

    /// The number of a new region; `None` beyond the limit.
    pub(super) fn add(&mut self, kind: Kind, is_kept: bool, entry_path: u32) -> Option<u32> {
        if self.all.len() >= MOST_REGIONS {
            self.are_left_out = true;
            return None;
        }
        let number = self.all.len() as u32;
        self.all.push(Region {
            kind,
            entry: RegionEntry {
                region: number + 1,
                minimum: u64::MAX,
                ..RegionEntry::default()
            },
            total: 0,
            open: 0,
            is_tiny: false,
            is_kept,
            entry_path,
        });
        Some(number)
    }

    /// Ends an instance at this position of the stack, and updates its neighbours there. Returns
    /// how much of the stretch that lasts was computation in it, ticks.
    pub(super) fn end(&mut self, mut open: Open, position: usize, at: Moment) -> u64 {
        // The inner instance goes on; its time so far is its own.
        if let Some(inner) = self.open.get_mut(position) {
            let so_far = at.outside(inner);
            let more = so_far.saturating_sub(inner.told);
            open.nested = open.nested.saturating_add(more);
            inner.told = so_far;
        }
        let around = position.checked_sub(1);
        if let Some(around) = around.and_then(|around| self.open.get_mut(around)) {
            let more = at.outside(&open).saturating_sub(open.told);
            around.nested = around.nested.saturating_add(more);
        }
        self.count(&open, at);
        self.tell(&open, position, at)
    }

    /// Adds an ended instance to the profile.
    pub(super) fn count(&mut self, open: &Open, at: Moment) {
        if open.is_paused || at.is_paused {
            return;
        }
        let inclusive = at.now.saturating_sub(open.enter);
        let exclusive = at.outside(open).saturating_sub(open.nested);
        let (tiny, region) = (self.tiny, &mut self.all[open.region as usize]);
        let entry = &mut region.entry;
        entry.count += 1;
        // An enclosing instance of the same region already includes this one.
        if region.open == 0 {
            entry.inclusive = entry.inclusive.wrapping_add(inclusive);
        }
        region.total = region.total.wrapping_add(inclusive);
        entry.exclusive = entry.exclusive.wrapping_add(exclusive);
        entry.minimum = entry.minimum.min(exclusive);
        entry.maximum = entry.maximum.max(exclusive);
        let square = u128::from(exclusive) * u128::from(exclusive);
        entry.sum_of_squares = entry.sum_of_squares.wrapping_add(square);
        let may_be_tiny = region.kind == Kind::Function && !region.is_kept;
        if may_be_tiny && entry.count >= TRIED && !region.is_tiny {
            region.is_tiny = region.total / entry.count < tiny;
        }
    }

    /// Whether an instance of this duration becomes a record.
    pub(super) fn is_recorded(&self, open: &Open, duration: u64) -> bool {
        duration >= self.least || self.all[open.region as usize].is_kept
    }

    /// Takes an instance off the stack.
    pub(super) fn remove(&mut self, position: usize) -> Open {
        let open = self.open.remove(position);
        self.all[open.region as usize].open -= 1;
        open
    }

    /// Removes functions that a `longjmp` left, before one is entered here. Their time counts
    /// for the enclosing region.
    #[inline]
    pub(super) fn forget_left(&mut self, entered: &Frame) {
        let is_left = |frame: Option<Frame>| frame.is_some_and(|frame| frame.is_left(entered));
        let mut end = self.open.len();
        while let Some(at) = end.checked_sub(1) {
            let open = &self.open[at];
            match open.is_named {
                true => {}
                false if is_left(open.frame) => {
                    let apart = self.remove(at).apart;
                    let around = at.checked_sub(1).and_then(|at| self.open.get_mut(at));
                    if let Some(around) = around {
                        around.apart += apart;
                    }
                }
                false => break,
            }
            end = at;
        }
        if self.beyond[0] > 0 && is_left(self.beyond_frame) {
            self.beyond[0] = 0;
        }
    }

    /// Stack position of the innermost instance of a region.
    pub(super) fn find(&self, region: u32) -> Option<usize> {
        self.open.iter().rposition(|open| open.region == region)
    }
}
