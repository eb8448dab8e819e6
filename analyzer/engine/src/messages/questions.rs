//! Questions of a rank about the other ends of messages, and their answers.
//!
//! If the same agent has the other end, it is looked up; else its agent is asked.

mod elsewhere;
mod here;
mod needs;

pub use elsewhere::Times;
pub use here::Peers;
use laggard_patterns::{Interval, two_sided};

use crate::basics::ends::NONE;
use crate::basics::room::make_room;
use crate::clock::slacks::Slacks;
use crate::messages::channel::{Channel, ChannelKey, Channels, TRANSFERRED};
use crate::messages::charges::{Calls, EPOCHS, ORDER_WINDOW, Token, Waiter};
use crate::messages::ends::Messages;
use crate::messages::wildcard::Receipt;
use crate::stream::call::CallAt;
use crate::stream::polling::Episode;
use crate::waits::charging::{Charged, Hosts};
use crate::wire::parcels::{Need, POST, SEND, Side};

/// A question about a message's other end.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// Number of the message on the channel.
    pub n: u64,
    /// See [`Token::message`].
    message: u64,
    /// See [`Token::call`].
    call: u32,
    /// The asking rank's channel, the side, and whether it is bare; packed, since there are many.
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

    /// The asking rank's channel. Memory bounds their number below 2^30.
    #[inline]
    fn channel(&self) -> u32 {
        self.place >> 2
    }

    #[inline]
    fn side(&self) -> Side {
        self.place >> 1 & 1
    }

    /// Whether it is about an epoch on a window, not a message.
    #[inline]
    fn is_epoch(&self) -> bool {
        self.message >= EPOCHS
    }

    /// Whether only the time is needed, without the late party's activity.
    #[inline]
    fn is_bare(&self) -> bool {
        self.place & 1 != 0
    }
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

/// Where a rank and its partner meet.
struct Meeting {
    /// World rank that asks.
    rank: u32,
    /// The agent that holds the partner.
    agent: u32,
    /// See [`Need::channel`].
    channel: u32,
}

/// Open questions of a rank.
#[derive(Debug, Default)]
pub struct Asker {
    /// Calls that asked something.
    pub calls: Calls,
    /// Number of further receives to ask about because of a slow one before them.
    watch: usize,
    queries: Vec<Query>,
    /// Number of queries in the last round.
    last_queries: usize,
    /// Queries about messages that have not happened yet.
    waiting: Vec<Query>,
    /// World rank.
    rank: u32,
    /// The agent that holds it.
    agent: u32,
    /// Channels with questions whose other end at this agent is not looked up yet.
    pub unconnected: Vec<(Side, u32)>,
    /// Channels with unsent questions to other agents.
    pub unsent: Vec<(Side, u32)>,
    /// Late parties at other agents that must be described.
    candidates: Vec<Candidate>,
    /// Progress that calls of this round may have needed, with the agents of the partners.
    needs: Vec<(u32, Need)>,
    /// Members waiting for collectives of this or earlier slabs.
    pub waiters: Vec<Waiter>,
    /// Charges by thread.
    pub charged: Vec<Charged>,
    /// Number of questions so far.
    pub requests: u64,
    /// Times from causes to effects, if clocks are to be corrected.
    pub slacks: Option<Box<Slacks>>,
}

