//! OpenMP runtimes with the tools interface of the standard (OMPT), as LLVM's: they tell of
//! themselves what happens.
//!
//! The runtime looks for a tool when it begins, mostly before MPI does. Its callbacks return at once
//! unless something is recorded.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use laggard_trace::calls::number;

use super::gomp::runtime;
use super::tasks::told::Known;
use super::{Place, left_out, locks, ordered, tasks, team};
use crate::clock;
use crate::log::warning;
use crate::lookup;
use crate::options;

/// The runtime's place for a tool's data.
#[repr(C)]
struct Data {
    value: u64,
}

type Lookup = unsafe extern "C" fn(*const c_char) -> *mut c_void;

/// What a runtime is given that looks for a tool.
#[repr(C)]
struct Tool {
    initialize: unsafe extern "C" fn(Lookup, c_int, *mut Data) -> c_int,
    finalize: unsafe extern "C" fn(*mut Data),
    data: Data,
}

/// Whether the runtime that programs of GCC call tells of itself: its entry points for them need not be looked at.
static IS_TOLD: AtomicBool = AtomicBool::new(false);

/// See above.
#[inline(always)]
pub fn is_told() -> bool {
    IS_TOLD.load(Ordering::Relaxed)
}

/// Begin and end of the library that tells of itself.
static RUNTIME: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Whether this is an address of it.
pub fn is_of_runtime(address: u64) -> bool {
    let [first, last] = [0, 1].map(|at| RUNTIME[at].load(Ordering::Relaxed));
    (first..last).contains(&(address as usize))
}

/// A scope begins. The other end is 2.
const BEGIN: c_int = 1;
/// The implicit task of a thread outside of all regions.
const INITIAL_TASK: c_int = 1;
/// Kinds of meetings: of the standard's 5.0 and of later ones.
const IMPLICIT: c_int = 2;
const EXPLICIT: c_int = 3;
/// One that the runtime itself needs, as for `copyprivate`.
const OF_RUNTIME: c_int = 4;
const OF_WORKSHARE: c_int = 8;
const OF_PARALLEL: c_int = 9;
const TASKWAIT: c_int = 5;
const TASKGROUP: c_int = 6;
/// How a task left its thread: it is complete, cancelled, or detached; or it gives way to another one.
const ENDED: [c_int; 3] = [1, 3, 4];
const GIVES_WAY: [c_int; 2] = [2, 7];
/// A wait for tasks that others depend on, which is told as a task, is over.
const WAITED: c_int = 8;
/// Flags of tasks: no part of a thread in its region; such a wait; and they may go on at another thread.
const EXPLICIT_TASK: c_int = 4;
const WAIT: c_int = 16;
const UNTIED_TASK: c_int = 1 << 28;
/// Kinds of locks: those of omp_set_lock and omp_test_lock, the same for nest locks, critical sections, and
/// turns in ordered regions.
const LOCK: c_int = 1;
const TEST_LOCK: c_int = 2;
const NEST_LOCK: c_int = 3;
const TEST_NEST_LOCK: c_int = 4;
const CRITICAL: c_int = 5;
const ORDERED: c_int = 7;

type Start = unsafe extern "C" fn(c_uint, *const c_char) -> *mut c_void;

/// Where the runtime finds a tool. It has one: a tool of the program or of the user goes first.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompt_start_tool(version: c_uint, runtime: *const c_char) -> *mut c_void {
    let start = |library: *mut c_void| {
        // SAFETY: a lookup by name of a function with this type, and its call.
        unsafe {
            let found = lookup::real()(library, c"ompt_start_tool".as_ptr());
            match found.is_null() {
                true => found,
                false => std::mem::transmute::<*mut c_void, Start>(found)(version, runtime),
            }
        }
    };
    let tool = start(libc::RTLD_NEXT);
    if !options::wants_threads() {
        return tool;
    }
    let tool = match tool.is_null() {
        true => named(start),
        false => tool,
    };
    if !tool.is_null() {
        warning!("an OpenMP runtime has another tool: how its threads wait is not recorded");
        return tool;
    }
    // Lives as long as the process.
    Box::into_raw(Box::new(Tool {
        initialize,
        finalize,
        data: Data { value: 0 },
    }))
    .cast()
}

