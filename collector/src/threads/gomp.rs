//! Entry points of GCC's OpenMP runtime, which LLVM's has for programs of GCC, too.

use std::ffi::{c_int, c_long, c_uint, c_ulong, c_void};

use laggard_trace::calls::number;

use super::locks::{are_looked_at, enter_critical, leave_critical, unset, wants_set};
use super::ordered;
use super::tasks::{self, Kind, Made};
use super::team::{Function, barrier, barrier_if, fork};
use crate::resolve::Slot;

/// File name prefixes of OpenMP runtimes.
const RUNTIMES: &[&str] = &["libgomp", "libomp", "libiomp"];

/// What the runtime tells.
pub mod runtime {
    use super::{RUNTIMES, Slot, c_int};

    type Ask = unsafe extern "C" fn() -> c_int;

    static THREADS: Slot<Ask> = Slot::within("omp_get_num_threads\0", RUNTIMES);
    static NUMBER: Slot<Ask> = Slot::within("omp_get_thread_num\0", RUNTIMES);
    static MOST: Slot<Ask> = Slot::within("omp_get_max_threads\0", RUNTIMES);
    static MOST_LEVELS: Slot<Ask> = Slot::within("omp_get_max_active_levels\0", RUNTIMES);

    /// Where the runtime is that programs of GCC call.
    pub fn address() -> *const super::c_void {
        THREADS.get() as *const super::c_void
    }

    /// Number of threads in the calling thread's team.
    pub fn threads() -> u32 {
        // SAFETY: a function of the runtime that runs this thread.
        unsafe { THREADS.get()() as u32 }
    }

    /// Whether a team that the calling thread forks has no other thread: the program wants so many, 0 = as many as usual,
    /// and the thread is in a team of several or not.
    pub fn forks_alone(wanted: u32, is_in_team: bool) -> bool {
        // SAFETY: as above.
        let ask = |slot: &Slot<Ask>| unsafe { slot.get()() };
        let is_one = || match wanted {
            0 => ask(&MOST) == 1,
            wanted => wanted == 1,
        };
        is_one() || is_in_team && ask(&MOST_LEVELS) == 1
    }

    /// Number of the calling thread in its team.
    pub fn number() -> u32 {
        // SAFETY: as above.
        unsafe { NUMBER.get()() as u32 }
    }
}

/// What the runtime is given in place of the data of a region.
#[repr(C)]
pub struct Part {
    /// Where the runtime finds the data's reductions itself: they begin with their address.
    reductions: usize,
    /// The region, and its data.
    pub function: Function,
    pub data: *mut c_void,
}

/// Functions that fork a team.
macro_rules! forks {
    ($($name:ident ($threads:ident: $of:ty $(, $p:ident: $t:ty)*);)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(
            function: Function,
            data: *mut c_void,
            $threads: $of,
            $($p: $t),*
        ) {
            type Real = unsafe extern "C-unwind" fn(Function, *mut c_void, $of, $($t),*);
            static NEXT: Slot<Real> = Slot::within(concat!(stringify!($name), "\0"), RUNTIMES);
            let site = laggard_callpath::call_site!();
            // SAFETY: passes the caller's arguments to the function it called, and one in place
            // of the region's that calls that.
            unsafe {
                fork(site, Part { reductions: 0, function, data }, $threads, |function, data| {
                    NEXT.get()(function, data, $threads, $($p),*);
                });
            }
        }
    )*};
}

forks! {
    GOMP_parallel(threads: c_uint, flags: c_uint);
    GOMP_parallel_loop_static(
        threads: c_uint, start: c_long, end: c_long, step: c_long, chunk: c_long, flags: c_uint);
    GOMP_parallel_loop_dynamic(
        threads: c_uint, start: c_long, end: c_long, step: c_long, chunk: c_long, flags: c_uint);
    GOMP_parallel_loop_guided(
        threads: c_uint, start: c_long, end: c_long, step: c_long, chunk: c_long, flags: c_uint);
    GOMP_parallel_loop_nonmonotonic_dynamic(
        threads: c_uint, start: c_long, end: c_long, step: c_long, chunk: c_long, flags: c_uint);
    GOMP_parallel_loop_nonmonotonic_guided(
        threads: c_uint, start: c_long, end: c_long, step: c_long, chunk: c_long, flags: c_uint);
    GOMP_parallel_loop_runtime(
        threads: c_uint, start: c_long, end: c_long, step: c_long, flags: c_uint);
    GOMP_parallel_loop_nonmonotonic_runtime(
        threads: c_uint, start: c_long, end: c_long, step: c_long, flags: c_uint);
    GOMP_parallel_loop_maybe_nonmonotonic_runtime(
        threads: c_uint, start: c_long, end: c_long, step: c_long, flags: c_uint);
    GOMP_parallel_sections(threads: c_uint, count: c_uint, flags: c_uint);
}

