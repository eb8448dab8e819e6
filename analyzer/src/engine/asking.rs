//! Questions of a rank: which messages' other ends are asked for, and what comes back.
//!
//! Where the other end is at the same agent it is looked up, the others are asked for.

use super::calls::{Calls, Slots, Token};
use super::channel::End;
use super::finding::{Instance, LocalFindings};
use super::rank::{CallAt, ORDER_WINDOW, Rank, Waiter};
use super::table::NONE;
use super::wildcard::Receipt;
use super::wire::{Detail, POST, Question, Reply, SEND, Side};

/// A question about a message whose other end is at this agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query {
    token: Token,
    /// Number of the message.
    n: u64,
    /// The asking rank's channel.
    channel: u32,
    side: Side,
    /// Only the time is wanted, not what the late party did.
    bare: bool,
}

/// What a rank asks, and what waits for the answers.
#[derive(Debug, Default)]
pub struct Asker {
    /// Calls that asked something.
    pub calls: Calls,
    /// Receives that are still looked at because of a late one before them.
    watch: u64,
    queries: Vec<Query>,
    /// Queries about messages that did not happen yet.
    waiting: Vec<Query>,
    /// Questions to other agents: the asking rank's channel, what is asked.
    pub questions: Vec<(Side, u32, Question)>,
    /// What answers of other agents are for, by [`Question::token`].
    outstanding: Slots<Token>,
    /// Members waiting for collectives of this or earlier slabs.
    pub waiters: Vec<Waiter>,
    /// What was found, by thread.
    pub findings: Vec<LocalFindings>,
    /// Questions so far.
    pub requests: u64,
}

impl Rank<'_> {
    pub(super) fn receipt(&mut self, call: &CallAt, channel: u32) -> Receipt {
        let asked = self.asker.should_ask(call);
        let source = self.receives.list[channel as usize].key.1;
        Receipt {
            call: (call.thread, call.number),
            message: asked.then(|| self.asker.calls.message(call, source, call.asks)),
        }
    }

    pub(super) fn ask_late(
        &mut self,
        receipt: &Receipt,
        channel: u32,
        n: u64,
        now: Option<(u32, u64)>,
    ) {
        let Some(token) = receipt.message else { return };
        if self.receives.list[channel as usize].agent == NONE {
            self.asker.calls.unanswerable(token);
            return;
        }
        self.ask(SEND, channel, n, token, now != Some(receipt.call));
    }

    pub(super) fn ask_for_send(&mut self, call: &CallAt, channel: u32, n: u64) {
        let end = &self.receives.list[channel as usize];
        if end.agent == NONE || !self.asker.should_ask(call) {
            return;
        }
        let token = self.asker.calls.message(call, end.key.1, call.asks);
        self.ask(SEND, channel, n, token, false);
    }

    pub(super) fn ask_for_post(&mut self, call: &CallAt, channel: u32, n: u64) {
        if self.sends.list[channel as usize].agent == NONE {
            return;
        }
        let token = self.asker.calls.blocked_send(call);
        self.ask(POST, channel, n, token, false);
    }

    #[inline]
    fn ask(&mut self, side: Side, channel: u32, n: u64, token: Token, bare: bool) {
        let own = self.agent;
        let end = &self.asks_on(side).list[channel as usize];
        let (local, connected) = (end.agent == own, end.declared != NONE);
        self.asker.requests += 1;
        if local {
            if !connected {
                self.unconnected.push((side, channel));
            }
            self.asker.queries.push(Query {
                token,
                n,
                channel,
                side,
                bare,
            });
            return;
        }
        let interval = self.asker.calls.interval(&token);
        let question = Question {
            // Given by whoever sends it.
            channel: 0,
            rank: self.position,
            token: self.asker.outstanding.keep(token),
            n,
            enter: interval.enter,
            leave: interval.leave,
            bare: u32::from(bare),
        };
        self.asker.questions.push((side, channel, question));
    }
}

impl Asker {
    /// Nothing asked yet, by so many threads.
    pub fn new(threads: usize) -> Self {
        Asker {
            findings: (0..threads).map(|_| LocalFindings::default()).collect(),
            ..Asker::default()
        }
    }

    /// Whether a receive is asked about: it was slow, or follows a slow one closely.
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
    pub fn look_up(&mut self, own: &Rank, ranks: &[Rank]) {
        let queries = std::mem::take(&mut self.queries);
        let waiting = std::mem::take(&mut self.waiting);
        for query in waiting.iter().chain(&queries) {
            let channel = &own.asks_on(query.side).list[query.channel as usize];
            let peer = &ranks[channel.peer as usize];
            match peer.end(channel.declared, query.side, query.n) {
                Some(end) => self.found(query, peer, &end),
                None => self.waiting.push(*query),
            }
        }
        self.queries = queries;
        self.queries.clear();
    }

    #[inline]
    fn found(&mut self, query: &Query, peer: &Rank, end: &End) {
        let token = &query.token;
        if query.side == SEND {
            let since = match query.bare {
                true => end.time,
                false => self.calls.interval(token).enter,
            };
            self.calls
                .sent(token, end.time, || Some(peer.late(end, since)));
        } else {
            let since = self.calls.interval(token).enter;
            self.calls
                .posted(token, end.time, || Some(peer.late(end, since)));
        }
    }

    /// The first message of each channel that a waiting query is about.
    pub fn waits_for(&self) -> impl Iterator<Item = (Side, u32, u64)> {
        self.waiting.iter().map(|q| (q.side, q.channel, q.n))
    }

    /// Takes another agent's answer in.
    pub fn reply(&mut self, reply: &Reply, detail: Option<&Detail>) {
        let token = self.outstanding[reply.token];
        self.outstanding.drop(reply.token);
        let detail = || detail.copied();
        if token.message == u64::MAX {
            self.calls.posted(&token, reply.time, detail);
        } else {
            self.calls.sent(&token, reply.time, detail);
        }
    }

    /// Names the patterns of the calls that have all their answers. `rank` and `hosts`
    /// are world ranks and their hosts.
    pub fn name(&mut self, rank: u32, last: bool, hosts: &[u32]) {
        let findings = &mut self.findings;
        self.calls.name(last, |named| {
            findings[named.thread as usize].add(
                named.pattern,
                named.signature,
                &Instance {
                    severity: named.severity,
                    rank,
                    enter: named.enter,
                    leave: named.leave,
                    late: Some(named.late),
                    inter_host: differ(hosts, rank, named.late.rank),
                },
            );
        });
    }
}

/// Whether two world ranks are on different hosts.
pub fn differ(hosts: &[u32], a: u32, b: u32) -> bool {
    hosts.get(a as usize) != hosts.get(b as usize)
}
