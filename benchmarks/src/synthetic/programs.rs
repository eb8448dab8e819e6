//! What the ranks do: one function for each program, all of the same form. First the
//! signatures of every rank, then the steps.

use clap::ValueEnum;
use laggard_trace::PEER_ANY;
use laggard_trace::calls::number;

use super::location::{Location, collective, plain, posts, receive, send};
use super::{LATENCY, Settings, World};

/// Steps of the stencil from one Allreduce to the next.
const REDUCTION_INTERVAL: u64 = 10;
/// Bytes of a message.
const BYTES: u64 = 4096;

/// The programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Program {
    /// Halo exchange with two neighbours, Allreduce every tenth step
    Stencil,
    /// A token that goes round, received and sent on
    Ring,
    /// Barrier, Bcast, Reduce, Allreduce and Alltoall in turn
    Collectives,
    /// Messages forth and back between pairs of ranks
    Pingpong,
}

impl Program {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Program::Stencil => "stencil",
            Program::Ring => "ring",
            Program::Collectives => "collectives",
            Program::Pingpong => "pingpong",
        }
    }
}

/// Runs the program for as many steps as give the calls wanted, at least one.
pub fn run(world: &mut World, settings: &Settings) {
    let ranks = u64::from(settings.ranks);
    // Init and Finalize are calls, too.
    let calls = settings.calls.saturating_sub(2 * ranks);
    // Calls of ten steps of one rank.
    let (of_ten_steps, program): (u64, fn(&mut World, u64)) = match settings.program {
        Program::Stencil => (51, stencil),
        Program::Ring => (20, ring),
        Program::Collectives => (50, collectives),
        Program::Pingpong => (20, pingpong),
    };
    let steps = (calls * 10 + of_ten_steps * ranks / 2) / (of_ten_steps * ranks);
    program(world, steps.max(1));
}

/// The rank before, the rank itself and the one after, in a ring.
fn neighbours(rank: usize, ranks: usize) -> (u32, u32) {
    (
        ((rank + ranks - 1) % ranks) as u32,
        ((rank + 1) % ranks) as u32,
    )
}

/// A rank's signatures, made for each.
fn each<T>(world: &mut World, mut make: impl FnMut(&mut Location, usize, usize) -> T) -> Vec<T> {
    let ranks = world.locations.len();
    let locations = world.locations.iter_mut().enumerate();
    locations
        .map(|(rank, location)| make(location, rank, ranks))
        .collect()
}

/// Signatures of the stencil; the first of each pair is from or to the rank before.
struct Halo {
    irecv: [u32; 2],
    isend: [u32; 2],
    waitall: u32,
}

impl Halo {
    fn new(location: &mut Location, rank: usize, ranks: usize) -> Halo {
        let (before, after) = neighbours(rank, ranks);
        let mut line = |line| {
            location.call_path(
                "stencil.c",
                &[("exchange", line), ("step", 71), ("main", 40)],
            )
        };
        let [r0, r1, s0, s1, w] = [20, 21, 22, 23, 24].map(&mut line);
        let completes = location.completion_list(&[(4, 0), (3, 0), (2, 0), (1, 0)]);
        let mut post = |signature| location.signature(posts(signature));
        // Tag 1 travels to higher ranks, tag 2 to lower ones.
        let irecv = [
            post(receive(number::MPI_Irecv, r0, before, 1, BYTES)),
            post(receive(number::MPI_Irecv, r1, after, 2, BYTES)),
        ];
        let isend = [
            post(send(number::MPI_Isend, s0, before, 2, BYTES)),
            post(send(number::MPI_Isend, s1, after, 1, BYTES)),
        ];
        let waitall = plain(number::MPI_Waitall, w);
        let waitall = location.signature(laggard_trace::Signature {
            completes,
            ..waitall
        });
        Halo {
            irecv,
            isend,
            waitall,
        }
    }
}

