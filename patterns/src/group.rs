//! Operations of groups: all members of a communicator, window or file.
//!
//! `last` is the latest entry of the members, `first_out` the earliest leaving.
//! For a non-blocking collective, members enter with the starting call; its wait
//! is charged to the Wait* that completed it and is the part of that Wait* before
//! `last`: pass the Wait*'s interval as `own` to the same functions.

mod collective;
mod synchronisation;

pub use collective::{
    early_reduce, early_scan, late_broadcast, late_reduce_contribution, wait_for_member,
};
pub use synchronisation::{completion, until_first_out, wait_before_last};

pub(crate) use collective::{
    EARLY_REDUCE, EARLY_SCAN, LATE_BROADCAST, LATE_REDUCE_CONTRIBUTION, NXN_COMPLETION,
    WAIT_AT_NXN, WAIT_FOR_MEMBER,
};
pub(crate) use synchronisation::{
    BARRIER_COMPLETION, INIT_COMPLETION, WAIT_AT_BARRIER, WAIT_AT_COLLECTIVE_IO,
    WAIT_AT_COMM_MANAGEMENT, WAIT_AT_FINALIZE, WAIT_AT_SHMEM_BARRIER, WAIT_AT_WINDOW_CREATE,
    WAIT_AT_WINDOW_FREE,
};
