//! Entry points for regions that programs mark, through `laggard.h` or `laggard.f90`, and for
//! functions that the compiler instruments.
//!
//! They do nothing while nothing is recorded, within another recorded call, or while the thread
//! is at its stream: a signal handler may be instrumented, too.

use std::ffi::{c_char, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use laggard_callpath::CallSite;
use laggard_trace::SymmetricAddress;
use laggard_trace::calls::user::REGION;

use crate::call::{Call, guarded};
use crate::clock;
use crate::run;
use crate::stream::{Frame, LONGEST_NAME, Moment, Variable};
use crate::symmetric;
use crate::thread::{STATE, UNRECORDED, slot, state};
use crate::windows;

/// Names of open regions that began before the recording.
static EARLY: Mutex<Vec<Box<[u8]>>> = Mutex::new(Vec::new());
/// Length of `EARLY`, at most [`MOST_EARLY`].
static EARLY_COUNT: AtomicUsize = AtomicUsize::new(0);
/// Most early regions kept. The end of any further one counts as an end without a begin.
const MOST_EARLY: usize = 1024;

/// Changes the early regions, unless the lock is taken: a signal handler or a forked child must
/// not wait for it.
fn early<T>(change: impl FnOnce(&mut Vec<Box<[u8]>>) -> T) -> Option<T> {
    let mut names = EARLY.try_lock().ok()?;
    let result = change(&mut names);
    EARLY_COUNT.store(names.len(), Ordering::Relaxed);
    Some(result)
}

/// Removes an early region that ends.
fn forget_early(name: &[u8]) {
    early(|names| {
        let position = names.iter().position(|known| **known == *name);
        position.map(|position| names.swap_remove(position));
    });
}

/// Begins a record at `site`.
#[inline(always)]
fn begin(site: CallSite) -> Option<(Call, u64)> {
    if STATE.load(Ordering::Relaxed) & state::RECORDING == 0 {
        return None;
    }
    let now = clock::now();
    // SAFETY: the slot belongs to this thread, and states live as long as their threads.
    unsafe {
        let thread = *slot();
        let is_known = !thread.is_null() && thread != UNRECORDED;
        if is_known && (*thread).busy.load(Ordering::Relaxed) {
            return None;
        }
    }
    let mut call = Call::begin(site, REGION)?;
    call.claim().then_some((call, now))
}

#[inline(always)]
fn at(call: &mut Call, now: u64) -> Moment {
    Moment {
        now,
        inside: call.thread().inside,
        is_paused: call.is_paused(),
        pauses: run::pauses(),
        frame: None,
    }
}

/// The name's first bytes; the rest is never read.
///
/// # Safety
/// Null or a C string that lasts as long as the call.
unsafe fn text<'n>(name: *const c_char) -> Option<&'n [u8]> {
    if name.is_null() {
        return None;
    }
    // SAFETY: as the caller states; all bytes up to the length found are there.
    unsafe {
        let length = libc::strnlen(name, LONGEST_NAME);
        Some(std::slice::from_raw_parts(name.cast(), length))
    }
}

/// The variable at `address`, if it is in known memory.
fn variable(address: usize) -> Variable {
    if address == 0 {
        return Variable::default();
    }
    let symmetric = SymmetricAddress(symmetric::address(address));
    let window = match symmetric.segment() {
        SymmetricAddress::UNKNOWN => windows::find(address),
        _ => None,
    };
    match window {
        None => Variable {
            address: symmetric.0,
            window: None,
        },
        Some((window, displacement)) => Variable {
            address: SymmetricAddress::new(SymmetricAddress::WINDOW, displacement).0,
            window: Some(window),
        },
    }
}

/// Begins a region. `address` is null, or the variable in symmetric or window memory that the
/// region waits for.
///
/// # Safety
/// The name is null or a C string.
#[unsafe(no_mangle)]
unsafe extern "C" fn laggard_collector_region_begin(name: *const c_char, address: *const c_void) {
    let site = laggard_callpath::call_site!();
    // SAFETY: as the caller states.
    let Some(name) = (unsafe { text(name) }) else {
        return;
    };
    if STATE.load(Ordering::Relaxed) == state::IDLE {
        if EARLY_COUNT.load(Ordering::Relaxed) < MOST_EARLY {
            guarded(|| early(|names| names.push(name.into())));
        }
        return;
    }
    let Some((mut call, now)) = begin(site) else {
        return;
    };
    call.guarded(|call| {
        let variable = variable(address.addr());
        let at = at(call, now);
        call.stream().begin_region(name, variable, site, at);
    });
    call.finish();
}

/// Ends a region.
///
/// # Safety
/// The name is null or a C string.
#[unsafe(no_mangle)]
unsafe extern "C" fn laggard_collector_region_end(name: *const c_char) {
    let site = laggard_callpath::call_site!();
    // SAFETY: as the caller states.
    let Some(name) = (unsafe { text(name) }) else {
        return;
    };
    if STATE.load(Ordering::Relaxed) == state::IDLE {
        if EARLY_COUNT.load(Ordering::Relaxed) > 0 {
            guarded(|| forget_early(name));
        }
        return;
    }
    let Some((mut call, now)) = begin(site) else {
        return;
    };
    call.guarded(|call| {
        let at = at(call, now);
        let begun_early = || early(|names| names.iter().position(|known| **known == *name));
        let position = match EARLY_COUNT.load(Ordering::Relaxed) {
            0 => None,
            _ => begun_early().flatten(),
        };
        let is_unbegun = call.stream().end_region(name, site, at, position.is_some());
        if is_unbegun && position.is_some() {
            forget_early(name);
        }
    });
    call.finish();
}

/// Begins a phase. It ends when the next one begins.
///
/// # Safety
/// The name is null or a C string.
#[unsafe(no_mangle)]
unsafe extern "C" fn laggard_collector_phase(name: *const c_char) {
    let site = laggard_callpath::call_site!();
    // SAFETY: as the caller states.
    let Some(name) = (unsafe { text(name) }) else {
        return;
    };
    let Some((mut call, now)) = begin(site) else {
        return;
    };
    call.guarded(|call| {
        let at = at(call, now);
        call.stream().phase(name, site, at);
    });
    call.finish();
}

/// Begins a phase within a call that has claimed its stream.
pub fn phase(call: &mut Call, name: &[u8]) {
    let (site, now) = (call.site, call.leave);
    let at = at(call, now);
    call.stream().phase(name, site, at);
}

/// Ends the phase that is under way: a call that has claimed its stream shuts the library down.
pub fn end_phase(call: &mut Call) {
    let now = match call.enter {
        0 => clock::now(),
        enter => enter,
    };
    let at = at(call, now);
    call.stream().end_phase(at);
}

/// Pauses the recording, or lets it go on.
#[unsafe(no_mangle)]
extern "C" fn laggard_collector_pause(is_paused: i32) {
    run::set_paused(is_paused != 0);
}

/// Records that a function is entered or left. Threads without a location do not get one for
/// it.
macro_rules! of_function {
    ($site:ident, $caller:ident, |$stream:ident, $at:ident| $does:expr) => {
        // SAFETY: the slot belongs to this thread.
        if STATE.load(Ordering::Relaxed) & state::RECORDING == 0 || unsafe { *slot() }.is_null() {
            return;
        }
        let Some((mut call, now)) = begin($site) else {
            return;
        };
        call.guarded(|call| {
            let mut $at = at(call, now);
            // Frames on another stack, such as a coroutine's, do not compare.
            $at.frame = call.thread().has_on_stack($site.sp).then_some(Frame {
                sp: $site.sp,
                caller: $caller.addr() as u64,
                told: $site.ra,
            });
            let $stream = call.stream();
            $does
        });
        call.finish();
    };
}

/// `-finstrument-functions` makes functions call this on entry.
#[unsafe(no_mangle)]
extern "C" fn __cyg_profile_func_enter(function: *const c_void, caller: *const c_void) {
    let site = laggard_callpath::call_site!();
    of_function!(site, caller, |stream, at| stream
        .enter_function(function.addr() as u64, at));
}

/// `-finstrument-functions` makes functions call this before they return.
#[unsafe(no_mangle)]
extern "C" fn __cyg_profile_func_exit(function: *const c_void, caller: *const c_void) {
    let site = laggard_callpath::call_site!();
    of_function!(site, caller, |stream, at| stream.leave_function(
        function.addr() as u64,
        site,
        at
    ));
}
