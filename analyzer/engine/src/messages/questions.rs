//! Questions of a rank: which messages' other ends are asked for, and what comes back.
//!
//! Where the other end is at the same agent it is looked up, the others are asked for.

use laggard_patterns::progress::REST_NS;
use laggard_patterns::{Interval, two_sided};

use crate::basics::ends::{End, NONE};
use crate::basics::room::make_room;
use crate::clock::slacks::Slacks;
use crate::messages::channel::POSTED;
use crate::messages::channel::{COMPLETED, Channel, ChannelKey, Channels, TRANSFERRED};
use crate::messages::charges::{Calls, EPOCHS, Late, ORDER_WINDOW, Token, Waiter};
use crate::messages::ends::Messages;
use crate::messages::wildcard::Receipt;
use crate::stream::call::CallAt;
use crate::waits::charging::{Charged, Hosts};
use crate::wire::parcels::{Detail, Fold, Need, POST, Request, SEND, Side};

/// A question about a message's other end.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// Number of the message on the channel.
    pub n: u64,
    /// See [`Token::message`].
    message: u64,
    /// See [`Token::call`].
    call: u32,
    /// The asking rank's channel, the side, and whether it is bare, in one: there are many.
    place: u32,
}

impl Query {
    #[inline(always)]
    fn new(side: Side, channel: u32, n: u64, token: Token, is_bare: bool) -> Self {
        Query {
            n,
            message: token.message,
            call: token.call,
            place: channel << 2 | side << 1 | u32::from(is_bare),
        }
    }

    /// The asking rank's channel, one of these, and the other end of the message if that
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

    /// The asking rank's channel. Nobody has memory for 2^30 of them.
    #[inline]
    fn channel(&self) -> u32 {
        self.place >> 2
    }

    #[inline]
    fn side(&self) -> Side {
        self.place >> 1 & 1
    }

    /// About an epoch on a window, not a message.
    #[inline]
    fn is_epoch(&self) -> bool {
        self.message >= EPOCHS
    }

    /// Only the time is wanted, not what the late party did.
    #[inline]
    fn is_bare(&self) -> bool {
        self.place & 1 != 0
    }
}

/// The latest party of a call, as far as it is looked up.
#[derive(Clone, Copy)]
struct Worst<'r> {
    query: &'r Query,
    /// The asking rank's channel.
    channel: &'r Channel,
    end: &'r End,
}

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

/// A late party at another agent.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    /// The call that waited.
    call: u32,
    /// See [`Calls::answer`].
    late: u32,
    /// Number of the message on the channel.
    n: u64,
    /// The asking rank's channel.
    channel: u32,
    side: Side,
    /// See [`Request::window`].
    window: i64,
}

/// Members of a non-blocking collective that may be asked where they were, at most: each that
/// waits asks all.
const MOST_MEMBERS: u32 = 256;

/// The ranks of this agent, in which the other ends of messages are looked up.
pub trait Peers {
    /// The end of a message on a channel on which a peer answers, if it happened already.
    fn end(&self, peer: u32, channel: u32, side: Side, n: u64) -> Option<&End>;
    /// The late call of this end, and what its rank did before it and after `since`.
    fn late(&self, peer: u32, end: &End, since: i64) -> Detail;
    /// Whether a peer may not have done its part when the call of this end returned.
    fn may_be_needed(&self, peer: u32, end: &End, is_post: bool) -> bool;
}

/// Where a rank and its partner meet.
struct Meeting {
    /// World rank that asks.
    rank: u32,
    /// The agent that holds the partner.
    agent: u32,
    /// See [`Need::channel`].
    channel: u32,
}

/// What a rank asks, and what waits for the answers.
#[derive(Debug, Default)]
pub struct Asker {
    /// Calls that asked something.
    pub calls: Calls,
    /// Receives that are still looked at because of a late one before them.
    watch: u64,
    queries: Vec<Query>,
    /// How many these were in the last round.
    last_queries: usize,
    /// Queries about messages that did not happen yet.
    waiting: Vec<Query>,
    /// World rank.
    rank: u32,
    /// The agent that holds it.
    agent: u32,
    /// Channels asked about whose other end at this agent is not known yet.
    pub unconnected: Vec<(Side, u32)>,
    /// Channels with questions to other agents that are not sent yet.
    pub unsent: Vec<(Side, u32)>,
    /// Late parties of other agents that are to be described.
    candidates: Vec<Candidate>,
    /// Whose progress calls may have needed, with the agents that hold them: of this round.
    needs: Vec<(u32, Need)>,
    /// Members waiting for collectives of this or earlier slabs.
    pub waiters: Vec<Waiter>,
    /// By thread.
    pub charged: Vec<Charged>,
    /// Questions so far.
    pub requests: u64,
    /// Times from causes to effects, where clocks are to be corrected.
    pub slacks: Option<Box<Slacks>>,
}

