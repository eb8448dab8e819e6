//! Written records, extensions and definitions are read back in the same order, whatever the
//! sizes, as far as there is room.

use std::path::Path;

use laggard_trace::{
    BLOCK_HEADER, BLOCK_MAGIC, BlockHeader, BlockKind, Communicator, DamageKind, Decoder,
    Definition, Dimension, End, Event, Extension, FileHeader, Grid, LIMIT_WRITE, Location,
    LocationWriter, MemorySpace, Neighbours, REGION_NAMED, Record, Region, RegionEntry, Signature,
    WORLD,
};
use proptest::prelude::*;
use zerocopy::{FromBytes, IntoBytes};

#[derive(Clone, Debug)]
enum Step {
    /// A call: ticks since the last one's enter (may be negative), duration, signature.
    Call(i64, u64, u32),
    /// The same with a number of completions and a value.
    Extended(i64, u64, u32, usize, u64),
    /// A string of this length.
    Define(usize),
    /// Blocks of other kinds.
    Clock,
}

fn step() -> impl Strategy<Value = Step> {
    let gap = prop_oneof![
        20 => 0i64..5000,
        1 => -5000i64..0,
        1 => Just(1 << 33),
    ];
    let duration = prop_oneof![20 => 0u64..10_000, 1 => Just(7 << 32)];
    prop_oneof![
        30 => (gap.clone(), duration.clone(), 1u32..1000).prop_map(|(g, d, s)| Step::Call(g, d, s)),
        3 => (gap, duration, 1u32..1000, 0usize..40, any::<u64>())
            .prop_map(|(g, d, s, n, v)| Step::Extended(g, d, s, n, v)),
        3 => (0usize..200).prop_map(Step::Define),
        1 => Just(Step::Define(70_000)),
        1 => Just(Step::Clock),
    ]
}

/// Writes the steps; returns the file, the expected content, and the writer's limits.
fn write(steps: &[Step], windows: Option<usize>) -> (Vec<u8>, Vec<Event>, Vec<Vec<u8>>, u32) {
    let mut space = MemorySpace::new();
    space.limit = windows;
    let header = FileHeader {
        ranks: 1,
        ..FileHeader::new()
    };
    let mut writer = LocationWriter::new(space, header, None).expect("a first window");
    let (mut events, mut strings) = (Vec::new(), Vec::new());
    let mut now = 1u64 << 40;
    for step in steps {
        match *step {
            Step::Call(gap, duration, signature) => {
                now = now.wrapping_add_signed(gap);
                let lost = writer.lost();
                writer.push(now, now + duration, signature);
                if writer.lost() == lost {
                    let leave = now + duration;
                    events.push(Event {
                        enter: now,
                        leave,
                        signature,
                        ..Event::default()
                    });
                }
            }
            Step::Extended(gap, duration, signature, n, value) => {
                now = now.wrapping_add_signed(gap);
                let mut extensions: Vec<Record> = (0..n as u32)
                    .map(|i| Record::extension(Extension::Completed, i + 1, i % 3))
                    .collect();
                extensions.push(Record::extension_u64(Extension::Value, value));
                let lost = writer.lost();
                writer.push_extended(&extensions, now, now + duration, signature);
                if writer.lost() == lost {
                    let completed = (0..n as u32).map(|i| laggard_trace::Completion {
                        delta: i + 1,
                        outcome: i % 3,
                        thread: None,
                    });
                    events.push(Event {
                        enter: now,
                        leave: now + duration,
                        signature,
                        completed: completed.collect(),
                        value: Some(value),
                        ..Event::default()
                    });
                }
            }
            Step::Define(length) => {
                let bytes = vec![b'x'; length];
                let id = strings.len() as u32 + 1;
                if writer.define(&[Definition::String {
                    id,
                    bytes: bytes.clone(),
                }]) {
                    strings.push(bytes);
                }
            }
            Step::Clock => drop(writer.clock(&[])),
        }
    }
    let limits = writer.limits();
    writer.block(BlockKind::Padding, 0, &[1; 24]);
    let bytes = writer
        .finish(End {
            calls: 1,
            ..End::default()
        })
        .into_bytes();
    (bytes, events, strings, limits)
}

