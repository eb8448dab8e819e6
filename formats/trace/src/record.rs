//! Records: one per call, twelve bytes.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::define::{Endpoint, Signature};

/// One call, or an extension of the call that follows. Layout as in `FORMAT.md`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Record {
    /// Entry, ticks since the running base.
    pub enter: u32,
    /// Duration, ticks.
    pub duration: u32,
    /// Id of a [`Signature`](crate::Signature), or an extension.
    pub signature: u32,
}

/// First id that denotes an extension.
pub const EXTENSION_BASE: u32 = 0xffff_ff00;

/// Outcome of a completed request: it was cancelled.
pub const OUTCOME_CANCELLED: u32 = u32::MAX;

macro_rules! extensions {
    ($($(#[$doc:meta])* $name:ident = $id:literal,)*) => {
        /// Kinds of data that an extension record adds to the record after it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Extension { $($(#[$doc])* $name = EXTENSION_BASE + $id,)* }
        impl Extension {
            /// The extension with this record id, if this version knows it.
            pub fn from_id(id: u32) -> Option<Extension> {
                $(if id == EXTENSION_BASE + $id { return Some(Extension::$name); })*
                None
            }
        }
    };
}

extensions! {
    /// u64 to add to the running base.
    Advance = 0,
    /// Bits 32.. of the duration.
    LongDuration = 1,
    /// Peer and tag of the send half.
    SendEndpoint = 2,
    /// Bytes of the send half.
    SendBytes = 3,
    /// Peer and tag of the receive half.
    ReceiveEndpoint = 4,
    /// Bytes of the receive half.
    ReceiveBytes = 5,
    /// A completed request: delta and outcome.
    Completed = 6,
    /// A completed request that another thread posted: thread and post number.
    CompletedElsewhere = 7,
    /// Outcome of the preceding `CompletedElsewhere`.
    Outcome = 8,
    /// The record stands for n calls: n, and the ticks inside them.
    Repeated = 9,
    /// A value whose meaning depends on the call.
    Value = 10,
    /// A symmetric address; replaces the signature's parameter.
    Address = 11,
    /// Ticks that the thread was off the processor between this call and the next one.
    Off = 12,
    /// Computation before the call: its call path, and ticks.
    Computed = 13,
    /// Ticks off the processor by itself, before the call.
    Blocked = 14,
    /// Ticks off the processor since another one took its place, before the call.
    Preempted = 15,
    /// Ticks in the kernel before the call.
    Kernel = 16,
    /// Page faults before the call: without and with a device.
    Faults = 17,
    /// Samples before the call: their call path, and the ticks on the processor that they stand for.
    Sampled = 18,
    /// What a counter counted before the call: its number in the top byte, and how much below.
    Counted = 20,
    /// Ticks of work in which the `Counted` records of the same call were counted.
    CountedTime = 21,
    /// A sample before the call: its call path, and how long before the enter, in [`MOMENT`]s.
    SampledAt = 22,
    /// Ticks off the processor by itself, in the call.
    InsideBlocked = 23,
    /// Ticks off the processor since another one took its place, in the call.
    InsidePreempted = 24,
    /// Ticks in the kernel in the call.
    InsideKernel = 25,
    /// Page faults in the call: without and with a device.
    InsideFaults = 26,
}

impl Record {
    /// An extension record with two values.
    pub fn extension(kind: Extension, a: u32, b: u32) -> Record {
        Record {
            enter: a,
            duration: b,
            signature: kind as u32,
        }
    }

    /// An extension record with one 64-bit value.
    pub fn extension_u64(kind: Extension, value: u64) -> Record {
        Record::extension(kind, value as u32, (value >> 32) as u32)
    }

    /// Extension records of ticks, as many as it takes: none for no ticks.
    pub fn of_ticks(kind: Extension, a: u32, mut ticks: u64) -> impl Iterator<Item = Record> {
        std::iter::from_fn(move || {
            let part = u32::try_from(ticks).unwrap_or(u32::MAX);
            ticks -= u64::from(part);
            (part > 0).then(|| Record::extension(kind, a, part))
        })
    }

    /// Whether this extends the record after it.
    #[inline]
    pub fn is_extension(&self) -> bool {
        self.signature >= EXTENSION_BASE
    }

    /// The 64-bit value of an extension record.
    #[inline]
    pub fn value(&self) -> u64 {
        u64::from(self.enter) | u64::from(self.duration) << 32
    }
}

/// A request that a call completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Completion {
    /// Number of posts since then, counting the request itself: 1 = the latest post. For a
    /// request of another thread ([`Completion::thread`]) its post number.
    pub delta: u32,
    /// 0 = as posted, a signature id, or [`OUTCOME_CANCELLED`].
    pub outcome: u32,
    /// The thread that posted it, if another one did.
    pub thread: Option<u32>,
}

/// One call with the data of its extension records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Entry, ticks.
    pub enter: u64,
    /// Exit, ticks.
    pub leave: u64,
    /// The call's signature.
    pub signature: u32,
    /// Peer and tag; replace those of the signature's send half.
    pub send_endpoint: Option<(i32, i32)>,
    /// Bytes; replace those of the signature's send half.
    pub send_bytes: Option<u64>,
    /// Peer and tag; replace those of the signature's receive half.
    pub receive_endpoint: Option<(i32, i32)>,
    /// Bytes; replace those of the signature's receive half.
    pub receive_bytes: Option<u64>,
    /// Completed requests beyond the signature's completion list.
    pub completed: Vec<Completion>,
    /// Number of calls that this record stands for, and ticks inside them; `None` = one call.
    pub repeated: Option<(u32, u32)>,
    /// A value whose meaning depends on the call.
    pub value: Option<u64>,
    /// A symmetric address; replaces the signature's parameter.
    pub address: Option<u64>,
    /// Time that the thread slept between this call and the next one, ticks, if known.
    pub off: Option<u64>,
    /// Computation between the call before and this one: call path and ticks, if known.
    pub computed: Vec<(u32, u32)>,
    /// What the time between the call before and this one was beside work.
    pub beside: Beside,
    /// The same of the call itself, with what it waited for others. Nothing is counted there.
    pub inside: Beside,
    /// Samples of the time before: call path, and the ticks on the processor that they stand for.
    pub sampled: Vec<(u32, u32)>,
    /// When they were taken: call path, and how long before the enter, in [`MOMENT`]s.
    pub moments: Vec<(u32, u32)>,
}

