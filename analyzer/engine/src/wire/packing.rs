//! Compact encoding of the messages between agents, and of what is kept in files.
//!
//! Successive entries of a message are alike: times of one channel, consecutive numbers, the same
//! few call paths. So a list is written in blocks of [`BLOCK`] entries, and a block field by field:
//! a mask of the fields that differ, then the differences from entry to entry, each with as many
//! bits. A base is taken off each, so that none is negative (frame of reference). What the few
//! have above these bits comes before (patched, as in Zukowski, Heman, Nes, Boncz: Super-scalar
//! RAM-CPU cache compression, ICDE 2006). In short blocks each is an integer of variable length,
//! see [`Packer::number`]. A call path is written once in a message and then named by number.

use rustc_hash::FxHashMap;

/// Entries of a block.
const BLOCK: usize = 64;
/// Most entries of a block whose numbers have variable length.
const SHORT: usize = 3;
/// Numbers of up to this many bits all have room.
const SMALL: usize = 16;

/// A block begins with the sum of its kind and its width. This kind has the base of [`around_zero`].
const AROUND: u8 = 0;
/// The same, but some numbers exceed the width: their number, and place and upper bits of each, follow.
const EXCEEDED: u8 = AROUND + 65;
/// The base is 0.
const POSITIVE: u8 = EXCEEDED + 64;
/// The base follows.
const BASED: u8 = POSITIVE + 64;
/// The largest width of this kind.
const MOST_BASED: usize = (u8::MAX - BASED) as usize;

/// Calls a function that is compiled for each width: then all places of bits are constants.
macro_rules! of_width {
    ($width:expr, $function:ident $arguments:tt) => {
        of_width!($width, $function $arguments,
            1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
            33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61
            62 63 64)
    };
    ($width:expr, $function:ident $arguments:tt, $($constant:literal)*) => {
        match $width {
            $($constant => $function::<$constant> $arguments,)*
            _ => {}
        }
    };
}

/// A message being written.
#[derive(Default)]
pub struct Packer {
    bytes: Vec<u8>,
    keys: FxHashMap<[u64; 2], u64>,
}

impl Packer {
    /// The message.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// Writes a list.
    pub fn list<T: Pack>(&mut self, entries: &[T]) {
        self.number(entries.len() as u64);
        let mut before = T::default();
        for block in entries.chunks(BLOCK) {
            T::put(block, |entry| *entry, &before, self);
            before = block[block.len() - 1];
        }
    }

    /// Appends a number: one zero bit for each byte after the first one, a one, then the number,
    /// from the lowest bit on. So any length is in one word. A number that needs more than a word
    /// is a byte of zeros and the number.
    #[inline]
    fn number(&mut self, value: u64) {
        let length = length(value);
        if length > size_of::<u64>() {
            self.bytes.push(0);
            self.bytes.extend_from_slice(&value.to_le_bytes());
            return;
        }
        let word = (value << 1 | 1) << (length - 1);
        self.word(word, length);
    }

    /// Appends the lowest `length` bytes of a word.
    #[inline]
    fn word(&mut self, word: u64, length: usize) {
        let end = self.bytes.len() + length;
        self.bytes.extend_from_slice(&word.to_le_bytes());
        self.bytes.truncate(end);
    }

    /// Appends a block of zeros. Returns that none differs.
    #[inline(never)]
    fn zeros(&mut self, count: usize) -> bool {
        let (zero, bytes) = match count <= SHORT {
            true => (1, count),
            false => (AROUND, 1),
        };
        self.bytes.resize(self.bytes.len() + bytes, zero);
        false
    }

    /// Appends the first `count` values, which are signed; zeros follow them. `least` and `most` are
    /// their bounds.
    fn values(&mut self, values: &mut [u64; BLOCK], count: usize, (least, most): (i64, i64)) {
        if count <= SHORT {
            let own = &values[..count];
            own.iter()
                .for_each(|&value| self.number(zigzag(value as i64)));
            return;
        }
        let (eights, _) = values[..count.next_multiple_of(8)].as_chunks_mut();
        let all = bits(zigzag(least) | zigzag(most));
        let (mut kind, mut width) = match least {
            0.. => (POSITIVE, all - 1),
            _ => (AROUND, all),
        };
        let range = bits(most.wrapping_sub(least) as u64);
        let mut room = width * count;
        let based = range * count + 8 * length(zigzag(least));
        if range <= MOST_BASED && based < room {
            (kind, width, room) = (BASED, range, based);
        }
        if width > SMALL
            && let Some(less) = best_width(eights, (count, all), room)
        {
            (kind, width) = (EXCEEDED, less);
        }
        let base = match kind {
            POSITIVE => 0,
            BASED => least,
            _ => around_zero(width),
        };
        self.bytes.push(kind + width as u8);
        match kind {
            BASED => self.number(zigzag(base)),
            EXCEEDED => self.above(eights, width, base),
            _ => {}
        }
        let begin = self.bytes.len();
        self.bytes.resize(begin + eights.len() * width, 0);
        of_width!(width, join(eights, base as u64, &mut self.bytes[begin..]));
        self.bytes.truncate(begin + (count * width).div_ceil(8));
    }

