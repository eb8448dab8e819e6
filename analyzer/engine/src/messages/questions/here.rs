//! Questions about ranks of this agent, answered at once.

use laggard_patterns::Interval;
use laggard_patterns::progress::REST_NS;

use super::{Asker, Meeting, Query, cost};
use crate::basics::ends::{End, NONE};
use crate::messages::channel::{Channel, Channels, POSTED};
use crate::messages::charges::Late;
use crate::messages::ends::Messages;
use crate::wire::parcels::{Detail, POST, SEND, Side};

/// The ranks of this agent, for look-ups of the other ends of messages.
pub trait Peers {
    /// The end of a message on a channel on which a peer answers, if it happened already.
    fn end(&self, peer: u32, channel: u32, side: Side, n: u64) -> Option<&End>;
    /// The late call of this end, and its rank's activity, see [`Recorded::late`].
    ///
    /// [`Recorded::late`]: crate::stream::recorded::Recorded::late
    fn late(&self, peer: u32, end: &End, since: i64, by: Option<i64>) -> Detail;
    /// Whether a peer's part may have been incomplete when the call of this end returned.
    fn may_be_needed(&self, peer: u32, end: &End, is_post: bool) -> bool;
}

/// The latest party of a call so far.
#[derive(Clone, Copy)]
struct Worst<'r> {
    query: &'r Query,
    /// The asking rank's channel.
    channel: &'r Channel,
    end: &'r End,
}

impl Query {
    /// The asking rank's channel, one of `channels`, and the other end of the message if it
    /// happened already.
    #[inline(always)]
    fn other_end<'r>(
        &self,
        channels: &'r Channels,
        ranks: &'r (impl Peers + ?Sized),
    ) -> Option<(&'r Channel, &'r End)> {
        let channel = &channels.list[self.channel() as usize];
        let end = ranks.end(channel.peer, channel.declared, self.side(), self.n)?;
        Some((channel, end))
    }
}

impl Asker {
    /// Looks up the queries of the rank `own` among the `ranks` of this agent.
    pub fn look_up(&mut self, own: &Messages, ranks: &(impl Peers + ?Sized)) {
        let waiting = std::mem::take(&mut self.waiting);
        self.look_up_all(&waiting, own, ranks);
        let queries = std::mem::take(&mut self.queries);
        self.look_up_all(&queries, own, ranks);
        // Other ranks reuse this much room. Some spare room, or half of the slabs would have to
        // move theirs.
        self.last_queries = queries.len() + queries.len() / 16;
    }

    fn look_up_all(&mut self, queries: &[Query], own: &Messages, ranks: &(impl Peers + ?Sized)) {
        let mut rest = queries;
        while let Some(&Query { call, .. }) = rest.first() {
            let interval = self.calls.interval(call);
            let (mut answered, mut posts, mut latest) = (0, 0, interval.enter);
            let (mut worst, mut count): (Option<Worst>, _) = (None, 0);
            for query in rest.iter().take_while(|query| query.call == call) {
                count += 1;
                if query.side() != SEND {
                    posts += 1;
                    continue;
                }
                let Some((channel, end)) = query.other_end(&own.receives, ranks) else {
                    self.waiting.push(*query);
                    continue;
                };
                answered += 1;
                if !self.note_sender(query, channel.key, end.time, interval) {
                    continue;
                }
                let found = Worst::new(query, channel, end);
                if end.time > latest {
                    (latest, worst) = (end.time, Some(found));
                } else if end.time == latest {
                    found.replace_if_first(&mut worst);
                }
            }
            let queries;
            (queries, rest) = rest.split_at(count);
            if call == NONE {
                continue;
            }
            if interval.leave - latest >= REST_NS {
                self.need(queries, interval, own, ranks);
            }
            if worst.is_some_and(|_| interval.leave <= interval.enter) {
                // It did not wait, whenever the message was sent.
                worst = None;
            }
            if posts > 0 && (worst.is_some() || self.calls.has_sender(call)) {
                // A call that waited for a sender is not charged with a receiver.
                answered += posts;
            } else if posts > 0 {
                let (posted, late) = self.look_up_posts(queries, interval, own, ranks);
                (answered, worst) = (answered + posted, late);
            }
            match worst {
                Some(worst) => self.charge(call, answered, interval, &worst, ranks),
                None => {
                    self.calls.answer(call, answered, None);
                }
            }
        }
    }

