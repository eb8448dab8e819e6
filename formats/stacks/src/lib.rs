//! Time by call path, in the formats of viewers of profiles.
//!
//! *Purpose.* Where time went: [`Stacks`] has the time of each call path, computation,
//! communication and waiting apart. [`flame_graph`] draws it (SVG), [`folded`] lists it for
//! tools that draw, [`speedscope`] and [`pprof`] are for the viewers of these names.
//!
//! *Data flow.* All is in memory: it grows with the call paths of the program, not with the
//! length of its run.
//!
//! *Constraints.* Times are ns, summed up over all threads of all ranks. The same stacks give
//! the same bytes.
//!
//! *Not supported.* Reading; the order in which things happened.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod flame;
mod pprof;
mod speedscope;
mod stack;

pub use flame::{flame_graph, folded};
pub use pprof::pprof;
pub use speedscope::speedscope;
pub use stack::{Frame, Kind, Stack, Stacks};

/// Why stacks could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused to write.
    #[error("cannot write the stacks: {0}")]
    Write(#[from] std::io::Error),
    /// They could not be put into JSON.
    #[error("cannot write the stacks: {0}")]
    Json(#[from] serde_json::Error),
    /// There is nothing to draw.
    #[error("there is no time to draw in this trace")]
    Empty,
}
