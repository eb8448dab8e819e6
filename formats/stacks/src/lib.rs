//! Time by call path, in the formats of profile viewers.
//!
//! *Purpose.* [`Stacks`] has the time of each call path, split into computation, communication
//! and waiting. [`flame_graph`] draws it (SVG), [`folded`] lists it for drawing tools, and
//! [`speedscope`] and [`pprof`] write it for the viewers of these names.
//!
//! *Data flow.* All is in memory, which grows with the call paths of the program, not with the
//! length of its run.
//!
//! *Constraints.* Times are ns, summed over all threads of all ranks. The same stacks give the
//! same bytes.
//!
//! *Not supported.* Reading these formats; the order of events in time.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod flame;
mod pprof;
mod speedscope;
mod stack;

pub use flame::{flame_graph, folded};
pub use pprof::pprof;
pub use speedscope::speedscope;
pub use stack::{Frame, Kind, Stack, Stacks};

/// Reason why stacks could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused to write.
    #[error("cannot write the stacks: {0}")]
    Write(#[from] std::io::Error),
    /// JSON could not encode them.
    #[error("cannot write the stacks: {0}")]
    Json(#[from] serde_json::Error),
    /// There is nothing to draw.
    #[error("there is no time to draw in this trace")]
    Empty,
}
