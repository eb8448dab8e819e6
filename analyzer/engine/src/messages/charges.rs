//! Blocking calls whose messages are asked about, until their patterns are named.
//!
//! A call is charged once: with the sender, the receiver, the collective or the transfers to
//! windows that it waited for longest. It is kept from its first question to its last answer. One that waited for a
//! late sender is kept a little longer: until the receives after it tell whether a
//! message that had been sent earlier was overtaken.

mod naming;

use laggard_patterns::Interval;
use rustc_hash::FxHashMap;

use crate::basics::ends::NONE;
use crate::basics::room::make_room;
use crate::basics::slots::Slots;
use crate::clock::causality::Violations;
use crate::stream::call::CallAt;
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
    /// The largest late sender and late receiver so far, [`Late`] each.
    sender: u32,
    receiver: u32,
    /// The non-blocking collective, or the transfers, that it waited for longest, [`Losses`].
    group: u32,
    /// Low half of the number of the first message after those that were asked about before it.
    messages: u32,
    /// How many messages that are asked about it received.
    received: u32,
}

/// Who sent a message, and how it was received.
#[derive(Clone, Copy, Debug)]
struct Receipt {
    /// World rank.
    source: i32,
    /// Receiving thread, and whether the program took what came first, in one: there are many.
    thread_and_any: u32,
}

impl Receipt {
    #[inline(always)]
    fn new(source: i32, thread: u32, any: bool) -> Self {
        let thread_and_any = thread << 1 | u32::from(any);
        Receipt {
            source,
            thread_and_any,
        }
    }

    #[inline]
    fn thread(&self) -> u32 {
        self.thread_and_any >> 1
    }

    #[inline]
    fn any(&self) -> bool {
        self.thread_and_any & 1 != 0
    }
}

/// A party that was late for a call.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    /// Time that it cost, ns.
    pub severity: i64,
    /// Number of the message among those that its receiver asks about; of no use for a blocked send.
    pub message: u64,
    /// Number of the message on its channel.
    pub n: u64,
    /// World rank of the party.
    pub source: i32,
    /// Tag of the message.
    pub tag: i32,
    /// When the party was late, and what it did, see [`Late::at`].
    pub detail: Detail,
}

const _: () = assert!(size_of::<Late>() <= 128, "more is not copied at once");

/// A partner whose progress a call needed.
#[derive(Debug)]
struct Partner {
    absence: Absence,
    /// Begin and end of each absence, ns.
    times: Vec<(i64, i64)>,
}

/// What a call lost in a non-blocking collective that it completed, or in transfers under locks.
#[derive(Clone, Debug, Default)]
pub struct Losses(pub Vec<Lost>);

impl Losses {
    fn total(&self) -> i64 {
        total(&self.0)
    }

    /// Whether a call is charged with these rather than with the others. Ties go by who
    /// is late, so that the order of the answers does not matter.
    fn outrank(&self, other: &Losses) -> bool {
        let key = |losses: &Losses| {
            let late = |lost: &Lost| lost.late.or(lost.shares.first().map(|share| share.1));
            let late = losses.0.iter().find_map(late);
            let late = late.map(|detail| (detail.rank, detail.operation, detail.path));
            (losses.total(), std::cmp::Reverse(late))
        };
        key(self) > key(other)
    }
}

/// When a message was sent whose question has no answer yet: before all times.
/// Half of what fits, so that differences with times fit.
const UNANSWERED: i64 = i64::MIN / 2;
/// When a message was sent whose sender has no trace.
const UNKNOWN: i64 = i64::MAX / 2;

/// Number of the first of the questions about epochs on windows, which are not messages. Nobody
/// has time to receive 2^63 of those.
pub const EPOCHS: u64 = 1 << 63;

