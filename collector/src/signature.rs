//! Signatures: the part of a call that repeats, found by the raw arguments.
//!
//! Usually the hot path compares seven words with one line of a table. Only a new call is
//! translated (world ranks, identities). A program with a new tag for every message reads one
//! line that is in no near cache, and no more: all its messages share their statistics.

use laggard_trace::{Endpoint, Signature};

use crate::groups::Group;
use crate::statistics::{Head, Profile, Statistics};

/// Signatures of one location before fallbacks are used.
pub const MAX_SIGNATURES: usize = 65_536;
/// Most fallback signatures, one for each (operation, flags, path, group).
const MAX_FALLBACKS: usize = 65_536;
/// Most signatures with a symmetric address; the rest is for calls without one.
const MAX_WITH_ADDRESS: usize = MAX_SIGNATURES / 2;

/// A call by its raw arguments, with ranks as the program numbers them.
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

    /// All words. Built from values in registers: a load of words whose parts were just stored
    /// one by one has to wait for the stores.
    #[inline(always)]
    fn words(&self) -> Words {
        [
            u64::from(self.operation) | u64::from(self.flags) << 16 | u64::from(self.path) << 32,
            self.group().map_or(0, |group| group.id),
            self.send.who,
            self.send.bytes,
            self.receive.who,
            self.receive.bytes,
            self.extra,
        ]
    }

    #[inline(always)]
    pub fn group(&self) -> Option<&'static Group> {
        // SAFETY: groups live as long as anything refers to them.
        unsafe { self.group.as_ref() }
    }

    /// Translates ranks and identities to values that mean the same on every rank. `completes`
    /// tells whether `extra` is a completion list.
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

    /// The fallback signature, for when there are too many different calls.
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
    /// Peer and tag in one word, for the reason given at [`Raw::words`].
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

/// A place in the table.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line {
    words: Words,
    /// Id; 0 = free.
    id: u32,
    statistics: u32,
}

impl Line {
    const EMPTY: Line = Line {
        words: [0; 7],
        id: 0,
        statistics: 0,
    };

    #[inline(always)]
    fn holds(&self, words: &Words) -> bool {
        same(&self.words, words) && self.id != 0
    }

    fn found(&self) -> Found {
        Found {
            id: self.id,
            statistics: self.statistics,
        }
    }
}

/// Number and place of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Id in the trace; never 0.
    pub id: u32,
    /// Index of its statistics.
    pub statistics: u32,
}

/// Result of looking up a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Seen before.
    Known(Found),
    /// New: its definition must be written.
    New(Found),
    /// Too many signatures: a fallback, whose definition must be written if `new`. The record
    /// gets the missing parts as extensions.
    Fallback {
        /// The fallback signature.
        found: Found,
        /// Whether this is its first use.
        new: bool,
    },
    /// No room even for a fallback.
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

/// Multiply-shift over all words: independent multiplications, one sum.
#[inline(always)]
fn hash(words: &Words) -> u64 {
    let products = words.iter().zip(K).map(|(word, k)| word.wrapping_mul(k));
    products.fold(0, u64::wrapping_add)
}

/// Shift that leaves the bits of a line number, for a table of `lines` lines.
fn shift(lines: usize) -> u32 {
    u64::BITS - lines.ilog2()
}

/// The signatures of one location.
// The fields that every call reads come first.
#[repr(C)]
pub struct Signatures {
    /// By index of the statistics.
    pub profile: Profile,
    /// Open-addressing table, at least half empty; its size is a power of two.
    lines: Box<[Line]>,
    /// Id of the last call's signature.
    last: u32,
    /// Line of the signature that followed that one last time.
    expected: u32,
    /// For each id, the line of the signature that followed it last time.
    next: Vec<u32>,
    /// Shift that turns a hash into a line number.
    shift: u32,
    /// Number of signatures, without fallbacks.
    count: usize,
    fallbacks: usize,
    next_id: u32,
    /// Keys of calls on symmetric memory that occurred once, by line.
    once: Box<[u64]>,
    /// Number of signatures with a symmetric address.
    with_address: usize,
}

impl Signatures {
    /// Initial number of lines, and number of places in [`once`](Self::once).
    const LINES: usize = 1 << 10;

    /// No signatures.
    pub fn new() -> Self {
        Signatures {
            lines: vec![Line::EMPTY; Self::LINES].into_boxed_slice(),
            shift: shift(Self::LINES),
            count: 0,
            fallbacks: 0,
            next_id: 1,
            next: Vec::new(),
            last: 0,
            expected: 0,
            once: Box::default(),
            with_address: 0,
            profile: Profile::default(),
        }
    }

    /// The signature of a call, if it has one.
    #[inline(always)]
    pub fn find(&self, raw: &Raw) -> Option<Found> {
        Some(self.lines[self.place(&raw.words())?].found())
    }

