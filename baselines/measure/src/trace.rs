//! The trace of the measurement: one directory for the whole job.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::world::Members;

/// Its directory; rank 0's counts.
const DIRECTORY: &str = "LAGGARD_TRACE_DIR";

/// Directory of the job's trace: the one that rank 0 was given. Collective.
pub fn directory(world: &Members) -> PathBuf {
    let own = std::env::var_os(DIRECTORY).unwrap_or_default();
    let mut bytes = own.into_vec();
    let mut length = (bytes.len() as u64).to_ne_bytes();
    world.broadcast(&mut length);
    bytes.resize(u64::from_ne_bytes(length) as usize, 0);
    world.broadcast(&mut bytes);
    PathBuf::from(OsString::from_vec(bytes))
}

/// Removes this rank's part of the trace. The last rank of a host also removes the directory.
pub fn clean(directory: &Path, rank: u32) {
    // Best effort: the files lie in a temporary directory.
    let _ = std::fs::remove_file(directory.join(laggard_trace::file_name(rank, 0)));
    if rank == 0 {
        let _ = std::fs::remove_file(directory.join(laggard_trace::RUN_FILE));
    }
    let _ = std::fs::remove_dir(directory);
}