/// What a stretch between two calls, or a call, was beside work, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Off the processor by itself: asleep, or waiting for a device or a lock, ticks.
    pub blocked: u64,
    /// Off the processor since another one took its place, ticks.
    pub preempted: u64,
    /// In the kernel, ticks.
    pub kernel: u64,
    /// Page faults, without and with a device.
    pub faults: [u32; 2],
    /// What was counted in it.
    pub counted: Counts,
}

/// Ticks in which moments of samples are told.
pub const MOMENT: u64 = 256;

/// Most counters of a location.
pub const COUNTERS: usize = 8;

/// What counters counted in some time. Their numbers are the places of their names among the
/// location's properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    counts: [u64; COUNTERS],
    /// Ticks of work in which they counted.
    pub time: u64,
    /// Bits of those that are known, and of those of which a part is not.
    known: u8,
    lacking: u8,
}

/// Bits of a record for how much was counted.
const COUNT_BITS: u32 = 56;

impl Counts {
    /// What this one counted, if that is known of all the time.
    pub fn get(&self, counter: usize) -> Option<u64> {
        let is_known = self.known & !self.lacking & 1 << counter != 0;
        self.counts.get(counter).copied().filter(|_| is_known)
    }

    /// Says what a counter counted.
    pub fn set(&mut self, counter: usize, count: Option<u64>) {
        if let Some(of) = self.counts.get_mut(counter) {
            *of = count.unwrap_or(0);
            self.known |= u8::from(count.is_some()) << counter;
            self.lacking |= u8::from(count.is_none()) << counter;
        }
    }

    /// Whether nothing is known.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.known & !self.lacking == 0
    }

    /// The counters that are known, by number.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        // Most have none.
        let end = if self.is_empty() { 0 } else { COUNTERS };
        (0..end).filter_map(|at| Some((at, self.get(at)?)))
    }

    /// A `part` of the time: as much of all that was counted in `whole`.
    #[must_use]
    pub fn part(mut self, part: u64, whole: u64) -> Counts {
        for count in &mut self.counts {
            let of = u128::from(*count) * u128::from(part) + u128::from(whole / 2);
            *count = u64::try_from(of / u128::from(whole.max(1))).unwrap_or(u64::MAX);
        }
        self
    }

    /// The same counters, of which nothing is known.
    #[must_use]
    pub fn without_known(mut self) -> Counts {
        self.lacking |= self.known;
        self
    }

    /// Adds what was counted in another time.
    pub fn add(&mut self, other: &Counts) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count = count.saturating_add(more);
        }
        self.time = self.time.saturating_add(other.time);
        self.known |= other.known;
        self.lacking |= other.lacking;
    }

    fn extensions(&self) -> impl Iterator<Item = Record> + '_ {
        let time = Record::extension_u64(Extension::CountedTime, self.time);
        let counts = self.iter().map(|(at, count)| {
            let count = count.min((1 << COUNT_BITS) - 1);
            Record::extension_u64(Extension::Counted, (at as u64) << COUNT_BITS | count)
        });
        Some(time)
            .filter(|_| !self.is_empty())
            .into_iter()
            .chain(counts)
    }

    /// By an extension record.
    fn read(&mut self, value: u64) {
        let count = value & ((1 << COUNT_BITS) - 1);
        self.set((value >> COUNT_BITS) as usize, Some(count));
    }
}

