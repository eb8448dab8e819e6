//! Decoded records of a location.

use std::ops::ControlFlow;

use laggard_trace::calls::{self, Call};
use laggard_trace::{
    Beside, Chunk, Counts, Decoder, Endpoint, Event, Location, MOMENT, PEER_NONE, PEER_ROOT,
    Signature, flags,
};

use super::Events;
use super::among::Among;
use super::parallel::{InRegion, Regions};
use crate::basics::ends::NONE;
use crate::basics::intern::path_key;
use crate::clock::ClockMap;
use crate::roots::activities::tells;
use crate::stream::looks::{Look, LookAt, Looks, LooksOf, looks};
use crate::stream::polling::Places;
use crate::stream::rows::TimeClass;

/// An item of a location.
#[derive(Clone, Copy, Debug)]
pub enum Item<'c> {
    /// A call: its number in the location, its record and its signature.
    Call(u64, &'c Event, &'c Signature),
    /// A record with an undefined call; its signature.
    Undefined(u32),
    /// A chunk with a wrong checksum; its records are skipped.
    Damaged(&'c Chunk),
}

/// Where reading of a location can begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Position of a chunk of records.
    pub chunk: u32,
    /// Number of its first call.
    pub number: u64,
}

/// Reads the records of one location in order, with pauses anywhere.
pub struct Calls<'l> {
    location: &'l Location,
    chunk: usize,
    /// Next record in the chunk, and the time base there.
    at: usize,
    base: u64,
    is_open: bool,
    number: u64,
}

impl<'l> Calls<'l> {
    /// Starts at the first record.
    pub fn new(location: &'l Location) -> Calls<'l> {
        Calls {
            location,
            chunk: 0,
            at: 0,
            base: 0,
            is_open: false,
            number: 0,
        }
    }

    /// Starts at the first record after a mark of this location.
    fn from(location: &'l Location, mark: Mark) -> Calls<'l> {
        Calls {
            chunk: mark.chunk as usize,
            number: mark.number,
            ..Calls::new(location)
        }
    }

    /// Reads on until `visit` breaks; `false` at the end.
    pub fn read(&mut self, mut visit: impl FnMut(Item) -> ControlFlow<()>) -> bool {
        while let Some(next) = self.read_chunk(&mut visit) {
            if next.is_break() {
                return true;
            }
        }
        false
    }

    /// Reads on until `visit` breaks, and no further than the end of a chunk; `None` at the end of the
    /// location.
    fn read_chunk(
        &mut self,
        mut visit: impl FnMut(Item) -> ControlFlow<()>,
    ) -> Option<ControlFlow<()>> {
        let location = self.location;
        let signatures = location.definitions.signatures();
        let chunk = location.chunks.get(self.chunk)?;
        if !self.is_open {
            (self.at, self.base, self.is_open) = (0, chunk.base, true);
            if !location.verify(chunk) {
                self.leave_chunk(chunk);
                return Some(visit(Item::Damaged(chunk)));
            }
        }
        let mut decoder = Decoder::new(&location.records(chunk)[self.at..], self.base);
        while let Some(event) = decoder.next() {
            let signature = signatures.get(event.signature as usize);
            let number = self.number;
            self.number += 1;
            let next = match signature.filter(|signature| signature.operation != 0) {
                Some(signature) => visit(Item::Call(number, event, signature)),
                None => visit(Item::Undefined(event.signature)),
            };
            if next.is_break() {
                let (read, base) = decoder.state();
                self.at += read;
                self.base = base;
                return Some(next);
            }
        }
        self.leave_chunk(chunk);
        Some(ControlFlow::Continue(()))
    }

    fn leave_chunk(&mut self, chunk: &Chunk) {
        self.location.release(chunk);
        self.chunk += 1;
        self.is_open = false;
    }
}

/// Outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Success.
    Done,
    /// Error return.
    Failed,
    /// A test or probe found nothing.
    FoundNothing,
}

/// What the time between two calls, or in one, may be beside work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outside {
    /// Off the processor by itself.
    Blocked,
    /// Off the processor since others had it.
    Preempted,
    /// In the kernel.
    Kernel,
}

/// All of them, as reports name them.
pub const OUTSIDE: [Outside; 3] = [Outside::Blocked, Outside::Preempted, Outside::Kernel];

