//! Communicators, windows and files: one identity on all their ranks, found without
//! a message.
//!
//! A communicator's identity is a hash of what its members know alike: the parent,
//! the number of communicators made from the parent before, and the members. A
//! [`Group`] is never freed: its address serves as identity in the signature caches,
//! and requests may outlive the handle. Tables of ranks are shared between groups.

mod registry;

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use laggard_trace::{PEER_ANY, PEER_FOREIGN, PEER_NONE, PEER_ROOT};

use crate::constants::*;
use crate::exports::real;
use crate::ffi::MPI_Comm;

use registry::EPOCH;
pub use registry::{
    Origin, attach_failed, attached, communicator, created, duplicated, known, released, restore,
    start, stop,
};

/// In place of a root: the collective has none.
pub const NO_ROOT: i32 = i32::MIN;

/// What kind of handle a [`Group`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Intracommunicator.
    Intra,
    /// Intercommunicator.
    Inter,
    /// Window.
    Window,
    /// File.
    File,
}

/// A communicator, window or file.
#[derive(Debug)]
pub struct Group {
    /// Identity, as in the trace.
    pub id: u64,
    /// The communicator that it was made from; 0 = none.
    pub parent: u64,
    /// What it is.
    pub kind: Kind,
    /// This process's number in the local group.
    pub rank: i32,
    /// World ranks of the local group.
    pub members: &'static [i32],
    /// World ranks of the remote group of an intercommunicator.
    pub remote: &'static [i32],
    /// Communicators made from this one so far.
    children: AtomicU32,
    /// Windows and files made on this one so far.
    attached: AtomicU32,
    /// Degrees (in, out) in the topology, once asked for.
    degrees: OnceLock<(u32, u32)>,
    handle: usize,
}

impl Group {
    fn new(id: u64, parent: u64, kind: Kind, members: Members, handle: usize) -> Self {
        Group {
            id,
            parent,
            kind,
            rank: members.rank,
            members: members.local,
            remote: members.remote,
            children: AtomicU32::new(0),
            attached: AtomicU32::new(0),
            degrees: OnceLock::new(),
            handle,
        }
    }

    /// The ranks that peers' numbers on this handle mean.
    #[inline]
    pub fn peers(&self) -> &'static [i32] {
        match self.kind {
            Kind::Inter => self.remote,
            _ => self.members,
        }
    }

    /// World rank (or `PEER_` constant) of a rank as the program gives it.
    pub fn world_rank(&self, rank: i32) -> i32 {
        match rank {
            NO_ROOT => PEER_ANY,
            MPI_PROC_NULL => PEER_NONE,
            MPI_ANY_SOURCE => PEER_ANY,
            MPI_ROOT => PEER_ROOT,
            _ => {
                let known = usize::try_from(rank)
                    .ok()
                    .and_then(|rank| self.peers().get(rank));
                known.copied().unwrap_or(PEER_FOREIGN)
            }
        }
    }

    /// Degrees (in, out) of this process in the communicator's topology.
    pub fn degrees(&self, comm: MPI_Comm) -> (u32, u32) {
        *self.degrees.get_or_init(|| {
            debug_assert_eq!(comm.bits(), self.handle);
            topology_degrees(comm, self.rank)
        })
    }
}

fn topology_degrees(comm: MPI_Comm, rank: i32) -> (u32, u32) {
    let (mut topology, mut n, mut m, mut weighted) = (0, 0, 0, 0);
    let c = constants();
    // SAFETY: local queries on a valid communicator.
    unsafe {
        real::MPI_Topo_test(comm, &mut topology);
        if topology == c.cart {
            real::MPI_Cartdim_get(comm, &mut n);
            n *= 2;
            m = n;
        } else if topology == c.graph {
            real::MPI_Graph_neighbors_count(comm, rank, &mut n);
            m = n;
        } else if topology == c.dist_graph {
            real::MPI_Dist_graph_neighbors_count(comm, &mut n, &mut m, &mut weighted);
        }
    }
    (n.max(0) as u32, m.max(0) as u32)
}

/// Handles that a thread used lately.
pub struct HandleCache {
    entries: [(usize, u32, *const Group); HandleCache::SIZE],
}

impl HandleCache {
    const SIZE: usize = 64;

    /// An empty one.
    pub const fn new() -> Self {
        HandleCache {
            entries: [(0, 0, ptr::null()); Self::SIZE],
        }
    }

    /// The group of a handle; `find` knows it if the cache does not.
    #[inline(always)]
    pub fn get(&mut self, handle: usize, find: impl FnOnce() -> &'static Group) -> &'static Group {
        let epoch = EPOCH.load(Ordering::Acquire);
        let slot = (handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) % Self::SIZE;
        let entry = &mut self.entries[slot];
        if entry.0 != handle || entry.1 != epoch {
            *entry = (handle, epoch, find());
        }
        // SAFETY: groups are never freed, and entries with an epoch hold one.
        unsafe { &*entry.2 }
    }
}

/// Who is in a communicator.
#[derive(Clone, Copy)]
struct Members {
    rank: i32,
    local: &'static [i32],
    remote: &'static [i32],
}

#[cfg(test)]
mod tests {
    use super::*;
    use laggard_trace::WORLD;

    fn members(local: &'static [i32], remote: &'static [i32]) -> Members {
        Members {
            rank: 0,
            local,
            remote,
        }
    }

    #[test]
    fn ranks_translate_to_world_ranks() {
        let group = Group::new(5 << 40, WORLD, Kind::Intra, members(&[4, 2], &[]), 1);
        assert_eq!(group.world_rank(0), 4);
        assert_eq!(group.world_rank(1), 2);
        assert_eq!(group.world_rank(2), PEER_FOREIGN);
        assert_eq!(group.world_rank(MPI_PROC_NULL), PEER_NONE);
        assert_eq!(group.world_rank(NO_ROOT), PEER_ANY);
        let inter = Group::new(6 << 40, 0, Kind::Inter, members(&[4, 2], &[9]), 1);
        assert_eq!(inter.world_rank(0), 9);
        assert_eq!(inter.world_rank(MPI_ROOT), PEER_ROOT);
    }
}
