//! Preloads the collector into a job of `laggard baseline`: each process starts itself once more,
//! with the library preloaded and a trace directory of its own.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result};

/// Set in processes that have the collector.
const STARTED: &str = "LAGGARD_BASELINE";
/// Directory of the trace; rank 0's counts.
const DIRECTORY: &str = "LAGGARD_TRACE_DIR";
/// Settings of the collector: it records everything, whatever the user has set for programs.
const SETTINGS: [(&str, &str); 10] = [
    ("LAGGARD_MODE", "trace"),
    ("LAGGARD_FILE_PER", "location"),
    ("LAGGARD_CALLPATH_DEPTH", "0"),
    ("LAGGARD_PAUSED", "0"),
    ("LAGGARD_POSIX_IO", "0"),
    ("LAGGARD_THREADS", "0"),
    ("LAGGARD_PROCESSOR_TIME", "0"),
    ("LAGGARD_SAMPLE_HZ", "0"),
    ("LAGGARD_SYNC_INTERVAL_S", "0"),
    ("LAGGARD_LOG", "error"),
];

/// Makes sure that this process has the collector. If not, starts it again with `library`
/// preloaded. Must be called before there are other threads.
///
/// # Errors
/// The process cannot be started again.
pub fn with_collector(library: &Path) -> Result<()> {
    if std::env::var_os(STARTED).is_some() {
        return Ok(());
    }
    let mut preload = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD") {
        // Preloads the collector once, even if the user preloads it for all programs.
        let is_other = |word: &&[u8]| !word.is_empty() && !word.ends_with(b"liblaggard.so");
        let others = others.into_vec();
        for other in others.split(|b| b" :".contains(b)).filter(is_other) {
            preload.push(":");
            preload.push(std::ffi::OsStr::from_bytes(other));
        }
    }
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let name = format!("laggard-baseline-{}-{}", std::process::id(), now.as_nanos());
    let error = Command::new(std::env::current_exe().context("cannot find where laggard is")?)
        .args(std::env::args_os().skip(1))
        .envs(SETTINGS)
        .env_remove("LAGGARD_MAX_TRACE_MB")
        .env_remove("LAGGARD_BUFFER_KB")
        .env("LD_PRELOAD", preload)
        .env(DIRECTORY, std::env::temp_dir().join(name))
        .env(STARTED, "1")
        .exec();
    Err(error).context("cannot start with the collector")
}
