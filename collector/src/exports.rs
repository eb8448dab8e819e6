//! The exported functions: `MPI_x` and `PMPI_x` for every row of the table of calls.
//!
//! The macros here only lay out the calls. [`crate::classes`] says what a call means, with one
//! type for each class of the table.

use crate::resolve::Target;

/// The real functions behind the wrappers, as pairs of `MPI_x` and `PMPI_x`.
pub fn targets() -> impl Iterator<Item = (&'static Target, &'static Target)> {
    #[cfg(not(persistent_extensions))]
    const EXTENSIONS: &[(&Target, &Target)] = &[];
    #[cfg(persistent_extensions)]
    use extensions::TARGETS as EXTENSIONS;
    #[cfg(not(persistent_collectives))]
    const PERSISTENT: &[(&Target, &Target)] = &[];
    #[cfg(persistent_collectives)]
    use persistent::TARGETS as PERSISTENT;
    TARGETS.iter().chain(EXTENSIONS).chain(PERSISTENT).copied()
}

/// Types that the rows of the table name.
mod types {
    pub use crate::ffi::*;
    pub use std::ffi::{c_char, c_int, c_void};
}

/// One exported function.
macro_rules! wrapper {
    ($slots:ident, $number:literal $name:ident $symbol:expr, pass() ($($p:ident: $t:ty),*) -> $r:ty) => {
        #[unsafe(export_name = $symbol)]
        unsafe extern "C-unwind" fn $name($($p: Passed<$t>),*) -> Passed<$r> {
            // SAFETY: passes the caller's arguments to the function it called.
            unsafe { super::$slots::$name.get()($($p),*) }
        }
    };
    ($slots:ident, $number:literal $name:ident $symbol:expr, $class:ident($($meaning:tt)*)
        ($($p:ident: $t:ty),*) -> $r:ty) => {
        #[unsafe(export_name = $symbol)]
        #[allow(unused_mut, unused_assignments, unused_variables)]
        unsafe extern "C-unwind" fn $name($($p: Passed<$t>),*) -> Passed<$r> {
            let site = laggard_callpath::call_site!();
            struct Whole {
                $($p: Passed<$t>),*
            }
            let whole = Whole { $($p),* };
            $(let mut $p: $t = Argument::seen(whole.$p);)*
            let mut operation = $class($($meaning)*);
            let Some(mut call) = operation.begin(site, $number) else {
                operation.before_unrecorded();
                // SAFETY: as above.
                let result = unsafe { super::$slots::$name.get()($($p.passed(whole.$p)),*) };
                operation.after_unrecorded(Argument::seen(result));
                return result;
            };
            operation.before(&mut call);
            call.enter(|stream| operation.subject(stream));
            // SAFETY: as above; `before` replaces only an ignored status.
            let result = unsafe { super::$slots::$name.get()($($p.passed(whole.$p)),*) };
            if call.returned(Argument::seen(result)) {
                call.guarded(|call| operation.after(call));
                call.finish();
            } else {
                operation.after_unrecorded(Argument::seen(result));
            }
            call.result.passed(result)
        }
    };
}

macro_rules! exports {
    ($($number:literal $name:ident $generic:ident $shape:ident $class:ident($($meaning:tt)*)
        ($($p:ident: $t:ty),*) -> $r:ty;)*) => {
        /// The real functions behind `MPI_x`.
        mod mpi_slots {
            use super::types::*;
            use crate::passed::Passed;
            use crate::resolve::Slot;
            $(pub static $name: Slot<unsafe extern "C-unwind" fn($(Passed<$t>),*) -> Passed<$r>> =
                Slot::new(concat!(stringify!($name), "\0"));)*
        }

        /// The real functions behind `PMPI_x`.
        mod pmpi_slots {
            use super::types::*;
            use crate::passed::Passed;
            use crate::resolve::Slot;
            $(pub static $name: Slot<unsafe extern "C-unwind" fn($(Passed<$t>),*) -> Passed<$r>> =
                Slot::new(concat!("P", stringify!($name), "\0"));)*
        }

        /// The library's functions for the collector's own use, unrecorded.
        #[allow(dead_code, clippy::too_many_arguments)]
        pub mod real {
            use super::types::*;
            use crate::passed::Argument;
            $(
                #[doc = concat!("The library's `P", stringify!($name), "`.")]
                ///
                /// # Safety
                /// As the MPI standard demands.
                pub unsafe fn $name($($p: $t),*) -> $r {
                    // SAFETY: passed on to the caller.
                    unsafe { <$r>::seen(super::pmpi_slots::$name.get()($($p.whole()),*)) }
                }
            )*
        }

        /// The real functions of every row, as pairs of `MPI_x` and `PMPI_x`.
        pub static TARGETS: &[(&Target, &Target)] = &[
            $((mpi_slots::$name.target(), pmpi_slots::$name.target())),*
        ];

        /// The names that programs call.
        #[allow(clippy::missing_safety_doc, clippy::too_many_arguments)]
        mod mpi {
            use super::types::*;
            use crate::classes::prelude::*;
            use crate::passed::{Argument, Passed};
            $(wrapper! { mpi_slots, $number $name stringify!($name),
                $class($($meaning)*) ($($p: $t),*) -> $r })*
        }

        /// The names that Open MPI's Fortran bindings and tools call.
        #[allow(clippy::missing_safety_doc, clippy::too_many_arguments)]
        mod pmpi {
            use super::types::*;
            use crate::classes::prelude::*;
            use crate::passed::{Argument, Passed};
            $(wrapper! { pmpi_slots, $number $name concat!("P", stringify!($name)),
                $class($($meaning)*) ($($p: $t),*) -> $r })*
        }

        /// Checks that every row has the type that `mpi.h` declares.
        mod declared {
            use super::types::*;
            $(check! { $class $name ($($t),*) -> $r })*
        }
    };
}

macro_rules! check {
    // `mpi.h` declares an ellipsis, which the wrapper does not pass on.
    (pcontrol $name:ident ($($t:ty),*) -> $r:ty) => {};
    ($class:ident $name:ident ($($t:ty),*) -> $r:ty) => {
        const _: unsafe extern "C-unwind" fn($($t),*) -> $r = crate::ffi::$name;
    };
}

laggard_trace::mpi_calls!(exports);

/// Functions of this MPI library that `mpi.h` does not declare.
#[cfg(persistent_extensions)]
mod extensions {
    use super::types;
    use crate::resolve::Target;

    laggard_trace::mpi_extension_calls!(exports);
}

/// The persistent collectives of MPI 4.
#[cfg(persistent_collectives)]
mod persistent {
    use super::types;
    use crate::resolve::Target;

    laggard_trace::mpi_4_persistent_calls!(exports);
}
