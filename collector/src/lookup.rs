//! `dlsym`: gives our wrapper to a program that looks up a function of MPI or OpenSHMEM itself.
//!
//! Interpreters and plugins are not linked with MPI. They load it (`dlopen`) and ask for its
//! functions by handle, which bypasses preloaded libraries. Python's ctypes, Julia, Java and
//! Rust programs do so, and libraries that choose among several MPIs at run time. The collector
//! therefore exports `dlsym`, too. Such a lookup finds our wrapper instead of the function that
//! the wrapper calls.
//!
//! *Constraint.* For `RTLD_NEXT` and `RTLD_DEFAULT` the C library derives the calling library
//! from the return address. No frame of ours may stand between it and the caller: the exported
//! function is a few instructions that jump on with all arguments in place. `RTLD_DEFAULT`
//! needs nothing else, because it finds a preloaded library first.
//!
//! *Safety.* A wrapper replaces only the one function that it calls. A tool's library may
//! define functions of these names, too. Whichever definition is found gets called, none is
//! called twice, and none calls itself.
//!
//! *Not supported.* `dlvsym`: no MPI library has symbol versions.

use std::ffi::{CStr, c_char, c_void};

use crate::exports;
use crate::resolve::{Target, own_function};
use crate::shmem;

/// The C library's `dlsym`, or the next tool's.
pub type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// Looks up a name of MPI or OpenSHMEM by handle; returns our wrapper if it calls the function
/// found.
///
/// # Safety
/// As `dlsym`.
#[cfg_attr(not(dlsym_exported), allow(dead_code))]
unsafe extern "C" fn by_handle(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: a C string: the C library needs one, too.
    let wanted = unsafe { CStr::from_ptr(name) };
    let candidates = Candidates::of(wanted);
    // Runs after our own lookups, so that dlerror() speaks of the program's.
    // SAFETY: the caller's arguments.
    let found = unsafe { real()(handle, name) };
    if found.is_null() {
        return found;
    }
    candidates.wrapper_of(found).unwrap_or(found)
}

/// The wrappers that may replace a function of one name.
struct Candidates([Option<Candidate>; 2]);

struct Candidate {
    target: &'static Target,
    /// Address of the function that it calls now.
    address: *mut c_void,
    wrapper: *mut c_void,
}

impl Candidates {
    /// The wrappers of this name and, for `MPI_x`, also of `PMPI_x`. If a tool behind this
    /// library has an `MPI_x`, our `MPI_x` calls that. In the MPI library both names are one
    /// function, which our `PMPI_x` calls.
    fn of(name: &CStr) -> Self {
        let twin = exports::targets().find(|(mpi, pmpi)| mpi.name() == name || pmpi.name() == name);
        let Some((mpi, pmpi)) = twin else {
            let target = shmem::targets().find(|target| target.name() == name);
            return Candidates([target.and_then(Candidate::new), None]);
        };
        let mpi = (mpi.name() == name).then_some(mpi);
        Candidates([mpi, Some(pmpi)].map(|target| target.and_then(Candidate::new)))
    }

    fn wrapper_of(&self, found: *mut c_void) -> Option<*mut c_void> {
        let mut candidates = self.0.iter().flatten();
        // Fixes the wrapper's target to this function.
        let stands = |c: &&Candidate| c.address == found && c.target.settle(found) == found;
        candidates.find(stands).map(|c| c.wrapper)
    }
}

impl Candidate {
    fn new(target: &'static Target) -> Option<Self> {
        let (address, wrapper) = (target.address(), own_function(target.name()));
        (!address.is_null() && !wrapper.is_null()).then_some(Candidate {
            target,
            address,
            wrapper,
        })
    }
}

#[cfg(not(dlsym_exported))]
mod stub {
    //! No known way to find the C library's `dlsym` from behind an exported one.

    use std::ffi::c_void;
    use std::ptr;

