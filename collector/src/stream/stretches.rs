//! Where a thread was between two calls: on its processor, in the kernel, or off it.
//!
//! Reading that takes as long as several calls. So it is read at the end of long stretches and of long
//! calls alone; what is between two readings beside a stretch or a long call counts as time on the
//! processor's side of the doubt. Looks that find nothing, one after the other, are as one long call: each may
//! give the processor to another thread, for too short a time to be looked at by itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use laggard_trace::{Beside, Counts};

use crate::clock;
use crate::counters::Counters;
use crate::sampling::News;

/// Shortest stretch that is looked at, unless reading takes more than a hundredth of it.
const LEAST: Duration = Duration::from_micros(20);
/// A reading takes at most this part of what it is about.
const PART: u64 = 100;
/// Readings are this old at most where calls are short.
const OLDEST: Duration = Duration::from_millis(1);
/// Smaller parts of a stretch are not told.
const TOLD: u64 = 100;
/// After so long off the processor, it is read how much of that was waiting for one: some us.
const DELAYED: Duration = Duration::from_micros(400);
/// Readings at the start, of which the shortest counts.
const TRIES: usize = 16;

/// Use of the processor by a thread so far.
#[derive(Clone, Copy, Default)]
pub struct Used {
    /// Time on the processor, ns.
    processor: u64,
    /// Part of it in the kernel, ns.
    kernel: u64,
    /// How often it left the processor by itself.
    left: i64,
    /// How often another one took its place.
    pushed: i64,
    /// Page faults, without and with a device.
    faults: [i64; 2],
}

impl Used {
    /// The use by the calling thread; what cannot be known is 0.
    pub fn now() -> Used {
        // SAFETY: all zero is a value of this struct of integers.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is valid for writing. It stays as it is where this fails.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
        let kernel = usage.ru_stime;
        Used {
            processor: clock::thread_ns(),
            kernel: kernel.tv_sec as u64 * 1_000_000_000 + kernel.tv_usec as u64 * 1000,
            left: usage.ru_nvcsw,
            pushed: usage.ru_nivcsw,
            faults: [usage.ru_minflt, usage.ru_majflt],
        }
    }
}

/// How long the calling thread has waited for a processor so far, ns, as the scheduler counts;
/// `None` where it does not tell.
pub fn delay_ns() -> Option<u64> {
    let mut text = [0u8; 96];
    let path = c"/proc/thread-self/schedstat".as_ptr();
    // The functions of the C library would be points of cancellation. `errno` is the program's.
    // SAFETY: the calling thread's errno, a path that ends with a zero, a buffer of that size, and a
    // descriptor made here.
    let read = unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        let file = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags);
        let mut read = -1;
        if file >= 0 {
            read = libc::syscall(libc::SYS_read, file, text.as_mut_ptr(), text.len());
            libc::syscall(libc::SYS_close, file);
        }
        *errno = before;
        read
    };
    let text = text.get(..usize::try_from(read).ok()?)?;
    // Time on the processor, time of waiting for it, and how often.
    let delay = text.split(u8::is_ascii_whitespace).nth(1)?;
    std::str::from_utf8(delay).ok()?.parse().ok()
}

/// Follows the stretches of a thread. Times are ticks.
#[repr(C)]
pub struct Stretches {
    /// When the last call returned, or the last stretch was looked at.
    left: u64,
    /// Shortest stretch that is looked at now.
    least: u64,
    /// When `used` was read.
    read: u64,
    /// Shortest call at whose end it is read; else after `oldest`, which is `rarely` but in looks that find
    /// nothing.
    call: u64,
    oldest: u64,
    rarely: u64,
    /// Whether `beside` or `inside` has something.
    pub pending: u32,
    /// Samples that no stretch has yet.
    pub news: News,
    used: Used,
    /// Off the processor since `delay` was read.
    off: u64,
    /// How long the thread had waited for a processor, ns: now, and at the begin.
    delay: Option<u64>,
    first_delay: u64,
    /// After so much off the processor it is read again.
    delayed: u64,
    /// What no record tells yet.
    beside: Beside,
    /// The same of the call that returned last, if it was long: with its enter and leave.
    inside: (Beside, (u64, u64)),
    /// When looks began that find nothing, and what they were until the last reading, if anything.
    looks: Option<(u64, Option<Box<Beside>>)>,
    /// The thread's clock of time on its processor, and its time at the begin, ns.
    own: Option<(libc::clockid_t, u64)>,
    /// Shortest stretch that is looked at as a rule, and after a look that found nothing.
    usual: [u64; 2],
    /// Readings are this old at most when looks begin that find nothing.
    fresh: u64,
    /// What a reading takes.
    cost: u64,
    /// What others took of the last reading, which is of the stretch that began then.
    taken: u64,
    /// Whether it is told what stretches were beside work.
    tells: bool,
    /// What is counted beside that.
    counters: Option<Box<Counters>>,
    /// Whether the first stretch lasts that began with the thread: what was counted in it is not known.
    is_first: bool,
}

