//! One-sided communication: epochs and locks on windows, symmetric memory of OpenSHMEM.
//!
//! *In.* Transfers, writes, waits for values and locks. *Out.* The rank that ended a wait, or made
//! a transfer slow.

pub mod competing;
pub mod epochs;
pub mod lock;
pub mod own;
pub mod passive;
pub mod watches;
