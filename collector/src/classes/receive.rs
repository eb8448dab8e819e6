//! Receives and probes.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::Mutex;
use std::sync::PoisonError;

use laggard_trace::{Endpoint, flags};

use super::Operation;
use super::send::{Message, post};
use crate::constants::{
    Handle, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_PROC_NULL, constants, status_bytes,
};
use crate::ffi::{MPI_Comm, MPI_Datatype, MPI_Message, MPI_Request, MPI_Status};
use crate::groups::Group;
use crate::hash::FastMap;
use crate::request::{self, Entry, Posted, kind};
use crate::signature::Raw;
use crate::thread::Call;

/// The status of one call: the program's, or our own where it ignores it.
pub struct Status {
    argument: *mut *mut MPI_Status,
    own: MaybeUninit<MPI_Status>,
}

impl Status {
    /// For the wrapper's status argument.
    #[inline(always)]
    pub fn new(argument: *mut *mut MPI_Status) -> Self {
        Status {
            argument,
            own: MaybeUninit::uninit(),
        }
    }

    /// Has the real call fill in a status in any case.
    #[inline(always)]
    pub fn prepare(&mut self) {
        // SAFETY: the wrapper's own variable.
        unsafe {
            if *self.argument == constants().status_ignore {
                *self.argument = self.own.as_mut_ptr();
            }
        }
    }

    /// What the real call filled in.
    ///
    /// # Safety
    /// The call filled it in.
    #[inline(always)]
    pub unsafe fn get(&self) -> &MPI_Status {
        // SAFETY: see above.
        unsafe { &**self.argument }
    }
}

/// A receive as it was asked for.
#[derive(Clone, Copy)]
pub struct Wanted {
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
}

impl Wanted {
    #[inline(always)]
    fn wildcards(&self) -> u16 {
        let mut found = 0;
        if self.source == MPI_ANY_SOURCE {
            found |= flags::ANY_SOURCE;
        }
        if self.tag == MPI_ANY_TAG {
            found |= flags::ANY_TAG;
        }
        found
    }

    /// Fills in the receive half with what arrived.
    #[inline(always)]
    fn received(&self, call: &mut Call, raw: &mut Raw, status: &MPI_Status) {
        raw.group = call.stream().communicator(self.comm);
        raw.receive = arrived(status);
        raw.flags |= self.wildcards();
        if raw.receive.peer != MPI_PROC_NULL {
            raw.flags |= flags::RECEIVES;
        }
    }

    /// Fills in the receive half with what was asked for.
    #[inline(always)]
    fn posted(&self, call: &mut Call, raw: &mut Raw, bytes: u64) {
        raw.group = call.stream().communicator(self.comm);
        raw.receive = Endpoint {
            peer: self.source,
            tag: self.tag,
            bytes,
        };
        raw.flags |= self.wildcards();
        if self.source != MPI_PROC_NULL {
            raw.flags |= flags::RECEIVES;
        }
    }
}

/// Source, tag and bytes of a message, as its status says.
#[inline(always)]
pub fn arrived(status: &MPI_Status) -> Endpoint {
    Endpoint {
        peer: status.MPI_SOURCE,
        tag: status.MPI_TAG,
        bytes: status_bytes(status),
    }
}

/// A blocking receive.
pub struct Recv(Wanted, Status);

/// A blocking receive.
#[inline(always)]
pub fn recv(
    _count: c_int,
    _datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    status: *mut *mut MPI_Status,
) -> Recv {
    Recv(Wanted { source, tag, comm }, Status::new(status))
}

impl Operation for Recv {
    #[inline(always)]
    fn before(&mut self, _call: &mut Call) {
        self.1.prepare();
    }

    #[inline]
    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        if call.succeeded() {
            // SAFETY: filled in by a receive that succeeded.
            self.0.received(call, &mut raw, unsafe { self.1.get() });
        }
        call.record(&raw);
    }
}

/// A send and a receive in one call.
pub struct Sendrecv(Message, Wanted, Status);

/// A send and a receive in one call.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub fn sendrecv(
    count: c_int,
    datatype: MPI_Datatype,
    peer: c_int,
    tag: c_int,
    _receive_count: c_int,
    _receive_type: MPI_Datatype,
    source: c_int,
    receive_tag: c_int,
    comm: MPI_Comm,
    status: *mut *mut MPI_Status,
) -> Sendrecv {
    let message = Message {
        count,
        datatype,
        peer,
        tag,
        comm,
    };
    Sendrecv(
        message,
        Wanted {
            source,
            tag: receive_tag,
            comm,
        },
        Status::new(status),
    )
}

impl Operation for Sendrecv {
    #[inline(always)]
    fn before(&mut self, _call: &mut Call) {
        self.2.prepare();
    }

    #[inline]
    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        if call.succeeded() {
            self.0.send_half(call, &mut raw);
            // SAFETY: filled in by a receive that succeeded.
            self.1.received(call, &mut raw, unsafe { self.2.get() });
        }
        call.record(&raw);
    }
}

/// A non-blocking receive.
pub struct Irecv {
    count: c_int,
    datatype: MPI_Datatype,
    wanted: Wanted,
    request: *mut MPI_Request,
    persistent: bool,
}

