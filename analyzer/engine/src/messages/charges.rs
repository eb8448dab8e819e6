//! Blocking calls with questions, until their patterns are named.
//!
//! A call is charged once: with the sender, the receiver, the collective or the transfers to
//! windows that it waited for longest. It is kept from its first question to its last answer. A
//! call that waited for a late sender is kept a little longer: until the receives after it tell
//! whether a message that was sent earlier was overtaken.

mod naming;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use laggard_patterns::Interval;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::basics::ends::NONE;
use crate::basics::room::make_room;
use crate::basics::slots::Slots;
use crate::clock::causality::Violations;
use crate::stream::call::CallAt;
use crate::stream::polling::Episode;
use crate::stream::thread::Usual;
use crate::waits::charging::{Lost, Waiting, total};
use crate::wire::parcels::{Absence, Detail, SEND, Side};

/// A blocking call that waits for answers.
#[derive(Clone, Copy, Debug)]
struct Call {
    enter: i64,
    leave: i64,
    thread: u32,
    signature: u32,
    /// Questions without an answer.
    open: u32,
    /// The largest late sender and the largest late receiver so far, a [`Late`] each.
    sender: u32,
    receiver: u32,
    /// The non-blocking collective, or the transfers, that it waited for longest: [`Losses`].
    group: u32,
    /// Number of its first message with a question, low half.
    messages: u32,
    /// Number of messages with a question that it received.
    received: u32,
}

/// Send time and channel of a message, and circumstances of its receipt.
#[derive(Clone, Copy, Debug)]
struct Receipt {
    /// ns, or [`UNANSWERED`].
    sent: i64,
    /// The receiving rank's channel.
    channel: u32,
    /// Receiving thread, whether its call has a question, and whether the program took any message;
    /// packed, since there are many.
    packed: u32,
}

impl Receipt {
    #[inline(always)]
    fn new(channel: u32, at: &CallAt) -> Self {
        let asks = at.slot != NONE;
        Receipt {
            sent: UNANSWERED,
            channel,
            packed: at.thread << 2 | u32::from(asks) << 1 | u32::from(at.any),
        }
    }

    #[inline]
    fn thread(&self) -> u32 {
        self.packed >> 2
    }

    #[inline]
    fn any(&self) -> bool {
        self.packed & 1 != 0
    }

    /// Whether its call was kept until the message's time was known.
    #[inline]
    fn asks(&self) -> bool {
        self.packed & 2 != 0
    }
}

/// A party that was late for a call.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    /// Time lost to it, ns.
    pub severity: i64,
    /// See [`Token::message`].
    pub message: u64,
    /// Number of the message on its channel.
    pub n: u64,
    /// World rank of the party.
    pub source: i32,
    /// Tag of the message.
    pub tag: i32,
    /// When the party was late, and its activity, see [`Late::at`].
    pub detail: Detail,
}

const _: () = assert!(size_of::<Late>() <= 144, "more is not copied at once");

/// A partner whose progress a call needed.
#[derive(Debug)]
struct Partner {
    absence: Absence,
    /// Begin and end of each absence, ns.
    times: Vec<(i64, i64)>,
}

/// Losses of a call in a non-blocking collective that it completed, or in transfers under locks.
#[derive(Clone, Debug, Default)]
pub struct Losses(pub Vec<Lost>);

impl Losses {
    fn total(&self) -> i64 {
        total(&self.0)
    }

    /// Whether a call is charged with these rather than with the others. Ties go by the late party,
    /// so that the order of the answers does not matter.
    fn outrank(&self, other: &Losses) -> bool {
        let key = |losses: &Losses| {
            let late = |lost: &Lost| lost.late.or(lost.shares.first().map(|share| share.1));
            let late = losses.0.iter().find_map(late);
            let late = late.map(|detail| (detail.rank, detail.operation, detail.path));
            (losses.total(), Reverse(late))
        };
        key(self) > key(other)
    }
}

/// Time of a send whose question is unanswered: before all times. Half of the smallest number, so
/// that differences with times fit.
const UNANSWERED: i64 = i64::MIN / 2;
/// Time of a send whose sender has no trace.
const UNKNOWN: i64 = i64::MAX / 2;

