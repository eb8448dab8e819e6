//! The calls that a trace can name: number, name, generic type and shape.

mod posix;
mod shmem;
mod table;
mod threads;
pub mod user;

/// Generic operation type: by it detection, cause analysis and the report know operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum GenericType {
    /// Barriers and other calls whose purpose is that all members synchronise.
    GroupSync,
    /// Collective data movement.
    GroupComm,
    /// Sends of messages.
    TwoSidedSend,
    /// Receives of messages, and probes for them.
    TwoSidedReceive,
    /// Waits and tests for requests.
    Completion,
    /// One-sided writes.
    OneSidedPut,
    /// One-sided reads.
    OneSidedGet,
    /// One-sided read-modify-write.
    OneSidedAtomic,
    /// Acquiring a lock.
    Lock,
    /// Releasing a lock.
    Unlock,
    /// Waiting until a variable takes a value.
    WaitOnValue,
    /// Opening and closing of exposure and access epochs.
    Exposure,
    /// Files.
    Io,
    /// Calls that only manage handles.
    Setup,
    /// Regions of the program.
    User,
    /// Threads of a rank that wait for each other.
    Threads,
}

impl GenericType {
    /// All types, in the order of their discriminants.
    pub const ALL: [GenericType; 16] = [
        GenericType::GroupSync,
        GenericType::GroupComm,
        GenericType::TwoSidedSend,
        GenericType::TwoSidedReceive,
        GenericType::Completion,
        GenericType::OneSidedPut,
        GenericType::OneSidedGet,
        GenericType::OneSidedAtomic,
        GenericType::Lock,
        GenericType::Unlock,
        GenericType::WaitOnValue,
        GenericType::Exposure,
        GenericType::Io,
        GenericType::Setup,
        GenericType::User,
        GenericType::Threads,
    ];

    /// The name in reports and operation maps.
    pub fn name(self) -> &'static str {
        match self {
            GenericType::GroupSync => "group_sync",
            GenericType::GroupComm => "group_comm",
            GenericType::TwoSidedSend => "two_sided_send",
            GenericType::TwoSidedReceive => "two_sided_receive",
            GenericType::Completion => "completion",
            GenericType::OneSidedPut => "one_sided_put",
            GenericType::OneSidedGet => "one_sided_get",
            GenericType::OneSidedAtomic => "one_sided_atomic",
            GenericType::Lock => "lock",
            GenericType::Unlock => "unlock",
            GenericType::WaitOnValue => "wait_on_value",
            GenericType::Exposure => "exposure",
            GenericType::Io => "io",
            GenericType::Setup => "setup",
            GenericType::User => "user",
            GenericType::Threads => "threads",
        }
    }
}

/// Dependencies between the ranks of a group operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Shape {
    /// Not a group operation.
    Single,
    /// All wait for all.
    Barrier,
    /// All PEs of SHMEM, or of an active set, wait for all.
    PeBarrier,
    /// Every rank needs data from every other.
    AllToAll,
    /// Every rank needs data from the root.
    OneToAll,
    /// The root needs data from every rank.
    AllToOne,
    /// Each rank needs data from all lower ranks.
    Prefix,
    /// Each rank needs data from its neighbours in the topology.
    Neighbourhood,
    /// Communicator management.
    Management,
    /// Window creation.
    WindowCreate,
    /// Window release.
    WindowFree,
    /// Fence on a window.
    Fence,
    /// Collective file operation.
    CollectiveIo,
    /// Start of the library.
    Init,
    /// End of the library.
    Finalize,
}

impl Shape {
    /// Whether it is start-up or shut-down, which reports leave out of their percentages.
    pub fn is_apart(self) -> bool {
        matches!(self, Shape::Init | Shape::Finalize)
    }

    /// Whether it is a collective with a root.
    pub fn is_rooted(self) -> bool {
        matches!(self, Shape::OneToAll | Shape::AllToOne)
    }
}

/// One row of the table of calls.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Number in traces.
    pub number: u16,
    /// Name in `mpi.h` or `shmem.h`, of a POSIX function, or of a wait among threads.
    pub name: &'static str,
    /// Generic operation type.
    pub generic: GenericType,
    /// Dependencies between ranks.
    pub shape: Shape,
}

macro_rules! rows {
    ($($number:literal $name:ident $generic:ident $shape:ident $class:ident($($meaning:tt)*)
        ($($parameters:tt)*) -> $result:ty;)*) => {
        use super::{Call, GenericType, Shape};
        pub const CALLS: &[Call] = &[$(Call {
            number: $number,
            name: stringify!($name),
            generic: GenericType::$generic,
            shape: Shape::$shape,
        },)*];
        #[allow(non_upper_case_globals, missing_docs)]
        pub mod number {
            $(pub const $name: u16 = $number;)*
        }
    };
}

mod standard {
    crate::mpi_calls!(rows);
}

mod extension {
    crate::mpi_extension_calls!(rows);
}

mod persistent {
    crate::mpi_4_persistent_calls!(rows);
}

