//! The structure of a trace file, so that mutations get past its checksums.

use laggard_trace::{
    BLOCK_ALIGN, BLOCK_HEADER, BLOCK_MAGIC, BlockHeader, BlockKind, FileHeader, PAGE, SEALED, align,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::random::{Random, set_field};

const HEADER: usize = size_of::<FileHeader>();

/// A location's file in parts.
#[derive(Clone, Debug)]
pub struct File {
    header: [u8; HEADER],
    blocks: Vec<Block>,
    /// Bytes after the last block that was understood.
    rest: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Block {
    header: BlockHeader,
    payload: Vec<u8>,
}

/// Changes bytes, to at most the given number.
pub type Scramble<'a> = dyn FnMut(&mut Vec<u8>, usize) + 'a;

impl File {
    /// Takes a file apart; `None` if it has no header.
    pub fn parse(bytes: &[u8]) -> Option<File> {
        let header = *bytes.first_chunk::<HEADER>()?;
        let mut blocks = Vec::new();
        let mut at = HEADER;
        loop {
            let room = PAGE - at % PAGE;
            let next = if room < BLOCK_HEADER { at + room } else { at };
            let block = bytes.get(next..).and_then(take_block);
            let Some(block) = block else {
                break;
            };
            at = next + BLOCK_HEADER + align(block.payload.len());
            blocks.push(block);
        }
        let rest = bytes.get(at..).unwrap_or_default().to_vec();
        Some(File {
            header,
            blocks,
            rest,
        })
    }

    /// Puts a file together, with correct lengths and checksums.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.header.to_vec();
        if let Ok(mut header) = FileHeader::read_from_bytes(&self.header) {
            header.checksum = header.expected_checksum();
            bytes.copy_from_slice(header.as_bytes());
        }
        for block in &self.blocks {
            let room = PAGE - bytes.len() % PAGE;
            if room < BLOCK_HEADER {
                bytes.resize(bytes.len() + room, 0);
            }
            let mut header = block.header;
            header.length = block.payload.len() as u32;
            header.checksum = match header.flags & SEALED {
                0 => 0,
                _ => header.expected_checksum(&block.payload),
            };
            bytes.extend_from_slice(header.as_bytes());
            bytes.extend_from_slice(&block.payload);
            bytes.resize(bytes.len().next_multiple_of(BLOCK_ALIGN), 0);
        }
        bytes.extend_from_slice(&self.rest);
        bytes
    }

    /// Changes a header's field, a record, a definition, or the order of blocks. `scramble` changes
    /// plain bytes.
    pub fn mutate(&mut self, random: &mut Random, scramble: &mut Scramble<'_>) {
        let count = self.blocks.len();
        let at = random.below(count);
        match random.below(16) {
            0 => {
                // Ranks, clock and start; earlier fields only make it another file.
                let field = 32 + random.below(13) * 4;
                set_field(&mut self.header[field..field + 4], random);
            }
            1 if count > 1 => self.blocks.swap(at, random.below(count)),
            2 if count > 0 => drop(self.blocks.remove(at)),
            3 if count > 0 => self.blocks.insert(at, self.blocks[at].clone()),
            4 if count > 0 => self.blocks[at].header.flags ^= SEALED,
            5 if count > 0 => self.blocks[at].mutate_header(random),
            6 if count > 0 => {
                let limit = self.blocks[at].payload.len() + 256;
                scramble(&mut self.blocks[at].payload, limit);
                self.blocks[at].count_entries();
            }
            7 => self.rest.truncate(random.below(self.rest.len() + 1)),
            _ if count > 0 => self.blocks[at].mutate_entry(random, scramble),
            _ => scramble(&mut self.rest, 4096),
        }
    }
}

/// The block at the start of these bytes, if there is one.
fn take_block(bytes: &[u8]) -> Option<Block> {
    let header = BlockHeader::read_from_bytes(bytes.get(..BLOCK_HEADER)?).ok()?;
    if header.magic != BLOCK_MAGIC {
        return None;
    }
    let rest = &bytes[BLOCK_HEADER..];
    let sealed = header.flags & SEALED != 0;
    let length = match header.length as usize {
        length if length <= rest.len() => length,
        _ if sealed => return None,
        _ => rest.len(),
    };
    let payload = rest[..length].to_vec();
    Some(Block { header, payload })
}

impl Block {
    fn is(&self, kind: BlockKind) -> bool {
        self.header.kind == kind as u16
    }

    fn mutate_header(&mut self, random: &mut Random) {
        let header = &mut self.header;
        match random.below(4) {
            0 => header.kind = random.below(8) as u16,
            1 => header.base = random.value(header.base),
            2 => header.monotonic_ns = random.value(header.monotonic_ns),
            _ => header.count = random.value(u64::from(header.count)) as u32,
        }
    }

    /// Sets the payload's count, if it follows from the size.
    fn count_entries(&mut self) {
        let size = match self.header.kind {
            kind if kind == BlockKind::Records as u16 => 12,
            kind if kind == BlockKind::Profile as u16 => 64,
            kind if kind == BlockKind::Clock as u16 => 32,
            _ => return,
        };
        let sealed = self.header.flags & SEALED != 0;
        self.payload.truncate(self.payload.len() / size * size);
        if sealed {
            self.header.count = (self.payload.len() / size) as u32;
        }
    }

    /// Changes one field of a record, an entry or a definition, or doubles, removes or
    /// swaps them.
    fn mutate_entry(&mut self, random: &mut Random, scramble: &mut Scramble<'_>) {
        if self.is(BlockKind::Definitions) {
            return self.mutate_definition(random, scramble);
        }
        let (size, width) = match self.is(BlockKind::Records) {
            true => (12, 4),
            false => (32, 8),
        };
        let entries = self.payload.len() / size;
        if entries == 0 {
            return;
        }
        let (one, other) = (random.below(entries) * size, random.below(entries) * size);
        match random.below(8) {
            0 => {
                let copy = self.payload[one..one + size].to_vec();
                self.payload.splice(other..other, copy);
            }
            1 => drop(self.payload.drain(one..one + size)),
            2 => {
                let copy = self.payload[one..one + size].to_vec();
                self.payload.copy_within(other..other + size, one);
                self.payload[other..other + size].copy_from_slice(&copy);
            }
            _ => {
                let field = one + random.below(size / width) * width;
                set_field(&mut self.payload[field..field + width], random);
            }
        }
        self.count_entries();
    }

    fn mutate_definition(&mut self, random: &mut Random, scramble: &mut Scramble<'_>) {
        let spans = definitions(&self.payload);
        if spans.is_empty() {
            return;
        }
        let (start, end) = spans[random.below(spans.len())];
        let mut body = self.payload[start + 8..end].to_vec();
        let mut before = self.payload[start..start + 8].to_vec();
        match random.below(10) {
            0 => {
                // A copy, with whatever id it has.
                let copy = self.payload[start..end].to_vec();
                self.payload.splice(start..start, copy);
                self.header.count += 1;
                return;
            }
            1 => {
                self.payload.drain(start..end);
                self.header.count = self.header.count.saturating_sub(1);
                return;
            }
            2 => before[0] = random.below(11) as u8,
            3 | 4 => {
                let limit = body.len() + 64;
                scramble(&mut body, limit);
            }
            _ if body.len() >= 4 => {
                let width = if random.once_in(3) { 2 } else { 4 };
                let field = random.below(body.len() / width) * width;
                set_field(&mut body[field..field + width], random);
            }
            _ => {}
        }
        before[4..8].copy_from_slice(&(body.len() as u32).to_le_bytes());
        body.resize(body.len().next_multiple_of(4), 0);
        before.extend_from_slice(&body);
        self.payload.splice(start..end, before);
    }
}

/// Begin and end of each definition in a payload.
fn definitions(payload: &[u8]) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    let mut at = 0;
    while let Some(head) = payload.get(at..at + 8) {
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let end = at + (8 + length).next_multiple_of(4);
        if head[..2] == [0, 0] || end > payload.len() {
            break;
        }
        spans.push((at, end));
        at = end;
    }
    spans
}

/// Several files as one input: `u32 length` before each.
pub fn pack(files: &[Vec<u8>]) -> Vec<u8> {
    let mut packed = Vec::new();
    for file in files {
        packed.extend_from_slice(&(file.len() as u32).to_le_bytes());
        packed.extend_from_slice(file);
    }
    packed
}

/// The files of an input; the last one may be cut off.
pub fn unpack(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let length = (u32::from_le_bytes(*length) as usize).min(rest.len());
        let (file, rest) = rest.split_at(length);
        files.push(file.to_vec());
        bytes = rest;
    }
    files
}
