//! Rows by slabs of time, in a file without a name where they outgrow memory.

use anyhow::{Result, bail};
use laggard_engine::events::{Piece, Spill};

/// Numbers.
pub type Row = [u64; 5];
const BYTES: usize = size_of::<Row>();

/// Rows that are kept in memory before all are written.
const KEPT: usize = 1 << 17;

/// Rows by slab.
#[derive(Default)]
pub struct Slabs {
    /// The ends of all slabs but the last, ns.
    borders: Vec<i64>,
    slabs: Vec<(Vec<Row>, Vec<Piece>)>,
    kept: usize,
    spill: Spill,
}

impl Slabs {
    /// `borders` are the ends of all slabs but the last, ns.
    pub fn new(borders: &[i64]) -> Slabs {
        Slabs {
            borders: borders.to_vec(),
            slabs: borders
                .iter()
                .map(|_| Default::default())
                .chain([Default::default()])
                .collect(),
            ..Slabs::default()
        }
    }

    /// The ends of all slabs, ns.
    pub fn ends(&self) -> Vec<i64> {
        self.borders.iter().copied().chain([i64::MAX]).collect()
    }

    /// Adds a row to the slab of this time, ns.
    pub fn put(&mut self, time: i64, row: Row) {
        let at = self.borders.partition_point(|&border| border <= time);
        self.slabs[at].0.push(row);
        self.kept += 1;
        if self.kept < KEPT {
            return;
        }
        self.kept = 0;
        for (rows, pieces) in &mut self.slabs {
            if !rows.is_empty() {
                let bytes: Vec<u8> = rows
                    .iter()
                    .flatten()
                    .flat_map(|n| n.to_le_bytes())
                    .collect();
                pieces.push(self.spill.put(&bytes));
                *rows = Vec::new();
            }
        }
    }

    /// The rows of a slab.
    ///
    /// # Errors
    /// The temporary file cannot be written or read.
    pub fn take(&mut self, slab: usize) -> Result<Vec<Row>> {
        let (kept, pieces) = std::mem::take(&mut self.slabs[slab]);
        let mut rows = Vec::new();
        for piece in pieces {
            let bytes = self.spill.get(piece);
            rows.extend(bytes.chunks_exact(BYTES).map(row));
        }
        rows.extend(kept);
        if let Some(error) = self.spill.error.take() {
            bail!("no room for temporary files ({error}): set TMPDIR to a directory with more");
        }
        Ok(rows)
    }
}

fn row(bytes: &[u8]) -> Row {
    let mut row = Row::default();
    for (number, bytes) in row.iter_mut().zip(bytes.chunks_exact(8)) {
        *number = bytes
            .iter()
            .rev()
            .fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_by_slab() {
        let mut slabs = Slabs::new(&[10, 20]);
        let count = 3 * KEPT as u64 / 2;
        for n in 0..count {
            slabs.put((n % 30) as i64, [n, u64::MAX - n, n << 40, 7, n]);
        }
        for slab in 0..3 {
            let rows = slabs.take(slab as usize).unwrap();
            let numbers = (0..count).filter(|n| n % 30 / 10 == slab);
            assert!(
                rows.into_iter()
                    .eq(numbers.map(|n| [n, u64::MAX - n, n << 40, 7, n]))
            );
        }
    }
}
