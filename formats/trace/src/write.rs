//! Writes one location's file.

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use zerocopy::IntoBytes;

use crate::block::*;
use crate::{Definition, Extension, OpenCallSlot, Record, Space, so_far};

/// Most bytes of records in one block.
pub const CHUNK_BYTES: usize = 64 * 1024;
/// Bytes kept in the last window for definitions, profile and end, in case the disk is full.
const RESERVE: usize = 24 * 1024;
/// Payload of the first definitions block, bytes; later ones are larger.
const FIRST_DEFINITIONS: usize = 2048;
const MAX_DEFINITIONS: usize = 16 * 1024;
/// Most extension records of a call: a block's length has 32 bits.
const MAX_EXTENSIONS: usize = (u32::MAX as usize - PAGE) / size_of::<Record>();

/// Writes the records, definitions and closing blocks of one location.
///
/// [`push`](Self::push) is the hot path: a subtraction, two compares and three stores. No
/// method fails towards the caller: if the space refuses more, records are counted as lost
/// ([`lost`](Self::lost), [`limits`](Self::limits)).
// The fields that every call reads come first.
#[repr(C)]
pub struct LocationWriter<S: Space> {
    cursor: *mut Record,
    end: *mut Record,
    /// Base of the next record's offset, ticks.
    base: u64,
    open_call: OpenCallSlot,
    space: S,
    chunk: Option<Chunk>,
    definitions: Option<OpenDefinitions>,
    /// Payload of the next definitions block, bytes.
    definitions_room: usize,
    window: *mut u8,
    window_size: usize,
    /// Bytes of the window that sealed blocks occupy.
    used: usize,
    /// File offset of the window.
    window_offset: u64,
    prepared: bool,
    /// The profile so far in this window.
    so_far: Option<SoFar>,
    /// How often the profile was told.
    told: u64,
    max_bytes: u64,
    limits: u32,
    lost: u64,
    scratch: Vec<u8>,
}

/// Start of the block after one that ends at `offset` of a window. Windows begin at multiples
/// of a page, and no header crosses the end of a page.
fn next_block(offset: usize) -> usize {
    match PAGE - offset % PAGE {
        rest if rest < BLOCK_HEADER => offset + rest,
        _ => offset,
    }
}

/// Seals a block. Who reads the file meanwhile sees the count, of which an unsealed block has
/// none, before the seal.
///
/// # Safety
/// The block's header is at `at`.
unsafe fn store_seal(at: *mut u8, header: &BlockHeader) {
    /// Magic, kind, flags, length and checksum.
    const FIRST: usize = 16;
    let (first, rest) = header.as_bytes().split_at(FIRST);
    // SAFETY: both are parts of the header.
    unsafe {
        ptr::copy_nonoverlapping(rest.as_ptr(), at.add(FIRST), rest.len());
        fence(Ordering::Release);
        ptr::copy_nonoverlapping(first.as_ptr(), at, FIRST);
    }
    // Only then is what follows it written.
    fence(Ordering::Release);
}

/// The definitions block being filled. It precedes the chunk and takes new definitions while it
/// has room, so that they do not end the chunk.
struct OpenDefinitions {
    header: usize,
    length: usize,
    room: usize,
    count: u32,
}

/// The block of the profile so far.
struct SoFar {
    header: usize,
    /// Entries for which it has room.
    room: usize,
}

/// The records block being filled.
struct Chunk {
    header: usize,
    base: u64,
    monotonic_ns: u64,
    first: *mut Record,
}

// SAFETY: the pointers lead into windows that `space` owns and that move with it.
unsafe impl<S: Space + Send> Send for LocationWriter<S> {}

impl<S: Space> LocationWriter<S> {
    /// Starts a file with this header, whose checksum is filled in. `max_bytes` bounds the
    /// file: records beyond it are lost, other blocks are still written.
    pub fn new(
        mut space: S,
        mut header: FileHeader,
        max_bytes: Option<u64>,
    ) -> std::io::Result<Self> {
        let (window, window_size) = space.advance(0)?;
        header.checksum = header.expected_checksum();
        // SAFETY: a window holds at least a page.
        unsafe { ptr::copy_nonoverlapping(header.as_bytes().as_ptr(), window, 128) };
        Ok(LocationWriter {
            space,
            cursor: ptr::null_mut(),
            end: ptr::null_mut(),
            base: 0,
            chunk: None,
            definitions: None,
            definitions_room: FIRST_DEFINITIONS,
            open_call: OpenCallSlot::default(),
            window,
            window_size,
            used: 128,
            window_offset: 0,
            prepared: false,
            so_far: None,
            told: 0,
            max_bytes: max_bytes.unwrap_or(u64::MAX),
            limits: 0,
            lost: 0,
            scratch: Vec::new(),
        })
    }

