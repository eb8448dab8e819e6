//! Communicators, windows and files of a run, with their OTF2 numbers.

use std::collections::BTreeMap;

use laggard_otf2::definitions::{Comm, Definitions, Group, PARADIGM_MPI, UNDEFINED, group_kind};
use laggard_trace::calls::{self, GenericType};
use laggard_trace::{Communicator, Location, PEER_ANY, PEER_NONE, PEER_ROOT, WORLD};
use rustc_hash::FxHashMap;

use super::names::Names;

/// Ranks by their number in `MPI_COMM_WORLD`.
type Index = FxHashMap<u32, u32>;

/// A communicator.
struct Known {
    number: u32,
    /// The parent for communicators made from it: no reader accepts an intercommunicator as a
    /// parent.
    ancestor: u32,
    own: Index,
    /// The other group, if there are two.
    other: Option<Index>,
}

/// All groups.
#[derive(Default)]
pub struct Groups {
    comms: FxHashMap<u64, Known>,
    /// Windows: number.
    windows: FxHashMap<u64, u32>,
    /// Files: communicator.
    files: FxHashMap<u64, u64>,
    /// Lists of ranks on the other side of an epoch: group.
    peers: FxHashMap<Vec<u32>, u32>,
}

/// A trace's group in OTF2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// A communicator, or a file opened on it.
    Comm(u32),
    /// A window.
    Window(u32),
}

/// Stands for a window: the symmetric memory of all PEs, which has no number in a trace.
pub const SYMMETRIC: u64 = u64::MAX;

/// Whether a call transfers to or from symmetric memory.
pub fn is_on_symmetric(operation: u16) -> bool {
    let is_transfer = |call: &calls::Call| {
        matches!(
            call.generic,
            GenericType::OneSidedPut | GenericType::OneSidedGet | GenericType::OneSidedAtomic
        )
    };
    calls::call(operation).is_some_and(|call| call.is_shmem() && is_transfer(call))
}

/// Kind of a group handle that is a window.
const WINDOW: u32 = 1;

fn index(members: &[u32]) -> Index {
    let ranks = members.iter().enumerate();
    ranks.map(|(at, rank)| (*rank, at as u32)).collect()
}

