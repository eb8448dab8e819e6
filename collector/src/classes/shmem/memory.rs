//! Calls that read, write or watch symmetric memory: transfers, atomics, locks, waits.

use std::ffi::{c_int, c_long, c_void};

use laggard_trace::{OpenCall, Subject, flags};

use crate::call::Call;
use crate::classes::Operation;
use crate::constants::MPI_PROC_NULL;
use crate::signature::{Half, NOBODY};
use crate::stream::Stream;
use crate::symmetric;

/// `SHMEM_CMP_NE`, for calls without a comparison.
pub const NOT_EQUAL: c_int = 1;

/// Largest transfer whose value is kept, bytes: longer ones are no flags.
const LARGEST_VALUE: usize = size_of::<u64>();

/// A transfer, or an atomic.
pub struct Transfer {
    /// Written by this PE.
    send: Half,
    /// Read by this PE.
    receive: Half,
    address: usize,
    value: Option<u64>,
    /// Result at which the call has changed the variable.
    condition: Option<u64>,
    failed: bool,
}

#[inline(always)]
fn transfer(send: Half, receive: Half, address: *const c_void) -> Transfer {
    Transfer {
        send,
        receive,
        address: address as usize,
        value: None,
        condition: None,
        failed: false,
    }
}

/// Writes bytes.
#[inline(always)]
pub fn put(pe: c_int, target: *mut c_void, source: *const c_void, bytes: usize) -> Transfer {
    // Read before the call: afterwards others may change the source.
    let value = (bytes <= LARGEST_VALUE && !source.is_null()).then(|| {
        let mut value = [0u8; LARGEST_VALUE];
        // SAFETY: the program writes `bytes` bytes from `source`, and they fit.
        unsafe { std::ptr::copy_nonoverlapping(source.cast(), value.as_mut_ptr(), bytes) };
        u64::from_le_bytes(value)
    });
    Transfer {
        value,
        ..put_strided(pe, target, 0, bytes)
    }
}

/// Writes elements `stride` apart.
#[inline(always)]
pub fn put_strided(pe: c_int, target: *mut c_void, stride: isize, bytes: usize) -> Transfer {
    transfer(Half::new(pe, stride as i32, bytes as u64), NOBODY, target)
}

/// Writes one value.
#[inline(always)]
pub fn put_value(pe: c_int, target: *mut c_void, bytes: usize, value: u64) -> Transfer {
    Transfer {
        value: Some(value),
        ..put_strided(pe, target, 0, bytes)
    }
}

/// Reads bytes.
#[inline(always)]
pub fn get(pe: c_int, source: *const c_void, bytes: usize) -> Transfer {
    get_strided(pe, source, 0, bytes)
}

/// Reads elements `stride` apart.
#[inline(always)]
pub fn get_strided(pe: c_int, source: *const c_void, stride: isize, bytes: usize) -> Transfer {
    transfer(NOBODY, Half::new(pe, stride as i32, bytes as u64), source)
}

/// Changes a value; `value` is the operand.
#[inline(always)]
pub fn atomic(pe: c_int, target: *mut c_void, bytes: usize, value: u64) -> Transfer {
    put_value(pe, target, bytes, value)
}

/// Reads a value atomically.
#[inline(always)]
pub fn atomic_read(pe: c_int, target: *mut c_void, bytes: usize) -> Transfer {
    get(pe, target, bytes)
}

/// Sets a value if it equals `condition`.
#[inline(always)]
pub fn compare_swap(
    pe: c_int,
    target: *mut c_void,
    bytes: usize,
    condition: u64,
    value: u64,
) -> Transfer {
    Transfer {
        condition: Some(condition),
        ..put_value(pe, target, bytes, value)
    }
}

impl Operation for Transfer {
    #[inline(always)]
    fn subject(&self, _stream: &mut Stream) -> Subject {
        let peer = match self.send.peer() {
            MPI_PROC_NULL => self.receive.peer(),
            target => target,
        };
        Subject {
            peer,
            ..Subject::NONE
        }
    }

    #[inline(always)]
    fn returned(&mut self, value: u64) {
        self.failed = self.condition.is_some_and(|condition| condition != value);
    }

    #[inline(never)]
    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        (raw.send, raw.receive) = (self.send, self.receive);
        if self.failed {
            raw.flags |= flags::UNSUCCESSFUL;
        }
        call.record_on_memory(&raw, symmetric::address(self.address), self.value);
    }
}

/// Acquires or releases a lock, whose address is its identity.
pub struct Lock {
    address: usize,
    failed: bool,
    may_fail: bool,
}

/// Acquires or releases a lock.
#[inline(always)]
pub fn lock(lock: *mut c_long) -> Lock {
    Lock {
        address: lock as usize,
        failed: false,
        may_fail: false,
    }
}

/// Acquires a lock if it is free.
#[inline(always)]
pub fn test_lock(address: *mut c_long) -> Lock {
    Lock {
        may_fail: true,
        ..lock(address)
    }
}

impl Operation for Lock {
    #[inline(always)]
    fn subject(&self, _stream: &mut Stream) -> Subject {
        Subject {
            flags: OpenCall::HAS_ADDRESS,
            address: symmetric::address(self.address),
            ..Subject::NONE
        }
    }

    fn returned(&mut self, value: u64) {
        self.failed = self.may_fail && value != 0;
    }

    #[inline(never)]
    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        let address = symmetric::address(self.address);
        if self.failed {
            raw.flags |= flags::UNSUCCESSFUL;
            raw.extra = address;
            call.record_unsuccessful(&raw);
        } else {
            call.record_on_memory(&raw, address, None);
        }
    }
}

/// Waits until a comparison of a variable with a value holds, or tests it once.
pub struct Watch {
    address: usize,
    comparison: c_int,
    bytes: usize,
    value: u64,
    looks: bool,
    failed: bool,
}

/// Waits until a comparison of a variable with a value holds.
#[inline(always)]
pub fn wait(address: *mut c_void, comparison: c_int, bytes: usize, value: u64) -> Watch {
    Watch {
        address: address as usize,
        comparison,
        bytes,
        value,
        looks: false,
        failed: false,
    }
}

/// Tests once whether a comparison of a variable with a value holds.
#[inline(always)]
pub fn test(address: *mut c_void, comparison: c_int, bytes: usize, value: u64) -> Watch {
    Watch {
        looks: true,
        ..wait(address, comparison, bytes, value)
    }
}

impl Operation for Watch {
    #[inline(always)]
    fn subject(&self, _stream: &mut Stream) -> Subject {
        Subject {
            flags: OpenCall::HAS_ADDRESS | OpenCall::HAS_VALUE,
            tag: self.comparison,
            address: symmetric::address(self.address),
            value: self.value,
            ..Subject::NONE
        }
    }

    fn returned(&mut self, value: u64) {
        self.failed = self.looks && value == 0;
    }

    #[inline(never)]
    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        raw.receive = Half::new(MPI_PROC_NULL, self.comparison, self.bytes as u64);
        let address = symmetric::address(self.address);
        if self.failed {
            raw.flags |= flags::UNSUCCESSFUL;
            raw.extra = address;
            call.record_unsuccessful(&raw);
        } else {
            call.record_on_memory(&raw, address, Some(self.value));
        }
    }
}
