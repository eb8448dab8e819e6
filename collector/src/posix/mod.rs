//! POSIX I/O of the program: one exported function for each symbol of the table of POSIX calls.
//!
//! Every process that inherits `LD_PRELOAD` passes through these functions: shells, launchers,
//! forked children, signal handlers. So they do nothing but jump on to the C library's function
//! unless this thread is recorded now. A recorded thread pays for two readings of the clock.
//! Only a call that lasts (see [`course`]) becomes a record.
//!
//! *Constraints.* `write` may be called in signal handlers: before a wrapper knows that a call
//! becomes a record, it takes no lock and no memory. Calls are cancellation points: a thread may
//! end within them, so the wrappers keep nothing that would have to be dropped. `errno` is the
//! real call's.
//!
//! *Not supported.* I/O that a library does within itself, as the C library's own streams do,
//! is not seen: a formatted print that flushes its stream is computation.

mod course;
mod handlers;
mod moved;

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};

use crate::next::{self, Next, Target};
use course::{Course, is_recorded};
pub use course::{is_safe, ready, suspend};
use moved::{Outcome, input, length, line, nothing, output, text};

/// Runs when this library is loaded.
pub fn loaded() {
    next::fill(TARGETS.iter().copied().flatten().copied());
}

/// One exported function.
macro_rules! wrapper {
    ($number:literal, $symbol:literal, $class:ident($($meaning:tt)*)
        ($($p:ident: $t:ty),*) -> $r:ty) => {
        {
            type Function = unsafe extern "C-unwind" fn($($t),*) -> $r;

            static NEXT: Next<Function> = Next::new(concat!($symbol, "\0"));

            /// Stands in for a function that the C library does not have.
            #[allow(unused_variables)]
            unsafe extern "C-unwind" fn absent($($p: $t),*) -> $r {
                // SAFETY: the calling thread's errno.
                unsafe { *libc::__errno_location() = libc::ENOSYS };
                <$r>::FAILED
            }

            // `open` has a third parameter only sometimes. It is passed on in its register, as
            // it came; the real function knows whether it means something.
            #[unsafe(export_name = $symbol)]
            unsafe extern "C-unwind" fn wrapper($($p: $t),*) -> $r {
                if is_recorded() {
                    // SAFETY: the caller's arguments.
                    return unsafe { recorded($($p),*) };
                }
                // SAFETY: passes the caller's arguments to the function it called.
                unsafe { NEXT.get(absent)($($p),*) }
            }

            /// A function of its own, which the other one jumps to: that one needs no frame.
            #[inline(never)]
            #[allow(unused_variables)]
            unsafe extern "C-unwind" fn recorded($($p: $t),*) -> $r {
                let site = laggard_callpath::call_site!();
                let next = NEXT.get(absent);
                let Some(course) = Course::begin(site) else {
                    // SAFETY: as above.
                    return unsafe { next($($p),*) };
                };
                let moved = $class($($meaning)*);
                let enter = course.enter();
                // SAFETY: as above.
                let result = unsafe { next($($p),*) };
                course.end($number, enter, || moved.by(result));
                result
            }
            &NEXT.target
        }
    };
}

macro_rules! exports {
    ($($number:literal $name:ident $generic:ident $shape:ident $class:ident $meaning:tt {
        $($symbol:literal $parameters:tt -> $r:ty;)*
    })*) => {
        /// The real functions behind the wrappers, by row.
        static TARGETS: &[&[&Target]] = &[$(
            &[$(wrapper! { $number, $symbol, $class $meaning $parameters -> $r }),*]
        ),*];
    };
}

laggard_trace::posix_calls!(exports);
