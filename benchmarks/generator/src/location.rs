//! One rank's file.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::rc::Rc;

use laggard_trace::{
    Clock, ClockPoint, Communicator, Definition, End, Endpoint, Extension, FileHeader, Frame,
    LocationWriter, NodePlace, PEER_NONE, ProfileEntry, Record, Signature, WORLD, file_name, flags,
    node_file_name,
};
use rustc_hash::FxHashMap;

use super::clock::{HostClock, START_UNIX_NS, TICKS_PER_S};
use super::site::{Site, SiteId};
use super::space::{Buffered, Shared, Sink};

/// No message.
pub const NOBODY: Endpoint = Endpoint {
    peer: PEER_NONE,
    tag: 0,
    bytes: 0,
};
/// About this many bytes for the windows of all files together, if there are not too many files.
const ALL_WINDOWS: usize = 256 << 20;
/// Largest window, bytes.
const LARGEST_WINDOW: usize = 1 << 20;
/// Most signatures of a location, the collector's bound. Later calls share fallback signatures.
const MAX_SIGNATURES: usize = 65_536;

/// What all files of a run have in common.
pub struct Run<'a> {
    /// Directory of the trace.
    pub directory: &'a Path,
    /// Name of the program.
    pub program: &'a str,
    /// Its ranks.
    pub ranks: u32,
    /// The run's identity.
    pub id: [u8; 16],
    /// The places that the program makes calls from.
    pub sites: &'a [Site],
    /// Whether ranks of a host share a file.
    pub file_per_node: bool,
}

/// A call to be written; times in ns.
pub struct Call<'a> {
    /// Its place.
    pub site: SiteId,
    /// Enter and leave, ns.
    pub times: (u64, u64),
    /// Flags of its signature.
    pub flags: u16,
    /// The communicator, 0 = none.
    pub group: u64,
    /// Message sent; of a collective, root and bytes.
    pub send: Endpoint,
    /// Message received.
    pub receive: Endpoint,
    /// The communicator that it made, 0 = none.
    pub object: u64,
    /// Requests that it completed: post number and, for a wildcard, the received signature.
    pub completes: &'a [(u64, Option<Signature>)],
}

/// One rank's file and profile.
pub struct Location {
    writer: LocationWriter<Buffered>,
    /// `CLOCK_MONOTONIC` of the host, for the blocks' headers.
    now: Rc<Cell<u64>>,
    clock: Rc<HostClock>,
    /// Whether it records the measurements of the host's clock during the run.
    leads_host: bool,
    signatures: FxHashMap<Signature, u32>,
    /// The latest signature of each place: the next call there most likely has the same.
    latest: Vec<(Signature, u32)>,
    /// Ids of signatures so far.
    ids: u32,
    lists: FxHashMap<Vec<(u32, u32)>, u32>,
    /// By place.
    profile: Vec<ProfileEntry>,
    calls: u64,
    posts: u64,
}

impl Location {
    /// Begins the file of `rank` with what the collector writes at the start.
    pub fn create(
        run: &Run,
        rank: u32,
        clock: Rc<HostClock>,
        host: u32,
        leads_host: bool,
    ) -> io::Result<Location> {
        let window = (ALL_WINDOWS / run.ranks as usize).min(LARGEST_WINDOW);
        let now = Rc::new(Cell::new(clock.monotonic_ns(0)));
        let header = FileHeader {
            run_id: run.id,
            rank,
            ranks: run.ranks,
            clock: Clock::TimeStampCounter as u32,
            ticks_per_s: TICKS_PER_S,
            host_id: u64::from(host) + 1,
            start_ticks: clock.ticks(0),
            start_unix_ns: START_UNIX_NS,
            pid: 1000 + rank,
            ..FileHeader::new()
        };
        let sink = match run.file_per_node {
            true => {
                let place = NodePlace::create(run.directory, &header, window)?;
                let path = run.directory.join(node_file_name(header.host_id));
                Sink::Shared(Box::new(Shared::new(place, path)))
            }
            false => Sink::Own(run.directory.join(file_name(rank, 0))),
        };
        let space = Buffered::new(sink, window / 4096 * 4096, now.clone());
        let mut location = Location {
            writer: LocationWriter::new(space, header, None)?,
            now,
            clock,
            leads_host,
            signatures: FxHashMap::default(),
            latest: vec![Default::default(); run.sites.len()],
            ids: 0,
            lists: FxHashMap::default(),
            profile: run.sites.iter().map(Location::entry).collect(),
            calls: 0,
            posts: 0,
        };
        location.define_run(run, rank, host);
        Ok(location)
    }

