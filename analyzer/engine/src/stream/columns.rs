//! The calls of one location in a slab of global time, decoded.

use laggard_trace::{Beside, Chunk, Decoder, Event, Location, Record};
use rayon::prelude::*;

use crate::basics::ends::End;
use crate::basics::room::make_room;
use crate::clock::{ClockMap, NearMap};

/// Calls of a late party that are searched; sums replace earlier calls. The number is fixed: the
/// report must not depend on where slabs end.
pub const LOOK_BACK: usize = 256;
/// Least number of calls kept from earlier slabs. A party that was late in an earlier slab is
/// searched within [`LOOK_BACK`] calls, its earlier activity within as many again, and sums begin a
/// little before that.
const KEPT: usize = 3 * LOOK_BACK;

/// Time off the processor, ns: by itself, and since another one had it.
pub type OffTimes = [i64; 2];

/// How long a thread was off the processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Off {
    /// Before a call.
    pub before: OffTimes,
    /// In it.
    pub inside: OffTimes,
    /// Asleep after a look that found nothing, until the next call, ns.
    pub after: i64,
}

/// A call of a location.
#[derive(Clone, Copy, Debug)]
pub struct Instance {
    /// Number in the location's whole trace.
    pub number: u64,
    /// Enter, ns.
    pub enter: i64,
    /// Leave, ns.
    pub leave: i64,
    pub signature: u32,
}

/// Calls of a location, column by column. Times are ns of the global clock.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// Enter times.
    pub enter: Vec<i64>,
    /// Leave times.
    pub leave: Vec<i64>,
    /// Signature ids.
    pub signature: Vec<u32>,
    /// Calls with extension records, by position.
    pub extended: Vec<(usize, Event)>,
    /// Calls with time off the processor, by position. Those of look-back are among these.
    pub off: Vec<(usize, Off)>,
    /// Chunks that were begun in this slab: the number of the first call in each, and its position
    /// in the file.
    pub chunks: Vec<(u64, u32)>,
    /// Position of the first call of this slab; those before it are kept for look-back.
    pub first: usize,
    /// Number, in the location's whole trace, of the call at position 0.
    pub number: u64,
    /// Whether no calls are kept for look-back.
    pub(crate) forgets: bool,
}

impl Columns {
    /// Columns that have the calls of one slab, and none from before.
    pub fn without_look_back() -> Columns {
        Columns {
            forgets: true,
            ..Columns::default()
        }
    }

    /// Drops the last slab's calls except the look-back.
    pub(crate) fn turn(&mut self) {
        if self.forgets {
            self.number += self.enter.len() as u64;
            self.enter.clear();
            self.leave.clear();
            self.signature.clear();
            self.off.clear();
        }
        // Several small slabs are moved at once.
        if self.enter.len() > 2 * KEPT {
            let drop = self.enter.len() - KEPT;
            self.enter.drain(..drop);
            self.leave.drain(..drop);
            self.signature.drain(..drop);
            self.number += drop as u64;
            self.off.retain_mut(|(at, _)| {
                let is_kept = *at >= drop;
                *at = at.wrapping_sub(drop);
                is_kept
            });
        }
        self.extended.clear();
        self.first = self.enter.len();
        // The first call of a chunk may be in the next slab.
        let next = self.number + self.first as u64;
        self.chunks.retain(|(number, _)| *number >= next);
    }

    /// Notes that a chunk begins with the next call.
    fn begin_chunk(&mut self, chunk: usize) {
        let next = self.number + self.enter.len() as u64;
        self.chunks.push((next, chunk as u32));
    }

    #[inline]
    pub(crate) fn push(&mut self, enter: i64, leave: i64, signature: u32) {
        self.enter.push(enter);
        self.leave.push(leave.max(enter));
        self.signature.push(signature);
    }

    /// Takes the calls entered before `until` and returns their number. `ns` maps ticks since the
    /// records' base.
    fn take(&mut self, records: &[Record], until: i64, ns: impl Fn(u64) -> i64) -> usize {
        let is_before = |record: &Record| ns(u64::from(record.enter)) < until;
        // Most slabs end elsewhere: no search needed.
        let count = match records.last() {
            Some(last) if !is_before(last) => records.partition_point(is_before),
            _ => records.len(),
        };
        let records = &records[..count];
        make_room(&mut self.enter, count, 0);
        make_room(&mut self.leave, count, 0);
        make_room(&mut self.signature, count, 0);
        self.enter
            .extend(records.iter().map(|r| ns(u64::from(r.enter))));
        self.leave.extend(records.iter().map(|record| {
            let leave = u64::from(record.enter) + u64::from(record.duration);
            ns(leave)
        }));
        self.signature.extend(records.iter().map(|r| r.signature));
        count
    }

