//! Samples by the kernel's ring buffers (`perf_event_open`): no signal reaches the program.
//!
//! The event is the thread's time on the processor, in user mode, which every user may ask for
//! about its own threads unless the system forbids it. It has no descriptor once the ring is
//! mapped, so a program that closes all descriptors does not meet it.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::News;
use super::store::{STACK, Store};
use crate::clock;
use crate::perf::{self, Attributes, EXCLUDE_HYPERVISOR, EXCLUDE_KERNEL, SOFTWARE, TASK_CLOCK};

/// Pages of the ring, most first: a user may lock few. One sample takes a little more than one.
const PAGES: [usize; 4] = [64, 32, 16, 8];

const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_USER_REGISTERS: u64 = 1 << 12;
const SAMPLE_USER_STACK: u64 = 1 << 13;
const USE_CLOCK: u64 = 1 << 25;
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;

/// Bits of the frame pointer, the stack pointer and the instruction pointer, and where each comes
/// among these.
#[cfg(target_arch = "x86_64")]
const REGISTERS: (u64, [usize; 3]) = (1 << 6 | 1 << 7 | 1 << 8, [0, 1, 2]);
#[cfg(target_arch = "aarch64")]
const REGISTERS: (u64, [usize; 3]) = (1 << 29 | 1 << 31 | 1 << 32, [0, 1, 2]);

/// Offsets in the first page of the ring: where the kernel writes, and what was read.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// The ring of a thread.
pub struct Ring {
    map: NonNull<u8>,
    page: usize,
    /// Bytes of the ring, a power of two.
    size: usize,
    /// Samples that found no room.
    pub lost: u64,
}

// SAFETY: the map is the ring's alone.
unsafe impl Send for Ring {}

impl Ring {
    /// Begins to sample the calling thread, once in so much time on the processor.
    ///
    /// # Errors
    /// The kernel does not permit it, or has no memory to lock.
    pub fn open(period: Duration) -> io::Result<Ring> {
        let attributes = Attributes {
            kind: SOFTWARE,
            config: TASK_CLOCK,
            period: period.as_nanos() as u64,
            sample_type: SAMPLE_TIME | SAMPLE_USER_REGISTERS | SAMPLE_USER_STACK,
            flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | USE_CLOCK,
            user_registers: REGISTERS.0,
            user_stack: STACK as u32,
            clock: libc::CLOCK_MONOTONIC,
            ..Attributes::default()
        };
        let file = perf::open(&attributes, None)?;
        let ring = PAGES.iter().find_map(|&pages| Ring::map(file, pages));
        let error = io::Error::last_os_error();
        // A map keeps the event.
        perf::close(file);
        ring.ok_or(error)
    }

    fn map(file: i32, pages: usize) -> Option<Ring> {
        // SAFETY: plain numbers.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        // SAFETY: a new map.
        let map = unsafe {
            libc::mmap(
                ptr::null_mut(),
                (1 + pages) * page,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file,
                0,
            )
        };
        (map != libc::MAP_FAILED).then_some(Ring {
            map: NonNull::new(map.cast())?,
            page,
            size: pages * page,
            lost: 0,
        })
    }

    /// How many samples it holds.
    pub fn capacity(&self) -> usize {
        self.size / (STACK + 128)
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: an aligned word of the first page, which the kernel shares.
        unsafe { AtomicU64::from_ptr(self.map.add(offset).cast().as_ptr()) }
    }

    /// Of what the kernel writes after the last sample that was taken out.
    pub fn news(&self) -> News {
        News {
            now: NonNull::from(self.word(HEAD)),
            seen: self.word(TAIL).load(Ordering::Relaxed),
        }
    }

    /// Forgets what is in the ring.
    pub fn clear(&mut self) {
        let head = self.word(HEAD).load(Ordering::Acquire);
        self.word(TAIL).store(head, Ordering::Release);
    }

