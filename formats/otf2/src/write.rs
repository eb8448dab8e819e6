//! Writes archives.

mod definitions;

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use rustc_hash::FxHashMap;

use crate::Error;
use crate::definitions::{Definitions, LONG};
use crate::events::{Any, Collective, Event, Message, OneSided, TOLD, Told};
use crate::library::{Code, Flush, Handle, Otf2, SUCCESS, Writing};

/// Chunk sizes of events and of definitions, bytes, as in Score-P.
const CHUNKS: (u64, u64) = (1 << 20, 4 << 20);
/// `OTF2_FILEMODE_WRITE`, `OTF2_SUBSTRATE_POSIX`, `OTF2_COMPRESSION_NONE`.
const MODES: (u8, u8, u8) = (0, 1, 1);
/// `OTF2_LOCK_EXCLUSIVE`, `OTF2_LOCK_SHARED`.
const LOCKS: (u8, u8) = (0, 1);
/// `OTF2_RMA_SYNC_LEVEL_PROCESS` and `OTF2_RMA_SYNC_LEVEL_MEMORY`.
const LEVEL: u32 = 3;
/// Number with which the attribute [`ANY`](crate::events::ANY) must be defined.
pub const ANY_NUMBER: u32 = 0;
/// Numbers with which the attributes [`TOLD`](crate::events::TOLD) must be defined.
pub const TOLD_NUMBERS: [u32; TOLD.len()] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];
/// Number with which what takes samples must be defined.
pub const GENERATOR: u32 = 0;
/// `OTF2_RMA_SYNC_TYPE_MEMORY`.
const SYNC_MEMORY: u32 = 0;

/// A mark in a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Start, ticks.
    pub time: u64,
    /// Duration, ticks.
    pub duration: u64,
    /// Location.
    pub location: u64,
    /// Category.
    pub category: String,
    /// Description.
    pub text: String,
}

/// An archive that is being written.
pub struct ArchiveWriter {
    otf2: &'static Otf2,
    call: Writing,
    handle: Handle,
    path: PathBuf,
    /// Number of events by location.
    counts: FxHashMap<u64, u64>,
}

/// Makes the library write every full buffer to its file.
unsafe extern "C" fn flush(_: Handle, _: u8, _: u64, _: Handle, _: bool) -> u8 {
    1
}

static FLUSH: Flush = Flush {
    before: flush,
    after: ptr::null(),
};

// SAFETY: a constant table of functions.
unsafe impl Sync for Flush {}

fn text(bytes: &[u8]) -> CString {
    let bytes = bytes.iter().copied().take_while(|byte| *byte != 0);
    CString::new(bytes.collect::<Vec<u8>>()).unwrap_or_default()
}

impl ArchiveWriter {
    /// Begins an archive of this name (`traces`) in a directory, which it makes.
    pub fn create(directory: &Path, name: &str, creator: &str) -> Result<ArchiveWriter, Error> {
        let otf2 = Otf2::load(directory)?;
        let call = otf2.writing()?;
        let (path, archive) = (
            text(directory.as_os_str().as_bytes()),
            text(name.as_bytes()),
        );
        let (mode, substrate, compression) = MODES;
        let (events, definitions) = CHUNKS;
        // SAFETY: texts that end with a zero, and values of the library's enumerations.
        let handle = unsafe {
            let (path, archive) = (path.as_ptr(), archive.as_ptr());
            (call.open)(
                path,
                archive,
                mode,
                events,
                definitions,
                substrate,
                compression,
            )
        };
        let writer = ArchiveWriter {
            otf2,
            call,
            handle,
            path: directory.to_owned(),
            counts: FxHashMap::default(),
        };
        if handle.is_null() {
            return Err(writer.failed("the library cannot make it".to_owned()));
        }
        let creator = text(creator.as_bytes());
        // SAFETY: an open archive; the table of callbacks is static.
        unsafe {
            let call = &writer.call;
            writer.check((call.set_flush)(handle, &FLUSH, ptr::null_mut()))?;
            writer.check((call.set_serial)(handle))?;
            writer.check((call.set_creator)(handle, creator.as_ptr()))?;
            writer.check((call.open_events)(handle))?;
            writer.check((call.open_definitions)(handle))?;
        }
        Ok(writer)
    }

    fn failed(&self, why: String) -> Error {
        Error::Write {
            path: self.path.clone(),
            why,
        }
    }

