//! Locks: who waits for one, and who gives it back then.
//!
//! Locks are taken millions of times a second, and hardly ever held by another thread. So a wrapper
//! tries to take it, which costs what taking it costs. If another thread has it, the wait becomes a
//! record, and the lock is noted as *awaited* while it lasts. Who gives back a lock that is awaited
//! gets a record, too. To look at the lock first would not do: threads that come at the same time
//! would all see it free. Robust mutexes alone are looked at: to try one that cannot be recovered
//! changes it. Of these, a wait of who comes at the same time may have no record.
//!
//! *Constraints.* Allocators have locks: nothing here takes memory where such a lock may be held.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use laggard_callpath::CallSite;
use laggard_trace::calls::number;
use laggard_trace::{OpenCall, Subject};

use super::admission::{is_beyond, waiter};
use super::left_out::is_left_out;
use super::team::Membership;
use super::{MISSED, Place, Waiter, What, births, early, is_paused, is_recorded, ompt};
use crate::call::{Call, guarded, uncancelled};
use crate::clock;
use crate::next::{Next, Target};
use crate::stream::Stream;
use crate::thread::{UNRECORDED, slot};

/// A mutex of the C library, as far as it is looked at: these words have been there since it has
/// futexes.
#[repr(C)]
struct Mutex {
    lock: AtomicI32,
    count: c_int,
    owner: AtomicI32,
    users: c_int,
    kind: AtomicI32,
}

/// A read-write lock of the C library, in the same way.
#[repr(C)]
struct ReadWriteLock {
    before: [u32; 6],
    /// The number in the kernel of the thread that holds it to write; 0: nobody does.
    writer: AtomicU32,
}

/// Bits of a mutex's kind that say what becomes of a thread that locks it again.
const KINDS: i32 = 3;
/// Bit of a mutex's kind: it is robust. Who tries one that cannot be recovered leaves a mark there, as if it had it.
const ROBUST: i32 = 16;
/// The part of a robust mutex's word that says who has it.
const HOLDER: i32 = 0x3fff_ffff;
impl Mutex {
    /// The number in the kernel of the thread that holds it; 0: nobody does.
    ///
    /// # Safety
    /// A mutex of the program.
    unsafe fn owner(mutex: *const Mutex) -> u32 {
        // SAFETY: as the caller states; each word is read as the C library writes it.
        unsafe { (*mutex).owner.load(Ordering::Relaxed) }.cast_unsigned()
    }

    /// Whether another thread holds it, if that has to be looked at: it is not to be tried.
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    unsafe fn is_held(mutex: *const Mutex) -> Option<bool> {
        // SAFETY: as the caller states.
        unsafe {
            let is_robust = (*mutex).kind.load(Ordering::Relaxed) & ROBUST != 0;
            is_robust.then(|| (*mutex).lock.load(Ordering::Relaxed) & HOLDER != 0)
        }
    }

    /// Whether the calling thread holds it, and may take it again or is told that it cannot. Of other kinds it waits
    /// for itself.
    ///
    /// # Safety
    /// As above.
    unsafe fn is_own(mutex: *const Mutex) -> bool {
        // SAFETY: as the caller states, and a system call without arguments.
        unsafe {
            let kind = (*mutex).kind.load(Ordering::Relaxed) & KINDS;
            let returns = [
                libc::PTHREAD_MUTEX_RECURSIVE,
                libc::PTHREAD_MUTEX_ERRORCHECK,
            ];
            returns.contains(&kind) && Mutex::owner(mutex) == libc::gettid().cast_unsigned()
        }
    }
}

/// Number of places for locks; those of a place count together, which costs a record at most.
const PLACES: usize = 1024;

/// Counters by the address of a lock.
struct Counts([AtomicU32; PLACES]);

impl Counts {
    const fn new() -> Counts {
        Counts([const { AtomicU32::new(0) }; PLACES])
    }

    #[inline(always)]
    fn of(&self, key: u64) -> &AtomicU32 {
        let hash = (key >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PLACES.ilog2());
        &self.0[hash as usize]
    }
}