/// What an answer is for.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// The call; `NONE` if only the time of a send is wanted.
    pub call: u32,
    /// Number of the received message; of no use for a blocked send.
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
    /// Calls that have all their answers, and somebody was late.
    concluded: Vec<u32>,
    /// Calls whose last question nobody can answer.
    unanswerable: Vec<u32>,
    /// When the messages that are asked about were sent, in the order of their
    /// receipt; kept as long as a late sender before them is not named.
    sent: Vec<i64>,
    /// How they were received.
    receipts: Vec<Receipt>,
    /// Number of `sent[0]`.
    message_base: u64,
    /// When the last transfers left of the epochs that calls waited for: call, origin, ns.
    transfers: Vec<(u32, i32, i64)>,
    /// Partners that were absent while calls lasted, by call.
    partners: FxHashMap<u32, Vec<Partner>>,
    /// Questions of the call being taken in.
    opened: u32,
    /// Whether there is something new since calls were named.
    changed: bool,
    /// Effects before their causes.
    pub violations: Violations,
}

impl Calls {
    /// Begins a call: its number, to which the next questions belong until it ends.
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

    /// Ends the call begun last: it has asked all that it will.
    #[inline(always)]
    pub fn end(&mut self, slot: u32) {
        if self.opened == 0 {
            self.calls.drop(slot);
            return;
        }
        self.waiting += 1;
        let next = self.next_message() as u32;
        let call = &mut self.calls[slot];
        call.open = self.opened;
        call.received = next.wrapping_sub(call.messages);
    }

    /// Number of the next message that is asked about.
    #[inline(always)]
    fn next_message(&self) -> u64 {
        self.message_base + self.sent.len() as u64
    }

    /// Position in `sent` of the first message that the call received: since it is there, so are
    /// all that came later, and nobody has memory for 2^32 of them.
    #[inline]
    fn first_message(&self, call: &Call) -> usize {
        call.messages.wrapping_sub(self.message_base as u32) as usize
    }

    /// Makes room for so many questions.
    #[inline]
    pub fn make_room(&mut self, questions: usize) {
        make_room(&mut self.sent, questions, 0);
        make_room(&mut self.receipts, questions, 0);
    }

    /// For a question about a message that the call received; if it has no number, only the
    /// time of the send is wanted.
    #[inline(always)]
    pub fn message(&mut self, at: &CallAt, source: i32) -> Token {
        let message = self.next_message();
        self.changed = true;
        self.sent.push(UNANSWERED);
        self.receipts.push(Receipt::new(source, at.thread, at.any));
        let call = at.slot;
        self.opened += u32::from(call != NONE);
        Token { call, message }
    }

    /// For a question about a message that the call sent.
    #[inline(always)]
    pub fn blocked_send(&mut self, at: &CallAt) -> Token {
        Token {
            call: self.collective(at),
            message: u64::MAX,
        }
    }

    /// For a question about the other side of an epoch on a window.
    pub fn epoch(&mut self, at: &CallAt) -> Token {
        let message = EPOCHS + u64::from(self.opened);
        self.opened += 1;
        Token {
            call: at.slot,
            message,
        }
    }

    /// When the last transfer of the epoch left that an origin ended.
    pub fn note_transfer(&mut self, call: u32, origin: i32, time: i64) {
        self.transfers.push((call, origin, time));
    }

    /// For the outcome of a non-blocking collective, or of a transfer under a lock, that the call
    /// completed.
    #[inline(always)]
    pub fn collective(&mut self, at: &CallAt) -> u32 {
        self.opened += 1;
        at.slot
    }

    /// What the call lost in so many of these.
    pub fn collective_ended(&mut self, call: u32, count: u32, losses: Losses) {
        let slot = call;
        let call = &mut self.calls[slot];
        if !losses.0.is_empty() {
            self.groups
                .keep_worse(&mut call.group, losses, Losses::outrank);
        }
        self.answer(slot, count, None);
    }

    /// Enter and leave of a call, ns; equal if only a time is wanted.
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

    /// One more question of a call that has some without an answer.
    pub fn hold(&mut self, call: u32) {
        self.calls[call].open += 1;
    }

    /// Until when, ns, a call will be charged at least. A late receiver is charged only where no
    /// sender turns out to be late.
    pub fn charged_at_least(&self, call: u32) -> i64 {
        let sender = self.calls[call].sender;
        self.charged_with(call, sender)
    }