impl Outside {
    /// As reports name it.
    pub fn name(self) -> &'static str {
        match self {
            Outside::Blocked => "blocked",
            Outside::Preempted => "preempted",
            Outside::Kernel => "kernel",
        }
    }

    fn of(self, beside: &Beside) -> u64 {
        match self {
            Outside::Blocked => beside.blocked,
            Outside::Preempted => beside.preempted,
            Outside::Kernel => beside.kernel,
        }
    }
}

/// One call. Times are ns since the start of the run.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'c> {
    /// Number of the call in its location, from 0, in order of return.
    pub number: u64,
    /// Name and kind; `None` if the trace comes from a newer version.
    pub call: Option<&'static Call>,
    /// What its time is.
    pub class: TimeClass,
    /// When it began.
    pub enter: i64,
    /// When it ended.
    pub leave: i64,
    /// Time inside: from enter to leave, for repeated calls without the program's time between
    /// them.
    pub inside: i64,
    /// Position of the communicator, window or file in [`Events::groups`]; may be `NONE`.
    pub group: u32,
    /// Number of the call path.
    pub call_path: u32,
    /// Number of calls of the program: usually 1; more for repeated tests that found nothing; 0 for
    /// a part of the following call and for a region.
    pub calls: u32,
    /// Whether it is a region of the program.
    pub is_region: bool,
    /// Its outcome.
    pub outcome: Outcome,
    /// If it looks whether something has come: what counts as looking.
    pub look: Option<Look>,
    /// The same as a sweep tells it: of looks that nobody cancels, from the first look in the place on that is read.
    pub look_at: Option<LookAt>,
    /// The parallel region of OpenMP around it, whose call path is numbered as this one's; `None` outside of regions.
    pub region: Option<InRegion>,
    /// Its record.
    event: &'c Event,
    /// What calls of its kind have in common.
    pub signature: &'c Signature,
    clock: &'c ClockMap,
    /// World rank of its location.
    rank: u32,
}

impl Operation<'_> {
    /// Its name.
    pub fn name(&self) -> &'static str {
        calls::name(self.signature.operation)
    }

    /// Data sent and its target; for a collective, the rank's contribution.
    #[inline]
    pub fn send(&self) -> Endpoint {
        self.end(self.event.send(self.signature))
    }

    /// Data received and its source; for a collective, the rank's result.
    #[inline]
    pub fn receive(&self) -> Endpoint {
        self.end(self.event.receive(self.signature))
    }

    #[inline]
    fn end(&self, end: Endpoint) -> Endpoint {
        match self.has(flags::COLLECTIVE) {
            true => Endpoint {
                peer: PEER_NONE,
                tag: 0,
                ..end
            },
            false => end,
        }
    }

    /// Root of a collective, world rank.
    pub fn root(&self) -> Option<u32> {
        if !self.has(flags::COLLECTIVE) {
            return None;
        }
        match self.event.send(self.signature).peer {
            PEER_ROOT => Some(self.rank),
            root => u32::try_from(root).ok(),
        }
    }

    /// Parts of the time since the call before, by [`OUTSIDE`], ns.
    #[inline]
    pub fn beside(&self) -> [i64; OUTSIDE.len()] {
        match self.event.beside.is_work() {
            true => [0; OUTSIDE.len()],
            false => OUTSIDE.map(|kind| self.length_ns(kind.of(&self.event.beside))),
        }
    }

    /// Parts of the call itself that were not its work, by [`OUTSIDE`], ns. What it waited is among them.
    #[inline]
    pub fn off(&self) -> [i64; OUTSIDE.len()] {
        match self.event.inside.is_work() {
            true => [0; OUTSIDE.len()],
            false => self.event.inside.of_call(|ticks| self.length_ns(ticks)),
        }
    }

    fn length_ns(&self, ticks: u64) -> i64 {
        self.clock.length_ns(ticks) as i64
    }

    /// The parts of [`off`](Self::off) that are causes of their own, ns: the rest is what such a call is for.
    #[inline]
    pub fn off_its_work(&self) -> [i64; OUTSIDE.len()] {
        let off = self.off();
        // Most records tell nothing of it.
        match off == [0; OUTSIDE.len()] {
            true => off,
            false => self.told(off),
        }
    }

    #[cold]
    fn told(&self, mut off: [i64; OUTSIDE.len()]) -> [i64; OUTSIDE.len()] {
        let told = tells((self.signature.operation, self.class), self.look.is_some());
        off.iter_mut()
            .zip(told)
            .for_each(|(time, told)| *time *= i64::from(told));
        off
    }

    /// Page faults in the time since the call before: without and with a device.
    pub fn faults(&self) -> [u32; 2] {
        self.event.beside.faults
    }

    /// Page faults in the call.
    pub fn faults_inside(&self) -> [u32; 2] {
        self.event.inside.faults
    }

    /// What it is for, if it is a wait among the threads of a rank.
    pub fn among(&self) -> Option<Among> {
        Among::of(self.signature, self.event)
    }

    /// Whether all bits of `flag` are set; see [`flags`].
    #[inline]
    pub fn has(&self, flag: u16) -> bool {
        self.signature.has(flag)
    }
}

