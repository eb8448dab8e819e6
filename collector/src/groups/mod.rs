//! Communicators, windows and files: one identity on all their ranks, without a message.
//!
//! A communicator's identity is a hash of facts that its members share: the parent, the number
//! of communicators already made from the parent, and the members. A [`Group`] is freed with
//! its communicator, unless requests that outlive the handle may refer to it. Windows and files
//! stay. Groups share tables of ranks.

mod pes;
mod registry;
mod topology;

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use laggard_trace::{PEER_ANY, PEER_FOREIGN, PEER_NONE, PEER_ROOT};

use crate::constants::*;
use crate::handles::Handles;

pub use pes::{Pes, group as of_pes};
use registry::EPOCH;
pub use registry::{
    Origin, attach_failed, attached, communicator, created, duplicated, forget, known, ranks_of,
    released, restore, start, stop,
};
use topology::Topology;

/// Stands for a root: the collective has none.
pub const NO_ROOT: i32 = i32::MIN;

/// Kind of handle of a [`Group`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Intracommunicator.
    Intra,
    /// Intercommunicator.
    Inter,
    Window,
    File,
}

/// A communicator, window or file.
// The fields that every call reads come first.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Group {
    /// Identity, as in the trace.
    pub id: u64,
    /// Translates a peer's rank on this handle to its world rank.
    pub peers: &'static [i32],
    /// Identity of the parent communicator; 0 = none.
    pub parent: u64,
    /// Kind of handle.
    pub kind: Kind,
    /// This process's rank in the local group.
    pub rank: i32,
    /// World ranks of the local group.
    pub members: &'static [i32],
    /// World ranks of the remote group of an intercommunicator.
    pub remote: &'static [i32],
    /// Number of communicators made from this one.
    children: AtomicU32,
    /// Number of windows and files made on this one.
    attached: AtomicU32,
    /// Whether references may outlive the handle.
    is_held: AtomicBool,
    /// Whether this is a freed window, whose memory no longer belongs to it.
    pub is_freed: AtomicBool,
    /// This process's neighbours, in a communicator with a topology.
    pub topology: Option<Topology>,
    handle: usize,
}

const _: () = assert!(NO_ROOT < 0 && MPI_PROC_NULL < 0 && MPI_ANY_SOURCE < 0 && MPI_ROOT < 0);

/// The `PEER_` constant of a number that is not a rank.
fn no_rank(rank: i32) -> i32 {
    match rank {
        NO_ROOT => PEER_ANY,
        MPI_PROC_NULL => PEER_NONE,
        MPI_ANY_SOURCE => PEER_ANY,
        MPI_ROOT => PEER_ROOT,
        _ => PEER_FOREIGN,
    }
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
            peers: match kind {
                Kind::Inter => members.remote,
                _ => members.local,
            },
            children: AtomicU32::new(0),
            attached: AtomicU32::new(0),
            is_held: AtomicBool::new(false),
            is_freed: AtomicBool::new(false),
            topology: members.topology,
            handle,
        }
    }

    /// Notes a reference that may outlive the handle.
    #[inline(always)]
    pub fn hold(&self) {
        // Writes only at a change: processors share a cache line as long as nobody writes to
        // it.
        if !self.is_held.load(Ordering::Relaxed) {
            self.is_held.store(true, Ordering::Relaxed);
        }
    }

    /// A group of PEs, for tests.
    #[cfg(test)]
    pub fn test(id: u64, rank: i32, local: &'static [i32]) -> Self {
        let members = Members {
            rank,
            local,
            remote: &[],
            topology: None,
        };
        Group::new(id, 0, Kind::Intra, members, 0)
    }

    /// World rank (or `PEER_` constant) of a rank as the program gives it.
    #[inline(always)]
    pub fn world_rank(&self, rank: i32) -> i32 {
        // Negative numbers, which are never ranks, lie beyond any group.
        match self.peers.get(rank as u32 as usize) {
            Some(&known) => known,
            None => no_rank(rank),
        }
    }

    /// Numbers of sources and destinations in the communicator's topology.
    pub fn degrees(&self) -> (usize, usize) {
        self.topology.map_or((0, 0), |topology| {
            (topology.sources.len(), topology.destinations as usize)
        })
    }
}

/// The groups that a thread used recently, by handle.
pub struct Lately(Handles<*const Group>);

impl Lately {
    /// An empty table.
    pub fn new() -> Self {
        Lately(Handles::new(ptr::null()))
    }

    /// The group of a handle; `find` looks up one that was not used recently.
    #[inline(always)]
    pub fn group(
        &mut self,
        handle: usize,
        find: impl FnOnce() -> Option<&'static Group>,
    ) -> Option<&'static Group> {
        let epoch = EPOCH.load(Ordering::Acquire);
        if let Some(group) = self.0.find(handle, epoch) {
            // SAFETY: groups are not freed before their epoch ends.
            return Some(unsafe { &*group });
        }
        let group = find()?;
        self.0.note(handle, epoch, group);
        Some(group)
    }
}

/// The members and the topology of a communicator.
#[derive(Clone, Copy)]
struct Members {
    rank: i32,
    local: &'static [i32],
    remote: &'static [i32],
    topology: Option<Topology>,
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
            topology: None,
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
