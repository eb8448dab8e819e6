//! Waits and tests: which requests a call completed, and how.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use laggard_trace::{Extension, OUTCOME_CANCELLED, Record, flags};

use super::Operation;
use super::receive::{Status, arrived, record_unsuccessful};
use crate::constants::{Handle, MPI_UNDEFINED, SUCCESS, constants};
use crate::exports::real;
use crate::ffi::{MPI_Request, MPI_Status};
use crate::lists::MAX_ENTRIES;
use crate::request::{self, Entry, kind};
use crate::signature::{NOBODY, Raw};
use crate::stream::Stream;
use crate::thread::Call;

/// Memory that calls with many requests use again and again.
#[derive(Default)]
pub struct Scratch {
    /// The handles before the call, which sets them to null.
    handles: Vec<usize>,
    /// Address of the program's array of them.
    array: usize,
    /// What was known of them then, where calls may meet.
    known: Vec<Option<Entry>>,
    /// Where the program ignores the statuses.
    statuses: Vec<MaybeUninit<MPI_Status>>,
    /// (delta, outcome) of what this thread posted.
    completed: Vec<(u32, u32)>,
    /// (thread, post, outcome) of what others posted.
    elsewhere: Vec<(u32, u32, u32)>,
}

impl Scratch {
    /// Keeps the handles of an array.
    #[inline(always)]
    fn keep(&mut self, count: c_int, requests: *const MPI_Request) {
        self.handles.clear();
        self.known.clear();
        self.array = requests.addr();
        for i in 0..count.max(0) as usize {
            // SAFETY: the program's array of so many requests.
            let handle = unsafe { *requests.add(i) }.bits();
            self.handles.push(handle);
            if request::is_concurrent() {
                self.known.push(request::find(handle, self.variable(i)));
            }
        }
    }

    /// Address of the program's i-th request.
    #[inline(always)]
    fn variable(&self, i: usize) -> usize {
        self.array.wrapping_add(i * size_of::<MPI_Request>())
    }

    /// Room for the statuses of the handles kept.
    fn statuses(&mut self) -> *mut MPI_Status {
        let n = self.handles.len();
        if self.statuses.len() < n {
            self.statuses.resize(n, MaybeUninit::zeroed());
        }
        self.statuses.as_mut_ptr().cast()
    }

    /// Notes the completion of the i-th handle kept.
    #[inline(always)]
    fn complete(&mut self, stream: &mut Stream, thread: u32, i: usize, status: &MPI_Status) {
        let Some(&handle) = self.handles.get(i) else {
            return;
        };
        let before = self.known.get(i).and_then(Option::as_ref);
        let Some(entry) = request::complete(handle, self.variable(i), before) else {
            return;
        };
        let outcome = outcome(stream, thread, &entry, status);
        if entry.thread == thread {
            let delta = (stream.posts() as u32).wrapping_sub(entry.post);
            self.completed.push((delta, outcome));
        } else {
            self.elsewhere.push((entry.thread, entry.post, outcome));
        }
    }
}

/// How a request ended: 0 as it was posted, else the signature that tells.
#[inline(always)]
fn outcome(stream: &mut Stream, thread: u32, entry: &Entry, status: &MPI_Status) -> u32 {
    if entry.is(kind::CANCELLED) && is_cancelled(status) {
        return OUTCOME_CANCELLED;
    }
    let posted = &entry.posted;
    if !entry.is(kind::RECEIVE) || posted.flags & flags::RECEIVES == 0 {
        return 0;
    }
    let arrived = arrived(status);
    if (arrived.peer, arrived.tag, arrived.bytes) == (posted.peer, posted.tag, posted.bytes) {
        return 0;
    }
    let path = if entry.thread == thread {
        posted.path
    } else {
        0
    };
    stream.outcome(&Raw {
        operation: posted.operation,
        flags: posted.flags & !flags::PAUSED,
        path,
        group: posted.group,
        send: NOBODY,
        receive: arrived,
        extra: 0,
    })
}

#[cold]
fn is_cancelled(status: &MPI_Status) -> bool {
    let mut flag = 0;
    // SAFETY: a status of a completed request.
    unsafe { real::MPI_Test_cancelled(status, &mut flag) };
    flag != 0
}

/// Records the call with what it completed.
#[inline(always)]
fn record(call: &mut Call, mut raw: Raw) {
    let (enter, leave) = (call.enter, call.leave);
    let (stream, scratch, _) = call.parts();
    if scratch.elsewhere.is_empty() && scratch.completed.len() <= MAX_ENTRIES {
        if let Some(list) = stream.completion_list(&scratch.completed) {
            raw.extra = u64::from(list);
            return stream.record(&raw, enter, leave);
        }
    }
    record_extended(stream, scratch, &raw, enter, leave);
}

#[cold]
fn record_extended(stream: &mut Stream, scratch: &Scratch, raw: &Raw, enter: u64, leave: u64) {
    let own = scratch.completed.iter();
    let own = own.map(|&(delta, outcome)| Record::extension(Extension::Completed, delta, outcome));
    let mut extensions: Vec<Record> = own.collect();
    for &(thread, post, outcome) in &scratch.elsewhere {
        extensions.push(Record::extension(
            Extension::CompletedElsewhere,
            thread,
            post,
        ));
        if outcome != 0 {
            extensions.push(Record::extension(Extension::Outcome, outcome, 0));
        }
    }
    stream.record_slowly(raw, &extensions, enter, leave);
}