/// The tool of the first library that the user names and that has one for this runtime: the runtime itself looks there
/// only if it has found none.
fn named(start: impl Fn(*mut c_void) -> *mut c_void) -> *mut c_void {
    let libraries = std::env::var_os("OMP_TOOL_LIBRARIES").unwrap_or_default();
    let libraries = libraries.as_bytes().split(|&byte| byte == b':');
    for name in libraries.filter(|name| !name.is_empty()) {
        let Ok(name) = CString::new(name) else {
            continue;
        };
        // SAFETY: as the runtime does.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY) };
        if library.is_null() {
            continue;
        }
        let tool = start(library);
        if !tool.is_null() {
            return tool;
        }
        // SAFETY: opened above, and not in use.
        unsafe { libc::dlclose(library) };
    }
    std::ptr::null_mut()
}

unsafe extern "C" fn initialize(lookup: Lookup, _: c_int, _: *mut Data) -> c_int {
    type Set = unsafe extern "C" fn(c_int, *mut c_void) -> c_int;
    let callbacks: [(c_int, *mut c_void); 10] = [
        (5, task_create as *mut c_void),
        (6, task_schedule as *mut c_void),
        (3, parallel_begin as *mut c_void),
        (4, parallel_end as *mut c_void),
        (7, implicit_task as *mut c_void),
        (16, sync_region_wait as *mut c_void),
        (17, mutex_released as *mut c_void),
        (26, mutex_acquire as *mut c_void),
        (27, mutex_acquired as *mut c_void),
        (28, nest_lock as *mut c_void),
    ];
    // SAFETY: the standard's name and type of this function, and those of the callbacks.
    unsafe {
        let name: &CStr = c"ompt_set_callback";
        let set = lookup(name.as_ptr());
        if set.is_null() {
            return 0;
        }
        let set: Set = std::mem::transmute(set);
        for (event, callback) in callbacks {
            set(event, callback);
        }
    }
    left_out::leave_out();
    if let Some(range) = left_out::library_at((lookup as *const c_void).addr() as u64) {
        RUNTIME[0].store(range.start, Ordering::Relaxed);
        RUNTIME[1].store(range.end, Ordering::Relaxed);
    }
    // A process may have two runtimes, of which the other one serves GCC's.
    let is_same = module_of(lookup as *const c_void) == module_of(runtime::address());
    IS_TOLD.store(is_same, Ordering::Relaxed);
    1
}

/// Where the library with this address begins.
fn module_of(address: *const c_void) -> usize {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the call fills in what was found; all zeros stand for nothing.
    unsafe {
        libc::dladdr(address, found.as_mut_ptr());
        found.assume_init().dli_fbase.addr()
    }
}

unsafe extern "C" fn finalize(_: *mut Data) {}

unsafe extern "C" fn parallel_begin(
    _: *mut Data,
    _: *const c_void,
    parallel: *mut Data,
    _: c_uint,
    _: c_int,
    code: *const c_void,
) {
    let site = laggard_callpath::call_site!();
    // GCC's programs call the collector, which calls the runtime.
    let code = team::called_from(site).unwrap_or(code.addr() as u64);
    // SAFETY: the runtime's data of this region.
    unsafe { (*parallel).value = team::forks(site, code) };
}

unsafe extern "C" fn parallel_end(parallel: *mut Data, _: *mut Data, _: c_int, _: *const c_void) {
    let site = laggard_callpath::call_site!();
    // SAFETY: as above.
    team::joins(site, unsafe { (*parallel).value });
}

unsafe extern "C" fn implicit_task(
    end: c_int,
    parallel: *mut Data,
    _: *mut Data,
    size: c_uint,
    index: c_uint,
    flags: c_int,
) {
    let site = laggard_callpath::call_site!();
    if end == BEGIN && flags & INITIAL_TASK == 0 && !parallel.is_null() {
        // SAFETY: as above.
        team::enters(site, unsafe { (*parallel).value }, (size, index));
    }
}

unsafe extern "C" fn task_create(
    _: *mut Data,
    _: *const c_void,
    task: *mut Data,
    flags: c_int,
    _: c_int,
    code: *const c_void,
) {
    let site = laggard_callpath::call_site!();
    // The runtime has one place for the data of all such waits of a thread, and wants it empty.
    if flags & WAIT != 0 {
        return tasks::told::begins_to_depend(site, code.addr() as u64);
    }
    // The runtime does not tell when a part of an untied task ends.
    if flags & EXPLICIT_TASK == 0 || flags & UNTIED_TASK != 0 || task.is_null() {
        return;
    }
    // Tasks of loops are made by the runtime itself: the region is their place.
    let code = code.addr() as u64;
    let begin = is_of_runtime(code).then(|| team::begun_at(site)).flatten();
    let code = begin.unwrap_or(code.wrapping_sub(1));
    if let Some(known) = tasks::told::makes(site, code) {
        // SAFETY: the runtime's data of this task, which nobody else uses.
        unsafe { (*task).value = Box::into_raw(Box::new(known)).addr() as u64 };
    }
}

