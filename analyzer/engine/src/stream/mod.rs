//! The calls of a thread: decoded in slabs, with tables of signatures.
//!
//! *In.* Records of a mapped file. *Out.* Columns of a slab; activity of a thread in a span of
//! time. *Does not know* other ranks.

pub mod absence;
pub mod activity;
pub mod call;
pub mod columns;
pub mod following;
pub mod looks;
pub mod polling;
pub mod recorded;
pub mod roles;
pub mod rows;
pub mod thread;
pub mod traffic;
pub mod within;
