//! Rewrites a recorded trace as if with other clocks, or on other hosts.
//!
//! Only data that shows a clock or a host's name is rewritten, in place. The rest of a file stays
//! byte for byte. So an analysis of both must give the same.

use std::fs;
use std::path::Path;

use laggard_trace::{
    BLOCK_HEADER, BLOCK_MAGIC, BlockHeader, BlockKind, Clock, ClockPoint, Definition, End,
    Extension, FILE_EXTENSION, FileHeader, PAGE, ProfileEntry, Record, SEALED, align,
};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A clock that differs from another one: `t` becomes `t + offset + ppm/10⁶ (t − from)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct OtherClock {
    /// Ticks.
    pub offset: i64,
    /// How much faster it runs, parts per million.
    pub ppm: i64,
    /// From this tick on.
    pub from: u64,
}

impl OtherClock {
    /// Its time at a moment of the recorded clock, ticks.
    pub fn ticks(&self, ticks: u64) -> u64 {
        let since = i128::from(ticks) - i128::from(self.from);
        let more = (since * i128::from(self.ppm)).div_euclid(1_000_000);
        let ticks = i128::from(ticks) + i128::from(self.offset) + more;
        u64::try_from(ticks).expect("a clock after its zero")
    }

    fn scaled(&self, ticks: u128) -> u128 {
        ticks * (1_000_000 + self.ppm) as u128 / 1_000_000
    }
}

/// Changes to the locations of a rank.
pub struct Change<'a> {
    /// Id and name of their host; the name keeps its length.
    pub host: (u64, String),
    /// Their clock.
    pub clock: OtherClock,
    /// Changes a measurement, once it is converted to the new clock.
    pub point: &'a dyn Fn(&mut ClockPoint),
}

/// Leaves measurements as they are.
pub fn as_measured(_: &mut ClockPoint) {}

/// Makes a measurement not count, by a kind that nobody knows.
pub fn no_measurement(point: &mut ClockPoint) {
    point.kind = u32::MAX;
}

/// Copies the trace in directory `from` into a new one, `to`, with the changes. The run must have
/// ended well.
///
/// # Panics
/// If the trace cannot be read, the new one cannot be written, or a time does not fit.
pub fn rewrite<'a>(from: &Path, to: &Path, change: &dyn Fn(&FileHeader, &str) -> Change<'a>) {
    fs::create_dir(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a trace") {
        let path = entry.expect("an entry").path();
        let mut bytes = fs::read(&path).expect("a file");
        if path.extension().is_some_and(|e| e == FILE_EXTENSION) {
            rewrite_file(&mut bytes, change);
        }
        fs::write(to.join(path.file_name().expect("a name")), bytes).expect("a copy");
    }
}

fn rewrite_file<'a>(bytes: &mut [u8], change: &dyn Fn(&FileHeader, &str) -> Change<'a>) {
    let mut header: FileHeader = take(bytes);
    let name = host_name(bytes);
    let change = change(&header, name.as_ref().map_or("", |name| &name.1));
    header.host_id = change.host.0;
    header.start_ticks = change.clock.ticks(header.start_ticks);
    header.checksum = header.expected_checksum();
    put(bytes, &header);
    let is_monotonic = header.clock == Clock::Monotonic as u32;
    each_block(bytes, |mut header, payload| {
        match header.kind {
            k if k == BlockKind::Records as u16 => {
                let base = header.base;
                header.base = change.clock.ticks(base);
                if is_monotonic {
                    let by = header.base.wrapping_sub(base);
                    header.monotonic_ns = header.monotonic_ns.wrapping_add(by);
                }
                records(payload, base, &change.clock);
            }
            k if k == BlockKind::Definitions as u16 => {
                if let Some((id, _)) = &name {
                    rename(payload, *id, &change.host.1);
                }
            }
            k if k == BlockKind::Profile as u16 => {
                each(payload, |entry: &mut ProfileEntry| {
                    let scaled = |ticks: u64| change.clock.scaled(ticks.into()) as u64;
                    entry.total = scaled(entry.total);
                    entry.minimum = scaled(entry.minimum);
                    entry.maximum = scaled(entry.maximum);
                    let once = change.clock.scaled(entry.sum_of_squares);
                    entry.sum_of_squares = change.clock.scaled(once);
                });
            }
            k if k == BlockKind::Clock as u16 => each(payload, |point: &mut ClockPoint| {
                point.local = change.clock.ticks(point.local);
                (change.point)(point);
            }),
            k if k == BlockKind::End as u16 => each(payload, |end: &mut End| {
                end.end_ticks = change.clock.ticks(end.end_ticks);
            }),
            _ => {}
        }
        header.checksum = header.expected_checksum(payload);
        header
    });
}

fn take<T: FromBytes>(bytes: &[u8]) -> T {
    T::read_from_prefix(bytes).expect("bytes enough").0
}

fn put<T: IntoBytes + Immutable>(bytes: &mut [u8], value: &T) {
    value.write_to_prefix(bytes).expect("bytes enough");
}

fn each<T>(payload: &mut [u8], mut change: impl FnMut(&mut T))
where
    T: FromBytes + IntoBytes + KnownLayout + Immutable,
{
    for bytes in payload.chunks_exact_mut(size_of::<T>()) {
        let mut value: T = take(bytes);
        change(&mut value);
        put(bytes, &value);
    }
}

/// Passes every block's header and payload to `change`; the result becomes its header.
fn each_block(bytes: &mut [u8], mut change: impl FnMut(BlockHeader, &mut [u8]) -> BlockHeader) {
    let mut at = size_of::<FileHeader>();
    loop {
        let to_page = PAGE - at % PAGE;
        if to_page < BLOCK_HEADER {
            at += to_page;
        }
        if bytes.len() < at + BLOCK_HEADER {
            return;
        }
        let header: BlockHeader = take(&bytes[at..]);
        if header.magic == 0 {
            return;
        }
        assert_eq!(header.magic, BLOCK_MAGIC, "a block at {at}");
        assert_eq!(header.flags & SEALED, SEALED, "a sealed block at {at}");
        let (head, payload) = bytes[at..].split_at_mut(BLOCK_HEADER);
        let new = change(header, &mut payload[..header.length as usize]);
        put(head, &new);
        at += BLOCK_HEADER + align(header.length as usize);
    }
}

fn records(payload: &mut [u8], base: u64, clock: &OtherClock) {
    let fits = |ticks: u64| u32::try_from(ticks).expect("a time that fits");
    let (mut old, mut new) = (base, clock.ticks(base));
    let (mut high, mut high_at) = (0, None);
    for at in (0..payload.len()).step_by(size_of::<Record>()) {
        let mut record: Record = take(&payload[at..]);
        match Extension::from_id(record.signature) {
            None if record.is_extension() => {}
            None => {
                let enter = old + u64::from(record.enter);
                let leave = clock.ticks(enter + (u64::from(record.duration) | high));
                let enter = clock.ticks(enter);
                record.enter = fits(enter - new);
                let duration = leave - enter;
                match high_at.take() {
                    None => record.duration = fits(duration),
                    Some(at) => {
                        record.duration = duration as u32;
                        let long = duration >> 32;
                        let long = Record::extension_u64(Extension::LongDuration, long);
                        put(&mut payload[at..], &long);
                    }
                }
                high = 0;
            }
            Some(Extension::Advance) => {
                old += record.value();
                let by = clock.ticks(old) - new;
                new += by;
                record = Record::extension_u64(Extension::Advance, by);
            }
            Some(Extension::LongDuration) => (high, high_at) = (record.value() << 32, Some(at)),
            Some(Extension::Repeated) => {
                record.duration = fits(clock.scaled(record.duration.into()) as u64);
            }
            Some(
                kind @ (Extension::Off
                | Extension::Blocked
                | Extension::Preempted
                | Extension::Kernel
                | Extension::CountedTime
                | Extension::InsideBlocked
                | Extension::InsidePreempted
                | Extension::InsideKernel),
            ) => {
                let ticks = clock.scaled(record.value().into()) as u64;
                record = Record::extension_u64(kind, ticks);
            }
            Some(_) => {}
        }
        put(&mut payload[at..], &record);
    }
}

/// Passes each definition's kind and bytes to `look`.
fn each_definition(payload: &mut [u8], mut look: impl FnMut(Definition, &mut [u8])) {
    let mut at = 0;
    while let Ok((definition, size)) = Definition::decode(&payload[at..]) {
        if payload[at..at + 2] == [0, 0] {
            return;
        }
        if let Some(definition) = definition {
            look(definition, &mut payload[at..at + size]);
        }
        at += size;
    }
}

/// The host's name in a file, and the id of that text.
fn host_name(bytes: &mut [u8]) -> Option<(u32, String)> {
    let mut texts = Vec::new();
    let mut properties = Vec::new();
    each_block(bytes, |header, payload| {
        if header.kind == BlockKind::Definitions as u16 {
            each_definition(payload, |definition, _| match definition {
                Definition::String { id, bytes } => texts.push((id, bytes)),
                Definition::Property { key, value } => properties.push((key, value)),
                _ => {}
            });
        }
        header
    });
    let text = |wanted: u32| texts.iter().find(|(id, _)| *id == wanted);
    let is_host = |key: u32| text(key).is_some_and(|(_, bytes)| bytes == b"host");
    let &(_, value) = properties.iter().find(|(key, _)| is_host(*key))?;
    let (_, name) = text(value)?;
    Some((value, String::from_utf8_lossy(name).into_owned()))
}

fn rename(payload: &mut [u8], wanted: u32, name: &str) {
    each_definition(payload, |definition, bytes| {
        if let Definition::String { id, bytes: old } = definition
            && id == wanted
        {
            assert_eq!(old.len(), name.len(), "a name of that length");
            // After the definition's head and the id.
            bytes[12..12 + name.len()].copy_from_slice(name.as_bytes());
        }
    });
}
