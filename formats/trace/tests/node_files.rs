//! Node files: many writers, damage of all kinds, disk usage.

use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use laggard_trace::{
    DamageKind, Decoder, Definition, End, FileHeader, FileSpace, GRANULE, Location, LocationWriter,
    NodeFile, NodeSpace, Signature, Space, node_file_name,
};
use proptest::prelude::*;

const RUN: [u8; 16] = [7; 16];
const HOST: u64 = 0xfeed;

fn header(rank: u32, thread: u32) -> FileHeader {
    FileHeader {
        run_id: RUN,
        rank,
        thread,
        ranks: 1000,
        host_id: HOST,
        ..FileHeader::new()
    }
}

fn node_file(directory: &Path) -> PathBuf {
    directory.join(node_file_name(HOST))
}

fn place(directory: &Path, rank: u32, thread: u32, window: usize) -> NodeSpace {
    NodeSpace::create(directory, &header(rank, thread), window).expect("a place")
}

/// A location whose calls' times and signatures identify their author.
struct Writer<S: Space> {
    writer: LocationWriter<S>,
    rank: u32,
    thread: u32,
    calls: u64,
}

/// Time of entry and signature of a call.
fn call(rank: u32, thread: u32, n: u64) -> (u64, u32) {
    let times = 10 * n + u64::from(rank % 7);
    (times, 1 + (rank + thread * 3 + n as u32 / 1000) % 50)
}

impl<S: Space> Writer<S> {
    fn new(space: S, rank: u32, thread: u32) -> Writer<S> {
        let mut writer =
            LocationWriter::new(space, header(rank, thread), None).expect("a first window");
        let signature = |id| {
            let operation = id as u16;
            Definition::Signature(Signature {
                id,
                operation,
                ..Signature::default()
            })
        };
        writer.define(&(1..=50).map(signature).collect::<Vec<_>>());
        Writer {
            writer,
            rank,
            thread,
            calls: 0,
        }
    }

    fn calls(&mut self, calls: u64) {
        for n in self.calls..self.calls + calls {
            let (enter, signature) = call(self.rank, self.thread, n);
            self.writer.push(enter, enter + 3, signature);
        }
        self.calls += calls;
    }

    fn finish(self) -> S {
        self.writer.finish(End {
            calls: self.calls,
            recorded: self.calls,
            ..End::default()
        })
    }
}

/// Reads a location's calls and checks them; returns their number.
#[track_caller]
fn read(location: &Location) -> u64 {
    let mut n = 0;
    for chunk in &location.chunks {
        assert!(location.verify(chunk), "{chunk:?}");
        let mut decoder = Decoder::new(location.records(chunk), chunk.base);
        while let Some(event) = decoder.next() {
            let expected = call(location.header.rank, location.header.thread, n);
            assert_eq!((event.enter, event.signature), expected, "call {n}");
            assert_eq!(event.leave, event.enter + 3);
            n += 1;
        }
    }
    assert_eq!(location.definitions.signatures().len(), 51);
    n
}

#[track_caller]
fn read_whole(file: &NodeFile, rank: u32, thread: u32) -> u64 {
    let location = file.location(rank, thread).expect("a location");
    assert_eq!(location.damage, []);
    let end = location.end.expect("an end");
    assert_eq!(read(&location), end.recorded);
    end.recorded
}

#[test]
fn locations_are_told_apart_however_they_interleave() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writers: Vec<_> = (0..5)
        .map(|rank| {
            Writer::new(
                place(directory.path(), rank, rank % 2, 1 << 18),
                rank,
                rank % 2,
            )
        })
        .collect();
    // Alternating extents of very different lengths.
    for round in 0..40 {
        for writer in &mut writers {
            writer.calls(u64::from(writer.rank) * 1500 + round);
        }
    }
    for writer in writers {
        writer.finish();
    }
    let file = NodeFile::open(&node_file(directory.path())).expect("a node file");
    assert_eq!((file.unusable, file.run_id, file.host_id), (0, RUN, HOST));
    let listed: Vec<_> = file.locations().map(|l| (l.0, l.1)).collect();
    assert_eq!(listed, [(0, 0), (1, 1), (2, 0), (3, 1), (4, 0)]);
    for (rank, thread, size) in file.locations() {
        let calls = read_whole(&file, rank, thread);
        assert_eq!(calls, 40 * u64::from(rank) * 1500 + 40 * 39 / 2);
        let location = file.location(rank, thread).expect("a location");
        assert_eq!(location.size(), size);
        assert!(size >= calls * 12 && size < calls * 12 + calls / 2 + 16384);
        assert_eq!(
            location.path().file_name().and_then(|name| name.to_str()),
            Some(&*laggard_trace::file_name(rank, thread))
        );
    }
}

