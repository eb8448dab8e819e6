//! `dlsym`: a program that looks a function of MPI or OpenSHMEM up in a library by itself gets ours.
//!
//! Interpreters and plugins are not linked with MPI. They load it (`dlopen`) and ask for
//! its functions by handle, where no preloaded library is asked: Python's ctypes, Julia,
//! Java and Rust programs, and libraries that choose among several MPIs at run time. So
//! `dlsym` is exported, too, and such a lookup finds our wrapper instead of the function
//! that the wrapper passes on to.
//!
//! *Constraint.* For `RTLD_NEXT` and `RTLD_DEFAULT` the C library takes the library that
//! called from the return address, so there must be no frame of ours between it and the
//! caller: what is exported is a few instructions that jump on with all arguments in
//! place. `RTLD_DEFAULT` needs nothing else, as it finds a preloaded library first.
//!
//! *Safety.* Our wrapper stands for one function only, the one that it passes on to. A
//! tool's library may have functions of these names as well; whichever is found is called,
//! and none is called twice or calls itself.
//!
//! *Not supported.* `dlvsym`: no MPI library has symbol versions.

use std::ffi::{CStr, c_char, c_void};

use crate::exports;
use crate::resolve::{Target, own_function};
use crate::shmem;

/// The C library's `dlsym`, or that of another tool behind this library.
pub type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// The wrapper for what a handle gives under a name of MPI's or OpenSHMEM's, or what it gives.
///
/// # Safety
/// As `dlsym`.
#[cfg_attr(not(dlsym_exported), allow(dead_code))]
unsafe extern "C" fn by_handle(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: a string, or the C library could not do its work either.
    let wanted = unsafe { CStr::from_ptr(name) };
    let candidates = Candidates::of(wanted);
    // After all lookups of ours: what dlerror() says next is about the program's.
    // SAFETY: the arguments are the caller's.
    let found = unsafe { real()(handle, name) };
    if found.is_null() {
        return found;
    }
    candidates.wrapper_of(found).unwrap_or(found)
}

/// The wrappers that can stand for what is found under a name.
struct Candidates([Option<Candidate>; 2]);

struct Candidate {
    target: &'static Target,
    /// What it would pass on to now.
    address: *mut c_void,
    wrapper: *mut c_void,
}

impl Candidates {
    /// The wrapper with this name, and for `MPI_x` that of `PMPI_x`, too: where a tool
    /// behind this library has an `MPI_x`, ours passes on to the tool's. In the MPI
    /// library both names are one function, which `PMPI_x` of ours passes on to.
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
        // From here on it passes on to this and nothing else.
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
    //! The C library's own is not known to be found from behind an exported one.

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

    /// The real function, once it is known; read by the instructions below.
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

    /// Under which version the C library has it: since it exists on this architecture,
    /// and since libdl became a part of libc.
    #[cfg(target_arch = "x86_64")]
    const VERSIONS: [&CStr; 2] = [c"GLIBC_2.2.5", c"GLIBC_2.34"];
    #[cfg(target_arch = "aarch64")]
    const VERSIONS: [&CStr; 2] = [c"GLIBC_2.17", c"GLIBC_2.34"];

    unsafe extern "C" {
        fn laggard_dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    }

    /// Brings the name into the list of what is exported, which the compiler makes of Rust
    /// functions only. The linker is told to give it to `laggard_dlsym` (see `build.rs`).
    ///
    /// # Safety
    /// As the C library's function.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
        // SAFETY: passed on.
        unsafe { laggard_dlsym(handle, name) }
    }

    /// Finds the real function: when this library is loaded, or before, where another
    /// one's constructor comes first. Neither allocates nor locks anything of ours.
    ///
    /// Asked for with a version, which is another function and not exported here: it finds
    /// the next definition after this library.
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

    /// A C library that has no `dlsym` of the versions above cannot load what is linked
    /// with it on this architecture. As the instructions below do then.
    unsafe extern "C" fn nothing(_: *mut c_void, _: *const c_char) -> *mut c_void {
        ptr::null_mut()
    }

    // Handles that are neither RTLD_DEFAULT (0) nor RTLD_NEXT (-1), and names that begin
    // with MPI_, MPIX, PMPI_, PMPIX, sh or star go to `by_handle`, all else to the real function;
    // by jumps, so that both return to the caller. Names are read byte by byte: the next
    // page may not be there. Not hidden: linkers give `dlsym` the visibility of this.

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

/// The real function: for lookups in this library, which must not come to its own.
pub fn real() -> Dlsym {
    stub::real()
}

/// This library is loaded. Where nothing is found yet, it is asked for again.
pub fn loaded() {
    stub::find();
}
