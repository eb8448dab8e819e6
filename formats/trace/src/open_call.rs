//! The call that is under way: what tells where a process hung when it was killed.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::block::*;
use crate::{PEER_NONE, SymmetricAddress};

/// A call that was entered and did not return, the last 64 bytes of its block's payload. Layout
/// as in `FORMAT.md`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct OpenCall {
    /// When it was entered, ticks; 0 = no call is under way.
    pub enter: u64,
    /// Number of the call, see [`calls`](crate::calls).
    pub operation: u16,
    /// [`OpenCall::HAS_ADDRESS`], [`OpenCall::HAS_VALUE`], [`OpenCall::INCOMPLETE`].
    pub flags: u16,
    /// Call path id.
    pub call_path: u32,
    /// Communicator, window or file that it is on; 0 = not known.
    pub group: u64,
    /// Who it is waiting for: a world rank, or a `PEER_` constant.
    pub peer: i32,
    /// Tag of a message; comparison of a wait for a value.
    pub tag: i32,
    /// What it waits for in symmetric memory: a variable or a lock.
    pub address: u64,
    /// What that variable is compared with.
    pub value: u64,
    /// Zero.
    pub reserved: u64,
    /// Exclusive or of the seven words before.
    pub check: u64,
}

const WORDS: usize = size_of::<OpenCall>() / 8;
const _: () = assert!(size_of::<OpenCall>() == 64);

/// Payload before the [`OpenCall`], so that this is one line of a processor's cache.
const BEFORE: usize = 24;

/// What a call is about, as far as it is known when it is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// As in [`OpenCall`].
    pub flags: u16,
    /// As in [`OpenCall`].
    pub group: u64,
    /// As in [`OpenCall`].
    pub peer: i32,
    /// As in [`OpenCall`].
    pub tag: i32,
    /// As in [`OpenCall`].
    pub address: u64,
    /// As in [`OpenCall`].
    pub value: u64,
}

impl Subject {
    /// Nothing is known.
    pub const NONE: Subject = Subject {
        flags: 0,
        group: 0,
        peer: PEER_NONE,
        tag: 0,
        address: 0,
        value: 0,
    };
}

impl OpenCall {
    /// [`OpenCall::flags`]: `address` is one.
    pub const HAS_ADDRESS: u16 = 1;
    /// [`OpenCall::flags`]: `value` is what the variable there is compared with.
    pub const HAS_VALUE: u16 = 2;
    /// [`OpenCall::flags`]: of the calls before it some are not in the file.
    pub const INCOMPLETE: u16 = 4;

    /// The call in the payload of a block, if one is under way and its check holds.
    pub fn read(payload: &[u8]) -> Option<OpenCall> {
        let bytes = payload.get(BEFORE..BEFORE + size_of::<OpenCall>())?;
        let words: [u64; WORDS] = FromBytes::read_from_bytes(bytes).ok()?;
        let call: OpenCall = FromBytes::read_from_bytes(bytes).ok()?;
        let check = words[..WORDS - 1].iter().fold(0, |a, b| a ^ b);
        (call.enter != 0 && call.check == check).then_some(call)
    }

    /// Whether the payload of a block tells that no call is under way.
    pub fn is_none(payload: &[u8]) -> bool {
        let enter = payload.get(BEFORE..BEFORE + size_of::<u64>());
        enter.is_some_and(|enter| enter.iter().all(|&byte| byte == 0))
    }

    /// What it waits for in symmetric memory.
    pub fn symmetric(&self) -> Option<SymmetricAddress> {
        (self.flags & Self::HAS_ADDRESS != 0).then_some(SymmetricAddress(self.address))
    }

    /// What the variable there is compared with.
    pub fn compared(&self) -> Option<u64> {
        (self.flags & Self::HAS_VALUE != 0).then_some(self.value)
    }
}

