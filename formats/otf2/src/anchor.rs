//! Checks before the library reads an archive: the library trusts the files.

use std::collections::HashSet;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::Error;
use crate::definitions::Definitions;

/// Largest anchor file, bytes.
const LONGEST: u64 = 64 << 20;

/// Start of an anchor file, after two bytes that give the byte order.
const MAGIC: &[u8] = b"OTF2\0";
/// Second byte of all files of a little-endian archive.
const LITTLE_ENDIAN: u8 = b'B';
/// Bytes before the three texts in an anchor file.
const BEFORE_TEXTS: usize = 46;

/// Refuses a file that is not an anchor file.
pub fn check(path: &Path) -> Result<(), Error> {
    let refused = |why: &str| {
        Err(Error::NotAnArchive {
            path: path.to_owned(),
            why: why.to_owned(),
        })
    };
    // All other files are in a directory with the anchor file's name.
    if path
        .file_stem()
        .is_none_or(|name| name == "." || name == "..")
    {
        return refused("its name leads out of its directory");
    }
    let bytes = match laggard_files::read(path, LONGEST) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            return refused("not a regular file");
        }
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            return refused("too long for an anchor file");
        }
        read => read.map_err(|source| Error::Open {
            path: path.to_owned(),
            source,
        })?,
    };
    check_content(&bytes).or_else(refused)?;
    match odd_file(path) {
        Some(odd) => refused(&format!("{} is no regular file of it", odd.display())),
        None => Ok(()),
    }
}

/// A file of the archive that is not a regular file, or leads elsewhere. The library opens
/// files by name and would wait for a pipe.
fn odd_file(anchor: &Path) -> Option<PathBuf> {
    let is_odd = |path: &PathBuf| {
        let is_file = path.metadata().is_ok_and(|found| found.is_file());
        !is_file || laggard_files::leaves_directory(path).unwrap_or(true)
    };
    let beside = anchor.with_extension("def");
    let below = fs::read_dir(anchor.with_extension(""))
        .into_iter()
        .flatten();
    let files = below.filter_map(|file| Some(file.ok()?.path()));
    let named = |path: &PathBuf| laggard_files::exists(path);
    files.chain([beside].into_iter().filter(named)).find(is_odd)
}

/// Refuses an anchor file whose bytes would make the library allocate memory without limit.
///
/// # Errors
/// The reason.
pub fn check_content(bytes: &[u8]) -> Result<(), &'static str> {
    match properties(bytes) {
        Some((count, room)) if count > room => Err("it names more properties than it can have"),
        _ => Ok(()),
    }
}

/// Number of properties that an anchor file claims, and the largest number with enough room in
/// the file. The library allocates memory for all before it reads the first. `None` leaves the
/// decision to the library, because the format is not known well enough.
fn properties(bytes: &[u8]) -> Option<(u64, u64)> {
    let is_known = bytes.get(2..)?.starts_with(MAGIC);
    let mut rest = bytes.get(BEFORE_TEXTS..).filter(|_| is_known)?;
    for _ in 0..3 {
        let end = rest.iter().position(|byte| *byte == 0)?;
        rest = &rest[end + 1..];
    }
    let (count, rest) = rest.split_first_chunk::<4>()?;
    let count = match bytes[1] {
        LITTLE_ENDIAN => u32::from_le_bytes(*count),
        _ => u32::from_be_bytes(*count),
    };
    // A name and a value, each ended by a zero.
    Some((count.into(), rest.len() as u64 / 2))
}

/// Last byte of a file of events: its end mark.
const END_OF_FILE: u8 = 1;

/// Refuses a truncated file of events, which lacks the end mark: the library would read on in
/// uninitialised memory. A missing file is left to the library.
pub fn check_events(anchor: &Path, location: u64) -> Result<(), String> {
    let path = anchor.with_extension("").join(format!("{location}.evt"));
    let Ok((file, length)) = laggard_files::open(&path) else {
        return Ok(());
    };
    let mut last = [0];
    let read = length
        .checked_sub(1)
        .map(|at| file.read_exact_at(&mut last, at));
    match read {
        Some(Ok(())) if last[0] == END_OF_FILE => Ok(()),
        _ => Err(format!("{} is cut off or damaged", path.display())),
    }
}

/// Locations with a file of events but no definition, ascending.
pub fn strays(anchor: &Path, definitions: &Definitions) -> Vec<u64> {
    let Ok(files) = fs::read_dir(anchor.with_extension("")) else {
        return Vec::new();
    };
    let defined: HashSet<u64> = definitions.locations.iter().map(|one| one.id).collect();
    let number = |file: fs::DirEntry| {
        let name = file.file_name();
        name.to_str()?.strip_suffix(".evt")?.parse::<u64>().ok()
    };
    let all = files.filter_map(|file| number(file.ok()?));
    let mut strays: Vec<u64> = all.filter(|id| !defined.contains(id)).collect();
    strays.sort_unstable();
    strays
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An anchor file with these texts and `count` properties.
    fn anchor(texts: &[u8], count: u32, order: u8, rest: usize) -> Vec<u8> {
        let mut bytes = vec![3, order];
        bytes.extend(MAGIC);
        bytes.resize(BEFORE_TEXTS, 7);
        bytes.extend(texts);
        bytes.extend(match order {
            LITTLE_ENDIAN => count.to_le_bytes(),
            _ => count.to_be_bytes(),
        });
        bytes.resize(bytes.len() + rest, 0);
        bytes
    }

    #[test]
    fn properties_are_counted_behind_the_texts() {
        let texts = b"machine\0\0about\0";
        for order in [LITTLE_ENDIAN, b'#'] {
            let bytes = anchor(texts, 0x0102_0304, order, 20);
            assert_eq!(properties(&bytes), Some((0x0102_0304, 10)));
        }
        assert_eq!(properties(&anchor(b"\0no end", 1, LITTLE_ENDIAN, 0)), None);
        assert_eq!(properties(b"no anchor\n"), None);
        assert_eq!(properties(&[]), None);
    }
}
