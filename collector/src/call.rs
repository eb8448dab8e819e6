//! The course of a recorded call: the work of a wrapper around the real function.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{Ordering, compiler_fence};

use laggard_callpath::CallSite;
use laggard_trace::{Subject, flags};

use crate::classes::completion::Scratch;
use crate::clock;
use crate::log;
use crate::run;
use crate::signature::Raw;
use crate::steering;
use crate::stream::Stream;
use crate::thread::{STATE, Thread, UNRECORDED, adopt, slot, state};

/// What is kept of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    All,
    /// A place in the profile, and a record if calls of other ranks may match it.
    Profiled,
    /// That record alone.
    Matched,
}

/// A call in progress: the wrapper's data beside the arguments.
pub struct Call {
    thread: *mut Thread,
    pub site: CallSite,
    /// Number of the call.
    pub number: u16,
    /// Entry of the real function, ticks.
    pub enter: u64,
    /// Return of the real function, ticks.
    pub leave: u64,
    /// Return value of the real function and of the wrapper.
    pub result: i32,
    state: u32,
    /// Call path, or `UNKNOWN_PATH`.
    path: u32,
}

/// Stands for a call path that is not known yet.
const UNKNOWN_PATH: u32 = u32::MAX;

impl Call {
    /// Begins a call; `None` if it is not to be recorded.
    #[inline(always)]
    pub fn begin(site: CallSite, number: u16) -> Option<Call> {
        let state = STATE.load(Ordering::Relaxed);
        if state & state::RECORDING == 0 {
            return None;
        }
        // SAFETY: the slot belongs to this thread.
        let mut thread = unsafe { *slot() };
        if thread.is_null() || thread == UNRECORDED {
            thread = adopt(thread)?;
        }
        // SAFETY: states live as long as their threads.
        unsafe {
            if site.sp < (*thread).active && (*thread).is_nested(site.sp) {
                return None;
            }
            (*thread).active = site.sp;
            (*thread).frame = [site.ra, site.bp];
        }
        Some(Call {
            thread,
            site,
            number,
            enter: 0,
            leave: 0,
            result: 0,
            state,
            path: UNKNOWN_PATH,
        })
    }

    /// A call without thread state: MPI_Init, or MPI_Finalize of a process that no longer
    /// records.
    pub fn outside(site: CallSite, number: u16) -> Call {
        Call {
            thread: ptr::null_mut(),
            site,
            number,
            enter: 0,
            leave: 0,
            result: 0,
            state: 0,
            path: UNKNOWN_PATH,
        }
    }

    /// A call that has returned, between these times.
    pub fn over(
        thread: *mut Thread,
        site: CallSite,
        number: u16,
        (enter, leave): (u64, u64),
    ) -> Call {
        Call {
            thread,
            enter,
            leave,
            ..Call::outside(site, number)
        }
    }

    /// Whether the call has no thread state.
    pub fn is_outside(&self) -> bool {
        self.thread.is_null()
    }

    /// Gives a call that began outside the state of its thread.
    pub fn adopt(&mut self) -> bool {
        // SAFETY: the slot belongs to this thread.
        self.thread = unsafe { *slot() };
        if self.thread.is_null() || self.thread == UNRECORDED {
            self.thread = ptr::null_mut();
            return false;
        }
        self.claim()
    }

    /// Takes the time before the real call and marks the call as open in the trace, in case it
    /// never returns.
    #[inline(always)]
    pub fn enter(&mut self, subject: impl FnOnce(&mut Stream) -> Subject) {
        if self.thread.is_null() || !self.claim() {
            self.enter = clock::now();
            return;
        }
        // SAFETY: `claim` found the process recording: nobody has closed the stream.
        let stream = unsafe { (*self.thread).stream.as_mut().unwrap_unchecked() };
        self.path = stream.path(&self.site);
        let subject = subject(stream);
        self.enter = stream.enters(self.number, self.path, &subject);
        self.release();
    }

    /// Takes the time after the real call; `false` if recording ended meanwhile.
    #[inline(always)]
    pub fn returned(&mut self, result: i32) -> bool {
        self.leave = clock::now();
        self.result = result;
        if self.thread.is_null() {
            return true;
        }
        self.add_inside();
        let is_recorded = self.claim();
        if is_recorded {
            let (enter, leave) = (self.enter, self.leave);
            self.stream().returns(enter, leave);
        }
        is_recorded
    }

    /// Adds the call to the thread's time in calls.
    #[inline(always)]
    pub fn add_inside(&mut self) {
        // SAFETY: the thread's own state.
        let thread = unsafe { &mut *self.thread };
        thread.inside = thread
            .inside
            .wrapping_add(self.leave.wrapping_sub(self.enter));
    }

    /// Claims the stream for this thread, if the process still records.
    #[inline(always)]
    pub fn claim(&mut self) -> bool {
        // SAFETY: the thread's own state.
        let thread = unsafe { &mut *self.thread };
        thread.busy.store(true, Ordering::Relaxed);
        // The processor may still move the load below ahead of the store. The thread that
        // closes streams therefore issues a `membarrier` in between, which costs nothing here.
        compiler_fence(Ordering::SeqCst);
        self.state = STATE.load(Ordering::Relaxed);
        if self.state & state::RECORDING == 0 {
            thread.busy.store(false, Ordering::Release);
            thread.active = 0;
            return false;
        }
        true
    }

    /// Leaves the stream before the call has ended.
    #[inline(always)]
    pub fn release(&mut self) {
        // SAFETY: the thread's own state.
        unsafe { (*self.thread).busy.store(false, Ordering::Release) };
    }