impl Groups {
    /// Gathers the groups that locations know, and defines them.
    pub fn gather<'l>(
        locations: impl Iterator<Item = &'l Location> + Clone,
        ranks: u32,
        names: &mut Names,
        into: &mut Definitions,
    ) -> Groups {
        let world = Communicator {
            id: WORLD,
            size: ranks,
            members: (0..ranks).collect(),
            ..Communicator::default()
        };
        let mut all: BTreeMap<u64, (Communicator, Vec<u8>)> = BTreeMap::new();
        all.insert(WORLD, (world, b"MPI_COMM_WORLD".to_vec()));
        let mut groups = Groups::default();
        let mut handles: BTreeMap<u64, (u64, u32, Vec<u8>)> = BTreeMap::new();
        for location in locations.clone() {
            let definitions = &location.definitions;
            for found in &definitions.communicators {
                let name = definitions.string_bytes(found.name);
                let known = all.entry(found.id).or_default();
                if known.0.members.is_empty() && !found.members.is_empty() {
                    known.0 = found.clone();
                }
                if known.1.is_empty() {
                    known.1 = name.to_vec();
                }
            }
            for &(id, communicator, kind, name) in &definitions.group_handles {
                let name = definitions.string_bytes(name).to_vec();
                handles.entry(id).or_insert((communicator, kind, name));
            }
        }
        all.retain(|_, (known, _)| !known.members.is_empty());
        groups.define(all, names, into);
        groups.place(locations.clone(), into);
        for (id, (communicator, kind, name)) in handles {
            if kind != WINDOW {
                groups.files.insert(id, communicator);
            } else if let Some(comm) = groups.comms.get(&communicator) {
                let number = groups.windows.len() as u32;
                groups.windows.insert(id, number);
                into.windows
                    .insert(number, (names.string(&name), comm.number));
            }
        }
        let mut signatures = locations
            .clone()
            .flat_map(|location| location.definitions.signatures());
        if signatures.any(|signature| is_on_symmetric(signature.operation))
            && let Some(world) = groups.comms.get(&WORLD)
        {
            let number = groups.windows.len() as u32;
            groups.windows.insert(SYMMETRIC, number);
            into.windows
                .insert(number, (names.string(b"symmetric memory"), world.number));
        }
        for peers in locations.flat_map(|location| location.definitions.lists_of_peers()) {
            if !groups.peers.contains_key(peers) {
                groups.peers.insert(peers.to_vec(), group(peers, into));
            }
        }
        groups
    }

    /// Numbers communicators: a parent has a smaller number.
    fn define(
        &mut self,
        mut left: BTreeMap<u64, (Communicator, Vec<u8>)>,
        names: &mut Names,
        into: &mut Definitions,
    ) {
        while !left.is_empty() {
            let is_free = |(id, (comm, _)): &(&u64, &(Communicator, Vec<u8>))| {
                **id == WORLD || !left.contains_key(&comm.parent) || comm.parent == **id
            };
            // If they form a ring of parents, any will do.
            let next = left.iter().find(is_free).or_else(|| left.iter().next());
            let Some(id) = next.map(|(id, _)| *id) else {
                return;
            };
            let Some((comm, name)) = left.remove(&id) else {
                return;
            };
            let number = into.comms.len() as u32;
            let parent = self
                .comms
                .get(&comm.parent)
                .map_or(0, |parent| parent.ancestor);
            let other = (comm.kind != 0).then(|| group(&comm.remote_members, into));
            let own = group(&comm.members, into);
            into.comms.push(Comm {
                id: number,
                name: names.string(&name),
                group: own,
                other,
                parent: if id == WORLD { UNDEFINED } else { parent },
            });
            let known = Known {
                number,
                ancestor: if other.is_some() { parent } else { number },
                own: index(&comm.members),
                other: other.map(|_| index(&comm.remote_members)),
            };
            self.comms.insert(id, known);
        }
    }

    /// Defines where ranks are in Cartesian communicators.
    fn place<'l>(&self, locations: impl Iterator<Item = &'l Location>, into: &mut Definitions) {
        let mut grids: FxHashMap<u32, u32> = FxHashMap::default();
        for location in locations.filter(|location| location.header.thread == 0) {
            for grid in &location.definitions.grids {
                let Some(comm) = self.comms.get(&grid.communicator) else {
                    continue;
                };
                let Some(&rank) = comm.own.get(&location.header.rank) else {
                    continue;
                };
                let next = grids.len() as u32;
                let number = *grids.entry(comm.number).or_insert(next);
                if number == next {
                    let first = into.dimensions.len() as u32;
                    let all = (first..).zip(&grid.dimensions);
                    let all = all.map(|(id, one)| (id, (one.size, one.is_periodic)));
                    into.dimensions.extend(all);
                    let all = (first..into.dimensions.len() as u32).collect();
                    into.grids.insert(number, (comm.number, all));
                }
                let coordinates = grid.dimensions.iter().map(|one| one.coordinate);
                into.coordinates.push((number, rank, coordinates.collect()));
            }
        }
    }

    /// A group in OTF2; `None` if it is unknown.
    pub fn on(&self, group: u64) -> Option<On> {
        if let Some(window) = self.windows.get(&group) {
            return Some(On::Window(*window));
        }
        let comm = self.files.get(&group).unwrap_or(&group);
        self.comms.get(comm).map(|known| On::Comm(known.number))
    }

    /// The group of these ranks, the other side of an epoch.
    pub fn peers(&self, ranks: &[u32]) -> Option<u32> {
        self.peers.get(ranks).copied()
    }

    /// The number of a window.
    pub fn window(&self, id: u64) -> Option<u32> {
        self.windows.get(&id).copied()
    }

    /// Communicator, and a peer's rank in it, as `rank` sees it.
    pub fn peer(&self, comm: u64, peer: i32, rank: u32) -> Option<(u32, u32)> {
        let known = self.comms.get(&comm)?;
        let group = match &known.other {
            Some(other) if known.own.contains_key(&rank) => other,
            _ => &known.own,
        };
        let peer = u32::try_from(peer).ok()?;
        Some((known.number, *group.get(&peer)?))
    }

    /// A target's rank in a window, that is, in its communicator, which `definitions` holds.
    pub fn target(&self, definitions: &Definitions, window: u32, peer: i32) -> Option<u32> {
        let &(_, comm) = definitions.windows.get(&window)?;
        let mut known = self.comms.values().filter(|known| known.number == comm);
        let peer = u32::try_from(peer).ok()?;
        known.next()?.own.get(&peer).copied()
    }

    /// A collective's root.
    pub fn root(&self, group: u64, root: i32, rank: u32) -> Option<u32> {
        use laggard_otf2::events::{ROOT_NONE, ROOT_SELF, ROOT_THIS_GROUP};
        Some(match root {
            PEER_ANY => ROOT_NONE,
            PEER_ROOT => ROOT_SELF,
            PEER_NONE => ROOT_THIS_GROUP,
            root => {
                let comm = self.files.get(&group).copied().unwrap_or(group);
                self.peer(comm, root, rank)?.1
            }
        })
    }
}

/// The number of a group of ranks. Each group is defined once.
fn group(members: &[u32], into: &mut Definitions) -> u32 {
    let members: Vec<u64> = members.iter().map(|&rank| u64::from(rank)).collect();
    let known = into.groups.iter().find(|(_, groups)| {
        let same = |g: &Group| g.kind == group_kind::COMM_GROUP && g.members == members;
        groups.iter().any(same)
    });
    if let Some((id, _)) = known {
        return *id;
    }
    let id = into.groups.len() as u32;
    let group = Group {
        kind: group_kind::COMM_GROUP,
        paradigm: PARADIGM_MPI,
        members,
    };
    into.groups.insert(id, vec![group]);
    id
}
