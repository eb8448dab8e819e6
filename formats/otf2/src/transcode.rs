//! Converts one location of an archive to one location of a trace, in one pass.

use std::path::PathBuf;

use laggard_trace::calls::{self, Shape};
use laggard_trace::{
    Definition, End, Endpoint, FileHeader, Location, LocationWriter, Signature, TAG_ANY, WORLD,
    flags,
};
use rustc_hash::FxHashMap;

use crate::Error;
use crate::calls::{Calls, Missing};
use crate::clock::Timer;
use crate::computed::Computed;
use crate::definitions::UNDEFINED;
use crate::events::Event;
use crate::file::Unnamed;
use crate::notes::{Kind, Notes};
use crate::output::Output;
use crate::source::{Progress, Source};
use crate::world::{Memberships, Thread, World};

/// First clock number; the collector's clocks have lower ones.
const FIRST_CLOCK: u32 = 16;

/// Most region entries of a block.
const REGIONS: usize = 128;

/// A message channel: communicator, sender, receiver, tag.
pub type Channel = (u64, u32, u32, i32);

/// A location, ready to be analysed.
pub struct Transcoded {
    /// The location.
    pub location: Location,
    /// Anomalies of the location.
    pub notes: Notes,
    /// Messages that may be missing.
    pub missing: Missing,
    /// Number of records by signature.
    counts: Vec<u64>,
}

/// Converts the locations of an archive; holds the data that they share.
pub struct Transcoder {
    source: Box<dyn Source>,
    /// Ranks, threads and communicators.
    pub world: World,
    /// Whether records tell the functions of the program that were computed in.
    pub tells_functions: bool,
    timer: Timer,
}

impl Transcoder {
    /// Interprets an archive's definitions.
    pub fn new(source: impl Source + 'static) -> Result<Transcoder, Error> {
        let mut world = World::new(source.definitions()).map_err(|why| Error::Definitions {
            path: source.path().to_owned(),
            why,
        })?;
        let strays = source.strays();
        let first = || format!("location {}", strays[0]);
        world.notes.add(Kind::Stray, strays.len() as u64, first);
        let others = source.definitions().counting.others;
        world.notes.add(Kind::OtherMetrics, others, String::new);
        let timer = Timer::new(source.definitions().clock.as_ref());
        if timer.is_none() {
            world.notes.add(Kind::GuessedClock, 1, String::new);
        }
        Ok(Transcoder {
            timer: timer.unwrap_or_else(Timer::guessed),
            world,
            tells_functions: false,
            source: Box::new(source),
        })
    }