impl Stretches {
    /// Begins now. If they are not all `told`, only those after looks that found nothing are. All
    /// long ones end with a look if they are `sampled`. `counters` are read together with the use of the
    /// processor. A thread that was `born` then, ticks, has been in a stretch since.
    pub fn new(
        told: bool,
        sampled: bool,
        counters: Option<Box<Counters>>,
        born: Option<u64>,
    ) -> Stretches {
        let (least, oldest) = (clock::ticks(LEAST), clock::ticks(OLDEST));
        let mut stretches = Stretches {
            left: 0,
            least: u64::MAX,
            read: 0,
            call: u64::MAX,
            oldest: u64::MAX,
            rarely: u64::MAX,
            pending: 0,
            news: News::none(),
            used: Used::default(),
            off: 0,
            delay: delay_ns(),
            first_delay: 0,
            delayed: clock::ticks(DELAYED),
            beside: Beside::default(),
            inside: Default::default(),
            looks: None,
            own: None,
            usual: [u64::MAX, least],
            fresh: oldest,
            cost: 0,
            taken: 0,
            tells: told,
            counters,
            is_first: born.is_some(),
        };
        /// The least that a reading took any thread so far: only the first one tries often.
        static LEAST_COST: AtomicU64 = AtomicU64::new(u64::MAX);
        stretches.cost = LEAST_COST.load(Ordering::Relaxed);
        let tries = match stretches.cost {
            u64::MAX => TRIES,
            _ => 1,
        };
        for _ in 0..tries {
            let begin = clock::now();
            stretches.used = Used::now();
            stretches.count();
            stretches.read = clock::now();
            let cost = stretches.read.wrapping_sub(begin);
            stretches.cost = stretches.cost.min(cost);
        }
        LEAST_COST.fetch_min(stretches.cost, Ordering::Relaxed);
        if told || sampled {
            let usual = match told {
                true => least.max(stretches.cost.saturating_mul(PART)),
                false => least,
            };
            (stretches.least, stretches.call) = (usual, usual);
            stretches.usual[0] = usual;
            stretches.rarely = oldest.max(usual);
            stretches.oldest = stretches.rarely;
        }
        stretches.left = clock::now();
        if let Some(born) = born {
            stretches.used = Used::default();
            stretches.delay = stretches.delay.map(|_| 0);
            (stretches.read, stretches.left) = (born, born);
        }
        stretches.first_delay = stretches.delay.unwrap_or(0);
        if told {
            let begin = stretches.used.processor;
            stretches.own = clock::of_this_thread().map(|clock| (clock, begin));
        }
        stretches
    }

    /// A call at whose end the last reading is older than this counts as a long one, whatever is told.
    pub fn end_by_the_time(&mut self, oldest: u64) {
        self.rarely = self.rarely.min(oldest);
        self.oldest = self.oldest.min(oldest);
    }

    /// Whether long stretches end with a look for samples, from now on.
    pub fn sample(&mut self, sampled: bool) {
        if !self.tells {
            self.usual[0] = if sampled { self.usual[1] } else { u64::MAX };
            self.call = self.usual[0];
            self.least = self.usual[0];
        }
    }

    /// The shortest stretch that is looked at, ns; `None`: none is.
    pub fn least_ns(&self) -> Option<u64> {
        self.tells.then(|| ns(self.usual[0]))
    }

