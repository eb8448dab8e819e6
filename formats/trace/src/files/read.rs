//! Reads one location's file: mapped, checked, nothing copied but definitions.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicU8, fence};

use memmap2::{Mmap, MmapOptions};
use zerocopy::FromBytes;

use crate::block::*;
use crate::files::advice::{advise, forget, pages_around};
use crate::files::node::{Joined, NODE_MAGIC};
use crate::{Damage, DamageKind, Definition, Definitions, Error, OpenCall, ProfileSoFar, Record};

/// Most bytes read for checksums while searching for the next block, in file sizes. Bounds the
/// search in a file made to slow it down.
const RESYNC_WORK: usize = 16;

/// Bytes of mapping after which a walk over the blocks releases pages.
const FORGET_EVERY: usize = 16 << 20;
/// Bytes to read ahead.
const AHEAD: usize = 256 << 10;
/// Files up to this size are read at once, bytes. A process may map some 65,000 files, and a
/// map takes whole pages.
pub(crate) const READ_AT_ONCE: u64 = 64 << 10;
/// Largest plausible world: readers keep a few bytes per rank.
pub(crate) const MAX_RANKS: u32 = 1 << 24;

/// One location of a trace.
#[derive(Debug)]
pub struct Location {
    pub(super) path: PathBuf,
    pub(super) bytes: Bytes,
    /// Offset of these bytes in the file.
    begin: usize,
    size: u64,
    /// The file's header.
    pub header: FileHeader,
    /// Blocks of records in file order.
    pub chunks: Vec<Chunk>,
    /// All definitions.
    pub definitions: Definitions,
    /// Runtime profile; empty if the file was not closed.
    pub profile: Vec<ProfileEntry>,
    /// The profile as it was told last, if the file was not closed.
    pub so_far: Option<ProfileSoFar>,
    /// Runtime profile of the program's regions; empty if the file was not closed.
    pub regions: Vec<RegionEntry>,
    /// Clock points in file order.
    pub clock: Vec<ClockPoint>,
    /// End of the recording; `None` if the file was not closed.
    pub end: Option<End>,
    /// The call that was open when the process ended or the file was closed.
    pub open_call: Option<OpenCall>,
    /// The file says that no call was open; this is different from an unreadable one.
    pub is_outside: bool,
    /// Damage of the file.
    pub damage: Vec<Damage>,
    /// By chunk: whether its checksum holds, once somebody asked.
    verdicts: OnceLock<Box<[AtomicU8]>>,
    /// End of the last block in the file, bytes.
    used: u64,
    /// The node file in which it is, and where it begins there.
    pub(crate) within: Option<(PathBuf, u64)>,
    /// Bytes after which pages are released: see [`Location::keep`].
    kept: usize,
}

/// Walks over a file whose writer is faster.
const OVERTAKEN: usize = 16;

/// Verdicts on a chunk.
const UNKNOWN: u8 = 0;
const SOUND: u8 = 1;
const WRONG: u8 = 2;

/// Storage of a location's bytes.
#[derive(Debug)]
pub(crate) enum Bytes {
    Mapped(Mmap),
    /// Mapped from several places of a file.
    Joined(Joined),
    /// The words, and the number of bytes used.
    Owned(Vec<u64>, usize),
}

impl Bytes {
    /// Reads up to `length` bytes.
    pub(crate) fn read(source: impl Read, length: usize) -> io::Result<Bytes> {
        let mut words = vec![0u64; length.div_ceil(8)];
        let mut left = &mut zerocopy::IntoBytes::as_mut_bytes(words.as_mut_slice())[..length];
        let read = io::copy(&mut source.take(length as u64), &mut left)?;
        Ok(Bytes::Owned(words, read as usize))
    }

    fn is_mapped(&self) -> bool {
        !matches!(self, Bytes::Owned(..))
    }

    pub(super) fn get(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Joined(joined) => joined.bytes(),
            Bytes::Owned(words, length) => {
                &zerocopy::IntoBytes::as_bytes(words.as_slice())[..*length]
            }
        }
    }
}

/// A block of records.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    /// Offset of its header in the file.
    pub offset: u64,
    /// Number of records, including extensions.
    pub count: u32,
    /// Base of its first offset, ticks.
    pub base: u64,
    /// `CLOCK_MONOTONIC` when the block was opened, ns.
    pub monotonic_ns: u64,
    sealed: bool,
}

