//! Dense numbers for call paths and groups of an agent.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use laggard_trace::{Communicator, Definitions, Frame};
use rustc_hash::FxBuildHasher;
use xxhash_rust::xxh3::Xxh3;

use crate::basics::room::make_room;

/// Key of a call path: the same in every process of the run.
pub type PathKey = [u64; 2];

/// Values, numbered in order of their first appearance.
#[derive(Clone, Debug)]
pub struct Interner<K> {
    /// By the hashes of values: their numbers. Values are kept once: there is one such list for each rank.
    numbers: HashTable<u32>,
    /// Values by number.
    pub values: Vec<K>,
}

impl<K> Default for Interner<K> {
    fn default() -> Self {
        Interner {
            numbers: HashTable::new(),
            values: Vec::new(),
        }
    }
}

fn hash<K: Hash>(value: &K) -> u64 {
    FxBuildHasher.hash_one(value)
}

impl<K: Hash + Eq + Copy> Interner<K> {
    /// The number of a value; adds it if it is new.
    pub fn number(&mut self, value: K) -> u32 {
        let values = &mut self.values;
        let is_it = |&number: &u32| values[number as usize] == value;
        let hash_of = |&number: &u32| hash(&values[number as usize]);
        match self.numbers.entry(hash(&value), is_it, hash_of) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                let number = values.len() as u32;
                place.insert(number);
                make_room(values, 1, 0);
                values.push(value);
                number
            }
        }
    }

    /// The number of a value, if it has one.
    pub fn find(&self, value: &K) -> Option<u32> {
        let is_it = |&number: &u32| self.values[number as usize] == *value;
        self.numbers.find(hash(value), is_it).copied()
    }
}

impl<K: Hash + Eq + Copy> FromIterator<K> for Interner<K> {
    fn from_iter<I: IntoIterator<Item = K>>(values: I) -> Self {
        let mut interner = Interner::default();
        for value in values {
            interner.number(value);
        }
        interner
    }
}

/// Key of a call path: a hash of the process-independent parts of its frames (build id or path of
/// the module and offset in it; file, function and line).
pub fn path_key(definitions: &Definitions, id: u32) -> PathKey {
    let mut hash = Xxh3::new();
    for frame in definitions.call_path(id) {
        match *frame {
            Frame::Native { module, offset } => {
                if let Some(module) = definitions.module(module) {
                    let text = definitions.string_bytes(module.path);
                    hash.update(if module.build_id.is_empty() {
                        text
                    } else {
                        &module.build_id
                    });
                }
                hash.update(&offset.to_le_bytes());
            }
            Frame::Source {
                file,
                function,
                line,
            } => {
                hash.update(definitions.string_bytes(file));
                hash.update(&[0]);
                hash.update(definitions.string_bytes(function));
                hash.update(&line.to_le_bytes());
            }
        }
    }
    split(hash.digest128())
}

/// That of a path without frames.
pub fn no_path() -> PathKey {
    split(Xxh3::new().digest128())
}

fn split(digest: u128) -> PathKey {
    [digest as u64, (digest >> 64) as u64]
}

/// A communicator, window or file, as far as this agent's locations know it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Group {
    /// The same on all ranks.
    pub id: u64,
    /// Members in all, 0 = unknown here.
    pub size: u32,
    /// Members whose traces this agent holds.
    pub local: u32,
}

/// Members of a communicator (both groups of an intercommunicator), 0 = unknown.
pub fn size_of(communicator: &Communicator) -> u32 {
    match communicator.kind {
        0 => communicator.size,
        _ if communicator.remote_members.is_empty() => 0,
        _ => communicator
            .size
            .saturating_add(communicator.remote_members.len() as u32),
    }
}