impl Messages {
    pub fn receipt(&mut self, call: &CallAt, channel: u32) -> Receipt {
        let asked = self.asker.should_ask(call);
        Receipt {
            call: (call.thread, call.number),
            times: (call.enter, call.leave),
            message: asked.then(|| self.asker.calls.message(call, channel)),
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
}

impl Asker {
    /// Frees all but the results, which are put away: every question is answered.
    pub fn free(&mut self) {
        self.calls.free();
        for charged in &mut self.charged {
            (charged.trail, charged.least) = (None, Vec::new());
            charged.findings.put_away();
        }
        (self.queries, self.waiting) = (Vec::new(), Vec::new());
        (self.waiters, self.needs) = (Vec::new(), Vec::new());
    }

    /// No questions yet; the rank has `threads` threads.
    pub fn new(rank: u32, threads: usize, agent: u32) -> Self {
        Asker {
            rank,
            agent,
            charged: (0..threads).map(|_| Charged::default()).collect(),
            ..Asker::default()
        }
    }

    /// Asks about a message that the call received: number `n` on this channel of the rank.
    #[inline(always)]
    pub(crate) fn ask_for_send(
        &mut self,
        call: &CallAt,
        (channel, receives): (u32, &mut Channels),
        n: u64,
    ) {
        let end = &mut receives.list[channel as usize];
        if !self.should_ask(call) {
            return;
        }
        if end.agent == NONE {
            self.calls.partnerless(call.slot);
            return;
        }
        let token = self.calls.message(call, channel);
        self.ask(Query::new(SEND, channel, n, token, false), end);
    }

    /// Asks about the other side of an epoch on a window that the call waited for; returns whether it
    /// did.
    pub(crate) fn ask_for_epoch(
        &mut self,
        call: &CallAt,
        (channel, receives): (u32, &mut Channels),
        n: u64,
    ) -> bool {
        let end = &mut receives.list[channel as usize];
        if end.agent == NONE || call.slot == NONE {
            return false;
        }
        let token = self.calls.epoch(call);
        self.ask(Query::new(SEND, channel, n, token, false), end);
        true
    }

    /// Asks about a message that the call sent, and waited for; `is_empty`: it has no data.
    #[inline(always)]
    pub(crate) fn ask_for_post(
        &mut self,
        call: &CallAt,
        (channel, sends): (u32, &mut Channels),
        n: u64,
        is_empty: bool,
    ) {
        let end = &mut sends.list[channel as usize];
        if end.agent == NONE {
            return;
        }
        let token = self.calls.blocked_send(call, channel, is_empty);
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

    /// Begins a call with about `questions` questions.
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

    /// The call begun last ended an episode of looks.
    #[inline]
    pub(crate) fn looked(&mut self, call: &CallAt, episode: Option<Episode>) {
        if let Some(episode) = episode.filter(|_| call.slot != NONE) {
            self.calls.looked(call.slot, episode);
        }
    }

    /// Ends the call begun last.
    #[inline]
    pub(crate) fn end(&mut self, call: &CallAt) {
        if call.slot != NONE {
            self.calls.end(call.slot);
        }
    }

    /// Whether to ask about a receive: it was slow, or closely follows a slow one.
    #[inline]
    fn should_ask(&mut self, call: &CallAt) -> bool {
        if call.asks {
            // Looks take what comes first.
            if !call.polled {
                self.watch = ORDER_WINDOW;
            }
        } else if self.watch == 0 {
            return false;
        } else {
            self.watch -= 1;
        }
        true
    }

    /// Notes that a message was sent at `time`, or that the other side of an epoch acted then.
    /// Returns whether the call in this `interval` may have waited for it.
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

    /// Notes the completion of an epoch's last transfer, if the time tells that; returns whether it
    /// does.
    #[cold]
    #[inline(never)]
    fn is_transfer(&mut self, call: u32, key: ChannelKey, time: i64) -> bool {
        let is_transfer = key.2 == TRANSFERRED;
        if is_transfer {
            self.calls.note_transfer(call, key.1, time);
        }
        is_transfer
    }

    /// Notes a cause and its effect, if clocks are to be corrected.
    #[cold]
    #[inline(never)]
    fn note_slack(&mut self, key: ChannelKey, time: i64, interval: Interval) {
        if let Some(slacks) = &mut self.slacks {
            slacks.note(key.1, time, interval.leave);
        }
    }

    /// The first message of each channel that a waiting query is about.
    pub fn waits_for(&self) -> impl Iterator<Item = (Side, u32, u64)> {
        self.waiting.iter().map(|q| (q.side(), q.channel(), q.n))
    }

    /// Names the patterns of the calls that have all their answers, and charges the calls. `channels` are those on
    /// which the rank sends, and receives.
    pub fn name(&mut self, channels: (&Channels, &Channels), last: bool, hosts: Hosts) {
        let charged = &mut self.charged;
        self.calls.name(self.rank, channels, last, |waiting, loss| {
            charged[waiting.thread as usize].charge(hosts, waiting, loss);
        });
    }
}

/// Cost of this late other end to a call, ns.
#[inline]
fn cost(side: Side, interval: Interval, time: i64) -> i64 {
    match side {
        SEND => two_sided::late_sender(interval, time),
        _ => two_sided::late_receiver(interval, time),
    }
}
