//! Samples by a real-time signal, which a timer of the thread's own processor time sends it.
//!
//! Where the kernel's rings are forbidden. Where timers are, too, the helper looks at that time and sends it. The signal is one that the program had not used when
//! recording began; system calls go on after it. The handler calls nothing but what looks for Python's frames: it copies
//! registers and stack, unless the thread is in a recorded call. It has a stack of its own, since that of
//! the program may be short. Handlers of the program may interrupt it, and may leave it by `siglongjmp`.

use std::io;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering, compiler_fence,
};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::News;
use super::helper::{self, Watch};
use super::store::{STACK, Store};
use super::taken;
use crate::clock;
use crate::thread::{self, UNRECORDED, slot};

/// The signal in use; 0 = none.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// The process that chose it. A child of `vfork` has its memory, but neither its timers nor its handlers.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// How far below the last real-time signal the search for a free one begins, and how many are
/// tried. Debuggers and checkers use the last ones.
const BELOW_LAST: i32 = 3;
const TRIES: i32 = 16;

/// The last signal before those of real time.
const LAST_SIGNAL: i32 = 31;

/// What the handler fills. Never freed, because a signal may still be on its way: threads that
/// ended leave theirs to others.
struct Target {
    store: Store,
    /// The thread itself uses the store.
    is_used: AtomicBool,
    /// The thread whose store it is.
    thread: AtomicI32,
    /// Begin and end of its stack; empty if unknown.
    stack: [AtomicU64; 2],
    /// Signals for which the store was asked.
    came: AtomicU64,
    /// Periods that the helper's signal on its way stands for; 0: there is none.
    periods: AtomicU32,
}

/// Where all targets are.
static ALL: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Timers of the kernel's that run, as addresses.
static TIMERS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// The program has a handler of its own for the signal.
static IS_GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// Targets without a thread.
static FREE: Mutex<Vec<&'static AtomicPtr<Target>>> = Mutex::new(Vec::new());

/// Samples a thread by signals.
pub struct Timer {
    source: Source,
    target: &'static AtomicPtr<Target>,
    thread: libc::pid_t,
    /// `None` if the program had one.
    stack: Option<SignalStack>,
}

// SAFETY: other threads only end the source.
unsafe impl Send for Timer {}

/// Where the signals come from.
pub enum Source {
    /// A timer of the kernel's.
    Kernel(libc::timer_t),
    Helper(Arc<dyn Watch>),
}

/// What a source needs.
pub struct Aim {
    signal: i32,
    thread: libc::pid_t,
    target: &'static AtomicPtr<Target>,
    /// Time on the processor between two signals.
    period: Duration,
}

impl Source {
    /// A timer of the calling thread's processor time.
    ///
    /// # Errors
    /// There can be no more timers.
    pub fn kernel(aim: Aim) -> io::Result<Source> {
        let time = libc::timespec {
            tv_sec: aim.period.as_secs() as libc::time_t,
            tv_nsec: aim.period.subsec_nanos().into(),
        };
        let times = libc::itimerspec {
            it_interval: time,
            it_value: time,
        };
        // SAFETY: structures of plain values, which the calls read or fill in.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = aim.signal;
            event.sigev_notify_thread_id = aim.thread;
            event.sigev_value.sival_ptr = ptr::from_ref(aim.target).cast_mut().cast();
            let mut id = ptr::null_mut();
            if libc::timer_create(libc::CLOCK_THREAD_CPUTIME_ID, &mut event, &mut id) != 0 {
                return Err(io::Error::last_os_error());
            }
            if libc::timer_settime(id, 0, &times, ptr::null_mut()) != 0 {
                let error = io::Error::last_os_error();
                libc::timer_delete(id);
                return Err(error);
            }
            if let Ok(mut timers) = TIMERS.lock() {
                timers.push(id.expose_provenance());
            }
            let source = Source::Kernel(id);
            if IS_GIVEN_UP.load(Ordering::Relaxed) {
                source.stop();
            }
            Ok(source)
        }
    }

    /// The helper, which looks at the calling thread's processor time once in a period.
    ///
    /// # Errors
    /// That time cannot be read, there can be no thread, or it may not send signals.
    pub fn helper(aim: Aim) -> io::Result<Source> {
        let clock = clock::of_this_thread();
        let clock = clock.ok_or_else(|| io::Error::other("no clock of a thread"))?;
        let period = aim.period;
        let pulse = Pulse {
            told: AtomicU64::new(clock::of_thread_ns(clock)),
            clock,
            aim,
        };
        // Signal 0 is none: it only tells whether this is permitted.
        pulse.send(0)?;
        if signals_at_a_time() == 0 {
            return Err(io::Error::other(
                "no signal may wait for a thread (ulimit -i)",
            ));
        }
        let pulse: Arc<dyn Watch> = Arc::new(pulse);
        if !helper::add(pulse.clone(), period) {
            helper::remove(&pulse);
            return Err(io::Error::other("no further thread"));
        }
        Ok(Source::Helper(pulse))
    }

    /// No more signals.
    fn stop(&self) {
        match self {
            Source::Kernel(id) => {
                // SAFETY: all zero is a time, and the timer is one of this process. It cannot be asked for more.
                unsafe { libc::timer_settime(*id, 0, &std::mem::zeroed(), ptr::null_mut()) };
            }
            Source::Helper(pulse) => helper::remove(pulse),
        }
    }

    /// The same, for good.
    fn end(&self) {
        match self {
            Source::Kernel(id) => {
                if let Ok(mut timers) = TIMERS.lock() {
                    timers.retain(|timer| *timer != id.addr());
                }
                // SAFETY: made by `kernel`, and deleted once.
                unsafe {
                    libc::timer_delete(*id);
                }
            }
            Source::Helper(pulse) => helper::remove(pulse),
        }
    }
}

