//! Requests under way, by handle.
//!
//! One table for the process, since a thread may complete what another posted. Where
//! MPI is not initialised for concurrent calls (below `MPI_THREAD_MULTIPLE`) the
//! program itself orders its calls, and no lock is taken.
//!
//! One handle may stand for many requests: what is complete when it is posted (a short
//! message, a peer that is no process) gets a handle that Open MPI keeps for all such
//! requests. Of those the variable in which the program holds the request tells which
//! one is meant, or else they complete in the order of posting.

use std::cell::UnsafeCell;
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

// SAFETY: `with` takes the lock wherever threads can meet, and entries are plain data
// beside pointers to groups, which are never freed.
unsafe impl Sync for Shard {}

const SHARDS: usize = 16;

static TABLES: [Shard; SHARDS] = [const {
    Shard {
        locked: AtomicBool::new(false),
        table: UnsafeCell::new(Table::new()),
    }
}; SHARDS];

/// Whether MPI calls may meet (`MPI_THREAD_MULTIPLE`).
static CONCURRENT: AtomicBool = AtomicBool::new(false);

/// States that MPI calls may meet.
pub fn set_concurrent() {
    CONCURRENT.store(true, Ordering::Relaxed);
}

/// Whether MPI calls may meet.
#[inline(always)]
pub fn is_concurrent() -> bool {
    CONCURRENT.load(Ordering::Relaxed)
}

#[inline(always)]
fn with<T>(handle: usize, f: impl FnOnce(&mut Table) -> T) -> T {
    if !is_concurrent() {
        // SAFETY: the program orders its calls, and calls inside calls are not recorded.
        return f(unsafe { &mut *TABLES[0].table.get() });
    }
    let shard = &TABLES[(handle >> 6 ^ handle >> 12) % SHARDS];
    while shard.locked.swap(true, Ordering::Acquire) {
        std::thread::yield_now();
    }
    // SAFETY: locked. `f` only works on the table.
    let result = f(unsafe { &mut *shard.table.get() });
    shard.locked.store(false, Ordering::Release);
    result
}

/// Enters a new request, whose handle the program keeps in `variable`.
#[inline(always)]
pub fn insert<H: Handle>(variable: *const H, entry: Entry) {
    // SAFETY: the real call succeeded and stored the handle there.
    let handle = unsafe { *variable }.bits();
    let entry = Entry {
        variable: variable.addr(),
        ..entry
    };
    with(handle, |table| match is_shared(handle) {
        false => table.insert(handle, entry),
        true => table.shared(handle).push(entry),
    });
}

/// What is known of the request with this handle in this variable.
#[inline(always)]
pub fn find(handle: usize, variable: usize) -> Option<Entry> {
    with(handle, |table| {
        if is_shared(handle) {
            return table.shared(handle).find(variable).copied();
        }
        table.entries.get(table.find(handle)?).copied()
    })
}

/// Changes a request that is known and has a handle of its own.
pub fn update(handle: usize, f: impl FnOnce(&mut Entry)) {
    with(handle, |table| {
        if let Some(entry) = table.find(handle).and_then(|at| table.entries.get_mut(at)) {
            f(entry);
        }
    });
}

/// Forgets a request.
pub fn remove(handle: usize, variable: usize) -> Option<Entry> {
    with(handle, |table| {
        if is_shared(handle) {
            return table.shared(handle).take(variable, None);
        }
        let at = table.find(handle)?;
        let entry = table.entries[at];
        table.remove(at);
        Some(entry)
    })
}

/// A request has completed: what it was, if it was under way. It is forgotten unless
/// it is persistent. `before` is what was known when the completing call began, where
/// calls may meet: the handle may have been given to another request since.
#[inline(always)]
pub fn complete(handle: usize, variable: usize, before: Option<&Entry>) -> Option<Entry> {
    with(handle, |table| {
        if is_shared(handle) {
            return table.shared(handle).take(variable, before);
        }
        let at = table.find(handle);
        let now = at.and_then(|at| table.entries.get(at).copied());
        let entry = match before {
            Some(before) if !now.is_some_and(|now| now.is_same_post(before)) => {
                return before.is(kind::ACTIVE).then_some(*before);
            }
            _ => now?,
        };
        let at = at?;
        if entry.is(kind::PERSISTENT) {
            table.entries[at].kind &= !(kind::ACTIVE | kind::CANCELLED);
        } else {
            table.remove(at);
        }
        entry.is(kind::ACTIVE).then_some(entry)
    })
}

/// A request is found to be complete, and stays until the program completes or frees it:
/// what it was, if it was under way until now.
pub fn settle(handle: usize) -> Option<Entry> {
    // Of those with a shared handle nothing is found out: they were complete when posted.
    if is_shared(handle) {
        return None;
    }
    with(handle, |table| {
        let at = table.find(handle)?;
        let entry = table.entries.get_mut(at)?;
        let before = *entry;
        entry.kind &= !(kind::ACTIVE | kind::CANCELLED);
        before.is(kind::ACTIVE).then_some(before)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::Raw;

    fn entry(post: u64) -> Entry {
        let raw = Raw::new(14, 1);
        Entry::new(Posted::new(&raw, true), kind::ACTIVE, 0, post)
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
        assert!(complete(handle, 0, None).is_none());
        update(handle, |entry| entry.kind |= kind::ACTIVE);
        assert!(complete(handle, 0, None).is_some());
        assert!(complete(handle, 0, None).is_none());
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
        assert!(complete(handle, 0, None).is_none());
        assert!(find(handle, 0).is_none());
    }

    #[test]
    fn a_handle_given_again_is_not_taken_for_the_old_request() {
        let variable = 0xdef0i32;
        let handle = variable.bits();
        insert(&variable, entry(1));
        let before = find(handle, 0);
        insert(&variable, entry(2));
        let completed = complete(handle, 0, before.as_ref());
        assert_eq!(completed.map(|entry| entry.post), Some(1));
        assert_eq!(find(handle, 0).map(|entry| entry.post), Some(2));
        remove(handle, 0);
    }
}
