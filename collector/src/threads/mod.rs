//! Threads of the process that wait for each other: OpenMP teams, and locks of POSIX threads.
//!
//! Each wait becomes a record of the thread that waits, with a *key* that says what it waits for:
//! the meeting of a team, or a lock. Whoever ends the wait has a record with the same key. The
//! analysis joins them; here nobody knows who was late.
//!
//! *Constraints.* While a thread waits it is in no recorded call: tasks that it runs meanwhile may
//! call MPI. Threads may be cancelled in a wait, so nothing here has to be dropped.
//!
//! *Not supported.* Teams that begin with `GOMP_parallel_start`, as compilers before GCC 4.9 made
//! them.

mod admission;
mod births;
mod early;
mod gomp;
mod left_out;
mod locks;
mod ompt;
mod ordered;
mod signals;
mod tasks;
mod team;

use std::sync::atomic::{AtomicU64, Ordering};

use laggard_callpath::CallSite;
use laggard_trace::flags;

use crate::call::{Call, guarded};
use crate::clock;
use crate::signature::Raw;
use crate::stream::Stream;
use crate::thread::{STATE, Thread, UNRECORDED, adopt, slot, state};
pub use births::{birth, ends_samples, number, sampler};
pub use early::{Kept, tell};
pub use left_out::is_own;
pub use team::{Membership, ends};

/// Runs when this library is loaded.
pub fn loaded() {
    locks::loaded();
    signals::loaded();
    crate::next::fill(births::CREATES.iter().copied());
}

/// Recording begins.
pub fn begins() {
    admission::begins();
    left_out::leave_out();
    births::begins();
    team::begins();
}

/// Recording goes on after a pause.
pub fn goes_on() {
    team::begins();
}

/// What the process could not record of waits among its threads.
struct Missed {
    /// Waits of threads that are no locations since there are too many.
    waits: AtomicU64,
    /// Regions in too many others.
    regions: AtomicU64,
}

static MISSED: Missed = Missed {
    waits: AtomicU64::new(0),
    regions: AtomicU64::new(0),
};

/// How often the process missed something, by what its trace calls that; nothing for what is complete.
pub fn missed() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    let counts = [
        ("waits_left_out", &MISSED.waits),
        ("regions_too_deep", &MISSED.regions),
    ];
    let counts = counts.map(|(key, count)| (key, count.load(Ordering::Relaxed)));
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    counts.map(|(key, count)| (key, count.to_string().into_bytes()))
}

/// What recording waits among threads needs.
const WANTED: u32 = state::RECORDING | state::THREADS;

/// Whether waits among threads are recorded now.
#[inline(always)]
fn is_recorded() -> bool {
    STATE.load(Ordering::Relaxed) & (WANTED | state::PAUSED) == WANTED
}

/// Whether recording is paused now.
fn is_paused() -> bool {
    STATE.load(Ordering::Relaxed) & state::PAUSED != 0
}

/// Where a record lies in the program.
#[derive(Clone, Copy)]
enum Place {
    /// At a call that has not returned yet.
    Call(CallSite),
    /// At this address: its call is over, or was a library's.
    Code(u64),
    /// The same in the region with this path.
    Within(u64, u32),
    /// The same in the region that the thread is in: of this path if it has forked that, 0 = it has not.
    Told(u64, u32),
    /// Already known.
    Path(u32),
}

impl Place {
    /// Where the calling thread makes a call now. Compilers make a region's last call a jump, which returns to what
    /// called the region's function: that function is the place then.
    fn here(site: CallSite) -> Place {
        team::ended_in(site).map_or(Place::Call(site), Place::Code)
    }

    /// Where it has made a call that returns to `code`, as a runtime tells. After such a jump that is the runtime's own
    /// code: the place is where the region begins.
    fn before(site: CallSite, code: u64) -> Place {
        let begin = ompt::is_of_runtime(code).then(|| team::begun_at(site));
        let begin = begin.flatten();
        Place::Told(begin.unwrap_or(code.wrapping_sub(1)), team::forked_at(site))
    }

    /// The call path.
    fn path(self, stream: &mut Stream) -> u32 {
        match self {
            Place::Call(site) => stream.path(&site),
            Place::Code(address) => stream.code_path(address, 0),
            Place::Within(address, region) => stream.code_path(address, region),
            Place::Told(address, 0) => stream.code_path(address, stream.around()),
            Place::Told(address, region) => stream.code_path(address, region),
            Place::Path(path) => path,
        }
    }
}

