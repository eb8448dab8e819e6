//! The profile of a location: as recorded, or the sums of its events.

use std::collections::BTreeMap;

use laggard_trace::{
    BLOCK_HEADER, Chunk, Decoder, Location, ProfileEntry, Record, Signature, calls,
};
use rayon::prelude::*;

/// The runtime profile of a location: from its file. If the file was not closed, as it was told last, and the sums of
/// the events since then.
pub fn profile_of(location: &Location) -> Vec<ProfileEntry> {
    if !location.profile.is_empty() {
        return location.profile.clone();
    }
    let (mut sums, first, skipped) = told(location);
    let chunks = location.chunks[first..].par_iter().enumerate();
    let since = chunks
        .filter(|(_, chunk)| location.verify(chunk))
        .fold(BTreeMap::new, |mut sums, (at, chunk)| {
            let skipped = if at == 0 { skipped } else { 0 };
            let records = location.records(chunk).get(skipped..);
            add_records(&mut sums, location, records.unwrap_or(&[]), chunk.base);
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
    for (key, other) in since {
        add_entry(&mut sums, key, &other);
    }
    sums.into_values().collect()
}

/// The profile that a file that was not closed tells, and where its other records are: the first chunk, and how many
/// of its records are in the profile.
fn told(location: &Location) -> (ProfileTable, usize, usize) {
    let Some(so_far) = &location.so_far else {
        return (ProfileTable::new(), 0, 0);
    };
    let mut sums = ProfileTable::new();
    for entry in &so_far.entries {
        let key = (entry.operation, entry.flags, entry.call_path);
        add_entry(&mut sums, key, entry);
    }
    let end = |chunk: &Chunk| {
        let records = u64::from(chunk.count) * size_of::<Record>() as u64;
        chunk.offset + BLOCK_HEADER as u64 + records
    };
    let is_told = |chunk: &Chunk| end(chunk) <= so_far.until;
    let first = location.chunks.partition_point(is_told);
    let begun = location.chunks.get(first).map_or(0, |chunk| {
        let told = so_far
            .until
            .saturating_sub(chunk.offset + BLOCK_HEADER as u64);
        told as usize / size_of::<Record>()
    });
    (sums, first, begun)
}

/// The profile of a file that is still written, as far as it was read.
#[derive(Debug, Default)]
pub struct SoFar {
    sums: ProfileTable,
    /// The chunk that is read next, the record in it, and the base there.
    chunk: usize,
    at: usize,
    base: u64,
    /// Number of the profile that was told last.
    told: Option<u64>,
}

impl SoFar {
    /// Adds the calls that came since; the file was opened again.
    pub fn go_on(&mut self, location: &Location) -> Vec<ProfileEntry> {
        let last = location.so_far.as_ref().map(|told| told.number);
        if last > self.told {
            // Times of events alone count, so that the base does not matter.
            (self.sums, self.chunk, self.at) = told(location);
            (self.base, self.told) = (0, last);
        }
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use laggard_trace::calls::number;
    use laggard_trace::{Definition, FileHeader, LocationWriter, MemorySpace};

    use super::*;

    /// Calls in records, and others that are told in between: a file that was not closed has all until it was told
    /// last, and the records since then.
    #[test]
    fn what_was_told_and_what_came_since_is_the_profile() {
        const ROUNDS: u64 = 3000;
        for rounds in [0, 1, 2, TOLD, 1500, ROUNDS] {
            assert_eq!(profile_of(&written(rounds)), expected(rounds), "{rounds}");
        }
        // What was read before it was told again is in it.
        let mut growing = SoFar::default();
        for rounds in [2, TOLD, 1500, ROUNDS] {
            let found = growing.go_on(&written(rounds));
            assert_eq!(found, expected(rounds), "{rounds}");
        }
    }

    const SEND: u16 = number::MPI_Send;
    const PROBE: u16 = number::MPI_Iprobe;
    /// Rounds after which it is told.
    const TOLD: u64 = 7;

    fn entry(operation: u16, count: u64, each: u64) -> ProfileEntry {
        ProfileEntry {
            operation,
            count,
            total: count * each,
            minimum: each,
            maximum: each,
            ..ProfileEntry::default()
        }
    }

    /// So many rounds of five sends with records, and one probe without.
    fn written(rounds: u64) -> Location {
        let header = FileHeader {
            ranks: 1,
            ..FileHeader::new()
        };
        let mut writer = LocationWriter::new(MemorySpace::new(), header, None).unwrap();
        writer.define(&[Definition::Signature(Signature {
            id: 1,
            operation: number::MPI_Send,
            ..Signature::default()
        })]);
        for round in 0..rounds {
            for call in 0..5 {
                let enter = 100 * round + 10 * call;
                writer.push(enter, enter + 3, 1);
            }
            if round % TOLD == TOLD - 1 {
                let all = [entry(SEND, 5 * round + 5, 3), entry(PROBE, round + 1, 2)];
                assert!(writer.profile_so_far(&all));
            }
        }
        let bytes = writer.leave_open().into_bytes();
        Location::from_bytes(Path::new("a location"), &bytes).unwrap()
    }

    fn expected(rounds: u64) -> Vec<ProfileEntry> {
        let told = rounds / TOLD * TOLD;
        let rows = [entry(SEND, 5 * rounds, 3), entry(PROBE, told, 2)];
        let mut rows: Vec<_> = rows.into_iter().filter(|row| row.count > 0).collect();
        rows.sort_by_key(|row| row.operation);
        rows
    }
}