/// How many threads wait for a lock: locations, and in the high half others, for what makes them none.
static AWAITED: Counts = Counts::new();
/// One of the latter.
const EARLY: u32 = 1 << 16;
/// How many locations wait.
static WAITING: AtomicU32 = AtomicU32::new(0);
/// How many hold or want a critical section, or a lock of a runtime that tells of itself.
static HELD: Counts = Counts::new();

/// The calling thread becomes a location, if that is safe. It is about to end, and that may be awaited.
pub fn becomes_location(site: CallSite, is_awaited: bool) {
    kept(|| {
        if let Some(waiter) = waiter(site, true) {
            waiter.membership().ends_alone = !is_awaited;
        }
    });
}

/// A wait for another thread.
#[derive(Clone, Copy)]
pub struct Wait {
    /// Without a thread if that is no location.
    waiter: Waiter,
    what: What,
    enter: u64,
}

/// What records say of a wait that nobody ended.
pub const ENDED_BY_NOBODY: u64 = 1;

impl Wait {
    /// Begins one, which may have a time limit. Where threads `become` locations by it, those that are none yet do.
    #[cold]
    pub fn begin(
        site: CallSite,
        place: Place,
        (number, key, has_limit): (u16, u64, bool),
        become_location: bool,
    ) -> Option<Wait> {
        let place = told(site, place)?;
        let wait = kept(|| {
            let waiter = waiter(site, become_location);
            if waiter.is_none() && become_location && is_beyond() {
                MISSED.waits.fetch_add(1, Ordering::Relaxed);
            }
            if waiter.is_none() && !become_location && early::is_kept() {
                births::begin()?.awaits(key);
                let thread = ptr::null_mut();
                return Some(Wait {
                    waiter: Waiter { thread, site },
                    what: what(place, number, key),
                    enter: clock::now(),
                });
            }
            let waiter = waiter?;
            let mut call = Call::over(waiter.thread, site, number, (0, 0));
            if !call.claim() {
                return None;
            }
            let path = place.path(call.stream());
            // It may never end.
            let enter = call
                .stream()
                .enters(number, path, &subject(number, key, has_limit));
            let wait = Wait {
                waiter,
                what: what(Place::Path(path), number, key),
                enter,
            };
            call.thread().membership.wait = Some(wait);
            call.release();
            awaits(key);
            WAITING.fetch_add(1, Ordering::Relaxed);
            Some(wait)
        });
        wait.flatten()
    }

    /// The wait is over.
    pub fn end(&self, parameter: u64) {
        let (What { number, key, .. }, site) = (self.what, self.waiter.site);
        if self.waiter.thread.is_null() {
            kept(|| {
                births::begin()?.awaits(0);
                early::keep(site, (number, key, parameter), self.enter);
                Some(())
            });
            return;
        }
        let leave = clock::now();
        awaits_no_more(key);
        self.write(parameter, leave);
    }

    /// The wait is over. Who gave the lock back may look later than this thread goes on whether somebody waits: so
    /// it counts as one that waits until it gives the lock back itself.
    fn end_and_hold(&self) {
        let leave = clock::now();
        let mut held = self.waiter.membership().held.iter_mut();
        match held.find(|held| **held == 0) {
            Some(held) => *held = self.what.key,
            None => awaits_no_more(self.what.key),
        }
        self.write(0, leave);
    }

    fn write(&self, parameter: u64, leave: u64) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
        self.waiter.membership().wait = None;
        let what = What {
            parameter,
            ..self.what
        };
        kept(|| {
            // SAFETY: the thread's own state, and a stream that is not in use.
            if let Some(stream) = unsafe { (*self.waiter.thread).stream.as_mut() } {
                stream.is_back();
            }
            self.waiter.record(&what, (self.enter, leave));
        });
    }

    /// The calling thread, a location, ends in it.
    pub fn is_left(&self) {
        awaits_no_more(self.what.key);
        births::joins_no_more(self.what.key);
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }

    /// The recording ends `now`, ticks, and the wait goes on. Another thread may say so: what this one used of the
    /// processor is not known.
    pub fn goes_on(&self, stream: &mut Stream, now: u64) {
        let what = What {
            parameter: ENDED_BY_NOBODY,
            ..self.what
        };
        what.write_of(stream, is_paused(), (self.enter, now.max(self.enter)));
    }
}

