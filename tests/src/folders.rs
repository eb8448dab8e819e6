//! Directories: cargo's output, and working directories of tests.

use std::path::{Path, PathBuf};

/// Where cargo builds.
pub fn target() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let default = || {
        workspace
            .canonicalize()
            .expect("the workspace")
            .join("target")
    };
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(default, PathBuf::from)
}

/// Where tests run.
pub fn scratch() -> PathBuf {
    target().join("laggard-tests")
}
