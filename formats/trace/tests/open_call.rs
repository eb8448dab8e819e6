//! The open call is in the file at once, and as long as it lasts, in every kind of space.
//! Nothing else is taken for one.

use std::path::Path;

use laggard_trace::{
    DamageKind, Decoder, End, FileHeader, FileSpace, GRANULE, Location, LocationWriter,
    MemorySpace, NodeFile, NodeSpace, OpenCall, PEER_NONE, Space, Subject, node_file_name,
};
use proptest::prelude::*;

/// Offset of the open call in a file.
const AT: usize = 192;
const SUBJECT: Subject = Subject {
    flags: OpenCall::HAS_ADDRESS | OpenCall::HAS_VALUE,
    group: 1 << 40,
    peer: -1,
    tag: 5,
    address: 2 << 48 | 16,
    value: u64::MAX,
};

fn header() -> FileHeader {
    FileHeader {
        ranks: 1,
        ..FileHeader::new()
    }
}

/// A location with `calls` calls, after which one is open.
fn hanging<S: Space>(space: S, calls: u64) -> LocationWriter<S> {
    let mut writer = LocationWriter::new(space, header(), None).expect("a first window");
    writer.keep_open_call();
    for n in 1..=calls {
        writer.open_call().enter(10 * n, 7, 3, &Subject::NONE);
        writer.open_call().leave();
        writer.push(10 * n, 10 * n + 5, 1);
    }
    let enter = 10 * (calls + 1);
    writer.open_call().enter(enter, 9, 4, &SUBJECT);
    writer
}

#[track_caller]
fn assert_hangs(location: &Location, calls: u64) {
    let call = location.open_call.expect("a call");
    let found = (call.enter, call.operation, call.call_path);
    assert_eq!(found, (10 * (calls + 1), 9, 4));
    assert_eq!((call.group, call.peer, call.tag), (1 << 40, -1, 5));
    assert_eq!(call.symmetric().map(|at| at.0), Some(SUBJECT.address));
    assert_eq!(call.compared(), Some(u64::MAX));
    assert_eq!(location.end, None);
    assert!(!location.is_outside);
    assert_eq!(records(location), calls as usize);
}

fn records(location: &Location) -> usize {
    let count = |chunk| {
        let mut decoder = Decoder::new(location.records(chunk), chunk.base);
        std::iter::from_fn(|| decoder.next().map(drop)).count()
    };
    location.chunks.iter().map(count).sum()
}

fn bytes(calls: u64) -> Vec<u8> {
    hanging(MemorySpace::new(), calls).leave_open().into_bytes()
}

fn read(bytes: &[u8]) -> Location {
    Location::from_bytes(Path::new("rank000000.thread000.lgt"), bytes).expect("a location")
}

/// More calls than fit into the first windows: the page stays mapped.
#[test]
fn a_call_is_in_the_file_while_it_lasts() {
    for calls in [0, 3, 100_000] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("one.lgt");
        let space = FileSpace::create(&path, 1 << 16).expect("a file");
        let mut writer = hanging(space, calls);
        // The reader sees the file that a kill at this moment would leave.
        assert_hangs(&Location::open(&path).expect("a location"), calls);
        writer.open_call().leave();
        let location = Location::open(&path).expect("a location");
        assert!(location.open_call.is_none() && location.is_outside);
        writer.finish(End::default());
        let location = Location::open(&path).expect("a location");
        assert!(location.open_call.is_none() && location.is_outside);
        assert_eq!((location.end.is_some(), location.damage.len()), (true, 0));
        assert_eq!(records(&location), calls as usize);
    }
}

#[test]
fn a_call_is_in_the_node_file_while_it_lasts() {
    let directory = tempfile::tempdir().expect("a directory");
    let calls = 200_000;
    let place = |rank| {
        let header = FileHeader { rank, ..header() };
        NodeSpace::create(directory.path(), &header, GRANULE as usize).expect("a place")
    };
    let (_first, mut second) = (hanging(place(0), 4), hanging(place(1), calls));
    let file = directory.path().join(node_file_name(0));
    let location = |rank| {
        let node = NodeFile::open(&file).expect("a node file");
        node.location(rank, 0).expect("a location")
    };
    assert_hangs(&location(0), 4);
    assert_hangs(&location(1), calls);
    second.open_call().leave();
    assert!(location(1).is_outside);
}

/// Another thread closes the file before the call returns: the call stays open there.
#[test]
fn a_closed_file_keeps_it() {
    let bytes = hanging(MemorySpace::new(), 2).finish(End::default());
    let location = read(&bytes.into_bytes());
    assert_eq!(location.open_call.map(|call| call.enter), Some(30));
    assert!(location.end.is_some() && location.damage.is_empty());
}

/// Writers without the block, and spaces without support for it, lose nothing else.
#[test]
fn without_a_place_nothing_is_noted() {
    let mut writer = LocationWriter::new(MemorySpace::new(), header(), None).expect("a window");
    writer.open_call().enter(5, 9, 4, &SUBJECT);
    writer.push(1, 2, 1);
    // Too late: the file has other blocks.
    writer.keep_open_call();
    let location = read(&writer.leave_open().into_bytes());
    assert!(location.open_call.is_none() && !location.is_outside);
    assert_eq!(records(&location), 1);
}

/// As readers older than the block do.
#[test]
fn readers_skip_what_they_do_not_know() {
    let mut bytes = bytes(50);
    let kind = 128 + 4;
    assert_eq!(bytes[kind..kind + 2], [8, 0]);
    bytes[kind] = 99;
    let location = read(&bytes);
    assert_eq!(records(&location), 50);
    assert!(location.open_call.is_none() && !location.is_outside);
    let is_open = |damage: &laggard_trace::Damage| damage.what == DamageKind::OpenBlock;
    assert!(location.damage.iter().all(is_open));
}

proptest! {
    /// Damaged words are neither an open call nor the statement that there is none.
    #[test]
    fn damaged_words_are_no_call(at in 0usize..64, bits in 1u8..) {
        let mut bytes = bytes(1);
        bytes[AT + at] ^= bits;
        // A zero marks the return of the call.
        prop_assume!(bytes[AT..AT + 8] != [0; 8]);
        let location = read(&bytes);
        prop_assert!(location.open_call.is_none());
        prop_assert!(!location.is_outside);
        prop_assert_eq!(records(&location), 1);
    }

    /// A block of any length with anything in it.
    #[test]
    fn any_payload_is_read(length in 0u32..400, payload in proptest::collection::vec(any::<u8>(), 88)) {
        let mut bytes = bytes(1);
        bytes[136..140].copy_from_slice(&length.to_le_bytes());
        bytes[AT - 24..AT + 64].copy_from_slice(&payload);
        read(&bytes);
        prop_assert!(OpenCall::read(&payload).is_none_or(|call| call.enter != 0));
    }
}

#[test]
fn a_subject_of_nothing_is_nobody() {
    assert_eq!(Subject::NONE.peer, PEER_NONE);
    assert!(OpenCall::read(&[]).is_none() && !OpenCall::is_none(&[]));
}
