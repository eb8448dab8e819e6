//! The preloaded library that records every call.
//!
//! *Data flow.* A program's `MPI_x` reaches the wrapper of that name (`exports`; `lookup` if
//! the program asks `dlsym` for it), and `shmem_x` reaches one in `shmem`. The wrapper calls
//! the real function (`resolve`) between two readings of the clock (`clock`). The call's class
//! (`classes`) then describes it: a `signature` that repeats, and a record of twelve bytes in
//! the location's `stream`. The program's own POSIX I/O goes the same way (`posix`), where it
//! lasts, and so do waits among its threads (`threads`).
//!
//! *Constraints.* The program must not notice the collector: nothing here ends, blocks or
//! changes it. Nothing links against MPI, so the library can be preloaded into any process that
//! `mpirun` starts. A call costs some tens of nanoseconds; more expensive work happens once per
//! new item.
//!
//! *Not supported.* User-level threads that move between system threads inside MPI calls; MPI 4
//! sessions.

mod call;
mod claim;
mod classes;
mod clock;
mod constants;
mod counters;
mod exports;
mod ffi;
mod groups;
mod guard;
mod handles;
mod hash;
mod hydra;
mod lists;
mod log;
mod lookup;
mod memory;
mod next;
mod operations;
mod options;
mod passed;
mod perf;
mod periodic;
mod posix;
mod presence;
mod program;
mod regions;
mod request;
mod resolve;
mod run;
mod sampling;
mod shmem;
mod signature;
mod statistics;
mod steering;
mod stream;
mod symmetric;
mod sync;
mod thread;
mod threads;
mod types;
mod windows;
