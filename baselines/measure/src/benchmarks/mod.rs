//! What is measured: one row per benchmark.
//!
//! A benchmark is a few calls that belong together, as `MPI_Send` and `MPI_Recv` do. Which
//! calls it makes is what the collector records of it, so a row names them only for those who
//! choose. What a repetition needs besides is called before and after the part that is timed.

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
        // SAFETY: the arguments are communicators, windows and requests that are alive, and
        // buffers of a `Site`, which have room for what its members exchange. Errors are fatal.
        let code = unsafe { mpi::ffi::$function($($argument),*) };
        debug_assert_eq!(code, 0, stringify!($function));
    }};
}
pub(super) use call;

/// A constant of the MPI library.
macro_rules! constant {
    ($name:ident) => {{
        // SAFETY: written by the library, if at all, before it was initialised.
        unsafe { mpi::ffi::$name }
    }};
}
pub(super) use constant;

/// Who takes part.
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

/// How much is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volume {
    /// Nothing, or always the same.
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
    /// What it measures, by the names of calls.
    pub calls: &'static [&'static str],
    /// Who takes part.
    pub kind: Kind,
    /// How much is moved.
    pub volume: Volume,
    /// Makes everything that the calls need. Collective.
    pub prepare: fn(&Site) -> Steps,
}

/// Where a benchmark runs: its members, and memory for what they exchange.
#[derive(Clone, Copy)]
pub struct Site {
    /// Of its members alone.
    pub comm: MPI_Comm,
    /// This rank in it.
    pub rank: c_int,
    /// Members.
    pub size: c_int,
    /// Of a message or block.
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

    /// What is reduced: how many elements of which type, and how.
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

/// The type of what is not reduced.
pub fn byte() -> MPI_Datatype {
    constant!(RSMPI_UINT8_T)
}

/// Nothing to be told of a window.
pub fn no_info() -> MPI_Info {
    constant!(RSMPI_INFO_NULL)
}

/// A repetition in three parts, of which the second begins on all members at once.
pub struct Steps {
    /// What has to be there before.
    pub before: Box<dyn FnMut()>,
    /// The calls that are measured.
    pub timed: Box<dyn FnMut()>,
    /// What is left to be done.
    pub after: Box<dyn FnMut()>,
    /// Gives back what `prepare` made, once there are no more repetitions. Collective.
    pub release: Box<dyn FnMut()>,
}

impl Steps {
    /// Calls that need nothing else.
    pub fn new(timed: impl FnMut() + 'static) -> Steps {
        Steps {
            before: Box::new(|| ()),
            timed: Box::new(timed),
            after: Box::new(|| ()),
            release: Box::new(|| ()),
        }
    }

    /// What has to be there before.
    pub fn before(mut self, before: impl FnMut() + 'static) -> Steps {
        self.before = Box::new(before);
        self
    }

    /// What is left to be done.
    pub fn after(mut self, after: impl FnMut() + 'static) -> Steps {
        self.after = Box::new(after);
        self
    }

    /// What gives back what was made.
    pub fn release(mut self, release: impl FnMut() + 'static) -> Steps {
        self.release = Box::new(release);
        self
    }
}

/// All benchmarks, those of OpenSHMEM if the job has it.
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
