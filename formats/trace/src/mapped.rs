//! Maps of files that a program writes through, and what becomes of them when somebody cuts the
//! file off: a store beyond its end is a SIGBUS, which would end the program.
//!
//! Who handles that signal calls [`replace`]: the map becomes memory that belongs to no file, and
//! the store goes on. Nothing of what is stored from then on is kept.

use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use memmap2::MmapMut;

/// A map that outlives its file.
#[derive(Debug)]
pub(crate) struct Mapped {
    /// Unmapped after it was taken from the list.
    map: MmapMut,
    entry: &'static Entry,
}

/// Where a map is. Entries are used again, and never freed: a signal handler reads them.
#[derive(Debug)]
struct Entry {
    /// First address; 0 = free.
    start: AtomicUsize,
    /// Last address and one more.
    end: AtomicUsize,
    /// Whether it is the file's no longer.
    is_cut_off: AtomicBool,
    next: AtomicPtr<Entry>,
}

/// The start of a map whose entry is being filled in.
const CLAIMED: usize = 1;

/// All entries.
static ENTRIES: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());

fn entries() -> impl Iterator<Item = &'static Entry> {
    // SAFETY: entries are never freed.
    let at = |entry: &AtomicPtr<Entry>| unsafe { entry.load(Ordering::Acquire).as_ref() };
    std::iter::successors(at(&ENTRIES), move |entry| at(&entry.next))
}

/// A free entry, which is the caller's from here on: its start is no address, and not 0.
fn claim() -> &'static Entry {
    let free = entries().find(|entry| {
        let (order, fail) = (Ordering::AcqRel, Ordering::Relaxed);
        let claimed = entry.start.compare_exchange(0, CLAIMED, order, fail);
        claimed.is_ok()
    });
    free.unwrap_or_else(|| {
        let entry: &'static Entry = Box::leak(Box::new(Entry {
            start: AtomicUsize::new(CLAIMED),
            end: AtomicUsize::new(0),
            is_cut_off: AtomicBool::new(false),
            next: AtomicPtr::new(ptr::null_mut()),
        }));
        let new = ptr::from_ref(entry).cast_mut();
        let _ = ENTRIES.fetch_update(Ordering::AcqRel, Ordering::Acquire, |first| {
            entry.next.store(first, Ordering::Release);
            Some(new)
        });
        entry
    })
}

impl Mapped {
    pub(crate) fn new(map: MmapMut) -> Mapped {
        let entry = claim();
        let start = map.as_ptr().expose_provenance();
        entry.is_cut_off.store(false, Ordering::Relaxed);
        entry.end.store(start + map.len(), Ordering::Release);
        entry.start.store(start, Ordering::Release);
        Mapped { map, entry }
    }

    /// Whether what is stored here goes nowhere.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.entry.is_cut_off.load(Ordering::Relaxed)
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

impl DerefMut for Mapped {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.map
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // Nobody must take what is mapped there next for this.
        self.entry.end.store(0, Ordering::Release);
        self.entry.start.store(0, Ordering::Release);
    }
}

/// Puts memory in the place of the map that this address lies in, for a store that its file has no
/// room for. `false` if it lies in none, or there is no memory.
///
/// May be called in a signal handler.
pub fn replace(address: usize) -> bool {
    let range = |entry: &Entry| {
        let start = entry.start.load(Ordering::Acquire);
        let end = entry.end.load(Ordering::Acquire);
        // Another thread may be about to use the entry for another map.
        let is_one = start > CLAIMED && entry.start.load(Ordering::Acquire) == start;
        (is_one && (start..end).contains(&address)).then_some((start, end - start))
    };
    let found = entries().find_map(|entry| Some((entry, range(entry)?)));
    let Some((entry, (start, length))) = found else {
        return false;
    };
    // SAFETY: a map of ours takes the place of one, and is unmapped as that one would be.
    let memory = unsafe {
        libc::mmap(
            ptr::with_exposed_provenance_mut(start),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return false;
    }
    entry.is_cut_off.store(true, Ordering::Relaxed);
    true
}

/// The error of a file that somebody cut off.
pub(crate) fn cut_off() -> io::Error {
    io::Error::other("somebody cut the file off")
}
