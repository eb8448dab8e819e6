//! Selects the calls that are worth a question: the profile, and the filters over it.
//!
//! *In.* Profiles of locations. *Out.* A verdict for each entry, and the accounts. *Does not know*
//! late parties.

pub mod account;
pub mod detect;
pub mod profile;
