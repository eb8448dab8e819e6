//! One-sided communication: the first of a pair accesses the memory of the other.

use mpi::ffi::{MPI_Aint, MPI_Datatype, MPI_Group, MPI_Op, MPI_Request, MPI_Win};

use super::Kind::Pair;
use super::Volume::Fixed;
use super::collectives;
use super::messages::{TAG, row, status};
use super::requests::{none, wait};
use super::{Benchmark, Site, Steps, Volume, byte, call, constant, no_info};

/// One row each.
pub const ROWS: &[Benchmark] = &[
    collectives::row(&["MPI_Win_fence"], Fixed, fence),
    row(&["MPI_Put", "MPI_Win_fence"], fenced_put),
    row(
        &[
            "MPI_Put",
            "MPI_Win_post",
            "MPI_Win_start",
            "MPI_Win_complete",
            "MPI_Win_wait",
        ],
        exposed_put,
    ),
    row(
        &["MPI_Put", "MPI_Win_lock", "MPI_Win_flush", "MPI_Win_unlock"],
        put,
    ),
    row(
        &[
            "MPI_Get",
            "MPI_Win_lock",
            "MPI_Win_flush_local",
            "MPI_Win_unlock",
        ],
        get,
    ),
    row(
        &[
            "MPI_Accumulate",
            "MPI_Win_lock_all",
            "MPI_Win_flush_all",
            "MPI_Win_unlock_all",
        ],
        accumulate,
    ),
    row(
        &[
            "MPI_Get_accumulate",
            "MPI_Win_lock_all",
            "MPI_Win_flush_local_all",
            "MPI_Win_unlock_all",
        ],
        get_accumulate,
    ),
    row(&["MPI_Rput", "MPI_Wait"], rput),
    row(&["MPI_Rget", "MPI_Wait"], rget),
    row(&["MPI_Raccumulate", "MPI_Wait"], raccumulate),
    row(&["MPI_Rget_accumulate", "MPI_Wait"], rget_accumulate),
    of_one(&["MPI_Fetch_and_op", "MPI_Win_flush"], fetch_and_op),
    of_one(&["MPI_Compare_and_swap", "MPI_Win_flush"], compare_and_swap),
    of_one(&["MPI_Win_sync"], sync),
];

/// A benchmark of a pair, with one element.
const fn of_one(calls: &'static [&'static str], prepare: fn(&Site) -> Steps) -> Benchmark {
    Benchmark {
        calls,
        kind: Pair,
        volume: Volume::Fixed,
        prepare,
    }
}

const TARGET: i32 = 1;
/// `MPI_LOCK_SHARED` and `MPI_LOCK_EXCLUSIVE` of this library.
const SHARED: i32 = mpi::ffi::MPI_LOCK_SHARED as i32;
const EXCLUSIVE: i32 = mpi::ffi::MPI_LOCK_EXCLUSIVE as i32;

/// A window over each member's room for incoming blocks.
fn window(site: &Site) -> MPI_Win {
    let mut window = constant!(RSMPI_WIN_NULL);
    call!(MPI_Win_create(
        site.incoming,
        site.bytes.max(8) as MPI_Aint,
        1,
        no_info(),
        site.comm,
        &mut window
    ));
    window
}

fn free(window: MPI_Win) -> impl FnMut() + 'static {
    move || {
        let mut window = window;
        call!(MPI_Win_free(&mut window));
    }
}

fn close(window: MPI_Win) {
    call!(MPI_Win_fence(0, window));
}

fn fence(site: &Site) -> Steps {
    let window = window(site);
    Steps::new(move || close(window)).release(free(window))
}

/// A transfer of bytes, with a request or without.
macro_rules! transfer {
    ($function:ident, $own:expr, $window:expr $(, $request:expr)?) => {
        call!($function(
            $own.outgoing,
            $own.count(),
            byte(),
            TARGET,
            0,
            $own.count(),
            byte(),
            $window
            $(, $request)?
        ))
    };
}

/// Adds elements to those in the window, and may fetch the old ones.
macro_rules! accumulation {
    ($function:ident, $own:expr, [$($result:expr)?], $window:expr $(, $request:expr)?) => {{
        let (count, datatype, op) = $own.elements();
        call!($function(
            $own.outgoing,
            count,
            datatype,
            $($result.as_mut_ptr().cast(), count, datatype,)?
            TARGET,
            0,
            count,
            datatype,
            op,
            $window
            $(, $request)?
        ))
    }};
}

fn fenced_put(site: &Site) -> Steps {
    let (site, window) = (*site, window(site));
    Steps::new(move || {
        if site.is_first() {
            transfer!(MPI_Put, site, window);
        }
        close(window);
    })
    .before(move || call!(MPI_Win_fence(0, window)))
    .release(free(window))
}

fn exposed_put(site: &Site) -> Steps {
    let (site, window, group) = (*site, window(site), other(site));
    Steps::new(move || match site.is_first() {
        true => {
            call!(MPI_Win_start(group, 0, window));
            transfer!(MPI_Put, site, window);
            call!(MPI_Win_complete(window));
        }
        false => {
            call!(MPI_Win_post(group, 0, window));
            call!(MPI_Win_wait(window));
        }
    })
    .release(move || {
        let mut group = group;
        call!(MPI_Group_free(&mut group));
        free(window)();
    })
}

/// The group of the other member.
fn other(site: &Site) -> MPI_Group {
    let (mut both, mut other) = (constant!(RSMPI_GROUP_NULL), constant!(RSMPI_GROUP_NULL));
    let member = site.other();
    call!(MPI_Comm_group(site.comm, &mut both));
    call!(MPI_Group_incl(both, 1, &member, &mut other));
    call!(MPI_Group_free(&mut both));
    other
}

