//! Running statistics, the source of the final profile.

use laggard_trace::{ProfileEntry, flags};

use crate::hash::FastMap;

/// Running statistics; durations in ticks.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Statistics {
    /// Calls.
    pub count: u64,
    /// Sum of the durations.
    pub total: u64,
    /// Shortest duration.
    pub minimum: u64,
    /// Longest duration.
    pub maximum: u64,
    /// Sum of the squared durations.
    pub squares: u128,
    /// Bytes of calls whose volume differs from the signature's.
    pub bytes: u64,
}

impl Statistics {
    const NONE: Statistics = Statistics {
        count: 0,
        total: 0,
        minimum: u64::MAX,
        maximum: 0,
        squares: 0,
        bytes: 0,
    };

    /// Adds a call.
    #[inline(always)]
    pub fn add(&mut self, duration: u64) {
        self.count += 1;
        self.total = self.total.wrapping_add(duration);
        self.minimum = self.minimum.min(duration);
        self.maximum = self.maximum.max(duration);
        let square = u128::from(duration) * u128::from(duration);
        self.squares = self.squares.wrapping_add(square);
    }
}

/// Key of statistics: signatures with equal keys share them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Head {
    /// Number of the call.
    pub operation: u16,
    /// Flags of the signature.
    pub flags: u16,
    /// Call path.
    pub path: u32,
    /// Bytes per call.
    pub bytes: u64,
}

/// The statistics of one location.
#[derive(Default)]
#[repr(C)]
pub struct Profile {
    index: FastMap<Head, u32>,
    heads: Vec<Head>,
    // Last, so that it lies next to the fields of `Signatures` that every call reads.
    statistics: Vec<Statistics>,
}

impl Profile {
    /// The index of the key's statistics, which are created if new.
    pub fn of(&mut self, head: Head) -> u32 {
        *self.index.entry(head).or_insert_with(|| {
            self.heads.push(head);
            self.statistics.push(Statistics::NONE);
            self.heads.len() as u32 - 1
        })
    }

    /// The statistics with an index from [`of`](Self::of).
    ///
    /// # Safety
    /// The index came from this profile; nothing is ever removed.
    #[inline(always)]
    pub unsafe fn get(&mut self, index: u32) -> &mut Statistics {
        debug_assert!((index as usize) < self.statistics.len());
        // SAFETY: as the caller states.
        unsafe { self.statistics.get_unchecked_mut(index as usize) }
    }

    /// Number of calls so far, including paused ones.
    pub fn calls(&self) -> u64 {
        self.statistics.iter().map(|s| s.count).sum()
    }

    /// One entry for each operation and call path, and one more for calls that completed file
    /// operations.
    pub fn entries(&self) -> Vec<ProfileEntry> {
        let mut entries: Vec<ProfileEntry> = Vec::new();
        let mut index: FastMap<(u16, u16, u32), usize> = FastMap::default();
        for (head, s) in self.heads.iter().zip(&self.statistics) {
            let is_left_out = head.flags & (flags::PAUSED | flags::PROFILED) == flags::PAUSED;
            if s.count == 0 && s.bytes == 0 || is_left_out {
                continue;
            }
            let flags = head.flags & flags::ON_FILES;
            let key = (head.operation, flags, head.path);
            let at = *index.entry(key).or_insert_with(|| {
                entries.push(ProfileEntry {
                    operation: head.operation,
                    flags,
                    call_path: head.path,
                    minimum: u64::MAX,
                    ..ProfileEntry::default()
                });
                entries.len() - 1
            });
            let entry = &mut entries[at];
            entry.count += s.count;
            entry.total = entry.total.wrapping_add(s.total);
            entry.minimum = entry.minimum.min(s.minimum);
            entry.maximum = entry.maximum.max(s.maximum);
            entry.bytes = entry
                .bytes
                .wrapping_add(s.bytes.wrapping_add(head.bytes.wrapping_mul(s.count)));
            entry.sum_of_squares = entry.sum_of_squares.wrapping_add(s.squares);
        }
        entries
    }
}
