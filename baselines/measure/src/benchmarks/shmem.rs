//! OpenSHMEM. Its library is loaded only if OpenSHMEM is measured.
//!
//! Functions are looked up in the whole process, where the collector's come first.

use std::ffi::{CString, c_int, c_long, c_void};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

use super::{Benchmark, Kind, Site, Steps, Volume};

const LIBRARIES: [&str; 2] = ["liboshmem.so.40", "liboshmem.so"];
/// Elements of a work array, enough for any collective.
const SYNC_SIZE: usize = 64;
/// Their value between collectives.
const SYNC_VALUE: c_long = -1;
/// `SHMEM_CMP_GE`.
const AT_LEAST: c_int = 5;

/// One row each.
pub const ROWS: &[Benchmark] = &[
    pair(&["shmem_putmem", "shmem_quiet"], Volume::Sized, put),
    pair(&["shmem_putmem_nbi", "shmem_quiet"], Volume::Sized, put_nbi),
    pair(&["shmem_getmem"], Volume::Sized, get),
    pair(&["shmem_getmem_nbi", "shmem_quiet"], Volume::Sized, get_nbi),
    pair(&["shmem_long_iput", "shmem_fence"], Volume::Words, iput),
    pair(&["shmem_long_iget"], Volume::Words, iget),
    pair(&["shmem_long_p"], Volume::Fixed, p),
    pair(&["shmem_long_g"], Volume::Fixed, g),
    pair(&["shmem_long_atomic_add"], Volume::Fixed, add),
    pair(&["shmem_long_atomic_fetch_add"], Volume::Fixed, fetch_add),
    pair(&["shmem_long_atomic_inc"], Volume::Fixed, inc),
    pair(&["shmem_long_atomic_fetch_inc"], Volume::Fixed, fetch_inc),
    pair(
        &["shmem_long_atomic_compare_swap"],
        Volume::Fixed,
        compare_swap,
    ),
    pair(&["shmem_long_atomic_fetch"], Volume::Fixed, fetch),
    pair(&["shmem_long_atomic_set"], Volume::Fixed, set),
    pair(&["shmem_long_atomic_swap"], Volume::Fixed, swap),
    pair(&["shmem_ulong_atomic_and"], Volume::Fixed, and),
    pair(&["shmem_ulong_atomic_fetch_and"], Volume::Fixed, fetch_and),
    pair(&["shmem_ulong_atomic_or"], Volume::Fixed, or),
    pair(&["shmem_ulong_atomic_fetch_or"], Volume::Fixed, fetch_or),
    pair(&["shmem_ulong_atomic_xor"], Volume::Fixed, xor),
    pair(&["shmem_ulong_atomic_fetch_xor"], Volume::Fixed, fetch_xor),
    pair(&["shmem_set_lock", "shmem_clear_lock"], Volume::Fixed, lock),
    pair(&["shmem_long_wait_until"], Volume::Fixed, wait_until),
    set_of(&["shmem_barrier"], Volume::Fixed, barrier),
    set_of(&["shmem_sync"], Volume::Fixed, sync),
    set_of(&["shmem_broadcast64"], Volume::Words, broadcast),
    set_of(&["shmem_collect64"], Volume::WordBlocks, collect),
    set_of(&["shmem_fcollect64"], Volume::WordBlocks, fcollect),
    set_of(&["shmem_alltoall64"], Volume::WordBlocks, alltoall),
    set_of(&["shmem_long_sum_to_all"], Volume::Words, sum),
    set_of(&["shmem_long_prod_to_all"], Volume::Words, product),
    set_of(&["shmem_long_min_to_all"], Volume::Words, minimum),
    set_of(&["shmem_long_max_to_all"], Volume::Words, maximum),
    set_of(&["shmem_long_and_to_all"], Volume::Words, all_and),
    set_of(&["shmem_long_or_to_all"], Volume::Words, all_or),
    set_of(&["shmem_long_xor_to_all"], Volume::Words, all_xor),
    everybody(&["shmem_barrier_all"], barrier_all),
    everybody(&["shmem_sync_all"], sync_all),
    everybody(&["shmem_malloc", "shmem_free"], memory),
];

