//! The recording state of a thread.
//!
//! A wrapper is *nested* if another wrapper of the same thread is active further up the stack:
//! MPI libraries and tools call MPI functions themselves. A depth counter would stay wrong for
//! ever after a `longjmp` or an exception out of a call. Instead the state keeps the address of
//! the active wrapper's frame. A wrapper at or above that address takes over, and so does one
//! that finds the frame overwritten.
//!
//! A thread touches its stream only while [`Call::begin`](crate::call::Call::begin) to
//! [`Call::finish`](crate::call::Call::finish) mark it `busy`. Another thread can therefore
//! close the stream at the end of the run: it stops recording, makes all processors see that
//! (`membarrier`), and waits until no thread is busy.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use laggard_callpath::CallSite;

use crate::call::{guarded, uncancelled};
use crate::classes::completion::Scratch;
use crate::clock;
use crate::log;
use crate::run;
use crate::stream::Stream;
use crate::threads::{self, Membership};

/// Bits of [`STATE`].
pub mod state {
    /// MPI is not initialised.
    pub const IDLE: u32 = 0;
    /// Calls are recorded.
    pub const RECORDING: u32 = 1;
    /// With `RECORDING`: the program or the user paused it.
    pub const PAUSED: u32 = 2;
    /// This process records never again.
    pub const OFF: u32 = 4;
    /// With `RECORDING`: POSIX I/O is recorded, too.
    pub const POSIX: u32 = 8;
    /// With `RECORDING`: waits among threads are recorded, too.
    pub const THREADS: u32 = 16;
    /// With `RECORDING`: the user wants no more than the profile.
    pub const PROFILE: u32 = 32;
    /// With `RECORDING`: the user leaves some calls out.
    pub const LEFT_OUT: u32 = 64;
    /// Not all calls are recorded as usual.
    pub const LESS: u32 = PAUSED | PROFILE | LEFT_OUT;
}

/// How the process treats calls.
pub static STATE: AtomicU32 = AtomicU32::new(state::IDLE);

/// Whether calls are recorded that are not nested in others.
pub fn is_recording() -> bool {
    STATE.load(Ordering::Relaxed) & state::RECORDING != 0
}

/// How many locations the process has had so far.
pub fn locations() -> u32 {
    threads().count
}

/// Whether the calling thread is in a recorded call.
pub fn is_inside() -> bool {
    // SAFETY: the slot belongs to this thread, and states live as long as their threads.
    unsafe {
        let thread = *slot();
        is_recording() && !thread.is_null() && thread != UNRECORDED && (*thread).active != 0
    }
}

/// The recording state of one thread.
///
/// The field order matters, here and in the fields' types: every call reads the first ones, and
/// they are adjacent. A program that touches much memory between two calls evicts them from the
/// nearest caches. Every cache line that a call needs then costs some nanoseconds.
#[repr(C, align(64))]
pub struct Thread {
    /// Stack address of the active outermost wrapper; 0 = none.
    pub active: u64,
    /// The two words below it: return address and frame pointer.
    pub frame: [u64; 2],
    /// Ticks in calls so far.
    pub inside: u64,
    /// The thread has claimed its stream.
    pub busy: AtomicBool,
    /// Number of the location within the rank.
    pub number: u32,
    /// The location's stream; `None` once closed.
    pub stream: Option<Stream>,
    /// The thread's stack.
    stack: std::ops::Range<u64>,
    /// Memory that calls with many requests reuse.
    pub scratch: Scratch,
    /// The OpenMP teams that it is in.
    pub membership: Membership,
}

/// Threads with a state; the thread that closes their streams needs them.
struct Threads {
    all: Vec<*mut Thread>,
    /// How many locations there were.
    count: u32,
    key: Option<libc::pthread_key_t>,
}

// SAFETY: only this module uses the pointers, under its rules.
unsafe impl Send for Threads {}

static THREADS: Mutex<Threads> = Mutex::new(Threads {
    all: Vec::new(),
    count: 0,
    key: None,
});

/// Threads that called MPI and got no location.
static LOST: AtomicU64 = AtomicU64::new(0);

