//! Node files: all locations of one host in one file, extent by extent.
//!
//! The processes of a host share the file without locks. They claim extents and index entries
//! by atomic additions in its first page, which all of them map. A location's extents, joined
//! in the order of their sequence numbers, form a location file.

mod read;
mod write;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::FILE_EXTENSION;
use crate::block::BYTE_ORDER;

pub(crate) use read::Joined;
pub use read::NodeFile;
pub use write::{NodePlace, NodeSpace};

/// First bytes of a node file.
pub const NODE_MAGIC: [u8; 8] = *b"LAGNODE\x1a";
/// Version of node files that this crate writes, and the newest that it reads.
pub const NODE_VERSION: u32 = 1;
/// Extents and index blocks are aligned to this, bytes: no system has larger pages.
pub const GRANULE: u64 = 64 << 10;

/// Prefix of a node file's name.
const PREFIX: &str = "node-";
/// Bytes of the header: one page.
const HEAD: u64 = 4096;
/// Offset of the end of the claimed part.
const END_AT: usize = 64;
/// Offset of the number of claimed index entries, in another cache line.
const CLAIMED_AT: usize = 128;
/// Offset of the list of index block offsets.
const BLOCKS_AT: usize = 256;
/// Most index blocks.
const BLOCKS: usize = 16;
/// Size of an index entry, bytes.
const ENTRY: u64 = 32;
/// Entries of the first index block, which follows the header.
const FIRST_ENTRIES: u64 = 128;
/// Entries of the second index block; each later one has twice as many as its predecessor.
const SECOND_ENTRIES: u64 = GRANULE / ENTRY;

/// Name of the node file of a host.
pub fn node_file_name(host_id: u64) -> String {
    format!("{PREFIX}{host_id:016x}.{FILE_EXTENSION}")
}

/// Whether a file in a trace directory has the name of a node file.
pub fn is_node_file_name(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// The constant part of a node file's header.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct NodeHeader {
    magic: [u8; 8],
    version: u32,
    byte_order: u32,
    run_id: [u8; 16],
    host_id: u64,
    reserved: [u8; 20],
    /// CRC-32C of all bytes before.
    checksum: u32,
}

const _: () = assert!(size_of::<NodeHeader>() == END_AT);

impl NodeHeader {
    fn new(run_id: [u8; 16], host_id: u64) -> NodeHeader {
        let mut header = NodeHeader {
            magic: NODE_MAGIC,
            version: NODE_VERSION,
            byte_order: BYTE_ORDER,
            run_id,
            host_id,
            reserved: [0; 20],
            checksum: 0,
        };
        header.checksum = header.expected_checksum();
        header
    }

    fn expected_checksum(&self) -> u32 {
        crc32c::crc32c(&self.as_bytes()[..60])
    }
}

/// Describes one extent.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct IndexEntry {
    rank: u32,
    thread: u32,
    /// Number of the extent within its location, from 0.
    sequence: u32,
    /// Bytes.
    length: u32,
    /// Offset in the file.
    offset: u64,
    /// Low half: bytes in use; high half: checksum of the entry with them. Stored at once and
    /// last: 0 means "not finished".
    state: u64,
}

const _: () = assert!(size_of::<IndexEntry>() as u64 == ENTRY);

impl IndexEntry {
    /// The value of `state` with `used` bytes in use.
    fn state_with(&self, used: u32) -> u64 {
        let fixed = crc32c::crc32c(&self.as_bytes()[..24]);
        let checksum = crc32c::crc32c_append(fixed, &used.to_le_bytes());
        u64::from(used) | u64::from(checksum.max(1)) << 32
    }

    /// Bytes in use; `None` if the entry is unfinished or damaged.
    fn used(&self) -> Option<u32> {
        let used = self.state as u32;
        (self.state != 0 && self.state == self.state_with(used)).then_some(used)
    }
}

/// Number of entries in an index block.
fn entries_of(block: usize) -> u64 {
    match block {
        0 => FIRST_ENTRIES,
        later => SECOND_ENTRIES << (later - 1),
    }
}

/// The index block of an entry, and its place there; `None` if there is no such block.
fn place_of(entry: u64) -> Option<(usize, u64)> {
    let mut first = 0;
    for block in 0..BLOCKS {
        let entries = entries_of(block);
        if entry < first + entries {
            return Some((block, entry - first));
        }
        first += entries;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_a_place_of_its_own() {
        assert_eq!(place_of(0), Some((0, 0)));
        assert_eq!(place_of(127), Some((0, 127)));
        assert_eq!(place_of(128), Some((1, 0)));
        assert_eq!(place_of(128 + 2047), Some((1, 2047)));
        assert_eq!(place_of(128 + 2048), Some((2, 0)));
        let all: u64 = (0..BLOCKS).map(entries_of).sum();
        assert_eq!(place_of(all - 1), Some((15, entries_of(15) - 1)));
        assert_eq!(place_of(all), None);
    }

    #[test]
    fn an_entry_vouches_for_all_that_it_says() {
        let mut entry = IndexEntry {
            rank: 3,
            length: GRANULE as u32,
            offset: GRANULE,
            ..IndexEntry::default()
        };
        assert_eq!(entry.used(), None);
        for used in [0, 1, 4096, GRANULE as u32] {
            entry.state = entry.state_with(used);
            assert_eq!(entry.used(), Some(used));
        }
        for bit in 0..256 {
            let mut bytes = [0; 32];
            bytes.copy_from_slice(entry.as_bytes());
            bytes[bit / 8] ^= 1 << (bit % 8);
            let changed = IndexEntry::read_from_bytes(&bytes).expect("32 bytes");
            assert_eq!(changed.used(), None, "bit {bit}");
        }
    }
}