/// A location's bytes equal those of its file, whatever the sizes of windows.
#[test]
fn a_copied_file_reads_the_same() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("whole");
    let mut writer = Writer::new(FileSpace::create(&path, 1 << 20).expect("a file"), 4, 2);
    writer.calls(300_000);
    writer.finish();
    let bytes = std::fs::read(&path).expect("the file");
    let mut space = place(directory.path(), 4, 2, 100_000);
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let (window, size) = space.advance(0).expect("a window");
        let (part, others) = rest.split_at(size.min(rest.len()));
        // SAFETY: a window has this size.
        unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), window, part.len()) };
        rest = others;
    }
    space.finish(bytes.len() as u64).expect("finished");
    let file = NodeFile::open(&node_file(directory.path())).expect("a node file");
    let [one, other] = [
        Location::open(&path).expect("a location"),
        file.location(4, 2).expect("a location"),
    ];
    assert_eq!(one.size(), other.size());
    assert_eq!(
        one.end.map(|end| end.recorded),
        other.end.map(|end| end.recorded)
    );
    assert_eq!(one.chunks.len(), other.chunks.len());
    for (a, b) in one.chunks.iter().zip(&other.chunks) {
        assert_eq!(a.offset, b.offset);
        let records = |l: &Location, c| {
            l.records(c)
                .iter()
                .map(|r| (r.enter, r.signature))
                .collect::<Vec<_>>()
        };
        assert_eq!(records(&one, a), records(&other, b));
    }
    assert_eq!(read_whole(&file, 4, 2), 300_000);
}

/// One call that needs more than any window or extent.
#[test]
fn a_window_may_be_larger_than_an_extent() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut space = place(directory.path(), 1, 0, 1 << 16);
    space.advance(0).expect("a window");
    let (_, size) = space.advance(100 << 20).expect("a large window");
    assert!(size >= 100 << 20);
    space.prepare(80 << 20).expect("room");
    // The smaller window prepared before is unusable.
    space.prepare(90 << 20).expect("room");
    let (_, size) = space.advance(85 << 20).expect("a large window");
    assert!(size >= 85 << 20);
    space
        .finish((64 << 10) + (100 << 20) + 5)
        .expect("finished");
    let file = NodeFile::open(&node_file(directory.path())).expect("a node file");
    assert_eq!(file.unusable, 0);
}

#[test]
fn little_is_taken_on_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    for rank in 0..300 {
        let mut writer = Writer::new(place(directory.path(), rank, 0, 1 << 20), rank, 0);
        writer.calls(10);
        writer.finish();
    }
    let metadata = std::fs::metadata(node_file(directory.path())).expect("the file");
    let file = NodeFile::open(&node_file(directory.path())).expect("a node file");
    let used: u64 = file.locations().map(|l| l.2).sum();
    let taken = metadata.blocks() * 512;
    // Pages of the locations, two of header and index, the second index block, and the file
    // system's own metadata.
    let most = 300 * (used / 300).next_multiple_of(4096) + 8192 + (64 << 10) + (64 << 10);
    assert!(taken <= most, "{taken} bytes for {used}");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(directory.path()).expect("it").count(), 1);
    for rank in 0..300 {
        assert_eq!(read_whole(&file, rank, 0), 10);
    }
}

/// Set for a child process of this test: directory, rank, manner of its end.
const CHILD: &str = "LAGGARD_TEST_NODE_WRITER";
const THREADS: u32 = 3;
const CALLS: u64 = 120_000;