/// How many signals may wait until they are taken.
fn signals_at_a_time() -> u64 {
    let mut limit = MaybeUninit::<libc::rlimit>::zeroed();
    // SAFETY: the call fills it in; all zeros are a limit, too.
    unsafe {
        match libc::getrlimit(libc::RLIMIT_SIGPENDING, limit.as_mut_ptr()) {
            0 => limit.assume_init().rlim_cur,
            _ => u64::MAX,
        }
    }
}

/// A thread that gets a signal for each period that it was on the processor.
struct Pulse {
    aim: Aim,
    clock: libc::clockid_t,
    /// Its time at the last signal, ns.
    told: AtomicU64,
}

/// The kernel's information about a signal that a program sends.
#[repr(C)]
struct Sent {
    signal: i32,
    error: i32,
    code: i32,
    #[cfg(target_pointer_width = "64")]
    gap: i32,
    process: libc::pid_t,
    user: libc::uid_t,
    value: *const AtomicPtr<Target>,
    rest: [u64; 12],
}

/// Tells signals of the helper from those of programs. Only a process itself can send it codes of its own choice.
const OF_HELPER: i32 = -0x4c47;

impl Pulse {
    fn send(&self, signal: i32) -> io::Result<()> {
        // SAFETY: always possible.
        let process = unsafe { libc::getpid() };
        let sent = Sent {
            signal,
            error: 0,
            code: OF_HELPER,
            #[cfg(target_pointer_width = "64")]
            gap: 0,
            process,
            // SAFETY: always possible.
            user: unsafe { libc::getuid() },
            value: self.aim.target,
            rest: [0; 12],
        };
        let number = libc::SYS_rt_tgsigqueueinfo;
        // SAFETY: information of the kernel's size, about a signal to a thread of this process.
        match unsafe { libc::syscall(number, process, self.aim.thread, signal, &raw const sent) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Watch for Pulse {
    fn look(&self) {
        let period = self.aim.period.as_nanos().max(1) as u64;
        if IS_GIVEN_UP.load(Ordering::Relaxed) {
            return;
        }
        let told = self.told.load(Ordering::Relaxed);
        let periods = clock::of_thread_ns(self.clock).saturating_sub(told) / period;
        if periods == 0 {
            return;
        }
        let target = self.aim.target.load(Ordering::Relaxed);
        // SAFETY: never freed.
        let due = unsafe { &(*target).periods };
        // Until the handler takes them, one signal is on its way for all.
        let is_sent = due.fetch_add(periods.min(u64::from(u16::MAX)) as u32, Ordering::Relaxed) > 0;
        match is_sent || self.send(self.aim.signal).is_ok() {
            true => self.told.store(told + periods * period, Ordering::Relaxed),
            false => due.store(0, Ordering::Relaxed),
        }
    }
}

impl Timer {
    /// Begins to sample the calling thread, once in so much time on the processor.
    ///
    /// # Errors
    /// All signals are in use, or the source cannot be had.
    pub fn start(
        period: Duration,
        source: impl FnOnce(Aim) -> io::Result<Source>,
    ) -> io::Result<Timer> {
        let signal = signal()?;
        let target = target().ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: always possible.
        let thread = unsafe { libc::gettid() };
        // SAFETY: never freed.
        let of = unsafe { &*target.load(Ordering::Relaxed) };
        of.periods.store(0, Ordering::Relaxed);
        of.thread.store(thread, Ordering::Relaxed);
        let own = thread::stack();
        for (at, bound) in of.stack.iter().zip([own.start, own.end]) {
            at.store(bound, Ordering::Relaxed);
        }
        let stack = SignalStack::install();
        let aim = Aim {
            signal,
            thread,
            target,
            period,
        };
        match source(aim) {
            Ok(source) => Ok(Timer {
                source,
                target,
                thread,
                stack,
            }),
            Err(error) => {
                if let Some(stack) = stack {
                    stack.remove();
                }
                give_back(target);
                Err(error)
            }
        }
    }

    /// How, as the trace says it.
    pub fn way(&self) -> &'static str {
        match self.source {
            Source::Kernel(_) => "signal",
            Source::Helper(_) => "thread",
        }
    }

    /// Ends the signals if the program has set a handler of its own for them.
    pub fn stop_unless_ours(&self) {
        if !is_handled(SIGNAL.load(Ordering::Relaxed)) {
            self.source.stop();
        }
    }

    /// Uses the store, of the thread that is sampled, while no signal touches it. Returns the news from then on.
    pub fn with(&mut self, with: impl FnOnce(&mut Store)) -> News {
        let target = self.target.load(Ordering::Relaxed);
        // SAFETY: never freed.
        let (is_used, came) = unsafe { (&(*target).is_used, &(*target).came) };
        // A signal comes between two instructions of this thread.
        is_used.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the handler leaves the store alone now, and no other thread uses it.
        with(unsafe { &mut (*target).store });
        let news = News {
            now: NonNull::from(came),
            seen: came.load(Ordering::Relaxed),
        };
        compiler_fence(Ordering::SeqCst);
        is_used.store(false, Ordering::Relaxed);
        news
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.source.end();
        // Another thread cannot know whether a handler runs now.
        // SAFETY: always possible.
        if self.thread == unsafe { libc::gettid() } {
            self.with(Store::clear);
            give_back(self.target);
            if let Some(stack) = self.stack.take() {
                stack.remove();
            }
        }
    }
}

/// A stack for signal handlers of a thread that had none. It stays mapped if its thread cannot be
/// asked whether a handler runs.
struct SignalStack(*mut libc::c_void);

/// Bytes of such a stack: handlers of the program may run on it, too.
const SIGNAL_STACK: usize = 256 << 10;

impl SignalStack {
    fn install() -> Option<SignalStack> {
        // SAFETY: structures that the calls read or fill in, and new memory.
        unsafe {
            let mut now: libc::stack_t = std::mem::zeroed();
            let known = libc::sigaltstack(ptr::null(), &mut now) == 0;
            if !known || now.ss_flags & libc::SS_DISABLE == 0 {
                return None;
            }
            let memory = libc::mmap(
                ptr::null_mut(),
                SIGNAL_STACK,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            );
            if memory == libc::MAP_FAILED {
                return None;
            }
            let ours = libc::stack_t {
                ss_sp: memory,
                ss_flags: 0,
                ss_size: SIGNAL_STACK,
            };
            if libc::sigaltstack(&ours, ptr::null_mut()) != 0 {
                libc::munmap(memory, SIGNAL_STACK);
                return None;
            }
            Some(SignalStack(memory))
        }
    }

    /// Takes it away again, of the calling thread, unless the program has set another one.
    fn remove(self) {
        // SAFETY: as above. The kernel refuses while a handler runs on it.
        unsafe {
            let mut now: libc::stack_t = std::mem::zeroed();
            let none = libc::stack_t {
                ss_flags: libc::SS_DISABLE,
                ..now
            };
            let is_ours = libc::sigaltstack(ptr::null(), &mut now) == 0 && now.ss_sp == self.0;
            if is_ours && libc::sigaltstack(&none, ptr::null_mut()) == 0 {
                libc::munmap(self.0, SIGNAL_STACK);
            }
        }
    }
}

fn target() -> Option<&'static AtomicPtr<Target>> {
    if let Ok(mut free) = FREE.lock()
        && let Some(target) = free.pop()
    {
        return Some(target);
    }
    let target = Box::new(Target {
        store: Store::new()?,
        is_used: AtomicBool::new(false),
        thread: AtomicI32::new(0),
        stack: [AtomicU64::new(0), AtomicU64::new(0)],
        came: AtomicU64::new(0),
        periods: AtomicU32::new(0),
    });
    let target = Box::leak(Box::new(AtomicPtr::new(Box::into_raw(target))));
    ALL.lock()
        .ok()?
        .push(ptr::from_ref(target).expose_provenance());
    Some(target)
}

/// The signal in use, if there is one and the program has not taken it since.
pub fn chosen() -> Option<i32> {
    let signal = SIGNAL.load(Ordering::Relaxed);
    (signal != 0 && is_handled(signal)).then_some(signal)
}

/// The signal that has been chosen; 0: none.
pub fn in_use() -> i32 {
    SIGNAL.load(Ordering::Relaxed)
}

/// No more signals are sent to this process: the program is about to have a handler for ours. Of those on their way, kernels from 6.13
/// on take back what timers sent; what the helper sent is awaited, unless its thread does not take it.
pub fn give_up() {
    const MOST: Duration = Duration::from_millis(20);
    // SAFETY: always possible.
    if PROCESS.load(Ordering::Relaxed) != unsafe { libc::getpid() } {
        return;
    }
    IS_GIVEN_UP.store(true, Ordering::SeqCst);
    // Who is interrupted while it has the lock may set a handler in its own: those timers are ended later.
    if let Ok(timers) = TIMERS.try_lock() {
        for &timer in timers.iter() {
            let id = ptr::with_exposed_provenance_mut(timer);
            // SAFETY: a timer that is not deleted while the list is locked; all zero is a time.
            unsafe { libc::timer_settime(id, 0, &std::mem::zeroed(), ptr::null_mut()) };
        }
    }
    let begin = Instant::now();
    while is_one_on_its_way() && begin.elapsed() < MOST {
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Whether a signal of the helper has not been handled yet.
fn is_one_on_its_way() -> bool {
    let all = ALL.try_lock();
    all.is_ok_and(|all| {
        all.iter().any(|&target| {
            let target = ptr::with_exposed_provenance::<AtomicPtr<Target>>(target);
            // SAFETY: a target, which is never freed.
            let of = unsafe { &(*(*target).load(Ordering::Relaxed)).periods };
            of.load(Ordering::Relaxed) > 0
        })
    })
}

/// Whether it was a source of ours that sent a signal.
pub fn is_ours(info: &libc::siginfo_t) -> bool {
    let is_such = info.si_signo == SIGNAL.load(Ordering::Relaxed);
    if !is_such || !matches!(info.si_code, libc::SI_TIMER | OF_HELPER) {
        return false;
    }
    // SAFETY: information about a timer, or what the helper sends, has a value.
    let target = unsafe { info.si_value() }.sival_ptr.addr();
    let all = ALL.lock();
    let is_known = all.is_ok_and(|all| all.contains(&target));
    if is_known && info.si_code == OF_HELPER {
        let target = ptr::with_exposed_provenance::<AtomicPtr<Target>>(target);
        // SAFETY: a target, which is never freed.
        unsafe {
            (*(*target).load(Ordering::Relaxed))
                .periods
                .store(0, Ordering::Relaxed)
        };
    }
    is_known
}

fn give_back(target: &'static AtomicPtr<Target>) {
    if let Ok(mut free) = FREE.lock() {
        free.push(target);
    }
}

/// The signal of all timers; chosen once.
fn signal() -> io::Result<i32> {
    static CHOOSING: Mutex<()> = Mutex::new(());
    let _one = CHOOSING.lock();
    let known = SIGNAL.load(Ordering::Relaxed);
    if known != 0 {
        return match is_handled(known) && !IS_GIVEN_UP.load(Ordering::Relaxed) {
            true => Ok(known),
            false => Err(io::Error::other("the program uses the signal")),
        };
    }
    let last = libc::SIGRTMAX() - BELOW_LAST;
    let mut candidates = (libc::SIGRTMIN()..=last).rev().take(TRIES as usize);
    let is_unused = |signal| action(signal).is_some_and(|now| now == libc::SIG_DFL);
    let free = candidates.find(|&signal| is_unused(signal) && !taken::is_read(signal));
    let signal = free.ok_or_else(|| io::Error::other("the program uses all signals"))?;
    // SAFETY: a valid action of a signal that has none.
    unsafe {
        let mut ours: libc::sigaction = std::mem::zeroed();
        ours.sa_sigaction = on_time as Handler as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        // Signals of the program come meanwhile, as they do without samples: what this thread blocks, another one of
        // the process would get. Not the C library's own: one of them cancels threads, which would unwind them
        // through the handler. `sigaddset` refuses these.
        let own =
            (LAST_SIGNAL + 1..libc::SIGRTMIN()).fold(0u64, |own, signal| own | 1 << (signal - 1));
        ptr::from_mut(&mut ours.sa_mask).cast::<u64>().write(own);
        if taken::set_action(signal, &ours, ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: always possible.
    PROCESS.store(unsafe { libc::getpid() }, Ordering::Relaxed);
    SIGNAL.store(signal, Ordering::Relaxed);
    Ok(signal)
}

/// The handler of a signal now.
fn action(signal: i32) -> Option<usize> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the call fills it in; all zeros are an action, too.
    unsafe {
        let failed = taken::set_action(signal, ptr::null(), action.as_mut_ptr());
        (failed == 0).then(|| action.assume_init().sa_sigaction)
    }
}

/// Whether our handler is that of a signal.
fn is_handled(signal: i32) -> bool {
    action(signal) == Some(on_time as Handler as usize)
}

type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

extern "C" fn on_time(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel's info.
    let code = unsafe { (*info).si_code };
    if code != libc::SI_TIMER && code != OF_HELPER {
        // Somebody sent it: what it did without the collector.
        // SAFETY: async-signal-safe calls. The signal comes again when this returns.
        unsafe {
            let mut default: libc::sigaction = std::mem::zeroed();
            default.sa_sigaction = libc::SIG_DFL;
            taken::set_action(signal, &default, ptr::null_mut());
            libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal);
        }
        return;
    }
    // SAFETY: the value that its source was made with: a target, which is never freed.
    let target = unsafe {
        let target: *const AtomicPtr<Target> = (*info).si_value().sival_ptr.cast();
        (*target).load(Ordering::Relaxed)
    };
    let periods = match code {
        // SAFETY: as above.
        OF_HELPER => unsafe { (*target).periods.swap(0, Ordering::Relaxed) },
        _ => 1 + overrun(info),
    };
    // SAFETY: the slot belongs to this thread.
    let thread = unsafe { *slot() };
    // One that is no location yet makes no calls.
    // SAFETY: states live as long as their threads.
    if thread == UNRECORDED || !thread.is_null() && unsafe { (*thread).active } != 0 {
        return;
    }
    // SAFETY: the target's thread runs this.
    unsafe {
        // The number of a thread that ended may be another one's now.
        let is_other = (*target).thread.load(Ordering::Relaxed) != libc::gettid();
        if is_other || (*target).is_used.load(Ordering::Relaxed) {
            return;
        }
        (*target).came.fetch_add(1, Ordering::Relaxed);
        let store = &mut (*target).store;
        let Some(sample) = store.room() else {
            return;
        };
        let (pc, sp, bp) = registers(&*context.cast());
        (sample.time, sample.pc, sample.sp, sample.bp) = (clock::now(), pc, sp, bp);
        sample.periods = periods.max(1);
        sample.pythons = laggard_callpath::note_python(&mut sample.python);
        // Of another stack, such as a coroutine's, only this page is known to be there.
        let [start, end] = [0, 1].map(|at: usize| (&(*target).stack)[at].load(Ordering::Relaxed));
        let end = match (start..end).contains(&sp) {
            true => end,
            false => (sp | 4095) + 1,
        };
        sample.length = STACK.min((end - sp) as usize);
        let from = ptr::with_exposed_provenance::<u8>(sp as usize);
        ptr::copy_nonoverlapping(from, sample.stack.as_mut_ptr(), sample.length);
        // A handler of the program that came meanwhile may have left this one for good.
        compiler_fence(Ordering::SeqCst);
        store.keep();
    }
}

/// How many more periods have passed.
fn overrun(info: *const libc::siginfo_t) -> u32 {
    /// The kernel's information about a signal of a timer.
    #[repr(C)]
    struct OfTimer {
        head: [i32; 4],
        timer: i32,
        overrun: i32,
    }
    // SAFETY: the kernel's info about a timer.
    let overrun = unsafe { (*info.cast::<OfTimer>()).overrun };
    overrun.max(0) as u32
}

/// Instruction, stack and frame pointer.
fn registers(context: &libc::ucontext_t) -> (u64, u64, u64) {
    #[cfg(target_arch = "x86_64")]
    {
        let of = |which: i32| context.uc_mcontext.gregs[which as usize] as u64;
        (of(libc::REG_RIP), of(libc::REG_RSP), of(libc::REG_RBP))
    }
    #[cfg(target_arch = "aarch64")]
    {
        let of = &context.uc_mcontext;
        (of.pc, of.sp, of.regs[29])
    }
}
