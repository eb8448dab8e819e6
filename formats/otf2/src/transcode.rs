//! One location of an archive, in one pass, as one location of a trace.

use std::path::PathBuf;

use laggard_trace::{
    Definition, End, Endpoint, FileHeader, Location, LocationWriter, Signature, flags,
};
use rustc_hash::FxHashMap;

use crate::Error;
use crate::archive::{Archive, Events};
use crate::calls::{Calls, Missing};
use crate::clock::Timer;
use crate::definitions::UNDEFINED;
use crate::events::Event;
use crate::file::Unnamed;
use crate::notes::{Kind, Notes};
use crate::output::Output;
use crate::world::{Memberships, Thread, World};

/// Numbers of clocks begin here, those of this project's own recorder end before.
const FIRST_CLOCK: u32 = 16;

/// One direction of messages with one tag: communicator, sender, receiver, tag.
pub type Channel = (u64, u32, u32, i32);

/// A location, ready to be analysed.
pub struct Transcoded {
    /// The location.
    pub location: Location,
    /// What is odd about it.
    pub notes: Notes,
    /// What may be missing of its messages.
    pub missing: Missing,
    /// Records by signature.
    counts: Vec<u64>,
}

/// An archive and what its locations share: makes locations.
pub struct Transcoder {
    archive: Archive,
    /// Ranks, threads and communicators.
    pub world: World,
    timer: Timer,
}

impl Transcoder {
    /// Makes sense of an archive's definitions.
    pub fn new(archive: Archive) -> Result<Transcoder, Error> {
        let mut world = World::new(&archive.definitions).map_err(|why| Error::Definitions {
            path: archive.path().to_owned(),
            why,
        })?;
        let timer = Timer::new(archive.definitions.clock.as_ref());
        if timer.is_none() {
            world.notes.add(Kind::GuessedClock, 1, String::new);
        }
        Ok(Transcoder {
            timer: timer.unwrap_or_else(Timer::guessed),
            world,
            archive,
        })
    }

    /// One location. `None`: a thread that makes no calls.
    pub fn location(
        &self,
        thread: Thread,
        memberships: &Memberships,
    ) -> Result<Option<Transcoded>, Error> {
        let mut events = self.archive.location(thread.location)?;
        let clock = self.clock_of(thread, events.offsets.as_deref())?;
        let mut calls = None;
        let mut notes = Notes::default();
        let about = || format!("location {}", thread.location);
        let mut last = 0;
        loop {
            let batch = events.next();
            if batch.is_empty() {
                break;
            }
            for (time, event) in batch {
                let time = self.timer.ticks(*time);
                notes.add(Kind::Backward, u64::from(time < last), about);
                last = last.max(time);
                let calls = match &mut calls {
                    Some(calls) => calls,
                    none => none.insert(self.begin(thread, clock, (time, event), memberships)?),
                };
                calls.event(last, event);
            }
        }
        if let Some(why) = &events.broken {
            notes.add(Kind::Broken, 1, || {
                format!("location {}: {why}", thread.location)
            });
        }
        notes.add(Kind::Skipped, events.skipped, about);
        notes.add(
            Kind::NoDefinitions,
            u64::from(events.offsets.is_none()),
            about,
        );
        let mut calls = match calls {
            Some(calls) => calls,
            None => {
                let nothing = Event::Leave(UNDEFINED);
                self.begin(thread, clock, (0, &nothing), memberships)?
            }
        };
        calls.finish();
        if thread.thread > 0 && calls.output.calls == 0 {
            return Ok(None);
        }
        for (kind, count, first) in notes.iter() {
            calls.notes.add(kind, count, || first.to_owned());
        }
        self.end(thread, calls, &events, last).map(Some)
    }

    /// The number of a location's clock. Threads of a rank share one, if the archive corrects
    /// it for all of them in the same way. Ranks do not: not all recorders compare clocks, and
    /// some count time in each process from its own start.
    fn clock_of(&self, thread: Thread, offsets: Option<&[(u64, i64)]>) -> Result<u32, Error> {
        let (rank, threads) = (thread.rank, &self.world.threads);
        let at = threads.partition_point(|other| other.rank < rank);
        if threads[at] == thread || offsets.is_none() {
            return Ok(FIRST_CLOCK + rank);
        }
        let first = self.archive.location(threads[at].location)?;
        if first.offsets.as_deref() == offsets {
            return Ok(FIRST_CLOCK + rank);
        }
        let own = threads.iter().position(|other| *other == thread);
        Ok(FIRST_CLOCK + self.world.ranks + own.unwrap_or(0) as u32)
    }