const fn row(
    calls: &'static [&'static str],
    kind: Kind,
    volume: Volume,
    prepare: fn(&Site) -> Steps,
) -> Benchmark {
    Benchmark {
        calls,
        kind,
        volume,
        prepare,
    }
}

const fn pair(
    calls: &'static [&'static str],
    volume: Volume,
    prepare: fn(&Site) -> Steps,
) -> Benchmark {
    row(calls, Kind::Pair, volume, prepare)
}

const fn set_of(
    calls: &'static [&'static str],
    volume: Volume,
    prepare: fn(&Site) -> Steps,
) -> Benchmark {
    row(calls, Kind::ActiveSet, volume, prepare)
}

const fn everybody(calls: &'static [&'static str], prepare: fn(&Site) -> Steps) -> Benchmark {
    row(calls, Kind::Everybody, Volume::Fixed, prepare)
}

/// The library, and memory that all PEs have at the same place.
pub struct Shmem {
    /// Room for a block to each PE, and the same for a block from each.
    outgoing: usize,
    incoming: usize,
    /// Work array, as large as the blocks.
    work: usize,
    /// `SYNC_SIZE` elements.
    sync: usize,
    /// A lock, and a word that a PE waits for.
    lock: usize,
    word: usize,
}

static LOADED: OnceLock<Shmem> = OnceLock::new();

/// Finds a function of the library.
fn address(name: &str) -> *mut c_void {
    let name = CString::new(name).unwrap_or_default();
    // SAFETY: a string that ends in 0.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// A function of the library by its name and type.
macro_rules! function {
    ($name:ident($($argument:ty),* $(,)?) $(-> $result:ty)?) => {{
        let found = address(stringify!($name));
        assert!(!found.is_null(), "no function {}", stringify!($name));
        // SAFETY: the type is shmem.h's declaration; the arguments are symmetric memory of `Shmem`
        // with room for the data.
        unsafe { std::mem::transmute::<*mut c_void, extern "C" fn($($argument),*) $(-> $result)?>(found) }
    }};
}

impl Shmem {
    /// Loads the library and starts it, after MPI; `room` is the size of all blocks. Collective.
    ///
    /// # Errors
    /// There is no library, or no memory.
    pub fn start(room: usize) -> Result<()> {
        let open = |name: &&str| {
            let name = CString::new(*name).unwrap_or_default();
            // SAFETY: a string that ends in 0.
            let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
            !handle.is_null()
        };
        if !LIBRARIES.iter().any(open) {
            bail!("there is no {} to measure OpenSHMEM with", LIBRARIES[1]);
        }
        function!(shmem_init())();
        let allocate = function!(shmem_malloc(usize) -> *mut c_void);
        let words = SYNC_SIZE * size_of::<c_long>();
        let places = [room, room, room, words, 64, 64].map(|bytes| allocate(bytes));
        if places.iter().any(|place| place.is_null()) {
            None.context("too little symmetric memory: set SHMEM_SYMMETRIC_SIZE")?;
        }
        for (at, &place) in places.iter().enumerate() {
            let (bytes, value) = match at {
                3 => (words, 0xff),
                0..3 => (room, 0),
                _ => (64, 0),
            };
            // SAFETY: this many bytes were allocated; all bits set make SYNC_VALUE.
            unsafe { place.cast::<u8>().write_bytes(value, bytes) };
        }
        debug_assert_eq!(SYNC_VALUE.to_ne_bytes(), [0xff; size_of::<c_long>()]);
        let [outgoing, incoming, work, sync, lock, word] = places.map(|place| place as usize);
        let memory = Shmem {
            outgoing,
            incoming,
            work,
            sync,
            lock,
            word,
        };
        // No PE begins before the others' work arrays are ready.
        function!(shmem_barrier_all())();
        LOADED.set(memory).ok().context("OpenSHMEM runs already")
    }

    /// The library, if [`Shmem::start`] has started it.
    pub fn loaded() -> Option<&'static Shmem> {
        LOADED.get()
    }

    /// Ends it and MPI; `false` if it was not started.
    pub fn finish() -> bool {
        let is_loaded = Shmem::loaded().is_some();
        if is_loaded {
            function!(shmem_finalize())();
        }
        is_loaded
    }
}