/// Extension records for times and faults, of the time before a call and of the call.
const BEFORE: [Extension; 4] = [
    Extension::Blocked,
    Extension::Preempted,
    Extension::Kernel,
    Extension::Faults,
];
const INSIDE: [Extension; 4] = [
    Extension::InsideBlocked,
    Extension::InsidePreempted,
    Extension::InsideKernel,
    Extension::InsideFaults,
];

/// Most time in the kernel for a page fault, ns: a page of 2 MiB is cleared.
const FAULT_NS: i64 = 500_000;

impl Beside {
    /// As extension records of the call after it.
    pub fn extensions(&self) -> impl Iterator<Item = Record> + '_ {
        self.times(BEFORE).chain(self.counted.extensions())
    }

    /// As extension records of the call that it tells of.
    pub fn extensions_inside(&self) -> impl Iterator<Item = Record> + use<> {
        self.times(INSIDE)
    }

    fn times(&self, kinds: [Extension; 4]) -> impl Iterator<Item = Record> + use<> {
        let [minor, major] = self.faults.map(u64::from);
        let values = [
            self.blocked,
            self.preempted,
            self.kernel,
            minor | major << 32,
        ];
        let known = kinds
            .into_iter()
            .zip(values)
            .filter(|(_, value)| *value > 0);
        known.map(|(kind, value)| Record::extension_u64(kind, value))
    }

    /// Adds what another stretch was.
    pub fn add(&mut self, other: &Beside) {
        self.blocked = self.blocked.saturating_add(other.blocked);
        self.preempted = self.preempted.saturating_add(other.preempted);
        self.kernel = self.kernel.saturating_add(other.kernel);
        for (faults, more) in self.faults.iter_mut().zip(other.faults) {
            *faults = faults.saturating_add(more);
        }
        self.counted.add(&other.counted);
    }

    /// The times of a call that are not its own work: blocked, preempted, in the kernel, ns. System calls
    /// are how libraries work: the kernel's time counts as far as page faults explain it. `ns` is the length of
    /// ticks.
    pub fn of_call(&self, ns: impl Fn(u64) -> i64) -> [i64; 3] {
        let faults = self.faults.map(i64::from);
        let kernel = ns(self.kernel).min(FAULT_NS * (faults[0] + faults[1]));
        [ns(self.blocked), ns(self.preempted), kernel]
    }

    /// Whether it was work alone.
    #[inline]
    pub fn is_work(&self) -> bool {
        self.blocked | self.preempted | self.kernel == 0 && self.faults == [0; 2]
    }
}

impl Event {
    /// The send half: the signature's, with the replacements of this call.
    #[inline]
    pub fn send(&self, signature: &Signature) -> Endpoint {
        changed(signature.send, self.send_endpoint, self.send_bytes)
    }

    /// The receive half: the signature's, with the replacements of this call.
    #[inline]
    pub fn receive(&self, signature: &Signature) -> Endpoint {
        changed(signature.receive, self.receive_endpoint, self.receive_bytes)
    }

    /// The symmetric address of a SHMEM call; `None` for other calls.
    pub fn symmetric_address(&self, signature: &Signature) -> Option<SymmetricAddress> {
        let has_address = crate::calls::call(signature.operation)?.has_address();
        let address = self.address.unwrap_or(signature.parameter as u64);
        has_address.then_some(SymmetricAddress(address))
    }
}

/// An address in symmetric memory, equal on all PEs: segment in the upper 16 bits, offset in
/// the lower 48.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymmetricAddress(pub u64);

impl SymmetricAddress {
    /// No known segment: the offset is the address in the process.
    pub const UNKNOWN: u64 = 0;
    /// Symmetric heap: the offset counts bytes from its start.
    pub const HEAP: u64 = 1;
    /// Data of the executable: the offset is the address in its ELF file.
    pub const DATA: u64 = 2;
    /// The process's own window memory: the offset is the displacement.
    pub const WINDOW: u64 = 3;

    /// Makes an address from its parts.
    pub const fn new(segment: u64, offset: u64) -> Self {
        SymmetricAddress(segment << 48 | (offset & 0xffff_ffff_ffff))
    }

    /// The segment.
    pub const fn segment(self) -> u64 {
        self.0 >> 48
    }