    /// Begins a location's file, with its first event.
    fn begin<'a>(
        &'a self,
        thread: Thread,
        clock: u32,
        (time, event): (u64, &Event),
        memberships: &Memberships,
    ) -> Result<Calls<'a>, Error> {
        let mut header = FileHeader::new();
        header.run_id[..8].copy_from_slice(&self.archive.id.to_le_bytes());
        header.rank = thread.rank;
        header.thread = thread.thread;
        header.ranks = self.world.ranks;
        header.clock = clock;
        header.ticks_per_s = self.timer.ticks_per_s;
        header.host_id = u64::from(thread.node);
        header.start_ticks = time;
        header.start_unix_ns = self.timer.unix_ns(time);
        let space = Unnamed::new().map_err(|source| self.no_copy(source))?;
        let writer = LocationWriter::new(space, header, None);
        let writer = writer.map_err(|source| self.no_copy(source))?;
        let definitions = &self.archive.definitions;
        let mut output = Output::new(writer, definitions);
        if thread.thread == 0 {
            self.describe(&mut output, thread, event);
        }
        let own = memberships.get(&thread.rank).map_or(&[][..], Vec::as_slice);
        for &(comm, local_rank) in own {
            let known = self.world.communicator(comm, thread.rank, local_rank);
            if let Some(mut communicator) = known {
                communicator.name = output.string(communicator.name);
                let writer = output.writer();
                writer.define(&[Definition::Communicator(communicator)]);
            }
        }
        Ok(Calls::new(&self.world, definitions, thread, output))
    }

    /// Tells of the run what the archive knows.
    fn describe(&self, output: &mut Output, thread: Thread, first: &Event) {
        let definitions = &self.archive.definitions;
        let (name, arguments) = match first {
            Event::Program(name, arguments) => (definitions.string(*name), &arguments[..]),
            _ => (&[][..], &[][..]),
        };
        match name {
            [] => {
                let path = self.archive.path().display().to_string();
                output.property("program", path.as_bytes());
            }
            name => output.property("program", name),
        }
        for argument in arguments {
            output.property("argument", definitions.string(*argument));
        }
        if let Some(&(host, ..)) = definitions.nodes.get(&thread.node) {
            output.property("host", definitions.string(host));
        }
    }

    fn no_copy(&self, source: std::io::Error) -> Error {
        Error::Copy {
            path: self.archive.path().to_owned(),
            directory: std::env::temp_dir(),
            source,
        }
    }

    /// Ends a location's file and opens it.
    fn end(
        &self,
        thread: Thread,
        calls: Calls,
        events: &Events,
        last: u64,
    ) -> Result<Transcoded, Error> {
        let (notes, missing) = (calls.notes, calls.missing);
        let counts = calls.output.counts.clone();
        let (done, end) = (calls.output.calls, calls.output.last.max(last));
        let mut writer = calls.output.into_writer();
        let offsets = events.offsets.as_deref().unwrap_or(&[]);
        writer.clock(&self.timer.points(offsets));
        let space = match events.broken {
            Some(_) => writer.leave_open(),
            None => writer.finish(End {
                calls: done,
                recorded: done,
                end_ticks: end,
                ..End::default()
            }),
        };
        let file = space.into_file().map_err(|source| self.no_copy(source))?;
        let path = self.archive.path().display();
        let name = PathBuf::from(format!("{path}, location {}", thread.location));
        Ok(Transcoded {
            location: Location::from_file(&name, file)?,
            notes,
            missing,
            counts,
        })
    }
}

impl Transcoded {
    /// Messages by channel: sent, and received.
    pub fn channels(&self) -> FxHashMap<Channel, (u64, u64)> {
        let mut channels: FxHashMap<Channel, (u64, u64)> = FxHashMap::default();
        let signatures = self.location.definitions.signatures().iter();
        for (signature, count) in signatures.zip(&self.counts) {
            let (sent, received) = self.ends(signature);
            if let Some(channel) = sent {
                channels.entry(channel).or_default().0 += count;
            }
            if let Some(channel) = received {
                channels.entry(channel).or_default().1 += count;
            }
        }
        channels
    }

    /// The channels on which a call sends and receives.
    fn ends(&self, signature: &Signature) -> (Option<Channel>, Option<Channel>) {
        let own = self.location.header.rank;
        let peer = |half: Endpoint| u32::try_from(half.peer).ok();
        let (send, receive) = (signature.send, signature.receive);
        let sent = peer(send).filter(|_| signature.has(flags::SENDS));
        let received = peer(receive).filter(|_| signature.has(flags::RECEIVES));
        (
            sent.map(|peer| (signature.group, own, peer, send.tag)),
            received.map(|peer| (signature.group, peer, own, receive.tag)),
        )
    }

    /// Forgets which messages were on these channels; how many.
    pub fn forget(&mut self, is_uncertain: impl Fn(&Channel) -> bool) -> u64 {
        let signatures = self.location.definitions.signatures().to_vec();
        let mut forgotten = 0;
        for (id, signature) in signatures.iter().enumerate() {
            let (sent, received) = self.ends(signature);
            let mut cleared = 0;
            if sent.is_some_and(|channel| is_uncertain(&channel)) {
                cleared |= flags::SENDS;
            }
            if received.is_some_and(|channel| is_uncertain(&channel)) {
                cleared |= flags::RECEIVES;
            }
            if cleared != 0 {
                forgotten += self.counts.get(id).copied().unwrap_or(0);
                let definitions = &mut self.location.definitions;
                definitions.clear_flags(id as u32, cleared);
            }
        }
        forgotten
    }
}
