//! Messages: how sends and receives match, and what calls lose to them.

use std::cmp::Reverse;

use laggard_trace::{Endpoint, PEER_NONE, TAG_ANY, flags};

use super::{BYTES_PER_NS, World};
use crate::ledger::{Ledger, Loss, Pattern};
use crate::location::NOBODY;
use crate::op::{Half, Peer};
use crate::rank::{Envelope, OpenCall, Partner, Posted, Rank, Request};
use crate::site::SiteId;

/// A message without its other end.
#[derive(Clone, Copy, Debug)]
pub struct Unmatched {
    /// The calling rank.
    pub rank: u32,
    /// Its place.
    pub site: SiteId,
    /// Its half of the message.
    pub half: Half,
    /// Whether it is a send.
    pub sends: bool,
}

impl World<'_> {
    /// Waits for the last `count` requests, which the call made itself.
    pub(super) fn wait_inside(&mut self, rank: u32, count: usize) {
        let first = self.ranks[rank as usize].requests.len() - count;
        self.cover(rank, (first, count));
    }

    /// A Wait* for the first `count` requests.
    pub(super) fn wait_for(&mut self, rank: u32, site: SiteId, count: usize) {
        self.begin(rank, site, 0).completes = true;
        self.cover(rank, (0, count));
    }

    fn cover(&mut self, rank: u32, covers: (usize, usize)) {
        let own = &mut self.ranks[rank as usize];
        let Some(call) = &mut own.call else { return };
        let count = covers.1.min(own.requests.len() - covers.0);
        call.covers = (covers.0, count);
        for request in own.requests.range(covers.0..covers.0 + count) {
            match request.done {
                Some(done) => call.ready = call.ready.max(done),
                None => call.needs += 1,
            }
        }
        if call.needs == 0 {
            self.leave(rank);
        }
    }

    /// The send half of a call whose message nobody will receive.
    pub(super) fn send_lost(&mut self, rank: u32, half: Half) {
        let own = &mut self.ranks[rank as usize];
        let Some(call) = &mut own.call else { return };
        call.send = endpoint(&half);
        call.flags |= flags::SENDS;
        let (site, sent) = (call.site, call.enter);
        // Buffered whatever its size, or the sender would wait for ever.
        self.request(rank, true, half, Some(sent));
        self.unmatched.push(Unmatched {
            rank,
            site,
            half,
            sends: true,
        });
    }

    /// The send half of the call that a rank is in.
    pub(super) fn send(&mut self, rank: u32, mut half: Half) {
        let own = &mut self.ranks[rank as usize];
        if half.peer == Peer::Last {
            half.peer = Peer::Rank(own.last.0);
        }
        let Some(call) = &mut own.call else { return };
        let (site, sent) = (call.site, call.enter);
        let is_synchronous = half.bytes > self.settings.eager_limit;
        let Peer::Rank(peer) = half.peer else {
            call.send = Endpoint {
                peer: PEER_NONE,
                ..NOBODY
            };
            self.request(rank, true, half, Some(sent));
            return;
        };
        call.send = endpoint(&half);
        call.flags |= flags::SENDS;
        let request = self.request(rank, true, half, (!is_synchronous).then_some(sent));
        let message = Envelope {
            source: rank,
            request,
            site,
            tag: half.tag,
            bytes: half.bytes,
            sent,
            is_synchronous,
        };
        let receiver = &mut self.ranks[peer as usize];
        match receiver.take_posted(rank, half.tag) {
            Some(posted) => self.match_up(&message, peer, &posted),
            None => receiver.inbox.push_back(message),
        }
    }

    /// The receive half of the call that a rank is in.
    pub(super) fn receive(&mut self, rank: u32, half: Half) {
        let own = &mut self.ranks[rank as usize];
        let Some(call) = &mut own.call else { return };
        let (site, time) = (call.site, call.enter);
        if half.peer == Peer::Nobody {
            self.request(rank, false, half, Some(time));
            return;
        }
        call.receive = endpoint(&half);
        call.flags |= flags::RECEIVES;
        for (is_wild, flag) in [
            (half.peer == Peer::Any, flags::ANY_SOURCE),
            (half.tag == TAG_ANY, flags::ANY_TAG),
        ] {
            call.flags |= if is_wild { flag } else { 0 };
        }
        let request = self.request(rank, false, half, None);
        let posted = Posted {
            request,
            half,
            site,
            time,
        };
        let own = &mut self.ranks[rank as usize];
        match own.take_message(&half) {
            Some(message) => self.match_up(&message, rank, &posted),
            None => own.posted.push(posted),
        }
    }

    fn request(&mut self, rank: u32, sends: bool, half: Half, done: Option<u64>) -> u32 {
        let own = &mut self.ranks[rank as usize];
        own.made = own.made.wrapping_add(1);
        own.requests.push_back(Request {
            id: own.made,
            post: own.location.as_ref().map_or(0, |location| location.posts()),
            sends,
            half,
            done,
            partner: None,
        });
        own.made
    }

    /// Matches a message with its receive.
    fn match_up(&mut self, message: &Envelope, receiver: u32, posted: &Posted) {
        let begin = match message.is_synchronous {
            true => message.sent.max(posted.time),
            false => message.sent,
        };
        let arrival = begin + self.settings.latency_ns + message.bytes / BYTES_PER_NS;
        self.messages += 1;
        self.message_bytes += message.bytes;
        let (tag, bytes) = (message.tag, message.bytes);
        let sender = Partner {
            rank: message.source,
            site: message.site,
            time: message.sent,
            tag,
            bytes,
        };
        let taker = Partner {
            rank: receiver,
            site: posted.site,
            time: posted.time,
            tag,
            bytes,
        };
        for (rank, request, partner) in [
            (receiver, posted.request, sender),
            (message.source, message.request, taker),
        ] {
            if self.ranks[rank as usize].settle(request, arrival, partner) {
                self.leave(rank);
            }
        }
    }

    /// Books the call that a rank has left.
    pub(super) fn conclude(&mut self, rank: u32) {
        let own = &mut self.ranks[rank as usize];
        let Some(call) = own.call.take() else { return };
        let (first, count) = call.covers;
        if count == 0 {
            return;
        }
        if let Some(ledger) = &mut self.ledger
            && let Some(loss) = loss_in_messages(own, rank, &call)
        {
            ledger.book(loss);
        }
        own.requests.drain(first..first + count);
    }
}