    fn check(&self, code: Code) -> Result<(), Error> {
        match code {
            SUCCESS => Ok(()),
            code => Err(self.failed(self.otf2.describe(code))),
        }
    }

    /// Begins the events of a location; [`end`](Self::end) must follow.
    pub fn begin(&mut self, location: u64) -> Result<EventWriter, Error> {
        // SAFETY: an open archive. Readers require each location's own definitions.
        let handle = unsafe {
            let definitions = (self.call.local_definitions)(self.handle, location);
            self.check((self.call.close_local_definitions)(
                self.handle,
                definitions,
            ))?;
            (self.call.events)(self.handle, location)
        };
        match handle.is_null() {
            true => Err(self.failed(format!("no file for location {location}"))),
            false => Ok(EventWriter {
                handle,
                location,
                count: 0,
            }),
        }
    }

    /// Writes an event. Times of a location, in ticks, never decrease. [`Event::Nothing`] is
    /// not written.
    pub fn write(&self, events: &mut EventWriter, time: u64, event: &Event) -> Result<(), Error> {
        let (call, to, none) = (&self.call, events.handle, ptr::null_mut());
        // SAFETY: an open writer, and plain numbers.
        let code = unsafe {
            match *event {
                Event::Enter(region) => (call.enter)(to, none, time, region),
                Event::EnterCall(region, ref told) => {
                    let list = self.told(told);
                    let code = (call.enter)(to, list, time, region);
                    (call.attributes_delete)(list);
                    code
                }
                Event::Leave(region) => (call.leave)(to, none, time, region),
                Event::EnterContext(context, distance, ref told) => {
                    let list = self.told(told);
                    let code = (call.enter_context)(to, list, time, context, distance);
                    (call.attributes_delete)(list);
                    code
                }
                Event::LeaveContext(context) => (call.leave_context)(to, none, time, context),
                Event::Sample(context, distance) => {
                    (call.sample)(to, none, time, context, distance, GENERATOR)
                }
                Event::Send(m) => (call.send)(to, none, time, m.peer, m.comm, m.tag, m.bytes),
                Event::Receive(m, any) => {
                    let list = self.attributes(any);
                    let code = (call.receive)(to, list, time, m.peer, m.comm, m.tag, m.bytes);
                    (call.attributes_delete)(list);
                    code
                }
                Event::Isend(m, request) => {
                    let Message {
                        peer,
                        comm,
                        tag,
                        bytes,
                    } = m;
                    (call.isend)(to, none, time, peer, comm, tag, bytes, request)
                }
                Event::Ireceived(m, request) => {
                    let Message {
                        peer,
                        comm,
                        tag,
                        bytes,
                    } = m;
                    (call.ireceived)(to, none, time, peer, comm, tag, bytes, request)
                }
                Event::IsendComplete(request) => (call.isend_complete)(to, none, time, request),
                Event::IrecvRequest(request, any) => {
                    let list = self.attributes(any);
                    let code = (call.irecv_request)(to, list, time, request);
                    (call.attributes_delete)(list);
                    code
                }
                Event::RequestTest(request) => (call.request_test)(to, none, time, request),
                Event::RequestCancelled(request) => (call.cancelled)(to, none, time, request),
                Event::CollectiveBegin => (call.collective_begin)(to, none, time),
                Event::CollectiveEnd(c) => {
                    let Collective {
                        operation,
                        on,
                        root,
                        sent,
                        received,
                    } = c;
                    (call.collective_end)(to, none, time, operation, on, root, sent, received)
                }
                Event::CollectiveRequest(request) => {
                    (call.collective_request)(to, none, time, request)
                }
                Event::CollectiveComplete(c, request) => {
                    let Collective {
                        operation,
                        on,
                        root,
                        sent,
                        received,
                    } = c;
                    let complete = call.collective_complete;
                    complete(to, none, time, operation, on, root, sent, received, request)
                }
                Event::WindowCreate(window) => (call.window_create)(to, none, time, window),
                Event::WindowDestroy(window) => (call.window_destroy)(to, none, time, window),
                Event::WindowCollectiveBegin => (call.window_begin)(to, none, time),
                Event::WindowCollectiveEnd(c) => {
                    let Collective {
                        operation,
                        on,
                        root,
                        sent,
                        received,
                    } = c;
                    (call.window_end)(to, none, time, operation, LEVEL, on, root, sent, received)
                }
                Event::OneSided(OneSided {
                    window,
                    target,
                    written,
                    read: 0,
                    matching,
                }) => (call.put)(to, none, time, window, target, written, matching),
                Event::OneSided(OneSided {
                    window,
                    target,
                    read,
                    matching,
                    ..
                }) => (call.get)(to, none, time, window, target, read, matching),
                Event::TransferComplete(window, matching) => {
                    (call.transfer_complete)(to, none, time, window, matching)
                }
                Event::Window(window) => (call.on_window)(to, none, time, window, 0),
                Event::Flush(window, target) => {
                    (call.flush)(to, none, time, window, target, SYNC_MEMORY)
                }
                Event::Lock(window, target, exclusive) => {
                    let kind = if exclusive { LOCKS.0 } else { LOCKS.1 };
                    (call.lock)(to, none, time, window, target, 0, kind)
                }
                Event::GroupSync(window, group) => {
                    (call.group_sync)(to, none, time, LEVEL, window, group)
                }
                Event::OnTarget(window, target) => (call.unlock)(to, none, time, window, target, 0),
                Event::Fork(model, threads) => (call.fork)(to, none, time, model, threads),
                Event::Join(model) => (call.join)(to, none, time, model),
                Event::TeamBegin(team) => (call.team_begin)(to, none, time, team),
                Event::TeamEnd(team) => (call.team_end)(to, none, time, team),
                Event::Acquire(model, lock, order) => {
                    (call.acquire)(to, none, time, model, lock, order)
                }
                Event::Release(model, lock, order) => {
                    (call.release)(to, none, time, model, lock, order)
                }
                Event::Metric(metric, value) => {
                    (call.metric)(to, none, time, metric, 1, &LONG, &value)
                }
                Event::Program(name, ref arguments) => {
                    let (count, list) = (arguments.len() as u32, arguments.as_ptr());
                    (call.program_begin)(to, none, time, name, count, list)
                }
                Event::ProgramEnd => (call.program_end)(to, none, time, 0),
                _ => return Ok(()),
            }
        };
        events.count += 1;
        self.check(code)
    }

