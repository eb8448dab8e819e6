//! How arguments travel through the wrappers: whole, also where they are wider than `mpi.h`
//! says.
//!
//! Handles are `int` in MPICH and addresses in Open MPI. A collector that was built for MPICH
//! and is preloaded into a program of Open MPI records nothing, and yet the program's calls
//! come through its wrappers. If these took an `int` for a handle, half of the address would
//! be lost. So an `int` is passed on with the word that it came in, of which a callee that
//! wants an `int` reads the lower half: that is how the calling conventions of 64-bit Linux
//! pass integers, in registers and on the stack.
//!
//! Built for Open MPI, where handles are words anyway, nothing is different.

/// What an argument of the type `T` is passed on as.
pub type Passed<T> = <T as Argument>::Passed;

/// A type of arguments and results of MPI's functions.
pub trait Argument: Copy {
    /// As which it is passed on.
    type Passed: Copy;
    /// What `mpi.h` says it is.
    fn seen(passed: Self::Passed) -> Self;
    /// This, to be passed on in the place of what came: the same, or a pointer.
    fn passed(self, came: Self::Passed) -> Self::Passed;
    /// The same where nothing came.
    fn whole(self) -> Self::Passed;
}

macro_rules! as_it_is {
    ($([$($generic:tt)*] $t:ty;)*) => {
        $(impl<$($generic)*> Argument for $t {
            type Passed = $t;
            #[inline(always)]
            fn seen(passed: $t) -> $t {
                passed
            }
            #[inline(always)]
            fn passed(self, _came: $t) -> $t {
                self
            }
            #[inline(always)]
            fn whole(self) -> $t {
                self
            }
        })*
    };
}

as_it_is! {
    [T] *const T;
    [T] *mut T;
    [F: Copy] Option<F>;
    [] i64;
    [] isize;
    [] f64;
}

#[cfg(open_mpi)]
as_it_is! {
    [] i32;
}

#[cfg(not(open_mpi))]
impl Argument for i32 {
    type Passed = u64;
    #[inline(always)]
    fn seen(passed: u64) -> i32 {
        passed as i32
    }
    #[inline(always)]
    fn passed(self, came: u64) -> u64 {
        came
    }
    #[inline(always)]
    fn whole(self) -> u64 {
        i64::from(self) as u64
    }
}