/// What is known of a wait at its begin: for which thread it is, of a lock who has it alone.
fn subject(number: u16, key: u64, has_limit: bool) -> Subject {
    let thread = match number {
        number::pthread_mutex_lock | number::mtx_lock => {
            let mutex = key as *const Mutex;
            // SAFETY: the calling thread is about to lock this mutex.
            unsafe { Mutex::owner(mutex) }.into()
        }
        number::pthread_rwlock_rdlock | number::pthread_rwlock_wrlock => {
            let lock = key as *const ReadWriteLock;
            // SAFETY: the same of this lock.
            unsafe { (*lock).writer.load(Ordering::Relaxed) }.into()
        }
        number::pthread_join | number::thrd_join => key,
        _ => 0,
    };
    Subject {
        flags: if thread == 0 { 0 } else { OpenCall::HAS_VALUE },
        value: thread,
        tag: has_limit.into(),
        ..Subject::NONE
    }
}

/// Whether a wait with these parameters has a time limit.
pub(super) const fn has_limit(parameters: &[&str]) -> bool {
    match parameters {
        [.., last] => matches!(last.as_bytes(), b"until"),
        [] => false,
    }
}

/// The place of a record; `None` if its caller is left out.
fn told(site: CallSite, place: Place) -> Option<Place> {
    match place {
        Place::Call(_) if is_left_out(site.ra) => None,
        place => Some(place),
    }
}

fn what(place: Place, number: u16, key: u64) -> What {
    What {
        number,
        place,
        parameter: 0,
        key,
    }
}

/// A thread begins to wait for a lock or a turn.
pub fn awaits(key: u64) {
    AWAITED.of(key).fetch_add(1, Ordering::Relaxed);
}

/// It does not wait any more.
pub fn awaits_no_more(key: u64) {
    AWAITED.of(key).fetch_sub(1, Ordering::Relaxed);
}

/// A thread that is no location begins to wait for a signal.
pub fn awaits_early(key: u64) {
    AWAITED.of(key).fetch_add(EARLY, Ordering::Relaxed);
}

/// It does not wait any more.
pub fn awaits_early_no_more(key: u64) {
    AWAITED.of(key).fetch_sub(EARLY, Ordering::Relaxed);
}

/// Whether a location waits for a lock.
#[inline(always)]
pub fn is_awaited(key: u64) -> bool {
    !AWAITED
        .of(key)
        .load(Ordering::Relaxed)
        .is_multiple_of(EARLY)
}

/// Whether any location waits.
pub fn is_any_waiting() -> bool {
    WAITING.load(Ordering::Relaxed) != 0
}

/// Whether any thread waits for a signal that may become a location.
#[inline(always)]
pub fn is_awaited_by_any(key: u64) -> bool {
    AWAITED.of(key).load(Ordering::Relaxed) != 0
}

/// Records that a lock was given back since `enter`, ticks. It is free by now: others do not wait
/// for this.
#[cold]
pub fn gave_back(site: CallSite, place: Place, number: u16, key: u64, enter: u64) {
    lets_go(site, place, (number, key), (enter, true));
}

/// The same of a signal. If only threads wait for it that are no locations, the calling one stays none, and it matters only
/// while a location waits.
pub fn lets_go(
    site: CallSite,
    place: Place,
    (number, key): (u16, u64),
    (enter, become_location): (u64, bool),
) {
    let leave = clock::now();
    let is_wanted = become_location || is_any_waiting();
    let Some(place) = told(site, place).filter(|_| is_wanted) else {
        return;
    };
    kept(|| match waiter(site, become_location) {
        Some(waiter) => {
            waiter.note_afterwards(&what(place, number, key), (enter, leave));
        }
        None if !become_location && early::is_kept() => early::keep(site, (number, key, 0), enter),
        None => {}
    });
}

/// A mutex is given back while the calling thread waits for something else, in a call with this number.
#[inline(always)]
pub fn gives_back(site: CallSite, wait: u16, key: u64) {
    if is_awaited(key) {
        let (place, now) = (Place::here(site), clock::now());
        let number = match wait {
            number::cnd_wait => number::mtx_unlock,
            _ => number::pthread_mutex_unlock,
        };
        gave_back(site, place, number, key, now);
    }
}

