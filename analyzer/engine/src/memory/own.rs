//! What one rank does with memory of others, and others with its.

use crate::memory::competing::Moves;
use crate::memory::epochs::Epochs;
use crate::memory::lock::Locks;
use crate::memory::watches::{Look, Write};
use crate::wire::watched::Watch;

/// What one rank does with memory of others.
#[derive(Debug, Default)]
pub struct RemoteMemory {
    /// Its epochs on windows.
    pub epochs: Epochs,
    /// What it wrote into symmetric memory in this slab.
    pub writes: Vec<Write>,
    /// Some of these are kept for the next slab: regions of the program wait for values.
    pub keeps_writes: bool,
    /// Where each thread last looked at memory in a window.
    pub looks: Vec<Look>,
    /// Waits for values and locks that began in this slab.
    pub watches: Vec<Watch>,
    /// What it did with locks.
    pub locks: Locks,
    /// What it transferred to and from others.
    pub moves: Moves,
}