impl Chunk {
    /// Its length in the file, bytes.
    fn bytes(&self) -> usize {
        BLOCK_HEADER + self.count as usize * size_of::<Record>()
    }
}

impl Location {
    /// Maps and checks a file. Damage inside it is listed and is no error.
    pub fn open(path: &Path) -> Result<Location, Error> {
        let (file, length) = open_file(path)?;
        Location::map(path, file, length)
    }

    /// As [`open`](Self::open), for an open file; `path` is for messages.
    pub fn from_file(path: &Path, file: File) -> Result<Location, Error> {
        let length = file.metadata().map(|metadata| metadata.len());
        let length = length.map_err(|source| Error::Open {
            path: path.to_owned(),
            source,
        })?;
        Location::map(path, file, length)
    }

    fn map(path: &Path, file: File, length: u64) -> Result<Location, Error> {
        let failed = |source| Error::Open {
            path: path.to_owned(),
            source,
        };
        if length < size_of::<FileHeader>() as u64 {
            return Err(Error::NotATrace {
                path: path.to_owned(),
                why: "shorter than a file header",
            });
        }
        // Closed files are cut to their last byte. Others may grow, and only a map shows them in order.
        let may_grow = length.is_multiple_of(PAGE as u64);
        if length <= READ_AT_ONCE && !may_grow {
            let bytes = Bytes::read(file, length as usize).map_err(failed)?;
            return Location::from_source(path, bytes);
        }
        // SAFETY: nobody changes a trace during its analysis. If somebody shortened it, the
        // process would get SIGBUS, as every reader of mapped files does.
        let map = unsafe { MmapOptions::new().map(&file) }.map_err(failed)?;
        Location::from_source(path, Bytes::Mapped(map))
    }

    /// As [`open`](Self::open), for a file's bytes in memory; `path` is for messages.
    pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Location, Error> {
        let bytes = Bytes::read(bytes, bytes.len()).map_err(|source| Error::Open {
            path: path.to_owned(),
            source,
        })?;
        Location::from_source(path, bytes)
    }

    pub(crate) fn from_source(path: &Path, bytes: Bytes) -> Result<Location, Error> {
        let header = check_header(path, bytes.get())?;
        let failed = |source| Error::Open {
            path: path.to_owned(),
            source,
        };
        let mut location = Location {
            path: path.to_owned(),
            size: bytes.get().len() as u64,
            definitions: Definitions::of_file(bytes.get().len()),
            bytes,
            header,
            ..Location::empty()
        };
        location.walk();
        location.definitions.shrink();
        if location.size <= READ_AT_ONCE && location.bytes.is_mapped() {
            // A process cannot map too many.
            let bytes = location.bytes.get();
            location.bytes = Bytes::read(bytes, bytes.len()).map_err(failed)?;
        }
        location.keep_records();
        Ok(location)
    }

    /// A location without any calls.
    pub fn empty() -> Location {
        Location {
            path: PathBuf::new(),
            bytes: Bytes::Owned(Vec::new(), 0),
            begin: 0,
            size: 0,
            header: FileHeader::new(),
            chunks: Vec::new(),
            definitions: Definitions::of_file(0),
            profile: Vec::new(),
            so_far: None,
            regions: Vec::new(),
            clock: Vec::new(),
            end: None,
            open_call: None,
            is_outside: false,
            damage: Vec::new(),
            verdicts: OnceLock::new(),
            used: 0,
            within: None,
            kept: 1,
        }
    }

    /// Whether the chunk at this position may have more records once the file is opened again.
    pub fn may_grow(&self, chunk: usize) -> bool {
        let is_open = |last: &Chunk| !last.sealed && self.end.is_none();
        chunk + 1 == self.chunks.len() && self.chunks.last().is_some_and(is_open)
    }

    /// Frees all bytes of the file but its records: the other blocks are decoded.
    fn keep_records(&mut self) {
        let Bytes::Owned(words, length) = &self.bytes else {
            return;
        };
        let end = |chunk: &Chunk| {
            let records = chunk.count as usize * size_of::<Record>();
            let header = header_at(self.bytes.get(), chunk.offset as usize);
            let length = header.map_or(0, |header| header.length as usize);
            chunk.offset as usize + BLOCK_HEADER + length.max(records)
        };
        let first = self.chunks.iter().map(|chunk| chunk.offset as usize).min();
        let begin = first.unwrap_or(*length) / 8;
        let end = self.chunks.iter().map(end).max().unwrap_or(0).min(*length);
        let kept = end.saturating_sub(begin * 8);
        let words = words[begin..begin + kept.div_ceil(8)].to_vec();
        (self.bytes, self.begin) = (Bytes::Owned(words, kept), begin * 8);
    }

