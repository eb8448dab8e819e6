//! Source of definitions and events: an archive, or a stand-in in memory.

use std::path::Path;

use crate::Error;
use crate::definitions::Definitions;
use crate::events::Batch;

/// Measurements of a location's clock: time, and the offset to add then; ticks.
pub type Offsets = Vec<(u64, i64)>;

/// A source of locations; several threads may read it.
pub trait Source: Sync {
    /// Name in errors.
    fn path(&self) -> &Path;

    /// Identity of the recording.
    fn id(&self) -> u64;

    /// Definitions shared by all locations.
    fn definitions(&self) -> &Definitions;

    /// Begins the events of a location.
    ///
    /// # Errors
    /// None of its events can be read.
    fn location(&self, id: u64) -> Result<Box<dyn Stream + '_>, Error>;

    /// The clock offsets of a location, without its events; `None` if they cannot be read.
    fn offsets(&self, id: u64) -> Option<Offsets>;

    /// Locations with events but no definition.
    fn strays(&self) -> &[u64];
}

/// The events of a location, in order.
pub trait Stream {
    /// The next events. Empty at the end, or if the rest is [broken](Progress::broken).
    fn next(&mut self) -> &Batch;

    /// State after the last batch.
    fn progress(&self) -> &Progress;
}

/// Facts about a location beside its events.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Clock offsets by time; `None` if the location has no readable definitions.
    pub offsets: Option<Offsets>,
    /// Number of skipped records: metrics, threads, files.
    pub skipped: u64,
    /// Reason why the rest cannot be read.
    pub broken: Option<String>,
}
