//! One rank and all others: tasks and results.

use std::collections::VecDeque;

use laggard_trace::TAG_ANY;
use laggard_trace::calls::number;

use super::super::op::{Half, Op, Peer};
use super::super::site::{FIRST, Site};
use super::{Script, Shape, on_world};

const MASTER: u32 = 0;
/// Tag of a result.
const RESULT: i32 = 1;
/// Tag of a task.
const TASK: i32 = 2;
/// Tag of the message after which a worker ends.
const STOP: i32 = 3;
/// Between two messages the master computes for this fraction of a task's time, as a divisor.
const MASTERS_PART: u64 = 200;

/// Rank 0 takes results from any worker and replies with the next task. Workers begin with a task
/// of their own; slower ones do fewer.
pub struct MasterWorker {
    shape: Shape,
    workers: u64,
    /// Results of all workers together.
    tasks: u64,
}

impl MasterWorker {
    /// In each step as many tasks as workers.
    pub fn new(shape: Shape, steps: u64) -> MasterWorker {
        let workers = u64::from(shape.ranks) - 1;
        MasterWorker {
            tasks: workers.saturating_mul(steps),
            workers,
            shape,
        }
    }

    fn half(&self, peer: Peer, tag: i32) -> Half {
        Half::new(peer, tag, self.shape.bytes)
    }
}

impl Script for MasterWorker {
    fn sites(&self) -> &'static [Site] {
        const fn at(operation: u16, frames: &'static [(&'static str, u32)]) -> Site {
            Site {
                operation,
                file: "farm.c",
                frames,
            }
        }
        const SITES: [Site; 4] = [
            at(number::MPI_Recv, &[("master", 24), ("main", 70)]),
            at(number::MPI_Send, &[("master", 28), ("main", 70)]),
            at(number::MPI_Send, &[("worker", 44), ("main", 72)]),
            at(number::MPI_Recv, &[("worker", 45), ("main", 72)]),
        ];
        &SITES
    }

    fn step(&self, rank: u32, step: u64, last_tag: i32, ops: &mut VecDeque<Op>) -> bool {
        if rank == MASTER {
            if step >= self.tasks {
                return false;
            }
            // The workers have their first tasks already.
            let tag = if step + self.workers < self.tasks {
                TASK
            } else {
                STOP
            };
            ops.push_back(Op::Recv(FIRST, self.half(Peer::Any, RESULT)));
            ops.push_back(Op::Compute(self.shape.computation / MASTERS_PART));
            ops.push_back(Op::Send(FIRST + 1, self.half(Peer::Last, tag)));
            return true;
        }
        if last_tag == STOP || self.tasks == 0 {
            return false;
        }
        let master = Peer::Rank(MASTER);
        ops.push_back(Op::Compute(self.shape.computation));
        ops.push_back(Op::Send(FIRST + 2, self.half(master, RESULT)));
        ops.push_back(Op::Recv(FIRST + 3, self.half(master, TAG_ANY)));
        true
    }

    fn ends_by_message(&self, _: u32) -> bool {
        true
    }

    fn calls_of_ten_steps(&self, _: u32) -> u64 {
        // Two calls of the master and two of a worker for each task.
        4 * 10 * self.workers
    }
}

/// All compute and send to rank 0. It receives in the order of ranks, even if others are there
/// earlier.
pub struct OrderedGather(pub Shape);

impl Script for OrderedGather {
    fn sites(&self) -> &'static [Site] {
        const fn at(operation: u16, frames: &'static [(&'static str, u32)]) -> Site {
            Site {
                operation,
                file: "gather.c",
                frames,
            }
        }
        const SITES: [Site; 3] = [
            at(number::MPI_Recv, &[("collect", 17), ("main", 41)]),
            at(number::MPI_Send, &[("deliver", 25), ("main", 43)]),
            at(number::MPI_Barrier, &[("main", 46)]),
        ];
        &SITES
    }

    fn step(&self, rank: u32, _: u64, _: i32, ops: &mut VecDeque<Op>) -> bool {
        let half = |peer: u32| Half::new(peer, RESULT, self.0.bytes);
        if rank == MASTER {
            ops.extend((1..self.0.ranks).map(|from| Op::Recv(FIRST, half(from))));
        } else {
            ops.push_back(Op::Compute(self.0.computation));
            ops.push_back(Op::Send(FIRST + 1, half(MASTER)));
        }
        ops.push_back(on_world(FIRST + 2));
        true
    }
}