    /// Reserves the place of the open call, right after the header of an otherwise empty file.
    /// Without it, or if the space refuses, a call that never returns leaves no trace.
    pub fn keep_open_call(&mut self) {
        if self.used != size_of::<FileHeader>() {
            return;
        }
        if let Ok(page) = self.space.first_page() {
            // SAFETY: the page lives as long as the space. `used` moves past the block, so
            // nothing else goes there.
            self.open_call = unsafe { OpenCallSlot::begin(page, self.used) };
            self.used = next_block(self.used + OpenCallSlot::BLOCK);
        }
    }

    /// The slot of the open call.
    #[inline(always)]
    pub fn open_call(&mut self) -> &mut OpenCallSlot {
        &mut self.open_call
    }

    /// Records a call without extensions. `enter` and `leave` are ticks.
    #[inline(always)]
    pub fn push(&mut self, enter: u64, leave: u64, signature: u32) {
        let offset = enter.wrapping_sub(self.base);
        let duration = leave.wrapping_sub(enter);
        if self.cursor < self.end && (offset | duration) <= u64::from(u32::MAX) {
            // SAFETY: `cursor` is inside the open chunk of the mapped window.
            unsafe { self.store(offset as u32, duration as u32, signature) };
        } else {
            self.push_slowly(&[], enter, leave, signature);
        }
    }

    /// Records a call with extension records.
    #[inline(always)]
    pub fn push_extended(&mut self, extensions: &[Record], enter: u64, leave: u64, signature: u32) {
        let offset = enter.wrapping_sub(self.base);
        let duration = leave.wrapping_sub(enter);
        let room = (self.end as usize).saturating_sub(self.cursor as usize) / size_of::<Record>();
        if extensions.len() < room && (offset | duration) <= u64::from(u32::MAX) {
            // SAFETY: all these records, and one more, fit between `cursor` and `end`.
            unsafe {
                for record in extensions {
                    self.store(record.enter, record.duration, record.signature);
                }
                self.store(offset as u32, duration as u32, signature);
            }
        } else {
            self.push_slowly(extensions, enter, leave, signature);
        }
    }

    /// # Safety
    /// `cursor < end`.
    #[inline(always)]
    unsafe fn store(&mut self, a: u32, b: u32, signature: u32) {
        // SAFETY: see above. The id is stored last, because 0 means "not written".
        unsafe {
            (*self.cursor).enter = a;
            (*self.cursor).duration = b;
            AtomicU32::from_ptr(&raw mut (*self.cursor).signature)
                .store(signature, Ordering::Release);
            self.cursor = self.cursor.add(1);
        }
    }

    #[cold]
    #[inline(never)]
    fn push_slowly(&mut self, extensions: &[Record], enter: u64, leave: u64, signature: u32) {
        if extensions.len() > MAX_EXTENSIONS {
            self.lose();
            return;
        }
        let duration = leave.saturating_sub(enter);
        let needed = extensions.len() + 3;
        let room = (self.end as usize).saturating_sub(self.cursor as usize) / size_of::<Record>();
        if room < needed || enter < self.base {
            self.seal_chunk();
            if !self.open_chunk(needed, enter) {
                self.lose();
                return;
            }
        }
        let offset = enter - self.base;
        if offset > u64::from(u32::MAX) {
            self.put(Record::extension_u64(Extension::Advance, offset));
            self.base = enter;
        }
        if duration > u64::from(u32::MAX) {
            self.put(Record::extension_u64(
                Extension::LongDuration,
                duration >> 32,
            ));
        }
        for record in extensions {
            self.put(*record);
        }
        let enter = (enter - self.base) as u32;
        self.put(Record {
            enter,
            duration: duration as u32,
            signature,
        });
    }

    fn lose(&mut self) {
        self.lost += 1;
        self.open_call.note_incomplete();
    }

    /// Stores a record; `push_slowly` has made room for it.
    fn put(&mut self, record: Record) {
        debug_assert!(self.cursor < self.end);
        // SAFETY: `push_slowly` made sure that all its records fit.
        unsafe { self.store(record.enter, record.duration, record.signature) };
    }

