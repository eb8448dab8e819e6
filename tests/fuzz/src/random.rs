//! Random numbers for mutations: the same seed gives the same numbers.

/// A xorshift generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

/// Boundary values of readers' arithmetic.
const INTERESTING: [u64; 14] = [
    0,
    1,
    2,
    3,
    7,
    0xff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ff00,
    0xffff_ff06,
    0xffff_ffff,
    1 << 63,
    u64::MAX,
];

impl Random {
    /// A generator that depends only on `seed`.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `limit`, 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.any() >> 16) as usize % limit.max(1)
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A value for a field: small, at a border, near `old`, or any.
    pub fn value(&mut self, old: u64) -> u64 {
        match self.below(5) {
            0 => self.below(64) as u64,
            1 => INTERESTING[self.below(INTERESTING.len())],
            2 => old.wrapping_add(self.below(9) as u64).wrapping_sub(4),
            3 => old ^ 1 << self.below(64),
            _ => self.any(),
        }
    }

    /// Changes some bytes: the mutation for inputs without a known structure.
    pub fn scramble(&mut self, bytes: &mut Vec<u8>, limit: usize) {
        for _ in 0..1 + self.below(4) {
            let at = self.below(bytes.len());
            match self.below(6) {
                0 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
                1 if !bytes.is_empty() => bytes[at] = self.any() as u8,
                2 if bytes.len() < limit => bytes.insert(at, self.any() as u8),
                3 if !bytes.is_empty() => {
                    bytes.remove(at);
                }
                4 => bytes.truncate(self.below(bytes.len() + 1).max(bytes.len() / 2)),
                _ => {
                    let width = [1, 2, 4, 8][self.below(4)];
                    let at = at / width * width;
                    if let Some(field) = bytes.get_mut(at..at + width) {
                        set_field(field, self);
                    }
                }
            }
        }
    }
}

/// Gives a field of up to 8 bytes another value.
pub fn set_field(field: &mut [u8], random: &mut Random) {
    let mut word = [0; 8];
    word[..field.len()].copy_from_slice(field);
    let value = random.value(u64::from_le_bytes(word)).to_le_bytes();
    field.copy_from_slice(&value[..field.len()]);
}
