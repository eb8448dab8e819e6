//! The output file, under a temporary name until it is complete.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use laggard_files::Part;

/// A file in the making.
pub struct Target {
    file: BufWriter<Part>,
    /// Its final path.
    path: PathBuf,
}

/// Checks that nothing exists at the path.
///
/// # Errors
/// Something does.
pub fn check(path: &Path) -> Result<()> {
    if laggard_files::exists(path) {
        bail!(
            "{} exists: choose another name, or remove it",
            path.display()
        );
    }
    Ok(())
}

impl Target {
    /// Begins a new file.
    ///
    /// # Errors
    /// It exists, or cannot be created.
    pub fn create(path: &Path) -> Result<Target> {
        check(path)?;
        let part = Part::create(path).with_context(|| failed(path))?;
        Ok(Target {
            file: BufWriter::with_capacity(1 << 16, part),
            path: path.to_owned(),
        })
    }

    /// Gives the complete file its name.
    ///
    /// # Errors
    /// The system refuses, or another process has created it meanwhile.
    pub fn finish(self) -> Result<()> {
        let part = self.file.into_inner().map_err(|error| error.into_error());
        let part = part.with_context(|| failed(&self.path))?;
        check(&self.path)?;
        part.finish().with_context(|| failed(&self.path))
    }
}

fn failed(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
