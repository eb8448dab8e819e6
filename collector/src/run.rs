//! Start and end of a process's recording.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Once, OnceLock};

use laggard_callpath::CallSite;
use laggard_trace::{ClockPoint, FileHeader, LIMIT_INTERNAL};

use crate::call::{Call, guarded};
use crate::claim::{self, RunId};
use crate::clock;
use crate::constants::{self, constants};
use crate::exports::real;
use crate::groups;
use crate::guard;
use crate::log::{self, debug, error, info, warning};
use crate::lookup;
use crate::memory;
use crate::operations;
use crate::options::{Mode, Options};
use crate::periodic;
use crate::posix;
use crate::presence;
use crate::program;
use crate::request;
use crate::resolve;
use crate::sampling::{self, Wanted};
use crate::steering;
use crate::stream::Settings;
use crate::sync::{self, Peers};
use crate::thread::{self, STATE, state};
use crate::threads;

static SETTINGS: OnceLock<Settings> = OnceLock::new();
static LIMITS: AtomicU32 = AtomicU32::new(0);
static STARTED: AtomicBool = AtomicBool::new(false);
/// The communicators for clock measurements, once they exist.
static PEERS: OnceLock<Peers> = OnceLock::new();
/// The other ranks meet this one for a measurement before they finalise MPI.
static AWAITED: AtomicBool = AtomicBool::new(false);

/// This process is a forked child; its parent does the reporting.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Settings that the locations of this process share; `None` before the start.
pub fn settings() -> Option<&'static Settings> {
    SETTINGS.get()
}

/// `LIMIT_` bits that all locations' ends carry.
pub fn limits() -> u32 {
    LIMITS.load(Ordering::Relaxed)
}

/// Stops recording for good after an internal error. The files stay readable up to the last
/// record.
pub fn note_internal_error() {
    LIMITS.fetch_or(LIMIT_INTERNAL, Ordering::Relaxed);
    STATE.store(state::OFF, Ordering::SeqCst);
}

/// How often the recording was paused.
static PAUSES: AtomicU32 = AtomicU32::new(0);

/// How often the recording was paused so far.
pub fn pauses() -> u32 {
    PAUSES.load(Ordering::Relaxed)
}

/// Pauses or resumes the recording.
pub fn set_paused(paused: bool) {
    PAUSES.fetch_add(u32::from(paused), Ordering::Relaxed);
    if !paused && STATE.load(Ordering::Relaxed) & state::PAUSED != 0 {
        threads::goes_on();
    }
    set(state::PAUSED, paused);
}

/// Sets or clears a bit of the state while recording.
pub fn set(bit: u32, on: bool) {
    if STATE.load(Ordering::Relaxed) & state::RECORDING == 0 {
        return;
    }
    if on {
        STATE.fetch_or(bit, Ordering::Relaxed);
    } else {
        STATE.fetch_and(!bit, Ordering::Relaxed);
    }
}

/// Sets up the recording after the real MPI_Init. Returns whether this process is recorded from
/// here on.
pub fn start(call: &mut Call, level: i32) -> bool {
    if STARTED.swap(true, Ordering::Relaxed) {
        return false;
    }
    let recording = guarded(|| set_up(call, level)).unwrap_or(false);
    let next = if recording {
        STATE.load(Ordering::Relaxed)
    } else {
        state::OFF
    };
    STATE.store(next, Ordering::SeqCst);
    recording
}

fn set_up(call: &mut Call, level: i32) -> bool {
    std::panic::set_hook(Box::new(|info| {
        debug!("{info}");
    }));
    // A failure shows below, where it can be reported.
    let _ = memory::set_aside();
    let (options, complaints) = Options::from_environment();
    log::set_level(options.log);
    // SAFETY: recording has not begun.
    if !program::is_expected_library() || !unsafe { constants::fill() } {
        if program::may_speak() {
            error!(
                "nothing is recorded: this program uses another MPI library ({}) than the one that laggard was built for ({}); preload the liblaggard.so that was built with the program's mpicc",
                program::mpi_library(),
                program::FAMILY
            );
        }
        return false;
    }
    let (mut rank, mut size) = (0, 0);
    // SAFETY: MPI is initialised.
    unsafe {
        real::MPI_Comm_rank(constants().comm_world, &mut rank);
        real::MPI_Comm_size(constants().comm_world, &mut size);
    }
    log::set_rank(rank);
    if rank == 0 {
        complaints
            .iter()
            .for_each(|complaint| warning!("{complaint}"));
        info!("{}", options.describe());
    }
    if let Some(path) = &options.operation_map
        && let Err(why) = operations::read(path)
        && rank == 0
    {
        warning!("{why}; regions are recorded as without it");
    }
    if level >= constants().thread_multiple {
        request::set_concurrent();
    }
    clock::measure_rate();
    // A process whose options say off still joins the collector's collectives.
    let place = if all_are_here(&options, rank, size) {
        together(&options, rank, size)
    } else {
        claim::alone(&options, rank, size)
    };
    let Some((directory, run_id)) = place else {
        return false;
    };
    record(call, &options, directory, run_id, rank, size)
}