/// Runs `f` and leaves `errno` as it is. Meanwhile the thread is not cancelled.
pub(super) fn kept<T>(f: impl FnOnce() -> T) -> Option<T> {
    // SAFETY: the calling thread's own errno and setting.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let result = uncancelled(|| guarded(f));
        *errno = before;
        result
    }
}

type OfLock = unsafe extern "C-unwind" fn(*mut c_void) -> c_int;

/// Stands in for a function that the C library does not have.
unsafe extern "C-unwind" fn absent(_: *mut c_void) -> c_int {
    libc::ENOSYS
}

/// Functions that wait for a lock, with those that take it if nobody has it, what these return else; whether somebody
/// has it, where it is not to be tried; and whether the calling thread has it.
macro_rules! locks {
    ($($name:ident $number:ident $try:ident $busy:ident ($($p:ident: $t:ty),*)
        $is_held:expr, $is_own:expr;)*) => {
        /// The real functions.
        static LOCKS: &[[&Target; 2]] = &[$(
            {
                static TRY: Next<OfLock> = Next::new(concat!(stringify!($try), "\0"));
                type Real = unsafe extern "C-unwind" fn(*mut c_void, $($t),*) -> c_int;
                static NEXT: Next<Real> = Next::new(concat!(stringify!($name), "\0"));

                /// Stands in for a function that the C library does not have.
                unsafe extern "C-unwind" fn absent(_: *mut c_void, $(_: $t),*) -> c_int {
                    libc::ENOSYS
                }

                #[unsafe(no_mangle)]
                unsafe extern "C-unwind" fn $name(lock: *mut c_void, $($p: $t),*) -> c_int {
                    if is_recorded() $(&& $p.is_sound())* {
                        // SAFETY: the caller's lock.
                        match unsafe { $is_held(lock.cast()) } {
                            None => {
                                // SAFETY: as above.
                                let result = unsafe { TRY.get(super::locks::absent)(lock) };
                                return match result {
                                    // SAFETY: as above.
                                    $busy | libc::ENOSYS => unsafe { recorded(lock, $($p),*) },
                                    // It has it, or is refused as by the function that waits.
                                    _ => result,
                                };
                            }
                            // SAFETY: as above.
                            Some(true) => return unsafe { recorded(lock, $($p),*) },
                            Some(false) => {}
                        }
                    }
                    // SAFETY: passes the caller's arguments to the function it called.
                    unsafe { NEXT.get(absent)(lock, $($p),*) }
                }

                /// A function of its own, which the other one jumps to: that one needs no frame.
                #[inline(never)]
                unsafe extern "C-unwind" fn recorded(lock: *mut c_void, $($p: $t),*) -> c_int {
                    let site = laggard_callpath::call_site!();
                    // SAFETY: the caller's lock.
                    let wait = match unsafe { $is_own(lock.cast()) } {
                        true => None,
                        false => {
                            const HAS_LIMIT: bool = has_limit(&[$(stringify!($p)),*]);
                            let what = (number::$number, lock.addr() as u64, HAS_LIMIT);
                            Wait::begin(site, Place::here(site), what, true)
                        }
                    };
                    // SAFETY: as above.
                    let result = unsafe { NEXT.get(absent)(lock, $($p),*) };
                    if let Some(wait) = wait {
                        let is_over = super::signals::has_timed_out(result);
                        wait.end(if is_over { ENDED_BY_NOBODY } else { 0 });
                    }
                    result
                }
                [&NEXT.target, &TRY.target]
            },
        )*];
    };
}

/// Functions that give a lock back.
macro_rules! unlocks {
    ($($name:ident $number:ident;)*) => {
        /// The real functions.
        static UNLOCKS: &[&Target] = &[$(
            {
                static NEXT: Next<OfLock> = Next::new(concat!(stringify!($name), "\0"));

                #[unsafe(no_mangle)]
                unsafe extern "C-unwind" fn $name(lock: *mut c_void) -> c_int {
                    if is_recorded() && is_awaited(lock.addr() as u64) {
                        // SAFETY: the caller's lock.
                        return unsafe { recorded(lock) };
                    }
                    // SAFETY: passes the caller's argument to the function it called.
                    unsafe { NEXT.get(absent)(lock) }
                }

                /// See above.
                #[inline(never)]
                unsafe extern "C-unwind" fn recorded(lock: *mut c_void) -> c_int {
                    let site = laggard_callpath::call_site!();
                    let enter = clock::now();
                    // SAFETY: as above.
                    let result = unsafe { NEXT.get(absent)(lock) };
                    let (place, key) = (Place::here(site), lock.addr() as u64);
                    gave_back(site, place, number::$number, key, enter);
                    result
                }
                &NEXT.target
            },
        )*];
    };
}

