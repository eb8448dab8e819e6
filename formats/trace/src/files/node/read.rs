//! Reads a node file: finds the extents of each location and joins them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use zerocopy::FromBytes;

use super::*;
use crate::files::read::{Bytes, MAX_RANKS, READ_AT_ONCE, open_file};
use crate::{Damage, DamageKind, Error, Location, file_name};

/// Bytes of the index read at a time.
const INDEX_PIECE: usize = 64 << 10;

/// A node file and its index. Holds a descriptor; locations do not.
#[derive(Debug)]
pub struct NodeFile {
    path: PathBuf,
    file: File,
    /// Identity of the run.
    pub run_id: [u8; 16],
    /// Identity of the host.
    pub host_id: u64,
    /// Number of index entries that are unfinished, contradict others, or are missing.
    pub unusable: u64,
    places: BTreeMap<(u32, u32), Place>,
}

/// The place of a location's bytes.
#[derive(Debug, Default)]
struct Place {
    /// Offset and bytes.
    parts: Vec<(u64, u64)>,
    /// An extent that follows is unusable.
    is_cut: bool,
}

impl Place {
    fn size(&self) -> u64 {
        self.parts.iter().map(|part| part.1).sum()
    }
}

/// An extent according to its index entry.
struct Found {
    entry: IndexEntry,
    used: u64,
    /// No other entry claims it.
    is_alone: bool,
}

impl Found {
    fn end(&self) -> u64 {
        self.entry.offset + u64::from(self.entry.length)
    }
}

impl NodeFile {
    /// Opens a file and reads its index. Faults in parts of it are no error: a location ends
    /// before its first unusable extent.
    pub fn open(path: &Path) -> Result<NodeFile, Error> {
        let failed = |source| Error::Open {
            path: path.to_owned(),
            source,
        };
        let (file, size) = open_file(path)?;
        let mut head = [0; HEAD as usize];
        if size < HEAD + FIRST_ENTRIES * ENTRY {
            return Err(not_a_trace(path, "shorter than a node file's index"));
        }
        file.read_exact_at(&mut head, 0).map_err(failed)?;
        let header = check_header(path, &head)?;
        let mut index = Index::default();
        index.read(&file, size, &head).map_err(failed)?;
        let unusable = index.unusable(&head);
        Ok(NodeFile {
            path: path.to_owned(),
            file,
            run_id: header.run_id,
            host_id: header.host_id,
            unusable,
            places: index.places(size),
        })
    }

    /// Rank, thread and bytes of each location, in the order of rank and thread.
    pub fn locations(&self) -> impl Iterator<Item = (u32, u32, u64)> + '_ {
        let places = self.places.iter();
        places.map(|(&(rank, thread), place)| (rank, thread, place.size()))
    }

    /// Opens one of its locations, as [`Location::open`] does a file. Its path is the node
    /// file's path and the name that a file of its own would have.
    pub fn location(&self, rank: u32, thread: u32) -> Result<Location, Error> {
        let path = self.path.join(file_name(rank, thread));
        let Some(place) = self.places.get(&(rank, thread)) else {
            let source = io::ErrorKind::NotFound.into();
            return Err(Error::Open { path, source });
        };
        let bytes = self.bytes(place).map_err(|source| Error::Open {
            path: path.clone(),
            source,
        })?;
        let mut location = Location::from_source(&path, bytes)?;
        let begin = place.parts.first();
        location.within = begin.map(|&(begin, _)| (self.path.clone(), begin));
        if place.is_cut {
            location.damage.push(Damage {
                offset: place.size(),
                what: DamageKind::Extent,
            });
        }
        Ok(location)
    }

    fn bytes(&self, place: &Place) -> io::Result<Bytes> {
        let size = place.size();
        if size > READ_AT_ONCE {
            return Joined::map(&self.file, &place.parts).map(Bytes::Joined);
        }
        let mut bytes = vec![0; size as usize];
        let mut rest = bytes.as_mut_slice();
        for &(offset, length) in &place.parts {
            let (part, others) = rest.split_at_mut(length as usize);
            self.file.read_exact_at(part, offset)?;
            rest = others;
        }
        Bytes::read(&*bytes, bytes.len())
    }
}

