//! The file that is written: under a temporary name until it is complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// A file that is being written.
pub struct Target {
    file: BufWriter<File>,
    /// What was asked for.
    path: PathBuf,
    /// What is written; `None` once it has its name.
    part: Option<PathBuf>,
}

/// Makes sure that nothing is there yet.
///
/// # Errors
/// There is.
pub fn check(path: &Path) -> Result<()> {
    if path.symlink_metadata().is_ok() {
        bail!(
            "{} exists: choose another name, or remove it",
            path.display()
        );
    }
    Ok(())
}

impl Target {
    /// Begins a file that is not there yet.
    ///
    /// # Errors
    /// It is, or it cannot be made.
    pub fn create(path: &Path) -> Result<Target> {
        check(path)?;
        let failed = || format!("cannot write {}", path.display());
        let name = path.file_name().with_context(failed)?.to_string_lossy();
        let part = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        let file = File::create(&part).with_context(failed)?;
        Ok(Target {
            file: BufWriter::with_capacity(1 << 16, file),
            path: path.to_owned(),
            part: Some(part),
        })
    }

    /// Gives the complete file its name.
    ///
    /// # Errors
    /// The system refuses, or somebody else was faster.
    pub fn finish(mut self) -> Result<()> {
        let failed = || format!("cannot write {}", self.path.display());
        self.file.flush().with_context(failed)?;
        self.file.get_ref().sync_data().with_context(failed)?;
        check(&self.path)?;
        if let Some(part) = &self.part {
            fs::rename(part, &self.path).with_context(failed)?;
        }
        self.part = None;
        Ok(())
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // Best effort: the error that is reported is the one that matters.
            let _ = fs::remove_file(part);
        }
    }
}
