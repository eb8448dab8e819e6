//! Start and end of MPI, and calls that only manage handles.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use laggard_callpath::CallSite;
use laggard_trace::{PEER_ANY, Subject, WORLD, flags};

use super::Operation;
use crate::call::Call;
use crate::clock;
use crate::constants::{Handle, constants};
use crate::exports::real;
use crate::ffi::{MPI_Comm, MPI_Datatype};
use crate::groups::{self, NO_ROOT};
use crate::presence;
use crate::run;
use crate::signature::Half;
use crate::stream::Stream;
use crate::thread::{STATE, state};
use crate::types;

/// MPI_Init and MPI_Init_thread.
pub struct Init;

/// MPI_Init.
pub fn init() -> Init {
    Init
}

/// MPI_Init_thread.
pub fn init_thread(_provided: *mut c_int) -> Init {
    Init
}

impl Operation for Init {
    fn begin(&self, site: CallSite, number: u16) -> Option<Call> {
        let idle = STATE.load(Ordering::Relaxed) == state::IDLE;
        idle.then(|| Call::outside(site, number))
    }

    fn before(&mut self, _call: &mut Call) {
        clock::choose();
        presence::set_starting(true);
    }

    fn after(&mut self, call: &mut Call) {
        presence::set_starting(false);
        if !call.succeeded() {
            return;
        }
        let mut level = 0;
        // SAFETY: MPI is initialised.
        unsafe { real::MPI_Query_thread(&mut level) };
        if !run::start(call, level) {
            return;
        }
        record_on_world(call);
    }
}

/// Records a call in which all processes of the job take part.
fn record_on_world(call: &mut Call) {
    let mut raw = call.raw();
    if call.succeeded() {
        raw.group = groups::communicator(constants().comm_world);
        raw.send = Half::of(NO_ROOT);
        raw.flags |= flags::COLLECTIVE;
    }
    call.record(&raw);
}

/// The subject of a call in which all processes of the job take part.
fn on_world() -> Subject {
    Subject {
        group: WORLD,
        peer: PEER_ANY,
        ..Subject::NONE
    }
}

pub struct Finalize {
    enter: u64,
}

/// MPI_Finalize.
pub fn finalize() -> Finalize {
    Finalize { enter: 0 }
}

impl Operation for Finalize {
    /// Runs even if recording has ended: the other ranks wait for this one.
    fn begin(&self, site: CallSite, number: u16) -> Option<Call> {
        Call::begin(site, number).or_else(|| run::is_awaited().then(|| Call::outside(site, number)))
    }

    fn before(&mut self, call: &mut Call) {
        // The time of the clock measurement counts as part of the call.
        call.enter(|_| on_world());
        self.enter = call.enter;
        run::before_finalize(call);
    }

    fn subject(&self, _stream: &mut Stream) -> Subject {
        on_world()
    }

    fn after(&mut self, call: &mut Call) {
        if call.is_outside() {
            return;
        }
        call.enter = self.enter;
        let world = groups::known(groups::Kind::Intra, constants().comm_world.bits());
        let mut raw = call.raw();
        if let (true, Some(world)) = (call.succeeded(), world) {
            raw.group = world;
            raw.send = Half::of(NO_ROOT);
            raw.flags |= flags::COLLECTIVE;
        }
        call.record(&raw);
        run::finish(0);
    }
}

pub struct Abort(c_int);

pub fn abort(_comm: MPI_Comm, code: c_int) -> Abort {
    Abort(code)
}

impl Abort {
    /// The end of the whole job with exit code `code`.
    pub fn new(code: c_int) -> Self {
        Abort(code)
    }
}

impl Operation for Abort {
    fn before(&mut self, call: &mut Call) {
        // The call does not return.
        call.enter(|_| Subject::NONE);
        call.leave = call.enter;
        if call.claim() {
            call.guarded(|call| {
                let mut raw = call.raw();
                raw.extra = self.0 as i64 as u64;
                call.record(&raw);
                run::finish(3);
            });
        }
    }

    fn after(&mut self, _call: &mut Call) {}
}

/// MPI_Pcontrol.
pub struct Pcontrol(c_int);

/// MPI_Pcontrol: 0 pauses the recording, 1 and 2 resume it, any other level begins a phase.
pub fn pcontrol(level: c_int) -> Pcontrol {
    Pcontrol(level)
}

impl Operation for Pcontrol {
    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        raw.extra = self.0 as i64 as u64;
        call.record(&raw);
        match self.0 {
            0 => run::set_paused(true),
            1 | 2 => run::set_paused(false),
            level => crate::regions::phase(call, format!("MPI_Pcontrol({level})").as_bytes()),
        }
    }
}

pub struct Setup;

/// A call that only manages handles.
pub fn setup() -> Setup {
    Setup
}

impl Operation for Setup {
    fn after(&mut self, call: &mut Call) {
        let raw = call.raw();
        call.record_unless_paused(&raw);
    }
}

/// Frees a datatype. Not recorded, but the size remembered for its handle must go.
pub struct TypeFree;

pub fn type_free(_datatype: *mut MPI_Datatype) -> TypeFree {
    TypeFree
}

impl Operation for TypeFree {
    fn before(&mut self, _call: &mut Call) {
        types::released();
    }

    fn after(&mut self, _call: &mut Call) {}
}
