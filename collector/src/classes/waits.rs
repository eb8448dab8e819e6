//! Waits and tests, and what else is done with requests under way.

use std::ffi::c_int;

use laggard_trace::flags;

use super::Operation;
use super::completion::{Scratch, begin, record};
use super::receive::{Status, error_class, is_truncated};
use crate::call::Call;
use crate::constants::{Handle, constants};
use crate::exports::real;
use crate::ffi::{MPI_Request, MPI_Status};
use crate::request::{self, kind};

/// Wait and Test for one request.
pub struct One {
    request: *const MPI_Request,
    flag: Option<*const c_int>,
    status: Status,
}

/// Waits for a request.
#[inline(always)]
pub fn wait(request: *mut MPI_Request, status: *mut *mut MPI_Status) -> One {
    One {
        request,
        flag: None,
        status: Status::new(status),
    }
}

/// Asks for a request.
#[inline(always)]
pub fn test(request: *mut MPI_Request, flag: *mut c_int, status: *mut *mut MPI_Status) -> One {
    One {
        request,
        flag: Some(flag),
        status: Status::new(status),
    }
}

impl Operation for One {
    #[inline(always)]
    fn before(&mut self, call: &mut Call) {
        call.thread().scratch.keep(1, self.request);
        self.status.prepare();
    }

    #[inline]
    fn after(&mut self, call: &mut Call) {
        let mut raw = begin(call);
        // SAFETY: set by a call that succeeded.
        if call.succeeded() && self.flag.is_some_and(|flag| unsafe { *flag } == 0) {
            raw.flags |= flags::UNSUCCESSFUL;
            return call.record_unsuccessful(&raw);
        }
        if call.succeeded() || completed_in_spite(call) {
            let (stream, scratch, thread) = call.parts();
            // SAFETY: filled in by a completed request.
            scratch.complete(stream, thread, 0, unsafe { self.status.get() });
        }
        record(call, raw);
    }
}

/// Whether a call for one request that failed has completed it all the same: it took it away,
/// or, where it stays because it is persistent, its message.
#[cold]
fn completed_in_spite(call: &mut Call) -> bool {
    call.thread().scratch.is_taken(0) || is_truncated(call)
}

/// Wait and Test for all requests of an array.
pub struct All {
    count: c_int,
    requests: *const MPI_Request,
    flag: Option<*const c_int>,
    statuses: *mut *mut MPI_Status,
}

/// Waits for all requests.
#[inline(always)]
pub fn waitall(count: c_int, requests: *mut MPI_Request, statuses: *mut *mut MPI_Status) -> All {
    All {
        count,
        requests,
        flag: None,
        statuses,
    }
}

/// Asks for all requests.
pub fn testall(
    count: c_int,
    requests: *mut MPI_Request,
    flag: *mut c_int,
    statuses: *mut *mut MPI_Status,
) -> All {
    All {
        flag: Some(flag),
        ..waitall(count, requests, statuses)
    }
}

impl Operation for All {
    #[inline(always)]
    fn before(&mut self, call: &mut Call) {
        let scratch = &mut call.thread().scratch;
        scratch.keep(self.count, self.requests);
        substitute(scratch, self.statuses);
    }

    fn after(&mut self, call: &mut Call) {
        let mut raw = begin(call);
        // SAFETY: set by a call that succeeded.
        if call.succeeded() && self.flag.is_some_and(|flag| unsafe { *flag } == 0) {
            raw.flags |= flags::UNSUCCESSFUL;
            return call.record_unsuccessful(&raw);
        }
        if call.succeeded() {
            let (stream, scratch, thread) = call.parts();
            // SAFETY: the program's array or ours, filled in by a call that succeeded.
            unsafe { scratch.complete_all(stream, thread, *self.statuses) };
        } else {
            self.complete_some(call);
        }
        record(call, raw);
    }
}

impl All {
    /// Of a call that failed: some may have completed all the same.
    #[cold]
    fn complete_some(&self, call: &mut Call) {
        let c = constants();
        let in_status = error_class(call) == c.err_in_status;
        for i in 0..call.thread().scratch.len() {
            let (stream, scratch, thread) = call.parts();
            // SAFETY: the program's array or ours, looked at where the call has filled it in.
            let status = || unsafe { &*(*self.statuses).add(i) };
            if scratch.is_taken(i) || in_status && status().MPI_ERROR != c.err_pending {
                scratch.complete(stream, thread, i, status());
            }
        }
    }
}

