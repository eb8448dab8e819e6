//! Groups by handle, and the making of their identities.

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use laggard_trace::{PEER_FOREIGN, WORLD};

use super::topology::{self, Topology};
use super::{Group, Kind, Members};
use crate::constants::*;
use crate::exports::real;
use crate::ffi::{MPI_Comm, MPI_Group};
use crate::hash::{FastMap, Identity};
use crate::request;

/// Grows when a handle may have changed its meaning.
pub static EPOCH: AtomicU32 = AtomicU32::new(1);

#[derive(Default)]
struct Registry {
    /// By family and handle. Windows and files have families of their own, see `family`.
    known: FastMap<(u8, usize), &'static Group>,
    /// Distinct tables of ranks.
    tables: FastMap<Box<[i32]>, &'static [i32]>,
    /// Number of times each identity without a parent was made.
    occurrences: FastMap<u64, u32>,
    world: Option<MPI_Group>,
}

// SAFETY: the group handle in it is used under the MPI library's rules for threads.
unsafe impl Send for Registry {}

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

fn with_registry<T>(f: impl FnOnce(&mut Registry) -> T) -> T {
    let mut guard = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    f(guard.get_or_insert_with(Registry::default))
}

/// Family of a handle; handles of different families may be equal numbers.
fn family(kind: Kind) -> u8 {
    match kind {
        Kind::Intra | Kind::Inter => 0,
        Kind::Window => 1,
        Kind::File => 2,
    }
}

impl Registry {
    fn table(&mut self, ranks: Vec<i32>) -> &'static [i32] {
        if let Some(&table) = self.tables.get(ranks.as_slice()) {
            return table;
        }
        let table: &'static [i32] = Box::leak(ranks.clone().into_boxed_slice());
        self.tables.insert(ranks.into_boxed_slice(), table);
        table
    }

    fn insert(&mut self, group: Group) -> &'static Group {
        let key = (family(group.kind), group.handle);
        let place = Box::into_raw(Box::new(group));
        place.expose_provenance();
        // SAFETY: just made; `forget` frees it when nothing refers to it.
        let group: &'static Group = unsafe { &*place };
        if self.known.insert(key, group).is_some() {
            // The former object of this handle was freed unseen.
            EPOCH.fetch_add(1, Ordering::Release);
        }
        group
    }

    /// The group of a handle that a call uses. If calls run concurrently, the handle may be
    /// freed during a call of another thread.
    fn used(&self, kind: Kind, handle: usize) -> Option<&'static Group> {
        let group = *self.known.get(&(family(kind), handle))?;
        if request::is_concurrent() {
            group.hold();
        }
        Some(group)
    }

    /// Number of earlier uses of this identity.
    fn occurrence(&mut self, identity: Identity) -> u32 {
        let n = self.occurrences.entry(identity.id()).or_insert(0);
        *n += 1;
        *n - 1
    }

    fn ranks_of(&mut self, group: MPI_Group) -> &'static [i32] {
        let Some(world) = self.world else { return &[] };
        let mut size = 0;
        // SAFETY: local queries; `group` is valid.
        unsafe { real::MPI_Group_size(group, &mut size) };
        let numbers: Vec<i32> = (0..size).collect();
        let mut ranks = vec![PEER_FOREIGN; numbers.len()];
        // SAFETY: both arrays have `size` elements.
        unsafe {
            real::MPI_Group_translate_ranks(
                group,
                size,
                numbers.as_ptr(),
                world,
                ranks.as_mut_ptr(),
            );
        }
        for rank in &mut ranks {
            if *rank < 0 {
                *rank = PEER_FOREIGN;
            }
        }
        self.table(ranks)
    }

    /// Asks the library for the members of `comm`, which is valid and not null.
    fn members(&mut self, comm: MPI_Comm) -> (Kind, Members) {
        let c = constants();
        let (mut inter, mut rank) = (0, 0);
        let mut group = c.group_null;
        let mut members = Members {
            rank: 0,
            local: &[],
            remote: &[],
            topology: None,
        };
        // SAFETY: local queries on a valid communicator.
        unsafe {
            real::MPI_Comm_test_inter(comm, &mut inter);
            real::MPI_Comm_rank(comm, &mut rank);
            real::MPI_Comm_group(comm, &mut group);
            members.local = self.ranks_of(group);
            real::MPI_Group_free(&mut group);
            if inter != 0 {
                real::MPI_Comm_remote_group(comm, &mut group);
                members.remote = self.ranks_of(group);
                real::MPI_Group_free(&mut group);
            }
        }
        members.rank = rank;
        if inter == 0 {
            let found = topology::neighbours(comm, rank);
            members.topology = found.map(|(sources, destinations, grid)| Topology {
                sources: self.table(sources),
                destinations,
                grid: self.table(grid),
            });
        }
        (if inter != 0 { Kind::Inter } else { Kind::Intra }, members)
    }
}

