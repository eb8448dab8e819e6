//! Time: the processor's counter where it serves as a clock, else `CLOCK_MONOTONIC`.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use laggard_trace::Clock;

/// The chosen [`Clock`] as a number.
static CHOSEN: AtomicU32 = AtomicU32::new(Clock::Monotonic as u32);
static TICKS_PER_S: AtomicU64 = AtomicU64::new(1_000_000_000);
/// Counter and `CLOCK_MONOTONIC` when the library was loaded.
static LOADED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// `CLOCK_MONOTONIC`, ns.
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Time of the calling thread on the processor, ns.
pub fn thread_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The clock of the calling thread's time on the processor, which other threads may read.
pub fn of_this_thread() -> Option<libc::clockid_t> {
    let mut clock = 0;
    // SAFETY: the calling thread, and a variable for the clock.
    let found = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) };
    (found == 0).then_some(clock)
}

/// Such a clock, ns; 0 if its thread has ended.
pub fn of_thread_ns(clock: libc::clockid_t) -> u64 {
    read(clock)
}

/// Time between two ticks of the system, ns.
pub fn tick_ns() -> u64 {
    let mut tick = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `tick` is valid for writing.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &mut tick) };
    (tick.tv_sec as u64)
        .saturating_mul(1_000_000_000)
        .saturating_add(tick.tv_nsec as u64)
}

/// `CLOCK_REALTIME`, ns.
pub fn unix_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is valid for writing.
    unsafe { libc::clock_gettime(clock, &mut now) };
    (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64)
}

/// The processor's counter.
#[inline(always)]
fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has it.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(target_arch = "aarch64")]
    {
        let value: u64;
        // SAFETY: reads the virtual count, which user space may.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) value, options(nomem, nostack)) };
        return value;
    }
}

/// Ticks now.
#[inline(always)]
pub fn now() -> u64 {
    if CHOSEN.load(Ordering::Relaxed) != Clock::Monotonic as u32 {
        counter()
    } else {
        monotonic_ns()
    }
}

/// The clock in use.
pub fn chosen() -> u32 {
    CHOSEN.load(Ordering::Relaxed)
}

/// Nominal rate of the clock, Hz.
pub fn ticks_per_s() -> u64 {
    TICKS_PER_S.load(Ordering::Relaxed)
}

/// Notes the time at which the library is loaded. An earlier start gives a better rate.
pub fn loaded() {
    let (ticks, ns) = pair_of(counter);
    LOADED[0].store(ticks, Ordering::Relaxed);
    LOADED[1].store(ns, Ordering::Relaxed);
}

/// Chooses the clock, once, before the entry time of MPI_Init is taken.
pub fn choose() {
    if let Some(clock) = counter_clock() {
        CHOSEN.store(clock as u32, Ordering::Relaxed);
    }
}

/// Measures the rate of the chosen clock. A later call gives a better rate.
pub fn measure_rate() {
    if CHOSEN.load(Ordering::Relaxed) != Clock::Monotonic as u32 {
        TICKS_PER_S.store(counter_rate(), Ordering::Relaxed);
    }
}

#[cfg(target_arch = "x86_64")]
fn counter_clock() -> Option<Clock> {
    use std::arch::x86_64::__cpuid;
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = std::fs::read_to_string(path).ok()?;
    let extended = __cpuid(0x8000_0000).eax;
    let invariant = extended >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0;
    (invariant && source.trim() == "tsc").then_some(Clock::TimeStampCounter)
}

#[cfg(target_arch = "aarch64")]
fn counter_clock() -> Option<Clock> {
    (counter_rate() > 0).then_some(Clock::GenericTimer)
}

#[cfg(target_arch = "aarch64")]
fn counter_rate() -> u64 {
    let rate: u64;
    // SAFETY: reads a register that user space may read.
    unsafe { std::arch::asm!("mrs {}, cntfrq_el0", out(reg) rate, options(nomem, nostack)) };
    rate
}

/// The counter's rate against `CLOCK_MONOTONIC` since the library was loaded, Hz. Only traces
/// that were cut off use it: others have two clock points.
#[cfg(target_arch = "x86_64")]
fn counter_rate() -> u64 {
    const ENOUGH_NS: u64 = 5_000_000;
    let [ticks, ns] = [&LOADED[0], &LOADED[1]].map(|value| value.load(Ordering::Relaxed));
    loop {
        let (ticks_now, ns_now) = pair_of(counter);
        let elapsed = ns_now.saturating_sub(ns);
        let ticks = ticks_now.saturating_sub(ticks);
        if elapsed >= ENOUGH_NS {
            return (u128::from(ticks) * 1_000_000_000 / u128::from(elapsed)).max(1) as u64;
        }
        std::thread::sleep(std::time::Duration::from_nanos(ENOUGH_NS - elapsed));
    }
}

/// Ticks and `CLOCK_MONOTONIC` (ns) at the same moment.
pub fn pair() -> (u64, u64) {
    pair_of(now)
}

/// Ticks and `CLOCK_MONOTONIC` (ns) at the same moment: the closest of several tries, since the
/// thread may lose the processor between the two.
fn pair_of(ticks: impl Fn() -> u64) -> (u64, u64) {
    let mut best = (u64::MAX, 0, 0);
    for _ in 0..16 {
        let before = ticks();
        let ns = monotonic_ns();
        let gap = ticks().wrapping_sub(before);
        if gap < best.0 {
            best = (gap, before.wrapping_add(gap / 2), ns);
        }
    }
    (best.1, best.2)
}

pub fn ticks(duration: std::time::Duration) -> u64 {
    let ticks = duration
        .as_nanos()
        .saturating_mul(u128::from(ticks_per_s()))
        / 1_000_000_000;
    u64::try_from(ticks).unwrap_or(u64::MAX)
}
