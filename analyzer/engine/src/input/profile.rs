//! The profile of a location: as recorded, or the sums of its events.

use std::collections::BTreeMap;

use laggard_trace::{Chunk, Decoder, Location, ProfileEntry, Record, Signature, calls};
use rayon::prelude::*;

/// The runtime profile of a location: from its file, or the sums of its events if the file was not
/// closed.
pub fn profile_of(location: &Location) -> Vec<ProfileEntry> {
    if !location.profile.is_empty() || location.chunks.is_empty() {
        return location.profile.clone();
    }
    let sums = location
        .chunks
        .par_iter()
        .filter(|chunk| location.verify(chunk))
        .fold(BTreeMap::new, |mut sums, chunk| {
            add_chunk(&mut sums, location, chunk);
            // Memory must not grow with the file.
            location.release(chunk);
            sums
        })
        .reduce(BTreeMap::new, |mut sums, others| {
            for (key, other) in others {
                add_entry(&mut sums, key, &other);
            }
            sums
        });
    sums.into_values().collect()
}

/// The profile of a file that is still written, as far as it was read.
#[derive(Debug, Default)]
pub struct SoFar {
    sums: ProfileTable,
    /// The chunk that is read next, the record in it, and the base there.
    chunk: usize,
    at: usize,
    base: u64,
}

impl SoFar {
    /// Adds the calls that came since; the file was opened again.
    pub fn go_on(&mut self, location: &Location) -> Vec<ProfileEntry> {
        while let Some(chunk) = location.chunks.get(self.chunk) {
            if self.at == 0 {
                self.base = chunk.base;
            }
            if self.at > 0 || location.verify(chunk) {
                let records = location.records(chunk).get(self.at..).unwrap_or(&[]);
                let (read, base) = add_records(&mut self.sums, location, records, self.base);
                self.at += read;
                self.base = base;
                // Memory must not grow with the file.
                location.release(chunk);
            }
            if location.may_grow(self.chunk) {
                break;
            }
            self.chunk += 1;
            self.at = 0;
        }
        self.sums.values().copied().collect()
    }
}

/// Sums by operation, whether it completed file operations, and call path.
type ProfileTable = BTreeMap<(u16, u16, u32), ProfileEntry>;

fn add_chunk(sums: &mut ProfileTable, location: &Location, chunk: &Chunk) {
    add_records(sums, location, location.records(chunk), chunk.base);
}

/// Adds the calls of these records. Returns how many records belong to them, and the base after these.
fn add_records(
    sums: &mut ProfileTable,
    location: &Location,
    records: &[Record],
    base: u64,
) -> (usize, u64) {
    let signatures = location.definitions.signatures();
    let mut decoder = Decoder::new(records, base);
    let mut read = decoder.state();
    while let Some(event) = decoder.next() {
        let signature = signatures.get(event.signature as usize);
        let counts = |signature: &&Signature| {
            let is_user = calls::call(signature.operation).is_some_and(|call| call.is_user());
            signature.is_profiled() && signature.operation != 0 && !is_user
        };
        let Some(signature) = signature.filter(counts) else {
            read = decoder.state();
            continue;
        };
        let (calls, time) = match event.repeated {
            Some((calls, ticks)) => (u64::from(calls), u64::from(ticks)),
            None => (1, event.leave - event.enter),
        };
        let one = ProfileEntry {
            count: calls,
            total: time,
            minimum: time / calls.max(1),
            maximum: time,
            bytes: signature.send.bytes.saturating_add(signature.receive.bytes),
            ..ProfileEntry::default()
        };
        let flags = signature.flags & laggard_trace::flags::ON_FILES;
        add_entry(
            sums,
            (signature.operation, flags, signature.call_path),
            &one,
        );
        read = decoder.state();
    }
    read
}

fn add_entry(sums: &mut ProfileTable, key: (u16, u16, u32), other: &ProfileEntry) {
    let entry = sums.entry(key).or_insert(ProfileEntry {
        operation: key.0,
        flags: key.1,
        call_path: key.2,
        minimum: u64::MAX,
        ..ProfileEntry::default()
    });
    entry.count = entry.count.saturating_add(other.count);
    entry.total = entry.total.saturating_add(other.total);
    entry.minimum = entry.minimum.min(other.minimum);
    entry.maximum = entry.maximum.max(other.maximum);
    entry.bytes = entry.bytes.saturating_add(other.bytes);
}

/// Saturating sum of untrusted numbers from a file.
pub fn saturating_sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}
