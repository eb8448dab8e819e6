//! Which calls are worth a question: the profile, and the filters over it.
//!
//! *In.* Profiles of locations. *Out.* A verdict for each entry, and what is accounted for.
//! *Does not know* who was late.

pub mod account;
pub mod detect;
pub mod profile;
