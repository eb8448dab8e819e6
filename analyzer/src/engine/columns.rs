//! The calls of one location in a slab of global time, decoded.

use laggard_trace::{Chunk, Decoder, Event, Location, Record};

use super::clock::ClockMap;

/// A late party's calls are looked through so far back, and their sums where that is
/// not enough. The same number everywhere: what the report says must not depend on
/// where slabs end.
pub const LOOK_BACK: usize = 256;
/// Calls kept from the slabs before, at least: a party that was late in an earlier slab
/// is looked for within [`LOOK_BACK`] calls, what it did before within as many again, and
/// what is summed up begins a little before that.
const KEPT: usize = 3 * LOOK_BACK;

/// Calls of a location, column by column, times in ns of the global clock.
#[derive(Debug, Default)]
pub struct Columns {
    /// Enter times.
    pub enter: Vec<i64>,
    /// Leave times.
    pub leave: Vec<i64>,
    /// Signature ids.
    pub signature: Vec<u32>,
    /// Calls that extension records say more of, by position.
    pub extended: Vec<(usize, Event)>,
    /// Position of the first call of this slab; those before it are kept for look-back.
    pub first: usize,
    /// Number, in the location's whole trace, of the call at position 0.
    pub number: u64,
}

impl Columns {
    /// Drops the last slab's calls but for the look-back.
    pub(super) fn turn(&mut self) {
        // Small slabs add up before they are moved.
        if self.enter.len() > 2 * KEPT {
            let drop = self.enter.len() - KEPT;
            self.enter.drain(..drop);
            self.leave.drain(..drop);
            self.signature.drain(..drop);
            self.number += drop as u64;
        }
        self.extended.clear();
        self.first = self.enter.len();
    }

    #[inline]
    pub(super) fn push(&mut self, enter: i64, leave: i64, signature: u32) {
        self.enter.push(enter);
        self.leave.push(leave.max(enter));
        self.signature.push(signature);
    }

    /// Takes the calls entered before `until`; how many these are. `ns` maps ticks after
    /// the records' base.
    fn take(&mut self, records: &[Record], until: i64, ns: impl Fn(u64) -> i64) -> usize {
        let is_before = |record: &Record| ns(u64::from(record.enter)) < until;
        // Most slabs end elsewhere.
        let count = match records.last() {
            Some(last) if !is_before(last) => records.partition_point(is_before),
            _ => records.len(),
        };
        let records = &records[..count];
        self.enter
            .extend(records.iter().map(|r| ns(u64::from(r.enter))));
        self.leave.extend(records.iter().map(|record| {
            let leave = u64::from(record.enter) + u64::from(record.duration);
            ns(leave)
        }));
        self.signature.extend(records.iter().map(|r| r.signature));
        count
    }

    /// Position of the call with this number, if it is still here.
    pub fn position(&self, number: u64) -> Option<usize> {
        let at = usize::try_from(number.checked_sub(self.number)?).ok()?;
        (at < self.enter.len()).then_some(at)
    }
}

/// Records that are looked through and converted at once.
const BATCH: usize = 512;

/// Reads one location slab by slab.
pub struct Stream<'a> {
    location: &'a Location,
    clock: ClockMap,
    chunk: usize,
    /// Next record in the chunk, and the base in force there.
    at: usize,
    base: u64,
    opened: bool,
    /// Chunks that were skipped because of their checksum.
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

    /// The location that is read.
    pub fn location(&self) -> &'a Location {
        self.location
    }

    /// Fills `columns` with the calls entered before `until`.
    pub fn fill(&mut self, until: i64, columns: &mut Columns) {
        columns.turn();
        while let Some(chunk) = self.location.chunks.get(self.chunk) {
            if !self.opened && !self.open(chunk, until) {
                return;
            }
            let records = self.location.records(chunk);
            if self.drain(records, until, columns) {
                return;
            }
            self.location.release(chunk);
            self.chunk += 1;
            self.opened = false;
        }
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

    /// Takes calls out of a chunk; `true` if one entered at or after `until` is next.
    fn drain(&mut self, records: &[Record], until: i64, columns: &mut Columns) -> bool {
        while self.at < records.len() {
            if records[self.at].is_extension() {
                if self.extended(records, until, columns) {
                    return true;
                }
                continue;
            }
            // No further: the slab may end after a few records of a long chunk.
            let records = &records[self.at..records.len().min(self.at + BATCH)];
            let extension = records.iter().position(Record::is_extension);
            let records = &records[..extension.unwrap_or(records.len())];
            let clock = self.clock;
            let base = self.base;
            let taken = match clock.near(base) {
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
            self.at = records.len();
            return false;
        };
        let enter = self.clock.ns(event.enter);
        if enter >= until {
            return true;
        }
        let event = event.clone();
        let (read, base) = decoder.state();
        columns.extended.push((columns.enter.len(), event.clone()));
        columns.push(enter, self.clock.ns(event.leave), event.signature);
        self.at += read;
        self.base = base;
        false
    }
}
