//! One clock for all ranks: rank 0's `CLOCK_MONOTONIC`, as seen from here.
//!
//! Ranks of one host share a clock. One *leader* per host exchanges messages with rank 0 and
//! informs its host. The exchange with the smallest round trip counts; half of that trip bounds
//! the error.

use std::ffi::c_void;
use std::time::Duration;

use laggard_trace::ClockPoint;

use crate::clock;
use crate::constants::{Handle, SUCCESS, constants};
use crate::exports::real;
use crate::ffi::{MPI_Comm, MPI_Request};
use crate::program;

/// Message exchanges with each leader.
const ROUNDS: usize = 20;
const TAG: i32 = 1;
/// Tag of messages that may never be received.
const BOUNDED_TAG: i32 = 2;

/// A clock point of this process alone, whose own clock is the reference.
pub fn alone(kind: u32) -> ClockPoint {
    point(kind, own())
}

/// A clock point: ticks, reference in ns, error in ns.
pub fn point(kind: u32, [local, reference_ns, error_ns]: [u64; 3]) -> ClockPoint {
    ClockPoint {
        local,
        reference_ns: reference_ns as i64,
        error_ns,
        kind,
        reserved: 0,
    }
}

/// The communicators for clock measurements. They are made at the start: memory may be short at
/// the end.
pub struct Peers {
    /// The ranks of this host that share a clock.
    host: MPI_Comm,
    /// The first rank of every host; null on the others.
    leaders: MPI_Comm,
}

// SAFETY: handles; only the threads that initialise and finalise MPI use them.
unsafe impl Send for Peers {}
// SAFETY: as above.
unsafe impl Sync for Peers {}