/// Whether every rank of the job has a collector that joins the collector's collectives. With a
/// rank that has none they would never end.
fn all_are_here(options: &Options, rank: i32, size: i32) -> bool {
    let Some(present) = presence::count(size) else {
        return !claim::is_mixed_job();
    };
    if present.total < size && present.lowest == rank && options.mode != Mode::Off {
        warning!(
            "{} of {size} ranks have no collector (LD_PRELOAD is not set there): they are not recorded, and the clocks of several hosts are not compared",
            size - present.total
        );
    }
    present.total == size
}

/// Claims the directory with all ranks, on the collector's own communicator.
fn together(options: &Options, rank: i32, size: i32) -> Option<(PathBuf, RunId)> {
    let mut own = constants().comm_null;
    // SAFETY: MPI is initialised, and all ranks of the job come here.
    unsafe {
        if real::MPI_Comm_dup(constants().comm_world, &mut own) != constants::SUCCESS {
            return None;
        }
        real::MPI_Comm_set_errhandler(own, constants().errors_return);
    }
    let place = claim::together(options, own, rank, size);
    if place.is_some() && size > 1 {
        let known = Peers::new(own).is_some_and(|peers| PEERS.set(peers).is_ok());
        AWAITED.store(known, Ordering::Relaxed);
        let interval = claim::agreed(own, options.sync_interval);
        if let (Some(interval), Some(peers)) = (interval, PEERS.get()) {
            periodic::start(peers.leaders(), interval);
        }
    }
    // SAFETY: a communicator of our own, before MPI_Finalize.
    unsafe { real::MPI_Comm_free(&mut own) };
    place
}

fn record(
    call: &mut Call,
    options: &Options,
    directory: PathBuf,
    run_id: RunId,
    rank: i32,
    size: i32,
) -> bool {
    let header = FileHeader {
        run_id,
        rank: rank as u32,
        ranks: size as u32,
        clock: clock::chosen(),
        ticks_per_s: clock::ticks_per_s(),
        host_id: program::host_id(clock::chosen()),
        pid: std::process::id(),
        ..FileHeader::new()
    };
    let shown = directory.display().to_string();
    let settings = SETTINGS.get_or_init(|| Settings {
        directory,
        header,
        max_bytes: options.max_trace_bytes,
        window: options.buffer,
        file_per: options.file_per,
        depth: options.callpath_depth,
        records: options.mode == Mode::Trace,
        processor_time: options.processor_time,
        counters: options.counters.clone(),
        sampling: (options.sample_hz > 0).then_some(Wanted {
            hz: options.sample_hz,
            by: options.sample_by,
        }),
        sample_by: options.sample_by,
    });
    let (world, own) = groups::start(rank, size);
    let prepared = claim::make_directory(&settings.directory).and_then(|()| memory::set_aside());
    if let Err(problem) = &prepared {
        error!("{shown}: {problem}; this rank is not recorded");
    }
    let wanted = options.mode != Mode::Off && !memory::is_short();
    let mut not_steered = None;
    let recorded = prepared.is_ok() && wanted && {
        guard::install();
        not_steered = steering::begin(&settings.directory, &settings.header, options.paused).err();
        let paused = if options.paused { state::PAUSED } else { 0 };
        let posix = if options.posix_io { posix::ready() } else { 0 };
        threads::begins();
        let threads = if options.threads { state::THREADS } else { 0 };
        // Calls of other threads wait until MPI_Init has returned to the program.
        STATE.store(
            state::RECORDING | paused | posix | threads,
            Ordering::SeqCst,
        );
        thread::adopt_first(call.site)
    };
    // All ranks take part, even if they cannot write.
    let point = measure(0);
    if !recorded {
        STATE.store(state::OFF, Ordering::SeqCst);
        return false;
    }
    if !call.adopt() {
        return false;
    }
    let stream = call.stream();
    stream.properties(&program::properties(options, rank));
    if let Some(why) = not_steered {
        warning!("{why}; laggard steer cannot reach this rank");
        stream.properties(&[("not_steered", why.into_bytes())]);
    }
    stream.define_least_stretch();
    stream.define_named(world, b"MPI_COMM_WORLD");
    stream.define_named(own, b"MPI_COMM_SELF");
    stream.clock(&[point]);
    true
}

