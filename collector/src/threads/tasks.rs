//! Tasks of OpenMP: which thread executes them, and who waits for them.
//!
//! In place of a task's function the runtime is given [`execute`], with a [`Header`] before the task's
//! data. A thread that executes tasks while it waits does not wait there: its wait counts from the
//! end of the last one. Where it waited long for a task to execute, that is a record of its own.
//!
//! Who waits for tasks (`taskwait`, the end of a `taskgroup`) waits for those that this task has made
//! itself. Whoever ends one of these meanwhile has a record with the same key. Tasks of tasks are not
//! told apart: a taskgroup that lasts for these has nobody to wait for. Who has GCC's runtime execute a loop as tasks
//! waits from when it begins to make them.

use std::ffi::{c_long, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use laggard_callpath::CallSite;
use laggard_trace::calls::number;

use super::team::Function;
use super::{Place, Waiter, What, ompt};
use crate::clock;
use crate::stream::Stream;

/// Shorter waits have no record, nor have the ends of tasks during them.
const LEAST: Duration = Duration::from_micros(20);

/// Copies a task's data, as the program does.
pub type Copy = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void);

/// Most bytes of a task's data, and their largest alignment: larger ones stay as they are.
const ROOM: usize = 512;
const ALIGNMENT: usize = 64;

/// Flags of tasks: it waits for others that it depends on; a loop that does not wait for its tasks.
const DEPEND: u32 = 1 << 3;
const NO_GROUP: u32 = 1 << 11;
/// Flags of tasks into whose data the runtime itself looks.
const REDUCTION: u32 = 1 << 12;
const DETACH: u32 = 1 << 13;

/// What stands before the data of a task.
#[repr(C)]
struct Header {
    /// Of a loop, the runtime puts the bounds of the task's part here.
    bounds: [c_long; 2],
    is_loop: bool,
    function: Function,
    /// The task that made this one.
    parent: u64,
    /// Where the program's data are, until they are copied, and how.
    data: *mut c_void,
    copy: Option<Copy>,
    /// Bytes from the header to the data.
    offset: usize,
    /// The call that waits for what the task depends on, and then executes it.
    waits: Option<CallSite>,
}

/// A header with data.
#[repr(C, align(64))]
struct Block {
    header: Header,
    data: [MaybeUninit<u8>; ROOM],
}

/// A task that the program makes: as it is passed on to the runtime.
pub struct Made {
    pub function: Function,
    pub data: *mut c_void,
    pub copy: Option<Copy>,
    pub size: c_long,
    pub align: c_long,
}

/// What a program makes: a task that others may execute, or not (`if` of the construct), or the tasks of a loop.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Deferred,
    Undeferred,
    Loop,
}

/// Passes a task on, with `execute` in place of its function where that can be.
#[inline(always)]
pub unsafe fn make<T>(
    site: CallSite,
    made: Made,
    (flags, kind): (u32, Kind),
    run: impl FnOnce(&Made) -> T,
) -> T {
    let waiter = Waiter::begin(site).filter(|waiter| waiter.membership().is_in_team());
    let Some(waiter) = waiter.filter(|_| !ompt::is_told()) else {
        return run(&made);
    };
    let fits = made.size >= 0 && made.size as usize <= ROOM - ALIGNMENT;
    let is_plain = flags & (REDUCTION | DETACH) == 0;
    let align = made.align.max(1) as usize;
    let known = align <= ALIGNMENT && align.is_power_of_two();
    let is_replaced = fits && is_plain && known;
    let waits = match kind {
        // Tasks as the program made them do not say when it executes one.
        _ if !is_replaced => false,
        Kind::Loop => flags & NO_GROUP == 0,
        Kind::Undeferred => flags & DEPEND != 0,
        Kind::Deferred => false,
    };
    let task = waiter.membership().task();
    if waits {
        begins_to_wait(&waiter, task);
    }
    let result = match is_replaced {
        // SAFETY: as the caller says.
        true => unsafe { pass_on(&waiter, made, (kind, waits), run) },
        false => run(&made),
    };
    match kind {
        _ if !waits => {}
        Kind::Loop => waits_no_more(&waiter, task, number::omp_taskgroup_end, Place::here(site)),
        // Of a region that is cancelled it was not executed.
        _ => {
            Waiting::note(task, u64::MAX);
            waiter.membership().wait_since(0);
        }
    }
    result
}

