//! Threads that wait until another one tells them to go on: conditions, semaphores, barriers, and ends
//! of threads.
//!
//! A wait is a record, and noted as *awaited* meanwhile, as for locks. Who lets a thread go on gets a
//! record then. Waits for signals alone make no thread a location: many programs and libraries have
//! threads that wait for work most of the time. What lasts is kept of them, see [`early`](super::early).
//!
//! *Constraints.* These calls are cancellation points: what is noted of a wait is taken back at the thread's end then.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use laggard_trace::calls::number;

use super::locks::{self, ENDED_BY_NOBODY, Wait};
use super::{Membership, Place, What, births, is_recorded};
use crate::clock;
use crate::next::{Next, Target};
use crate::stream::Stream;

/// Stands in for a function that the C library does not have.
macro_rules! absent {
    ($($p:ident: $t:ty),*) => {{
        unsafe extern "C-unwind" fn absent($(_: $t),*) -> c_int {
            libc::ENOSYS
        }
        absent
    }};
}

/// Functions that wait, with what they wait for, and with what they give back meanwhile.
macro_rules! waits {
    ($($name:ident $number:ident ($($p:ident: $t:ty),*) for $key:expr, gives $gives:expr,
        if $when:expr, of $size:expr;)*) => {
        /// The real functions.
        static WAITS: &[&Target] = &[$(
            {
                type Real = unsafe extern "C-unwind" fn($($t),*) -> c_int;
                static NEXT: Next<Real> = Next::new(concat!(stringify!($name), "\0"));

                #[unsafe(no_mangle)]
                unsafe extern "C-unwind" fn $name($($p: $t),*) -> c_int {
                    if is_recorded() && $when {
                        // SAFETY: the caller's arguments.
                        return unsafe { recorded($($p),*) };
                    }
                    // SAFETY: passes the caller's arguments to the function it called.
                    unsafe { NEXT.get(absent!($($p: $t),*))($($p),*) }
                }

                /// A function of its own, which the other one jumps to: that one needs no frame.
                #[inline(never)]
                unsafe extern "C-unwind" fn recorded($($p: $t),*) -> c_int {
                    let site = laggard_callpath::call_site!();
                    let next = NEXT.get(absent!($($p: $t),*));
                    let mutex: Option<*mut c_void> = $gives;
                    if let Some(mutex) = mutex {
                        locks::gives_back(site, number::$number, mutex.addr() as u64);
                    }
                    let size: u32 = $size;
                    const HAS_LIMIT: bool = locks::has_limit(&[$(stringify!($p)),*]);
                    let what = (number::$number, $key, HAS_LIMIT);
                    let wait = Wait::begin(site, Place::here(site), what, size > 0);
                    let is_join = matches!(what.0, number::pthread_join | number::thrd_join);
                    if wait.is_some() && is_join {
                        births::joins(what.1);
                    }
                    // SAFETY: as above.
                    let result = unsafe { next($($p),*) };
                    if let Some(wait) = wait {
                        let is_over = has_timed_out(result);
                        if is_join {
                            births::joins_no_more(what.1);
                        }
                        wait.end(if is_over { ENDED_BY_NOBODY } else { size.into() });
                    }
                    result
                }
                &NEXT.target
            },
        )*];
    };
}

/// Functions that let others go on.
macro_rules! signals {
    ($($name:ident $number:ident;)*) => {
        /// The real functions.
        static SIGNALS: &[&Target] = &[$(
            {
                type Real = unsafe extern "C-unwind" fn(*mut c_void) -> c_int;
                static NEXT: Next<Real> = Next::new(concat!(stringify!($name), "\0"));

                #[unsafe(no_mangle)]
                unsafe extern "C-unwind" fn $name(object: *mut c_void) -> c_int {
                    if is_recorded() && locks::is_awaited_by_any(object.addr() as u64) {
                        // SAFETY: the caller's argument.
                        return unsafe { recorded(object) };
                    }
                    // SAFETY: passes the caller's argument to the function it called.
                    unsafe { NEXT.get(absent!(object: *mut c_void))(object) }
                }

                /// See above.
                #[inline(never)]
                unsafe extern "C-unwind" fn recorded(object: *mut c_void) -> c_int {
                    let site = laggard_callpath::call_site!();
                    let key = object.addr() as u64;
                    let since = (clock::now(), locks::is_awaited(key));
                    // SAFETY: as above.
                    let result = unsafe { NEXT.get(absent!(object: *mut c_void))(object) };
                    locks::lets_go(site, Place::here(site), (number::$number, key), since);
                    result
                }
                &NEXT.target
            },
        )*];
    };
}

