//! Passes arguments through the wrappers whole, even those wider than `mpi.h` says.
//!
//! Handles are `int` in MPICH and addresses in Open MPI. A collector built for MPICH and
//! preloaded into an Open MPI program records nothing, but the program's calls still pass its
//! wrappers. A wrapper that took an `int` would lose half of the address. It therefore passes
//! the whole word on, and a callee that wants an `int` reads the lower half. The calling
//! conventions of 64-bit Linux pass integers that way, in registers and on the stack.
//!
//! A build for Open MPI behaves as usual: its handles are words.

/// The type in which a `T` is passed on.
pub type Passed<T> = <T as Argument>::Passed;

/// A type of arguments and results of MPI's functions.
pub trait Argument: Copy {
    /// The type in which it is passed on.
    type Passed: Copy;
    /// The value as `mpi.h` types it.
    fn seen(passed: Self::Passed) -> Self;
    /// This value in the form of the argument that came: the same value, or a pointer.
    fn passed(self, came: Self::Passed) -> Self::Passed;
    /// This value in passed form, if no argument came.
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