/// Has the real call fill in statuses in any case. It returns the same whether the program
/// ignores them or not: `MPI_ERR_IN_STATUS` if one of the requests failed.
#[inline(always)]
fn substitute(scratch: &mut Scratch, statuses: *mut *mut MPI_Status) {
    // SAFETY: the wrapper's own variable.
    unsafe {
        if *statuses == constants().statuses_ignore {
            *statuses = scratch.statuses();
        }
    }
}

/// Wait and Test for any request of an array.
pub struct Any {
    count: c_int,
    requests: *const MPI_Request,
    index: *const c_int,
    flag: Option<*const c_int>,
    status: Status,
}

/// Waits for one of several requests.
pub fn waitany(
    count: c_int,
    requests: *mut MPI_Request,
    index: *mut c_int,
    status: *mut *mut MPI_Status,
) -> Any {
    Any {
        count,
        requests,
        index,
        flag: None,
        status: Status::new(status),
    }
}

/// Asks for one of several requests.
pub fn testany(
    count: c_int,
    requests: *mut MPI_Request,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut *mut MPI_Status,
) -> Any {
    Any {
        flag: Some(flag),
        ..waitany(count, requests, index, status)
    }
}

impl Operation for Any {
    #[inline(always)]
    fn before(&mut self, call: &mut Call) {
        call.thread().scratch.keep(self.count, self.requests);
        self.status.prepare();
    }

    fn after(&mut self, call: &mut Call) {
        let mut raw = begin(call);
        // SAFETY: set by a call that succeeded.
        if call.succeeded() && self.flag.is_some_and(|flag| unsafe { *flag } == 0) {
            raw.flags |= flags::UNSUCCESSFUL;
            return call.record_unsuccessful(&raw);
        }
        if let Some(index) = self.completed(call) {
            let (stream, scratch, thread) = call.parts();
            // SAFETY: filled in by a completed request.
            scratch.complete(stream, thread, index, unsafe { self.status.get() });
        }
        record(call, raw);
    }
}

impl Any {
    /// The number of the request that the call completed, among those kept.
    fn completed(&self, call: &mut Call) -> Option<usize> {
        if !call.succeeded() && !is_truncated(call) {
            // What the index says is worth nothing then, and it may not even be there.
            let scratch = &call.thread().scratch;
            return (0..scratch.len()).find(|&i| scratch.is_taken(i));
        }
        // SAFETY: set by a call that got so far.
        let index = usize::try_from(unsafe { *self.index }).ok()?;
        (index < call.thread().scratch.len()).then_some(index)
    }
}

/// Wait and Test for some requests of an array.
pub struct Some_ {
    count: c_int,
    requests: *const MPI_Request,
    completed: *const c_int,
    indices: *const c_int,
    statuses: *mut *mut MPI_Status,
}

/// Waits for some of several requests.
pub fn waitsome(
    count: c_int,
    requests: *mut MPI_Request,
    completed: *mut c_int,
    indices: *mut c_int,
    statuses: *mut *mut MPI_Status,
) -> Some_ {
    Some_ {
        count,
        requests,
        completed,
        indices,
        statuses,
    }
}

/// Asks for some of several requests.
pub fn testsome(
    count: c_int,
    requests: *mut MPI_Request,
    completed: *mut c_int,
    indices: *mut c_int,
    statuses: *mut *mut MPI_Status,
) -> Some_ {
    waitsome(count, requests, completed, indices, statuses)
}

impl Operation for Some_ {
    fn before(&mut self, call: &mut Call) {
        let scratch = &mut call.thread().scratch;
        scratch.keep(self.count, self.requests);
        substitute(scratch, self.statuses);
    }

