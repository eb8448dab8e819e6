//! The table of requests by handle, with an entry for each.

use super::shared::Shared;
use crate::constants::constants;
use crate::groups::Group;
use crate::signature::{Half, NOBODY, Raw};

/// Bits of [`Entry::kind`].
pub mod kind {
    /// A receive: its completion gives source, tag and bytes.
    pub const RECEIVE: u8 = 1;
    /// A persistent request: it stays after completion.
    pub const PERSISTENT: u8 = 2;
    /// Active: only such requests complete.
    pub const ACTIVE: u8 = 4;
    /// MPI_Cancel was called on it.
    pub const CANCELLED: u8 = 8;
    /// Persistent; its start sends a message.
    pub const SEND: u8 = 16;
    /// Persistent; its start is a non-blocking collective.
    pub const COLLECTIVE: u8 = 32;
    /// Reads or writes a file.
    pub const FILE: u8 = 64;
}

/// The collector's knowledge of a request.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Entry {
    pub(super) handle: usize,
    /// Address of the program's variable in which the posting call stored the handle.
    pub variable: usize,
    /// Signature of the posting call: flags, path, group and halves as the program gave them. A
    /// persistent request that never started has the call that made it.
    pub posted: Posted,
    /// Thread that posted it.
    pub thread: u32,
    /// Its post number in that thread (low 32 bits).
    pub post: u32,
    /// [`kind`] bits.
    pub kind: u8,
}

/// The part of a posting call's [`Raw`] that its completion needs.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Posted {
    /// Communicator, window or file.
    pub group: *const Group,
    /// Its half of a message.
    pub half: Half,
    /// Bytes that a persistent collective receives.
    pub received: u64,
    /// Call path.
    pub path: u32,
    /// Number of the call.
    pub operation: u16,
    /// Flags.
    pub flags: u16,
}

impl Posted {
    /// Takes the receive half if `receive`, else the send half.
    #[inline(always)]
    pub fn new(raw: &Raw, receive: bool) -> Self {
        if let Some(group) = raw.group() {
            group.hold();
        }
        Posted {
            group: raw.group,
            half: if receive { raw.receive } else { raw.send },
            received: 0,
            path: raw.path,
            operation: raw.operation,
            flags: raw.flags,
        }
    }
}

impl Entry {
    /// No request.
    pub(super) const NONE: Entry = Entry {
        handle: 0,
        variable: 0,
        posted: Posted {
            group: std::ptr::null(),
            half: NOBODY,
            received: 0,
            path: 0,
            operation: 0,
            flags: 0,
        },
        thread: 0,
        post: 0,
        kind: 0,
    };

    /// A request posted by `thread` as its `post`-th.
    #[inline(always)]
    pub fn new(posted: Posted, kind: u8, thread: u32, post: u64) -> Self {
        Entry {
            handle: 0,
            variable: 0,
            posted,
            thread,
            post: post as u32,
            kind,
        }
    }

    /// Whether all bits of `kind` are set.
    #[inline(always)]
    pub fn is(&self, kind: u8) -> bool {
        self.kind & kind == kind
    }

    /// Whether this is the same post as `other`, not a later one with the same handle.
    pub fn is_same_post(&self, other: &Entry) -> bool {
        (self.thread, self.post) == (other.thread, other.post)
    }
}

/// An open-addressing table keyed by handle.
#[derive(Default)]
pub struct Table {
    pub entries: Vec<Entry>,
    count: usize,
    /// Requests with shared handles; such handles are few.
    shared: Vec<(usize, Shared)>,
}

/// Marks a free place; no MPI uses this handle.
const FREE: usize = usize::MAX;

impl Table {
    #[inline(always)]
    fn home(&self, handle: usize) -> usize {
        let hash = (handle as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 32) as usize & (self.entries.len() - 1)
    }