impl Events {
    /// Samples of the time before an operation of a location: numbers of call paths, and ns. Those without
    /// a call path tell nothing.
    pub fn samples(
        &self,
        location: usize,
        operation: &Operation<'_>,
    ) -> impl Iterator<Item = (u32, i64)> {
        let known = operation.event.sampled.iter().filter(|(path, _)| *path > 0);
        known.map(move |&(path, ticks)| {
            let time = self.clocks[location].length_ns(ticks.into());
            (self.path_number(location, path), time as i64)
        })
    }

    /// When these samples were taken: numbers of call paths, and ns since the start of the run.
    pub fn moments(
        &self,
        location: usize,
        operation: &Operation<'_>,
    ) -> impl Iterator<Item = (u32, i64)> {
        let enter = operation.event.enter;
        operation.event.moments.iter().map(move |&(path, before)| {
            let time = enter.saturating_sub(u64::from(before) * MOMENT);
            (
                self.path_number(location, path),
                self.clocks[location].ns(time),
            )
        })
    }

    /// What was counted in the time before an operation of a location, and ns in which it was; `None` if
    /// nothing is known.
    pub fn counted<'c>(
        &self,
        location: usize,
        operation: &Operation<'c>,
    ) -> Option<(&'c Counts, i64)> {
        let counted = &operation.event.beside.counted;
        let time = self.clocks[location].length_ns(counted.time) as i64;
        (!counted.is_empty()).then_some((counted, time))
    }

    /// Whether samples were taken of a location, at least at times.
    pub fn is_sampled(&self, location: usize) -> bool {
        let definitions = &self.opened.locations[location].definitions;
        definitions.sample_period().is_some()
    }

    /// Names of the counters of a location, in the order of their numbers.
    pub fn counters(&self, location: usize) -> Vec<String> {
        self.opened.locations[location]
            .definitions
            .properties("counter")
    }
}

/// The calls of a location.
pub struct Operations<'e> {
    events: &'e Events,
    location: usize,
    rank: u32,
    calls: Calls<'e>,
    by_signature: Vec<OfSignature>,
    looks: Looks,
    places: Places,
    /// Number of the row of looks, and whether a look at each place was in vain since one found something.
    row: u64,
    vain: Vec<bool>,
    /// Place of the last look.
    place: u32,
    regions: Regions,
    /// Records skipped so far because they are undefined or damaged.
    pub skipped: u64,
}

/// What calls of a signature have in common.
struct OfSignature {
    call: Option<&'static Call>,
    class: TimeClass,
    /// Position in [`Events::groups`].
    group: u32,
    call_path: u32,
    /// Whether they are regions of the program.
    is_region: bool,
    outcome: Outcome,
    /// What they look for.
    looking: Option<LooksOf>,
}

