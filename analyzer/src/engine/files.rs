//! A trace directory: which files belong to it, and whether they belong together.

use std::path::Path;

use anyhow::{Context, Result, bail};
use laggard_trace::{FILE_EXTENSION, Location};
use serde::{Deserialize, Serialize};

/// A file of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Name in the directory.
    pub name: String,
    /// Bytes.
    pub size: u64,
}

/// The location files of a directory, by name.
pub fn list(directory: &Path) -> Result<Vec<Entry>> {
    let shown = directory.display();
    let metadata = std::fs::metadata(directory)
        .with_context(|| format!("{shown}: cannot read the trace directory"))?;
    if !metadata.is_dir() {
        bail!("{shown}: not a directory; give the directory that the collector wrote");
    }
    let mut entries = Vec::new();
    let files = std::fs::read_dir(directory)
        .with_context(|| format!("{shown}: cannot read the trace directory"))?;
    for file in files {
        let file = file.with_context(|| format!("{shown}: cannot read the trace directory"))?;
        let name = file.file_name().to_string_lossy().into_owned();
        if Path::new(&name)
            .extension()
            .is_some_and(|extension| extension == FILE_EXTENSION)
        {
            let size = file.metadata().map(|metadata| metadata.len()).unwrap_or(0);
            entries.push(Entry { name, size });
        }
    }
    if entries.is_empty() {
        bail!(
            "{shown}: no trace in this directory (no *.{FILE_EXTENSION} files); record one first: laggard run -o {shown} -- mpirun …"
        );
    }
    // Ranks in order: those of a million and more have longer names.
    let number = |entry: &Entry| rank_part(&entry.name).len();
    entries.sort_by(|a, b| number(a).cmp(&number(b)).then_with(|| a.name.cmp(&b.name)));
    Ok(entries)
}

/// The part of a file's name that says which rank it belongs to.
pub fn rank_part(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// What is wrong with a file that has another's name, if so.
pub fn misplaced(name: &str, location: &Location) -> Option<String> {
    let expected = laggard_trace::file_name(location.header.rank, location.header.thread);
    (expected != name).then(|| {
        format!(
            "{}: holds what belongs into {expected}; skipped",
            location.path().display()
        )
    })
}

/// Makes sure that all files are of one run: (run id, world size, file name) each.
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
