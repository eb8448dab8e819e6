//! What the ranks tell each other between measurements. The collector records that, too;
//! marks in the trace tell it from what is measured.

use std::ffi::c_int;
use std::time::Duration;

use mpi::ffi::{MPI_Comm, MPI_Datatype, MPI_Op, MPI_Request};

use super::benchmarks::{byte, call, constant};
use super::clock;

/// How long a rank that waits for the next command keeps asking before it sleeps in between.
const ASKING: Duration = Duration::from_micros(200);
/// How long it sleeps then: those that measure have the cores for themselves.
const SLEEP: Duration = Duration::from_micros(50);

/// The type of numbers.
fn number() -> MPI_Datatype {
    constant!(RSMPI_INT64_T)
}

/// The operation of their maximum.
fn largest_of() -> MPI_Op {
    constant!(RSMPI_MAX)
}

/// A communicator, and this rank in it.
#[derive(Clone, Copy)]
pub struct Members {
    /// The communicator.
    pub comm: MPI_Comm,
    /// This rank.
    pub rank: c_int,
    /// Members.
    pub size: c_int,
}

impl Members {
    /// All ranks of the job.
    pub fn world() -> Members {
        Members::of(constant!(RSMPI_COMM_WORLD))
    }

    /// Those of a communicator.
    pub fn of(comm: MPI_Comm) -> Members {
        let (mut rank, mut size) = (0, 0);
        call!(MPI_Comm_rank(comm, &mut rank));
        call!(MPI_Comm_size(comm, &mut size));
        Members { comm, rank, size }
    }

    /// Rank 0's bytes, everywhere.
    pub fn broadcast(&self, bytes: &mut [u8]) {
        let (data, count) = (bytes.as_mut_ptr().cast(), bytes.len() as c_int);
        call!(MPI_Bcast(data, count, byte(), 0, self.comm));
    }

    /// The same, where rank 0 may let the others wait for long.
    pub fn broadcast_patiently(&self, bytes: &mut [u8]) {
        let (data, count) = (bytes.as_mut_ptr().cast(), bytes.len() as c_int);
        let mut request: MPI_Request = constant!(RSMPI_REQUEST_NULL);
        call!(MPI_Ibcast(data, count, byte(), 0, self.comm, &mut request));
        let began = clock::now();
        loop {
            let (mut done, mut status) = (0, super::benchmarks::status());
            call!(MPI_Test(&mut request, &mut done, &mut status));
            if done != 0 {
                return;
            }
            if clock::now() - began > ASKING.as_nanos() as i64 {
                std::thread::sleep(SLEEP);
            } else {
                std::thread::yield_now();
            }
        }
    }

    /// Everybody's bytes, of which each gives the same number; by rank, everywhere.
    pub fn all_gather(&self, mine: &[u8]) -> Vec<u8> {
        let mut all = vec![0u8; mine.len() * self.size as usize];
        let count = mine.len() as c_int;
        call!(MPI_Allgather(
            mine.as_ptr().cast(),
            count,
            byte(),
            all.as_mut_ptr().cast(),
            count,
            byte(),
            self.comm
        ));
        all
    }

    /// Element-wise maximum of all members' values, at rank 0; the others' are as they were.
    pub fn maximum(&self, values: &mut [i64]) {
        let mut largest = values.to_vec();
        call!(MPI_Reduce(
            values.as_ptr().cast(),
            largest.as_mut_ptr().cast(),
            values.len() as c_int,
            number(),
            largest_of(),
            0,
            self.comm
        ));
        if self.rank == 0 {
            values.copy_from_slice(&largest);
        }
    }

    /// Sends a number to a member.
    pub fn send(&self, to: c_int, value: i64) {
        let data = (&raw const value).cast();
        call!(MPI_Send(data, 1, number(), to, 1, self.comm));
    }

    /// Receives a number from a member.
    pub fn receive(&self, from: c_int) -> i64 {
        let (mut value, mut status) = (0i64, super::benchmarks::status());
        call!(MPI_Recv(
            (&raw mut value).cast(),
            1,
            number(),
            from,
            1,
            self.comm,
            &mut status
        ));
        value
    }
}