    /// The signature of a recorded call. Programs repeat themselves, so this first tries the
    /// signature that followed the last one before. That takes no hash, and its line has been
    /// prefetched: in a program with many signatures it would be far away by now.
    #[inline(always)]
    pub fn find_recorded(&mut self, raw: &Raw) -> Option<Found> {
        let words = raw.words();
        // SAFETY: a line number; the table never shrinks.
        let mut line = unsafe { self.lines.get_unchecked(self.expected as usize) };
        if !line.holds(&words) {
            let at = self.place(&words)?;
            if let Some(next) = self.next.get_mut(self.last as usize) {
                *next = at as u32;
            }
            line = &self.lines[at];
        }
        let found = line.found();
        self.last = found.id;
        self.expected = self.next.get(found.id as usize).copied().unwrap_or(0);
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let line = self.lines.as_ptr().wrapping_add(self.expected as usize);
            // SAFETY: a prefetch accepts any address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
        }
        Some(found)
    }

    /// Line number of these words.
    #[inline]
    fn place(&self, words: &Words) -> Option<usize> {
        let mut at = (hash(words) >> self.shift) as usize;
        loop {
            let line = self.lines.get(at)?;
            if line.holds(words) {
                return Some(at);
            }
            if line.id == 0 {
                return None;
            }
            at = (at + 1) & (self.lines.len() - 1);
        }
    }

    /// Adds a new signature to the table.
    fn insert(&mut self, line: Line) {
        if (self.count + self.fallbacks) * 2 > self.lines.len() {
            let lines = vec![Line::EMPTY; self.lines.len() * 2].into_boxed_slice();
            self.shift = shift(lines.len());
            let before = std::mem::replace(&mut self.lines, lines);
            let known = before.iter().filter(|line| line.id != 0);
            known.for_each(|line| self.put(*line));
        }
        self.put(line);
    }

    fn put(&mut self, line: Line) {
        let mut at = (hash(&line.words) >> self.shift) as usize;
        while self.lines[at].id != 0 {
            at = (at + 1) & (self.lines.len() - 1);
        }
        self.lines[at] = line;
    }

    /// Whether a call on symmetric memory deserves its own signature: it has one, or it
    /// occurred recently.
    pub fn repeats(&mut self, raw: &Raw) -> bool {
        if self.find(raw).is_some() {
            return true;
        }
        let words = &raw.words();
        if self.with_address >= MAX_WITH_ADDRESS {
            return false;
        }
        if self.once.is_empty() {
            self.once = vec![0; Self::LINES].into_boxed_slice();
        }
        let key = words.iter().fold(1, |key: u64, word| {
            (key ^ word).wrapping_mul(K[0]).rotate_left(29)
        });
        let place = (hash(words) >> shift(Self::LINES)) as usize;
        let seen = std::mem::replace(&mut self.once[place], key);
        self.with_address += usize::from(seen == key);
        seen == key
    }

    /// The signature of a call, made if new, or its fallback.
    pub fn look_up(&mut self, raw: &Raw) -> Lookup {
        if let Some(found) = self.find(raw) {
            return Lookup::Known(found);
        }
        if self.count < MAX_SIGNATURES {
            self.count += 1;
            return Lookup::New(self.add(raw));
        }
        let fallback = &raw.fallback();
        match self.find(fallback) {
            Some(found) => Lookup::Fallback { found, new: false },
            None if self.fallbacks >= MAX_FALLBACKS => Lookup::Full,
            None => {
                self.fallbacks += 1;
                let found = self.add(fallback);
                Lookup::Fallback { found, new: true }
            }
        }
    }

    fn add(&mut self, raw: &Raw) -> Found {
        let line = Line {
            words: raw.words(),
            id: self.next_id(),
            statistics: self.profile.of(Head {
                operation: raw.operation,
                flags: raw.flags,
                path: raw.path,
                bytes: raw.send.bytes.wrapping_add(raw.receive.bytes),
            }),
        };
        self.insert(line);
        // Signatures that are never looked up have ids, too, so ids may be large.
        let known = line.id as usize + 1;
        if known <= 4 * MAX_SIGNATURES {
            self.next.resize(known, 0);
        }
        line.found()
    }

    /// A number for a signature that only one record uses.
    pub fn next_id(&mut self) -> u32 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    /// A signature that is never looked up, because the call made a new object. All such calls
    /// of an operation and path share their statistics.
    pub fn single(&mut self, operation: u16, path: u32, paused: u16) -> Found {
        Found {
            id: self.next_id(),
            statistics: self.profile.of(Head {
                operation,
                flags: paused,
                path,
                bytes: 0,
            }),
        }
    }

    /// The statistics of a signature.
    #[inline(always)]
    pub fn statistics(&mut self, found: Found) -> &mut Statistics {
        // SAFETY: every signature found has statistics in this profile.
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
        assert_eq!(signatures.find(&send(1)), None);
        let Lookup::New(first) = signatures.look_up(&send(1)) else {
            panic!()
        };
        let Lookup::New(second) = signatures.look_up(&send(2)) else {
            panic!()
        };
        assert_eq!((first.id, second.id), (1, 2));
        assert_eq!(signatures.look_up(&send(1)), Lookup::Known(first));
        assert_eq!(signatures.find(&send(1)), Some(first));
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
    fn what_is_expected_is_found_and_what_is_not() {
        let mut signatures = Signatures::new();
        // Repetitions, changed repetitions, and new calls that make the table grow.
        let rounds = [0..3, 0..3, 1..5, 0..600, 0..600, 300..302, 0..2000, 0..2000];
        for tag in rounds.into_iter().flatten() {
            let known = signatures.find(&send(tag));
            assert_eq!(signatures.find_recorded(&send(tag)), known);
            if known.is_none() {
                signatures.look_up(&send(tag));
            }
        }
        assert_eq!(signatures.count, 2000);
        for tag in 0..4 {
            signatures.find_recorded(&send(tag));
        }
        let expected = signatures.lines[signatures.expected as usize];
        assert!(expected.holds(&send(4).words()));
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
        // A call that occurs once never repeats.
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
        let lines: std::collections::HashSet<u64> = (0..64)
            .flat_map(|peer| (0..4).map(move |tag| (peer, tag)))
            .map(|(peer, tag)| {
                let mut raw = send(tag);
                raw.send = Half::new(peer, tag, 100);
                hash(&raw.words()) >> shift(1024)
            })
            .collect();
        // 256 keys thrown into 1024 lines: 226 lines expected.
        assert!(lines.len() > 200, "{}", lines.len());
    }
}
