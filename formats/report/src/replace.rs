//! Files that are there as a whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Names tried for the temporary file.
const TRIES: u32 = 100;

/// Writes a file: under a temporary name beside it, then renamed, so that nobody reads half
/// of it. A file that is there is replaced and leaves its permissions to the new one.
///
/// # Errors
/// The system refuses; what was there is still there then.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link keeps pointing to what it points to.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(&target).is_ok_and(|found| !found.is_file()) {
        // A pipe or terminal has no name to rename over.
        let mut file = OpenOptions::new().write(true).open(&target)?;
        return file.write_all(bytes);
    }
    let (mut file, temporary) = temporary(&target)?;
    let written = fill(&mut file, &target, bytes).and_then(|()| fs::rename(&temporary, &target));
    written.inspect_err(|_| {
        // Best effort: the error that is reported is the one that matters.
        let _ = fs::remove_file(&temporary);
    })
}

/// Makes a file beside `target`; nothing that is there already is opened or followed.
fn temporary(target: &Path) -> io::Result<(File, PathBuf)> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let pid = std::process::id();
    let mut taken = io::ErrorKind::AlreadyExists.into();
    for number in 0..TRIES {
        let path = target.with_file_name(format!(".{name}.{pid}.{number}.tmp"));
        match File::create_new(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = error,
            Err(error) => return Err(error),
        }
    }
    Err(taken)
}

/// Writes a file that takes the place of `target`, and its permissions if there is one.
fn fill(file: &mut File, target: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Ok(former) = fs::metadata(target) {
        // Best effort: it may belong to somebody else, or the file system have none.
        let _ = file.set_permissions(former.permissions());
    }
    file.write_all(bytes)?;
    file.sync_data()
}