    #[inline(always)]
    pub fn find(&self, handle: usize) -> Option<usize> {
        if self.entries.is_empty() {
            return None;
        }
        let mask = self.entries.len() - 1;
        let mut at = self.home(handle);
        loop {
            // At most 3/4 of the places are taken, so one is free.
            let found = self.entries.get(at)?.handle;
            if found == handle {
                return Some(at);
            }
            if found == FREE {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    /// The place for a request: a new one, or the old one of its handle. The caller fills it in
    /// word by word. A copy in larger units from a value just made would have to wait for its
    /// stores.
    pub fn place(&mut self, handle: usize) -> Option<&mut Entry> {
        if handle == FREE {
            return None;
        }
        if (self.count + 1) * 4 > self.entries.len() * 3 {
            self.grow();
        }
        let mask = self.entries.len() - 1;
        let mut at = self.home(handle);
        while self.entries[at].handle != handle {
            if self.entries[at].handle == FREE {
                self.count += 1;
                break;
            }
            at = (at + 1) & mask;
        }
        let entry = &mut self.entries[at];
        entry.handle = handle;
        Some(entry)
    }

    /// The request with a handle of its own.
    pub fn get(&mut self, handle: usize) -> Option<&mut Entry> {
        let at = self.find(handle)?;
        self.entries.get_mut(at)
    }

    /// The requests with a shared handle.
    #[inline]
    pub fn shared(&mut self, handle: usize) -> &mut Shared {
        // Most MPIs have one such handle.
        let known = self.shared.iter().position(|(known, _)| *known == handle);
        let at = known.unwrap_or_else(|| {
            self.shared.push((handle, Shared::default()));
            self.shared.len() - 1
        });
        &mut self.shared[at].1
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let free = Entry {
            handle: FREE,
            ..Entry::NONE
        };
        let size = (self.entries.len() * 2).max(64);
        let old = std::mem::replace(&mut self.entries, vec![free; size]);
        self.count = 0;
        for entry in old.into_iter().filter(|entry| entry.handle != FREE) {
            if let Some(place) = self.place(entry.handle) {
                *place = entry;
            }
        }
    }

    /// Frees a place and moves up the entries that were displaced past it.
    pub fn remove(&mut self, at: usize) {
        let mask = self.entries.len() - 1;
        let (mut hole, mut next) = (at, at);
        self.count -= 1;
        loop {
            next = (next + 1) & mask;
            let handle = self.entries[next].handle;
            if handle == FREE {
                break;
            }
            let distance = next.wrapping_sub(self.home(handle)) & mask;
            if distance >= (next.wrapping_sub(hole) & mask) {
                self.entries[hole] = self.entries[next];
                hole = next;
            }
        }
        self.entries[hole].handle = FREE;
    }
}

/// Whether many requests may have this handle.
#[inline(always)]
pub fn is_shared(handle: usize) -> bool {
    if cfg!(mpich) {
        // Request handles of the "built-in" kind.
        return handle & 0xfc00_0000 == 0x6c00_0000;
    }
    handle == constants().request_empty.addr()
}

impl Table {
    /// An empty table.
    pub const fn new() -> Self {
        Table {
            entries: Vec::new(),
            count: 0,
            shared: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn entry(post: u64) -> Entry {
        let raw = Raw::new(14, 1);
        Entry::new(Posted::new(&raw, true), kind::ACTIVE, 0, post)
    }

    #[test]
    fn the_table_does_what_a_map_does() {
        let mut table = Table::default();
        let mut model: HashMap<usize, u32> = HashMap::new();
        let mut random = 1u64;
        for step in 0..20_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let handle = 0x1000 + ((random >> 40) as usize % 300) * 64;
            if random >> 62 == 0 {
                let at = table.find(handle);
                assert_eq!(at.is_some(), model.remove(&handle).is_some());
                if let Some(at) = at {
                    table.remove(at);
                }
            } else {
                let entry = entry(step);
                *table.place(handle).unwrap() = Entry { handle, ..entry };
                model.insert(handle, step as u32);
            }
            assert_eq!(table.count, model.len());
        }
        for (handle, post) in &model {
            assert_eq!(table.entries[table.find(*handle).unwrap()].post, *post);
        }
    }
}
