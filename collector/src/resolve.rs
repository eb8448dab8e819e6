//! Finds the real functions at run time, once each.
//!
//! Nothing here links to an MPI library, so the collector can be preloaded into any process
//! between `mpirun` and the program.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::lookup;

/// A function of the MPI library or another one, looked up at its first use.
pub struct Slot<F> {
    target: Target,
    function: PhantomData<F>,
}

/// The type-independent part of a [`Slot`].
pub struct Target {
    name: &'static str,
    /// See [`next`].
    libraries: &'static [&'static str],
    address: AtomicPtr<c_void>,
}

impl<F: Copy> Slot<F> {
    /// A slot for the function with this name (terminated by a zero byte).
    pub const fn new(name: &'static str) -> Self {
        Slot::within(name, MPI)
    }

    /// The same, of libraries with these file name prefixes.
    pub const fn within(name: &'static str, libraries: &'static [&'static str]) -> Self {
        Slot {
            target: Target {
                name,
                libraries,
                address: AtomicPtr::new(ptr::null_mut()),
            },
            function: PhantomData,
        }
    }

    /// The function.
    #[inline(always)]
    pub fn get(&self) -> F {
        let mut address = self.target.address.load(Ordering::Relaxed);
        if address.is_null() {
            address = self.target.find();
        }
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: `F` is the type of the function with this name in `mpi.h`, which
        // `exports` checks against bindgen's declaration.
        unsafe { mem::transmute_copy(&address) }
    }

    /// The slot without its type.
    pub const fn target(&self) -> &Target {
        &self.target
    }
}

impl Target {
    pub fn name(&self) -> &'static CStr {
        CStr::from_bytes_with_nul(self.name.as_bytes()).unwrap_or(c"")
    }

    /// Address; null if no loaded library has the function.
    pub fn address(&self) -> *mut c_void {
        let address = self.address.load(Ordering::Relaxed);
        if address.is_null() {
            next(self.name(), self.libraries)
        } else {
            address
        }
    }

