//! Messages of the ranks between measurements. The collector records them, too; marks in the trace
//! tell them from the measurements.

use std::ffi::c_int;
use std::time::Duration;

use mpi::ffi::{MPI_Comm, MPI_Request};

use super::benchmarks::{byte, call, constant};
use super::clock;

/// How long a rank that waits for the next command polls before it sleeps in between.
const ASKING: Duration = Duration::from_micros(200);
/// Its shortest and longest sleep …
const SLEEP: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(2));
/// … and otherwise this fraction of its time so far: the measuring ranks have the cores for
/// themselves, and none of them waits much longer for it.
const SLEEP_SHARE: u32 = 16;

/// Tag of these messages; benchmarks use another.
const TAG: c_int = 1;

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
    /// The members of the world: all ranks of the job.
    pub fn world() -> Members {
        Members::of(constant!(RSMPI_COMM_WORLD))
    }

    /// The members of a communicator.
    pub fn of(comm: MPI_Comm) -> Members {
        let (mut rank, mut size) = (0, 0);
        call!(MPI_Comm_rank(comm, &mut rank));
        call!(MPI_Comm_size(comm, &mut size));
        Members { comm, rank, size }
    }

    /// Sends rank 0's bytes to all.
    ///
    /// Sends messages along a binomial tree, as libraries do. A library's own broadcast may use
    /// memory that ranks of a host share. MPICH then does not yield, and all would wait for each
    /// other's slice of time.
    pub fn broadcast(&self, bytes: &mut [u8]) {
        if let Some(parent) = self.parent() {
            self.receive_into(parent, bytes);
        }
        for child in self.children().rev() {
            self.send_from(child, bytes);
        }
    }

    /// This rank's parent in the binomial tree.
    fn parent(&self) -> Option<c_int> {
        (self.rank != 0).then(|| self.rank & (self.rank - 1))
    }

    /// This rank's children there, smallest trees first.
    fn children(&self) -> impl DoubleEndedIterator<Item = c_int> {
        let (rank, size) = (self.rank, self.size);
        let most = match rank {
            0 => c_int::BITS - 1,
            _ => rank.trailing_zeros(),
        };
        let all = (0..most).filter_map(move |power| rank.checked_add(1 << power));
        all.filter(move |child| *child < size)
    }

    fn send_from(&self, to: c_int, bytes: &[u8]) {
        let (data, count) = (bytes.as_ptr().cast(), bytes.len() as c_int);
        call!(MPI_Send(data, count, byte(), to, TAG, self.comm));
    }

    fn receive_into(&self, from: c_int, bytes: &mut [u8]) {
        let (data, count) = (bytes.as_mut_ptr().cast(), bytes.len() as c_int);
        let mut status = super::benchmarks::status();
        call!(MPI_Recv(
            data,
            count,
            byte(),
            from,
            TAG,
            self.comm,
            &mut status
        ));
    }

    /// The same, if rank 0 may let the others wait for long.
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
            let waited = Duration::from_nanos((clock::now() - began) as u64);
            if waited > ASKING {
                std::thread::sleep((waited / SLEEP_SHARE).clamp(SLEEP.0, SLEEP.1));
            } else {
                std::thread::yield_now();
            }
        }
    }

    /// Every member's bytes, by rank, at all members. All give the same number of bytes.
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

    /// Element-wise maximum of all members' values, at rank 0; without meaning on the others. Uses
    /// messages for the same reason as [`Members::broadcast`].
    pub fn maximum<const N: usize>(&self, values: &mut [i64; N]) {
        for child in self.children() {
            let mut theirs = [0u8; 64];
            let theirs = &mut theirs[..N * size_of::<i64>()];
            self.receive_into(child, theirs);
            for (own, word) in values.iter_mut().zip(theirs.as_chunks().0) {
                *own = (*own).max(i64::from_ne_bytes(*word));
            }
        }
        if let Some(parent) = self.parent() {
            self.send_from(parent, values.map(i64::to_ne_bytes).as_flattened());
        }
    }

    /// Sends a number to a member.
    pub fn send(&self, to: c_int, value: i64) {
        self.send_from(to, &value.to_ne_bytes());
    }

    /// Receives a number from a member.
    pub fn receive(&self, from: c_int) -> i64 {
        let mut value = [0; size_of::<i64>()];
        self.receive_into(from, &mut value);
        i64::from_ne_bytes(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every rank learns once, and from one that has learnt before.
    #[test]
    fn trees_reach_everybody() {
        for size in 1..70 {
            let member = |rank| Members {
                comm: constant!(RSMPI_COMM_WORLD),
                rank,
                size,
            };
            let mut knows = vec![false; size as usize];
            knows[0] = true;
            for rank in 0..size {
                assert!(knows[rank as usize], "{rank} of {size}");
                for child in member(rank).children() {
                    assert_eq!(member(child).parent(), Some(rank));
                    assert!(!std::mem::replace(&mut knows[child as usize], true));
                }
            }
        }
    }
}
