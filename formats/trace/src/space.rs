//! Destination of a location's bytes: windows of a mapped file, or memory.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use memmap2::MmapOptions;

use crate::PRIVATE_FILE;
use crate::block::PAGE;
use crate::mapped::{Mapped, cut_off};

/// Gives a writer zeroed windows one after another; together they form the file.
pub trait Space {
    /// Makes sure that a next window of at least `minimum` bytes exists. Otherwise records
    /// would fill the last window.
    fn prepare(&mut self, minimum: usize) -> io::Result<()>;
    /// The next window: zeroed, at least `minimum` bytes, a multiple of the page size. The
    /// pointer to the previous window becomes invalid.
    fn advance(&mut self, minimum: usize) -> io::Result<(*mut u8, usize)>;
    /// The file's first page, once there is a first window. It stays valid as long as the
    /// space, even after the window is gone. Some spaces have none.
    fn first_page(&mut self) -> io::Result<*mut u8> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Whether somebody truncated the file, so that stores are lost.
    fn is_cut_off(&self) -> bool {
        false
    }
    /// Ends the file after `length` bytes.
    fn finish(&mut self, length: u64) -> io::Result<()>;
    /// `CLOCK_MONOTONIC` now, ns; 0 if there is none.
    fn monotonic_ns(&self) -> u64;
}

/// A file mapped window by window. Stored data is in the kernel's hands at once and survives
/// any end of the process.
///
/// No descriptor stays open. The program may need all descriptors, or close ones it did not
/// open and reuse their numbers for its own files.
#[derive(Debug)]
pub struct FileSpace {
    path: PathBuf,
    identity: Identity,
    map: Option<Mapped>,
    /// The first page, once it was asked for.
    first: Option<Mapped>,
    /// File size up to which blocks on disk are allocated.
    allocated: u64,
    /// End of the current window.
    mapped: u64,
    /// Size of the next window, bytes.
    window: usize,
    /// Largest window, bytes.
    largest: usize,
}

/// Identity of a file, independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub(crate) fn of(file: &File) -> io::Result<Identity> {
        let metadata = file.metadata()?;
        Ok(Identity {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }
}

/// First window, bytes: many threads make only a few calls.
pub(crate) const FIRST_WINDOW: usize = 16 * 4096;
/// Most interruptions of one allocation by signals.
const INTERRUPTIONS: usize = 100;

impl FileSpace {
    /// Makes the file `path`, which must not exist yet, with windows of up to `largest` bytes.
    #[expect(clippy::disallowed_methods, reason = "a new file")]
    pub fn create(path: &Path, largest: usize) -> io::Result<Self> {
        // The program may change its directory.
        let path = std::path::absolute(path)?;
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create_new(true)
            .mode(PRIVATE_FILE)
            .open(&path)?;
        Ok(FileSpace {
            identity: Identity::of(&file)?,
            path,
            map: None,
            first: None,
            allocated: 0,
            mapped: 0,
            window: FIRST_WINDOW,
            largest: largest.max(FIRST_WINDOW).next_multiple_of(4096),
        })
    }

    fn size_for(&self, minimum: usize) -> usize {
        minimum.max(self.window).next_multiple_of(4096)
    }
}

/// Opens a file for reading and writing, if it is still the one that was made.
#[expect(
    clippy::disallowed_methods,
    reason = "the file that was made, through no link"
)]
pub(crate) fn open_again(path: &Path, identity: Identity) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path)?;
    if Identity::of(&file)? != identity {
        return Err(io::Error::other("another file has taken its place"));
    }
    Ok(file)
}

/// Allocates blocks on disk from the offset `allocated`, which moves, to `end`. A full disk is
/// then an error here, not a SIGBUS at a store.
pub(crate) fn reserve(file: &File, allocated: &mut u64, end: u64) -> io::Result<()> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // Growing past RLIMIT_FSIZE would send the program SIGXFSZ.
    // SAFETY: `limit` is valid for writing.
    if unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0 && end > limit.rlim_cur {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    let mut piece = end.saturating_sub(*allocated);
    let mut interruptions = 0;
    while *allocated < end {
        let length = piece.min(end - *allocated);
        // SAFETY: a call on an open descriptor with plain numbers.
        let error =
            unsafe { libc::posix_fallocate(file.as_raw_fd(), *allocated as i64, length as i64) };
        match error {
            0 => *allocated += length,
            // A signal handler ran, and the file system starts over. Asks for less at a time,
            // in case the program's timer is faster than the file system.
            libc::EINTR if interruptions < INTERRUPTIONS => {
                interruptions += 1;
                piece = (piece / 2).next_multiple_of(4096);
            }
            _ => return Err(io::Error::from_raw_os_error(error)),
        }
    }
    Ok(())
}

/// Piece that [`map_zeroed`] writes at a time, bytes.
const PIECE: usize = 64 * 1024;
static ZEROS: [u8; PIECE] = [0; PIECE];

/// Maps a part of a file, zeroed and with its pages in memory. The part has blocks on disk and
/// was never written.
///
/// Zeros are written first: the kernel then makes the pages in large units. A first store
/// through a mapping makes one page at a time. A page took 1.4 us instead of 4.5 us (ext4,
/// Linux 6.18, virtual machine), 10 ns less for each record of 12 bytes. On memory file systems
/// the pages came with the blocks.
///
/// # Safety
/// Nobody else changes this part of the file while the map exists.
pub(crate) unsafe fn map_zeroed(file: &File, offset: u64, size: usize) -> io::Result<Mapped> {
    if !is_memory(file) {
        for at in (0..size).step_by(PIECE) {
            let piece = &ZEROS[..PIECE.min(size - at)];
            file.write_all_at(piece, offset + at as u64)?;
        }
    }
    // SAFETY: as the caller states.
    let map = unsafe { MmapOptions::new().offset(offset).len(size).map_mut(file)? };
    // Spares a page fault for every few hundred records; older kernels refuse.
    let _ = map.advise(memmap2::Advice::PopulateWrite);
    Ok(Mapped::new(map))
}

