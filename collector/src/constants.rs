//! Constants of the MPI library whose values exist only at run time.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;

use crate::ffi::{MPI_Status, laggard_constants, laggard_fill_constants};
use crate::resolve::find_symbol;

pub use crate::ffi::{MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_PROC_NULL, MPI_ROOT, MPI_UNDEFINED};

/// `MPI_SUCCESS`.
pub const SUCCESS: i32 = 0;

struct Constants(UnsafeCell<MaybeUninit<laggard_constants>>);

// SAFETY: `fill` writes once, before recording begins; afterwards all access is reading.
unsafe impl Sync for Constants {}

static CONSTANTS: Constants = Constants(UnsafeCell::new(MaybeUninit::zeroed()));

/// Looks the constants up; `false` if the MPI library differs from the one built for.
///
/// # Safety
/// Only from MPI_Init, before recording begins.
pub unsafe fn fill() -> bool {
    // SAFETY: nobody reads yet.
    unsafe { laggard_fill_constants((*CONSTANTS.0.get()).as_mut_ptr(), Some(find_symbol)) != 0 }
}

/// The constants; all zero before [`fill`].
#[inline(always)]
pub fn constants() -> &'static laggard_constants {
    // SAFETY: zeroed at first, which is valid for pointers and integers; then filled.
    unsafe { (*CONSTANTS.0.get()).assume_init_ref() }
}

/// An MPI handle as a number: a pointer in Open MPI, an integer in MPICH.
pub trait Handle: Copy {
    fn bits(self) -> usize;
}

impl<T> Handle for *mut T {
    #[inline(always)]
    fn bits(self) -> usize {
        self as usize
    }
}

impl Handle for i32 {
    #[inline(always)]
    fn bits(self) -> usize {
        self as u32 as usize
    }
}

/// Received bytes according to a status.
#[inline(always)]
pub fn status_bytes(status: &MPI_Status) -> u64 {
    #[cfg(open_mpi)]
    return status._ucount as u64;
    #[cfg(mpich)]
    return u64::from(status.count_lo as u32)
        | (u64::from(status.count_hi_and_cancelled as u32 >> 1) << 32);
    #[cfg(not(any(open_mpi, mpich)))]
    {
        let mut count = 0;
        // SAFETY: the status of a completed receive is valid.
        unsafe { crate::exports::real::MPI_Get_count(status, constants().byte, &mut count) };
        count.max(0) as u64
    }
}