/// A Waitall may complete any number of requests.
#[test]
fn a_call_has_as_many_completions_as_it_takes() {
    let n = (1 << 20) + 7;
    let steps = [
        Step::Call(5, 5, 1),
        Step::Extended(9, 9, 2, n, 3),
        Step::Call(50, 5, 1),
    ];
    let (bytes, events, _, limits) = write(&steps, None);
    let (_, found) = read(&bytes);
    assert_eq!((limits, events[1].completed.len()), (0, n));
    assert!(found == events);
}

fn read(bytes: &[u8]) -> (Location, Vec<Event>) {
    let location = Location::from_bytes(Path::new("memory"), bytes).expect("a header");
    let mut events = Vec::new();
    for chunk in &location.chunks {
        assert!(location.verify(chunk));
        let mut decoder = Decoder::new(location.records(chunk), chunk.base);
        while let Some(event) = decoder.next() {
            events.push(event.clone());
        }
    }
    (location, events)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn everything_comes_back(steps in prop::collection::vec(step(), 0..400)) {
        let (bytes, events, strings, limits) = write(&steps, None);
        let (location, found) = read(&bytes);
        prop_assert_eq!(limits, 0);
        prop_assert_eq!(&location.damage, &[]);
        prop_assert_eq!(found, events);
        prop_assert!(location.end.is_some());
        for (i, string) in strings.iter().enumerate() {
            prop_assert_eq!(location.definitions.string_bytes(i as u32 + 1), &string[..]);
        }
    }

    #[test]
    fn a_full_disk_loses_the_rest_only(
        steps in prop::collection::vec(step(), 0..400),
        windows in 1usize..4,
    ) {
        let (bytes, events, _, limits) = write(&steps, Some(windows));
        let (location, found) = read(&bytes);
        prop_assert_eq!(&location.damage, &[]);
        prop_assert_eq!(found, events);
        prop_assert!(location.end.is_some(), "no room for the end");
        prop_assert_eq!(location.end.map_or(0, |end| end.limits), limits & LIMIT_WRITE);
    }

    #[test]
    fn a_file_cut_anywhere_gives_a_beginning(
        steps in prop::collection::vec(step(), 0..200),
        cut in 128usize..100_000,
    ) {
        let (bytes, events, ..) = write(&steps, None);
        let (_, found) = read(&bytes[..cut.min(bytes.len())]);
        prop_assert!(found.len() <= events.len());
        prop_assert_eq!(&found[..], &events[..found.len()]);
    }
}

#[test]
fn a_long_run_fills_many_windows() {
    let steps: Vec<Step> = (0..200_000)
        .map(|i| Step::Call(100, 50, i % 7 + 1))
        .collect();
    let (bytes, events, ..) = write(&steps, None);
    assert!(read(&bytes).1 == events);
    // Twelve bytes per call, and little more.
    assert!(bytes.len() < events.len() * 12 + events.len() / 10 + 4096);
}

#[test]
fn many_completions_stay_with_their_call() {
    let (bytes, events, ..) = write(&[Step::Extended(0, 1, 1, 100_000, 5)], None);
    assert!(read(&bytes).1 == events);
}

#[test]
fn signatures_come_back() {
    let signature = Signature {
        id: 1,
        operation: 3,
        flags: 0x0fff,
        parameter: -5,
        ..Signature::default()
    };
    let header = FileHeader {
        ranks: 1,
        ..FileHeader::new()
    };
    let mut writer = LocationWriter::new(MemorySpace::new(), header, None).expect("a window");
    writer.define(&[Definition::Signature(signature)]);
    let bytes = writer.finish(End::default()).into_bytes();
    assert_eq!(read(&bytes).0.definitions.signatures()[1], signature);
}

