//! Waits among threads: records with a key.

use laggard_callpath::{CallSite, Carried, PathId};
use laggard_trace::{Extension, Record};

use super::Stream;
use crate::call::guarded;
use crate::hash::FastMap;
use crate::signature::Raw;

/// Call paths of single addresses.
#[derive(Default)]
pub struct Codes {
    /// By address, and the path around it.
    known: FastMap<(u64, u32), u32>,
    /// Changes with each library that was unloaded.
    unloads: u32,
}

impl Stream {
    /// When the last call returned, or the stretch since then was looked at, ticks.
    pub fn left(&self) -> u64 {
        self.stretches.left()
    }

    /// A wait goes on, after a stretch outside of it. Returns when.
    pub fn goes_on(&mut self) -> u64 {
        let now = self.ends_stretch();
        self.stretches.leave(now);
        now
    }

    /// The id of the path that is this address, in the region with that path; 0 = in none.
    pub fn code_path(&mut self, address: u64, region: u32) -> u32 {
        let unloads = laggard_callpath::unloads();
        if self.codes.unloads != unloads {
            // Other code may be at these addresses now.
            self.codes.known.clear();
            self.codes.unloads = unloads;
        }
        match self.codes.known.get(&(address, region)) {
            Some(&path) => path,
            None => self.new_code(address, region),
        }
    }

    #[cold]
    #[inline(never)]
    fn new_code(&mut self, address: u64, region: u32) -> u32 {
        let path = self.tracer.function(address);
        let (around, depth) = (PathId(region), self.depth);
        let is_its_begin = self.tracer.frames(around).first() == self.tracer.frames(path).first();
        let path = match is_its_begin {
            true => around,
            false => self
                .teams
                .path_around(&mut self.tracer, (path, around), depth),
        };
        if self.tracer.has_new() {
            guarded(|| self.define_paths());
        }
        self.codes.known.insert((address, region), path.0);
        path.0
    }

    /// The path of a call of this location's thread, for another one's stream.
    pub fn carried(&mut self, site: &CallSite) -> Carried {
        let path = self.path(site);
        self.tracer.carry(PathId(path))
    }

    /// The id of another thread's path.
    pub fn take_over(&mut self, path: &Carried) -> u32 {
        let path = self.tracer.take_over(path);
        if self.tracer.has_new() {
            guarded(|| self.define_paths());
        }
        path.0
    }

    /// Records a wait with its key, of which [`returned`](Self::returned) was told.
    #[inline(always)]
    pub fn record_keyed(&mut self, raw: &Raw, key: u64, (enter, leave): (u64, u64)) {
        let key = [Record::extension_u64(Extension::Value, key)];
        if let Some(found) = self.signatures.find_recorded(raw) {
            let statistics = self.signatures.statistics(found);
            statistics.add(leave.wrapping_sub(enter));
            self.push_extended(&key, enter, leave, found.id);
        } else {
            let raw = *raw;
            self.record_slowly(&raw, &key, enter, leave);
        }
    }
}