    /// Looks that find nothing begin at `enter`: after them, shorter stretches count. Returns whether the use of the
    /// processor was read for it.
    pub fn begin_looks(&mut self, enter: u64) -> bool {
        self.least = self.usual[1];
        let is_old = enter.wrapping_sub(self.read) >= self.fresh;
        if is_old {
            let now = clock::now();
            self.read_again(now, now);
        }
        if self.tells {
            self.oldest = self.rarely.min(self.call);
            self.looks = Some((enter, None));
        }
        is_old
    }

    /// Such looks are over, which were `inside` their calls for a part of all the time. Returns what that was
    /// beside work, until the last reading, if anything.
    pub fn end_looks(&mut self, inside: u64, all: u64) -> Option<Beside> {
        self.least = self.usual[0];
        self.oldest = self.rarely;
        let (_, looks) = self.looks.take()?;
        looks.map(|looks| parts(&looks, inside, all)[0])
    }

    /// Whether a stretch that ends now is to be looked at, or has samples.
    #[inline(always)]
    pub fn is_told(&self, now: u64) -> bool {
        self.is_long(now) || self.news.any()
    }

    /// Whether a stretch that ends now must be looked at.
    #[inline(always)]
    pub fn is_long(&self, now: u64) -> bool {
        now.wrapping_sub(self.left) >= self.least
    }

    /// A call returned. Returns whether the use of the processor is to be read again.
    #[inline(always)]
    pub fn returned(&mut self, enter: u64, leave: u64) -> bool {
        self.left = leave;
        leave.wrapping_sub(enter) >= self.call || leave.wrapping_sub(self.read) >= self.oldest
    }

    /// Reads the use of the processor, and begins a stretch. Returns what the time from `begin` to `end`, which
    /// was just now, was beside work.
    #[cold]
    #[inline(never)]
    fn read_again(&mut self, begin: u64, end: u64) -> Beside {
        // Of the time before the last reading nothing is known.
        let begin = begin.max(self.read);
        let mut counted = self.count();
        if std::mem::take(&mut self.is_first) {
            counted = counted.without_known();
        }
        let used = Used::now();
        let before = std::mem::replace(&mut self.used, used);
        // Clocks of two processors may differ by some ticks.
        let (whole, doubt) = (end.saturating_sub(begin), begin.saturating_sub(self.read));
        let mut beside = beside(&before, &used, whole, doubt);
        beside.counted = in_stretch(counted, whole, doubt);
        self.off += off(&before, &used, end.saturating_sub(self.read));
        let delay = (self.off >= self.delayed).then(delay_ns);
        let read = clock::now();
        let taken = taken(&before, &used, [self.read, end, read], self.cost);
        self.taken = if taken < self.usual[1] { 0 } else { taken };
        // It is told by itself.
        self.delay = self.delay.map(|delay| delay.saturating_add(ns(self.taken)));
        if let Some(delay) = delay {
            let before = std::mem::replace(&mut self.delay, delay);
            if let (Some(before), Some(now)) = (before, self.delay) {
                let delay = clock::ticks(Duration::from_nanos(now.saturating_sub(before)));
                beside = split(&beside, delay, self.off);
            }
            self.off = 0;
        }
        self.read = read;
        self.left = read - self.taken;
        beside
    }

    /// What was counted since the last reading.
    fn count(&mut self) -> Counts {
        let counters = self.counters.as_mut();
        counters.map_or(Counts::default(), |counters| counters.read())
    }

    /// The counters of the thread.
    pub fn counters(&self) -> Option<&Counters> {
        self.counters.as_deref()
    }

    /// Looks at the stretch that ends now. Returns when the look was over.
    #[cold]
    #[inline(never)]
    pub fn look(&mut self, now: u64) -> u64 {
        if !self.tells && self.least == self.usual[0] {
            return self.begin();
        }
        let stretch = now.saturating_sub(self.left);
        // There may have been calls since.
        let is_first = self.left.saturating_add(self.taken) == self.read;
        let taken = if is_first { self.taken } else { 0 };
        let mut beside = self.read_again(self.left, now);
        beside.preempted += taken;
        if !beside.counted.is_empty() {
            let away = beside.blocked + beside.preempted + beside.kernel;
            beside.counted.time = stretch.saturating_sub(away);
        }
        // The stretch is over when it has been looked at.
        beside.preempted += std::mem::take(&mut self.taken);
        self.left = self.read;
        if beside != Beside::default() {
            self.beside.add(&beside);
            self.pending = 1;
        }
        self.left
    }

