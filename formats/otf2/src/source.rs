//! Where definitions and events come from: an archive, or what stands for one in memory.

use std::path::Path;

use crate::Error;
use crate::definitions::Definitions;
use crate::events::Batch;

/// Measurements of a location's clock: time, and what is to be added to it then, ticks.
pub type Offsets = Vec<(u64, i64)>;

/// What locations are read from, by several threads.
pub trait Source: Sync {
    /// What it is called, in errors.
    fn path(&self) -> &Path;

    /// Tells recordings apart.
    fn id(&self) -> u64;

    /// What all locations share.
    fn definitions(&self) -> &Definitions;

    /// Begins the events of a location.
    ///
    /// # Errors
    /// None of them can be read.
    fn location(&self, id: u64) -> Result<Box<dyn Stream + '_>, Error>;

    /// The clock offsets of a location, without its events; `None` if they cannot be read.
    fn offsets(&self, id: u64) -> Option<Offsets>;

    /// Locations that have events and are not defined.
    fn strays(&self) -> &[u64];
}

/// The events of a location, in order.
pub trait Stream {
    /// The next events; none at the end, and where the rest is [broken](Progress::broken).
    fn next(&mut self) -> &Batch;

    /// How far that came.
    fn progress(&self) -> &Progress;
}

/// What is known of a location beside its events.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Clock offsets by time; `None`: the location has no definitions that can be read.
    pub offsets: Option<Offsets>,
    /// Records that are of no use here: metrics, threads, files.
    pub skipped: u64,
    /// Why the rest cannot be read.
    pub broken: Option<String>,
}