    /// The bytes of the file from `offset` on, as far as they are in memory.
    fn at(&self, offset: u64) -> &[u8] {
        let offset = (offset as usize).checked_sub(self.begin);
        offset
            .and_then(|offset| self.bytes.get().get(offset..))
            .unwrap_or(&[])
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the file, bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// End of the last block, bytes. A file that is still written has room after it, which its
    /// writer gives back in the end.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// The records of a chunk, straight from the mapped file.
    pub fn records(&self, chunk: &Chunk) -> &[Record] {
        let length = chunk.count as usize * size_of::<Record>();
        self.at(chunk.offset)
            .get(BLOCK_HEADER..BLOCK_HEADER + length)
            .and_then(|bytes| <[Record]>::ref_from_bytes(bytes).ok())
            .unwrap_or(&[])
    }

    /// Whether the chunk's checksum holds (unsealed chunks have none). The first time, reads all of
    /// it.
    pub fn verify(&self, chunk: &Chunk) -> bool {
        self.fetch(chunk);
        if !chunk.sealed {
            return true;
        }
        let unknown = || self.chunks.iter().map(|_| AtomicU8::new(UNKNOWN)).collect();
        let verdicts: &[AtomicU8] = self.verdicts.get_or_init(unknown);
        let at = self
            .chunks
            .binary_search_by_key(&chunk.offset, |known| known.offset);
        let verdict = at.ok().and_then(|at| verdicts.get(at));
        match verdict.map(|verdict| verdict.load(Relaxed)) {
            Some(WRONG) => return false,
            Some(SOUND) => return true,
            _ => {}
        }
        let is_sound = self.is_sound(chunk);
        if let Some(verdict) = verdict {
            verdict.store(if is_sound { SOUND } else { WRONG }, Relaxed);
        }
        is_sound
    }

    fn is_sound(&self, chunk: &Chunk) -> bool {
        let bytes = self.at(chunk.offset);
        let Some(header) = header_at(bytes, 0) else {
            return false;
        };
        bytes
            .get(BLOCK_HEADER..BLOCK_HEADER + header.length as usize)
            .is_some_and(|payload| header.expected_checksum(payload) == header.checksum)
    }

    /// Tells the kernel that a chunk is read next and, from time to time, the bytes after it.
    /// [`Location::verify`] does so.
    pub fn fetch(&self, chunk: &Chunk) {
        if self.bytes.is_mapped() {
            let map = self.bytes.get();
            let start = chunk.offset as usize;
            let end = start + chunk.bytes();
            let is_alone = start.div_ceil(AHEAD / 2) == end.div_ceil(AHEAD / 2);
            let end = if is_alone { end } else { start + AHEAD };
            let wanted = map.get(start..end.min(map.len())).unwrap_or(&[]);
            advise(&pages_around(wanted), libc::MADV_WILLNEED);
        }
    }

    /// About so many bytes of it may stay in memory behind a reader that goes through it in order: each release takes
    /// time, above all if several threads share the memory.
    pub fn keep(&mut self, bytes: usize) {
        self.kept = bytes.max(1);
    }

    /// A reader that goes through it in order has read a chunk. Tells the kernel now and then that what it has read will
    /// not be needed again soon.
    pub fn pass(&self, chunk: &Chunk) {
        let start = chunk.offset as usize;
        let begun = start / self.kept;
        if begun < (start + chunk.bytes()) / self.kept {
            self.forget_until(begun * self.kept, chunk);
        }
    }

    /// Tells the kernel that a chunk's pages will not be needed again soon.
    pub fn release(&self, chunk: &Chunk) {
        self.forget_until(chunk.offset as usize, chunk);
    }

    /// Forgets the pages from an offset to the end of a chunk.
    fn forget_until(&self, start: usize, chunk: &Chunk) {
        if self.bytes.is_mapped() {
            let end = chunk.offset as usize + chunk.bytes();
            let map = self.bytes.get();
            // Kernels also map pages before the one that was touched.
            forget(map.get(start.saturating_sub(16 * PAGE)..end).unwrap_or(&[]));
        }
    }

    fn walk(&mut self) {
        let bytes = std::mem::replace(&mut self.bytes, Bytes::Owned(Vec::new(), 0));
        let is_mapped = bytes.is_mapped();
        for _ in 0..OVERTAKEN {
            self.walk_blocks(bytes.get(), is_mapped);
            if !self.is_overtaken(bytes.get()) {
                break;
            }
            self.chunks.clear();
            self.definitions = Definitions::of_file(bytes.get().len());
            self.profile.clear();
            self.so_far = None;
            self.regions.clear();
            self.clock.clear();
            self.damage.clear();
            self.end = None;
        }
        if is_mapped {
            forget(bytes.get());
            // By default the kernel reads some MB around each touched page. With many locations
            // that exceeds memory, and the same data is read again and again.
            advise(&pages_around(bytes.get()), libc::MADV_RANDOM);
        }
        self.bytes = bytes;
    }

    /// Whether the writer has ended an open block of records since it was read, and has used what was
    /// left of it for blocks that a walk does not find.
    fn is_overtaken(&self, bytes: &[u8]) -> bool {
        fence(Acquire);
        let is_sealed = |chunk: &Chunk| {
            let header = header_at(bytes, chunk.offset as usize);
            header.is_none_or(|header| header.magic != BLOCK_MAGIC || header.flags & SEALED != 0)
        };
        let mut before = self
            .chunks
            .split_last()
            .map_or(&[][..], |(_, before)| before)
            .iter();
        before.any(|chunk| !chunk.sealed && is_sealed(chunk))
            || self.end.is_some()
                && self
                    .chunks
                    .last()
                    .is_some_and(|last| !last.sealed && is_sealed(last))
    }

    fn walk_blocks(&mut self, bytes: &[u8], mapped: bool) {
        let mut at = size_of::<FileHeader>();
        let mut work = bytes.len().saturating_mul(RESYNC_WORK);
        let mut passed = at;
        let mut open_definitions = None;
        // End of the records in the last block, if that is being filled.
        let mut used = None;
        let forget = |passed: &[u8]| {
            if mapped {
                forget(passed);
            }
        };
        loop {
            if at - passed > FORGET_EVERY {
                forget(&bytes[passed..at]);
                passed = at;
            }
            let to_page = PAGE - at % PAGE;
            if to_page < BLOCK_HEADER {
                at += to_page;
            }
            let Some(header) = header_at(bytes, at) else {
                break;
            };
            if header.magic == 0 && header.length == 0 {
                if let Some(next) = bytes[at..].iter().position(|&b| b != 0) {
                    if header_at(bytes, at).is_some_and(|header| header.magic != 0) {
                        // Its writer has gone on meanwhile.
                        continue;
                    }
                    // Only an open file ends in zeros; bytes after them mean damage.
                    let from = at + next;
                    if !self.resync(bytes, &mut at, from, &mut work) {
                        break;
                    }
                    continue;
                }
                break;
            }
            if header.magic != BLOCK_MAGIC {
                let from = at;
                if !self.resync(bytes, &mut at, from, &mut work) {
                    break;
                }
                continue;
            }
            let available = bytes.len() - at - BLOCK_HEADER;
            if header.flags & SEALED == 0 {
                let available = (header.length as usize).min(available);
                let before = (self.chunks.len(), self.damage.len());
                self.open_block(bytes, at, &header, available);
                fence(Acquire);
                if header_at(bytes, at) != Some(header) {
                    // Its writer has ended it meanwhile, and may use the rest for other blocks.
                    self.chunks.truncate(before.0);
                    self.damage.truncate(before.1);
                    continue;
                }
                if header.kind == BlockKind::Definitions as u16 {
                    self.take_open(&mut open_definitions);
                    let start = at + BLOCK_HEADER;
                    open_definitions = Some((at, &bytes[start..start + available]));
                }
                let open = self.chunks.last().filter(|open| open.offset == at as u64);
                used = open.map(|open| match open.count {
                    // Its writer may use the place for another block.
                    0 => at,
                    count => at + BLOCK_HEADER + count as usize * size_of::<Record>(),
                });
                at += BLOCK_HEADER + align(available);
                continue;
            }
            used = None;
            // Now that it is sealed all of its header is there.
            fence(Acquire);
            let Some(header) = header_at(bytes, at) else {
                break;
            };
            if header.kind == BlockKind::Definitions as u16 {
                self.take_open(&mut open_definitions);
            }
            if header.length as usize > available {
                self.damage.push(Damage {
                    offset: at as u64,
                    what: DamageKind::Structure,
                });
                let from = at + BLOCK_ALIGN;
                if !self.resync(bytes, &mut at, from, &mut work) {
                    break;
                }
                continue;
            }
            let payload = &bytes[at + BLOCK_HEADER..at + BLOCK_HEADER + header.length as usize];
            if !self.sealed_block(at, &header, payload) {
                self.damage.push(Damage {
                    offset: at as u64,
                    what: DamageKind::Checksum,
                });
                let next = at + BLOCK_HEADER + align(header.length as usize);
                let follows = header_at(bytes, next).is_none_or(|h| h.magic == BLOCK_MAGIC);
                if !follows {
                    let from = at + BLOCK_ALIGN;
                    if !self.resync(bytes, &mut at, from, &mut work) {
                        break;
                    }
                    continue;
                }
            }
            at += BLOCK_HEADER + align(header.length as usize);
        }
        self.used = used.unwrap_or(at).min(bytes.len()) as u64;
        // A program that runs goes on defining. What the records that were found use was defined
        // before them, so it is there now.
        self.take_open(&mut open_definitions);
    }

    /// Takes in unsealed definitions.
    fn take_open(&mut self, open: &mut Option<(usize, &[u8])>) {
        if let Some((at, payload)) = open.take() {
            self.take_definitions(at, payload, u32::MAX);
        }
    }

    /// Finds the next sealed block with a valid checksum at or after `from`.
    fn resync(&mut self, bytes: &[u8], at: &mut usize, from: usize, work: &mut usize) -> bool {
        self.damage.push(Damage {
            offset: *at as u64,
            what: DamageKind::NoBlock,
        });
        let mut probe = from.next_multiple_of(BLOCK_ALIGN);
        while let Some(header) = header_at(bytes, probe) {
            if header.magic == BLOCK_MAGIC && header.flags & SEALED != 0 {
                let start = probe + BLOCK_HEADER;
                if let Some(payload) = bytes.get(start..start + header.length as usize) {
                    let Some(left) = work.checked_sub(payload.len() + BLOCK_HEADER) else {
                        return false;
                    };
                    *work = left;
                    if header.expected_checksum(payload) == header.checksum {
                        *at = probe;
                        return true;
                    }
                }
            }
            probe += BLOCK_ALIGN;
        }
        false
    }

    fn open_block(&mut self, bytes: &[u8], at: usize, header: &BlockHeader, available: usize) {
        let start = at + BLOCK_HEADER;
        if header.kind == BlockKind::OpenCall as u16 {
            self.take_open_call(&bytes[start..start + available]);
            return;
        }
        if header.kind == BlockKind::ProfileSoFar as u16 {
            self.take_so_far(&bytes[start..start + available]);
            return;
        }
        self.damage.push(Damage {
            offset: at as u64,
            what: DamageKind::OpenBlock,
        });
        if header.kind != BlockKind::Records as u16 {
            return;
        }
        let length = available / size_of::<Record>() * size_of::<Record>();
        let Ok(records) = <[Record]>::ref_from_bytes(&bytes[start..start + length]) else {
            return;
        };
        let count = records
            .iter()
            .position(|r| r.signature == 0)
            .unwrap_or(records.len()) as u32;
        self.chunks.push(Chunk {
            offset: at as u64,
            count,
            base: header.base,
            monotonic_ns: header.monotonic_ns,
            sealed: false,
        });
    }

    /// Takes in a sealed block; `false` if its checksum or sizes are wrong.
    fn sealed_block(&mut self, at: usize, header: &BlockHeader, payload: &[u8]) -> bool {
        if header.kind == BlockKind::Records as u16 {
            // Records are checked when read: opening does not touch them.
            if header.count as usize * size_of::<Record>() != payload.len() {
                return false;
            }
            self.chunks.push(Chunk {
                offset: at as u64,
                count: header.count,
                base: header.base,
                monotonic_ns: header.monotonic_ns,
                sealed: true,
            });
            return true;
        }
        if header.kind == BlockKind::Padding as u16 {
            return true;
        }
        if header.expected_checksum(payload) != header.checksum {
            return false;
        }
        match header.kind {
            k if k == BlockKind::Definitions as u16 => {
                self.take_definitions(at, payload, header.count)
            }
            k if k == BlockKind::Profile as u16 => {
                self.profile.extend(entries::<ProfileEntry>(payload))
            }
            k if k == BlockKind::Regions as u16 => {
                self.regions.extend(entries::<RegionEntry>(payload))
            }
            k if k == BlockKind::Clock as u16 => self.clock.extend(entries::<ClockPoint>(payload)),
            k if k == BlockKind::OpenCall as u16 => self.take_open_call(payload),
            k if k == BlockKind::ProfileSoFar as u16 => self.take_so_far(payload),
            k if k == BlockKind::End as u16 => self.end = entries::<End>(payload).next(),
            _ => {}
        }
        true
    }

    fn take_so_far(&mut self, payload: &[u8]) {
        let number = |told: &ProfileSoFar| told.number;
        let told = ProfileSoFar::read(payload);
        if told.as_ref().map(number) > self.so_far.as_ref().map(number) {
            self.so_far = told;
        }
    }

    fn take_open_call(&mut self, payload: &[u8]) {
        self.open_call = OpenCall::read(payload);
        self.is_outside = OpenCall::is_none(payload);
    }

    /// Takes in `count` definitions, or fewer if one has kind 0.
    fn take_definitions(&mut self, at: usize, mut payload: &[u8], count: u32) {
        for _ in 0..count {
            if payload.get(..2).is_none_or(|kind| kind == [0, 0]) {
                break;
            }
            let taken = Definition::decode(payload);
            let (definition, size) = match taken {
                Ok(taken) => taken,
                Err(()) => break,
            };
            let is_known = u16::from_le_bytes([payload[0], payload[1]]) <= Definition::LAST_KIND;
            if is_known && !definition.is_some_and(|found| self.definitions.insert(found)) {
                self.damage.push(Damage {
                    offset: at as u64,
                    what: DamageKind::Definition,
                });
            }
            payload = payload.get(size..).unwrap_or(&[]);
        }
    }
}

/// Opens a file, which must be regular, and returns its size in bytes.
pub(crate) fn open_file(path: &Path) -> Result<(File, u64), Error> {
    let failed = |source| Error::Open {
        path: path.to_owned(),
        source,
    };
    let irregular = || Error::NotATrace {
        path: path.to_owned(),
        why: "not a regular file",
    };
    match laggard_files::open(path) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(irregular()),
        opened => opened.map_err(failed),
    }
}

