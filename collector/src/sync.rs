//! One clock for all: where rank 0's `CLOCK_MONOTONIC` stands, as seen from here.
//!
//! Ranks of one host share a clock, so one *leader* per host exchanges messages with
//! rank 0 and tells the others of its host. The exchange with the smallest round trip
//! counts: half of it bounds the error.

use std::ffi::c_void;

use laggard_trace::ClockPoint;

use crate::clock;
use crate::constants::{Handle, SUCCESS, constants};
use crate::exports::real;
use crate::ffi::MPI_Comm;

/// Exchanges with each leader.
const ROUNDS: usize = 20;
const TAG: i32 = 1;

/// A clock point from this process alone: it takes its own clock for the reference.
pub fn alone(kind: u32) -> ClockPoint {
    let (local, ns) = clock::pair();
    point(kind, [local, ns, 0])
}

fn point(kind: u32, [local, reference_ns, error_ns]: [u64; 3]) -> ClockPoint {
    ClockPoint {
        local,
        reference_ns: reference_ns as i64,
        error_ns,
        kind,
        reserved: 0,
    }
}

/// Whom a rank measures with: made at the start, so that nothing needs to be made at the
/// end, when there may be no memory for it.
pub struct Peers {
    /// The ranks of this host.
    host: MPI_Comm,
    /// The first rank of every host; null on the others.
    leaders: MPI_Comm,
}

// SAFETY: handles; used by the threads that initialise and finalise MPI.
unsafe impl Send for Peers {}
// SAFETY: as above.
unsafe impl Sync for Peers {}

impl Peers {
    /// Groups the ranks of `comm`, whose errors return; every rank comes here.
    pub fn new(comm: MPI_Comm) -> Option<Peers> {
        let c = constants();
        let (mut rank, mut place) = (0, 0);
        let (mut host, mut leaders) = (c.comm_null, c.comm_null);
        // SAFETY: every rank of `comm` comes here.
        unsafe {
            real::MPI_Comm_rank(comm, &mut rank);
            check(real::MPI_Comm_split_type(
                comm,
                c.comm_type_shared,
                rank,
                c.info_null,
                &mut host,
            ))?;
            real::MPI_Comm_rank(host, &mut place);
            let colour = if place == 0 {
                0
            } else {
                crate::constants::MPI_UNDEFINED
            };
            check(real::MPI_Comm_split(comm, colour, rank, &mut leaders))?;
        }
        Some(Peers { host, leaders })
    }

    /// Measures with all ranks, each of which comes at its own time.
    pub fn measure(&self, kind: u32) -> ClockPoint {
        let measured = self.try_measure();
        measured.map_or_else(|| alone(kind), |values| point(kind, values))
    }

    fn try_measure(&self) -> Option<[u64; 3]> {
        let mut values = [0u64; 3];
        let is_leader = self.leaders.bits() != constants().comm_null.bits();
        let exchanged = if is_leader {
            exchange(self.leaders).map(|measured| values = measured)
        } else {
            Some(())
        };
        // SAFETY: three numbers on every rank of the host.
        let told = check(unsafe {
            real::MPI_Bcast((&raw mut values).cast(), 24, constants().byte, 0, self.host)
        });
        exchanged.and(told).map(|()| values)
    }

    /// Leaves nothing of ours in the library.
    pub fn free(&self) {
        for mut comm in [self.host, self.leaders] {
            if comm.bits() != constants().comm_null.bits() {
                // SAFETY: ours, before MPI_Finalize.
                unsafe { real::MPI_Comm_free(&mut comm) };
            }
        }
    }
}

fn check(result: i32) -> Option<()> {
    (result == SUCCESS).then_some(())
}

/// Rank 0 answers every leader in turn.
fn exchange(leaders: MPI_Comm) -> Option<[u64; 3]> {
    let (mut rank, mut size) = (0, 0);
    // SAFETY: a communicator of ours.
    unsafe {
        real::MPI_Comm_rank(leaders, &mut rank);
        real::MPI_Comm_size(leaders, &mut size);
    }
    if rank != 0 {
        return ask(leaders);
    }
    for leader in 1..size {
        answer(leaders, leader)?;
    }
    let (local, ns) = clock::pair();
    Some([local, ns, 0])
}

fn answer(comm: MPI_Comm, leader: i32) -> Option<()> {
    // One more round than counts: the first may wait for the leader to arrive.
    for _ in 0..=ROUNDS {
        receive(comm, leader)?;
        send(comm, leader, clock::monotonic_ns())?;
    }
    Some(())
}

fn ask(comm: MPI_Comm) -> Option<[u64; 3]> {
    let mut best: Option<(u64, u64, u64)> = None;
    for _ in 0..=ROUNDS {
        let before = clock::now();
        send(comm, 0, 0)?;
        let reference = receive(comm, 0)?;
        let round_trip = clock::now().wrapping_sub(before);
        if best.is_none_or(|best| round_trip < best.0) {
            best = Some((round_trip, before.wrapping_add(round_trip / 2), reference));
        }
    }
    let (round_trip, local, reference) = best?;
    let ns = u128::from(round_trip) * 1_000_000_000 / u128::from(clock::ticks_per_s().max(1));
    Some([local, reference, u64::try_from(ns / 2).unwrap_or(u64::MAX)])
}

fn send(comm: MPI_Comm, peer: i32, value: u64) -> Option<()> {
    let buffer: *const c_void = (&raw const value).cast();
    // SAFETY: eight bytes to a member of our communicator.
    check(unsafe { real::MPI_Send(buffer, 8, constants().byte, peer, TAG, comm) })
}

fn receive(comm: MPI_Comm, peer: i32) -> Option<u64> {
    let mut value = 0u64;
    let buffer: *mut c_void = (&raw mut value).cast();
    let c = constants();
    // SAFETY: eight bytes from a member of our communicator.
    check(unsafe { real::MPI_Recv(buffer, 8, c.byte, peer, TAG, comm, c.status_ignore) })?;
    Some(value)
}
