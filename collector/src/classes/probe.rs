//! Probes, and receives of probed messages.

use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

use laggard_trace::{Subject, flags};

use super::receive::{Status, Wanted, is_truncated};
use super::send::post;
use super::{Operation, handle_at};
use crate::call::Call;
use crate::constants::{Handle, constants};
use crate::ffi::{MPI_Comm, MPI_Datatype, MPI_Message, MPI_Request, MPI_Status};
use crate::groups::Group;
use crate::hash::FastMap;
use crate::signature::{Half, Raw};
use crate::stream::Stream;

/// A probe for a message.
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

/// Waits for a message, which stays in the queue.
pub fn probe(source: c_int, tag: c_int, comm: MPI_Comm, status: *mut *mut MPI_Status) -> Probe {
    Probe::new(source, tag, comm, status)
}

/// Tests for a message, which stays in the queue.
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

/// Tests for a message and takes it out of the queue.
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

    #[inline(always)]
    fn subject(&self, stream: &mut Stream) -> Subject {
        self.wanted.subject(stream)
    }

    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        if !call.succeeded() {
            return call.record(&raw);
        }
        // SAFETY: a call that succeeded has set it.
        if self.flag.is_some_and(|flag| unsafe { *flag } == 0) {
            self.wanted.posted(call, &mut raw, 0);
            raw.flags = raw.flags & !flags::RECEIVES | flags::UNSUCCESSFUL;
            return call.record_unsuccessful(&raw);
        }
        // SAFETY: filled in, because there is a message.
        let status = unsafe { self.status.get() };
        self.wanted.received(call, &mut raw, status);
        match self.message {
            None => raw.flags |= flags::PEEKS,
            // SAFETY: a call that succeeded has set it.
            Some(message) => messages::insert(unsafe { *message }, &raw),
        }
        call.record(&raw);
    }
}

/// Messages that an Mprobe took and no Mrecv has received yet.
mod messages {
    use super::*;

    static TAKEN: Mutex<Option<FastMap<usize, (usize, Half)>>> = Mutex::new(None);

    pub fn insert(message: MPI_Message, raw: &Raw) {
        if message.bits() == constants().message_no_proc.bits() {
            return;
        }
        if let Some(group) = raw.group() {
            group.hold();
        }
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = taken.get_or_insert_with(FastMap::default);
        taken.insert(message.bits(), (raw.group as usize, raw.receive));
    }

    pub fn remove(message: usize) -> Option<(*const Group, Half)> {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let (group, half) = taken.as_mut()?.remove(&message)?;
        Some((group as *const Group, half))
    }
}

pub struct Mrecv {
    message: *mut MPI_Message,
    handle: Option<usize>,
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
        handle: None,
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
        handle: None,
        request: Some(request),
    }
}

impl Operation for Mrecv {
    fn before(&mut self, _call: &mut Call) {
        self.handle = handle_at(self.message);
    }

    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        if (call.succeeded() || is_truncated(call))
            && let Some((group, half)) = self.handle.and_then(messages::remove)
        {
            // The probe took the match: this half is informative only.
            (raw.group, raw.receive) = (group, half);
        }
        if let Some(request) = self.request.filter(|_| call.succeeded()) {
            raw.flags |= flags::POSTS;
            post(call, &raw, true, request, 0);
        }
        call.record(&raw);
    }
}