    /// Calls lost to a limit.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// `LIMIT_` bits: the reasons for lost records.
    pub fn limits(&self) -> u32 {
        self.limits
    }

    /// Size of the file so far, bytes.
    pub fn bytes(&self) -> u64 {
        self.window_offset + self.used as u64
    }

    /// Whether records are still kept.
    pub fn is_recording(&self) -> bool {
        self.limits & (LIMIT_SIZE | LIMIT_WRITE) == 0
    }

    /// Whether somebody truncated the file, so that stores are lost.
    pub fn is_cut_off(&self) -> bool {
        self.space.is_cut_off()
    }

    fn open_chunk(&mut self, needed: usize, base: u64) -> bool {
        if self.is_cut_off() {
            self.limits |= LIMIT_WRITE;
        }
        if !self.is_recording() {
            return false;
        }
        let minimum = BLOCK_HEADER + needed * size_of::<Record>();
        if self.bytes() + minimum as u64 > self.max_bytes {
            self.limits |= LIMIT_SIZE;
            return false;
        }
        if !self.keep_reserve(minimum) || !self.make_room(minimum) {
            return false;
        }
        let mut remaining = self.window_size - self.used;
        if !self.prepared {
            // Excludes the reserve, unless `make_room` gave a window of that size only.
            remaining = remaining.saturating_sub(RESERVE).max(minimum);
        }
        let room = (remaining - BLOCK_HEADER).min(CHUNK_BYTES.max(minimum));
        let room = room / 24 * 24;
        let monotonic_ns = self.space.monotonic_ns();
        let header = BlockHeader {
            magic: BLOCK_MAGIC,
            kind: BlockKind::Records as u16,
            flags: 0,
            length: room as u32,
            checksum: 0,
            base,
            monotonic_ns,
            count: 0,
            reserved: 0,
        };
        // SAFETY: `make_room` left header and room inside the window.
        unsafe {
            let at = self.window.add(self.used);
            ptr::copy_nonoverlapping(header.as_bytes().as_ptr(), at, BLOCK_HEADER);
            self.cursor = at.add(BLOCK_HEADER).cast();
            self.end = self.cursor.add(room / size_of::<Record>());
        }
        self.base = base;
        self.chunk = Some(Chunk {
            header: self.used,
            base,
            monotonic_ns,
            first: self.cursor,
        });
        true
    }

    /// Makes sure that after `bytes` more the window still has its reserve, or that a next
    /// window exists: profile and end must fit even on a full disk.
    fn keep_reserve(&mut self, bytes: usize) -> bool {
        if self.is_cut_off() {
            self.limits |= LIMIT_WRITE;
        }
        let remaining = self.window_size - self.used;
        if self.prepared || remaining >= bytes + RESERVE {
            return true;
        }
        self.prepared = self.space.prepare(bytes + RESERVE).is_ok();
        if !self.prepared {
            self.limits |= LIMIT_WRITE;
        }
        self.prepared
    }

    fn seal_chunk(&mut self) {
        let Some(chunk) = self.chunk.take() else {
            return;
        };
        let length = self.cursor as usize - chunk.first as usize;
        self.cursor = ptr::null_mut();
        self.end = ptr::null_mut();
        // SAFETY: header and records lie in the window.
        unsafe {
            let at = self.window.add(chunk.header);
            if length == 0 {
                ptr::write_bytes(at, 0, BLOCK_HEADER);
                fence(Ordering::Release);
                return;
            }
            let payload = std::slice::from_raw_parts(at.add(BLOCK_HEADER), length);
            let count = (length / size_of::<Record>()) as u32;
            let header = BlockHeader::sealed(
                BlockKind::Records,
                count,
                chunk.base,
                chunk.monotonic_ns,
                payload,
            );
            store_seal(at, &header);
        }
        self.used = next_block(chunk.header + BLOCK_HEADER + align(length));
    }

    /// Provides `bytes` of the window at `used`; the chunk must be sealed.
    fn make_room(&mut self, bytes: usize) -> bool {
        let remaining = self.window_size - self.used;
        if remaining >= bytes {
            return true;
        }
        if !self.prepared && self.space.prepare(bytes).is_err() {
            self.limits |= LIMIT_WRITE;
            return false;
        }
        self.seal_definitions();
        self.seal_so_far();
        self.pad();
        match self.space.advance(bytes) {
            Ok((window, size)) => {
                self.window_offset += self.window_size as u64;
                self.window = window;
                self.window_size = size;
                self.used = 0;
                self.prepared = false;
                true
            }
            Err(_) => {
                self.limits |= LIMIT_WRITE;
                false
            }
        }
    }

