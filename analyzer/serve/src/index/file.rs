//! The index in a file: beside the trace, or in the user's cache where nobody may write there.

use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result};
use laggard_comm::{self as comm, Job};
use laggard_engine::directory;
use laggard_engine::events::Events;
use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;
use zerocopy::{FromBytes, IntoBytes};

use super::packed::{pack, unpack};
use super::{Index, build};

/// First bytes of an index. The last one is its version.
const MAGIC: u64 = u64::from_be_bytes(*b"laggidx\x07");
/// Its name beside a trace.
const NAME: &str = "laggard.index";
/// What an index was made from: another key, another trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(u64);

impl Key {
    /// From the names, sizes and times of a trace's files, and the version that reads it. The files
    /// that an archive is rewritten into have none; its anchor file has. The same on all agents.
    /// Collective.
    fn of(job: &dyn Job, events: &Events, trace: &Path) -> Result<Key> {
        let mut own = Vec::new();
        for file in events.files().chain(trace.is_file().then_some(trace)) {
            let told = file.metadata().ok();
            let when = told.as_ref().and_then(|told| told.modified().ok());
            let when = when.and_then(|when| when.duration_since(UNIX_EPOCH).ok());
            let size = told.map(|told| told.len());
            own.push(format!("{:?} {size:?} {when:?}", file.file_name()));
        }
        // Several agents may have locations of one file.
        let files = comm::union(job, own)?.join(" ");
        let run = events.run_id();
        let text = format!("{} {run:?} {files}", env!("CARGO_PKG_VERSION"));
        Ok(Key(xxh3_64(text.as_bytes())))
    }
}

/// This agent's share of the index that is kept of a trace; a new one, which is kept from now on, if
/// there is none, or one of another trace, or a damaged one. At the head also says where it is; nowhere
/// if it could not be kept. Collective.
///
/// # Errors
/// The trace cannot be read as a whole; the same on all agents.
pub fn kept(job: &dyn Job, events: &Events, trace: &Path) -> Result<(Index, Option<PathBuf>)> {
    let key = Key::of(job, events, trace)?;
    let places = places(directory::of(trace), key);
    let own = events.first..events.first + events.locations();
    let most = usize::try_from(job_max(job, places.len()))?;
    for at in 0..most {
        let place = places.get(at);
        let found = place.and_then(|place| read(place, key, (&own, events.placed.len())));
        // Of all agents, or of none.
        if job_max(job, usize::from(found.is_none())) == 0
            && let (Some(index), Some(place)) = (found, place)
        {
            return Ok((index, Some(place.clone())));
        }
    }
    let index = build(job, events).context("cannot make the index");
    let index = comm::agree(job, index)?;
    let written = keep(job, &index, key, places)?;
    Ok((index, written))
}

/// The largest of all agents' numbers. Collective.
fn job_max(job: &dyn Job, number: usize) -> u64 {
    let mut values = [number as u64];
    job.reduce_max(&mut values);
    values[0]
}

