//! When and where threads began, and threads that nobody noticed when they end.
//!
//! A thread is a location from its first call or wait on, and was there before. So threads begin here: time and place
//! are noted, and its sampler begins, if there are samples, which its location takes over. A thread that never
//! became a location does so when it ends, if another one waits for that for a good
//! part of its life. Of less, nobody knows which of the two waited for the other: threads may look at a variable
//! until they are told to end. So one that computed becomes a location, too, for whose end nobody waits, and so does one
//! that let others go on.
//!
//! *Constraints.* The program's function gets the stack as if it had been called by the system: no frame
//! stays on it.

use std::arch::naked_asm;
use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use laggard_callpath::{CallSite, Carried};

use super::admission::{has_more_room, waiter};
use super::early::{self, Early};
use super::left_out::{is_left_out, is_own};
use super::{Place, WANTED, is_recorded, locks, team};
use crate::call::Call;
use crate::clock;
use crate::next::{Next, Target};
use crate::run;
use crate::sampling::Sampler;
use crate::stream::{Birth, Stream, delay_ns};
use crate::thread::{self, FIRST_CALL, STATE, slot, state};

/// A function of the program that a thread runs: those of C11 return an `int`, in the same register.
type Start = extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// Under it each thread has its [`Begin`].
static BORN: OnceLock<libc::pthread_key_t> = OnceLock::new();

/// A thread is noticed at its end if it was waited for during this part of its life.
const PART: u64 = 4;

/// Since when the end of a thread is waited for, ticks: a place for some threads each, for the last one that
/// came.
struct Joining {
    thread: AtomicU64,
    since: AtomicU64,
}

static JOINING: [Joining; 64] = [const {
    Joining {
        thread: AtomicU64::new(0),
        since: AtomicU64::new(0),
    }
}; 64];

fn joining(thread: u64) -> &'static Joining {
    // Threads are told by addresses in their stacks.
    &JOINING[(thread >> 12) as usize % JOINING.len()]
}

/// The calling thread begins to wait for the end of another one.
pub(super) fn joins(thread: u64) {
    let joining = joining(thread);
    joining.thread.store(0, Ordering::Relaxed);
    joining.since.store(clock::now(), Ordering::Release);
    joining.thread.store(thread, Ordering::Release);
}

/// It has given up, or that thread has ended.
pub(super) fn joins_no_more(thread: u64) {
    let known = &joining(thread).thread;
    let _ = known.compare_exchange(thread, 0, Ordering::AcqRel, Ordering::Relaxed);
}

/// Whether another thread has waited for the end of this one for so long, which began then.
fn is_waited_for(thread: u64, born: u64) -> bool {
    let joining = joining(thread);
    let is_known = joining.thread.load(Ordering::Acquire) == thread;
    let (since, now) = (joining.since.load(Ordering::Acquire), clock::now());
    let waited = now.saturating_sub(since.max(born));
    is_known && waited >= now.saturating_sub(born) / PART
}

/// Whether the end of any thread is waited for, since that part of the calling one's life, which began then. Who
/// waits so does not tell others to end.
fn is_join_known(born: u64) -> bool {
    let now = clock::now();
    JOINING.iter().any(|joining| {
        let since = joining.since.load(Ordering::Acquire).max(born);
        let is_known = joining.thread.load(Ordering::Acquire) != 0;
        is_known && now.saturating_sub(since) >= now.saturating_sub(born) / PART
    })
}

/// A thread that nobody waits for is noticed at its end if it wanted a processor for half of its life, and had one for
/// so long, ns.
const COMPUTED: u64 = 10_000_000;

/// Whether the calling thread computed, which began then.
fn has_computed(born: u64) -> bool {
    let (had, life) = (clock::thread_ns(), clock::now().saturating_sub(born));
    let wanted = || Duration::from_nanos(had.saturating_add(delay_ns().unwrap_or(0)));
    had >= COMPUTED && clock::ticks(wanted()) >= life / 2
}