    /// Appends what values have above this width, and takes it off them.
    fn above(&mut self, eights: &mut [[u64; 8]], width: usize, base: i64) {
        let exceeding = self.bytes.len();
        self.bytes.push(0);
        let above = |value: u64| (value as i64).wrapping_sub(base) >> width;
        for (values, first) in eights.iter_mut().zip((0..).step_by(8)) {
            if values
                .iter()
                .fold(0, |all, &value| all | value.wrapping_sub(base as u64))
                >> width
                == 0
            {
                continue;
            }
            for (value, at) in values.iter_mut().zip(first..) {
                let above = above(*value);
                if above != 0 {
                    *value = value.wrapping_sub((above << width) as u64);
                    self.bytes[exceeding] += 1;
                    self.bytes.push(at);
                    self.number(zigzag(above));
                }
            }
        }
    }
}

/// Writes values without the base, one after the other: eight take as many bytes as one has bits.
fn join<const WIDTH: usize>(values: &[[u64; 8]], base: u64, bytes: &mut [u8]) {
    for (values, bytes) in values.iter().zip(bytes.as_chunks_mut::<WIDTH>().0) {
        let (mut word, mut filled, mut at) = (0, 0, 0);
        for value in values {
            let number = value.wrapping_sub(base);
            word |= number << filled;
            filled += WIDTH;
            if filled >= 64 {
                bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
                at += 8;
                filled -= 64;
                // The rest of this number.
                word = number.checked_shr((WIDTH - filled) as u32).unwrap_or(0);
            }
        }
        let rest = &mut bytes[at..];
        rest.copy_from_slice(&word.to_le_bytes()[..rest.len()]);
    }
}

/// Adds what [`join`] wrote to numbers that have only bits above the width so far. At least 8 more
/// bytes follow.
fn split<const WIDTH: usize>(mut bytes: &[u8], numbers: &mut [[u64; 8]]) {
    for numbers in numbers {
        let own = &bytes[..WIDTH + 8];
        for (number, at) in numbers.iter_mut().zip((0..).step_by(WIDTH)) {
            let (byte, bit) = (at / 8, at % 8);
            let word = own[byte..].first_chunk();
            let mut word = word.map_or(0, |word| u64::from_le_bytes(*word)) >> bit;
            if bit + WIDTH > 64 {
                word |= u64::from(own[byte + 8]) << (64 - bit);
            }
            *number |= word & (u64::MAX >> (64 - WIDTH));
        }
        bytes = &bytes[WIDTH..];
    }
}

#[inline]
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[inline]
fn from_zigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// The base of values of this width that are as often negative.
fn around_zero(width: usize) -> i64 {
    i64::MIN.checked_shr(64 - width as u32).unwrap_or(0)
}

/// Bits for each value of a block, so that they and what is above them take least: if that is less
/// than `room`. There are `count` values, of which the largest has `most` bits.
fn best_width(
    eights: &[[u64; 8]],
    (count, most): (usize, usize),
    mut room: usize,
) -> Option<usize> {
    let mut counts = [0u8; 65];
    for values in eights {
        values
            .iter()
            .for_each(|&value| counts[zigzag(value as i64).leading_zeros() as usize] += 1);
    }
    let (mut best, mut more) = (None, 0);
    for width in (0..most).rev() {
        more += usize::from(counts[63 - width]);
        // A place, and a number of variable length.
        let all = count * width + 8 * more * (1 + (most - width).div_ceil(7));
        if all < room {
            (best, room) = (Some(width), all);
        }
    }
    best
}

/// Bits that a number needs.
#[inline]
fn bits(value: u64) -> usize {
    (u64::BITS - value.leading_zeros()) as usize
}

/// Bytes that a number needs, see [`Packer::number`]; or more than a word has.
#[inline]
fn length(value: u64) -> usize {
    bits(value | 1).div_ceil(7)
}

