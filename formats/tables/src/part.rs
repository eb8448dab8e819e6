//! A file that has a temporary name until it is complete.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that is being written, under a name beside the one that it will have. It is removed
/// if it is never finished.
#[derive(Debug)]
pub struct Part {
    file: File,
    /// What is written; `None` once it has its name.
    part: Option<PathBuf>,
    path: PathBuf,
}

impl Part {
    /// Begins a file that will be `path`.
    ///
    /// # Errors
    /// It has no name, or no file can be made beside it.
    pub fn create(path: &Path) -> io::Result<Part> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let name = format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id());
        let part = path.with_file_name(name);
        Ok(Part {
            file: File::create(&part)?,
            part: Some(part),
            path: path.to_owned(),
        })
    }

    /// Gives the complete file its name.
    ///
    /// # Errors
    /// The system refuses.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.sync_data()?;
        if let Some(part) = &self.part {
            fs::rename(part, &self.path)?;
        }
        self.part = None;
        Ok(())
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // Best effort: the error that is reported is the one that matters.
            let _ = fs::remove_file(part);
        }
    }
}
