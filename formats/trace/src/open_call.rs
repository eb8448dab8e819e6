//! The open call: tells where a process hung when it was killed.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::block::*;
use crate::{PEER_NONE, SymmetricAddress};

/// A call that was entered and did not return: the last 64 bytes of its block's payload. Layout
/// as in `FORMAT.md`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct OpenCall {
    /// Time of entry, ticks; 0 = no call is open.
    pub enter: u64,
    /// Number of the call, see [`calls`](crate::calls).
    pub operation: u16,
    /// [`OpenCall::HAS_ADDRESS`], [`OpenCall::HAS_VALUE`], [`OpenCall::INCOMPLETE`].
    pub flags: u16,
    /// Call path id.
    pub call_path: u32,
    /// Communicator, window or file of the call; 0 = unknown.
    pub group: u64,
    /// The rank that it waits for: a world rank, or a `PEER_` constant.
    pub peer: i32,
    /// Message tag, or the comparison of a wait for a value; of a wait for a thread 1 if it has a time limit.
    pub tag: i32,
    /// Symmetric address of the variable or lock that it waits for.
    pub address: u64,
    /// Value that the variable is compared with.
    pub value: u64,
    /// Zero.
    pub reserved: u64,
    /// Exclusive or of the seven preceding words.
    pub check: u64,
}

const WORDS: usize = size_of::<OpenCall>() / 8;
const _: () = assert!(size_of::<OpenCall>() == 64);

/// Payload before the [`OpenCall`], bytes; aligns it to a cache line.
const BEFORE: usize = 24;

/// The subject of a call, as far as known at its entry.
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
    /// An unknown subject.
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
    /// Bytes of its block's payload.
    pub(crate) const PAYLOAD: usize = BEFORE + size_of::<OpenCall>();
    /// [`OpenCall::flags`]: `address` is valid.
    pub const HAS_ADDRESS: u16 = 1;
    /// [`OpenCall::flags`]: `value` is valid.
    pub const HAS_VALUE: u16 = 2;
    /// [`OpenCall::flags`]: some earlier calls are not in the file.
    pub const INCOMPLETE: u16 = 4;

    /// The open call in a block's payload, if there is one and its check holds.
    pub fn read(payload: &[u8]) -> Option<OpenCall> {
        let bytes = payload.get(BEFORE..BEFORE + size_of::<OpenCall>())?;
        let words: [u64; WORDS] = FromBytes::read_from_bytes(bytes).ok()?;
        let call: OpenCall = FromBytes::read_from_bytes(bytes).ok()?;
        let check = words[..WORDS - 1].iter().fold(0, |a, b| a ^ b);
        (call.enter != 0 && call.check == check).then_some(call)
    }

    /// Whether a block's payload says that no call is open.
    pub fn is_none(payload: &[u8]) -> bool {
        let enter = payload.get(BEFORE..BEFORE + size_of::<u64>());
        enter.is_some_and(|enter| enter.iter().all(|&byte| byte == 0))
    }

    /// The number of the user's wish that the location follows, see [`Control`](crate::Control).
    pub fn steered(payload: &[u8]) -> u32 {
        let bytes = payload.get(BEFORE - size_of::<u64>()..BEFORE);
        let word = bytes.and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
        word.map_or(0, |word| u64::from_le_bytes(word) as u32)
    }

    /// The symmetric address that it waits for.
    pub fn symmetric(&self) -> Option<SymmetricAddress> {
        (self.flags & Self::HAS_ADDRESS != 0).then_some(SymmetricAddress(self.address))
    }

    /// The value that the variable is compared with.
    pub fn compared(&self) -> Option<u64> {
        (self.flags & Self::HAS_VALUE != 0).then_some(self.value)
    }
}

/// The place where a writer notes the open call: plain stores to one cache line, in a page that
/// stays mapped. The stores survive a killed process.
#[derive(Debug)]
pub struct OpenCallSlot {
    words: *mut u64,
    /// Flags of every call.
    flags: u16,
    /// The block in the file's page; null if the notes are dropped.
    block: *mut u8,
}

/// Takes the notes of locations without an open-call block; nobody reads it.
static NOWHERE: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

impl Default for OpenCallSlot {
    /// A slot that drops its notes.
    fn default() -> Self {
        OpenCallSlot {
            words: NOWHERE[0].as_ptr(),
            flags: 0,
            block: ptr::null_mut(),
        }
    }
}

impl OpenCallSlot {
    /// Size of the block, bytes.
    pub(crate) const BLOCK: usize = BLOCK_HEADER + OpenCall::PAYLOAD;

    /// Begins the block at offset `at` of a page.
    ///
    /// # Safety
    /// The page stays mapped while the slot is used. The block's bytes are zero, and nothing
    /// else uses them. `at + BLOCK` is within the page, and `at` is a multiple of 8.
    pub(crate) unsafe fn begin(page: *mut u8, at: usize) -> OpenCallSlot {
        let header = BlockHeader {
            magic: BLOCK_MAGIC,
            kind: BlockKind::OpenCall as u16,
            length: OpenCall::PAYLOAD as u32,
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
        // SAFETY: the page or `NOWHERE` has this word.
        unsafe { AtomicU64::from_ptr(self.words.add(word)) }.store(value, order);
    }

    /// Notes that a call is entered.
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
        // Stored last: the other words then belong to this call. A plain store where the
        // processor allows.
        self.store(0, enter, Ordering::Release);
    }

    /// Notes that the file lacks calls from here on.
    pub fn note_incomplete(&mut self) {
        self.flags |= OpenCall::INCOMPLETE;
    }

    /// Notes which wish of the user the location follows.
    pub fn note_steered(&mut self, number: u32) {
        if !self.block.is_null() {
            // SAFETY: the word before the open call, in the block's page.
            unsafe { AtomicU64::from_ptr(self.words.sub(1)) }
                .store(number.into(), Ordering::Relaxed);
        }
    }

    /// Notes that the call has returned.
    #[inline(always)]
    pub fn leave(&mut self) {
        self.store(0, 0, Ordering::Release);
    }

    /// Ends the block: the file is closed.
    pub(crate) fn seal(&mut self) {
        if self.block.is_null() {
            return;
        }
        // SAFETY: the block given to `begin`, in a page that is still mapped.
        unsafe {
            let payload =
                std::slice::from_raw_parts(self.block.add(BLOCK_HEADER), OpenCall::PAYLOAD);
            let header = BlockHeader::sealed(BlockKind::OpenCall, 1, 0, 0, payload);
            ptr::copy_nonoverlapping(header.as_bytes().as_ptr(), self.block, BLOCK_HEADER);
        }
        *self = OpenCallSlot::default();
    }
}