/// A message being read. Agents run the same program; truncated data is missing.
pub struct Unpacker<'a> {
    bytes: &'a [u8],
    keys: Vec<[u64; 2]>,
}

impl<'a> Unpacker<'a> {
    /// Begins at the first list.
    pub fn new(bytes: &'a [u8]) -> Self {
        Unpacker {
            bytes,
            keys: Vec::new(),
        }
    }

    /// The next list.
    pub fn list<T: Pack>(&mut self) -> Vec<T> {
        let count = self.number().unwrap_or(0);
        // Bounds the count: a block takes at least a byte.
        let most = self.bytes.len().saturating_mul(BLOCK);
        let count = count.min(most as u64) as usize;
        let mut entries = Vec::with_capacity(count);
        let mut before = T::default();
        while entries.len() < count {
            let begin = entries.len();
            entries.resize(count.min(begin + BLOCK), before);
            if T::take(&mut entries[begin..], |entry| entry, self).is_none() {
                entries.truncate(begin);
                break;
            }
            before = entries[entries.len() - 1];
        }
        entries
    }

    /// See [`Packer::number`].
    #[inline]
    fn number(&mut self) -> Option<u64> {
        let word = match self.bytes.first_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            None => self.last_word(),
        };
        let length = word.trailing_zeros() + 1;
        if length > size_of::<u64>() as u32 {
            self.bytes = self.bytes.get(1..)?;
            return self.word();
        }
        self.bytes = self.bytes.get(length as usize..)?;
        let above = u64::BITS - 8 * length;
        Some(word << above >> (above + length))
    }

    /// The rest of a message that is less than a word, padded with zeros.
    #[cold]
    fn last_word(&self) -> u64 {
        let bytes = self.bytes.iter().rev();
        bytes.fold(0, |word, &byte| word << 8 | u64::from(byte))
    }

    fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.bytes.split_first_chunk::<8>()?;
        self.bytes = rest;
        Some(u64::from_le_bytes(*word))
    }

    /// Reads the numbers of a block that [`Packer::values`] wrote. Returns what is added to each.
    fn values(&mut self, values: &mut [u64; BLOCK], count: usize) -> Option<u64> {
        if count <= SHORT {
            for value in &mut values[..count] {
                *value = from_zigzag(self.number()?) as u64;
            }
            return Some(0);
        }
        let head = self.byte()?;
        let kinds = [BASED, POSITIVE, EXCEEDED, AROUND];
        let kind = kinds.into_iter().find(|&kind| head >= kind)?;
        let width = usize::from(head - kind);
        let base = match kind {
            POSITIVE => 0,
            BASED => from_zigzag(self.number()?),
            _ => around_zero(width),
        };
        if kind == EXCEEDED {
            for _ in 0..self.byte()? {
                let at = self.byte()?;
                *values.get_mut(usize::from(at))? = (from_zigzag(self.number()?) << width) as u64;
            }
        }
        let bytes = self.bytes;
        let (own, rest) = bytes.split_at_checked((count * width).div_ceil(8))?;
        self.bytes = rest;
        let (eights, _) = values[..count.next_multiple_of(8)].as_chunks_mut();
        if bytes.len() >= eights.len() * width + 8 {
            of_width!(width, split(bytes, eights));
        } else {
            let mut copy = [0; BLOCK * 8 + 8];
            copy[..own.len()].copy_from_slice(own);
            of_width!(width, split(&copy, eights));
        }
        Some(base as u64)
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(byte)
    }
}

