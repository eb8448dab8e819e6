//! What is installed for which MPI: a folder for each, with the collector and the library that
//! agents load.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use object::{Object, ObjectSymbol, ReadCache};

use super::Family;

/// The collector's file.
pub const COLLECTOR: &str = "liblaggard.so";
/// The file of the library that links MPI.
pub const AGENTS: &str = "liblaggard_mpi.so";
/// Where folders are looked for, from the directory of this executable: an installation, then one
/// that was made by hand, then what `make build` and `make build-mpich` leave.
const PLACES: &[&str] = &[
    "../lib/laggard/openmpi",
    "../lib/laggard/mpich",
    "",
    "../lib/laggard",
    "../lib",
    "../lib64",
    "../mpich/release",
];

/// A folder with libraries for one MPI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Where it is.
    pub directory: PathBuf,
    /// What its libraries were built for.
    pub family: Family,
}

/// The directory of this executable.
fn home() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find where laggard itself is")?;
    Ok(own.parent().unwrap_or(Path::new("/")).to_owned())
}

/// The family that a collector was built for.
fn built_for(library: &Path) -> Option<Family> {
    let (file, _) = laggard_files::open(library).ok()?;
    // Reads what it needs: with debug information the file is large.
    let cache = ReadCache::new(file);
    let object = object::File::parse(&cache).ok()?;
    let mark = |symbol: object::Symbol<'_, '_, &ReadCache<_>>| {
        let name = symbol.name().ok()?;
        Family::ALL.into_iter().find(|family| family.mark() == name)
    };
    object.dynamic_symbols().find_map(mark)
}

/// The folders below `home` that have a file of this name. The collector beside it tells what it
/// was built for.
fn below(home: &Path, file: &str) -> Vec<Installed> {
    let folder = |place: &&str| {
        let directory = home.join(place).canonicalize().ok()?;
        let family = built_for(&directory.join(COLLECTOR))?;
        let installed = Installed { directory, family };
        installed
            .directory
            .join(file)
            .is_file()
            .then_some(installed)
    };
    PLACES.iter().filter_map(folder).collect()
}

/// The file of this name for each of the wanted families that has one, in their order; for
/// `[]`, whichever there are.
///
/// # Errors
/// There is none: what was looked for, and where.
pub fn find(file: &str, wanted: &[Family]) -> Result<Vec<(Family, PathBuf)>> {
    let home = home()?;
    let all = below(&home, file);
    let order: &[Family] = match wanted {
        [] => &Family::ALL,
        _ => wanted,
    };
    let of = |family: &Family| all.iter().find(|found| found.family == *family);
    let found: Vec<_> = order
        .iter()
        .filter_map(of)
        .map(|found| (found.family, found.directory.join(file)))
        .collect();
    if found.is_empty() {
        bail!("{}", missing(&home, file, wanted, &all));
    }
    Ok(found)
}

fn missing(home: &Path, file: &str, wanted: &[Family], all: &[Installed]) -> String {
    let names: Vec<String> = wanted.iter().map(Family::to_string).collect();
    let wanted = match names.is_empty() {
        true => String::new(),
        false => format!(" for {}", names.join(" or ")),
    };
    let home = home.display();
    let there = all.iter().map(|found| {
        let (family, directory) = (found.family, found.directory.display());
        format!("; {directory} has one for {family}")
    });
    let there: String = there.collect();
    format!("no {file}{wanted} in {home}, {home}/../lib or {home}/../lib/laggard/*{there}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_libraries_are_for_no_mpi() {
        assert_eq!(built_for(&std::env::current_exe().unwrap()), None);
        assert_eq!(built_for("/nonexistent".as_ref()), None);
        assert_eq!(below("/nonexistent".as_ref(), COLLECTOR), []);
    }

    #[test]
    fn what_is_missing_is_named_with_its_places() {
        let there = Installed {
            directory: "/opt/lib/laggard/openmpi".into(),
            family: Family::OpenMpi,
        };
        let said = missing("/opt/bin".as_ref(), AGENTS, &[Family::Mpich], &[there]);
        assert_eq!(
            said,
            "no liblaggard_mpi.so for MPICH in /opt/bin, /opt/bin/../lib or \
             /opt/bin/../lib/laggard/*; /opt/lib/laggard/openmpi has one for Open MPI"
        );
    }
}