    /// Takes the samples out of the ring.
    pub fn drain(&mut self, store: &mut Store) {
        let head = self.word(HEAD).load(Ordering::Acquire);
        let mut tail = self.word(TAIL).load(Ordering::Relaxed);
        if head == tail {
            return;
        }
        let now = (clock::now(), clock::monotonic_ns());
        while tail < head {
            let start = self.u64_at(tail);
            let (kind, size) = (start as u32, (start >> 48) as u16);
            if size < 8 || head - tail < size.into() {
                tail = head;
                break;
            }
            match kind {
                RECORD_SAMPLE => self.sample(tail, now, store),
                RECORD_LOST => self.lost = self.lost.saturating_add(self.u64_at(tail + 16)),
                _ => {}
            }
            tail += u64::from(size);
        }
        self.word(TAIL).store(tail, Ordering::Release);
    }

    /// The sample at a position: time, kind of registers, registers, size of the stack, the stack,
    /// and how much of it there was.
    fn sample(&self, at: u64, (ticks, ns): (u64, u64), store: &mut Store) {
        if self.u64_at(at + 16) == 0 {
            // Without registers: not in user mode.
            return;
        }
        let Some(sample) = store.room() else {
            return;
        };
        let ago = Duration::from_nanos(ns.saturating_sub(self.u64_at(at + 8)));
        sample.time = ticks.saturating_sub(clock::ticks(ago));
        (sample.periods, sample.pythons) = (1, 0);
        let register = |which: usize| self.u64_at(at + 24 + 8 * REGISTERS.1[which] as u64);
        (sample.bp, sample.sp, sample.pc) = (register(0), register(1), register(2));
        let size = (self.u64_at(at + 48) as usize).min(STACK);
        let from = at + 56;
        let used = match size {
            0 => 0,
            _ => self.u64_at(from + size as u64) as usize,
        };
        sample.length = used.min(size);
        self.copy(from, &mut sample.stack[..sample.length]);
        store.keep();
    }

    fn u64_at(&self, at: u64) -> u64 {
        let offset = at as usize & (self.size - 1);
        // SAFETY: records are multiples of 8 bytes, so the word is whole, in the ring.
        unsafe {
            self.map
                .add(self.page + offset)
                .cast::<u64>()
                .read_volatile()
        }
    }

    /// Copies bytes of the ring, which goes on at its start.
    fn copy(&self, at: u64, to: &mut [u8]) {
        let offset = at as usize & (self.size - 1);
        let first = to.len().min(self.size - offset);
        let (one, two) = to.split_at_mut(first);
        // SAFETY: in the ring; the kernel does not write there before the tail has passed.
        unsafe {
            let ring = self.map.as_ptr().add(self.page);
            ptr::copy_nonoverlapping(ring.add(offset), one.as_mut_ptr(), one.len());
            ptr::copy_nonoverlapping(ring, two.as_mut_ptr(), two.len());
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: made by `map`. The event ends with it.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.page + self.size) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without system calls: time in the kernel is not sampled.
    fn work(time: Duration) {
        let begin = std::time::Instant::now();
        while begin.elapsed() < time {}
    }

    /// A ring that nobody empties loses samples, and says how many.
    #[test]
    fn what_finds_no_room_is_counted() {
        const PERIOD: Duration = Duration::from_micros(200);
        let Ok(mut ring) = Ring::open(PERIOD) else {
            eprintln!("SKIPPED: this machine permits no perf_event_open");
            return;
        };
        let mut store = Store::new().unwrap();
        let begin = clock::thread_ns();
        work(Duration::from_millis(200));
        ring.drain(&mut store);
        work(Duration::from_millis(4));
        ring.drain(&mut store);
        let all = (clock::thread_ns() - begin) / PERIOD.as_nanos() as u64;
        let kept = u64::from(store.stride()) * store.samples().count() as u64;
        assert!(ring.lost > 0 && kept > 0, "{} and {kept}", ring.lost);
        let found = ring.lost + kept;
        assert!(found <= all + 4, "{found} of {all}");
        ring.clear();
        store.clear();
        ring.drain(&mut store);
        assert_eq!(store.samples().count(), 0);
    }
}