    /// Attribute list with the wildcards of a receive, null if it has none; the caller deletes
    /// it.
    fn attributes(&self, any: Any) -> Handle {
        if any == Any::default() {
            return ptr::null_mut();
        }
        // SAFETY: a new list; only a pointer to it is kept. If memory is short, the event is
        // written without attributes.
        unsafe {
            let list = (self.call.attributes_new)();
            if !list.is_null() {
                (self.call.attributes_add)(list, ANY_NUMBER, any.byte());
            }
            list
        }
    }

    /// Attribute list of a call; the caller deletes it.
    fn told(&self, told: &Told) -> Handle {
        // SAFETY: as above.
        unsafe {
            let list = (self.call.attributes_new)();
            for (number, value) in TOLD_NUMBERS.into_iter().zip(told.0) {
                if let Some(value) = value.filter(|_| !list.is_null()) {
                    (self.call.attributes_add_long)(list, number, value);
                }
            }
            list
        }
    }

    /// Ends the events of a location.
    pub fn end(&mut self, events: EventWriter) -> Result<(), Error> {
        self.counts.insert(events.location, events.count);
        // SAFETY: both are open; the writer ends here.
        self.check(unsafe { (self.call.close_event_writer)(self.handle, events.handle) })
    }

    /// Writes definitions and markers, and closes the archive.
    pub fn finish(mut self, definitions: &Definitions, markers: &[Marker]) -> Result<(), Error> {
        // SAFETY: an open archive whose locations are all closed.
        unsafe {
            self.check((self.call.close_events)(self.handle))?;
            self.check((self.call.close_definitions)(self.handle))?;
        }
        self.define(definitions)?;
        self.mark(markers)?;
        let handle = std::mem::replace(&mut self.handle, ptr::null_mut());
        // SAFETY: open, and used no longer.
        self.check(unsafe { (self.call.close)(handle) })
    }
}

impl Drop for ArchiveWriter {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: open after an error, and used no longer.
            unsafe { (self.call.close)(self.handle) };
        }
    }
}

/// The events of a location that is being written.
pub struct EventWriter {
    handle: Handle,
    location: u64,
    count: u64,
}
