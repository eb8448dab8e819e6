//! The output file, under a temporary name until it is complete.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use laggard_files::{Part, Place};

use crate::Error;

/// First and last bytes of a Parquet file.
const MAGIC: &[u8] = b"PAR1";
/// Upper bound of a table's metadata, bytes; it grows with the row groups.
const MOST_METADATA: u64 = 64 << 20;

/// Makes sure that a table can be written here. The file may be missing, an older table, empty,
/// or a stream, and a file beside it must be possible.
///
/// # Errors
/// One line that names the obstacle.
pub fn check(path: &Path, family: &str) -> Result<(), Error> {
    let target = Target::open(path, family)?;
    // Dropping it removes its temporary file.
    drop(target);
    Ok(())
}

/// A file being written.
#[derive(Debug)]
pub struct Target {
    part: Part,
    /// Requested path, for messages.
    path: PathBuf,
}

impl Target {
    /// Begins a file; it may replace a table of this family of schemas.
    pub fn open(path: &Path, family: &str) -> Result<Target, Error> {
        let failed = |source| Error::write(path, source);
        let place = laggard_files::check(path).map_err(failed)?;
        if place == Place::File && !is_table(path, family).map_err(failed)? {
            return Err(Error::WouldOverwrite {
                path: path.to_owned(),
            });
        }
        Ok(Target {
            part: Part::create(path).map_err(failed)?,
            path: path.to_owned(),
        })
    }

    /// The requested path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the complete file its final name.
    pub fn finish(self) -> Result<(), Error> {
        let finished = self.part.finish();
        finished.map_err(|source| Error::write(&self.path, source))
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.part.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.part.flush()
    }
}

/// Whether a file is a table of any version. Reads only its start and end, which may hold
/// anything.
fn is_table(path: &Path, family: &str) -> io::Result<bool> {
    let (mut file, size) = laggard_files::open(path)?;
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
    let family = family.as_bytes();
    Ok(metadata.windows(family.len()).any(|part| part == family))
}
