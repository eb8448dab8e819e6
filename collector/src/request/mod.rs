//! Active requests, by handle.
//!
//! One table for the process, because a thread may complete a request that another posted.
//! Below `MPI_THREAD_MULTIPLE` the program orders its calls itself, and no lock is taken.
//!
//! One handle may stand for many requests. Open MPI has one handle for all requests that are
//! complete when posted (a short message, a peer of `MPI_PROC_NULL`). The variable in which the
//! program holds the request then identifies it; otherwise they complete in posting order.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::constants::Handle;

mod shared;
mod table;

pub use table::{Entry, Posted, kind};
use table::{Table, is_shared};

/// A table and its lock.
#[repr(align(64))]
struct Shard {
    locked: AtomicBool,
    table: UnsafeCell<Table>,
}

// SAFETY: `with` takes the lock wherever threads can meet. Entries are plain data and pointers
// to groups, which they hold.
unsafe impl Sync for Shard {}

const SHARDS: usize = 16;

static TABLES: [Shard; SHARDS] = [const {
    Shard {
        locked: AtomicBool::new(false),
        table: UnsafeCell::new(Table::new()),
    }
}; SHARDS];

/// Whether MPI calls may run concurrently (`MPI_THREAD_MULTIPLE`).
static CONCURRENT: AtomicBool = AtomicBool::new(false);

/// States that MPI calls may run concurrently.
pub fn set_concurrent() {
    CONCURRENT.store(true, Ordering::Relaxed);
}

/// Whether MPI calls may run concurrently.
#[inline(always)]
pub fn is_concurrent() -> bool {
    CONCURRENT.load(Ordering::Relaxed)
}

/// The table with a handle, exclusively this thread's for now.
struct Exclusive {
    shard: &'static Shard,
    locked: bool,
}

#[inline(always)]
fn table(handle: usize) -> Exclusive {
    let locked = is_concurrent();
    let shard = match locked {
        true => lock(handle),
        false => &TABLES[0],
    };
    Exclusive { shard, locked }
}

#[inline(never)]
fn lock(handle: usize) -> &'static Shard {
    let shard = &TABLES[(handle >> 6 ^ handle >> 12) % SHARDS];
    while shard.locked.swap(true, Ordering::Acquire) {
        std::thread::yield_now();
    }
    shard
}

impl Deref for Exclusive {
    type Target = Table;

    #[inline(always)]
    fn deref(&self) -> &Table {
        // SAFETY: locked, or the program orders its calls; nested calls are not recorded. The
        // holder only works on the table.
        unsafe { &*self.shard.table.get() }
    }
}

impl DerefMut for Exclusive {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Table {
        // SAFETY: as above.
        unsafe { &mut *self.shard.table.get() }
    }
}

impl Drop for Exclusive {
    #[inline(always)]
    fn drop(&mut self) {
        if self.locked {
            self.shard.locked.store(false, Ordering::Release);
        }
    }
}

/// Adds a new request, whose handle the program keeps in `variable`.
#[inline(always)]
pub fn insert<H: Handle>(variable: *const H, entry: Entry) {
    // SAFETY: the real call succeeded and stored the handle there.
    let handle = unsafe { *variable }.bits();
    let entry = Entry {
        handle,
        variable: variable.addr(),
        ..entry
    };
    let mut table = table(handle);
    if is_shared(handle) {
        table.shared(handle).push(entry);
    } else if let Some(place) = table.place(handle) {
        *place = entry;
    }
}

/// The entry of the request with this handle in this variable.
pub fn find(handle: usize, variable: usize) -> Option<Entry> {
    let mut table = table(handle);
    if is_shared(handle) {
        return table.shared(handle).find(variable).copied();
    }
    table.entries.get(table.find(handle)?).copied()
}

/// Changes a known request with a handle of its own.
pub fn update(handle: usize, f: impl FnOnce(&mut Entry)) {
    if let Some(entry) = table(handle).get(handle) {
        f(entry);
    }
}

/// Removes a request.
pub fn remove(handle: usize, variable: usize) -> Option<Entry> {
    let mut table = table(handle);
    if is_shared(handle) {
        return table.shared(handle).take(variable, None);
    }
    let at = table.find(handle)?;
    let entry = table.entries[at];
    table.remove(at);
    Some(entry)
}

/// Completes a request. If it was active, returns the result of `f`, which may only use the
/// entry. The request is removed unless it is persistent. `before` is the entry at the start of
/// the completing call, where calls may run concurrently: another request may have got the
/// handle since.
#[inline(always)]
pub fn complete<T>(
    handle: usize,
    variable: usize,
    before: Option<&Entry>,
    f: impl FnOnce(&Entry) -> T,
) -> Option<T> {
    let mut table = table(handle);
    if is_shared(handle) {
        return table.shared(handle).complete(variable, before, f);
    }
    let found = table.find(handle);
    let now = found.and_then(|at| table.entries.get_mut(at));
    if let Some(before) = before
        && !now.as_ref().is_some_and(|now| now.is_same_post(before))
    {
        return before.is(kind::ACTIVE).then(|| f(before));
    }
    let (at, entry) = (found?, now?);
    let result = entry.is(kind::ACTIVE).then(|| f(entry));
    if entry.is(kind::PERSISTENT) {
        entry.kind &= !(kind::ACTIVE | kind::CANCELLED);
    } else {
        table.remove(at);
    }
    result
}

/// Notes that a request is complete but stays until the program completes or frees it. Returns
/// its entry if it was active until now.
pub fn settle(handle: usize) -> Option<Entry> {
    // Requests with a shared handle are complete when posted: nothing is new.
    if is_shared(handle) {
        return None;
    }
    let mut table = table(handle);
    let entry = table.get(handle)?;
    let before = *entry;
    entry.kind &= !(kind::ACTIVE | kind::CANCELLED);
    before.is(kind::ACTIVE).then_some(before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::Raw;

    fn entry(post: u64) -> Entry {
        let raw = Raw::new(14, 1);
        Entry::new(Posted::new(&raw, true), kind::ACTIVE, 0, post)
    }

    fn completed(handle: usize, before: Option<&Entry>) -> Option<u32> {
        complete(handle, 0, before, |entry| entry.post)
    }

    #[test]
    fn a_persistent_request_completes_once_for_each_start() {
        let variable = 0xabc0i32;
        let handle = variable.bits();
        insert(
            &variable,
            Entry {
                kind: kind::PERSISTENT,
                ..entry(0)
            },
        );
        assert!(completed(handle, None).is_none());
        update(handle, |entry| entry.kind |= kind::ACTIVE);
        assert!(completed(handle, None).is_some());
        assert!(completed(handle, None).is_none());
        assert!(remove(handle, 0).is_some());
        assert!(find(handle, 0).is_none());
    }

    #[test]
    fn a_request_found_complete_completes_once() {
        let variable = 0xbcd0i32;
        let handle = variable.bits();
        insert(&variable, entry(3));
        assert_eq!(settle(handle).map(|entry| entry.post), Some(3));
        assert!(settle(handle).is_none());
        assert!(completed(handle, None).is_none());
        assert!(find(handle, 0).is_none());
    }

    #[test]
    fn a_handle_given_again_is_not_taken_for_the_old_request() {
        let variable = 0xdef0i32;
        let handle = variable.bits();
        insert(&variable, entry(1));
        let before = find(handle, 0);
        insert(&variable, entry(2));
        assert_eq!(completed(handle, before.as_ref()), Some(1));
        assert_eq!(find(handle, 0).map(|entry| entry.post), Some(2));
        remove(handle, 0);
    }
}