    fn after(&mut self, call: &mut Call) {
        let mut raw = begin(call);
        let in_status = !call.succeeded() && error_class(call) == constants().err_in_status;
        let mut n = 0;
        if call.succeeded() || in_status {
            // SAFETY: set by a call that got so far.
            n = unsafe { *self.completed };
            if n == 0 {
                // Of Testsome: Waitsome has at least one, or MPI_UNDEFINED.
                raw.flags |= flags::UNSUCCESSFUL;
                return call.record_unsuccessful(&raw);
            }
        }
        for i in 0..n.max(0) as usize {
            // SAFETY: so many indices and statuses were filled in.
            let (index, status) = unsafe { (*self.indices.add(i), &*(*self.statuses).add(i)) };
            let (stream, scratch, thread) = call.parts();
            scratch.complete(stream, thread, index as usize, status);
        }
        record(call, raw);
    }
}

/// Asks for a request, which stays.
pub struct GetStatus {
    request: MPI_Request,
    flag: *const c_int,
    status: Status,
}

/// Asks for a request, which stays.
pub fn get_status(
    request: MPI_Request,
    flag: *mut c_int,
    status: *mut *mut MPI_Status,
) -> GetStatus {
    GetStatus {
        request,
        flag,
        status: Status::new(status),
    }
}

impl Operation for GetStatus {
    fn before(&mut self, _call: &mut Call) {
        self.status.prepare();
    }

    fn after(&mut self, call: &mut Call) {
        let mut raw = begin(call);
        if call.succeeded() {
            // SAFETY: set by a call that succeeded.
            if unsafe { *self.flag } == 0 {
                raw.flags |= flags::UNSUCCESSFUL;
                return call.record_unsuccessful(&raw);
            }
            let (stream, scratch, thread) = call.parts();
            let handle = self.request.bits();
            // SAFETY: filled in, since the request is complete.
            scratch.settle(stream, thread, handle, unsafe { self.status.get() });
        }
        record(call, raw);
    }
}

/// Gives a request back without waiting for it.
pub struct Free {
    request: *mut MPI_Request,
    /// How it ended, of one that the program cancelled: nothing else would tell whether a
    /// message was taken.
    ended: Option<MPI_Status>,
}

/// Gives a request back without waiting for it.
pub fn request_free(request: *mut MPI_Request) -> Free {
    Free {
        request,
        ended: None,
    }
}

/// The status of a request that was cancelled and ended.
#[cold]
fn ended(request: MPI_Request) -> Option<MPI_Status> {
    // SAFETY: all zeros are a status.
    let mut status: MPI_Status = unsafe { std::mem::zeroed() };
    let mut flag = 0;
    // SAFETY: the program's request, under way; the call leaves it as it is.
    let result = unsafe { real::MPI_Request_get_status(request, &mut flag, &mut status) };
    (result == crate::constants::SUCCESS && flag != 0).then_some(status)
}

impl Operation for Free {
    fn before(&mut self, call: &mut Call) {
        call.thread().scratch.keep(1, self.request);
        // SAFETY: the program's request, or null.
        let Some(&request) = (unsafe { self.request.as_ref() }) else {
            return;
        };
        let known = request::find(request.bits(), self.request.addr());
        if known.is_some_and(|entry| entry.is(kind::ACTIVE) && entry.is(kind::CANCELLED)) {
            self.ended = ended(request);
        }
    }

    fn after(&mut self, call: &mut Call) {
        let raw = begin(call);
        if call.succeeded() {
            if let Some(status) = &self.ended {
                let (stream, scratch, thread) = call.parts();
                if let Some(handle) = scratch.first() {
                    scratch.settle(stream, thread, handle, status);
                }
            }
            // What was under way goes on, and nothing will tell of its end.
            let (_, scratch, _) = call.parts();
            let entry = scratch
                .first()
                .and_then(|handle| request::remove(handle, self.request.addr()));
            if let Some(entry) = entry.filter(|entry| entry.is(kind::ACTIVE)) {
                let (stream, scratch, thread) = call.parts();
                scratch.freed(stream, thread, &entry);
            }
        }
        record(call, raw);
    }
}

/// Asks for a request to be given up.
pub struct Cancel(*mut MPI_Request);

/// Asks for a request to be given up.
pub fn cancel(request: *mut MPI_Request) -> Cancel {
    Cancel(request)
}

impl Operation for Cancel {
    fn after(&mut self, call: &mut Call) {
        let raw = call.raw();
        if call.succeeded() {
            // SAFETY: the program's request.
            let handle = unsafe { *self.0 }.bits();
            request::update(handle, |entry| entry.kind |= kind::CANCELLED);
        }
        call.record(&raw);
    }
}