    fn append(&mut self, part: &Columns) {
        let before = self.enter.len();
        self.enter.extend_from_slice(&part.enter);
        self.leave.extend_from_slice(&part.leave);
        self.signature.extend_from_slice(&part.signature);
        let extended = part.extended.iter();
        self.extended
            .extend(extended.map(|(at, event)| (before + at, event.clone())));
        let off = part.off.iter();
        self.off
            .extend(off.map(|(at, times)| (before + at, *times)));
    }

    /// The calls of this slab.
    #[inline(always)]
    pub fn slab(&self) -> impl Iterator<Item = Instance> {
        let times = self.enter[self.first..].iter();
        let times = times.zip(&self.leave[self.first..]);
        let calls = times.zip(&self.signature[self.first..]);
        let calls = (self.number + self.first as u64..).zip(calls);
        calls.map(|(number, ((enter, leave), signature))| Instance {
            number,
            enter: *enter,
            leave: *leave,
            signature: *signature,
        })
    }

    /// Begin of the call at a position of this `thread`, and its leave.
    #[inline]
    pub fn begin(&self, thread: usize, at: usize) -> (End, i64) {
        let end = End {
            time: self.enter[at],
            event: self.number + at as u64,
            signature: self.signature[at],
            thread: thread as u32,
        };
        (end, self.leave[at])
    }

    /// The call at a position, if it has extension records.
    pub fn event(&self, at: usize) -> Option<&Event> {
        let found = self.extended.binary_search_by_key(&at, |(at, _)| *at);
        Some(&self.extended[found.ok()?].1)
    }

    /// Position of the call with this number, if it is still in memory.
    #[inline]
    pub fn position(&self, number: u64) -> Option<usize> {
        let at = usize::try_from(number.checked_sub(self.number)?).ok()?;
        (at < self.enter.len()).then_some(at)
    }
}

/// Most chunks that are decoded at the same time.
const MOST_CHUNKS: usize = 32;
/// Records that are converted at once.
const BATCH: usize = 512;

/// Reads one location slab by slab.
#[derive(Clone)]
pub struct Stream<'a> {
    location: &'a Location,
    clock: ClockMap,
    chunk: usize,
    /// Next record in the chunk, and the time base there.
    at: usize,
    base: u64,
    opened: bool,
    /// Chunks skipped because of a wrong checksum.
    pub damaged_chunks: u64,
}

impl<'a> Stream<'a> {
    /// Starts at the location's first record.
    pub fn new(location: &'a Location, clock: ClockMap) -> Self {
        Stream {
            location,
            clock,
            chunk: 0,
            at: 0,
            base: 0,
            opened: false,
            damaged_chunks: 0,
        }
    }

    /// Length of `ticks` ticks, ns.
    pub fn length_ns(&self, ticks: u64) -> i64 {
        self.clock.length_ns(ticks) as i64
    }

    /// Global time of a moment of the location's clock, ns.
    pub fn moment_ns(&self, ticks: u64) -> i64 {
        self.clock.ns(ticks)
    }

