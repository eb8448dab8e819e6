//! Waiting ranks leave their core to working ones.
//!
//! Open MPI has an option for that, MPICH has none: four of its ranks on two cores wait for each
//! other's slice of time, for milliseconds. If MPICH is built with UCX, its loops ask UCX for
//! progress in every turn, and find that function in this executable first (`build.rs`). The library
//! that links MPI has this module as well, and hands on what it is told.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// The option of Open MPI, which here counts for MPICH as well.
pub const OPTION: &str = "OMPI_MCA_mpi_yield_when_idle";

/// A function of UCX.
type Progress = unsafe extern "C" fn(*mut c_void) -> c_uint;

/// This process sleeps once in this many times that it leaves its core.
const SLEEPS: u32 = 16;

static YIELDS: AtomicBool = AtomicBool::new(false);

/// Where [`set`] is handed on to.
static EXECUTABLE: OnceLock<extern "C" fn(bool)> = OnceLock::new();

/// From now on the executable, whose function is the one that MPICH finds, is told.
pub fn hand_on(set: extern "C" fn(bool)) {
    // Whoever came first is the same executable.
    let _ = EXECUTABLE.set(set);
}

/// Follows the option from now on.
pub fn as_told() {
    let is_told = std::env::var_os(OPTION).is_some_and(|value| value != "0");
    if is_told {
        // SAFETY: only sets this thread's timer slack, ns.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
    }
    set(is_told);
}

/// Sets whether this process leaves its core while it waits. Open MPI decides that when it starts.
pub extern "C" fn set(yields: bool) {
    match EXECUTABLE.get() {
        Some(set) => set(yields),
        None => YIELDS.store(yields, Ordering::Relaxed),
    }
}

/// Lets another process have the core, if one wants it. The scheduler (EEVDF, Linux since 6.6) may
/// choose a yielding process again if it had less of the core before. Two processes that wait for
/// each other would then take turns of milliseconds. So this one sleeps now and then, as shortly as
/// possible.
pub fn leave_core() {
    static TIMES: AtomicU32 = AtomicU32::new(0);
    match TIMES.fetch_add(1, Ordering::Relaxed) % SLEEPS {
        0 => std::thread::sleep(Duration::from_nanos(1)),
        _ => std::thread::yield_now(),
    }
}

/// UCX's own function, in the library that MPI has loaded.
fn own() -> Option<Progress> {
    static OWN: OnceLock<Option<Progress>> = OnceLock::new();
    *OWN.get_or_init(|| {
        const LOADED: c_int = libc::RTLD_NOW | libc::RTLD_NOLOAD;
        let library: *const c_char = c"libucp.so.0".as_ptr();
        // SAFETY: both are C strings; the result is null if the library is not loaded.
        let found = unsafe {
            let library = libc::dlopen(library, LOADED);
            match library.is_null() {
                true => library,
                false => libc::dlsym(library, c"ucp_worker_progress".as_ptr()),
            }
        };
        // SAFETY: the function of this name has this type; null is `None`.
        unsafe { std::mem::transmute::<*mut c_void, Option<Progress>>(found) }
    })
}

/// Replaces UCX's function of this name. Yields if nothing has arrived.
///
/// # Safety
/// As for UCX's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ucp_worker_progress(worker: *mut c_void) -> c_uint {
    let Some(own) = own() else { return 0 };
    // SAFETY: passes on the caller's argument.
    let events = unsafe { own(worker) };
    if events == 0 && YIELDS.load(Ordering::Relaxed) {
        leave_core();
    }
    events
}
