//! Parallel regions of other threads: call paths of a team's threads begin with that of their region, as if the thread that
//! forked the team made the calls.

use std::ptr;

use laggard_callpath::{CallSite, Carried, PathId, Tracer};

use super::Stream;
use crate::call::guarded;
use crate::hash::FastMap;

/// Most paths in regions that are remembered; others begin in the region.
const MOST_PATHS: usize = 65_536;

/// The path of a region, for the threads of its team. It lives as long as the process: nobody knows which of them goes on
/// last.
pub type Region = &'static Carried;

/// The regions of a location.
#[derive(Default)]
pub struct Teams {
    /// Its own, by the path of the call that begins them, with their own path.
    own: Vec<Option<(Region, PathId)>>,
    /// Paths of others, by address.
    of_others: FastMap<usize, PathId>,
    /// The address of the one that it is in; 0 = none.
    current: usize,
    /// Paths in these: by the region's, and that from its function on.
    paths: FastMap<(PathId, PathId), PathId>,
}

impl Teams {
    /// A path of the location, in a region of another one.
    pub fn path_around(
        &mut self,
        tracer: &mut Tracer,
        (path, around): (PathId, PathId),
        depth: usize,
    ) -> PathId {
        if around == PathId::EMPTY || path == PathId::EMPTY {
            return path;
        }
        if let Some(&known) = self.paths.get(&(around, path)) {
            return known;
        }
        if self.paths.len() >= MOST_PATHS {
            return path;
        }
        let found = tracer.joined(path, around, depth);
        self.paths.insert((around, path), found);
        found
    }
}

impl Stream {
    /// The region that begins with this call, and its path here: of the program, or of the runtime that it has called.
    pub fn region(&mut self, site: &CallSite, is_of_runtime: bool) -> (Region, u32) {
        let call = self.path(site) as usize;
        let (region, path) = match self.teams.own.get(call) {
            Some(&Some(known)) => known,
            _ => self.new_region(call, is_of_runtime),
        };
        (region, path.0)
    }

    #[cold]
    #[inline(never)]
    fn new_region(&mut self, call: usize, is_of_runtime: bool) -> (Region, PathId) {
        let mut path = PathId(call as u32);
        if is_of_runtime {
            path = self.tracer.caller(path);
        }
        if self.tracer.has_new() {
            guarded(|| self.define_paths());
        }
        let region: Region = Box::leak(Box::new(self.tracer.carry(path)));
        let own = &mut self.teams.own;
        own.resize(own.len().max(call + 1), None);
        own[call] = Some((region, path));
        (region, path)
    }

    /// The path of the region of another thread that this one is in; 0 = none.
    pub fn around(&self) -> u32 {
        self.around.0
    }

    /// What the thread does from now on is in this region of another one.
    pub fn is_in(&mut self, region: Option<Region>) {
        let address = region.map_or(0, |region| ptr::from_ref(region).addr());
        if address == self.teams.current {
            return;
        }
        self.teams.current = address;
        let tracer = &mut self.tracer;
        let path = region.map(|region| {
            let known = self.teams.of_others.entry(address);
            *known.or_insert_with(|| tracer.take_over(region))
        });
        self.around = path.unwrap_or(PathId::EMPTY);
    }
}
