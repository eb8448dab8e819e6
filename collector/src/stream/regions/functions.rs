//! Functions that the compiler instruments: entry and exit.

use laggard_callpath::{CallSite, PathId};

use super::{Kind, Moment, Variable};
use crate::clock;
use crate::operations;
use crate::stream::Stream;

impl Stream {
    /// The function at this address, and whether it is new.
    #[inline]
    fn function(&mut self, address: u64) -> Option<(u32, bool)> {
        let regions = self.regions();
        let unloads = laggard_callpath::unloads();
        if regions.unloads != unloads {
            // Other functions may be at these addresses now.
            regions.functions.clear();
            regions.unloads = unloads;
        }
        match regions.functions.get(&address) {
            Some(&region) => Some((region, false)),
            None => self.new_function(address),
        }
    }

    #[cold]
    #[inline(never)]
    fn new_function(&mut self, address: u64) -> Option<(u32, bool)> {
        let path = self.tracer.function(address);
        let regions = self.regions();
        let (region, is_new) = match regions.entries.get(&path.0) {
            Some(&region) => (region, false),
            None => {
                let is_kept = operations::is_function(address);
                (regions.add(Kind::Function, is_kept, path.0)?, true)
            }
        };
        regions.functions.insert(address, region);
        if is_new {
            regions.entries.insert(path.0, region);
            self.define_region(region, Kind::Function, 0, path.0, Vec::new());
        }
        Some((region, is_new))
    }

    /// Enters a function that the compiler instrumented.
    #[inline]
    pub fn enter_function(&mut self, address: u64, mut at: Moment) {
        let Some((region, is_new)) = self.function(address) else {
            return;
        };
        let regions = self.regions();
        let known = &mut regions.all[region as usize];
        if known.is_tiny {
            known.entry.untimed += u64::from(!at.is_paused);
            if let Some(open) = regions.open.last_mut().filter(|o| o.region == region) {
                open.skipped += 1;
            }
            return;
        }
        if is_new {
            // The function's time excludes the work above.
            at.now = clock::now();
        }
        if let Some(entered) = &at.frame {
            regions.forget_left(entered);
        }
        self.push_open(region, 0, None, Variable::default(), at);
    }

    /// Leaves a function that the compiler instrumented.
    #[inline]
    pub fn leave_function(&mut self, address: u64, site: CallSite, at: Moment) {
        let Some((region, _)) = self.function(address) else {
            return;
        };
        let regions = self.regions();
        let top = regions.open.last_mut().filter(|o| o.region == region);
        if regions.all[region as usize].is_tiny {
            match top {
                Some(open) if open.skipped > 0 => {
                    open.skipped -= 1;
                    return;
                }
                None => return,
                Some(_) => {}
            }
        }
        if regions.beyond[0] > 0 {
            // A frame further out means that the functions beyond the limit were left without a
            // return.
            let is_beyond = match (&at.frame, &regions.beyond_frame) {
                (Some(frame), Some(first)) => frame.sp <= first.sp,
                _ => true,
            };
            if is_beyond {
                regions.beyond[0] -= 1;
                return;
            }
            regions.beyond[0] = 0;
        }
        // A function entered before the recording began, or in a call, is not on the stack.
        let Some(position) = regions.find(region) else {
            return;
        };
        let mut open = regions.remove(position);
        // Functions inside it were left without a return. Named regions may end elsewhere.
        let mut at_stack = position;
        while let Some(inner) = regions.open.get(at_stack) {
            match inner.is_named {
                true => at_stack += 1,
                false => open.apart += regions.remove(at_stack).apart,
            }
        }
        let computed = regions.end(open, position, at);
        let duration = at.now.saturating_sub(open.enter);
        if regions.is_recorded(&open, duration) && self.is_writing() {
            let path = self.path(&site);
            // The place is the caller, as for a call.
            let path = self.tracer.caller(PathId(path));
            if self.tracer.has_new() {
                self.define_paths();
            }
            self.record_region(&open, path.0, at);
        }
        if computed > 0 {
            self.computed_in(&open, computed);
        }
    }
}
