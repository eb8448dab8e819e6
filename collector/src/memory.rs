//! The collector's allocator, which copes with failed allocations.
//!
//! Rust ends the process if an allocation fails. The program may handle a failed `malloc`, so
//! the collector must not end it. At the first failure recording stops, and a reserve serves
//! the call in progress.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::log;
use crate::run;

/// Size of the reserve, bytes: more than the largest table of a location needs to grow.
/// Untouched, it occupies addresses only.
const RESERVE: usize = 64 << 20;

/// Address of the reserve; 0 = none.
static START: AtomicUsize = AtomicUsize::new(0);
/// Bytes of the reserve in use.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Recording stopped for lack of memory.
static SHORT: AtomicBool = AtomicBool::new(false);

/// Maps the reserve.
pub fn set_aside() -> io::Result<()> {
    if START.load(Ordering::Relaxed) != 0 {
        return Ok(());
    }
    // SAFETY: a new mapping.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            RESERVE,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    START.store(start.expose_provenance(), Ordering::Relaxed);
    Ok(())
}

/// Whether recording stopped for lack of memory.
pub fn is_short() -> bool {
    SHORT.load(Ordering::Relaxed)
}

/// The system's memory, then the reserve.
struct Memory;

#[global_allocator]
static MEMORY: Memory = Memory;

// SAFETY: blocks come from the system, or are parts of the reserve that are given out once.
unsafe impl GlobalAlloc for Memory {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: passed on.
        let block = unsafe { System.alloc(layout) };
        if block.is_null() {
            return from_reserve(layout);
        }
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: passed on.
        let block = unsafe { System.alloc_zeroed(layout) };
        if block.is_null() {
            // Zero as mapped: no part is given out twice.
            return from_reserve(layout);
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if !is_reserve(block) {
            // SAFETY: passed on.
            unsafe { System.dealloc(block, layout) };
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !is_reserve(block) {
            // SAFETY: passed on.
            let moved = unsafe { System.realloc(block, layout, size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller states that `size` makes a layout.
        let moved =
            from_reserve(unsafe { Layout::from_size_align_unchecked(size, layout.align()) });
        if !moved.is_null() {
            // SAFETY: separate blocks, both at least this long.
            unsafe { ptr::copy_nonoverlapping(block, moved, layout.size().min(size)) };
            // SAFETY: the old block, whose content has been copied.
            unsafe { self.dealloc(block, layout) };
        }
        moved
    }
}

fn is_reserve(block: *mut u8) -> bool {
    let start = START.load(Ordering::Relaxed);
    (block as usize).wrapping_sub(start) < RESERVE && start != 0
}

#[cold]
#[inline(never)]
fn from_reserve(layout: Layout) -> *mut u8 {
    let start = START.load(Ordering::Relaxed);
    if start == 0 {
        return ptr::null_mut();
    }
    let place = |used: usize| {
        let block = used.checked_next_multiple_of(layout.align())?;
        let end = block.checked_add(layout.size())?;
        (end <= RESERVE).then_some((block, end))
    };
    let claimed = USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
        place(used).map(|(_, end)| end)
    });
    let Some((block, _)) = claimed.ok().and_then(place) else {
        return ptr::null_mut();
    };
    if !SHORT.swap(true, Ordering::Relaxed) {
        run::note_internal_error();
        log::error!("memory is short: recording stops, the program goes on");
    }
    ptr::with_exposed_provenance_mut(start + block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_serves_when_the_system_does_not() {
        set_aside().unwrap();
        let layout = Layout::from_size_align(100, 64).unwrap();
        // SAFETY: blocks are used while they are allocated, within their sizes.
        unsafe {
            let (one, two) = (from_reserve(layout), from_reserve(layout));
            assert!(is_reserve(one) && is_reserve(two) && (one as usize).is_multiple_of(64));
            assert!(two as usize >= one as usize + 100);
            one.write_bytes(7, 100);
            let more = MEMORY.realloc(one, layout, 5000);
            assert!(is_reserve(more) && *more.add(99) == 7);
            MEMORY.dealloc(more, Layout::from_size_align(5000, 64).unwrap());
        }
        let huge = Layout::from_size_align(RESERVE, 8).unwrap();
        assert!(from_reserve(huge).is_null());
    }
}