    pub fn find() -> *mut c_void {
        ptr::null_mut()
    }

    pub fn real() -> super::Dlsym {
        libc::dlsym
    }
}

#[cfg(dlsym_exported)]
mod stub {
    use std::arch::global_asm;
    use std::ffi::{CStr, c_char, c_void};
    use std::mem;
    use std::ptr;
    use std::sync::atomic::{AtomicPtr, Ordering};

    use super::Dlsym;

    /// The real function, or null; the instructions below read it.
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

    /// Symbol versions of `dlsym`: the first on this architecture, and the one since libdl
    /// became part of libc.
    #[cfg(target_arch = "x86_64")]
    const VERSIONS: [&CStr; 2] = [c"GLIBC_2.2.5", c"GLIBC_2.34"];
    #[cfg(target_arch = "aarch64")]
    const VERSIONS: [&CStr; 2] = [c"GLIBC_2.17", c"GLIBC_2.34"];

    unsafe extern "C" {
        fn laggard_dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    }

    /// Puts the name `dlsym` into the list of exports, which the compiler builds from Rust
    /// functions only. The linker then gives the name to `laggard_dlsym` (see `build.rs`).
    ///
    /// # Safety
    /// As the C library's function.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
        // SAFETY: passes the caller's arguments on.
        unsafe { laggard_dlsym(handle, name) }
    }

    /// Finds the real function when this library is loaded, or earlier if another library's
    /// constructor runs first. It takes no memory and no lock of ours.
    ///
    /// `dlvsym` is not exported here, so it finds the next definition after this library.
    pub extern "C" fn find() -> *mut c_void {
        for version in VERSIONS {
            // SAFETY: a lookup by name.
            let next =
                unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) };
            if !next.is_null() && next != laggard_dlsym as *mut c_void {
                REAL.store(next, Ordering::Relaxed);
                return next;
            }
        }
        ptr::null_mut()
    }

    /// The real function, for handles and for lookups from this library.
    pub fn real() -> Dlsym {
        let mut real = REAL.load(Ordering::Relaxed);
        if real.is_null() {
            real = find();
        }
        if real.is_null() {
            return nothing;
        }
        // SAFETY: the function with this name.
        unsafe { mem::transmute::<*mut c_void, Dlsym>(real) }
    }

    /// Stands for a missing `dlsym`. A C library without the versions above cannot load
    /// programs of this architecture. The instructions below behave the same in this case.
    unsafe extern "C" fn nothing(_: *mut c_void, _: *const c_char) -> *mut c_void {
        ptr::null_mut()
    }

    // Calls go to `by_handle` if the handle is neither RTLD_DEFAULT (0) nor RTLD_NEXT (-1) and
    // the name begins with MPI_, MPIX, PMPI_, PMPIX, sh or star. All others go to the real
    // function. Both are jumps, so both return to the caller. Names are read byte by byte: the
    // next page may be unmapped. The symbol is not hidden, because linkers give `dlsym` its
    // visibility.

    #[cfg(target_arch = "x86_64")]
    global_asm!(
        ".section .text.laggard_dlsym,\"ax\",@progbits",
        ".globl laggard_dlsym",
        ".type laggard_dlsym,@function",
        ".p2align 4",
        "laggard_dlsym:",
        ".cfi_startproc",
        "endbr64",
        "lea rax, [rdi + 1]",
        "cmp rax, 1",
        "jbe 3f",
        "test rsi, rsi",
        "jz 3f",
        "mov rax, rsi",
        "cmp byte ptr [rax], 0x73", // s
        "je 6f",
        "cmp byte ptr [rax], 0x50", // P
        "jne 2f",
        "inc rax",
        "2:",
        "cmp byte ptr [rax], 0x4d", // M
        "jne 3f",
        "cmp byte ptr [rax + 1], 0x50", // P
        "jne 3f",
        "cmp byte ptr [rax + 2], 0x49", // I
        "jne 3f",
        "cmp byte ptr [rax + 3], 0x5f", // _
        "je {by_handle}",
        "cmp byte ptr [rax + 3], 0x58", // X
        "je {by_handle}",
        "3:",
        "mov rax, qword ptr [rip + {real}]",
        "test rax, rax",
        "jz 4f",
        "jmp rax",
        "4:", // Not yet known.
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {find}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "test rax, rax",
        "jz 5f",
        "jmp rax",
        "5:",
        "ret", // Null: found nothing.
        "6:",
        "cmp byte ptr [rax + 1], 0x68", // h
        "je {by_handle}",
        "cmp byte ptr [rax + 1], 0x74", // t
        "jne 3b",
        "cmp byte ptr [rax + 2], 0x61", // a
        "jne 3b",
        "cmp byte ptr [rax + 3], 0x72", // r
        "je {by_handle}",
        "jmp 3b",
        ".cfi_endproc",
        ".size laggard_dlsym, . - laggard_dlsym",
        ".text",
        by_handle = sym super::by_handle,
        real = sym REAL,
        find = sym find,
    );

    #[cfg(target_arch = "aarch64")]
    global_asm!(
        ".section .text.laggard_dlsym,\"ax\",@progbits",
        ".globl laggard_dlsym",
        ".type laggard_dlsym,@function",
        ".p2align 4",
        "laggard_dlsym:",
        ".cfi_startproc",
        "hint #34", // bti c
        "add x9, x0, #1",
        "cmp x9, #1",
        "b.ls 3f",
        "cbz x1, 3f",
        "mov x9, x1",
        "ldrb w10, [x9]",
        "cmp w10, #0x73", // s
        "b.eq 7f",
        "cmp w10, #0x50", // P
        "b.ne 2f",
        "add x9, x9, #1",
        "ldrb w10, [x9]",
        "2:",
        "cmp w10, #0x4d", // M
        "b.ne 3f",
        "ldrb w10, [x9, #1]",
        "cmp w10, #0x50", // P
        "b.ne 3f",
        "ldrb w10, [x9, #2]",
        "cmp w10, #0x49", // I
        "b.ne 3f",
        "ldrb w10, [x9, #3]",
        "cmp w10, #0x5f", // _
        "b.eq 6f",
        "cmp w10, #0x58", // X
        "b.eq 6f",
        "3:",
        "adrp x16, {real}",
        "ldr x16, [x16, :lo12:{real}]",
        "cbz x16, 4f",
        "br x16",
        "4:", // Not yet known.
        "stp x29, x30, [sp, #-32]!",
        ".cfi_def_cfa_offset 32",
        ".cfi_offset x29, -32",
        ".cfi_offset x30, -24",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "bl {find}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        ".cfi_restore x29",
        ".cfi_restore x30",
        ".cfi_def_cfa_offset 0",
        "cbz x16, 5f",
        "br x16",
        "5:",
        "mov x0, #0", // Found nothing.
        "ret",
        "6:",
        "b {by_handle}",
        "7:",
        "ldrb w10, [x9, #1]",
        "cmp w10, #0x68", // h
        "b.eq 6b",
        "cmp w10, #0x74", // t
        "b.ne 3b",
        "ldrb w10, [x9, #2]",
        "cmp w10, #0x61", // a
        "b.ne 3b",
        "ldrb w10, [x9, #3]",
        "cmp w10, #0x72", // r
        "b.eq 6b",
        "b 3b",
        ".cfi_endproc",
        ".size laggard_dlsym, . - laggard_dlsym",
        ".text",
        by_handle = sym super::by_handle,
        real = sym REAL,
        find = sym find,
    );
}

/// The real function, for lookups in this library, which must bypass its own `dlsym`.
pub fn real() -> Dlsym {
    stub::real()
}

/// Runs when this library is loaded. A failed search is repeated later.
pub fn loaded() {
    stub::find();
}
