//! Signatures: what repeats from call to call, found by the raw arguments.
//!
//! The hot path compares seven words with a direct-mapped cache. A miss asks the full
//! table; only a call never seen before is translated (world ranks, identities).

use std::collections::hash_map::Entry as MapEntry;

use laggard_trace::{Endpoint, Signature, flags};

use crate::groups::Group;
use crate::hash::FastMap;
use crate::statistics::{Head, Profile, Statistics};

/// Signatures of one location before the fallback takes over.
pub const MAX_SIGNATURES: usize = 65_536;
/// Fallback signatures, one for each (operation, flags, path, group), beyond that.
const MAX_FALLBACKS: usize = 65_536;
/// Signatures with a symmetric address: some room is left for calls without.
const MAX_WITH_ADDRESS: usize = MAX_SIGNATURES / 2;

/// A call as its arguments say it: ranks as the program numbers them.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Raw {
    /// Number of the call.
    pub operation: u16,
    /// Flags of the signature.
    pub flags: u16,
    /// Call path.
    pub path: u32,
    /// Communicator, window or file; null = none.
    pub group: *const Group,
    /// Send half; of a collective, root and bytes sent.
    pub send: Half,
    /// Receive half; of a collective, bytes received.
    pub receive: Half,
    /// Completion list of a completion, parameter of other calls.
    pub extra: u64,
}

type Words = [u64; 7];
const _: () = assert!(size_of::<Raw>() == size_of::<Words>());

impl Raw {
    /// A call without group, peers and volumes.
    #[inline(always)]
    pub fn new(operation: u16, path: u32) -> Self {
        Raw {
            operation,
            flags: 0,
            path,
            group: std::ptr::null(),
            send: NOBODY,
            receive: NOBODY,
            extra: 0,
        }
    }

    /// All of it. Put together from values that are in registers: a word read from memory
    /// whose parts were written one by one just now has to wait for them.
    #[inline(always)]
    fn words(&self) -> Words {
        [
            u64::from(self.operation) | u64::from(self.flags) << 16 | u64::from(self.path) << 32,
            self.group.addr() as u64,
            self.send.who,
            self.send.bytes,
            self.receive.who,
            self.receive.bytes,
            self.extra,
        ]
    }

    /// The group.
    #[inline(always)]
    pub fn group(&self) -> Option<&'static Group> {
        // SAFETY: groups are never freed.
        unsafe { self.group.as_ref() }
    }

    /// With ranks and identities that mean the same on every rank. `completes` tells
    /// what `extra` is.
    pub fn translated(&self, completes: bool) -> Signature {
        let group = self.group();
        let endpoint = |half: Half| Endpoint {
            peer: group.map_or(half.peer(), |group| group.world_rank(half.peer())),
            tag: half.tag(),
            bytes: half.bytes,
        };
        Signature {
            operation: self.operation,
            flags: self.flags,
            call_path: self.path,
            completes: if completes { self.extra as u32 } else { 0 },
            group: group.map_or(0, |group| group.id),
            send: endpoint(self.send),
            receive: endpoint(self.receive),
            parameter: if completes { 0 } else { self.extra as i64 },
            ..Signature::default()
        }
    }

    /// What is left when there are too many different calls.
    fn fallback(&self) -> Raw {
        Raw {
            send: NOBODY,
            receive: NOBODY,
            extra: 0,
            ..*self
        }
    }
}

/// One half of a message, peer and tag as the program gave them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Half {
    /// Peer and tag, as one word for the reason that [`Raw::words`] gives.
    who: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Half {
    /// Rank in the communicator, tag, bytes.
    #[inline(always)]
    pub const fn new(peer: i32, tag: i32, bytes: u64) -> Self {
        let who = peer as u32 as u64 | (tag as u32 as u64) << 32;
        Half { who, bytes }
    }

    /// No message, but a peer or root.
    pub const fn of(peer: i32) -> Self {
        Half::new(peer, 0, 0)
    }

    /// Rank in the communicator.
    #[inline(always)]
    pub const fn peer(self) -> i32 {
        self.who as i32
    }

    /// Tag.
    #[inline(always)]
    pub const fn tag(self) -> i32 {
        (self.who >> 32) as i32
    }
}

/// The half of a message that a call does not have.
pub const NOBODY: Half = Half::of(crate::constants::MPI_PROC_NULL);

/// Compares without a branch for each word, and without calling `memcmp`.
#[inline(always)]
fn same(a: &Words, b: &Words) -> bool {
    a.iter()
        .zip(b)
        .fold(0, |different, (a, b)| different | (a ^ b))
        == 0
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line {
    words: Words,
    id: u32,
    statistics: u32,
}

/// Number and place of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Id in the trace; never 0.
    pub id: u32,
    /// Index of its statistics.
    pub statistics: u32,
}