impl Peers {
    /// Groups the ranks of `comm`, whose error handler returns. Collective.
    pub fn new(comm: MPI_Comm) -> Option<Peers> {
        let c = constants();
        let (mut rank, mut place) = (0, 0);
        let (mut host, mut leaders) = (c.comm_null, c.comm_null);
        // SAFETY: every rank of `comm` calls this.
        unsafe {
            real::MPI_Comm_rank(comm, &mut rank);
            let mut machine = c.comm_null;
            check(real::MPI_Comm_split_type(
                comm,
                c.comm_type_shared,
                rank,
                c.info_null,
                &mut machine,
            ))?;
            let colour = program::clock_colour(clock::chosen());
            let split = check(real::MPI_Comm_split(machine, colour, rank, &mut host));
            real::MPI_Comm_free(&mut machine);
            split?;
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

    /// Measures with all ranks, which may arrive at different times. Collective.
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

    /// The first rank of every host; null on the others.
    pub fn leaders(&self) -> MPI_Comm {
        self.leaders
    }

    /// Frees the communicators.
    pub fn free(&self) {
        for mut comm in [self.host, self.leaders] {
            if comm.bits() != constants().comm_null.bits() {
                // SAFETY: our communicator, before MPI_Finalize.
                unsafe { real::MPI_Comm_free(&mut comm) };
            }
        }
    }
}

fn check(result: i32) -> Option<()> {
    (result == SUCCESS).then_some(())
}

/// Rank and size.
pub fn place(comm: MPI_Comm) -> (i32, i32) {
    let (mut rank, mut size) = (0, 0);
    // SAFETY: our communicator.
    unsafe {
        real::MPI_Comm_rank(comm, &mut rank);
        real::MPI_Comm_size(comm, &mut size);
    }
    (rank, size)
}

/// Rank 0 answers every leader in turn.
fn exchange(leaders: MPI_Comm) -> Option<[u64; 3]> {
    let (rank, size) = place(leaders);
    let talk = Talk::patient(leaders);
    let mut outgoing = [0; 2];
    if rank != 0 {
        return ask(&talk, ROUNDS, &mut outgoing);
    }
    for leader in 1..size {
        answer(&talk, leader, ROUNDS, &mut outgoing)?;
    }
    Some(own())
}

/// The reference clock on its own host.
pub fn own() -> [u64; 3] {
    let (local, ns) = clock::pair();
    [local, ns, 0]
}

/// Tells a leader the time. `outgoing` must not move if this fails.
pub fn answer(talk: &Talk, leader: i32, rounds: usize, outgoing: &mut [u64; 2]) -> Option<()> {
    // One round more than counts: the leader may arrive during the first.
    for _ in 0..=rounds {
        talk.receive(leader)?;
        *outgoing = [clock::monotonic_ns(), 0];
        talk.send(leader, outgoing)?;
    }
    Some(())
}

/// Asks rank 0 for the time. `outgoing` must not move if this fails.
pub fn ask(talk: &Talk, rounds: usize, outgoing: &mut [u64; 2]) -> Option<[u64; 3]> {
    let mut best: Option<(u64, u64, u64)> = None;
    for _ in 0..=rounds {
        let before = clock::now();
        talk.send(0, outgoing)?;
        let [reference, _] = talk.receive(0)?;
        let round_trip = clock::now().wrapping_sub(before);
        if best.is_none_or(|best| round_trip < best.0) {
            best = Some((round_trip, before.wrapping_add(round_trip / 2), reference));
        }
    }
    let (round_trip, local, reference) = best?;
    let ns = u128::from(round_trip) * 1_000_000_000 / u128::from(clock::ticks_per_s().max(1));
    Some([local, reference, u64::try_from(ns / 2).unwrap_or(u64::MAX)])
}

/// Messages of two numbers among the leaders.
pub struct Talk {
    comm: MPI_Comm,
    tag: i32,
    /// Time limit: start and duration in ticks; `None` = wait for ever.
    limit: Option<(u64, u64)>,
}

impl Talk {
    /// For exchanges to which all ranks are sure to come.
    fn patient(comm: MPI_Comm) -> Talk {
        Talk {
            comm,
            tag: TAG,
            limit: None,
        }
    }

    /// For exchanges to which a rank may not come: the total wait is at most `patience`. A
    /// separate tag keeps messages that were not received from being taken for others.
    pub fn bounded(comm: MPI_Comm, patience: Duration) -> Talk {
        Talk {
            comm,
            tag: BOUNDED_TAG,
            limit: Some((clock::now(), clock::ticks(patience))),
        }
    }

    /// Sends; `None` if it is not received in time: the message is then still in flight.
    pub fn send(&self, peer: i32, values: &[u64; 2]) -> Option<()> {
        let buffer: *const c_void = values.as_ptr().cast();
        let byte = constants().byte;
        let Some(limit) = self.limit else {
            // SAFETY: sixteen bytes to a member of our communicator.
            return check(unsafe { real::MPI_Send(buffer, 16, byte, peer, self.tag, self.comm) });
        };
        let mut request = constants().request_null;
        // SAFETY: as above; the caller keeps `values` in place until they are sent.
        unsafe {
            check(real::MPI_Isend(
                buffer,
                16,
                byte,
                peer,
                self.tag,
                self.comm,
                &mut request,
            ))?;
            if is_done(&mut request, limit)? {
                return Some(());
            }
            real::MPI_Request_free(&mut request);
        }
        None
    }

    /// Receives; `None` if nothing arrives in time.
    pub fn receive(&self, peer: i32) -> Option<[u64; 2]> {
        let mut values = [0u64; 2];
        let buffer: *mut c_void = values.as_mut_ptr().cast();
        let c = constants();
        let Some(limit) = self.limit else {
            // SAFETY: sixteen bytes from a member of our communicator.
            check(unsafe {
                real::MPI_Recv(
                    buffer,
                    16,
                    c.byte,
                    peer,
                    self.tag,
                    self.comm,
                    c.status_ignore,
                )
            })?;
            return Some(values);
        };
        let mut request = c.request_null;
        // SAFETY: as above; the request ends before `values` do.
        unsafe {
            check(real::MPI_Irecv(
                buffer,
                16,
                c.byte,
                peer,
                self.tag,
                self.comm,
                &mut request,
            ))?;
            if is_done(&mut request, limit)? {
                return Some(values);
            }
            real::MPI_Cancel(&mut request);
            real::MPI_Wait(&mut request, c.status_ignore);
        }
        None
    }
}

/// Whether a request completes in time; `None` if it failed.
fn is_done(request: &mut MPI_Request, (begin, patience): (u64, u64)) -> Option<bool> {
    loop {
        let mut flag = 0;
        // SAFETY: our request.
        check(unsafe { real::MPI_Test(request, &mut flag, constants().status_ignore) })?;
        if flag != 0 {
            return Some(true);
        }
        if clock::now().wrapping_sub(begin) > patience {
            return Some(false);
        }
    }
}