fn not_a_trace(path: &Path, why: &'static str) -> Error {
    Error::NotATrace {
        path: path.to_owned(),
        why,
    }
}

fn check_header(path: &Path, head: &[u8; HEAD as usize]) -> Result<NodeHeader, Error> {
    let wrong = |why| not_a_trace(path, why);
    let Ok((header, _)) = NodeHeader::read_from_prefix(head) else {
        return Err(wrong("shorter than a node file's header"));
    };
    if header.magic != NODE_MAGIC {
        return Err(wrong("wrong first bytes for a node file"));
    }
    if header.byte_order != BYTE_ORDER {
        return Err(wrong("written on a machine of the other byte order"));
    }
    if header.version > NODE_VERSION {
        return Err(Error::Version {
            path: path.to_owned(),
            found: header.version,
            supported: NODE_VERSION,
        });
    }
    if header.version == 0 || header.expected_checksum() != header.checksum {
        return Err(wrong("damaged node file header"));
    }
    Ok(header)
}

fn word(head: &[u8; HEAD as usize], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&head[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// The content of the index blocks.
#[derive(Default)]
struct Index {
    found: Vec<Found>,
    /// Number of entries that are neither empty nor valid.
    odd: u64,
    /// The blocks: offset and end.
    blocks: Vec<(u64, u64)>,
}

impl Index {
    fn read(&mut self, file: &File, size: u64, head: &[u8; HEAD as usize]) -> io::Result<()> {
        for block in 0..BLOCKS {
            let offset = word(head, BLOCKS_AT + block * 8);
            let end = offset.checked_add(entries_of(block) * ENTRY);
            let Some(end) = end.filter(|&end| end <= size && offset >= HEAD) else {
                // The number of entries shows that some are missing.
                continue;
            };
            let is_aligned = match block {
                0 => offset == HEAD,
                _ => offset.is_multiple_of(GRANULE),
            };
            if !is_aligned || self.blocks.iter().any(|b| offset < b.1 && b.0 < end) {
                continue;
            }
            self.blocks.push((offset, end));
            self.read_block(file, offset, end)?;
        }
        Ok(())
    }

    fn read_block(&mut self, file: &File, mut at: u64, end: u64) -> io::Result<()> {
        let mut piece = vec![0; INDEX_PIECE];
        while at < end {
            let length = (end - at).min(INDEX_PIECE as u64) as usize;
            file.read_exact_at(&mut piece[..length], at)?;
            for bytes in piece[..length].chunks_exact(ENTRY as usize) {
                if bytes.iter().any(|&byte| byte != 0) {
                    self.add(bytes);
                }
            }
            at += length as u64;
        }
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) {
        let found = IndexEntry::read_from_bytes(bytes).ok().and_then(|entry| {
            let used = entry.used()?;
            let length = u64::from(entry.length);
            let is_sound = length > 0
                && length % GRANULE == 0
                && entry.offset % GRANULE == 0
                && entry.offset >= GRANULE
                && entry.offset.checked_add(length).is_some()
                && used <= entry.length
                && entry.rank < MAX_RANKS;
            is_sound.then_some(Found {
                entry,
                used: used.into(),
                is_alone: true,
            })
        });
        match found {
            Some(found) => self.found.push(found),
            None => self.odd += 1,
        }
    }

    /// Number of unusable entries, and of claimed entries that are missing.
    fn unusable(&self, head: &[u8; HEAD as usize]) -> u64 {
        let there = self.found.len() as u64 + self.odd;
        self.odd + word(head, CLAIMED_AT).abs_diff(there)
    }

    /// Joins the extents of each location.
    fn places(mut self, size: u64) -> BTreeMap<(u32, u32), Place> {
        self.mark_overlaps();
        let key = |found: &Found| (found.entry.rank, found.entry.thread);
        self.found
            .sort_by_key(|found| (key(found), found.entry.sequence, found.entry.offset));
        let locations = self.found.chunk_by(|a, b| key(a) == key(b));
        let places = locations.map(|extents| (key(&extents[0]), place(extents, size)));
        places.collect()
    }

    /// Finds extents that overlap with others or with the index.
    fn mark_overlaps(&mut self) {
        self.found.sort_by_key(|found| found.entry.offset);
        let (mut end, mut owner) = (0, None);
        for at in 0..self.found.len() {
            let (offset, own_end) = (self.found[at].entry.offset, self.found[at].end());
            if offset < end {
                self.found[at].is_alone = false;
                if let Some(owner) = owner {
                    let owner: &mut Found = &mut self.found[owner];
                    owner.is_alone = false;
                }
            }
            if own_end > end {
                (end, owner) = (own_end, Some(at));
            }
        }
        for found in &mut self.found {
            let shares = |block: &(u64, u64)| found.entry.offset < block.1 && block.0 < found.end();
            if self.blocks.iter().any(shares) {
                found.is_alone = false;
            }
        }
    }
}

/// The usable extents of a location, up to the first unusable or missing one.
fn place(extents: &[Found], size: u64) -> Place {
    let mut place = Place::default();
    for (expected, found) in extents.iter().enumerate() {
        let rest = &extents[expected + 1..];
        let is_next = found.entry.sequence as usize == expected && found.is_alone;
        // Only the last extent with bytes may end at any offset.
        let is_whole = found.used % GRANULE == 0 || rest.iter().all(|later| later.used == 0);
        let begin = found.entry.offset;
        let in_file = found.used == 0 || begin + found.used <= size;
        if !is_next || !is_whole || !in_file {
            place.is_cut = true;
            if is_next && begin < size {
                // The remaining part of a truncated extent is usable.
                place.add(begin, found.used.min(size - begin));
            }
            break;
        }
        place.add(begin, found.used);
    }
    place
}

impl Place {
    fn add(&mut self, offset: u64, bytes: u64) {
        match self.parts.last_mut() {
            _ if bytes == 0 => {}
            // Adjacent extents share a mapping.
            Some(last) if last.0 + last.1 == offset => last.1 += bytes,
            _ => self.parts.push((offset, bytes)),
        }
    }
}

/// Parts of a file mapped one after another.
#[derive(Debug)]
pub(crate) struct Joined {
    begin: *mut libc::c_void,
    length: usize,
}

// SAFETY: read only.
unsafe impl Send for Joined {}
// SAFETY: as above.
unsafe impl Sync for Joined {}

impl Joined {
    /// Maps parts of a file. All but the last are multiples of a page; so are all offsets.
    fn map(file: &File, parts: &[(u64, u64)]) -> io::Result<Joined> {
        use std::os::fd::AsRawFd;
        let total: u64 = parts.iter().map(|part| part.1).sum();
        let Ok(length) = usize::try_from(total) else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at a free address.
        let begin =
            unsafe { libc::mmap(std::ptr::null_mut(), length, libc::PROT_NONE, flags, -1, 0) };
        if begin == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // Unmapped on drop if a later part fails.
        let joined = Joined { begin, length };
        let mut at = 0;
        for &(offset, bytes) in parts {
            // SAFETY: replaces pages of the mapping made above, which has room for all parts.
            // Nobody changes a trace during its analysis. If somebody shortened it, the process
            // would get SIGBUS, as every reader of mapped files does.
            let mapped = unsafe {
                libc::mmap(
                    begin.byte_add(at),
                    bytes as usize,
                    libc::PROT_READ,
                    libc::MAP_SHARED | libc::MAP_FIXED,
                    file.as_raw_fd(),
                    offset as libc::off_t,
                )
            };
            if mapped == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            at += bytes as usize;
        }
        Ok(joined)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: mapped from `begin` for `length` bytes, as long as `self` lives.
        unsafe { std::slice::from_raw_parts(self.begin.cast(), self.length) }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        // SAFETY: this value's own mapping, and no borrow of it remains.
        unsafe { libc::munmap(self.begin, self.length) };
    }
}
