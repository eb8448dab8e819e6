//! Measurements of the clocks while the program runs (`LAGGARD_SYNC_INTERVAL_S`).
//!
//! *When.* All ranks make the same blocking collectives on `MPI_COMM_WORLD` in the same order.
//! Their number is therefore known to all ranks without a message. The leader of each host
//! counts the collectives in which every rank waits for every other. At agreed counts the
//! leaders *meet*: rank 0 tells the others whether to measure now and when to meet next. It
//! chooses few meetings per interval. Other ranks do nothing.
//!
//! *No harm.* Rank 0 leaves such a collective when the others do, so nobody waits long. The
//! time falls between two calls of the program. Ranks may still count differently: a tool makes
//! collectives on some ranks only, or a process is stopped. Then no rank waits longer than
//! [`PATIENCE`], and the rank that waited measures no more.

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

/// Rank 0 waits this long for a leader. Leaders wait four times as long for rank 0, which may
/// serve others first.
const PATIENCE: Duration = Duration::from_secs(1);
/// Exchanges with each leader.
const ROUNDS: usize = 10;
/// Largest growth factor of the number of collectives between two meetings: a program may
/// become slower.
const GROWTH: u64 = 4;
/// `ClockPoint::kind`.
const KIND: u32 = 2;

/// This rank leads a host and takes part in the measurements.
static ON: AtomicBool = AtomicBool::new(false);
/// Collectives left up to the next meeting.
static LEFT: AtomicU64 = AtomicU64::new(0);
static MEETINGS: Mutex<Option<Meetings>> = Mutex::new(None);

/// A leader's part in the meetings.
struct Meetings {
    leaders: MPI_Comm,
    rank: i32,
    /// In ticks.
    interval: u64,
    /// Times of the last measurement and of the last meeting, ticks.
    measured: u64,
    met: u64,
    /// Collectives from the last meeting to this one.
    step: u64,
    /// Rank 0: the leaders that have not given up, with their send buffers. Other leaders: the
    /// send buffer for rank 0.
    peers: Vec<Peer>,
}

// SAFETY: a handle and memory that it owns.
unsafe impl Send for Meetings {}

struct Peer {
    rank: i32,
    is_lost: bool,
    /// The message being sent. It must not move, even if the library never releases it.
    outgoing: &'static mut [u64; 2],
}

/// Begins to count if this rank leads a host; `leaders` is null on other ranks.
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

/// Ends the meetings: MPI ends, or this is a forked child.
pub fn stop() {
    ON.store(false, Ordering::Relaxed);
}

/// Whether collectives are to be counted.
#[inline(always)]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Called after a recorded collective in which all members waited for all.
#[cold]
#[inline(never)]
pub fn after(call: &mut Call, comm: MPI_Comm) {
    if !is_turn(comm) {
        return;
    }
    // Another thread may close the stream during the meeting.
    call.release();
    let point = meet();
    if call.claim()
        && let Some(point) = point
    {
        call.stream().clock(&[point]);
    }
}

/// Called after a collective that is not recorded: the other leaders count it, too.
#[cold]
#[inline(never)]
pub fn after_unrecorded(comm: MPI_Comm) {
    // A nested one is the library's own, or the same collective again.
    if !thread::is_inside() && is_turn(comm) {
        guarded(meet);
    }
}

fn is_turn(comm: MPI_Comm) -> bool {
    comm.bits() == constants().comm_world.bits() && LEFT.fetch_sub(1, Ordering::Relaxed) == 1
}

/// Meets the other leaders; returns the clock point if clocks were compared.
fn meet() -> Option<ClockPoint> {
    // Collectives on one communicator do not overlap, so no other thread is here.
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
    /// Rank 0: informs the other leaders and answers them in turn.
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
            // The time of the last answer: intervals count from here for all leaders.
            self.measured = self.met;
        }
        (step, measured)
    }

    /// Any other leader; `None` if rank 0 does not come.
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

/// Number of collectives up to the next meeting, which should fall just before the next
/// measurement. The last `step` collectives took `elapsed` ticks; the measurement is due in
/// `ahead` ticks.
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
        // Collectives come less often than the wanted measurements.
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