/// Does nothing unless one of the tests below has started this process.
#[test]
fn writer_process() {
    let Ok(told) = std::env::var(CHILD) else {
        return;
    };
    let words: Vec<&str> = told.split('\n').collect();
    let directory = PathBuf::from(words[0]);
    let rank: u32 = words[1].parse().expect("a rank");
    let how = words[2];
    if how == "limited" {
        let limit = libc::rlimit {
            rlim_cur: 1 << 20,
            rlim_max: 1 << 20,
        };
        // SAFETY: a valid limit.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);
    }
    // Each thread has its first window before any asks for more.
    let begun = std::sync::Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (directory, begun) = (&directory, &begun);
            scope.spawn(move || {
                // Small windows: many extents and index entries at once.
                let space = place(directory, rank, thread, 1 << 16);
                let mut writer = Writer::new(space, rank, thread);
                begun.wait();
                for _ in 0..100 {
                    writer.calls(CALLS / 100);
                    if how == "killed" && writer.calls > CALLS / 2 && thread == 1 {
                        // SAFETY: no memory is involved.
                        unsafe { libc::raise(libc::SIGKILL) };
                    }
                }
                assert_eq!(writer.writer.is_recording(), how != "limited");
                writer.finish();
            });
        }
    });
}

fn start(directory: &Path, rank: u32, how: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "writer_process", "--test-threads", "1"]);
    command.env(CHILD, format!("{}\n{rank}\n{how}", directory.display()));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("started")
}

#[test]
fn processes_fill_a_file_without_locks() {
    let directory = tempfile::tempdir().expect("a directory");
    let how = |rank| if rank == 3 { "killed" } else { "whole" };
    let children: Vec<_> = (0..6)
        .map(|rank| start(directory.path(), rank, how(rank)))
        .collect();
    for (rank, mut child) in children.into_iter().enumerate() {
        assert_eq!(child.wait().expect("ended").success(), rank != 3);
    }
    assert_eq!(
        std::fs::read_dir(directory.path()).expect("it").count(),
        1,
        "drafts"
    );
    let file = NodeFile::open(&node_file(directory.path())).expect("a node file");
    for rank in (0..6).filter(|&rank| rank != 3) {
        for thread in 0..THREADS {
            assert_eq!(
                read_whole(&file, rank, thread),
                CALLS,
                "rank {rank}, thread {thread}"
            );
        }
    }
    // The killed writer's calls are there up to its last one.
    let killed = file.location(3, 1).expect("a location");
    assert!(
        killed.end.is_none()
            && killed
                .damage
                .iter()
                .all(|d| d.what == DamageKind::OpenBlock)
    );
    assert_eq!(read(&killed), CALLS / 2 + CALLS / 100);
}

/// One process may not let the file grow; the others may.
#[test]
fn a_full_disk_is_no_signal() {
    let directory = tempfile::tempdir().expect("a directory");
    for (rank, how) in [(0, "limited"), (1, "whole")] {
        let mut child = start(directory.path(), rank, how);
        assert!(child.wait().expect("ended").success());
    }
    let file = NodeFile::open(&node_file(directory.path())).expect("a node file");
    for thread in 0..THREADS {
        assert_eq!(read_whole(&file, 1, thread), CALLS);
        let limited = file.location(0, thread).expect("a location");
        let end = limited.end.expect("an end");
        assert_ne!(end.limits & laggard_trace::LIMIT_WRITE, 0);
        assert!(end.lost > 0 && read(&limited) + end.lost == CALLS);
    }
}

/// A file in the node file's place is neither written nor followed.
#[test]
fn what_is_no_node_file_of_the_run_is_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = node_file(directory.path());
    let create = || NodeSpace::create(directory.path(), &header(0, 0), 1 << 16);
    let target = directory.path().join("target");
    for content in [Some(vec![1u8; 100_000]), None] {
        if let Some(content) = &content {
            std::fs::write(&target, content).expect("written");
        }
        std::os::unix::fs::symlink(&target, &path).expect("a link");
        assert!(create().is_err());
        assert_eq!(std::fs::read(&target).ok(), content);
        std::fs::remove_file(&path).expect("removed");
        let _ = std::fs::remove_file(&target);
    }
    let other = FileHeader {
        run_id: [8; 16],
        ..header(0, 0)
    };
    drop(NodeSpace::create(directory.path(), &other, 1 << 16).expect("a place"));
    let error = create().expect_err("another run").to_string();
    assert!(error.contains("no node file of this run"), "{error}");
    std::fs::write(&path, "short").expect("written");
    assert!(create().is_err());
    assert_eq!(std::fs::read(&path).expect("it"), b"short");
    std::fs::remove_file(&path).expect("removed");
    std::fs::create_dir(&path).expect("a directory");
    assert!(create().is_err());
}

