//! Where a location's bytes go: windows of a mapped file, or memory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use memmap2::{MmapMut, MmapOptions};

/// Gives a writer one zeroed window after another; together they are the file.
pub trait Space {
    /// Makes sure that a next window of at least `minimum` bytes can be had, so
    /// that the last one is not filled with records when there is none.
    fn prepare(&mut self, minimum: usize) -> io::Result<()>;
    /// The next window, at least `minimum` bytes, zeroed, a multiple of the page
    /// size; the pointer to the window before becomes invalid.
    fn advance(&mut self, minimum: usize) -> io::Result<(*mut u8, usize)>;
    /// Ends the file after `length` bytes.
    fn finish(&mut self, length: u64) -> io::Result<()>;
    /// `CLOCK_MONOTONIC` now, ns; 0 where there is none.
    fn monotonic_ns(&self) -> u64;
}

/// A file mapped window by window. What was stored is in the kernel's hands at
/// once and survives the process however it ends.
#[derive(Debug)]
pub struct FileSpace {
    file: File,
    map: Option<MmapMut>,
    /// File size that has blocks on disk behind it.
    allocated: u64,
    /// End of the current window.
    mapped: u64,
    window: usize,
}

impl FileSpace {
    /// Writes to `file` (new, empty, open for reading and writing) in windows of
    /// `window` bytes.
    pub fn new(file: File, window: usize) -> Self {
        let window = window.max(16 * 4096).next_multiple_of(4096);
        FileSpace {
            file,
            map: None,
            allocated: 0,
            mapped: 0,
            window,
        }
    }

    fn size_for(&self, minimum: usize) -> usize {
        minimum.max(self.window).next_multiple_of(4096)
    }

    /// Real blocks, so that a full disk is an error here and not a SIGBUS at a store.
    fn allocate(&mut self, end: u64) -> io::Result<()> {
        if end <= self.allocated {
            return Ok(());
        }
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // Growing past RLIMIT_FSIZE would send the program SIGXFSZ.
        // SAFETY: `limit` is valid for writing.
        if unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0 && end > limit.rlim_cur {
            return Err(io::Error::from_raw_os_error(libc::EFBIG));
        }
        let length = end - self.allocated;
        // SAFETY: a call on an open descriptor with plain numbers.
        let error = unsafe {
            libc::posix_fallocate(self.file.as_raw_fd(), self.allocated as i64, length as i64)
        };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        self.allocated = end;
        Ok(())
    }
}

impl Space for FileSpace {
    fn prepare(&mut self, minimum: usize) -> io::Result<()> {
        let end = self.mapped + self.size_for(minimum) as u64;
        self.allocate(end)
    }

    fn advance(&mut self, minimum: usize) -> io::Result<(*mut u8, usize)> {
        let size = self.size_for(minimum);
        self.allocate(self.mapped + size as u64)?;
        // SAFETY: the file is this recorder's own; nobody else changes it.
        let mut map = unsafe {
            MmapOptions::new()
                .offset(self.mapped)
                .len(size)
                .map_mut(&self.file)?
        };
        // Spares a page fault for every few hundred records; older kernels refuse.
        let _ = map.advise(memmap2::Advice::PopulateWrite);
        let pointer = map.as_mut_ptr();
        self.map = Some(map);
        self.mapped += size as u64;
        Ok((pointer, size))
    }

    fn finish(&mut self, length: u64) -> io::Result<()> {
        self.map = None;
        self.file.set_len(length)
    }

    fn monotonic_ns(&self) -> u64 {
        let mut now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `now` is valid for writing.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
}

/// A trace in memory: for tests and for events that never see a disk.
#[derive(Debug, Default)]
pub struct MemorySpace {
    full: Vec<Vec<u64>>,
    length: u64,
    /// Windows given out at most; further ones fail as a full disk does.
    pub limit: Option<usize>,
}

impl MemorySpace {
    /// Windows of 64 KiB, as many as wanted.
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

    fn finish(&mut self, length: u64) -> io::Result<()> {
        self.length = length;
        Ok(())
    }

    fn monotonic_ns(&self) -> u64 {
        0
    }
}