/// A file with the neighbours 3, 1 and 3 and, after them, a communicator.
fn with_neighbours() -> (Vec<u8>, Neighbours) {
    let header = FileHeader {
        ranks: 1,
        ..FileHeader::new()
    };
    let mut writer = LocationWriter::new(MemorySpace::new(), header, None).expect("a window");
    let neighbours = Neighbours {
        communicator: 0x1234_5678_9abc,
        sources: vec![3, 1, 3],
    };
    writer.define(&[
        Definition::Neighbours(neighbours.clone()),
        Definition::Communicator(Communicator {
            id: WORLD,
            ..Communicator::default()
        }),
    ]);
    (writer.finish(End::default()).into_bytes(), neighbours)
}

/// Changes a definition's head in the file and corrects the checksum of its block.
fn with_head(mut bytes: Vec<u8>, of: &Definition, kind: u16, length: u32) -> Vec<u8> {
    let mut encoded = Vec::new();
    of.encode(&mut encoded);
    let found = bytes
        .windows(encoded.len())
        .position(|part| part == encoded);
    let at = found.expect("the definition");
    bytes[at..at + 2].copy_from_slice(&kind.to_le_bytes());
    bytes[at + 4..at + 8].copy_from_slice(&length.to_le_bytes());
    let is_block = |at: &usize| bytes[*at..*at + 4] == BLOCK_MAGIC.to_le_bytes();
    let block = (0..at).rev().find(is_block).expect("its block");
    let payload = block + BLOCK_HEADER;
    let mut header = BlockHeader::read_from_bytes(&bytes[block..payload]).expect("a header");
    let end = payload + header.length as usize;
    header.checksum = header.expected_checksum(&bytes[payload..end]);
    bytes[block..payload].copy_from_slice(header.as_bytes());
    bytes
}

#[test]
fn neighbours_come_back() {
    let (bytes, neighbours) = with_neighbours();
    let (location, _) = read(&bytes);
    assert_eq!(location.definitions.neighbours, [neighbours]);
    assert_eq!(location.damage, []);
}

#[test]
fn neighbours_that_are_no_whole_list_are_damage() {
    let (bytes, neighbours) = with_neighbours();
    let definition = Definition::Neighbours(neighbours);
    // Cut within a rank, and within the communicator, both padded as before.
    for (length, after) in [(17, 1), (19, 1), (5, 0)] {
        let (location, _) = read(&with_head(bytes.clone(), &definition, 9, length));
        assert!(location.definitions.neighbours.is_empty());
        let damage: Vec<_> = location.damage.iter().map(|d| &d.what).collect();
        assert!(damage.contains(&&DamageKind::Definition), "{damage:?}");
        assert!(location.definitions.communicators.len() <= after);
    }
}

#[test]
fn grids_come_back() {
    let header = FileHeader {
        ranks: 1,
        ..FileHeader::new()
    };
    let mut writer = LocationWriter::new(MemorySpace::new(), header, None).expect("a window");
    let of = |size, is_periodic, coordinate| Dimension {
        size,
        is_periodic,
        coordinate,
    };
    let grid = Grid {
        communicator: 0x1234_5678_9abc,
        dimensions: vec![of(4, true, 3), of(2, false, 0)],
    };
    writer.define(&[Definition::Grid(grid.clone())]);
    let bytes = writer.finish(End::default()).into_bytes();
    let (location, _) = read(&bytes);
    assert_eq!(location.damage, []);
    assert_eq!(location.definitions.grids, std::slice::from_ref(&grid));
    // Cut within a dimension; and a rank that is in none of the places.
    let definition = Definition::Grid(grid.clone());
    let (location, _) = read(&with_head(bytes, &definition, 13, 8 + 20));
    assert_ne!(location.damage, []);
    assert!(location.definitions.grids.is_empty());
    let mut outside = grid;
    outside.dimensions[1].coordinate = 2;
    let mut writer = LocationWriter::new(MemorySpace::new(), header, None).expect("a window");
    writer.define(&[Definition::Grid(outside)]);
    let (location, _) = read(&writer.finish(End::default()).into_bytes());
    assert_ne!(location.damage, []);
    assert!(location.definitions.grids.is_empty());
}

