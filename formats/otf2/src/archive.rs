//! An open archive: its definitions, and the events of one location at a time.

use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::definitions::{BYTE, Definitions, LONG};
use crate::events::{self, ANY, Batch, Sink, TOLD};
use crate::library::{Callback, Code, Handle, Otf2, SUCCESS, Table};
use crate::metrics::CountersOf;
use crate::source::{Offsets, Progress, Source, Stream};
use crate::{Error, anchor};

/// Events read per batch.
const BATCH: u64 = 4096;

/// An archive.
pub struct Archive {
    otf2: &'static Otf2,
    path: PathBuf,
    id: u64,
    definitions: Definitions,
    strays: Vec<u64>,
}

impl Archive {
    /// Opens the archive with this anchor file, and reads its global definitions.
    pub fn open(path: &Path) -> Result<Archive, Error> {
        anchor::check(path)?;
        let otf2 = Otf2::load(path)?;
        let reader = Reader::open(otf2, path)?;
        let mut id = 0;
        // SAFETY: an open reader, and a number for the library to write.
        reader
            .check(unsafe { (otf2.call.trace_id)(reader.handle, &mut id) })
            .ok();
        let definitions = reader.definitions().map_err(|why| Error::Definitions {
            path: path.to_owned(),
            why,
        })?;
        Ok(Archive {
            strays: anchor::strays(path, &definitions),
            definitions,
            otf2,
            path: path.to_owned(),
            id,
        })
    }

    /// A reader for one location.
    fn select(&self, id: u64) -> Result<Reader, Error> {
        let reader = Reader::open(self.otf2, &self.path)?;
        // SAFETY: an open reader.
        let selected = unsafe { (self.otf2.call.select_location)(reader.handle, id) };
        reader.check(selected).map_err(|why| Error::Events {
            path: self.path.clone(),
            location: id,
            why,
        })?;
        Ok(reader)
    }
}

impl Source for Archive {
    /// The anchor file.
    fn path(&self) -> &Path {
        &self.path
    }

    fn id(&self) -> u64 {
        self.id
    }

    fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// Each location has its own reader, so that several threads can read.
    fn location(&self, id: u64) -> Result<Box<dyn Stream + '_>, Error> {
        let failed = |why| Error::Events {
            path: self.path.clone(),
            location: id,
            why,
        };
        anchor::check_events(&self.path, id).map_err(failed)?;
        let reader = self.select(id)?;
        let offsets = reader.local_definitions(id);
        let any = self.definitions.attribute(ANY, BYTE);
        let told = TOLD.map(|name| self.definitions.attribute(name, LONG));
        let counters = self.definitions.counting.counters.clone();
        let events = Events::open(reader, id, offsets, (any, told, counters)).map_err(failed)?;
        Ok(Box::new(events))
    }

    fn offsets(&self, id: u64) -> Option<Offsets> {
        self.select(id).ok()?.local_definitions(id)
    }

    fn strays(&self) -> &[u64] {
        &self.strays
    }
}

/// A reader of the OTF2 library.
struct Reader {
    otf2: &'static Otf2,
    handle: Handle,
}

impl Reader {
    fn open(otf2: &'static Otf2, path: &Path) -> Result<Reader, Error> {
        let refused = |why: &str| Error::NotAnArchive {
            path: path.to_owned(),
            why: why.to_owned(),
        };
        let name = CString::new(path.as_os_str().as_bytes());
        let name = name.map_err(|_| refused("a zero byte in its name"))?;
        // SAFETY: a text that ends with a zero.
        let handle = unsafe { (otf2.call.open)(name.as_ptr()) };
        if handle.is_null() {
            return Err(refused("the library cannot read it"));
        }
        let reader = Reader { otf2, handle };
        // SAFETY: an open reader.
        let serial = unsafe { (otf2.call.set_serial)(handle) };
        reader.check(serial).map_err(|why| refused(&why))?;
        Ok(reader)
    }

    fn check(&self, code: Code) -> Result<(), String> {
        match code {
            SUCCESS => Ok(()),
            code => Err(self.otf2.describe(code)),
        }
    }

    fn definitions(&self) -> Result<Definitions, String> {
        let call = &self.otf2.call;
        let mut definitions = Definitions::default();
        let into: *mut Definitions = &mut definitions;
        let mut read = 0;
        // SAFETY: an open reader. The callbacks are the library's own table, freed below.
        // `into` lives until all is read, and only the callbacks use it.
        let result = unsafe {
            let source = (call.global_definitions)(self.handle);
            if source.is_null() {
                return Err("there are none".to_owned());
            }
            let callbacks = (call.global_callbacks_new)();
            Definitions::register(self.otf2, callbacks);
            let register = call.global_callbacks_register;
            let mut result = register(self.handle, source, callbacks, into.cast());
            (call.global_callbacks_delete)(callbacks);
            if result == SUCCESS {
                result = (call.read_global_definitions)(self.handle, source, &mut read);
            }
            (call.close_global_definitions)(self.handle, source);
            result
        };
        self.check(result)?;
        definitions.metrics = definitions.counting.find_counters(&mut definitions.strings);
        Ok(definitions)
    }

