//! The index in a file: beside the trace, or in the user's cache where nobody may write there.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result};
use laggard_engine::directory;
use laggard_engine::events::Events;
use xxhash_rust::xxh3::xxh3_64;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::{Checkpoint, Index, KeptWait, LocationIndex, MarkAt, build};

/// First bytes of an index. The last one is its version.
const MAGIC: u64 = u64::from_be_bytes(*b"laggidx\x01");
/// Its name beside a trace.
const NAME: &str = "laggard.index";
/// Larger ones are not read: more than an index of such a trace has, bytes.
const LARGEST: u64 = 1 << 20;

/// What an index was made from: another key, another trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(u64);

impl Key {
    /// From the names, sizes and times of a trace's files, and the version that reads it. The files
    /// that an archive is rewritten into have none; its anchor file has.
    pub fn of(events: &Events, trace: &Path) -> Key {
        let mut text = format!("{} {:?}", env!("CARGO_PKG_VERSION"), events.run_id());
        for file in events.files().chain(trace.is_file().then_some(trace)) {
            let told = file.metadata().ok();
            let when = told.as_ref().and_then(|told| told.modified().ok());
            let when = when.and_then(|when| when.duration_since(UNIX_EPOCH).ok());
            let size = told.map(|told| told.len());
            text.push_str(&format!(" {:?} {size:?} {when:?}", file.file_name()));
        }
        Key(xxh3_64(text.as_bytes()))
    }
}

/// The index that is kept of a trace; a new one, which is kept from now on, if there is
/// none, or one of another trace, or a damaged one. Also says where it is; nowhere if it could not be
/// kept.
///
/// # Errors
/// The trace cannot be read as a whole.
pub fn kept(events: &Events, trace: &Path) -> Result<(Index, Option<PathBuf>)> {
    let key = Key::of(events, trace);
    let largest = LARGEST.saturating_add(events.bytes());
    let places = places(directory::of(trace), key);
    for place in &places {
        let bytes = laggard_files::read(place, largest).unwrap_or_default();
        if let Some(index) = unpack(&bytes, key, events.locations()) {
            return Ok((index, Some(place.clone())));
        }
    }
    let index = build(events).context("cannot make the index")?;
    let bytes = pack(&index, key);
    let mut places = places.into_iter();
    let written = places.find(|place| {
        let parent = place.parent();
        // The cache's directory may not be there yet; beside the trace it is.
        let _ = parent.map(std::fs::create_dir_all);
        laggard_files::replace(place, &bytes).is_ok()
    });
    Ok((index, written))
}

/// Where an index may be, the best place first.
fn places(directory: &Path, key: Key) -> Vec<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || named("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = named("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    let cached = cache.map(|cache| cache.join("laggard").join(format!("{:016x}.index", key.0)));
    [Some(directory.join(NAME)), cached]
        .into_iter()
        .flatten()
        .collect()
}

/// Numbers of a location: when it is measured, and how many entries of each kind it has.
type Row = [i64; 5];

fn pack(index: &Index, key: Key) -> Vec<u8> {
    let mut body: Vec<u8> = Vec::new();
    for of in &index.locations {
        let lengths = [of.checkpoints.len(), of.marks.len(), of.waits.len()];
        let [a, b, c] = lengths.map(|length| length as i64);
        let row: Row = [of.measured.0, of.measured.1, a, b, c];
        body.extend(row.as_bytes());
        body.extend(of.checkpoints.as_bytes());
        body.extend(of.marks.as_bytes());
        body.extend(of.waits.as_bytes());
    }
    let head = [MAGIC, key.0, xxh3_64(&body), index.locations.len() as u64];
    let mut bytes = head.as_bytes().to_vec();
    bytes.extend(body);
    bytes
}

/// The index in these bytes, if it is whole, and that of the trace.
fn unpack(bytes: &[u8], key: Key, locations: usize) -> Option<Index> {
    let (head, mut body) = <[u64; 4]>::read_from_prefix(bytes).ok()?;
    if head != [MAGIC, key.0, xxh3_64(body), locations as u64] {
        return None;
    }
    let mut index = Index::default();
    for _ in 0..locations {
        let (row, rest) = Row::read_from_prefix(body).ok()?;
        body = rest;
        index.locations.push(LocationIndex {
            measured: (row[0], row[1]),
            checkpoints: entries::<Checkpoint>(&mut body, row[2])?,
            marks: entries::<MarkAt>(&mut body, row[3])?,
            waits: entries::<KeptWait>(&mut body, row[4])?,
        });
    }
    body.is_empty().then_some(index)
}

fn entries<T: FromBytes + IntoBytes + Immutable>(body: &mut &[u8], count: i64) -> Option<Vec<T>> {
    let length = usize::try_from(count).ok()?.checked_mul(size_of::<T>())?;
    let (own, rest) = body.split_at_checked(length)?;
    *body = rest;
    own.chunks_exact(size_of::<T>())
        .map(|bytes| T::read_from_bytes(bytes).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_damaged_or_of_another_trace_is_not_taken() {
        let of = |number: i64| LocationIndex {
            measured: (1, number),
            checkpoints: vec![Checkpoint::default(); number as usize],
            marks: vec![MarkAt::default()],
            waits: vec![KeptWait::default(); 2],
        };
        let index = Index {
            locations: vec![of(3), of(5)],
        };
        let key = Key(7);
        let bytes = pack(&index, key);
        assert_eq!(unpack(&bytes, key, 2), Some(index));
        assert_eq!(unpack(&bytes, Key(8), 2), None);
        assert_eq!(unpack(&bytes, key, 1), None);
        for at in 0..bytes.len() {
            assert_eq!(unpack(&bytes[..at], key, 2), None);
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_eq!(unpack(&other, key, 2), None, "{at}");
        }
    }
}
