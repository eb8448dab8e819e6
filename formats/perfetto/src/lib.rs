//! Writes traces for the Perfetto viewer (<https://ui.perfetto.dev>) and its trace processor.
//!
//! *Purpose.* A time line of the ranks. [`TraceWriter`] takes tracks, slices with arguments,
//! flows between slices, and counters.
//!
//! *Data flow.* The common part of many slices is [prepared](TraceWriter::prepare) once. Every
//! call becomes one or two packets, which are compressed at once. Only the used texts stay in
//! memory; each is written once.
//!
//! *Constraints.* Slices of one track come in the order of time, and inner ones lie between the
//! begin and the end of the outer one. Times are ns, and not negative.
//!
//! *Not supported.* Reading; features of Perfetto beyond tracks. The messages (module
//! [`message`]) have only the needed fields, with their numbers in the project's
//! `perfetto_trace.proto`.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod compress;
mod encode;
pub mod message;
mod writer;

pub use writer::{Error, Kind, Prepared, Slice, TraceWriter, Track, Value, ValueName};
