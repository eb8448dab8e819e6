//! Which processes of the job are recorded: all of them know, and no message was sent.
//!
//! What all ranks do together must not be begun where some ranks have no collector, or
//! it would wait for them for ever. While MPI starts, each process puts what others
//! must know of it into PMIx, the store of the job's launcher, and a fence hands
//! everything to everybody before MPI_Init returns. The collector adds one word to its
//! process's share when the library commits it: everybody sees the same words, on any
//! number of hosts, and comes to the same conclusion. MPICH's launcher has a store of its own
//! ([`crate::hydra`]), in which the word stands before MPI_Init begins.

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
/// `PMIX_GLOBAL`: for processes of all hosts.
const EVERYWHERE: u8 = 3;

const PRESENT: Key = key("laggard.present");
/// What is at hand is the answer: nobody is asked, and nothing waited for.
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

/// MPI_Init of this process goes through its wrapper.
static STARTING: AtomicBool = AtomicBool::new(false);
/// This process has said that it is here.
static SAID: AtomicBool = AtomicBool::new(false);

/// The store of MPICH's launcher, once this process has said there that it is here.
static STORE: OnceLock<Store> = OnceLock::new();

/// MPI_Init begins or ends.
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

/// The word of a rank in the store of MPICH's launcher.
fn word_of(rank: i32) -> String {
    format!("laggard-present-{rank}")
}

/// What the job is called in the store of MPICH's launcher.
pub fn job_name() -> Option<&'static str> {
    STORE.get().map(|store| store.name.as_str())
}

/// Ranks with a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present {
    /// How many.
    pub total: i32,
    /// The first of them.
    pub lowest: i32,
}

impl Present {
    /// One more, in ascending order.
    fn add(&mut self, rank: i32) {
        if self.total == 0 {
            self.lowest = rank;
        }
        self.total += 1;
    }
}

/// The ranks of a job of `size` that will do their part of what all do together; `None`
/// where the job's launcher has nothing to tell.
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
    // The last byte stays zero.
    process.namespace[..255]
        .get_mut(..namespace.len())?
        .copy_from_slice(namespace);
    if get.is_null() {
        return None;
    }
    // SAFETY: the function with this name, which the library that committed has too.
    let get: Get = unsafe { mem::transmute::<*mut c_void, Get>(get) };
    let optional = Info {
        key: OPTIONAL,
        flags: 0,
        value: TRUE,
    };
    for rank in 0..size {
        process.rank = rank as u32;
        let mut value: *mut Value = ptr::null_mut();
        // SAFETY: all arguments are as PMIx declares them; what it gives is freed.
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

/// The MPI library hands over what other processes may know: one word more.
///
/// # Safety
/// As PMIx demands.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn PMIx_Commit() -> c_int {
    // A program that did not come here through our MPI_Init will not be recorded, and
    // one with another library's handles neither.
    if STARTING.load(Ordering::Relaxed) && !SAID.load(Ordering::Relaxed) {
        let said = guarded(|| program::is_expected_library() && say()).unwrap_or(false);
        SAID.store(said, Ordering::Relaxed);
    }
    let commit = symbol_of_pmix(c"PMIx_Commit");
    if commit.is_null() {
        return ERROR;
    }
    // SAFETY: the function that the caller meant.
    unsafe { mem::transmute::<*mut c_void, Commit>(commit)() }
}

fn say() -> bool {
    let put = symbol_of_pmix(c"PMIx_Put");
    let mut value = TRUE;
    // SAFETY: the function with this name, its arguments as PMIx declares them.
    !put.is_null()
        && unsafe {
            let put: Put = mem::transmute::<*mut c_void, Put>(put);
            put(EVERYWHERE, PRESENT.as_ptr().cast(), &mut value) == SUCCESS
        }
}