    /// The last look came after a call between these times, and not before it. Who was off its processor since the
    /// stretch began was it as late as can be: after the call, which is returned, in it, and before it. Who lets
    /// others go on is often off it right then, since they take it.
    pub fn divide(&mut self, enter: u64, leave: u64) -> Beside {
        if self.read < leave || self.beside == Beside::default() {
            return Beside::default();
        }
        let off = |beside: &Beside| beside.blocked + beside.preempted;
        let back = |beside: &Beside, time: u64| parts(beside, off(beside).min(time), off(beside));
        let [after, rest] = back(&self.beside, self.read - leave);
        let [inside, before] = back(&rest, leave.saturating_sub(enter));
        self.beside = Beside {
            counted: self.beside.counted,
            ..before
        };
        self.inside = (inside, (enter, leave));
        after
    }

    /// The stretch was this beside work as well.
    pub fn add(&mut self, beside: &Beside) {
        if *beside != Beside::default() {
            self.beside.add(beside);
            self.pending = 1;
        }
    }

    /// A stretch begins now, after a look. Returns when.
    pub fn begin(&mut self) -> u64 {
        match self.tells {
            true => {
                let now = clock::now();
                self.read_again(now, now);
            }
            false => {
                self.left = clock::now();
                self.read = self.left;
            }
        }
        self.left
    }

    /// The same after a call with these times, at whose end the use of the processor is to be read.
    pub fn begin_after(&mut self, enter: u64, leave: u64) {
        if !self.tells {
            self.begin();
            return;
        }
        let is_long = leave.wrapping_sub(enter) >= self.call;
        let since = match &self.looks {
            _ if is_long => enter,
            Some((begun, _)) => self.read.max(*begun),
            None => leave,
        };
        let mut inside = self.read_again(since, leave);
        inside.counted = Counts::default();
        if inside == Beside::default() {
            return;
        }
        if !is_long {
            if let Some((_, looks)) = &mut self.looks {
                looks.get_or_insert_default().add(&inside);
            }
        } else {
            self.inside = (inside, (enter, leave));
            self.pending = 1;
        }
    }

    /// The stretch is over: another one begins.
    pub fn leave(&mut self, now: u64) {
        self.left = now;
    }

    /// When the stretch began.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Before it was a location, the thread was in a call between these times, and had `used` the processor so much in the
    /// end: nearly all of it before the call.
    pub fn was_in(&mut self, (enter, leave): (u64, u64), mut used: Used) {
        let (before, since) = (self.used, self.left);
        self.off += off(&before, &used, leave.saturating_sub(since));
        self.used = used;
        (self.read, self.left) = (leave, leave);
        if self.tells {
            // Who waits leaves the processor once by itself.
            used.left = used.left.saturating_sub(1).max(before.left);
            let beside = beside(&before, &used, enter.saturating_sub(since), 0);
            if beside != Beside::default() {
                self.beside.add(&beside);
                self.pending = 1;
            }
        }
    }

    /// What no record tells yet of stretches.
    pub fn take(&mut self) -> Beside {
        self.pending = 0;
        std::mem::take(&mut self.beside)
    }

    /// Takes how long the thread slept after a look. The rest stays for the next record, if stretches are told.
    pub fn take_slept(&mut self) -> u64 {
        let slept = std::mem::take(&mut self.beside.blocked);
        if !self.tells {
            self.beside = Beside::default();
        }
        slept
    }

    /// What the call with these times was beside work, as far as it is known. Calls that are no records are
    /// told nowhere. Of several records that a reading is about, each has its share by time.
    pub fn take_inside(&mut self, enter: u64, leave: u64) -> Beside {
        let (inside, (begin, end)) = std::mem::take(&mut self.inside);
        if enter < begin || end < leave {
            return Beside::default();
        }
        let [told, rest] = parts(&inside, leave.saturating_sub(enter), end - begin);
        if rest != Beside::default() {
            self.inside = (rest, (leave, end));
            self.pending = 1;
        }
        told
    }

