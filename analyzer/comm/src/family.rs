//! Families of MPI libraries: what they are called, and how they are told apart.

use std::fmt;

/// MPI libraries with the same binary interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Open MPI.
    OpenMpi,
    /// MPICH, and those with its interface: Intel MPI, MVAPICH, Cray MPICH, ParaStation MPI.
    Mpich,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::OpenMpi => "Open MPI",
            Family::Mpich => "MPICH",
        })
    }
}

impl Family {
    /// Both.
    pub const ALL: [Family; 2] = [Family::OpenMpi, Family::Mpich];

    /// The name of its folder in an installation.
    pub fn folder(self) -> &'static str {
        match self {
            Family::OpenMpi => "openmpi",
            Family::Mpich => "mpich",
        }
    }

    /// The symbol by which a collector that was built for it is known.
    pub fn mark(self) -> &'static str {
        match self {
            Family::OpenMpi => "laggard_for_openmpi",
            Family::Mpich => "laggard_for_mpich",
        }
    }

    /// File names of its library, the most usual first.
    pub fn libraries(self) -> &'static [&'static str] {
        match self {
            Family::OpenMpi => &["libmpi.so.40", "libmpi.so.80"],
            Family::Mpich => &["libmpi.so.12", "libmpich.so.12", "libmpi_cray.so.12"],
        }
    }

    /// The family of a library with this file name: the interface of MPICH has the number 12,
    /// whoever built it and for whichever language.
    pub fn of_library(file: &str) -> Option<Family> {
        let (name, version) = file.split_once(".so")?;
        let version = version.trim_start_matches('.').split('.').next()?;
        let version: Option<u32> = version.parse().ok();
        let is_mpi = name.starts_with("libmpi") || name.starts_with("libpmpi");
        match version {
            _ if name.starts_with("libmpich") => Some(Family::Mpich),
            _ if name == "liboshmem" => Some(Family::OpenMpi),
            Some(12) if is_mpi => Some(Family::Mpich),
            Some(20..) if is_mpi => Some(Family::OpenMpi),
            _ => None,
        }
    }

    /// The families that a process may belong to whose launcher has set these variables, the
    /// likelier one first. Empty: no launcher started it.
    fn of_variables(is_set: impl Fn(&str) -> bool) -> &'static [Family] {
        // Slurm hands its own interfaces to both.
        let mpich = ["HYDI_CONTROL_FD", "MPI_LOCALNRANKS", "I_MPI_HYDRA_TOPOLIB"];
        if is_set("OMPI_COMM_WORLD_SIZE") {
            &[Family::OpenMpi]
        } else if mpich.into_iter().any(&is_set) {
            &[Family::Mpich]
        } else if is_set("PMIX_RANK") {
            &[Family::OpenMpi, Family::Mpich]
        } else if is_set("PMI_RANK") || is_set("PMI_SIZE") {
            &[Family::Mpich, Family::OpenMpi]
        } else {
            &[]
        }
    }

    /// The families that this process may belong to by its launcher, the likelier one first.
    /// Empty: no launcher started it.
    pub fn of_launcher() -> &'static [Family] {
        Family::of_variables(|name| std::env::var_os(name).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_tell_their_family() {
        for family in Family::ALL {
            for library in family.libraries() {
                assert_eq!(Family::of_library(library), Some(family), "{library}");
            }
        }
        let of = Family::of_library;
        assert_eq!(of("libmpi_usempif08.so.40"), Some(Family::OpenMpi));
        assert_eq!(of("libmpi.so.20.10.1"), Some(Family::OpenMpi));
        assert_eq!(of("liboshmem.so.40"), Some(Family::OpenMpi));
        assert_eq!(of("libmpifort.so.12"), Some(Family::Mpich));
        assert_eq!(of("libmpichfort.so.12"), Some(Family::Mpich));
        assert_eq!(of("libmpi_gnu_91.so.12"), Some(Family::Mpich));
        assert_eq!(of("libc.so.6"), None);
        assert_eq!(of("libmpi.a"), None);
        assert_eq!(of("libmpfr.so.40"), None);
    }

    #[test]
    fn launchers_tell_their_family() {
        let of = |set: &[&str]| Family::of_variables(|name| set.contains(&name));
        assert_eq!(of(&[]), []);
        // Open MPI 5 sets both.
        let open_mpi = of(&["PMIX_RANK", "OMPI_COMM_WORLD_SIZE"]);
        assert_eq!(open_mpi, [Family::OpenMpi]);
        let hydra = of(&["PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"]);
        assert_eq!(hydra, [Family::Mpich]);
        assert_eq!(of(&["PMIX_RANK"])[0], Family::OpenMpi);
        assert_eq!(of(&["PMI_RANK"])[0], Family::Mpich);
    }
}