#[test]
fn peers_come_back_by_parameter() {
    let header = FileHeader {
        ranks: 1,
        ..FileHeader::new()
    };
    let mut writer = LocationWriter::new(MemorySpace::new(), header, None).expect("a window");
    let lists = [vec![2, 0], vec![], vec![7]];
    for (id, ranks) in (1..).zip(lists.clone()) {
        writer.define(&[Definition::Peers { id, ranks }]);
    }
    let bytes = writer.finish(End::default()).into_bytes();
    let (location, _) = read(&bytes);
    assert_eq!(location.damage, []);
    let definitions = &location.definitions;
    assert!(definitions.lists_of_peers().eq(lists));
    // The high half is the assertion.
    assert_eq!(definitions.peers(1 | 2 << 32), [2, 0]);
    assert_eq!(definitions.peers(3), [7]);
    for unknown in [0, 2, 4, -1, i64::MIN] {
        assert_eq!(definitions.peers(unknown), [0; 0]);
    }
    // Cut within a rank.
    let peers = Definition::Peers {
        id: 1,
        ranks: vec![2, 0],
    };
    let (location, _) = read(&with_head(bytes, &peers, 11, 14));
    assert_ne!(location.damage, []);
    assert_eq!(location.definitions.peers(1), [0; 0]);
}

#[test]
fn regions_come_back() {
    let header = FileHeader {
        ranks: 1,
        ..FileHeader::new()
    };
    let mut writer = LocationWriter::new(MemorySpace::new(), header, None).expect("a window");
    let region = Region {
        id: 1,
        kind: REGION_NAMED,
        name: 2,
        call_path: 3,
    };
    writer.define(&[Definition::Region(region)]);
    let entry = RegionEntry {
        region: 1,
        count: 5,
        inclusive: 100,
        exclusive: 60,
        minimum: 1,
        maximum: 40,
        unended: 2,
        sum_of_squares: u128::MAX,
        ..RegionEntry::default()
    };
    writer.regions(&[entry]);
    let bytes = writer.finish(End::default()).into_bytes();
    let (location, _) = read(&bytes);
    assert_eq!(location.damage, []);
    assert_eq!(location.definitions.regions()[1], region);
    assert_eq!(location.regions, [entry]);
    // A definition cut within its call path is no region.
    let (location, _) = read(&with_head(bytes, &Definition::Region(region), 12, 14));
    assert_ne!(location.damage, []);
    assert!(location.definitions.regions().is_empty());
}

#[test]
fn definitions_of_later_kinds_are_skipped() {
    let (bytes, neighbours) = with_neighbours();
    let kind = Definition::LAST_KIND + 1;
    let (location, _) = read(&with_head(
        bytes,
        &Definition::Neighbours(neighbours),
        kind,
        20,
    ));
    assert_eq!(location.damage, []);
    assert!(location.definitions.neighbours.is_empty());
    assert_eq!(location.definitions.communicators.len(), 1);
}

#[test]
fn a_killed_writer_leaves_everything_up_to_its_last_record() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("killed.lgt");
    let space = laggard_trace::FileSpace::create(&path, 1 << 16).expect("a file");
    let header = FileHeader {
        ranks: 1,
        ..FileHeader::new()
    };
    let mut writer = LocationWriter::new(space, header, None).expect("a window");
    for id in 1..=1000u32 {
        let operation = 1;
        writer.define(&[Definition::Signature(Signature {
            id,
            operation,
            ..Signature::default()
        })]);
        for call in 0..20 {
            writer.push(
                u64::from(id) * 1000 + call,
                u64::from(id) * 1000 + call + 1,
                id,
            );
        }
    }
    // The file as the kernel would have it if the process ended now.
    let bytes = std::fs::read(&path).expect("the file");
    std::mem::forget(writer);
    let (location, events) = read(&bytes);
    assert_eq!(events.len(), 20_000);
    let defined = location.definitions.signatures();
    assert!(
        events
            .iter()
            .all(|event| defined[event.signature as usize].operation == 1)
    );
    assert!(location.end.is_none());
    assert!(
        location
            .damage
            .iter()
            .all(|d| d.what == laggard_trace::DamageKind::OpenBlock)
    );
    // Few chunks: a new definition does not end one.
    assert!(
        location.chunks.len() < 30,
        "{} chunks",
        location.chunks.len()
    );
}
