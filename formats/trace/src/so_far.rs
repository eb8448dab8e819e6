//! The profile so far: what a killed process leaves of calls that are no records.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::block::*;

/// The profile of all calls before a place of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileSoFar {
    /// How often it was told before.
    pub number: u64,
    /// Records before this offset of the file are in it, bytes.
    pub until: u64,
    /// One for each operation and call path.
    pub entries: Vec<ProfileEntry>,
}

/// What precedes the entries in a slot.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Head {
    number: u64,
    until: u64,
    count: u32,
    /// CRC-32C of the head with a zero here, then of the entries.
    checksum: u32,
}

impl Head {
    fn expected_checksum(&self, entries: &[u8]) -> u32 {
        let bare = Head {
            checksum: 0,
            ..*self
        };
        crc32c::crc32c_append(crc32c::crc32c(bare.as_bytes()), entries)
    }
}

/// Bytes of one of the two slots that have room for so many entries.
const fn slot(room: usize) -> usize {
    size_of::<Head>() + room * size_of::<ProfileEntry>()
}

/// Bytes of a payload with room for so many entries.
pub(crate) const fn payload(room: usize) -> usize {
    2 * slot(room)
}

/// Where a profile goes, and its bytes: the slot in which the one before the last is, so that the last one stays
/// whole.
pub(crate) fn write(payload: &mut [u8], number: u64, until: u64, entries: &[ProfileEntry]) {
    let entries = entries.as_bytes();
    let mut head = Head {
        number,
        until,
        count: (entries.len() / size_of::<ProfileEntry>()) as u32,
        checksum: 0,
    };
    head.checksum = head.expected_checksum(entries);
    let half = payload.len() / 2;
    let slot = &mut payload[number as usize % 2 * half..][..half];
    slot[..size_of::<Head>()].copy_from_slice(head.as_bytes());
    slot[size_of::<Head>()..][..entries.len()].copy_from_slice(entries);
}

impl ProfileSoFar {
    /// The last one in a block's payload that is whole.
    pub(crate) fn read(payload: &[u8]) -> Option<ProfileSoFar> {
        let half = payload.len() / 2;
        let told = payload.chunks_exact(half.max(1)).filter_map(|slot| {
            let (head, rest) = Head::read_from_prefix(slot).ok()?;
            let bytes =
                rest.get(..(head.count as usize).checked_mul(size_of::<ProfileEntry>())?)?;
            // A writer may store meanwhile: what is checked is what is taken.
            let entries = bytes.to_vec();
            let is_whole = head.count > 0 && head.checksum == head.expected_checksum(&entries);
            let entries = entries.chunks_exact(size_of::<ProfileEntry>());
            is_whole.then(|| ProfileSoFar {
                number: head.number,
                until: head.until,
                entries: entries
                    .filter_map(|entry| ProfileEntry::read_from_bytes(entry).ok())
                    .collect(),
            })
        });
        told.max_by_key(|told| told.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_one_is_read() {
        let of = |count: u64| ProfileEntry {
            operation: 3,
            count,
            ..ProfileEntry::default()
        };
        let mut bytes = vec![0; payload(2)];
        assert_eq!(ProfileSoFar::read(&bytes), None);
        let all: Vec<ProfileSoFar> = (0..5u64)
            .map(|number| ProfileSoFar {
                number,
                until: 100 * number,
                entries: (0..1 + number % 2).map(|_| of(number)).collect(),
            })
            .collect();
        let mut before: Option<&ProfileSoFar> = None;
        for told in &all {
            let old = bytes.clone();
            write(&mut bytes, told.number, told.until, &told.entries);
            assert_eq!(ProfileSoFar::read(&bytes).as_ref(), Some(told));
            // A process that is killed while it stores has told the one before.
            for end in 1..bytes.len() {
                let torn = [&bytes[..end], &old[end..]].concat();
                let read = ProfileSoFar::read(&torn);
                assert!(
                    read.as_ref() == Some(told) || read.as_ref() == before,
                    "{end}"
                );
            }
            before = Some(told);
        }
        for length in 0..bytes.len() {
            let _ = ProfileSoFar::read(&bytes[..length]);
        }
    }
}
