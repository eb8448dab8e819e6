//! Creation and release of communicators.

use std::ffi::{CStr, c_char, c_int};

use laggard_trace::{Signature, flags};

use super::send::post;
use super::{Operation, handle_at};
use crate::call::{Call, guarded};
use crate::constants::{Handle, SUCCESS, constants};
use crate::ffi::{MPI_Comm, MPI_Request};
use crate::groups::{self, Group, Kind, NO_ROOT, Origin};
use crate::signature::{Half, Raw};
use crate::thread::is_recording;

/// The way a communicator is created, with its parent or tag.
enum How {
    Child(MPI_Comm),
    Members(c_int),
    Pair(c_int),
    Joined,
}

/// Makes a communicator.
pub struct Create {
    how: How,
    new: *const MPI_Comm,
    request: Option<*mut MPI_Request>,
}

/// Collectively from a parent.
pub fn comm_create(parent: MPI_Comm, new: *mut MPI_Comm) -> Create {
    Create {
        how: How::Child(parent),
        new,
        request: None,
    }
}

/// Collectively from a parent; the request completes it.
pub fn comm_idup(parent: MPI_Comm, new: *mut MPI_Comm, request: *mut MPI_Request) -> Create {
    Create {
        request: Some(request),
        ..comm_create(parent, new)
    }
}

/// By the members of a group.
pub fn comm_create_group(_comm: MPI_Comm, tag: c_int, new: *mut MPI_Comm) -> Create {
    Create {
        how: How::Members(tag),
        new,
        request: None,
    }
}

/// By two groups.
pub fn intercomm_create(_local: MPI_Comm, tag: c_int, new: *mut MPI_Comm) -> Create {
    Create {
        how: How::Pair(tag),
        new,
        request: None,
    }
}

/// With processes outside this run, collectively on a communicator.
pub fn comm_dynamic(parent: MPI_Comm, new: *mut MPI_Comm) -> Create {
    comm_create(parent, new)
}

/// With one process outside this run.
pub fn comm_join(new: *mut MPI_Comm) -> Create {
    Create {
        how: How::Joined,
        new,
        request: None,
    }
}

impl Create {
    /// Gives the new object its identity. Every such call counts, recorded or not. Returns the
    /// communicator of the call and the new one.
    fn register(&self) -> (Option<&'static Group>, Option<&'static Group>) {
        // SAFETY: the real call succeeded and stored the communicator there. MPI_Comm_idup's
        // result allows local queries only after completion, but its members are the parent's.
        let new = unsafe { *self.new };
        match self.how {
            How::Child(parent) => {
                let parent = groups::communicator(parent);
                let made = match self.request {
                    Some(_) => Some(groups::duplicated(parent, new)),
                    None => groups::created(Origin::Child(parent), new),
                };
                (Some(parent), made)
            }
            How::Members(tag) => on_itself(groups::created(Origin::Members(tag), new)),
            How::Pair(tag) => on_itself(groups::created(Origin::Pair(tag), new)),
            How::Joined => (None, groups::created(Origin::Pair(0), new)),
        }
    }
}

impl Operation for Create {
    fn after(&mut self, call: &mut Call) {
        let mut raw = Raw {
            send: NO_ROOT_HERE,
            ..call.raw()
        };
        if !call.succeeded() {
            return call.record(&raw);
        }
        let (on, made) = self.register();
        if let Some(on) = on {
            call.stream().define_group(on);
            raw.group = on;
            raw.flags |= flags::COLLECTIVE;
        }
        if let Some(request) = self.request {
            raw.flags |= flags::POSTS;
            post(call, &raw, false, request, 0);
        }
        record_with_object(call, &raw, made);
    }

    fn after_unrecorded(&mut self, result: c_int) {
        if result == SUCCESS && is_recording() {
            guarded(|| self.register());
        }
    }
}

const NO_ROOT_HERE: Half = Half::of(NO_ROOT);

/// The participants are the members of the new communicator.
fn on_itself(made: Option<&'static Group>) -> (Option<&'static Group>, Option<&'static Group>) {
    (made, made)
}

/// Records a call that made or freed an object.
pub fn record_with_object(call: &mut Call, raw: &Raw, object: Option<&'static Group>) {
    let (enter, leave) = (call.enter, call.leave);
    let stream = call.stream();
    if let Some(object) = object {
        stream.define_group(object);
    }
    let object = object.map_or(0, |group| group.id);
    stream.record_single(
        Signature {
            object,
            ..raw.translated(false)
        },
        enter,
        leave,
    );
}

pub struct CommFree {
    comm: *const MPI_Comm,
    group: Option<&'static Group>,
}

/// Frees a communicator.
pub fn comm_free(comm: *mut MPI_Comm) -> CommFree {
    CommFree { comm, group: None }
}

impl CommFree {
    fn release(&mut self) {
        let Some(handle) = handle_at(self.comm) else {
            return;
        };
        let c = constants();
        if ![c.comm_null, c.comm_world, c.comm_self]
            .iter()
            .any(|comm| comm.bits() == handle)
        {
            self.group = groups::released(Kind::Intra, handle);
        }
    }
}

impl Operation for CommFree {
    fn before(&mut self, _call: &mut Call) {
        self.release();
    }

    fn after(&mut self, call: &mut Call) {
        let mut raw = Raw {
            send: NO_ROOT_HERE,
            ..call.raw()
        };
        match self.group {
            Some(group) if call.succeeded() => {
                call.stream().define_group(group);
                raw.group = group;
                raw.flags |= flags::COLLECTIVE;
                record_with_object(call, &raw, Some(group));
                call.stream().forget_group(group);
                groups::forget(group);
            }
            Some(group) => {
                groups::restore(group);
                call.record(&raw);
            }
            None => call.record(&raw),
        }
    }

    fn before_unrecorded(&mut self) {
        if is_recording() {
            guarded(|| self.release());
        }
    }

    fn after_unrecorded(&mut self, result: c_int) {
        match self.group {
            Some(group) if result == SUCCESS => groups::forget(group),
            Some(group) => drop(guarded(|| groups::restore(group))),
            None => {}
        }
    }
}

pub struct SetName(MPI_Comm, *const c_char);

/// Names a communicator.
pub fn comm_set_name(comm: MPI_Comm, name: *const c_char) -> SetName {
    SetName(comm, name)
}

impl Operation for SetName {
    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        if call.succeeded() {
            let group = call.stream().communicator(self.0);
            // SAFETY: the program's string, which the real call has just read.
            let name = unsafe { CStr::from_ptr(self.1) };
            call.stream().define_named(group, name.to_bytes());
            raw.group = group;
        }
        call.record(&raw);
    }
}
