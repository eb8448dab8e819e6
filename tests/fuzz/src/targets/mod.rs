//! The readers.

mod analysis;
mod anchor;
mod archive;
mod connections;
mod exports;
mod location;
mod node;
mod packets;
mod questions;
mod symbols;
mod texts;

pub use analysis::analysis;
pub use anchor::anchor;
pub use archive::archive;
pub use connections::connections;
pub use exports::exports;
pub use location::location;
pub use node::node;
pub use packets::packets;
pub use questions::{parts, questions};
pub use symbols::symbols;
pub use texts::{baseline, report, rules};

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A directory for readers that take files: `LAGGARD_FUZZ_DIR`, else one of this process, which is
/// not removed.
fn scratch() -> &'static Path {
    static SCRATCH: OnceLock<PathBuf> = OnceLock::new();
    SCRATCH.get_or_init(|| {
        let path = std::env::var_os("LAGGARD_FUZZ_DIR").map_or_else(
            || std::env::temp_dir().join(format!("laggard-fuzz-{}", std::process::id())),
            PathBuf::from,
        );
        std::fs::create_dir_all(&path).expect("a directory for files");
        path
    })
}
