//! Questions about ranks of other agents. The first answers are only times; then the late parties
//! are described.

use super::{Asker, Candidate, Meeting, Query, cost};
use crate::basics::ends::NONE;
use crate::messages::channel::{COMPLETED, ChannelKey, TRANSFERRED};
use crate::messages::charges::Late;
use crate::messages::ends::Messages;
use crate::wire::parcels::{POST, Request, SEND, Side};

/// Answer of another agent: times of the other ends of successive messages.
#[derive(Clone, Copy, Debug)]
pub struct Times<'a> {
    /// The side asked about.
    pub side: Side,
    /// The asking rank's channel.
    pub channel: u32,
    /// Number of the first message.
    pub n: u64,
    /// ns.
    pub times: &'a [i64],
}

impl Messages {
    /// Takes another agent's answers.
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
        // Answers mostly arrive in the order of the questions.
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

    /// The late parties at other agents with which calls are charged so far: the agent, the
    /// request, and the late party's number, see [`Calls::describe`].
    pub fn take_candidates(&mut self, mut request: impl FnMut(u32, Request, u32)) {
        let mut candidates = std::mem::take(&mut self.asker.candidates);
        for candidate in candidates.drain(..) {
            let calls = &self.asker.calls;
            let by = calls.found_at(candidate.call).unwrap_or(0);
            let Candidate {
                call, late, side, ..
            } = candidate;
            let channel = &self.asks_on(side).list[candidate.channel as usize];
            let message = (channel.key.1, channel.key.2, candidate.n);
            // A later party may have replaced it.
            if !calls.is_charged_with(call, late, message, side == POST) {
                continue;
            }
            request(
                channel.agent,
                Request {
                    channel: channel.declared,
                    n: candidate.n,
                    window: candidate.window,
                    by,
                },
                late,
            );
        }
        self.asker.candidates = candidates;
    }
}

impl Asker {
    /// Takes the time of the other end of a message at another agent.
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
        // Origins that ended their epochs have done their part.
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