/// Somebody truncates or overwrites the file while it grows: an error, no signal.
#[test]
fn a_file_spoiled_meanwhile_is_an_error() {
    for (at, word) in [
        (None, 0),
        (Some(64), 12345u64),
        (Some(64), u64::MAX - 5),
        (Some(128), u64::MAX),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = node_file(directory.path());
        let mut space = place(directory.path(), 0, 0, 1 << 16);
        match at {
            Some(at) => std::fs::OpenOptions::new()
                .write(true)
                .open(&path)
                .and_then(|file| file.write_all_at(&word.to_le_bytes(), at))
                .expect("written"),
            None => std::fs::write(&path, "").expect("cut off"),
        }
        assert!(space.advance(0).is_err(), "{at:?} {word}");
        assert!(space.prepare(0).is_err() && space.finish(0).is_ok() == at.is_some());
    }
    let directory = tempfile::tempdir().expect("a directory");
    let mut space = place(directory.path(), 0, 0, 1 << 16);
    std::fs::rename(node_file(directory.path()), directory.path().join("away")).expect("moved");
    assert!(space.advance(0).is_err());
    let _other = place(directory.path(), 1, 0, 1 << 16);
    assert!(space.advance(0).is_err());
}

/// A node file with three locations of several extents each.
fn example() -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writers: Vec<_> = (0..3)
        .map(|rank| Writer::new(place(directory.path(), rank, 0, 1 << 16), rank, 0))
        .collect();
    for _ in 0..4 {
        writers.iter_mut().for_each(|writer| writer.calls(15_000));
    }
    for writer in writers {
        writer.finish();
    }
    std::fs::read(node_file(directory.path())).expect("the file")
}

/// Number of calls of a location; `None` without an end.
fn held(file: &NodeFile, rank: u32) -> Option<u64> {
    let location = file.location(rank, 0).ok()?;
    (location.damage.is_empty() && location.end.is_some()).then(|| {
        let sound = location
            .chunks
            .iter()
            .filter(|chunk| location.verify(chunk));
        sound.map(|chunk| u64::from(chunk.count)).sum()
    })
}

fn opened(bytes: &[u8]) -> Result<NodeFile, laggard_trace::Error> {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), bytes).expect("written");
    NodeFile::open(file.path())
}

