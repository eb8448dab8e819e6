//! Writes a location's bytes into its host's file.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use memmap2::MmapOptions;
use zerocopy::IntoBytes;

use super::*;
use crate::block::PAGE;
use crate::mapped::{Mapped, cut_off};
use crate::space::{
    FIRST_WINDOW, Identity, Space, are_cut_off, map_page, map_zeroed, monotonic_ns, open_again,
    reserve,
};
use crate::{FileHeader, PRIVATE_FILE};

/// A location's first extent, bytes. Only its used part has blocks on disk. Larger extents save
/// readers mappings; smaller ones save copies that lack holes.
const FIRST_EXTENT: u64 = 256 << 10;
/// Largest extent, bytes, unless a window needs more.
const LARGEST_EXTENT: u64 = 64 << 20;

/// A location in its host's node file, mapped window by window as a
/// [`FileSpace`](crate::FileSpace) is. No descriptor stays open.
#[derive(Debug)]
pub struct NodeSpace {
    place: NodePlace,
    map: Option<Mapped>,
    /// The location's first page, once it was asked for.
    first: Option<Mapped>,
}

impl NodeSpace {
    /// Gives the location of this header a place in the node file of its run and host in
    /// `directory`. Makes the file if it does not exist. Windows have up to `largest` bytes.
    pub fn create(directory: &Path, header: &FileHeader, largest: usize) -> io::Result<NodeSpace> {
        Ok(NodeSpace {
            place: NodePlace::create(directory, header, largest)?,
            map: None,
            first: None,
        })
    }
}

impl Space for NodeSpace {
    fn prepare(&mut self, minimum: usize) -> io::Result<()> {
        self.place.prepare(minimum)
    }

    fn advance(&mut self, minimum: usize) -> io::Result<(*mut u8, usize)> {
        let (file, offset, size) = self.place.next(minimum)?;
        // SAFETY: the extent is this location's own; nobody else changes it.
        let mut map = unsafe { map_zeroed(&file, offset, size)? };
        self.place.take(&file, size)?;
        let pointer = map.as_mut_ptr();
        self.map = Some(map);
        Ok((pointer, size))
    }

    fn first_page(&mut self) -> io::Result<*mut u8> {
        let (file, offset) = self.place.first()?;
        // SAFETY: the extent is this location's own. A window may map the same page, but one
        // thread uses both.
        let map = unsafe { map_page(&file, offset)? };
        Ok(self.first.insert(map).as_mut_ptr())
    }

    fn is_cut_off(&self) -> bool {
        are_cut_off([&self.map, &self.first])
    }

    fn finish(&mut self, length: u64) -> io::Result<()> {
        if self.is_cut_off() {
            return Err(cut_off());
        }
        self.map = None;
        self.place.finish(length)
    }

    fn monotonic_ns(&self) -> u64 {
        monotonic_ns()
    }
}

/// A location's place in its host's file; writes none of the bytes itself.
#[derive(Debug)]
pub struct NodePlace {
    path: PathBuf,
    identity: Identity,
    rank: u32,
    thread: u32,
    /// Sequence number of the next extent.
    sequence: u32,
    current: Option<Extent>,
    /// Used when the current extent is full.
    next: Option<Extent>,
    /// Bytes of the location in earlier extents.
    before: u64,
    /// Size of the next window, bytes.
    window: u64,
    /// Largest window, bytes.
    largest: u64,
}

/// A part of the file owned by one location.
#[derive(Debug)]
struct Extent {
    entry: IndexEntry,
    /// Bytes handed out as windows.
    used: u64,
    /// Offset in the file up to which blocks on disk are allocated.
    allocated: u64,
    /// Number of its index entry, once claimed.
    number: Option<u64>,
    /// Offset of its index entry, once written.
    entry_at: Option<u64>,
}

impl Extent {
    fn rest(&self) -> u64 {
        u64::from(self.entry.length) - self.used
    }

    /// Offset of the next window.
    fn end(&self) -> u64 {
        self.entry.offset + self.used
    }
}

impl NodePlace {
    /// As [`NodeSpace::create`].
    pub fn create(directory: &Path, header: &FileHeader, largest: usize) -> io::Result<NodePlace> {
        // The program may change its directory.
        let directory = std::path::absolute(directory)?;
        let path = directory.join(node_file_name(header.host_id));
        let identity = open_or_make(&path, &NodeHeader::new(header.run_id, header.host_id))?;
        let first = FIRST_WINDOW as u64;
        Ok(NodePlace {
            path,
            identity,
            rank: header.rank,
            thread: header.thread,
            sequence: 0,
            current: None,
            next: None,
            before: 0,
            window: first,
            largest: (largest as u64).max(first).next_multiple_of(GRANULE),
        })
    }

    /// Makes sure that a next window of at least `minimum` bytes exists.
    pub fn prepare(&mut self, minimum: usize) -> io::Result<()> {
        let file = self.open()?;
        self.ready(&file, minimum).map(drop)
    }

