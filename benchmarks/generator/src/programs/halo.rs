//! Stencils: each rank exchanges its borders with its neighbours.

use std::collections::VecDeque;

use laggard_trace::calls::number;

use super::super::op::{Among, Half, Op, Peer};
use super::super::site::{FIRST, Site, SiteId};
use super::{REDUCTION_INTERVAL, Script, Shape, collective};

/// Bytes of a residual.
const RESIDUAL: u64 = 8;

/// A place in the stencils' exchange.
const fn exchange(operation: u16, frames: &'static [(&'static str, u32)]) -> Site {
    let file = "stencil.c";
    Site {
        operation,
        file,
        frames,
    }
}

/// The place of the residual's sum.
const SUM: Site = exchange(
    number::MPI_Allreduce,
    &[("residual", 55), ("step", 74), ("main", 40)],
);

/// Tag of messages that travel down or up a dimension.
fn tag(dimension: usize, up: bool) -> i32 {
    1 + 2 * dimension as i32 + i32::from(up)
}

/// Adds the sum of the residuals in the steps that have one.
fn reduce(site: SiteId, step: u64, ops: &mut VecDeque<Op>) {
    if (step + 1).is_multiple_of(REDUCTION_INTERVAL) {
        ops.push_back(collective(site, Among::World, RESIDUAL));
    }
}

impl Shape {
    fn neighbour(&self, rank: u32, dimension: usize, after: bool) -> Option<u32> {
        self.grid.neighbour(rank, dimension, after)
    }

    fn half(&self, peer: impl Into<Peer>, tag: i32) -> Half {
        Half::new(peer, tag, self.bytes)
    }

    /// Irecv, then Isend, for all neighbours that exist. Places: for each dimension before and
    /// after, first the receives.
    fn begin_exchange(&self, rank: u32, ops: &mut VecDeque<Op>) {
        let dimensions = self.grid.sizes().len();
        let ways = (0..dimensions).flat_map(|d| [(d, false), (d, true)]);
        for (at, (dimension, after)) in ways.clone().enumerate() {
            if let Some(from) = self.neighbour(rank, dimension, after) {
                // What comes from the one before travels up.
                let half = self.half(from, tag(dimension, !after));
                ops.push_back(Op::Irecv(FIRST + at as SiteId, half));
            }
        }
        for (at, (dimension, after)) in ways.enumerate() {
            if let Some(to) = self.neighbour(rank, dimension, after) {
                let half = self.half(to, tag(dimension, after));
                ops.push_back(Op::Isend(FIRST + (2 * dimensions + at) as SiteId, half));
            }
        }
    }
}

/// Two neighbours, everything non-blocking.
pub struct Stencil(pub Shape);

