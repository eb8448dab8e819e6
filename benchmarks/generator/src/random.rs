//! Pseudo-random numbers, the same in every run.

/// An xorshift generator with multiplied output (Vigna, "An experimental exploration of
/// Marsaglia's xorshift generators, scrambled").
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Any seed will do.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A generator for one part of a simulation with `seed`; parts differ from the first number on.
    pub fn part(seed: u64, part: u64) -> Random {
        let mut mixed = Random::new(seed ^ part.wrapping_mul(0xd6e8_feb8_6659_fd93));
        // The first numbers of similar seeds are correlated.
        (0..4).for_each(|_| {
            mixed.next();
        });
        Random::new(mixed.next())
    }

    /// 64 bits.
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`, which is small against 2³².
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((self.next() >> 32) * bound) >> 32
    }

    /// A number from 0 to `most`, however large.
    pub fn up_to(&mut self, most: u64) -> u64 {
        ((u128::from(self.next()) * (u128::from(most) + 1)) >> 64) as u64
    }
}
