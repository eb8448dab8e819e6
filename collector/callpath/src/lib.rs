//! Call paths by cached unwinding, cheap enough for every call.
//!
//! A wrapper around a library function passes its call site ([`CallSite`]) to a per-thread
//! [`Tracer`]. The answer is a small number, the [`PathId`] of an interned call path:
//!
//! ```no_run
//! use laggard_callpath::{CallSite, Tracer};
//!
//! thread_local! {
//!     static TRACER: std::cell::RefCell<Tracer> = const { std::cell::RefCell::new(Tracer::new()) };
//! }
//!
//! #[unsafe(no_mangle)]
//! extern "C" fn MPI_Something() {
//!     let site = CallSite::here();
//!     TRACER.with_borrow_mut(|tracer| {
//!         // SAFETY: this call has not returned.
//!         let path = unsafe { tracer.capture(&site, 16) };
//!         for id in tracer.take_new() {
//!             // write the definition of `id`: tracer.frames(id)
//!         }
//!         // write the record, with `path`
//!     });
//! }
//! ```
//!
//! # How it works
//!
//! The first capture of a path unwinds with the program's `.eh_frame` tables. It notes every
//! value that the result depends on: the return addresses and the saved frame pointers that
//! were used, with their stack slots. Later captures with the same return address and stack
//! pointer only compare those slots. The `cache` module proves that equal slots mean an equal
//! path. A hit takes no lock and allocates no memory.
//!
//! In a process with a CPython interpreter, captures take the frames of the Python program
//! instead ([`Frame::Source`]), without the GIL.
//!
//! Paths of earlier moments ([`Tracer::capture_moment`]) are unwound from copies of the stack that
//! something else made, such as a sampling profiler.
//!
//! # Constraints
//!
//! - Everything is lazy: loading the crate into a process does nothing.
//! - Any failure gives a shorter path, in the worst case [`PathId::EMPTY`].
//! - The wrapper must be compiled with frame pointers
//!   (`-C force-frame-pointers=yes`); the code that calls it need not be.
//! - [`note_unload`] should be called when a library is unloaded; [`unloading`] does, and earlier
//!   moments are unwound only if every unloading passes it.
//!
//! # Not supported
//!
//! - Captures from signal handlers and from forked children of a process with threads: they
//!   could deadlock on a lock of the miss path.
//! - Code generated at run time has no unwind tables here: a path ends there.
//! - On AArch64 captures follow the chain of frame pointers and read no tables.
//! - Earlier moments have Python frames if these were noted with them ([`note_python`]): they are not on the stack.
//! - A C extension of Python that calls MPI itself appears as the Python line that called it.

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!("laggard-callpath knows Linux on x86-64 and AArch64 only");

mod cache;
mod modules;
mod paths;
mod python;
#[cfg(target_arch = "x86_64")]
mod rules;
mod site;
mod stack;
mod tracer;
mod unwind;

pub use modules::{Module, ModuleId, module, module_count, note_unload, unloading, unloads};
pub use paths::{Frame, PathId, StrId};
pub use python::moment::{MOST as MOST_PYTHON, note as note_python, prepare as prepare_python};
pub use site::{CallSite, Moment};
pub use tracer::{Carried, Stats, Tracer};
