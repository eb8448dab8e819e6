//! The definitions of one file, by id.

use std::collections::HashMap;

use crate::define::{Communicator, Definition, Frame, Grid, Neighbours, Region, Signature};
use crate::{PEER_ANY, flags};

/// Largest id accepted. It bounds the memory that a damaged file can make a reader allocate.
const MAX_ID: usize = 1 << 26;

/// A loaded object of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// String id.
    pub path: u32,
    /// Address minus ELF address.
    pub bias: u64,
    /// GNU build id, may be empty.
    pub build_id: Vec<u8>,
}

/// All definitions of a file. Look-ups of an undefined id give an empty value, never a panic.
#[derive(Debug, Default)]
pub struct Definitions {
    strings: Vec<Vec<u8>>,
    modules: Vec<Option<Module>>,
    call_paths: Vec<Vec<Frame>>,
    signatures: Vec<Signature>,
    completion_lists: Vec<Vec<(u32, u32)>>,
    /// Communicators in order of definition.
    pub communicators: Vec<Communicator>,
    /// (id, communicator, kind, name string) of windows and files.
    pub group_handles: Vec<(u64, u64, u32, u32)>,
    /// Neighbours in communicators with a topology, in order of definition.
    pub neighbours: Vec<Neighbours>,
    /// Places in Cartesian communicators, in order of definition.
    pub grids: Vec<Grid>,
    /// By communicator: positions of the first ones in these two lists.
    topologies: HashMap<u64, [Option<u32>; 2]>,
    peers: Vec<Vec<u32>>,
    regions: Vec<Region>,
    properties: Vec<(u32, u32)>,
    /// Size of the file, bytes; `None` in memory.
    room: Option<usize>,
}

/// Smallest size of a definition, bytes, by kind. Ids count from 1, so the size of the file
/// bounds them. Without this, a few bytes could ask for a table of gigabytes.
mod least {
    pub const STRING: usize = 12;
    pub const MODULE: usize = 40;
    pub const CALL_PATH: usize = 16;
    pub const SIGNATURE: usize = 88;
    pub const COMPLETION_LIST: usize = 16;
    pub const PEERS: usize = 16;
    pub const REGION: usize = 24;
}

/// Puts `value` at `id`; `false` if the id is absurd or taken.
fn place<T: Clone>(table: &mut Vec<T>, id: u32, most: usize, value: T, empty: T) -> bool {
    let id = id as usize;
    if id == 0 || id > most.min(MAX_ID) || id > table.len() + (1 << 16) || (id < table.len()) {
        return false;
    }
    table.resize(id.max(1), empty);
    table.push(value);
    true
}

impl Definitions {
    /// The neighbours in a communicator.
    pub fn neighbours_in(&self, communicator: u64) -> Option<&Neighbours> {
        let [at, _] = self.topologies.get(&communicator)?;
        self.neighbours.get((*at)? as usize)
    }

    /// The place in a Cartesian communicator.
    pub fn grid_of(&self, communicator: u64) -> Option<&Grid> {
        let [_, at] = self.topologies.get(&communicator)?;
        self.grids.get((*at)? as usize)
    }

    /// An empty set for a file of `bytes` bytes.
    pub(crate) fn of_file(bytes: usize) -> Definitions {
        Definitions {
            room: Some(bytes),
            ..Definitions::default()
        }
    }

    /// Frees unused capacity of the lists.
    pub(crate) fn shrink(&mut self) {
        self.strings.shrink_to_fit();
        self.modules.shrink_to_fit();
        self.call_paths.shrink_to_fit();
        self.signatures.shrink_to_fit();
        self.completion_lists.shrink_to_fit();
        self.peers.shrink_to_fit();
        self.regions.shrink_to_fit();
    }

    /// Adds a definition; `false` if its id cannot be right.
    pub fn insert(&mut self, definition: Definition) -> bool {
        let room = self.room.unwrap_or(usize::MAX);
        match definition {
            Definition::String { id, bytes } => {
                let most = room / least::STRING;
                place(&mut self.strings, id, most, bytes, Vec::new())
            }
            Definition::Module {
                id,
                path,
                bias,
                build_id,
                ..
            } => place(
                &mut self.modules,
                id,
                room / least::MODULE,
                Some(Module {
                    path,
                    bias,
                    build_id,
                }),
                None,
            ),
            Definition::CallPath { id, frames } => {
                let most = room / least::CALL_PATH;
                place(&mut self.call_paths, id, most, frames, Vec::new())
            }
            Definition::Signature(signature) => place(
                &mut self.signatures,
                signature.id,
                room / least::SIGNATURE,
                signature,
                Signature::default(),
            ),
            Definition::CompletionList { id, entries } => {
                let most = room / least::COMPLETION_LIST;
                place(&mut self.completion_lists, id, most, entries, Vec::new())
            }
            Definition::Communicator(communicator) => {
                self.communicators.push(communicator);
                true
            }
            Definition::GroupHandle {
                id,
                communicator,
                kind,
                name,
            } => {
                self.group_handles.push((id, communicator, kind, name));
                true
            }
            Definition::Neighbours(neighbours) => {
                let [first, _] = self.topologies.entry(neighbours.communicator).or_default();
                first.get_or_insert(self.neighbours.len() as u32);
                self.neighbours.push(neighbours);
                true
            }
            Definition::Grid(grid) => {
                let [_, first] = self.topologies.entry(grid.communicator).or_default();
                first.get_or_insert(self.grids.len() as u32);
                self.grids.push(grid);
                true
            }
            Definition::Peers { id, ranks } => {
                let most = room / least::PEERS;
                place(&mut self.peers, id, most, ranks, Vec::new())
            }
            Definition::Region(region) => {
                let most = room / least::REGION;
                place(
                    &mut self.regions,
                    region.id,
                    most,
                    region,
                    Region::default(),
                )
            }
            Definition::Property { key, value } => {
                self.properties.push((key, value));
                true
            }
        }
    }

