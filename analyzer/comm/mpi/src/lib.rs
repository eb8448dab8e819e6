//! The library that links MPI: what agents say to each other goes through the table of functions
//! here, and `laggard baseline` measures here.
//!
//! It is built once for each family of MPI libraries. The command loads the one that fits its
//! launcher ([`laggard_comm::library`]).
#![warn(clippy::disallowed_methods)]

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{from_mut, null_mut};

use laggard_baselines::MeasureOptions;
use laggard_comm::library::{Functions, Shown, Take};
use laggard_comm::{MpiJob, waiting};
use mpi::ffi::{self, MPI_Comm, MPI_Datatype, MPI_Request, MPI_Status};

/// The table, by the name that the command looks for.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static laggard_mpi_2: Functions = Functions {
    attach,
    start,
    finish,
    rank,
    size,
    send,
    receive,
    start_send,
    start_receive,
    test,
    wait,
    probe,
    look,
    all_to_all,
    maximum,
    sum,
    broadcast,
    abort,
    measure,
};

/// Calls a function of MPI, whose errors end the job.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: handles of this library, and memory as the table's users promise.
        unsafe { ffi::$function($($argument),*) }
    }};
}

/// A constant of the MPI library.
macro_rules! constant {
    ($name:ident) => {{
        // SAFETY: the library writes it, if at all, before it is initialised.
        unsafe { ffi::$name }
    }};
}

fn world() -> MPI_Comm {
    constant!(RSMPI_COMM_WORLD)
}

fn bytes() -> MPI_Datatype {
    constant!(RSMPI_UINT8_T)
}