/// Where a writer notes the call that is under way: plain stores to one line of the cache, in
/// a page that stays mapped. A process that is killed leaves what it stored.
#[derive(Debug)]
pub struct OpenCallSlot {
    words: *mut u64,
    /// Flags of every call.
    flags: u16,
    /// The block in the file's page; null if the notes go nowhere.
    block: *mut u8,
}

/// Takes the notes of locations that keep none; nobody reads them.
static NOWHERE: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

impl Default for OpenCallSlot {
    /// One whose notes go nowhere.
    fn default() -> Self {
        OpenCallSlot {
            words: NOWHERE[0].as_ptr(),
            flags: 0,
            block: ptr::null_mut(),
        }
    }
}

impl OpenCallSlot {
    const PAYLOAD: usize = BEFORE + size_of::<OpenCall>();
    /// Bytes of the block.
    pub(crate) const BLOCK: usize = BLOCK_HEADER + Self::PAYLOAD;

    /// Begins the block at this offset of a page.
    ///
    /// # Safety
    /// The page is mapped as long as the slot is used, and the block's bytes in it are zero and
    /// nobody else's. `at + BLOCK` is within the page and `at` a multiple of 8.
    pub(crate) unsafe fn begin(page: *mut u8, at: usize) -> OpenCallSlot {
        let header = BlockHeader {
            magic: BLOCK_MAGIC,
            kind: BlockKind::OpenCall as u16,
            length: Self::PAYLOAD as u32,
            ..BlockHeader::default()
        };
        // SAFETY: as the caller states.
        unsafe {
            let block = page.add(at);
            ptr::copy_nonoverlapping(header.as_bytes().as_ptr(), block, BLOCK_HEADER);
            OpenCallSlot {
                words: block.add(BLOCK_HEADER + BEFORE).cast(),
                flags: 0,
                block,
            }
        }
    }

    #[inline(always)]
    fn store(&self, word: usize, value: u64, order: Ordering) {
        // SAFETY: so many words are there, in the page or in `NOWHERE`.
        unsafe { AtomicU64::from_ptr(self.words.add(word)) }.store(value, order);
    }

    /// Notes a call that is entered.
    #[inline(always)]
    pub fn enter(&mut self, enter: u64, operation: u16, call_path: u32, subject: &Subject) {
        let what = u64::from(operation)
            | u64::from(subject.flags | self.flags) << 16
            | u64::from(call_path) << 32;
        let who = u64::from(subject.peer as u32) | u64::from(subject.tag as u32) << 32;
        let check = enter ^ what ^ subject.group ^ who ^ subject.address ^ subject.value;
        self.store(1, what, Ordering::Relaxed);
        self.store(2, subject.group, Ordering::Relaxed);
        self.store(3, who, Ordering::Relaxed);
        self.store(4, subject.address, Ordering::Relaxed);
        self.store(5, subject.value, Ordering::Relaxed);
        self.store(7, check, Ordering::Relaxed);
        // The rest is the call's once this is there; a plain store where that is all it takes.
        self.store(0, enter, Ordering::Release);
    }

    /// From here on the file lacks calls.
    pub fn note_incomplete(&mut self) {
        self.flags |= OpenCall::INCOMPLETE;
    }

    /// Notes that it has returned.
    #[inline(always)]
    pub fn leave(&mut self) {
        self.store(0, 0, Ordering::Release);
    }

    /// Ends the block: the file is closed.
    pub(crate) fn seal(&mut self) {
        if self.block.is_null() {
            return;
        }
        // SAFETY: the block that `begin` was given, in a page that is still mapped.
        unsafe {
            let payload = std::slice::from_raw_parts(self.block.add(BLOCK_HEADER), Self::PAYLOAD);
            let header = BlockHeader::sealed(BlockKind::OpenCall, 1, 0, 0, payload);
            ptr::copy_nonoverlapping(header.as_bytes().as_ptr(), self.block, BLOCK_HEADER);
        }
        *self = OpenCallSlot::default();
    }
}
