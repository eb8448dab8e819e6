//! Transposes of a three-dimensional Fourier transform on a grid of ranks.

use std::collections::VecDeque;

use laggard_trace::calls::number;

use super::super::op::{Among, Op};
use super::super::site::{FIRST, SPLIT_COLUMNS, SPLIT_ROWS, Site};
use super::{Script, Shape, collective};

/// Transform, exchange with the row, transform, exchange with the column.
pub struct Transpose(pub Shape);

impl Script for Transpose {
    fn sites(&self) -> &'static [Site] {
        const fn at(frames: &'static [(&'static str, u32)]) -> Site {
            Site {
                operation: number::MPI_Alltoall,
                file: "fft.c",
                frames,
            }
        }
        const SITES: [Site; 2] = [
            at(&[("transpose", 48), ("forward", 61), ("main", 33)]),
            at(&[("transpose", 48), ("forward", 64), ("main", 33)]),
        ];
        &SITES
    }

    fn begin(&self, _: u32, ops: &mut VecDeque<Op>) {
        ops.push_back(Op::Split(SPLIT_ROWS, Among::Row));
        ops.push_back(Op::Split(SPLIT_COLUMNS, Among::Column));
    }

    fn step(&self, _: u32, _: u64, _: i32, ops: &mut VecDeque<Op>) -> bool {
        for (site, among) in [(FIRST, Among::Row), (FIRST + 1, Among::Column)] {
            ops.push_back(Op::Compute(self.0.computation / 2));
            ops.push_back(collective(site, among, self.0.bytes));
        }
        true
    }
}
