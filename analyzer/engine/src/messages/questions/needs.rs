//! Partners whose progress a call may have needed, after all had come.

use laggard_patterns::Interval;
use laggard_patterns::progress::REST_NS;

use super::{Asker, Meeting, Query};
use crate::basics::ends::NONE;
use crate::messages::channel::ChannelKey;
use crate::messages::charges::Waiter;
use crate::messages::ends::Messages;
use crate::wire::parcels::{Fold, Need, SEND};

/// Largest non-blocking collective whose members are asked where they were: each waiting member
/// asks all.
const MOST_MEMBERS: u32 = 256;

impl Messages {
    /// Sends the needs of this round's calls to the agents of the partners. A call that ended soon
    /// after the last party came needed no progress.
    pub fn take_needs(&mut self, mut tell: impl FnMut(u32, Need)) {
        let mut needs = std::mem::take(&mut self.asker.needs);
        for (agent, need) in needs.drain(..) {
            let rest = need.leave - self.asker.calls.charged_at_least(need.call);
            if need.peer != NONE && rest < REST_NS {
                self.asker.calls.answer(need.call, 1, None);
            } else {
                self.asker.requests += 1;
                tell(agent, need);
            }
        }
        self.asker.needs = needs;
    }
}

impl Asker {
    /// Notes that a call may have needed the progress of its partner, whose part began at `time`,
    /// if it went on for long enough.
    pub(super) fn note_need(
        &mut self,
        query: &Query,
        key: ChannelKey,
        time: i64,
        interval: Interval,
        at: &Meeting,
    ) {
        let from = time.max(interval.enter);
        let is_own = key.1 == at.rank as i32;
        // A program that looks is not held up in a call.
        let looks = self.calls.found_at(query.call).is_some();
        if is_own || looks || query.is_bare() || interval.leave.saturating_sub(from) < REST_NS {
            return;
        }
        self.calls.hold(query.call);
        let need = Need {
            call: query.call,
            rank: at.rank,
            peer: key.1 as u32,
            channel: at.channel,
            side: query.side(),
            n: query.n,
            group: key.0,
            from,
            leave: interval.leave,
        };
        self.needs.push((at.agent, need));
    }

    /// Notes that calls that completed non-blocking collectives may have needed the progress of
    /// other members, after all had begun. All agents are asked, and each member answers. `outcome`
    /// gives the group and the outcome of a collective, once known.
    pub(crate) fn need_members<'f>(
        &mut self,
        (rank, agents): (u32, usize),
        outcome: impl Fn(&Waiter) -> Option<(u64, &'f Fold)>,
    ) {
        let waiters = self.waiters.iter().filter(|waiter| waiter.call != NONE);
        for waiter in waiters {
            let Some((group, fold)) = outcome(waiter) else {
                continue;
            };
            let from = fold.complete.max(waiter.enter);
            let is_long = waiter.leave.saturating_sub(from) >= REST_NS;
            let looks = self.calls.found_at(waiter.call).is_some();
            if !is_long || looks || !(2..=MOST_MEMBERS).contains(&fold.count) {
                continue;
            }
            (1..fold.count).for_each(|_| self.calls.hold(waiter.call));
            let need = Need {
                call: waiter.call,
                rank,
                peer: NONE,
                channel: NONE,
                side: SEND,
                n: waiter.n,
                group,
                from,
                leave: waiter.leave,
            };
            self.needs
                .extend((0..agents as u32).map(|agent| (agent, need)));
        }
    }
}
