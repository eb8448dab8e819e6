//! Samples of the call stack while a thread computes.
//!
//! *In.* The kernel, a timer, or another thread has noted now and then where a thread is: registers and a copy of the
//! stack. *Out.* At the end of a stretch between two calls, the samples of that stretch; the stream
//! unwinds them, as it does call paths, and writes them with the call that ends the stretch.
//! *Not supported.* Threads that never call: they have no location.

mod helper;
mod perf;
mod store;
mod taken;
mod timer;

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock;
use crate::options::SampleBy;
use crate::perf as kernel;
use helper::Watch;
use perf::Ring;
pub use store::Sample;
use store::Store;
pub use taken::loaded;
use timer::{Source, Timer};

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Samples per second on the processor.
    pub hz: u32,
    pub by: SampleBy,
}

/// A ring of the kernel, and where its samples go.
pub struct Rings {
    ring: Ring,
    store: Store,
}

impl Rings {
    fn drain(&mut self) {
        self.ring.drain(&mut self.store);
    }
}

impl Watch for Mutex<Rings> {
    fn look(&self) {
        // Whoever has it empties it.
        if let Ok(mut rings) = self.try_lock() {
            rings.drain();
        }
    }
}

enum Way {
    Perf(Arc<Mutex<Rings>>),
    Timer(Timer),
}

/// Tells whether there may be samples that were not taken, by two reads of memory.
pub struct News {
    /// Changes with each sample.
    now: NonNull<AtomicU64>,
    seen: u64,
}

// SAFETY: of the thread that is sampled; what is pointed to is atomic.
unsafe impl Send for News {}

impl News {
    /// Of a thread without samples.
    pub fn none() -> News {
        static NONE: AtomicU64 = AtomicU64::new(0);
        News {
            now: NonNull::from(&NONE),
            seen: 0,
        }
    }

    /// Whether there may be any.
    #[inline(always)]
    pub fn any(&self) -> bool {
        // SAFETY: lasts as long as the sampler, after which the stream has no news of it.
        unsafe { self.now.as_ref() }.load(Ordering::Relaxed) != self.seen
    }
}

/// Samples one thread.
pub struct Sampler {
    way: Way,
    /// Ticks on the processor that a sample stands for.
    period: u64,
}

fn locked(rings: &Mutex<Rings>) -> MutexGuard<'_, Rings> {
    rings.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sampler {
    /// Begins to sample the calling thread.
    ///
    /// # Errors
    /// Nothing that is wanted can be had; the last reason.
    pub fn start(wanted: Wanted) -> io::Result<Sampler> {
        let period = Duration::from_secs(1) / wanted.hz.max(1);
        // Only the thread itself finds its Python frames.
        let by_timer = || Timer::start(period, Source::kernel).map(Way::Timer);
        let by_thread = || Timer::start(period, Source::helper).map(Way::Timer);
        let by_signal = || by_timer().or_else(|_| by_thread());
        let has_python = laggard_callpath::prepare_python();
        let way = match wanted.by {
            // A filter may end the program for a call that it does not know.
            SampleBy::Best if has_python || kernel::is_filtered() => {
                by_signal().or_else(|_| by_perf(period))
            }
            SampleBy::Best => by_perf(period).or_else(|_| by_signal()),
            SampleBy::Perf => by_perf(period),
            SampleBy::Signal => by_timer(),
            SampleBy::Thread => by_thread(),
        };
        Ok(Sampler {
            way: way?,
            period: clock::ticks(period),
        })
    }

    /// How the thread is sampled, as the trace says it.
    pub fn way(&self) -> &'static str {
        match &self.way {
            Way::Perf(_) => "perf",
            Way::Timer(timer) => timer.way(),
        }
    }

    /// Forgets the samples so far: they are not of the stretch that begins. Returns the news from now on.
    pub fn clear(&mut self) -> News {
        match &mut self.way {
            Way::Perf(rings) => {
                let mut rings = locked(rings);
                rings.ring.clear();
                rings.store.clear();
                rings.ring.news()
            }
            Way::Timer(timer) => timer.with(Store::clear),
        }
    }

    /// The same of a sampler that is new.
    pub fn cleared(mut self) -> (Sampler, News) {
        let news = self.clear();
        (self, news)
    }

    /// Hands on each sample since a moment, with the ticks that it stands for, and forgets them. Returns the news from
    /// now on.
    pub fn take(&mut self, since: u64, mut each: impl FnMut(&Sample, u64)) -> News {
        let period = self.period;
        let mut hand_on = |store: &mut Store| {
            let each_for = period.saturating_mul(store.stride().into());
            for sample in store.samples().filter(|sample| sample.time >= since) {
                each(sample, each_for.saturating_mul(sample.periods.into()));
            }
            store.clear();
        };
        match &mut self.way {
            Way::Perf(rings) => {
                let mut rings = locked(rings);
                rings.drain();
                hand_on(&mut rings.store);
                rings.ring.news()
            }
            Way::Timer(timer) => {
                timer.stop_unless_ours();
                timer.with(hand_on)
            }
        }
    }

    /// Samples that found no room.
    pub fn lost(&self) -> u64 {
        match &self.way {
            Way::Perf(rings) => locked(rings).ring.lost,
            Way::Timer(_) => 0,
        }
    }
}

fn by_perf(period: Duration) -> io::Result<Way> {
    let ring = Ring::open(period)?;
    let pause = period.saturating_mul((ring.capacity() / 2).max(1) as u32);
    let store = Store::new().ok_or(io::ErrorKind::OutOfMemory)?;
    let rings = Arc::new(Mutex::new(Rings { ring, store }));
    // Without a thread, rings overflow in long stretches, which is counted.
    helper::add(rings.clone(), pause);
    Ok(Way::Perf(rings))
}

impl Drop for Sampler {
    fn drop(&mut self) {
        if let Way::Perf(rings) = &self.way {
            let rings: Arc<dyn Watch> = rings.clone();
            helper::remove(&rings);
        }
    }
}
