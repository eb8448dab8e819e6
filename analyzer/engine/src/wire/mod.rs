//! Messages between agents, and their encoding.
//!
//! *In and out.* Values of the modules that ask and answer, as bytes of a [`laggard_comm::Job`].
//! *Does not know* how an answer is found, or its purpose.

pub mod links;
pub mod packing;
pub mod parcels;
pub mod watched;
