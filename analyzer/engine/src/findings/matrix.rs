//! Who sends whom, and who waits for whom, as a matrix of bounded size: in large runs successive
//! ranks share its rows.

use std::collections::BTreeMap;

use laggard_comm::Filter;
use laggard_report::{MatrixCell, RankMatrix, seconds};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::findings::pairs;

/// Most cells that are not empty.
const CELLS: usize = 4096;

/// Waiting by the rank that waits and the one that it waits for, ns.
pub type Waits = FxHashMap<(u32, u32), u64>;

/// What ranks sent to others, and how long they waited for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Cell {
    sent: pairs::Sent,
    /// ns.
    waiting: u64,
}

/// The cells that are not empty. Which ranks share a row follows from all of them, whoever adds them
/// up: rows grow only as long as there are too many cells, and those of a part are some of all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matrix {
    /// 2^grown ranks share a row.
    grown: u32,
    cells: BTreeMap<(u32, u32), Cell>,
}

impl Matrix {
    /// The matrix of an agent's ranks.
    pub fn new(sent: &pairs::Own, waits: &Waits) -> Matrix {
        let mut matrix = Matrix::default();
        for (&pair, &sent) in sent {
            pairs::add(&mut matrix.cells.entry(pair).or_default().sent, sent);
        }
        for (&pair, &waiting) in waits {
            let sum = &mut matrix.cells.entry(pair).or_default().waiting;
            *sum = sum.saturating_add(waiting);
        }
        matrix.fit();
        matrix
    }

    fn fit(&mut self) {
        while self.cells.len() > CELLS {
            self.grow(self.grown + 1);
        }
    }

    fn grow(&mut self, grown: u32) {
        let more = grown - self.grown;
        if more > 0 {
            for ((from, to), cell) in std::mem::take(&mut self.cells) {
                let sum = self.cells.entry((from >> more, to >> more)).or_default();
                sum.add(cell);
            }
            self.grown = grown;
        }
    }

    /// As the report has it, if there is anything.
    pub fn told(self) -> Option<RankMatrix> {
        let cell = |((from, to), cell): ((u32, u32), Cell)| MatrixCell {
            from: from << self.grown,
            to: to << self.grown,
            messages: cell.sent.0,
            bytes: cell.sent.1,
            waiting_s: seconds(cell.waiting),
        };
        (!self.cells.is_empty()).then(|| RankMatrix {
            ranks_per_cell: 1 << self.grown,
            cells: self.cells.into_iter().map(cell).collect(),
        })
    }
}

impl Filter for Matrix {
    fn merge(&mut self, mut other: Matrix) {
        let grown = self.grown.max(other.grown);
        self.grow(grown);
        other.grow(grown);
        for (pair, cell) in other.cells {
            self.cells.entry(pair).or_default().add(cell);
        }
        self.fit();
    }
}

impl Cell {
    fn add(&mut self, other: Cell) {
        pairs::add(&mut self.sent, other.sent);
        self.waiting = self.waiting.saturating_add(other.waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each rank sends to its four neighbours in a grid, and waits for all.
    fn grid(ranks: std::ops::Range<u32>, all: u32) -> Matrix {
        let mut sent = pairs::Own::default();
        let mut waits = Waits::default();
        for rank in ranks {
            for step in [1, 64, all - 1, all - 64] {
                sent.insert((rank, (rank + step) % all), (3, 24));
            }
            waits.insert((rank, 0), 7);
        }
        Matrix::new(&sent, &waits)
    }

    #[test]
    fn rows_do_not_depend_on_who_adds_them() {
        let all = 4096;
        let whole = grid(0..all, all).told().unwrap();
        assert!(whole.cells.len() <= CELLS);
        assert_eq!(whole.ranks_per_cell, 8);
        let sum = |of: fn(&MatrixCell) -> u64| whole.cells.iter().map(of).sum::<u64>();
        assert_eq!(sum(|cell| cell.messages), 4 * 3 * 4096);
        assert_eq!(sum(|cell| cell.bytes), 4 * 24 * 4096);
        for border in [1, 100, 4000] {
            let mut parts = grid(border..all, all);
            parts.merge(grid(0..border, all));
            assert_eq!(parts.told().unwrap(), whole, "{border}");
        }
        // Few enough are each by themselves.
        assert_eq!(grid(0..64, 64).told().unwrap().ranks_per_cell, 1);
        assert_eq!(Matrix::default().told(), None);
    }
}
