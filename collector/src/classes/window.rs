//! Windows and one-sided communication.

use std::ffi::{c_int, c_void};

use laggard_trace::flags;

use super::comm::record_with_object;
use super::send::post;
use super::{Operation, handle_at};
use crate::call::Call;
use crate::constants::Handle;
use crate::ffi::{
    MPI_Aint, MPI_Comm, MPI_Datatype, MPI_File, MPI_Group, MPI_Op, MPI_Request, MPI_Win,
};
use crate::groups::{self, Group, Kind, NO_ROOT};
use crate::signature::Half;
use crate::windows;

/// The memory of a new window in this process.
enum Memory {
    /// The program's memory.
    At(*const c_void),
    /// The library's memory; the call stores its address here.
    Allocated(*const *const c_void),
    /// Memory attached later.
    Dynamic,
}

/// Makes a window.
pub struct WinCreate {
    comm: MPI_Comm,
    win: *const MPI_Win,
    memory: Memory,
    size: MPI_Aint,
    unit: c_int,
}

/// Makes a dynamic window, without memory.
pub fn win_dynamic(comm: MPI_Comm, win: *mut MPI_Win) -> WinCreate {
    WinCreate {
        comm,
        win,
        memory: Memory::Dynamic,
        size: 0,
        unit: 1,
    }
}

/// Makes a window on the program's memory.
pub fn win_create(
    base: *mut c_void,
    size: MPI_Aint,
    unit: c_int,
    comm: MPI_Comm,
    win: *mut MPI_Win,
) -> WinCreate {
    WinCreate {
        memory: Memory::At(base),
        size,
        unit,
        ..win_dynamic(comm, win)
    }
}

/// Makes a window with memory from the library.
pub fn win_allocate(
    base: *mut c_void,
    size: MPI_Aint,
    unit: c_int,
    comm: MPI_Comm,
    win: *mut MPI_Win,
) -> WinCreate {
    WinCreate {
        memory: Memory::Allocated(base.cast_const().cast()),
        size,
        unit,
        ..win_dynamic(comm, win)
    }
}

impl Operation for WinCreate {
    fn after(&mut self, call: &mut Call) {
        // SAFETY: the real call stored it, if it succeeded.
        let handle = || unsafe { *self.win }.bits();
        let Some(window) = attach(call, Kind::Window, self.comm, handle) else {
            return;
        };
        let base = match self.memory {
            Memory::At(base) => base,
            // SAFETY: the real call succeeded and stored it.
            Memory::Allocated(base) => unsafe { *base },
            Memory::Dynamic => return windows::dynamic(window),
        };
        let bytes = self.size.max(0) as u64;
        windows::exposed(window, base.addr(), bytes, self.unit);
    }
}

/// Records a call that makes a window or file on a communicator; returns the new group.
pub fn attach(
    call: &mut Call,
    kind: Kind,
    comm: MPI_Comm,
    handle: impl FnOnce() -> usize,
) -> Option<&'static Group> {
    let mut raw = call.raw();
    if !call.succeeded() {
        if let Some(group) = groups::known(Kind::Intra, comm.bits()) {
            groups::attach_failed(group);
        }
        call.record(&raw);
        return None;
    }
    let on = call.stream().communicator(comm);
    let made = groups::attached(kind, on, handle());
    call.stream().define_group(on);
    raw.group = on;
    raw.send = Half::of(NO_ROOT);
    raw.flags |= flags::COLLECTIVE;
    record_with_object(call, &raw, Some(made));
    Some(made)
}

/// The program's variable of the handle that it frees.
pub enum Freed {
    Window(*const MPI_Win),
    File(*const MPI_File),
}

/// Frees a window or file.
pub struct Release {
    freed: Freed,
    group: Option<&'static Group>,
}

impl Release {
    /// Notes that the handle will be freed.
    pub fn new(freed: Freed) -> Self {
        Release { freed, group: None }
    }
}

/// Frees a window.
pub fn win_free(win: *mut MPI_Win) -> Release {
    Release::new(Freed::Window(win))
}

impl Operation for Release {
    fn before(&mut self, _call: &mut Call) {
        let (kind, handle) = match self.freed {
            Freed::Window(win) => (Kind::Window, handle_at(win)),
            Freed::File(file) => (Kind::File, handle_at(file)),
        };
        self.group = handle.and_then(|handle| groups::released(kind, handle));
    }

    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        match self.group {
            Some(group) if call.succeeded() => {
                if group.kind == Kind::Window {
                    windows::freed(group);
                }
                call.stream().define_group(group);
                raw.group = group;
                raw.send = Half::of(NO_ROOT);
                raw.flags |= flags::COLLECTIVE;
                record_with_object(call, &raw, Some(group));
            }
            Some(group) => {
                groups::restore(group);
                call.record(&raw);
            }
            None => call.record(&raw),
        }
    }
}

/// A call on a window, with or without a target.
pub struct OnWindow {
    win: MPI_Win,
    rank: Option<c_int>,
    peers: Option<MPI_Group>,
    parameter: i64,
    collective: bool,
    flag: Option<*const c_int>,
}

/// A call on all targets.
pub fn win_epoch(win: MPI_Win) -> OnWindow {
    OnWindow {
        win,
        rank: None,
        peers: None,
        parameter: 0,
        collective: false,
        flag: None,
    }
}

/// A call on one target.
pub fn win_rank(rank: c_int, win: MPI_Win) -> OnWindow {
    OnWindow {
        rank: Some(rank),
        ..win_epoch(win)
    }
}