/// `thrd_timedout` of C11.
const TIMED_OUT: c_int = 4;

/// Whether a wait with this result was given up: also of functions that say so in `errno`.
pub(super) fn has_timed_out(result: c_int) -> bool {
    // SAFETY: the calling thread's own.
    let errno = || unsafe { *libc::__errno_location() };
    matches!(result, libc::ETIMEDOUT | TIMED_OUT) || result == -1 && errno() == libc::ETIMEDOUT
}

/// A word of an object of the C library, such as a caller of its functions has.
fn word(object: *mut c_void, at: usize) -> u32 {
    // SAFETY: the object that the real function looks at, and the words that it has; the C library
    // changes them atomically.
    unsafe { (*object.cast::<AtomicU32>().add(at)).load(Ordering::Relaxed) }
}

waits! {
    pthread_cond_wait pthread_cond_wait (condition: *mut c_void, mutex: *mut c_void)
        for condition.addr() as u64, gives Some(mutex), if true, of 0;
    pthread_cond_timedwait pthread_cond_wait
        (condition: *mut c_void, mutex: *mut c_void, until: *const c_void)
        for condition.addr() as u64, gives Some(mutex), if true, of 0;
    pthread_cond_clockwait pthread_cond_wait
        (condition: *mut c_void, mutex: *mut c_void, clock: c_int, until: *const c_void)
        for condition.addr() as u64, gives Some(mutex), if true, of 0;
    cnd_wait cnd_wait (condition: *mut c_void, mutex: *mut c_void)
        for condition.addr() as u64, gives Some(mutex), if true, of 0;
    cnd_timedwait cnd_wait
        (condition: *mut c_void, mutex: *mut c_void, until: *const c_void)
        for condition.addr() as u64, gives Some(mutex), if true, of 0;
    // The first word is the value.
    sem_wait sem_wait (semaphore: *mut c_void)
        for semaphore.addr() as u64, gives None, if word(semaphore, 0) == 0, of 0;
    sem_timedwait sem_wait (semaphore: *mut c_void, until: *const c_void)
        for semaphore.addr() as u64, gives None, if word(semaphore, 0) == 0, of 0;
    sem_clockwait sem_wait (semaphore: *mut c_void, clock: c_int, until: *const c_void)
        for semaphore.addr() as u64, gives None, if word(semaphore, 0) == 0, of 0;
    // The third word is the number of its threads; the fourth one says whether they are those of several
    // processes, of which nobody knows who they are.
    pthread_barrier_wait pthread_barrier_wait (barrier: *mut c_void)
        for barrier.addr() as u64, gives None, if word(barrier, 3) == 0, of word(barrier, 2);
    pthread_join pthread_join (thread: libc::pthread_t, result: *mut *mut c_void)
        for thread, gives None, if true, of 0;
    pthread_timedjoin_np pthread_join
        (thread: libc::pthread_t, result: *mut *mut c_void, until: *const c_void)
        for thread, gives None, if true, of 0;
    pthread_clockjoin_np pthread_join
        (thread: libc::pthread_t, result: *mut *mut c_void, clock: c_int, until: *const c_void)
        for thread, gives None, if true, of 0;
    thrd_join thrd_join (thread: libc::pthread_t, result: *mut c_int)
        for thread, gives None, if true, of 0;
}

signals! {
    pthread_cond_signal pthread_cond_signal;
    pthread_cond_broadcast pthread_cond_signal;
    cnd_signal cnd_signal;
    cnd_broadcast cnd_signal;
    sem_post sem_post;
}

/// The system's own way to wait for another thread, which libraries of languages use: C++'s `std::barrier`,
/// `std::latch`, `std::counting_semaphore`, `std::atomic::wait` and `std::future`.
mod futex {
    use std::ffi::{c_int, c_long};

    use laggard_trace::calls::number;

