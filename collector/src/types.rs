//! Sizes of datatypes.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::constants::Handle;
use crate::exports::real;
use crate::ffi::MPI_Datatype;
use crate::handles::Handles;

/// Grows when a datatype handle may have changed its meaning.
static EPOCH: AtomicU32 = AtomicU32::new(1);

/// Notes that a datatype is about to be freed. Called before the real call: another thread may
/// get a new type with the same handle right after it.
pub fn released() {
    EPOCH.fetch_add(1, Ordering::Release);
}

/// Sizes of the datatypes that a thread used recently, bytes.
pub struct TypeSizes(Handles<u64>);

impl TypeSizes {
    /// None yet.
    pub fn new() -> Self {
        TypeSizes(Handles::new(0))
    }

    /// Bytes of data in one element of a valid datatype.
    #[inline(always)]
    pub fn size(&mut self, datatype: MPI_Datatype) -> u64 {
        let (handle, epoch) = (datatype.bits(), EPOCH.load(Ordering::Acquire));
        self.0.find(handle, epoch).unwrap_or_else(|| {
            let size = ask(datatype);
            self.0.note(handle, epoch, size);
            size
        })
    }
}

#[cold]
fn ask(datatype: MPI_Datatype) -> u64 {
    // Some calls of Open MPI ignore datatypes that they are given, which may then be invalid.
    if cfg!(open_mpi) && !is_readable(datatype.bits()) {
        return 0;
    }
    let mut size = 0;
    // SAFETY: a local query on a valid datatype.
    unsafe { real::MPI_Type_size_x(datatype, &mut size) };
    u64::try_from(size).unwrap_or(0)
}

/// Whether memory exists at this address; `true` if the kernel does not say.
fn is_readable(address: usize) -> bool {
    let mut byte = 0u8;
    let part = |address| libc::iovec {
        iov_base: address,
        iov_len: 1,
    };
    let local = part((&raw mut byte).cast());
    let remote = part(std::ptr::without_provenance_mut(address));
    // SAFETY: writes one byte to `byte`; an unreadable address is an error.
    let read = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    read == 1 || std::io::Error::last_os_error().raw_os_error() != Some(libc::EFAULT)
}