/// Assertions as in the trace, in the high half of a parameter.
fn assertion(given: c_int) -> i64 {
    let c = crate::constants::constants();
    let modes = [
        c.mode_no_check,
        c.mode_no_precede,
        c.mode_no_put,
        c.mode_no_store,
        c.mode_no_succeed,
    ];
    let bits = (0..).zip(modes).filter(|(_, mode)| given & mode != 0);
    bits.fold(0, |all, (bit, _)| all | 1 << bit) << 32
}

pub fn win_fence(assert: c_int, win: MPI_Win) -> OnWindow {
    OnWindow {
        parameter: assertion(assert),
        collective: true,
        ..win_epoch(win)
    }
}

/// Opens an epoch for a group of processes.
pub fn win_group(group: MPI_Group, assert: c_int, win: MPI_Win) -> OnWindow {
    OnWindow {
        peers: Some(group),
        parameter: assertion(assert),
        ..win_epoch(win)
    }
}

/// Tests whether an exposure epoch is over.
pub fn win_test(win: MPI_Win, flag: *mut c_int) -> OnWindow {
    OnWindow {
        flag: Some(flag),
        ..win_epoch(win)
    }
}

/// Locks one target. Parameter: lock type in the low half (1 = exclusive, 2 = shared),
/// assertion in the high half.
pub fn win_lock(lock: c_int, rank: c_int, assert: c_int, win: MPI_Win) -> OnWindow {
    let c = crate::constants::constants();
    let kind = if lock == c.lock_exclusive { 1 } else { 2 };
    OnWindow {
        parameter: kind | assertion(assert),
        ..win_rank(rank, win)
    }
}

/// Locks all targets, shared.
pub fn win_lock_all(assert: c_int, win: MPI_Win) -> OnWindow {
    OnWindow {
        parameter: 2 | assertion(assert),
        ..win_epoch(win)
    }
}

impl Operation for OnWindow {
    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        if !call.succeeded() {
            return call.record(&raw);
        }
        if let Some(group) = call.stream().attached(Kind::Window, self.win.bits()) {
            raw.group = group;
            if self.collective {
                raw.flags |= flags::COLLECTIVE;
                raw.send = Half::of(NO_ROOT);
            }
        }
        if let Some(rank) = self.rank {
            raw.send = Half::of(rank);
        }
        let peers = self.peers.map_or(0, |group| call.stream().peers(group));
        raw.extra = self.parameter as u64 | u64::from(peers);
        // SAFETY: a call that succeeded has set it.
        if self.flag.is_some_and(|flag| unsafe { *flag } == 0) {
            raw.flags |= flags::UNSUCCESSFUL;
            return call.record_unsuccessful(&raw);
        }
        call.record_unless_paused(&raw);
    }
}

pub struct Transfer {
    count: c_int,
    datatype: MPI_Datatype,
    rank: c_int,
    displacement: MPI_Aint,
    win: MPI_Win,
    request: Option<*mut MPI_Request>,
    /// Whether it is an atomic that leaves the target's memory unchanged.
    only_reads: bool,
}

/// A one-sided transfer.
pub fn rma(
    count: c_int,
    datatype: MPI_Datatype,
    rank: c_int,
    displacement: MPI_Aint,
    win: MPI_Win,
) -> Transfer {
    Transfer {
        count,
        datatype,
        rank,
        displacement,
        win,
        request: None,
        only_reads: false,
    }
}

/// An atomic; with `MPI_NO_OP` it only reads.
pub fn rma_atomic(
    count: c_int,
    datatype: MPI_Datatype,
    rank: c_int,
    displacement: MPI_Aint,
    op: MPI_Op,
    win: MPI_Win,
) -> Transfer {
    let no_op = crate::constants::constants().no_op;
    Transfer {
        only_reads: op.bits() == no_op.bits(),
        ..rma(count, datatype, rank, displacement, win)
    }
}

pub fn rma_atomic_request(
    count: c_int,
    datatype: MPI_Datatype,
    rank: c_int,
    displacement: MPI_Aint,
    op: MPI_Op,
    win: MPI_Win,
    request: *mut MPI_Request,
) -> Transfer {
    Transfer {
        request: Some(request),
        ..rma_atomic(count, datatype, rank, displacement, op, win)
    }
}

/// A one-sided transfer with a request.
pub fn rma_request(
    count: c_int,
    datatype: MPI_Datatype,
    rank: c_int,
    displacement: MPI_Aint,
    win: MPI_Win,
    request: *mut MPI_Request,
) -> Transfer {
    Transfer {
        request: Some(request),
        ..rma(count, datatype, rank, displacement, win)
    }
}

impl Operation for Transfer {
    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        if !call.succeeded() {
            return call.record(&raw);
        }
        let bytes = call.stream().volume(i64::from(self.count), self.datatype);
        if let Some(group) = call.stream().attached(Kind::Window, self.win.bits()) {
            raw.group = group;
        }
        let half = Half::new(self.rank, 0, bytes);
        if self.only_reads || is_get(raw.operation) {
            raw.receive = half;
        } else {
            raw.send = half;
        }
        raw.extra = self.displacement as u64;
        match self.request {
            Some(request) => {
                raw.flags |= flags::POSTS;
                post(call, &raw, false, request, 0);
                call.record(&raw);
            }
            None => call.record_unless_paused(&raw),
        }
    }
}

fn is_get(operation: u16) -> bool {
    use laggard_trace::calls::{GenericType, call};
    call(operation).is_some_and(|call| call.generic == GenericType::OneSidedGet)
}
