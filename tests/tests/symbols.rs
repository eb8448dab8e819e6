//! The collector exports every function of MPI and of OpenSHMEM, or `left_out.txt`,
//! `left_out_mpich.txt` and `left_out_shmem.txt` say why not.
//!
//! Each line of a list is a symbol, a blank and the reason; the lines are sorted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use laggard_tests::mpi::Mpi;
use laggard_tests::product::Bench;

/// A family of functions, and those that the collector leaves out.
struct Model {
    families: &'static [&'static str],
    /// Prefixes of its libraries' files.
    libraries: &'static [&'static str],
    /// Linker flags for programs.
    link: &'static [&'static str],
    /// The library has more functions than this.
    least: usize,
    left_out: &'static str,
}

const OPEN_MPI: Model = Model {
    families: &["MPI_", "PMPI_", "MPIX_", "PMPIX_"],
    libraries: &["libmpi.so"],
    link: &[],
    least: 700,
    left_out: "left_out.txt",
};

const MPICH: Model = Model {
    libraries: &["libmpich.so"],
    least: 1200,
    left_out: "left_out_mpich.txt",
    ..OPEN_MPI
};

const SHMEM: Model = Model {
    families: &["shmem_", "shmemx_"],
    libraries: &["liboshmem.so"],
    link: &["-Wl,--no-as-needed", "-loshmem"],
    least: 800,
    left_out: "left_out_shmem.txt",
};

impl Model {
    /// The functions of this kind that a library exports.
    fn functions(&self, library: &Path) -> BTreeSet<String> {
        let output = Command::new("nm")
            .args(["-D", "--defined-only"])
            .arg(library)
            .output();
        let output = output.expect("nm");
        assert!(output.status.success(), "nm {}", library.display());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_function = |kind: &str| ["T", "W", "i"].contains(&kind);
        let is_ours = |name: &str| self.families.iter().any(|family| name.starts_with(family));
        text.lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace().rev();
                let name = words.next()?.split('@').next()?;
                let kind = words.next()?;
                (is_function(kind) && is_ours(name)).then(|| name.to_string())
            })
            .collect()
    }

    /// The library that programs use.
    fn library(&self, bench: &Bench) -> PathBuf {
        let program = bench.compile("attacks/tiny.c", &[], self.link);
        let output = Command::new("ldd").arg(program).output().expect("ldd");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find(|line| {
            let name = line.trim_start();
            self.libraries
                .iter()
                .any(|library| name.starts_with(library))
        });
        let path = line.and_then(|line| line.split_whitespace().nth(2));
        PathBuf::from(path.unwrap_or_else(|| panic!("no {:?} in {text}", self.libraries)))
    }

    fn list(&self) -> Vec<(String, String)> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(self.left_out);
        let text = std::fs::read_to_string(path).expect("the list");
        let lines = text
            .lines()
            .map(|line| line.split_once(' ').expect("a symbol and a reason"));
        lines
            .map(|(name, reason)| (name.into(), reason.trim().into()))
            .collect()
    }

    fn check(&self, test: &str) {
        let bench = Bench::beside(test);
        let theirs = self.functions(&self.library(&bench));
        let ours = self.functions(&bench.library);
        let left_out: BTreeSet<String> = self.list().into_iter().map(|(name, _)| name).collect();
        assert!(
            theirs.len() > self.least,
            "only {} functions in the library",
            theirs.len()
        );
        let missing: Vec<_> = theirs
            .iter()
            .filter(|n| !ours.contains(*n) && !left_out.contains(*n))
            .collect();
        assert!(
            missing.is_empty(),
            "neither exported nor listed: {missing:?}"
        );
        let both: Vec<_> = left_out.intersection(&ours).collect();
        assert!(
            both.is_empty(),
            "listed as left out, but exported: {both:?}"
        );
    }
}

#[test]
fn the_lists_are_sorted_and_give_reasons() {
    for list in [OPEN_MPI.list(), MPICH.list(), SHMEM.list()] {
        for pair in list.windows(2) {
            assert!(
                pair[0].0 < pair[1].0,
                "{} stands before {}",
                pair[0].0,
                pair[1].0
            );
        }
        for (name, reason) in list {
            assert!(reason.len() > 10, "{name} has no reason");
        }
    }
}

#[test]
fn every_function_is_exported_or_listed() {
    match Mpi::chosen() {
        Mpi::OpenMpi => OPEN_MPI.check("symbols"),
        Mpi::Mpich => MPICH.check("symbols"),
    }
}

#[test]
fn every_function_of_shmem_is_exported_or_listed() {
    if !Mpi::is_left_out(Mpi::Mpich, "OpenSHMEM, which it does not have") {
        SHMEM.check("symbols-shmem");
    }
}

/// Every symbol of the table of POSIX I/O is exported, and the C library has it.
#[test]
fn every_function_of_posix_io_is_exported() {
    macro_rules! symbols {
        ($($number:literal $name:ident $generic:ident $shape:ident $class:ident $meaning:tt {
            $($symbol:literal $parameters:tt -> $result:ty;)*
        })*) => {
            [$($($symbol),*),*]
        };
    }
    let symbols = laggard_trace::posix_calls!(symbols);
    let bench = Bench::beside("symbols-posix");
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(&bench.library)
        .output();
    let text = String::from_utf8_lossy(&output.expect("nm").stdout).into_owned();
    let ours: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .collect();
    for symbol in symbols {
        assert!(ours.contains(symbol), "{symbol} is not exported");
        let name = std::ffi::CString::new(symbol).expect("a name");
        // SAFETY: a look-up by name.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        assert!(!found.is_null(), "the C library has no {symbol}");
    }
}

/// `dlsym` must consist of the jump instructions only: a function with a frame of its own would be
/// taken for the caller. Whether it does depends on the linker.
#[test]
fn dlsym_is_the_one_that_jumps() {
    let bench = Bench::beside("dlsym-symbol");
    let address = |option: &str, symbol: &str| {
        let output = Command::new("nm").arg(option).arg(&bench.library).output();
        let text = String::from_utf8_lossy(&output.expect("nm").stdout).into_owned();
        let mut lines = text
            .lines()
            .map(|l| l.split_whitespace().collect::<Vec<_>>());
        let line = lines.find(|words| words.last() == Some(&symbol) && words.len() == 3);
        line.unwrap_or_else(|| panic!("no {symbol}"))[0].to_string()
    };
    assert_eq!(address("-D", "dlsym"), address("-a", "laggard_dlsym"));
}
