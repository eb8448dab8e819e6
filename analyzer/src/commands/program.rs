//! Which MPI a command uses: what its program is linked to, else what its launcher belongs to.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use laggard_comm::Family;
use object::{Object, ReadCache};

use super::launcher::{self, Launcher};

/// The families that the program of a command may use, the likelier one first; `[]` if nothing is
/// known. `launcher` is where the launcher stands, and what it is.
pub fn families(command: &[OsString], launcher: Option<(usize, Launcher)>) -> Vec<Family> {
    // A wrapper or an interpreter may stand before the program.
    let words = &command[launcher.map_or(0, |(at, _)| at + 1)..];
    let linked = words.iter().filter_map(|word| file(word)).find_map(linked);
    let of = |launcher| match launcher {
        Launcher::OpenMpi => Some(Family::OpenMpi),
        Launcher::Hydra => Some(Family::Mpich),
        Launcher::Environment => None,
    };
    if let Some(family) = linked {
        return vec![family];
    }
    if let Some(family) = launcher.and_then(|(_, launcher)| of(launcher)) {
        return vec![family];
    }
    // As srun starts it: probably the MPI whose mpirun would be found.
    let likely = of(launcher::ask("mpirun".as_ref()));
    let rest = Family::ALL.into_iter().filter(|f| Some(*f) != likely);
    likely.into_iter().chain(rest).collect()
}

/// The file that a word of a command line would start.
fn file(word: &OsStr) -> Option<PathBuf> {
    if word.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(word)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH")?;
    // Launchers also look in the current directory.
    let directories = std::env::split_paths(&path).chain([PathBuf::new()]);
    let mut files = directories.map(|directory| directory.join(word));
    files.find(|file| file.is_file())
}

/// The family of the MPI library that a program is linked to, itself or through another library.
fn linked(program: PathBuf) -> Option<Family> {
    let interpreter = interpreter(&program)?;
    // The dynamic linker knows every rule for finding libraries. This way it starts nothing.
    let mut list = Command::new(interpreter);
    list.arg("--list").arg(std::path::absolute(program).ok()?);
    let output = list.stdin(Stdio::null()).output().ok()?;
    of_list(&String::from_utf8_lossy(&output.stdout))
}

/// The family of the first MPI library in a list of the dynamic linker.
fn of_list(text: &str) -> Option<Family> {
    let names = text
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let files = names.map(|name| name.rsplit('/').next().unwrap_or(name));
    files.filter_map(Family::of_library).next()
}

/// The dynamic linker that a program names; `None` if it is no such program.
fn interpreter(program: &Path) -> Option<PathBuf> {
    let (file, _) = laggard_files::open(program).ok()?;
    let cache = ReadCache::new(file);
    // Scripts and data are no objects.
    let object = object::File::parse(&cache).ok()?;
    let section = object::ObjectSection::data(&object.section_by_name(".interp")?).ok()?;
    let name = section.strip_suffix(&[0]).unwrap_or(section);
    let name = PathBuf::from(std::str::from_utf8(name).ok()?);
    name.is_absolute().then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn lists_of_libraries_tell_the_mpi() {
        let list = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                    \tlibmpi_mpifh.so.40 => /usr/lib/libmpi_mpifh.so.40 (0x00007f)\n\
                    \tlibc.so.6 => /lib/libc.so.6 (0x00007f)\n";
        assert_eq!(of_list(list), Some(Family::OpenMpi));
        assert_eq!(
            of_list("\tlibmpi.so.12 => not found\n"),
            Some(Family::Mpich)
        );
        assert_eq!(
            of_list("\t/opt/lib/libmpich.so.12 (0x7f)\n"),
            Some(Family::Mpich)
        );
        assert_eq!(of_list("\tlibc.so.6 => /lib/libc.so.6 (0x7f)\n"), None);
    }

    #[test]
    fn programs_without_mpi_leave_it_to_the_launcher() {
        let own = std::env::current_exe().unwrap();
        assert!(interpreter(&own).is_some());
        assert_eq!(linked(own), None);
        assert_eq!(interpreter("Cargo.toml".as_ref()), None);
        let of = |launcher| families(&words("mpirun -n 4 python3 a.py"), Some((0, launcher)));
        assert_eq!(of(Launcher::OpenMpi), [Family::OpenMpi]);
        assert_eq!(of(Launcher::Hydra), [Family::Mpich]);
        assert_eq!(families(&words("srun true"), None).len(), 2);
    }
}
