//! Beginning and end of OpenSHMEM.
//!
//! Open MPI's OpenSHMEM starts MPI below itself, where that has not been started, and ends it.
//! So the clocks are compared by messages here as well, and recording ends with whichever of
//! the two is finalised first. What the library calls for itself is nested in these calls and
//! not the program's.
//!
//! PEs are taken for the ranks with their numbers. Where they are not, calls of OpenSHMEM are not
//! recorded.

use std::ffi::{CStr, c_int, c_void};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};

use laggard_callpath::CallSite;

use super::group::meeting;
use crate::call::Call;
use crate::classes::Operation;
use crate::classes::environment::{Abort, Init};
use crate::exports::real;
use crate::groups::Pes;
use crate::log;
use crate::resolve;
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
            if call.is_outside() || !pes_are_ranks(call) {
                return;
            }
        } else if pes_are_ranks(call) {
            // MPI has begun before: the job has one beginning.
            meeting(Pes::All, 0, 0).after(call);
        } else {
            return;
        }
        run::end_at_exit();
    }
}

/// PEs are numbered otherwise than the ranks of MPI.
static ARE_OTHERS: AtomicBool = AtomicBool::new(false);

/// Whether calls of OpenSHMEM are not recorded, because PEs are numbered otherwise than ranks:
/// what they say of PEs would be taken for ranks.
#[inline(always)]
pub fn pes_are_others() -> bool {
    ARE_OTHERS.load(Ordering::Relaxed)
}

/// Whether this PE has the number of this rank, and there are as many of both: an OpenSHMEM
/// that does not stand on the program's MPI may number processes as it likes, or have some of
/// them only.
fn pes_are_ranks(call: &mut Call) -> bool {
    let Some(settings) = run::settings() else {
        return true;
    };
    let number = |name: &CStr| {
        let function = resolve::symbol(name);
        // SAFETY: the function with this name, when OpenSHMEM has begun.
        (!function.is_null()).then(|| unsafe {
            mem::transmute::<*mut c_void, extern "C-unwind" fn() -> c_int>(function)()
        })
    };
    let (Some(pe), Some(pes)) = (number(c"shmem_my_pe"), number(c"shmem_n_pes")) else {
        return true;
    };
    let header = &settings.header;
    if (pe as u32, pes as u32) == (header.rank, header.ranks) {
        return true;
    }
    ARE_OTHERS.store(true, Ordering::Relaxed);
    if pe == 0 {
        let ranks = header.ranks;
        log::warning!(
            "calls of OpenSHMEM are not recorded: its {pes} PEs are not numbered as the {ranks} ranks of MPI_COMM_WORLD"
        );
    }
    let pes = pes.to_string().into_bytes();
    call.stream().properties(&[("pes", pes)]);
    false
}

/// shmem_global_exit.
pub fn global_exit(status: c_int) -> Abort {
    Abort::new(status)
}