/// In place of a message's number: twice the sending rank's channel of a blocked send, and this if it is one
/// without data.
pub const EMPTY: u64 = 1;

/// First number of questions about epochs on windows, which are not messages. No run receives 2^63
/// messages.
pub const EPOCHS: u64 = 1 << 63;

/// The target of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// The call; `NONE` if only the time of a send is needed.
    pub call: u32,
    /// Number of the received message; of a blocked send, see [`EMPTY`].
    pub message: u64,
}

/// The calls of a rank that wait for answers.
#[derive(Debug, Default)]
pub struct Calls {
    calls: Slots<Call>,
    /// Calls with open questions.
    waiting: usize,
    lates: Slots<Late>,
    groups: Slots<Losses>,
    /// Calls with all answers and a late party.
    concluded: Vec<u32>,
    /// Calls whose last question nobody can answer.
    unanswerable: Vec<u32>,
    /// Calls that need a rank without a trace, or a part of one that is cut off.
    partnerless: FxHashSet<u32>,
    /// The messages with a question, in the order of their receipt; kept while a late sender before
    /// them is not named.
    receipts: Vec<Receipt>,
    /// Number of `receipts[0]`.
    message_base: u64,
    /// When the last transfers left, of epochs that calls waited for: call, partner, ns or
    /// [`NO_TRANSFER`].
    transfers: Vec<(u32, i32, i64)>,
    /// Partners that were absent while calls lasted, by call.
    partners: FxHashMap<u32, Vec<Partner>>,
    /// Episodes of looks that calls ended, by call.
    episodes: FxHashMap<u32, Episode>,
    /// Questions of the call being taken in.
    opened: u32,
    /// Whether answers have arrived since calls were named.
    changed: bool,
    /// Violations of causality.
    pub violations: Violations,
    /// Late senders after which the search for overtaken messages ended without one.
    searched: Searched,
}

/// Late senders whose receives took one message of a known source, and after which
/// [`ORDER_WINDOW`] receives were searched: any earlier message that comes later is out of order,
/// too.
#[derive(Debug, Default)]
struct Searched {
    /// Number of the first message after the search, receiving thread, and time of the send.
    until: BinaryHeap<Reverse<(u64, u32, i64)>>,
    /// The latest of these sends whose searches ended before the message looked at, by thread.
    latest: Vec<i64>,
    /// Number of messages that were out of order, but too far behind.
    beyond: u64,
}

impl Searched {
    /// Looks at a message, one after the other.
    fn look_at(&mut self, message: u64, receipt: &Receipt) {
        while let Some(&Reverse((until, thread, time))) = self.until.peek()
            && until <= message
        {
            self.until.pop();
            let thread = thread as usize;
            if thread >= self.latest.len() {
                self.latest.resize(thread + 1, i64::MIN);
            }
            self.latest[thread] = self.latest[thread].max(time);
        }
        let latest = self.latest.get(receipt.thread() as usize);
        let is_overtaken = latest.is_some_and(|&latest| receipt.sent < latest);
        self.beyond += u64::from(is_overtaken && receipt.asks() && receipt.sent != UNANSWERED);
    }

    fn is_empty(&self) -> bool {
        self.until.is_empty() && self.latest.is_empty()
    }
}

impl Calls {
    /// Begins a call. The next questions belong to its number until it ends.
    #[inline(always)]
    pub fn begin(&mut self, at: &CallAt) -> u32 {
        self.opened = 0;
        self.calls.keep(Call {
            enter: at.enter,
            leave: at.leave,
            thread: at.thread,
            signature: at.signature,
            open: 0,
            sender: NONE,
            receiver: NONE,
            group: NONE,
            messages: self.next_message() as u32,
            received: 0,
        })
    }

    /// Ends the call begun last: it asks nothing more.
    #[inline(always)]
    pub fn end(&mut self, slot: u32) {
        if self.opened == 0 {
            match self.partnerless.contains(&slot) {
                true => self.concluded.push(slot),
                false => self.forget(slot),
            }
            return;
        }
        self.waiting += 1;
        let next = self.next_message() as u32;
        let call = &mut self.calls[slot];
        call.open = self.opened;
        call.received = next.wrapping_sub(call.messages);
    }