/// Apart, so that who is not recorded has no block on its stack: tasks may nest deeply.
#[inline(never)]
unsafe fn pass_on<T>(
    waiter: &Waiter,
    made: Made,
    (kind, waits): (Kind, bool),
    run: impl FnOnce(&Made) -> T,
) -> T {
    let align = made.align.max(1) as usize;
    let offset = size_of::<Header>().next_multiple_of(align);
    let mut block = Block {
        header: Header {
            bounds: [0; 2],
            is_loop: kind == Kind::Loop,
            function: made.function,
            parent: waiter.membership().task(),
            data: made.data,
            copy: made.copy,
            offset,
            waits: Some(waiter.site).filter(|_| waits && kind == Kind::Undeferred),
        },
        data: [const { MaybeUninit::uninit() }; ROOM],
    };
    let whole = (&raw mut block).cast::<c_void>();
    if made.copy.is_none() {
        // SAFETY: the program's data of this size, and a block with room for them behind the header.
        unsafe {
            ptr::copy_nonoverlapping(
                made.data.cast::<u8>(),
                whole.byte_add(offset).cast(),
                made.size as usize,
            )
        };
    }
    run(&Made {
        function: execute,
        data: whole,
        copy: made.copy.map(|_| copy as Copy),
        size: offset as c_long + made.size,
        align: align.max(align_of::<Header>()) as c_long,
    })
}

/// Copies header and data, as the program does.
unsafe extern "C-unwind" fn copy(to: *mut c_void, from: *mut c_void) {
    // SAFETY: the runtime copies a block of ours into its own room for it.
    unsafe {
        let header = from.cast::<Header>().read();
        let (copy, data) = (header.copy, header.data);
        let target = to.byte_add(header.offset);
        to.cast::<Header>().write(header);
        if let Some(copy) = copy {
            copy(target, data);
        }
    }
}

/// Stands in for the function of a task.
unsafe extern "C-unwind" fn execute(block: *mut c_void) {
    let site = laggard_callpath::call_site!();
    // SAFETY: the runtime gives the block, or a copy. Of a loop, the bounds are the first of the data.
    unsafe {
        let header = block.cast::<Header>().read();
        let data = block.byte_add(header.offset);
        if header.is_loop {
            data.cast::<[c_long; 2]>().write(header.bounds);
        }
        let Some(waiter) = Waiter::begin(site) else {
            return (header.function)(data);
        };
        let place = header.function as usize as u64;
        if let Some(made) = header.waits {
            waits_no_more(
                &waiter,
                header.parent,
                number::omp_taskwait,
                Place::here(made),
            );
        }
        let own = 0u8;
        let token = (&raw const own).addr() as u64;
        let before = begins(&waiter, token, place);
        (header.function)(data);
        ends(&waiter, (header.parent, before), place);
    }
}

/// The thread begins to execute a task; returns the one it was in. `place` is in the task's code.
fn begins(waiter: &Waiter, task: u64, place: u64) -> u64 {
    let since = waiter.membership().waits();
    // SAFETY: the thread's own state, and a stream that is not in use.
    let left = unsafe { (*waiter.thread).stream.as_ref() }.map_or(0, Stream::left);
    if since != 0 {
        let now = clock::now();
        if now.saturating_sub(since.max(left)) >= clock::ticks(LEAST) {
            let what = What {
                number: number::omp_task_idle,
                place: Place::Code(place),
                parameter: 0,
                key: 0,
            };
            waiter.record(&what, (since, now));
        }
    }
    let membership = waiter.membership();
    membership.begin_task();
    std::mem::replace(&mut membership.current, task)
}

/// The thread has executed a task that this `parent` made, and is in the one `before` again.
fn ends(waiter: &Waiter, (parent, before): (u64, u64), place: u64) {
    let mut call = crate::call::Call::over(waiter.thread, waiter.site, 0, (0, 0));
    let mut now = clock::now();
    if call.claim() {
        now = call.stream().goes_on();
        call.release();
    }
    let membership = waiter.membership();
    membership.end_task();
    membership.current = before;
    // Who executes its own tasks while it waits for them does not wait for itself.
    if membership.task() != parent && Waiting::is_long(parent, now) {
        let what = What {
            number: number::omp_task_end,
            place: Place::Code(place),
            parameter: 0,
            key: parent,
        };
        waiter.note(&what, (now, now));
    }
}

/// Waits for tasks that the current one has made: `wait` waits there.
#[inline(always)]
pub fn wait(site: CallSite, number: u16, wait: impl FnOnce()) {
    let waiter = Waiter::begin(site).filter(|waiter| waiter.membership().is_in_team());
    let Some(waiter) = waiter.filter(|_| !ompt::is_told()) else {
        return wait();
    };
    let task = waiter.membership().task();
    begins_to_wait(&waiter, task);
    wait();
    waits_no_more(&waiter, task, number, Place::here(site));
}

