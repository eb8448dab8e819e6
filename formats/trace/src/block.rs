//! File header, block headers and the fixed entries of blocks. Layouts as in `FORMAT.md`.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First bytes of every file.
pub const FILE_MAGIC: [u8; 8] = *b"LAGGARD\x1a";
/// The version that this crate writes, and the newest that it reads.
pub const VERSION: u32 = 1;
/// Reads differently in a file of the other byte order.
pub const BYTE_ORDER: u32 = 0x0102_0304;
/// First bytes of every block.
pub const BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"LGBK");
/// Alignment of blocks, bytes.
pub const BLOCK_ALIGN: usize = 8;
/// Page size, bytes. If too little room for a header remains before a multiple of this, the
/// next block begins there.
pub const PAGE: usize = 4096;
/// Block flag: complete, with checksum.
pub const SEALED: u16 = 1;

/// The first 128 bytes of a file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FileHeader {
    /// [`FILE_MAGIC`].
    pub magic: [u8; 8],
    /// Format version.
    pub version: u32,
    /// [`BYTE_ORDER`].
    pub byte_order: u32,
    /// Random, the same in every file of one run.
    pub run_id: [u8; 16],
    /// Rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Thread of the rank; 0 initialised MPI.
    pub thread: u32,
    /// Size of `MPI_COMM_WORLD`.
    pub ranks: u32,
    /// See [`Clock`].
    pub clock: u32,
    /// Nominal rate, Hz.
    pub ticks_per_s: u64,
    /// Locations with equal ids share one clock.
    pub host_id: u64,
    /// Creation time of the file, ticks.
    pub start_ticks: u64,
    /// The same moment as `CLOCK_REALTIME`, ns.
    pub start_unix_ns: u64,
    /// Process id.
    pub pid: u32,
    /// The thread's number in its kernel; 0 = not known.
    pub tid: u32,
    /// What the process knows the thread by, its `pthread_t`; 0 = not known.
    pub handle: u64,
    /// Zero.
    pub reserved: [u8; 28],
    /// CRC-32C of all bytes before.
    pub checksum: u32,
}

const _: () = assert!(size_of::<FileHeader>() == 128);

impl FileHeader {
    /// A header with magic, version and byte order set, the rest zero.
    pub fn new() -> Self {
        FileHeader {
            magic: FILE_MAGIC,
            version: VERSION,
            byte_order: BYTE_ORDER,
            run_id: [0; 16],
            rank: 0,
            thread: 0,
            ranks: 0,
            clock: 0,
            ticks_per_s: 1_000_000_000,
            host_id: 0,
            start_ticks: 0,
            start_unix_ns: 0,
            pid: 0,
            tid: 0,
            handle: 0,
            reserved: [0; 28],
            checksum: 0,
        }
    }

    /// The checksum of this content.
    pub fn expected_checksum(&self) -> u32 {
        crc32c::crc32c(&self.as_bytes()[..124])
    }
}

impl Default for FileHeader {
    fn default() -> Self {
        Self::new()
    }
}

/// The clock that a location's ticks come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`, ns.
    Monotonic = 0,
    /// The processor's time-stamp counter (x86-64, invariant).
    TimeStampCounter = 1,
    /// The generic timer (aarch64).
    GenericTimer = 2,
}

/// Kinds of block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum BlockKind {
    /// [`Record`](crate::Record)s.
    Records = 1,
    /// [`Definition`](crate::Definition)s.
    Definitions = 2,
    /// [`ProfileEntry`]s.
    Profile = 3,
    /// [`ClockPoint`]s.
    Clock = 4,
    /// One [`End`].
    End = 5,
    /// Content without meaning.
    Padding = 6,
    /// [`RegionEntry`]s.
    Regions = 7,
    /// One [`OpenCall`](crate::OpenCall).
    OpenCall = 8,
    /// Two slots of a [`ProfileSoFar`](crate::ProfileSoFar).
    ProfileSoFar = 9,
}

/// The header of a block.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct BlockHeader {
    /// [`BLOCK_MAGIC`].
    pub magic: u32,
    /// A [`BlockKind`].
    pub kind: u16,
    /// [`SEALED`].
    pub flags: u16,
    /// Payload bytes; in an unsealed block the reserved room.
    pub length: u32,
    /// CRC-32C of this header with a zero here, then the payload.
    pub checksum: u32,
    /// Records: base of their offsets, ticks.
    pub base: u64,
    /// Records: `CLOCK_MONOTONIC` at `base`, ns.
    pub monotonic_ns: u64,
    /// Number of entries.
    pub count: u32,
    /// Zero.
    pub reserved: u32,
}

/// Size of a [`BlockHeader`], bytes.
pub const BLOCK_HEADER: usize = size_of::<BlockHeader>();
const _: () = assert!(BLOCK_HEADER == 40);