/// A time limit of the C library.
type Until = *const libc::timespec;

/// Functions with a time limit may refuse one that makes no sense, even if the lock is free.
trait Limit {
    fn is_sound(&self) -> bool;
}

impl Limit for Until {
    fn is_sound(&self) -> bool {
        // SAFETY: the time limit of the caller, which the function reads, too.
        unsafe { self.as_ref() }.is_some_and(|until| (0..1_000_000_000).contains(&until.tv_nsec))
    }
}

/// A clock.
impl Limit for c_int {
    fn is_sound(&self) -> bool {
        [libc::CLOCK_REALTIME, libc::CLOCK_MONOTONIC].contains(self)
    }
}

/// What functions return that try to take a lock: those of POSIX, and of C11.
const BUSY: c_int = libc::EBUSY;
const THRD_BUSY: c_int = 1;

locks! {
    pthread_mutex_lock pthread_mutex_lock pthread_mutex_trylock BUSY () Mutex::is_held, Mutex::is_own;
    pthread_mutex_timedlock pthread_mutex_lock pthread_mutex_trylock BUSY (until: Until) Mutex::is_held, Mutex::is_own;
    pthread_mutex_clocklock pthread_mutex_lock pthread_mutex_trylock BUSY (clock: c_int, until: Until)
        Mutex::is_held, Mutex::is_own;
    mtx_lock mtx_lock mtx_trylock THRD_BUSY () Mutex::is_held, Mutex::is_own;
    mtx_timedlock mtx_lock mtx_trylock THRD_BUSY (until: Until) Mutex::is_held, Mutex::is_own;
    pthread_rwlock_rdlock pthread_rwlock_rdlock pthread_rwlock_tryrdlock BUSY () is_not_looked_at, is_never_own;
    pthread_rwlock_timedrdlock pthread_rwlock_rdlock pthread_rwlock_tryrdlock BUSY (until: Until)
        is_not_looked_at, is_never_own;
    pthread_rwlock_clockrdlock pthread_rwlock_rdlock pthread_rwlock_tryrdlock BUSY
        (clock: c_int, until: Until) is_not_looked_at, is_never_own;
    pthread_rwlock_wrlock pthread_rwlock_wrlock pthread_rwlock_trywrlock BUSY () is_not_looked_at, is_never_own;
    pthread_rwlock_timedwrlock pthread_rwlock_wrlock pthread_rwlock_trywrlock BUSY (until: Until)
        is_not_looked_at, is_never_own;
    pthread_rwlock_clockwrlock pthread_rwlock_wrlock pthread_rwlock_trywrlock BUSY
        (clock: c_int, until: Until) is_not_looked_at, is_never_own;
    pthread_spin_lock pthread_spin_lock pthread_spin_trylock BUSY () is_not_looked_at, is_never_own;
}

unlocks! {
    pthread_mutex_unlock pthread_mutex_unlock;
    mtx_unlock mtx_unlock;
    pthread_rwlock_unlock pthread_rwlock_unlock;
    pthread_spin_unlock pthread_spin_unlock;
}

/// These locks are tried.
#[inline(always)]
unsafe fn is_not_looked_at(_: *const c_void) -> Option<bool> {
    None
}

/// Nobody takes these locks twice.
unsafe fn is_never_own(_: *const c_void) -> bool {
    false
}

/// Runs when this library is loaded.
pub fn loaded() {
    crate::next::fill(LOCKS.as_flattened().iter().chain(UNLOCKS).copied());
}

/// Whether locks of OpenMP are looked at by their functions: a runtime may tell of itself.
#[inline(always)]
pub fn are_looked_at() -> bool {
    is_recorded() && !ompt::is_told()
}

