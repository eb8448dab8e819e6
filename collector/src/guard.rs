//! Guards against SIGBUS. A store through a map raises it if somebody has truncated the file or
//! the device fails. The trace file is the collector's, so the program must not die of it.
//!
//! The handler knows the collector's maps ([`laggard_trace::replace_map`]) and puts memory in
//! their place. Any other SIGBUS is the program's: the handler restores the program's own
//! action and the instruction faults again. Stack and core are then as without the collector.
//! An action that the program sets later wins, and the collector has no guard.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The program's action; never freed, because the handler reads it.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// Installs the handler for this process.
pub fn install() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        let Some(before) = action() else {
            return;
        };
        // An ignored signal must stay ignored: child programs inherit that.
        if before.sa_sigaction == libc::SIG_IGN {
            return;
        }
        let mut ours = before;
        ours.sa_sigaction = on_fault as Handler as usize;
        ours.sa_flags &= libc::SA_RESTART;
        ours.sa_flags |= libc::SA_SIGINFO | libc::SA_ONSTACK;
        // As for samples: the C library's own signal, which cancels threads, would unwind this one through the
        // handler. `sigfillset` leaves it out.
        // SAFETY: all bits are a valid set.
        unsafe { ptr::write_bytes(&mut ours.sa_mask, u8::MAX, 1) };
        BEFORE.store(Box::into_raw(Box::new(before)), Ordering::Release);
        set(&ours);
    });
}

/// The current action of the process.
fn action() -> Option<libc::sigaction> {
    // SAFETY: all zeros are a valid action, and the call fills it in.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(libc::SIGBUS, ptr::null(), &mut action) == 0).then_some(action)
    }
}

fn set(action: &libc::sigaction) {
    // SAFETY: a valid action.
    unsafe { libc::sigaction(libc::SIGBUS, action, ptr::null_mut()) };
}

extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the calling thread's errno; the interrupted code may be about to read it.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    // SAFETY: the kernel's info, which gives the address of a fault.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr()) };
    // A positive code is a fault; otherwise a process sent the signal.
    if code <= 0 || !laggard_trace::replace_map(address as usize) {
        pass_on(signal, info, context, code > 0);
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// Passes a signal on to the program's own action.
fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void, is_fault: bool) {
    // SAFETY: set before this handler was installed, and never freed.
    let before = unsafe { &*BEFORE.load(Ordering::Acquire) };
    let is_ours = action().is_some_and(|now| now.sa_sigaction == on_fault as Handler as usize);
    if is_ours || before.sa_sigaction == libc::SIG_DFL {
        set(before);
        if !is_fault {
            // SAFETY: sent to this thread with its own info; stays pending until this returns.
            unsafe {
                let (process, thread) = (libc::getpid(), libc::gettid());
                libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, info)
            };
        }
        return;
    }
    // The program has a later action, which calls this one as its predecessor.
    // SAFETY: the program's function, called with the signature it was registered with.
    unsafe {
        if before.sa_flags & libc::SA_SIGINFO != 0 {
            std::mem::transmute::<usize, Handler>(before.sa_sigaction)(signal, info, context);
        } else {
            std::mem::transmute::<usize, extern "C" fn(i32)>(before.sa_sigaction)(signal);
        }
    }
}