/// What a look-up of a call not in the cache gives.
#[derive(Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Seen before.
    Known(Found),
    /// New: its definition must be written.
    New(Found),
    /// Too many: the fallback, whose definition must be written if `new`, and the
    /// record carries what is missing in extensions.
    Fallback {
        /// The fallback signature.
        found: Found,
        /// Its first use.
        new: bool,
    },
    /// Not even a fallback can be had.
    Full,
}

/// Multipliers of a hash.
const K: Words = [
    0x9e37_79b9_7f4a_7c15,
    0xbf58_476d_1ce4_e5b9,
    0x94d0_49bb_1331_11eb,
    0xff51_afd7_ed55_8ccd,
    0xc4ce_b9fe_1a85_ec53,
    0xd6e8_feb8_6659_fd93,
    0xa076_1d64_78bd_642f,
];

/// The signatures of one location.
pub struct Signatures {
    cache: Box<[Line]>,
    all: FastMap<Words, Found>,
    fallbacks: usize,
    next_id: u32,
    /// Calls about symmetric memory that were seen once: what distinguishes them, by line.
    once: Box<[u64]>,
    /// Signatures with a symmetric address.
    with_address: usize,
    /// By index of the statistics.
    pub profile: Profile,
}

impl Signatures {
    const LINES_LOG2: u32 = 10;

    /// No signatures.
    pub fn new() -> Self {
        let empty = Line {
            words: [0; 7],
            id: 0,
            statistics: 0,
        };
        Signatures {
            cache: vec![empty; 1 << Self::LINES_LOG2].into_boxed_slice(),
            all: FastMap::default(),
            fallbacks: 0,
            next_id: 1,
            once: Box::default(),
            with_address: 0,
            profile: Profile::default(),
        }
    }

    #[inline(always)]
    fn line(words: &Words) -> usize {
        // Multiply-shift over all words: independent multiplications, one sum.
        let mut sum = 0u64;
        for (word, k) in words.iter().zip(K) {
            sum = sum.wrapping_add(word.wrapping_mul(k));
        }
        (sum >> (64 - Self::LINES_LOG2)) as usize
    }

    /// The signature of a call, if the cache has it.
    #[inline(always)]
    pub fn cached(&self, raw: &Raw) -> Option<Found> {
        let words = &raw.words();
        // SAFETY: `line` has LINES_LOG2 bits.
        let line = unsafe { self.cache.get_unchecked(Self::line(words)) };
        (same(&line.words, words) && line.id != 0).then_some(Found {
            id: line.id,
            statistics: line.statistics,
        })
    }

    /// Whether a call about symmetric memory is worth a signature of its own: it has one, or
    /// it was seen before, not long ago.
    pub fn repeats(&mut self, raw: &Raw) -> bool {
        if self.cached(raw).is_some() {
            return true;
        }
        let words = &raw.words();
        if self.all.contains_key(words) {
            return true;
        }
        if self.with_address >= MAX_WITH_ADDRESS {
            return false;
        }
        if self.once.is_empty() {
            self.once = vec![0; 1 << Self::LINES_LOG2].into_boxed_slice();
        }
        let key = words.iter().fold(1, |key: u64, word| {
            (key ^ word).wrapping_mul(K[0]).rotate_left(29)
        });
        let seen = std::mem::replace(&mut self.once[Self::line(words)], key);
        self.with_address += usize::from(seen == key);
        seen == key
    }

    /// The signature of a call that the cache does not have.
    pub fn look_up(&mut self, raw: &Raw) -> Lookup {
        let words = &raw.words();
        if let Some(&found) = self.all.get(words) {
            let line = &mut self.cache[Self::line(words)];
            *line = Line {
                words: *words,
                id: found.id,
                statistics: found.statistics,
            };
            return Lookup::Known(found);
        }
        if self.all.len() - self.fallbacks < MAX_SIGNATURES {
            let found = self.add(raw);
            self.all.insert(*words, found);
            return Lookup::New(found);
        }
        self.fall_back(raw.fallback())
    }

    fn fall_back(&mut self, fallback: Raw) -> Lookup {
        let full = self.fallbacks >= MAX_FALLBACKS;
        match self.all.entry(fallback.words()) {
            MapEntry::Occupied(known) => Lookup::Fallback {
                found: *known.get(),
                new: false,
            },
            MapEntry::Vacant(_) if full => Lookup::Full,
            MapEntry::Vacant(_) => {
                self.fallbacks += 1;
                let found = self.add(&fallback);
                self.all.insert(fallback.words(), found);
                Lookup::Fallback { found, new: true }
            }
        }
    }

