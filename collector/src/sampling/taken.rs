//! Signals that the program takes, by calls or handlers, of which it must never get ours.
//!
//! A handler for our signal is the program's: no more of it are sent from then on. Until then the program sees the
//! default, as without the collector.
//!
//! A thread that blocks all signals has ours pending, too. `sigwait` and its like take it and go on to wait. Of
//! descriptors (`signalfd`) it is left out; if one was made with it before it was chosen, another one is.
//!
//! *Not supported.* The same by the bare system calls.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use libc::{sighandler_t, siginfo_t, sigset_t, timespec};

use super::timer;
use crate::next::Next;

type Wait = unsafe extern "C-unwind" fn(*const sigset_t, *mut c_int) -> c_int;
type WaitInfo = unsafe extern "C-unwind" fn(*const sigset_t, *mut siginfo_t) -> c_int;
type TimedWait =
    unsafe extern "C-unwind" fn(*const sigset_t, *mut siginfo_t, *const timespec) -> c_int;
type Pending = unsafe extern "C-unwind" fn(*mut sigset_t) -> c_int;
type SetAction =
    unsafe extern "C-unwind" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
type SetHandler = unsafe extern "C-unwind" fn(c_int, sighandler_t) -> sighandler_t;
type Descriptor = unsafe extern "C-unwind" fn(c_int, *const sigset_t, c_int) -> c_int;

static WAIT: Next<Wait> = Next::new("sigwait\0");
static WAIT_INFO: Next<WaitInfo> = Next::new("sigwaitinfo\0");
static TIMED_WAIT: Next<TimedWait> = Next::new("sigtimedwait\0");
static PENDING: Next<Pending> = Next::new("sigpending\0");
static DESCRIPTOR: Next<Descriptor> = Next::new("signalfd\0");
static ACTION: Next<SetAction> = Next::new("sigaction\0");
static HANDLER: Next<SetHandler> = Next::new("signal\0");
static OLD_HANDLER: Next<SetHandler> = Next::new("__sysv_signal\0");

/// Runs when this library is loaded.
pub fn loaded() {
    crate::next::fill(
        [
            &WAIT.target,
            &WAIT_INFO.target,
            &TIMED_WAIT.target,
            &PENDING.target,
            &DESCRIPTOR.target,
            &ACTION.target,
            &HANDLER.target,
            &OLD_HANDLER.target,
        ]
        .into_iter(),
    );
}

/// Signals of descriptors that were made before ours was chosen, a bit each.
static READ: AtomicU64 = AtomicU64::new(0);

/// Whether the program may read this signal from a descriptor.
pub fn is_read(signal: c_int) -> bool {
    READ.load(Ordering::Relaxed) & bit(signal) != 0
}

fn bit(signal: c_int) -> u64 {
    1u64.checked_shl((signal - 1) as u32).unwrap_or(0)
}

/// Our signal, if it is in the set.
///
/// # Safety
/// A set, or none.
unsafe fn ours_in(set: *const sigset_t) -> Option<c_int> {
    let signal = timer::chosen()?;
    // SAFETY: as the caller states.
    let is_in = !set.is_null() && unsafe { libc::sigismember(set, signal) } == 1;
    is_in.then_some(signal)
}

/// Waits as `sigtimedwait` does, until the signal is not one of ours.
///
/// # Safety
/// The arguments of that function.
unsafe fn wait(set: *const sigset_t, info: *mut siginfo_t, most: *const timespec) -> c_int {
    // SAFETY: as the caller states.
    let most = unsafe { most.as_ref() };
    let most = most.map(|most| Duration::new(most.tv_sec.max(0) as u64, most.tv_nsec as u32));
    let begin = Instant::now();
    let next = TIMED_WAIT.get(absent_timed_wait);
    loop {
        let left = most.map(|most| {
            let left = most.saturating_sub(begin.elapsed());
            timespec {
                tv_sec: left.as_secs() as libc::time_t,
                tv_nsec: left.subsec_nanos().into(),
            }
        });
        let mut told = MaybeUninit::<siginfo_t>::zeroed();
        // SAFETY: the caller's set, and information that the call fills in; all zeros are some, too.
        let (signal, told) = unsafe {
            let left = left.as_ref().map_or(ptr::null(), ptr::from_ref);
            (next(set, told.as_mut_ptr(), left), told.assume_init())
        };
        if signal > 0 && timer::is_ours(&told) {
            continue;
        }
        if signal > 0 && !info.is_null() {
            // SAFETY: the caller's.
            unsafe { info.write(told) };
        }
        return signal;
    }
}