    /// Bytes of a string; empty if undefined.
    pub fn string_bytes(&self, id: u32) -> &[u8] {
        self.strings.get(id as usize).map_or(&[], Vec::as_slice)
    }

    /// A string as text; bytes that are not UTF-8 become U+FFFD.
    pub fn string(&self, id: u32) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.string_bytes(id))
    }

    /// A module.
    pub fn module(&self, id: u32) -> Option<&Module> {
        self.modules.get(id as usize)?.as_ref()
    }

    /// The frames of a call path, innermost first.
    pub fn call_path(&self, id: u32) -> &[Frame] {
        self.call_paths.get(id as usize).map_or(&[], Vec::as_slice)
    }

    /// Call paths by id; index 0 is the empty path.
    pub fn call_path_count(&self) -> usize {
        self.call_paths.len().max(1)
    }

    /// Signatures by id; index 0 and undefined ones have operation 0.
    pub fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    /// Clears flags of a signature whose calls turned out to be uncertain.
    pub fn clear_flags(&mut self, id: u32, flags: u16) {
        if let Some(signature) = self.signatures.get_mut(id as usize) {
            signature.flags &= !flags;
        }
    }

    /// Entries (delta, outcome) of a completion list.
    pub fn completion_list(&self, id: u32) -> &[(u32, u32)] {
        self.completion_lists
            .get(id as usize)
            .map_or(&[], Vec::as_slice)
    }

    /// Completion lists by id; undefined ones are empty.
    pub fn completion_lists(&self) -> &[Vec<(u32, u32)>] {
        &self.completion_lists
    }

    /// World ranks named by a `MPI_Win_post` or `MPI_Win_start` with this parameter; empty if
    /// unknown.
    pub fn peers(&self, parameter: i64) -> &[u32] {
        let id = parameter as u32 as usize;
        self.peers.get(id).map_or(&[], Vec::as_slice)
    }

    /// All lists of peers.
    pub fn lists_of_peers(&self) -> impl Iterator<Item = &[u32]> {
        self.peers.iter().skip(1).map(Vec::as_slice)
    }

    /// Regions by id; index 0 and undefined ones have kind 0.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Replaces the operations of signatures, which only the reader knows.
    pub fn rename_operations(&mut self, name: impl Fn(&Signature) -> u16) {
        for signature in &mut self.signatures {
            signature.operation = name(signature);
        }
    }

    /// Turns the calls with this number into collectives on a group of `size` ranks. Only the
    /// reader knows which operations are collectives.
    pub fn make_collective(&mut self, operation: u16, group: u64, size: u32) {
        for signature in &mut self.signatures {
            if signature.operation == operation {
                signature.flags |= flags::COLLECTIVE;
                signature.group = group;
                signature.send.peer = PEER_ANY;
            }
        }
        self.communicators.push(Communicator {
            id: group,
            size,
            ..Communicator::default()
        });
    }

    /// Values of the properties with this key, in order.
    pub fn properties(&self, key: &str) -> Vec<String> {
        let values = self
            .properties
            .iter()
            .filter(|(k, _)| self.string_bytes(*k) == key.as_bytes());
        values.map(|(_, v)| self.string(*v).into_owned()).collect()
    }

    /// Time that a sample stands for, ns; `None` if there are none. Of several rates, the highest is told: samples
    /// at a lower one stand for several of its periods.
    pub fn sample_period(&self) -> Option<u64> {
        const HIGHEST: u64 = 1_000_000;
        let rates = self.properties("sample_hz");
        let hz = rates.iter().filter_map(|hz| hz.parse().ok()).max()?;
        (hz > 0).then(|| 1_000_000_000 / HIGHEST.min(hz))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(id: u32) -> Definition {
        Definition::Signature(Signature {
            id,
            ..Signature::default()
        })
    }

    #[test]
    fn ids_that_the_file_has_no_room_for_are_refused() {
        let mut definitions = Definitions::of_file(10 * least::SIGNATURE);
        assert!(definitions.insert(signature(10)));
        assert!(!definitions.insert(signature(11)));
        assert!(!definitions.insert(signature(0)));
        assert_eq!(definitions.signatures().len(), 11);
        // In memory no file size limits the id.
        assert!(Definitions::default().insert(signature(11)));
    }

    #[test]
    fn no_definition_is_smaller_than_is_assumed() {
        let size = |definition: Definition| {
            let mut bytes = Vec::new();
            definition.encode(&mut bytes);
            bytes.len()
        };
        let (id, bytes, build_id) = (1, Vec::new(), Vec::new());
        assert_eq!(size(Definition::String { id, bytes }), least::STRING);
        let module = Definition::Module {
            id,
            path: 1,
            bias: 0,
            start: 0,
            end: 0,
            build_id,
        };
        assert_eq!(size(module), least::MODULE);
        let frames = Vec::new();
        assert_eq!(size(Definition::CallPath { id, frames }), least::CALL_PATH);
        assert_eq!(size(signature(1)), least::SIGNATURE);
        let region = Definition::Region(Region::default());
        assert_eq!(size(region), least::REGION);
        let entries = Vec::new();
        let list = Definition::CompletionList { id, entries };
        assert_eq!(size(list), least::COMPLETION_LIST);
    }
}