/// How a thread begins, and what it is to do.
#[repr(C)]
pub(super) struct Begin {
    function: Start,
    argument: *mut c_void,
    /// Ticks.
    pub born: u64,
    /// As a location, which the collector's own threads never are.
    number: Option<u32>,
    /// Where it is made, and by which location.
    origin: Origin,
    creator: Option<u32>,
    /// What it did until it became a location.
    pub early: Early,
    /// What it waits for meanwhile, as far as that is counted; 0 = nothing.
    awaited: u64,
}

impl Begin {
    /// The thread waits for this from now on, and is no location; 0 = it waits for nothing. What it waited for before is
    /// over: it may have left that wait by a jump, or by its end.
    pub fn awaits(&mut self, key: u64) {
        let before = mem::replace(&mut self.awaited, key);
        if before != 0 {
            locks::awaits_early_no_more(before);
            joins_no_more(before);
        }
        if key != 0 {
            locks::awaits_early(key);
        }
    }

    /// Whether what the thread does before it is a location is kept: it is one of the program's.
    pub fn may_be_kept(&self) -> bool {
        !matches!(self.origin, Origin::Unknown)
    }
}

/// Where a thread is made.
#[derive(Clone, Default)]
pub(super) enum Origin {
    /// In a library whose threads are its own affair, or before the recording.
    #[default]
    Unknown,
    /// At this address, where no call path may be looked up.
    Code(u64),
    Path(Carried),
}

impl Origin {
    /// At this call of the calling thread.
    fn here(site: CallSite) -> Origin {
        if is_left_out(site.ra) {
            return Origin::Unknown;
        }
        let path = waiter(site, false).and_then(|waiter| {
            let mut call = Call::over(waiter.thread, site, 0, (0, 0));
            call.claim().then(|| {
                let path = call.stream().carried(&site);
                call.release();
                path
            })
        });
        let path = path.or_else(|| early::path(site));
        path.map_or(Origin::Code(site.ra.wrapping_sub(1)), Origin::Path)
    }

    /// That of the calling thread.
    pub(super) fn own() -> Origin {
        begin().map_or(Origin::Unknown, |begin| begin.origin.clone())
    }

    /// As a place of records.
    pub(super) fn place(&self, stream: &mut Stream) -> Place {
        match self {
            Origin::Path(path) => Place::Path(stream.take_over(path)),
            Origin::Code(address) => Place::Code(*address),
            Origin::Unknown => Place::Path(0),
        }
    }
}

/// The program's function and its argument: returned in two registers.
#[repr(C)]
struct Goal {
    function: Start,
    argument: *mut c_void,
}