/// Copies the fixed-size entries of a payload.
fn entries<T: FromBytes>(payload: &[u8]) -> impl Iterator<Item = T> + '_ {
    payload
        .chunks_exact(size_of::<T>())
        .filter_map(|bytes| T::read_from_bytes(bytes).ok())
}

pub(super) fn header_at(bytes: &[u8], at: usize) -> Option<BlockHeader> {
    let bytes = bytes.get(at..at.checked_add(BLOCK_HEADER)?)?;
    // SAFETY: bytes of a slice, at any alignment. A writer may change them meanwhile, so that each
    // look at them has to be one.
    let bytes = unsafe { bytes.as_ptr().cast::<[u8; BLOCK_HEADER]>().read_volatile() };
    BlockHeader::read_from_bytes(&bytes).ok()
}

fn check_header(path: &Path, bytes: &[u8]) -> Result<FileHeader, Error> {
    let wrong = |why| Error::NotATrace {
        path: path.to_owned(),
        why,
    };
    let header = bytes
        .get(..128)
        .and_then(|b| FileHeader::read_from_bytes(b).ok())
        .ok_or_else(|| wrong("shorter than a file header"))?;
    if header.magic == NODE_MAGIC {
        return Err(wrong("a node file, under the name of a location's"));
    }
    if header.magic != FILE_MAGIC {
        return Err(wrong("wrong first bytes"));
    }
    if header.byte_order != BYTE_ORDER {
        return Err(wrong("written on a machine of the other byte order"));
    }
    if header.version > VERSION {
        return Err(Error::Version {
            path: path.to_owned(),
            found: header.version,
            supported: VERSION,
        });
    }
    if header.version == 0 || header.expected_checksum() != header.checksum {
        return Err(wrong("damaged file header"));
    }
    if header.rank >= header.ranks || header.ranks > MAX_RANKS || header.ticks_per_s == 0 {
        return Err(wrong("impossible values in the file header"));
    }
    Ok(header)
}
