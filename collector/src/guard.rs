//! SIGBUS: what a store through a map does where somebody has cut the file off, or the device
//! fails. The program must not end by it, since the file is ours.
//!
//! The handler knows our maps ([`laggard_trace::replace_map`]) and puts memory in their place. Any
//! other SIGBUS is the program's: its own action is put back and the instruction faults again, so
//! that all is as without us, the stack and a core included. A program that sets an action
//! after us has it, and nothing guards it.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The program's action; leaked, since the handler reads it.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// Guards the process from here on.
pub fn install() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        let Some(before) = action() else {
            return;
        };
        // Programs that this one starts would not ignore it any more.
        if before.sa_sigaction == libc::SIG_IGN {
            return;
        }
        let mut ours = before;
        ours.sa_sigaction = on_fault as Handler as usize;
        ours.sa_flags &= libc::SA_RESTART;
        ours.sa_flags |= libc::SA_SIGINFO | libc::SA_ONSTACK;
        BEFORE.store(Box::into_raw(Box::new(before)), Ordering::Release);
        set(&ours);
    });
}

/// The action of the process.
fn action() -> Option<libc::sigaction> {
    // SAFETY: all zeros are an action, and the call fills it in.
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
    // SAFETY: the calling thread's; what was interrupted may be about to read it.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    // SAFETY: the kernel's, which says of faults where they are.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr()) };
    // Positive: a fault; else somebody sent it.
    if code <= 0 || !laggard_trace::replace_map(address as usize) {
        pass_on(signal, info, context, code > 0);
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// Leaves a signal to the program's own action.
fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void, is_fault: bool) {
    // SAFETY: set before this was the handler, and never freed.
    let before = unsafe { &*BEFORE.load(Ordering::Acquire) };
    let is_ours = action().is_some_and(|now| now.sa_sigaction == on_fault as Handler as usize);
    if is_ours || before.sa_sigaction == libc::SIG_DFL {
        set(before);
        if !is_fault {
            // SAFETY: to this thread, with what it came with; it waits until this returns.
            unsafe {
                let (process, thread) = (libc::getpid(), libc::gettid());
                libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, info)
            };
        }
        return;
    }
    // The program's later action calls this one, as one that it knows from before.
    // SAFETY: the function that the program gave, as it gave it.
    unsafe {
        if before.sa_flags & libc::SA_SIGINFO != 0 {
            std::mem::transmute::<usize, Handler>(before.sa_sigaction)(signal, info, context);
        } else {
            std::mem::transmute::<usize, extern "C" fn(i32)>(before.sa_sigaction)(signal);
        }
    }
}
