//! The benchmarks, one row each.
//!
//! A benchmark is a few calls that belong together, as `MPI_Send` and `MPI_Recv` do. The collector
//! records which calls it makes; a row names them only so that users can choose. Further calls of a
//! repetition come before and after the timed part.

mod collectives;
mod management;
mod messages;
mod requests;
mod shmem;
mod windows;

use std::ffi::{c_int, c_void};

use mpi::ffi::{MPI_Comm, MPI_Datatype, MPI_Info, MPI_Op};

pub use messages::status;
pub use shmem::Shmem;

/// Calls a function of the MPI library.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: the arguments are live communicators, windows and requests, and buffers of a
        // `Site`, which have room for the data that its members exchange. Errors are fatal.
        let code = unsafe { mpi::ffi::$function($($argument),*) };
        debug_assert_eq!(code, 0, stringify!($function));
    }};
}
pub(super) use call;

/// A constant of the MPI library.
macro_rules! constant {
    ($name:ident) => {{
        // SAFETY: the library writes it, if at all, before it is initialised.
        unsafe { mpi::ffi::$name }
    }};
}
pub(super) use constant;

/// The members of a benchmark's groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A rank and another one.
    Pair,
    /// Groups of all sizes.
    Group,
    /// Groups of successive ranks: active sets of OpenSHMEM.
    ActiveSet,
    /// All ranks.
    Everybody,
}

/// How many bytes a benchmark moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volume {
    /// None, or always the same number.
    Fixed,
    /// Messages of all sizes.
    Sized,
    /// Blocks of all sizes, one for each member.
    Blocks,
    /// Messages of whole words of 8 bytes.
    Words,
    /// Blocks of such words.
    WordBlocks,
}

/// One benchmark.
pub struct Benchmark {
    /// The calls that it measures.
    pub calls: &'static [&'static str],
    /// Its members.
    pub kind: Kind,
    /// How much is moved.
    pub volume: Volume,
    /// Makes everything that the calls need. Collective.
    pub prepare: fn(&Site) -> Steps,
}

/// Where a benchmark runs: its members, and memory for their data.
#[derive(Clone, Copy)]
pub struct Site {
    /// Communicator of its members only.
    pub comm: MPI_Comm,
    /// This rank in it.
    pub rank: c_int,
    /// Members.
    pub size: c_int,
    /// Bytes of a message or block.
    pub bytes: usize,
    /// Room for a block to each member.
    pub outgoing: *mut c_void,
    /// Room for a block of each member.
    pub incoming: *mut c_void,
    /// OpenSHMEM, where the job has it.
    pub shmem: Option<&'static Shmem>,
    /// World rank of the other member of a pair.
    pub peer: c_int,
}

impl Site {
    /// Whether this rank is the root, or the first of a pair.
    pub fn is_first(&self) -> bool {
        self.rank == 0
    }

    /// The other member of a pair.
    pub fn other(&self) -> c_int {
        1 - self.rank
    }

    /// Bytes as a count of [`byte`]s.
    pub fn count(&self) -> c_int {
        self.bytes as c_int
    }

    /// The same count for each member, and where their blocks begin.
    pub fn counts(&self, members: usize) -> (Vec<c_int>, Vec<c_int>) {
        let counts = vec![self.count(); members];
        let begins = (0..members).map(|i| (i * self.bytes) as c_int);
        (counts, begins.collect())
    }

    /// Elements of a reduction: count, type, and operation.
    pub fn elements(&self) -> (c_int, MPI_Datatype, MPI_Op) {
        let (size, datatype) = match self.bytes {
            0 => (8, constant!(RSMPI_DOUBLE)),
            n if n % 8 == 0 => (8, constant!(RSMPI_DOUBLE)),
            n if n % 4 == 0 => (4, constant!(RSMPI_FLOAT)),
            _ => (1, constant!(RSMPI_UINT8_T)),
        };
        let count = (self.bytes / size) as c_int;
        (count, datatype, constant!(RSMPI_SUM))
    }
}

/// The type outside of reductions.
pub fn byte() -> MPI_Datatype {
    constant!(RSMPI_UINT8_T)
}

/// No hints for a window.
pub fn no_info() -> MPI_Info {
    constant!(RSMPI_INFO_NULL)
}

/// A repetition in three parts. The second begins on all members at once.
pub struct Steps {
    /// Preparation.
    pub before: Box<dyn FnMut()>,
    /// The calls that are measured.
    pub timed: Box<dyn FnMut()>,
    /// Clean-up.
    pub after: Box<dyn FnMut()>,
    /// Frees everything that `prepare` made, after the last repetition. Collective.
    pub release: Box<dyn FnMut()>,
}

impl Steps {
    /// Calls without preparation.
    pub fn new(timed: impl FnMut() + 'static) -> Steps {
        Steps {
            before: Box::new(|| ()),
            timed: Box::new(timed),
            after: Box::new(|| ()),
            release: Box::new(|| ()),
        }
    }

    /// Sets the preparation.
    pub fn before(mut self, before: impl FnMut() + 'static) -> Steps {
        self.before = Box::new(before);
        self
    }

    /// Sets the clean-up.
    pub fn after(mut self, after: impl FnMut() + 'static) -> Steps {
        self.after = Box::new(after);
        self
    }

    /// Sets the part that frees everything.
    pub fn release(mut self, release: impl FnMut() + 'static) -> Steps {
        self.release = Box::new(release);
        self
    }
}

/// All benchmarks; with OpenSHMEM if the job has it.
pub fn all(with_shmem: bool) -> Vec<&'static Benchmark> {
    let mut lists = vec![
        messages::ROWS,
        requests::ROWS,
        collectives::ROWS,
        management::ROWS,
        windows::ROWS,
    ];
    if with_shmem {
        lists.push(shmem::ROWS);
    }
    lists.into_iter().flatten().collect()
}
