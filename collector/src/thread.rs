//! The recording state of a thread, and the course of a recorded call.
//!
//! A wrapper is *nested* when another wrapper of the same thread is active further up
//! the stack: MPI libraries and tools call MPI functions themselves. Instead of a
//! depth counter, which a `longjmp` or an exception out of a call would leave wrong
//! for ever, the state keeps where the active wrapper's frame is; a wrapper at or above
//! it, or one that finds that frame overwritten, takes over.
//!
//! A thread's stream is only touched between [`Call::begin`]'s and
//! [`Call::finish`]'s marks of `busy`, so that another thread can close it at the end
//! of the run: it stops recording, makes all processors see it (`membarrier`), and
//! waits until nobody is busy.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, compiler_fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

use laggard_callpath::CallSite;
use laggard_trace::flags;

use crate::classes::completion::Scratch;
use crate::clock;
use crate::log;
use crate::run;
use crate::signature::Raw;
use crate::stream::Stream;

/// Bits of [`STATE`].
pub mod state {
    /// MPI is not initialised yet.
    pub const IDLE: u32 = 0;
    /// Calls are recorded.
    pub const RECORDING: u32 = 1;
    /// With `RECORDING`: the program or user paused it.
    pub const PAUSED: u32 = 2;
    /// Never again in this process.
    pub const OFF: u32 = 4;
}

/// What the process does with calls.
pub static STATE: AtomicU32 = AtomicU32::new(state::IDLE);

/// The recording state of one thread.
pub struct Thread {
    /// Stack address of the active outermost wrapper; 0 = none.
    active: u64,
    /// What stands in the two words below it: return address and frame pointer.
    frame: [u64; 2],
    /// The thread's stack.
    stack: std::ops::Range<u64>,
    /// The thread is at its stream right now.
    busy: AtomicBool,
    /// Number of the location within the rank.
    pub number: u32,
    /// The location; gone when it was closed.
    stream: Option<Stream>,
    /// Memory that calls with many requests use again and again.
    pub scratch: Scratch,
}

/// Threads with a state, for the one that closes their streams.
struct Threads {
    all: Vec<*mut Thread>,
    next: u32,
    key: Option<libc::pthread_key_t>,
}

// SAFETY: the pointers are used under the rules of this module only.
unsafe impl Send for Threads {}

static THREADS: Mutex<Threads> = Mutex::new(Threads {
    all: Vec::new(),
    next: 0,
    key: None,
});

fn threads() -> MutexGuard<'static, Threads> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// In place of a state: this thread is not recorded.
const UNRECORDED: *mut Thread = ptr::without_provenance_mut(usize::MAX & !7);