    /// Fills the rest of the window, so that a reader finds the next one.
    fn pad(&mut self) {
        let remaining = self.window_size - self.used;
        if remaining < BLOCK_HEADER {
            return;
        }
        // SAFETY: `remaining` bytes of the window are unused.
        unsafe {
            let at = self.window.add(self.used);
            let payload =
                std::slice::from_raw_parts(at.add(BLOCK_HEADER), remaining - BLOCK_HEADER);
            let header = BlockHeader::sealed(BlockKind::Padding, 0, 0, 0, payload);
            ptr::copy_nonoverlapping(header.as_bytes().as_ptr(), at, BLOCK_HEADER);
        }
        self.used = self.window_size;
    }

    /// Appends a sealed block.
    pub fn block(&mut self, kind: BlockKind, count: u32, payload: &[u8]) -> bool {
        self.seal_chunk();
        let size = BLOCK_HEADER + align(payload.len());
        let spare = match kind {
            BlockKind::End => 0,
            _ => BLOCK_HEADER + size_of::<End>() + BLOCK_HEADER,
        };
        if self.limits & LIMIT_WRITE != 0 && self.window_size - self.used < size + spare {
            return false;
        }
        if !self.make_room(size) {
            return false;
        }
        let header = BlockHeader::sealed(kind, count, 0, 0, payload);
        // SAFETY: `make_room` left this much in the window. The magic goes last, so that a
        // killed process leaves no half block.
        unsafe {
            let at = self.window.add(self.used);
            ptr::copy_nonoverlapping(payload.as_ptr(), at.add(BLOCK_HEADER), payload.len());
            ptr::copy_nonoverlapping(header.as_bytes()[4..].as_ptr(), at.add(4), BLOCK_HEADER - 4);
            fence(Ordering::Release);
            at.cast::<u32>().write(BLOCK_MAGIC);
        }
        self.used = next_block(self.used + size);
        true
    }

    /// Appends definitions; they precede every record pushed later.
    pub fn define(&mut self, definitions: &[Definition]) -> bool {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        for definition in definitions {
            definition.encode(&mut scratch);
        }
        let count = definitions.len() as u32;
        let written = count == 0 || self.append_definitions(count, &scratch);
        self.scratch = scratch;
        written
    }

    fn append_definitions(&mut self, count: u32, bytes: &[u8]) -> bool {
        let fits = |open: &OpenDefinitions| open.length + bytes.len() <= open.room;
        if !self.definitions.as_ref().is_some_and(fits) && !self.open_definitions(bytes.len()) {
            return false;
        }
        let Some(open) = &mut self.definitions else {
            return false;
        };
        let Some((kind, rest)) = bytes.split_first_chunk::<4>() else {
            return false;
        };
        // SAFETY: inside the block, which lies in the window. The first kind goes last, so that
        // a killed process leaves none of these definitions.
        unsafe {
            let at = self.window.add(open.header + BLOCK_HEADER + open.length);
            ptr::copy_nonoverlapping(rest.as_ptr(), at.add(4), rest.len());
            AtomicU32::from_ptr(at.cast()).store(u32::from_ne_bytes(*kind), Ordering::Release);
        }
        open.length += bytes.len();
        open.count += count;
        true
    }

    fn open_definitions(&mut self, minimum: usize) -> bool {
        self.seal_definitions();
        self.seal_chunk();
        let room = align(self.definitions_room.max(minimum));
        let size = BLOCK_HEADER + room;
        if !self.keep_reserve(size) || !self.make_room(size) {
            return false;
        }
        self.definitions_room = (self.definitions_room * 2).min(MAX_DEFINITIONS);
        let header = BlockHeader {
            magic: BLOCK_MAGIC,
            kind: BlockKind::Definitions as u16,
            length: room as u32,
            ..BlockHeader::default()
        };
        // SAFETY: `make_room` left this much in the window.
        unsafe {
            let at = self.window.add(self.used);
            ptr::copy_nonoverlapping(header.as_bytes().as_ptr(), at, BLOCK_HEADER);
        }
        self.definitions = Some(OpenDefinitions {
            header: self.used,
            length: 0,
            room,
            count: 0,
        });
        self.used = next_block(self.used + size);
        true
    }