/// The same where tasks take part in the region's reductions.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn GOMP_parallel_reductions(
    function: Function,
    data: *mut c_void,
    threads: c_uint,
    flags: c_uint,
) -> c_uint {
    type Real = unsafe extern "C-unwind" fn(Function, *mut c_void, c_uint, c_uint) -> c_uint;
    static NEXT: Slot<Real> = Slot::within("GOMP_parallel_reductions\0", RUNTIMES);
    let site = laggard_callpath::call_site!();
    // SAFETY: as above; the data begin with the address of the reductions.
    unsafe {
        let reductions = *data.cast::<usize>();
        let part = Part {
            reductions,
            function,
            data,
        };
        fork(site, part, threads, |function, data| {
            NEXT.get()(function, data, threads, flags)
        })
    }
}

/// Functions in which the team meets.
macro_rules! barriers {
    ($($name:ident $number:ident -> $r:ty;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name() -> $r {
            static NEXT: Slot<unsafe extern "C-unwind" fn() -> $r> =
                Slot::within(concat!(stringify!($name), "\0"), RUNTIMES);
            let site = laggard_callpath::call_site!();
            // SAFETY: the function that the caller called.
            barrier(site, number::$number, || unsafe { NEXT.get()() })
        }
    )*};
}

barriers! {
    GOMP_barrier omp_barrier -> ();
    GOMP_barrier_cancel omp_barrier -> bool;
    GOMP_loop_end omp_loop_end -> ();
    GOMP_loop_end_cancel omp_loop_end -> bool;
    GOMP_sections_end omp_sections_end -> ();
    GOMP_sections_end_cancel omp_sections_end -> bool;
}

/// `single` with `copyprivate`: the thread that executes it gets no address, and goes to the other call.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn GOMP_single_copy_start() -> *mut c_void {
    static NEXT: Slot<unsafe extern "C-unwind" fn() -> *mut c_void> =
        Slot::within("GOMP_single_copy_start\0", RUNTIMES);
    let site = laggard_callpath::call_site!();
    // SAFETY: the function that the caller called.
    let wait = || unsafe { NEXT.get()() };
    barrier_if(site, number::omp_barrier, wait, |data| !data.is_null())
}

/// See above: the others wait for this.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn GOMP_single_copy_end(data: *mut c_void) {
    static NEXT: Slot<unsafe extern "C-unwind" fn(*mut c_void)> =
        Slot::within("GOMP_single_copy_end\0", RUNTIMES);
    let site = laggard_callpath::call_site!();
    // SAFETY: passes the caller's argument to the function it called.
    barrier(site, number::omp_barrier, || unsafe { NEXT.get()(data) });
}

/// The end of a loop or of sections with reductions of tasks, unless the region was cancelled.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn GOMP_workshare_task_reduction_unregister(cancelled: bool) {
    static NEXT: Slot<unsafe extern "C-unwind" fn(bool)> =
        Slot::within("GOMP_workshare_task_reduction_unregister\0", RUNTIMES);
    let site = laggard_callpath::call_site!();
    // SAFETY: passes the caller's argument to the function it called.
    let wait = || unsafe { NEXT.get()(cancelled) };
    barrier_if(site, number::omp_loop_end, wait, |_| !cancelled);
}

/// A task. Runtimes before the program's have fewer arguments, and do not look at the others.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn GOMP_task(
    function: Function,
    data: *mut c_void,
    copy: Option<tasks::Copy>,
    size: c_long,
    align: c_long,
    if_clause: bool,
    flags: c_uint,
    depend: *mut c_void,
    priority: c_int,
    detach: *mut c_void,
) {
    type Real = unsafe extern "C-unwind" fn(
        Function,
        *mut c_void,
        Option<tasks::Copy>,
        c_long,
        c_long,
        bool,
        c_uint,
        *mut c_void,
        c_int,
        *mut c_void,
    );
    static NEXT: Slot<Real> = Slot::within("GOMP_task\0", RUNTIMES);
    let made = Made {
        function,
        data,
        copy,
        size,
        align,
    };
    // SAFETY: passes the caller's arguments to the function it called, and a task in place of the
    // program's that executes that.
    unsafe {
        tasks::make(
            laggard_callpath::call_site!(),
            made,
            (
                flags,
                if if_clause {
                    Kind::Deferred
                } else {
                    Kind::Undeferred
                },
            ),
            |made| {
                NEXT.get()(
                    made.function,
                    made.data,
                    made.copy,
                    made.size,
                    made.align,
                    if_clause,
                    flags,
                    depend,
                    priority,
                    detach,
                );
            },
        );
    }
}

