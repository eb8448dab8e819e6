//! The locations of a trace directory, and whether they belong together.

use std::path::Path;

use anyhow::{Context, Result, bail};
use laggard_trace::{FILE_EXTENSION, Location, NodeFile};
use serde::{Deserialize, Serialize};

/// A location of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entry {
    /// Name of its file, or the name that it would have.
    pub name: String,
    /// Its place in a node file, if it has no file of its own.
    pub node: Option<InNode>,
    /// Bytes.
    pub size: u64,
}

/// A place in a node file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InNode {
    /// The file's name.
    pub file: String,
    /// World rank.
    pub rank: u32,
    pub thread: u32,
}

/// An unusable file or location.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Failure {
    /// Its name.
    pub file: String,
    /// The error, with the path.
    pub why: String,
    /// Whether a newer version wrote it.
    pub is_newer: bool,
}

impl Failure {
    /// A file that could not be opened.
    pub fn new(file: &str, error: &laggard_trace::Error) -> Failure {
        Failure {
            file: file.to_owned(),
            why: error.to_string(),
            is_newer: matches!(error, laggard_trace::Error::Version { .. }),
        }
    }
}

/// Contents of a directory.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Listing {
    /// The locations, by name.
    pub entries: Vec<Entry>,
    /// Unusable files and locations.
    pub failures: Vec<Failure>,
    /// Node files with unusable index entries, and their number.
    pub damaged: Vec<(String, u64)>,
}

/// Lists the locations in a directory.
pub fn list(directory: &Path) -> Result<Listing> {
    let shown = directory.display();
    let metadata = std::fs::metadata(directory)
        .with_context(|| format!("{shown}: cannot read the trace directory"))?;
    if !metadata.is_dir() {
        bail!("{shown}: not a directory; give the directory that the collector wrote");
    }
    let mut listing = Listing::default();
    let files = std::fs::read_dir(directory)
        .with_context(|| format!("{shown}: cannot read the trace directory"))?;
    for file in files {
        let file = file.with_context(|| format!("{shown}: cannot read the trace directory"))?;
        let name = file.file_name().to_string_lossy().into_owned();
        let extension = Path::new(&name).extension();
        if extension.is_none_or(|extension| extension != FILE_EXTENSION) {
            continue;
        }
        let path = file.path();
        let is_link = file.file_type().is_ok_and(|kind| kind.is_symlink());
        if is_link && laggard_files::leaves_directory(&path).unwrap_or(true) {
            listing.failures.push(Failure {
                why: format!(
                    "{}: a link out of the trace directory; skipped",
                    path.display()
                ),
                file: name,
                is_newer: false,
            });
            continue;
        }
        if laggard_trace::is_node_file_name(&name) {
            listing.add_node_file(directory, name);
            continue;
        }
        let size = file.metadata().map(|metadata| metadata.len()).unwrap_or(0);
        let node = None;
        listing.entries.push(Entry { name, node, size });
    }
    if listing.entries.is_empty() && listing.failures.is_empty() {
        bail!(
            "{shown}: no trace in this directory (no *.{FILE_EXTENSION} files); record one first: laggard run -o {shown} -- mpirun …"
        );
    }
    // Ranks in order: those from a million on have longer names.
    let number = |entry: &Entry| rank_part(&entry.name).len();
    let entries = &mut listing.entries;
    entries.sort_by(|a, b| number(a).cmp(&number(b)).then_with(|| a.cmp(b)));
    listing.drop_repeated(directory);
    listing.damaged.sort();
    Ok(listing)
}

impl Listing {
    fn add_node_file(&mut self, directory: &Path, name: String) {
        let path = directory.join(&name);
        let file = match NodeFile::open(&path) {
            Ok(file) => file,
            Err(error) => return self.failures.push(Failure::new(&name, &error)),
        };
        let expected = laggard_trace::node_file_name(file.host_id);
        if expected != name {
            let shown = path.display();
            return self.failures.push(Failure {
                why: format!("{shown}: holds what belongs into {expected}; skipped"),
                file: name,
                is_newer: false,
            });
        }
        if file.locations().next().is_none() {
            let shown = path.display();
            self.failures.push(Failure {
                why: format!("{shown}: no location is known to its index"),
                file: name.clone(),
                is_newer: false,
            });
        }
        if file.unusable > 0 {
            self.damaged.push((name.clone(), file.unusable));
        }
        let locations = file.locations().map(|(rank, thread, size)| Entry {
            name: laggard_trace::file_name(rank, thread),
            node: Some(InNode {
                file: name.clone(),
                rank,
                thread,
            }),
            size,
        });
        self.entries.extend(locations);
    }

    /// Removes duplicates of a location: the first counts, its own file before node files.
    fn drop_repeated(&mut self, directory: &Path) {
        let failures = &mut self.failures;
        self.entries.dedup_by(|later, first| {
            let is_repeated = later.name == first.name;
            if is_repeated {
                let of = |entry: &Entry| match &entry.node {
                    Some(node) => format!("{}/{}", node.file, entry.name),
                    None => entry.name.clone(),
                };
                let (later, first) = (of(later), of(first));
                failures.push(Failure {
                    why: format!(
                        "{}: the same location as {first}; skipped",
                        directory.join(&later).display()
                    ),
                    file: later,
                    is_newer: false,
                });
            }
            is_repeated
        });
    }
}

/// The part of a file's name that tells the rank.
pub fn rank_part(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// The error if a file has another location's name.
pub fn misplaced(name: &str, location: &Location) -> Option<String> {
    let expected = laggard_trace::file_name(location.header.rank, location.header.thread);
    (expected != name).then(|| {
        format!(
            "{}: holds what belongs into {expected}; skipped",
            location.path().display()
        )
    })
}

/// Checks that all files are of one run; a file is (run id, world size, file name).
pub fn check_one_run<'f>(
    directory: &Path,
    files: impl Iterator<Item = ([u8; 16], u32, &'f str)>,
) -> Result<()> {
    let mut first: Option<([u8; 16], u32, &str)> = None;
    for (run, ranks, file) in files {
        match first {
            None => first = Some((run, ranks, file)),
            Some((run0, ranks0, file0)) if run0 != run || ranks0 != ranks => bail!(
                "{}: files of two runs in one directory ({file0} and {file}); keep each run in a directory of its own",
                directory.display()
            ),
            Some(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_or_missing_directory_is_one_clear_line() {
        let directory = tempfile::tempdir().unwrap();
        let error = list(directory.path()).unwrap_err().to_string();
        assert!(error.contains("no trace in this directory") && !error.contains('\n'));
        let error = list(&directory.path().join("none"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("cannot read"));
    }

    #[test]
    fn two_runs_are_told_apart() {
        let files = [([1; 16], 2, "a"), ([1; 16], 2, "b"), ([2; 16], 2, "c")];
        assert!(check_one_run(Path::new("d"), files[..2].iter().copied()).is_ok());
        let error = check_one_run(Path::new("d"), files.iter().copied())
            .unwrap_err()
            .to_string();
        assert!(error.contains("a and c"));
    }
}
