//! Threads of a rank that wait for each other: OpenMP teams.
//!
//! *In.* The calls of all threads of a rank, in order of their enters. *Out.* Wait states, charged
//! to the threads that came late. All threads of a rank are at one agent: nothing is asked. *Does
//! not know* other ranks.

mod teams;

use laggard_patterns::PatternId;

use crate::collectives::late;
use crate::stream::call::CallAt;
use crate::stream::recorded::Recorded;
use crate::stream::roles::Among;
use crate::stream::rows::Row;
use crate::waits::charging::{Charged, Hosts, Loss, Waiting, Whom};
use crate::wire::parcels::{Detail, Party};
use teams::Teams;

/// A wait whose late threads are known.
#[derive(Debug)]
struct Settled {
    call: CallAt,
    pattern: PatternId,
    /// The threads that came later, by enter, and when the first of all came, ns.
    late: Vec<Party>,
    since: i64,
}

/// The waits among the threads of a rank.
#[derive(Debug, Default)]
pub struct Threads {
    teams: Teams,
    settled: Vec<Settled>,
}

impl Threads {
    /// Takes a call with a role; its record tells the `key` of what it waits for, and the `size` of
    /// its team.
    pub fn take(&mut self, rank: u32, call: &CallAt, row: &Row, (key, size): (u64, u32)) {
        let settled = &mut self.settled;
        match row.among {
            Among::Forks => self.teams.fork((rank, call), key, settled),
            Among::Idles => self.teams.idle(call, key),
            Among::Meets => self.teams.meet((rank, call), (key, size), row, settled),
            Among::Locks | Among::Unlocks | Among::Nothing => {}
        }
    }

    /// The rank enters its shut-down.
    pub fn finish(&mut self, rank: u32, call: &CallAt) {
        // Threads that idle until then name no team.
        self.teams.fork((rank, call), 0, &mut self.settled);
    }

    /// Charges the waits of this slab. Late threads share the blame if `shares`; else the last one
    /// has it all.
    pub fn charge(
        &mut self,
        recorded: &Recorded<'_>,
        charged: &mut [Charged],
        (hosts, shares): (Hosts<'_>, bool),
    ) {
        for settled in self.settled.drain(..) {
            let call = &settled.call;
            let Some(last) = settled.late.last() else {
                continue;
            };
            let complete = last.enter;
            let until = complete.min(call.leave);
            let parts = match shares {
                true => late::shares(&settled.late, call.enter, until),
                false => [(until - call.enter, *last)].into_iter().collect(),
            };
            let detail = |(share, party): &(i64, Party)| {
                let detail = recorded.before_entry(party, settled.since, complete);
                (*share, detail)
            };
            let parts: Vec<(i64, Detail)> = parts.iter().map(detail).collect();
            let waiting = Waiting {
                rank: recorded.rank,
                thread: call.thread,
                enter: call.enter,
                since: call.enter,
                leave: call.leave,
                signature: call.signature,
            };
            let loss = Loss {
                pattern: settled.pattern,
                severity: until - call.enter,
                doubt: 0,
                whom: match &parts[..] {
                    [(_, one)] => Whom::One(one),
                    several => Whom::Several(several),
                },
                left: i64::MAX,
            };
            charged[call.thread as usize].charge(hosts, waiting, loss);
        }
    }
}
