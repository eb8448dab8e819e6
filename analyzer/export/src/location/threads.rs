//! Waits among threads: regions and events as Score-P writes them for OpenMP.

use anyhow::Result;
use laggard_otf2::definitions::{PARADIGM_OPENMP, PARADIGM_PTHREAD, UNDEFINED};
use laggard_otf2::events::Event;
use laggard_trace::calls::number;
use laggard_trace::{Event as Recorded, Signature};

use super::{State, Writer};
use crate::teams;

/// A parallel region that the thread is in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Within {
    /// Number of regions up to it.
    pub floor: usize,
    /// Its team.
    pub comm: u32,
}

/// The paradigm of calls for locks that have events in OTF2; `None` for others. The events tell which lock it is.
pub(super) fn paradigm_of_lock(call: u16) -> Option<u8> {
    match call {
        number::omp_critical
        | number::omp_critical_end
        | number::omp_set_lock
        | number::omp_unset_lock
        | number::omp_set_nest_lock
        | number::omp_unset_nest_lock => Some(PARADIGM_OPENMP),
        number::pthread_mutex_lock
        | number::pthread_mutex_unlock
        | number::mtx_lock
        | number::mtx_unlock => Some(PARADIGM_PTHREAD),
        _ => None,
    }
}

impl Writer<'_> {
    /// Events at the begin of a call among threads.
    pub(super) fn begin_threads(&mut self, signature: &Signature, time: u64) -> Result<()> {
        if signature.operation != number::omp_parallel {
            return Ok(());
        }
        let threads = signature.parameter as u32;
        self.put(time, &Event::Fork(PARADIGM_OPENMP, threads))
    }

    /// Events at the end of a call among threads, before it is left.
    pub(super) fn finish_threads(
        &mut self,
        signature: &Signature,
        event: &Recorded,
        time: u64,
    ) -> Result<()> {
        let Some(paradigm) = paradigm_of_lock(signature.operation) else {
            return Ok(());
        };
        let rank = self.traced.location.header.rank;
        let lock = self.teams.lock(rank, event.value.unwrap_or(0));
        // Only waits have records: nobody knows how often it was taken.
        let event = match signature.operation {
            number::omp_critical
            | number::omp_set_lock
            | number::omp_set_nest_lock
            | number::pthread_mutex_lock
            | number::mtx_lock => Event::Acquire(paradigm, lock, UNDEFINED),
            _ => Event::Release(paradigm, lock, UNDEFINED),
        };
        self.put(time, &event)
    }

    /// After a call among threads: a parallel region begins, or is over.
    pub(super) fn after_threads(
        &mut self,
        state: &mut State,
        signature: &Signature,
        event: &Recorded,
        time: u64,
    ) -> Result<()> {
        match signature.operation {
            number::omp_parallel | number::omp_idle => {
                if let Some(team) = teams::begun(event, signature) {
                    let rank = self.traced.location.header.rank;
                    let comm = self.teams.comm(rank, team);
                    let region = self.names.parallel();
                    self.put(time, &Event::TeamBegin(comm))?;
                    // Calling contexts of the calls in it do not have it.
                    if !self.has_contexts {
                        self.put(time, &Event::Enter(region))?;
                        state.stack.push(region);
                    }
                    let floor = state.stack.len();
                    state.within.push(Within { floor, comm });
                }
            }
            number::omp_parallel_end => {
                let forked = (signature.parameter as u64) >> 32 == 0;
                self.leave_team(state, time)?;
                if forked {
                    self.put(time, &Event::Join(PARADIGM_OPENMP))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Leaves the innermost parallel region.
    pub(super) fn leave_team(&mut self, state: &mut State, time: u64) -> Result<()> {
        let Some(within) = state.within.pop() else {
            return Ok(());
        };
        while state.stack.len() >= within.floor
            && let Some(region) = state.stack.pop()
        {
            self.put(time, &Event::Leave(region))?;
        }
        self.put(time, &Event::TeamEnd(within.comm))
    }
}