impl BlockHeader {
    /// A sealed header for this payload.
    pub fn sealed(
        kind: BlockKind,
        count: u32,
        base: u64,
        monotonic_ns: u64,
        payload: &[u8],
    ) -> Self {
        let mut header = BlockHeader {
            magic: BLOCK_MAGIC,
            kind: kind as u16,
            flags: SEALED,
            length: payload.len() as u32,
            checksum: 0,
            base,
            monotonic_ns,
            count,
            reserved: 0,
        };
        header.checksum = header.expected_checksum(payload);
        header
    }

    /// The checksum of this header and payload.
    pub fn expected_checksum(&self, payload: &[u8]) -> u32 {
        let mut bare = *self;
        bare.checksum = 0;
        crc32c::crc32c_append(crc32c::crc32c(bare.as_bytes()), payload)
    }
}

/// Runtime profile of one (operation, call path); ticks.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C, packed(8))]
pub struct ProfileEntry {
    /// Number of the call, see [`calls`](crate::calls).
    pub operation: u16,
    /// Zero.
    pub flags: u16,
    /// Call path id.
    pub call_path: u32,
    /// Number of calls.
    pub count: u64,
    /// Sum of durations, ticks.
    pub total: u64,
    /// Shortest duration, ticks.
    pub minimum: u64,
    /// Longest duration, ticks.
    pub maximum: u64,
    /// Bytes sent plus received by the calls.
    pub bytes: u64,
    /// Sum of squared durations, ticks².
    pub sum_of_squares: u128,
}

const _: () = assert!(size_of::<ProfileEntry>() == 64);

/// Runtime profile of one region of the program; ticks.
///
/// *Exclusive* time lies outside of nested regions and of recorded calls.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C, packed(8))]
pub struct RegionEntry {
    /// Id of the region.
    pub region: u32,
    /// Bit 0: see [`REGION_UNTIMED`].
    pub flags: u32,
    /// Instances that began and ended.
    pub count: u64,
    /// Sum of their durations, ticks.
    pub inclusive: u64,
    /// Sum of their exclusive times, ticks.
    pub exclusive: u64,
    /// Smallest exclusive time of an instance, ticks.
    pub minimum: u64,
    /// Largest exclusive time of an instance, ticks.
    pub maximum: u64,
    /// Instances that began and never ended.
    pub unended: u64,
    /// Ends without a begin.
    pub unbegun: u64,
    /// Instances without times, see [`REGION_UNTIMED`].
    pub untimed: u64,
    /// Zero.
    pub reserved: u64,
    /// Sum of squared exclusive times, ticks².
    pub sum_of_squares: u128,
}

const _: () = assert!(size_of::<RegionEntry>() == 96);

/// [`RegionEntry::flags`]: a tiny function whose later calls were only counted. Their time
/// counts for the enclosing region.
pub const REGION_UNTIMED: u32 = 1;

/// The reference clock at a moment of the location's clock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct ClockPoint {
    /// Moment, ticks of this location.
    pub local: u64,
    /// Rank 0's `CLOCK_MONOTONIC`, ns.
    pub reference_ns: i64,
    /// Half of the smallest round trip, ns.
    pub error_ns: u64,
    /// 0 start, 1 end, 2 periodic.
    pub kind: u32,
    /// Zero.
    pub reserved: u32,
}

/// End of a location's recording.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct End {
    /// Calls that passed the collector.
    pub calls: u64,
    /// Calls in records.
    pub recorded: u64,
    /// Calls that should have been recorded but were not.
    pub lost: u64,
    /// End of the recording, ticks.
    pub end_ticks: u64,
    /// 0 finalize, 1 exit without it, 2 thread end, 3 aborted.
    pub reason: u32,
    /// Bit 0 size limit, 1 write error, 2 internal error, 3 paused at times, 4 regions left out.
    pub limits: u32,
    /// Threads of the process without a location; only in the end of thread 0.
    pub unrecorded_threads: u64,
    /// Time of the thread on its processor while it was recorded, ns; 0 = not known.
    pub processor_ns: u64,
    /// Zero.
    pub reserved: u64,
}

const _: () = assert!(size_of::<End>() == 64 && size_of::<ClockPoint>() == 32);

/// [`End::limits`]: `LAGGARD_MAX_TRACE_MB` was reached.
pub const LIMIT_SIZE: u32 = 1;
/// [`End::limits`]: the file system refused more.
pub const LIMIT_WRITE: u32 = 2;
/// [`End::limits`]: the collector stopped on an internal error.
pub const LIMIT_INTERNAL: u32 = 4;
/// [`End::limits`]: the program or user paused the recording for some time.
pub const LIMIT_PAUSED: u32 = 8;
/// [`End::limits`]: too many regions of the program, in total or open at once.
pub const LIMIT_REGIONS: u32 = 16;

/// Rounds up to the alignment of blocks.
pub fn align(length: usize) -> usize {
    length.next_multiple_of(BLOCK_ALIGN)
}