    use super::super::{Place, is_recorded};
    use super::{ENDED_BY_NOBODY, Next, Target, Wait, has_timed_out, locks};
    use crate::clock;

    /// Operations, without the bits that say whether other processes take part and which clock counts.
    const OPERATION: c_int = 127;
    const WAIT: [c_int; 2] = [libc::FUTEX_WAIT, libc::FUTEX_WAIT_BITSET];
    const WAKE: [c_int; 2] = [libc::FUTEX_WAKE, libc::FUTEX_WAKE_BITSET];

    /// The arguments of any system call, in registers, as for the variadic function of the C library.
    type Arguments = [c_long; 7];

    /// Functions that are called as that one.
    macro_rules! functions {
        ($($(#[$about:meta])* fn $name:ident($arguments:ident) $body:block)*) => {$(
            $(#[$about])*
            unsafe extern "C-unwind" fn $name(
                a: c_long,
                b: c_long,
                c: c_long,
                d: c_long,
                e: c_long,
                f: c_long,
                g: c_long,
            ) -> c_long {
                let $arguments: Arguments = [a, b, c, d, e, f, g];
                $body
            }
        )*};
    }

    type Real = unsafe extern "C-unwind" fn(
        c_long,
        c_long,
        c_long,
        c_long,
        c_long,
        c_long,
        c_long,
    ) -> c_long;

    static NEXT: Next<Real> = Next::new("syscall\0");

    /// The real function.
    pub static TARGET: &Target = &NEXT.target;

    /// Passes arguments on.
    #[inline(always)]
    unsafe fn call(function: Real, [a, b, c, d, e, f, g]: Arguments) -> c_long {
        // SAFETY: as the caller states.
        unsafe { function(a, b, c, d, e, f, g) }
    }

    functions! {
        /// No C library is without it.
        fn absent(_arguments) { -1 }

        #[unsafe(no_mangle)]
        fn syscall(arguments) {
            let [number, word, operation, ..] = arguments;
            if number == libc::SYS_futex && is_recorded() {
                let of = operation as c_int & OPERATION;
                // SAFETY: the caller's arguments.
                unsafe {
                    if WAIT.contains(&of) {
                        return call(waits, arguments);
                    }
                    if WAKE.contains(&of) && locks::is_awaited_by_any(word as u64) {
                        return call(wakes, arguments);
                    }
                }
            }
            // SAFETY: passes the caller's arguments to the function it called.
            unsafe { call(NEXT.get(absent), arguments) }
        }

        /// A function of its own, which the other one jumps to: that one needs no frame.
        #[inline(never)]
        fn waits(arguments) {
            let site = laggard_callpath::call_site!();
            // The fourth argument is a time limit, if any.
            let what = (number::futex_wait, arguments[1] as u64, arguments[4] != 0);
            let wait = Wait::begin(site, Place::here(site), what, false);
            // SAFETY: as above.
            let result = unsafe { call(NEXT.get(absent), arguments) };
            if let Some(wait) = wait {
                let is_over = has_timed_out(result as c_int);
                wait.end(if is_over { ENDED_BY_NOBODY } else { 0 });
            }
            result
        }

        /// See above.
        #[inline(never)]
        fn wakes(arguments) {
            let site = laggard_callpath::call_site!();
            let word = arguments[1] as u64;
            let since = (clock::now(), locks::is_awaited(word));
            // SAFETY: as above.
            let result = unsafe { call(NEXT.get(absent), arguments) };
            locks::lets_go(site, Place::here(site), (number::futex_wake, word), since);
            result
        }
    }
}

/// The calling thread, a location, ends: a record if another one waits for that, or if it is its only one.
pub fn ends(stream: &mut Stream, membership: &Membership) {
    let key = match membership.ends_alone {
        true => 0,
        // SAFETY: takes no arguments.
        false => unsafe { libc::pthread_self() },
    };
    if membership.ends_alone || locks::is_awaited_by_any(key) {
        let what = What {
            number: number::pthread_exit,
            place: membership.origin.place(stream),
            parameter: 0,
            key,
        };
        let now = stream.ends_stretch();
        what.write(stream, (now, now));
    }
}

/// Runs when this library is loaded.
pub fn loaded() {
    let all = WAITS.iter().chain(SIGNALS).copied();
    crate::next::fill(all.chain([futex::TARGET]));
}