    /// Goes on in the same location, which was opened again.
    pub fn onto(self, location: &Location) -> Stream<'_> {
        Stream {
            location,
            clock: self.clock,
            chunk: self.chunk,
            at: self.at,
            base: self.base,
            opened: self.opened,
            damaged_chunks: self.damaged_chunks,
        }
    }

    /// The location of the stream.
    pub fn location(&self) -> &'a Location {
        self.location
    }

    /// What is found first among the calls that come next, given with their enters and leaves, ns, in at most so many
    /// chunks. They are not taken.
    pub fn peek<T>(
        &self,
        chunks: usize,
        mut find: impl FnMut(&Event, (i64, i64)) -> Option<T>,
    ) -> Option<T> {
        let mut here = self.opened.then_some((self.at, self.base));
        for chunk in self.location.chunks.get(self.chunk..)?.iter().take(chunks) {
            let is_sound = here.is_some() || self.location.verify(chunk);
            let (at, base) = here.take().unwrap_or((0, chunk.base));
            if !is_sound {
                continue;
            }
            let mut decoder = Decoder::new(self.location.records(chunk).get(at..)?, base);
            while let Some(event) = decoder.next() {
                let enter = self.clock.ns(event.enter);
                let leave = self.clock.ns(event.leave).max(enter);
                if let Some(found) = find(event, (enter, leave)) {
                    return Some(found);
                }
            }
        }
        None
    }

    /// Fills `columns` with the calls entered before `until`. If it is `alone`, because there are
    /// fewer locations than threads, chunks are decoded at the same time.
    pub fn fill(&mut self, until: i64, alone: bool, columns: &mut Columns) {
        columns.turn();
        while let Some(chunk) = self.location.chunks.get(self.chunk) {
            let may_grow = self.location.may_grow(self.chunk);
            if may_grow && chunk.count == 0 {
                // Its place may become another block's.
                return;
            }
            if !self.opened && alone && self.fill_from_chunks(until, columns) {
                continue;
            }
            if !self.opened {
                if !self.open(chunk, until) {
                    return;
                }
                columns.begin_chunk(self.chunk);
            }
            let records = self.location.records(chunk);
            if self.drain(records, until, columns) || may_grow {
                return;
            }
            self.leave_chunk(chunk);
        }
    }

    /// Passes over what is entered before a moment, ns, except the chunk with the last call before it.
    pub fn pass(&mut self, moment: i64) {
        let location = self.location;
        while let [chunk, _, later, ..] = &location.chunks[self.chunk..]
            && self.clock.ns(later.base) <= moment
        {
            self.leave_chunk(chunk);
        }
    }

    fn leave_chunk(&mut self, chunk: &Chunk) {
        self.location.pass(chunk);
        self.chunk += 1;
        self.opened = false;
    }

    /// Takes the next chunks that lie entirely before `until`, if there are several. In a sound
    /// trace, these are all chunks that begin before it except the last. Chunks of other files are
    /// read in order.
    fn fill_from_chunks(&mut self, until: i64, columns: &mut Columns) -> bool {
        let next = &self.location.chunks[self.chunk..];
        let begins_before = |chunk: &&Chunk| self.clock.ns(chunk.base) < until;
        let begun = next.iter().take(MOST_CHUNKS + 1).take_while(begins_before);
        let whole = begun.count().saturating_sub(1);
        if whole < 2 {
            return false;
        }
        let parts = (self.chunk..self.chunk + whole).into_par_iter().map(|at| {
            let mut stream = Stream::new(self.location, self.clock.clone());
            let mut part = Columns::default();
            let chunk = &self.location.chunks[at];
            stream.open(chunk, i64::MAX);
            stream.drain(self.location.records(chunk), i64::MAX, &mut part);
            (part, stream.damaged_chunks)
        });
        let parts: Vec<(Columns, u64)> = parts.collect();
        let last = parts.iter().flat_map(|(part, _)| &part.enter).max();
        if last.is_some_and(|&last| last >= until) {
            return false;
        }
        for (part, damaged) in &parts {
            columns.begin_chunk(self.chunk);
            columns.append(part);
            self.damaged_chunks += damaged;
            self.leave_chunk(&self.location.chunks[self.chunk]);
        }
        true
    }

    /// Begins a chunk; `false` if it begins after `until`.
    fn open(&mut self, chunk: &Chunk, until: i64) -> bool {
        if chunk.count > 0 && self.clock.ns(chunk.base) >= until {
            return false;
        }
        self.at = 0;
        self.base = chunk.base;
        self.opened = true;
        if !self.location.verify(chunk) {
            self.damaged_chunks += 1;
            self.at = chunk.count as usize;
        }
        true
    }

    /// Takes calls from a chunk; `true` if the next call entered at or after `until`.
    fn drain(&mut self, records: &[Record], until: i64, columns: &mut Columns) -> bool {
        while self.at < records.len() {
            if records[self.at].is_extension() {
                if self.extended(records, until, columns) {
                    return true;
                }
                continue;
            }
            // In batches: the slab may end after a few records of a long chunk.
            let records = &records[self.at..records.len().min(self.at + BATCH)];
            let extension = records.iter().position(Record::is_extension);
            let records = &records[..extension.unwrap_or(records.len())];
            let (clock, base) = (&self.clock, self.base);
            let near = match clock.is_even() {
                true => clock.near(base, 0, 0),
                false => near_all(clock, base, records),
            };
            let taken = match near {
                Some(near) => columns.take(records, until, |ticks| near.ns(ticks)),
                None => columns.take(records, until, |ticks| clock.ns(base.wrapping_add(ticks))),
            };
            self.at += taken;
            if taken < records.len() {
                return true;
            }
        }
        false
    }

    #[cold]
    fn extended(&mut self, records: &[Record], until: i64, columns: &mut Columns) -> bool {
        let mut decoder = Decoder::new(&records[self.at..], self.base);
        let Some(event) = decoder.next() else {
            if self.location.may_grow(self.chunk) {
                // What these records belong to comes after them.
                return true;
            }
            self.at = records.len();
            return false;
        };
        let enter = self.clock.ns(event.enter);
        if enter >= until {
            return true;
        }
        let event = event.clone();
        let (read, base) = decoder.state();
        let is_off = |beside: &Beside| beside.blocked | beside.preempted != 0;
        if is_off(&event.beside) || is_off(&event.inside) || event.off.is_some() {
            let times = |beside: &Beside| {
                [beside.blocked, beside.preempted].map(|ticks| self.length_ns(ticks))
            };
            let off = Off {
                before: times(&event.beside),
                inside: times(&event.inside),
                after: event.off.map_or(0, |ticks| self.length_ns(ticks)),
            };
            columns.off.push((columns.enter.len(), off));
        }
        let (at, leave, signature) = (columns.enter.len(), event.leave, event.signature);
        columns.extended.push((at, event));
        columns.push(enter, self.clock.ns(leave), signature);
        self.at += read;
        self.base = base;
        false
    }
}

