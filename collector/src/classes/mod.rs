//! The meaning of calls: one type for each class of the table of calls.
//!
//! A row such as `send(count, datatype, dest, tag, comm)` becomes a call of the function `send`
//! here, with the arguments of the program's call. It returns an [`Operation`], which may
//! prepare the real call and records it afterwards.

pub mod collective;
pub mod comm;
pub mod completion;
pub mod environment;
pub mod io;
pub mod probe;
pub mod receive;
pub mod send;
pub mod shmem;
pub mod volume;
pub mod waits;
pub mod window;

use std::ffi::c_int;

use laggard_callpath::CallSite;
use laggard_trace::Subject;

use crate::call::Call;
use crate::constants::Handle;
use crate::stream::Stream;

/// A call of some class, made from the program's arguments.
///
/// Any pointer among these may be null or wild; the library answers such a call with an error.
/// Read through pointers only after the call has succeeded. The only exception is data that the
/// call itself changes: [`handle_at`].
pub trait Operation {
    /// Begins the call, if it is to be recorded.
    #[inline(always)]
    fn begin(&self, site: CallSite, number: u16) -> Option<Call> {
        Call::begin(site, number)
    }
    /// Before the real call: saves what the call will change.
    #[inline(always)]
    fn before(&mut self, _call: &mut Call) {}
    /// The subject of the call, in case it never returns. Must not ask the MPI library: the
    /// arguments are not known to be valid yet.
    #[inline(always)]
    fn subject(&self, _stream: &mut Stream) -> Subject {
        Subject::NONE
    }
    /// Takes the result of a real function that is not MPI's and has no code for success.
    #[inline(always)]
    fn returned(&mut self, _value: u64) {}
    /// After the real call: records it.
    fn after(&mut self, call: &mut Call);
    /// Before a real call that is not recorded, because it is nested in another.
    #[inline(always)]
    fn before_unrecorded(&mut self) {}
    /// After a real call that is not recorded.
    #[inline(always)]
    fn after_unrecorded(&mut self, _result: c_int) {}
}

/// The handle that a call is about to take away; `None` if the pointer is null. The library
/// reads the same address.
#[inline(always)]
fn handle_at<H: Handle>(variable: *const H) -> Option<usize> {
    // SAFETY: the program's variable, or null.
    unsafe { variable.as_ref() }.map(|handle| handle.bits())
}

/// Names that the rows of the table use.
pub mod prelude {
    pub use super::Operation;
    pub use super::collective::*;
    pub use super::comm::*;
    pub use super::environment::*;
    pub use super::io::*;
    pub use super::probe::*;
    pub use super::receive::*;
    pub use super::send::*;
    pub use super::volume::*;
    pub use super::waits::*;
    pub use super::window::*;
    pub use crate::groups::NO_ROOT;
    pub use laggard_trace::calls::number;
}
