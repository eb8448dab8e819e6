//! Events of the kernel about the calling thread, by `perf_event_open`.

use std::io;
use std::sync::OnceLock;

/// The kernel's `struct perf_event_attr`, version 5.
#[repr(C)]
#[derive(Default)]
pub struct Attributes {
    pub kind: u32,
    pub size: u32,
    pub config: u64,
    pub period: u64,
    pub sample_type: u64,
    pub read_format: u64,
    pub flags: u64,
    pub wakeup: u32,
    pub breakpoint: u32,
    pub config1: u64,
    pub config2: u64,
    pub branches: u64,
    pub user_registers: u64,
    pub user_stack: u32,
    pub clock: i32,
    pub registers: u64,
    pub watermark: u32,
    pub depth: u16,
    pub reserved: u16,
}

/// Kinds of events.
pub const HARDWARE: u32 = 0;
pub const SOFTWARE: u32 = 1;
pub const CACHE: u32 = 3;
pub const RAW: u32 = 4;

/// Software event: time on the processor.
pub const TASK_CLOCK: u64 = 1;

/// Flags of the attributes.
pub const EXCLUDE_KERNEL: u64 = 1 << 5;
pub const EXCLUDE_HYPERVISOR: u64 = 1 << 6;

const CLOSE_ON_EXEC: u64 = 1 << 3;

/// Whether the process may only make some system calls: a filter may end it for others.
pub fn is_filtered() -> bool {
    static IS_FILTERED: OnceLock<bool> = OnceLock::new();
    *IS_FILTERED.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let mode = status
            .lines()
            .find_map(|line| line.strip_prefix("Seccomp:"));
        mode.is_some_and(|mode| mode.trim() != "0")
    })
}

/// Opens an event of the calling thread, on any processor, in the group of an open one if there is one.
///
/// # Errors
/// The kernel does not permit it, or the machine has no such event.
pub fn open(attributes: &Attributes, group: Option<i32>) -> io::Result<i32> {
    let size = size_of::<Attributes>() as u32;
    let attributes = Attributes {
        size,
        ..*attributes
    };
    // SAFETY: a valid structure.
    let file = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            0,
            -1,
            group.unwrap_or(-1),
            CLOSE_ON_EXEC,
        )
    };
    match i32::try_from(file) {
        Ok(file) if file >= 0 => Ok(file),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Closes an event that was opened here.
pub fn close(file: i32) {
    // The function of the C library would be a point of cancellation.
    // SAFETY: the descriptor is the collector's.
    unsafe { libc::syscall(libc::SYS_close, file) };
}