    /// The next window, of at least `minimum` bytes: file, offset, bytes. It joins the location
    /// only with [`take`](Self::take).
    pub fn next(&mut self, minimum: usize) -> io::Result<(File, u64, usize)> {
        let file = self.open()?;
        let size = self.ready(&file, minimum)?;
        let extent = self.next.as_ref().or(self.current.as_ref());
        let offset = extent.map_or(0, Extent::end);
        Ok((file, offset, size as usize))
    }

    /// Adds the window from [`next`](Self::next) to the location.
    pub fn take(&mut self, file: &File, size: usize) -> io::Result<()> {
        if let Some(next) = self.next.take() {
            self.before += self.current.as_ref().map_or(0, |current| current.used);
            self.current = Some(next);
        }
        let Some(current) = &mut self.current else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let used = current.used + size as u64;
        state(file, current, used)?;
        current.used = used;
        self.window = (self.window * 2).min(self.largest);
        Ok(())
    }

    /// Place of the location's first page, while the first extent is the current one.
    fn first(&self) -> io::Result<(File, u64)> {
        match &self.current {
            Some(extent) if self.before == 0 => Ok((self.open()?, extent.entry.offset)),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Ends the location after `length` bytes and frees the unused rest.
    pub fn finish(&mut self, length: u64) -> io::Result<()> {
        let file = self.open()?;
        if let Some(next) = self.next.take() {
            give_back(&file, next.entry.offset, next.allocated);
        }
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        let used = length.saturating_sub(self.before).min(current.used);
        state(&file, current, used)?;
        current.used = used;
        give_back(&file, current.end(), current.allocated);
        Ok(())
    }

    /// Opens the file, if it is still the same.
    fn open(&self) -> io::Result<File> {
        let file = open_again(&self.path, self.identity)?;
        if file.metadata()?.len() < HEAD + FIRST_ENTRIES * ENTRY {
            return Err(cut_off());
        }
        Ok(file)
    }

    /// Makes sure that a window has room and that the index knows it; returns the window's
    /// size, bytes.
    fn ready(&mut self, file: &File, minimum: usize) -> io::Result<u64> {
        let minimum = (minimum as u64).next_multiple_of(GRANULE).max(GRANULE);
        let mut size = minimum.max(self.window);
        if self.next.is_none()
            && let Some(current) = &mut self.current
            && current.rest() >= minimum
        {
            size = size.min(current.rest());
            let end = current.end() + size;
            return reserve(file, &mut current.allocated, end).map(|()| size);
        }
        // An extent prepared for a smaller window stays in the index, empty.
        if let Some(small) = self.next.take_if(|next| next.rest() < size) {
            give_back(file, small.entry.offset, small.allocated);
        }
        let next = match &mut self.next {
            Some(next) => next,
            None => {
                let known = self.before + self.current.as_ref().map_or(0, |current| current.used);
                let length = (known / 2).clamp(FIRST_EXTENT, LARGEST_EXTENT).max(size);
                let length = length.next_multiple_of(GRANULE);
                let Ok(short) = u32::try_from(length) else {
                    return Err(io::Error::from_raw_os_error(libc::EFBIG));
                };
                let offset = Head::map(file)?.claim(length)?;
                let sequence = self.sequence;
                self.sequence += 1;
                self.next.insert(Extent {
                    entry: IndexEntry {
                        rank: self.rank,
                        thread: self.thread,
                        sequence,
                        length: short,
                        offset,
                        state: 0,
                    },
                    used: 0,
                    allocated: offset,
                    number: None,
                    entry_at: None,
                })
            }
        };
        let end = next.end() + size;
        reserve(file, &mut next.allocated, end)?;
        if next.entry_at.is_none() {
            publish(file, next)?;
        }
        Ok(size)
    }
}

/// Claims an index entry and describes an extent there.
fn publish(file: &File, extent: &mut Extent) -> io::Result<()> {
    let head = Head::map(file)?;
    let number = match extent.number {
        Some(number) => number,
        None => head.claimed().fetch_add(1, Ordering::Relaxed),
    };
    extent.number = Some(number);
    let at = head.entry_at(file, number)?;
    let mut map = map_entry(file, at)?;
    map[..24].copy_from_slice(&extent.entry.as_bytes()[..24]);
    store_state(&mut map, extent.entry.state_with(0));
    extent.entry_at = Some(at);
    Ok(())
}

/// Notes the bytes in use of an extent.
fn state(file: &File, extent: &Extent, used: u64) -> io::Result<()> {
    let Some(at) = extent.entry_at else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut map = map_entry(file, at)?;
    store_state(&mut map, extent.entry.state_with(used as u32));
    Ok(())
}

fn map_entry(file: &File, at: u64) -> io::Result<Mapped> {
    if at + ENTRY > file.metadata()?.len() {
        return Err(cut_off());
    }
    let mut options = MmapOptions::new();
    // SAFETY: the entry belongs to one location, whose thread this is. Its block is in the file
    // and has blocks on disk.
    let map = unsafe { options.offset(at).len(ENTRY as usize).map_mut(file)? };
    Ok(Mapped::new(map))
}

fn store_state(map: &mut Mapped, state: u64) {
    // SAFETY: entries are mapped whole and aligned to their size.
    let word = unsafe { AtomicU64::from_ptr(map.as_mut_ptr().add(24).cast()) };
    word.store(state.to_le(), Ordering::Release);
}

/// Frees the whole pages between two offsets, if the file system supports it.
fn give_back(file: &File, from: u64, end: u64) {
    let from = from.next_multiple_of(PAGE as u64);
    if end > from {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: a call on an open descriptor with plain numbers.
        unsafe { libc::fallocate(file.as_raw_fd(), mode, from as i64, (end - from) as i64) };
    }
}

/// The file's first page, which the processes of the host share.
struct Head(Mapped);

impl Head {
    fn map(file: &File) -> io::Result<Head> {
        // SAFETY: the page is in the file from the start, with blocks on disk. Its changing
        // words are accessed by atomic operations only.
        let map = unsafe { MmapOptions::new().len(HEAD as usize).map_mut(file)? };
        Ok(Head(Mapped::new(map)))
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at.is_multiple_of(8) && at + 8 <= HEAD as usize);
        // SAFETY: inside the page, at a multiple of 8; the mapping lives as long as `self`.
        unsafe { AtomicU64::from_ptr(self.0.as_ptr().add(at).cast_mut().cast()) }
    }

    fn claimed(&self) -> &AtomicU64 {
        self.word(CLAIMED_AT)
    }

    /// Claims a part of the file; returns its offset.
    fn claim(&self, length: u64) -> io::Result<u64> {
        let offset = self.word(END_AT).fetch_add(length, Ordering::Relaxed);
        let end = offset.saturating_add(length);
        if offset < GRANULE || !offset.is_multiple_of(GRANULE) || end > i64::MAX as u64 {
            return Err(io::Error::other("somebody wrote into the node file"));
        }
        Ok(offset)
    }

    /// Offset of an index entry; makes its index block if there is none yet.
    fn entry_at(&self, file: &File, number: u64) -> io::Result<u64> {
        let Some((block, place)) = place_of(number) else {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        };
        let slot = self.word(BLOCKS_AT + block * 8);
        let mut begin = slot.load(Ordering::Acquire);
        if begin == 0 {
            let length = entries_of(block) * ENTRY;
            let own = self.claim(length)?;
            let mut allocated = own;
            reserve(file, &mut allocated, own + length)?;
            match slot.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => begin = own,
                Err(others) => {
                    give_back(file, own, own + length);
                    begin = others;
                }
            }
        }
        let at = begin.checked_add(place * ENTRY);
        at.filter(|at| at % ENTRY == 0)
            .ok_or_else(|| io::Error::other("somebody wrote into the node file"))
    }
}