    /// How long the thread has waited for a processor since the begin, ns, but for what was short since the last
    /// reading; 0 if it is not known.
    pub fn delay_ns(&self) -> u64 {
        let delay = self
            .delay
            .map(|delay| delay.saturating_sub(self.first_delay));
        delay.filter(|_| self.tells).unwrap_or(0)
    }

    /// Time of the thread on its processor since the begin, ns; 0 if it is not known.
    pub fn processor_ns(&self) -> u64 {
        self.own.map_or(0, |(clock, begin)| {
            clock::of_thread_ns(clock).saturating_sub(begin)
        })
    }
}

/// Ticks off the processor between two readings `whole` ticks apart.
fn off(before: &Used, after: &Used, whole: u64) -> u64 {
    let on = after.processor.saturating_sub(before.processor);
    whole.saturating_sub(clock::ticks(Duration::from_nanos(on)))
}

/// Ticks that others took of a reading: of the time from `end`, when it began, to `read`, as far as it was off the
/// processor and more than the reading's `cost`. The kernel often takes the processor right there: it looks then how
/// long the thread has had it. `since`: the last reading.
fn taken(before: &Used, after: &Used, [since, end, read]: [u64; 3], cost: u64) -> u64 {
    let until = |time: u64| off(before, after, time.saturating_sub(since));
    let longer = read.saturating_sub(end).saturating_sub(cost);
    longer.min(until(read) - until(end.min(read)))
}

