//! The next function of a name, for functions of the C library.

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::lookup;

/// The next function of a name.
///
/// Unlike a [`Slot`](crate::resolve::Slot) it is filled before the program starts: a look-up is
/// nothing for a signal handler. It takes no memory either: an allocator may open files.
pub struct Next<F> {
    /// Without its type.
    pub target: Target,
    function: PhantomData<F>,
}

/// The type-independent part of a [`Next`].
pub struct Target {
    name: &'static str,
    address: AtomicPtr<c_void>,
}

impl<F: Copy> Next<F> {
    /// The function with this name (terminated by a zero byte).
    pub const fn new(name: &'static str) -> Self {
        Next {
            target: Target {
                name,
                address: AtomicPtr::new(ptr::null_mut()),
            },
            function: PhantomData,
        }
    }

    /// The function, or `absent` if the C library has none of this name.
    #[inline(always)]
    pub fn get(&self, absent: F) -> F {
        let mut address = self.target.address.load(Ordering::Relaxed);
        if address.is_null() {
            address = self.target.find();
            if address.is_null() {
                return absent;
            }
        }
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: `F` is the type of the function with this name in the C library.
        unsafe { mem::transmute_copy(&address) }
    }
}

impl Target {
    /// Looks the function up behind this library. Called early by constructors of other
    /// libraries, else by [`fill`].
    #[cold]
    #[inline(never)]
    fn find(&self) -> *mut c_void {
        let name = CStr::from_bytes_with_nul(self.name.as_bytes()).unwrap_or(c"");
        // SAFETY: a lookup by name.
        let found = unsafe { lookup::real()(libc::RTLD_NEXT, name.as_ptr()) };
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

/// Looks all of these up.
pub fn fill<'t>(targets: impl Iterator<Item = &'t Target>) {
    let mut is_complete = true;
    for target in targets {
        is_complete &= !target.find().is_null();
    }
    if !is_complete {
        // The program's next dlerror() must not report a failed lookup of ours.
        // SAFETY: may be called at any time.
        unsafe { libc::dlerror() };
    }
}