/// Where a lock of GCC's OpenMP runtime is: the program has the lock itself, or in Fortran a nest lock's address.
///
/// # Safety
/// A lock of the program.
#[inline(always)]
unsafe fn place_of(lock: *mut c_void, is_address: bool) -> *mut c_void {
    match is_address {
        // SAFETY: as the caller states.
        true => unsafe { *lock.cast() },
        false => lock,
    }
}

/// The calling thread wants this lock, in a call with this number.
///
/// # Safety
/// A lock of the program.
pub unsafe fn wants_set(
    site: CallSite,
    number: u16,
    (lock, is_address): (*mut c_void, bool),
) -> Option<Wait> {
    // SAFETY: as the caller states.
    let key = unsafe { place_of(lock, is_address) }.addr() as u64;
    Wait::begin(site, Place::here(site), (number, key, false), true)
}

/// It gives a lock back by `unset`, in a call with this number. Others may have a nest lock when it has
/// done so as often as it took it.
///
/// # Safety
/// A lock of the program that the calling thread holds.
#[inline(always)]
pub unsafe fn unset(
    site: CallSite,
    number: u16,
    (lock, is_address): (*mut c_void, bool),
    unset: impl FnOnce(),
) {
    if !are_looked_at() {
        return unset();
    }
    // SAFETY: as the caller states. A nest lock's second word says how often its thread holds it, and that one alone
    // changes it.
    let (key, is_last) = unsafe {
        let lock = place_of(lock, is_address);
        let is_last = || (*lock.cast::<AtomicI32>().add(1)).load(Ordering::Relaxed) == 1;
        let key = lock.addr() as u64;
        let is_last = is_awaited(key) && (number != number::omp_unset_nest_lock || is_last());
        (key, is_last)
    };
    if !is_last {
        return unset();
    }
    let now = clock::now();
    unset();
    gave_back(site, Place::here(site), number, key, now);
}

/// Enters the critical section with this key. `enter` does so.
#[inline(always)]
pub fn enter_critical(site: CallSite, key: u64, enter: impl FnOnce()) {
    if !are_looked_at() {
        return enter();
    }
    let wait = wait_for(site, Place::here(site), (number::omp_critical, key), true);
    enter();
    if let Some(wait) = wait {
        wait.end(0);
    }
}

/// Leaves it.
#[inline(always)]
pub fn leave_critical(site: CallSite, key: u64, leave: impl FnOnce()) {
    if !are_looked_at() || !free(key) {
        return leave();
    }
    let now = clock::now();
    leave();
    gave_back(site, Place::here(site), number::omp_critical_end, key, now);
}

/// A wait for a critical section or a lock, if somebody has it or came before. Whether the calling thread `counts` as
/// one that came.
#[inline(always)]
fn wait_for(site: CallSite, place: Place, (number, key): (u16, u64), counts: bool) -> Option<Wait> {
    match HELD.of(key).fetch_add(counts.into(), Ordering::Relaxed) {
        0 => None,
        _ => Wait::begin(site, place, (number, key, false), true),
    }
}

/// Notes that a critical section is left. Returns whether others wait for it.
fn free(key: u64) -> bool {
    // One that was entered before the recording is not counted.
    let left = |count: u32| count.checked_sub(1);
    let _ = HELD
        .of(key)
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
    is_awaited(key)
}

/// What the calling thread is in its team, if it is a location.
fn membership() -> Option<&'static mut Membership> {
    // SAFETY: the slot belongs to this thread, and states live as long as their threads.
    unsafe {
        let thread = *slot();
        let is_location = !thread.is_null() && thread != UNRECORDED;
        is_location.then(|| &mut (*thread).membership)
    }
}

/// The calling thread wants a critical section or a lock, in a call that returns to `code`. A nest lock it may have.
pub fn wants(site: CallSite, what: (u16, u64), code: u64) {
    if !is_recorded() {
        return;
    }
    let own = membership();
    let counts = own.is_some() || what.0 != number::omp_set_nest_lock;
    if let Some(own) = own {
        own.wanted = (what.1, code);
    }
    wait_for(site, Place::before(site, code), what, counts);
}

/// A lock is taken that was not counted as it was wanted.
pub fn is_taken(key: u64) {
    if is_recorded() {
        HELD.of(key).fetch_add(1, Ordering::Relaxed);
    }
}

