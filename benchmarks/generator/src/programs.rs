//! The programs: what each rank does in a step.

mod basic;
mod flow;
mod halo;
mod transpose;
mod workers;

use std::collections::VecDeque;

use clap::ValueEnum;

use super::Settings;
use super::faults::Fault;
use super::grid::Grid;
use super::op::{Among, Half, Op};
use super::site::{self, Site, SiteId};

/// Steps from one Allreduce of a stencil to the next.
const REDUCTION_INTERVAL: u64 = 10;
/// Tag of messages that nobody receives.
const LOST_MESSAGE_TAG: i32 = 4711;
/// Tag of receives that nobody sends to. It must not match lost messages.
const LOST_RECEIVE_TAG: i32 = 4712;

/// The programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Program {
    /// Halo exchange with two neighbours, non-blocking, Allreduce every tenth step
    Stencil,
    /// A token that goes round, received and sent on
    Ring,
    /// Barrier, Bcast, Reduce, Allreduce and Alltoall in turn
    Collectives,
    /// Messages forth and back between pairs of ranks
    Pingpong,
    /// Halo exchange in two dimensions with Sendrecv, Allreduce every tenth step
    #[value(name = "halo2d")]
    Halo2d,
    /// Halo exchange in three dimensions with Irecv, Send, Wait, Allreduce every tenth step
    #[value(name = "halo3d")]
    Halo3d,
    /// Halo exchange in two dimensions with Irecv, Isend, computation and Waitall
    HaloNonblocking,
    /// The same with receives from any source, tags of even and odd steps
    HaloWildcard,
    /// Transposes of a Fourier transform: Alltoall among rows, then among columns
    Transpose,
    /// Rank 0 hands out tasks and takes results as they come, with wildcards
    MasterWorker,
    /// Rank 0 receives from all others in the order of their numbers, then Barrier
    OrderedGather,
    /// A wave over a grid from one corner to the other: Recv twice, Send twice
    Wavefront,
    /// A chain of ranks, each working on what the one before has finished
    Pipeline,
}

/// What the ranks of a program do.
pub trait Script {
    /// Places that it makes calls from; their numbers begin with [`site::FIRST`].
    fn sites(&self) -> &'static [Site];

    /// What a rank does before the first step.
    fn begin(&self, _rank: u32, _ops: &mut VecDeque<Op>) {}

    /// What it does in a step, from 0. `last_tag` is the tag of the message that it received last.
    /// `false` = nothing, the rank has ended.
    fn step(&self, rank: u32, step: u64, last_tag: i32, ops: &mut VecDeque<Op>) -> bool;

    /// Whether the rank goes on, whatever the number of steps, until a message ends it.
    fn ends_by_message(&self, _rank: u32) -> bool {
        false
    }

    /// Approximate number of calls of all ranks in the first ten steps.
    fn calls_of_ten_steps(&self, ranks: u32) -> u64 {
        let mut ops = VecDeque::new();
        let calls = (0..ranks).map(|rank| {
            ops.clear();
            for step in 0..10 {
                self.step(rank, step, 0, &mut ops);
            }
            ops.iter().filter(|op| op.is_call()).count() as u64
        });
        calls.sum()
    }
}

/// Parameters of all programs.
#[derive(Clone, Debug)]
struct Shape {
    ranks: u32,
    grid: Grid,
    /// Bytes of a message.
    bytes: u64,
    /// What a rank computes in a step, ns.
    computation: u64,
}