    /// Until when, ns, a call is charged that has all its answers.
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

    /// When a partner was absent while a call lasted.
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
        if token.call != NONE {
            // The call may have more to ask.
            self.unanswerable.push(token.call);
            self.changed = true;
        }
    }

    /// A message that was asked about was sent at `time`.
    #[inline]
    pub fn note_sent(&mut self, message: u64, time: i64) {
        let at = message.wrapping_sub(self.message_base);
        if let Some(sent) = self.sent.get_mut(at as usize) {
            *sent = time;
            self.changed = true;
        }
    }

    /// So many questions of a call are answered; who was late, if somebody was, and what was
    /// asked about.
    /// The number of the late one if it is the worst so far: it is to be described.
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

    /// Whether a call that had answers in this round is still to be charged with this late
    /// party: source, tag, and number of the message on its channel; a receiver if the call
    /// `sends`.
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

    /// What a late party did.
    #[inline]
    pub fn describe(&mut self, late: u32, detail: &Detail) {
        self.lates[late].detail = *detail;
    }

    /// A call has all its answers.
    #[inline(always)]
    fn conclude(&mut self, slot: u32) {
        let call = &self.calls[slot];
        let is_late = call.sender != NONE || call.receiver != NONE || call.group != NONE;
        if is_late || !self.partners.is_empty() && self.partners.contains_key(&slot) {
            make_room(&mut self.concluded, 1, 0);
            self.concluded.push(slot);
        } else {
            if !self.transfers.is_empty() {
                self.transfers.retain(|transfer| transfer.0 != slot);
            }
            self.calls.drop(slot);
        }
        self.waiting -= 1;
    }
}

impl Late {
    /// Late at this time, ns; of no rank, as long as it is not known what it did. An `Option`
    /// would take more: there are many.
    pub fn at(time: i64) -> Detail {
        Detail {
            time,
            rank: NONE,
            ..Detail::default()
        }
    }

    /// Whether a call is charged with this late sender rather than with the other.
    fn outranks_sender(&self, other: &Late) -> bool {
        let key = |late: &Late| {
            (
                late.severity,
                late.detail.time,
                std::cmp::Reverse(late.message),
            )
        };
        key(self) > key(other)
    }

    /// Whether a call is charged with this late receiver rather than with the other.
    /// Ties go by what both ends know, so that the order of the answers does not matter.
    fn outranks_receiver(&self, other: &Late) -> bool {
        let key = |late: &Late| {
            let channel = (late.source, late.tag, late.n);
            (late.severity, std::cmp::Reverse(channel))
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
            enter: self.enter,
            leave: self.leave,
        }
    }
}

/// A member that waits for a collective's outcome.
#[derive(Clone, Copy, Debug)]
pub struct Waiter {
    /// Agent's number of the group.
    pub group: u32,
    /// Which collective on it.
    pub n: u64,
    /// The operation that waits: the collective, or the Wait* that completed it. ns.
    pub enter: i64,
    /// ns.
    pub leave: i64,
    /// Position of the thread in the rank.
    pub thread: u32,
    /// Signature of the operation that waits.
    pub signature: u32,
    /// Signature of the collective.
    pub collective: u32,
    /// Whether the collective was non-blocking.
    pub posted: bool,
    /// The call that completed it, in [`crate::messages::charges::Calls`]; `NONE` unless it was
    /// non-blocking and something is asked.
    pub call: u32,
    /// Whether anything is asked, or the completion is only counted.
    pub asks: bool,
}

impl Waiter {
    /// As one that is charged, of this world rank.
    pub fn waiting(&self, rank: u32) -> Waiting {
        Waiting {
            rank,
            thread: self.thread,
            signature: self.signature,
            enter: self.enter,
            leave: self.leave,
        }
    }
}

/// Messages of other sources that may be received in the wrong order are looked for
/// among so many receives after a late one.
pub const ORDER_WINDOW: u64 = 32;
