//! Completions: the requests that a call completed, and their outcomes.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;
use std::slice;

use laggard_trace::{Extension, OUTCOME_CANCELLED, Record, flags};

use super::receive::arrived;
use crate::call::Call;
use crate::constants::{Handle, constants};
use crate::exports::real;
use crate::ffi::{MPI_Request, MPI_Status};
use crate::lists::MAX_ENTRIES;
use crate::request::{self, Entry, kind};
use crate::signature::{NOBODY, Raw};
use crate::stream::Stream;

/// Memory that calls with many requests reuse.
#[derive(Default)]
pub struct Scratch {
    /// The handles before the call, which nulls them.
    handles: Vec<usize>,
    /// Address of the program's array of requests.
    array: usize,
    /// Their entries at that time, where calls may run concurrently.
    known: Vec<Option<Entry>>,
    /// Statuses, if the program ignores them.
    statuses: Vec<MaybeUninit<MPI_Status>>,
    /// (delta, outcome) of requests that this thread posted.
    completed: Vec<(u32, u32)>,
    /// (thread, post, outcome) of requests that other threads posted.
    elsewhere: Vec<(u32, u32, u32)>,
    /// Number of requests on both lists that are of file operations.
    files: usize,
    /// Both lists as records.
    extensions: Vec<Record>,
}

impl Scratch {
    /// Keeps the handles of an array.
    #[inline(always)]
    pub fn keep(&mut self, count: c_int, requests: *const MPI_Request) {
        self.handles.clear();
        self.known.clear();
        self.array = requests.expose_provenance();
        if requests.is_null() {
            return;
        }
        // SAFETY: the program's array of `count` requests.
        let requests = unsafe { slice::from_raw_parts(requests, count.max(0) as usize) };
        self.handles
            .extend(requests.iter().map(|request| request.bits()));
        if request::is_concurrent() {
            let known = self.handles.iter().enumerate();
            let variable = |i| self.array.wrapping_add(i * size_of::<MPI_Request>());
            self.known
                .extend(known.map(|(i, &handle)| request::find(handle, variable(i))));
        }
    }

    /// Address of the program's i-th request.
    #[inline(always)]
    fn variable(&self, i: usize) -> usize {
        self.array.wrapping_add(i * size_of::<MPI_Request>())
    }

    /// Number of handles kept.
    pub fn len(&self) -> usize {
        self.handles.len()
    }

    /// Whether the i-th handle kept was a request that the call has nulled.
    pub fn is_taken(&self, i: usize) -> bool {
        let null = constants().request_null.bits();
        if self.handles.get(i).is_none_or(|&handle| handle == null) {
            return false;
        }
        let variable = ptr::with_exposed_provenance::<MPI_Request>(self.variable(i));
        // SAFETY: the program's variable that held the handle.
        unsafe { *variable }.bits() == null
    }

    /// The first handle kept.
    pub fn first(&self) -> Option<usize> {
        self.handles.first().copied()
    }

    /// Room for the statuses of the handles kept.
    pub fn statuses(&mut self) -> *mut MPI_Status {
        let n = self.handles.len();
        if self.statuses.len() < n {
            self.statuses.resize(n, MaybeUninit::zeroed());
        }
        self.statuses.as_mut_ptr().cast()
    }

    /// Notes the completion of all handles kept.
    ///
    /// # Safety
    /// `statuses` has one status per handle.
    #[inline]
    pub unsafe fn complete_all(
        &mut self,
        stream: &mut Stream,
        thread: u32,
        statuses: *const MPI_Status,
    ) {
        for i in 0..self.handles.len() {
            // SAFETY: as the caller states.
            self.complete(stream, thread, i, unsafe { &*statuses.add(i) });
        }
    }

    /// Notes the completion of the i-th handle kept.
    #[inline(always)]
    pub fn complete(&mut self, stream: &mut Stream, thread: u32, i: usize, status: &MPI_Status) {
        let Some(&handle) = self.handles.get(i) else {
            return;
        };
        let before = self.known.get(i).and_then(Option::as_ref);
        let ended = request::complete(handle, self.variable(i), before, |entry| {
            let otherwise = (!is_as_posted(entry, status)).then_some(*entry);
            (entry.thread, entry.post, entry.is(kind::FILE), otherwise)
        });
        let Some((poster, post, is_file, otherwise)) = ended else {
            return;
        };
        self.files += usize::from(is_file);
        let outcome = match otherwise {
            Some(entry) => outcome(stream, thread, &entry, status),
            None => 0,
        };
        self.note(stream, thread, (poster, post), outcome);
    }