/// A place in symmetric memory.
#[derive(Clone, Copy)]
struct Memory {
    outgoing: *mut c_void,
    incoming: *mut c_void,
    work: *mut c_long,
    sync: *mut c_long,
    lock: *mut c_long,
    word: *mut c_long,
}

impl Site {
    fn symmetric(&self) -> Memory {
        let memory = self.shmem.expect("OpenSHMEM was started");
        Memory {
            outgoing: memory.outgoing as *mut c_void,
            incoming: memory.incoming as *mut c_void,
            work: memory.work as *mut c_long,
            sync: memory.sync as *mut c_long,
            lock: memory.lock as *mut c_long,
            word: memory.word as *mut c_long,
        }
    }

    /// Elements of 8 bytes.
    fn words(&self) -> usize {
        self.bytes / 8
    }
}

/// The first PE accesses the other's memory while the other is in the library.
fn alone(site: &Site, mut what: impl FnMut() + 'static) -> Steps {
    let is_first = site.is_first();
    let steps = Steps::new(move || {
        if is_first {
            what();
        }
    });
    steps.after(super::windows::over(*site))
}

macro_rules! transfer {
    ($name:ident, $function:ident $(, $then:ident)?) => {
        fn $name(site: &Site) -> Steps {
            let (memory, bytes, pe) = (site.symmetric(), site.bytes, site.peer);
            let transfer = function!($function(*mut c_void, *const c_void, usize, c_int));
            $(let $then = function!($then());)?
            alone(site, move || {
                transfer(memory.incoming, memory.outgoing, bytes, pe);
                $($then();)?
            })
        }
    };
}

transfer!(put, shmem_putmem, shmem_quiet);
transfer!(put_nbi, shmem_putmem_nbi, shmem_quiet);
transfer!(get, shmem_getmem);
transfer!(get_nbi, shmem_getmem_nbi, shmem_quiet);

macro_rules! strided {
    ($name:ident, $function:ident $(, $then:ident)?) => {
        fn $name(site: &Site) -> Steps {
            let (memory, words, pe) = (site.symmetric(), site.words(), site.peer);
            let transfer = function!($function(
                *mut c_void,
                *const c_void,
                isize,
                isize,
                usize,
                c_int
            ));
            $(let $then = function!($then());)?
            alone(site, move || {
                transfer(memory.incoming, memory.outgoing, 2, 1, words, pe);
                $($then();)?
            })
        }
    };
}

strided!(iput, shmem_long_iput, shmem_fence);
strided!(iget, shmem_long_iget);

/// An operation on a word: the arguments before the PE.
macro_rules! on_word {
    ($name:ident, $function:ident, ($($value:expr),*)) => {
        fn $name(site: &Site) -> Steps {
            let (word, pe) = (site.symmetric().incoming.cast::<c_long>(), site.peer);
            let operation = function!($function(*mut c_long, $(on_word!(@ $value),)* c_int));
            alone(site, move || operation(word, $($value,)* pe))
        }
    };
    (@ $value:expr) => { c_long };
}

on_word!(p, shmem_long_p, (7));
on_word!(g, shmem_long_g, ());
on_word!(add, shmem_long_atomic_add, (1));
on_word!(fetch_add, shmem_long_atomic_fetch_add, (1));
on_word!(inc, shmem_long_atomic_inc, ());
on_word!(fetch_inc, shmem_long_atomic_fetch_inc, ());
on_word!(compare_swap, shmem_long_atomic_compare_swap, (0, 0));
on_word!(fetch, shmem_long_atomic_fetch, ());
on_word!(set, shmem_long_atomic_set, (0));
on_word!(swap, shmem_long_atomic_swap, (0));
on_word!(and, shmem_ulong_atomic_and, (1));
on_word!(fetch_and, shmem_ulong_atomic_fetch_and, (1));
on_word!(or, shmem_ulong_atomic_or, (1));
on_word!(fetch_or, shmem_ulong_atomic_fetch_or, (1));
on_word!(xor, shmem_ulong_atomic_xor, (1));
on_word!(fetch_xor, shmem_ulong_atomic_fetch_xor, (1));

fn lock(site: &Site) -> Steps {
    let lock = site.symmetric().lock;
    let acquire = function!(shmem_set_lock(*mut c_long));
    let release = function!(shmem_clear_lock(*mut c_long));
    alone(site, move || {
        acquire(lock);
        release(lock);
    })
}