impl Messages {
    pub fn receipt(&mut self, call: &CallAt, channel: u32) -> Receipt {
        let asked = self.asker.should_ask(call);
        let source = self.receives.list[channel as usize].key.1;
        Receipt {
            call: (call.thread, call.number),
            times: (call.enter, call.leave),
            message: asked.then(|| self.asker.calls.message(call, source)),
        }
    }

    pub fn ask_late(&mut self, receipt: &Receipt, channel: u32, n: u64, now: Option<(u32, u64)>) {
        let Some(token) = receipt.message else { return };
        let end = &mut self.receives.list[channel as usize];
        if end.agent == NONE {
            self.asker.calls.unanswerable(token);
            return;
        }
        let is_bare = now != Some(receipt.call);
        let query = Query::new(SEND, channel, n, token, is_bare);
        self.asker.ask(query, end);
    }

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

    /// Whose progress calls of this round may have needed: the agents that hold them, and what
    /// is asked. A call that is over soon after the last party came needed nobody.
    pub fn take_needs(&mut self, mut tell: impl FnMut(u32, Need)) {
        let mut needs = std::mem::take(&mut self.asker.needs);
        for (agent, need) in needs.drain(..) {
            let rest = need.leave - self.asker.calls.charged_at_least(need.call);
            if need.group == 0 && rest < REST_NS {
                self.asker.calls.answer(need.call, 1, None);
            } else {
                self.asker.requests += 1;
                tell(agent, need);
            }
        }
        self.asker.needs = needs;
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
    /// Nothing asked yet by this rank, which has so many threads.
    pub fn new(rank: u32, threads: usize, agent: u32) -> Self {
        Asker {
            rank,
            agent,
            charged: (0..threads).map(|_| Charged::default()).collect(),
            ..Asker::default()
        }
    }

    /// For a message that the call received: number `n` on this channel of the rank's.
    #[inline(always)]
    pub(crate) fn ask_for_send(
        &mut self,
        call: &CallAt,
        (channel, receives): (u32, &mut Channels),
        n: u64,
    ) {
        let end = &mut receives.list[channel as usize];
        if end.agent == NONE || !self.should_ask(call) {
            return;
        }
        let token = self.calls.message(call, end.key.1);
        self.ask(Query::new(SEND, channel, n, token, false), end);
    }

    /// For the other side of an epoch on a window that the call waited for.
    pub(crate) fn ask_for_epoch(
        &mut self,
        call: &CallAt,
        (channel, receives): (u32, &mut Channels),
        n: u64,
    ) {
        let end = &mut receives.list[channel as usize];
        if end.agent == NONE || call.slot == NONE {
            return;
        }
        let token = self.calls.epoch(call);
        self.ask(Query::new(SEND, channel, n, token, false), end);
    }

    /// For a message that the call sent, and waited for.
    #[inline(always)]
    pub(crate) fn ask_for_post(
        &mut self,
        call: &CallAt,
        (channel, sends): (u32, &mut Channels),
        n: u64,
    ) {
        let end = &mut sends.list[channel as usize];
        if end.agent == NONE {
            return;
        }
        let token = self.calls.blocked_send(call);
        self.ask(Query::new(POST, channel, n, token, false), end);
    }

    /// Asks for the other end of a message on this channel.
    #[inline(always)]
    fn ask(&mut self, query: Query, channel: &mut Channel) {
        self.requests += 1;
        if channel.agent != self.agent {
            channel.asked.push(query);
            channel.unsent += 1;
            if channel.unsent == 1 {
                self.unsent.push((query.side(), query.channel()));
            }
            return;
        }
        if channel.declared == NONE {
            self.unconnected.push((query.side(), query.channel()));
        }
        self.queries.push(query);
    }

    /// Begins a call with its questions, about so many.
    #[inline]
    pub(crate) fn begin(&mut self, call: &mut CallAt, questions: usize) {
        if call.asks || self.watch > 0 {
            make_room(&mut self.queries, questions, self.last_queries);
            self.calls.make_room(questions);
        }
        if call.asks {
            call.slot = self.calls.begin(call);
        }
    }

    /// Ends the call begun last.
    #[inline]
    pub(crate) fn end(&mut self, call: &CallAt) {
        if call.slot != NONE {
            self.calls.end(call.slot);
        }
    }

    /// Whether a receive is asked about: it was slow, or follows a slow one closely.
    #[inline]
    fn should_ask(&mut self, call: &CallAt) -> bool {
        if call.asks {
            self.watch = ORDER_WINDOW;
        } else if self.watch == 0 {
            return false;
        } else {
            self.watch -= 1;
        }
        true
    }

    /// Looks the queries up, `own` rank's, among the `ranks` of this agent.
    pub fn look_up(&mut self, own: &Messages, ranks: &(impl Peers + ?Sized)) {
        let waiting = std::mem::take(&mut self.waiting);
        self.look_up_all(&waiting, own, ranks);
        let queries = std::mem::take(&mut self.queries);
        self.look_up_all(&queries, own, ranks);
        // Others find room for what they find in it. A little more, or half of the slabs
        // would have to move theirs.
        self.last_queries = queries.len() + queries.len() / 16;
    }

    fn look_up_all(&mut self, queries: &[Query], own: &Messages, ranks: &(impl Peers + ?Sized)) {
        for queries in queries.chunk_by(|a, b| a.call == b.call) {
            let call = queries[0].call;
            let interval = self.calls.interval(call);
            let (mut answered, mut posts, mut latest) = (0, 0, interval.enter);
            let mut worst: Option<Worst> = None;
            for query in queries {
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

    /// Asks where those partners at this agent were, while the call in this `interval` lasted,
    /// whose parts may not have been done when they left their calls.
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

    /// Notes that a call may have needed the progress of its partner, whose part began at
    /// `time`, if it went on for long enough.
    fn note_need(
        &mut self,
        query: &Query,
        key: ChannelKey,
        time: i64,
        interval: Interval,
        at: &Meeting,
    ) {
        let from = time.max(interval.enter);
        let is_own = key.1 == at.rank as i32;
        if is_own || query.is_bare() || interval.leave.saturating_sub(from) < REST_NS {
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
            group: 0,
            from,
            leave: interval.leave,
        };
        self.needs.push((at.agent, need));
    }

    /// Notes that calls that completed non-blocking collectives may have needed the progress of
    /// other members: whoever it was, after all had begun. All agents are asked, and each member
    /// answers. `outcome` gives the group and the outcome of a collective, once it is known.
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
            if !is_long || !(2..=MOST_MEMBERS).contains(&fold.count) {
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

    /// Notes that a message was sent at `time`, or what the other side of an epoch did then;
    /// whether the call in this `interval` may have waited for that.
    #[inline(always)]
    fn note_sender(
        &mut self,
        query: &Query,
        key: ChannelKey,
        time: i64,
        interval: Interval,
    ) -> bool {
        if query.is_epoch() {
            return !self.is_transfer(query.call, key, time);
        }
        self.calls.note_sent(query.message, time);
        if query.call == NONE {
            return false;
        }
        if time > interval.leave {
            self.calls.violations.messages.note(time - interval.leave);
        }
        if self.slacks.is_some() {
            self.note_slack(key, time, interval);
        }
        true
    }

    /// Whether the time tells when the last transfer of an epoch was through; noted then.
    #[cold]
    #[inline(never)]
    fn is_transfer(&mut self, call: u32, key: ChannelKey, time: i64) -> bool {
        let is_transfer = key.2 == TRANSFERRED;
        if is_transfer {
            self.calls.note_transfer(call, key.1, time);
        }
        is_transfer
    }

    /// A cause and its effect, where clocks are to be corrected.
    #[cold]
    #[inline(never)]
    fn note_slack(&mut self, key: ChannelKey, time: i64, interval: Interval) {
        if let Some(slacks) = &mut self.slacks {
            slacks.note(key.1, time, interval.leave);
        }
    }

    /// Looks up when the receives were posted that a call in this `interval` waited for: how
    /// many were, and the worst one.
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

    /// So many questions of a call are answered, and somebody, one of `ranks`, was late.
    #[inline(never)]
    fn charge(
        &mut self,
        call: u32,
        answered: u32,
        interval: Interval,
        worst: &Worst,
        ranks: &(impl Peers + ?Sized),
    ) {
        let late = worst.late(interval, ranks);
        self.calls
            .answer(call, answered, Some((worst.query.side(), late)));
    }

    /// The first message of each channel that a waiting query is about.
    pub fn waits_for(&self) -> impl Iterator<Item = (Side, u32, u64)> {
        self.waiting.iter().map(|q| (q.side(), q.channel(), q.n))
    }

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

    /// Names the patterns of the calls that have all their answers, and charges the calls.
    pub fn name(&mut self, last: bool, hosts: Hosts) {
        let charged = &mut self.charged;
        self.calls.name(self.rank, last, |waiting, loss| {
            charged[waiting.thread as usize].charge(hosts, waiting, loss);
        });
    }
}

/// What it costs a call that the other end of its message happened so late, ns.
#[inline]
fn cost(side: Side, interval: Interval, time: i64) -> i64 {
    match side {
        SEND => two_sided::late_sender(interval, time),
        _ => two_sided::late_receiver(interval, time),
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

    /// Of two at the same time. As [`Late::outranks_sender`] and [`Late::outranks_receiver`].
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

    /// As a late party, one of `ranks`, of the call in this `interval`.
    fn late(&self, interval: Interval, ranks: &(impl Peers + ?Sized)) -> Late {
        Late {
            severity: cost(self.query.side(), interval, self.end.time),
            message: self.query.message,
            n: self.query.n,
            source: self.channel.key.1,
            tag: self.channel.key.2,
            detail: self.describe(interval.enter, ranks),
        }
    }

    /// What the late party, one of `ranks`, did since the call's `enter`.
    fn describe(&self, enter: i64, ranks: &(impl Peers + ?Sized)) -> Detail {
        let since = if self.query.is_bare() {
            self.end.time
        } else {
            enter
        };
        ranks.late(self.channel.peer, self.end, since)
    }
}
