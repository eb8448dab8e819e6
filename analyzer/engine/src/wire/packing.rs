//! Compact encoding of the messages between agents.
//!
//! Successive entries of a message are alike: times of one channel, consecutive numbers, the same
//! few call paths. So an entry is written as its differences from the one before it: a mask of its
//! fields, then the differences as integers of variable length (zigzag, then seven bits in each
//! byte, see [`Packer::number`]). A call path is written once in a message and then named by
//! number.

use rustc_hash::FxHashMap;

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

    pub fn list<T: Pack>(&mut self, entries: &[T]) {
        self.number(entries.len() as u64);
        let first = T::default();
        let mut before = &first;
        for entry in entries {
            entry.put(before, self);
            before = entry;
        }
    }

    /// Appends a number: one zero bit for each byte after the first one, a one, then the number,
    /// from the lowest bit on. So any length is in one word. A number that needs more than a word
    /// is a byte of zeros and the number.
    #[inline]
    fn number(&mut self, value: u64) {
        let bits = u64::BITS - (value | 1).leading_zeros();
        let length = bits.div_ceil(7);
        if length > size_of::<u64>() as u32 {
            self.bytes.push(0);
            self.bytes.extend_from_slice(&value.to_le_bytes());
            return;
        }
        let word = (value << 1 | 1) << (length - 1);
        let end = self.bytes.len() + length as usize;
        self.bytes.extend_from_slice(&word.to_le_bytes());
        self.bytes.truncate(end);
    }
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
        // Bounds the count: an entry takes at least a byte.
        let count = count.min(self.bytes.len() as u64) as usize;
        let mut entries = Vec::with_capacity(count);
        let mut entry = T::default();
        for _ in 0..count {
            if entry.take(self).is_none() {
                break;
            }
            entries.push(entry);
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
}

/// A type that messages consist of.
pub trait Pack: Copy + Default + PartialEq {
    /// Writes the value, given the one before it.
    fn put(&self, before: &Self, packer: &mut Packer);
    /// Reads the next value of the message in place; `None` at its end.
    fn take(&mut self, unpacker: &mut Unpacker) -> Option<()>;
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl Pack for $integer {
            #[inline]
            fn put(&self, before: &Self, packer: &mut Packer) {
                let difference = (*self as i64).wrapping_sub(*before as i64);
                packer.number(((difference << 1) ^ (difference >> 63)) as u64);
            }

            #[inline]
            fn take(&mut self, unpacker: &mut Unpacker) -> Option<()> {
                let zigzag = unpacker.number()?;
                let difference = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
                *self = (*self as i64).wrapping_add(difference) as $integer;
                Some(())
            }
        }
    )*};
}

integers! { u16 u32 i32 u64 i64 }

/// A hash. A hash that was written before is named by number.
impl Pack for [u64; 2] {
    fn put(&self, _before: &Self, packer: &mut Packer) {
        let next = packer.keys.len() as u64 + 1;
        match packer.keys.get(self) {
            Some(&key) => packer.number(key),
            None => {
                packer.number(0);
                for word in self {
                    packer.bytes.extend_from_slice(&word.to_le_bytes());
                }
                packer.keys.insert(*self, next);
            }
        }
    }

    fn take(&mut self, unpacker: &mut Unpacker) -> Option<()> {
        *self = match unpacker.number()? {
            0 => {
                let key = [unpacker.word()?, unpacker.word()?];
                unpacker.keys.push(key);
                key
            }
            key => *unpacker.keys.get(key as usize - 1)?,
        };
        Some(())
    }
}

/// Any three numbers.
impl Pack for [u64; 3] {
    fn put(&self, before: &Self, packer: &mut Packer) {
        for (number, before) in self.iter().zip(before) {
            number.put(before, packer);
        }
    }

    fn take(&mut self, unpacker: &mut Unpacker) -> Option<()> {
        self.iter_mut().try_for_each(|number| number.take(unpacker))
    }
}

/// Mask of a struct's fields.
#[doc(hidden)]
pub fn put_mask(mask: u32, packer: &mut Packer) {
    packer.number(u64::from(mask));
}

/// See [`put_mask`].
#[doc(hidden)]
pub fn take_mask(unpacker: &mut Unpacker) -> Option<u64> {
    unpacker.number()
}

/// Structs that are sent as their differences from the one before.
macro_rules! entries {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }

        impl Pack for $name {
            fn put(&self, before: &Self, packer: &mut Packer) {
                let differs = [$(self.$field != before.$field),*];
                let mask = (0..).zip(differs).fold(0, |mask, (bit, differs)| {
                    mask | u32::from(differs) << bit
                });
                put_mask(mask, packer);
                $(if self.$field != before.$field {
                    self.$field.put(&before.$field, packer);
                })*
            }

            fn take(&mut self, unpacker: &mut Unpacker) -> Option<()> {
                let mut mask = take_mask(unpacker)?;
                $(
                    if mask & 1 != 0 {
                        self.$field.take(unpacker)?;
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
            one in prop::collection::vec(outer(), 0..20),
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