/// Maps a page of a file that has a block on disk.
///
/// # Safety
/// Only other maps of the same thread change this part of the file while the map exists.
pub(crate) unsafe fn map_page(file: &File, offset: u64) -> io::Result<Mapped> {
    // SAFETY: as the caller states.
    let map = unsafe { MmapOptions::new().offset(offset).len(PAGE).map_mut(file)? };
    Ok(Mapped::new(map))
}

/// Whether any of a location's maps no longer belongs to its file.
pub(crate) fn are_cut_off(maps: [&Option<Mapped>; 2]) -> bool {
    maps.into_iter().flatten().any(Mapped::is_cut_off)
}

fn is_memory(file: &File) -> bool {
    // SAFETY: all zeros are a valid `statfs`, and the call fills it in.
    unsafe {
        let mut system: libc::statfs = std::mem::zeroed();
        libc::fstatfs(file.as_raw_fd(), &mut system) == 0 && system.f_type == libc::TMPFS_MAGIC
    }
}

/// `CLOCK_MONOTONIC` now, ns.
pub(crate) fn monotonic_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is valid for writing.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl Space for FileSpace {
    fn prepare(&mut self, minimum: usize) -> io::Result<()> {
        let end = self.mapped + self.size_for(minimum) as u64;
        if end <= self.allocated {
            return Ok(());
        }
        let file = open_again(&self.path, self.identity)?;
        reserve(&file, &mut self.allocated, end)
    }

    fn advance(&mut self, minimum: usize) -> io::Result<(*mut u8, usize)> {
        let size = self.size_for(minimum);
        let file = open_again(&self.path, self.identity)?;
        reserve(&file, &mut self.allocated, self.mapped + size as u64)?;
        // SAFETY: the file is this recorder's own; nobody else changes it.
        let mut map = unsafe { map_zeroed(&file, self.mapped, size)? };
        let pointer = map.as_mut_ptr();
        self.map = Some(map);
        self.mapped += size as u64;
        self.window = (self.window * 2).min(self.largest);
        Ok((pointer, size))
    }

    fn first_page(&mut self) -> io::Result<*mut u8> {
        let file = open_again(&self.path, self.identity)?;
        // SAFETY: as above. A window may map the same page, but one thread uses both.
        let map = unsafe { map_page(&file, 0)? };
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
        open_again(&self.path, self.identity)?.set_len(length)
    }

    fn monotonic_ns(&self) -> u64 {
        monotonic_ns()
    }
}

/// A trace in memory: for tests and for events that never reach a disk.
#[derive(Debug, Default)]
pub struct MemorySpace {
    full: Vec<Vec<u64>>,
    length: u64,
    /// Most windows; further ones fail as on a full disk.
    pub limit: Option<usize>,
}

impl MemorySpace {
    /// Windows of 64 KiB, without a limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// The file's bytes (after [`Space::finish`] exactly its length).
    pub fn into_bytes(self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self
            .full
            .iter()
            .flatten()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        if self.length > 0 {
            bytes.truncate(self.length as usize);
        }
        bytes
    }
}

impl Space for MemorySpace {
    fn prepare(&mut self, _minimum: usize) -> io::Result<()> {
        match self.limit {
            Some(limit) if self.full.len() >= limit => {
                Err(io::Error::from_raw_os_error(libc::ENOSPC))
            }
            _ => Ok(()),
        }
    }

    fn advance(&mut self, minimum: usize) -> io::Result<(*mut u8, usize)> {
        self.prepare(minimum)?;
        let size = minimum.max(65536).next_multiple_of(4096);
        self.full.push(vec![0u64; size / 8]);
        let last = self.full.last_mut().expect("just pushed");
        Ok((last.as_mut_ptr().cast(), size))
    }

    fn first_page(&mut self) -> io::Result<*mut u8> {
        let first = self.full.first_mut().ok_or(io::ErrorKind::InvalidInput)?;
        Ok(first.as_mut_ptr().cast())
    }

    fn finish(&mut self, length: u64) -> io::Result<()> {
        self.length = length;
        Ok(())
    }

    fn monotonic_ns(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn files_are_the_users_own() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("own.lgt");
        FileSpace::create(&path, 1 << 16).expect("a file");
        let mode = std::fs::metadata(&path).expect("it").permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
    }

    /// Whatever stands in the file's place is neither written nor followed, even a dangling
    /// link.
    #[test]
    fn what_is_there_already_is_left_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("taken.lgt");
        let target = directory.path().join("target");
        symlink(&target, &path).expect("a link");
        assert!(FileSpace::create(&path, 1 << 16).is_err());
        assert!(!target.exists());
        std::fs::write(&target, "mine").expect("written");
        assert!(FileSpace::create(&path, 1 << 16).is_err());
        assert!(FileSpace::create(&target, 1 << 16).is_err());
        assert_eq!(std::fs::read(&target).expect("it"), b"mine");
    }

    /// Nor is a link that replaces the file while it grows.
    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("moved.lgt");
        let mut space = FileSpace::create(&path, 1 << 16).expect("a file");
        space.advance(0).expect("a window");
        let target = directory.path().join("target");
        std::fs::rename(&path, &target).expect("moved");
        symlink(&target, &path).expect("a link");
        let before = std::fs::metadata(&target).expect("it").len();
        assert!(space.advance(0).is_err());
        assert_eq!(std::fs::metadata(&target).expect("it").len(), before);
    }
}
