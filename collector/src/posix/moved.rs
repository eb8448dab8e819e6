//! Classes of POSIX calls: the bytes that a call moved, from its arguments and its result.

use std::ffi::{c_char, c_int, c_void};
use std::mem;

use crate::constants::MPI_PROC_NULL;
use crate::signature::{Half, NOBODY};

/// Result of a call.
pub trait Outcome: Copy {
    /// Result of a call that failed.
    const FAILED: Self;

    /// The number that the result counts; `None` if the call failed.
    fn count(self) -> Option<u64>;
}

impl Outcome for c_int {
    const FAILED: c_int = -1;

    fn count(self) -> Option<u64> {
        u64::try_from(self).ok()
    }
}

impl Outcome for isize {
    const FAILED: isize = -1;

    fn count(self) -> Option<u64> {
        u64::try_from(self).ok()
    }
}

impl Outcome for usize {
    const FAILED: usize = 0;

    fn count(self) -> Option<u64> {
        Some(self as u64)
    }
}

impl Outcome for *mut c_void {
    const FAILED: *mut c_void = std::ptr::null_mut();

    fn count(self) -> Option<u64> {
        (!self.is_null()).then_some(0)
    }
}

/// Halves of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Bytes to the system.
    pub send: Half,
    /// Bytes from the system.
    pub receive: Half,
}

impl Volume {
    const NOTHING: Volume = Volume {
        send: NOBODY,
        receive: NOBODY,
    };

    fn sent(bytes: u64) -> Volume {
        Volume {
            send: Half::new(MPI_PROC_NULL, 0, bytes),
            ..Volume::NOTHING
        }
    }

    fn received(bytes: u64) -> Volume {
        Volume {
            receive: Half::new(MPI_PROC_NULL, 0, bytes),
            ..Volume::NOTHING
        }
    }
}

/// How a call's result tells what it moved.
#[derive(Clone, Copy)]
pub enum Moved {
    Nothing,
    /// Units of this many bytes came.
    Input(usize),
    /// Units of this many bytes left.
    Output(usize),
    /// A string came into this memory of so many bytes.
    Line(*const c_char, c_int),
    /// These bytes left.
    Text(usize),
}

/// A call that moves no data.
pub fn nothing() -> Moved {
    Moved::Nothing
}

/// Reads as many units as the result says.
pub fn input(unit: usize) -> Moved {
    Moved::Input(unit)
}

/// Writes as many units as the result says.
pub fn output(unit: usize) -> Moved {
    Moved::Output(unit)
}

/// Reads a string into a buffer.
pub fn line(buffer: *const c_char, size: c_int) -> Moved {
    Moved::Line(buffer, size)
}

/// Writes this many bytes.
pub fn text(bytes: usize) -> Moved {
    Moved::Text(bytes)
}

/// Length of a string to be written. Taken before the call: afterwards another thread may have
/// freed it.
pub fn length(string: *const c_char) -> usize {
    if string.is_null() {
        return 0;
    }
    // SAFETY: the program's string, which the real function reads as well.
    unsafe { libc::strlen(string) }
}

impl Moved {
    /// What a call with this result moved; `None` if it failed.
    pub fn by(self, result: impl Outcome) -> Option<Volume> {
        let count = result.count()?;
        let of = |unit: usize| count.saturating_mul(unit as u64);
        Some(match self {
            Moved::Nothing => Volume::NOTHING,
            Moved::Input(unit) => Volume::received(of(unit)),
            Moved::Output(unit) => Volume::sent(of(unit)),
            Moved::Line(buffer, size) => {
                let most = usize::try_from(size).unwrap_or(0);
                // SAFETY: the program's buffer of this size, which the call has just filled.
                Volume::received(unsafe { libc::strnlen(buffer, most) } as u64)
            }
            Moved::Text(bytes) => Volume::sent(bytes as u64),
        })
    }
}

// A thread may end in a call, without any destructor.
const _: () = assert!(!mem::needs_drop::<Moved>());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_tell_the_bytes() {
        assert_eq!(input(1).by(7_isize), Some(Volume::received(7)));
        assert_eq!(output(8).by(3_usize), Some(Volume::sent(24)));
        assert_eq!(output(1).by(-1_isize), None);
        assert_eq!(nothing().by(0), Some(Volume::NOTHING));
        assert_eq!(nothing().by(-1), None);
        assert_eq!(nothing().by(std::ptr::null_mut::<c_void>()), None);
        assert_eq!(text(length(c"four".as_ptr())).by(1), Some(Volume::sent(4)));
        let mut buffer = *b"two\n\0rest";
        let filled: *mut c_void = buffer.as_mut_ptr().cast();
        let lines = line(filled.cast(), 9);
        assert_eq!(lines.by(filled), Some(Volume::received(4)));
    }
}