impl Program {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Program::Stencil => "stencil",
            Program::Ring => "ring",
            Program::Collectives => "collectives",
            Program::Pingpong => "pingpong",
            Program::Halo2d => "halo2d",
            Program::Halo3d => "halo3d",
            Program::HaloNonblocking => "halo-nonblocking",
            Program::HaloWildcard => "halo-wildcard",
            Program::Transpose => "transpose",
            Program::MasterWorker => "master-worker",
            Program::OrderedGather => "ordered-gather",
            Program::Wavefront => "wavefront",
            Program::Pipeline => "pipeline",
        }
    }

    /// Every program.
    pub fn all() -> &'static [Program] {
        Program::value_variants()
    }

    /// Default faults of the programs that measure speed, so that messages are late in a realistic
    /// share of the calls.
    pub fn usual_faults(self, ranks: u32) -> Vec<Fault> {
        match self {
            Program::Stencil | Program::Ring | Program::Collectives | Program::Pingpong => vec![
                Fault::Noise { percent: 12 },
                Fault::Bursts {
                    one_in: 64,
                    percent: 50,
                },
                Fault::SlowRank {
                    rank: ranks / 2,
                    percent: 25,
                },
            ],
            _ => Vec::new(),
        }
    }

    /// The grid of its ranks.
    pub(super) fn grid(self, settings: &Settings) -> Grid {
        let dimensions = match self {
            Program::Halo3d => 3,
            Program::Stencil | Program::Ring | Program::Pipeline => 1,
            _ => 2,
        };
        let is_periodic = match self {
            Program::Stencil | Program::Ring => true,
            Program::Halo2d
            | Program::Halo3d
            | Program::HaloNonblocking
            | Program::HaloWildcard => settings.periodic,
            // A wave has to begin somewhere.
            _ => false,
        };
        Grid::new(settings.ranks, dimensions, is_periodic)
    }

    /// The script of its ranks for this many steps.
    pub(super) fn script(self, settings: &Settings, steps: u64) -> Box<dyn Script> {
        let shape = Shape {
            ranks: settings.ranks,
            grid: self.grid(settings),
            bytes: settings.message_bytes,
            computation: settings.computation_ns,
        };
        match self {
            Program::Stencil => Box::new(halo::Stencil(shape)),
            Program::Ring => Box::new(basic::Ring(shape)),
            Program::Collectives => Box::new(basic::Collectives(shape)),
            Program::Pingpong => Box::new(basic::Pingpong(shape)),
            Program::Halo2d => Box::new(halo::Blocking(shape)),
            Program::Halo3d => Box::new(halo::Mixed(shape)),
            Program::HaloNonblocking => Box::new(halo::NonBlocking(shape)),
            Program::HaloWildcard => Box::new(halo::Wildcard(shape)),
            Program::Transpose => Box::new(transpose::Transpose(shape)),
            Program::MasterWorker => Box::new(workers::MasterWorker::new(shape, steps)),
            Program::OrderedGather => Box::new(workers::OrderedGather(shape)),
            Program::Wavefront => Box::new(flow::Wavefront(shape)),
            Program::Pipeline => Box::new(flow::Pipeline(shape)),
        }
    }

    /// Steps that give about this many calls, at least one.
    pub(super) fn steps(self, settings: &Settings, calls: u64) -> u64 {
        // Init and Finalize are calls, too.
        let calls = calls.saturating_sub(2 * u64::from(settings.ranks));
        let script = self.script(settings, u64::MAX / 2);
        let of_ten = script.calls_of_ten_steps(settings.ranks).max(1);
        let steps = (u128::from(calls) * 10 + u128::from(of_ten / 2)) / u128::from(of_ten);
        (steps as u64).max(1)
    }
}

/// A collective of all ranks that moves no data.
pub fn on_world(site: SiteId) -> Op {
    collective(site, Among::World, 0)
}

/// A collective without a root.
fn collective(site: SiteId, among: Among, bytes: u64) -> Op {
    let root = u32::MAX;
    Op::Collective {
        site,
        among,
        root,
        bytes,
    }
}

/// The messages without a partner that a rank has in a step.
pub fn lost(faults: &[Fault], rank: u32, step: u64, settings: &Settings) -> Vec<Op> {
    let half = |tag| Half::new((rank + 1) % settings.ranks, tag, settings.message_bytes);
    let lost = faults.iter().filter_map(|fault| match *fault {
        Fault::LostMessage { rank: of, step: at } if (of, at) == (rank, step) => {
            Some(Op::SendLost(site::LOST_SEND, half(LOST_MESSAGE_TAG)))
        }
        Fault::LostReceive { rank: of, step: at } if (of, at) == (rank, step) => {
            Some(Op::IrecvLost(site::LOST_RECEIVE, half(LOST_RECEIVE_TAG)))
        }
        _ => None,
    });
    lost.collect()
}