fn threads() -> MutexGuard<'static, Threads> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stands for the state of a thread that is not recorded.
pub const UNRECORDED: *mut Thread = ptr::without_provenance_mut(usize::MAX & !7);

/// Address of the calling thread's state pointer, a variable of the shim.
#[inline(always)]
pub fn slot() -> *mut *mut Thread {
    #[cfg(target_arch = "x86_64")]
    {
        let address: *mut *mut Thread;
        // SAFETY: the code that compilers emit for a variable of the initial-exec model: the
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
    // SAFETY: the shim returns the address of a thread-local variable.
    unsafe {
        crate::ffi::laggard_thread().cast()
    }
}

/// Lower bound of a wrapper's frame, bytes. The stack arguments of any call are smaller.
const LEAST_FRAME: u64 = 96;

impl Thread {
    /// Whether a stack pointer lies on the thread's own stack.
    #[inline]
    pub fn has_on_stack(&self, sp: u64) -> bool {
        self.stack.contains(&sp)
    }

    /// The thread's own stack; empty if unknown.
    pub fn stack(&self) -> &std::ops::Range<u64> {
        &self.stack
    }

    /// Whether the active wrapper still exists above a call at `sp`.
    #[cold]
    #[inline(never)]
    pub fn is_nested(&self, sp: u64) -> bool {
        if self.active - sp < LEAST_FRAME {
            return false;
        }
        let [ra, bp] = self.frame;
        let words = self.active - 16;
        if self.stack.contains(&sp) && self.stack.contains(&self.active) {
            // SAFETY: on this thread's own stack, above the current frame.
            return unsafe { *(words as *const [u64; 2]) } == [bp, ra];
        }
        // Another stack, such as a coroutine's, may be gone.
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

/// The calling thread's stack; empty if unknown.
pub fn stack() -> std::ops::Range<u64> {
    // SAFETY: the first call initialises the attributes; they are destroyed below.
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

/// Gives a thread a state and a location at its first call.
#[cold]
#[inline(never)]
pub fn adopt(current: *mut Thread) -> Option<*mut Thread> {
    if !current.is_null() {
        return None;
    }
    // Whatever fails below, this thread is not tried again.
    // SAFETY: the slot belongs to this thread.
    unsafe { *slot() = UNRECORDED };
    let thread = uncancelled(|| guarded(create))??;
    // SAFETY: as above.
    unsafe { *slot() = thread };
    Some(thread)
}

/// The number of the calling thread, if it is a location.
pub fn own_number() -> Option<u32> {
    // SAFETY: the slot belongs to this thread.
    let thread = unsafe { *slot() };
    let is_known = !thread.is_null() && thread != UNRECORDED;
    // SAFETY: states live as long as their threads.
    is_known.then(|| unsafe { (*thread).number })
}

/// Numbers of threads: the next one, and those that were given back.
static NUMBERS: Mutex<(u32, BinaryHeap<Reverse<u32>>)> = Mutex::new((0, BinaryHeap::new()));

fn numbers() -> MutexGuard<'static, (u32, BinaryHeap<Reverse<u32>>)> {
    NUMBERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number for a thread that may become a location: threads have them in the order in which they are made, whoever
/// calls something first.
pub fn next_number() -> u32 {
    let (next, free) = &mut *numbers();
    if let Some(Reverse(number)) = free.pop() {
        return number;
    }
    *next += 1;
    *next - 1
}

/// The thread with this number was no location: another one may have it. Programs may start many such.
pub fn give_back(number: u32) {
    numbers().1.push(Reverse(number));
}

/// Stack that a thread's first call may use here, bytes.
pub const FIRST_CALL: u64 = 8 * 1024;

/// Marks the calling thread as unrecorded. Reports the reason once: a thousand more threads may
/// have the same.
fn give_up(why: std::fmt::Arguments<'_>) -> Option<*mut Thread> {
    if LOST.fetch_add(1, Ordering::Relaxed) == 0 {
        log::error!("{why}; a thread of this rank is not recorded");
    }
    None
}

/// Makes a state and a location for the calling thread.
fn create() -> Option<*mut Thread> {
    let settings = run::settings()?;
    let stack = stack();
    let here = (&raw const stack) as u64;
    if stack.contains(&here) && here - stack.start < FIRST_CALL {
        return give_up(format_args!("too little stack is left"));
    }
    threads().count += 1;
    let number = threads::number().unwrap_or_else(next_number);
    let of = (number, threads::birth().filter(|_| number > 0));
    let thread = boxed(stack, number);
    // SAFETY: new, and no other thread knows it.
    if let Err(error) = Stream::create(unsafe { &mut (*thread).stream }, settings, of) {
        // SAFETY: as above, and a `Box` made it.
        drop(unsafe { Box::from_raw(thread) });
        let place = settings.directory.display();
        return give_up(format_args!("{place}: {error}"));
    }
    // SAFETY: as above.
    if let Some(stream) = unsafe { &mut (*thread).stream } {
        threads::tell(stream);
    }
    let mut threads = threads();
    threads.all.push(thread);
    if let Some(key) = threads.key {
        // SAFETY: a valid key; its destructor takes the stored pointer.
        unsafe { libc::pthread_setspecific(key, thread.cast()) };
    }
    Some(thread)
}

/// A state without a location. A function of its own, so that a small stack never holds the
/// state while files are created.
#[inline(never)]
fn boxed(stack: std::ops::Range<u64>, number: u32) -> *mut Thread {
    Box::into_raw(Box::new(Thread {
        active: 0,
        frame: [0; 2],
        stack,
        inside: 0,
        busy: AtomicBool::new(false),
        number,
        stream: None,
        scratch: Scratch::default(),
        membership: Membership::own(),
    }))
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

/// Closes the location of a thread that ends.
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
        let mut thread = unsafe { Box::from_raw(thread) };
        if let Some(mut stream) = thread.stream {
            threads::ends(&mut stream, &mut thread.membership, None);
            stream.close(2, run::limits(), 0, thread.inside);
        }
    });
}

/// Ends the recording of the process and closes all locations.
///
/// `own_busy`: closes the calling thread's own stream even if busy, because the caller itself
/// made it busy.
pub fn close_all(reason: u32, own_busy: bool) {
    // SAFETY: the slot belongs to this thread.
    let own = unsafe { *slot() };
    let mut threads = threads();
    STATE.store(state::OFF, Ordering::SeqCst);
    threads::ends_samples();
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
            // SAFETY: recording is off and the thread has left its stream for good.
            let (number, inside, stream, membership) = unsafe {
                let Thread {
                    number,
                    inside,
                    stream,
                    membership,
                    ..
                } = &mut *thread;
                (*number, *inside, stream.take(), membership)
            };
            let unrecorded = match number {
                0 => LOST.load(Ordering::Relaxed),
                _ => 0,
            };
            if let Some(mut stream) = stream {
                threads::ends(&mut stream, membership, Some(clock::now()));
                if number == 0 {
                    stream.properties(&threads::missed().collect::<Vec<_>>());
                }
                stream.close(reason, run::limits(), unrecorded, inside);
            }
        }
    }
}

/// Waits until a thread has left its stream; `false` if it stays.
fn settles(busy: &AtomicBool) -> bool {
    for _ in 0..1000 {
        if !busy.load(Ordering::Acquire) {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
    false
}

/// A memory barrier on all threads of the process (`membarrier`): they see this thread's
/// earlier stores, and it sees theirs. `false` if the kernel cannot.
fn barrier() -> bool {
    const PRIVATE_EXPEDITED: i32 = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;
    // SAFETY: system calls with plain numbers.
    unsafe {
        libc::syscall(libc::SYS_membarrier, REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0
            && libc::syscall(libc::SYS_membarrier, PRIVATE_EXPEDITED, 0, 0) == 0
    }
}

/// Runs in the child of a fork, which must not touch the parent's recording.
pub extern "C" fn forked() {
    if STATE.load(Ordering::Relaxed) != state::IDLE {
        STATE.store(state::OFF, Ordering::Relaxed);
    }
}
