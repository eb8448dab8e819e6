//! Repeats one benchmark. Members begin each repetition together.
//!
//! Rank 0 names a time a little ahead, and all wait for it. Before the next repetition, a reduction
//! tells it how far apart the members began and how long the slowest took. The reduction also
//! signals that all are ready. So rank 0 knows when the shortest time has settled.
//!
//! Marks in the trace enclose the timed part: calls of `MPI_Pcontrol` with levels that tell the
//! collector to go on recording, which it does anyway.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use laggard_comm::waiting;

use super::benchmarks::{Steps, call};
use super::clock;
use super::world::Members;

/// Shortest and longest time ahead, ns.
const AHEAD: (i64, i64) = (3_000, 2_000_000);
/// Members may begin apart by this share of the duration …
const SKEW_SHARE: i64 = 10;
/// … and by this in any case, ns.
const SKEW: i64 = 150;
/// The shortest time has settled after this many repetitions without a shorter one.
const SETTLED: usize = 40;
/// A smaller difference is no shorter time, %.
const SHORTER: i64 = 2;
/// The mark before the timed part …
pub const BEGIN: i64 = 1;
/// … and the one after it.
pub const END: i64 = 2;
/// Repetitions before any counts.
pub const WARM_UP: usize = 3;

/// Limits of the repetitions.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Least repetitions.
    pub least: usize,
    /// Most.
    pub most: usize,
    /// Their total time.
    pub time: Duration,
}

/// Rank 0's knowledge of the repetitions, ns.
#[derive(Clone, Debug, Default)]
pub struct Repetitions {
    /// How far apart the members began each, warm-up included.
    pub skews: Vec<u32>,
    /// The shortest time of the slowest member.
    pub shortest: i64,
    /// How many there were, known to all members.
    pub count: usize,
}

/// Decides when there are enough.
struct Progress {
    limits: Limits,
    began: Instant,
    since_shorter: usize,
    found: Repetitions,
}

impl Progress {
    fn take(&mut self, skew: i64, longest: i64) {
        let found = &mut self.found;
        found.skews.push(skew.clamp(0, i64::from(u32::MAX)) as u32);
        if found.skews.len() <= WARM_UP {
            return;
        }
        let together = skew <= (longest / SKEW_SHARE).max(SKEW);
        if together && longest < found.shortest - found.shortest * SHORTER / 100 {
            self.since_shorter = 0;
        } else {
            self.since_shorter += 1;
        }
        if together || found.shortest == i64::MAX {
            found.shortest = found.shortest.min(longest);
        }
    }

    fn is_enough(&self) -> bool {
        let count = self.found.skews.len();
        count >= self.limits.least + WARM_UP
            && (count >= self.limits.most + WARM_UP
                || self.since_shorter >= SETTLED
                || self.began.elapsed() >= self.limits.time)
    }
}

/// Waits until the clock shows `start`; returns its time then.
fn wait_for(start: i64, yields: bool) -> i64 {
    loop {
        let now = clock::now();
        if now >= start {
            return now;
        }
        match yields {
            true => waiting::leave_core(),
            false => std::hint::spin_loop(),
        }
    }
}

/// Repeats a benchmark. `offset` is this rank's clock minus rank 0's. `yields` says whether a host
/// has more members than cores. Collective.
pub fn repeat(
    members: &Members,
    steps: &mut Steps,
    limits: Limits,
    offset: i64,
    yields: bool,
) -> Repetitions {
    let mut progress = Progress {
        limits,
        began: Instant::now(),
        since_shorter: 0,
        found: Repetitions {
            shortest: i64::MAX,
            ..Repetitions::default()
        },
    };
    let (mut ahead, mut last) = (AHEAD.0, None);
    loop {
        (steps.before)();
        // From the previous repetition: latest and, negated, earliest beginning; longest time; how
        // late after its beginning any member learnt of it.
        let mut told = last.unwrap_or([0; 4]);
        members.maximum(&mut told);
        let mut start = 0;
        if members.rank == 0 {
            if last.is_some() {
                let (latest, earliest) = (told[0], -told[1]);
                progress.take(latest - earliest, told[2]);
                // If a member learns of the time too late, the next one is later. A member that
                // only waited for a core would do so again.
                ahead = match told[3] > 0 {
                    true => (ahead * 2).min(AHEAD.1),
                    false => (ahead - ahead / 16).max(AHEAD.0),
                };
            }
            if !progress.is_enough() {
                start = clock::now() + ahead;
            }
        }
        let mut bytes = start.to_ne_bytes();
        members.broadcast(&mut bytes);
        start = i64::from_ne_bytes(bytes);
        if start == 0 {
            // Uses up the preparation as always.
            (steps.timed)();
            (steps.after)();
            break;
        }
        call!(MPI_Pcontrol(BEGIN as c_int));
        progress.found.count += 1;
        let learnt = clock::now();
        let began = wait_for(start + offset, yields);
        (steps.timed)();
        let ended = clock::now();
        call!(MPI_Pcontrol(END as c_int));
        (steps.after)();
        let late = began - start - offset;
        last = Some([late, -late, ended - began, learnt - start - offset]);
    }
    progress.found
}