    /// A call with questions ended an episode of looks: it began to wait then.
    pub fn looked(&mut self, slot: u32, episode: Episode) {
        if let Some(begin) = episode.begin() {
            self.calls[slot].enter = begin;
            self.episodes.insert(slot, episode);
        }
    }

    /// When a call began to wait, ns.
    #[inline]
    pub fn begun(&self, at: &CallAt) -> i64 {
        self.calls.get(at.slot).map_or(at.enter, |call| call.enter)
    }

    /// The enter of a call that ended an episode of looks, ns.
    #[inline]
    pub fn found_at(&self, call: u32) -> Option<i64> {
        if self.episodes.is_empty() {
            return None;
        }
        Some(self.episodes.get(&call)?.found)
    }

    /// Number of the next message with a question.
    #[inline(always)]
    fn next_message(&self) -> u64 {
        self.message_base + self.receipts.len() as u64
    }

    /// Position in `receipts` of the first message that the call received. All later messages are there
    /// as well; memory bounds their number below 2^32.
    #[inline]
    fn first_message(&self, call: &Call) -> usize {
        call.messages.wrapping_sub(self.message_base as u32) as usize
    }

    /// Makes room for `questions` questions.
    #[inline]
    pub fn make_room(&mut self, questions: usize) {
        make_room(&mut self.receipts, questions, 0);
    }

    /// Token for a message that the call received on this channel; without a number, only the time of the
    /// send is needed.
    #[inline(always)]
    pub fn message(&mut self, at: &CallAt, channel: u32) -> Token {
        let message = self.next_message();
        self.changed = true;
        self.receipts.push(Receipt::new(channel, at));
        let call = at.slot;
        self.opened += u32::from(call != NONE);
        Token { call, message }
    }

    /// Token for a message that the call sent on this channel, with data or without.
    #[inline(always)]
    pub fn blocked_send(&mut self, at: &CallAt, channel: u32, is_empty: bool) -> Token {
        Token {
            call: self.collective(at),
            message: u64::from(channel) << 1 | if is_empty { EMPTY } else { 0 },
        }
    }

    /// Token for the other side of an epoch on a window.
    pub fn epoch(&mut self, at: &CallAt) -> Token {
        let message = EPOCHS + u64::from(self.opened);
        self.opened += 1;
        Token {
            call: at.slot,
            message,
        }
    }

    /// Notes when the last transfer of an epoch with this partner left, or that there was none.
    pub fn note_transfer(&mut self, call: u32, partner: i32, time: i64) {
        self.transfers.push((call, partner, time));
    }

    /// Adds a question for the outcome of a non-blocking collective, or of a transfer under a lock,
    /// that the call completed.
    #[inline(always)]
    pub fn collective(&mut self, at: &CallAt) -> u32 {
        self.opened += 1;
        at.slot
    }

    /// Answers `count` of these questions with the losses of the call.
    pub fn collective_ended(&mut self, call: u32, count: u32, losses: Losses) {
        let slot = call;
        let call = &mut self.calls[slot];
        if !losses.0.is_empty() {
            self.groups
                .keep_worse(&mut call.group, losses, Losses::outrank);
        }
        self.answer(slot, count, None);
    }

    /// Messages that had been sent before one that a receive waited for, and that were received
    /// more than [`ORDER_WINDOW`] receives after it.
    pub fn beyond_window(&self) -> u64 {
        self.searched.beyond
    }

    /// Frees all but what is counted: every question is answered.
    pub fn free(&mut self) {
        let beyond = self.beyond_window();
        *self = Calls::default();
        self.searched.beyond = beyond;
    }

    /// Enter and leave of a call, ns; equal if only a time is needed.
    #[inline]
    pub fn interval(&self, call: u32) -> Interval {
        match self.calls.get(call) {
            Some(call) => call.interval(),
            None => Interval::new(0, 0),
        }
    }