/// A record without its times.
#[derive(Clone, Copy)]
struct What {
    /// Number of the operation.
    number: u16,
    place: Place,
    parameter: u64,
    /// What the wait is for.
    key: u64,
}

impl What {
    /// Writes the record, between these times.
    fn write(&self, stream: &mut Stream, (enter, leave): (u64, u64)) {
        stream.returned(enter, leave);
        self.write_of(stream, is_paused(), (enter, leave));
    }

    /// The same after the stream was told that the wait is over. While recording is `paused`, what was begun before
    /// goes on: others of a team meet there.
    fn write_of(&self, stream: &mut Stream, paused: bool, (enter, leave): (u64, u64)) {
        let path = self.place.path(stream);
        let flags = match paused {
            true => {
                stream.note_paused();
                flags::PAUSED
            }
            false => 0,
        };
        let raw = Raw {
            flags,
            extra: self.parameter,
            ..Raw::new(self.number, path)
        };
        stream.record_keyed(&raw, self.key, (enter, leave));
    }
}

/// A recorded thread at a wait.
#[derive(Clone, Copy)]
struct Waiter {
    thread: *mut Thread,
    site: CallSite,
}

impl Waiter {
    /// The calling thread; `None` if it is not recorded now, or is in another recorded call.
    #[inline(always)]
    fn begin(site: CallSite) -> Option<Waiter> {
        if !is_recorded() {
            return None;
        }
        // SAFETY: the slot belongs to this thread.
        let mut thread = unsafe { *slot() };
        if thread.is_null() || thread == UNRECORDED {
            thread = adopt(thread)?;
        }
        Waiter::of(thread, site)
    }

    /// The same for what was begun while the thread was recorded: recording may be paused since.
    #[inline(always)]
    fn goes_on(site: CallSite) -> Option<Waiter> {
        // SAFETY: the slot belongs to this thread.
        let thread = unsafe { *slot() };
        let is_known = !thread.is_null() && thread != UNRECORDED;
        let is_known = is_known && STATE.load(Ordering::Relaxed) & WANTED == WANTED;
        is_known.then(|| Waiter::of(thread, site)).flatten()
    }

    /// A recorded thread; `None` if it is in another recorded call.
    #[inline(always)]
    fn of(thread: *mut Thread, site: CallSite) -> Option<Waiter> {
        // SAFETY: states live as long as their threads.
        let state = unsafe { &*thread };
        if state.busy.load(Ordering::Relaxed) || site.sp < state.active && state.is_nested(site.sp)
        {
            return None;
        }
        Some(Waiter { thread, site })
    }

    /// What the thread is in.
    fn membership(&self) -> &'static mut Membership {
        // SAFETY: the thread's own state, which lives as long as it does.
        unsafe { &mut (*self.thread).membership }
    }

    /// The time at which the wait begins: computation ends. `then` runs while the stream is
    /// claimed.
    #[inline(always)]
    fn enter(&self, then: impl FnOnce(&mut Membership, u64)) -> u64 {
        let mut call = Call::over(self.thread, self.site, 0, (0, 0));
        if !call.claim() {
            return clock::now();
        }
        let now = call.stream().ends_stretch();
        then(&mut call.thread().membership, now);
        call.release();
        now
    }

    /// Records a wait that is over. It counts from the last call on that a task of the thread has made
    /// meanwhile.
    #[inline(always)]
    fn record(&self, what: &What, (enter, leave): (u64, u64)) {
        // SAFETY: the thread's own state, and a stream that is not in use.
        let stream = unsafe { (*self.thread).stream.as_ref() };
        let last = stream.map_or(enter, Stream::left);
        self.note(what, (enter.max(last).min(leave), leave));
    }

    /// Records a call between these times, which nobody was told of when it began.
    fn note_afterwards(&self, what: &What, (enter, leave): (u64, u64)) {
        let mut call = Call::over(self.thread, self.site, what.number, (enter, leave));
        if !call.claim() {
            return;
        }
        let after = call.stream().ends_stretch_before(enter, leave);
        call.add_inside();
        guarded(|| what.write(call.stream(), (enter, leave)));
        call.stream().goes_on_with(&after);
        call.release();
    }

    /// Records a call between these times.
    #[inline(always)]
    fn note(&self, what: &What, (enter, leave): (u64, u64)) {
        let mut call = Call::over(self.thread, self.site, what.number, (enter, leave));
        if !call.claim() {
            return;
        }
        call.add_inside();
        guarded(|| what.write(call.stream(), (enter, leave)));
        call.release();
    }
}