/// A type that messages consist of.
pub trait Pack: Copy + Default + PartialEq {
    /// Writes a field of a block's entries, given that of the entry before them. Returns whether
    /// one of them differs from it.
    fn put<T>(
        block: &[T],
        field: impl Fn(&T) -> Self + Copy,
        before: &Self,
        packer: &mut Packer,
    ) -> bool;
    /// Reads a field of a block's entries, which are as the one before them. `None` at the end of
    /// the message.
    fn take<T>(
        block: &mut [T],
        field: impl Fn(&mut T) -> &mut Self + Copy,
        unpacker: &mut Unpacker,
    ) -> Option<()>;
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl Pack for $integer {
            #[inline]
            fn put<T>(
                block: &[T],
                field: impl Fn(&T) -> Self + Copy,
                before: &Self,
                packer: &mut Packer,
            ) -> bool {
                if is_same(block, field, before) {
                    return packer.zeros(block.len());
                }
                let mut differences = [0; BLOCK];
                let (mut least, mut most) = (i64::MAX, i64::MIN);
                let mut before = *before as i64;
                for (difference, entry) in differences.iter_mut().zip(block) {
                    let value = field(entry) as i64;
                    let own = value.wrapping_sub(before);
                    before = value;
                    (least, most) = (least.min(own), most.max(own));
                    *difference = own as u64;
                }
                packer.values(&mut differences, block.len().min(BLOCK), (least, most));
                true
            }

            #[inline]
            fn take<T>(
                block: &mut [T],
                field: impl Fn(&mut T) -> &mut Self + Copy,
                unpacker: &mut Unpacker,
            ) -> Option<()> {
                let mut differences = [0; BLOCK];
                let base = unpacker.values(&mut differences, block.len())?;
                let mut value = *field(block.first_mut()?) as u64;
                let mut next = |entry: &mut T, difference: &u64| {
                    value = value.wrapping_add(*difference).wrapping_add(base);
                    *field(entry) = value as $integer;
                };
                let (differences, last_differences) = differences[..block.len()].as_chunks::<8>();
                let (entries, last_entries) = block.as_chunks_mut::<8>();
                for (entries, differences) in entries.iter_mut().zip(differences) {
                    entries.iter_mut().zip(differences).for_each(|(entry, own)| next(entry, own));
                }
                for (entry, difference) in last_entries.iter_mut().zip(last_differences) {
                    next(entry, difference);
                }
                Some(())
            }
        }
    )*};
}

/// Whether all entries of a block have the field of the entry before them, as most fields of most
/// blocks do.
#[inline]
fn is_same<T, F: PartialEq>(block: &[T], field: impl Fn(&T) -> F, before: &F) -> bool {
    let is_same = |entry: &T| field(entry) == *before;
    let (eights, rest) = block.as_chunks::<8>();
    eights.iter().all(|entries| entries.iter().all(is_same)) && rest.iter().all(is_same)
}

integers! { u8 u16 u32 i32 u64 i64 }

/// A hash. A hash that was written before is named by number, and the one before it by 0.
impl Pack for [u64; 2] {
    fn put<T>(
        block: &[T],
        field: impl Fn(&T) -> Self + Copy,
        before: &Self,
        packer: &mut Packer,
    ) -> bool {
        if is_same(block, field, before) {
            return packer.zeros(block.len());
        }
        let (mut values, mut new) = ([0; BLOCK], Vec::new());
        let (mut least, mut most) = (0, 0);
        let mut before = *before;
        for (value, entry) in values.iter_mut().zip(block) {
            let key = field(entry);
            if key == before {
                continue;
            }
            before = key;
            let next = packer.keys.len() as u64 + 1;
            let number = *packer.keys.entry(key).or_insert_with(|| {
                new.push(key);
                next
            });
            // The packer makes a zigzag of it.
            let own = from_zigzag(number);
            (least, most) = (least.min(own), most.max(own));
            *value = own as u64;
        }
        packer.values(&mut values, block.len().min(BLOCK), (least, most));
        for word in new.as_flattened() {
            packer.bytes.extend_from_slice(&word.to_le_bytes());
        }
        true
    }

    fn take<T>(
        block: &mut [T],
        field: impl Fn(&mut T) -> &mut Self + Copy,
        unpacker: &mut Unpacker,
    ) -> Option<()> {
        let mut values = [0; BLOCK];
        let base = unpacker.values(&mut values, block.len())?;
        let mut key = *field(block.first_mut()?);
        for (entry, value) in block.iter_mut().zip(&values) {
            let number = zigzag(value.wrapping_add(base) as i64);
            if let Some(at) = (number as usize).checked_sub(1) {
                if at == unpacker.keys.len() {
                    let new = [unpacker.word()?, unpacker.word()?];
                    unpacker.keys.push(new);
                }
                key = *unpacker.keys.get(at)?;
            }
            *field(entry) = key;
        }
        Some(())
    }
}

/// Any three numbers.
impl Pack for [u64; 3] {
    fn put<T>(
        block: &[T],
        field: impl Fn(&T) -> Self + Copy,
        before: &Self,
        packer: &mut Packer,
    ) -> bool {
        let numbers = before.iter().enumerate();
        numbers.fold(false, |differs, (at, before)| {
            u64::put(block, |entry| field(entry)[at], before, packer) || differs
        })
    }