/// It has it.
pub fn has(key: u64) {
    let wait = membership().and_then(|own| own.wait);
    let wait = wait.filter(|wait| is_recorded() && wait.what.key == key);
    if let Some(wait) = wait {
        wait.end_and_hold();
    }
}

/// It has a nest lock that it had not.
pub fn has_nest(key: u64) {
    if !was_wanted(key) {
        is_taken(key);
    }
    has(key);
}

/// It had it before, and has it once more: it did not wait.
pub fn had(key: u64) {
    if was_wanted(key) {
        free(key);
    }
    let wait = membership().map(|own| &mut own.wait);
    let wait = wait.and_then(|wait| wait.take_if(|wait| wait.what.key == key));
    if wait.is_some() {
        WAITING.fetch_sub(1, Ordering::Relaxed);
        awaits_no_more(key);
    }
}

/// Whether the calling thread counts as one that wants a nest lock, as it does no more.
fn was_wanted(key: u64) -> bool {
    let wanted = membership().map(|own| &mut own.wanted);
    let wanted = wanted.filter(|wanted| wanted.0 == key);
    wanted.map(|wanted| *wanted = (0, 0)).is_some()
}

/// It has left it, or given it back, by a call that returns to `code`. LLVM's runtime tells that of critical sections
/// to first threads alone: the place is where they are entered, as it is in programs by GCC.
pub fn left(site: CallSite, (number, key): (u16, u64), mut code: u64) {
    if let Some(own) = membership() {
        let (wanted, entered) = own.wanted;
        if number == number::omp_critical_end && wanted == key {
            code = entered;
        }
        if let Some(held) = own.held.iter_mut().find(|held| **held == key) {
            *held = 0;
            awaits_no_more(key);
        }
    }
    if is_recorded() && free(key) {
        let place = Place::before(site, code);
        gave_back(site, place, number, key, clock::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words that are looked at are where the C library has them.
    #[test]
    fn mutexes_are_looked_at_in_the_right_place() {
        // SAFETY: a new mutex of this thread alone, and the attributes that it is made with.
        unsafe {
            let mut kind = std::mem::zeroed();
            libc::pthread_mutexattr_init(&mut kind);
            for of in [
                libc::PTHREAD_MUTEX_NORMAL,
                libc::PTHREAD_MUTEX_RECURSIVE,
                libc::PTHREAD_MUTEX_ERRORCHECK,
            ] {
                libc::pthread_mutexattr_settype(&mut kind, of);
                let mut mutex = std::mem::zeroed();
                libc::pthread_mutex_init(&mut mutex, &kind);
                let words = (&raw const mutex).cast::<Mutex>();
                assert_eq!(libc::pthread_mutex_lock(&mut mutex), 0);
                assert_eq!(Mutex::owner(words), libc::gettid().cast_unsigned());
                // Who takes one of the first kind again waits for itself.
                assert_eq!(Mutex::is_own(words), of != libc::PTHREAD_MUTEX_NORMAL);
                libc::pthread_mutex_unlock(&mut mutex);
                assert!(!Mutex::is_own(words));
                libc::pthread_mutex_destroy(&mut mutex);
            }
            libc::pthread_mutexattr_destroy(&mut kind);
        }
    }

    #[test]
    fn time_limits_that_the_c_library_may_refuse() {
        let is_sound = |tv_nsec| {
            let until = libc::timespec { tv_sec: 0, tv_nsec };
            Until::is_sound(&(&raw const until))
        };
        assert!(is_sound(0) && is_sound(999_999_999));
        assert!(!is_sound(-1) && !is_sound(1_000_000_000) && !Until::is_sound(&ptr::null()));
        assert!(libc::CLOCK_MONOTONIC.is_sound() && !libc::CLOCK_THREAD_CPUTIME_ID.is_sound());
    }

    #[test]
    fn critical_sections_that_nobody_entered_are_left_all_the_same() {
        let key = 0x1234_5678;
        assert!(!free(key));
        assert_eq!(HELD.of(key).load(Ordering::Relaxed), 0);
        AWAITED.of(key).fetch_add(1, Ordering::Relaxed);
        assert!(free(key));
        AWAITED.of(key).fetch_sub(1, Ordering::Relaxed);
    }
}
