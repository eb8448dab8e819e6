//! Call site of a wrapper.

/// The call site of a wrapper function.
///
/// Three registers describe it: the return address, and the stack pointer and frame pointer
/// right after the wrapper returns. Unwinding starts from these alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// Return address of the wrapper: the instruction after the call.
    pub ra: u64,
    /// The caller's stack pointer right after the return. On AArch64 the address above the
    /// wrapper's frame record, which serves only as identity.
    pub sp: u64,
    /// The caller's frame pointer register, whatever the caller keeps in it.
    pub bp: u64,
}

/// A moment of a thread, as it was noted: the interrupted instruction, and a copy of the stack.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// Address of the instruction.
    pub pc: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer register, whatever the code keeps in it.
    pub bp: u64,
    /// The bytes of the stack from `sp` upwards, as many as were copied.
    pub stack: &'a [u8],
    /// The Python frames, as [`note_python`](crate::note_python) noted them.
    pub python: &'a [u64],
}

impl CallSite {
    /// The call site of the function in which this is expanded.
    ///
    /// Use it directly in the body of the exported wrapper, an `extern "C" fn`
    /// compiled with frame pointers. In a closure or a helper function it would
    /// describe the call of that closure or helper.
    #[inline(always)]
    #[must_use]
    pub fn here() -> Self {
        crate::call_site!()
    }
}

/// The [`CallSite`] of the function in which the macro stands; as [`CallSite::here`], but
/// independent of inlining.
#[macro_export]
macro_rules! call_site {
    () => {{
        let frame: *const u64;
        // SAFETY: reads a register. The wrapper is compiled with frame
        // pointers, so the register holds the address of its frame record:
        // the caller's frame pointer and, above it, the return address.
        let (bp, ra) = unsafe {
            #[cfg(target_arch = "x86_64")]
            ::core::arch::asm!("mov {}, rbp", out(reg) frame, options(nomem, nostack, preserves_flags));
            #[cfg(target_arch = "aarch64")]
            ::core::arch::asm!("mov {}, x29", out(reg) frame, options(nomem, nostack, preserves_flags));
            (frame.read_volatile(), frame.add(1).read_volatile())
        };
        $crate::CallSite { ra, sp: frame as u64 + 16, bp }
    }};
}