    fn entry(site: &Site) -> ProfileEntry {
        ProfileEntry {
            operation: site.operation,
            minimum: u64::MAX,
            ..ProfileEntry::default()
        }
    }

    /// Defines properties, places, the world and the clock. Ids of places and their texts are the
    /// same in all files.
    fn define_run(&mut self, run: &Run, rank: u32, host: u32) {
        let mut texts: Vec<String> = Vec::new();
        let mut definitions = Vec::new();
        let mut string = |text: String, definitions: &mut Vec<Definition>| {
            let at = texts.iter().position(|known| *known == text);
            let at = at.unwrap_or_else(|| {
                let (id, bytes) = (texts.len() as u32 + 1, text.as_bytes().to_vec());
                definitions.push(Definition::String { id, bytes });
                texts.push(text);
                texts.len() - 1
            });
            at as u32 + 1
        };
        for (key, value) in [
            ("program", run.program.to_owned()),
            ("host", host_name(host)),
            ("mpi_library", "none".to_owned()),
        ] {
            let key = string(key.to_owned(), &mut definitions);
            let value = string(value, &mut definitions);
            definitions.push(Definition::Property { key, value });
        }
        for (at, site) in run.sites.iter().enumerate() {
            let file = string(site.file.to_owned(), &mut definitions);
            let frames = site.frames.iter().map(|&(function, line)| Frame::Source {
                file,
                function: string(function.to_owned(), &mut definitions),
                line,
            });
            let frames = frames.collect();
            let id = call_path(at as SiteId);
            definitions.push(Definition::CallPath { id, frames });
        }
        let name = string("MPI_COMM_WORLD".to_owned(), &mut definitions);
        self.writer.define(&definitions);
        let members = if rank == 0 {
            (0..run.ranks).collect()
        } else {
            Vec::new()
        };
        self.communicator(Communicator {
            id: WORLD,
            size: run.ranks,
            local_rank: rank,
            name,
            members,
            ..Communicator::default()
        });
        self.clock_point(0, self.clock.first_measurement());
    }

    /// Defines a communicator.
    pub fn communicator(&mut self, communicator: Communicator) {
        self.writer
            .define(&[Definition::Communicator(communicator)]);
    }

    fn clock_point(&mut self, kind: u32, (local, reference_ns, error_ns): (u64, i64, u64)) {
        let reserved = 0;
        self.writer.clock(&[ClockPoint {
            local,
            reference_ns,
            error_ns,
            kind,
            reserved,
        }]);
    }

    /// Requests posted so far.
    pub fn posts(&self) -> u64 {
        self.posts
    }

    /// Calls so far.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Writes a call that has returned.
    pub fn call(&mut self, call: &Call) {
        let (enter, leave) = call.times;
        self.now.set(self.clock.monotonic_ns(enter));
        let completed = self.completed(call);
        let signature = Signature {
            operation: self.profile[call.site as usize].operation,
            flags: call.flags,
            call_path: call_path(call.site),
            completes: self.completion_list(&completed),
            group: call.group,
            send: call.send,
            receive: call.receive,
            object: call.object,
            ..Signature::default()
        };
        let (enter, leave) = (self.clock.ticks(enter), self.clock.ticks(leave));
        match self.latest[call.site as usize] {
            (latest, id) if latest == signature => self.writer.push(enter, leave, id),
            _ => self.push_other(&signature, &completed, call.site, (enter, leave)),
        }
        self.posts += u64::from(signature.has(flags::POSTS));
        self.calls += 1;
        let (entry, duration) = (&mut self.profile[call.site as usize], leave - enter);
        entry.count += 1;
        entry.total += duration;
        entry.minimum = entry.minimum.min(duration);
        entry.maximum = entry.maximum.max(duration);
        entry.sum_of_squares += u128::from(duration) * u128::from(duration);
        entry.bytes += call.send.bytes + call.receive.bytes;
    }

    /// Writes a call that differs from the one before at its place.
    fn push_other(
        &mut self,
        signature: &Signature,
        completed: &[(u32, u32)],
        site: SiteId,
        (enter, leave): (u64, u64),
    ) {
        match self.signature(signature) {
            Some(id) => {
                self.latest[site as usize] = (*signature, id);
                self.writer.push(enter, leave, id);
            }
            None => self.push_fallback(signature, completed, enter, leave),
        }
    }

