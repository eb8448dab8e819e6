//! The MPI of the tests: Open MPI, or the one that `LAGGARD_TEST_MPI` names.
//!
//! Only this module chooses compilers, launchers and the product built for the MPI. Command lines
//! are the same with both MPIs. Names have a suffix, as in Debian's packages of several MPIs, if
//! the plain ones belong to another MPI.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::folders;

/// An MPI library with its tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mpi {
    /// Its tools have the plain names.
    OpenMpi,
    /// Its tools have the suffix `.mpich`.
    Mpich,
}

impl Mpi {
    /// The MPI of this run.
    ///
    /// # Panics
    /// If `LAGGARD_TEST_MPI` names an unknown one.
    pub fn chosen() -> Mpi {
        match std::env::var("LAGGARD_TEST_MPI").as_deref() {
            Err(_) | Ok("" | "openmpi") => Mpi::OpenMpi,
            Ok("mpich") => Mpi::Mpich,
            Ok(other) => panic!("LAGGARD_TEST_MPI is openmpi or mpich, not {other:?}"),
        }
    }

    /// Its name in directives and in `LAGGARD_TEST_MPI`.
    pub fn name(self) -> &'static str {
        match self {
            Mpi::OpenMpi => "openmpi",
            Mpi::Mpich => "mpich",
        }
    }

    /// The other one.
    pub fn other(self) -> Mpi {
        match self {
            Mpi::OpenMpi => Mpi::Mpich,
            Mpi::Mpich => Mpi::OpenMpi,
        }
    }

    /// Whether this MPI is the one of this run, and `what` is not tested with it.
    pub fn is_left_out(mpi: Mpi, what: &str) -> bool {
        let is_left_out = mpi == Mpi::chosen();
        if is_left_out {
            eprintln!("SKIPPED with {}: {what}", mpi.name());
        }
        is_left_out
    }

    /// The file of its library.
    fn library(self) -> &'static str {
        match self {
            Mpi::OpenMpi => "libmpi.so.40",
            Mpi::Mpich => "libmpich.so.12",
        }
    }

    /// Tells programs that load MPI themselves which library to load.
    pub fn cflag(self) -> String {
        format!("-DMPI_LIBRARY=\"{}\"", self.library())
    }

    fn tool(self, name: &str) -> String {
        match self {
            Mpi::OpenMpi => name.to_owned(),
            Mpi::Mpich => format!("{name}.mpich"),
        }
    }

    /// The compiler for a source with this name.
    ///
    /// # Panics
    /// If there is none.
    pub fn compiler(self, source: &Path) -> String {
        self.tool(match source.extension().and_then(OsStr::to_str) {
            Some("c") => "mpicc",
            Some("cpp") => "mpicxx",
            Some("f" | "f90") => "mpif90",
            other => panic!("no compiler for {other:?}"),
        })
    }

    /// The name of `mpirun`.
    pub fn launcher(self) -> String {
        self.tool("mpirun")
    }

    /// `mpirun` for more ranks than cores, even as root.
    pub fn mpirun(self, ranks: u32) -> Command {
        let mut command = Command::new(self.launcher());
        match self {
            Mpi::OpenMpi => allow(&mut command),
            Mpi::Mpich => {
                command.env("LD_PRELOAD", yielding());
                // At Finalize UCX prints messages that nobody received, with times.
                command.env("UCX_LOG_LEVEL", "error");
            }
        }
        command.arg("-n").arg(ranks.to_string());
        command
    }

    /// Sets a variable of the ranks, on the launcher's command line.
    pub fn set(self, command: &mut Command, key: &str, value: &OsStr) {
        match self {
            Mpi::OpenMpi => {
                let mut pair = std::ffi::OsString::from(key);
                pair.push("=");
                pair.push(value);
                command.arg("-x").arg(pair);
            }
            Mpi::Mpich => {
                let mut value = value.to_owned();
                if key == "LD_PRELOAD" {
                    value.push(":");
                    value.push(yielding());
                }
                command.arg("-genv").arg(key).arg(value);
            }
        }
    }

    /// The directory of its libraries, below cargo's build directory.
    pub fn product(self) -> &'static str {
        match self {
            Mpi::OpenMpi => "release",
            Mpi::Mpich => "mpich/release",
        }
    }
}

/// The library with which MPICH's waiting ranks yield; built at its first use.
fn yielding() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("mpich/yield.c");
        let library = folders::scratch().join("libyield.so");
        // Several tests may build it at once, so the library appears as a whole.
        let draft = library.with_extension(std::process::id().to_string());
        let mut compiler = Command::new("gcc");
        compiler.args(["-O1", "-shared", "-fPIC", "-o"]);
        let status = compiler.arg(&draft).arg(source).arg("-ldl").status();
        assert!(status.is_ok_and(|status| status.success()), "yield.c");
        std::fs::rename(draft, &library).expect("a library");
        library
    };
    BUILT.get_or_init(build).clone()
}

/// Options of Open MPI's launchers for more ranks than cores, even as root.
pub fn allow(command: &mut Command) {
    // SAFETY: never fails.
    let user = unsafe { libc::geteuid() };
    if user == 0 {
        command.arg("--allow-run-as-root");
    }
    keep_directory_of_sessions(user);
    command.args(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]);
    // The one that is chosen on one machine in any case, but only after a look for fabrics of 0.2 s.
    command.args(["--mca", "pml", "ob1"]);
}

/// Launchers make a common directory for their sessions, and remove it when it is empty. Two at
/// once may fail at that. Another file keeps it from being removed.
fn keep_directory_of_sessions(user: libc::uid_t) {
    static KEPT: OnceLock<()> = OnceLock::new();
    KEPT.get_or_init(|| {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = name.trim().split('.').next().unwrap_or_default();
        let sessions = std::env::temp_dir().join(format!("ompi.{host}.{user}"));
        // If it cannot be made, launchers print the error.
        let _ = std::fs::create_dir_all(sessions.join("laggard-tests"));
    });
}
