//! When threads began, and threads that nobody noticed when they end.
//!
//! A thread is a location from its first call or wait on, and was there before. So threads begin here: the time is
//! noted, and a thread that never became a location does so when it ends, if another one waits for that for a good
//! part of its life. Of less, nobody knows which of the two waited for the other: threads may look at a variable
//! until they are told to end.
//!
//! *Constraints.* The program's function gets the stack as if it had been called by the system: no frame
//! stays on it.

use std::arch::naked_asm;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{WANTED, is_recorded, locks, team};
use crate::clock;
use crate::next::{Next, Target};
use crate::stream::Birth;
use crate::thread::{STATE, slot};

type Start = extern "C-unwind" fn(*mut c_void) -> *mut c_void;
type Create = unsafe extern "C-unwind" fn(
    *mut libc::pthread_t,
    *const libc::pthread_attr_t,
    Start,
    *mut c_void,
) -> c_int;

static NEXT: Next<Create> = Next::new("pthread_create\0");

/// The real function.
pub static TARGET: &Target = &NEXT.target;

/// Under it each thread has the time of its begin, ticks.
static BORN: OnceLock<libc::pthread_key_t> = OnceLock::new();

/// A thread is noticed at its end if it was waited for during this part of its life.
const PART: u64 = 4;

/// Since when the end of a thread is waited for, ticks: a place for some threads each, for the last one that
/// came.
struct Joining {
    thread: AtomicU64,
    since: AtomicU64,
}

static JOINING: [Joining; 64] = [const {
    Joining {
        thread: AtomicU64::new(0),
        since: AtomicU64::new(0),
    }
}; 64];

fn joining(thread: u64) -> &'static Joining {
    // Threads are told by addresses in their stacks.
    &JOINING[(thread >> 12) as usize % JOINING.len()]
}

/// The calling thread begins to wait for the end of another one.
pub(super) fn joins(thread: u64) {
    let joining = joining(thread);
    joining.thread.store(0, Ordering::Relaxed);
    joining.since.store(clock::now(), Ordering::Release);
    joining.thread.store(thread, Ordering::Release);
}

/// It has given up.
pub(super) fn joins_no_more(thread: u64) {
    let known = &joining(thread).thread;
    let _ = known.compare_exchange(thread, 0, Ordering::AcqRel, Ordering::Relaxed);
}

/// Whether another thread has waited for the end of this one for so long, which began then.
fn is_waited_for(thread: u64, born: u64) -> bool {
    let joining = joining(thread);
    let is_known = joining.thread.load(Ordering::Acquire) == thread;
    let (since, now) = (joining.since.load(Ordering::Acquire), clock::now());
    let waited = now.saturating_sub(since.max(born));
    is_known && waited >= now.saturating_sub(born) / PART
}

/// What a new thread is to do.
#[repr(C)]
struct Begin {
    function: Start,
    argument: *mut c_void,
    /// Ticks.
    born: u64,
}

/// The program's function and its argument: returned in two registers.
#[repr(C)]
struct Goal {
    function: Start,
    argument: *mut c_void,
}

/// Recording begins.
pub fn begins() {
    BORN.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` is valid for writing.
        match unsafe { libc::pthread_key_create(&mut key, Some(ends)) } {
            0 => key,
            _ => libc::pthread_key_t::MAX,
        }
    });
}

/// The key, if there is one.
fn key() -> Option<libc::pthread_key_t> {
    BORN.get()
        .copied()
        .filter(|key| *key != libc::pthread_key_t::MAX)
}

/// Since when the calling thread is known; `None` if it began before the recording.
pub fn birth() -> Option<Birth> {
    let (born, begun) = (born()?, team::begun());
    Some(Birth {
        at: born.max(begun),
        is_whole: born >= begun,
    })
}

/// When the calling thread began, ticks.
pub(super) fn born() -> Option<u64> {
    // SAFETY: a valid key.
    let born = unsafe { libc::pthread_getspecific(key()?) }.addr() as u64;
    (born > 0).then_some(born)
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    function: Start,
    argument: *mut c_void,
) -> c_int {
    unsafe extern "C-unwind" fn absent(
        _: *mut libc::pthread_t,
        _: *const libc::pthread_attr_t,
        _: Start,
        _: *mut c_void,
    ) -> c_int {
        libc::EAGAIN
    }
    let create = NEXT.get(absent);
    if STATE.load(Ordering::Relaxed) & WANTED != WANTED || key().is_none() {
        // SAFETY: passes the caller's arguments to the function it called.
        return unsafe { create(thread, attributes, function, argument) };
    }
    let begin = Box::into_raw(Box::new(Begin {
        function,
        argument,
        born: clock::now(),
    }));
    // SAFETY: as above, with a function and an argument in place of the caller's that lead to these.
    let failed = unsafe { create(thread, attributes, starts, begin.cast()) };
    if failed != 0 {
        // SAFETY: made above, and no thread has it.
        drop(unsafe { Box::from_raw(begin) });
    }
    failed
}

/// Where a thread starts: goes on at the program's function.
#[unsafe(naked)]
extern "C-unwind" fn starts(begin: *mut c_void) -> *mut c_void {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        "sub rsp, 8",
        "call {note}",
        "add rsp, 8",
        "mov rdi, rdx",
        "jmp rax",
        note = sym note,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        "stp x29, x30, [sp, #-16]!",
        "bl {note}",
        "ldp x29, x30, [sp], #16",
        "mov x16, x0",
        "mov x0, x1",
        "br x16",
        note = sym note,
    );
}

/// The calling thread begins.
extern "C" fn note(begin: *mut Begin) -> Goal {
    // SAFETY: made by `pthread_create` for this thread alone.
    let begin = unsafe { Box::from_raw(begin) };
    if let Some(key) = key() {
        // SAFETY: a valid key; what belongs to it is no pointer.
        unsafe { libc::pthread_setspecific(key, ptr::without_provenance(begin.born as usize)) };
    }
    Goal {
        function: begin.function,
        argument: begin.argument,
    }
}

/// The calling thread ends, which began then.
unsafe extern "C" fn ends(born: *mut c_void) {
    let site = laggard_callpath::call_site!();
    // SAFETY: the slot belongs to this thread.
    let is_known = unsafe { !(*slot()).is_null() };
    // SAFETY: takes no arguments.
    let own = unsafe { libc::pthread_self() };
    let is_noticed = || is_recorded() && is_waited_for(own, born.addr() as u64);
    let Some(key) = key().filter(|_| !is_known && is_noticed()) else {
        return;
    };
    // SAFETY: a valid key, without a value again in the end.
    unsafe { libc::pthread_setspecific(key, born) };
    locks::becomes_location(site);
    // SAFETY: as above.
    unsafe { libc::pthread_setspecific(key, ptr::null()) };
}
