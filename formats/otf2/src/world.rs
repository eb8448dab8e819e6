//! Data that all locations share: ranks, communicators, hosts, and the meaning of regions.

use std::collections::BTreeMap;

use laggard_trace::{
    Communicator, Dimension, Grid, PEER_ANY, PEER_FOREIGN, PEER_NONE, PEER_ROOT, WORLD,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::constructs::Construct;
use crate::definitions::{
    Comm, Definitions, Group, PARADIGM_MEASUREMENT_SYSTEM, PARADIGM_MPI, PARADIGM_OPENMP,
    PARADIGM_PTHREAD, ROLE_FILE_IO, ROLE_FILE_IO_METADATA, THREAD_TYPES, UNDEFINED, group_kind,
};
use crate::events::{ROOT_NONE, ROOT_SELF, ROOT_THIS_GROUP};
use crate::names;
use crate::notes::{Kind, Notes};
use crate::teams::Teams;

/// Most ranks, as in the trace format.
const MOST_RANKS: usize = 1 << 24;
/// First part of this crate's ids, by kind, so that they never collide.
mod tag {
    pub const COMM: u64 = 1 << 60;
    pub const SELF: u64 = 2 << 60;
    pub const WINDOW: u64 = 3 << 60;
    pub const SELF_WINDOW: u64 = 4 << 60;
}

/// A thread of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its location.
    pub location: u64,
    /// World rank.
    pub rank: u32,
    /// Number within the rank; 0 is the location that the communicators name.
    pub thread: u32,
    /// Number of events according to the archive; may be wrong.
    pub events: u64,
    /// Its node of the machine.
    pub node: u32,
}

/// The members of a communicator.
#[derive(Debug, PartialEq, Eq)]
enum Members {
    /// World ranks.
    Group(Vec<u32>),
    /// Each process alone.
    Alone,
    /// World ranks of both groups.
    Two(Vec<u32>, Vec<u32>),
}

#[derive(Debug)]
struct Known {
    members: Members,
    is_world: bool,
    name: u32,
    parent: u32,
}

/// Meaning of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A call, by number.
    Call(u16),
    /// Threads wait for each other there.
    Threads(Construct),
    /// A function of the program.
    User,
}

/// The shared part of an archive, interpreted.
pub struct World {
    /// Size of `MPI_COMM_WORLD`.
    pub ranks: u32,
    /// By rank and thread.
    pub threads: Vec<Thread>,
    comms: BTreeMap<u32, Known>,
    /// Places in Cartesian topologies, by communicator and rank in it.
    grids: FxHashMap<(u32, u32), Vec<Dimension>>,
    regions: FxHashMap<u32, Meaning>,
    /// Teams of threads.
    pub teams: Teams,
    /// Anomalies of the definitions.
    pub notes: Notes,
}

/// A rank's communicators: position of each in order of number, and this rank's number in it.
pub type Memberships = FxHashMap<u32, Vec<(u32, u32)>>;

impl World {
    /// Interprets definitions. The error says what they lack.
    pub fn new(definitions: &Definitions) -> Result<World, String> {
        let mut notes = Notes::default();
        notes.add(Kind::RepeatedDefinition, definitions.repeated, String::new);
        let processes = processes(definitions, &mut notes);
        if processes.is_empty() {
            return Err("no location of a process in them".to_owned());
        }
        if processes.len() > MOST_RANKS {
            return Err(format!("{} ranks are too many", processes.len()));
        }
        let threads = threads(definitions, &processes, &mut notes);
        let ranks = processes.len() as u32;
        let meaning = |region: &crate::definitions::Region| {
            let of = |name| names::call(definitions.string(name));
            let is_file_io = [ROLE_FILE_IO, ROLE_FILE_IO_METADATA].contains(&region.role);
            let file_io = || {
                let name = definitions.string(region.name);
                names::file_io(name).filter(|_| is_file_io)
            };
            let number = of(region.canonical).or_else(|| of(region.name));
            let number = number.or_else(file_io);
            let of_threads = || {
                let names = [region.canonical, region.name].into_iter();
                let mut found = names.map(|name| Construct::of(region, definitions.string(name)));
                found.find_map(|found| found).map(Meaning::Threads)
            };
            let meaning = number.map(Meaning::Call).or_else(of_threads);
            meaning.unwrap_or(Meaning::User)
        };
        let regions = definitions.regions.iter();
        let comms = communicators(definitions, &processes);
        Ok(World {
            ranks,
            threads,
            grids: grids(definitions, &comms, &mut notes),
            comms,
            regions: regions.map(|(id, region)| (*id, meaning(region))).collect(),
            teams: Teams::new(definitions),
            notes,
        })
    }

