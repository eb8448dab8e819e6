//! The real functions: found at run time, once each.
//!
//! Nothing here links to an MPI library, so that the collector can be preloaded
//! into whatever stands between `mpirun` and the program.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function of the MPI library, looked up at its first use.
pub struct Slot<F> {
    name: &'static str,
    address: AtomicPtr<c_void>,
    function: PhantomData<F>,
}

impl<F: Copy> Slot<F> {
    /// A slot for the function with this name (terminated by a zero byte).
    pub const fn new(name: &'static str) -> Self {
        Slot {
            name,
            address: AtomicPtr::new(ptr::null_mut()),
            function: PhantomData,
        }
    }

    /// The function.
    #[inline(always)]
    pub fn get(&self) -> F {
        let mut address = self.address.load(Ordering::Relaxed);
        if address.is_null() {
            address = self.find();
        }
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: `F` is the type of the function with this name in `mpi.h`, which
        // `exports` checks against bindgen's declaration.
        unsafe { mem::transmute_copy(&address) }
    }

    #[cold]
    #[inline(never)]
    fn find(&self) -> *mut c_void {
        let name = CStr::from_bytes_with_nul(self.name.as_bytes()).unwrap_or(c"");
        let mut address = symbol(name);
        if address.is_null() {
            address = absent as *mut c_void;
        }
        self.address.store(address, Ordering::Relaxed);
        address
    }
}

/// Stands in for a function that no loaded library has: whoever calls it found it
/// here by mistake, and gets an error code.
extern "C" fn absent() -> c_int {
    16 // MPI_ERR_OTHER in Open MPI; any code but MPI_SUCCESS serves.
}

/// How files of MPI libraries begin.
const MPI: &[&str] = &["libmpi", "libpmpi"];

/// The next definition of a symbol of MPI after this library, wherever it was loaded.
pub fn symbol(name: &CStr) -> *mut c_void {
    next(name, MPI)
}

/// The next definition of a symbol of PMIx: plugins of the MPI library load it.
pub fn symbol_of_pmix(name: &CStr) -> *mut c_void {
    next(name, &["libpmix"])
}

fn next(name: &CStr, libraries: &[&str]) -> *mut c_void {
    // SAFETY: a lookup by name.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if !next.is_null() && !is_own(next) {
        return next;
    }
    in_local_scopes(name, libraries)
}

/// Searches libraries that were loaded with `RTLD_LOCAL`, as extension modules of
/// interpreters are: `RTLD_NEXT` does not see them.
fn in_local_scopes(name: &CStr, libraries: &[&str]) -> *mut c_void {
    for path in loaded_objects() {
        let Some(file) = path.to_bytes().rsplit(|&byte| byte == b'/').next() else {
            continue;
        };
        if !libraries.iter().any(|l| file.starts_with(l.as_bytes())) {
            continue;
        }
        // SAFETY: RTLD_NOLOAD loads nothing; the handle adds a reference to a library
        // that stays loaded anyway.
        let address = unsafe {
            let handle = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if handle.is_null() {
                continue;
            }
            libc::dlsym(handle, name.as_ptr())
        };
        if !address.is_null() && !is_own(address) {
            return address;
        }
    }
    ptr::null_mut()
}

fn loaded_objects() -> Vec<std::ffi::CString> {
    unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        list: *mut c_void,
    ) -> c_int {
        // SAFETY: the linker passes a valid entry, and `list` is the vector below.
        unsafe {
            let name = (*info).dlpi_name;
            if !name.is_null() && *name != 0 {
                (*list.cast::<Vec<std::ffi::CString>>()).push(CStr::from_ptr(name).to_owned());
            }
        }
        0
    }
    let mut list: Vec<std::ffi::CString> = Vec::new();
    // SAFETY: `visit` matches what is passed.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut list).cast()) };
    list
}

/// Whether an address lies in this library.
fn is_own(address: *mut c_void) -> bool {
    let base = |address: *const c_void| {
        // SAFETY: `info` is valid for writing; dladdr accepts any address.
        unsafe {
            let mut info: libc::Dl_info = mem::zeroed();
            match libc::dladdr(address, &mut info) {
                0 => ptr::null_mut(),
                _ => info.dli_fbase,
            }
        }
    };
    base(address) == base(absent as *const c_void)
}

/// Addresses may come to mean other code: call paths must know.
///
/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn dlclose(handle: *mut c_void) -> c_int {
    static REAL: Slot<unsafe extern "C-unwind" fn(*mut c_void) -> c_int> = Slot::new("dlclose\0");
    // SAFETY: passed on.
    let result = unsafe { REAL.get()(handle) };
    laggard_callpath::note_unload();
    result
}

/// Finds data symbols for the shim's constants.
///
/// From the beginning of the global scope: a program that is not position-independent
/// has its own copy of the library's variables, which the library uses as well.
///
/// # Safety
/// `name` is a string.
pub unsafe extern "C" fn find_symbol(name: *const c_char) -> *mut c_void {
    // SAFETY: see above.
    let (name, first) = unsafe { (CStr::from_ptr(name), libc::dlsym(libc::RTLD_DEFAULT, name)) };
    if first.is_null() {
        in_local_scopes(name, MPI)
    } else {
        first
    }
}
