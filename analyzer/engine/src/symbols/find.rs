//! Finds separate debug information.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use object::Object;

use super::module::{map, parse};

/// Build id of an ELF file, empty if it has none; `None` if it is no ELF file.
pub(crate) fn build_id(file: &Mmap) -> Option<Vec<u8>> {
    let object = parse(file)?;
    Some(
        object
            .build_id()
            .ok()
            .flatten()
            .unwrap_or_default()
            .to_vec(),
    )
}

/// The separate debug file of a module: by build id, else by the name in the file's
/// `.gnu_debuglink`.
pub(crate) fn debug_file(
    path: &Path,
    expected: &[u8],
    own: Option<&Mmap>,
    roots: &[PathBuf],
) -> Option<PathBuf> {
    let own_id = own.and_then(build_id).unwrap_or_default();
    let id = if expected.is_empty() {
        &own_id
    } else {
        expected
    };
    by_build_id(id, roots).or_else(|| by_link(path, own?, id, roots))
}

fn by_build_id(id: &[u8], roots: &[PathBuf]) -> Option<PathBuf> {
    let (first, rest) = id.split_first()?;
    let hex: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = format!(".build-id/{first:02x}/{hex}.debug");
    let mut candidates = roots.iter().map(|root| root.join(&name));
    candidates
        .find(|candidate| map(candidate).is_ok_and(|file| build_id(&file).as_deref() == Some(id)))
}

/// Follows `.gnu_debuglink`: beside the file, in `.debug` beside it, and under the roots. The build
/// id must agree; without one, the link's checksum.
fn by_link(path: &Path, own: &Mmap, id: &[u8], roots: &[PathBuf]) -> Option<PathBuf> {
    let object = parse(own)?;
    let (name, checksum) = object.gnu_debuglink().ok()??;
    let name = Path::new(OsStr::from_bytes(name));
    let directory = path.parent()?;
    let mut candidates = vec![directory.join(name), directory.join(".debug").join(name)];
    if let Ok(below) = directory.strip_prefix("/") {
        candidates.extend(roots.iter().map(|root| root.join(below).join(name)));
    }
    let fits = |candidate: &PathBuf| {
        map(candidate).is_ok_and(|file| match id {
            [] => crc32(&file) == checksum,
            id => build_id(&file).as_deref() == Some(id),
        })
    };
    candidates
        .into_iter()
        .filter(|candidate| candidate != path)
        .find(fits)
}

/// The supplementary file shared by several debug files (`.gnu_debugaltlink`, by dwz).
pub(crate) fn supplement(debug: &Path, roots: &[PathBuf]) -> Option<PathBuf> {
    let file = map(debug).ok()?;
    let object = parse(&file)?;
    let (name, id) = object.gnu_debugaltlink().ok()??;
    let real = debug.canonicalize().ok()?;
    let beside = real.parent()?.join(OsStr::from_bytes(name));
    if beside.is_file() {
        Some(beside)
    } else {
        by_build_id(id, roots)
    }
}

/// CRC-32 (ISO-HDLC) of a file's content, as in `.gnu_debuglink`.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0u32; 256];
        let mut at = 0;
        while at < 256 {
            let mut value = at as u32;
            let mut bit = 0;
            while bit < 8 {
                value = (value >> 1) ^ (0xedb8_8320 * (value & 1));
                bit += 1;
            }
            table[at] = value;
            at += 1;
        }
        table
    };
    let step = |sum: u32, byte: &u8| TABLE[((sum ^ u32::from(*byte)) & 0xff) as usize] ^ (sum >> 8);
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    #[test]
    fn checksum_is_the_usual_one() {
        assert_eq!(super::crc32(b"123456789"), 0xcbf4_3926);
    }
}
