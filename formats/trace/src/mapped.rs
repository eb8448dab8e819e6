//! Maps through which a program writes files, or reads what may change, and their replacement if
//! somebody truncates the file. An access beyond the file's end raises SIGBUS, which would end the program.
//!
//! The signal's handler calls [`replace`]: the map becomes anonymous memory, and the store goes
//! on. Data stored from then on is lost.

use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use memmap2::MmapMut;

/// A map that outlives its file.
#[derive(Debug)]
pub(crate) struct Mapped<M = MmapMut> {
    /// Unmapped after its entry is gone from the list.
    map: M,
    entry: &'static Entry,
}

/// The place of a map. Entries are reused and never freed: a signal handler reads them.
#[derive(Debug)]
struct Entry {
    /// First address; 0 = free.
    start: AtomicUsize,
    /// Address after the last.
    end: AtomicUsize,
    /// Whether the map no longer belongs to the file.
    is_cut_off: AtomicBool,
    next: AtomicPtr<Entry>,
}

/// Start address of an entry that is being filled in.
const CLAIMED: usize = 1;

static ENTRIES: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());

fn entries() -> impl Iterator<Item = &'static Entry> {
    // SAFETY: entries are never freed.
    let at = |entry: &AtomicPtr<Entry>| unsafe { entry.load(Ordering::Acquire).as_ref() };
    std::iter::successors(at(&ENTRIES), move |entry| at(&entry.next))
}

/// Claims a free entry for the caller: its start becomes [`CLAIMED`], neither an address nor 0.
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

impl<M: Deref<Target = [u8]>> Mapped<M> {
    pub(crate) fn new(map: M) -> Mapped<M> {
        let entry = claim();
        let start = map.as_ptr().expose_provenance();
        entry.is_cut_off.store(false, Ordering::Relaxed);
        entry.end.store(start + map.len(), Ordering::Release);
        entry.start.store(start, Ordering::Release);
        Mapped { map, entry }
    }

    /// Whether stores to this map are lost.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.entry.is_cut_off.load(Ordering::Relaxed)
    }
}

impl<M: Deref<Target = [u8]>> Deref for Mapped<M> {
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

impl<M> Drop for Mapped<M> {
    fn drop(&mut self) {
        // A later map at this address must not be taken for this one.
        self.entry.end.store(0, Ordering::Release);
        self.entry.start.store(0, Ordering::Release);
    }
}

/// Replaces the map that contains this address with anonymous memory, after a store for which
/// its file has no room. `false` if no map contains it, or if memory is short.
///
/// May be called in a signal handler.
pub fn replace(address: usize) -> bool {
    let range = |entry: &Entry| {
        let start = entry.start.load(Ordering::Acquire);
        let end = entry.end.load(Ordering::Acquire);
        // Another thread may be reusing the entry for another map.
        let is_one = start > CLAIMED && entry.start.load(Ordering::Acquire) == start;
        (is_one && (start..end).contains(&address)).then_some((start, end - start))
    };
    let found = entries().find_map(|entry| Some((entry, range(entry)?)));
    let Some((entry, (start, length))) = found else {
        return false;
    };
    // SAFETY: the new map replaces one of ours, and will be unmapped in its stead.
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

/// The error for a truncated file.
pub(crate) fn cut_off() -> io::Error {
    io::Error::other("somebody cut the file off")
}
