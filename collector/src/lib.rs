//! The preloaded library that records what every call did.
//!
//! *Data flow.* A program's `MPI_x` comes to the wrapper of that name (`exports`),
//! (`lookup` for a program that asks `dlsym` for it), `shmem_x` to one of `shmem`,
//! which calls the real function (`resolve`) between two readings of the clock
//! (`clock`). The call's class (`classes`) then says what it did: a
//! `signature` that repeats, and a record of twelve bytes in the location's
//! `stream`.
//!
//! *Constraints.* The program must not notice: nothing here ends, blocks or changes
//! it. Nothing is linked against MPI, so that the library can be preloaded into
//! whatever else `mpirun` starts. A call costs some tens of nanoseconds; whatever
//! costs more happens the first time something is seen.
//!
//! *Not supported.* User-level threads that move between system threads inside MPI
//! calls; MPI 4 sessions.

mod call;
mod claim;
mod classes;
mod clock;
mod constants;
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
mod operations;
mod options;
mod passed;
mod periodic;
mod presence;
mod program;
mod regions;
mod request;
mod resolve;
mod run;
mod shmem;
mod signature;
mod statistics;
mod stream;
mod symmetric;
mod sync;
mod thread;
mod types;
mod windows;