/// The map for all times in the records, if it is even there.
#[cold]
fn near_all(clock: &ClockMap, base: u64, records: &[Record]) -> Option<NearMap> {
    let first = records.iter().map(|record| record.enter).min()?;
    let leaves = records
        .iter()
        .map(|record| u64::from(record.enter) + u64::from(record.duration));
    clock.near(base, u64::from(first), leaves.max()?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use laggard_trace::{Extension, FileHeader, LocationWriter, MemorySpace};

    use super::*;
    use crate::clock::{ClockEvidence, Clocks};

    /// A location of many chunks, some calls with extension records; `late` calls are out of order.
    /// The bytes at `damage` are damaged.
    fn location(late: &[u64], damage: Option<usize>) -> Location {
        let mut header = FileHeader::new();
        header.ranks = 1;
        let mut writer = LocationWriter::new(MemorySpace::new(), header, None).unwrap();
        for call in 0..60_000u64 {
            let enter = call * 10 + if late.contains(&call) { 100_000 } else { 0 };
            match call % 4_999 {
                17 => {
                    let value = Record::extension_u64(Extension::Value, call);
                    writer.push_extended(&[value], enter, enter + 5, 3);
                }
                _ => writer.push(enter, enter + 5, 1 + call as u32 % 2),
            }
        }
        let mut bytes = writer.finish(laggard_trace::End::default()).into_bytes();
        if let Some(at) = damage {
            bytes[at] ^= 0xff;
        }
        Location::from_bytes(Path::new("test.lgt"), &bytes).unwrap()
    }

    /// The columns at the end of each slab of `slab` ns.
    fn read(location: &Location, slab: i64, alone: bool) -> Vec<String> {
        let evidence = ClockEvidence {
            ticks_per_s: 1_000_000_000,
            ..ClockEvidence::default()
        };
        read_with(location, &evidence, slab, alone)
    }

    fn read_with(
        location: &Location,
        evidence: &ClockEvidence,
        slab: i64,
        alone: bool,
    ) -> Vec<String> {
        let clock = Clocks::new([evidence].into_iter()).of(evidence.key());
        let mut stream = Stream::new(location, clock);
        let mut columns = Columns::default();
        let borders = (1..=800_000 / slab).map(|n| n * slab).chain([i64::MAX]);
        let read = borders.map(|until| {
            stream.fill(until, alone, &mut columns);
            format!("{columns:?} {}", stream.damaged_chunks)
        });
        read.collect()
    }

    #[test]
    fn chunks_read_at_the_same_time_are_those_read_in_order() {
        for (late, damage) in [
            (&[][..], None),
            (&[], Some(300_000)),
            (&[5_000, 30_000], None),
        ] {
            let location = location(late, damage);
            assert!(location.chunks.len() > 8, "{}", location.chunks.len());
            for slab in [7_000, 190_000, 800_000] {
                let (alone, shared) = (read(&location, slab, true), read(&location, slab, false));
                assert!(alone == shared, "{late:?} {damage:?} {slab}");
                assert_eq!(damage.is_some(), !alone.last().unwrap().ends_with(" 0"));
            }
        }
    }

    /// If the clock's rate changes, times are the same as with single conversions.
    #[test]
    fn batches_across_changes_of_the_rate() {
        let location = location(&[], None);
        let evidence = ClockEvidence {
            ticks_per_s: 1_000_000,
            points: vec![
                (0, 0, 0),
                (100_003, 100_010_000, 0),
                (200_001, 200_000_000, 0),
            ],
            ..ClockEvidence::default()
        };
        let clock = Clocks::new([&evidence].into_iter()).of(evidence.key());
        assert!(!clock.is_even());
        let mut columns = Columns::default();
        let mut stream = Stream::new(&location, clock.clone());
        stream.fill(i64::MAX, false, &mut columns);
        for call in 0..60_000u64 {
            let times = (clock.ns(call * 10), clock.ns(call * 10 + 5));
            let at = call as usize;
            assert_eq!((columns.enter[at], columns.leave[at]), times, "{call}");
        }
        let (alone, shared) = (
            read_with(&location, &evidence, 70_000_000, true),
            read_with(&location, &evidence, 70_000_000, false),
        );
        assert!(alone == shared);
    }
}