/// Recording begins.
pub fn begins() {
    BEGAN.store(clock::now(), Ordering::Relaxed);
    BORN.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` is valid for writing.
        match unsafe { libc::pthread_key_create(&mut key, Some(ends)) } {
            0 => key,
            _ => libc::pthread_key_t::MAX,
        }
    });
}

/// The key, if there is one.
fn key() -> Option<libc::pthread_key_t> {
    BORN.get()
        .copied()
        .filter(|key| *key != libc::pthread_key_t::MAX)
}

/// Since when the calling thread is known; `None` if it began before the recording.
pub fn birth() -> Option<Birth> {
    let (born, begun) = (born()?, team::begun());
    Some(Birth {
        at: born.max(begun),
        is_whole: born >= begun,
        creator: begin()?.creator,
    })
}

/// The number of the calling thread, if it has one before it is a location.
pub fn number() -> Option<u32> {
    begin()?.number
}

/// When the calling thread began, ticks.
pub(super) fn born() -> Option<u64> {
    begin().map(|begin| begin.born)
}

/// How the calling thread began.
pub(super) fn begin<'a>() -> Option<&'a mut Begin> {
    // SAFETY: a valid key; what belongs to it is the thread's own, until it ends.
    unsafe { libc::pthread_getspecific(key()?).cast::<Begin>().as_mut() }
}

/// Samplers of threads that are no locations yet, by thread.
static SAMPLERS: Mutex<Vec<(libc::pthread_t, Sampler)>> = Mutex::new(Vec::new());

fn samplers() -> MutexGuard<'static, Vec<(libc::pthread_t, Sampler)>> {
    SAMPLERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Processor time that went into samplers so far, ns: each costs as much as many a thread.
static SPENT: AtomicU64 = AtomicU64::new(0);

/// It may be so much, ns, and this part of the time since the recording began.
const SPENDABLE: u64 = 10_000_000;
const SPENDABLE_PART: u64 = 100;

/// When the recording began, ticks.
static BEGAN: AtomicU64 = AtomicU64::new(0);

/// Runs `f`, and counts what it takes.
fn spending<T>(f: impl FnOnce() -> T) -> T {
    let begin = clock::thread_ns();
    let result = f();
    let took = clock::thread_ns().saturating_sub(begin);
    SPENT.fetch_add(took, Ordering::Relaxed);
    result
}

/// Whether less was spent than may be.
fn may_spend() -> bool {
    let since = clock::now().saturating_sub(BEGAN.load(Ordering::Relaxed));
    let spent = SPENT.load(Ordering::Relaxed).saturating_sub(SPENDABLE);
    clock::ticks(Duration::from_nanos(spent)) <= since / SPENDABLE_PART
}

/// The calling thread is sampled from now on, if it may become a location.
fn begins_samples() {
    let settings = run::settings().filter(|settings| settings.records);
    let Some(wanted) = settings.and_then(|settings| settings.sampling) else {
        return;
    };
    // Who ends the recording has the lock of the locations first.
    let others = samplers().len();
    if !may_spend() || !has_more_room(others) {
        return;
    }
    let stack = thread::stack();
    let here = (&raw const stack) as u64;
    if stack.contains(&here) && here - stack.start < FIRST_CALL {
        return;
    }
    // If there can be none, its location says why.
    let Ok(sampler) = spending(|| Sampler::start(wanted)) else {
        return;
    };
    let mut samplers = samplers();
    // Who ends the recording takes those that are there.
    if STATE.load(Ordering::SeqCst) & state::RECORDING != 0 {
        // SAFETY: takes no arguments.
        samplers.push((unsafe { libc::pthread_self() }, sampler));
    }
}

/// The sampler of the calling thread since it began, which is the caller's now.
pub fn sampler() -> Option<Sampler> {
    // SAFETY: takes no arguments.
    let own = unsafe { libc::pthread_self() };
    let mut samplers = samplers();
    let at = samplers.iter().position(|(thread, _)| *thread == own)?;
    Some(samplers.swap_remove(at).1)
}

/// The recording is over: threads that are no locations are not sampled any more.
pub fn ends_samples() {
    samplers().clear();
}

/// `thrd_error` of C11.
const THREAD_ERROR: c_int = 2;

/// Functions that make threads, with what stands in for one that the C library does not have.
macro_rules! creates {
    ($($name:ident ($($p:ident: $t:ty),*) or $absent:expr;)*) => {
        /// The real functions.
        pub static CREATES: &[&Target] = &[$(
            {
                type Real = unsafe extern "C-unwind" fn($($t,)* Start, *mut c_void) -> c_int;
                static NEXT: Next<Real> = Next::new(concat!(stringify!($name), "\0"));

                unsafe extern "C-unwind" fn absent($(_: $t,)* _: Start, _: *mut c_void) -> c_int {
                    $absent
                }

                #[unsafe(no_mangle)]
                unsafe extern "C-unwind" fn $name(
                    $($p: $t,)*
                    function: Start,
                    argument: *mut c_void,
                ) -> c_int {
                    if STATE.load(Ordering::Relaxed) & WANTED == WANTED && key().is_some() {
                        // SAFETY: the caller's arguments.
                        return unsafe { noted($($p,)* function, argument) };
                    }
                    // SAFETY: passes the caller's arguments to the function it called.
                    unsafe { NEXT.get(absent)($($p,)* function, argument) }
                }

                /// A function of its own, which the other one jumps to: that one needs no frame.
                #[inline(never)]
                unsafe extern "C-unwind" fn noted(
                    $($p: $t,)*
                    function: Start,
                    argument: *mut c_void,
                ) -> c_int {
                    let site = laggard_callpath::call_site!();
                    let origin = locks::kept(|| Origin::here(site)).unwrap_or(Origin::Unknown);
                    let begin = Box::into_raw(Box::new(Begin {
                        function,
                        argument,
                        born: clock::now(),
                        number: (!is_own(site.ra)).then(thread::next_number),
                        origin,
                        creator: thread::own_number(),
                        early: Early::default(),
                        awaited: 0,
                    }));
                    // SAFETY: as above, with a function and an argument in place of the caller's that lead to these.
                    let failed = unsafe { NEXT.get(absent)($($p,)* starts, begin.cast()) };
                    if failed != 0 {
                        // SAFETY: made above, and no thread has it.
                        let begin = unsafe { Box::from_raw(begin) };
                        begin.number.into_iter().for_each(thread::give_back);
                    }
                    failed
                }
                &NEXT.target
            },
        )*];
    };
}

creates! {
    pthread_create (thread: *mut libc::pthread_t, attributes: *const libc::pthread_attr_t) or libc::EAGAIN;
    // It makes threads by a function that nobody else can call.
    thrd_create (thread: *mut libc::pthread_t) or THREAD_ERROR;
}

/// Where a thread starts: goes on at the program's function.
#[unsafe(naked)]
extern "C-unwind" fn starts(begin: *mut c_void) -> *mut c_void {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        "sub rsp, 8",
        "call {note}",
        "add rsp, 8",
        "mov rdi, rdx",
        "jmp rax",
        note = sym note,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        "stp x29, x30, [sp, #-16]!",
        "bl {note}",
        "ldp x29, x30, [sp], #16",
        "mov x16, x0",
        "mov x0, x1",
        "br x16",
        note = sym note,
    );
}

/// The calling thread begins.
extern "C" fn note(begin: *mut Begin) -> Goal {
    // SAFETY: made by the one that creates the thread, for this thread alone.
    let (goal, is_sampled) = unsafe {
        let goal = Goal {
            function: (*begin).function,
            argument: (*begin).argument,
        };
        (goal, (*begin).may_be_kept())
    };
    let is_kept = key().is_some_and(|key| {
        // SAFETY: a valid key, and what belongs to it.
        unsafe { libc::pthread_setspecific(key, begin.cast()) == 0 }
    });
    if !is_kept {
        // SAFETY: as above.
        drop(unsafe { Box::from_raw(begin) });
    } else if is_sampled && is_recorded() {
        locks::kept(begins_samples);
    }
    goal
}

/// The calling thread ends, which began so.
unsafe extern "C" fn ends(begin: *mut c_void) {
    let site = laggard_callpath::call_site!();
    // SAFETY: `note` keeps it for this thread alone.
    let mut begin: Box<Begin> = unsafe { Box::from_raw(begin.cast()) };
    // A child of the process leaves all as it is: others may have had the lock.
    if STATE.load(Ordering::Relaxed) & state::RECORDING == 0 {
        return;
    }
    begin.awaits(0);
    // SAFETY: the slot belongs to this thread.
    let is_known = unsafe { !(*slot()).is_null() };
    // SAFETY: takes no arguments.
    let own = unsafe { libc::pthread_self() };
    let is_awaited = is_waited_for(own, begin.born);
    let has_worked = || {
        let has_computed = || is_join_known(begin.born) && has_computed(begin.born);
        begin.early.has_let_go() || has_computed()
    };
    let is_noticed = || is_recorded() && (is_awaited || has_worked());
    if let Some(key) = key().filter(|_| !is_known && is_noticed()) {
        // SAFETY: a valid key, without a value again in the end.
        unsafe { libc::pthread_setspecific(key, (&raw mut *begin).cast()) };
        locks::becomes_location(site, is_awaited);
        // SAFETY: as above.
        unsafe { libc::pthread_setspecific(key, ptr::null()) };
    }
    // SAFETY: the slot belongs to this thread.
    let is_no_location = unsafe { (*slot()).is_null() };
    locks::kept(|| {
        if let Some(sampler) = sampler() {
            spending(|| drop(sampler));
        }
        let unused = begin.number.filter(|_| is_no_location);
        unused.into_iter().for_each(thread::give_back);
    });
}