    /// Meaning of a region; `None` if it is undefined.
    pub fn meaning(&self, region: u32) -> Option<Meaning> {
        self.regions.get(&region).copied()
    }

    /// World ranks of a group of processes, without members that are not ranks.
    pub fn members(&self, definitions: &Definitions, group: u32) -> Option<Vec<u32>> {
        let group = definitions.group(group, &[group_kind::COMM_GROUP])?;
        let ranks = group
            .members
            .iter()
            .filter_map(|&rank| u32::try_from(rank).ok());
        Some(ranks.filter(|&rank| rank < self.ranks).collect())
    }

    /// A communicator's id for `rank`.
    pub fn comm_id(&self, comm: u32, rank: u32) -> Option<u64> {
        let known = self.comms.get(&comm)?;
        Some(match known.members {
            _ if known.is_world => WORLD,
            Members::Alone => tag::SELF | u64::from(rank) << 32 | u64::from(comm),
            _ => tag::COMM | u64::from(comm),
        })
    }

    /// A window's id for `rank`; `comm` is its communicator.
    pub fn window_id(&self, window: u32, comm: u32, rank: u32) -> u64 {
        match self.comms.get(&comm).map(|known| &known.members) {
            Some(Members::Alone) => tag::SELF_WINDOW | u64::from(rank) << 32 | u64::from(window),
            _ => tag::WINDOW | u64::from(window),
        }
    }

    /// The world rank of a peer of `rank`; `None` if there is no such peer.
    pub fn peer(&self, comm: u32, peer: u32, rank: u32) -> Option<i32> {
        let at = |members: &[u32]| members.get(peer as usize).map(|&member| member as i32);
        match &self.comms.get(&comm)?.members {
            Members::Group(members) => at(members),
            Members::Alone => (peer == 0).then_some(rank as i32),
            Members::Two(own, other) => match own.contains(&rank) {
                true => at(other),
                false => at(own),
            },
        }
    }

    /// The world rank of a root, or the constant that stands for it in a trace.
    pub fn root(&self, comm: u32, root: u32, rank: u32) -> Option<i32> {
        let is_inter = matches!(
            self.comms.get(&comm).map(|known| &known.members),
            Some(Members::Two(..))
        );
        match root {
            ROOT_NONE => Some(PEER_ANY),
            ROOT_SELF if is_inter => Some(PEER_ROOT),
            ROOT_SELF => Some(rank as i32),
            ROOT_THIS_GROUP => Some(PEER_NONE),
            root => self.peer(comm, root, rank),
        }
    }

    /// The communicators of these ranks, found in one search.
    pub fn memberships(&self, ranks: impl Iterator<Item = u32>) -> Memberships {
        let wanted: FxHashSet<u32> = ranks.collect();
        let mut memberships = Memberships::default();
        for (&comm, known) in &self.comms {
            let groups: &[&[u32]] = match &known.members {
                Members::Group(members) => &[members],
                Members::Alone => &[],
                Members::Two(own, other) => &[own, other],
            };
            for group in groups {
                for (at, rank) in group.iter().enumerate() {
                    if wanted.contains(rank) {
                        memberships
                            .entry(*rank)
                            .or_default()
                            .push((comm, at as u32));
                    }
                }
            }
        }
        memberships
    }

    /// A communicator as a member sees it; its name is a text number of the archive.
    pub fn communicator(&self, comm: u32, rank: u32, local_rank: u32) -> Option<Communicator> {
        let known = self.comms.get(&comm)?;
        let nobody = Vec::new();
        let (own, other) = match &known.members {
            Members::Group(members) => (members, &nobody),
            Members::Alone => return None,
            Members::Two(own, other) if own.get(local_rank as usize) == Some(&rank) => (own, other),
            Members::Two(other, own) => (own, other),
        };
        let tells = local_rank == 0;
        Some(Communicator {
            id: self.comm_id(comm, rank)?,
            parent: self.comm_id(known.parent, rank).unwrap_or(0),
            kind: u32::from(!other.is_empty()),
            size: own.len() as u32,
            local_rank,
            name: known.name,
            members: if tells { own.clone() } else { Vec::new() },
            remote_members: if tells { other.clone() } else { Vec::new() },
        })
    }

