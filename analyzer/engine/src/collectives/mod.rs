//! Calls that all members of a group make together.
//!
//! *In.* Entries of members. *Out.* The last member, and the wait of each. One agent joins each
//! group.

pub mod between;
pub mod group;
pub mod late;
pub mod losing;
pub mod own;
pub mod topology;