fn status() -> MPI_Status {
    // SAFETY: plain numbers, which the library overwrites.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// Requests are numbers or pointers, of at most 64 bits.
fn pack(request: MPI_Request) -> u64 {
    const { assert!(size_of::<MPI_Request>() <= size_of::<u64>()) };
    let mut packed = 0;
    // SAFETY: there is room for it.
    unsafe { from_mut(&mut packed).cast::<MPI_Request>().write(request) };
    packed
}

fn unpack(packed: u64) -> MPI_Request {
    // SAFETY: packed from one.
    unsafe { (&raw const packed).cast::<MPI_Request>().read() }
}

extern "C" fn attach(set: extern "C" fn(bool)) {
    waiting::hand_on(set);
}

extern "C" fn start() -> bool {
    // Waiting agents leave their core to working ones.
    if std::env::var_os(waiting::OPTION).is_none() {
        // SAFETY: MPI has not started, nor has any other thread that reads the environment.
        unsafe { std::env::set_var(waiting::OPTION, "1") };
    }
    waiting::as_told();
    let mut is_started = 0;
    call!(MPI_Initialized(&mut is_started));
    if is_started != 0 {
        return false;
    }
    let (wanted, mut provided) = (constant!(RSMPI_THREAD_FUNNELED), 0);
    call!(MPI_Init_thread(
        null_mut(),
        null_mut(),
        wanted,
        &mut provided
    ));
    true
}

extern "C" fn finish() {
    call!(MPI_Finalize());
}

extern "C" fn rank() -> c_int {
    let mut rank = 0;
    call!(MPI_Comm_rank(world(), &mut rank));
    rank
}

extern "C" fn size() -> c_int {
    let mut size = 0;
    call!(MPI_Comm_size(world(), &mut size));
    size
}

unsafe extern "C" fn send(data: *const u8, length: c_int, to: c_int, tag: c_int) {
    call!(MPI_Send(data.cast(), length, bytes(), to, tag, world()));
}

unsafe extern "C" fn receive(data: *mut u8, length: c_int, from: c_int, tag: c_int) {
    let mut status = status();
    let data = data.cast();
    call!(MPI_Recv(
        data,
        length,
        bytes(),
        from,
        tag,
        world(),
        &mut status
    ));
}

unsafe extern "C" fn start_send(data: *const u8, length: c_int, to: c_int, tag: c_int) -> u64 {
    let mut request = constant!(RSMPI_REQUEST_NULL);
    let data = data.cast();
    call!(MPI_Isend(
        data,
        length,
        bytes(),
        to,
        tag,
        world(),
        &mut request
    ));
    pack(request)
}

unsafe extern "C" fn start_receive(data: *mut u8, length: c_int, from: c_int, tag: c_int) -> u64 {
    let mut request = constant!(RSMPI_REQUEST_NULL);
    let data = data.cast();
    call!(MPI_Irecv(
        data,
        length,
        bytes(),
        from,
        tag,
        world(),
        &mut request
    ));
    pack(request)
}

unsafe extern "C" fn test(request: u64) -> bool {
    let (mut request, mut status, mut done) = (unpack(request), status(), 0);
    call!(MPI_Test(&mut request, &mut done, &mut status));
    done != 0
}

unsafe extern "C" fn wait(requests: *const u64, count: usize) {
    // SAFETY: so many, by the caller.
    let requests = unsafe { std::slice::from_raw_parts(requests, count) };
    let mut requests: Vec<MPI_Request> = requests.iter().copied().map(unpack).collect();
    let mut states = vec![status(); count];
    let (first, states) = (requests.as_mut_ptr(), states.as_mut_ptr());
    call!(MPI_Waitall(count as c_int, first, states));
}

unsafe extern "C" fn probe(tag: c_int, length: *mut c_int) -> c_int {
    let mut status = status();
    let any = constant!(RSMPI_ANY_SOURCE);
    call!(MPI_Probe(any, tag, world(), &mut status));
    call!(MPI_Get_count(&status, bytes(), length));
    status.MPI_SOURCE
}

unsafe extern "C" fn look(tag: c_int, length: *mut c_int) -> c_int {
    let (mut status, mut is_there) = (status(), 0);
    let any = constant!(RSMPI_ANY_SOURCE);
    call!(MPI_Iprobe(any, tag, world(), &mut is_there, &mut status));
    if is_there == 0 {
        return -1;
    }
    call!(MPI_Get_count(&status, bytes(), length));
    status.MPI_SOURCE
}

unsafe extern "C" fn all_to_all(mine: *const u64, theirs: *mut u64) {
    let (numbers, one) = (constant!(RSMPI_UINT64_T), 1);
    let (mine, theirs) = (mine.cast(), theirs.cast());
    call!(MPI_Alltoall(
        mine,
        one,
        numbers,
        theirs,
        one,
        numbers,
        world()
    ));
}

unsafe extern "C" fn maximum(values: *mut i64, count: c_int) {
    // SAFETY: so many, by the caller.
    let own = unsafe { std::slice::from_raw_parts(values, count as usize) }.to_vec();
    let (numbers, op) = (constant!(RSMPI_INT64_T), constant!(RSMPI_MAX));
    let (own, values) = (own.as_ptr().cast(), values.cast());
    call!(MPI_Allreduce(own, values, count, numbers, op, world()));
}

unsafe extern "C" fn sum(values: *mut u64, count: c_int) {
    // SAFETY: so many, by the caller.
    let own = unsafe { std::slice::from_raw_parts(values, count as usize) }.to_vec();
    let (numbers, op) = (constant!(RSMPI_UINT64_T), constant!(RSMPI_SUM));
    let (own, values) = (own.as_ptr().cast(), values.cast());
    call!(MPI_Allreduce(own, values, count, numbers, op, world()));
}

unsafe extern "C" fn broadcast(data: *mut u8, length: c_int) {
    call!(MPI_Bcast(data.cast(), length, bytes(), 0, world()));
}

extern "C" fn abort(code: c_int) {
    call!(MPI_Abort(world(), code));
}

unsafe extern "C" fn measure(
    options: *const u8,
    length: usize,
    shown: Shown,
    take: Take,
    context: *mut c_void,
) {
    // SAFETY: so many bytes, by the caller.
    let options = unsafe { std::slice::from_raw_parts(options, length) };
    let mut show = |share: f64, text: &str| {
        // SAFETY: the caller's function with its context.
        unsafe { shown(context, share, text.as_ptr(), text.len()) }
    };
    let mut measured = || -> Result<Option<Vec<u8>>, String> {
        let options: MeasureOptions =
            serde_json::from_slice(options).map_err(|error| error.to_string())?;
        let start = || MpiJob::new(0, || Ok(&laggard_mpi_2));
        let measured = laggard_measure::measure(&options, start, &mut show);
        let measured = measured.map_err(|error| format!("{error:#}"))?;
        let packed = measured.map(|measured| serde_json::to_vec(&measured));
        packed.transpose().map_err(|error| error.to_string())
    };
    let (is_good, bytes) = match measured() {
        Ok(None) => return,
        Ok(Some(bytes)) => (true, bytes),
        Err(text) => (false, text.into_bytes()),
    };
    // SAFETY: as above; it copies what it takes.
    unsafe { take(context, is_good, bytes.as_ptr(), bytes.len()) };
}