    /// Sets the address, unless the slot already has one. Returns the address in force.
    pub fn settle(&self, address: *mut c_void) -> *mut c_void {
        let known = self.address.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        keep_loaded(address);
        let settled = self.address.compare_exchange(
            ptr::null_mut(),
            address,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        settled.map_or_else(|earlier| earlier, |_| address)
    }

    #[cold]
    #[inline(never)]
    fn find(&self) -> *mut c_void {
        let address = next(self.name(), self.libraries);
        // The program's next dlerror() must not report our failed lookup.
        // SAFETY: may be called at any time.
        unsafe { libc::dlerror() };
        if address.is_null() {
            // Not cached: the library may be loaded later.
            return absent as *mut c_void;
        }
        self.settle(address)
    }
}

/// Stands in for a function that no loaded library has. Its caller got it from us by mistake
/// and receives an error code.
extern "C" fn absent() -> c_int {
    16 // MPI_ERR_OTHER in Open MPI; any code but MPI_SUCCESS serves.
}

/// File name prefixes of MPI and OpenSHMEM libraries.
const MPI: &[&str] = &["libmpi", "libpmpi", "liboshmem"];

/// The next definition of an MPI symbol after this library, whichever way it was loaded.
pub fn symbol(name: &CStr) -> *mut c_void {
    next(name, MPI)
}

/// The next definition of a PMIx symbol; plugins of the MPI library load PMIx.
pub fn symbol_of_pmix(name: &CStr) -> *mut c_void {
    next(name, &["libpmix"])
}

/// The next definition of a symbol after this library, or in libraries with these file name
/// prefixes that were loaded with `RTLD_LOCAL`.
fn next(name: &CStr, libraries: &[&str]) -> *mut c_void {
    // SAFETY: a lookup by name.
    let next = unsafe { lookup::real()(libc::RTLD_NEXT, name.as_ptr()) };
    if !next.is_null() && !is_own(next) {
        return next;
    }
    in_local_scopes(name, libraries)
}

/// Searches libraries that were loaded with `RTLD_LOCAL`, as interpreters load extension
/// modules. `RTLD_NEXT` does not see them.
fn in_local_scopes(name: &CStr, libraries: &[&str]) -> *mut c_void {
    for path in loaded_objects() {
        let Some(file) = path.to_bytes().rsplit(|&byte| byte == b'/').next() else {
            continue;
        };
        if !libraries.iter().any(|l| file.starts_with(l.as_bytes())) {
            continue;
        }
        // SAFETY: RTLD_NOLOAD loads nothing; the handle only adds a reference to a library that
        // stays loaded anyway.
        let address = unsafe {
            let handle = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if handle.is_null() {
                continue;
            }
            lookup::real()(handle, name.as_ptr())
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
    // SAFETY: `visit` expects the data pointer passed here.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut list).cast()) };
    list
}

/// Whether an address lies in this library.
fn is_own(address: *mut c_void) -> bool {
    object_of(address).dli_fbase == object_of(absent as *mut c_void).dli_fbase
}

/// The library in which an address lies; all zero if it is in none.
fn object_of(address: *mut c_void) -> libc::Dl_info {
    // SAFETY: all zero is valid, and remains if dladdr fails.
    unsafe {
        let mut info: libc::Dl_info = mem::zeroed();
        match libc::dladdr(address, &mut info) {
            0 => mem::zeroed(),
            _ => info,
        }
    }
}

/// Keeps the library of an address loaded until the process ends, even if the program closes
/// its last handle.
///
/// Slots keep addresses, and programs keep wrappers that they looked up. A library that is
/// loaded again would be elsewhere, and these addresses would dangle. Most programs never
/// unload MPI, and none can initialise it twice.
fn keep_loaded(address: *mut c_void) {
    static LAST: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    let object = object_of(address);
    if object.dli_fname.is_null() || LAST.load(Ordering::Relaxed) == object.dli_fbase {
        return;
    }
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: RTLD_NOLOAD loads nothing, and the handle is never closed. It fails for the
    // program itself; the program's next dlerror() must not report that.
    unsafe {
        if libc::dlopen(object.dli_fname, flags).is_null() {
            libc::dlerror();
        }
    }
    LAST.store(object.dli_fbase, Ordering::Relaxed);
}

/// This library's export of a name; null if there is none.
///
/// Needs a handle on this library. A plain reference to the name leads to its first definition
/// in the process, which may be another tool's.
pub fn own_function(name: &CStr) -> *mut c_void {
    static OWN: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    let mut own = OWN.load(Ordering::Relaxed);
    if own.is_null() {
        let path = object_of(absent as *mut c_void).dli_fname;
        if path.is_null() {
            return ptr::null_mut();
        }
        // SAFETY: RTLD_NOLOAD loads nothing; this library is never unloaded.
        own = unsafe { libc::dlopen(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        OWN.store(own, Ordering::Relaxed);
    }
    if own.is_null() {
        return own;
    }
    // SAFETY: a valid handle, a lookup by name.
    let function = unsafe { lookup::real()(own, name.as_ptr()) };
    // dlsym also searches the libraries that this one needs.
    if is_own(function) {
        function
    } else {
        ptr::null_mut()
    }
}

/// Tells the call paths that addresses may now mean other code.
///
/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn dlclose(handle: *mut c_void) -> c_int {
    static REAL: Slot<unsafe extern "C-unwind" fn(*mut c_void) -> c_int> = Slot::new("dlclose\0");
    crate::stream::before_unload(laggard_callpath::call_site!());
    // SAFETY: passed on.
    laggard_callpath::unloading(|| unsafe { REAL.get()(handle) })
}

/// Finds data symbols for the shim's constants.
///
/// Searches from the start of the global scope. A program that is not position-independent has
/// its own copy of the library's variables, and the library uses that copy.
///
/// # Safety
/// `name` is a C string.
pub unsafe extern "C" fn find_symbol(name: *const c_char) -> *mut c_void {
    // SAFETY: see above.
    let name = unsafe { CStr::from_ptr(name) };
    // SAFETY: a lookup by name.
    let first = unsafe { lookup::real()(libc::RTLD_DEFAULT, name.as_ptr()) };
    if first.is_null() {
        in_local_scopes(name, MPI)
    } else {
        first
    }
}
