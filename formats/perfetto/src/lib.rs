//! Writes traces that the Perfetto viewer (<https://ui.perfetto.dev>) and its trace processor
//! open.
//!
//! *Purpose.* What happened on which rank, on a time line: [`TraceWriter`] takes tracks,
//! slices with what is known of them, flows between slices, and counters.
//!
//! *Data flow.* What many slices have in common is [prepared](TraceWriter::prepare) once. Every
//! call becomes one or two packets, which are compressed as they come; nothing but the texts
//! that were used is kept. Texts are written once.
//!
//! *Constraints.* Slices of one track are given in the order of time, inner ones between the
//! begin and the end of the outer one. Times are ns, and not negative.
//!
//! *Not supported.* Reading; anything of Perfetto that is not about tracks. The messages
//! (module [`message`]) are the few fields that are needed, under the numbers that the
//! project's `perfetto_trace.proto` gives them.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod compress;
mod encode;
pub mod message;
mod writer;

pub use writer::{Error, Kind, Prepared, Slice, TraceWriter, Track, Value, ValueName};
