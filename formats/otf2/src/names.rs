//! Recognises the regions that are MPI and OpenSHMEM calls.

use std::sync::OnceLock;

use laggard_trace::calls::CALLS;
use rustc_hash::FxHashMap;

/// The number of the call that a region's name means. For `MPI_Send` it accepts the names in C,
/// in Fortran (any mangling) and of the profiling interface, also with parentheses. It knows
/// OpenSHMEM's names, too. `None` for a function of the program.
pub fn call(name: &[u8]) -> Option<u16> {
    static NUMBERS: OnceLock<FxHashMap<Vec<u8>, u16>> = OnceLock::new();
    let numbers = NUMBERS.get_or_init(|| {
        // A function of the program may be called `read`.
        let calls = CALLS.iter().filter(|call| !call.is_posix());
        let named = calls.map(|call| (call.name.to_ascii_lowercase().into_bytes(), call.number));
        named.collect()
    });
    let name = name.trim_ascii();
    let name = name.strip_suffix(b"()").unwrap_or(name).trim_ascii();
    // No name of a call is longer. This quickly excludes most functions of programs.
    if name.len() > 64 || !matches!(name.first(), Some(b'm' | b'M' | b'p' | b'P' | b's' | b'S')) {
        return None;
    }
    let mut name = name.to_ascii_lowercase();
    while name.last() == Some(&b'_') {
        name.pop();
    }
    let name = match name.strip_prefix(b"pmpi") {
        Some(_) => &name[1..],
        None => &name[..],
    };
    numbers.get(name).copied()
}

/// The number of the POSIX call that the name of a region for files means.
pub fn file_io(name: &[u8]) -> Option<u16> {
    let mut calls = CALLS.iter().filter(|call| call.is_posix());
    let found = calls.find(|call| call.name.as_bytes() == name)?;
    Some(found.number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use laggard_trace::calls::number;

    #[test]
    fn names_are_known_in_all_manglings() {
        for name in [
            "MPI_Send",
            "mpi_send_",
            "mpi_send__",
            "MPI_SEND",
            "mpi_send",
            "PMPI_Send",
            "pmpi_send_",
            "MPI_Send()",
            " MPI_Send ",
        ] {
            assert_eq!(call(name.as_bytes()), Some(number::MPI_Send), "{name}");
        }
        let barrier = call(b"shmem_barrier_all").map(laggard_trace::calls::name);
        assert_eq!(barrier, Some("shmem_barrier_all"));
    }

    #[test]
    fn files_have_names_of_their_own() {
        assert_eq!(
            file_io(b"write").map(laggard_trace::calls::name),
            Some("write")
        );
        assert_eq!((file_io(b"MPI_Send"), file_io(b"writes")), (None, None));
        assert_eq!(
            (call(b"read_"), call(b"pread"), call(b"puts")),
            (None, None, None)
        );
    }

    #[test]
    fn other_functions_are_the_programs() {
        for name in [
            "",
            "main",
            "MPI_Sender",
            "my_MPI_Send",
            "mpi",
            "p",
            "MPI_",
            "send",
        ] {
            assert_eq!(call(name.as_bytes()), None, "{name}");
        }
    }
}