/// Loops whose parts are tasks.
macro_rules! taskloops {
    ($($name:ident $bound:ty;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(
            function: Function,
            data: *mut c_void,
            copy: Option<tasks::Copy>,
            size: c_long,
            align: c_long,
            flags: c_uint,
            count: c_ulong,
            priority: c_int,
            start: $bound,
            end: $bound,
            step: $bound,
        ) {
            type Real = unsafe extern "C-unwind" fn(
                Function,
                *mut c_void,
                Option<tasks::Copy>,
                c_long,
                c_long,
                c_uint,
                c_ulong,
                c_int,
                $bound,
                $bound,
                $bound,
            );
            static NEXT: Slot<Real> = Slot::within(concat!(stringify!($name), "\0"), RUNTIMES);
            let made = Made { function, data, copy, size, align };
            // SAFETY: as above.
            unsafe {
                tasks::make(laggard_callpath::call_site!(), made, (flags, Kind::Loop), |made| {
                    NEXT.get()(
                        made.function, made.data, made.copy, made.size, made.align, flags, count,
                        priority, start, end, step,
                    );
                });
            }
        }
    )*};
}

taskloops! {
    GOMP_taskloop c_long;
    GOMP_taskloop_ull u64;
}

/// Functions that wait for tasks.
macro_rules! task_waits {
    ($($name:ident ($($p:ident: $t:ty)?) $number:ident;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name($($p: $t)?) {
            static NEXT: Slot<unsafe extern "C-unwind" fn($($t)?)> =
                Slot::within(concat!(stringify!($name), "\0"), RUNTIMES);
            let site = laggard_callpath::call_site!();
            // SAFETY: passes the caller's argument to the function it called.
            tasks::wait(site, number::$number, || unsafe { NEXT.get()($($p)?) });
        }
    )*};
}

task_waits! {
    GOMP_taskwait () omp_taskwait;
    GOMP_taskwait_depend (depend: *mut *mut c_void) omp_taskwait;
    GOMP_taskgroup_end () omp_taskgroup_end;
}

/// Critical sections without a name, and with one: those are told by a variable of the program.
macro_rules! critical {
    ($($does:ident $name:ident ($($variable:ident)?);)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name($($variable: *mut c_void)?) {
            static NEXT: Slot<unsafe extern "C-unwind" fn($(critical!(type $variable))?)> =
                Slot::within(concat!(stringify!($name), "\0"), RUNTIMES);
            let site = laggard_callpath::call_site!();
            let key = critical!(key $($variable)?);
            // SAFETY: passes the caller's argument to the function it called.
            $does(site, key, || unsafe { NEXT.get()($($variable)?) });
        }
    )*};
    (type $variable:ident) => { *mut c_void };
    (key $variable:ident) => { $variable.addr() as u64 };
    // No lock is there.
    (key) => { 1 };
}

critical! {
    enter_critical GOMP_critical_start();
    leave_critical GOMP_critical_end();
    enter_critical GOMP_critical_name_start(variable);
    leave_critical GOMP_critical_name_end(variable);
}

