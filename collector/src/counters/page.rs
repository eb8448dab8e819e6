//! The page in which the kernel tells how a counter is read without it: `perf_event_mmap_page` of
//! `linux/perf_event.h`, read as that header says.

use std::ptr::{self, NonNull};
use std::sync::atomic::{Ordering, compiler_fence};

use super::Reading;

/// Offsets in the page.
const LOCK: usize = 8;
const INDEX: usize = 12;
const OFFSET: usize = 16;
const ENABLED: usize = 24;
const RUNNING: usize = 32;
const CAPABILITIES: usize = 40;
const WIDTH: usize = 48;
const SHIFT: usize = 50;
const MULTIPLIER: usize = 52;
const TIME_OFFSET: usize = 56;

/// Capabilities: the counter may be read, and so may the time.
const MAY_READ: u64 = 1 << 2;
const HAS_TIME: u64 = 1 << 3;

/// The page of one counter.
pub struct Page {
    map: NonNull<u8>,
    size: usize,
}

// SAFETY: the map is the page's alone.
unsafe impl Send for Page {}

impl Page {
    /// The page of an open event; `None` if the processor may not be asked for its counter.
    pub fn map(file: i32) -> Option<Page> {
        if !cfg!(target_arch = "x86_64") {
            return None;
        }
        // SAFETY: plain numbers, and a new map.
        let (map, size) = unsafe {
            let size = libc::sysconf(libc::_SC_PAGESIZE) as usize;
            let nowhere = ptr::null_mut();
            let map = libc::mmap(nowhere, size, libc::PROT_READ, libc::MAP_SHARED, file, 0);
            (map, size)
        };
        if map == libc::MAP_FAILED {
            return None;
        }
        let map = NonNull::new(map.cast())?;
        let page = Page { map, size };
        // Software events have no number of a counter.
        let is_readable =
            page.at::<u64>(CAPABILITIES) & MAY_READ != 0 && page.at::<u32>(INDEX) != 0;
        is_readable.then_some(page)
    }

    fn at<T: Copy>(&self, offset: usize) -> T {
        // SAFETY: an aligned field of the page, which the kernel may change at any time.
        unsafe { self.map.add(offset).cast::<T>().read_volatile() }
    }

    /// The counter now.
    #[cfg(target_arch = "x86_64")]
    pub fn read(&self) -> Reading {
        // SAFETY: the page permits it, for this number and at this moment.
        self.read_with(
            |index| unsafe { counter(index) },
            || unsafe { std::arch::x86_64::_rdtsc() },
        )
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub fn read(&self) -> Reading {
        Reading::default()
    }

    /// As the header says: again until the kernel changed nothing meanwhile.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    fn read_with(&self, counter: impl Fn(u32) -> u64, time: impl Fn() -> u64) -> Reading {
        loop {
            let lock: u32 = self.at(LOCK);
            compiler_fence(Ordering::SeqCst);
            let index: u32 = self.at(INDEX);
            let mut reading = Reading {
                count: self.at(OFFSET),
                enabled: self.at(ENABLED),
                running: self.at(RUNNING),
            };
            let capabilities: u64 = self.at(CAPABILITIES);
            if capabilities & HAS_TIME != 0 && reading.enabled != reading.running {
                let shift = u32::from(self.at::<u16>(SHIFT)) & 63;
                let multiplier = u64::from(self.at::<u32>(MULTIPLIER));
                let now = time();
                let (whole, rest) = (now >> shift, now & ((1 << shift) - 1));
                let since = self
                    .at::<u64>(TIME_OFFSET)
                    .wrapping_add(whole.wrapping_mul(multiplier))
                    .wrapping_add(rest.wrapping_mul(multiplier) >> shift);
                reading.enabled = reading.enabled.wrapping_add(since);
                if index != 0 {
                    reading.running = reading.running.wrapping_add(since);
                }
            }
            if index != 0 {
                // Bits beyond the counter's width are those of its sign.
                let unused = 64 - u32::from(self.at::<u16>(WIDTH)).clamp(1, 64);
                let count = (counter(index - 1) << unused) as i64 >> unused;
                reading.count = reading.count.wrapping_add(count as u64);
            }
            compiler_fence(Ordering::SeqCst);
            if self.at::<u32>(LOCK) == lock {
                return reading;
            }
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: made by `map`.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.size) };
    }
}

/// A counter of the processor.
///
/// # Safety
/// It is one that user space may read.
#[cfg(target_arch = "x86_64")]
unsafe fn counter(index: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: changes nothing; the caller vouches for the index.
    unsafe {
        std::arch::asm!("rdpmc", in("ecx") index, out("eax") low, out("edx") high, options(nomem, nostack));
    }
    u64::from(low) | u64::from(high) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_as_the_kernel_says() {
        // SAFETY: new memory.
        let map = unsafe {
            let writes = libc::PROT_READ | libc::PROT_WRITE;
            let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            libc::mmap(ptr::null_mut(), 4096, writes, kind, -1, 0)
        };
        let page = Page {
            map: NonNull::new(map.cast()).unwrap(),
            size: 4096,
        };
        // SAFETY: aligned fields of the memory.
        let set = |offset: usize, value: u64, bytes: usize| unsafe {
            match bytes {
                2 => page.map.add(offset).cast::<u16>().write(value as u16),
                4 => page.map.add(offset).cast::<u32>().write(value as u32),
                _ => page.map.add(offset).cast::<u64>().write(value),
            }
        };
        let read = || page.read_with(|index| u64::from(index) + (1 << 48) - 10, || 5000);
        set(OFFSET, 1000, 8);
        set(ENABLED, 70, 8);
        set(RUNNING, 70, 8);
        set(CAPABILITIES, MAY_READ | HAS_TIME, 8);
        set(WIDTH, 48, 2);
        assert_eq!((read().count, read().enabled), (1000, 70));
        // The third counter is at -8.
        set(INDEX, 3, 4);
        assert_eq!(read().count, 992);
        // Others had the counter for half of the time; 5000 ticks are 2500 ns, since 2000 ns.
        set(ENABLED, 140, 8);
        set(SHIFT, 4, 2);
        set(MULTIPLIER, 8, 4);
        set(TIME_OFFSET, 2000u64.wrapping_neg(), 8);
        assert_eq!((read().enabled, read().running), (640, 570));
        set(INDEX, 0, 4);
        assert_eq!(
            (read().enabled, read().running, read().count),
            (640, 70, 1000)
        );
    }
}
