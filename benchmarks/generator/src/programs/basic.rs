//! The simplest programs, each about one kind of call.

use std::collections::VecDeque;

use laggard_trace::calls::number;

use super::super::op::{Among, Half, Op};
use super::super::site::{FIRST, Site};
use super::{Script, Shape};

const fn at(operation: u16, file: &'static str, frames: &'static [(&'static str, u32)]) -> Site {
    Site {
        operation,
        file,
        frames,
    }
}

/// A token goes round.
pub struct Ring(pub Shape);

impl Script for Ring {
    fn sites(&self) -> &'static [Site] {
        const SITES: [Site; 2] = [
            at(number::MPI_Recv, "ring.c", &[("pass", 18), ("main", 33)]),
            at(number::MPI_Send, "ring.c", &[("pass", 19), ("main", 33)]),
        ];
        &SITES
    }

    fn step(&self, rank: u32, _: u64, _: i32, ops: &mut VecDeque<Op>) -> bool {
        let shape = &self.0;
        let before = Half::new(shape.grid.neighbour(rank, 0, false), 7, shape.bytes);
        let after = Half::new(shape.grid.neighbour(rank, 0, true), 7, shape.bytes);
        let (receive, send) = (Op::Recv(FIRST, before), Op::Send(FIRST + 1, after));
        ops.push_back(Op::Compute(shape.computation));
        // Rank 0 sends first and receives last.
        ops.extend(if rank == 0 {
            [send, receive]
        } else {
            [receive, send]
        });
        true
    }
}

/// Collectives of all kinds in turn.
pub struct Collectives(pub Shape);

impl Script for Collectives {
    fn sites(&self) -> &'static [Site] {
        const SITES: [Site; 5] = [
            at(
                number::MPI_Barrier,
                "collectives.c",
                &[("share", 20), ("main", 40)],
            ),
            at(
                number::MPI_Bcast,
                "collectives.c",
                &[("share", 22), ("main", 40)],
            ),
            at(
                number::MPI_Reduce,
                "collectives.c",
                &[("share", 24), ("main", 40)],
            ),
            at(
                number::MPI_Allreduce,
                "collectives.c",
                &[("share", 26), ("main", 40)],
            ),
            at(
                number::MPI_Alltoall,
                "collectives.c",
                &[("share", 28), ("main", 40)],
            ),
        ];
        &SITES
    }

    fn step(&self, _: u32, _: u64, _: i32, ops: &mut VecDeque<Op>) -> bool {
        let bytes = [0, self.0.bytes, self.0.bytes, 8, self.0.bytes];
        for (site, bytes) in (FIRST..).zip(bytes) {
            ops.push_back(Op::Compute(self.0.computation));
            ops.push_back(Op::Collective {
                site,
                among: Among::World,
                root: 0,
                bytes,
            });
        }
        true
    }
}

/// Messages forth and back between pairs of ranks.
pub struct Pingpong(pub Shape);

impl Script for Pingpong {
    fn sites(&self) -> &'static [Site] {
        const SITES: [Site; 2] = [
            at(
                number::MPI_Send,
                "pingpong.c",
                &[("play", 14), ("main", 30)],
            ),
            at(
                number::MPI_Recv,
                "pingpong.c",
                &[("play", 15), ("main", 30)],
            ),
        ];
        &SITES
    }

    fn step(&self, rank: u32, _: u64, _: i32, ops: &mut VecDeque<Op>) -> bool {
        // The last of an odd number of ranks plays with itself.
        let partner = (rank ^ 1).min(self.0.ranks - 1);
        let half = Half::new(partner, 3, self.0.bytes);
        let (send, receive) = (Op::Send(FIRST, half), Op::Recv(FIRST + 1, half));
        ops.push_back(Op::Compute(self.0.computation));
        ops.extend(if rank <= partner {
            [send, receive]
        } else {
            [receive, send]
        });
        true
    }
}
