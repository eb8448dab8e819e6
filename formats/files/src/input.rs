//! Input files.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Message for pipes, devices, sockets and directories.
const IRREGULAR: &str = "not a regular file";

/// Opens a regular file and returns its size in bytes. Never blocks.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if it is not a regular file; else the system's error.
pub fn open(path: &Path) -> io::Result<(File, u64)> {
    let irregular = || io::Error::new(io::ErrorKind::InvalidInput, IRREGULAR);
    // Opening a device may have side effects.
    if !path.metadata()?.is_file() {
        return Err(irregular());
    }
    let mut options = OpenOptions::new();
    options.read(true);
    // If it has become a pipe meanwhile, the open must not wait for a writer.
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    #[expect(clippy::disallowed_methods, reason = "the one place that opens")]
    let file = options.open(path)?;
    let found = file.metadata()?;
    match found.is_file() {
        true => Ok((file, found.len())),
        false => Err(irregular()),
    }
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// As [`open`]; [`io::ErrorKind::FileTooLarge`] if it is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, size) = open(path)?;
    let mut bytes = Vec::new();
    // Kernel files report no size, and other files may grow.
    if size <= most {
        bytes.reserve_exact(usize::try_from(size).unwrap_or(0));
        file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    }
    match size.max(bytes.len() as u64) {
        size if size > most => Err(too_large(most)),
        _ => Ok(bytes),
    }
}

fn too_large(most: u64) -> io::Error {
    let most = match most {
        _ if most >= 1 << 20 => format!("{} MB", most >> 20),
        _ => format!("{most} bytes"),
    };
    let why = format!("larger than {most}, the most that such a file may have");
    io::Error::new(io::ErrorKind::FileTooLarge, why)
}

/// Whether the name exists, including dangling links.
pub fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Whether a name is a link to a target outside of the name's directory. `false` for a missing
/// file.
///
/// # Errors
/// The system's error for the directory.
pub fn leaves_directory(path: &Path) -> io::Result<bool> {
    if !path
        .symlink_metadata()
        .is_ok_and(|found| found.is_symlink())
    {
        return Ok(false);
    }
    let Ok(end) = path.canonicalize() else {
        return Ok(false);
    };
    Ok(!end.starts_with(directory(path).canonicalize()?))
}

/// The path of an open file, without links.
///
/// # Errors
/// The system's error.
fn path_of(file: &File) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// As [`open`], but no link may lead out of the name's directory. Also returns the path without
/// links.
///
/// # Errors
/// As [`open`]; [`io::ErrorKind::PermissionDenied`] for such a link.
pub fn open_beside(path: &Path) -> io::Result<(File, u64, PathBuf)> {
    let (file, size) = open(path)?;
    let end = path_of(&file)?;
    match end.starts_with(directory(path).canonicalize()?) {
        true => Ok((file, size, end)),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// The directory of a name.
pub(crate) fn directory(path: &Path) -> &Path {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    above.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    fn kind<T: std::fmt::Debug>(result: io::Result<T>) -> io::ErrorKind {
        result.unwrap_err().kind()
    }

    #[test]
    fn only_regular_files_are_opened() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let link = directory.path().join("link");
        symlink(&pipe, &link).unwrap();
        for path in [&pipe, &link, Path::new("/dev/zero"), directory.path()] {
            assert_eq!(kind(read(path, 9)), io::ErrorKind::InvalidInput);
        }
        assert_eq!(kind(read(&pipe.join("x"), 9)), io::ErrorKind::NotADirectory);
    }

    #[test]
    fn sizes_are_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        assert_eq!(kind(read(&path, 4)), io::ErrorKind::FileTooLarge);
        // The kernel reports its size as 0.
        let endless = Path::new("/proc/self/maps");
        assert_eq!(kind(read(endless, 8)), io::ErrorKind::FileTooLarge);
        assert!(!read(endless, 1 << 20).unwrap().is_empty());
        // A sparse file must not cost memory for its hole.
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        assert_eq!(kind(read(&path, 1 << 20)), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn links_out_of_a_directory_are_known() {
        let home = tempfile::tempdir().unwrap();
        let inside = home.path().join("trace");
        fs::create_dir_all(inside.join("below")).unwrap();
        fs::write(inside.join("below/file"), "mine").unwrap();
        fs::write(home.path().join("secret"), "mine").unwrap();
        symlink("below/file", inside.join("near")).unwrap();
        symlink("../secret", inside.join("far")).unwrap();
        symlink("far", inside.join("over")).unwrap();
        symlink("nowhere", inside.join("dangling")).unwrap();
        for (name, leaves) in [
            ("below/file", false),
            ("near", false),
            ("far", true),
            ("over", true),
            ("dangling", false),
            ("missing", false),
        ] {
            let path = inside.join(name);
            assert_eq!(leaves_directory(&path).unwrap(), leaves, "{name}");
            let opened = open_beside(&path);
            assert_eq!(opened.is_ok(), !leaves && path.exists(), "{name}");
        }
        // The directory itself may be a link.
        symlink(&inside, home.path().join("link")).unwrap();
        let (_, size, end) = open_beside(&home.path().join("link/near")).unwrap();
        assert_eq!((size, end.file_name().unwrap()), (4, "file".as_ref()));
    }
}