fn stencil(world: &mut World, steps: u64) {
    let halos = each(world, Halo::new);
    let allreduce = each(world, |location, _, _| {
        let path = location.call_path("stencil.c", &[("residual", 55), ("step", 74), ("main", 40)]);
        location.signature(collective(number::MPI_Allreduce, path, PEER_ANY, (8, 8)))
    });
    let ranks = halos.len();
    // When the messages to the rank before and after were sent.
    let mut sent = vec![[0, 0]; ranks];
    for step in 1..=steps {
        for (rank, halo) in halos.iter().enumerate() {
            world.compute(rank);
            for receive in halo.irecv {
                world.call(rank, receive);
            }
            sent[rank] = halo.isend.map(|send| world.call(rank, send));
        }
        for (rank, halo) in halos.iter().enumerate() {
            let (before, after) = neighbours(rank, ranks);
            let last = sent[before as usize][1].max(sent[after as usize][0]);
            world.call_until(rank, halo.waitall, last + LATENCY);
        }
        if step % REDUCTION_INTERVAL == 0 {
            world.meet(&allreduce);
        }
    }
}

fn ring(world: &mut World, steps: u64) {
    let calls = each(world, |location, rank, ranks| {
        let (before, after) = neighbours(rank, ranks);
        let r = location.call_path("ring.c", &[("pass", 18), ("main", 33)]);
        let s = location.call_path("ring.c", &[("pass", 19), ("main", 33)]);
        let r = location.signature(receive(number::MPI_Recv, r, before, 7, BYTES));
        (
            r,
            location.signature(send(number::MPI_Send, s, after, 7, BYTES)),
        )
    });
    for _ in 0..steps {
        // Rank 0 sends first and receives last.
        world.compute(0);
        let mut sent = world.call(0, calls[0].1);
        for (rank, &(receive, send)) in calls.iter().enumerate().skip(1) {
            world.compute(rank);
            world.call_until(rank, receive, sent + LATENCY);
            sent = world.call(rank, send);
        }
        world.call_until(0, calls[0].0, sent + LATENCY);
    }
}

fn collectives(world: &mut World, steps: u64) {
    let operations = [
        (number::MPI_Barrier, 0),
        (number::MPI_Bcast, BYTES),
        (number::MPI_Reduce, BYTES),
        (number::MPI_Allreduce, 8),
        (number::MPI_Alltoall, BYTES),
    ];
    let signatures = operations.map(|(operation, bytes)| {
        each(world, |location, rank, ranks| {
            let line = 20 + u32::from(operation);
            let path = location.call_path("collectives.c", &[("share", line), ("main", 40)]);
            let (root, all) = (rank == 0, ranks as u64);
            let (peer, bytes) = match operation {
                number::MPI_Bcast if root => (0, (bytes, 0)),
                number::MPI_Bcast => (0, (0, bytes)),
                number::MPI_Reduce if root => (0, (bytes, bytes)),
                number::MPI_Reduce => (0, (bytes, 0)),
                number::MPI_Alltoall => (PEER_ANY, (bytes * all, bytes * all)),
                _ => (PEER_ANY, (bytes, bytes)),
            };
            location.signature(collective(operation, path, peer, bytes))
        })
    });
    let ranks = world.locations.len();
    for _ in 0..steps {
        for ((operation, _), signatures) in operations.iter().zip(&signatures) {
            (0..ranks).for_each(|rank| world.compute(rank));
            match *operation {
                number::MPI_Bcast => world.distribute(signatures),
                number::MPI_Reduce => world.collect_at_root(signatures),
                _ => world.meet(signatures),
            }
        }
    }
}

fn pingpong(world: &mut World, steps: u64) {
    let calls = each(world, |location, rank, ranks| {
        // The last of an odd number of ranks has nobody but itself.
        let partner = (rank ^ 1).min(ranks - 1) as u32;
        let s = location.call_path("pingpong.c", &[("play", 14), ("main", 30)]);
        let r = location.call_path("pingpong.c", &[("play", 15), ("main", 30)]);
        let s = location.signature(send(number::MPI_Send, s, partner, 3, BYTES));
        (
            s,
            location.signature(receive(number::MPI_Recv, r, partner, 3, BYTES)),
        )
    });
    let ranks = calls.len();
    for _ in 0..steps {
        for first in (0..ranks).step_by(2) {
            let second = (first + 1).min(ranks - 1);
            world.compute(first);
            let ping = world.call(first, calls[first].0);
            if second == first {
                world.call_until(first, calls[first].1, ping + LATENCY);
                continue;
            }
            world.compute(second);
            world.call_until(second, calls[second].1, ping + LATENCY);
            let pong = world.call(second, calls[second].0);
            world.call_until(first, calls[first].1, pong + LATENCY);
        }
    }
}