    fn seal_definitions(&mut self) {
        let Some(open) = self.definitions.take() else {
            return;
        };
        // SAFETY: the block lies in the window.
        unsafe {
            let at = self.window.add(open.header);
            let payload = std::slice::from_raw_parts(at.add(BLOCK_HEADER), open.room);
            let header = BlockHeader::sealed(BlockKind::Definitions, open.count, 0, 0, payload);
            store_seal(at, &header);
        }
    }

    /// Appends clock points.
    pub fn clock(&mut self, points: &[ClockPoint]) -> bool {
        self.block(BlockKind::Clock, points.len() as u32, points.as_bytes())
    }

    /// Appends the runtime profile.
    pub fn profile(&mut self, entries: &[ProfileEntry]) -> bool {
        self.block(BlockKind::Profile, entries.len() as u32, entries.as_bytes())
    }

    /// Tells the profile of all calls so far, in place of what was told before: if the process is killed, calls that
    /// are no records are in it. Returns whether there was room.
    pub fn profile_so_far(&mut self, entries: &[ProfileEntry]) -> bool {
        let fits = |open: &SoFar| entries.len() <= open.room;
        if !self.so_far.as_ref().is_some_and(fits) && !self.open_so_far(entries.len()) {
            return false;
        }
        let Some(open) = &self.so_far else {
            return false;
        };
        let until = match self.chunk {
            Some(_) => self.cursor as usize - self.window as usize,
            None => self.used,
        };
        // SAFETY: the block lies in the window.
        let payload = unsafe {
            let at = self.window.add(open.header + BLOCK_HEADER);
            std::slice::from_raw_parts_mut(at, so_far::payload(open.room))
        };
        let until = self.window_offset + until as u64;
        so_far::write(payload, self.told, until, entries);
        self.told += 1;
        true
    }

    /// Makes room for the profile so far, and for it to grow.
    fn open_so_far(&mut self, entries: usize) -> bool {
        const LEAST: usize = 32;
        let room = entries.next_power_of_two().max(LEAST);
        let length = so_far::payload(room);
        let size = BLOCK_HEADER + length;
        self.seal_so_far();
        self.seal_chunk();
        if !self.keep_reserve(size) || !self.make_room(size) {
            return false;
        }
        let header = BlockHeader {
            magic: BLOCK_MAGIC,
            kind: BlockKind::ProfileSoFar as u16,
            length: length as u32,
            ..BlockHeader::default()
        };
        // SAFETY: `make_room` left this much in the window.
        unsafe {
            let at = self.window.add(self.used);
            ptr::copy_nonoverlapping(header.as_bytes().as_ptr(), at, BLOCK_HEADER);
        }
        self.so_far = Some(SoFar {
            header: self.used,
            room,
        });
        self.used = next_block(self.used + size);
        true
    }

    fn seal_so_far(&mut self) {
        let Some(open) = self.so_far.take() else {
            return;
        };
        // SAFETY: the block lies in the window.
        unsafe {
            let at = self.window.add(open.header);
            let length = so_far::payload(open.room);
            let payload = std::slice::from_raw_parts(at.add(BLOCK_HEADER), length);
            let header = BlockHeader::sealed(BlockKind::ProfileSoFar, 2, 0, 0, payload);
            store_seal(at, &header);
        }
    }

    /// Appends profile entries of regions.
    pub fn regions(&mut self, entries: &[RegionEntry]) -> bool {
        self.block(BlockKind::Regions, entries.len() as u32, entries.as_bytes())
    }

    /// Closes the file and returns the space. Adds the writer's losses and limits to `end.lost`
    /// and `end.limits`.
    pub fn finish(mut self, mut end: End) -> S {
        end.lost += self.lost;
        end.limits |= self.limits;
        self.open_call.seal();
        self.seal_definitions();
        self.seal_so_far();
        self.block(BlockKind::End, 1, end.as_bytes());
        let length = self.bytes();
        // If shortening the file fails, zeros remain at its end, which readers expect.
        let _ = self.space.finish(length);
        self.space
    }

    /// Leaves the file unclosed, as a trace without an end. Returns the space.
    pub fn leave_open(mut self) -> S {
        self.seal_chunk();
        self.seal_definitions();
        self.seal_so_far();
        let length = self.bytes();
        // As above.
        let _ = self.space.finish(length);
        self.space
    }
}
