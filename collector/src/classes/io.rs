//! Files.

use std::ffi::{c_char, c_int};

use laggard_trace::flags;

use super::Operation;
use super::send::post;
use super::window::{Freed, Release, attach};
use crate::call::Call;
use crate::constants::{Handle, MPI_PROC_NULL};
use crate::ffi::{MPI_Comm, MPI_Datatype, MPI_File, MPI_Request};
use crate::groups::{Kind, NO_ROOT};
use crate::request::kind;
use crate::signature::Half;

pub struct Open(MPI_Comm, *const MPI_File);

pub fn file_open(comm: MPI_Comm, _name: *const c_char, file: *mut MPI_File) -> Open {
    Open(comm, file)
}

impl Operation for Open {
    fn after(&mut self, call: &mut Call) {
        // SAFETY: the real call stored it, if it succeeded.
        attach(call, Kind::File, self.0, || unsafe { *self.1 }.bits());
    }
}

pub fn file_close(file: *mut MPI_File) -> Release {
    Release::new(Freed::File(file))
}

/// A call on a file.
pub struct OnFile {
    file: MPI_File,
    data: Option<(c_int, MPI_Datatype)>,
    collective: bool,
    request: Option<*mut MPI_Request>,
}

/// A collective call that moves no data.
pub fn file_collective(file: MPI_File) -> OnFile {
    OnFile {
        collective: true,
        ..file_end(file)
    }
}

/// Completes a split collective; waits for no other rank.
pub fn file_end(file: MPI_File) -> OnFile {
    OnFile {
        file,
        data: None,
        collective: false,
        request: None,
    }
}

/// Reads or writes independently.
pub fn file_io(file: MPI_File, count: c_int, datatype: MPI_Datatype) -> OnFile {
    OnFile {
        data: Some((count, datatype)),
        ..file_end(file)
    }
}

/// Reads or writes collectively.
pub fn file_io_collective(file: MPI_File, count: c_int, datatype: MPI_Datatype) -> OnFile {
    OnFile {
        collective: true,
        ..file_io(file, count, datatype)
    }
}

/// Begins a split collective.
pub fn file_begin(file: MPI_File, count: c_int, datatype: MPI_Datatype) -> OnFile {
    file_io_collective(file, count, datatype)
}

/// Begins to read or write independently.
pub fn file_iio(
    file: MPI_File,
    count: c_int,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> OnFile {
    OnFile {
        request: Some(request),
        ..file_io(file, count, datatype)
    }
}

/// Begins to read or write collectively.
pub fn file_iio_collective(
    file: MPI_File,
    count: c_int,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> OnFile {
    OnFile {
        collective: true,
        ..file_iio(file, count, datatype, request)
    }
}

impl Operation for OnFile {
    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        if !call.succeeded() {
            return call.record(&raw);
        }
        if let Some((count, datatype)) = self.data {
            let bytes = call.stream().volume(i64::from(count), datatype);
            let half = Half::new(MPI_PROC_NULL, 0, bytes);
            if laggard_trace::calls::name(raw.operation).contains("read") {
                raw.receive = half;
            } else {
                raw.send = half;
            }
        }
        if let Some(group) = call.stream().attached(Kind::File, self.file.bits()) {
            raw.group = group;
            if self.collective {
                raw.flags |= flags::COLLECTIVE;
                raw.send = Half::new(NO_ROOT, 0, raw.send.bytes);
            }
        }
        if let Some(request) = self.request {
            raw.flags |= flags::POSTS;
            post(call, &raw, false, request, kind::FILE);
        }
        if raw.flags & (flags::COLLECTIVE | flags::POSTS) != 0 {
            call.record(&raw);
        } else {
            call.record_unless_paused(&raw);
        }
    }
}
