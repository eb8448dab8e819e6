//! Which threads become locations by waiting for a lock, or by giving one back.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use laggard_callpath::CallSite;

use super::Waiter;
use crate::posix;
use crate::thread::{self, UNRECORDED, slot};

/// Threads do not become locations by locks any more when the process has so many: some programs
/// make thousands, each of which has a file.
const MOST_LOCATIONS: u32 = 256;

/// How many threads became locations by locks, or are about to: those that come at the same time do not find
/// the same room, however long it takes to make their files.
static ADMITTED: AtomicU32 = AtomicU32::new(0);

/// Room for one more location.
fn is_admitted() -> bool {
    let one_more = |admitted| has_room(admitted).then_some(admitted + 1);
    let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
    ADMITTED.fetch_update(set, fetch, one_more).is_ok()
}

/// Whether so many threads and one more may become locations.
pub fn has_more_room(others: usize) -> bool {
    let others = u32::try_from(others).unwrap_or(u32::MAX);
    has_room(others.saturating_add(ADMITTED.load(Ordering::Relaxed)))
}

fn has_room(admitted: u32) -> bool {
    admitted.max(thread::locations()) < MOST_LOCATIONS
}

/// Threads that were there before the recording, by the system's number, but for the first one: the
/// MPI library's own. Those that find no place count as the program's.
static EARLY: [AtomicI32; 64] = [const { AtomicI32::new(0) }; 64];

/// Recording begins.
pub fn begins() {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let numbers = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
    // SAFETY: takes no arguments.
    let own = unsafe { libc::gettid() };
    let others = numbers.filter(|&number: &i32| number != own);
    for (early, number) in EARLY.iter().zip(others) {
        early.store(number, Ordering::Relaxed);
    }
}

/// The calling thread; `None` if it is not recorded now. One that is no location yet may become one,
/// if that is safe.
pub fn waiter(site: CallSite, become_location: bool) -> Option<Waiter> {
    // SAFETY: the slot belongs to this thread.
    let own = unsafe { *slot() };
    if own == UNRECORDED || own.is_null() && !become_location {
        return None;
    }
    if own.is_null() {
        let is_safe = || posix::is_safe(site.sp, &thread::stack());
        if is_early() || !is_safe() || !is_admitted() {
            return None;
        }
        let waiter = Waiter::begin(site);
        if waiter.is_none() {
            ADMITTED.fetch_sub(1, Ordering::Relaxed);
        }
        return waiter;
    }
    // SAFETY: states live as long as their threads.
    let state = unsafe { &*own };
    let waiter = Waiter::begin(site).filter(|_| state.has_on_stack(site.sp));
    waiter.filter(|_| posix::is_safe(site.sp, state.stack()))
}

/// Whether the calling thread was there before the recording.
fn is_early() -> bool {
    // SAFETY: takes no arguments.
    let number = unsafe { libc::gettid() };
    let mut early = EARLY.iter();
    early.any(|early| early.load(Ordering::Relaxed) == number)
}

/// Whether the calling thread is no location since there are too many.
pub fn is_beyond() -> bool {
    // SAFETY: the slot belongs to this thread.
    let is_none = unsafe { *slot() }.is_null();
    is_none && !is_early() && !has_room(ADMITTED.load(Ordering::Relaxed))
}
