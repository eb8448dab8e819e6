//! The preloaded library that records what every call did.
//!
//! *Data flow.* A program's `MPI_x` comes to the wrapper of that name ([`exports`]),
//! which calls the real function ([`resolve`]) between two readings of the clock
//! ([`clock`]). The call's class ([`classes`]) then says what it did: a
//! [`signature`] that repeats, and a record of twelve bytes in the location's
//! [`stream`].
//!
//! *Constraints.* The program must not notice: nothing here ends, blocks or changes
//! it. Nothing is linked against MPI, so that the library can be preloaded into
//! whatever else `mpirun` starts. A call costs some tens of nanoseconds; whatever
//! costs more happens the first time something is seen.
//!
//! *Not supported.* User-level threads that move between system threads inside MPI
//! calls; MPI 4 sessions.

mod claim;
pub mod classes;
pub mod clock;
pub mod constants;
pub mod exports;
pub mod ffi;
pub mod groups;
pub mod hash;
pub mod lists;
pub mod log;
pub mod options;
pub mod program;
pub mod request;
pub mod resolve;
pub mod run;
pub mod signature;
pub mod stream;
pub mod sync;
pub mod thread;
pub mod types;