fn begins_to_wait(waiter: &Waiter, task: u64) {
    let since = waiter.enter(|_, _| ());
    waiter.membership().wait_since(since);
    Waiting::note(task, since);
}

fn waits_no_more(waiter: &Waiter, task: u64, number: u16, place: Place) {
    let leave = clock::now();
    Waiting::note(task, u64::MAX);
    let membership = waiter.membership();
    let since = membership.waits();
    membership.wait_since(0);
    // SAFETY: the thread's own state, and a stream that is not in use.
    let left = unsafe { (*waiter.thread).stream.as_ref() }.map_or(0, Stream::left);
    if since != 0 && leave.saturating_sub(since.max(left)) >= clock::ticks(LEAST) {
        let what = What {
            number,
            place,
            parameter: 0,
            key: task,
        };
        waiter.record(&what, (since, leave));
    }
}

/// A task that waits for those that it has made, and since when, ticks; `u64::MAX` = not any more. A
/// place for each, by its address. Where two share one, the ends of tasks of the first are not told.
struct Waiting {
    since: AtomicU64,
    check: AtomicU64,
}

static WAITING: [Waiting; 256] = [const {
    Waiting {
        since: AtomicU64::new(u64::MAX),
        check: AtomicU64::new(0),
    }
}; 256];

impl Waiting {
    fn of(task: u64) -> &'static Waiting {
        // Addresses of tasks differ in higher bits.
        let mixed = task.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        &WAITING[mixed as usize]
    }

    fn note(task: u64, since: u64) {
        let waiting = Waiting::of(task);
        waiting.since.store(since, Ordering::Relaxed);
        waiting.check.store(since ^ task, Ordering::Release);
    }

    /// Whether a task has waited for long now.
    fn is_long(task: u64, now: u64) -> bool {
        let waiting = Waiting::of(task);
        let check = waiting.check.load(Ordering::Acquire);
        let since = waiting.since.load(Ordering::Relaxed);
        check == since ^ task
            && since != u64::MAX
            && now.saturating_sub(since) >= clock::ticks(LEAST)
    }
}

/// The same as runtimes with a tools interface tell it. Tasks are known by the address of the runtime's data
/// of them; waits have copies of these, so that the thread's current task tells whose they are.
pub mod told {
    use super::{CallSite, Place, Waiter, begins_to_wait, waits_no_more};

    fn in_team(site: CallSite) -> Option<Waiter> {
        Waiter::goes_on(site).filter(|waiter| waiter.membership().is_in_team())
    }

    /// What is known of a task: which one made it, and in what code.
    pub struct Known {
        pub parent: u64,
        pub code: u64,
    }

    /// The calling thread makes a task in this code; `None` if it is not looked at.
    pub fn makes(site: CallSite, code: u64) -> Option<Known> {
        in_team(site).map(|waiter| Known {
            parent: waiter.membership().task(),
            code,
        })
    }

    /// The calling thread waits for what a task depends on, in a call that returns to `code`. Meanwhile it may execute
    /// tasks that do so, too.
    pub fn begins_to_depend(site: CallSite, code: u64) {
        if let Some(waiter) = in_team(site) {
            begins_to_wait(&waiter, waiter.membership().task());
            waiter.membership().depends = code;
        }
    }

    /// Its wait is over.
    pub fn depends_no_more(site: CallSite, number: u16) {
        let code = in_team(site).map(|waiter| std::mem::take(&mut waiter.membership().depends));
        if let Some(code) = code.filter(|code| *code != 0) {
            ends_wait(site, number, code);
        }
    }

    /// The calling thread begins to execute a task.
    pub fn begins(site: CallSite, task: u64, known: &Known) {
        if let Some(waiter) = Waiter::goes_on(site) {
            super::begins(&waiter, task, known.code);
        }
    }

    /// It has executed one, and goes on with `next`; 0 = its part in the region.
    pub fn ends(site: CallSite, known: &Known, next: u64) {
        if let Some(waiter) = Waiter::goes_on(site) {
            super::ends(&waiter, (known.parent, next), known.code);
        }
    }

    /// The calling thread's task waits for those that it made.
    pub fn begins_wait(site: CallSite) {
        if let Some(waiter) = in_team(site) {
            begins_to_wait(&waiter, waiter.membership().task());
        }
    }

    /// Its wait is over, in a call that returns to `code`.
    pub fn ends_wait(site: CallSite, number: u16, code: u64) {
        if let Some(waiter) = in_team(site) {
            let (task, place) = (waiter.membership().task(), Place::before(site, code));
            waits_no_more(&waiter, task, number, place);
        }
    }
}

const _: () = assert!(!std::mem::needs_drop::<Header>() && !std::mem::needs_drop::<Block>());
