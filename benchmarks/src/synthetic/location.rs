//! One rank's file.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use laggard_trace::calls::number;
use laggard_trace::{
    Clock, ClockPoint, Communicator, Definition, End, Endpoint, FileHeader, FileSpace, Frame,
    LocationWriter, PEER_ANY, PEER_NONE, ProfileEntry, Signature, Space, WORLD, file_name, flags,
};

/// Rate of the clocks, Hz.
pub const TICKS_PER_S: u64 = 2_500_000_000;
/// Wall clock when the runs start: 2025-01-01.
pub const START_UNIX_NS: u64 = 1_735_689_600_000_000_000;
/// Where the clocks start.
const START: u64 = 1 << 40;
/// Bytes mapped at a time.
const WINDOW: usize = 1 << 20;
/// No message.
const NOBODY: Endpoint = Endpoint {
    peer: PEER_NONE,
    tag: 0,
    bytes: 0,
};

/// Ticks of so many ns.
pub const fn ticks(ns: u64) -> u64 {
    ns * (TICKS_PER_S / 500_000_000) / 2
}

/// Time of the reference clock, ns.
fn reference_ns(ticks: u64) -> u64 {
    (ticks - START) * 2 / (TICKS_PER_S / 500_000_000)
}

/// The run's identity from a random number.
pub fn run_id(identity: u64) -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&identity.to_le_bytes());
    id[8..].copy_from_slice(&(!identity).to_le_bytes());
    id
}

/// A file whose blocks carry the location's time instead of the real one.
struct Simulated {
    file: FileSpace,
    now: Arc<AtomicU64>,
}

impl Space for Simulated {
    fn prepare(&mut self, minimum: usize) -> io::Result<()> {
        self.file.prepare(minimum)
    }

    fn advance(&mut self, minimum: usize) -> io::Result<(*mut u8, usize)> {
        self.file.advance(minimum)
    }

    fn finish(&mut self, length: u64) -> io::Result<()> {
        self.file.finish(length)
    }

    fn monotonic_ns(&self) -> u64 {
        reference_ns(self.now.load(Ordering::Relaxed))
    }
}

/// One rank: its clock, its file and its profile.
pub struct Location {
    writer: LocationWriter<Simulated>,
    path: PathBuf,
    rank: u32,
    ranks: u32,
    now: u64,
    shared_now: Arc<AtomicU64>,
    calls: u64,
    /// By signature id − 1.
    signatures: Vec<Signature>,
    statistics: Vec<ProfileEntry>,
    strings: HashMap<String, u32>,
    paths: u32,
    lists: u32,
}

impl Location {
    /// Makes the file of `rank` with what the collector writes at the start.
    pub(super) fn create(
        directory: &Path,
        program: &str,
        rank: u32,
        ranks: u32,
        identity: u64,
    ) -> io::Result<Location> {
        let path = directory.join(file_name(rank, 0));
        let shared_now = Arc::new(AtomicU64::new(START));
        let space = Simulated {
            file: FileSpace::create(&path, WINDOW)?,
            now: shared_now.clone(),
        };
        let header = FileHeader {
            run_id: run_id(identity),
            rank,
            ranks,
            clock: Clock::TimeStampCounter as u32,
            ticks_per_s: TICKS_PER_S,
            host_id: identity | 1,
            start_ticks: START,
            start_unix_ns: START_UNIX_NS,
            pid: 1000 + rank,
            ..FileHeader::new()
        };
        let mut location = Location {
            writer: LocationWriter::new(space, header, None)?,
            path,
            rank,
            ranks,
            now: START,
            shared_now,
            calls: 0,
            signatures: Vec::new(),
            statistics: Vec::new(),
            strings: HashMap::new(),
            paths: 0,
            lists: 0,
        };
        location.define_run(program);
        Ok(location)
    }

    fn define_run(&mut self, program: &str) {
        for (key, value) in [
            ("program", program),
            ("host", "synthetic"),
            ("mpi_library", "none"),
        ] {
            let (key, value) = (self.string(key), self.string(value));
            self.define(Definition::Property { key, value });
        }
        let name = self.string("MPI_COMM_WORLD");
        let members = if self.rank == 0 {
            (0..self.ranks).collect()
        } else {
            Vec::new()
        };
        self.define(Definition::Communicator(Communicator {
            id: WORLD,
            size: self.ranks,
            local_rank: self.rank,
            name,
            members,
            ..Communicator::default()
        }));
        self.clock_point(0);
    }

    fn clock_point(&mut self, kind: u32) {
        let reference_ns = reference_ns(self.now) as i64;
        let point = ClockPoint {
            local: self.now,
            reference_ns,
            error_ns: 0,
            kind,
            reserved: 0,
        };
        self.writer.clock(&[point]);
    }

    fn define(&mut self, definition: Definition) {
        self.writer.define(&[definition]);
    }

    /// The id of a text.
    pub fn string(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.strings.get(text) {
            return id;
        }
        let id = self.strings.len() as u32 + 1;
        self.strings.insert(text.to_owned(), id);
        self.define(Definition::String {
            id,
            bytes: text.into(),
        });
        id
    }