/// Writes the index of all agents into the first place that takes it. Collective.
fn keep(job: &dyn Job, index: &Index, key: Key, places: Vec<PathBuf>) -> Result<Option<PathBuf>> {
    let mut rows: Vec<Row> = Vec::new();
    let sections: Vec<Vec<u8>> = index.locations.par_iter().map(pack).collect();
    let own: Vec<Row> = sections.iter().map(|section| row(section)).collect();
    for bytes in job.all_gather(own.as_bytes().to_vec()) {
        let own = bytes.chunks_exact(size_of::<Row>());
        rows.extend(own.filter_map(|bytes| Row::read_from_bytes(bytes).ok()));
    }
    let mut file = None;
    if job.agent() == 0 {
        let head = [MAGIC, key.0, xxh3_64(rows.as_bytes()), rows.len() as u64];
        file = places.into_iter().find_map(|place| {
            let parent = place.parent();
            // The cache's directory may not be there yet; beside the trace it is.
            let _ = parent.map(std::fs::create_dir_all);
            let mut part = laggard_files::Part::create(&place).ok()?;
            part.write_all(head.as_bytes()).ok()?;
            part.write_all(rows.as_bytes()).ok()?;
            Some((place, part))
        });
    }
    let mut sections = sections.into_iter();
    let mut next = || sections.next();
    // A disk that is full keeps nothing; the others are heard to their end all the same.
    job.relay(&mut next, &mut |section| {
        if let Some((_, part)) = &mut file
            && part.write_all(&section).is_err()
        {
            file = None;
        }
    });
    Ok(file.and_then(|(place, part)| part.finish().ok().map(|()| place)))
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

/// Of a location: bytes of what is known of it, and a checksum of these.
type Row = [u64; 2];

fn row(section: &[u8]) -> Row {
    [section.len() as u64, xxh3_64(section)]
}

/// Some locations of the index in a file, if it is one of this trace, which has so many in all, and is
/// not damaged.
fn read(path: &Path, key: Key, (own, all): (&Range<usize>, usize)) -> Option<Index> {
    let (mut file, size) = laggard_files::open(path).ok()?;
    let mut head = [0u64; 4];
    file.read_exact(head.as_mut_bytes()).ok()?;
    let table = all.checked_mul(size_of::<Row>())?;
    if head[..2] != [MAGIC, key.0] || head[3] != all as u64 || table as u64 > size {
        return None;
    }
    let mut rows = vec![Row::default(); all];
    file.read_exact(rows.as_mut_bytes()).ok()?;
    let before = (size_of_val(&head) + table) as u64;
    let end = |rows: &[Row]| {
        let mut lengths = rows.iter().map(|row| row[0]);
        lengths.try_fold(before, |sum, length| sum.checked_add(length))
    };
    if head[2] != xxh3_64(rows.as_bytes()) || end(&rows)? != size {
        return None;
    }
    file.seek(SeekFrom::Start(end(&rows[..own.start])?)).ok()?;
    let sections = rows[own.clone()].iter().map(|row| {
        let mut section = vec![0; usize::try_from(row[0]).ok()?];
        file.read_exact(&mut section).ok()?;
        (self::row(&section) == *row).then_some(section)
    });
    let sections: Vec<Vec<u8>> = sections.collect::<Option<_>>()?;
    let locations = sections.par_iter().map(|section| unpack(section));
    Some(Index {
        locations: locations.collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use laggard_comm::Serial;

    use super::*;
    use crate::index::{
        ChangeAt, Checkpoint, KeptWait, LocationIndex, LooksAt, LostBy, MarkAt, RegionAt, Waits,
    };

    #[test]
    fn what_is_damaged_or_of_another_trace_is_not_taken() {
        let of = |number: i64| LocationIndex {
            measured: (1, number),
            checkpoints: vec![Checkpoint::default(); number as usize],
            coarser: 0,
            marks: vec![MarkAt::default()],
            regions: vec![RegionAt::default()],
            waits: Waits::new(vec![KeptWait::default(); 2]),
            lost: vec![LostBy::default(); 3],
            looks: vec![LooksAt::default(); 2],
            changes: vec![ChangeAt::default(); number as usize / 5],
        };
        let index = Index {
            locations: vec![of(3), of(5)],
        };
        let key = Key(7);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("index");
        let kept = keep(
            &Serial,
            &index,
            key,
            vec!["/proc/no/such/place".into(), path.clone()],
        );
        assert_eq!(kept.unwrap().as_ref(), Some(&path));
        let all = (&(0..2), 2);
        assert_eq!(read(&path, key, all).as_ref(), Some(&index));
        // One agent's share of it.
        let second = read(&path, key, (&(1..2), 2)).unwrap();
        assert_eq!(second.locations[..], index.locations[1..]);
        assert_eq!(read(&path, key, (&(2..2), 2)), Some(Index::default()));
        assert_eq!(read(&path, Key(8), all), None);
        assert_eq!(read(&path, key, (&(0..1), 1)), None);
        let bytes = std::fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            std::fs::write(&path, &bytes[..at]).unwrap();
            assert_eq!(read(&path, key, all), None);
            let mut other = bytes.clone();
            other[at] ^= 1;
            std::fs::write(&path, &other).unwrap();
            assert_eq!(read(&path, key, all), None, "{at}");
        }
    }
}
