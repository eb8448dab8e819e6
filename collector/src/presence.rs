//! Finds out which processes of the job are recorded, without a message.
//!
//! A collective of the collector would hang if some ranks had no collector. While MPI starts,
//! each process puts its contact data into PMIx, the key-value store of the job's launcher. A
//! fence hands everything to everybody before MPI_Init returns. The collector adds one word
//! when the library commits its data. All ranks then see the same words, on any number of
//! hosts, and draw the same conclusion. MPICH's launcher has its own store ([`crate::hydra`]),
//! which holds the word before MPI_Init begins.

use std::ffi::{c_char, c_int, c_void};
use std::mem;
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::call::guarded;
use crate::hydra::Store;
use crate::program;
use crate::resolve::symbol_of_pmix;

/// `pmix_proc_t`.
#[repr(C)]
struct Process {
    namespace: [u8; 256],
    rank: u32,
}

/// `pmix_value_t`.
#[repr(C)]
struct Value {
    kind: u16,
    data: [u64; 3],
}

/// `pmix_info_t`.
#[repr(C)]
struct Info {
    key: Key,
    flags: u32,
    value: Value,
}

/// `pmix_key_t`.
type Key = [u8; 512];

const _: () = assert!(size_of::<Value>() == 32 && size_of::<Info>() == 552);

type Commit = unsafe extern "C-unwind" fn() -> c_int;
type Put = unsafe extern "C-unwind" fn(u8, *const c_char, *mut Value) -> c_int;
type Get = unsafe extern "C-unwind" fn(
    *const Process,
    *const c_char,
    *const Info,
    usize,
    *mut *mut Value,
) -> c_int;

const SUCCESS: c_int = 0;
const ERROR: c_int = -1;
/// `PMIX_BOOL`.
const BOOL: u16 = 1;
/// `PMIX_GLOBAL`: visible to processes on all hosts.
const EVERYWHERE: u8 = 3;

const PRESENT: Key = key("laggard.present");
/// Return what is available locally; ask no server and wait for nothing.
const OPTIONAL: Key = key("pmix.optional");

const fn key(text: &str) -> Key {
    let mut key = [0; 512];
    let mut i = 0;
    while i < text.len() {
        key[i] = text.as_bytes()[i];
        i += 1;
    }
    key
}

const TRUE: Value = Value {
    kind: BOOL,
    data: [u64::from_ne_bytes([1; 8]), 0, 0],
};

/// MPI_Init of this process is in its wrapper.
static STARTING: AtomicBool = AtomicBool::new(false);
/// This process has published its word.
static SAID: AtomicBool = AtomicBool::new(false);

/// The store of MPICH's launcher, once this process has published its word there.
static STORE: OnceLock<Store> = OnceLock::new();

/// Marks the begin or end of MPI_Init.
pub fn set_starting(starting: bool) {
    STARTING.store(starting, Ordering::Relaxed);
    if starting && cfg!(mpich) && STORE.get().is_none() {
        guarded(say_to_hydra);
    }
}

fn say_to_hydra() {
    if !program::is_expected_library() {
        return;
    }
    if let Some(store) = Store::open()
        && store.put(&word_of(store.rank), "1")
    {
        let _ = STORE.set(store);
    }
}

/// Key of a rank's word in the store of MPICH's launcher.
fn word_of(rank: i32) -> String {
    format!("laggard-present-{rank}")
}

/// Name of the job in the store of MPICH's launcher.
pub fn job_name() -> Option<&'static str> {
    STORE.get().map(|store| store.name.as_str())
}

/// Ranks with a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present {
    /// Number of ranks.
    pub total: i32,
    /// Lowest rank.
    pub lowest: i32,
}

impl Present {
    /// Adds a rank; ranks come in ascending order.
    fn add(&mut self, rank: i32) {
        if self.total == 0 {
            self.lowest = rank;
        }
        self.total += 1;
    }
}

/// The ranks of a job of `size` that take part in the collector's collectives. `None` if the
/// launcher's store does not tell.
pub fn count(size: i32) -> Option<Present> {
    let mut present = Present {
        total: 0,
        lowest: 0,
    };
    if size == 1 {
        present.total = 1;
        return Some(present);
    }
    if let Some(store) = STORE.get() {
        for rank in 0..size {
            if store.has(&word_of(rank))? {
                present.add(rank);
            }
        }
        return Some(present);
    }
    if !SAID.load(Ordering::Relaxed) {
        return None;
    }
    let get = symbol_of_pmix(c"PMIx_Get");
    let mut process = Process {
        namespace: [0; 256],
        rank: 0,
    };
    let namespace = std::env::var_os("PMIX_NAMESPACE")?;
    let namespace = namespace.as_bytes();
    // The last byte stays zero: it terminates the name.
    process.namespace[..255]
        .get_mut(..namespace.len())?
        .copy_from_slice(namespace);
    if get.is_null() {
        return None;
    }
    // SAFETY: PMIx's function of this name, from the library that committed.
    let get: Get = unsafe { mem::transmute::<*mut c_void, Get>(get) };
    let optional = Info {
        key: OPTIONAL,
        flags: 0,
        value: TRUE,
    };
    for rank in 0..size {
        process.rank = rank as u32;
        let mut value: *mut Value = ptr::null_mut();
        // SAFETY: arguments as PMIx declares them; its result is freed.
        let result = unsafe {
            let result = get(&process, PRESENT.as_ptr().cast(), &optional, 1, &mut value);
            libc::free(value.cast());
            result
        };
        if result == SUCCESS {
            present.add(rank);
        }
    }
    Some(present)
}

/// Adds one word to the data that the MPI library publishes to other processes.
///
/// # Safety
/// As PMIx demands.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn PMIx_Commit() -> c_int {
    // A program that did not enter our MPI_Init will not be recorded. Nor will one whose
    // library has other handles.
    if STARTING.load(Ordering::Relaxed) && !SAID.load(Ordering::Relaxed) {
        let said = guarded(|| program::is_expected_library() && say()).unwrap_or(false);
        SAID.store(said, Ordering::Relaxed);
    }
    let commit = symbol_of_pmix(c"PMIx_Commit");
    if commit.is_null() {
        return ERROR;
    }
    // SAFETY: the function that the caller called.
    unsafe { mem::transmute::<*mut c_void, Commit>(commit)() }
}

fn say() -> bool {
    let put = symbol_of_pmix(c"PMIx_Put");
    let mut value = TRUE;
    // SAFETY: PMIx's function of this name, with arguments as PMIx declares them.
    !put.is_null()
        && unsafe {
            let put: Put = mem::transmute::<*mut c_void, Put>(put);
            put(EVERYWHERE, PRESENT.as_ptr().cast(), &mut value) == SUCCESS
        }
}
