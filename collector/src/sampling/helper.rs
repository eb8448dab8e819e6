//! A thread that empties the kernel's rings while their threads compute.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Rings;

/// The rings, and how long the thread may sleep.
struct Watched {
    all: Vec<Arc<Mutex<Rings>>>,
    /// Time in which the smallest ring gets half full.
    pause: Duration,
    runs: bool,
}

static WATCHED: Mutex<Watched> = Mutex::new(Watched {
    all: Vec::new(),
    pause: Duration::MAX,
    runs: false,
});

/// Stack of the thread, bytes.
const STACK: usize = 64 << 10;

fn watched() -> MutexGuard<'static, Watched> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Empties a ring from now on, at the latest after `pause`.
pub fn add(rings: &Arc<Mutex<Rings>>, pause: Duration) {
    let mut watched = watched();
    watched.all.push(Arc::clone(rings));
    watched.pause = watched.pause.min(pause);
    if !watched.runs {
        watched.runs = start();
    }
}

/// Leaves a ring alone.
pub fn remove(rings: &Arc<Mutex<Rings>>) {
    watched().all.retain(|other| !Arc::ptr_eq(other, rings));
}

/// Starts the thread, which takes no signals of the program. `false` if that fails: rings overflow
/// in long stretches then, which is counted.
fn start() -> bool {
    // SAFETY: objects that the calls fill in; a function with the signature of threads.
    unsafe {
        let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
        if libc::pthread_attr_init(attributes.as_mut_ptr()) != 0 {
            return false;
        }
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK);
        libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED);
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let mut thread = MaybeUninit::uninit();
        let failed = libc::pthread_create(
            thread.as_mut_ptr(),
            attributes.as_ptr(),
            watch,
            ptr::null_mut(),
        );
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        failed == 0
    }
}

extern "C" fn watch(_: *mut libc::c_void) -> *mut libc::c_void {
    loop {
        let pause = watched().pause;
        std::thread::sleep(pause);
        let mut watched = watched();
        if watched.all.is_empty() {
            watched.runs = false;
            return ptr::null_mut();
        }
        for rings in &watched.all {
            // Whoever has it empties it.
            if let Ok(mut rings) = rings.try_lock() {
                rings.drain();
            }
        }
    }
}
