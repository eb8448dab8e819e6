//! Collectives: blocking, non-blocking, and neighbourhood ones.

use std::ffi::c_int;

use laggard_trace::{Subject, flags};

use super::Operation;
use super::send::{post, subject_of};
use super::volume::{Role, Scope, Volume};
use crate::call::Call;
use crate::constants::{MPI_PROC_NULL, MPI_ROOT};
use crate::ffi::{MPI_Comm, MPI_Request};
use crate::groups::{Group, Kind, NO_ROOT};
use crate::periodic;
use crate::request::{self, Entry, Posted, kind};
use crate::signature::{Half, Raw};
use crate::stream::Stream;

/// A collective on a communicator.
pub struct Collective<S, R> {
    comm: MPI_Comm,
    root: c_int,
    sent: S,
    received: R,
    request: Option<*mut MPI_Request>,
    neighbourhood: bool,
    /// Blocking, and ends on no rank before all have entered.
    meets: bool,
}

/// A blocking collective.
#[inline(always)]
pub fn collective<S, R>(comm: MPI_Comm, root: c_int, sent: S, received: R) -> Collective<S, R> {
    Collective {
        comm,
        root,
        sent,
        received,
        request: None,
        neighbourhood: false,
        meets: root == NO_ROOT,
    }
}

/// A blocking collective in which each rank waits only for lower ranks.
#[inline(always)]
pub fn prefix<S, R>(comm: MPI_Comm, sent: S, received: R) -> Collective<S, R> {
    Collective {
        meets: false,
        ..collective(comm, NO_ROOT, sent, received)
    }
}

/// A non-blocking collective.
#[inline(always)]
pub fn icollective<S, R>(
    comm: MPI_Comm,
    root: c_int,
    sent: S,
    received: R,
    request: *mut MPI_Request,
) -> Collective<S, R> {
    Collective {
        request: Some(request),
        meets: false,
        ..collective(comm, root, sent, received)
    }
}

/// A blocking neighbourhood collective.
pub fn neighbour<S, R>(comm: MPI_Comm, sent: S, received: R) -> Collective<S, R> {
    Collective {
        neighbourhood: true,
        meets: false,
        ..collective(comm, NO_ROOT, sent, received)
    }
}

/// A non-blocking neighbourhood collective.
pub fn ineighbour<S, R>(
    comm: MPI_Comm,
    sent: S,
    received: R,
    request: *mut MPI_Request,
) -> Collective<S, R> {
    Collective {
        request: Some(request),
        ..neighbour(comm, sent, received)
    }
}

/// A persistent collective, not started yet.
pub struct Persistent<S, R> {
    started: u16,
    collective: Collective<S, R>,
}

/// A persistent collective, not started yet. Each start is recorded as the non-blocking call
/// `started`. All ranks are assumed to start these in the same order, as non-blocking
/// collectives.
pub fn persistent<S, R>(started: u16, collective: Collective<S, R>) -> Persistent<S, R> {
    Persistent {
        started,
        collective,
    }
}

impl<S: Volume, R: Volume> Operation for Persistent<S, R> {
    fn after(&mut self, call: &mut Call) {
        let raw = call.raw();
        if let Some(request) = self.collective.request.filter(|_| call.succeeded()) {
            let mut started = Raw {
                operation: self.started,
                ..raw
            };
            self.collective.describe(call, &mut started);
            let posted = Posted {
                received: started.receive.bytes,
                ..Posted::new(&started, false)
            };
            let kind = kind::PERSISTENT | kind::COLLECTIVE;
            request::insert(request, Entry::new(posted, kind, 0, 0));
        }
        call.record(&raw);
    }
}

/// This rank's role, and whether arguments not marked for a role count.
#[inline(always)]
fn role(group: &Group, root: c_int) -> (Role, bool) {
    if root == NO_ROOT {
        return (Role::Peer, true);
    }
    if group.kind == Kind::Inter {
        return match root {
            MPI_ROOT => (Role::Root, false),
            MPI_PROC_NULL => (Role::Bystander, false),
            _ => (Role::Leaf, true),
        };
    }
    (
        if root == group.rank {
            Role::Root
        } else {
            Role::Leaf
        },
        true,
    )
}

impl<S: Volume, R: Volume> Collective<S, R> {
    /// Fills in the bytes that the call moves.
    #[inline(always)]
    fn describe(&self, call: &mut Call, raw: &mut Raw) {
        let stream = call.stream();
        let group = stream.communicator(self.comm);
        let (role, plain) = role(group, self.root);
        let all = group.peers.len();
        let (sources, destinations) = match self.neighbourhood {
            false => (all, all),
            true => group.degrees(),
        };
        let size = group.members.len();
        let rank = group.rank.max(0) as usize;
        let mut scope = Scope {
            stream,
            role,
            plain,
            parties: destinations,
            size,
            rank,
        };
        let sent = self.sent.bytes(&mut scope);
        scope.parties = sources;
        let received = self.received.bytes(&mut scope);
        raw.group = group;
        raw.send = Half::new(self.root, 0, sent);
        raw.receive.bytes = received;
        raw.flags |= flags::COLLECTIVE;
    }
}

impl<S: Volume, R: Volume> Operation for Collective<S, R> {
    #[inline(always)]
    fn subject(&self, stream: &mut Stream) -> Subject {
        subject_of(stream, self.comm, self.root, 0)
    }

    #[inline]
    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        if call.succeeded() {
            self.describe(call, &mut raw);
            if let Some(request) = self.request {
                raw.flags |= flags::POSTS;
                post(call, &raw, false, request, 0);
            }
        }
        call.record(&raw);
        if periodic::is_on() && self.meets {
            periodic::after(call, self.comm);
        }
    }

    #[inline(always)]
    fn after_unrecorded(&mut self, _result: c_int) {
        if periodic::is_on() && self.meets {
            periodic::after_unrecorded(self.comm);
        }
    }
}