/// Locks, and the same for Fortran. Who has a nest lock takes it once more by `test`, as who finds a lock free.
/// `is_address`: the program has the lock's address.
macro_rules! locks {
    ($($set:ident $unset:ident $number:ident $unset_number:ident $is_address:literal $test:ident;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $set(lock: *mut c_void) {
            static NEXT: Slot<unsafe extern "C-unwind" fn(*mut c_void)> =
                Slot::within(concat!(stringify!($set), "\0"), RUNTIMES);
            static TEST: Slot<unsafe extern "C-unwind" fn(*mut c_void) -> c_int> =
                Slot::within(concat!(stringify!($test), "\0"), RUNTIMES);
            if are_looked_at() {
                // SAFETY: the caller's lock.
                return match unsafe { TEST.get()(lock) } {
                    // SAFETY: as above.
                    0 => unsafe { recorded(lock) },
                    _ => {}
                };
            }

            /// A function of its own, which the other one jumps to: that one needs no frame, and a
            /// runtime that tells of itself sees its caller.
            #[inline(never)]
            unsafe extern "C-unwind" fn recorded(lock: *mut c_void) {
                let site = laggard_callpath::call_site!();
                // SAFETY: as above.
                let wait = unsafe { wants_set(site, number::$number, (lock, $is_address)) };
                // SAFETY: as above.
                unsafe { NEXT.get()(lock) };
                if let Some(wait) = wait {
                    wait.end(0);
                }
            }
            // SAFETY: passes the caller's argument to the function it called.
            unsafe { NEXT.get()(lock) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $unset(lock: *mut c_void) {
            static NEXT: Slot<unsafe extern "C-unwind" fn(*mut c_void)> =
                Slot::within(concat!(stringify!($unset), "\0"), RUNTIMES);
            let site = laggard_callpath::call_site!();
            // SAFETY: as above; the caller holds it.
            unsafe {
                unset(site, number::$unset_number, (lock, $is_address), || NEXT.get()(lock));
            }
        }
    )*};
}

locks! {
    omp_set_lock omp_unset_lock omp_set_lock omp_unset_lock false omp_test_lock;
    omp_set_lock_ omp_unset_lock_ omp_set_lock omp_unset_lock false omp_test_lock_;
    omp_set_nest_lock omp_unset_nest_lock omp_set_nest_lock omp_unset_nest_lock false omp_test_nest_lock;
    omp_set_nest_lock_ omp_unset_nest_lock_ omp_set_nest_lock omp_unset_nest_lock true omp_test_nest_lock_;
}

/// Ordered regions begin.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn GOMP_ordered_start() {
    static NEXT: Slot<unsafe extern "C-unwind" fn()> =
        Slot::within("GOMP_ordered_start\0", RUNTIMES);
    // To find it is no waiting.
    let next = NEXT.get();
    // SAFETY: the function that the caller called.
    ordered::begin(laggard_callpath::call_site!(), || unsafe { next() });
}

/// The next part of an ordered loop, for which the runtime passes the turn on.
macro_rules! ordered_loops {
    ($($name:ident $bound:ty;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(start: *mut $bound, end: *mut $bound) -> bool {
            static NEXT: Slot<unsafe extern "C-unwind" fn(*mut $bound, *mut $bound) -> bool> =
                Slot::within(concat!(stringify!($name), "\0"), RUNTIMES);
            let site = laggard_callpath::call_site!();
            // SAFETY: passes the caller's arguments to the function it called.
            ordered::next(site, || unsafe { NEXT.get()(start, end) })
        }
    )*};
}

ordered_loops! {
    GOMP_loop_ordered_static_next c_long;
    GOMP_loop_ordered_dynamic_next c_long;
    GOMP_loop_ordered_guided_next c_long;
    GOMP_loop_ordered_runtime_next c_long;
    GOMP_loop_ull_ordered_static_next u64;
    GOMP_loop_ull_ordered_dynamic_next u64;
    GOMP_loop_ull_ordered_guided_next u64;
    GOMP_loop_ull_ordered_runtime_next u64;
}

/// Iterations that depend on others: waits for one, by its numbers in the loops around it. There are as many arguments
/// as loops; whatever is on the stack is passed on.
macro_rules! sinks {
    ($($name:ident $bound:ty;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(
            first: $bound,
            a: $bound, b: $bound, c: $bound, d: $bound, e: $bound, f: $bound, g: $bound, h: $bound,
            i: $bound, j: $bound, k: $bound, l: $bound, m: $bound, n: $bound, o: $bound, p: $bound,
        ) {
            type Real = unsafe extern "C-unwind" fn(
                $bound,
                $bound, $bound, $bound, $bound, $bound, $bound, $bound, $bound,
                $bound, $bound, $bound, $bound, $bound, $bound, $bound, $bound,
            );
            static NEXT: Slot<Real> = Slot::within(concat!(stringify!($name), "\0"), RUNTIMES);
            let (site, next) = (laggard_callpath::call_site!(), NEXT.get());
            // SAFETY: passes the caller's arguments to the function it called.
            let wait = || unsafe { next(first, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) };
            ordered::sink(site, first as u64, wait);
        }
    )*};
}

sinks! {
    GOMP_doacross_wait c_long;
    GOMP_doacross_ull_wait u64;
}

/// Says that an iteration is done, by its numbers.
macro_rules! sources {
    ($($name:ident $bound:ty;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(numbers: *const $bound) {
            static NEXT: Slot<unsafe extern "C-unwind" fn(*const $bound)> =
                Slot::within(concat!(stringify!($name), "\0"), RUNTIMES);
            let site = laggard_callpath::call_site!();
            // SAFETY: the caller's numbers, at least one, which are passed to the function it called.
            unsafe { ordered::source(site, *numbers as u64, || NEXT.get()(numbers)) };
        }
    )*};
}

sources! {
    GOMP_doacross_post c_long;
    GOMP_doacross_ull_post u64;
}

/// The same of LLVM's programs: the runtime tells of them only when they are over.
macro_rules! told_late {
    ($($name:ident $does:ident;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(source: *mut c_void, thread: c_int, numbers: *const i64) {
            type Real = unsafe extern "C-unwind" fn(*mut c_void, c_int, *const i64);
            static NEXT: Slot<Real> = Slot::within(concat!(stringify!($name), "\0"), RUNTIMES);
            let (site, next) = (laggard_callpath::call_site!(), NEXT.get());
            // SAFETY: as above.
            unsafe { ordered::$does(site, *numbers as u64, || next(source, thread, numbers)) };
        }
    )*};
}

told_late! {
    __kmpc_doacross_wait sink;
    __kmpc_doacross_post source;
}