    /// Ends the call.
    #[inline(always)]
    pub fn finish(&mut self) {
        if self.thread.is_null() {
            return;
        }
        // SAFETY: the thread's own state.
        let thread = unsafe { &mut *self.thread };
        thread.busy.store(false, Ordering::Release);
        thread.active = 0;
    }

    /// The thread's state. Its stream may be used between `returned` and `finish`.
    #[inline(always)]
    pub fn thread(&mut self) -> &mut Thread {
        // SAFETY: the thread's own state; a call borrows it once at a time.
        unsafe { &mut *self.thread }
    }

    /// The thread's stream.
    #[inline(always)]
    pub fn stream(&mut self) -> &mut Stream {
        // SAFETY: `claim` found the process recording: nobody has closed the stream.
        unsafe { (*self.thread).stream.as_mut().unwrap_unchecked() }
    }

    /// The thread's stream and scratch memory.
    #[inline(always)]
    pub fn parts(&mut self) -> (&mut Stream, &mut Scratch, u32) {
        // SAFETY: as above.
        unsafe {
            let thread = &mut *self.thread;
            (
                thread.stream.as_mut().unwrap_unchecked(),
                &mut thread.scratch,
                thread.number,
            )
        }
    }

    /// The call's signature so far: number, call path, and whether it failed.
    #[inline(always)]
    pub fn raw(&mut self) -> Raw {
        if self.path == UNKNOWN_PATH {
            let site = self.site;
            self.path = self.stream().path(&site);
        }
        let mut raw = Raw::new(self.number, self.path);
        match self.kept() {
            Kept::All => {}
            Kept::Profiled => {
                raw.flags |= flags::PAUSED | flags::PROFILED;
                self.stream().note_paused();
            }
            Kept::Matched => {
                raw.flags |= flags::PAUSED;
                self.stream().note_paused();
            }
        }
        if self.result != crate::constants::SUCCESS {
            raw.flags |= flags::FAILED;
        }
        raw
    }

    /// Whether the real call succeeded.
    #[inline(always)]
    pub fn succeeded(&self) -> bool {
        self.result == crate::constants::SUCCESS
    }

    /// Whether recording is paused, for this call at least.
    #[inline(always)]
    pub fn is_paused(&self) -> bool {
        self.kept() == Kept::Matched
    }

    /// What is kept of the call.
    #[inline(always)]
    fn kept(&self) -> Kept {
        match self.state & state::LESS {
            0 => Kept::All,
            _ => self.kept_of_less(),
        }
    }

    #[cold]
    #[inline(never)]
    fn kept_of_less(&self) -> Kept {
        if self.state & state::PAUSED != 0 || steering::is_left_out(self.number) {
            return Kept::Matched;
        }
        match self.state & state::PROFILE {
            0 => Kept::All,
            _ => Kept::Profiled,
        }
    }

    /// Records the call with this signature.
    #[inline(always)]
    pub fn record(&mut self, raw: &Raw) {
        let (enter, leave) = (self.enter, self.leave);
        self.stream().record(raw, enter, leave);
    }

    /// Records a call on symmetric memory, unless recording is paused.
    #[inline(always)]
    pub fn record_on_memory(&mut self, raw: &Raw, address: u64, value: Option<u64>) {
        let (enter, leave, kept) = (self.enter, self.leave, self.kept());
        let stream = self.stream();
        match kept {
            Kept::All => stream.record_on_memory(raw, address, value, enter, leave),
            Kept::Profiled => stream.count(raw, enter, leave),
            Kept::Matched => stream.skip(),
        }
    }

    /// Records a call that completed nothing, such as a test without success.
    pub fn record_unsuccessful(&mut self, raw: &Raw) {
        let (enter, leave, kept) = (self.enter, self.leave, self.kept());
        let stream = self.stream();
        match kept {
            Kept::All => stream.record_polling(raw, enter, leave),
            Kept::Profiled => stream.count(raw, enter, leave),
            Kept::Matched => stream.skip(),
        }
    }

    /// Records a call that needs no matching with other calls, unless recording is paused.
    pub fn record_unless_paused(&mut self, raw: &Raw) {
        let (enter, leave) = (self.enter, self.leave);
        match self.kept() {
            Kept::All => self.record(raw),
            Kept::Profiled => self.stream().count(raw, enter, leave),
            Kept::Matched => self.stream().skip(),
        }
    }

    /// Runs `f`. A panic ends the recording, not the program.
    #[inline]
    pub fn guarded(&mut self, f: impl FnOnce(&mut Call)) {
        guarded(|| f(self));
    }
}

/// Runs `f`. A panic ends the recording, not the program.
#[inline]
pub fn guarded<T>(f: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => Some(value),
        Err(panic) => {
            internal_error(&*panic);
            None
        }
    }
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: i32, before: *mut i32) -> i32;
}

/// `PTHREAD_CANCEL_DISABLE`.
const CANCEL_DISABLE: i32 = 1;

/// Runs `f`, which is no cancellation point then: the program asked to end in its own calls. Nothing
/// here is made to be unwound, either. So all that opens, reads, writes and closes files by functions of the C
/// library is run so, and nothing that every call does: it has no such function.
pub fn uncancelled<T>(f: impl FnOnce() -> T) -> T {
    let mut cancel = 0;
    // SAFETY: the thread's own setting, and a variable to keep it.
    unsafe { pthread_setcancelstate(CANCEL_DISABLE, &mut cancel) };
    let result = f();
    // SAFETY: as above.
    unsafe { pthread_setcancelstate(cancel, &mut cancel) };
    result
}

#[cold]
fn internal_error(panic: &(dyn std::any::Any + Send)) {
    run::note_internal_error();
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text
        .or(panic.downcast_ref::<&str>().copied())
        .unwrap_or("panic");
    log::error!("internal error, recording stops: {text}");
}