    /// Converts one location. `None` for a thread that makes no calls.
    pub fn location(
        &self,
        thread: Thread,
        memberships: &Memberships,
    ) -> Result<Option<Transcoded>, Error> {
        let mut events = self.source.location(thread.location)?;
        let clock = self.clock_of(thread, events.progress().offsets.as_deref());
        let span = self.timer.span(events.progress().offsets.as_deref());
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
                    none => {
                        let begun = self.begin(thread, clock, (time, event), memberships)?;
                        let calls = none.insert(begun);
                        calls.span = span;
                        calls
                    }
                };
                calls.event(last, event);
            }
        }
        let progress = events.progress();
        if let Some(why) = &progress.broken {
            notes.add(Kind::Broken, 1, || {
                format!("location {}: {why}", thread.location)
            });
        }
        notes.add(Kind::Skipped, progress.skipped, about);
        notes.add(
            Kind::NoDefinitions,
            u64::from(progress.offsets.is_none()),
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
        self.end(thread, calls, progress, last).map(Some)
    }

    /// The number of a location's clock. Threads of a rank share one, if the archive corrects
    /// all of them alike. Ranks do not: some recorders do not compare clocks, and some count
    /// time in each process from its own start.
    fn clock_of(&self, thread: Thread, offsets: Option<&[(u64, i64)]>) -> u32 {
        let (rank, threads) = (thread.rank, &self.world.threads);
        let at = threads.partition_point(|other| other.rank < rank);
        let first = threads[at];
        let is_shared = first == thread
            || offsets.is_none()
            || self.source.offsets(first.location).as_deref() == offsets;
        if is_shared {
            return FIRST_CLOCK + rank;
        }
        let own = threads.iter().position(|other| *other == thread);
        FIRST_CLOCK + self.world.ranks + own.unwrap_or(0) as u32
    }

    /// Begins a location's file at its first event.
    fn begin<'a>(
        &'a self,
        thread: Thread,
        clock: u32,
        (time, event): (u64, &Event),
        memberships: &Memberships,
    ) -> Result<Calls<'a>, Error> {
        let mut header = FileHeader::new();
        header.run_id[..8].copy_from_slice(&self.source.id().to_le_bytes());
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
        let definitions = self.source.definitions();
        let mut output = Output::new(writer, definitions);
        if thread.thread == 0 {
            self.describe(&mut output, thread, event);
        }
        if let Some(period) = definitions.generators.values().min() {
            let ticks = u128::from(*period) * u128::from(self.timer.ticks_per_s) / 1_000_000_000;
            output.sample_ticks = ticks as u64;
            let hz = 1_000_000_000 / period.max(&1);
            output.property("sample_hz", hz.to_string().as_bytes());
        }
        for &name in &definitions.metrics {
            output.property("counter", definitions.string(name));
        }
        let own = memberships.get(&thread.rank).map_or(&[][..], Vec::as_slice);
        for &(comm, local_rank) in own {
            let known = self.world.communicator(comm, thread.rank, local_rank);
            if let Some(mut communicator) = known {
                communicator.name = output.string(communicator.name);
                let writer = output.writer();
                writer.define(&[Definition::Communicator(communicator)]);
                let grid = self.world.grid(comm, thread.rank, local_rank);
                writer.define(&grid.map(Definition::Grid).into_iter().collect::<Vec<_>>());
            }
        }
        let mut calls = Calls::new(&self.world, definitions, thread, output);
        calls.computed = self.tells_functions.then(Computed::default);
        Ok(calls)
    }

    /// Writes the archive's facts about the run.
    fn describe(&self, output: &mut Output, thread: Thread, first: &Event) {
        let definitions = self.source.definitions();
        let (name, arguments) = match first {
            Event::Program(name, arguments) => (definitions.string(*name), &arguments[..]),
            _ => (&[][..], &[][..]),
        };
        match name {
            [] => {
                let path = self.source.path().display().to_string();
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
            path: self.source.path().to_owned(),
            directory: std::env::temp_dir(),
            source,
        }
    }

    /// Ends a location's file and opens it.
    fn end(
        &self,
        thread: Thread,
        mut calls: Calls,
        progress: &Progress,
        last: u64,
    ) -> Result<Transcoded, Error> {
        let regions = calls.regions();
        let (notes, missing) = (calls.notes, calls.missing);
        let (counts, profile) = (calls.output.counts(), calls.output.profile());
        let (done, end) = (calls.output.calls, calls.output.last.max(last));
        let mut writer = calls.output.into_writer();
        let offsets = progress.offsets.as_deref().unwrap_or(&[]);
        writer.clock(&self.timer.points(offsets));
        let space = match progress.broken {
            Some(_) => writer.leave_open(),
            None => {
                writer.profile(&profile);
                for regions in regions.chunks(REGIONS) {
                    writer.regions(regions);
                }
                writer.finish(End {
                    calls: done,
                    recorded: done,
                    end_ticks: end,
                    ..End::default()
                })
            }
        };
        let file = space.into_file().map_err(|source| self.no_copy(source))?;
        let path = self.source.path().display();
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
    /// Number of messages sent and received, by channel.
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

    /// The signatures of MPI_Init and its variants, a collective on the world.
    fn beginnings(&self) -> impl Iterator<Item = u32> + '_ {
        let signatures = self.location.definitions.signatures().iter();
        let begins = |signature: &&Signature| {
            let call = calls::call(signature.operation);
            let begins = call.is_some_and(|call| call.shape == Shape::Init);
            begins && signature.has(flags::COLLECTIVE) && signature.group == WORLD
        };
        signatures.filter(begins).map(|signature| signature.id)
    }

    /// Number of times that MPI is initialised here.
    pub fn begins(&self) -> u64 {
        let counts = self
            .beginnings()
            .map(|id| self.counts.get(id as usize).copied().unwrap_or(0));
        counts.sum()
    }

    /// Turns the initialisation of MPI into a call without matching. If some ranks have none,
    /// it would match another collective.
    pub fn begin_alone(&mut self) {
        let beginnings: Vec<u32> = self.beginnings().collect();
        for id in beginnings {
            let definitions = &mut self.location.definitions;
            definitions.clear_flags(id, flags::COLLECTIVE);
        }
    }

    /// The channels on which a call sends and receives.
    fn ends(&self, signature: &Signature) -> (Option<Channel>, Option<Channel>) {
        let own = self.location.header.rank;
        let peer = |half: Endpoint| u32::try_from(half.peer).ok();
        let (send, receive) = (signature.send, signature.receive);
        let sent = peer(send).filter(|_| signature.has(flags::SENDS));
        // Another call receives the message that a probe saw. A receive with a wildcard tag has
        // its message in the outcome.
        let is_message = signature.has(flags::RECEIVES) && !signature.has(flags::PEEKS);
        let is_received = is_message && receive.tag != TAG_ANY;
        let received = peer(receive).filter(|_| is_received);
        (
            sent.map(|peer| (signature.group, own, peer, send.tag)),
            received.map(|peer| (signature.group, peer, own, receive.tag)),
        )
    }

    /// Forgets the messages on these channels; returns their number.
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