/// The first accesses the other's memory while the other is in the library, so that accesses that
/// need the target's help get it.
fn passive(site: &Site, window: MPI_Win, mut origin: impl FnMut() + 'static) -> Steps {
    let site = *site;
    let steps = Steps::new(move || {
        if site.is_first() {
            origin();
        }
    });
    steps.after(over(site)).release(free(window))
}

/// The first tells the waiting target that it is done.
pub fn over(site: Site) -> impl FnMut() + 'static {
    move || {
        let nothing = site.outgoing;
        if site.is_first() {
            call!(MPI_Send(nothing, 0, byte(), site.other(), TAG, site.comm));
        } else {
            let (mut status, from) = (status(), site.other());
            call!(MPI_Recv(
                nothing,
                0,
                byte(),
                from,
                TAG,
                site.comm,
                &mut status
            ));
        }
    }
}

fn lock(kind: i32, window: MPI_Win) {
    call!(MPI_Win_lock(kind, TARGET, 0, window));
}

fn unlock(window: MPI_Win) {
    call!(MPI_Win_unlock(TARGET, window));
}

fn put(site: &Site) -> Steps {
    let (own, window) = (*site, window(site));
    passive(site, window, move || {
        lock(EXCLUSIVE, window);
        transfer!(MPI_Put, own, window);
        call!(MPI_Win_flush(TARGET, window));
        unlock(window);
    })
}

fn get(site: &Site) -> Steps {
    let (own, window) = (*site, window(site));
    passive(site, window, move || {
        lock(SHARED, window);
        transfer!(MPI_Get, own, window);
        call!(MPI_Win_flush_local(TARGET, window));
        unlock(window);
    })
}

fn accumulate(site: &Site) -> Steps {
    let (own, window) = (*site, window(site));
    passive(site, window, move || {
        call!(MPI_Win_lock_all(0, window));
        accumulation!(MPI_Accumulate, own, [], window);
        call!(MPI_Win_flush_all(window));
        call!(MPI_Win_unlock_all(window));
    })
}

fn get_accumulate(site: &Site) -> Steps {
    let (own, window, mut result) = (*site, window(site), result(site));
    passive(site, window, move || {
        call!(MPI_Win_lock_all(0, window));
        accumulation!(MPI_Get_accumulate, own, [result], window);
        call!(MPI_Win_flush_local_all(window));
        call!(MPI_Win_unlock_all(window));
    })
}

/// Room for the target's old values.
fn result(site: &Site) -> Vec<u64> {
    vec![0; site.bytes.div_ceil(8).max(1)]
}

/// A transfer with a request, in an epoch that is not measured.
fn requested(site: &Site, mut start: impl FnMut(MPI_Win, &mut MPI_Request) + 'static) -> Steps {
    let (own, window) = (*site, window(site));
    let steps = passive(site, window, move || {
        let mut request = none();
        start(window, &mut request);
        wait(&mut request);
    });
    in_epoch(steps, window, own)
}

/// Opens an epoch before a repetition and closes it after it.
fn in_epoch(steps: Steps, window: MPI_Win, site: Site) -> Steps {
    let mut over = over(site);
    let steps = steps.before(move || {
        if site.is_first() {
            call!(MPI_Win_lock(SHARED, TARGET, 0, window));
        }
    });
    steps.after(move || {
        if site.is_first() {
            call!(MPI_Win_unlock(TARGET, window));
        }
        over();
    })
}

fn rput(site: &Site) -> Steps {
    let own = *site;
    requested(site, move |window, request| {
        transfer!(MPI_Rput, own, window, request)
    })
}

fn rget(site: &Site) -> Steps {
    let own = *site;
    requested(site, move |window, request| {
        transfer!(MPI_Rget, own, window, request)
    })
}

fn raccumulate(site: &Site) -> Steps {
    let own = *site;
    requested(site, move |window, request| {
        accumulation!(MPI_Raccumulate, own, [], window, request);
    })
}

fn rget_accumulate(site: &Site) -> Steps {
    let (own, mut result) = (*site, result(site));
    requested(site, move |window, request| {
        accumulation!(MPI_Rget_accumulate, own, [result], window, request);
    })
}

/// An operation on one element, and the flush that completes it.
fn flushed(site: &Site, mut start: impl FnMut(MPI_Win) + 'static) -> Steps {
    let (own, window) = (*site, window(site));
    let steps = passive(site, window, move || {
        start(window);
        call!(MPI_Win_flush(TARGET, window));
    });
    in_epoch(steps, window, own)
}

/// The type of the element, and the operation.
fn element() -> (MPI_Datatype, MPI_Op) {
    (constant!(RSMPI_INT64_T), constant!(RSMPI_SUM))
}

fn fetch_and_op(site: &Site) -> Steps {
    let (own, mut before) = (*site, 0i64);
    flushed(site, move |window| {
        let (datatype, op) = element();
        let result = (&raw mut before).cast();
        call!(MPI_Fetch_and_op(
            own.outgoing,
            result,
            datatype,
            TARGET,
            0,
            op,
            window
        ));
    })
}

fn compare_and_swap(site: &Site) -> Steps {
    let (own, mut before) = (*site, 0i64);
    flushed(site, move |window| {
        let result = (&raw mut before).cast();
        call!(MPI_Compare_and_swap(
            own.outgoing,
            own.outgoing,
            result,
            element().0,
            TARGET,
            0,
            window
        ));
    })
}

fn sync(site: &Site) -> Steps {
    let (own, window) = (*site, window(site));
    let steps = passive(site, window, move || call!(MPI_Win_sync(window)));
    in_epoch(steps, window, own)
}
