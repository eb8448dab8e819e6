//! Threads of a rank that wait for each other: in OpenMP teams, for locks, and for signals.
//!
//! *In.* The calls of all threads of a rank, in order of their enters. *Out.* Wait states, charged
//! to the threads that came late, and what the OpenMP runtime takes to begin and end regions. All threads of a rank are at one agent: nothing is asked. *Does
//! not know* other ranks.

mod locks;
pub mod meetings;
mod teams;

use laggard_patterns::PatternId;

use crate::collectives::late::{self, Shares};
use crate::stream::call::CallAt;
use crate::stream::recorded::Recorded;
use crate::stream::roles::Among;
use crate::stream::rows::Row;
use crate::waits::charging::{Charged, Hosts, Loss, Waiting, Whom};
use crate::wire::parcels::{Detail, Party};
use locks::Locks;
use teams::Teams;

/// A call whose late threads are known.
#[derive(Debug)]
struct Settled {
    call: CallAt,
    /// Of the wait for these.
    pattern: PatternId,
    /// The threads that came later, by enter, and when the first of all came, ns.
    late: Vec<Party>,
    since: i64,
    /// What the runtime took at the end of the call, when all threads were there, ns.
    managed: i64,
    /// Whether it waited for one after the other; else for all at once, until the last one came.
    is_in_turn: bool,
}

/// The shares of threads that a wait was for one after the other, until each came, ns.
fn in_turn(late: &[Party], from: i64) -> Shares {
    let mut since = from;
    let shares = late.iter().map(|party| {
        let share = (party.enter - since).max(0);
        since = since.max(party.enter);
        (share, *party)
    });
    shares.filter(|(share, _)| *share > 0).collect()
}

/// The waits among the threads of a rank.
#[derive(Debug, Default)]
pub struct Threads {
    teams: Teams,
    locks: Locks,
    settled: Vec<Settled>,
}

impl Threads {
    /// Takes a call with a role; its record tells the `key` of what it waits for, and the `size` of
    /// its team.
    pub fn take(&mut self, own: &Recorded<'_>, call: &CallAt, row: &Row, (key, size): (u64, u32)) {
        let settled = &mut self.settled;
        let party = own.party(call);
        match row.among {
            Among::Forks => {
                self.teams.fork(&party, key, settled);
                settled.extend(call.asks.then(|| Settled {
                    call: *call,
                    pattern: PatternId::OmpManagement,
                    late: Vec::new(),
                    since: call.enter,
                    managed: call.leave - call.enter,
                    is_in_turn: false,
                }));
            }
            Among::Idles => self.teams.idle(call, key),
            Among::Meets => self.teams.meet((own, call), (key, size), row, settled),
            // A wait that timed out was for nobody.
            Among::Awaits if size != 0 => {}
            Among::Locks | Among::Awaits => self.locks.wait(call, row, key),
            Among::Unlocks | Among::Signals => self.locks.give_back((&party, call), key),
            Among::Nothing => {}
        }
    }

    /// The rank enters its shut-down.
    pub fn finish(&mut self, own: &Recorded<'_>, call: &CallAt) {
        // Threads that idle until then name no team.
        self.teams.fork(&own.party(call), 0, &mut self.settled);
    }

    /// Charges the waits that are over: all calls entered before `until` are known, ns. Late threads share the blame if `shares`; else the last one
    /// has it all.
    pub fn charge(
        &mut self,
        recorded: &Recorded<'_>,
        charged: &mut [Charged],
        (hosts, shares, until): (Hosts<'_>, bool, i64),
    ) {
        self.locks.settle(until, &mut self.settled);
        self.teams.forget(until);
        for settled in self.settled.drain(..) {
            let call = &settled.call;
            let waiting = Waiting {
                rank: recorded.rank,
                thread: call.thread,
                enter: call.enter,
                since: call.enter,
                leave: call.leave,
                signature: call.signature,
            };
            let own = &mut charged[call.thread as usize];
            let managed = Loss::sure(PatternId::OmpManagement, settled.managed, None);
            own.charge(hosts, waiting, managed);
            let Some(last) = settled.late.last() else {
                // Only waits have records, so this is no cost. Who waits for tasks executes some of them.
                if settled.is_in_turn && settled.pattern != PatternId::WaitForTasks {
                    let unknown = Loss::unexplained(call.leave - call.enter);
                    own.charge(hosts, waiting, unknown);
                }
                continue;
            };
            let until = last.enter.min(call.leave);
            let complete = match settled.is_in_turn {
                true => call.leave,
                false => last.enter,
            };
            let parts = match shares {
                _ if settled.is_in_turn => in_turn(&settled.late, call.enter),
                true => late::shares(&settled.late, call.enter, until),
                false => [(until - call.enter, *last)].into_iter().collect(),
            };
            let detail = |(share, party): &(i64, Party)| {
                let detail = recorded.before_entry(party, settled.since, complete);
                (*share, detail.unwrap_or_default())
            };
            let parts: Vec<(i64, Detail)> = parts.iter().map(detail).collect();
            let loss = Loss {
                pattern: settled.pattern,
                severity: until - call.enter,
                doubt: 0,
                whom: match &parts[..] {
                    [(_, one)] => Whom::One(one),
                    several => Whom::Several(several),
                },
                left: i64::MAX,
                group: 0,
                looked: None,
            };
            own.charge(hosts, waiting, loss);
        }
    }
}
