//! Sizes of datatypes.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::constants::Handle;
use crate::exports::real;
use crate::ffi::MPI_Datatype;

/// Changes when a datatype handle may have come to mean something else.
static EPOCH: AtomicU32 = AtomicU32::new(1);

/// A datatype is about to be freed: before the real call, so that a handle of the same
/// number, made by another thread right after, is not taken for it.
pub fn released() {
    EPOCH.fetch_add(1, Ordering::Release);
}

/// Sizes of the datatypes that a thread used lately.
pub struct TypeSizes {
    /// Handle, epoch, bytes.
    entries: [(usize, u32, u64); TypeSizes::SIZE],
}

impl TypeSizes {
    const SIZE: usize = 64;

    /// An empty one.
    pub const fn new() -> Self {
        TypeSizes {
            entries: [(0, 0, 0); Self::SIZE],
        }
    }

    /// Bytes of data in one element of a valid datatype.
    #[inline(always)]
    pub fn size(&mut self, datatype: MPI_Datatype) -> u64 {
        let handle = datatype.bits();
        let epoch = EPOCH.load(Ordering::Acquire);
        let slot = (handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) % Self::SIZE;
        let entry = &mut self.entries[slot];
        if entry.0 != handle || entry.1 != epoch {
            *entry = (handle, epoch, ask(datatype));
        }
        entry.2
    }
}

#[cold]
fn ask(datatype: MPI_Datatype) -> u64 {
    let mut size = 0;
    // SAFETY: a local query on a valid datatype.
    unsafe { real::MPI_Type_size_x(datatype, &mut size) };
    u64::try_from(size).unwrap_or(0)
}
