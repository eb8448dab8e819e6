//! Compact encoding of the messages between agents, and of what is kept in files.
//!
//! Successive entries of a message are alike: times of one channel, consecutive numbers, the same
//! few call paths. So a list is written in blocks of [`BLOCK`] entries, and a block field by field:
//! a mask of the fields that differ, then the differences from entry to entry (zigzag: small ones
//! are small numbers), each with as many bits. Where that takes less, a base is taken off each. What the few need
//! that do not fit follows (as in Zukowski, Heman, Nes, Boncz: Super-scalar RAM-CPU cache
//! compression, ICDE 2006). In short blocks each is an integer of variable length, see
//! [`Packer::number`]. A call path is written once in a message and then named by number.

use rustc_hash::FxHashMap;

/// Entries of a block.
const BLOCK: usize = 64;
/// Most entries of a block whose numbers have variable length.
const SHORT: usize = 3;
/// Numbers of up to this many bits all have room.
const SMALL: usize = 16;
/// Differences of up to this many bits have no base.
const PLAIN: usize = 8;
/// Marks a width that some numbers exceed.
const EXCEEDED: u8 = 1 << 7;
/// Added to a width: the numbers have a base, which follows.
const BASED: usize = 65;
/// Numbers of more bits have none.
const MOST_BASED: usize = 62;

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
        let length = bits(value | 1).div_ceil(7);
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

    /// Appends the differences of a block. Returns whether one is not zero.
    fn differences(&mut self, differences: &[i64]) -> bool {
        let (mut numbers, mut around) = ([0; BLOCK], [0; BLOCK]);
        let most = bits(zigzags(differences, 0, &mut numbers));
        let count = differences.len();
        if count > SHORT && most > PLAIN {
            let base = middle(differences);
            let less = bits(zigzags(differences, base, &mut around));
            let room = 8 * bits(zigzag(base) | 1).div_ceil(7);
            if less <= MOST_BASED && less * count + room < most * count {
                self.packed(&around[..count], Some(base));
                return true;
            }
        }
        self.numbers(&numbers[..count])
    }

    /// Appends the numbers of a block. Returns whether one is not zero.
    fn numbers(&mut self, numbers: &[u64]) -> bool {
        match numbers.len() <= SHORT {
            true => numbers.iter().for_each(|&number| self.number(number)),
            false => self.packed(numbers, None),
        }
        numbers.iter().any(|&number| number != 0)
    }

    /// Appends the numbers of a block that is not short, from which a `base` was taken off.
    fn packed(&mut self, numbers: &[u64], base: Option<i64>) {
        let all = numbers.iter().fold(0, |all, number| all | number);
        let width = width(numbers, bits(all));
        let exceeded = u64::MAX.checked_shl(width as u32).unwrap_or(0);
        let marked = if all & exceeded == 0 { 0 } else { EXCEEDED };
        let based = if base.is_some() { BASED } else { 0 };
        self.bytes.push((width + based) as u8 | marked);
        if let Some(base) = base {
            self.number(zigzag(base));
        }
        if all == 0 {
            return;
        }
        // No room is looked for word by word.
        let (mut words, mut count) = ([[0; 8]; BLOCK], 0);
        let (mut word, mut filled) = (0, 0);
        for &number in numbers {
            let number = number & !exceeded;
            word |= number << filled;
            filled += width;
            if filled >= 64 {
                words[count] = word.to_le_bytes();
                count += 1;
                filled -= 64;
                // The rest of this number.
                word = match filled {
                    0 => 0,
                    _ => number >> (width - filled),
                };
            }
        }
        self.bytes.extend_from_slice(words[..count].as_flattened());
        self.word(word, filled.div_ceil(8));
        if marked != 0 {
            let more = numbers.iter().filter(|&number| number & exceeded != 0);
            self.bytes.push(more.count() as u8);
            for (at, number) in (0..).zip(numbers) {
                if number & exceeded != 0 {
                    self.bytes.push(at);
                    self.number(number >> width);
                }
            }
        }
    }
}

/// Differences as numbers that are small if they are near the base. Returns all their bits.
#[inline]
fn zigzags(differences: &[i64], base: i64, numbers: &mut [u64; BLOCK]) -> u64 {
    let mut all = 0;
    for (number, difference) in numbers.iter_mut().zip(differences) {
        *number = zigzag(difference.wrapping_sub(base));
        all |= *number;
    }
    all
}

#[inline]
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[inline]
fn from_zigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// A value that about half of the differences exceed.
fn middle(differences: &[i64]) -> i64 {
    let last = differences.len() - 1;
    let mut some = [1, last / 4, last / 2, last / 4 * 3, last].map(|at| differences[at.min(last)]);
    some.sort_unstable();
    some[2]
}

