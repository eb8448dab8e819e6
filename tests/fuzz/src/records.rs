//! Inputs of fixed-size records, and mutations that keep them records.

use crate::random::{Random, set_field};

/// Bytes of a record.
pub const SIZE: usize = 12;

/// A record. Its meaning is up to its reader.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Its kind.
    pub kind: u8,
    /// Its place.
    pub at: u8,
    /// Time since the previous record.
    pub delta: i16,
    /// A number.
    pub x: u16,
    /// Another one.
    pub y: u16,
    /// A larger one.
    pub z: u32,
}

/// The records of an input, without an incomplete last one.
pub fn records(bytes: &[u8]) -> impl Iterator<Item = Record> {
    bytes.chunks_exact(SIZE).map(|r| Record {
        kind: r[0],
        at: r[1],
        delta: i16::from_le_bytes([r[2], r[3]]),
        x: u16::from_le_bytes([r[4], r[5]]),
        y: u16::from_le_bytes([r[6], r[7]]),
        z: u32::from_le_bytes([r[8], r[9], r[10], r[11]]),
    })
}

/// Start and length of each field.
const FIELDS: [(usize, usize); 6] = [(0, 1), (1, 2), (2, 4), (4, 6), (6, 8), (8, 12)];

/// Removes, repeats, moves and changes records.
pub fn mutate(input: &[u8], random: &mut Random) -> Vec<u8> {
    let mut all: Vec<[u8; SIZE]> = input
        .chunks_exact(SIZE)
        .map(|record| record.try_into().expect("a record"))
        .collect();
    for _ in 0..1 + random.below(4) {
        let (at, other) = (random.below(all.len()), random.below(all.len()));
        let few = at..(at + 1 + random.below(6)).min(all.len());
        match random.below(8) {
            0 if !all.is_empty() => drop(all.drain(few)),
            1 if !all.is_empty() => all.swap(at, other),
            2 if !all.is_empty() => {
                let copy = all[few].to_vec();
                all.splice(other..other, copy);
            }
            3 => {
                let mut new = [0; SIZE];
                // Small numbers are valid references.
                new.iter_mut()
                    .step_by(2)
                    .for_each(|byte| *byte = random.below(32) as u8);
                all.insert(at, new);
            }
            _ if !all.is_empty() => {
                let (from, to) = FIELDS[random.below(FIELDS.len())];
                set_field(&mut all[at][from..to], random);
            }
            _ => {}
        }
    }
    all.concat()
}