/// Where the calling thread's state is noted: a variable of the shim.
#[inline(always)]
fn slot() -> *mut *mut Thread {
    #[cfg(target_arch = "x86_64")]
    {
        let address: *mut *mut Thread;
        // SAFETY: what the compiler makes of a variable with the initial-exec model: the
        // thread pointer plus an offset that the dynamic linker has filled in.
        unsafe {
            std::arch::asm!(
                "mov {0}, qword ptr fs:0",
                "add {0}, qword ptr [rip + laggard_state@GOTTPOFF]",
                out(reg) address,
                options(pure, readonly, nostack)
            );
        }
        address
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the shim gives the address of a thread-local variable.
    unsafe {
        crate::ffi::laggard_thread().cast()
    }
}

/// A call on its way: what the wrapper knows of it beside its arguments.
pub struct Call {
    thread: *mut Thread,
    /// Where it was called from.
    pub site: CallSite,
    /// Number of the call.
    pub number: u16,
    /// Ticks at which the real function was entered.
    pub enter: u64,
    /// Ticks at which it returned.
    pub leave: u64,
    /// What it returned; what the wrapper will return.
    pub result: i32,
    state: u32,
}

impl Call {
    /// Begins a call, if it is to be recorded.
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
        })
    }

    /// A call without a thread's state: MPI_Init.
    pub fn outside(site: CallSite, number: u16) -> Call {
        Call {
            thread: ptr::null_mut(),
            site,
            number,
            enter: 0,
            leave: 0,
            result: 0,
            state: 0,
        }
    }

    /// Takes the time before the real call.
    #[inline(always)]
    pub fn enter(&mut self) {
        self.enter = clock::now();
    }

    /// Takes the time after the real call; `false` if recording ended meanwhile.
    #[inline(always)]
    pub fn returned(&mut self, result: i32) -> bool {
        self.leave = clock::now();
        self.result = result;
        self.thread.is_null() || self.claim()
    }

    /// Makes the stream this thread's to write, if recording goes on.
    #[inline(always)]
    pub fn claim(&mut self) -> bool {
        // SAFETY: the thread's own state.
        let thread = unsafe { &mut *self.thread };
        thread.busy.store(true, Ordering::Relaxed);
        // The processor may still let the load below pass the store: who closes
        // streams issues a `membarrier` in between, which costs nothing here.
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

    /// The thread's state.
    ///
    /// Between `returned` and `finish` its stream may be used.
    #[inline(always)]
    pub fn thread(&mut self) -> &mut Thread {
        // SAFETY: the thread's own state, and a call borrows it once at a time.
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
        let (site, number) = (self.site, self.number);
        let path = self.stream().path(site);
        let mut raw = Raw::new(number, path);
        if self.is_paused() {
            raw.flags |= flags::PAUSED;
            self.stream().note_paused();
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

    /// Whether recording is paused.
    #[inline(always)]
    pub fn is_paused(&self) -> bool {
        self.state & state::PAUSED != 0
    }

    /// Records the call with this signature.
    #[inline(always)]
    pub fn record(&mut self, raw: &Raw) {
        let (enter, leave) = (self.enter, self.leave);
        self.stream().record(raw, enter, leave);
    }

    /// Runs what may fail inside; a panic ends the recording, not the program.
    #[inline]
    pub fn guarded(&mut self, f: impl FnOnce(&mut Call)) {
        guarded(|| f(self));
    }
}

/// A wrapper's frame is larger than this, and so are the arguments on the stack of any
/// call smaller.
const LEAST_FRAME: u64 = 96;

impl Thread {
    /// Whether the active wrapper is still there, above a call at `sp`.
    #[cold]
    #[inline(never)]
    fn is_nested(&self, sp: u64) -> bool {
        if self.active - sp < LEAST_FRAME {
            return false;
        }
        let [ra, bp] = self.frame;
        let words = self.active - 16;
        if self.stack.contains(&sp) && self.stack.contains(&self.active) {
            // SAFETY: on this thread's own stack, above the current frame.
            return unsafe { *(words as *const [u64; 2]) } == [bp, ra];
        }
        // Another stack, a coroutine's: it may be gone.
        let mut found = [0u64; 2];
        let local = libc::iovec {
            iov_base: (&raw mut found).cast(),
            iov_len: 16,
        };
        let remote = libc::iovec {
            iov_base: words as *mut c_void,
            iov_len: 16,
        };
        // SAFETY: the kernel copies, and fails where nothing is mapped.
        let copied = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
        copied == 16 && found == [bp, ra]
    }
}

/// The calling thread's stack; empty if it cannot be known.
fn stack() -> std::ops::Range<u64> {
    // SAFETY: the attributes are initialised by the first call, and destroyed.
    unsafe {
        let mut attributes = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
            return 0..0;
        }
        let (mut lowest, mut size) = (ptr::null_mut(), 0);
        let known = libc::pthread_attr_getstack(&attributes, &mut lowest, &mut size) == 0;
        libc::pthread_attr_destroy(&mut attributes);
        if known {
            lowest as u64..lowest as u64 + size as u64
        } else {
            0..0
        }
    }
}

/// Runs what may fail inside; a panic ends the recording, not the program.
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

#[cold]
fn internal_error(panic: &(dyn std::any::Any + Send)) {
    run::note_internal_error();
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text
        .or(panic.downcast_ref::<&str>().copied())
        .unwrap_or("panic");
    log::error!("internal error, recording stops: {text}");
}

/// Gives a thread that makes its first call a state and a location.
#[cold]
#[inline(never)]
fn adopt(current: *mut Thread) -> Option<*mut Thread> {
    if !current.is_null() {
        return None;
    }
    // Whatever fails below, this thread is not tried again.
    // SAFETY: the slot belongs to this thread.
    unsafe { *slot() = UNRECORDED };
    let thread = guarded(create)??;
    // SAFETY: as above.
    unsafe { *slot() = thread };
    Some(thread)
}

/// Makes a state and a location for the calling thread.
fn create() -> Option<*mut Thread> {
    let settings = run::settings()?;
    let number = {
        let mut threads = threads();
        threads.next += 1;
        threads.next - 1
    };
    let stream = match Stream::create(settings, number) {
        Ok(stream) => stream,
        Err(error) => {
            let place = settings.directory.display();
            log::error!("{place}: {error}; thread {number} of this rank is not recorded");
            return None;
        }
    };
    let thread = Box::into_raw(Box::new(Thread {
        active: 0,
        frame: [0; 2],
        stack: stack(),
        busy: AtomicBool::new(false),
        number,
        stream: Some(stream),
        scratch: Scratch::default(),
    }));
    let mut threads = threads();
    threads.all.push(thread);
    if let Some(key) = threads.key {
        // SAFETY: a valid key; its destructor takes what is stored.
        unsafe { libc::pthread_setspecific(key, thread.cast()) };
    }
    Some(thread)
}

/// Gives the thread that initialised MPI its location, number 0; `false` if that fails.
pub fn adopt_first(site: CallSite) -> bool {
    let mut key = 0;
    // SAFETY: `key` is valid for writing.
    if unsafe { libc::pthread_key_create(&mut key, Some(thread_ends)) } == 0 {
        threads().key = Some(key);
    }
    let Some(thread) = adopt(ptr::null_mut()) else {
        return false;
    };
    // SAFETY: made just now.
    unsafe {
        (*thread).active = site.sp;
        (*thread).frame = [site.ra, site.bp];
    }
    true
}

impl Call {
    /// Lets a call that began outside go on with its thread's state.
    pub fn adopt(&mut self) -> bool {
        // SAFETY: the slot belongs to this thread.
        self.thread = unsafe { *slot() };
        if self.thread.is_null() || self.thread == UNRECORDED {
            self.thread = ptr::null_mut();
            return false;
        }
        self.claim()
    }
}

/// A thread ends: its location is closed.
unsafe extern "C" fn thread_ends(value: *mut c_void) {
    let thread: *mut Thread = value.cast();
    // SAFETY: the slot belongs to this thread; calls from later destructors of this
    // thread go unrecorded.
    unsafe { *slot() = UNRECORDED };
    if STATE.load(Ordering::Relaxed) & state::RECORDING == 0 {
        return;
    }
    guarded(|| {
        let mut threads = threads();
        if STATE.load(Ordering::Relaxed) & state::RECORDING == 0 {
            return;
        }
        threads.all.retain(|&other| other != thread);
        // SAFETY: made by `create`, and nobody else knows it any more.
        let thread = unsafe { Box::from_raw(thread) };
        if let Some(stream) = thread.stream {
            stream.close(2, run::limits());
        }
    });
}

/// Ends the recording of the process and closes all locations.
///
/// The calling thread's own stream is closed whether it is busy or not if `own_busy`:
/// the caller is the code that made it busy.
pub fn close_all(reason: u32, own_busy: bool) {
    // SAFETY: the slot belongs to this thread.
    let own = unsafe { *slot() };
    let mut threads = threads();
    STATE.store(state::OFF, Ordering::SeqCst);
    let all = std::mem::take(&mut threads.all);
    let others_settled = all.iter().all(|&thread| thread == own) || barrier();
    for thread in all {
        // SAFETY: states live as long as their threads, which `thread_ends` takes out
        // of the list under the same lock.
        let busy = unsafe { &(*thread).busy };
        let is_free = match thread == own {
            true => own_busy || !busy.load(Ordering::Relaxed),
            false => others_settled && settles(busy),
        };
        if is_free {
            // SAFETY: recording is off and the thread is not at its stream: it will
            // not come back to it.
            if let Some(stream) = unsafe { (*thread).stream.take() } {
                stream.close(reason, run::limits());
            }
        }
    }
}

/// Waits until a thread has left its stream; `false` if it does not.
fn settles(busy: &AtomicBool) -> bool {
    for _ in 0..1000 {
        if !busy.load(Ordering::Acquire) {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
    false
}

/// Makes all threads of the process see what this one stored before, and the other way
/// round; `false` if the kernel cannot.
fn barrier() -> bool {
    const PRIVATE_EXPEDITED: i32 = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;
    // SAFETY: system calls with plain numbers.
    unsafe {
        libc::syscall(libc::SYS_membarrier, REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0
            && libc::syscall(libc::SYS_membarrier, PRIVATE_EXPEDITED, 0, 0) == 0
    }
}

/// In the child of a fork: nothing of the parent's recording may be touched.
pub extern "C" fn forked() {
    if STATE.load(Ordering::Relaxed) != state::IDLE {
        STATE.store(state::OFF, Ordering::Relaxed);
    }
}
