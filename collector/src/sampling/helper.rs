//! A thread that looks after those that compute: it empties the kernel's rings, and sends signals where there are no timers.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What the thread looks after.
pub trait Watch: Send + Sync {
    /// Looks now. Not after `remove` has returned.
    fn look(&self);
}

/// All of that, and how long the thread may sleep.
struct Watched {
    all: Vec<Arc<dyn Watch>>,
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

/// Looks from now on, after `pause` at the latest. Returns whether there is a thread that does.
pub fn add(watch: Arc<dyn Watch>, pause: Duration) -> bool {
    let mut watched = watched();
    watched.all.push(watch);
    watched.pause = watched.pause.min(pause);
    if !watched.runs {
        watched.runs = start();
    }
    watched.runs
}

/// Looks no more.
pub fn remove(watch: &Arc<dyn Watch>) {
    let is_other = |other: &Arc<dyn Watch>| !ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(watch));
    watched().all.retain(is_other);
}

/// Starts the thread, which takes no signals of the program. `false` if that fails.
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
        for watch in &watched.all {
            watch.look();
        }
    }
}
