//! Waits, tests and other calls on active requests.

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

#[inline(always)]
pub fn wait(request: *mut MPI_Request, status: *mut *mut MPI_Status) -> One {
    One {
        request,
        flag: None,
        status: Status::new(status),
    }
}

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
        // SAFETY: a call that succeeded has set it.
        if call.succeeded() && self.flag.is_some_and(|flag| unsafe { *flag } == 0) {
            raw.flags |= flags::UNSUCCESSFUL;
            return call.record_unsuccessful(&raw);
        }
        if call.succeeded() || completed_in_spite(call) {
            let (stream, scratch, thread) = call.parts();
            // SAFETY: the completion filled it in.
            scratch.complete(stream, thread, 0, unsafe { self.status.get() });
        }
        record(call, raw);
    }
}

/// Whether a failed call for one request has completed it anyway: it nulled the request, or
/// consumed the message of a persistent one.
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

/// Tests all requests.
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
        // SAFETY: a call that succeeded has set it.
        if call.succeeded() && self.flag.is_some_and(|flag| unsafe { *flag } == 0) {
            raw.flags |= flags::UNSUCCESSFUL;
            return call.record_unsuccessful(&raw);
        }
        if call.succeeded() {
            let (stream, scratch, thread) = call.parts();
            // SAFETY: the program's array or ours; a call that succeeded filled it in.
            unsafe { scratch.complete_all(stream, thread, *self.statuses) };
        } else {
            self.complete_some(call);
        }
        record(call, raw);
    }
}

impl All {
    /// Notes the requests that a failed call has completed anyway.
    #[cold]
    fn complete_some(&self, call: &mut Call) {
        let c = constants();
        let in_status = error_class(call) == c.err_in_status;
        for i in 0..call.thread().scratch.len() {
            let (stream, scratch, thread) = call.parts();
            // SAFETY: the program's array or ours; read only where the call has filled it in.
            let status = || unsafe { &*(*self.statuses).add(i) };
            if scratch.is_taken(i) || in_status && status().MPI_ERROR != c.err_pending {
                scratch.complete(stream, thread, i, status());
            }
        }
    }
}

/// Makes the real call fill in statuses in any case. The result stays the same as with ignored
/// statuses: `MPI_ERR_IN_STATUS` if one of the requests failed.
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

/// Tests several requests for one completion.
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
        // SAFETY: a call that succeeded has set it.
        if call.succeeded() && self.flag.is_some_and(|flag| unsafe { *flag } == 0) {
            raw.flags |= flags::UNSUCCESSFUL;
            return call.record_unsuccessful(&raw);
        }
        if let Some(index) = self.completed(call) {
            let (stream, scratch, thread) = call.parts();
            // SAFETY: the completion filled it in.
            scratch.complete(stream, thread, index, unsafe { self.status.get() });
        }
        record(call, raw);
    }
}

impl Any {
    /// Index of the completed request among the handles kept.
    fn completed(&self, call: &mut Call) -> Option<usize> {
        if !call.succeeded() && !is_truncated(call) {
            // The index is meaningless then, and its pointer may be invalid.
            let scratch = &call.thread().scratch;
            return (0..scratch.len()).find(|&i| scratch.is_taken(i));
        }
        // SAFETY: a call that came this far has set it.
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

/// Tests some of several requests.
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
            // SAFETY: a call that came this far has set it.
            n = unsafe { *self.completed };
            if n == 0 {
                // Only for Testsome: Waitsome completes at least one, or gives MPI_UNDEFINED.
                raw.flags |= flags::UNSUCCESSFUL;
                return call.record_unsuccessful(&raw);
            }
        }
        for i in 0..n.max(0) as usize {
            // SAFETY: the call filled in `n` indices and statuses.
            let (index, status) = unsafe { (*self.indices.add(i), &*(*self.statuses).add(i)) };
            let (stream, scratch, thread) = call.parts();
            scratch.complete(stream, thread, index as usize, status);
        }
        record(call, raw);
    }
}

pub struct GetStatus {
    request: MPI_Request,
    flag: *const c_int,
    status: Status,
}

/// Tests a request, which stays.
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
            // SAFETY: a call that succeeded has set it.
            if unsafe { *self.flag } == 0 {
                raw.flags |= flags::UNSUCCESSFUL;
                return call.record_unsuccessful(&raw);
            }
            let (stream, scratch, thread) = call.parts();
            let handle = self.request.bits();
            // SAFETY: filled in, because the request is complete.
            scratch.settle(stream, thread, handle, unsafe { self.status.get() });
        }
        record(call, raw);
    }
}

pub struct Free {
    request: *mut MPI_Request,
    /// Status of a cancelled request that has ended: nothing else would tell whether it took a
    /// message.
    ended: Option<MPI_Status>,
}

/// Frees a request without waiting for it.
pub fn request_free(request: *mut MPI_Request) -> Free {
    Free {
        request,
        ended: None,
    }
}

/// The status of a request that was cancelled and ended.
#[cold]
fn ended(request: MPI_Request) -> Option<MPI_Status> {
    // SAFETY: all zeros are a valid status.
    let mut status: MPI_Status = unsafe { std::mem::zeroed() };
    let mut flag = 0;
    // SAFETY: the program's active request; the call does not change it.
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
            // The operation goes on, and no call will report its end.
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

pub struct Cancel(*mut MPI_Request);

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
