//! The library that links MPI, loaded only where a job needs it: the command itself has no MPI.
//!
//! There is one for each family of MPI libraries (`analyzer/comm/mpi`). What it can do is a table
//! of C functions, with memory of the caller only: each side has an allocator of its own.

use std::ffi::{c_int, c_void};
use std::path::Path;

use anyhow::{Context, Result, bail};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW, Symbol};

use super::installed::{self, AGENTS};
use super::{Family, waiting};

/// The table's symbol. The number counts its changes: a library of another version has another.
const TABLE: &[u8] = b"laggard_mpi_2\0";

/// Shows progress of a measurement: its context, the share that is done, and a text.
pub type Shown = unsafe extern "C" fn(*mut c_void, f64, *const u8, usize);
/// Takes the result of a measurement: its context, whether it succeeded, and bytes; else a text.
pub type Take = unsafe extern "C" fn(*mut c_void, bool, *const u8, usize);

/// What the library can do. Ranks are those of the world; errors of MPI end the job.
#[repr(C)]
pub struct Functions {
    /// Tells it the executable's [`waiting::set`].
    pub attach: extern "C" fn(extern "C" fn(bool)),
    /// Starts MPI; `false` if it was started already.
    pub start: extern "C" fn() -> bool,
    /// Ends MPI.
    pub finish: extern "C" fn(),
    /// This process's rank.
    pub rank: extern "C" fn() -> c_int,
    /// Ranks of the job.
    pub size: extern "C" fn() -> c_int,
    /// Sends bytes: memory, length, receiver, tag.
    pub send: unsafe extern "C" fn(*const u8, c_int, c_int, c_int),
    /// Receives bytes: memory, length, sender, tag.
    pub receive: unsafe extern "C" fn(*mut u8, c_int, c_int, c_int),
    /// As `send`, while the caller goes on; a request.
    pub start_send: unsafe extern "C" fn(*const u8, c_int, c_int, c_int) -> u64,
    /// As `receive`, while the caller goes on; a request.
    pub start_receive: unsafe extern "C" fn(*mut u8, c_int, c_int, c_int) -> u64,
    /// Whether a request is done, which ends it.
    pub test: unsafe extern "C" fn(u64) -> bool,
    /// Waits for requests, which ends them: where they are, and how many.
    pub wait: unsafe extern "C" fn(*const u64, usize),
    /// Waits for a message of anybody with this tag; its sender, and its length into the second.
    pub probe: unsafe extern "C" fn(c_int, *mut c_int) -> c_int,
    /// As `probe`, without waiting: negative if there is none.
    pub look: unsafe extern "C" fn(c_int, *mut c_int) -> c_int,
    /// Numbers for each rank from one place, and those of each into another.
    pub all_to_all: unsafe extern "C" fn(*const u64, *mut u64),
    /// Element-wise maximum of all ranks' numbers, in place.
    pub maximum: unsafe extern "C" fn(*mut i64, c_int),
    /// Element-wise sum of all ranks' numbers, in place.
    pub sum: unsafe extern "C" fn(*mut u64, c_int),
    /// Rank 0's bytes, everywhere.
    pub broadcast: unsafe extern "C" fn(*mut u8, c_int),
    /// Ends the job with a code.
    pub abort: extern "C" fn(c_int),
    /// Measures what calls cost, as options in JSON say, and passes on the result, if there is one
    /// at this rank.
    pub measure: unsafe extern "C" fn(*const u8, usize, Shown, Take, *mut c_void),
}

/// Loads the library for this process's launcher. It stays loaded.
///
/// # Errors
/// There is none, or none that can be loaded: what was looked for, where, and why it does not
/// serve.
pub fn load() -> Result<(Family, &'static Functions)> {
    let wanted = Family::of_launcher();
    let found = installed::find(AGENTS, wanted).with_context(|| {
        let names: Vec<String> = wanted.iter().map(Family::to_string).collect();
        format!("a job of {} cannot be joined", names.join(" or "))
    })?;
    let mut refused = Vec::new();
    for (family, file) in found {
        match load_from(family, &file) {
            Ok(functions) => return Ok((family, functions)),
            Err(error) => refused.push(format!("{error:#}")),
        }
    }
    bail!(refused.join("; "))
}

/// Opens a library for as long as the process lives.
///
/// It is found by everything that is loaded later: plugins of MPI libraries may rely on that. The
/// collector, if it is preloaded, is found before it.
fn open(file: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: initialisers of MPI libraries, which every program that uses them runs.
    unsafe { Library::open(Some(file), RTLD_NOW | RTLD_GLOBAL) }
}

fn load_from(family: Family, file: &Path) -> Result<&'static Functions> {
    let names = family.libraries();
    let (mut mpi, mut why) = (None, String::new());
    for name in names {
        match open(Path::new(name)) {
            Ok(library) => mpi = Some(library),
            Err(error) if why.is_empty() => why = error.to_string(),
            Err(_) => {}
        }
        if mpi.is_some() {
            break;
        }
    }
    let Some(mpi) = mpi else {
        bail!(
            "the library of {family} cannot be loaded, neither as {}: {why}; is LD_LIBRARY_PATH set?",
            names.join(" nor as ")
        );
    };
    std::mem::forget(mpi);
    let library = open(file).with_context(|| format!("{} cannot be loaded", file.display()))?;
    // SAFETY: the symbol of this name, which has the number of this layout, is such a table.
    let table: Result<Symbol<*const Functions>, _> = unsafe { library.get(TABLE) };
    let table = table.with_context(|| format!("{} is of another laggard", file.display()))?;
    // SAFETY: a static of a library that is never unloaded.
    let functions = unsafe { &*table.into_raw().cast::<Functions>() };
    std::mem::forget(library);
    (functions.attach)(waiting::set);
    Ok(functions)
}

impl Functions {
    /// Measures: options and result in JSON, the latter at rank 0.
    ///
    /// # Errors
    /// Those of the measurement, which all ranks have.
    pub fn measure(&self, options: &[u8], shown: &mut dyn FnMut(f64, &str)) -> Result<Vec<u8>> {
        struct Context<'s> {
            shown: &'s mut dyn FnMut(f64, &str),
            result: Result<Vec<u8>, String>,
        }
        /// # Safety
        /// Bytes that live until the caller returns.
        unsafe fn bytes<'b>(start: *const u8, length: usize) -> &'b [u8] {
            // SAFETY: as above.
            unsafe { std::slice::from_raw_parts(start, length) }
        }
        unsafe extern "C" fn show(context: *mut c_void, share: f64, text: *const u8, size: usize) {
            // SAFETY: the context of below, and the library's own text.
            let (context, text) = unsafe { (&mut *context.cast::<Context>(), bytes(text, size)) };
            (context.shown)(share, &String::from_utf8_lossy(text));
        }
        unsafe extern "C" fn take(context: *mut c_void, good: bool, text: *const u8, size: usize) {
            // SAFETY: as above.
            let (context, text) = unsafe { (&mut *context.cast::<Context>(), bytes(text, size)) };
            context.result = match good {
                true => Ok(text.to_vec()),
                false => Err(String::from_utf8_lossy(text).into_owned()),
            };
        }
        let mut context = Context {
            shown,
            result: Ok(Vec::new()),
        };
        let place = (&raw mut context).cast();
        // SAFETY: the options and the context outlive the call.
        unsafe { (self.measure)(options.as_ptr(), options.len(), show, take, place) };
        context.result.map_err(anyhow::Error::msg)
    }
}