/// Numbers of the calls by name.
pub mod number {
    pub use super::among_threads::number::*;
    pub use super::extension::number::*;
    pub use super::persistent::number::*;
    pub use super::standard::number::*;
}

/// POSIX I/O.
mod files {
    use super::{Call, GenericType, Shape};

    macro_rules! rows {
        ($($number:literal $name:ident $generic:ident $shape:ident $class:ident $meaning:tt
            $symbols:tt)*) => {
            pub const CALLS: &[Call] = &[$(Call {
                number: $number,
                name: stringify!($name),
                generic: GenericType::$generic,
                shape: Shape::$shape,
            },)*];
        };
    }

    crate::posix_calls!(rows);
}

/// Waits among the threads of a rank.
mod among_threads {
    use super::{Call, GenericType, Shape};

    macro_rules! rows {
        ($($number:literal $name:ident $generic:ident $shape:ident;)*) => {
            pub const CALLS: &[Call] = &[$(Call {
                number: $number,
                name: stringify!($name),
                generic: GenericType::$generic,
                shape: Shape::$shape,
            },)*];
            #[allow(non_upper_case_globals, missing_docs)]
            pub mod number {
                $(pub const $name: u16 = $number;)*
            }
        };
    }

    crate::thread_calls!(rows);
}

/// The functions of OpenSHMEM, family by family.
mod families {
    use super::{Call, GenericType, Shape};

    macro_rules! family {
        ([$($index:literal $name:literal $t:ty;)*]
            $number:literal $prefix:literal $suffix:literal $generic:ident $shape:ident) => {
            &[$(Call {
                number: $number + $index,
                name: concat!($prefix, $name, $suffix),
                generic: GenericType::$generic,
                shape: Shape::$shape,
            },)*]
        };
    }

    macro_rules! families {
        ($($number:literal $types:ident $prefix:literal $suffix:literal $generic:ident $shape:ident
            $class:ident $meaning:tt $parameters:tt -> $result:ty;)*) => {
            pub const FAMILIES: &[&[Call]] = &[$(crate::shmem_types! {
                $types family $number $prefix $suffix $generic $shape
            },)*];
        };
    }

    crate::shmem_calls!(families);
}

/// Rows of the tables, in the order of their numbers.
const TABLES: &[&[&[Call]]] = &[
    &[
        standard::CALLS,
        extension::CALLS,
        persistent::CALLS,
        files::CALLS,
        among_threads::CALLS,
    ],
    families::FAMILIES,
];

/// All rows, in the order of their numbers.
pub static CALLS: &[Call] = &{
    let mut all = [standard::CALLS[0]; count(TABLES)];
    let (mut at, mut table) = (0, 0);
    while table < TABLES.len() {
        let mut list = 0;
        while list < TABLES[table].len() {
            let mut row = 0;
            while row < TABLES[table][list].len() {
                all[at] = TABLES[table][list][row];
                at += 1;
                row += 1;
            }
            list += 1;
        }
        table += 1;
    }
    all
};

const fn count(tables: &[&[&[Call]]]) -> usize {
    let (mut sum, mut table) = (0, 0);
    while table < tables.len() {
        let mut list = 0;
        while list < tables[table].len() {
            sum += tables[table][list].len();
            list += 1;
        }
        table += 1;
    }
    sum
}

/// Upper bound of all numbers.
pub const NUMBERS: usize = 8192;
/// First number of a function of POSIX I/O.
const FIRST_OF_POSIX: u16 = 600;
/// First number of a wait among threads; that of regions is the first one behind them.
const FIRST_OF_THREADS: u16 = 900;
/// First number of an OpenSHMEM function.
pub const FIRST_OF_SHMEM: u16 = 1024;

/// Position + 1 in [`CALLS`] by number, 0 = no such call.
static INDEX: [u16; NUMBERS] = {
    let mut index = [0; NUMBERS];
    let mut at = 0;
    while at < CALLS.len() {
        index[CALLS[at].number as usize] = at as u16 + 1;
        at += 1;
    }
    index
};

/// Position in [`CALLS`] of the call with this number.
pub fn position(number: u16) -> Option<usize> {
    let at = *INDEX.get(number as usize)?;
    (at as usize).checked_sub(1)
}

/// The call with this number.
pub fn call(number: u16) -> Option<&'static Call> {
    match position(number) {
        Some(at) => CALLS.get(at),
        None => user::call(number),
    }
}

impl Call {
    /// Whether it is a function of OpenSHMEM.
    pub fn is_shmem(&self) -> bool {
        (FIRST_OF_SHMEM as usize..NUMBERS).contains(&usize::from(self.number))
    }

    /// Whether it is POSIX I/O, which belongs to neither MPI nor OpenSHMEM.
    pub fn is_posix(&self) -> bool {
        (FIRST_OF_POSIX..FIRST_OF_THREADS).contains(&self.number)
    }

    /// Whether it is among the threads of a rank, and belongs to neither MPI nor OpenSHMEM.
    pub fn is_threads(&self) -> bool {
        (FIRST_OF_THREADS..user::REGION).contains(&self.number)
    }