    fn take<T>(
        block: &mut [T],
        field: impl Fn(&mut T) -> &mut Self + Copy,
        unpacker: &mut Unpacker,
    ) -> Option<()> {
        (0..3).try_for_each(|at| u64::take(block, |entry| &mut field(entry)[at], unpacker))
    }
}

impl<A: Pack + 'static, B: Pack + 'static> Pack for (A, B) {
    fn put<T>(
        block: &[T],
        field: impl Fn(&T) -> Self + Copy,
        before: &Self,
        packer: &mut Packer,
    ) -> bool {
        let differs = A::put(block, |entry| field(entry).0, &before.0, packer);
        B::put(block, |entry| field(entry).1, &before.1, packer) || differs
    }

    fn take<T>(
        block: &mut [T],
        field: impl Fn(&mut T) -> &mut Self + Copy,
        unpacker: &mut Unpacker,
    ) -> Option<()> {
        A::take(block, |entry| &mut field(entry).0, unpacker)?;
        B::take(block, |entry| &mut field(entry).1, unpacker)
    }
}

/// The mask of a block's fields, being written.
#[doc(hidden)]
pub struct Mask {
    at: usize,
    field: usize,
}

impl Mask {
    /// Leaves room for a mask of this many fields.
    pub fn reserve(packer: &mut Packer, fields: usize) -> Mask {
        let at = packer.bytes.len();
        packer.bytes.resize(at + fields.div_ceil(8), 0);
        Mask { at, field: 0 }
    }

    /// Writes the next field, unless it does not differ. Returns whether it does.
    #[inline]
    pub fn field(&mut self, packer: &mut Packer, put: impl FnOnce(&mut Packer) -> bool) -> bool {
        let begin = packer.bytes.len();
        let differs = put(packer);
        match differs {
            true => packer.bytes[self.at + self.field / 8] |= 1 << (self.field % 8),
            false => packer.bytes.truncate(begin),
        }
        self.field += 1;
        differs
    }
}

impl Unpacker<'_> {
    /// The mask of this many fields.
    #[doc(hidden)]
    pub fn mask(&mut self, fields: usize) -> Option<u64> {
        let (own, rest) = self.bytes.split_at_checked(fields.div_ceil(8))?;
        self.bytes = rest;
        let bytes = own.iter().rev();
        Some(bytes.fold(0, |mask, &byte| mask << 8 | u64::from(byte)))
    }
}

