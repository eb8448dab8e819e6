//! Receives and probes.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;

use laggard_trace::{Subject, flags};

use super::Operation;
use super::send::{Message, post, subject_of};
use crate::call::Call;
use crate::constants::{
    MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_PROC_NULL, SUCCESS, constants, status_bytes,
};
use crate::exports::real;
use crate::ffi::{MPI_Comm, MPI_Datatype, MPI_Request, MPI_Status};
use crate::request::{self, Entry, Posted, kind};
use crate::signature::{Half, Raw};
use crate::stream::Stream;

/// The status of one call: the program's, or our own if the program ignores it.
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

    /// Makes the real call fill in a status in any case.
    #[inline(always)]
    pub fn prepare(&mut self) {
        // SAFETY: the wrapper's own variable.
        unsafe {
            if *self.argument == constants().status_ignore {
                // A failed call may leave parts of it unset.
                let own = self.own.write(std::mem::zeroed());
                own.MPI_SOURCE = MPI_PROC_NULL;
                *self.argument = own;
            }
        }
    }

    /// The status as the real call left it.
    ///
    /// # Safety
    /// The call filled it in.
    #[inline(always)]
    pub unsafe fn get(&self) -> &MPI_Status {
        // SAFETY: see above.
        unsafe { &**self.argument }
    }
}

/// A receive as posted.
#[derive(Clone, Copy)]
pub struct Wanted {
    /// Rank in the communicator, or any.
    pub source: c_int,
    /// Tag, or any.
    pub tag: c_int,
    /// Communicator.
    pub comm: MPI_Comm,
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

    /// The sender that the call waits for.
    #[inline(always)]
    pub fn subject(&self, stream: &mut Stream) -> Subject {
        subject_of(stream, self.comm, self.source, self.tag)
    }

    /// Fills in the receive half of a call that returned, if a message arrived.
    #[inline(always)]
    fn returned(&self, call: &mut Call, raw: &mut Raw, status: &Status) {
        if call.succeeded() {
            // SAFETY: a receive that succeeded filled it in.
            self.received(call, raw, unsafe { status.get() });
        } else if is_truncated(call) {
            self.truncated(call, raw, status);
        }
    }

    /// Fills in the receive half with a message that was too long. Some libraries omit parts of
    /// the status for such a message.
    #[cold]
    fn truncated(&self, call: &mut Call, raw: &mut Raw, status: &Status) {
        // SAFETY: the program's, or ours, which was zeroed.
        let mut status = unsafe { *status.get() };
        if self.source != MPI_ANY_SOURCE {
            status.MPI_SOURCE = self.source;
        }
        if self.tag != MPI_ANY_TAG {
            status.MPI_TAG = self.tag;
        }
        self.received(call, raw, &status);
    }

    /// Fills in the receive half with the message that arrived.
    #[inline(always)]
    pub fn received(&self, call: &mut Call, raw: &mut Raw, status: &MPI_Status) {
        raw.group = call.stream().communicator(self.comm);
        raw.receive = arrived(status);
        raw.flags |= self.wildcards();
        if raw.receive.peer() != MPI_PROC_NULL {
            raw.flags |= flags::RECEIVES;
        }
    }

    /// Fills in the receive half with the posted values.
    #[inline(always)]
    pub fn posted(&self, call: &mut Call, raw: &mut Raw, bytes: u64) {
        raw.group = call.stream().communicator(self.comm);
        raw.receive = Half::new(self.source, self.tag, bytes);
        raw.flags |= self.wildcards();
        if self.source != MPI_PROC_NULL {
            raw.flags |= flags::RECEIVES;
        }
    }
}

/// Whether the call failed because the message was too long for the buffer. It has still
/// consumed the message, as the next one on its channel.
#[cold]
pub fn is_truncated(call: &Call) -> bool {
    error_class(call) == constants().err_truncate
}

/// The error class of the call's result.
#[cold]
#[inline(never)]
pub fn error_class(call: &Call) -> c_int {
    let mut class = SUCCESS;
    // SAFETY: a code that the library returned.
    unsafe { real::MPI_Error_class(call.result, &mut class) };
    class
}

/// Source, tag and bytes of a message, as its status says.
#[inline(always)]
pub fn arrived(status: &MPI_Status) -> Half {
    // The library has just written these two fields. One load of both, as the compiler would
    // make it, would have to wait until both stores have left the store queue.
    // SAFETY: fields of a valid reference.
    let (peer, tag) = unsafe {
        (
            ptr::read_volatile(&status.MPI_SOURCE),
            ptr::read_volatile(&status.MPI_TAG),
        )
    };
    Half::new(peer, tag, status_bytes(status))
}

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

    #[inline(always)]
    fn subject(&self, stream: &mut Stream) -> Subject {
        self.0.subject(stream)
    }

    #[inline]
    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        self.0.returned(call, &mut raw, &self.1);
        call.record(&raw);
    }
}

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

    #[inline(always)]
    fn subject(&self, stream: &mut Stream) -> Subject {
        self.1.subject(stream)
    }

    #[inline]
    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        if call.succeeded() || is_truncated(call) {
            self.0.send_half(call, &mut raw);
            self.1.returned(call, &mut raw, &self.2);
        }
        call.record(&raw);
    }
}

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
