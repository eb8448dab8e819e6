//! The file that is written: under a temporary name until it is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::{Error, SCHEMA_FAMILY};

/// What Parquet files begin and end with.
const MAGIC: &[u8] = b"PAR1";
/// The metadata of a table of ours is shorter than this; it grows with the groups of rows.
const MOST_METADATA: u64 = 64 << 20;

/// Makes sure that a table can be written here: there is none, or an older table, an empty
/// file, or something that is no regular file; and a file can be made beside it.
///
/// # Errors
/// One line that says what is in the way.
pub fn check(path: &Path) -> Result<(), Error> {
    let target = Target::open(path)?;
    // Its temporary file goes with it.
    drop(target);
    Ok(())
}

/// A file that is being written.
#[derive(Debug)]
pub struct Target {
    file: File,
    /// What was asked for, for messages.
    path: PathBuf,
    /// What is written, and what its name will be; `None` for what is no regular file: a
    /// pipe or terminal has no name to rename over.
    rename: Option<(PathBuf, PathBuf)>,
}

impl Target {
    /// Begins a file.
    pub fn open(path: &Path) -> Result<Target, Error> {
        let failed = |source| Error::write(path, source);
        let is_regular = match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                return Err(failed(io::ErrorKind::IsADirectory.into()));
            }
            Ok(found) => {
                if found.is_file() && found.len() > 0 && !is_table(path).map_err(failed)? {
                    return Err(Error::WouldOverwrite {
                        path: path.to_owned(),
                    });
                }
                found.is_file()
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(failed(error)),
        };
        // A link keeps pointing to what it points to.
        let end = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let (file, rename) = match is_regular {
            true => {
                let name = end.file_name();
                let name = name.ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
                let name = name.to_string_lossy();
                let part = end.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
                let file = File::create(&part).map_err(failed)?;
                (file, Some((part, end)))
            }
            false => {
                let file = OpenOptions::new().write(true).open(&end);
                (file.map_err(failed)?, None)
            }
        };
        Ok(Target {
            file,
            path: path.to_owned(),
            rename,
        })
    }

    /// What was asked for.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the complete file its name.
    pub fn finish(mut self) -> Result<(), Error> {
        let failed = |source| Error::write(&self.path, source);
        if let Some((part, end)) = &self.rename {
            self.file.sync_data().map_err(failed)?;
            fs::rename(part, end).map_err(failed)?;
            self.rename = None;
        }
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
        if let Some((part, _)) = &self.rename {
            // Best effort: the error that is reported is the one that matters.
            let _ = fs::remove_file(part);
        }
    }
}

/// Whether a file is a table of any version. Only its ends are looked at, which may be
/// anything.
fn is_table(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut magic = [0; 4];
    let is_parquet = size > 12 && file.read_exact(&mut magic).is_ok() && magic == MAGIC;
    if !is_parquet {
        return Ok(false);
    }
    let mut end = [0; 8];
    file.seek(SeekFrom::Start(size - 8))?;
    file.read_exact(&mut end)?;
    let length = u64::from(u32::from_le_bytes([end[0], end[1], end[2], end[3]]));
    if &end[4..] != MAGIC || length > (size - 12).min(MOST_METADATA) {
        return Ok(false);
    }
    file.seek(SeekFrom::Start(size - 8 - length))?;
    let mut metadata = vec![0; length as usize];
    file.read_exact(&mut metadata)?;
    let family = SCHEMA_FAMILY.as_bytes();
    Ok(metadata.windows(family.len()).any(|part| part == family))
}
