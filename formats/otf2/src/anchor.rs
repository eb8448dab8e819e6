//! What is looked at before the library reads an archive: it trusts what it finds.

use std::collections::HashSet;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::Error;
use crate::definitions::Definitions;

/// No anchor file is longer, bytes.
const LONGEST: u64 = 64 << 20;

/// The beginning of an anchor file, behind two bytes that tell the order of bytes.
const MAGIC: &[u8] = b"OTF2\0";
/// The second byte of all files of an archive with numbers least byte first.
const LITTLE_ENDIAN: u8 = b'B';
/// Bytes before the three texts of an anchor file.
const BEFORE_TEXTS: usize = 46;

/// Refuses what is no anchor file.
pub fn check(path: &Path) -> Result<(), Error> {
    let refused = |why: &str| {
        Err(Error::NotAnArchive {
            path: path.to_owned(),
            why: why.to_owned(),
        })
    };
    // All other files are in the directory of the anchor file's name.
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

/// A file of the archive that is none, or is elsewhere: the library opens them by their names, and
/// waits for a pipe.
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

/// Refuses the bytes of an anchor file that would have the library take memory without limit.
///
/// # Errors
/// Why.
pub fn check_content(bytes: &[u8]) -> Result<(), &'static str> {
    match properties(bytes) {
        Some((count, room)) if count > room => Err("it names more properties than it can have"),
        _ => Ok(()),
    }
}

/// How many properties an anchor file says it has, and the most for which there is room.
/// Memory is taken for all of them before the first is read. `None`: not known so well that
/// the library should not judge it.
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
    // A name and a value, each with a zero at its end.
    Some((count.into(), rest.len() as u64 / 2))
}

/// The last byte of a file of events: the mark of its end.
const END_OF_FILE: u8 = 1;

/// A file that was cut off has no mark at its end; the library would read on in memory that
/// nobody has written. A file that is not where it is expected is the library's business.
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

/// Locations that have a file of events and are not defined, ascending.
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

    /// An anchor file with these texts and so many properties.
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
