//! The exported OpenSHMEM functions: one for each family and type of the table of calls.
//!
//! As in [`crate::exports`], the macros only lay out the calls; [`crate::classes::shmem`] says
//! what a call means. Programs call only `shmem_x`. The profiling names `pshmem_x` are left to
//! tools.

use crate::classes::Operation;
use crate::classes::environment::finalize;
use crate::classes::shmem::*;
use crate::constants::SUCCESS;
use crate::resolve::{Slot, Target};
use std::ffi::*;

/// `shmem_ctx_t`.
type Context = *mut c_void;

/// `long double`, which is never passed by value here.
type LongDouble = [u64; 2];

/// One exported function and its slot.
macro_rules! wrapper {
    ($number:expr, $symbol:expr, $t:ty, $class:ident($($meaning:tt)*)
        ($($p:ident: $pt:ty),*) -> $r:ty) => {
        {
            #[allow(dead_code)]
            type T = $t;
            #[allow(dead_code)]
            const SIZE: usize = size_of::<T>();
            #[allow(dead_code)]
            fn bytes(elements: usize) -> usize {
                each(SIZE, elements)
            }
            static REAL: Slot<unsafe extern "C-unwind" fn($($pt),*) -> $r> =
                Slot::new(concat!($symbol, "\0"));

            #[unsafe(export_name = $symbol)]
            #[allow(unused_variables, clippy::too_many_arguments, clippy::unused_unit)]
            unsafe extern "C-unwind" fn wrapper($($p: $pt),*) -> $r {
                let site = laggard_callpath::call_site!();
                let mut operation = $class($($meaning)*);
                let begun = match pes_are_others() {
                    true => None,
                    false => operation.begin(site, $number),
                };
                let Some(mut call) = begun else {
                    // SAFETY: passes the caller's arguments to the function it called.
                    return unsafe { REAL.get()($($p),*) };
                };
                operation.before(&mut call);
                call.enter(|stream| operation.subject(stream));
                // SAFETY: as above.
                let result = unsafe { REAL.get()($($p),*) };
                if call.returned(SUCCESS) {
                    operation.returned(result.word());
                    call.guarded(|call| operation.after(call));
                    call.finish();
                }
                result
            }
            REAL.target()
        }
    };
}

macro_rules! family {
    ([$($index:literal $name:literal $t:ty;)*] $number:literal $prefix:literal $suffix:literal
        $class:ident $meaning:tt $parameters:tt -> $r:ty) => {
        &[$(wrapper! {
            $number + $index, concat!($prefix, $name, $suffix), $t, $class $meaning
            $parameters -> $r
        }),*]
    };
}

macro_rules! exports {
    ($($number:literal $types:ident $prefix:literal $suffix:literal $generic:ident $shape:ident
        $class:ident $meaning:tt $parameters:tt -> $r:ty;)*) => {
        /// The real functions behind the wrappers, by family.
        static FAMILIES: &[&[&Target]] = &[$(laggard_trace::shmem_types! {
            $types family $number $prefix $suffix $class $meaning $parameters -> $r
        }),*];
    };
}

laggard_trace::shmem_calls!(exports);

/// The real functions behind the wrappers.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    FAMILIES.iter().copied().flatten().copied()
}
