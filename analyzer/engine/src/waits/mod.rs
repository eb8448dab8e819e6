//! What calls lost, and who keeps it.
//!
//! *In.* Waits with their causes, from the rooms that replay. *Out.* Sums of a location by pattern
//! and signature, and notes for those who want every one. *Does not know* how a wait was found.

pub mod noted;
pub mod sums;
