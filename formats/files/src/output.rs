//! Output files: complete or absent, and never written through a link.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::input::directory;

/// Most names tried for the temporary file.
const TRIES: u32 = 100;

/// The present content of an output path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nothing, or an empty file.
    Free,
    /// A file with content.
    File,
    /// A pipe or a character device: it has no name to rename over.
    Stream,
}

/// Checks whether a file can be written at `path`; returns the present content.
///
/// # Errors
/// A directory, a block device, or a link to anything but a stream (writing through it would
/// change another file); or its directory does not exist.
pub fn check(path: &Path) -> io::Result<Place> {
    use std::os::unix::fs::FileTypeExt;
    let named = match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return match directory(path).metadata()?.is_dir() && path.file_name().is_some() {
                true => Ok(Place::Free),
                false => Err(io::ErrorKind::NotADirectory.into()),
            };
        }
        found => found?.file_type(),
    };
    let found = path.metadata();
    let is_stream = |kind: fs::FileType| kind.is_fifo() || kind.is_char_device();
    match found {
        Ok(found) if is_stream(found.file_type()) => Ok(Place::Stream),
        _ if named.is_symlink() => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a symbolic link, and nothing is written through links: remove it, or name the file",
        )),
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        )),
        Ok(found) if found.len() > 0 => Ok(Place::File),
        Ok(_) => Ok(Place::Free),
        Err(error) => Err(error),
    }
}

/// A file being written under a temporary name beside its final one. It is removed if it is
/// never finished.
#[derive(Debug)]
pub struct Part {
    file: File,
    /// The temporary file; `None` once it has its final name, and for a stream.
    part: Option<PathBuf>,
    path: PathBuf,
}

impl Part {
    /// Begins a file that will be `path`, or opens the stream there. A new file takes over the
    /// permissions of an old one.
    ///
    /// # Errors
    /// As [`check`]; or no file can be made beside it.
    pub fn create(path: &Path) -> io::Result<Part> {
        let place = check(path)?;
        let path = path.to_owned();
        if place == Place::Stream {
            #[expect(clippy::disallowed_methods, reason = "the one place that opens")]
            let file = OpenOptions::new().write(true).open(&path)?;
            return Ok(Part {
                file,
                part: None,
                path,
            });
        }
        let (file, part) = temporary(&path)?;
        if let Ok(former) = path.symlink_metadata() {
            // Best effort: the file may belong to another user, or the file system has no
            // permissions.
            let _ = file.set_permissions(former.permissions());
        }
        Ok(Part {
            file,
            part: Some(part),
            path,
        })
    }

    /// Gives the complete file its name.
    ///
    /// # Errors
    /// The system refuses.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(part) = &self.part {
            self.file.sync_data()?;
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
            // Best effort: only the error already reported matters.
            let _ = fs::remove_file(part);
        }
    }
}

/// Writes a file under a temporary name beside it and renames it, so that nobody reads half of
/// it.
///
/// # Errors
/// As [`Part::create`]; the old file then remains.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut part = Part::create(path)?;
    part.write_all(bytes)?;
    part.finish()
}

/// Makes a file beside `target`; opens and follows nothing that exists.
fn temporary(target: &Path) -> io::Result<(File, PathBuf)> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let name = name.to_string_lossy();
    let pid = std::process::id();
    let mut taken = io::ErrorKind::AlreadyExists.into();
    for number in 0..TRIES {
        let path = target.with_file_name(format!(".{name}.{pid}.{number}.tmp"));
        #[expect(clippy::disallowed_methods, reason = "the one place that makes files")]
        let made = File::create_new(&path);
        match made {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = error,
            Err(error) => return Err(error),
        }
    }
    Err(taken)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn links_are_not_written_through() {
        let home = tempfile::tempdir().unwrap();
        let (link, file) = (home.path().join("link"), home.path().join("file"));
        symlink(&file, &link).unwrap();
        for content in [None, Some(""), Some("mine")] {
            if let Some(content) = content {
                fs::write(&file, content).unwrap();
            }
            let error = replace(&link, b"new").unwrap_err().to_string();
            assert!(error.contains("a symbolic link"), "{error}");
            assert_eq!(fs::read_to_string(&file).ok().as_deref(), content);
        }
        replace(&file, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::read_dir(&home).unwrap().count(), 2);
    }

    #[test]
    fn planted_links_are_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let (path, other) = (home.path().join("file"), home.path().join("other"));
        let planted = format!(".file.{}.0.tmp", std::process::id());
        symlink(&other, home.path().join(planted)).unwrap();
        replace(&path, b"new").unwrap();
        assert!(!other.exists() && path.symlink_metadata().unwrap().is_file());
    }

    #[test]
    fn permissions_stay_and_other_things_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        fs::write(&path, "former").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        replace(&path, b"new").unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert_eq!(check(&path).unwrap(), Place::File);
        assert_eq!(check(&home.path().join("none")).unwrap(), Place::Free);
        assert_eq!(check(Path::new("/dev/null")).unwrap(), Place::Stream);
        assert!(check(home.path()).is_err());
        assert!(check(&home.path().join("missing/file")).is_err());
        assert!(check(&path.join("file")).is_err());
    }

    #[test]
    fn an_unfinished_file_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let mut part = Part::create(&home.path().join("file")).unwrap();
        part.write_all(b"half").unwrap();
        drop(part);
        assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
    }
}
