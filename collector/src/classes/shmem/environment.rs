//! Beginning and end of OpenSHMEM.
//!
//! Open MPI's OpenSHMEM starts MPI below itself, where that has not been started, and ends it.
//! So the clocks are compared by messages here as well, and recording ends with whichever of
//! the two is finalised first. What the library calls for itself is nested in these calls and
//! not the program's.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use laggard_callpath::CallSite;

use super::group::meeting;
use crate::call::Call;
use crate::classes::Operation;
use crate::classes::environment::{Abort, Init};
use crate::exports::real;
use crate::groups::Pes;
use crate::run;
use crate::symmetric;
use crate::thread::{STATE, state};

/// shmem_init, shmem_init_thread and start_pes.
pub struct PeInit;

/// shmem_init, shmem_init_thread and start_pes.
pub fn init() -> PeInit {
    PeInit
}

impl Operation for PeInit {
    fn begin(&self, site: CallSite, number: u16) -> Option<Call> {
        match STATE.load(Ordering::Relaxed) {
            state::IDLE => Some(Call::outside(site, number)),
            _ => Call::begin(site, number),
        }
    }

    fn before(&mut self, call: &mut Call) {
        if call.is_outside() {
            Init.before(call);
        }
    }

    fn after(&mut self, call: &mut Call) {
        symmetric::find_data();
        if call.is_outside() {
            let mut initialized = 0;
            // SAFETY: may be called at any time.
            unsafe { real::MPI_Initialized(&mut initialized) };
            call.result = i32::from(initialized == 0);
            Init.after(call);
        } else {
            // MPI has begun before: the job has one beginning.
            meeting(Pes::All, 0, 0).after(call);
        }
        run::end_at_exit();
    }
}

/// shmem_global_exit.
pub fn global_exit(status: c_int) -> Abort {
    Abort::new(status)
}