unsafe extern "C-unwind" fn absent_timed_wait(
    _: *const sigset_t,
    _: *mut siginfo_t,
    _: *const timespec,
) -> c_int {
    -1
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn sigwait(set: *const sigset_t, signal: *mut c_int) -> c_int {
    unsafe extern "C-unwind" fn absent(_: *const sigset_t, _: *mut c_int) -> c_int {
        libc::ENOSYS
    }
    // SAFETY: the caller's arguments, passed to the function that it called or to one that waits as that does.
    unsafe {
        if ours_in(set).is_none() {
            return WAIT.get(absent)(set, signal);
        }
        loop {
            match (
                wait(set, ptr::null_mut(), ptr::null()),
                *libc::__errno_location(),
            ) {
                (-1, libc::EINTR) => {}
                (-1, error) => return error,
                (taken, _) => {
                    *signal = taken;
                    return 0;
                }
            }
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn sigwaitinfo(set: *const sigset_t, info: *mut siginfo_t) -> c_int {
    unsafe extern "C-unwind" fn absent(_: *const sigset_t, _: *mut siginfo_t) -> c_int {
        -1
    }
    // SAFETY: as above.
    unsafe {
        match ours_in(set) {
            None => WAIT_INFO.get(absent)(set, info),
            Some(_) => wait(set, info, ptr::null()),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn sigtimedwait(
    set: *const sigset_t,
    info: *mut siginfo_t,
    most: *const timespec,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        match ours_in(set) {
            None => TIMED_WAIT.get(absent_timed_wait)(set, info, most),
            Some(_) => wait(set, info, most),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn sigpending(set: *mut sigset_t) -> c_int {
    unsafe extern "C-unwind" fn absent(_: *mut sigset_t) -> c_int {
        -1
    }
    // SAFETY: the caller's set, which the function it called fills in.
    unsafe {
        let result = PENDING.get(absent)(set);
        if result == 0
            && let Some(signal) = ours_in(set)
        {
            libc::sigdelset(set, signal);
        }
        result
    }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn signalfd(file: c_int, set: *const sigset_t, flags: c_int) -> c_int {
    unsafe extern "C-unwind" fn absent(_: c_int, _: *const sigset_t, _: c_int) -> c_int {
        -1
    }
    let next = DESCRIPTOR.get(absent);
    // SAFETY: the caller's arguments, or a copy of its set.
    unsafe {
        if set.is_null() {
            return next(file, set, flags);
        }
        let mut others = *set;
        match timer::chosen() {
            Some(signal) => {
                libc::sigdelset(&mut others, signal);
            }
            None => {
                let all = (1..=libc::SIGRTMAX()).filter(|&one| libc::sigismember(set, one) == 1);
                let read = all.fold(0, |read, one| read | bit(one));
                READ.fetch_or(read, Ordering::Relaxed);
            }
        }
        next(file, &others, flags)
    }
}

/// Sets or tells the action of a signal, whoever has it.
///
/// # Safety
/// The arguments of `sigaction`.
pub unsafe fn set_action(
    signal: c_int,
    action: *const libc::sigaction,
    before: *mut libc::sigaction,
) -> c_int {
    unsafe extern "C-unwind" fn absent(
        _: c_int,
        _: *const libc::sigaction,
        _: *mut libc::sigaction,
    ) -> c_int {
        -1
    }
    // SAFETY: as the caller states.
    unsafe { ACTION.get(absent)(signal, action, before) }
}

/// Whether the program is told the default of this signal, which is ours. If it is to have another handler now, ours
/// has ended.
fn is_told_default(signal: c_int, wanted: Option<sighandler_t>) -> bool {
    if timer::in_use() != signal || timer::chosen() != Some(signal) {
        return false;
    }
    if wanted.is_some_and(|wanted| wanted != libc::SIG_DFL) {
        timer::give_up();
    }
    true
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn sigaction(
    signal: c_int,
    action: *const libc::sigaction,
    before: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the caller's action, or none.
    let wanted = unsafe { action.as_ref() }.map(|action| action.sa_sigaction);
    if signal <= 0 || !is_told_default(signal, wanted) {
        // SAFETY: the caller's arguments.
        return unsafe { set_action(signal, action, before) };
    }
    // SAFETY: as above. All zeros are the default.
    unsafe {
        if wanted.is_some_and(|wanted| wanted != libc::SIG_DFL)
            && set_action(signal, action, ptr::null_mut()) != 0
        {
            return -1;
        }
        if !before.is_null() {
            before.write(std::mem::zeroed());
        }
    }
    0
}

/// Sets a handler by `set`, which is one of the two functions for that.
///
/// # Safety
/// The arguments of that function.
unsafe fn set_handler(
    set: &Next<SetHandler>,
    signal: c_int,
    handler: sighandler_t,
) -> sighandler_t {
    unsafe extern "C-unwind" fn absent(_: c_int, _: sighandler_t) -> sighandler_t {
        libc::SIG_ERR
    }
    let is_default = signal > 0 && is_told_default(signal, Some(handler));
    if is_default && handler == libc::SIG_DFL {
        return libc::SIG_DFL;
    }
    // SAFETY: as the caller states.
    match unsafe { set.get(absent)(signal, handler) } {
        libc::SIG_ERR => libc::SIG_ERR,
        _ if is_default => libc::SIG_DFL,
        before => before,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: the caller's arguments.
    unsafe { set_handler(&HANDLER, signal, handler) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __sysv_signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: as above.
    unsafe { set_handler(&OLD_HANDLER, signal, handler) }
}