#[test]
fn damage_to_an_entry_costs_its_location_alone() {
    let bytes = example();
    let whole = opened(&bytes).expect("a node file");
    assert!((0..3).all(|rank| held(&whole, rank) == Some(60_000)));
    let entries: Vec<usize> = (4096..8192)
        .step_by(32)
        .filter(|&at| bytes[at..at + 32] != [0; 32])
        .collect();
    assert!(entries.len() >= 9);
    let owner = |at: usize| u32::from(bytes[at]);
    for &at in &entries {
        // Unfinished, missing, claimed by another location, claimed twice.
        let next = entries
            .iter()
            .find(|&&other| owner(other) != owner(at))
            .copied()
            .expect("another");
        for how in ["unfinished", "not there", "changed", "twice"] {
            let mut bytes = bytes.clone();
            match how {
                "unfinished" => bytes[at + 24..at + 32].fill(0),
                "not there" => bytes[at..at + 32].fill(0),
                "changed" => bytes[at + 16] ^= 4,
                _ => bytes.copy_within(next..next + 32, at),
            }
            let file = opened(&bytes).expect("a node file");
            let spared =
                (0..3).filter(|&rank| rank != owner(at) && (how != "twice" || rank != owner(next)));
            for rank in spared {
                assert_eq!(held(&file, rank), Some(60_000), "{how}, rank {rank}");
            }
            let lost = held(&file, owner(at)) != Some(60_000);
            assert!(lost || file.unusable > 0, "{how} at {at} is hidden");
            if how != "twice" {
                assert!(file.unusable > 0, "{how}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever bytes change: no panic, and every loss is reported.
    #[test]
    fn damage_is_never_hidden(
        changes in prop::collection::vec((prop_oneof![0..256usize, 256..400usize, 4096..4500usize, 65536..2_000_000usize], any::<u8>()), 1..4),
        cut in prop::option::of(0..2_000_000usize),
    ) {
        thread_local! { static GOOD: Vec<u8> = example(); }
        let mut bytes = GOOD.with(|good| good.clone());
        for &(at, value) in &changes {
            let length = bytes.len();
            bytes[at % length] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.max(1));
        }
        if let Ok(file) = opened(&bytes) {
            let sound = (0..3).all(|rank| held(&file, rank) == Some(60_000));
            let told = file.unusable > 0 || file.locations().count() != 3 || (0..3).any(|rank| {
                file.location(rank, 0).map_or(true, |l| !l.damage.is_empty() || l.end.is_none() || l.chunks.iter().any(|c| !l.verify(c)))
            });
            prop_assert!(sound || told);
        }
    }
}

/// Index blocks anywhere, and entries with arbitrary claims, all with valid checksums.
#[test]
fn crafted_indexes_do_no_harm() {
    let bytes = example();
    let words = [
        0u64,
        1,
        4096,
        8192,
        GRANULE,
        3 * GRANULE,
        1 << 40,
        u64::MAX - 31,
        u64::MAX,
    ];
    for block in 0..16 {
        for word in words {
            let mut bytes = bytes.clone();
            bytes[256 + block * 8..264 + block * 8].copy_from_slice(&word.to_le_bytes());
            if let Ok(file) = opened(&bytes) {
                for rank in 0..3 {
                    let _ = file.location(rank, 0);
                }
            }
        }
    }
    for offset in words {
        for length in [0u32, 1, 4096, GRANULE as u32, u32::MAX] {
            for used in [0, 1, GRANULE as u32, length, u32::MAX] {
                let mut bytes = bytes.clone();
                let entry = &mut bytes[4096..4128];
                entry[12..16].copy_from_slice(&length.to_le_bytes());
                entry[16..24].copy_from_slice(&offset.to_le_bytes());
                entry[24..28].copy_from_slice(&used.to_le_bytes());
                let fixed = crc32c::crc32c(&entry[..24]);
                let sum = crc32c::crc32c_append(fixed, &used.to_le_bytes());
                entry[28..32].copy_from_slice(&sum.max(1).to_le_bytes());
                let file = opened(&bytes).expect("a node file");
                for rank in 0..3 {
                    let _ = file.location(rank, 0);
                }
                if offset == GRANULE && length == 256 << 10 {
                    continue;
                }
                let told = file.unusable > 0 || held(&file, 0) != Some(60_000);
                assert!(told, "offset {offset}, length {length}, used {used}");
            }
        }
    }
}

#[test]
fn what_is_no_node_file_is_an_error() {
    let bytes = example();
    let error = |bytes: &[u8]| opened(bytes).expect_err("refused").to_string();
    assert!(error(b"").contains("shorter"));
    assert!(error(&[0xa5; 10_000]).contains("wrong first bytes"));
    let mut newer = bytes.clone();
    newer[8] = 9;
    assert!(error(&newer).contains("use a newer laggard"));
    let mut swapped = bytes.clone();
    swapped[12..16].reverse();
    assert!(error(&swapped).contains("other byte order"));
    let mut damaged = bytes.clone();
    damaged[20] ^= 1;
    assert!(error(&damaged).contains("damaged node file header"));
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), &bytes).expect("written");
    let error = Location::open(file.path())
        .expect_err("no location")
        .to_string();
    assert!(error.contains("a node file"), "{error}");
    assert!(NodeFile::open(Path::new("/dev/null")).is_err());
    assert!(NodeFile::open(Path::new("/")).is_err());
}
