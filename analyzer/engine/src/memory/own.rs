//! One-sided communication of one rank.

use crate::memory::competing::Moves;
use crate::memory::epochs::Epochs;
use crate::memory::lock::Locks;
use crate::memory::watches::{Look, Write};
use crate::stream::polling::Episode;
use crate::wire::watched::Watch;

/// One-sided communication of one rank.
#[derive(Debug, Default)]
pub struct RemoteMemory {
    /// Its epochs on windows.
    pub epochs: Epochs,
    /// Its writes into symmetric memory in this slab.
    pub writes: Vec<Write>,
    /// Whether some writes are kept for the next slab: regions of the program wait for values.
    pub keeps_writes: bool,
    /// The last place that each thread looked at in a window.
    pub looks: Vec<Look>,
    /// Waits for values and locks that began in this slab, or episodes of looks that ended in it.
    pub watches: Vec<(Watch, Option<Episode>)>,
    pub locks: Locks,
    /// Its transfers.
    pub moves: Moves,
}
