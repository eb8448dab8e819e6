//! Reading the thread's own stack without ever faulting.

use std::ffi::c_void;
use std::ops::Range;

/// Stack that reading unwind tables may need, bytes.
const NEEDED: u64 = 6 * 1024;

/// Limits of the calling thread's stack, as far as known.
pub(crate) struct Stack {
    limits: Range<u64>,
    known: bool,
}

impl Stack {
    pub(crate) const fn new() -> Self {
        Self {
            limits: 0..0,
            known: false,
        }
    }

    /// Whether too little stack is left below `sp` to unwind. Call [`reader`](Self::reader)
    /// before.
    pub(crate) fn is_short(&self, sp: u64) -> bool {
        self.limits.contains(&sp) && sp - self.limits.start < NEEDED
    }

    fn learn(&mut self) {
        if !self.known {
            self.known = true;
            self.limits = thread_stack().unwrap_or(0..0);
        }
    }

    /// A reader of a copy of the stack above `sp`. What lies beyond the copy and above `now`, the
    /// thread's stack pointer, is read where it is: most such frames have not returned since.
    pub(crate) fn copied<'a>(&mut self, sp: u64, bytes: &'a [u8], now: u64) -> Reader<'a> {
        self.learn();
        let end = sp.saturating_add(bytes.len() as u64);
        let live = match self.limits.contains(&sp) && self.limits.contains(&now) {
            true => end.max(now)..self.limits.end,
            false => 0..0,
        };
        Reader::Copied { sp, bytes, live }
    }

    /// A reader of the stack above `sp`.
    pub(crate) fn reader(&mut self, sp: u64) -> Reader<'static> {
        self.learn();
        if self.limits.contains(&sp) {
            Reader::Own(sp..self.limits.end)
        } else {
            Reader::Foreign(sp)
        }
    }
}

/// Reads words from a stack.
pub(crate) enum Reader<'a> {
    /// The thread's own stack: all of it above the stack pointer is mapped.
    Own(Range<u64>),
    /// The stack of a coroutine or signal handler, whose size above the given stack pointer is
    /// unknown. The kernel reads it and reports unmapped addresses.
    Foreign(u64),
    /// A copy of the stack from the given stack pointer on, and where the thread's own stack is
    /// read instead.
    Copied {
        sp: u64,
        bytes: &'a [u8],
        live: Range<u64>,
    },
}

impl Reader<'_> {
    /// The word at `address`, if it lies on the stack and is aligned.
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        if address & 7 != 0 {
            return None;
        }
        match self {
            Self::Own(range) => mapped(range, address),
            Self::Copied { sp, bytes, live } => {
                let at = usize::try_from(address.checked_sub(*sp)?).ok()?;
                match bytes.get(at..at.checked_add(8)?) {
                    Some(word) => Some(u64::from_ne_bytes(word.try_into().ok()?)),
                    None => mapped(live, address),
                }
            }
            Self::Foreign(sp) => (address >= *sp).then(|| ask_kernel(address)).flatten(),
        }
    }
}

/// A word of the thread's own stack, if it lies in this part of it.
fn mapped(range: &Range<u64>, address: u64) -> Option<u64> {
    let inside = address >= range.start && address <= range.end.checked_sub(8)?;
    // SAFETY: aligned, and between the stack pointer of a live frame of this thread and the end of
    // its stack.
    inside.then(|| unsafe { (address as *const u64).read_volatile() })
}

fn ask_kernel(address: u64) -> Option<u64> {
    let mut word = 0u64;
    let local = libc::iovec {
        iov_base: (&raw mut word).cast(),
        iov_len: 8,
    };
    let remote = libc::iovec {
        iov_base: address as *mut c_void,
        iov_len: 8,
    };
    // SAFETY: writes to `word` only; bad remote addresses are an error.
    let read = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    (read == 8).then_some(word)
}

fn thread_stack() -> Option<Range<u64>> {
    // SAFETY: the attribute object is initialised by `pthread_getattr_np`,
    // read, and destroyed, all here.
    unsafe {
        let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let (mut low, mut size) = (std::ptr::null_mut(), 0);
        let failed = libc::pthread_attr_getstack(attributes.as_ptr(), &mut low, &mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        let low = low as u64;
        (failed == 0).then(|| low..low.saturating_add(size as u64))
    }
}