impl<'e> Operations<'e> {
    /// `within` are signatures that began the regions around the mark, `shortest` is the shortest look before it.
    pub(crate) fn from(
        events: &'e Events,
        location: usize,
        mark: Mark,
        (within, shortest): (&[u32], Option<i64>),
    ) -> Operations<'e> {
        let found = &events.opened.locations[location];
        let signatures = found.definitions.signatures();
        let of_signature = |signature: &Signature| OfSignature {
            call: calls::call(signature.operation),
            is_region: calls::call(signature.operation).is_some_and(Call::is_user),
            outcome: match signature.flags {
                f if f & flags::FAILED != 0 => Outcome::Failed,
                f if f & flags::UNSUCCESSFUL != 0 => Outcome::FoundNothing,
                _ => Outcome::Done,
            },
            class: TimeClass::of_call(signature.operation, signature.flags),
            group: events.group_number(signature.group),
            call_path: events.path_number(location, signature.call_path),
            looking: looks(signature),
        };
        let by_signature: Vec<OfSignature> = signatures.iter().map(of_signature).collect();
        let mut places = Places::default();
        let is_vain = |id: usize| {
            let looking = by_signature[id].looking.filter(|of| of.looks);
            looking.map(|of| of.is_vain)
        };
        let path = |id: usize| path_key(&found.definitions, signatures[id].call_path);
        let vain = places.know(signatures, is_vain, path);
        Operations {
            events,
            location,
            rank: found.header.rank,
            calls: Calls::from(found, mark),
            by_signature,
            looks: Looks::after(shortest),
            places,
            row: 0,
            vain: vec![false; vain.len()],
            place: NONE,
            regions: Regions::begun(
                within
                    .iter()
                    .filter_map(|&begun| signatures.get(begun as usize)),
            ),
            skipped: 0,
        }
    }

    /// Where the next chunk begins, between two chunks.
    pub fn mark(&self) -> Mark {
        Mark {
            chunk: self.calls.chunk as u32,
            number: self.calls.number,
        }
    }

    /// Reads on until `visit` breaks; `false` at the end.
    pub fn read(&mut self, mut visit: impl FnMut(&Operation) -> ControlFlow<()>) -> bool {
        while let Some(next) = self.read_chunk(&mut visit) {
            if next.is_break() {
                return true;
            }
        }
        false
    }

    /// Reads on until `visit` breaks, and no further than the end of a chunk; `None` at the end of the
    /// location.
    pub fn read_chunk(
        &mut self,
        mut visit: impl FnMut(&Operation) -> ControlFlow<()>,
    ) -> Option<ControlFlow<()>> {
        let (events, location, regions) = (self.events, self.location, &mut self.regions);
        let (clock, rank) = (&events.clocks[location], self.rank);
        let (by_signature, looks) = (&self.by_signature, &mut self.looks);
        let (places, current, vain) = (&self.places, &mut self.row, &mut self.vain);
        let last_place = &mut self.place;
        let found = &events.opened.locations[location];
        let definitions = &found.definitions;
        let chunk = found.chunks.get(self.calls.chunk);
        let time = clock.after(chunk.map_or(0, |chunk| chunk.base));
        let skipped = &mut self.skipped;
        self.calls.read_chunk(|item| {
            let (number, event, signature) = match item {
                Item::Call(number, event, signature) => (number, event, signature),
                Item::Undefined(_) => {
                    *skipped += 1;
                    return ControlFlow::Continue(());
                }
                Item::Damaged(chunk) => {
                    *skipped += u64::from(chunk.count);
                    return ControlFlow::Continue(());
                }
            };
            let of = &by_signature[event.signature as usize];
            let is_region = of.is_region;
            // The end record of a region with recorded calls tells the region's length.
            let lasted = event.value.filter(|_| is_region).unwrap_or(0);
            let enter = time(event.enter.saturating_sub(lasted));
            let leave = time(event.leave).max(enter);
            let length_ns = |ticks| clock.length_ns(ticks) as i64;
            let region = regions.around(signature, event).map(|region| InRegion {
                call_path: events.path_number(location, region.call_path),
                ..region
            });
            let look = looks.look(of.looking, (enter, leave), Some(event), length_ns);
            let look_at = look.filter(|_| !places.is_empty()).map(|look| {
                *current += u64::from(!look.follows);
                let path = || path_key(definitions, signature.call_path);
                // What does nothing belongs to the look before.
                if look.calls > 0 {
                    *last_place = places.of((event.signature, signature), path, Some(event));
                }
                let place = *last_place;
                let known = vain.get_mut(place as usize);
                let was = known.map(|vain| std::mem::replace(vain, look.is_vain));
                LookAt {
                    place,
                    row: *current,
                    ends: !look.is_vain && was == Some(true),
                }
            });
            visit(&Operation {
                number,
                call: of.call,
                class: of.class,
                enter,
                leave,
                inside: match event.repeated {
                    Some((_, ticks)) => clock.length_ns(u64::from(ticks)) as i64,
                    None => leave - enter,
                },
                group: of.group,
                call_path: of.call_path,
                calls: match is_region {
                    true => 0,
                    false => calls_of(event, signature),
                },
                is_region,
                outcome: of.outcome,
                look,
                look_at,
                region,
                event,
                signature,
                clock,
                rank,
            })
        })
    }
}

fn calls_of(event: &Event, signature: &Signature) -> u32 {
    match event.repeated {
        Some((calls, _)) => calls,
        None => u32::from(!signature.has(flags::PART)),
    }
}