/// Structs that are sent as their differences from the one before.
macro_rules! entries {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }

        impl $name {
            const FIELDS: usize = [$(stringify!($field)),*].len();
        }

        impl Pack for $name {
            fn put<T>(
                block: &[T],
                field: impl Fn(&T) -> Self + Copy,
                before: &Self,
                packer: &mut Packer,
            ) -> bool {
                let mut mask = Mask::reserve(packer, Self::FIELDS);
                let mut differs = false;
                $(
                    differs |= mask.field(packer, |packer| {
                        Pack::put(block, |entry| field(entry).$field, &before.$field, packer)
                    });
                )*
                differs
            }

            fn take<T>(
                block: &mut [T],
                field: impl Fn(&mut T) -> &mut Self + Copy,
                unpacker: &mut Unpacker,
            ) -> Option<()> {
                let mut mask = unpacker.mask(Self::FIELDS)?;
                $(
                    if mask & 1 != 0 {
                        <$type>::take(block, |entry| &mut field(entry).$field, unpacker)?;
                    }
                    mask >>= 1;
                )*
                (mask == 0).then_some(())
            }
        }
    )*};
}
pub(crate) use entries;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    entries! {
        /// A struct with all kinds of fields.
        #[derive(Default)]
        Inner { a: u32, b: i64, key: [u64; 2], }
        /// A struct with another inside.
        #[derive(Default)]
        Outer { inner: Inner, c: u16, d: u64, e: i32, }
    }

    fn there_and_back<T: Pack>(entries: &[T]) -> (usize, Vec<T>) {
        let mut packer = Packer::default();
        packer.list(entries);
        let bytes = packer.finish();
        (bytes.len(), Unpacker::new(&bytes).list())
    }

    #[test]
    fn all_integers_come_back() {
        let extremes = [0, i64::MIN, i64::MAX, -1, 1, i64::MIN / 2, 63, 64, -65];
        assert_eq!(there_and_back(&extremes).1, extremes);
        let unsigned = [u64::MAX, 0, 1, u64::MAX - 1];
        assert_eq!(there_and_back(&unsigned).1, unsigned);
        let small = [u16::MAX, 0, 7];
        assert_eq!(there_and_back(&small).1, small);
        let signed = [i32::MIN, i32::MAX, -3];
        assert_eq!(there_and_back(&signed).1, signed);
    }

    #[test]
    fn what_repeats_takes_little() {
        let times: Vec<i64> = (0..1000).map(|n| (1 << 40) + n * 5_000).collect();
        let (size, back) = there_and_back(&times);
        assert_eq!(back, times);
        assert!(size <= 2 + 6 + 2 * 1000, "{size}");
        let entries: Vec<Inner> = (0..1000)
            .map(|n| Inner {
                a: 5,
                b: 0,
                key: [n % 3, 77],
            })
            .collect();
        let (size, back) = there_and_back(&entries);
        assert_eq!(back, entries);
        assert!(size <= 2 + 3 * 18 + 2 * 1000, "{size}");
    }

    #[test]
    fn steps_that_are_alike_take_what_they_differ_by() {
        // Steps of 20,000 and up to 511 more; and one time far away.
        let step = |n: i64| 20_000 + n * n * 37 % 512;
        let mut times: Vec<i64> = (0..1000).map(step).collect();
        times.iter_mut().fold(1 << 40, |sum, time| {
            *time += sum;
            *time
        });
        for far in [None, Some(500)] {
            if let Some(far) = far {
                times[far] = 0;
            }
            let (size, back) = there_and_back(&times);
            assert_eq!(back, times);
            assert!(size <= 1000 * 10 / 8 + 16 * 8 + 128, "{size}");
        }
    }

    fn inner() -> impl Strategy<Value = Inner> {
        let key = (0..3u64, 0..2u64);
        (any::<u32>(), any::<i64>(), key).prop_map(|(a, b, (x, y))| Inner { a, b, key: [x, y] })
    }

    fn outer() -> impl Strategy<Value = Outer> {
        let rest = (any::<u16>(), any::<u64>(), any::<i32>());
        (inner(), rest).prop_map(|(inner, (c, d, e))| Outer { inner, c, d, e })
    }

    /// Full blocks of numbers: most have few bits or are equally far from each other, and some are anywhere.
    fn numbers() -> impl Strategy<Value = Vec<i64>> {
        let any_numbers = prop::collection::vec(any::<i64>(), 1..300);
        let far = prop::collection::vec((any::<prop::sample::Index>(), any::<i64>()), 0..6);
        (any_numbers, 0..64u32, any::<bool>(), far).prop_map(|(mut numbers, less, is_sum, far)| {
            let mut sum = 0i64;
            for number in &mut numbers {
                sum = sum.wrapping_add(*number >> less);
                *number = if is_sum { sum } else { *number >> less };
            }
            for (at, far) in far {
                *at.get_mut(&mut numbers) = far;
            }
            numbers
        })
    }

    proptest! {
        #[test]
        fn numbers_come_back(numbers in numbers()) {
            let (size, back) = there_and_back(&numbers);
            prop_assert!(size <= 10 + 11 * numbers.len());
            prop_assert_eq!(back, &*numbers);
            let small: Vec<_> = numbers.iter().map(|&n| n as u16).collect();
            prop_assert_eq!(there_and_back(&small).1, small);
        }

        #[test]
        fn lists_come_back_as_they_went(
            one in prop::collection::vec(outer(), 0..200),
            two in prop::collection::vec(inner(), 0..20),
        ) {
            let mut packer = Packer::default();
            packer.list(&one);
            packer.list(&two);
            let bytes = packer.finish();
            let mut unpacker = Unpacker::new(&bytes);
            prop_assert_eq!(unpacker.list::<Outer>(), one);
            prop_assert_eq!(unpacker.list::<Inner>(), two);
            prop_assert!(unpacker.list::<Inner>().is_empty());
        }

        #[test]
        fn damaged_lists_are_read(
            numbers in numbers(),
            damaged in (any::<prop::sample::Index>(), any::<u8>()),
            kept in any::<prop::sample::Index>(),
        ) {
            let mut packer = Packer::default();
            packer.list(&numbers);
            let mut bytes = packer.finish();
            let (at, with) = (damaged.0.index(bytes.len()), damaged.1);
            bytes[at] = with;
            bytes.truncate(kept.index(bytes.len()) + 1);
            prop_assert!(Unpacker::new(&bytes).list::<i64>().len() <= BLOCK * bytes.len());
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..1500)) {
            let mut unpacker = Unpacker::new(&bytes);
            unpacker.list::<Outer>();
            unpacker.list::<i64>();
            unpacker.list::<Inner>();
        }
    }
}
