//! Start and end of OpenSHMEM.
//!
//! Open MPI's OpenSHMEM starts MPI below itself if it is not running, and finalises it. So the
//! clocks are compared by messages here as well, and recording ends with the first of the two
//! to be finalised. The library's own MPI calls are nested in these calls and do not count as
//! the program's.
//!
//! The trace takes PE numbers for ranks. Where they differ, OpenSHMEM calls are not recorded.

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
            // MPI has already started: the job starts only once.
            meeting(Pes::All, 0, 0).after(call);
        } else {
            return;
        }
        run::end_at_exit();
    }
}

/// PE numbers differ from MPI ranks.
static ARE_OTHERS: AtomicBool = AtomicBool::new(false);

/// Whether OpenSHMEM calls go unrecorded because PE numbers differ from ranks: their PEs would
/// be taken for ranks.
#[inline(always)]
pub fn pes_are_others() -> bool {
    ARE_OTHERS.load(Ordering::Relaxed)
}

/// Whether this PE's number equals this rank, and both numbers of processes are equal. An
/// OpenSHMEM that does not use the program's MPI may number processes differently, or run on
/// fewer of them.
fn pes_are_ranks(call: &mut Call) -> bool {
    let Some(settings) = run::settings() else {
        return true;
    };
    let number = |name: &CStr| {
        let function = resolve::symbol(name);
        // SAFETY: OpenSHMEM's function of this name, called after OpenSHMEM has started.
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