/// Domains of identities.
pub mod domain {
    pub const SELF: u64 = 1;
    pub const CHILD: u64 = 2;
    pub const GROUP: u64 = 3;
    pub const INTER: u64 = 4;
    pub const UNKNOWN: u64 = 5;
    pub const WINDOW: u64 = 6;
    pub const FILE: u64 = 7;
    pub const MEMBERS: u64 = 8;
    pub const ACTIVE_SET: u64 = 9;
}

/// An identity of both groups of an intercommunicator, the same from either side.
fn both_sides(members: Members) -> u64 {
    let hash = |ranks| Identity::new(domain::MEMBERS).with_ranks(ranks).id();
    let (a, b) = (hash(members.local), hash(members.remote));
    Identity::new(domain::MEMBERS)
        .with(a.min(b))
        .with(a.max(b))
        .id()
}

fn members_identity(kind: Kind, members: Members) -> u64 {
    match kind {
        Kind::Inter => both_sides(members),
        _ => Identity::new(domain::MEMBERS)
            .with_ranks(members.local)
            .id(),
    }
}

/// Registers the predefined communicators.
pub fn start(rank: i32, size: i32) -> (&'static Group, &'static Group) {
    let c = constants();
    let mut world = c.group_null;
    // SAFETY: MPI is initialised. The group stays for the whole run.
    unsafe { real::MPI_Comm_group(c.comm_world, &mut world) };
    with_registry(|registry| {
        registry.world = Some(world);
        let local = registry.table((0..size).collect());
        let members = Members {
            rank,
            local,
            remote: &[],
            topology: None,
        };
        let handle = c.comm_world.bits();
        let world = registry.insert(Group::new(WORLD, 0, Kind::Intra, members, handle));
        let id = Identity::new(domain::SELF).with(rank as u64).id();
        let local = registry.table(vec![rank]);
        let members = Members {
            rank: 0,
            local,
            remote: &[],
            topology: None,
        };
        let handle = c.comm_self.bits();
        (
            world,
            registry.insert(Group::new(id, 0, Kind::Intra, members, handle)),
        )
    })
}

/// Frees the world's group.
pub fn stop() {
    with_registry(|registry| {
        if let Some(mut world) = registry.world.take() {
            // SAFETY: before MPI_Finalize.
            unsafe { real::MPI_Group_free(&mut world) };
        }
    });
}

/// The group of a registered handle.
pub fn known(kind: Kind, handle: usize) -> Option<&'static Group> {
    with_registry(|registry| registry.used(kind, handle))
}

/// The group of a handle; `make` creates a new one and gets the registry for its table of
/// ranks.
pub fn known_or(
    kind: Kind,
    handle: usize,
    make: impl FnOnce(&mut dyn FnMut(Vec<i32>) -> &'static [i32]) -> Option<Group>,
) -> Option<&'static Group> {
    with_registry(|registry| {
        if let Some(group) = registry.used(kind, handle) {
            return Some(group);
        }
        let group = make(&mut |ranks| registry.table(ranks))?;
        Some(registry.insert(group))
    })
}

/// The group of a valid communicator. One made inside a library's own call is unknown and gets
/// an identity from its members.
pub fn communicator(comm: MPI_Comm) -> &'static Group {
    with_registry(|registry| {
        if let Some(group) = registry.used(Kind::Intra, comm.bits()) {
            return group;
        }
        let (kind, members) = registry.members(comm);
        let base = Identity::new(domain::UNKNOWN).with(members_identity(kind, members));
        let id = base.with(u64::from(registry.occurrence(base))).id();
        registry.insert(Group::new(id, 0, kind, members, comm.bits()))
    })
}

/// Distinguishes a new communicator from all others.
pub enum Origin {
    /// Made collectively from this parent. Counts on the parent, even if the result is
    /// `MPI_COMM_NULL`.
    Child(&'static Group),
    /// Made by its members alone, with a tag.
    Members(i32),
    /// Made by two groups, with a tag.
    Pair(i32),
}

/// Registers a new communicator; `None` if this process is not in it.
pub fn created(origin: Origin, comm: MPI_Comm) -> Option<&'static Group> {
    let nth = match origin {
        Origin::Child(parent) => parent.children.fetch_add(1, Ordering::Relaxed),
        _ => 0,
    };
    if comm.bits() == constants().comm_null.bits() {
        return None;
    }
    with_registry(|registry| {
        let (kind, members) = registry.members(comm);
        let who = members_identity(kind, members);
        let (id, parent) = match origin {
            Origin::Child(parent) => {
                let base = Identity::new(domain::CHILD).with(parent.id);
                (base.with(u64::from(nth)).with(who), parent.id)
            }
            Origin::Members(tag) => (registry.counted(domain::GROUP, who, tag), 0),
            Origin::Pair(tag) => (registry.counted(domain::INTER, who, tag), 0),
        };
        Some(registry.insert(Group::new(id.id(), parent, kind, members, comm.bits())))
    })
}