    fn add(&mut self, raw: &Raw) -> Found {
        Found {
            id: self.next_id(),
            statistics: self.profile.add(Head {
                operation: raw.operation,
                flags: raw.flags,
                path: raw.path,
                bytes: raw.send.bytes.wrapping_add(raw.receive.bytes),
            }),
        }
    }

    /// A number for a signature that only one record uses.
    pub fn next_id(&mut self) -> u32 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    /// A signature that will not be looked up (the call made a new object): its
    /// statistics are those of all such calls of its operation and path.
    pub fn single(&mut self, operation: u16, path: u32, paused: u16) -> Found {
        let key = Raw {
            flags: !flags::PAUSED | paused,
            ..Raw::new(operation, path)
        };
        let statistics = match self.all.get(&key.words()) {
            Some(found) => found.statistics,
            None => {
                self.fallbacks += 1;
                let (flags, bytes) = (paused, 0);
                let statistics = self.profile.add(Head {
                    operation,
                    flags,
                    path,
                    bytes,
                });
                self.all.insert(key.words(), Found { id: 0, statistics });
                statistics
            }
        };
        Found {
            id: self.next_id(),
            statistics,
        }
    }

    /// The statistics of a signature.
    #[inline(always)]
    pub fn statistics(&mut self, found: Found) -> &mut Statistics {
        // SAFETY: all that is found was added to this profile.
        unsafe { self.profile.get(found.statistics) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(tag: i32) -> Raw {
        let mut raw = Raw::new(1, 3);
        raw.send = Half::new(1, tag, 100);
        raw
    }

    #[test]
    fn a_call_is_found_again() {
        let mut signatures = Signatures::new();
        assert_eq!(signatures.cached(&send(1)), None);
        let Lookup::New(first) = signatures.look_up(&send(1)) else {
            panic!()
        };
        let Lookup::New(second) = signatures.look_up(&send(2)) else {
            panic!()
        };
        assert_eq!((first.id, second.id), (1, 2));
        assert_eq!(signatures.look_up(&send(1)), Lookup::Known(first));
        assert_eq!(signatures.cached(&send(1)), Some(first));
        signatures.statistics(first).add(10);
        signatures.statistics(first).add(20);
        signatures.statistics(second).add(60);
        let profile = signatures.profile.entries();
        assert_eq!(profile.len(), 1);
        let entry = profile[0];
        assert_eq!(
            (entry.count, entry.total, entry.minimum, entry.maximum),
            (3, 90, 10, 60)
        );
        assert_eq!({ entry.sum_of_squares }, 100 + 400 + 3600);
        assert_eq!({ entry.bytes }, 300);
    }

    #[test]
    fn too_many_calls_share_a_fallback() {
        let mut signatures = Signatures::new();
        for tag in 0..MAX_SIGNATURES as i32 {
            assert!(matches!(signatures.look_up(&send(tag)), Lookup::New(_)));
        }
        let Lookup::Fallback { found, new: true } = signatures.look_up(&send(-5)) else {
            panic!()
        };
        assert_eq!(
            signatures.look_up(&send(-6)),
            Lookup::Fallback { found, new: false }
        );
        assert!(matches!(signatures.look_up(&send(5)), Lookup::Known(_)));
    }

    #[test]
    fn addresses_become_signatures_when_they_come_again() {
        let at = |address| Raw {
            extra: address,
            ..Raw::new(1152, 1)
        };
        let mut signatures = Signatures::new();
        assert!(!signatures.repeats(&at(8)));
        assert!(signatures.repeats(&at(8)));
        assert!(matches!(signatures.look_up(&at(8)), Lookup::New(_)));
        assert!(signatures.repeats(&at(8)));
        // What is seen once only never does.
        assert!((0..100_000).all(|n| !signatures.repeats(&at(1_000 + 8 * n))));
        let mut limited = Signatures::new();
        let mut repeat = |n: u64| {
            limited.repeats(&at(n));
            limited.repeats(&at(n))
        };
        assert_eq!(
            (1..100_000).filter(|&n| repeat(n)).count(),
            MAX_WITH_ADDRESS
        );
    }

    #[test]
    fn hashing_spreads_what_programs_do() {
        let lines: std::collections::HashSet<usize> = (0..64)
            .flat_map(|peer| (0..4).map(move |tag| (peer, tag)))
            .map(|(peer, tag)| {
                let mut raw = send(tag);
                raw.send = Half::new(peer, tag, 100);
                Signatures::line(&raw.words())
            })
            .collect();
        // 256 keys thrown into 1024 lines: 226 lines expected.
        assert!(lines.len() > 200, "{}", lines.len());
    }
}
