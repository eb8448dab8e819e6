//! Which threads of a rank met each other, at barriers and at the ends of regions.
//!
//! A rank may have several teams, one in another, and barriers for some of its threads. Only who came met the
//! others.

use std::sync::Arc;

use crate::roots::walk::Walker;
use crate::stream::call::CallAt;
use crate::threads::meetings::Meetings;

/// The threads that met, by number, ascending.
pub type Team = Arc<[u32]>;

/// The meetings of a rank's threads.
#[derive(Default)]
pub struct Teams {
    /// Those that are not complete.
    meetings: Meetings,
    /// The calls of a slab.
    calls: Vec<(CallAt, (u64, u32))>,
}

impl Teams {
    /// Tells the threads of a rank whom they met in the calls that were read, of which all entered before
    /// `until` are known, ns.
    pub fn meet(&mut self, threads: &mut [Walker<'_>], until: i64) {
        for (position, thread) in threads.iter().enumerate() {
            self.calls.extend(thread.meetings(position));
        }
        self.calls.sort_by_key(|(call, _)| call.enter);
        for (call, meeting) in self.calls.drain(..) {
            let Some(here) = self.meetings.come(&call, meeting) else {
                continue;
            };
            let numbers = here.iter().map(|call| threads[call.thread as usize].name.1);
            let mut numbers: Vec<u32> = numbers.collect();
            numbers.sort_unstable();
            let team = Team::from(numbers);
            for call in here {
                threads[call.thread as usize].met(call.number, team.clone());
            }
        }
        self.meetings.forget(until);
    }
}
