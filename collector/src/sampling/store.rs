//! Memory for the samples since the last call.

use std::ptr::{self, NonNull};

use laggard_callpath::{MOST_PYTHON, Moment};

/// Bytes of the stack that are copied. Most frames are smaller; of larger ones, the rest is read
/// from the stack itself.
pub const STACK: usize = 4096;
/// Most samples. With more, every other one is dropped, and so on.
const SLOTS: usize = 128;

/// One sample.
#[repr(C)]
pub struct Sample {
    /// Ticks of the trace's clock.
    pub time: u64,
    pub pc: u64,
    pub sp: u64,
    pub bp: u64,
    /// Periods of the sampling that have passed since the sample before.
    pub periods: u32,
    /// Number of bytes copied.
    pub length: usize,
    /// Python frames, and how many there are.
    pub python: [u64; MOST_PYTHON],
    pub pythons: usize,
    pub stack: [u8; STACK],
}

impl Sample {
    pub fn moment(&self) -> Moment<'_> {
        Moment {
            pc: self.pc,
            sp: self.sp,
            bp: self.bp,
            stack: self.stack.get(..self.length).unwrap_or(&self.stack),
            python: self.python.get(..self.pythons).unwrap_or_default(),
        }
    }
}

/// Samples in the order of time. Memory of its own: a signal handler may fill it.
pub struct Store {
    samples: NonNull<Sample>,
    /// Positions of the samples in use, and then of those that are free.
    order: [u8; SLOTS],
    count: usize,
    /// One of so many samples is kept.
    stride: u32,
    /// Samples that were offered, modulo the stride.
    offered: u32,
}

// SAFETY: the memory is the store's alone.
unsafe impl Send for Store {}

impl Store {
    /// An empty store; `None` if there is no memory. Pages are taken when samples come.
    pub fn new() -> Option<Store> {
        // SAFETY: new memory.
        let samples = unsafe {
            libc::mmap(
                ptr::null_mut(),
                SLOTS * size_of::<Sample>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if samples == libc::MAP_FAILED {
            return None;
        }
        Some(Store {
            samples: NonNull::new(samples.cast())?,
            order: std::array::from_fn(|at| at as u8),
            count: 0,
            stride: 1,
            offered: 0,
        })
    }

    /// Room for the next sample, which is one after [`keep`](Self::keep); `None` if there is to be none. Calls
    /// nothing: a signal handler may.
    pub fn room(&mut self) -> Option<&mut Sample> {
        let is_kept = self.offered == 0;
        self.offered = (self.offered + 1) % self.stride;
        if !is_kept {
            return None;
        }
        if self.count == SLOTS {
            self.thin();
        }
        let at = self.order[self.count];
        // SAFETY: below `SLOTS`; any bytes are a sample.
        Some(unsafe { self.samples.add(at.into()).as_mut() })
    }

    /// The sample in the room that was had last is complete.
    pub fn keep(&mut self) {
        self.count = (self.count + 1).min(SLOTS);
    }

    /// Drops every other sample. The next one is one that is kept.
    fn thin(&mut self) {
        let before = self.order;
        for (at, &slot) in before.iter().enumerate() {
            self.order[at / 2 + at % 2 * (SLOTS / 2)] = slot;
        }
        self.count = SLOTS / 2;
        self.stride = self.stride.saturating_mul(2);
        self.offered = 1;
    }

    /// The samples.
    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        let order = self.order[..self.count].iter();
        // SAFETY: as in `room`.
        order.map(|&at| unsafe { self.samples.add(at.into()).as_ref() })
    }

    /// How many samples each one stands for.
    pub fn stride(&self) -> u32 {
        self.stride
    }

    /// Forgets the samples.
    pub fn clear(&mut self) {
        (self.count, self.stride, self.offered) = (0, 1, 0);
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: made by `new`.
        unsafe { libc::munmap(self.samples.as_ptr().cast(), SLOTS * size_of::<Sample>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_samples_some_are_kept_evenly() {
        let mut store = Store::new().unwrap();
        for time in 0..1000 {
            if let Some(sample) = store.room() {
                sample.time = time;
                store.keep();
            }
        }
        let times: Vec<u64> = store.samples().map(|sample| sample.time).collect();
        assert_eq!(store.stride(), 8);
        assert_eq!(times, (0..1000).step_by(8).collect::<Vec<u64>>());
        store.clear();
        assert_eq!((store.samples().count(), store.stride()), (0, 1));
        assert!(store.room().is_some());
    }
}