impl Script for Stencil {
    fn sites(&self) -> &'static [Site] {
        const SITES: [Site; 6] = [
            exchange(
                number::MPI_Irecv,
                &[("exchange", 20), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Irecv,
                &[("exchange", 21), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Isend,
                &[("exchange", 22), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Isend,
                &[("exchange", 23), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Waitall,
                &[("exchange", 24), ("step", 71), ("main", 40)],
            ),
            SUM,
        ];
        &SITES
    }

    fn step(&self, rank: u32, step: u64, _: i32, ops: &mut VecDeque<Op>) -> bool {
        ops.push_back(Op::Compute(self.0.computation));
        self.0.begin_exchange(rank, ops);
        ops.push_back(Op::Waitall(FIRST + 4));
        reduce(FIRST + 5, step, ops);
        true
    }
}

/// Two dimensions, everything non-blocking, with half of the computation meanwhile.
pub struct NonBlocking(pub Shape);

impl Script for NonBlocking {
    fn sites(&self) -> &'static [Site] {
        const SITES: [Site; 10] = [
            exchange(
                number::MPI_Irecv,
                &[("exchange", 20), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Irecv,
                &[("exchange", 21), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Irecv,
                &[("exchange", 22), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Irecv,
                &[("exchange", 23), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Isend,
                &[("exchange", 25), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Isend,
                &[("exchange", 26), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Isend,
                &[("exchange", 27), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Isend,
                &[("exchange", 28), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Waitall,
                &[("finish", 31), ("step", 73), ("main", 40)],
            ),
            SUM,
        ];
        &SITES
    }

    fn step(&self, rank: u32, step: u64, _: i32, ops: &mut VecDeque<Op>) -> bool {
        let inner = self.0.computation / 2;
        ops.push_back(Op::Compute(self.0.computation - inner));
        self.0.begin_exchange(rank, ops);
        ops.push_back(Op::Compute(inner));
        ops.push_back(Op::Waitall(FIRST + 8));
        reduce(FIRST + 9, step, ops);
        true
    }
}

/// Two dimensions, one Sendrecv after the other.
pub struct Blocking(pub Shape);

impl Script for Blocking {
    fn sites(&self) -> &'static [Site] {
        const SITES: [Site; 5] = [
            exchange(
                number::MPI_Sendrecv,
                &[("exchange", 20), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Sendrecv,
                &[("exchange", 23), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Sendrecv,
                &[("exchange", 26), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Sendrecv,
                &[("exchange", 29), ("step", 71), ("main", 40)],
            ),
            SUM,
        ];
        &SITES
    }

    fn step(&self, rank: u32, step: u64, _: i32, ops: &mut VecDeque<Op>) -> bool {
        let shape = &self.0;
        ops.push_back(Op::Compute(shape.computation));
        for (at, (dimension, up)) in [(0, true), (0, false), (1, true), (1, false)]
            .into_iter()
            .enumerate()
        {
            let tag = tag(dimension, up);
            let to = shape.half(shape.neighbour(rank, dimension, up), tag);
            let from = shape.half(shape.neighbour(rank, dimension, !up), tag);
            ops.push_back(Op::Sendrecv(FIRST + at as SiteId, to, from));
        }
        reduce(FIRST + 4, step, ops);
        true
    }
}

/// Three dimensions; for each direction an Irecv, a Send and the Wait for the receive.
pub struct Mixed(pub Shape);

impl Script for Mixed {
    fn sites(&self) -> &'static [Site] {
        const SITES: [Site; 10] = [
            exchange(
                number::MPI_Irecv,
                &[("shift", 16), ("exchange", 21), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Send,
                &[("shift", 17), ("exchange", 21), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Wait,
                &[("shift", 18), ("exchange", 21), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Irecv,
                &[("shift", 16), ("exchange", 23), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Send,
                &[("shift", 17), ("exchange", 23), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Wait,
                &[("shift", 18), ("exchange", 23), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Irecv,
                &[("shift", 16), ("exchange", 25), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Send,
                &[("shift", 17), ("exchange", 25), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Wait,
                &[("shift", 18), ("exchange", 25), ("step", 71), ("main", 40)],
            ),
            SUM,
        ];
        &SITES
    }

    fn step(&self, rank: u32, step: u64, _: i32, ops: &mut VecDeque<Op>) -> bool {
        let shape = &self.0;
        ops.push_back(Op::Compute(shape.computation));
        for dimension in 0..3 {
            let site = FIRST + 3 * dimension as SiteId;
            for up in [true, false] {
                let tag = tag(dimension, up);
                let from = shape.neighbour(rank, dimension, !up);
                if let Some(from) = from {
                    ops.push_back(Op::Irecv(site, shape.half(from, tag)));
                }
                if let Some(to) = shape.neighbour(rank, dimension, up) {
                    ops.push_back(Op::Send(site + 1, shape.half(to, tag)));
                }
                if from.is_some() {
                    ops.push_back(Op::Wait(site + 2));
                }
            }
        }
        reduce(FIRST + 9, step, ops);
        true
    }
}

/// Two dimensions, with receives from any source.
pub struct Wildcard(pub Shape);

impl Script for Wildcard {
    fn sites(&self) -> &'static [Site] {
        const SITES: [Site; 4] = [
            exchange(
                number::MPI_Irecv,
                &[("exchange", 20), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Isend,
                &[("exchange", 24), ("step", 71), ("main", 40)],
            ),
            exchange(
                number::MPI_Waitall,
                &[("exchange", 27), ("step", 71), ("main", 40)],
            ),
            SUM,
        ];
        &SITES
    }

    fn step(&self, rank: u32, step: u64, _: i32, ops: &mut VecDeque<Op>) -> bool {
        let shape = &self.0;
        // A neighbour can be one step ahead, and no more.
        let tag = (step % 2) as i32;
        let ways = [(0, false), (0, true), (1, false), (1, true)];
        let neighbours = ways.map(|(dimension, after)| shape.neighbour(rank, dimension, after));
        ops.push_back(Op::Compute(shape.computation));
        for _ in neighbours.iter().flatten() {
            ops.push_back(Op::Irecv(FIRST, shape.half(Peer::Any, tag)));
        }
        for &to in neighbours.iter().flatten() {
            ops.push_back(Op::Isend(FIRST + 1, shape.half(to, tag)));
        }
        ops.push_back(Op::Waitall(FIRST + 2));
        reduce(FIRST + 3, step, ops);
        true
    }
}