/// The loss of a call to its messages: to the largest late sender, else to the largest late
/// receiver. Of ties the first message counts, or the receiver with the lowest rank.
fn loss_in_messages(own: &Rank, rank: u32, call: &OpenCall) -> Option<Loss> {
    let times = (call.enter, call.leave?);
    let (first, count) = call.covers;
    let ends = |sends: bool| {
        let covered = own.requests.range(first..first + count);
        let requests = covered.filter(move |request| request.sends == sends);
        requests.filter_map(|request| request.partner)
    };
    let loss = |pattern, severity, partner: &Partner| Loss {
        pattern,
        severity,
        rank,
        site: call.site,
        times,
        late: Some((partner.rank, partner.site)),
    };
    let senders = ends(false).map(|end| (Ledger::late_sender(times, end.time), end));
    let sender = senders.rev().max_by_key(|(severity, _)| *severity);
    if let Some((severity @ 1.., sender)) = sender {
        let order = order(own, &sender, call);
        return Some(loss(order, severity, &sender));
    }
    let receivers = ends(true).map(|end| (Ledger::late_receiver(times, end.time), end));
    let receiver = receivers.max_by_key(|(severity, end)| (*severity, Reverse(end.rank)));
    let (severity, receiver) = receiver?;
    Some(loss(Pattern::LateReceiver, severity, &receiver))
}

/// The kind of late sender. The order is wrong if an older message than the late one is still
/// there, to be received later. A message of another rank counts only where the program chose the
/// order: the receive named its source, and the call took no message of that rank.
fn order(own: &Rank, late: &Partner, call: &OpenCall) -> Pattern {
    let (first, count) = call.covers;
    let (before, from_here) = (own.requests.range(..first), own.requests.range(first..));
    let unread = own
        .inbox
        .iter()
        .map(|message| (message.source, message.sent));
    let others = before.chain(from_here.skip(count));
    let under_way = others.filter(|request| !request.sends);
    let under_way = under_way.filter_map(|request| request.partner);
    let under_way = under_way.map(|partner| (partner.rank, partner.time));
    let covered = || own.requests.range(first..first + count);
    let taken = || covered().filter(|request| !request.sends);
    let took = |rank: u32, request: &Request| request.partner.is_some_and(|end| end.rank == rank);
    let takes_any =
        taken().any(|request| took(late.rank, request) && request.half.peer == Peer::Any);
    let mut pattern = Pattern::LateSender;
    for (source, _) in unread
        .chain(under_way)
        .filter(|(_, sent)| *sent < late.time)
    {
        if source == late.rank {
            return Pattern::WrongOrderSameSource;
        }
        if !takes_any && !taken().any(|request| took(source, request)) {
            pattern = Pattern::WrongOrderOtherSource;
        }
    }
    pattern
}

/// A half as it is in the trace.
pub(super) fn endpoint(half: &Half) -> Endpoint {
    Endpoint {
        peer: half.peer.number(),
        tag: half.tag,
        bytes: half.bytes,
    }
}
