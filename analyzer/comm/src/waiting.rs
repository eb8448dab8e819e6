//! Ranks that wait leave their core to those that work.
//!
//! Open MPI has an option for that, MPICH none: four of its ranks on two cores wait for each
//! other's share of time, for milliseconds. Its loops ask UCX for progress in every turn, as far
//! as it was built with UCX, and find that function in this executable first (`build.rs`).

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// The option of Open MPI, which counts for MPICH as well.
pub const OPTION: &str = "OMPI_MCA_mpi_yield_when_idle";

/// A function of UCX.
type Progress = unsafe extern "C" fn(*mut c_void) -> c_uint;

/// Of so many times that this process leaves its core, it sleeps once.
const SLEEPS: u32 = 16;

static YIELDS: AtomicBool = AtomicBool::new(false);

/// Does as the option says from now on.
pub fn as_told() {
    let is_told = std::env::var_os(OPTION).is_some_and(|value| value != "0");
    if is_told {
        // SAFETY: sets how exactly the system wakes this thread, ns, and nothing else.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
    }
    set(is_told);
}

/// Whether this process leaves its core while it waits, from now on. Open MPI decides that when it starts.
pub fn set(yields: bool) {
    YIELDS.store(yields, Ordering::Relaxed);
}

/// Lets another process have the core, if one wants it. A process that yields is chosen again
/// where it had less of the core before (EEVDF, Linux since 6.6), so that two that wait for each
/// other would take turns of milliseconds: now and then it sleeps, as shortly as possible.
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
        // SAFETY: both are C strings; a library that is not loaded gives none.
        let found = unsafe {
            let library = libc::dlopen(library, LOADED);
            match library.is_null() {
                true => library,
                false => libc::dlsym(library, c"ucp_worker_progress".as_ptr()),
            }
        };
        // SAFETY: the function of this name has this type; null is none.
        unsafe { std::mem::transmute::<*mut c_void, Option<Progress>>(found) }
    })
}

/// UCX's function of this name, which yields where nothing has come.
///
/// # Safety
/// As of UCX's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ucp_worker_progress(worker: *mut c_void) -> c_uint {
    let Some(own) = own() else { return 0 };
    // SAFETY: what was passed is passed on.
    let events = unsafe { own(worker) };
    if events == 0 && YIELDS.load(Ordering::Relaxed) {
        leave_core();
    }
    events
}