    /// Whether it is a region of the program.
    pub fn is_user(&self) -> bool {
        self.number == user::REGION || self.number as usize >= NUMBERS
    }

    /// Whether it returns before its data has moved: another call completes what it starts.
    pub fn starts(&self) -> bool {
        use GenericType::*;
        if self.is_shmem() {
            return self.name.ends_with("_nbi");
        }
        // By the standard's names; probes move nothing, and meetings only start in MPI_Ibarrier.
        let is_immediate = self.name.starts_with("MPI_I") && !self.name.ends_with("probe");
        match self.generic {
            OneSidedPut | OneSidedGet | OneSidedAtomic => true,
            TwoSidedSend | TwoSidedReceive | GroupComm => {
                is_immediate || self.name.starts_with("MPI_Start")
            }
            GroupSync => self.name == "MPI_Ibarrier",
            Io => self.name.starts_with("MPI_File_i") || self.name.ends_with("_begin"),
            _ => false,
        }
    }

    /// Whether it works on unsigned integers.
    pub fn is_unsigned(&self) -> bool {
        // Type numbers, see `shmem_types!`; functions without a type come before these.
        const UNSIGNED: [u16; 10] = [6, 7, 8, 9, 10, 18, 19, 20, 21, 22];
        self.number >= 1152 && UNSIGNED.contains(&(self.number % 32))
    }

    /// Whether its parameter is a symmetric address.
    pub fn has_address(&self) -> bool {
        use GenericType::*;
        let is_on_memory = matches!(
            self.generic,
            OneSidedPut | OneSidedGet | OneSidedAtomic | Lock | Unlock | WaitOnValue
        );
        self.is_shmem() && is_on_memory
    }
}

/// The name of the call with this number, or a stand-in.
pub fn name(number: u16) -> &'static str {
    call(number).map_or("unknown operation", |call| call.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generic_types_are_in_order() {
        let all = GenericType::ALL.into_iter().enumerate();
        all.for_each(|(at, generic)| assert_eq!(generic as usize, at));
    }

    #[test]
    fn numbers_are_unique_and_ascending() {
        assert!(CALLS.windows(2).all(|pair| pair[0].number < pair[1].number));
        assert!(
            CALLS
                .iter()
                .all(|row| call(row.number).unwrap().name == row.name)
        );
        assert!(call(0).is_none() && call(u16::MAX).is_none());
    }

    #[test]
    fn what_starts_is_completed_by_another_call() {
        let starts = |name: &str| {
            let call = CALLS.iter().find(|call| call.name == name);
            call.unwrap_or_else(|| panic!("{name}")).starts()
        };
        for name in [
            "MPI_Isend",
            "MPI_Irecv",
            "MPI_Imrecv",
            "MPI_Start",
            "MPI_Startall",
            "MPI_Iallreduce",
            "MPI_Ibarrier",
            "MPI_Ineighbor_alltoall",
            "MPI_Put",
            "MPI_Rget",
            "MPI_File_iread",
            "MPI_File_write_all_begin",
            "shmem_put32_nbi",
        ] {
            assert!(starts(name), "{name}");
        }
        for name in [
            "MPI_Send",
            "MPI_Recv",
            "MPI_Iprobe",
            "MPI_Improbe",
            "MPI_Init",
            "MPI_Intercomm_merge",
            "MPI_Send_init",
            "MPI_Allreduce",
            "MPI_Wait",
            "MPI_File_read_all",
            "MPI_File_read_all_end",
            "shmem_put32",
            "shmem_iget32",
            "shmem_barrier_all",
            "write",
        ] {
            assert!(!starts(name), "{name}");
        }
    }

    #[test]
    fn posix_calls_are_of_no_library() {
        let (write, region) = (call(608).unwrap(), call(user::REGION).unwrap());
        assert_eq!((write.name, write.generic), ("write", GenericType::Io));
        assert!(write.is_posix() && !write.is_shmem() && !write.is_user());
        assert!(!region.is_posix() && !CALLS[0].is_posix());
        let io = CALLS.iter().filter(|call| call.is_posix());
        assert!(io.clone().count() > 20);
        assert!(io.clone().all(|call| call.generic == GenericType::Io));
    }

    #[test]
    fn functions_of_families_have_their_types() {
        let names = [
            (1152, "shmem_char_put"),
            (1180, "shmem_put32"),
            (1040, "shmem_barrier_all"),
        ];
        for (number, expected) in names {
            assert_eq!(name(number), expected);
        }
        assert!(call(1152).unwrap().is_shmem() && !CALLS[0].is_shmem());
        let types = ["_uchar_", "_ushort_", "_uint", "_ulong", "_size_"];
        let unsigned = |name: &str| types.iter().any(|part| name.contains(part));
        for call in CALLS.iter().filter(|call| call.number >= 1152) {
            assert_eq!(call.is_unsigned(), unsigned(call.name), "{}", call.name);
        }
        let names: std::collections::HashSet<_> = CALLS.iter().map(|call| call.name).collect();
        assert_eq!(names.len(), CALLS.len());
    }
}