    /// Notes that a request is complete but stays.
    pub fn settle(&mut self, stream: &mut Stream, thread: u32, handle: usize, status: &MPI_Status) {
        if let Some(entry) = request::settle(handle) {
            let outcome = outcome(stream, thread, &entry, status);
            self.files += usize::from(entry.is(kind::FILE));
            self.note(stream, thread, (entry.thread, entry.post), outcome);
        }
    }

    /// Notes that an active request is freed: no call will complete it.
    pub fn freed(&mut self, stream: &Stream, thread: u32, entry: &Entry) {
        self.files += usize::from(entry.is(kind::FILE));
        self.note(stream, thread, (entry.thread, entry.post), 0);
    }

    /// Notes the outcome of the request with this thread and post number.
    #[inline(always)]
    fn note(&mut self, stream: &Stream, thread: u32, (poster, post): (u32, u32), outcome: u32) {
        if poster == thread {
            let delta = (stream.posts() as u32).wrapping_sub(post);
            self.completed.push((delta, outcome));
        } else {
            self.elsewhere.push((poster, post, outcome));
        }
    }
}

/// Whether a request ended as posted, as far as a quick check can tell.
#[inline(always)]
fn is_as_posted(entry: &Entry, status: &MPI_Status) -> bool {
    !entry.is(kind::CANCELLED) && (!tells_more(entry) || arrived_as_posted(entry, status))
}

/// Whether the status of a request adds to its post.
#[inline(always)]
fn tells_more(entry: &Entry) -> bool {
    entry.is(kind::RECEIVE) && entry.posted.flags & flags::RECEIVES != 0
}

#[inline(always)]
fn arrived_as_posted(entry: &Entry, status: &MPI_Status) -> bool {
    arrived(status) == entry.posted.half
}

/// Outcome of a request: 0 = as posted, else the id of a signature.
fn outcome(stream: &mut Stream, thread: u32, entry: &Entry, status: &MPI_Status) -> u32 {
    if entry.is(kind::CANCELLED) && is_cancelled(status) {
        return OUTCOME_CANCELLED;
    }
    if !tells_more(entry) || arrived_as_posted(entry, status) {
        return 0;
    }
    let posted = &entry.posted;
    let path = if entry.thread == thread {
        posted.path
    } else {
        0
    };
    stream.outcome(&Raw {
        operation: posted.operation,
        flags: posted.flags & !(flags::PAUSED | flags::PROFILED),
        path,
        group: posted.group,
        send: NOBODY,
        receive: arrived(status),
        extra: 0,
    })
}

#[cold]
fn is_cancelled(status: &MPI_Status) -> bool {
    let mut flag = 0;
    // SAFETY: the status of a completed request.
    unsafe { real::MPI_Test_cancelled(status, &mut flag) };
    flag != 0
}

/// Records the call with its completions.
#[inline(always)]
pub fn record(call: &mut Call, mut raw: Raw) {
    let (enter, leave) = (call.enter, call.leave);
    let (stream, scratch, _) = call.parts();
    if scratch.files != 0 && scratch.files == scratch.completed.len() + scratch.elsewhere.len() {
        raw.flags |= flags::ON_FILES;
    }
    if scratch.elsewhere.is_empty()
        && scratch.completed.len() <= MAX_ENTRIES
        && let Some(list) = stream.completion_list(&scratch.completed)
    {
        raw.extra = u64::from(list);
        return stream.record(&raw, enter, leave);
    }
    record_extended(stream, scratch, &raw, enter, leave);
}

#[cold]
fn record_extended(stream: &mut Stream, scratch: &mut Scratch, raw: &Raw, enter: u64, leave: u64) {
    let extensions = &mut scratch.extensions;
    let own = scratch.completed.iter();
    let own = own.map(|&(delta, outcome)| Record::extension(Extension::Completed, delta, outcome));
    extensions.clear();
    extensions.extend(own);
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
    stream.record_slowly(raw, extensions, enter, leave);
}

/// Starts a list of completions.
#[inline(always)]
pub fn begin(call: &mut Call) -> Raw {
    let raw = call.raw();
    let (_, scratch, _) = call.parts();
    scratch.completed.clear();
    scratch.elsewhere.clear();
    scratch.files = 0;
    raw
}