    /// A call path: (function, line) of a file, innermost first.
    pub fn call_path(&mut self, file: &str, frames: &[(&str, u32)]) -> u32 {
        let file = self.string(file);
        let frames = frames.iter().map(|&(function, line)| {
            let function = self.string(function);
            Frame::Source {
                file,
                function,
                line,
            }
        });
        let frames = frames.collect();
        self.paths += 1;
        self.define(Definition::CallPath {
            id: self.paths,
            frames,
        });
        self.paths
    }

    /// A completion list of (delta, outcome).
    pub fn completion_list(&mut self, entries: &[(u32, u32)]) -> u32 {
        self.lists += 1;
        self.define(Definition::CompletionList {
            id: self.lists,
            entries: entries.to_vec(),
        });
        self.lists
    }

    /// The id of a signature; its `id` is filled in. Not looked up: call it once for each.
    pub fn signature(&mut self, signature: Signature) -> u32 {
        let id = self.signatures.len() as u32 + 1;
        let signature = Signature { id, ..signature };
        self.signatures.push(signature);
        self.statistics.push(ProfileEntry {
            operation: signature.operation,
            call_path: signature.call_path,
            minimum: u64::MAX,
            ..ProfileEntry::default()
        });
        self.define(Definition::Signature(signature));
        id
    }

    /// The signature of MPI_Init.
    pub(super) fn init(&mut self) -> u32 {
        let path = self.call_path("main.c", &[("main", 10)]);
        self.signature(collective(number::MPI_Init, path, PEER_ANY, (0, 0)))
    }

    /// The signature of MPI_Finalize.
    pub(super) fn finalize(&mut self) -> u32 {
        let path = self.call_path("main.c", &[("main", 90)]);
        self.signature(collective(number::MPI_Finalize, path, PEER_ANY, (0, 0)))
    }

    /// Ticks now.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Time outside of calls.
    #[inline]
    pub fn compute(&mut self, ticks: u64) {
        self.now += ticks;
    }

    /// A call from now on that takes `duration` ticks.
    #[inline]
    pub fn call(&mut self, signature: u32, duration: u64) {
        let enter = self.now;
        self.now += duration;
        self.calls += 1;
        self.shared_now.store(enter, Ordering::Relaxed);
        self.writer.push(enter, self.now, signature);
        let entry = &mut self.statistics[signature as usize - 1];
        entry.count += 1;
        entry.total += duration;
        entry.minimum = entry.minimum.min(duration);
        entry.maximum = entry.maximum.max(duration);
        entry.sum_of_squares += u128::from(duration) * u128::from(duration);
    }

    /// Writes profile and end; gives calls and bytes of the file.
    pub(super) fn close(mut self) -> io::Result<(u64, u64)> {
        self.clock_point(1);
        for (entry, signature) in self.statistics.iter_mut().zip(&self.signatures) {
            entry.bytes = entry.count * (signature.send.bytes + signature.receive.bytes);
        }
        self.statistics.retain(|entry| entry.count > 0);
        self.writer.profile(&self.statistics);
        if self.writer.lost() > 0 {
            return Err(io::Error::other("the disk is full"));
        }
        let end = End {
            calls: self.calls,
            recorded: self.calls,
            end_ticks: self.now,
            ..End::default()
        };
        self.writer.finish(end);
        Ok((self.calls, self.path.metadata()?.len()))
    }
}

/// The signature of a call without messages.
pub fn plain(operation: u16, call_path: u32) -> Signature {
    Signature {
        operation,
        call_path,
        send: NOBODY,
        receive: NOBODY,
        ..Signature::default()
    }
}

/// The signature of a send on the world.
pub fn send(operation: u16, call_path: u32, to: u32, tag: i32, bytes: u64) -> Signature {
    let send = Endpoint {
        peer: to as i32,
        tag,
        bytes,
    };
    Signature {
        flags: flags::SENDS,
        group: WORLD,
        send,
        ..plain(operation, call_path)
    }
}

/// The signature of a receive on the world.
pub fn receive(operation: u16, call_path: u32, from: u32, tag: i32, bytes: u64) -> Signature {
    let receive = Endpoint {
        peer: from as i32,
        tag,
        bytes,
    };
    Signature {
        flags: flags::RECEIVES,
        group: WORLD,
        receive,
        ..plain(operation, call_path)
    }
}

/// The same call as a non-blocking one.
pub fn posts(signature: Signature) -> Signature {
    Signature {
        flags: signature.flags | flags::POSTS,
        ..signature
    }
}

/// The signature of a collective on the world; `bytes` sent and received.
pub fn collective(operation: u16, call_path: u32, root: i32, bytes: (u64, u64)) -> Signature {
    let send = Endpoint {
        peer: root,
        tag: 0,
        bytes: bytes.0,
    };
    let receive = Endpoint {
        bytes: bytes.1,
        ..NOBODY
    };
    let flags = flags::COLLECTIVE;
    Signature {
        flags,
        group: WORLD,
        send,
        receive,
        ..plain(operation, call_path)
    }
}
