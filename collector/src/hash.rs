//! Two hashes: a fast one for tables of this process, and one that gives equal identities on
//! all ranks.

use std::hash::{BuildHasherDefault, Hasher};

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Multiplies and rotates; for keys that no attacker chooses.
#[derive(Clone, Copy, Default)]
pub struct FastHasher(u64);

impl FastHasher {
    #[inline]
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(MULTIPLIER);
    }
}

impl Hasher for FastHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }
    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.add(u64::from(value));
    }
    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }
    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.add(value as u64);
    }
}

/// Builds [`FastHasher`]s.
pub type BuildFast = BuildHasherDefault<FastHasher>;
pub type FastMap<K, V> = std::collections::HashMap<K, V, BuildFast>;
pub type FastSet<K> = std::collections::HashSet<K, BuildFast>;

/// An identity made of numbers; equal numbers give equal identities on all ranks.
#[derive(Clone, Copy)]
pub struct Identity(u64);

impl Identity {
    /// Starts with a domain, so that objects of different kinds get different identities.
    pub fn new(domain: u64) -> Self {
        Identity(0).with(domain)
    }

    /// Adds a number.
    #[must_use]
    pub fn with(self, word: u64) -> Self {
        // The finaliser of MurmurHash3 over a running sum: every bit of every word
        // reaches every bit of the result.
        let mut h = (self.0 ^ word).wrapping_add(MULTIPLIER);
        h = (h ^ h >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        h = (h ^ h >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        Identity(h ^ h >> 33)
    }

    /// Adds ranks, preceded by their number.
    #[must_use]
    pub fn with_ranks(self, ranks: &[i32]) -> Self {
        let counted = self.with(ranks.len() as u64);
        ranks
            .iter()
            .fold(counted, |identity, &rank| identity.with(rank as u32 as u64))
    }

    /// Adds text.
    #[must_use]
    pub fn with_bytes(self, bytes: &[u8]) -> Self {
        let counted = self.with(bytes.len() as u64);
        bytes
            .iter()
            .fold(counted, |identity, &byte| identity.with(u64::from(byte)))
    }

    /// The identity; small numbers are reserved for predefined objects.
    pub fn id(self) -> u64 {
        match self.0 {
            small if small < 1 << 32 => small | 1 << 63,
            id => id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_depend_on_every_number_and_their_order() {
        let a = Identity::new(1).with(2).with_ranks(&[0, 1, 2]).id();
        assert_eq!(a, Identity::new(1).with(2).with_ranks(&[0, 1, 2]).id());
        assert_ne!(a, Identity::new(1).with(2).with_ranks(&[0, 2, 1]).id());
        assert_ne!(a, Identity::new(2).with(2).with_ranks(&[0, 1, 2]).id());
        assert_ne!(a, Identity::new(1).with(3).with_ranks(&[0, 1, 2]).id());
        assert_ne!(
            Identity::new(1).with_ranks(&[1]).with_ranks(&[]).id(),
            Identity::new(1).with_ranks(&[]).with_ranks(&[1]).id()
        );
    }

    #[test]
    fn identities_are_never_small() {
        assert!((0..100_000).all(|n| Identity::new(n).id() >= 1 << 32));
    }
}
