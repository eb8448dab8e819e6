//! Data that flows from rank to rank; each rank begins when its data is there.

use std::collections::VecDeque;

use laggard_trace::calls::number;

use super::super::op::{Half, Op};
use super::super::site::{FIRST, Site, SiteId};
use super::{Script, Shape};

impl Shape {
    /// Receives from the previous rank in each dimension, computes, and sends to the next ones.
    /// Places: the receives, then the sends.
    fn pass_on(&self, rank: u32, ops: &mut VecDeque<Op>) {
        let dimensions = self.grid.sizes().len();
        for dimension in 0..dimensions {
            if let Some(from) = self.grid.neighbour(rank, dimension, false) {
                let half = Half::new(from, dimension as i32, self.bytes);
                ops.push_back(Op::Recv(FIRST + dimension as SiteId, half));
            }
        }
        ops.push_back(Op::Compute(self.computation));
        for dimension in 0..dimensions {
            if let Some(to) = self.grid.neighbour(rank, dimension, true) {
                let half = Half::new(to, dimension as i32, self.bytes);
                let site = FIRST + (dimensions + dimension) as SiteId;
                ops.push_back(Op::Send(site, half));
            }
        }
    }
}

/// Two dimensions.
pub struct Wavefront(pub Shape);

impl Script for Wavefront {
    fn sites(&self) -> &'static [Site] {
        const fn at(operation: u16, frames: &'static [(&'static str, u32)]) -> Site {
            Site {
                operation,
                file: "sweep.c",
                frames,
            }
        }
        const SITES: [Site; 4] = [
            at(number::MPI_Recv, &[("sweep", 30), ("main", 52)]),
            at(number::MPI_Recv, &[("sweep", 32), ("main", 52)]),
            at(number::MPI_Send, &[("sweep", 38), ("main", 52)]),
            at(number::MPI_Send, &[("sweep", 40), ("main", 52)]),
        ];
        &SITES
    }

    fn step(&self, rank: u32, _: u64, _: i32, ops: &mut VecDeque<Op>) -> bool {
        self.0.pass_on(rank, ops);
        true
    }
}

/// One dimension.
pub struct Pipeline(pub Shape);

impl Script for Pipeline {
    fn sites(&self) -> &'static [Site] {
        const fn at(operation: u16, frames: &'static [(&'static str, u32)]) -> Site {
            Site {
                operation,
                file: "pipeline.c",
                frames,
            }
        }
        const SITES: [Site; 2] = [
            at(number::MPI_Recv, &[("stage", 14), ("main", 28)]),
            at(number::MPI_Send, &[("stage", 19), ("main", 28)]),
        ];
        &SITES
    }

    fn step(&self, rank: u32, _: u64, _: i32, ops: &mut VecDeque<Op>) -> bool {
        self.0.pass_on(rank, ops);
        true
    }
}
