//! Communicators, windows and files: one identity on all their ranks, found without
//! a message.
//!
//! A communicator's identity is a hash of what its members know alike: the parent,
//! the number of communicators made from the parent before, and the members. A
//! [`Group`] is freed with its communicator, unless something may refer to it still: requests
//! outlive the handle. Windows and files stay. Tables of ranks are shared between groups.

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
// What every call reads comes first.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Group {
    /// Identity, as in the trace.
    pub id: u64,
    /// The ranks that peers' numbers on this handle mean.
    pub peers: &'static [i32],
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
    /// Whether something may refer to it when its handle is freed.
    is_held: AtomicBool,
    /// Whether it is a window whose memory is in it no longer.
    pub is_freed: AtomicBool,
    /// This process's neighbours, in a communicator with a topology.
    pub topology: Option<Topology>,
    handle: usize,
}

const _: () = assert!(NO_ROOT < 0 && MPI_PROC_NULL < 0 && MPI_ANY_SOURCE < 0 && MPI_ROOT < 0);

/// What a number means that is no rank's.
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

    /// Something refers to it that may outlive its handle.
    #[inline(always)]
    pub fn hold(&self) {
        // A line of the cache that nobody changes is everybody's.
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
        // What is negative, as all that mean no rank are, is beyond any group.
        match self.peers.get(rank as u32 as usize) {
            Some(&known) => known,
            None => no_rank(rank),
        }
    }

    /// Numbers of neighbours that data comes from and goes to, in the communicator's
    /// topology.
    pub fn degrees(&self) -> (usize, usize) {
        self.topology.map_or((0, 0), |topology| {
            (topology.sources.len(), topology.destinations as usize)
        })
    }
}

/// The groups that a thread used lately, by handle.
pub struct Lately(Handles<*const Group>);

impl Lately {
    /// None yet.
    pub fn new() -> Self {
        Lately(Handles::new(ptr::null()))
    }

    /// The group of a handle; `find` knows it if it was not used lately.
    #[inline(always)]
    pub fn group(
        &mut self,
        handle: usize,
        find: impl FnOnce() -> Option<&'static Group>,
    ) -> Option<&'static Group> {
        let epoch = EPOCH.load(Ordering::Acquire);
        if let Some(group) = self.0.find(handle, epoch) {
            // SAFETY: groups are not freed before their epoch is over.
            return Some(unsafe { &*group });
        }
        let group = find()?;
        self.0.note(handle, epoch, group);
        Some(group)
    }
}

/// Who is in a communicator, and who is next to whom.
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