    /// Where a member of a communicator is in its Cartesian topology, if it has one.
    pub fn grid(&self, comm: u32, rank: u32, local_rank: u32) -> Option<Grid> {
        Some(Grid {
            communicator: self.comm_id(comm, rank)?,
            dimensions: self.grids.get(&(comm, local_rank))?.clone(),
        })
    }

    /// A rank's communicator of its own, if `comm` is one.
    pub fn alone(&self, comm: u32, rank: u32) -> Option<Communicator> {
        let known = self.comms.get(&comm)?;
        (known.members == Members::Alone).then(|| Communicator {
            id: tag::SELF | u64::from(rank) << 32 | u64::from(comm),
            size: 1,
            name: known.name,
            members: vec![rank],
            ..Communicator::default()
        })
    }
}

/// The locations that represent the ranks, in rank order.
fn processes(definitions: &Definitions, notes: &mut Notes) -> Vec<u64> {
    let of_mpi = |group: &&crate::definitions::Group| {
        group.kind == group_kind::COMM_LOCATIONS && group.paradigm == PARADIGM_MPI
    };
    let mut groups: Vec<_> = definitions.groups.iter().collect();
    groups.sort_unstable_by_key(|(id, _)| **id);
    let found = groups
        .iter()
        .flat_map(|(_, groups)| groups.iter())
        .find(of_mpi);
    if let Some(group) = found.filter(|group| !group.members.is_empty()) {
        return group.members.clone();
    }
    let mut first: BTreeMap<u32, u64> = BTreeMap::new();
    let threads = definitions.locations.iter();
    for location in threads.filter(|location| THREAD_TYPES.contains(&location.kind)) {
        let least = first.entry(location.group).or_insert(location.id);
        *least = location.id.min(*least);
    }
    notes.add(Kind::GuessedRanks, 1, String::new);
    first.into_values().collect()
}

/// All threads of all ranks. `processes` are the locations of the ranks.
fn threads(definitions: &Definitions, processes: &[u64], notes: &mut Notes) -> Vec<Thread> {
    let mut rank_of: FxHashMap<u64, u32> = FxHashMap::default();
    for (rank, location) in processes.iter().enumerate() {
        rank_of.entry(*location).or_insert(rank as u32);
    }
    let mut seen: FxHashSet<u64> = FxHashSet::default();
    let mut rank_of_group: FxHashMap<u32, u32> = FxHashMap::default();
    for location in &definitions.locations {
        if let Some(&rank) = rank_of.get(&location.id) {
            rank_of_group.entry(location.group).or_insert(rank);
        }
    }
    let mut threads = Vec::new();
    for location in &definitions.locations {
        let about = || format!("location {}", location.id);
        if !THREAD_TYPES.contains(&location.kind) {
            notes.add(Kind::OtherLocation, 1, about);
            continue;
        }
        if !seen.insert(location.id) {
            notes.add(Kind::RepeatedLocation, 1, about);
            continue;
        }
        let own = rank_of.get(&location.id);
        let Some(&rank) = own.or_else(|| rank_of_group.get(&location.group)) else {
            notes.add(Kind::NoRank, 1, about);
            continue;
        };
        threads.push(Thread {
            location: location.id,
            rank,
            thread: u32::from(own.is_none()),
            events: location.events,
            node: node_of(definitions, location.group),
        });
    }
    threads.sort_unstable_by_key(|thread| (thread.rank, thread.thread, thread.location));
    for of_rank in threads.chunk_by_mut(|a, b| a.rank == b.rank) {
        let first = of_rank[0].thread;
        for (at, thread) in of_rank.iter_mut().enumerate() {
            thread.thread = first + at as u32;
        }
    }
    threads
}

/// The node on which a process ran: the first of its ancestors with that class.
fn node_of(definitions: &Definitions, process: u32) -> u32 {
    let parent = definitions
        .processes
        .get(&process)
        .map_or(UNDEFINED, |(_, node)| *node);
    let mut node = parent;
    // Deeper than any machine; bounds the walk through a cycle.
    for _ in 0..64 {
        let Some(&(_, class, above)) = definitions.nodes.get(&node) else {
            break;
        };
        if definitions.string(class).eq_ignore_ascii_case(b"node") {
            return node;
        }
        node = above;
    }
    parent
}