/// Registers a duplicate that may not be usable yet: it has the parent's members and topology.
pub fn duplicated(parent: &'static Group, comm: MPI_Comm) -> &'static Group {
    let nth = parent.children.fetch_add(1, Ordering::Relaxed);
    let members = Members {
        rank: parent.rank,
        local: parent.members,
        remote: parent.remote,
        topology: parent.topology,
    };
    let who = members_identity(parent.kind, members);
    let id = Identity::new(domain::CHILD)
        .with(parent.id)
        .with(u64::from(nth))
        .with(who)
        .id();
    let group = Group::new(id, parent.id, parent.kind, members, comm.bits());
    with_registry(|registry| registry.insert(group))
}

impl Registry {
    fn counted(&mut self, domain: u64, who: u64, tag: i32) -> Identity {
        let base = Identity::new(domain).with(who).with(tag as u64);
        base.with(u64::from(self.occurrence(base)))
    }
}

/// World ranks of the processes in a valid group; equal lists share one address.
pub fn ranks_of(group: MPI_Group) -> &'static [i32] {
    with_registry(|registry| registry.ranks_of(group))
}

/// Registers a window or file made on `comm`.
pub fn attached(kind: Kind, comm: &'static Group, handle: usize) -> &'static Group {
    let nth = comm.attached.fetch_add(1, Ordering::Relaxed);
    let domain = if kind == Kind::Window {
        domain::WINDOW
    } else {
        domain::FILE
    };
    let id = Identity::new(domain)
        .with(comm.id)
        .with(u64::from(nth))
        .id();
    let members = Members {
        rank: comm.rank,
        local: comm.members,
        remote: &[],
        topology: None,
    };
    with_registry(|registry| registry.insert(Group::new(id, comm.id, kind, members, handle)))
}

/// Counts a failed attempt to make a window or file.
pub fn attach_failed(comm: &'static Group) {
    comm.attached.fetch_add(1, Ordering::Relaxed);
}

/// Notes that a handle is about to be freed; returns its group. Called before the real call:
/// another thread may get a new object with the same handle right after it.
pub fn released(kind: Kind, handle: usize) -> Option<&'static Group> {
    let group = with_registry(|registry| registry.known.remove(&(family(kind), handle)));
    EPOCH.fetch_add(1, Ordering::Release);
    group
}

/// Frees the group of a freed communicator; the calling thread no longer needs it.
pub fn forget(group: &'static Group) {
    if !group.is_held.load(Ordering::Relaxed) {
        let place = ptr::with_exposed_provenance_mut::<Group>(ptr::from_ref(group).addr());
        // SAFETY: made by `insert`, and no handle leads to it. Since `released`, the threads'
        // caches do not find it, and nothing else refers to it.
        drop(unsafe { Box::from_raw(place) });
    }
}

/// Restores a handle that was not freed after all.
pub fn restore(group: &'static Group) {
    with_registry(|registry| {
        registry
            .known
            .insert((family(group.kind), group.handle), group)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(local: &'static [i32], remote: &'static [i32]) -> Members {
        Members {
            rank: 0,
            local,
            remote,
            topology: None,
        }
    }

    #[test]
    fn an_intercommunicator_is_the_same_from_both_sides() {
        let one = both_sides(members(&[0, 1], &[2, 3]));
        assert_eq!(one, both_sides(members(&[2, 3], &[0, 1])));
        assert_ne!(one, both_sides(members(&[0, 2], &[1, 3])));
        assert_ne!(one, both_sides(members(&[0], &[1, 2, 3])));
    }

    #[test]
    fn repeated_identities_are_told_apart_in_order() {
        let mut registry = Registry::default();
        let first = registry.counted(domain::GROUP, 7, 1).id();
        let second = registry.counted(domain::GROUP, 7, 1).id();
        let other_tag = registry.counted(domain::GROUP, 7, 2).id();
        assert_ne!(first, second);
        assert_ne!(first, other_tag);
        let mut elsewhere = Registry::default();
        assert_eq!(first, elsewhere.counted(domain::GROUP, 7, 1).id());
        assert_eq!(second, elsewhere.counted(domain::GROUP, 7, 1).id());
    }
}