/// The first PE writes the value that the other waits for.
fn wait_until(site: &Site) -> Steps {
    let (is_first, pe, word) = (site.is_first(), site.peer, site.symmetric().word);
    let write = function!(shmem_long_p(*mut c_long, c_long, c_int));
    let wait = function!(shmem_long_wait_until(*mut c_long, c_int, c_long));
    let mut turn = 0;
    let steps = Steps::new(move || {
        turn += 1;
        match is_first {
            true => write(word, turn, pe),
            false => wait(word, AT_LEAST, turn),
        }
    });
    // The next cell begins from 0 again. SAFETY: this PE's word, which no PE writes between cells.
    steps.release(move || unsafe { word.write(0) })
}

/// First PE, logarithm of the stride, and size.
type Set = (c_int, c_int, c_int);

fn members(site: &Site) -> Set {
    (0, 0, site.size)
}

macro_rules! meeting {
    ($name:ident, $function:ident) => {
        fn $name(site: &Site) -> Steps {
            let ((start, stride, size), sync) = (members(site), site.symmetric().sync);
            let meet = function!($function(c_int, c_int, c_int, *mut c_long));
            Steps::new(move || meet(start, stride, size, sync))
        }
    };
}

meeting!(barrier, shmem_barrier);
meeting!(sync, shmem_sync);

fn broadcast(site: &Site) -> Steps {
    let ((start, stride, size), memory) = (members(site), site.symmetric());
    let words = site.words();
    let broadcast = function!(
        shmem_broadcast64(
            *mut c_void,
            *const c_void,
            usize,
            c_int,
            c_int,
            c_int,
            c_int,
            *mut c_long,
        )
    );
    Steps::new(move || {
        let (to, from) = (memory.incoming, memory.outgoing);
        broadcast(to, from, words, 0, start, stride, size, memory.sync);
    })
}

macro_rules! of_blocks {
    ($name:ident, $function:ident) => {
        fn $name(site: &Site) -> Steps {
            let ((start, stride, size), memory) = (members(site), site.symmetric());
            let words = site.words();
            let exchange = function!(
                $function(*mut c_void, *const c_void, usize, c_int, c_int, c_int, *mut c_long)
            );
            Steps::new(move || {
                let (to, from) = (memory.incoming, memory.outgoing);
                exchange(to, from, words, start, stride, size, memory.sync);
            })
        }
    };
}

of_blocks!(collect, shmem_collect64);
of_blocks!(fcollect, shmem_fcollect64);
of_blocks!(alltoall, shmem_alltoall64);

macro_rules! reduction {
    ($name:ident, $function:ident) => {
        fn $name(site: &Site) -> Steps {
            let ((start, stride, size), memory) = (members(site), site.symmetric());
            let words = site.words() as c_int;
            let reduce = function!(
                $function(
                    *mut c_void,
                    *const c_void,
                    c_int,
                    c_int,
                    c_int,
                    c_int,
                    *mut c_long,
                    *mut c_long,
                )
            );
            Steps::new(move || {
                let (to, from) = (memory.incoming, memory.outgoing);
                let (work, sync) = (memory.work, memory.sync);
                reduce(to, from, words, start, stride, size, work, sync);
            })
        }
    };
}

reduction!(sum, shmem_long_sum_to_all);
reduction!(product, shmem_long_prod_to_all);
reduction!(minimum, shmem_long_min_to_all);
reduction!(maximum, shmem_long_max_to_all);
reduction!(all_and, shmem_long_and_to_all);
reduction!(all_or, shmem_long_or_to_all);
reduction!(all_xor, shmem_long_xor_to_all);

fn barrier_all(_: &Site) -> Steps {
    let meet = function!(shmem_barrier_all());
    Steps::new(move || meet())
}

fn sync_all(_: &Site) -> Steps {
    let meet = function!(shmem_sync_all());
    Steps::new(move || meet())
}

fn memory(_: &Site) -> Steps {
    let allocate = function!(shmem_malloc(usize) -> *mut c_void);
    let free = function!(shmem_free(*mut c_void));
    Steps::new(move || free(allocate(4096)))
}