/// What is known of a task with these data. Those of threads' parts in regions have none.
unsafe fn known(task: *mut Data) -> *mut Known {
    match task.is_null() {
        true => std::ptr::null_mut(),
        // SAFETY: the runtime's data of a task.
        false => unsafe { (*task).value as *mut Known },
    }
}

unsafe extern "C" fn task_schedule(prior: *mut Data, status: c_int, next: *mut Data) {
    let site = laggard_callpath::call_site!();
    if status == WAITED {
        return tasks::told::depends_no_more(site, number::omp_taskwait);
    }
    // SAFETY: the runtime's data of tasks, and what `task_create` put there.
    unsafe {
        let (ended, begun) = (known(prior), known(next));
        if ENDED.contains(&status) && !ended.is_null() {
            (*prior).value = 0;
            let next = if begun.is_null() {
                0
            } else {
                next.addr() as u64
            };
            tasks::told::ends(site, &Box::from_raw(ended), next);
        } else if GIVES_WAY.contains(&status) && !begun.is_null() {
            tasks::told::begins(site, next.addr() as u64, &*begun);
        }
    }
}

unsafe extern "C" fn sync_region_wait(
    kind: c_int,
    end: c_int,
    _: *mut Data,
    _: *mut Data,
    code: *const c_void,
) {
    let site = laggard_callpath::call_site!();
    let code = code.addr() as u64;
    let of_tasks = match kind {
        TASKWAIT => Some(number::omp_taskwait),
        TASKGROUP => Some(number::omp_taskgroup_end),
        _ => None,
    };
    if let Some(number) = of_tasks {
        match end == BEGIN {
            true => tasks::told::begins_wait(site),
            false => tasks::told::ends_wait(site, number, code),
        }
        return;
    }
    let number = match kind {
        EXPLICIT | OF_RUNTIME => number::omp_barrier,
        OF_WORKSHARE => number::omp_loop_end,
        IMPLICIT if !team::is_end(site, code) => number::omp_loop_end,
        IMPLICIT | OF_PARALLEL => {
            if end == BEGIN {
                team::leaves(site);
            }
            return;
        }
        _ => return,
    };
    match end == BEGIN {
        true => team::meets(site),
        false => team::met(site, number, code),
    }
}

unsafe extern "C" fn mutex_acquire(
    kind: c_int,
    _: c_uint,
    _: c_uint,
    id: u64,
    code: *const c_void,
) {
    let site = laggard_callpath::call_site!();
    let number = match kind {
        CRITICAL => number::omp_critical,
        LOCK => number::omp_set_lock,
        NEST_LOCK => number::omp_set_nest_lock,
        ORDERED => return ordered::wants(site),
        _ => return,
    };
    locks::wants(site, (number, id), code.addr() as u64);
}

unsafe extern "C" fn mutex_acquired(kind: c_int, id: u64, code: *const c_void) {
    match kind {
        CRITICAL | LOCK => locks::has(id),
        TEST_LOCK | TEST_NEST_LOCK => locks::is_taken(id),
        NEST_LOCK => locks::has_nest(id),
        ORDERED => {
            let site = laggard_callpath::call_site!();
            ordered::has(site, Place::before(site, code.addr() as u64));
        }
        _ => {}
    }
}

/// A thread takes a nest lock that it has, or gives it back and keeps it.
unsafe extern "C" fn nest_lock(end: c_int, id: u64, _: *const c_void) {
    if end == BEGIN {
        locks::had(id);
    }
}

unsafe extern "C" fn mutex_released(kind: c_int, id: u64, code: *const c_void) {
    let site = laggard_callpath::call_site!();
    let number = match kind {
        CRITICAL => number::omp_critical_end,
        LOCK => number::omp_unset_lock,
        NEST_LOCK => number::omp_unset_nest_lock,
        ORDERED => {
            if let Some(turns) = ordered::passes_on(site) {
                let place = Place::before(site, code.addr() as u64);
                ordered::passed_on(site, place, (turns, clock::now()));
            }
            return;
        }
        _ => return,
    };
    locks::left(site, (number, id), code.addr() as u64);
}