/// Opens or makes the node file of a run; returns its identity.
fn open_or_make(path: &Path, header: &NodeHeader) -> io::Result<Identity> {
    for _ in 0..2 {
        match open_existing(path, header) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(path, header)?,
            other => return other,
        }
    }
    open_existing(path, header)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a file of this run, through no link"
)]
fn open_existing(path: &Path, header: &NodeHeader) -> io::Result<Identity> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path)?;
    let mut found = [0; size_of::<NodeHeader>()];
    let is_file = file.metadata()?.is_file();
    if !is_file || file.read_exact_at(&mut found, 0).is_err() || found != *header.as_bytes() {
        let shown = path.file_name().unwrap_or_default().to_string_lossy();
        return Err(io::Error::other(format!(
            "{shown} is no node file of this run"
        )));
    }
    Identity::of(&file)
}

/// Number of drafts made by this process.
static DRAFTS: AtomicU32 = AtomicU32::new(0);

/// Writes a node file without extents under another name, then renames it. The file therefore
/// appears complete or not at all. No error if another process was faster.
#[expect(clippy::disallowed_methods, reason = "a new file")]
fn make(path: &Path, header: &NodeHeader) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let pid = std::process::id();
    // Leftovers of killed processes, and other containers, may have the same process ids.
    let now = monotonic_ns();
    let draft = path.with_file_name(format!(".{name}.{pid}.{number}.{now}"));
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create_new(true)
        .mode(PRIVATE_FILE);
    let file = options.open(&draft)?;
    let made = fill(&file, header).and_then(|()| name_it(&draft, path));
    // A draft that cannot be removed does no harm.
    let _ = fs::remove_file(&draft);
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

fn fill(file: &File, header: &NodeHeader) -> io::Result<()> {
    reserve(file, &mut 0, HEAD + FIRST_ENTRIES * ENTRY)?;
    file.write_all_at(header.as_bytes(), 0)?;
    file.write_all_at(&GRANULE.to_le_bytes(), END_AT as u64)?;
    file.write_all_at(&HEAD.to_le_bytes(), BLOCKS_AT as u64)
}

/// Gives a draft the final name; fails if the name is taken.
fn name_it(draft: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(draft, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {}
        other => return other,
    }
    // The file system has no hard links.
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes());
    let (from, to) = (text(draft)?, text(path)?);
    // SAFETY: C strings and plain numbers.
    let renamed = unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            libc::AT_FDCWD,
            from.as_ptr(),
            libc::AT_FDCWD,
            to.as_ptr(),
            libc::RENAME_NOREPLACE,
        )
    };
    match renamed {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