/// A time as ns.
fn ns(ticks: u64) -> u64 {
    let ns = u128::from(ticks) * 1_000_000_000 / u128::from(clock::ticks_per_s().max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// What a `part` of a time of `whole` ticks was, and the rest, if it was alike all the time.
fn parts(beside: &Beside, part: u64, whole: u64) -> [Beside; 2] {
    let of = |value: u64| {
        let of = u128::from(value) * u128::from(part) / u128::from(whole.max(1));
        (of as u64).min(value)
    };
    let told = Beside {
        blocked: of(beside.blocked),
        preempted: of(beside.preempted),
        kernel: of(beside.kernel),
        faults: beside.faults.map(|faults| of(faults.into()) as u32),
        counted: Counts::default(),
    };
    let rest = Beside {
        blocked: beside.blocked - told.blocked,
        preempted: beside.preempted - told.preempted,
        kernel: beside.kernel - told.kernel,
        faults: [0, 1].map(|at| beside.faults[at] - told.faults[at]),
        counted: Counts::default(),
    };
    [told, rest]
}

/// A stretch whose thread waited `delay` ticks for a processor in a time with `all` ticks off it.
fn split(beside: &Beside, delay: u64, all: u64) -> Beside {
    let off = beside.blocked + beside.preempted;
    let share = u128::from(delay) * u128::from(off) / u128::from(all.max(off).max(1));
    let preempted = off.min(share as u64);
    Beside {
        blocked: off - preempted,
        preempted,
        ..*beside
    }
}

/// What was `counted` between two readings, as far as it is of the stretch that ends with the second one:
/// its share by time, unless more than half of that was before.
fn in_stretch(counted: Counts, stretch: u64, doubt: u64) -> Counts {
    match counted.is_empty() || doubt > stretch {
        true => counted.without_known(),
        false => counted.part(stretch, stretch.saturating_add(doubt)),
    }
}

/// What so many ticks of `stretch` were beside work, between two readings that are `doubt` ticks longer.
fn beside(before: &Used, after: &Used, stretch: u64, doubt: u64) -> Beside {
    let ticks = |ns: u64| clock::ticks(Duration::from_nanos(ns));
    let told = |part: u64| match part >= stretch / TOLD {
        true => part,
        false => 0,
    };
    let on = ticks(after.processor.saturating_sub(before.processor));
    let off = told(stretch.saturating_sub(on));
    let kernel = ticks(after.kernel.saturating_sub(before.kernel));
    let kernel = told(kernel.min(on).saturating_sub(doubt).min(stretch - off));
    let (left, pushed) = (after.left - before.left, after.pushed - before.pushed);
    // Others may have had its processor when it would have gone on.
    let is_pushed = pushed > left;
    let fault = |at: usize| u32::try_from(after.faults[at] - before.faults[at]).unwrap_or(0);
    let faults = [fault(0), fault(1)];
    Beside {
        blocked: if is_pushed { 0 } else { off },
        preempted: if is_pushed { off } else { 0 },
        kernel,
        faults: match kernel > 0 || faults[1] > 0 {
            true => faults,
            false => [0; 2],
        },
        counted: Counts::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> u64 {
        clock::ticks(Duration::from_millis(ms))
    }

    #[test]
    fn sleep_is_told_from_work_and_from_other_programs() {
        let used = |processor: u64, left, pushed| Used {
            processor: 1_000_000 * processor,
            left,
            pushed,
            ..Used::default()
        };
        let start = used(5, 1, 1);
        let of = |after: Used, doubt| {
            let beside = beside(&start, &after, ms(10), ms(doubt));
            (beside.blocked, beside.preempted)
        };
        assert_eq!(of(used(9, 2, 1), 0), (ms(6), 0));
        assert_eq!(of(used(9, 1, 3), 0), (0, ms(6)));
        // More than it left by itself: nobody knows how long it would have slept.
        assert_eq!(of(used(9, 2, 3), 0), (0, ms(6)));
        assert_eq!(of(used(15, 2, 1), 0), (0, 0));
        // The processor may have worked before the stretch or in it.
        assert_eq!(of(used(9, 2, 1), 1), (ms(6), 0));
        assert_eq!(of(used(16, 2, 1), 1), (0, 0));
    }

    #[test]
    fn who_waits_for_a_processor_does_not_sleep() {
        let beside = Beside {
            blocked: 40,
            ..Beside::default()
        };
        let parts = |delay, all| {
            let split = split(&beside, delay, all);
            (split.blocked, split.preempted)
        };
        assert_eq!(parts(0, 40), (40, 0));
        assert_eq!(parts(10, 40), (30, 10));
        assert_eq!(parts(50, 40), (0, 40));
        // Half of the time off the processor was before.
        assert_eq!(parts(20, 80), (30, 10));
        assert!(delay_ns().is_some());
    }

    #[test]
    fn who_lets_others_go_on_is_off_its_processor_as_late_as_can_be() {
        let divided = |off: u64, read: u64| {
            let mut stretches = Stretches::new(true, false, None, None);
            stretches.read = ms(read);
            stretches.beside.preempted = ms(off);
            let after = stretches.divide(ms(80), ms(95));
            let (inside, _) = &stretches.inside;
            [
                stretches.beside.preempted,
                inside.preempted,
                after.preempted,
            ]
        };
        assert_eq!(divided(30, 100), [ms(10), ms(15), ms(5)]);
        assert_eq!(divided(12, 100), [0, ms(7), ms(5)]);
        assert_eq!(divided(3, 100), [0, 0, ms(3)]);
        // It was read before the call.
        assert_eq!(divided(30, 75), [ms(30), 0, 0]);
    }

    #[test]
    fn a_processor_that_is_taken_in_a_reading_is_not_lost() {
        let used = |processor: u64| Used {
            processor: 1_000_000 * processor,
            ..Used::default()
        };
        let of = |worked: u64, end: u64, read: u64| {
            let times = [ms(100), ms(100 + end), ms(100 + read)];
            let taken = taken(&used(5), &used(5 + worked), times, ms(1));
            (taken + ms(1) / 2) / ms(1)
        };
        // A reading as usual, after work and after sleep.
        assert_eq!(of(10, 10, 11), 0);
        assert_eq!(of(2, 10, 11), 0);
        // Others had the processor in it.
        assert_eq!(of(10, 10, 15), 4);
        assert_eq!(of(2, 10, 15), 4);
        // It took long, on the processor.
        assert_eq!(of(15, 10, 15), 0);
        assert_eq!(of(13, 10, 15), 2);
        // Clocks of two processors may differ.
        assert_eq!(of(10, 10, 9), 0);
    }

    #[test]
    fn what_others_took_of_a_reading_is_of_the_stretch_then() {
        let mut stretches = Stretches::new(true, false, None, None);
        let taken = stretches.usual[0];
        stretches.taken = taken;
        stretches.left = stretches.read - taken;
        let now = clock::now();
        assert!(stretches.is_long(now));
        let after = stretches.look(now);
        assert_eq!(after, stretches.read);
        assert!(stretches.take().preempted >= taken);
        // Another call returned since then.
        stretches.taken = ms(1000);
        stretches.left = clock::now();
        stretches.look(clock::now());
        assert!(stretches.take().preempted < ms(1000));
    }

    #[test]
    fn records_of_one_reading_have_their_shares() {
        let mut stretches = Stretches::new(true, false, None, None);
        let inside = Beside {
            blocked: 300,
            kernel: 90,
            faults: [6, 0],
            ..Beside::default()
        };
        let mut told = |times: &[(u64, u64)]| {
            stretches.inside = (inside, (100, 400));
            let told = times.iter().map(|&(enter, leave)| {
                let told = stretches.take_inside(enter, leave);
                (told.blocked, told.kernel, told.faults[0])
            });
            told.collect::<Vec<_>>()
        };
        let (all, none) = ((300, 90, 6), (0, 0, 0));
        assert_eq!(told(&[(100, 400), (400, 500)]), [all, none]);
        assert_eq!(
            told(&[(100, 200), (200, 400)]),
            [(100, 30, 2), (200, 60, 4)]
        );
        // A part of a call, without duration.
        assert_eq!(told(&[(100, 100), (100, 400)]), [none, all]);
        // Of the time between, no record tells.
        assert_eq!(
            told(&[(100, 200), (300, 400)]),
            [(100, 30, 2), (100, 30, 2)]
        );
        // Others than that.
        assert_eq!(told(&[(400, 500), (100, 400)]), [none, none]);
    }

    #[test]
    fn stretches_before_a_location_have_their_sleep() {
        let born = ms(1000);
        let mut stretches = Stretches::new(true, false, None, Some(born));
        let used = |processor: u64, left| Used {
            processor: 1_000_000 * processor,
            left,
            ..Used::default()
        };
        // It sleeps in its first 40 ms, and then waits.
        stretches.was_in((born + ms(40), born + ms(90)), used(10, 2));
        assert_eq!(stretches.take().blocked, ms(30));
        // It computes for 10 ms.
        let now = born + ms(100);
        stretches.was_in((now, now), used(20, 2));
        assert_eq!(stretches.take(), Beside::default());
        assert_eq!((stretches.left(), stretches.off), (now, ms(80)));
    }

    #[test]
    fn what_was_counted_before_a_stretch_is_not_of_it() {
        let mut counted = Counts::default();
        counted.set(0, Some(1200));
        let of = |stretch, doubt| in_stretch(counted, stretch, doubt).get(0);
        assert_eq!(of(1000, 0), Some(1200));
        assert_eq!(of(1000, 200), Some(1000));
        assert_eq!(of(1000, 1001), None);
        let mut sum = in_stretch(counted, 1000, 0);
        sum.add(&in_stretch(counted, 1, 2));
        assert_eq!(sum.get(0), None);
        assert_eq!(in_stretch(Counts::default(), 1, 2), Counts::default());
    }

    #[test]
    fn faults_are_told_with_their_time() {
        let mut after = Used {
            processor: 10_000_000,
            kernel: 4_000_000,
            faults: [1000, 0],
            ..Used::default()
        };
        let of = |after: &Used, doubt| beside(&Used::default(), after, ms(10), ms(doubt));
        assert_eq!(of(&after, 0).kernel, ms(4));
        assert_eq!(of(&after, 0).faults, [1000, 0]);
        assert_eq!(of(&after, 3).kernel, ms(1));
        assert_eq!(of(&after, 5), Beside::default());
        after.kernel = 50_000;
        assert_eq!(of(&after, 0), Beside::default());
    }

    #[test]
    fn sleep_and_work_of_this_thread() {
        let mut stretches = Stretches::new(true, false, None, None);
        std::thread::sleep(Duration::from_millis(30));
        let now = clock::now();
        assert!(stretches.is_long(now));
        let slept = now.wrapping_sub(stretches.left);
        stretches.look(now);
        let beside = stretches.take();
        assert!(beside.blocked + beside.preempted > slept / 10 * 9);
        assert_eq!(stretches.take(), Beside::default());
        assert!(Stretches::new(false, true, None, None).least_ns().is_none());
        assert!(stretches.own.is_some());
    }
}
