//! Rows by slabs of time, in a file without a name where they outgrow memory.
//!
//! Numbers are stored as the difference from the row before in the same slab, in as many bytes as
//! that needs: 4 to 12 bytes for a row.

use anyhow::{Result, bail};
use laggard_engine::events::{Piece, Spill};

/// Numbers.
pub type Row = [u64; 5];

/// Bytes that are kept in memory before all are written.
const KEPT: usize = 4 << 20;

/// Rows by slab.
#[derive(Default)]
pub struct Slabs {
    /// The ends of all slabs but the last, ns.
    borders: Vec<i64>,
    slabs: Vec<Slab>,
    /// Where the last row went: most follow each other in time.
    last: usize,
    kept: usize,
    spill: Spill,
}

#[derive(Default)]
struct Slab {
    recent: Vec<u8>,
    pieces: Vec<Piece>,
    last: Row,
}

impl Slabs {
    /// `borders` are the ends of all slabs but the last, ns.
    pub fn new(borders: &[i64]) -> Slabs {
        Slabs {
            borders: borders.to_vec(),
            slabs: (0..=borders.len()).map(|_| Slab::default()).collect(),
            ..Slabs::default()
        }
    }

    /// Slabs with the same borders, and no rows.
    pub fn empty(&self) -> Slabs {
        Slabs::new(&self.borders)
    }

    /// The ends of all slabs, ns.
    pub fn ends(&self) -> Vec<i64> {
        self.borders.iter().copied().chain([i64::MAX]).collect()
    }

    /// Adds a row to the slab of this time, ns.
    pub fn put(&mut self, time: i64, row: Row) {
        if !self.holds(self.last, time) {
            self.last = self.borders.partition_point(|&border| border <= time);
        }
        let slab = &mut self.slabs[self.last];
        let before = slab.recent.len();
        for (&number, last) in row.iter().zip(&mut slab.last) {
            let difference = number.wrapping_sub(std::mem::replace(last, number)) as i64;
            let mut rest = (difference << 1 ^ difference >> 63) as u64;
            while rest >= 0x80 {
                slab.recent.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            slab.recent.push(rest as u8);
        }
        self.kept += slab.recent.len() - before;
        if self.kept < KEPT {
            return;
        }
        self.kept = 0;
        for slab in &mut self.slabs {
            if !slab.recent.is_empty() {
                slab.pieces.push(self.spill.put(&slab.recent));
                slab.recent = Vec::new();
            }
        }
    }

    fn holds(&self, slab: usize, time: i64) -> bool {
        let begin = slab.checked_sub(1).map(|before| self.borders[before]);
        let end = self.borders.get(slab);
        begin.is_none_or(|begin| begin <= time) && end.is_none_or(|&end| time < end)
    }

    /// Goes over the rows of a slab, in the order in which they came.
    ///
    /// # Errors
    /// The temporary file cannot be written or read.
    pub fn read(&mut self, slab: usize, mut visit: impl FnMut(Row)) -> Result<()> {
        let slab = &self.slabs[slab];
        let mut row = Row::default();
        for &piece in &slab.pieces {
            decode(&self.spill.get(piece), &mut row, &mut visit);
        }
        decode(&slab.recent, &mut row, &mut visit);
        if let Some(error) = self.spill.error.take() {
            bail!("no room for temporary files ({error}): set TMPDIR to a directory with more");
        }
        Ok(())
    }
}

/// Whole rows, each as differences from the one before.
fn decode(bytes: &[u8], row: &mut Row, visit: &mut impl FnMut(Row)) {
    let (mut number, mut shift, mut at) = (0u64, 0, 0);
    for &byte in bytes {
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            let difference = (number >> 1) as i64 ^ -((number & 1) as i64);
            row[at] = row[at].wrapping_add(difference as u64);
            (number, shift, at) = (0, 0, at + 1);
            if at == row.len() {
                at = 0;
                visit(*row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_by_slab() {
        let mut slabs = Slabs::new(&[10, 20]);
        let count = KEPT as u64 / 8;
        let row = |n: u64| [n, u64::MAX - n, n << 40, 7, n * n];
        for n in 0..count {
            slabs.put((n % 30) as i64, row(n));
        }
        assert!(slabs.slabs.iter().all(|slab| !slab.pieces.is_empty()));
        for slab in 0..3 {
            for _ in 0..2 {
                let mut rows = Vec::new();
                slabs.read(slab as usize, |row| rows.push(row)).unwrap();
                let numbers = (0..count).filter(|n| n % 30 / 10 == slab);
                assert!(rows.into_iter().eq(numbers.map(row)));
            }
        }
    }
}