/// A clock point of this process.
fn measure(kind: u32) -> ClockPoint {
    match PEERS.get() {
        Some(peers) => peers.measure(kind),
        None => sync::alone(kind),
    }
}

/// Whether the other ranks wait for this one before they finalise MPI.
pub fn is_awaited() -> bool {
    AWAITED.load(Ordering::Relaxed)
}

/// Runs before the real MPI_Finalize: takes the last clock measurement and frees the
/// collector's communicators.
pub fn before_finalize(call: &mut Call) {
    let point = guarded(|| {
        periodic::stop();
        let point = measure(1);
        AWAITED.store(false, Ordering::Relaxed);
        if let Some(peers) = PEERS.get() {
            peers.free();
        }
        groups::stop();
        point
    });
    if !call.is_outside() && call.claim() {
        guarded(|| {
            if let Some(point) = point {
                call.stream().clock(&[point]);
            }
            crate::regions::end_phase(call);
        });
        call.release();
    }
}

/// Registers the end of the recording for the exit of the process. OpenSHMEM finalises itself
/// at exit if the program has not done so. Recording must end first, because the other ranks
/// wait for this one in shmem_finalize. Exit handlers run in reverse order: this one must be
/// registered when the library is initialised.
pub fn end_at_exit() {
    static ONCE: Once = Once::new();
    // SAFETY: registers a function of this library, which is never unloaded.
    ONCE.call_once(|| unsafe {
        libc::atexit(finalized_at_exit);
    });
}

extern "C" fn finalized_at_exit() {
    let recording = STATE.load(Ordering::Relaxed) & state::RECORDING != 0;
    if IS_CHILD.load(Ordering::Relaxed) || !(recording || is_awaited()) {
        return;
    }
    // No wrapper of a call stands around what the libraries do now.
    posix::suspend();
    let site = CallSite {
        ra: 0,
        sp: 0,
        bp: 0,
    };
    let mut call = Call::outside(site, 0);
    if call.adopt() {
        call.release();
    }
    before_finalize(&mut call);
    finish(0);
}

/// Closes everything; the calling thread has claimed its stream.
pub fn finish(reason: u32) {
    guarded(|| thread::close_all(reason, true));
}

/// The process exits.
fn exits() {
    match STATE.load(Ordering::Relaxed) {
        state::IDLE => drop(guarded(note_unseen)),
        s if s & state::RECORDING != 0 => drop(guarded(|| thread::close_all(1, false))),
        _ => {}
    }
}

/// Reports a program that used MPI although the collector saw no call. Preloading cannot
/// intercept calls within one binary, calls in libraries loaded with RTLD_DEEPBIND, or
/// functions that a program finds in the MPI library's symbol table itself.
fn note_unseen() {
    let initialized = resolve::symbol(c"PMPI_Initialized");
    if initialized.is_null() || IS_CHILD.load(Ordering::Relaxed) {
        return;
    }
    let mut flag = 0;
    // SAFETY: MPI's function of this name, which may be called at any time.
    unsafe {
        let initialized: unsafe extern "C" fn(*mut i32) -> i32 = std::mem::transmute(initialized);
        initialized(&mut flag);
    }
    let (options, _) = Options::from_environment();
    log::set_level(options.log);
    if flag != 0 && options.mode != Mode::Off {
        warning!(
            "nothing is recorded: this program initialised MPI, but its call of MPI_Init cannot be seen by a preloaded library (as with RTLD_DEEPBIND or static linking)"
        );
    }
}

extern "C" fn library_loaded() {
    lookup::loaded();
    posix::loaded();
    threads::loaded();
    sampling::loaded();
    clock::loaded();
    // SAFETY: the handler only stores to a static.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
}

unsafe extern "C" fn forked() {
    AWAITED.store(false, Ordering::Relaxed);
    periodic::stop();
    IS_CHILD.store(true, Ordering::Relaxed);
    thread::forked();
}

extern "C" fn library_unloaded() {
    exits();
}

// Runs after the handlers of `atexit`: some programs finalise MPI in one.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = library_unloaded;

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = library_loaded;
