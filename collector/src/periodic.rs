//! Measurements of the clocks while the program runs (`LAGGARD_SYNC_INTERVAL_S`).
//!
//! *When.* All ranks make the same blocking collectives on `MPI_COMM_WORLD`, in the same
//! order, whatever else they do; so their number is the one thing that all know without a
//! message. After those in which everybody waits for everybody, the leaders of the hosts
//! count; every so many they *meet*: rank 0 tells the others whether it is time to measure
//! and when to meet next, which it chooses so that there are few meetings in an interval.
//! Other ranks do nothing.
//!
//! *No harm.* Rank 0 leaves such a collective when the others do, so nobody waits long,
//! and the time is between two calls of the program. Should ranks have counted differently
//! all the same (a tool that makes collectives on some ranks only, a process that is
//! stopped), nobody waits longer than [`PATIENCE`]: who does measures no more.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use laggard_trace::ClockPoint;

use crate::call::{Call, guarded};
use crate::clock;
use crate::constants::{Handle, constants};
use crate::ffi::MPI_Comm;
use crate::log::info;
use crate::sync::{self, Talk};
use crate::thread;

/// Rank 0 waits so long for a leader, leaders four times as long for rank 0: others may be
/// served before.
const PATIENCE: Duration = Duration::from_secs(1);
/// Exchanges with each leader.
const ROUNDS: usize = 10;
/// The number of collectives between two meetings grows at most so fast: a program may
/// become slower.
const GROWTH: u64 = 4;
/// `ClockPoint::kind`.
const KIND: u32 = 2;

/// This rank leads a host, and clocks are to be compared.
static ON: AtomicBool = AtomicBool::new(false);
/// Collectives up to the next meeting.
static LEFT: AtomicU64 = AtomicU64::new(0);
static MEETINGS: Mutex<Option<Meetings>> = Mutex::new(None);

/// A leader's part in the meetings.
struct Meetings {
    leaders: MPI_Comm,
    rank: i32,
    /// In ticks.
    interval: u64,
    /// When the last measurement and the last meeting were, ticks.
    measured: u64,
    met: u64,
    /// Collectives from the last meeting to this one.
    step: u64,
    /// For rank 0: the leaders that did not give up, with room for what is sent to them.
    /// For the others: the room for what is sent to rank 0.
    peers: Vec<Peer>,
}

// SAFETY: a handle, and memory of its own.
unsafe impl Send for Meetings {}

struct Peer {
    rank: i32,
    is_lost: bool,
    /// What is being sent: stays where it is, also if the library never lets go of it.
    outgoing: &'static mut [u64; 2],
}

/// Begins to count, if this rank leads a host. `leaders` is null where it does not.
pub fn start(leaders: MPI_Comm, interval: Duration) {
    if interval.is_zero() || leaders.bits() == constants().comm_null.bits() {
        return;
    }
    let (rank, size) = sync::place(leaders);
    let peers = if rank == 0 { 1..size } else { 0..1 };
    let peer = |rank| Peer {
        rank,
        is_lost: false,
        outgoing: Box::leak(Box::new([0; 2])),
    };
    let now = clock::now();
    let meetings = Meetings {
        leaders,
        rank,
        interval: clock::ticks(interval).max(1),
        measured: now,
        met: now,
        step: 1,
        peers: peers.map(peer).collect(),
    };
    if let Ok(mut known) = MEETINGS.lock() {
        *known = Some(meetings);
        LEFT.store(1, Ordering::Relaxed);
        ON.store(true, Ordering::Relaxed);
    }
}

/// No more meetings: MPI ends, or this is another process now.
pub fn stop() {
    ON.store(false, Ordering::Relaxed);
}

/// Whether collectives are to be counted.
#[inline(always)]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// After a collective in which all members waited for all, which has been recorded.
#[cold]
#[inline(never)]
pub fn after(call: &mut Call, comm: MPI_Comm) {
    if !is_turn(comm) {
        return;
    }
    // The stream may be closed meanwhile.
    call.release();
    let point = meet();
    if call.claim()
        && let Some(point) = point
    {
        call.stream().clock(&[point]);
    }
}

/// After one that is not recorded: the other leaders count it, too.
#[cold]
#[inline(never)]
pub fn after_unrecorded(comm: MPI_Comm) {
    // One inside another call: the library's own, or the same once more.
    if !thread::is_inside() && is_turn(comm) {
        guarded(meet);
    }
}

fn is_turn(comm: MPI_Comm) -> bool {
    comm.bits() == constants().comm_world.bits() && LEFT.fetch_sub(1, Ordering::Relaxed) == 1
}

