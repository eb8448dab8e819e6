//! Whether a call comes from a signal handler.
//!
//! A handler may have interrupted the program anywhere, also where it holds the allocator's lock.
//! Recording takes memory, so calls from handlers are never records.
//!
//! The kernel puts the interrupted registers on the stack, in a form that nothing else has. This
//! looks for it between the call and the end of the stack. A word that only looks like it costs
//! one record.

use std::mem::{MaybeUninit, size_of};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Part of the kernel's registers that is the same in every handler: the segments `cs`, `gs`,
/// `fs` and `ss` of a 64-bit program.
#[cfg(target_arch = "x86_64")]
const MARK: u64 = 0x002b_0000_0000_0033;
/// Part of the kernel's registers that is the same in every handler: magic and size of the
/// floating-point registers.
#[cfg(target_arch = "aarch64")]
const MARK: u64 = 0x0000_0210_4650_8001;

/// Where handlers return to, as the C library has it; 0 = not known. Old kernels leave out
/// segments.
static RETURNS_TO: AtomicU64 = AtomicU64::new(0);

/// Bytes of stack below the handler's own that are looked through if no signal is blocked: only
/// a handler that asks for it leaves its signal unblocked.
const USUAL: u64 = 64 << 10;
/// The same, if signals are blocked.
const MOST: u64 = 1 << 20;

/// Learns where handlers return to, from the handler of some signal.
pub fn prepare() {
    #[cfg(target_arch = "x86_64")]
    {
        /// The kernel's `struct sigaction`.
        #[repr(C)]
        struct Action {
            handler: u64,
            flags: u64,
            restorer: u64,
            mask: u64,
        }
        const HAS_RESTORER: u64 = 0x0400_0000;
        let mut action = MaybeUninit::<Action>::zeroed();
        // SAFETY: reads the action of SIGBUS, for which the collector has a handler.
        let failed = unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                libc::SIGBUS,
                0,
                action.as_mut_ptr(),
                size_of::<u64>(),
            )
        };
        // SAFETY: integers, zero or filled in.
        let action = unsafe { action.assume_init() };
        if failed == 0 && action.flags & HAS_RESTORER != 0 {
            RETURNS_TO.store(action.restorer, Ordering::Relaxed);
        }
    }
}

/// Whether a call at `sp` on this stack comes from a signal handler.
pub fn is_inside(sp: u64, stack: &Range<u64>) -> bool {
    let most = if blocks_signals() { MOST } else { USUAL };
    let end = stack.end.min(sp.saturating_add(most));
    let returns_to = match RETURNS_TO.load(Ordering::Relaxed) {
        0 => MARK,
        address => address,
    };
    let is_mark = |word: &u64| *word == MARK || *word == returns_to;
    let mut words = [0u64; 512];
    let mut at = sp & !7;
    while at < end {
        let count = words.len().min(((end - at) / 8) as usize);
        if count == 0 {
            break;
        }
        if !copy(at, &mut words[..count]) {
            // Cannot be told.
            return true;
        }
        if words[..count].iter().any(is_mark) {
            return true;
        }
        at += 8 * count as u64;
    }
    false
}

/// Copies words of the own stack. The kernel does it: most of them are of no variable, so they
/// may have no value that this program could read.
fn copy(from: u64, to: &mut [u64]) -> bool {
    let bytes = size_of_val(to);
    let local = libc::iovec {
        iov_base: to.as_mut_ptr().cast(),
        iov_len: bytes,
    };
    let remote = libc::iovec {
        iov_base: std::ptr::with_exposed_provenance_mut(from as usize),
        iov_len: bytes,
    };
    // SAFETY: the kernel copies into the given words, and fails where nothing is mapped.
    let copied = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    if copied >= 0 {
        return copied == bytes as isize;
    }
    // SAFETY: the calling thread's errno.
    if unsafe { *libc::__errno_location() } == libc::EFAULT {
        return false;
    }
    // Some containers forbid that call.
    for (at, word) in to.iter_mut().enumerate() {
        let source = std::ptr::with_exposed_provenance::<u64>(from as usize + 8 * at);
        // SAFETY: between a frame of this thread and the end of its stack.
        *word = unsafe { source.read_volatile() };
    }
    true
}

/// Whether the thread blocks any signal.
fn blocks_signals() -> bool {
    let mut mask = 0u64;
    // SAFETY: only reads the mask.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_BLOCK,
            0,
            &raw mut mask,
            size_of::<u64>(),
        )
    };
    failed != 0 || mask != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    static SEEN: AtomicU32 = AtomicU32::new(0);

    fn here() -> bool {
        let variable = 0u64;
        let sp = (&raw const variable) as u64;
        is_inside(sp, &crate::thread::stack())
    }

    extern "C" fn handler(_: i32) {
        SEEN.store(1 + u32::from(here()), Ordering::Relaxed);
    }

    #[test]
    fn handlers_are_told_from_the_program() {
        for flags in [0, libc::SA_NODEFER, libc::SA_RESTART] {
            // SAFETY: a valid action of a signal that nobody else sends here.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handler as extern "C" fn(i32) as usize;
                action.sa_flags = flags;
                libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut());
                assert!(!here());
                libc::raise(libc::SIGUSR2);
            }
            assert_eq!(SEEN.swap(0, Ordering::Relaxed), 2, "flags {flags}");
            assert!(!here());
        }
    }

    #[test]
    fn memory_that_is_not_there_is_no_reason_to_crash() {
        const PAGE: usize = 4096;
        // SAFETY: two new pages, of which the second goes again.
        let pages = unsafe {
            let pages = libc::mmap(
                std::ptr::null_mut(),
                2 * PAGE,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(pages, libc::MAP_FAILED);
            libc::munmap(pages.byte_add(PAGE), PAGE);
            pages.expose_provenance() as u64
        };
        assert!(!is_inside(pages, &(pages..pages + PAGE as u64)));
        assert!(is_inside(pages, &(pages..pages + 2 * PAGE as u64)));
    }
}