    /// The id of a signature, `None` if there are too many.
    #[inline]
    fn signature(&mut self, signature: &Signature) -> Option<u32> {
        match self.signatures.get(signature) {
            Some(&id) => Some(id),
            None if self.signatures.len() >= MAX_SIGNATURES => None,
            None => Some(self.define_signature(signature)),
        }
    }

    #[cold]
    fn define_signature(&mut self, signature: &Signature) -> u32 {
        self.ids += 1;
        self.signatures.insert(*signature, self.ids);
        let id = self.ids;
        let definition = Signature { id, ..*signature };
        self.writer.define(&[Definition::Signature(definition)]);
        id
    }

    /// A call whose signature holds operation and place only; the record holds the rest.
    #[cold]
    fn push_fallback(
        &mut self,
        signature: &Signature,
        completed: &[(u32, u32)],
        enter: u64,
        leave: u64,
    ) {
        let fallback = Signature {
            completes: 0,
            send: NOBODY,
            receive: NOBODY,
            ..*signature
        };
        let known = self.signatures.get(&fallback).copied();
        let id = known.unwrap_or_else(|| self.define_signature(&fallback));
        let mut extensions = Vec::new();
        for (half, endpoint, bytes) in [
            (
                &signature.send,
                Extension::SendEndpoint,
                Extension::SendBytes,
            ),
            (
                &signature.receive,
                Extension::ReceiveEndpoint,
                Extension::ReceiveBytes,
            ),
        ] {
            if *half != NOBODY {
                extensions.push(Record::extension(
                    endpoint,
                    half.peer as u32,
                    half.tag as u32,
                ));
                extensions.push(Record::extension_u64(bytes, half.bytes));
            }
        }
        for &(delta, outcome) in completed {
            extensions.push(Record::extension(Extension::Completed, delta, outcome));
        }
        self.writer.push_extended(&extensions, enter, leave, id);
    }

    /// For each request that a call completed: how many posts ago it was posted, and the signature
    /// that holds the source of a wildcard's message. These signatures are not bounded, since a
    /// record has no other way to hold the source.
    fn completed(&mut self, call: &Call) -> Vec<(u32, u32)> {
        let entries = call.completes.iter().map(|(post, outcome)| {
            let outcome = outcome.as_ref().map_or(0, |outcome| {
                let known = self.signature(outcome);
                known.unwrap_or_else(|| self.define_signature(outcome))
            });
            ((self.posts - post) as u32, outcome)
        });
        entries.collect()
    }

    /// The id of a list; 0 = empty.
    fn completion_list(&mut self, entries: &[(u32, u32)]) -> u32 {
        if entries.is_empty() {
            return 0;
        }
        if let Some(&id) = self.lists.get(entries) {
            return id;
        }
        let (id, entries) = (self.lists.len() as u32 + 1, entries.to_vec());
        self.lists.insert(entries.clone(), id);
        self.writer
            .define(&[Definition::CompletionList { id, entries }]);
        id
    }

    /// Ends the file at `end`, ns, and returns its bytes.
    pub fn close(mut self, end: u64) -> io::Result<u64> {
        if self.leads_host {
            for measurement in self.clock.measurements(end) {
                self.clock_point(2, measurement);
            }
        }
        self.clock_point(1, self.clock.last_measurement(end));
        for (at, entry) in self.profile.iter_mut().enumerate() {
            entry.call_path = call_path(at as SiteId);
        }
        self.profile.retain(|entry| entry.count > 0);
        self.writer.profile(&self.profile);
        if self.writer.lost() > 0 {
            return Err(io::Error::other("the disk is full"));
        }
        let calls = self.calls;
        let end_ticks = self.clock.ticks(end);
        let (bytes, end) = (
            self.writer.bytes(),
            End {
                calls,
                recorded: calls,
                end_ticks,
                ..End::default()
            },
        );
        let written = self.writer.finish(end).written();
        if written < bytes {
            return Err(io::Error::other("the disk is full"));
        }
        Ok(written)
    }
}

/// The id of a place's call path.
pub fn call_path(site: SiteId) -> u32 {
    u32::from(site) + 1
}

/// Name of a host.
pub fn host_name(host: u32) -> String {
    format!("node{host:05}")
}

/// The run's identity from a random number.
pub fn run_id(identity: u64) -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&identity.to_le_bytes());
    id[8..].copy_from_slice(&(!identity).to_le_bytes());
    id
}