/// Meets the other leaders; gives the point if clocks were compared.
fn meet() -> Option<ClockPoint> {
    // Collectives on one communicator follow one another, so nobody else is here.
    let mut meetings = MEETINGS.try_lock().ok()?;
    let meetings = meetings.as_mut()?;
    let outcome = match meetings.rank {
        0 => Some(meetings.lead()),
        _ => meetings.follow(),
    };
    let Some((step, measured)) = outcome else {
        stop();
        info!("rank 0 did not come to compare clocks: they are compared at the end again");
        return None;
    };
    meetings.step = step;
    LEFT.store(step, Ordering::Relaxed);
    measured.map(|values| sync::point(KIND, values))
}

impl Meetings {
    /// Rank 0: tells the others, and answers them in turn.
    fn lead(&mut self) -> (u64, Option<[u64; 3]>) {
        let now = clock::now();
        let since = now.wrapping_sub(self.measured);
        let is_due = since >= self.interval;
        let ahead = if is_due {
            self.interval
        } else {
            self.interval - since
        };
        let step = next_step(self.step, now.wrapping_sub(self.met), ahead);
        let talk = Talk::bounded(self.leaders, PATIENCE);
        for peer in &mut self.peers {
            *peer.outgoing = [u64::from(is_due), step];
            let is_told = peer.is_lost || talk.send(peer.rank, peer.outgoing).is_some();
            peer.is_lost |= !is_told;
        }
        let mut measured = None;
        if is_due {
            for peer in self.peers.iter_mut().filter(|peer| !peer.is_lost) {
                if sync::answer(&talk, peer.rank, ROUNDS, peer.outgoing).is_none() {
                    peer.is_lost = true;
                    let rank = peer.rank;
                    info!("the leader of host {rank} did not come to compare clocks");
                }
            }
            measured = Some(sync::own());
        }
        self.met = clock::now();
        if is_due {
            // When the last leader was answered: intervals count from there for all of them.
            self.measured = self.met;
        }
        (step, measured)
    }

    /// Another leader; `None` if rank 0 does not come.
    fn follow(&mut self) -> Option<(u64, Option<[u64; 3]>)> {
        let talk = Talk::bounded(self.leaders, 4 * PATIENCE);
        let [is_due, step] = talk.receive(0)?;
        let measured = match is_due {
            0 => None,
            _ => Some(sync::ask(&talk, ROUNDS, self.peers[0].outgoing)?),
        };
        Some((step.max(1), measured))
    }
}

/// After how many collectives to meet again, when the last `step` took `elapsed` ticks and
/// it is time to measure in `ahead` ticks: a little before that.
fn next_step(step: u64, elapsed: u64, ahead: u64) -> u64 {
    let fitting = u128::from(step) * u128::from(ahead) / u128::from(elapsed.max(1));
    let most = step.saturating_mul(GROWTH).min(1 << 32);
    u64::try_from(fitting / 4 * 3).map_or(most, |fitting| fitting.clamp(1, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Meetings and measurements of a program that makes a collective every `pace` ticks.
    fn simulate(pace: impl Fn(u64) -> u64, end: u64, interval: u64) -> (u64, Vec<u64>) {
        let (mut now, mut met, mut measured, mut step) = (0, 0, 0, 1);
        let (mut meetings, mut points) = (0, Vec::new());
        while now < end {
            for _ in 0..step {
                now += pace(now);
            }
            meetings += 1;
            let since = now - measured;
            let is_due = since >= interval;
            let ahead = if is_due { interval } else { interval - since };
            step = next_step(step, now - met, ahead);
            if is_due {
                measured = now;
                points.push(now);
            }
            met = now;
        }
        (meetings, points)
    }

    #[test]
    fn few_meetings_give_a_measurement_in_every_interval() {
        let (meetings, points) = simulate(|_| 10, 100_000_000, 1_000_000);
        assert!((95..=100).contains(&points.len()), "{}", points.len());
        assert!(meetings < 100 * 25, "{meetings}");
        // Collectives rarer than measurements are wanted.
        let (meetings, points) = simulate(|_| 3_000_000, 100_000_000, 1_000_000);
        assert_eq!(meetings, points.len() as u64);
    }

    #[test]
    fn a_program_that_becomes_slower_is_measured_soon() {
        let pace = |now| if now < 10_000_000 { 10 } else { 10_000 };
        let (_, points) = simulate(pace, 3_000_000_000, 1_000_000);
        let gaps = points.windows(2).map(|two| two[1] - two[0]);
        let late = gaps.filter(|&gap| gap > 2_000_000).count();
        assert!(late <= 1, "{late}");
    }
}
