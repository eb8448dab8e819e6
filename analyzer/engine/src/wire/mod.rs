//! What agents tell each other, and how it is packed.
//!
//! *In and out.* Values of the rooms that ask and answer, as bytes of a [`laggard_comm::Job`].
//! *Does not know* how an answer is found, or what it is good for.

pub mod packing;
pub mod parcels;
pub mod watched;