/// Begins to note completions.
#[inline(always)]
fn begin(call: &mut Call) -> Raw {
    let raw = call.raw();
    let (_, scratch, _) = call.parts();
    scratch.completed.clear();
    scratch.elsewhere.clear();
    raw
}

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
            return record_unsuccessful(call, &raw);
        }
        // A call that failed has completed the request all the same, if it took it away.
        // SAFETY: the program's request.
        if call.succeeded() || is_null(unsafe { *self.request }) {
            let (stream, scratch, thread) = call.parts();
            // SAFETY: filled in by a completed request.
            scratch.complete(stream, thread, 0, unsafe { self.status.get() });
        }
        record(call, raw);
    }
}

fn is_null(request: MPI_Request) -> bool {
    request.bits() == constants().request_null.bits()
}

/// Wait and Test for all requests of an array.
pub struct All {
    count: c_int,
    requests: *const MPI_Request,
    flag: Option<*const c_int>,
    statuses: *mut *mut MPI_Status,
    ignored: bool,
}

/// Waits for all requests.
#[inline(always)]
pub fn waitall(count: c_int, requests: *mut MPI_Request, statuses: *mut *mut MPI_Status) -> All {
    All {
        count,
        requests,
        flag: None,
        statuses,
        ignored: false,
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
        self.ignored = substitute(scratch, self.statuses);
    }

    fn after(&mut self, call: &mut Call) {
        let mut raw = begin(call);
        // SAFETY: set by a call that succeeded.
        if call.succeeded() && self.flag.is_some_and(|flag| unsafe { *flag } == 0) {
            raw.flags |= flags::UNSUCCESSFUL;
            return record_unsuccessful(call, &raw);
        }
        let succeeded = call.succeeded();
        for i in 0..self.count.max(0) as usize {
            // SAFETY: the program's arrays of so many elements.
            let (request, status) = unsafe { (*self.requests.add(i), &*(*self.statuses).add(i)) };
            if succeeded || is_null(request) {
                let (stream, scratch, thread) = call.parts();
                scratch.complete(stream, thread, i, status);
            }
        }
        if self.ignored {
            restore_error(call, *self);
        }
        record(call, raw);
    }
}

impl Clone for All {
    fn clone(&self) -> Self {
        *self
    }
}
impl Copy for All {}

/// Has the real call fill in statuses in any case; whether the program ignores them.
#[inline(always)]
fn substitute(scratch: &mut Scratch, statuses: *mut *mut MPI_Status) -> bool {
    // SAFETY: the wrapper's own variable.
    unsafe {
        let ignored = *statuses == constants().statuses_ignore;
        if ignored {
            *statuses = scratch.statuses();
        }
        ignored
    }
}

/// Without statuses the call would have returned the error itself, not
/// `MPI_ERR_IN_STATUS`.
fn restore_error(call: &mut Call, all: All) {
    if call.result != constants().err_in_status {
        return;
    }
    // SAFETY: filled in by the call, as it says.
    let errors =
        (0..all.count.max(0) as usize).map(|i| unsafe { (*(*all.statuses).add(i)).MPI_ERROR });
    let pending = constants().err_pending;
    if let Some(error) = errors
        .into_iter()
        .find(|&error| error != SUCCESS && error != pending)
    {
        call.result = error;
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
        if call.succeeded() {
            // SAFETY: set by a call that succeeded.
            if self.flag.is_some_and(|flag| unsafe { *flag } == 0) {
                raw.flags |= flags::UNSUCCESSFUL;
                return record_unsuccessful(call, &raw);
            }
            // SAFETY: as above.
            let index = unsafe { *self.index };
            if index != MPI_UNDEFINED && index >= 0 {
                let (stream, scratch, thread) = call.parts();
                // SAFETY: filled in by a completed request.
                scratch.complete(stream, thread, index as usize, unsafe { self.status.get() });
            }
        }
        record(call, raw);
    }
}

/// Wait and Test for some requests of an array.
pub struct Some_ {
    count: c_int,
    requests: *const MPI_Request,
    completed: *const c_int,
    indices: *const c_int,
    statuses: *mut *mut MPI_Status,
    ignored: bool,
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
        ignored: false,
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
        self.ignored = substitute(scratch, self.statuses);
    }

    fn after(&mut self, call: &mut Call) {
        let mut raw = begin(call);
        let in_status = call.result == constants().err_in_status;
        let mut n = 0;
        if call.succeeded() || in_status {
            // SAFETY: set by a call that got so far.
            n = unsafe { *self.completed };
            if n == 0 {
                // Of Testsome: Waitsome has at least one, or MPI_UNDEFINED.
                raw.flags |= flags::UNSUCCESSFUL;
                return record_unsuccessful(call, &raw);
            }
        }
        for i in 0..n.max(0) as usize {
            // SAFETY: so many indices and statuses were filled in.
            let (index, status) = unsafe { (*self.indices.add(i), &*(*self.statuses).add(i)) };
            let (stream, scratch, thread) = call.parts();
            scratch.complete(stream, thread, index as usize, status);
        }
        if self.ignored && in_status {
            let all = All {
                count: n,
                ..waitall(n, self.requests.cast_mut(), self.statuses)
            };
            restore_error(call, all);
        }
        record(call, raw);
    }
}

/// Gives a request back without waiting for it.
pub struct Free(*mut MPI_Request);

/// Gives a request back without waiting for it.
pub fn request_free(request: *mut MPI_Request) -> Free {
    Free(request)
}

impl Operation for Free {
    fn before(&mut self, call: &mut Call) {
        call.thread().scratch.keep(1, self.0);
    }

    fn after(&mut self, call: &mut Call) {
        let raw = call.raw();
        if call.succeeded() {
            // What was under way goes on, and nothing will tell of its end.
            let handles = &call.thread().scratch.handles;
            if let Some(&handle) = handles.first() {
                request::remove(handle, self.0.addr());
            }
        }
        call.record(&raw);
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
