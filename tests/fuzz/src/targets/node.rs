//! A node file: its locations, and everything in them.

use std::path::PathBuf;
use std::sync::OnceLock;

use laggard_trace::{
    Definition, End, FileHeader, LocationWriter, NodeFile, NodeSpace, Signature, node_file_name,
};

use super::location::look_at;
use super::scratch;

/// Locations of the original file, and the calls of each: two extents or three.
const LOCATIONS: u32 = 3;
const CALLS: u64 = 7_000;

const CHANGE: usize = 8;
/// Offsets of the header's checksum, the index's first block and a location's entries; see the
/// description of the format.
const HEADER: usize = 64;
const ENTRIES: usize = 4096;
const ENTRY: usize = 32;
const FIRST_ENTRIES: usize = 128;

/// Writes a node file with changes, and reads everything that is left.
pub fn node(bytes: &[u8]) {
    let (path, whole) = whole();
    let mut file = whole.clone();
    for change in bytes.chunks_exact(CHANGE) {
        apply(&mut file, change.try_into().expect("so many bytes"));
    }
    std::fs::write(path, &file).expect("written");
    let Ok(opened) = NodeFile::open(path) else {
        assert!(!bytes.is_empty(), "the file as it was written");
        return;
    };
    let mut locations = 0;
    for (rank, thread, size) in opened.locations() {
        locations += 1;
        assert!(size <= file.len() as u64);
        if let Ok(location) = opened.location(rank, thread) {
            look_at(&location, file.len());
        }
    }
    assert!(!bytes.is_empty() || (locations, opened.unusable) == (LOCATIONS, 0));
}

/// The path of a node file, and its bytes.
fn whole() -> &'static (PathBuf, Vec<u8>) {
    static WHOLE: OnceLock<(PathBuf, Vec<u8>)> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let directory = scratch().join("node");
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).expect("a directory");
        let header = |rank| FileHeader {
            ranks: LOCATIONS,
            rank,
            host_id: 1,
            run_id: [7; 16],
            ..FileHeader::new()
        };
        let writers = (0..LOCATIONS).map(|rank| {
            let space = NodeSpace::create(&directory, &header(rank), 1 << 16).expect("a place");
            LocationWriter::new(space, header(rank), None).expect("a window")
        });
        let mut writers: Vec<_> = writers.collect();
        for writer in &mut writers {
            let signature = Signature {
                id: 1,
                operation: 1,
                ..Signature::default()
            };
            writer.define(&[Definition::Signature(signature)]);
        }
        for call in 0..CALLS {
            let enter = call * 10;
            writers
                .iter_mut()
                .for_each(|writer| writer.push(enter, enter + 3, 1));
        }
        for writer in writers {
            writer.finish(End {
                calls: CALLS,
                recorded: CALLS,
                ..End::default()
            });
        }
        let path = directory.join(node_file_name(1));
        let bytes = std::fs::read(&path).expect("the file");
        (path, bytes)
    })
}

/// A change: target (1 byte), kind (1), place (2), value (4).
fn apply(file: &mut Vec<u8>, change: [u8; CHANGE]) {
    let [what, how, ..] = change;
    let at = usize::from(u16::from_le_bytes([change[2], change[3]]));
    let value = u32::from_le_bytes([change[4], change[5], change[6], change[7]]);
    let long = match how & 0x18 {
        0 => u64::from(value),
        8 => u64::from(value) << 12,
        _ => i64::from(value as i32) as u64,
    };
    match what % 6 {
        0 => {
            let at = (usize::from(how) << 16 | at) % file.len().max(1);
            set(file, at, &[value as u8]);
        }
        1 => {
            set(file, at * 4 % HEADER, &value.to_le_bytes());
            if how & 1 != 0 && file.len() >= HEADER {
                let checksum = crc32c::crc32c(&file[..HEADER - 4]);
                set(file, HEADER - 4, &checksum.to_le_bytes());
            }
        }
        2 => {
            // The end, the number of entries, and the next part of the index.
            let at = [64, 128, 256 + at % 16 * 8][usize::from(how % 3)];
            set(file, at, &long.to_le_bytes());
        }
        3 => {
            let entry = ENTRIES + at % FIRST_ENTRIES * ENTRY;
            match how % 6 {
                4 => set(file, entry + 16, &long.to_le_bytes()),
                5 => {}
                field => set(file, entry + usize::from(field) * 4, &value.to_le_bytes()),
            }
            if how & 0x40 == 0 {
                let used = (how % 6 == 5).then_some(value);
                seal(file, entry, used);
            }
        }
        4 => {
            let place = |number: usize| ENTRIES + number % FIRST_ENTRIES * ENTRY;
            let (from, to) = (place(at), place(value as usize));
            if from.max(to) + ENTRY <= file.len() {
                file.copy_within(from..from + ENTRY, to);
            }
        }
        _ => file.truncate(value as usize % (file.len() + 1)),
    }
}

/// Corrects an entry's checksum; `used` also sets the number of used bytes.
fn seal(file: &mut [u8], entry: usize, used: Option<u32>) {
    let Some(bytes) = file.get_mut(entry..entry + ENTRY) else {
        return;
    };
    if let Some(used) = used {
        bytes[24..28].copy_from_slice(&used.to_le_bytes());
    }
    let checksum = crc32c::crc32c(&bytes[..28]).max(1);
    bytes[28..32].copy_from_slice(&checksum.to_le_bytes());
}

/// Writes bytes, as far as the file has room.
fn set(file: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = file.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}