    /// The clock offsets of a location, whose mapping tables the library keeps for its events.
    /// `None` if the location has no definitions of its own, or if they cannot be read.
    fn local_definitions(&self, location: u64) -> Option<Offsets> {
        let call = &self.otf2.call;
        let mut offsets = Offsets::new();
        let into: *mut Offsets = &mut offsets;
        let mut read = 0;
        // SAFETY: as for the global definitions.
        let is_read = unsafe {
            if (call.open_definition_files)(self.handle) != SUCCESS {
                return None;
            }
            let source = (call.local_definitions)(self.handle, location);
            let mut is_read = !source.is_null();
            if is_read {
                let callbacks = (call.local_callbacks_new)();
                let set = clock_offset as Callback;
                self.otf2.set(Table::Local, callbacks, "ClockOffset", set);
                let register = call.local_callbacks_register;
                is_read = register(self.handle, source, callbacks, into.cast()) == SUCCESS;
                (call.local_callbacks_delete)(callbacks);
                let read_all = call.read_local_definitions;
                is_read = is_read && read_all(self.handle, source, &mut read) == SUCCESS;
                (call.close_local_definitions)(self.handle, source);
            }
            (call.close_definition_files)(self.handle);
            is_read
        };
        is_read.then_some(offsets)
    }
}

unsafe extern "C" fn clock_offset(data: Handle, time: u64, offset: i64, _deviation: f64) -> Code {
    // SAFETY: `local_definitions` passes the library a pointer to an `Offsets`.
    let offsets = unsafe { &mut *data.cast::<Offsets>() };
    offsets.push((time, offset));
    SUCCESS
}

impl Drop for Reader {
    fn drop(&mut self) {
        // SAFETY: an open reader, used no longer.
        unsafe { (self.otf2.call.close)(self.handle) };
    }
}

/// The events of a location of an archive.
struct Events {
    reader: Reader,
    source: Handle,
    /// Target of the library's callbacks; only the library writes to it, while it reads.
    sink: *mut Sink,
    at_end: bool,
    progress: Progress,
}

impl Events {
    /// `any` is the number of the attribute [`ANY`]; `told` are the numbers of [`TOLD`],
    /// and `counters` those of metrics.
    fn open(
        reader: Reader,
        id: u64,
        offsets: Option<Offsets>,
        (any, told, counters): (Option<u32>, [Option<u32>; TOLD.len()], CountersOf),
    ) -> Result<Events, String> {
        let otf2 = reader.otf2;
        // SAFETY: an open reader.
        let source = unsafe {
            reader.check((otf2.call.open_event_files)(reader.handle))?;
            (otf2.call.events)(reader.handle, id)
        };
        if source.is_null() {
            return Err("there are none".to_owned());
        }
        let sink = Sink {
            any: any.map(|number| (otf2.call.attribute, number)),
            told: (told != [None; TOLD.len()]).then_some((otf2.call.long_attribute, told)),
            counters,
            ..Sink::default()
        };
        let events = Events {
            source,
            sink: Box::into_raw(Box::new(sink)),
            reader,
            at_end: false,
            progress: Progress {
                offsets,
                ..Progress::default()
            },
        };
        let (handle, into) = (events.reader.handle, events.sink.cast::<c_void>());
        // SAFETY: an open reader and source, which outlive the callbacks, as does `sink`.
        let result = unsafe {
            let callbacks = (otf2.call.event_callbacks_new)();
            events::register(otf2, callbacks);
            let result = (otf2.call.event_callbacks_register)(handle, source, callbacks, into);
            (otf2.call.event_callbacks_delete)(callbacks);
            (otf2.call.apply_mapping)(source, true);
            // Times stay as measured: offsets become points of the clock.
            (otf2.call.apply_clock_offsets)(source, false);
            result
        };
        events.reader.check(result)?;
        Ok(events)
    }
}

impl Stream for Events {
    fn next(&mut self) -> &Batch {
        let call = &self.reader.otf2.call;
        let mut read = 0;
        // SAFETY: made in `open`; the library writes to it only below.
        unsafe { (*self.sink).batch.clear() };
        let mut delivered = 0;
        while !self.at_end && delivered == 0 {
            // SAFETY: an open reader and source.
            let code =
                unsafe { (call.read_events)(self.reader.handle, self.source, BATCH, &mut read) };
            // SAFETY: the library has returned.
            delivered = unsafe { (*self.sink).batch.len() } as u64;
            self.progress.broken = self.reader.check(code).err();
            if self.progress.broken.is_none() {
                self.progress.skipped += read.saturating_sub(delivered);
            }
            // A further read at the end would make the library report missing data.
            self.at_end = self.progress.broken.is_some() || read < BATCH;
        }
        // SAFETY: nothing writes to it before the next call, which needs this borrow to end.
        unsafe { &(*self.sink).batch }
    }

    fn progress(&self) -> &Progress {
        &self.progress
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let call = &self.reader.otf2.call;
        // SAFETY: open, and used no longer; afterwards nothing refers to the sink.
        unsafe {
            (call.close_events)(self.reader.handle, self.source);
            (call.close_event_files)(self.reader.handle);
            drop(Box::from_raw(self.sink));
        }
    }
}
