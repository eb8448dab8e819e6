//! The profile of a location: as recorded, or the sums of its events.

use std::collections::BTreeMap;

use laggard_trace::{Location, ProfileEntry, calls};
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

/// Sums by operation, whether it completed file operations, and call path.
type ProfileTable = BTreeMap<(u16, u16, u32), ProfileEntry>;

fn add_chunk(sums: &mut ProfileTable, location: &Location, chunk: &laggard_trace::Chunk) {
    let signatures = location.definitions.signatures();
    let mut decoder = laggard_trace::Decoder::new(location.records(chunk), chunk.base);
    while let Some(event) = decoder.next() {
        let Some(signature) = signatures.get(event.signature as usize) else {
            continue;
        };
        let is_user = calls::call(signature.operation).is_some_and(|call| call.is_user());
        if !signature.is_profiled() || signature.operation == 0 || is_user {
            continue;
        }
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
    }
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