    /// The offset, bytes.
    pub const fn offset(self) -> u64 {
        self.0 & 0xffff_ffff_ffff
    }
}

impl std::fmt::Display for SymmetricAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let segment = match self.segment() {
            Self::HEAP => "heap+",
            Self::DATA => "data+",
            Self::WINDOW => "window+",
            _ => "",
        };
        write!(f, "{segment}{:#x}", self.offset())
    }
}

#[inline]
fn changed(end: Endpoint, endpoint: Option<(i32, i32)>, bytes: Option<u64>) -> Endpoint {
    let (peer, tag) = endpoint.unwrap_or((end.peer, end.tag));
    Endpoint {
        peer,
        tag,
        bytes: bytes.unwrap_or(end.bytes),
    }
}

/// Decodes the records of one chunk in order.
///
/// A record without extension costs a compare and two additions. `next` reuses one [`Event`],
/// so it allocates nothing.
pub struct Decoder<'a> {
    records: &'a [Record],
    base: u64,
    at: usize,
    event: Event,
    dirty: bool,
}

impl<'a> Decoder<'a> {
    /// Decodes `records`; `base` is their first base, ticks.
    pub fn new(records: &'a [Record], base: u64) -> Self {
        Decoder {
            records,
            base,
            at: 0,
            event: Event::default(),
            dirty: false,
        }
    }

    /// The next call, or `None` at the end of the chunk. Unknown extensions are skipped.
    /// Trailing extension records are dropped: the writer died before their record.
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<&Event> {
        if self.dirty {
            self.event = Event::default();
            self.dirty = false;
        }
        let mut high = 0u64;
        loop {
            let record = *self.records.get(self.at)?;
            self.at += 1;
            if record.is_extension() {
                self.extend(record, &mut high);
                continue;
            }
            self.event.enter = self.base.wrapping_add(u64::from(record.enter));
            let duration = u64::from(record.duration) | high;
            self.event.leave = self.event.enter.saturating_add(duration);
            self.event.signature = record.signature;
            return Some(&self.event);
        }
    }

    /// Number of records read so far, and the base in force after them. Another decoder can go
    /// on from there.
    pub fn state(&self) -> (usize, u64) {
        (self.at, self.base)
    }

    #[cold]
    fn extend(&mut self, record: Record, high: &mut u64) {
        let (a, b) = (record.enter, record.duration);
        let event = &mut self.event;
        match Extension::from_id(record.signature) {
            Some(Extension::Advance) => {
                self.base = self.base.wrapping_add(record.value());
                return;
            }
            Some(Extension::LongDuration) => {
                *high = record.value() << 32;
                return;
            }
            Some(Extension::SendEndpoint) => event.send_endpoint = Some((a as i32, b as i32)),
            Some(Extension::SendBytes) => event.send_bytes = Some(record.value()),
            Some(Extension::ReceiveEndpoint) => event.receive_endpoint = Some((a as i32, b as i32)),
            Some(Extension::ReceiveBytes) => event.receive_bytes = Some(record.value()),
            Some(Extension::Completed) => {
                event.completed.push(Completion {
                    delta: a,
                    outcome: b,
                    thread: None,
                });
            }
            Some(Extension::CompletedElsewhere) => {
                event.completed.push(Completion {
                    delta: b,
                    outcome: 0,
                    thread: Some(a),
                });
            }
            Some(Extension::Outcome) => {
                if let Some(last) = event.completed.last_mut() {
                    last.outcome = a;
                }
            }
            Some(Extension::Repeated) => event.repeated = Some((a, b)),
            Some(Extension::Value) => event.value = Some(record.value()),
            Some(Extension::Address) => event.address = Some(record.value()),
            Some(Extension::Off) => event.off = Some(record.value()),
            Some(Extension::Computed) => event.computed.push((a, b)),
            Some(Extension::Sampled) => event.sampled.push((a, b)),
            Some(Extension::SampledAt) => event.moments.push((a, b)),
            Some(Extension::Blocked) => event.beside.blocked = record.value(),
            Some(Extension::Preempted) => event.beside.preempted = record.value(),
            Some(Extension::Kernel) => event.beside.kernel = record.value(),
            Some(Extension::Faults) => event.beside.faults = [a, b],
            Some(Extension::InsideBlocked) => event.inside.blocked = record.value(),
            Some(Extension::InsidePreempted) => event.inside.preempted = record.value(),
            Some(Extension::InsideKernel) => event.inside.kernel = record.value(),
            Some(Extension::InsideFaults) => event.inside.faults = [a, b],
            Some(Extension::Counted) => event.beside.counted.read(record.value()),
            Some(Extension::CountedTime) => event.beside.counted.time = record.value(),
            None => return,
        }
        self.dirty = true;
    }
}
