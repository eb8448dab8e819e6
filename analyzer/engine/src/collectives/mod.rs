//! Calls that all members of a group make together.
//!
//! *In.* Entries of members. *Out.* Who was last, and what each member waited. Groups are joined by one
//! agent each.

pub mod between;
pub mod group;
pub mod own;
pub mod topology;
