//! The course of a POSIX call on a recorded thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use laggard_callpath::CallSite;

use super::handlers;
use super::moved::Volume;
use crate::call::{Call, guarded, uncancelled};
use crate::clock;
use crate::constants;
use crate::run;
use crate::thread::{STATE, Thread, UNRECORDED, slot, state};

/// Calls at least this long are records. What is shorter did not wait for a device, and stays
/// part of the computation.
const LEAST: Duration = Duration::from_micros(20);

/// The same, ticks.
static LEAST_TICKS: AtomicU64 = AtomicU64::new(u64::MAX);

/// Runs when the recording begins, before any call is recorded. Returns the bit of [`STATE`]
/// that makes wrappers record.
pub fn ready() -> u32 {
    LEAST_TICKS.store(clock::ticks(LEAST), Ordering::Relaxed);
    handlers::prepare();
    state::POSIX
}

/// Ends the recording of POSIX calls: what follows is the library's own end.
pub fn suspend() {
    STATE.fetch_and(!state::POSIX, Ordering::Relaxed);
}

/// Whether calls of this thread may become records.
#[inline(always)]
pub fn is_recorded() -> bool {
    const WANTED: u32 = state::RECORDING | state::POSIX;
    if STATE.load(Ordering::Relaxed) & (WANTED | state::PAUSED) != WANTED {
        return false;
    }
    // SAFETY: the slot belongs to this thread. No state is made here: this may be a handler.
    let thread = unsafe { *slot() };
    !thread.is_null() && thread != UNRECORDED
}

/// A call in progress. A thread may end in it, so it has nothing to drop.
#[derive(Clone, Copy)]
pub struct Course {
    thread: *mut Thread,
    site: CallSite,
    /// The thread's active wrapper before, or what is left of one.
    active: u64,
    frame: [u64; 2],
}

impl Course {
    /// Begins a call of a recorded thread; `None` if it is not to be recorded: it is part of
    /// another call or of the collector, or comes from another stack, such as a handler's.
    #[inline(always)]
    pub fn begin(site: CallSite) -> Option<Course> {
        // SAFETY: `is_recorded` found a state, and states live as long as their threads.
        let (pointer, thread) = unsafe {
            let pointer = *slot();
            (pointer, &mut *pointer)
        };
        if thread.busy.load(Ordering::Relaxed) || !thread.has_on_stack(site.sp) {
            return None;
        }
        if site.sp < thread.active && is_nested(thread, site.sp) {
            return None;
        }
        let course = Course {
            thread: pointer,
            site,
            active: thread.active,
            frame: thread.frame,
        };
        thread.active = site.sp;
        thread.frame = [site.ra, site.bp];
        Some(course)
    }

    /// The time before the real call, ticks.
    #[inline(always)]
    pub fn enter(&self) -> u64 {
        let now = clock::now();
        // SAFETY: the thread's own state, and a stream that is not in use.
        let stream = unsafe { (*self.thread).stream.as_ref() };
        match stream.is_some_and(|stream| stream.is_long(now)) {
            true => self.end_stretch(now),
            false => now,
        }
    }

    /// Looks at the stretch before the call, where that is safe.
    #[cold]
    #[inline(never)]
    fn end_stretch(&self, now: u64) -> u64 {
        let mut call = Call::over(self.thread, self.site, 0, (now, now));
        if !self.is_safe() || !call.claim() {
            return now;
        }
        let now = call.stream().ends_stretch();
        call.release();
        now
    }

    /// Ends a call that was entered at `enter`, ticks. `volume` is what it moved, `None` if it
    /// failed.
    #[inline(always)]
    pub fn end(self, number: u16, enter: u64, volume: impl FnOnce() -> Option<Volume>) {
        let leave = clock::now();
        if leave.wrapping_sub(enter) >= LEAST_TICKS.load(Ordering::Relaxed) {
            self.record(number, (enter, leave), volume());
        }
        // A handler may have come between a wrapper's first steps: that one goes on as it was.
        // SAFETY: the thread's own state.
        let thread = unsafe { &mut *self.thread };
        thread.active = self.active;
        thread.frame = self.frame;
    }

    /// Records the call where that is safe, and leaves `errno` as it is.
    #[cold]
    #[inline(never)]
    fn record(&self, number: u16, times: (u64, u64), volume: Option<Volume>) {
        // SAFETY: the calling thread's errno.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        let before = unsafe { *errno };
        uncancelled(|| {
            if self.is_safe() {
                guarded(|| self.write(number, times, volume));
            }
        });
        // SAFETY: as above.
        unsafe { *errno = before };
    }

    /// Whether this thread may take memory and locks now, and the trace is its own.
    fn is_safe(&self) -> bool {
        // SAFETY: the thread's own state.
        is_safe(self.site.sp, unsafe { (*self.thread).stack() })
    }

    fn write(&self, number: u16, (enter, leave): (u64, u64), volume: Option<Volume>) {
        let mut call = Call::over(self.thread, self.site, number, (enter, leave));
        if volume.is_none() {
            call.result = !constants::SUCCESS;
        }
        if !call.claim() {
            return;
        }
        call.add_inside();
        let mut raw = call.raw();
        if let Some(volume) = volume {
            (raw.send, raw.receive) = (volume.send, volume.receive);
        }
        call.stream().returned(enter, leave);
        call.record_unless_paused(&raw);
        call.release();
    }
}

/// Whether a thread with this stack may take memory and locks in a call at `sp`, and the trace is its
/// own.
pub fn is_safe(sp: u64, stack: &std::ops::Range<u64>) -> bool {
    // A child of vfork shares the memory of its parent.
    // SAFETY: takes no arguments.
    let pid = unsafe { libc::syscall(libc::SYS_getpid) };
    let is_own = run::settings().is_some_and(|s| i64::from(s.header.pid) == pid);
    is_own && !handlers::is_inside(sp, stack)
}

/// Whether a wrapper of the thread is active above a call at `sp`.
#[cold]
#[inline(never)]
fn is_nested(thread: &Thread, sp: u64) -> bool {
    // SAFETY: the calling thread's errno, which the look at another stack may change.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let is_nested = thread.is_nested(sp);
        *errno = before;
        is_nested
    }
}

// See above.
const _: () = assert!(!std::mem::needs_drop::<Course>());
