//! Traces as the user names them, or does not.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Result, bail};
use laggard_trace::{FILE_EXTENSION, RUN_FILE};

use super::{is_head, say};

/// Where traces go if nobody says.
const DEFAULT: &str = "laggard-trace";
/// What names of OTF2 anchor files end in.
const ANCHOR: &str = "otf2";
/// Traces below a directory that are named if there are several.
const NAMED: usize = 5;

/// Where traces go if no option says: where the collector's variable says, or its default.
pub fn usual() -> PathBuf {
    let set = std::env::var_os("LAGGARD_TRACE_DIR").filter(|value| !value.is_empty());
    set.map_or_else(|| PathBuf::from(DEFAULT), PathBuf::from)
}

/// The `number`-th name that the collector tries for a trace.
pub fn numbered(directory: &Path, number: u32) -> PathBuf {
    if number == 0 {
        return directory.to_owned();
    }
    let mut name = directory.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// The trace that somebody means: the named one or the only one below it; without a name the
/// newest where traces usually go.
///
/// # Errors
/// If there is none, or several are below the named directory.
pub fn meant(named: Option<&Path>) -> Result<PathBuf> {
    let Some(named) = named else {
        let usual = usual();
        return match newest(&usual) {
            Some(newest) => Ok(told(newest, &usual)),
            None => bail!(
                "{}: no trace here; record one with laggard run -- mpirun …, or name its directory",
                usual.display()
            ),
        };
    };
    // What it holds itself comes first. What is no trace at all, its reader says best.
    if !named.is_dir() || holds_locations(named) {
        return Ok(named.to_owned());
    }
    if let Some(anchor) = anchor(named) {
        return Ok(told(anchor, named));
    }
    let mut below = below(named);
    match below.len() {
        0 => Ok(named.to_owned()),
        1 => Ok(told(below.remove(0), named)),
        many => {
            let names = below
                .iter()
                .take(NAMED)
                .map(|path| path.display().to_string());
            let names = names.collect::<Vec<_>>().join(", ");
            let more = if many > NAMED { ", …" } else { "" };
            bail!(
                "{}: {many} traces are in it; name one: {names}{more}",
                named.display()
            )
        }
    }
}

/// Says which trace is taken, if it is another one than the name.
fn told(taken: PathBuf, name: &Path) -> PathBuf {
    if taken != name && is_head() {
        say(&format!("trace: {}", taken.display()));
    }
    taken
}

/// The trace of the last run among those with this name and a number. Numbers do not tell: the
/// collector takes the first that is free.
fn newest(usual: &Path) -> Option<PathBuf> {
    let home = usual.parent().filter(|home| !home.as_os_str().is_empty());
    let base = usual.file_name()?.to_string_lossy().into_owned();
    let entries = std::fs::read_dir(home.unwrap_or(Path::new("."))).ok()?;
    let numbers = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        match name.strip_prefix(&base)? {
            "" => Some(0),
            number => number.strip_prefix('.')?.parse().ok(),
        }
    });
    let traces = numbers.map(|number| (number, numbered(usual, number)));
    let traces = traces.filter(|(_, trace)| holds_locations(trace));
    let newest = traces.max_by_key(|(number, trace)| (began(trace), *number));
    newest.map(|(_, trace)| trace)
}

/// When a run claimed the directory.
fn began(trace: &Path) -> Option<SystemTime> {
    let claim = trace
        .join(RUN_FILE)
        .metadata()
        .and_then(|file| file.modified());
    claim.ok()
}

/// The traces in directories below one, by name. Links are not followed.
pub fn below(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut found: Vec<PathBuf> = directories
        .filter_map(|entry| {
            let path = entry.path();
            match holds_locations(&path) {
                true => Some(path),
                false => anchor(&path),
            }
        })
        .collect();
    found.sort();
    found
}

/// The anchor file of the only archive in a directory.
fn anchor(directory: &Path) -> Option<PathBuf> {
    let mut anchors = files(directory, ANCHOR);
    let first = anchors.next()?;
    anchors.next().is_none().then_some(first)
}

/// Whether a directory is a trace.
pub fn holds_locations(directory: &Path) -> bool {
    files(directory, FILE_EXTENSION).next().is_some()
}

/// Entries of a directory whose names end so.
pub fn files(directory: &Path, extension: &'static str) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(move |path| path.extension().is_some_and(|found| found == extension))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn trace(path: &Path, began_s: u64) {
        fs::create_dir_all(path).unwrap();
        fs::write(path.join("rank000000.thread000.lgt"), "").unwrap();
        let claim = path.join(RUN_FILE);
        fs::write(&claim, "{}").unwrap();
        let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(began_s);
        let file = fs::File::options().write(true).open(claim).unwrap();
        file.set_modified(time).unwrap();
    }

    #[test]
    fn the_newest_run_is_meant() {
        let home = tempfile::tempdir().unwrap();
        let usual = home.path().join("t");
        assert_eq!(newest(&usual), None);
        trace(&usual, 50);
        assert_eq!(newest(&usual), Some(usual.clone()));
        // A number that became free is taken again.
        trace(&numbered(&usual, 2), 60);
        trace(&numbered(&usual, 1), 70);
        for other in ["t.x", "t.3", "tt"] {
            fs::create_dir(home.path().join(other)).unwrap();
        }
        assert_eq!(newest(&usual), Some(numbered(&usual, 1)));
        // It goes on if a newer one is empty.
        fs::write(numbered(&usual, 3).join(RUN_FILE), "{}").unwrap();
        assert_eq!(newest(&usual), Some(numbered(&usual, 1)));
    }

    #[test]
    fn a_directory_stands_for_the_only_trace_below_it() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        let of = |name: &str| meant(Some(&at(name)));
        assert_eq!(of("missing").unwrap(), at("missing"));
        fs::create_dir_all(at("runs/empty")).unwrap();
        assert_eq!(of("runs").unwrap(), at("runs"));
        trace(&at("runs/one"), 1);
        std::os::unix::fs::symlink(at("runs/one"), at("runs/link")).unwrap();
        assert_eq!(of("runs").unwrap(), at("runs/one"));
        assert_eq!(of("runs/one").unwrap(), at("runs/one"));
        fs::create_dir(at("runs/archive")).unwrap();
        fs::write(at("runs/archive/traces.otf2"), "").unwrap();
        let anchor = at("runs/archive/traces.otf2");
        assert_eq!(of("runs/archive").unwrap(), anchor);
        assert_eq!(of("runs/archive/traces.otf2").unwrap(), anchor);
        let said = of("runs").unwrap_err().to_string();
        assert!(
            said.contains("2 traces are in it") && said.contains("runs/one"),
            "{said}"
        );
        // One that is a trace itself is meant, whatever is below it.
        trace(&at("runs"), 2);
        assert_eq!(of("runs").unwrap(), at("runs"));
    }
}