    /// Asks where partners at this agent were during the call in this `interval`, if their parts
    /// may have been incomplete when they left their calls.
    #[cold]
    #[inline(never)]
    fn need(
        &mut self,
        queries: &[Query],
        interval: Interval,
        own: &Messages,
        ranks: &(impl Peers + ?Sized),
    ) {
        for query in queries.iter().filter(|query| !query.is_bare()) {
            let channels = match query.side() {
                SEND => &own.receives,
                _ => &own.sends,
            };
            let Some((channel, end)) = query.other_end(channels, ranks) else {
                continue;
            };
            if ranks.may_be_needed(channel.peer, end, channel.key.2 == POSTED) {
                let at = Meeting {
                    rank: self.rank,
                    agent: self.agent,
                    channel: NONE,
                };
                self.note_need(query, channel.key, end.time, interval, &at);
            }
        }
    }

    /// Looks up the posts of receives that a call in this `interval` waited for: returns their
    /// number, and the worst one.
    #[inline(never)]
    fn look_up_posts<'r>(
        &mut self,
        queries: &'r [Query],
        interval: Interval,
        own: &'r Messages,
        ranks: &'r (impl Peers + ?Sized),
    ) -> (u32, Option<Worst<'r>>) {
        let (mut answered, mut latest, mut worst) = (0, interval.enter, None);
        for query in queries.iter().filter(|query| query.side() == POST) {
            let Some((channel, end)) = query.other_end(&own.sends, ranks) else {
                self.waiting.push(*query);
                continue;
            };
            answered += 1;
            let found = Worst::new(query, channel, end);
            if end.time > latest && end.time < interval.leave {
                (latest, worst) = (end.time, Some(found));
            } else if end.time == latest {
                found.replace_if_first(&mut worst);
            }
        }
        (answered, worst)
    }

    /// Answers `count` questions of a call with a late party, one of `ranks`.
    #[inline(never)]
    fn charge(
        &mut self,
        call: u32,
        answered: u32,
        interval: Interval,
        worst: &Worst,
        ranks: &(impl Peers + ?Sized),
    ) {
        let (side, by) = (worst.query.side(), self.calls.found_at(call));
        let late = Late {
            severity: cost(side, interval, worst.end.time),
            message: worst.query.message,
            n: worst.query.n,
            source: worst.channel.key.1,
            tag: worst.channel.key.2,
            detail: Late::at(worst.end.time),
        };
        let kept = self.calls.answer(call, answered, Some((side, late)));
        if let Some(late) = kept {
            let detail = worst.describe(interval.enter, by, ranks);
            self.calls.describe(late, &detail);
        }
    }
}

impl<'r> Worst<'r> {
    #[inline]
    fn new(query: &'r Query, channel: &'r Channel, end: &'r End) -> Self {
        Worst {
            query,
            channel,
            end,
        }
    }

    /// Breaks a tie, as [`Late::outranks_sender`] and [`Late::outranks_receiver`].
    #[inline(never)]
    fn replace_if_first(self, worst: &mut Option<Self>) {
        let is_before = |worst: &Worst| match self.query.side() {
            SEND => self.query.message < worst.query.message,
            _ => {
                let key = |w: &Worst| (w.channel.key.1, w.channel.key.2, w.query.n);
                key(&self) < key(worst)
            }
        };
        if worst.as_ref().is_some_and(is_before) {
            *worst = Some(self);
        }
    }

    /// Activity of the late party, one of `ranks`, since the call's `enter`.
    fn describe(&self, enter: i64, by: Option<i64>, ranks: &(impl Peers + ?Sized)) -> Detail {
        let since = if self.query.is_bare() {
            self.end.time
        } else {
            enter
        };
        ranks.late(self.channel.peer, self.end, since, by)
    }
}