/// Bits for each number of a block, of which the largest needs `most`, so that they take least.
fn width(numbers: &[u64], most: usize) -> usize {
    if most <= SMALL {
        return most;
    }
    let mut counts = [0; 65];
    numbers.iter().for_each(|&number| counts[bits(number)] += 1);
    let (mut best, mut least) = (most, numbers.len() * most);
    let mut more = 0;
    for width in (0..most).rev() {
        more += counts[width + 1];
        // A place, and a number of variable length.
        let all = numbers.len() * width + 8 * more * (1 + (most - width).div_ceil(7));
        if all < least {
            (best, least) = (width, all);
        }
    }
    best
}

/// Bits that a number needs.
#[inline]
fn bits(value: u64) -> usize {
    (u64::BITS - value.leading_zeros()) as usize
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

    /// Reads as many numbers as [`Packer::numbers`] wrote; each is given with the base.
    #[inline]
    fn numbers(&mut self, count: usize, mut take: impl FnMut(usize, u64, i64)) -> Option<()> {
        if count <= SHORT {
            for at in 0..count {
                take(at, self.number()?, 0);
            }
            return Some(());
        }
        let (&head, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        let mut width = usize::from(head & !EXCEEDED);
        let mut base = 0;
        if let Some(own) = width.checked_sub(BASED) {
            (width, base) = (own, from_zigzag(self.number()?));
        }
        let rest = self.bytes;
        let length = (count * width).div_ceil(8);
        self.bytes = rest.get(length..)?;
        let mut more = [0; BLOCK];
        if head & EXCEEDED != 0 {
            let (&exceeding, places) = self.bytes.split_first()?;
            self.bytes = places;
            for _ in 0..exceeding {
                let (&at, number) = self.bytes.split_first()?;
                self.bytes = number;
                let number = self.number()?;
                *more.get_mut(usize::from(at))? = number.checked_shl(width as u32).unwrap_or(0);
            }
        }
        // Two words are read from where a number begins.
        let mut copy = [0; BLOCK * 8 + 16];
        let words = match rest.get(..length + 16) {
            Some(words) => words,
            None => {
                copy.get_mut(..length)?.copy_from_slice(&rest[..length]);
                &copy
            }
        };
        let low = !u64::MAX.checked_shl(width as u32).unwrap_or(0);
        let word = |at: usize| {
            words[at..]
                .first_chunk()
                .map_or(0, |word| u64::from_le_bytes(*word))
        };
        for (at, more) in (0..count).zip(more) {
            let (byte, bit) = (at * width / 8, at * width % 8);
            let mut number = word(byte) >> bit;
            if width > 56 {
                number |= (word(byte + 8) << 1) << (63 - bit);
            }
            take(at, number & low | more, base);
        }
        Some(())
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
                let mut differences = [0; BLOCK];
                let mut before = *before as i64;
                for (difference, entry) in differences.iter_mut().zip(block) {
                    let value = field(entry) as i64;
                    *difference = value.wrapping_sub(before);
                    before = value;
                }
                packer.differences(&differences[..block.len().min(BLOCK)])
            }

            #[inline]
            fn take<T>(
                block: &mut [T],
                field: impl Fn(&mut T) -> &mut Self + Copy,
                unpacker: &mut Unpacker,
            ) -> Option<()> {
                let mut value = *field(block.first_mut()?) as i64;
                unpacker.numbers(block.len(), |at, number, base| {
                    value = value.wrapping_add(from_zigzag(number)).wrapping_add(base);
                    *field(&mut block[at]) = value as $integer;
                })
            }
        }
    )*};
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
        let (mut numbers, mut new) = ([0; BLOCK], Vec::new());
        let mut before = *before;
        for (number, entry) in numbers.iter_mut().zip(block) {
            let key = field(entry);
            if key == before {
                continue;
            }
            before = key;
            let next = packer.keys.len() as u64 + 1;
            *number = *packer.keys.entry(key).or_insert_with(|| {
                new.push(key);
                next
            });
        }
        let differs = packer.numbers(&numbers[..block.len().min(BLOCK)]);
        for word in new.as_flattened() {
            packer.bytes.extend_from_slice(&word.to_le_bytes());
        }
        differs
    }

    fn take<T>(
        block: &mut [T],
        field: impl Fn(&mut T) -> &mut Self + Copy,
        unpacker: &mut Unpacker,
    ) -> Option<()> {
        let mut numbers = [0; BLOCK];
        unpacker.numbers(block.len(), |at, number, _| numbers[at] = number)?;
        let mut key = *field(block.first_mut()?);
        for (entry, number) in block.iter_mut().zip(numbers) {
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
                    // Most fields of most blocks.
                    let is_same = |entry: &T| field(entry).$field == before.$field;
                    let is_same = block.iter().all(is_same);
                    differs |= mask.field(packer, |packer| {
                        !is_same
                            && Pack::put(block, |entry| field(entry).$field, &before.$field, packer)
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

    proptest! {
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
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut unpacker = Unpacker::new(&bytes);
            unpacker.list::<Outer>();
            unpacker.list::<i64>();
            unpacker.list::<Inner>();
        }
    }
}