    /// Whether a late sender of the call is known.
    #[inline]
    pub fn has_sender(&self, call: u32) -> bool {
        let call = self.calls.get(call);
        call.is_some_and(|call| call.sender != NONE)
    }

    /// Adds a question to a call that has open ones.
    pub fn hold(&mut self, call: u32) {
        self.calls[call].open += 1;
    }

    /// Time up to which a call will be charged at least, ns. A late receiver is charged only if no
    /// sender is late.
    pub fn charged_at_least(&self, call: u32) -> i64 {
        let sender = self.calls[call].sender;
        self.charged_with(call, sender)
    }

    /// Time up to which a call with all answers is charged, ns.
    fn charged_until(&self, call: u32) -> i64 {
        let Call {
            sender, receiver, ..
        } = self.calls[call];
        self.charged_with(call, if sender == NONE { receiver } else { sender })
    }

    fn charged_with(&self, call: u32, late: u32) -> i64 {
        let call = &self.calls[call];
        let message = self.lates.get(late);
        let group = self.groups.get(call.group);
        let charged = message.map_or(0, |late| late.severity);
        let charged = charged.max(group.map_or(0, Losses::total));
        call.enter.saturating_add(charged)
    }

    /// Takes the absences of a partner during a call.
    pub fn take_absence(&mut self, absence: &Absence, times: &[i64]) {
        if !times.is_empty() {
            let partner = Partner {
                absence: *absence,
                times: times.chunks_exact(2).map(|two| (two[0], two[1])).collect(),
            };
            self.partners.entry(absence.call).or_default().push(partner);
        }
        self.answer(absence.call, 1, None);
    }

    /// A question that nobody can answer: the peer has no trace.
    pub fn unanswerable(&mut self, token: Token) {
        self.note_sent(token.message, UNKNOWN);
        self.partnerless(token.call);
        if token.call != NONE {
            // The call may still ask more.
            self.unanswerable.push(token.call);
            self.changed = true;
        }
    }

    /// A message with a question was sent at `time`.
    #[inline]
    pub fn note_sent(&mut self, message: u64, time: i64) {
        let at = message.wrapping_sub(self.message_base);
        if let Some(receipt) = self.receipts.get_mut(at as usize) {
            receipt.sent = time;
            self.changed = true;
        }
    }

    /// Answers `count` questions of a call. `late` is the late party, if any, and the side asked
    /// about. Returns the number of the late party if it is the worst so far: it must be described.
    #[inline(always)]
    pub fn answer(&mut self, call: u32, count: u32, late: Option<(Side, Late)>) -> Option<u32> {
        let slot = call;
        let call = &mut self.calls[slot];
        let lates = &mut self.lates;
        let kept = match late {
            Some((SEND, late)) => lates.keep_worse(&mut call.sender, late, Late::outranks_sender),
            Some((_, late)) => lates.keep_worse(&mut call.receiver, late, Late::outranks_receiver),
            None => None,
        };
        call.open -= count;
        self.changed = true;
        if call.open == 0 {
            self.conclude(slot);
        }
        kept
    }

    /// Whether a call that got answers in this round is still to be charged with this late party:
    /// source, tag, and number of the message on its channel; a receiver if the call `sends`.
    pub fn is_charged_with(
        &self,
        call: u32,
        late: u32,
        message: (i32, i32, u64),
        sends: bool,
    ) -> bool {
        let late = &self.lates[late];
        (late.source, late.tag, late.n) == message && !(sends && self.has_sender(call))
    }

    /// Sets the activity of a late party; the time when it was late is known.
    #[inline]
    pub fn describe(&mut self, late: u32, detail: &Detail) {
        let known = &mut self.lates[late].detail;
        *known = Detail {
            time: known.time,
            ..*detail
        };
    }

    /// A call has all its answers.
    #[inline(always)]
    fn conclude(&mut self, slot: u32) {
        let call = &self.calls[slot];
        let is_late = call.sender != NONE || call.receiver != NONE || call.group != NONE;
        let is_missed = || !self.partnerless.is_empty() && self.partnerless.contains(&slot);
        let is_stalled = || !self.partners.is_empty() && self.partners.contains_key(&slot);
        if is_late || is_stalled() || is_missed() {
            make_room(&mut self.concluded, 1, 0);
            self.concluded.push(slot);
        } else {
            self.forget(slot);
        }
        self.waiting -= 1;
    }