/// The communicators, by number.
fn communicators(definitions: &Definitions, processes: &[u64]) -> BTreeMap<u32, Known> {
    let mut rank_of: FxHashMap<u64, u32> = FxHashMap::default();
    for (rank, location) in processes.iter().enumerate() {
        rank_of.entry(*location).or_insert(rank as u32);
    }
    let members = |group: u32| -> Option<Vec<u32>> {
        use group_kind::*;
        let group = definitions.group(group, &[COMM_GROUP, COMM_LOCATIONS, LOCATIONS])?;
        let numbers = group.members.iter();
        // Members that are not ranks keep their place, for the members after them.
        let nobody = PEER_FOREIGN as u32;
        let ranks = processes.len() as u64;
        let rank = |member: &u64| match group.kind {
            COMM_GROUP => (*member < ranks).then_some(*member as u32),
            _ => rank_of.get(member).copied(),
        };
        Some(
            numbers
                .map(|member| rank(member).unwrap_or(nobody))
                .collect(),
        )
    };
    let others = [
        PARADIGM_OPENMP,
        PARADIGM_PTHREAD,
        PARADIGM_MEASUREMENT_SYSTEM,
    ];
    let is_mpi = |group: &Group| !others.contains(&group.paradigm);
    let of = |comm: &Comm| -> Option<Members> {
        // Others are teams of threads, or what a recorder needs for itself.
        definitions
            .groups
            .get(&comm.group)?
            .iter()
            .find(|group| is_mpi(group))?;
        if definitions
            .group(comm.group, &[group_kind::COMM_SELF])
            .is_some()
        {
            return Some(Members::Alone);
        }
        let own = members(comm.group)?;
        Some(match comm.other {
            Some(other) => Members::Two(own, members(other)?),
            None => Members::Group(own),
        })
    };
    let mut comms: BTreeMap<u32, Known> = BTreeMap::new();
    for comm in &definitions.comms {
        if let Some(members) = of(comm) {
            comms.entry(comm.id).or_insert(Known {
                members,
                is_world: false,
                name: comm.name,
                parent: comm.parent,
            });
        }
    }
    // The communicator of this name, else the first with all ranks in order.
    let all: Vec<u32> = (0..processes.len() as u32).collect();
    let is_all = |known: &&mut Known| matches!(&known.members, Members::Group(m) if *m == all);
    let is_named = |known: &&mut Known| definitions.string(known.name) == b"MPI_COMM_WORLD";
    let named = comms
        .values_mut()
        .find(|known| is_named(known) && is_all(known));
    match named {
        Some(world) => world.is_world = true,
        None => {
            if let Some(world) = comms.values_mut().find(is_all) {
                world.is_world = true;
            }
        }
    }
    comms
}

/// Places in Cartesian topologies, by communicator and rank in it. Of several topologies of a communicator, which MPI
/// does not have, the first counts. Topologies of other things than ranks have communicators that are none here.
fn grids(
    definitions: &Definitions,
    comms: &BTreeMap<u32, Known>,
    notes: &mut Notes,
) -> FxHashMap<(u32, u32), Vec<Dimension>> {
    let mut first: FxHashMap<u32, u32> = FxHashMap::default();
    for (&grid, (comm, _)) in &definitions.grids {
        let least = first.entry(*comm).or_insert(grid);
        *least = grid.min(*least);
    }
    let mut grids = FxHashMap::default();
    for (grid, rank, coordinates) in &definitions.coordinates {
        let known = definitions.grids.get(grid);
        if known.is_some_and(|(comm, _)| !comms.contains_key(comm) || first[comm] != *grid) {
            continue;
        }
        let place = known.filter(|(_, numbers)| numbers.len() == coordinates.len());
        let place = place.and_then(|(comm, numbers)| {
            let along = numbers
                .iter()
                .zip(coordinates)
                .map(|(number, &coordinate)| {
                    let &(size, is_periodic) = definitions.dimensions.get(number)?;
                    (coordinate < size).then_some(Dimension {
                        size,
                        is_periodic,
                        coordinate,
                    })
                });
            Some((*comm, along.collect::<Option<Vec<_>>>()?))
        });
        match place {
            Some((comm, dimensions)) => drop(grids.insert((comm, *rank), dimensions)),
            None => notes.add(Kind::OddGrid, 1, || {
                format!("rank {rank} in topology {grid}")
            }),
        }
    }
    grids
}
