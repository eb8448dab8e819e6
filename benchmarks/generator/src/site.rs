//! Places in the programs that calls are made from.

use laggard_trace::calls::number;
use serde::{Deserialize, Serialize};

/// A place: its number in the program's list.
pub type SiteId = u16;

/// A call at a place.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Number of the call.
    pub operation: u16,
    /// Source file.
    pub file: &'static str,
    /// Function and line, innermost first.
    pub frames: &'static [(&'static str, u32)],
}

/// A place as reports show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// Name of the call.
    pub operation: String,
    /// Source file of the calling line.
    pub file: String,
    /// The calling line.
    pub line: u32,
    /// `function file:line`, outermost first.
    pub callpath: Vec<String>,
}

impl Site {
    /// The place as text.
    pub fn place(&self) -> Place {
        let frame = |(function, line): &(&str, u32)| format!("{function} {}:{line}", self.file);
        Place {
            operation: laggard_trace::calls::name(self.operation).to_owned(),
            file: self.file.to_owned(),
            line: self.frames.first().map_or(0, |frame| frame.1),
            callpath: self.frames.iter().rev().map(frame).collect(),
        }
    }
}

/// MPI_Init of every program.
pub const INIT: SiteId = 0;
/// MPI_Finalize of every program.
pub const FINALIZE: SiteId = 1;
/// Makes the communicator of a row of ranks.
pub const SPLIT_ROWS: SiteId = 2;
/// Makes the communicator of a column of ranks.
pub const SPLIT_COLUMNS: SiteId = 3;
/// A send that nobody receives.
pub const LOST_SEND: SiteId = 4;
/// A receive that nobody sends to.
pub const LOST_RECEIVE: SiteId = 5;
/// Number of the first place that is the program's own.
pub const FIRST: SiteId = 6;

/// The places that all programs have.
pub const COMMON: [Site; FIRST as usize] = {
    const fn site(operation: u16, frames: &'static [(&'static str, u32)]) -> Site {
        let file = "main.c";
        Site {
            operation,
            file,
            frames,
        }
    }
    [
        site(number::MPI_Init, &[("main", 10)]),
        site(number::MPI_Finalize, &[("main", 90)]),
        site(number::MPI_Comm_split, &[("set_up", 21), ("main", 12)]),
        site(number::MPI_Comm_split, &[("set_up", 22), ("main", 12)]),
        site(number::MPI_Send, &[("notify", 31), ("main", 60)]),
        site(number::MPI_Irecv, &[("expect", 36), ("main", 61)]),
    ]
};