    /// The call begun last needs a rank without a trace.
    #[cold]
    pub fn partnerless(&mut self, slot: u32) {
        if slot != NONE {
            self.partnerless.insert(slot);
            self.changed = true;
        }
    }

    /// Whether the send of a message that a call received is unknown at the end.
    fn is_unanswered(&self, slot: u32) -> bool {
        let call = &self.calls[slot];
        if call.received == 0 {
            return false;
        }
        let messages = self.receipts.iter().skip(self.first_message(call));
        let mut messages = messages.take(call.received as usize);
        messages.any(|receipt| receipt.sent == UNANSWERED)
    }

    /// Drops a call, and what is known of it.
    #[inline]
    fn forget(&mut self, slot: u32) {
        if !self.partnerless.is_empty() {
            self.partnerless.remove(&slot);
        }
        if !self.partners.is_empty() {
            self.partners.remove(&slot);
        }
        if !self.transfers.is_empty() {
            self.transfers.retain(|transfer| transfer.0 != slot);
        }
        if !self.episodes.is_empty() {
            self.episodes.remove(&slot);
        }
        self.calls.drop(slot);
    }
}

impl Late {
    /// Late at this time, ns; its activity is unknown yet, so it has no rank. An `Option` would
    /// take more memory: there are many.
    pub fn at(time: i64) -> Detail {
        Detail {
            time,
            rank: NONE,
            ..Detail::default()
        }
    }

    /// Whether a call is charged with this late sender rather than with the other.
    fn outranks_sender(&self, other: &Late) -> bool {
        let key = |late: &Late| (late.severity, late.detail.time, Reverse(late.message));
        key(self) > key(other)
    }

    /// Whether a call is charged with this late receiver rather than with the other. Ties go by
    /// facts known to both ends, so that the order of the answers does not matter.
    fn outranks_receiver(&self, other: &Late) -> bool {
        let key = |late: &Late| {
            let channel = (late.source, late.tag, late.n);
            (late.severity, Reverse(channel))
        };
        key(self) > key(other)
    }
}

impl Call {
    #[inline]
    fn interval(&self) -> Interval {
        Interval::new(self.enter, self.leave)
    }

    #[inline]
    fn waiting(&self, rank: u32) -> Waiting {
        Waiting {
            rank,
            thread: self.thread,
            signature: self.signature,
            since: self.enter,
            enter: self.enter,
            leave: self.leave,
        }
    }
}

/// A member that waits for a collective's outcome.
#[derive(Clone, Copy, Debug)]
pub struct Waiter {
    /// The agent's number of the group.
    pub group: u32,
    /// Index of the collective on it.
    pub n: u64,
    /// Enter of the waiting operation, ns: the collective, or the Wait* that completed it.
    pub enter: i64,
    /// Its leave, ns.
    pub leave: i64,
    /// Position of the thread in the rank.
    pub thread: u32,
    /// Signature of the waiting operation.
    pub signature: u32,
    /// Signature of the collective.
    pub collective: u32,
    /// Whether the collective was non-blocking.
    pub posted: bool,
    /// The call that completed it, in [`crate::messages::charges::Calls`]; `NONE` unless it was
    /// non-blocking and has a question.
    pub call: u32,
    /// Whether it has a question, or the completion is only counted.
    pub asks: bool,
    /// Whether it needs something from others.
    pub waits: bool,
    /// What such a call takes when nobody is late; of a collective with a root that blocks.
    pub usual: Usual,
}

impl Waiter {
    /// The waiting call to charge, of this world rank.
    pub fn waiting(&self, rank: u32) -> Waiting {
        Waiting {
            rank,
            thread: self.thread,
            signature: self.signature,
            since: self.enter,
            enter: self.enter,
            leave: self.leave,
        }
    }
}

/// Receives after a late one that are searched for messages received in the wrong order. More is not
/// what a program could put in order at one place; and each slow call makes the others ask.
pub const ORDER_WINDOW: usize = 128;
