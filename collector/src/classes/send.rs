//! Sends: blocking, non-blocking, persistent.

use std::ffi::c_int;

use laggard_trace::{Subject, flags};

use super::Operation;
use crate::call::Call;
use crate::constants::{Handle, MPI_PROC_NULL};
use crate::ffi::{MPI_Comm, MPI_Datatype, MPI_Request};
use crate::request::{self, Entry, Posted, kind};
use crate::signature::{Half, Raw};
use crate::stream::Stream;

/// A message to send, and its destination.
#[derive(Clone, Copy)]
pub struct Message {
    /// Elements.
    pub count: c_int,
    /// Type of an element.
    pub datatype: MPI_Datatype,
    /// Rank in the communicator.
    pub peer: c_int,
    pub tag: c_int,
    /// Communicator.
    pub comm: MPI_Comm,
}

impl Message {
    /// Fills in the send half of a call that succeeded.
    #[inline(always)]
    pub fn send_half(&self, call: &mut Call, raw: &mut Raw) {
        let stream = call.stream();
        raw.group = stream.communicator(self.comm);
        let bytes = stream.volume(i64::from(self.count), self.datatype);
        raw.send = Half::new(self.peer, self.tag, bytes);
        if self.peer != MPI_PROC_NULL {
            raw.flags |= flags::SENDS;
        }
    }
}

/// The subject of a call that waits for a rank.
#[inline(always)]
pub fn subject_of(stream: &mut Stream, comm: MPI_Comm, peer: c_int, tag: c_int) -> Subject {
    match stream.known_communicator(comm) {
        Some(group) => Subject {
            group: group.id,
            peer: group.world_rank(peer),
            tag,
            ..Subject::NONE
        },
        None => Subject::NONE,
    }
}

pub struct Send(Message);

/// A blocking send.
#[inline(always)]
pub fn send(count: c_int, datatype: MPI_Datatype, peer: c_int, tag: c_int, comm: MPI_Comm) -> Send {
    Send(Message {
        count,
        datatype,
        peer,
        tag,
        comm,
    })
}

impl Operation for Send {
    #[inline(always)]
    fn subject(&self, stream: &mut Stream) -> Subject {
        let message = &self.0;
        subject_of(stream, message.comm, message.peer, message.tag)
    }

    #[inline]
    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        if call.succeeded() {
            self.0.send_half(call, &mut raw);
        }
        call.record(&raw);
    }
}

pub struct Isend(Message, *mut MPI_Request);

/// A non-blocking send.
#[inline(always)]
pub fn isend(
    count: c_int,
    datatype: MPI_Datatype,
    peer: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Isend {
    Isend(
        Message {
            count,
            datatype,
            peer,
            tag,
            comm,
        },
        request,
    )
}

impl Operation for Isend {
    #[inline]
    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        if call.succeeded() {
            self.0.send_half(call, &mut raw);
            raw.flags |= flags::POSTS;
            post(call, &raw, false, self.1, 0);
        }
        call.record(&raw);
    }
}

/// Registers the request that a call posts; the call is recorded right after.
#[inline(always)]
pub fn post(call: &mut Call, raw: &Raw, receive: bool, request: *const MPI_Request, extra: u8) {
    let (stream, _, thread) = call.parts();
    let entry = Entry::new(
        Posted::new(raw, receive),
        kind::ACTIVE | extra,
        thread,
        stream.posts(),
    );
    request::insert(request, entry);
}

pub struct SendInit(Message, *mut MPI_Request);

/// A persistent send, not started yet.
pub fn send_init(
    count: c_int,
    datatype: MPI_Datatype,
    peer: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> SendInit {
    SendInit(
        Message {
            count,
            datatype,
            peer,
            tag,
            comm,
        },
        request,
    )
}

impl Operation for SendInit {
    fn after(&mut self, call: &mut Call) {
        call.guarded(|call| {
            let mut raw = call.raw();
            if call.succeeded() {
                self.0.send_half(call, &mut raw);
                let entry = Entry::new(
                    Posted::new(&raw, false),
                    kind::PERSISTENT | kind::SEND,
                    0,
                    0,
                );
                request::insert(self.1, entry);
                raw.flags &= !flags::SENDS;
            }
            call.record(&raw);
        });
    }
}

/// Starts persistent requests.
pub struct Start {
    count: c_int,
    requests: *const MPI_Request,
}

/// Starts a persistent request.
pub fn start(request: *mut MPI_Request) -> Start {
    startall(1, request)
}

/// Starts several persistent requests.
pub fn startall(count: c_int, requests: *mut MPI_Request) -> Start {
    Start { count, requests }
}

impl Operation for Start {
    fn after(&mut self, call: &mut Call) {
        call.guarded(|call| {
            let mut bare = call.raw();
            if !call.succeeded() || self.count <= 0 {
                return call.record(&bare);
            }
            bare.flags |= flags::POSTS | flags::PERSISTENT;
            for i in 0..self.count as usize {
                // SAFETY: the program's array of `count` requests.
                let handle = unsafe { *self.requests.add(i) }.bits();
                let is_last = i + 1 == self.count as usize;
                started(call, bare, handle, is_last);
            }
        });
    }
}

/// Records the start of one request. Of several, only the last is not a part.
fn started(call: &mut Call, bare: Raw, handle: usize, is_last: bool) {
    let Some(mut entry) = request::find(handle, 0) else {
        // The call that made the request was not seen: only its start is known.
        let unknown = Raw {
            flags: bare.flags & !flags::POSTS,
            ..bare
        };
        if is_last {
            call.record(&unknown);
        }
        return;
    };
    let mut raw = bare;
    raw.group = entry.posted.group;
    let half = entry.posted.half;
    const OWN: u16 =
        flags::SENDS | flags::RECEIVES | flags::ANY_SOURCE | flags::ANY_TAG | flags::COLLECTIVE;
    raw.flags |= entry.posted.flags & OWN;
    if entry.is(kind::COLLECTIVE) {
        raw.operation = entry.posted.operation;
        raw.send = half;
        raw.receive.bytes = entry.posted.received;
    } else if entry.is(kind::SEND) {
        raw.send = half;
    } else {
        raw.receive = half;
    }
    let (stream, _, thread) = call.parts();
    (entry.thread, entry.post) = (thread, stream.posts() as u32);
    entry.kind = entry.kind & !kind::CANCELLED | kind::ACTIVE;
    (entry.posted.path, entry.posted.operation) = (raw.path, raw.operation);
    entry.posted.flags = raw.flags;
    request::update(handle, |known| *known = entry);
    if is_last {
        call.record(&raw);
    } else {
        raw.flags |= flags::PART;
        let enter = call.enter;
        call.stream().record_part(&raw, enter);
    }
}