/// A non-blocking receive.
#[inline(always)]
pub fn irecv(
    count: c_int,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Irecv {
    Irecv {
        count,
        datatype,
        wanted: Wanted { source, tag, comm },
        request,
        persistent: false,
    }
}

/// A persistent receive, not started yet.
pub fn recv_init(
    count: c_int,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Irecv {
    Irecv {
        persistent: true,
        ..irecv(count, datatype, source, tag, comm, request)
    }
}

impl Operation for Irecv {
    #[inline]
    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        if call.succeeded() {
            let bytes = call.stream().volume(i64::from(self.count), self.datatype);
            self.wanted.posted(call, &mut raw, bytes);
            if self.persistent {
                let posted = Posted::new(&raw, true);
                let entry = Entry::new(posted, kind::PERSISTENT | kind::RECEIVE, 0, 0);
                request::insert(self.request, entry);
                raw.flags &= !flags::RECEIVES;
            } else {
                raw.flags |= flags::POSTS;
                post(call, &raw, true, self.request, kind::RECEIVE);
            }
        }
        call.record(&raw);
    }
}

/// A look at the next message.
pub struct Probe {
    wanted: Wanted,
    status: Status,
    flag: Option<*const c_int>,
    message: Option<*const MPI_Message>,
}

impl Probe {
    fn new(source: c_int, tag: c_int, comm: MPI_Comm, status: *mut *mut MPI_Status) -> Self {
        let wanted = Wanted { source, tag, comm };
        Probe {
            wanted,
            status: Status::new(status),
            flag: None,
            message: None,
        }
    }
}

/// Waits for a message; it stays in the queue.
pub fn probe(source: c_int, tag: c_int, comm: MPI_Comm, status: *mut *mut MPI_Status) -> Probe {
    Probe::new(source, tag, comm, status)
}

/// Asks for a message; it stays in the queue.
pub fn iprobe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    flag: *mut c_int,
    status: *mut *mut MPI_Status,
) -> Probe {
    Probe {
        flag: Some(flag),
        ..Probe::new(source, tag, comm, status)
    }
}

/// Waits for a message and takes it out of the queue.
pub fn mprobe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    message: *mut MPI_Message,
    status: *mut *mut MPI_Status,
) -> Probe {
    Probe {
        message: Some(message),
        ..Probe::new(source, tag, comm, status)
    }
}

/// Asks for a message and takes it out of the queue.
pub fn improbe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    flag: *mut c_int,
    message: *mut MPI_Message,
    status: *mut *mut MPI_Status,
) -> Probe {
    Probe {
        flag: Some(flag),
        ..mprobe(source, tag, comm, message, status)
    }
}

impl Operation for Probe {
    #[inline(always)]
    fn before(&mut self, _call: &mut Call) {
        self.status.prepare();
    }

    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        if !call.succeeded() {
            return call.record(&raw);
        }
        // SAFETY: set by a call that succeeded.
        if self.flag.is_some_and(|flag| unsafe { *flag } == 0) {
            self.wanted.posted(call, &mut raw, 0);
            raw.flags = raw.flags & !flags::RECEIVES | flags::UNSUCCESSFUL;
            return record_unsuccessful(call, &raw);
        }
        // SAFETY: filled in, since there is a message.
        let status = unsafe { self.status.get() };
        self.wanted.received(call, &mut raw, status);
        match self.message {
            None => raw.flags |= flags::PEEKS,
            // SAFETY: set by a call that succeeded.
            Some(message) => messages::insert(unsafe { *message }, &raw),
        }
        call.record(&raw);
    }
}

/// Records a call that found nothing done.
pub fn record_unsuccessful(call: &mut Call, raw: &Raw) {
    let (enter, leave, paused) = (call.enter, call.leave, call.is_paused());
    let stream = call.stream();
    if paused {
        stream.skip();
    } else {
        stream.record_polling(raw, enter, leave);
    }
}

/// Messages that an Mprobe took and no Mrecv received yet.
mod messages {
    use super::*;

    static TAKEN: Mutex<Option<FastMap<usize, (usize, Endpoint)>>> = Mutex::new(None);

    pub fn insert(message: MPI_Message, raw: &Raw) {
        if message.bits() == constants().message_no_proc.bits() {
            return;
        }
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = taken.get_or_insert_with(FastMap::default);
        taken.insert(message.bits(), (raw.group as usize, raw.receive));
    }

    pub fn remove(message: usize) -> Option<(*const Group, Endpoint)> {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let (group, endpoint) = taken.as_mut()?.remove(&message)?;
        Some((group as *const Group, endpoint))
    }
}

/// Receives a message that an Mprobe took.
pub struct Mrecv {
    message: *mut MPI_Message,
    handle: usize,
    request: Option<*mut MPI_Request>,
}

/// Receives a message that an Mprobe took.
pub fn mrecv(
    _count: c_int,
    _datatype: MPI_Datatype,
    message: *mut MPI_Message,
    _status: *mut *mut MPI_Status,
) -> Mrecv {
    Mrecv {
        message,
        handle: 0,
        request: None,
    }
}

/// Begins to receive a message that an Mprobe took.
pub fn imrecv(
    _count: c_int,
    _datatype: MPI_Datatype,
    message: *mut MPI_Message,
    request: *mut MPI_Request,
) -> Mrecv {
    Mrecv {
        message,
        handle: 0,
        request: Some(request),
    }
}

impl Operation for Mrecv {
    fn before(&mut self, _call: &mut Call) {
        // SAFETY: the program's message; the real call sets it to null.
        self.handle = unsafe { *self.message }.bits();
    }

    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        if call.succeeded() {
            if let Some((group, endpoint)) = messages::remove(self.handle) {
                // The probe took the match: this half is for information.
                (raw.group, raw.receive) = (group, endpoint);
            }
            if let Some(request) = self.request {
                raw.flags |= flags::POSTS;
                post(call, &raw, true, request, 0);
            }
        }
        call.record(&raw);
    }
}
