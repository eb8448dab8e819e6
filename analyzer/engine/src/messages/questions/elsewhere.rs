//! Questions about ranks of other agents: first only when something happened is asked for, then, of
//! those who were late, what they did.

use super::{Asker, Candidate, Meeting, Query, cost};
use crate::basics::ends::NONE;
use crate::messages::channel::{COMPLETED, ChannelKey, TRANSFERRED};
use crate::messages::charges::Late;
use crate::messages::ends::Messages;
use crate::wire::parcels::{POST, Request, SEND, Side};

/// When the other ends of successive messages happened, as another agent says.
#[derive(Clone, Copy, Debug)]
pub struct Times<'a> {
    /// What was asked about.
    pub side: Side,
    /// The asking rank's channel.
    pub channel: u32,
    /// Number of the first message.
    pub n: u64,
    /// ns.
    pub times: &'a [i64],
}

impl Messages {
    /// Takes another agent's answers in.
    pub fn take_times(&mut self, reply: &Times) {
        let (channels, asker) = match reply.side {
            SEND => (&mut self.receives, &mut self.asker),
            _ => (&mut self.sends, &mut self.asker),
        };
        let channel = &mut channels.list[reply.channel as usize];
        let at = Meeting {
            rank: asker.rank,
            agent: channel.agent,
            channel: channel.declared,
        };
        // Mostly in the order in which it was asked.
        let asked = (reply.n..).zip(reply.times).zip(channel.asked.iter());
        let in_order = asked.take_while(|((n, _), query)| query.n == *n);
        let mut taken = 0;
        for ((_, &time), query) in in_order {
            asker.take_time(query, channel.key, time, &at);
            taken += 1;
        }
        channel.asked.drop_first(taken);
        for (n, &time) in (reply.n..).zip(reply.times).skip(taken) {
            if let Some(query) = channel.take_asked(n) {
                asker.take_time(&query, channel.key, time, &at);
            }
        }
    }

    /// The late parties at other agents that calls are charged with, as far as is known:
    /// the agent, what is requested of it, and for whom, see [`Calls::describe`].
    pub fn take_candidates(&mut self, mut request: impl FnMut(u32, Request, u32)) {
        let mut candidates = std::mem::take(&mut self.asker.candidates);
        for candidate in candidates.drain(..) {
            let calls = &self.asker.calls;
            let Candidate {
                call, late, side, ..
            } = candidate;
            let channel = &self.asks_on(side).list[candidate.channel as usize];
            let message = (channel.key.1, channel.key.2, candidate.n);
            // Another one may have turned out to be later.
            if !calls.is_charged_with(call, late, message, side == POST) {
                continue;
            }
            request(
                channel.agent,
                Request {
                    channel: channel.declared,
                    n: candidate.n,
                    window: candidate.window,
                },
                late,
            );
        }
        self.asker.candidates = candidates;
    }
}

impl Asker {
    /// Takes in when the other end of a message at another agent happened.
    #[inline]
    fn take_time(&mut self, query: &Query, key: ChannelKey, time: i64, at: &Meeting) {
        let (call, side) = (query.call, query.side());
        let interval = self.calls.interval(call);
        let is_awaited = match side {
            SEND => self.note_sender(query, key, time, interval),
            // A call that waited for a sender is not charged with a receiver.
            _ => !self.calls.has_sender(call),
        };
        if call == NONE {
            return;
        }
        let severity = match is_awaited {
            true => cost(side, interval, time),
            false => 0,
        };
        // Of origins that ended their epochs nothing more is needed.
        if key.2 != COMPLETED && key.2 != TRANSFERRED {
            self.note_need(query, key, time, interval, at);
        }
        let late = (severity > 0).then_some(Late {
            severity,
            message: query.message,
            n: query.n,
            source: key.1,
            tag: key.2,
            detail: Late::at(time),
        });
        let kept = self.calls.answer(call, 1, late.map(|late| (side, late)));
        if let Some(late) = kept {
            self.candidates.push(Candidate {
                call,
                late,
                n: query.n,
                channel: query.channel(),
                side,
                window: if query.is_bare() {
                    0
                } else {
                    time.saturating_sub(interval.enter)
                },
            });
        }
    }
}
